"""Where the values of a searched parameter come from, and how Optuna is told of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from perdure.errors import SpecError
from perdure.run.pruning import optuna
from perdure.specs import Spec

RANGES = ("uniform", "log", "int", "logint", "choice")
DIGITS = 4
"""Significant digits of a suggested number: enough for any parameter, and readable."""


@dataclass(frozen=True)
class Range:
    """``uniform``, ``log``, ``int`` or ``logint`` between two values, or a ``choice``."""

    kind: str
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, name: str, text: str) -> Range:
        """Read ``log(1, 1e5)``, ``int(1, 8)``, ``choice(relu, tanh)`` or a list, ``[0.1, 0.2]``."""
        found = re.fullmatch(r"\s*(\w*)\s*[(\[](.*)[)\]]\s*", text, re.DOTALL)
        kind = (found[1] or "choice") if found else ""
        if found is None or kind not in RANGES:
            raise SpecError(
                f"search {name}={text!r}: expected {', '.join(f'{k}(low, high)' for k in RANGES[:-1])} or "
                "choice(a, b, …)"
            )
        values = Spec.parse(f"x,v=[{found[2]}]").params["v"]
        if not isinstance(values, list):
            raise SpecError(f"search {name}={text!r}: expected values between commas")
        made = cls(kind, tuple(values))
        made.check(name)
        return made

    def check(self, name: str) -> None:
        """SpecError unless there is something to choose from."""
        what = f"search {name}={self}"
        if self.kind == "choice":
            if not self.values:
                raise SpecError(f"{what}: there is nothing to choose from")
            return
        whole = self.kind.endswith("int")
        for value in self.values:
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise SpecError(
                    f"{what}: expected {'whole numbers' if whole else 'numbers'}, got {value!r}"
                )
        if len(self.values) != 2 or not self.values[0] < self.values[1]:
            raise SpecError(f"{what}: expected a low and a higher value")
        if self.kind.startswith("log") and self.values[0] <= 0:
            raise SpecError(f"{what}: a logarithmic range must begin above 0")

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.values))})"

    def distribution(self) -> Any:
        """Optuna's. Of a choice it sees the places alone: values may be lists."""
        d = optuna().distributions
        if self.kind == "choice":
            return d.CategoricalDistribution(tuple(range(len(self.values))))
        make = d.IntDistribution if self.kind.endswith("int") else d.FloatDistribution
        return make(*self.values, log=self.kind.startswith("log"))

    def suggested(self, found: Any) -> Any:
        """The value that Optuna's suggestion stands for, without digits that nobody needs."""
        if self.kind == "choice":
            return self.values[found]
        if self.kind.endswith("int"):
            return found
        low, high = self.values
        return min(max(float(f"{found:.{DIGITS}g}"), low), high)

    def told(self, value: Any) -> Any:
        """A value as Optuna knows it."""
        return self.values.index(value) if self.kind == "choice" else value
