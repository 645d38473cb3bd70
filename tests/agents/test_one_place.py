"""Devices without a device: how they are named, and the one module that converts.

Nothing here needs the pretended device, so that no version of torch skips it.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_agents import LEARNERS, VECTOR, make

import perdure
from perdure.errors import SpecError


def test_names_of_devices(monkeypatch) -> None:
    pytest.importorskip("torch")
    from perdure.agents.networks import tensors

    there = ("cuda:0", "cuda:1", "cpu")
    monkeypatch.setattr(tensors, "available_devices", lambda: there)
    found = {name: str(tensors.resolve_device(name)) for name in ("auto", "cuda", "cuda:1", "cpu")}
    assert found == {"auto": "cuda:0", "cuda": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}
    for name in ("mps", "cuda:2", "gpu", ""):
        with pytest.raises(SpecError, match="cuda:0, cuda:1, cpu"):
            tensors.resolve_device(name)


@pytest.mark.parametrize("pair", [*LEARNERS, "ewc+bc"])
def test_every_learner_takes_a_device(pair) -> None:
    pytest.importorskip("torch")
    agent = make(pair, VECTOR, "device=cpu")
    assert getattr(agent, "learner", agent).device.type == "cpu"
    with pytest.raises(SpecError, match="cuda:7.*this machine, which has"):
        make(pair, VECTOR, "device=cuda:7")


MADE = {"zeros", "ones", "arange", "eye", "empty", "full", "linspace", "randn", "rand", "randperm"}
CONVERTED = {"tensor", "from_numpy", "as_tensor", "asarray"}
READ = {"numpy", "cpu", "cuda", "item", "tolist"}
LISTED = "tolist() of arrays"
EXCEPTIONS = {
    "agents/networks/column.py": (1, LISTED),
    "agents/learners/q.py": (3, LISTED),
    "agents/networks/rollout_buffer.py": (2, LISTED),
    "agents/networks/trial_replay.py": (5, LISTED),
    "agents/adapters/sb3/state.py": (3, "item() of arrays: the plain numbers on a model"),
    "agents/adapters/_globals.py": (
        7,
        "states of torch's generators are bytes on the CPU whatever the device, and are kept where "
        "torch may be missing; tolist() of arrays",
    ),
    "suites/openloris/features.py": (
        2,
        "suites do not import agents; a frozen network of another package that stays on the CPU",
    ),
}
"""How often a module converts by itself, and why it may."""


def modules_with_tensors() -> list[Path]:
    """Those of agents, and all others that import torch."""
    root = Path(perdure.__file__).parent
    own = [root / "agents" / part for part in ("networks", "learners", "strategies")]
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if any(folder in path.parents for folder in own)
        or re.search(r"^\s*(import|from) torch\b", path.read_text(), re.MULTILINE)
    ]


def converts(call: ast.Call) -> bool:
    """Whether a call turns arrays into tensors or back, or makes a tensor without naming a device."""
    if not isinstance(call.func, ast.Attribute):
        return False
    called, of = call.func.attr, call.func.value
    if not (isinstance(of, ast.Name) and of.id == "torch"):
        return called in READ
    return called in CONVERTED or (
        called in MADE and "device" not in {keyword.arg for keyword in call.keywords}
    )


def test_one_module_converts_and_all_others_name_a_device() -> None:
    root, wrong, allowed = Path(perdure.__file__).parent, [], dict(EXCEPTIONS)
    for path in modules_with_tensors():
        name = path.relative_to(root).as_posix()
        if name == "agents/networks/tensors.py":
            continue
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        found = [f"{name}:{c.lineno} {ast.unparse(c)}" for c in calls if converts(c)]
        expected, _ = allowed.pop(name, (0, ""))
        if len(found) != expected:
            wrong += [f"{name}: {expected} expected, {len(found)} found", *found]
    assert not wrong, "use agents/networks/tensors.py, or say why not:\n" + "\n".join(wrong)
    assert not allowed, f"these exceptions name no module: {allowed}"


FAULTS = """
import resource, torch
from perdure.agents.networks.tensors import keep_freed_memory

keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        held = [torch.ones(1 << 20) for _ in range(10)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no mallopt")
def test_large_tensors_come_and_go_without_the_system(monkeypatch) -> None:
    """Pages of 400 MB are asked for once, unless the environment says how memory is to be handled."""

    def count() -> int:
        return int(subprocess.check_output([sys.executable, "-c", FAULTS], text=True))

    for name in [n for n in os.environ if n.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    assert count() < 1000
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", str(1 << 17))
    assert count() > 50_000


def test_whether_inputs_are_standardised_is_known_without_the_device() -> None:
    """A number that is read from a GPU is waited for, and this one is asked at every minibatch."""
    torch = pytest.importorskip("torch")
    from perdure.agents.networks.scaling import Standardise

    away = Standardise((2,)).to("meta")  # Nothing can be read there.
    assert away.mean.device.type == "meta" and not away.is_fitted
    away.fitted.fill_(1.0)
    assert away.is_fitted and "fitted" in away.state_dict()
    assert not torch.nn.Sequential(Standardise((2,))).to("meta")[0].is_fitted
