"""A self-test of the whole path between environment and policy, with a policy whose success is known.

An expert demonstrates episodes of a task; then a policy that does nothing but replay what the expert did is
asked through the same path as any other: the same environment, the same pictures and numbers, the same
wire, the same chunks. It must reach the expert's success. It also looks at what it is shown and at what
becomes of its actions, so that a convention that is not the protocol's is found and named: a picture upside
down, a turn with the other sign, a gripper the other way round.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure import registry
from perdure.agents._chunks import ChunkAgent
from perdure.agents.compose import make_agent
from perdure.agents.infer import InferAgent
from perdure.agents.remote import RemoteAgent
from perdure.arrays import Array
from perdure.curricula.named import curriculum_of
from perdure.datasets.convert import open_dataset
from perdure.datasets.episodes import DatasetEpisode
from perdure.errors import PolicyServerFault, SpecError
from perdure.policies.interface import Interface
from perdure.policies.wire import pack, unpack
from perdure.run.conventions import done_as, looked_at
from perdure.run.recording import as_rows, context_for, episode_of, recorded, setup_for
from perdure.run.vector import reset_env
from perdure.specs import Spec
from perdure.suite import Episode
from perdure.types import Curriculum, Setup, Task


@dataclass
class ReplayedEpisode:
    """What an expert did in an episode, and what a policy is to be shown of it."""

    episode: Episode
    actions: Array
    success: bool
    shown: Mapping[str, Array]
    """Pictures and numbers at its beginning, by the reference protocol."""


@dataclass
class SelfTest:
    """What came out."""

    task: str
    demonstrated: int
    replayed: int
    episodes: int
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the path is right: the expert's success, and nothing to find fault with."""
        return self.replayed == self.demonstrated and not self.findings


def selftest(
    curriculum: Spec,
    expert: str = "",
    reference: Spec | None = None,
    episodes: int = 2,
    socket: bool = True,
    expert_params: Mapping[str, Any] | None = None,
    demonstrations: str = "",
) -> list[SelfTest]:
    """Test the path of an evaluation's tasks. ``reference`` is the evaluation whose conventions the policy
    expects, the same unless it is given. ``expert`` is an agent (the suite's own), and ``expert_params`` are
    those with which tasks show it what it needs. With ``socket`` it goes through openpi's wire. ``demonstrations``
    is a folder that ``perdure record --format minari`` wrote, in place of an expert."""
    tested, known = curriculum_of(curriculum), curriculum_of(reference or curriculum)
    seen = {e.task.id: e.task for e in known.blocks[0].exposures}
    stored = _stored(demonstrations) if demonstrations else {}
    if not expert and not stored:
        expert, expert_params = registry.suite(tested.tasks[0].suite).demonstrator()
    if not expert and not stored:
        raise SpecError(
            f"suite {tested.tasks[0].suite} has no expert of its own: name an agent that can do it"
        )
    out = []
    for exposure in tested.blocks[0].exposures:
        task = exposure.task
        if stored:
            shown = [_replayable(e, seen[task.id], known) for e in stored.get(task.id, ())]
            if not shown:
                continue
        else:
            shown = [
                _demonstrated(seen[task.id], known, expert, k, expert_params or {})
                for k in range(episodes)
            ]
        out.append(_replayed(task, tested, known, seen[task.id], shown[:episodes], socket))
    if not out:
        raise SpecError(f"{demonstrations}: there is no episode of {', '.join(seen)} in it")
    return out


def _stored(folder: str) -> dict[str, list[DatasetEpisode]]:
    """The episodes of a recorded dataset by task; refused if it does not say which episodes they were."""
    out: dict[str, list[DatasetEpisode]] = {}
    for episode in open_dataset(folder):
        task = episode.about.get("task_id")
        if task is None or episode.seed is None or "episode" not in episode.about:
            raise SpecError(
                f"{folder}: it does not say with which seeds its episodes began, so that they cannot be played "
                "again; record with --format minari or minari-hdf5"
            )
        out.setdefault(str(task), []).append(episode)
    return out


def _replayable(stored: DatasetEpisode, task: Task, known: Curriculum) -> ReplayedEpisode:
    """A stored episode, looked at as the reference protocol does."""
    face = Interface.of(setup_for(task, known)[0])
    first = {name: array[:1] for name, array in stored.observations.items()}
    view = face.view(first.get("", first), 0, prompt="")
    assert stored.seed is not None
    number = int(stored.about["episode"])
    episode = Episode(stored.seed, stored.seed, number, number)
    success = stored.successes is not None and bool(np.any(stored.successes))
    return ReplayedEpisode(episode, stored.actions, success, {**view.images, **view.numbers})


