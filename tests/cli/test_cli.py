"""The command line as scripts use it."""

import json
import os
import re
import subprocess
import sys
import time

import pytest


def perdure(*args, cwd=None, **env):
    return subprocess.run(
        [sys.executable, "-m", "perdure", *args],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, **env}, timeout=250,
    )  # fmt: skip


def test_help_is_quick():
    best = min(_timed("--help") for _ in range(3))
    assert best < 1.0  # CPU seconds of the child: this is about imports, not about speed


def _timed(*args):
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert perdure(*args).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    args = (
        "run", "toy/compass,steps=60,episodes=2", "--agent", "q", "--agent", "random",
        "--lifetimes", "2", "--seed", "3", "--out", "here", "--executor", "processes",
    )  # fmt: skip
    return folder, args, perdure(*args, cwd=folder)


def test_run_prints_a_table_and_the_path(ran):
    folder, _, done = ran
    assert done.returncode == 0, done.stderr
    assert "forgetting" in done.stdout and "random" in done.stdout and "rows: here" in done.stdout
    assert (folder / "here/q/3/rows").is_dir() and (folder / "here/random/4/rows").is_dir()


def test_run_again_returns_at_once_and_changes_nothing(ran):
    folder, args, _ = ran
    before = {p: p.stat().st_mtime_ns for p in folder.glob("here/*/*/rows/*")}
    assert perdure(*args, cwd=folder).returncode == 0
    assert {p: p.stat().st_mtime_ns for p in folder.glob("here/*/*/rows/*")} == before


def test_an_edited_spec_is_refused_with_a_diff(ran):
    folder, args, _ = ran
    done = perdure(*[a if a != "3" else "9" for a in args], cwd=folder)
    assert done.returncode == 2 and re.search(r'-.*"seed": 3\n\+.*"seed": 9', done.stderr)
    assert "Traceback" not in done.stderr


def test_check_a_run_folder(ran):
    folder, _, _ = ran
    done = perdure("check", "here", cwd=folder)
    assert done.returncode == 0 and "here: ok" in done.stdout


def test_watch_a_finished_run(ran):
    folder, _, _ = ran
    done = perdure("watch", "here", cwd=folder)
    assert done.returncode == 0 and "4 done" in done.stdout


def test_a_toml_and_a_flag_over_it(tmp_path):
    (tmp_path / "s.toml").write_text(
        'curriculum = "toy/check"\nagents = ["q"]\nout = "o"\nlifetimes = 5\nexecutor = "serial"\n'
    )
    done = perdure("run", "s.toml", "--lifetimes", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in (tmp_path / "o/q").iterdir()] == ["0"]


