"""MiniGrid: the six task families of TELLA's bundled curricula, with those curricula.

A task is ``minigrid/FAMILY@VARIANT``. The agent sees its 7×7×3 field of view and has six actions:
left, right, forward, pick up, drop, toggle. Success at step t of a horizon T pays 1 − 0.9 t/T.

==============  ======================================  ===========================  =========
family          success                                 failure ends the episode     horizon
==============  ======================================  ===========================  =========
SimpleCrossing  reach the goal through gaps in walls    none                         4 size²
DistShift       reach the goal past two strips of lava  walk into lava: −1           252
DynObstacles    reach the goal between moving balls     walk against a ball: −1      4 size²
CustomFetch     pick up a yellow key                    pick up anything else: 0     5 size²
CustomUnlock    open the locked door                    none                         8 size²
DoorKey         open the door and reach the goal        none                         10 size²
==============  ======================================  ===========================  =========
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perdure.registry import extras_named
from perdure.specs import call_with
from perdure.suite import Suite
from perdure.suites.minigrid import protocols
from perdure.suites.minigrid.tasks import TASKS, parameters
from perdure.types import Curriculum, Task

if TYPE_CHECKING:
    import gymnasium


class MiniGridSuite(Suite):
    """Grid worlds seen through a small window; rules and parameters are TELLA 2.1.0's."""

    name = "minigrid"

    def tasks(self) -> Sequence[Task]:
        return TASKS

    def about(self, task: Task) -> str:
        with extras_named("suite minigrid"):
            from perdure.suites.minigrid.envs import FAMILIES
        own = ", ".join(f"{k}={v}" for k, v in parameters(task).items())
        return f"{FAMILIES[task.name].__doc__} ({own})"

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        params = parameters(task)
        with extras_named("suite minigrid"):
            from perdure.suites.minigrid.envs import FAMILIES
        env: gymnasium.Env[Any, Any] = call_with(f"task {task.id}", FAMILIES[task.name], **params)
        return env

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA


suite = MiniGridSuite()