def _demonstrated(
    task: Task, known: Curriculum, expert: str, number: int, more: Mapping[str, Any]
) -> ReplayedEpisode:
    """Let the expert play an episode, and look at it as the reference protocol does."""
    own = Task(task.suite, task.name, task.variant, {**task.params, **more})
    (setup, suite), (policy_setup, _) = setup_for(own, known), setup_for(task, known)
    episode, face = episode_of(task, number), Interface.of(policy_setup)
    found = recorded(make_agent(Spec.parse(expert), setup), suite, own, own, episode)
    env = suite.env(task)
    try:
        view = face.view(as_rows(reset_env(suite, env, episode)[0]), 0, prompt="")
    finally:
        env.close()
    success = found.successes is not None and bool(found.successes.any())
    return ReplayedEpisode(episode, found.actions, success, {**view.images, **view.numbers})


class _Replayer:
    """A policy that knows what will be asked: it gives the demonstrated actions, in the convention that
    it expects, and writes down what it was shown."""

    def __init__(self, demonstrations: Sequence[ReplayedEpisode], face: Interface) -> None:
        self.demonstrations, self.face = demonstrations, face
        self.played, self.at = -1, 0
        self.seen: list[tuple[ReplayedEpisode, int, dict[str, Array]]] = []

    def begin(self) -> None:
        """The next episode."""
        self.played, self.at = self.played + 1, 0

    def infer(self, observation: Mapping[str, Any]) -> dict[str, Array]:
        """The actions that come next."""
        demonstration = self.demonstrations[self.played]
        parts = {k.removeprefix("observation/"): v for k, v in observation.items() if k != "prompt"}
        self.seen.append((demonstration, self.at, parts))
        count = self.face.replan or 1
        wanted = demonstration.actions[self.at : self.at + count]
        self.at += count
        if len(wanted) < count:  # The expert was done: what comes after does not matter.
            last = demonstration.actions[-1:]
            wanted = np.concatenate([wanted, np.repeat(last, count - len(wanted), axis=0)])
        return {"actions": self.face.undone(wanted)}


def _replayed(
    task: Task,
    tested: Curriculum,
    known: Curriculum,
    reference: Task,
    demonstrations: Sequence[ReplayedEpisode],
    socket: bool,
) -> SelfTest:
    setup, suite = setup_for(task, tested)
    replayer = _Replayer(demonstrations, Interface.of(setup_for(reference, known)[0]))
    done: list[tuple[Array, Array]] = []
    findings: list[str] = []
    solved = 0
    with _path(setup, replayer, socket) as agent:
        for demonstration in demonstrations:
            replayer.begin()
            agent.reset_memory(np.array([0]))
            env = suite.env(task)
            try:
                obs, _ = reset_env(suite, env, demonstration.episode)
                success, step, over = False, 0, False
                while not over and step < len(demonstration.actions):
                    action = np.asarray(
                        agent.act(as_rows(obs), context_for(task, suite, step == 0))
                    )[0]
                    done.append((demonstration.actions[step], action))
                    obs, _, end, cut, info = env.step(action)
                    success |= bool(info.get("success", 0))
                    over, step = end or cut, step + 1
                solved += success
                if step < len(demonstration.actions) and not success:
                    findings.append(
                        f"an episode is cut off after {step} steps, and the expert took "
                        f"{len(demonstration.actions)}: the horizon is too short"
                    )
            except PolicyServerFault as e:
                findings.append(f"the policy's answer is refused: {e}")
                break
            finally:
                env.close()
    begun = [(d.shown, parts) for d, at, parts in replayer.seen if not at]
    findings = [*(f for pair in begun for f in looked_at(*pair)), *findings]
    wished, has = replayer.face.replan or 1, agent.interface.replan
    if done and has is not None and has != wished:
        findings.append(f"the policy is asked every {has} steps, and expects it every {wished}")
    elif done:
        findings += done_as(*(np.array(part, np.float64) for part in zip(*done, strict=True)))
    wished = sum(d.success for d in demonstrations)
    return SelfTest(task.id, wished, solved, len(demonstrations), tuple(dict.fromkeys(findings)))


@contextmanager
def _path(setup: Setup, policy: _Replayer, socket: bool) -> Iterator[ChunkAgent]:
    """The agent that asks the policy: here, or through a socket on this machine."""
    if not socket:
        yield InferAgent(setup, policy)
        return
    with registry.extras_named("policies"):
        from websockets.sync.server import serve

    def handle(connection: Any) -> None:
        connection.send(pack({}))
        for message in connection:
            connection.send(pack(policy.infer(unpack(message))))

    with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        agent = RemoteAgent(setup, f"ws://127.0.0.1:{server.socket.getsockname()[1]}")
        try:
            yield agent
        finally:
            if agent.client is not None:
                agent.client.close()
            server.shutdown()
            thread.join()
