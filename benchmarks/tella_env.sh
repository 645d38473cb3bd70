#!/usr/bin/env bash
# TELLA 2.1.0 in an environment of its own. Its pins do not resolve on Python 3.11, so it is
# installed without them, beside versions that run.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f .venv-tella/.ready ] && exit 0
"${PYTHON:-python3}" -m venv .venv-tella
.venv-tella/bin/pip install -q --disable-pip-version-check numpy==2.4.6 pygame==2.6.1 \
  gym_notices==0.1.0 cloudpickle==3.1.2 l2logger==1.8.2 pyyaml==6.0.3 matplotlib==3.11.2
.venv-tella/bin/pip install -q --disable-pip-version-check --no-deps \
  gym==0.23.1 gym_minigrid==1.0.3 tella==2.1.0
touch .venv-tella/.ready
