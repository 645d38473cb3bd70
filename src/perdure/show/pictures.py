"""The pictures of a run's agents, such as what a policy looks at, as a section of its report."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from markupsafe import Markup

from perdure.show.report.page import PageSection, clean
from perdure.show.report.study import Study
from perdure.show.videos import videos
from perdure.store.layout import Picture, RunFolder

ROOM = 5_000_000
"""Bytes of pictures that a report holds."""


def videos_and_pictures(study: Study) -> Sequence[PageSection]:
    """All that a report shows of agents at work."""
    return (*videos(study), *pictures(study))


def pictures(study: Study) -> Sequence[PageSection]:
    """What :meth:`~perdure.store.layout.RunFolder.write_picture` kept with the runs, if anything."""
    found = [p for f in study.folders if f.spec for p in RunFolder(f.path).pictures()]
    left, figures = ROOM, []
    for picture in found:
        if len(picture.png) <= left:
            left -= len(picture.png)
            figures.append(_figure(picture))
    if not figures:
        return ()
    about = "Drawn after the run, from the policies as they were kept."
    if len(figures) < len(found):
        about += f" {len(found) - len(figures)} more are in the runs' folders."
    return (PageSection("pictures", "Pictures", about, STYLE + Markup("").join(figures)),)


STYLE = Markup(
    "<style>.pictured{margin:0 0 1.2rem}.pictured img{max-width:100%;border-radius:.5rem;background:#fff;"
    "display:block}.pictured figcaption{font-size:.9rem;line-height:1.4;margin:.4rem 0}</style>"
)


def _figure(picture: Picture) -> Markup:
    address = f"data:image/png;base64,{base64.b64encode(picture.png).decode()}"
    return Markup(
        '<figure class="pictured"><figcaption><strong><bdi>{}</bdi></strong><br>'
        '<span class="muted">{}</span></figcaption><img alt="{}" src="{}" loading="lazy"></figure>'
    ).format(clean(picture.title), clean(picture.about), clean(picture.title), address)
