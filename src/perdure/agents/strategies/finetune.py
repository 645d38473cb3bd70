"""Finetune: learn each task from where the last one ended, and keep nothing (naive, SEQL)."""

from perdure.agents.strategies.base import Strategy

strategy = Strategy
