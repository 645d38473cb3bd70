"""New LIBERO tasks by seed: behaviours, sentences, scenes that fit, goals, task files, and their checks.

The paper's pipeline. A behaviour ("put … in …", "open …", "turn on …") is filled with objects that can
do it; a scene is chosen that has them, and things are laid out in it; the goal formula follows, and
the sentence that asks for it. What comes out is a :class:`~perdure.suites.libero.problem.Problem`,
written as a task file like the official ones. A task that fails a check is not written.
"""
