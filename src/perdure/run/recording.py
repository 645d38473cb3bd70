"""Episodes of an agent as a dataset: what was seen, what was done, what came of it.

An agent may need to see other things than the dataset is to hold: an expert reads the state where a
policy will have pictures. Then the same episode is played in two environments side by side, one for the
agent and one to look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.agents.compose import make_agent
from perdure.arrays import Array
from perdure.datasets.episodes import DatasetEpisode
from perdure.run.config import LifetimeConfig
from perdure.run.validate import resolve
from perdure.run.vector import reset_env
from perdure.seeds import Address
from perdure.specs import Spec
from perdure.suite import Episode, Suite, phrasings_of
from perdure.types import Context, Curriculum, Exposure, Setup, Task, evaluate


def setup_for(task: Task, curriculum: Curriculum) -> tuple[Setup, Suite]:
    """What an agent for one task of an evaluation is made with, and the task's suite."""
    alone = Curriculum("one", (evaluate(Exposure(task, 1)),), protocol=curriculum.protocol)
    resolved = resolve(alone)
    spaces = (resolved.observation_space, resolved.action_space)
    return LifetimeConfig(alone, resolved.suites, *spaces, 0).setup(), resolved.suites[task.suite]


def context_for(task: Task, suite: Suite, first: bool) -> Context:
    """The context in which an agent acts alone."""
    said = phrasings_of(suite, task)[:1] or None
    return Context(
        "eval", False, 0, (task.id,), np.array([0]), np.array([first]), instructions=said
    )


def as_rows(obs: Any) -> Any:
    """One observation as agents get it: side by side with none."""
    if isinstance(obs, Mapping):
        return {k: np.asarray(v)[None] for k, v in obs.items()}
    return np.asarray(obs)[None]


def recorded(
    agent: Agent, suite: Suite, played: Task, shown: Task, episode: Episode
) -> DatasetEpisode:
    """One episode of ``played``, which the agent sees, as ``shown`` looks at it."""
    same = played.key == shown.key
    env = suite.env(played)
    looking = env if same else suite.env(shown)
    try:
        obs, _ = reset_env(suite, env, episode)
        seen = obs if same else reset_env(suite, looking, episode)[0]
        agent.reset_memory(np.array([0]))
        views, over = [seen], False
        actions: list[Array] = []
        told: list[tuple[float, bool, bool, float]] = []
        while not over:
            ctx = context_for(played, suite, not actions)
            action = np.asarray(agent.act(as_rows(obs), ctx))[0].astype(env.action_space.dtype)
            obs, reward, end, cut, info = env.step(action)
            seen = obs
            if not same:
                seen, reward, end, cut, info = looking.step(action)
            actions.append(action)
            views.append(seen)
            told.append((float(reward), bool(end), bool(cut), float(info.get("success", 0.0))))
            over = end or cut
    finally:
        env.close()
        looking.close()
    rewards, ends, cuts, successes = (np.array(column) for column in zip(*told, strict=True))
    words = next(iter(phrasings_of(suite, shown)), shown.id)
    about = {"task_id": shown.id, "episode": episode.number}
    return DatasetEpisode(
        _stacked(views),
        np.array(actions),
        rewards,
        ends,
        cuts,
        successes,
        words,
        episode.seed,
        about,
    )


def _stacked(views: list[Any]) -> dict[str, Array]:
    if isinstance(views[0], Mapping):
        return {name: np.stack([view[name] for view in views]) for name in views[0]}
    return {"": np.stack(views)}


def episode_of(task: Task, number: int, seed: int = 0) -> Episode:
    """An evaluation episode, as the loop plays it."""
    own = Address(seed, "eval", task.key, "episode").seed(number)
    return Episode(own, own, number, number)


def recordings(
    curriculum: Curriculum,
    agent: Spec,
    agent_params: Mapping[str, Any],
    episodes: int,
    seed: int = 0,
    successful: bool = False,
) -> Iterator[DatasetEpisode]:
    """The episodes of every task of an evaluation, one after another; with ``successful`` those alone
    in which the agent succeeded. ``agent_params`` are those with which tasks show the agent what it needs."""
    for exposure in curriculum.blocks[0].exposures:
        shown = exposure.task
        played = Task(shown.suite, shown.name, shown.variant, {**shown.params, **agent_params})
        setup, suite = setup_for(played, curriculum)
        player = make_agent(agent, setup)
        for k in range(episodes):
            found = recorded(player, suite, played, shown, episode_of(shown, k, seed))
            assert found.successes is not None
            if not successful or found.successes.any():
                yield found


def as_lerobot(suite: Suite, episode: DatasetEpisode) -> DatasetEpisode:
    """An episode with the observations that LeRobot's own datasets of these tasks have."""
    return replace(episode, observations=suite.lerobot_observations(episode.observations))
