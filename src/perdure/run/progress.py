"""How far a lifetime is: what `watch` shows and what tells a hung worker from a slow one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from perdure.run.pace import BlockWork, time_left
from perdure.store.layout import LifetimeFolder
from perdure.types import Curriculum, Exposure

BEAT = 0.5
"""Seconds between two signs of life."""
GUESS = 50.0
"""Steps per episode until some have been seen."""
VIDEO_SECONDS = 2.0
"""Seconds per video until some have been made."""


def in_steps(exposure: Exposure, episode: float = GUESS) -> float:
    """Roughly how much work an exposure is, in steps, if an episode or batch has ``episode`` of them."""
    if exposure.unit == "epochs":
        return exposure.amount * 256.0
    return float(exposure.amount) * (1.0 if exposure.unit == "steps" else episode)


class VideoProgress:
    """How many videos there are to make, and what time it takes: a part of the lifetime's work."""

    def __init__(self, expected: int) -> None:
        self.left = expected
        self.made, self.seconds = 0, 0.0
        self.task = ""
        """Whose video is being made; empty while none is."""
        self._since = 0.0

    def begin(self, task: str, left: int) -> None:
        """A video is begun, ``left`` with it are still to be made now; more may come later."""
        self.left = max(self.left, left)
        self.task, self._since = task, time.monotonic()

    def end(self) -> None:
        """It is made, or could not be."""
        self.seconds += time.monotonic() - self._since
        self.left, self.task = max(self.left - 1, 0), ""
        self.made += 1

    @property
    def spent(self) -> float:
        """Seconds so far, with those of the video that is being made."""
        return self.seconds + (time.monotonic() - self._since if self.task else 0.0)

    @property
    def ahead(self) -> float:
        """Seconds that the rest will take, at the pace so far."""
        each = self.seconds / self.made if self.made else VIDEO_SECONDS
        under_way = self.spent - self.seconds
        return max(self.left * each - min(under_way, each), 0.0)


class Progress:
    """Counts work in steps; episodes are counted at their mean length so far."""

    def __init__(
        self,
        curriculum: Curriculum,
        folder: LifetimeFolder | None,
        videos: VideoProgress | None = None,
        measure: str = "",
    ) -> None:
        self.folder, self.videos = folder, videos
        self.blocks = len(curriculum.fixed) if curriculum.generate is None else None
        self._plan = [[e for p in b.phases for e in p.exposures] for b in curriculum.fixed]
        self._kinds = [b.kind for b in curriculum.fixed]
        if curriculum.generate is not None:
            self._plan = []
        self._episodes, self._steps = 0, 0.0
        self._scores: deque[float] = deque(maxlen=20)
        self._place: tuple[int, int, int] | None = None
        self._began, self._cpu = time.monotonic(), time.process_time()
        self._spent: dict[int, float] = {}
        """Seconds of this session in each block, without those of recording."""
        self._clock = 0.0
        """The time of the session that is accounted for."""
        self._work: list[BlockWork] = []
        self.done_steps = 0
        self.elsewhere = 0.0
        """Processor time that other processes took for the lifetime."""
        self.measure = measure

    def ended(
        self, steps: int, measures: Mapping[str, float | None], place: tuple[int, int, int]
    ) -> None:
        """An episode or batch ended. The running score is that of one place in the lifetime."""
        self._episodes += 1
        self._steps += steps
        if place != self._place:
            self._scores.clear()
            self._place = place
        for name in ("success", "accuracy", "return"):
            value = measures.get(name)
            if value is not None:
                if name != self.measure:
                    self._scores.clear()
                    self.measure = name
                self._scores.append(value)
                return

    def _weight(self, e: Exposure) -> float:
        return in_steps(e, self._steps / self._episodes if self._episodes else GUESS)

    def fraction(self, block: int, before: int, now: list[tuple[Exposure, float]]) -> float | None:
        """Share of the lifetime that is done; None when its length is not known beforehand.

        ``before`` exposures of this block are behind, ``now`` are under way.
        """
        if not self._plan:
            return None
        weights = [[self._weight(e) for e in b] for b in self._plan]
        here = sum(weights[block][:before]) + sum(self._weight(e) * f for e, f in now)
        self._work = [
            BlockWork(kind, whole := sum(own), whole if k < block else here if k == block else 0.0)
            for k, (kind, own) in enumerate(zip(self._kinds, weights, strict=True))
        ]
        return min(sum(b.done for b in self._work) / sum(b.work for b in self._work), 1.0)

    def write(self, **values: Any) -> None:
        """Give a sign of life."""
        if self.folder is None:
            return
        fraction = values.get("fraction")
        elapsed = time.monotonic() - self._began
        playing = elapsed - (self.videos.spent if self.videos is not None else 0.0)
        place = values.get("block", 0)
        self._spent[place] = self._spent.get(place, 0.0) + max(playing - self._clock, 0.0)
        self._clock = playing
        eta = None
        if fraction is not None:
            eta = 0.0 if fraction >= 1 else time_left(self._work, self._spent)
        if (
            self.videos is not None
            and fraction is not None
            and fraction < 1 + bool(self.videos.task)
        ):
            values, eta = self._with_videos(values, self.videos, elapsed, eta)
        score = sum(self._scores) / len(self._scores) if self._scores else None
        self.folder.write_progress(
            {
                **values,
                "blocks": self.blocks,
                "eta": eta,
                "elapsed": elapsed,
                "cpu": time.process_time() - self._cpu + self.elsewhere,
                "rate": self.done_steps / elapsed if elapsed > 0 else None,
                "score": score,
                "measure": self.measure,
            }
        )

    def _with_videos(
        self, values: Mapping[str, Any], videos: VideoProgress, elapsed: float, eta: float | None
    ) -> tuple[dict[str, Any], float | None]:
        """The same with the videos that are still to be made as work that is not done."""
        out = dict(values)
        if videos.task:
            count = f"{videos.made + 1}/{videos.made + max(videos.left, 1)}"
            out |= {"kind": "video", "task": videos.task, "videos": count}
        if eta is None:
            return out, None
        playing = max(elapsed - videos.spent, 1e-9) + eta
        whole = playing + videos.spent + videos.ahead
        recording = videos.spent + videos.ahead
        done = values["fraction"] * playing + recording * (
            videos.spent / recording if recording else 1.0
        )
        out["fraction"] = min(done / whole, 1.0)
        return out, eta + videos.ahead
