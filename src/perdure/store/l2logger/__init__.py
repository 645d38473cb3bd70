"""The L2Logger format (version 1.1), as other tools of the field write and read it.

::

    <log>/logger_info.json  scenario_info.json
    <log>/<worker>/<block>-<train|test>/data-log.tsv

``read`` reads and ``check`` validates, ``write`` exports runs, ``view`` shows a run's lifetime as its
export would be read. Nothing is imported here: measuring a run needs none of the others.
"""
