"""Pictures of tasks side by side: one HTML file that needs nothing else, or a contact sheet."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.show.still_page import still_page
from perdure.store.plain import visible

CELL = 200
LINES, LINE = 12, 12
"""Of a caption on a contact sheet, at most, and the height of one."""
COLUMNS = 10


@dataclass(frozen=True)
class Captioned:
    """A picture (a JPEG, or none and why) and what stands below it."""

    name: str
    caption: str
    jpeg: bytes = b""
    problem: str = ""


_BODY = """
<section class="intro"><h1><bdi>{{ title }}</bdi></h1><p class="muted">{{ about }}</p></section>
<ul class="gallery">
{% for c in cells %}
<li>{% if c.picture %}<img src="{{ c.picture }}" alt="" loading="lazy" decoding="async">
{%- else %}<div class="none">{{ c.problem }}</div>{% endif %}
<div class="mono small"><bdi>{{ c.name }}</bdi></div><div>{{ c.caption }}</div></li>
{% endfor %}
</ul>
"""
_MORE = """
.gallery { list-style: none; margin: 0 0 40px; padding: 0; display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); }
.gallery li { background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px; font-size: 13px; line-height: 1.35; overflow-wrap: anywhere; }
.gallery img, .gallery .none { display: block; width: 100%; border-radius: 4px; margin-bottom: 6px; }
.gallery .none { color: var(--warn); background: var(--warned); padding: 8px; min-height: 120px; }
"""


def page(title: str, about: str, cells: Sequence[Captioned]) -> str:
    """The pictures as one HTML file, in the report's style."""
    shown = [
        {"name": c.name, "caption": c.caption, "problem": c.problem, "picture": _address(c.jpeg)}
        for c in cells
    ]
    return still_page("gallery", _BODY, _MORE, title, about=about, cells=shown)


def _address(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" if jpeg else ""


def contact_sheet(cells: Sequence[Captioned]) -> bytes:
    """The pictures as one PNG."""
    from PIL import Image, ImageDraw

    columns = min(COLUMNS, len(cells))
    texts = [_lines(cell) for cell in cells]
    tall = CELL + max(map(len, texts)) * LINE + 8
    sheet = Image.new("RGB", (columns * (CELL + 4), -(-len(cells) // columns) * tall), "white")
    draw = ImageDraw.Draw(sheet)
    for k, cell in enumerate(cells):
        x, y = k % columns * (CELL + 4), k // columns * tall
        if cell.jpeg:
            picture = Image.open(io.BytesIO(cell.jpeg))
            scale = CELL / max(picture.size)
            size = round(picture.width * scale), round(picture.height * scale)
            sheet.paste(picture.resize(size, Image.Resampling.LANCZOS), (x, y))
        for n, line in enumerate(texts[k]):
            shown = visible(line).encode("latin-1", "replace").decode("latin-1")
            draw.text((x + 2, y + CELL + 1 + n * LINE), shown, fill="black")
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=False)
    return stream.getvalue()


def _lines(cell: Captioned) -> list[str]:
    """What stands below a picture, in lines that are no wider."""
    found = [
        line
        for text in (cell.name, cell.problem or cell.caption)
        for line in textwrap.wrap(text, CELL // 6)
    ]
    return found if len(found) <= LINES else [*found[: LINES - 1], "..."]
