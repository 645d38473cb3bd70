"""Compact copies of finished runs: all that readers need, small enough to be published.

Left out are checkpoints, videos, the seeds of learning episodes and the names of machines. The rows of a lifetime are one segment, its
journal one claim and one commit that is the end. Every reader takes such a copy for the run it is;
``perdure run`` refuses to go on with it. The same rows and records give the same bytes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from perdure.errors import StoreError
from perdure.store import journal, rows
from perdure.store.files import new_folder
from perdure.store.layout import ROWS, LifetimeFolder, RunFolder
from perdure.store.log import Lifetime
from perdure.store.run import Run


def write_compact(run: Run, out: Path) -> Path:
    """Write a compact copy of a finished run, single-task experts included, into a new folder.

    StoreError if a planned lifetime is not done or the rows of one are damaged.
    """
    infos = run.lifetimes()
    left = [str(gap) for gap in run.gaps(infos)]
    if left or not infos:
        raise StoreError(
            f"{run.path} is not finished ({'; '.join(left[:3]) or 'no lifetime'}{'; …' * (len(left) > 3)}): "
            "only a finished run has a compact copy. perdure run goes on with it"
        )
    with new_folder(out) as root:
        copy = RunFolder(root)
        copy.copy_records(run.folder)
        for info in infos:
            _write_lifetime(info.read(), copy.lifetime(info.id))
    return out


def _write_lifetime(life: Lifetime, copy: LifetimeFolder) -> None:
    if life.notes:
        raise StoreError("; ".join(life.notes))
    table = pa.concat_tables(list(life.tables()))
    data = rows.encode_compact(table)
    sha = hashlib.sha256(data).hexdigest()
    segment, token = f"{ROWS}/00000.parquet", sha[:16]
    copy.copy_records(life.folder)
    copy.store.put(segment, data)
    claim = journal.Session(number=0, token=token, keeps=0, host="", pid=0)
    end = life.commits[-1].position
    commit = journal.Commit(0, token, segment, sha, len(table), None, end, done=True)
    journal.append(copy.store, 0, claim)
    journal.append(copy.store, 1, commit)
