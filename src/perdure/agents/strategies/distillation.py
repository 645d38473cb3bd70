"""Learning from another network's predictions instead of from labels.

With the student's logits s and the teacher's s*, at temperature T (Hinton et al., 2015)::

    soft = −T² mean over rows of Σ_c softmax(s*/T)_c log softmax(s/T)_c
    hard = the cross-entropy of s with the label argmax s*

Real-valued predictions are taken as means of Gaussians of unit variance, whose cross-entropy is, up
to a constant, mean over rows of ½ ‖s − s*‖².
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def soft(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Cross-entropy with the teacher's softened probabilities; T² keeps the gradient's size."""
    target = torch.softmax(teacher / temperature, dim=1)
    # Given probabilities, cross_entropy is the sum over classes, averaged over rows.
    return nn.functional.cross_entropy(student / temperature, target) * temperature**2


def hard(student: Tensor, teacher: Tensor) -> Tensor:
    """Cross-entropy with the teacher's most probable class."""
    return nn.functional.cross_entropy(student, teacher.argmax(dim=1))


def squared_error(student: Tensor, teacher: Tensor) -> Tensor:
    """Half the squared distance, averaged over rows."""
    return (student - teacher).square().sum(dim=1).mean() / 2
