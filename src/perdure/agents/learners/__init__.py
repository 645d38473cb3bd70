"""What is optimised: one learner a file."""
