"""What arrays are called in signatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
State: TypeAlias = Mapping[str, Array]
