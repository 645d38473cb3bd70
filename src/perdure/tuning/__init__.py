"""Choosing an agent's parameters: ``perdure sweep``.

A sweep is a run whose agents are its trials, ``t000``, ``t001``, … Each trial's lifetimes resume like any
others, under seeds from 1,000,000 up that no result uses. Suggestions come from Optuna, each from a
sampler seeded by the trial's number and from the trials of earlier batches alone: the same sweep again
suggests the same, whatever ran faster and however often it was interrupted.
"""

from perdure.tuning.search import VALIDATION, Sweep, SweepSettings, SweepTrial, sweep

__all__ = ["VALIDATION", "Sweep", "SweepSettings", "SweepTrial", "sweep"]
