"""Weights for other tools: one safetensors file a lifetime."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

import perdure
from perdure.errors import MissingExtra, StoreError
from perdure.names import task_slug
from perdure.store.files import write_file
from perdure.store.run import Run
from perdure.store.saved import AgentReference, SavedAgent, saved_agent


def write_safetensors(
    run: Run, out: Path, without: Collection[str] = ()
) -> tuple[list[Path], list[str]]:
    """The weights of every lifetime's agent at its last commit, as ``OUT/<agent>-<seed>.safetensors``;
    and why some have none, a sentence each.

    The names are those of the network's ``state_dict``; of an agent without networks, of its state.
    The metadata say what agent it is and where it is from.
    """
    try:
        from safetensors.numpy import save
    except ImportError as e:
        raise MissingExtra("exporting safetensors", "safetensors") from e
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError(f"{out} exists, and nothing is overwritten: remove it or name another")
    written: list[Path] = []
    left_out: list[str] = []
    for info in run.lifetimes():
        if info.id in without:
            continue
        try:
            saved = saved_agent(AgentReference(run, info.agent, info.seed, expert=info.expert))
            arrays = {name: np.ascontiguousarray(v) for name, v in saved.weights.items()}
        except StoreError as e:
            left_out.append(str(e))
            continue
        if not arrays:
            left_out.append(f"{info.path}: the agent has learned nothing")
            continue
        out.mkdir(parents=True, exist_ok=True)
        expert = f"-{task_slug(info.expert)}" if info.expert else ""
        path = out / f"{info.agent}{expert}-{info.seed}.safetensors"
        write_file(path, save(arrays, metadata=_about(saved)), durable=False)
        written.append(path)
    return written, left_out


def _about(saved: SavedAgent) -> dict[str, str]:
    described = saved.description
    return {
        **{k: str(described[k]) for k in ("agent", "expert", "seed", "fingerprint")},
        "curriculum": str(described["curriculum"]["name"]),
        "commit": str(saved.commit.n),
        "sha256": saved.sha256,
        "perdure": perdure.__version__,
    }
