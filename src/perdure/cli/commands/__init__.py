"""The verbs, a file for each thing that one does with them; bodies are elsewhere, and imported when run."""
