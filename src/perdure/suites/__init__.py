"""Families of tasks, one a room."""
