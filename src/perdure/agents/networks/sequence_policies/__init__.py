"""Policies that read sequences of observations and a sentence: LIBERO's three architectures on pictures,
and two on states. One file an architecture; what they share is in ``base``."""
