"""On-disk truth: rows, checkpoints, journal."""
