"""The command line: verbs only. Whatever is heavy is imported inside a verb."""
