"""Fixtures of the fault tests: undisturbed runs to compare with, and a look for orphans."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import helpers
import psutil
import pytest

from perdure import registry


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process does not lose what it gave to the
    kernel, so that a slow disk would only make hundreds of commits slow."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="perdure-faults-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def no_orphans() -> Iterator[None]:
    """No test leaves a process behind."""
    before = set(psutil.Process().children(recursive=True))
    yield
    helpers.eventually(
        lambda: not set(psutil.Process().children(recursive=True)) - before, seconds=5.0
    )


@pytest.fixture(autouse=True)
def fresh_trouble() -> None:
    """Environments in trouble count their calls; each test counts from zero."""
    registry.load_file(f"{helpers.LIVES}:Troubled")
    # This file may also have been imported by its name; the one registered first counts.
    gymnasium.registry["PerdureTroubled-v0"].entry_point.calls.clear()
