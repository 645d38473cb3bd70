"""Networks, and what learners share: encoders, policies, exploration, rows, packing."""
