"""The 121 objects of OpenLORIS-Object in the authors' order, and the label sets made from them."""

from __future__ import annotations

from perdure.errors import SpecError, UnknownName

COUNTS = {
    "bottle": 4, "bowl": 5, "corkscrew": 1, "cottonswab": 2, "cup": 9, "cushion": 3, "glasses": 4,
    "knife": 1, "ladle": 4, "mask": 5, "paper_cutter": 4, "pencil": 5, "plasticbag": 3, "plug": 4,
    "pot": 1, "scissors": 3, "stapler": 3, "thermometer": 3, "toy": 5, "nail_clippers": 3,
    "bracelet": 3, "comb": 3, "umbrella": 3, "socks": 3, "toothpaste": 3, "wallet": 3,
    "headphone": 3, "key": 3, "battery": 2, "mouse": 1, "pencilcase": 2, "tape": 1,
    "chopsticks": 3, "notebook": 3, "spoon": 3, "tissue": 3, "clamp": 2, "hat": 2, "u_disk": 2,
    "swimming_glasses": 1,
}  # fmt: skip
"""Categories and how many objects each has, in label order."""


def _numbers(category: str, count: int) -> list[int]:
    # The release has no cup_09: its ninth cup is cup_10.
    return [n + (category == "cup" and n == 9) for n in range(1, count + 1)]


CATEGORIES = tuple(COUNTS)
NAMES = tuple(f"{c}_{n:02d}" for c, count in COUNTS.items() for n in _numbers(c, count))
"""Object names; the position is the label among 121. The first 69 are the older release."""
SETS = (121, 40, 69, 51)
"""Label sets: objects, categories, objects of the older release, and the competition's numbers."""


def category(name: str) -> str:
    """The category of an object: its name without the last number."""
    head, _, number = name.rpartition("_")
    if head not in COUNTS or not number.isdigit():
        raise UnknownName("OpenLORIS object", name, NAMES)
    return head


def label(name: str, labels: int = 121) -> int:
    """The label of an object among 121 or 69 objects or 40 categories."""
    if labels == 40:
        return CATEGORIES.index(category(name))
    if labels not in (121, 69):
        raise SpecError(f"'labels' must be 121, 40 or 69 where folders name objects, got {labels}")
    known = NAMES[:labels]
    if name not in known:
        raise UnknownName(f"OpenLORIS object among {labels}", name, known)
    return known.index(name)
