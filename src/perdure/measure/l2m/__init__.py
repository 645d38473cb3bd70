"""Lifelong Learning Metrics (New et al., 2022): as the reference implementation computes them, and
as the document defines them."""
