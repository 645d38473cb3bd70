"""Agents: learners, strategies, networks and adapters; one idea a file."""
