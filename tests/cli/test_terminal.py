"""Tables for people and for programs."""

from perdure.cli.terminal import remark
from perdure.show.sheet import Sheet

SHEET = Sheet(
    "what [bold] it is",
    ["name", "score ↑", "verdict"],
    words=["name", "verdict"],
    rows=[("a", "0.5", "better"), (), ("\x1b[31mlonger [/] name", "-12.25", "")],
)


def test_a_line_a_row_where_nobody_looks(capsys):
    SHEET.show()
    remark("x " * 200)
    assert capsys.readouterr().out.splitlines() == [
        "what [bold] it is",
        "name                         score ↑  verdict",
        "---------------------------  -------  -------",
        "a                                0.5  better",
        "---------------------------  -------  -------",
        "[U+001B][31mlonger [/] name   -12.25",
        "x " * 200,
    ]


def test_drawn_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    SHEET.show()
    remark("word " * 30)
    out = capsys.readouterr().out
    assert "what [bold] it is" in out and "score ↑ ┃ verdict" in out
    assert "[U+001B][31mlonger [/] name │  -12.25 │" in out and "\x1b[31m" not in out
    assert max(map(len, out.splitlines())) <= 80
