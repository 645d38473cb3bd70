"""Write src/perdure/suites/libero/problems.json from the published task files (extra libero-official)."""

from perdure.suites.libero import assets, bddl, problems
from perdure.suites.libero.tasks import officials

if __name__ == "__main__":
    found = {
        f"{o.folder}/{o.file}": bddl.read(assets.file("tasks", f"{o.folder}/{o.file}.bddl"))
        for o in officials().values()
    }
    problems.FILE.write_text(problems.packed(found))
    print(f"{problems.FILE}: {len(found)} tasks, {problems.FILE.stat().st_size // 1024} KB")
