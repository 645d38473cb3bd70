"""The body of ls: what the registry knows, in words."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

from perdure import registry
from perdure.cli.terminal import tell
from perdure.registry import Part
from perdure.show.listing import show_listing
from perdure.specs import Spec


def ls(parts: Sequence[str], as_json: bool) -> None:
    """Names and descriptions."""
    found: dict[str, list[dict[str, str]]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in parts:
            if part == "curricula":
                found[part] = _curricula()
            elif part == "metrics":
                found[part] = _metrics()
            elif part == "tasks":
                found[part] = _tasks()
            elif part == "strategies":
                found[part] = [_with_learners(entry) for entry in _entries("strategies")]
            else:
                found[part] = _entries(part)  # type: ignore[arg-type]
    for w in caught:
        tell(f"warning: {w.message}")
    if as_json:
        print(json.dumps(found if len(parts) > 1 else found[parts[0]], indent=1))
        return
    show_listing(found)


def _tasks() -> list[dict[str, str]]:
    out = []
    for entry in _entries("suites"):
        for task in registry.load("suites", entry["name"]).tasks():
            about = ", ".join(f"{k}={v}" for k, v in task.params.items())
            out.append({"name": task.id, "about": about})
    return out


def _entries(part: Part) -> list[dict[str, str]]:
    out = []
    for entry in registry.entries(part).values():
        if not entry.source.startswith("perdure."):
            try:
                entry.load()
            except (Exception, SystemExit) as e:
                warnings.warn(f"plugin {entry.name} ({entry.source}) is broken: {e}", stacklevel=1)
                continue
        item = {"name": entry.name, "about": entry.about, "source": entry.source}
        if entry.presets:
            item["presets"] = f"presets: {', '.join(entry.presets)}"
        out.append(item)
    return out


def _with_learners(item: dict[str, str]) -> dict[str, str]:
    """A strategy's line with the learners it works with."""
    try:
        from perdure.agents.strategies.base import works_with
    except ModuleNotFoundError:
        return item  # Without torch there is nothing it could work with.
    able, _ = works_with(registry.load("strategies", item["name"]))
    return {**item, "works with": f"works with {', '.join(able)}"}


def _metrics() -> list[dict[str, str]]:
    return [
        {
            "name": m.name,
            "about": m.about,
            "better": f"{m.better} is better",
            "needs": f"needs {', '.join(m.needs)}" if m.needs else "",
        }
        for m in registry.metrics().values()
    ]


def _curricula() -> list[dict[str, str]]:
    from perdure.show.outline import budget

    out = []
    for name, builder in registry.curricula().items():
        about = (builder.__doc__ or "").strip().split("\n")[0]
        try:
            made = registry.curriculum(Spec(name))
        except Exception as e:
            # Some protocols cannot be built without parameters; they are still worth naming.
            out.append({"name": name, "about": about, "budget": f"needs parameters: {e}"})
            continue
        out.append({"name": name, "about": made.about or about, "budget": budget(made)})
    return out
