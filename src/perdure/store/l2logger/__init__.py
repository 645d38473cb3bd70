"""The L2Logger format (version 1.1), as other tools of the field write and read it.

::

    <log>/logger_info.json  scenario_info.json
    <log>/<worker>/<block>-<train|test>/data-log.tsv
"""

from perdure.store.l2logger.read import LogError, find_logs, is_log, read_log

__all__ = ["LogError", "find_logs", "is_log", "read_log"]
