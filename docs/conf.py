"""How `make docs` builds the site: Markdown pages as they are, and an API reference from docstrings.

The source folder is the root of the repository, not ``docs``, so that links between ``docs``,
``benchmarks/results`` and the root mean the same in the repository and on the site.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import perdure

project = "Perdure"
author = "The Perdure authors"
copyright = author
version = release = perdure.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/results/**",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
# The index includes docs/README.md, which is the index in the repository.
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".ipynb": "markdown"}
exclude_patterns = ["docs/README.md", ".*", "build", "runs", "src", "tests"]
nitpicky = True

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autosummary_generate = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"Perdure {version}"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]


def list_public_names(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in the table of ``perdure.__all__``, each name with the place where it is documented."""
    if docname == "docs/api/index":
        homes = (getattr(getattr(perdure, n), "__module__", "perdure") for n in perdure.__all__)
        entries = (f"   ~{home}.{n}" for home, n in zip(homes, perdure.__all__, strict=True))
        source[0] = source[0].replace("   (perdure.__all__)", "\n".join(entries))


def show_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """A notebook as the Markdown of its cells, with the text that they showed."""
    if not docname.startswith("docs/notebooks/"):
        return
    parts = []
    for cell in json.loads(source[0])["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        shown = [
            o.get("text") or o.get("data", {}).get("text/plain", "")
            for o in cell.get("outputs", ())
        ]
        if words := "\n".join("".join(lines).rstrip() for lines in shown):
            parts.append(f"```text\n{words}\n```")
    source[0] = "\n\n".join(parts)


def find_by_last_name(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement
) -> nodes.Node | None:
    """Resolve a name that a module imports from another, as readers of the module would.

    A signature may also name what is documented elsewhere or nowhere (the standard library, numpy);
    in prose, a reference that is not found stays an error.
    """
    if node.get("refdomain") != "py":
        return None
    above: Any = node.parent
    while above is not None and not isinstance(above, addnodes.desc_signature):
        above = above.parent
    in_signature = above is not None
    target: str = node["reftarget"]
    if "." not in target or (in_signature and target.startswith("perdure.")):
        last = target.rpartition(".")[2]
        found = [
            (name, entry)
            for name, entry in env.domains.python_domain.objects.items()
            if name.rpartition(".")[2] == last
            and entry.objtype in ("class", "function", "exception")
        ]
        if len(found) == 1:
            [(name, entry)] = found
            here = node["refdoc"]
            return make_refnode(app.builder, here, entry.docname, entry.node_id, [text], name)
    return text if in_signature else None


def plain_signature(
    app: Sphinx,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    arguments: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """A default made by a factory as an ellipsis; no constructor for a Protocol, which has none."""
    if what == "class" and getattr(thing, "_is_protocol", False):
        return "", None
    return arguments and arguments.replace("<factory>", "..."), result


def without_empty_words(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the fields of a named tuple: their docstrings only count them."""
    return True if str(thing.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", list_public_names)
    app.connect("source-read", show_notebook)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", without_empty_words)
    app.connect("missing-reference", find_by_last_name)
