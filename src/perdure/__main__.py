"""``python -m perdure``."""

from perdure.cli.main import entry

entry()
