#!/usr/bin/env bash
# Others' own implementations of what we speak and write, in an environment of their own, as peers of our tests:
# vla-eval's model server, json-numpy (OpenVLA's arrays), msgpack-numpy (GR00T's), Minari.
# Usage: peers_env.sh [FOLDER], .venv-peers by default.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.venv-peers}
pins=scripts/peers-constraints.txt
[ "$folder/.ready" -nt "$pins" ] && exit 0
python=${PYTHON:-python3}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check -c "$pins" \
  vla-eval json-numpy msgpack-numpy pyzmq 'minari[hdf5,arrow]'
"$folder/bin/python" -c 'import vla_eval.model_servers.serve, json_numpy, msgpack_numpy, zmq, minari, h5py'
touch "$folder/.ready"
