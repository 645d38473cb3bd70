#!/usr/bin/env bash
# JAX in an environment of its own: only sac_jax.py needs it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.venv-jax
[ "$folder/.ready" -nt benchmarks/jax_env.sh ] && exit 0
[ -x "$folder/bin/python" ] || .venv/bin/python -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 optax==0.2.8
touch "$folder/.ready"
