"""Videos of a LeRobotDataset: pictures in, pictures out, by the ffmpeg that imageio-ffmpeg brings.

Written as H.264 with a key frame every second picture, so that a frame is found quickly; read is whatever that
ffmpeg knows, AV1 (LeRobot's own choice) among it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.datasets.lerobot.layout import VIDEO, VIDEO_MB, next_file
from perdure.errors import StoreError
from perdure.registry import extras_named

CODEC, PIXELS = "h264", "yuv420p"
CRF = "18"
"""How much may be lost: less than an eye sees."""
BETWEEN_KEYS = "2"


def about_video(shape: tuple[int, ...], fps: int) -> dict[str, Any]:
    """What info.json says of a camera's video."""
    height, width, channels = shape
    return {
        "video.height": height,
        "video.width": width,
        "video.codec": CODEC,
        "video.pix_fmt": PIXELS,
        "video.is_depth_map": False,
        "video.fps": fps,
        "video.channels": channels,
        "has_audio": False,
    }


class VideoWriter:
    """The videos of one camera: episodes one after another, a new file when one is full."""

    def __init__(self, root: Path, key: str, fps: int) -> None:
        self.root, self.key, self.fps = root, key, fps
        self.chunk = self.file = self.frames = 0
        self.encoder: Any = None

    @property
    def path(self) -> Path:
        """The file that is being written."""
        name = VIDEO.format(video_key=self.key, chunk_index=self.chunk, file_index=self.file)
        return self.root / name

    def add(self, pictures: Array) -> dict[str, Any]:
        """Write an episode; where it is, as its row says."""
        height, width = pictures.shape[1:3]
        if height % 2 or width % 2:
            raise StoreError(
                f"{self.key}: videos need even sizes, got {width} × {height}: write pictures as PNG"
            )
        if self.encoder is not None and self.path.stat().st_size > VIDEO_MB << 20:
            self.close()
            self.chunk, self.file = next_file(self.chunk, self.file)
        if self.encoder is None:
            self._open(width, height)
        start = self.frames
        for picture in pictures:
            self.encoder.send(np.ascontiguousarray(picture))
        self.frames += len(pictures)
        head = f"videos/{self.key}"
        return {
            f"{head}/chunk_index": self.chunk,
            f"{head}/file_index": self.file,
            f"{head}/from_timestamp": start / self.fps,
            f"{head}/to_timestamp": self.frames / self.fps,
        }

    def _open(self, width: int, height: int) -> None:
        with extras_named("data"):
            import imageio_ffmpeg
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.frames = 0
        self.encoder = imageio_ffmpeg.write_frames(
            str(self.path),
            (width, height),
            pix_fmt_out=PIXELS,
            fps=self.fps,
            codec="libx264",
            quality=None,
            macro_block_size=1,
            output_params=["-crf", CRF, "-g", BETWEEN_KEYS, "-bf", "0"],
        )
        self.encoder.send(None)

    def close(self) -> None:
        """End the file."""
        if self.encoder is not None:
            self.encoder.close()
            self.encoder = None


def read_video(path: Path, shape: tuple[int, ...], fps: float, start: float, count: int) -> Array:
    """``count`` pictures of a video, from the one at ``start`` seconds on."""
    with extras_named("data"):
        import imageio_ffmpeg
    if not path.is_file():
        raise StoreError(f"{path}: this video of the dataset is not there")
    # Half a frame early: a frame that begins at this very moment must be among them.
    seek = ["-ss", f"{max(0.0, start - 0.5 / fps):.6f}"]
    frames: list[Array] = []
    try:
        found = imageio_ffmpeg.read_frames(
            str(path), input_params=seek, output_params=["-fps_mode", "passthrough", "-frames:v", str(count)]
        )  # fmt: skip
        about: Mapping[str, Any] = next(found)
        width, height = about["size"]
        if (height, width, 3) != tuple(shape):
            raise StoreError(
                f"{path}: expected pictures of {shape[1]} × {shape[0]}, got {width} × {height}"
            )
        for data in found:
            frames.append(np.frombuffer(data, np.uint8).reshape(height, width, 3))
    except (OSError, RuntimeError, StopIteration) as e:
        raise StoreError(f"{path}: this video cannot be read ({str(e)[-300:]})") from e
    if len(frames) != count:
        raise StoreError(
            f"{path}: expected {count} pictures from {start:g} s on, got {len(frames)}"
        )
    return np.stack(frames)
