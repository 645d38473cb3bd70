"""Agents written for other libraries."""
