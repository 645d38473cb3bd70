"""Task ids are joined and split in one place."""

import re
from pathlib import Path

import pytest

import perdure
from perdure.names import join_task_id, split_task_id, task_slug
from perdure.types import Task


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("toy/goal", ("toy", "goal", "")),
        ("toy/goal@ne", ("toy", "goal", "ne")),
        ("gym/ALE/Pong-v5", ("gym", "ALE/Pong-v5", "")),
        ("taskA", ("", "taskA", "")),
        ("taskA@1", ("", "taskA", "1")),
    ],
)
def test_an_id_is_its_parts(task, parts):
    assert split_task_id(task) == parts and join_task_id(*parts) == task
    if parts[0]:
        assert Task(*parts).id == task


def test_rows_have_the_suite_in_the_name():
    assert join_task_id("", "toy/goal", "ne") == "toy/goal@ne"
    assert task_slug("toy/goal@ne") == "toy--goal~ne"


def test_no_other_module_takes_ids_apart():
    """``@`` divides a task from its variant, and nothing else: only one module need know."""
    root = Path(perdure.__file__).parent
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"""["']@["']|\}@\{|f["']@\{""", path.read_text())
    ]
    assert found == ["names.py"]
