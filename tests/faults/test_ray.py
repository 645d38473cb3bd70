"""Lifetimes on a Ray cluster of several nodes (separate raylets on loopback): workers, nodes and drivers
are killed, and the rows are those of a serial run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    LIVES,
    arguments,
    committed,
    done,
    eventually,
    no_workers,
    run_here,
    same,
    snapshot,
    spawn,
    statuses,
    workers_of,
)  # fmt: skip

from perdure.agent import Agent
from perdure.errors import SpecError
from perdure.run.executors import make_executor
from perdure.run.executors.ray_cluster import check_resources, declared, unwrapped
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec

ray_cluster = pytest.importorskip("ray.cluster_utils")
SLOW = f"{LIVES}:troubled,pause=0.15"
KEYS: dict[str, Any] = {"curriculum": SLOW, "agents": ["random"], "checkpoint": 5, "lifetimes": 3}


@pytest.fixture(autouse=True)
def no_orphans() -> Iterator[None]:
    """The cluster's processes outlive a test; those of runs are looked for by each."""
    yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without processors, and two nodes of one."""
    with pytest.MonkeyPatch.context() as m:
        m.setenv("RAY_worker_niceness", "0")
        m.setenv("RAY_health_check_failure_threshold", "2")
        m.setenv("RAY_health_check_period_ms", "1000")
        m.setenv("RAY_health_check_timeout_ms", "1000")
        made = ray_cluster.Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "include_dashboard": False,
                "object_store_memory": 80 << 20,
            },
        )
        try:
            for _ in range(2):
                made.add_node(num_cpus=1, object_store_memory=80 << 20)
            made.wait_for_nodes()
            yield made
        finally:
            made.shutdown()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    done(run_here(out, **KEYS))
    return out


def command(cluster: Any, out: Path, more: str = "", **keys: Any) -> list[str]:
    executor = f"ray,address={cluster.address}{more}"
    return arguments(out, **{**KEYS, **keys, "executor": executor})


def test_a_worker_and_a_node_and_the_driver_are_killed(
    cluster: Any, alone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    driver = spawn(command(cluster, out))
    # A worker of the cluster, with the process of the lifetime in it.
    (victim, *_) = eventually(lambda: committed(out) >= 1 and workers_of(out), 60, driver)
    parent = victim.parent()
    assert parent is not None and parent.name().startswith("ray::")
    parent.kill()
    before = committed(out)
    eventually(lambda: committed(out) >= before + 2, 60, driver)
    # A whole node: its raylet and all below it.
    (node, *_) = cluster.worker_nodes
    cluster.remove_node(node, allow_graceful=False)
    before = committed(out)
    eventually(lambda: committed(out) >= before + 2, 90, driver)
    # The driver.
    driver.kill()
    driver.communicate()
    no_workers(out, 30.0)
    assert statuses(out) and any(status != "done" for status, _ in statuses(out).values())
    cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    again = spawn(command(cluster, out))
    _, err = again.communicate(timeout=200)
    assert again.returncode == 0, err
    same(out, snapshot(alone))
    no_workers(out)


def test_interrupted_and_resumed(cluster: Any, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    driver = spawn(command(cluster, out, ",per_node=1"))
    eventually(lambda: committed(out) >= 1, 60, driver)
    assert len(workers_of(out)) <= 2, "one on each node"
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130 and "nothing is lost" in err
    no_workers(out, 10.0)
    again = spawn(command(cluster, out))
    _, err = again.communicate(timeout=200)
    assert again.returncode == 0, err
    same(out, snapshot(alone))


def test_who_always_crashes_is_reported(cluster: Any, tmp_path: Path) -> None:
    """One lifetime kills its worker each time, one the worker of the cluster; the third is done."""
    curriculum = f"{LIVES}:troubled,faults=[step:kill,step:parent]"
    out = tmp_path / "run"
    driver = spawn(command(cluster, out, ",retries=1", curriculum=curriculum))
    _, err = driver.communicate(timeout=200)
    assert driver.returncode == 1, err
    found = statuses(out)
    assert found["random/2"] == ("done", "")
    assert (
        found["random/0"][0] == "failed" and "died with signal 9, 2 times" in found["random/0"][1]
    )
    assert found["random/1"][0] == "failed" and "was lost 2 times" in found["random/1"][1]
    assert "2 of 3 lifetimes failed" in err


def test_wide_evaluations_and_words_as_they_are_said(cluster: Any, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"curriculum": f"{LIVES}:wide", "agents": [f"talking={LIVES}:Talking"],
                            "checkpoint": 17, "lifetimes": 1}  # fmt: skip
    alone, out, heard = tmp_path / "alone", tmp_path / "run", tmp_path / "heard"
    done(run_here(alone, **keys))
    refused = spawn([*command(cluster, out, **keys), "--eval-workers=2"])
    _, err = refused.communicate(timeout=200)
    assert refused.returncode == 2 and "needs CPU 2, and no node of the cluster has that" in err
    node = cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
    with open(heard, "w") as to:
        driver = spawn([*command(cluster, out, **keys), "--eval-workers=2"], stderr=to)
    eventually(lambda: "a word in the middle of life" in heard.read_text(), 300, driver)
    assert driver.poll() is None and statuses(out)["talking/0"][0] == "running"
    driver.communicate(timeout=400)
    assert driver.returncode == 0, heard.read_text()
    assert heard.read_text().count("a word in the middle of life") == 1
    found, expected = (snapshot(r)["talking/0"] for r in (out, alone))
    assert found["rows"] == expected["rows"] and found["files"] == expected["files"]
    inner = [c["position"]["inner"] for c in found["commits"]]
    assert any("told" in i for i in inner), "it was split"
    cluster.remove_node(node)


def test_what_no_node_has_is_refused(cluster: Any, tmp_path: Path) -> None:
    driver = spawn(command(cluster, tmp_path / "run", ",gpus=4"))
    _, err = driver.communicate(timeout=60)
    assert (
        driver.returncode == 2 and "needs CPU 1, GPU 4, and no node of the cluster has that" in err
    )


def test_resources() -> None:
    check_resources("x", {"cpus": 0.5, "gpus": 1, "memory": 1e9})
    for bad in ({"cores": 1}, {"cpus": -1}, {"gpus": True}, {"memory": "2G"}):
        with pytest.raises(SpecError):
            check_resources("x", bad)
    for text in ("ray,per_node=-1", "ray,cpus=many", "ray,deadline=0", "ray,retries=-1"):
        with pytest.raises(SpecError):
            make_executor(text)
    assert make_executor("ray,memory=2").given == {"memory": 2e9}  # type: ignore[attr-defined]


def test_an_agent_declares_what_it_needs(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from perdure.agents.random import RandomAgent\n\n\nclass Large(RandomAgent):\n"
        "    resources = {'cpus': 2, 'memory': 3e9}\n"
    )
    plan = make_plan(
        RunSpec("toy/check", (f"large={mine}:Large", "random"), out=str(tmp_path / "x"))
    )
    assert declared(plan, "large") == {"cpus": 2, "memory": 3e9} and declared(plan, "random") == {}
    assert Agent.resources == {}


def test_signals_come_out_of_compiled_code() -> None:
    from perdure.errors import Interrupted

    with pytest.raises(Interrupted):
        with unwrapped():
            raise SystemError("returned a result with an exception set") from Interrupted(2)
