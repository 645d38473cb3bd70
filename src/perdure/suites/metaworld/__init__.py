"""Meta-World: fifty tasks of a robot arm, their protocols, and Continual World's sequences.

A task is ``metaworld/reach`` (upstream's ``reach-v3``). An action is four numbers: where the hand
is to go and how hard the gripper closes. An observation is upstream's 39 numbers: hand, gripper, two
objects, the same one step before, and the goal. ``reset(seed)`` alone decides an episode, which
upstream's does not. Rewards, observations and successes are upstream's to the bit.

==============  ==================================================================================
parameter       what
==============  ==================================================================================
horizon         steps of an episode: 500; 150 in the paper, 200 in Continual World
reward          v2, v1 or sparse; success means the same with each
observation     state, image (``size``, ``camera``, ``camera_position``) or image+hand, a Dict
goals           random: by seed; fixed: as in the paper; set: one of the official 50 of a
                ``benchmark`` made with ``benchmark_seed`` (``goal``: always this one), drawn in
                learning and one after another in evaluation
hide_goal       zeros in the goal's place, or no mark of it in the image, as meta-learning demands
one_hot         [position, how many tasks]: appended to the state, or beside the image in a Dict
end_on_success  whether an episode ends with its first success
instruction     the task in words: a sentence, or ``about``; none by default
persist         fewer resets: the scene is set anew only every so many horizons
demonstrations  how many expert episodes the task's data hold, of states or of images; ``noise``,
                ``batch_size``
==============  ==================================================================================

Fewer resets keep ``reset(seed)`` honest: one episode lasts ``persist`` horizons, and each horizon is
a row of its own. Arm and objects go on from where the last row left them.

Tasks are not chained into one longer episode. Every task is a MuJoCo scene of its own; those that
share one (drawer-open and drawer-close, the windows, doors and faucets) draw their objects' places
from different ranges, and their rewards and successes are measured from what their own reset wrote
down, such as where the drawer was at first. A second task entered from the first one's end has no
upstream reward to agree with, so it would be another benchmark under this one's name. Long horizons
are there within a task (``horizon``, ``persist``), and sequences of tasks as curricula.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.protocol import EvalProtocol
from perdure.registry import extras_named
from perdure.suite import BatchedEnv, Data, Demonstration, Suite
from perdure.suites.metaworld import eval_protocols, protocols
from perdure.suites.metaworld.descriptions import ABOUT
from perdure.suites.metaworld.tasks import NAMES, settings, spaces_of
from perdure.types import Array, Curriculum, Setup, Task

if TYPE_CHECKING:
    import gymnasium

    from perdure.agent import Agent


VIDEO_SIZE = 240
"""Width and height of a video."""


class MetaWorldSuite(Suite):
    """Fifty tasks of one arm, in MuJoCo."""

    name = "metaworld"
    reset_options = True
    measure = "success"

    def tasks(self) -> Sequence[Task]:
        return [Task("metaworld", name) for name in NAMES]

    def about(self, task: Task) -> str:
        return ABOUT[task.name]

    def instructions(self, task: Task) -> Sequence[str]:
        words = settings(task).instruction
        return (ABOUT[task.name] if words == "about" else words,) if words else ()

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        chosen = settings(task)
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.env import Sawyer
        return Sawyer(task.name, chosen)

    def render_env(self, task: Task) -> gymnasium.Env[Any, Any]:
        chosen = dataclasses.replace(settings(task), observation="state", size=VIDEO_SIZE)
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.env import Sawyer
        return Sawyer(task.name, chosen)

    def batched_env(self, task: Task, count: int) -> BatchedEnv | None:
        chosen = settings(task)
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.env import BatchedSawyer, Sawyer
        return BatchedSawyer([Sawyer(task.name, chosen) for _ in range(count)])

    def expert(self, setup: Setup) -> Agent:
        from perdure.suites.metaworld.expert import ExpertAgent

        return ExpertAgent(setup)

    def demonstration_tasks(self, name: str, params: Mapping[str, Any]) -> Sequence[Task]:
        from perdure.suites.metaworld.recording import tasks_named

        return tasks_named(name, params)

    def demonstration_file(self, task: Task) -> tuple[str, Mapping[str, Any]]:
        from perdure.suites.metaworld.recording import file_of

        return file_of(task)

    def demonstrate(self, task: Task, seed: int) -> Demonstration | None:
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.recording import demonstrate
        return demonstrate(task, seed)

    def replay(self, task: Task, shown: Demonstration) -> bool:
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.recording import replay
        return replay(task, shown)

    def data(self, task: Task, learning: bool) -> Data:
        chosen = settings(task)
        with extras_named("suite metaworld"):
            from perdure.suites.metaworld.demonstrations import Demonstrations
        return Demonstrations(task, chosen, learning)

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        return spaces_of(settings(task))

    def window(self, task: Task) -> int | None:
        chosen = settings(task)
        return chosen.horizon if chosen.persist > 1 else None

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return {**protocols.CURRICULA, **eval_protocols.CURRICULA}

    def aliases(self) -> Mapping[str, str]:
        return {f"{task.name}-v3": task.name for task in self.tasks()}

    def lerobot_observations(self, seen: Mapping[str, Array]) -> Mapping[str, Array]:
        return {{"hand": "state"}.get(name, name): part for name, part in seen.items()}

    def demonstrator(self) -> tuple[str, Mapping[str, Any]]:
        return "expert", {"observation": "state"}

    def protocols(self) -> Mapping[str, EvalProtocol]:
        return eval_protocols.PROTOCOLS


suite = MetaWorldSuite()
