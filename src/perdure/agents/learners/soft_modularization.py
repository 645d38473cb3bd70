"""Soft modularization: soft actor-critic whose layers are modules that each task weighs by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor

from perdure.agents.learners.sac import SACAgent, SACSettings
from perdure.agents.networks.encoders import image_encoder
from perdure.agents.networks.sac_networks import ParameterStack, SoftNetworks, linear
from perdure.agents.networks.settings import Ranges
from perdure.agents.networks.tensors import CPU
from perdure.errors import SpecError
from perdure.specs import takes_fields
from perdure.types import Setup


@dataclass(frozen=True, kw_only=True)
class SoftModularizationSettings(SACSettings):
    """See :class:`SoftModularizationAgent`."""

    agent = "soft_modularization"
    ranges: ClassVar[Ranges] = {
        **SACSettings.ranges,
        "layers": (1, inf),
        "modules": (1, inf),
        "width": (1, inf),
        "embedding": (1, inf),
    }

    hidden: Sequence[int] = (400,)
    embedding: int = 400
    layers: int = 2
    modules: int = 2
    width: int = 256
    task_weights: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multihead:
            raise SpecError(
                "soft_modularization: its tasks share one head, and differ in how they weigh its "
                "modules: leave multihead= out"
            )


class SoftModules(ParameterStack):
    """``layers`` of ``modules`` each, and the routes between them (Yang et al., 2020).

    f(s) is a representation of the input, h(z) one of the task. Module i of a layer reads the modules of
    the layer before by the row's own weights, softmax_j p_ij, where::

        p¹   = D¹ relu(f(s) · h(z))
        pˡ⁺¹ = Dˡ⁺¹ relu(Uˡ pˡ · f(s) · h(z))

    The last layer's modules are read by a linear layer each, and these are added up.
    """

    def __init__(
        self, inputs: int, outputs: int, tasks: int, copies: int, s: SoftModularizationSettings
    ) -> None:
        super().__init__(copies)
        self.modules_each, self.layers, self.encoding = s.modules, s.layers, len(s.hidden) + 1
        sizes = [inputs, *s.hidden, s.embedding]
        for a, b in pairwise(sizes):
            self.add_linear(a, b)
        bound = tasks**-0.5
        self.add(torch.empty(copies, tasks, s.embedding, device=CPU).uniform_(-bound, bound))
        self.add_linear(s.embedding, s.width, s.modules)
        routes = s.modules**2
        for k in range(1, s.layers):
            if k > 1:
                self.add_linear(routes, s.embedding)
            self.add_linear(s.embedding, routes)
            self.add_linear(s.width, s.width, s.modules)
        self.add_linear(s.width, outputs, s.modules)

    def forward(
        self, x: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        """(rows, inputs) of these tasks to (copies, rows, outputs)."""
        read = self.reader(parameters)
        copies, rows, modules = self.copies, len(x), self.modules_each
        f = x.unsqueeze(0).expand(copies, -1, -1)
        for k in range(self.encoding):
            f = linear(torch.relu(f) if k else f, read)
        asked = f * next(read)[:, task]
        found = torch.relu(linear(torch.relu(f).repeat_interleave(modules, 0), read))
        routes: Tensor | None = None
        for _ in range(1, self.layers):
            seen = asked if routes is None else linear(routes, read) * asked
            routes = linear(torch.relu(seen), read)
            shares = routes.view(copies, rows, modules, modules).softmax(3)
            given = found.view(copies, modules, rows, -1)
            mixed = torch.einsum("crij,cjrd->cird", shares, given)
            found = torch.relu(linear(mixed.flatten(0, 1), read))
        out: Tensor = linear(found, read).view(copies, modules, rows, -1).sum(1)
        return out


class SoftModularizationAgent(SACAgent):
    """Multi-task soft actor-critic with soft modularization (Yang et al., 2020).

    Policy and critics have ``layers`` of ``modules`` of ``width`` units behind a representation of the
    observation (``hidden``, then ``embedding`` units); a routing network, which reads the observation and the
    task, weighs for each row what a module reads of those before it. Tasks are weighed by 1 / their
    temperature (``task_weights``). All else is as in :class:`~perdure.agents.learners.sac.SACAgent`.

    The defaults are the authors' shallow network for ten tasks; preset ``deep`` is their deep one,
    ``quick`` has the pace of SAC's and a smaller network.
    """

    plain_layers = False
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "deep": {"layers": 4, "modules": 4, "width": 128},
        "quick": {**SACAgent.presets["quick"], "hidden": (256,), "embedding": 256, "width": 128},
    }

    settings: SoftModularizationSettings

    @takes_fields(SoftModularizationSettings)
    def __init__(self, setup: Setup, settings: SoftModularizationSettings) -> None:
        self.begin(setup, settings)

    def build(self, actions: int, heads: int, tasks: int) -> SoftNetworks:
        s = self.settings
        encoder, width = image_encoder(self.inputs)
        actor = SoftModules(width, 2 * actions, tasks, 1, s)
        critics = SoftModules(width + actions, 1, tasks, 2, s)
        return SoftNetworks(actor, encoder, critics, tasks, s.alpha)


agent = SoftModularizationAgent
