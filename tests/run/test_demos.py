"""Collecting demonstrations: stopped, resumed, damaged, and read again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("metaworld")
h5py = pytest.importorskip("h5py")

from perdure.cli.main import main
from perdure.errors import EnvironmentFault, PerdureError, SpecError
from perdure.registry import suite
from perdure.run.demos import PARTS, collect
from perdure.seeds import seed_for
from perdure.suites._demonstrations import DemonstrationFile, digest, windows

SUITE = suite("metaworld")
COUNT = 4


def reach(**params):
    return SUITE.demonstration_tasks("reach", params)


def contents(path):
    file = DemonstrationFile(path)
    try:
        file.check()
        return [digest(file.read(n).arrays) for n in file.names]
    finally:
        file.close()


def listed(path):
    """Everything in a file but its arrays' numbers, which digests are of."""
    found = {}

    def note(name, item):
        packed = (item.dtype, item.shape, item.compression) if hasattr(item, "dtype") else ()
        found[name] = (*packed, sorted((k, repr(v)) for k, v in item.attrs.items()))

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def runs(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Collected without a stop."""
    (path,) = collect(reach(), tmp_path_factory.mktemp("demos"), COUNT)
    return path


def test_a_killed_collection_goes_on_and_ends_the_same(tmp_path, made):
    code = (
        "from pathlib import Path\n"
        "from perdure.registry import suite\n"
        "from perdure.run.demos import collect\n"
        f"collect(suite('metaworld').demonstration_tasks('reach', {{}}), Path({str(tmp_path)!r}), {COUNT})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    parts = tmp_path / "metaworld" / PARTS / "reach_demo"
    until = time.monotonic() + 120
    while not list(parts.glob("demo-*.hdf5")):
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = {p.name: p.stat().st_mtime_ns for p in parts.glob("demo-*.hdf5")}
    assert kept and not (tmp_path / "metaworld/reach_demo.hdf5").exists()
    told = []
    (path,) = collect(reach(), tmp_path, COUNT, note=told.append)
    assert told[0].done == len(kept), "what was there is not made again"
    assert contents(path) == contents(made)
    assert [p.name for p in path.parent.iterdir()] == [path.name], "nothing is left beside it"
    assert told[-1].done == told[-1].all_done == COUNT and told[-1].seconds_left == 0


def test_layout_is_that_of_robomimic(made):
    with h5py.File(made) as file:
        data = file["data"]
        assert data.attrs["num_demos"] == COUNT == len(data)
        assert data.attrs["total"] == sum(len(data[n]["actions"]) for n in data)
        demo = data["demo_0"]
        assert demo["actions"].shape[1] == 4 and demo["obs/state"].shape[1] == 39
        assert demo["dones"][-1] == 1 and demo["dones"][:-1].sum() == 0
        assert demo.attrs["num_samples"] == len(demo["actions"]) == len(demo["states"])


def test_stored_actions_succeed_again(made):
    from perdure.suites.metaworld.recording import replay

    file = DemonstrationFile(made)
    assert all(replay(reach()[0], file.read(n)) for n in file.names)
    still = file.read("demo_0")
    still.arrays["actions"][:] = 0
    assert not replay(reach()[0], still)


def test_a_whole_file_is_not_made_again_and_grows_only_as_it_was_made(made):
    before = made.stat().st_mtime_ns
    for per_task in (COUNT, COUNT - 1):
        assert collect(reach(), made.parents[1], per_task) == [made]
    more = f"holds {COUNT} demonstrations, {COUNT + 1} are wanted, but it was made by another"
    with pytest.raises(EnvironmentFault, match=f"{more} seed: "):
        collect(reach(), made.parents[1], COUNT + 1, seed=1)
    with pytest.raises(EnvironmentFault, match=f"{more} env_args, perdure_params: "):
        collect(reach(noise=0.2), made.parents[1], COUNT + 1)
    assert made.stat().st_mtime_ns == before and len(contents(made)) == COUNT


def unlucky(task, seed):
    """Every other attempt fails."""
    return None if seed % 2 else type(SUITE).demonstrate(SUITE, task, seed)


def test_a_collection_grows_as_if_it_were_made_at_once(tmp_path, monkeypatch):
    """Also where attempts failed, and where it is stopped in between."""
    monkeypatch.setattr(SUITE, "demonstrate", unlucky, raising=False)
    (whole,) = collect(reach(), tmp_path / "whole", COUNT)
    (path,) = collect(reach(), tmp_path / "grown", 2)
    parts, two = path.parent / PARTS / path.stem, contents(path)

    def stop(told):
        if told.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(reach(), tmp_path / "grown", COUNT, note=stop)
    assert contents(path) == two == contents(whole)[:2], (
        "what there was is there until there is more"
    )
    next(parts.glob("demo-*")).unlink()  # As if it had been killed while it took the file apart.
    tried = []
    monkeypatch.setattr(SUITE, "demonstrate", lambda *a: tried.append(a) or unlucky(*a))
    assert collect(reach(), tmp_path / "grown", COUNT) == [path]
    assert contents(path) == contents(whole) and listed(path) == listed(whole)
    attempts = [seed_for(0, "demonstration", "metaworld/reach", k) for k in range(16)]
    good = [k for k, seed in enumerate(attempts) if seed % 2 == 0]
    assert [a[1] for a in tried] == attempts[good[2] + 1 : good[3] + 1], "none is made again"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_damage_is_found_and_named(tmp_path, made):
    whole = made.read_bytes()
    cut = tmp_path / "cut_demo.hdf5"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EnvironmentFault, match="cut_demo.hdf5 is damaged"):
        DemonstrationFile(cut)
    changed = tmp_path / "changed_demo.hdf5"
    changed.write_bytes(whole)
    with h5py.File(changed, "r+") as file:
        file["data/demo_1/actions"][0, 0] += 1e-6
    file = DemonstrationFile(changed)
    with pytest.raises(EnvironmentFault, match="demo_1 is not as it was written"):
        file.check()
    file.close()
    said = CliRunner().invoke(main, ["demos", "--check", str(tmp_path)])
    assert said.exit_code == 1 and "cut_demo" in said.output and "changed_demo" in said.output


def test_an_expert_without_time_is_named(tmp_path):
    with pytest.raises(PerdureError, match=r"0 times in 4 attempts, 1 are wanted"):
        collect(reach(horizon=3), tmp_path, 1)


def test_who_cannot_demonstrate_says_so(tmp_path):
    with pytest.raises(SpecError, match="suite toy has no scripted experts"):
        suite("toy").demonstration_tasks("reach", {})
    said = CliRunner().invoke(main, ["demos", "metaworld", str(tmp_path)])
    assert said.exit_code == 2 and "SUITE/LIST" in said.output


def test_the_command_collects_in_processes(tmp_path, made, monkeypatch):
    """Whatever else lies where it is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signal.py").write_text("raise RuntimeError('imported by mistake')\n")
    given = ["demos", "metaworld/reach", str(tmp_path), "--per-task", "2", "--workers", "2"]
    said = CliRunner().invoke(main, given)
    assert said.exit_code == 0, said.output
    assert "reach_demo.hdf5" in said.output and "to go" in said.output
    assert contents(tmp_path / "metaworld/reach_demo.hdf5") == contents(made)[:2]


def test_its_processes_end_when_the_command_is_killed(tmp_path):
    """By kill -9, which nothing can be done about: not one goes on collecting."""
    command = ["-m", "perdure", "demos", "metaworld/reach", str(tmp_path), "--workers", "2"]
    parent = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    parts = tmp_path / "metaworld" / PARTS / "reach_demo"
    until = time.monotonic() + 120
    while not list(parts.glob("demo-*.hdf5")):
        assert parent.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    started = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert len(started) >= 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 30
    while left := [pid for pid in started if runs(pid)]:
        assert time.monotonic() < until, f"{left} outlived who started them"
        time.sleep(0.05)


def test_windows_begin_at_every_step():
    assert windows([2, 3], 10).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    assert windows([], 10).shape == (0, 2)


def test_a_digest_knows_names_shapes_and_kinds():
    a = np.arange(6.0)
    known = digest({"a": a})
    assert known == digest({"a": a.copy()})
    others = [{"b": a}, {"a": a.reshape(2, 3)}, {"a": a.astype(np.float32)}, {"a": a + 1e-12}]
    assert known not in map(digest, others)
