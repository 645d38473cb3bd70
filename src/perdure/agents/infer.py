"""Infer: a policy in this process that gives chunks, as openpi's do: infer,policy=file.py:Policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure import registry
from perdure.agents._chunks import ChunkAgent
from perdure.errors import AgentFault, SpecError
from perdure.policies.interface import View
from perdure.policies.openpi import observation
from perdure.types import Setup


class InferAgent(ChunkAgent):
    """A policy that is asked as a server of openpi's would be, without one.

    ``policy`` is an object with ``infer(observation)``, or a class of such (made without arguments). The
    observation is openpi's map (``observation/image``, ``observation/state``, ``prompt``, …), shown as the
    protocol says; the answer has ``actions``, a chunk of them. If it has ``infer_batch``, that gets a list
    of observations and gives a list of answers. ``reset()`` is called when an episode begins.
    """

    def __init__(
        self, setup: Setup, policy: str | Callable[..., Any] | Any, replan: int | None = None
    ) -> None:
        super().__init__(setup, replan)
        self.policy, self.named = policy_of(policy), str(policy)

    @property
    def who(self) -> str:
        return self.named

    def query(self, views: Sequence[View]) -> Sequence[Any]:
        seen = [observation(view) for view in views]
        reset = getattr(self.policy, "reset", None)
        if callable(reset) and any(view.first for view in views):
            reset()
        several = getattr(self.policy, "infer_batch", None)
        answers = several(seen) if callable(several) else [self.policy.infer(one) for one in seen]
        for answer in answers:
            if not isinstance(answer, Mapping) or "actions" not in answer:
                raise AgentFault(
                    f"{self.who}: infer must give a map with 'actions', got {answer!r:.80}"
                )
        return [answer["actions"] for answer in answers]


def policy_of(given: Any) -> Any:
    """The object that a name or a class stands for."""
    found = registry.load_file(given) if isinstance(given, str) and ".py:" in given else given
    made = found() if isinstance(found, type) else found
    if not callable(getattr(made, "infer", None)):
        raise SpecError(f"infer: {given!r:.80} has no method infer(observation)")
    return made


agent = InferAgent
