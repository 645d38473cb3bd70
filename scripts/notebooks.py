"""Execute the notebooks of the docs and keep what they show as text: python scripts/notebooks.py"""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

KEPT = ("text/plain",)


def refresh(path: Path) -> None:
    """One notebook with the text that it shows now."""
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=200, kernel_name="python3", resources=where).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for kind in [k for k in data if k not in KEPT]:
                del data[kind]
            if "display_id" in output.get("transient", {}):
                del output["transient"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, path)


for found in sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb")):
    refresh(found)
    print(found)
