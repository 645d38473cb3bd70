"""The grammar of specifications: what is written down is read back the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.specs import Spec

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
TRICKY = st.sampled_from(
    ["1", "1e-4", "true", "inf", "nan", "a,b", "a=b", "{", "]", '"', "'", "\\", '\\"', " x ", "", "#", "\n",
     "1\ny = 2", "file.py:Net", "2020-01-01", "é", "\x00", "\u2028", "😀", "x=1"]
)  # fmt: skip
LEAVES = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    WORDS,
    TRICKY,
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | TRICKY, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), VALUES, max_size=3))
def test_a_specification_is_read_back_as_it_was(params):
    spec = Spec("ewc+classifier", params, "mine")
    back = Spec.parse(str(spec))
    assert back == spec
    assert json.dumps(back.params) == json.dumps(params), "1 is not 1.0, and true is not 1"


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ('x="1"', {"x": "1"}),
        ("x=1", {"x": 1}),
        ("x={a=1}", {"x": {"a": 1}}),
        ("policy_kwargs={net_arch=[8]}", {"policy_kwargs": {"net_arch": [8]}}),
        ("optimizer={name='adamw', weight_decay=1e-4}",
         {"optimizer": {"name": "adamw", "weight_decay": 1e-4}}),
        ("network=net.py:Net", {"network": "net.py:Net"}),
        ("tasks=[push-v3,reach-v3, 3]", {"tasks": ["push-v3", "reach-v3", 3]}),
        ("tasks=[a,[b,{c=d-e,f=1}],]", {"tasks": ["a", ["b", {"c": "d-e", "f": 1}]]}),
        ("x=[a,,b]", {"x": "[a,,b]"}),
        ("x={a b=c}", {"x": "{a b=c}"}),
        ("on=true,hidden=[64, 64]", {"on": True, "hidden": [64, 64]}),
    ],
)  # fmt: skip
def test_what_people_write(text, params):
    spec = Spec.parse(f"a,{text}")
    assert spec.params == params
    assert Spec.parse(str(spec)) == spec


def test_simple_words_stay_simple():
    assert str(Spec("ppo", {"lr": 3e-4, "preset": "paper", "greedy": False})) == (
        "ppo,lr=0.0003,preset=paper,greedy=false"
    )


def test_workers_get_the_parameters_that_were_written(tmp_path):
    """By the folder alone, as a process of its own reads them."""
    import perdure
    from perdure.run.plan import load_plan

    file = tmp_path / "mine.py"
    file.write_text(
        "from perdure.agents.random import RandomAgent\n"
        "class Mine(RandomAgent):\n"
        "    def __init__(self, setup, word='', table=None):\n"
        "        super().__init__(setup)\n"
        "        assert word == '1' and table == {'net_arch': [8], 'on': True}, (word, table)\n"
    )
    agent = f'{file}:Mine,word="1",table={{net_arch=[8], on=true}}'
    for executor in ("serial", "processes"):
        out = tmp_path / executor
        run = perdure.experiment("gym/cartpole", {"mine": agent}, executor=executor, out=str(out))
        assert [i.status for i in run.lifetimes()] == ["done"], run.lifetimes()[0].error
        params = load_plan(out).agents["mine"].params
        assert params == {"word": "1", "table": {"net_arch": [8], "on": True}}
