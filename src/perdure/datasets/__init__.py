"""Episodes as others store them: LeRobotDataset and Minari in and out, RLDS in."""

WRITTEN = ("lerobot", "lerobot-video", "minari", "minari-hdf5")
"""Formats that are written."""
