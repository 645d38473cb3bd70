"""Joint: learn all tasks so far as if they were one (cumulative, multi-task learning, MTL).

It keeps every row, and is the measure of what keeping rows could reach. In task t each row of a
minibatch is one of the present with probability 1/t, and else one of a past task; all past tasks
are equally likely, and so are the distinct rows of one::

    L = mean over B' of ℓ,   row of B' ~ (1/t) Σ_{k ≤ t} uniform over the rows of task k

Minibatches stay as large and as many as without a strategy: what is compared is what is learned
from, not how long. Tasks weigh the same, and not rows, because every task counts the same in the
metrics; with tasks of one size, as in OpenLORIS-Object, it is the uniform sample of the union.

Only for labelled data: with environments, tasks side by side in one block are joint learning.
"""

from __future__ import annotations

import numpy as np

from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.networks.tensors import to_tensor
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.row_memory import Keep, RowFormat, UniqueBuffer, rows_of
from perdure.types import Array, State


class Joint(Strategy):
    """Rows that come again with another epoch are kept once: as references into the data, or with
    ``keep="copies"`` as they came. All of them are, whatever room they take."""

    needs = ("data", "replay")

    def __init__(self, learner: TorchLearner, keep: Keep = "references") -> None:
        super().__init__(learner)
        self.form = RowFormat(learner, keep)
        self.memory: list[UniqueBuffer] = []

    def begin(self) -> None:
        self.memory.append(UniqueBuffer(self.learner.inputs, self.form))

    def collect(self, rows: NewRows) -> None:
        if self.memory:  # In an adapt block before the first task it is empty.
            self.memory[-1].offer(rows)

    def extend(self, batch: Minibatch) -> Minibatch:
        past = [task for task in self.memory[:-1] if len(task)]
        if not past:
            return batch
        # One draw decides for each row: 0 is the present, k the k-th task of the past.
        owner = self.rng.integers(len(past) + 1, size=rows_of(batch))
        out = {name: value.clone() for name, value in batch.items()}
        for k in np.unique(owner[owner > 0]):
            task, where = past[k - 1], np.flatnonzero(owner == k)
            drawn = task.at(self.rng.integers(len(task), size=len(where)))
            for name, value in out.items():
                value[to_tensor(where, value.device)] = drawn[name]
        return out

    def state(self) -> dict[str, Array]:
        out: dict[str, Array] = {"tasks kept": np.array(len(self.memory))}
        for k, task in enumerate(self.memory):
            out |= task.state(f"memory{k}")
        return out

    def load(self, state: State) -> None:
        self.memory = [
            UniqueBuffer(self.learner.inputs, self.form) for _ in range(int(state["tasks kept"]))
        ]
        for k, task in enumerate(self.memory):
            task.load(f"memory{k}", state)


strategy = Joint
