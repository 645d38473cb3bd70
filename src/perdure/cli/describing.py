"""The body of ls PART NAME: one part's parameters, defaults, presets and docstring."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from perdure import registry
from perdure.curricula.named import builder_of, curriculum_of
from perdure.errors import PerdureError
from perdure.parameters import in_words, parameters_of
from perdure.specs import Spec, shown


def describe(part: str, name: str) -> list[dict[str, Any]]:
    """What there is to know of a part; of ``ewc+ppo``, of both."""
    spec = Spec.parse(name)
    if part == "curricula":
        return [_curriculum(spec)]
    if part == "metrics":
        return [_metric(found) for found in registry.metrics_of(spec.name)]
    if part == "suites":
        return [_suite(spec.name)]
    if part in ("agents", "strategies"):
        *strategies, last = spec.parts
        kept = [_made("strategies", s) for s in strategies]
        return [*kept, _made(part, last)]
    return [_made(part, spec.name)]


def _made(part: Any, name: str) -> dict[str, Any]:
    """Of something that a specification constructs."""
    thing = registry.load(part, name)
    out = {"kind": _singular(part), "name": name, **_words(thing)}
    if not callable(thing):
        return out
    out["parameters"] = _parameters(thing, skip=1 if part in ("agents", "strategies") else 0)
    presets: Mapping[str, Mapping[str, Any]] = getattr(thing, "presets", {})
    out["presets"] = {preset: dict(values) for preset, values in presets.items()}
    if part == "strategies":
        from perdure.agents.strategies.base import works_with

        able, _ = works_with(thing)
        out["works with"] = able
    flag = {"agents": "--agent ", "executors": "--executor "}.get(part, "--agent ")
    joined = f"{name}+LEARNER" if part == "strategies" else name
    out["use"] = f"perdure run CURRICULUM {flag}{_example(joined, out['parameters'])}"
    return out


def _curriculum(spec: Spec) -> dict[str, Any]:
    from perdure.show.outline import budget

    builder = builder_of(spec)
    out = {"kind": "curriculum", "name": spec.name, **_words(getattr(builder, "func", builder))}
    if callable(builder):
        out["parameters"] = [p for p in _parameters(builder, skip=0) if p["name"] != "seed"]
    try:
        made = curriculum_of(spec)
        out["budget"] = budget(made)
        out["tasks"] = [task.id for task in made.tasks]
    except PerdureError as e:
        out["budget"] = f"needs parameters: {e}"
    example = _example(spec.name, out.get("parameters", []))
    out["use"] = f"perdure run {example} --agent NAME"
    return out


def _suite(name: str) -> dict[str, Any]:
    suite = registry.suite(name)
    out = {"kind": "suite", "name": name, **_words(suite)}
    out["tasks"] = [task.id for task in suite.tasks()]
    out["curricula"] = [f"{name}/{c}" for c in suite.curricula()]
    out["use"] = f"perdure ls tasks {name}; perdure ls curricula {name}/NAME"
    return out


def _metric(metric: Any) -> dict[str, Any]:
    return {
        "kind": "metric",
        "name": metric.name,
        "about": metric.about,
        "better": metric.better,
        "needs": list(metric.needs),
        "use": f"perdure measure RUN --metric {metric.name}",
    }


def _singular(part: str) -> str:
    return "strategy" if part == "strategies" else part.removesuffix("s")


def _words(thing: Any) -> dict[str, Any]:
    """The docstrings of a part and of the module it is alone in."""
    own = thing if inspect.isroutine(thing) or isinstance(thing, type) else type(thing)
    module = sys.modules.get(getattr(own, "__module__", ""))
    doc = inspect.getdoc(own) or ""
    room = inspect.getdoc(module) if module is not None and not inspect.isroutine(own) else ""
    about, _, rest = (room or doc).strip().partition("\n\n")
    return {
        "about": " ".join(about.split()),
        "source": f"{own.__module__}:{own.__qualname__}",
        "doc": "\n\n".join(t for t in (rest.strip("\n"), doc if room else "") if t.strip()),
    }


def _parameters(thing: Callable[..., Any], skip: int) -> list[dict[str, Any]]:
    """Name, type and default of what a specification can give; ``skip`` that the loop gives."""
    first = list(inspect.signature(thing).parameters)[:skip]
    out = []
    for name, p in parameters_of(thing).items():
        if name in first or name in getattr(thing, "keywords", {}):
            continue
        item = {"name": name, "type": in_words(p.annotation)}
        if p.default is not p.empty:
            item["default"] = "–" if p.default is None else shown(p.default)
        out.append(item)
    return out


def _example(name: str, parameters: list[dict[str, Any]]) -> str:
    """A specification with its first plain parameter written out."""
    for p in parameters:
        if p.get("default") and p["default"][0] not in "[{–":
            return f"{name},{p['name']}={p['default']}"
    return (
        name
        if not parameters or "default" in parameters[0]
        else f"{name},{parameters[0]['name']}=…"
    )
