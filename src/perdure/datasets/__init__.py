"""Episodes as others store them: LeRobotDataset and Minari, in and out."""
