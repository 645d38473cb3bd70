"""A part of the page that is made elsewhere, and the text that all parts show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from perdure.store.plain import visible

_PLAIN = {int, float, bool, type(None)}


@dataclass(frozen=True)
class PageSection:
    """A part of the page that is made elsewhere, such as videos. It comes before the method."""

    id: str
    title: str
    about: str
    html: Markup
    """Trusted as it is: escape what comes from names. Scripts in it do not run; images and media
    must be ``data:`` addresses."""


def clean(value: Any) -> Any:
    """The value with :func:`visible` text at any depth."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {clean(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return value if _PLAIN.issuperset(map(type, value)) else [clean(v) for v in value]
    return value
