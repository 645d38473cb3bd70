"""How the past is kept: one strategy a file, working with every learner that offers what it needs."""
