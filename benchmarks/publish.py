"""The end of a benchmark: what was to be reached, what was found, and a page of it."""

from __future__ import annotations

from pathlib import Path


def publish(name, lines, reached, missed=()):
    """Print the page and write it to results; the exit code. ``reached`` holds for each goal its
    words, the ratio found, the bound in words, and whether it holds; ``missed`` those that are known not to
    be reached: they stand on the page, and the exit code is that of the others."""
    good = all(ok for *_, ok in reached)
    said = "All reached" + (" but what is known to be missed." if missed else ".")
    lines = [
        *lines,
        "",
        "| to reach | found | |",
        "|---|---:|---|",
        *(
            f"| {w}: {goal} | {r:.2f} | {'yes' if ok else '**no**'} |"
            for w, r, goal, ok in (*reached, *missed)
        ),
        "",
        said if good else "**Not all reached.**",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "results" / f"{name}.md").write_text(text)
    return 0 if good else 1
