"""The loop, the plan and the executors."""