def test_an_agent_and_a_curriculum_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import perdure\n"
        "from perdure import Curriculum, Exposure, Task, evaluate, learn\n"
        "class Left(perdure.Agent):\n"
        "    def __init__(self, setup, action: int = 3):\n"
        "        super().__init__(setup)\n"
        "        self.action = action\n"
        "    def act(self, obs, ctx):\n"
        "        return [self.action] * len(obs)\n"
        "def life(n: int = 2) -> Curriculum:\n"
        "    t = Task('toy', 'goal-ne')\n"
        "    return Curriculum('life', (learn(Exposure(t, n)), evaluate(Exposure(t, 1))))\n"
    )
    done = perdure(
        "run", "mine.py:life,n=3", "-a", "mine.py:Left,action=1", "--out", "o", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o/Left-action-1/0/rows").is_dir()
    assert perdure("check", "mine.py:life", cwd=tmp_path).returncode == 0
    done = perdure("check", "mine.py:Left,action=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_failures_set_the_exit_code_and_are_told(tmp_path):
    (tmp_path / "bad.py").write_text(
        "import perdure\n"
        "class Bad(perdure.Agent):\n"
        "    def act(self, obs, ctx):\n"
        "        raise RuntimeError('out of cheese')\n"
    )
    done = perdure("run", "toy/check", "-a", "bad.py:Bad", "-a", "random", "-o", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "Bad/0: AgentFault: Bad.act raised RuntimeError: out of cheese" in done.stderr
    assert "1 of 2 lifetimes failed" in done.stderr
    assert "random" in done.stdout
    assert perdure("check", "o", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    "part", ["suites", "curricula", "agents", "strategies", "metrics", "tasks"]
)
def test_ls_json(part):
    done = perdure("ls", part, "--json")
    assert done.returncode == 0
    names = {item["name"] for item in json.loads(done.stdout)}
    expected = {
        "suites": {"toy", "gym", "minigrid"},
        "curricula": {"toy/compass", "minigrid/condensed", "minigrid/dispersed"},
        "agents": {"random", "q", "dqn", "ppo", "sb3", "tella"},
        "tasks": {"toy/goal-ne", "metaworld/reach", "openloris/clutter@segment9"},
    }
    assert names >= expected.get(part, set())


def test_ls_everything():
    done = perdure("ls", "--json")
    assert set(json.loads(done.stdout)) == {
        "suites",
        "curricula",
        "agents",
        "strategies",
        "metrics",
        "executors",
    }


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("toy/compass", 0, "learning 9,000 steps"),
        ("toy/bandit", 0, "toy/bandit: ok"),
        ("gym/CartPole-v1", 0, "ok"),
        ("toy/compas", 2, "did you mean 'toy/compass'"),
        ("pppo", 2, "did you mean 'ppo'"),
        ("toy/goal-ne,sise=3", 1, "did you mean 'size'"),
    ],
)
def test_check(name, code, words):
    done = perdure("check", name)
    assert done.returncode == code and words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_doctor():
    done = perdure("doctor")
    assert done.returncode == 0, done.stdout
    assert "core" in done.stdout and "installed" in done.stdout
    lines = [line for line in done.stdout.splitlines() if " data " in line]
    assert [line.split()[0] for line in lines] == ["openloris"], "suites that read data, no other"


def test_no_curriculum_says_what_to_do():
    done = perdure("run")
    assert done.returncode == 2 and "perdure ls curricula" in done.stderr


def test_watch_follows_a_run_from_another_process(tmp_path):
    args = ["run", "toy/compass,steps=50000000", "-a", "random", "-o", "o", "--executor", "serial"]
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", *args], cwd=tmp_path,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(60):
            out = perdure("watch", "o", cwd=tmp_path, COLUMNS="150").stdout
            if "ETA" in out and "ETA –" not in out:
                break
            time.sleep(0.2)
        assert "1 running" in out and "random/0" in out and "ETA" in out
    finally:
        process.kill()
        process.wait()


HOSTILE = "\x1b[31mred\u202e"
AGENT = """
import perdure

class Evil(perdure.Agent):
    def act(self, obs, ctx):
        raise RuntimeError("\\x1b[31mred\\u202e and more")
"""


def test_errors_of_agents_do_not_steer_the_terminal(tmp_path):
    (tmp_path / "evil.py").write_text(AGENT)
    what = ("toy/compass,steps=20,episodes=1", "-a", "evil.py:Evil", "-o", "here")
    done = perdure("run", *what, cwd=tmp_path)
    assert done.returncode == 1 and "[U+001B][31mred[U+202E] and more" in done.stderr
    checked = perdure("check", "here", cwd=tmp_path)
    assert "[U+001B][31mred[U+202E]" in checked.stdout + checked.stderr
    for text in (done.stderr, done.stdout, checked.stdout, checked.stderr):
        assert "\x1b" not in text and "\u202e" not in text


def test_names_in_logs_do_not_steer_the_terminal(ran, tmp_path):
    folder, _, _ = ran
    logs = tmp_path / "logs"
    assert perdure("export", "here", "-f", "l2logger", "-o", str(logs), cwd=folder).returncode == 0
    for said in logs.glob("ll_logs/*/scenario_info.json"):
        info = json.loads(said.read_text())
        said.write_text(json.dumps({**info, "agent_name": HOSTILE + info["agent_name"]}))
    for verb in ("measure", "compare"):
        done = perdure(verb, str(logs / "ll_logs"), "--metric", "gem.acc")
        assert done.returncode == 0, done.stderr
        assert "[U+001B]" in done.stdout and "\x1b" not in done.stdout + done.stderr
