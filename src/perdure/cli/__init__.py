"""The command line: verbs only. Heavy modules are imported inside a verb."""
