"""The body of ls: what the registry knows, in words."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

from perdure import registry
from perdure.cli.terminal import tell
from perdure.curricula.named import curriculum_of
from perdure.registry import PluginKind
from perdure.show.listing import show_details, show_listing
from perdure.specs import Spec
from perdure.types import Task


def ls(parts: Sequence[str], name: str | None, as_json: bool) -> None:
    """Names and descriptions; of one name all there is to know."""
    if name is not None and parts[0] != "tasks":
        from perdure.cli.describing import describe

        known = describe(parts[0], name)
        if as_json:
            print(json.dumps(known[0] if len(known) == 1 else known, indent=1, default=str))
        else:
            for item in known:
                show_details(item)
        return
    found: dict[str, list[dict[str, str]]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in parts:
            if part == "curricula":
                found[part] = _curricula()
            elif part == "metrics":
                found[part] = _metrics()
            elif part == "tasks":
                found[part] = _tasks(name)
            else:
                found[part] = _entries(part)  # type: ignore[arg-type]
    for w in caught:
        tell(f"warning: {w.message}")
    if as_json:
        print(json.dumps(found if len(parts) > 1 else found[parts[0]], indent=1))
        return
    if name is not None:
        found = {f"tasks of {name}: {registry.entries('suites')[name].about}": found["tasks"]}
    show_listing(found)


def _tasks(name: str | None) -> list[dict[str, str]]:
    """The tasks of all suites, or of one with what each is."""
    if name is not None:
        suite = registry.suite(name)
        return [{"name": t.id, "about": _task(t, suite.about(t))} for t in suite.tasks()]
    suites = (registry.load("suites", entry["name"]) for entry in _entries("suites"))
    return [{"name": t.id, "about": _task(t)} for suite in suites for t in suite.tasks()]


def _task(task: Task, about: str = "") -> str:
    return "; ".join(filter(None, (about, ", ".join(f"{k}={v}" for k, v in task.params.items()))))


def _entries(part: PluginKind) -> list[dict[str, str]]:
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
            made = curriculum_of(Spec(name))
        except Exception as e:
            # Some protocols cannot be built without parameters; they are still worth naming.
            out.append({"name": name, "about": about, "budget": f"needs parameters: {e}"})
            continue
        out.append({"name": name, "about": made.about or about, "budget": budget(made)})
    return out
