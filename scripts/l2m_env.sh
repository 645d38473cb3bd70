#!/usr/bin/env bash
# The real l2metrics and l2logger in an environment of their own, to compare with: they cannot share
# ours, since they need numpy<2. Usage: l2m_env.sh [FOLDER], .venv-l2m by default.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.venv-l2m}
pins=scripts/l2m-constraints.txt
[ "$folder/.ready" -nt "$pins" ] && exit 0
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' || {
  echo "l2m_env: numpy 1.26 has wheels for Python 3.11 and 3.12; $("$python" --version) found. Set PYTHON=…" >&2
  exit 1
}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check -c "$pins" l2metrics==3.1.0 l2logger==1.8.2
"$folder/bin/python" -c 'import l2logger, l2metrics'
touch "$folder/.ready"
