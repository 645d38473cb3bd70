"""Pure functions from a table of rows to numbers; a paper a file."""
