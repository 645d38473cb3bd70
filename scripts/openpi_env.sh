#!/usr/bin/env bash
# The real openpi-client in an environment of its own, as a client of our policy server: it cannot share
# ours, since it needs numpy<2. Usage: openpi_env.sh [FOLDER], .venv-openpi by default.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.venv-openpi}
pins=scripts/openpi-constraints.txt
[ "$folder/.ready" -nt "$pins" ] && exit 0
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' || {
  echo "openpi_env: numpy 1.26 has wheels for Python 3.11 and 3.12; $("$python" --version) found. Set PYTHON=…" >&2
  exit 1
}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check -c "$pins" openpi-client==0.1.2 typing_extensions  # Which it imports and does not declare.
"$folder/bin/python" -c 'import openpi_client.websocket_client_policy, openpi_client.image_tools'
touch "$folder/.ready"
