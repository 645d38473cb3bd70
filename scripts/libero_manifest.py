"""Writes src/perdure/suites/libero/files.sha256: every file that LIBERO's official look is made of.

To be run by hand when the pinned packages change, in an environment that is known to have the right
ones; the tests compare what is installed with it.
"""

from pathlib import Path

from perdure.suites.libero import assets, bddl
from perdure.suites.libero.categories import CATEGORIES
from perdure.suites.libero.looks import OfficialLook
from perdure.suites.libero.scene import build
from perdure.suites.libero.tasks import officials


def main() -> None:
    """List the files of all tasks and categories, and write their digests."""
    found: set[Path] = set()

    def note(path: Path) -> Path:
        found.add(path)
        return path

    assets.check = note  # type: ignore[assignment]
    for task in officials().values():
        build(bddl.read(assets.file("tasks", f"{task.folder}/{task.file}.bddl")))
        assets.file("states", f"{task.folder}/{task.file}.pruned_init.npz")
    for name in CATEGORIES:
        OfficialLook().thing(name)
    lines = sorted(f"{assets.digest(p)}  {assets.label(p)}" for p in found)
    lines.sort(key=lambda line: line.split("  ", 1)[1])
    assets.MANIFEST.write_text("\n".join(lines) + "\n")
    print(f"{assets.MANIFEST}: {len(lines)} files, {sum(p.stat().st_size for p in found) >> 20} MB")


if __name__ == "__main__":
    main()
