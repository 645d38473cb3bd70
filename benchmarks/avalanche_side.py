"""Avalanche's half of the training benchmark: run inside .venv-avalanche.

Reads lines ``track strategy`` and answers each with CPU milliseconds per training image, and with
those of the Fisher information alone (0 where there is none). Data are float tensors in memory, the
quickest that it can be given, and each minibatch's loss and accuracy are measured, without loggers.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch

# torchvision's operators come with a build for CUDA, which does not load beside torch for CPUs.
# Avalanche needs none of them, but torchvision does not import before they are declared.
missing = torch.library.Library("torchvision", "FRAGMENT")
for pooling in ("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d"):
    missing.define(f"{pooling}(Tensor x) -> Tensor")
    missing.define(f"_{pooling}_backward(Tensor x) -> Tensor")
for other in ("nms", "qnms", "qroi_align"):
    missing.define(f"{other}(Tensor x) -> Tensor")

from avalanche.benchmarks import tensors_benchmark
from avalanche.evaluation.metrics import accuracy_metrics, loss_metrics
from avalanche.training.plugins import EvaluationPlugin, EWCPlugin
from avalanche.training.supervised import EWC, LwF, Naive, SynapticIntelligence
from training_parts import (
    BATCH,
    DAMPING,
    LR,
    STRENGTH,
    TASKS,
    TEMPERATURE,
    TRACKS,
    data,
    floats,
    network,
)

MAKE = {
    "naive": (Naive, {}),
    "LwF": (LwF, {"alpha": 1.0, "temperature": TEMPERATURE}),
    "EWC": (EWC, {"ewc_lambda": STRENGTH}),
    "online EWC": (EWC, {"ewc_lambda": STRENGTH, "mode": "online", "decay_factor": 1.0}),
    "SI": (SynapticIntelligence, {"si_lambda": 0.3, "eps": DAMPING}),
}


class Clocked:
    """Counts the CPU time of a method."""

    def __init__(self, method):
        self.method, self.seconds = method, 0.0

    def __call__(self, *args, **kwargs):
        start = time.process_time()
        result = self.method(*args, **kwargs)
        self.seconds += time.process_time() - start
        return result


def stream(track):
    """The tasks as Avalanche's experiences."""
    tensors = [(floats(x), torch.tensor(y)) for x, y in data(track)]
    labels = [0] * TASKS
    made = tensors_benchmark(train_tensors=tensors, test_tensors=tensors, task_labels=labels)
    return made.train_stream


def train(track, strategy):
    """CPU milliseconds per image: of everything, and of the Fisher information."""
    torch.manual_seed(0)
    net = network(track)
    kind, settings = MAKE[strategy]
    measured = [m(minibatch=True) for m in (accuracy_metrics, loss_metrics)]
    made = kind(
        model=net,
        optimizer=torch.optim.Adam(net.parameters(), LR),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        evaluator=EvaluationPlugin(*measured, loggers=[]),
        **settings,
    )
    fisher = Clocked(None)
    for plugin in made.plugins:
        if isinstance(plugin, EWCPlugin):
            fisher.method = plugin.compute_importances
            plugin.compute_importances = fisher
    experiences = stream(track)
    start = time.process_time()
    for experience in experiences:
        made.train(experience)
    whole = time.process_time() - start
    images = TASKS * TRACKS[track].rows
    return 1000 * whole / images, 1000 * fisher.seconds / images


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(train(*json.loads(line))), flush=True)
