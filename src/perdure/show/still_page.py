"""One HTML file without scripts, in the report's style, that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import jinja2
from markupsafe import Markup

from perdure.show.report.page import TEMPLATES, clean

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Perdure">
<title>{{ title }} – Perdure %s</title>
<style>{{ style }}</style>
</head>
<body>
<main class="wide">
%s
</main>
</body>
</html>
"""


def still_page(kind: str, body: str, styles: str, title: str, **values: Any) -> str:
    """A page: ``body`` is a template that is given the title and the values, whose text is made
    :func:`clean`; ``styles`` are added to the report's. Pictures must be in it as ``data:``."""
    style = Markup((TEMPLATES / "report.css").read_text("utf-8") + styles)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    ).from_string(_FRAME % (kind, body.strip()))
    return made.render(**clean({"title": title, **values}), style=style, policy=policy)
