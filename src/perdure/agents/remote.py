"""Remote: does what a policy server says, openpi's, GR00T's, vla-eval's or OpenVLA's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.agents._chunks import ChunkAgent
from perdure.policies.client import Patience, PolicyClient, parse_address
from perdure.policies.connect import connect
from perdure.policies.interface import View
from perdure.types import Context, Setup


class RemoteAgent(ChunkAgent):
    """A policy server as an agent that learns nothing.

    ``address`` says where it is and what it speaks (:mod:`perdure.policies.connect`). What it is shown
    and how its actions are meant is the protocol's business (``libero/eval-spatial,protocol=openpi``);
    of a curriculum without one, observations and actions are as they are. ``replan`` executes so many
    actions of a chunk in place of the protocol's number, or of all.

    A server that is not there, too slow, or answers anything but its protocol is a
    :class:`~perdure.errors.PolicyServerFault`: the lifetime stops, the episode under way does not
    count, and the same command goes on from the last commit.
    """

    def __init__(
        self,
        setup: Setup,
        address: str,
        replan: int | None = None,
        timeout: float = 60.0,
        connect_timeout: float = 30.0,
        anywhere: bool = False,
    ) -> None:
        super().__init__(setup, replan)
        parse_address(address, anywhere)
        self.address, self.anywhere = address, anywhere
        self.patience = Patience(connect_timeout, timeout)
        self.client: PolicyClient | None = None

    @property
    def who(self) -> str:
        return self.address

    def query(self, views: Sequence[View]) -> Sequence[Any]:
        if self.client is None:
            self.client = connect(self.address, self.patience, self.anywhere)
        return self.client.infer(views)

    def leave(self, ctx: Context) -> None:
        if ctx.event == "lifetime" and self.client is not None:
            self.client.close()
            self.client = None


agent = RemoteAgent
