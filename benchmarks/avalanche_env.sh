#!/usr/bin/env bash
# Avalanche 0.6.0 in an environment of its own: it pulls in packages that nothing else here needs.
# torch and what both have in common is that of .venv, seen through a .pth file, so that both sides
# compute with the same library. torchvision from PyPI is a CUDA build; avalanche_side.py says how
# it is imported all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.venv-avalanche
[ "$folder/.ready" -nt benchmarks/avalanche_env.sh ] && exit 0
[ -x "$folder/bin/python" ] || .venv/bin/python -m venv "$folder"
packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
packages .venv >"$(packages "$folder")/perdure-venv.pth"
"$folder/bin/pip" install -q --disable-pip-version-check --no-deps \
  avalanche-lib==0.6.0 torchvision==0.28.0 torchmetrics==1.9.0 lightning-utilities==0.15.3 \
  pytorchcv==0.0.74 gdown==6.5.1 beautifulsoup4==4.15.0 soupsieve==4.1 dill==0.4.1 gputil==1.4.0 \
  tqdm==4.70.1 qpsolvers==4.13.0
"$folder/bin/python" benchmarks/avalanche_side.py </dev/null
touch "$folder/.ready"
