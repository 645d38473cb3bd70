#!/usr/bin/env bash
# Everything into .venv with plain pip, and the Debian packages that wheels do not carry.
set -euo pipefail
cd "$(dirname "$0")/.."

# Library file -> Debian package. They are for rendering and for OpenCV (robosuite).
packages=()
libraries=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null || true)
need() { case "$libraries" in *"$1"*) ;; *) packages+=("$2") ;; esac; }
need libEGL.so.1 libegl1
need libGL.so.1 libgl1
need libOSMesa.so.8 libosmesa6
need libglib-2.0.so.0 libglib2.0-0
# The tests open the report in a real browser.
command -v chromium >/dev/null || packages+=(chromium)
if [ "${#packages[@]}" -gt 0 ]; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    run=()
  elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then
    run=(sudo -n)
  else
    run=(none)
  fi
  if [ "${run[*]-}" = none ]; then
    echo "setup: these Debian packages are missing, and installing them needs root:" >&2
    echo "         apt-get install ${packages[*]}" >&2
    echo "       everything but rendering and the tests of the report works without them; going on." >&2
  else
    echo "setup: installing Debian packages: ${packages[*]}"
    { "${run[@]}" apt-get update -qq &&
      "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends "${packages[@]}" >/dev/null; } ||
      echo "setup: that failed; everything but rendering works without them; going on." >&2
  fi
fi

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "setup: Perdure needs Python 3.11 or newer; $("$python" --version) found. Set PYTHON=…" >&2
  exit 1
}
[ -x .venv/bin/python ] || "$python" -m venv .venv
# torch first and pinned: asked for by another package, pip would take a build with CUDA.
.venv/bin/pip install -q --disable-pip-version-check -c constraints.txt torch
.venv/bin/pip install -q --disable-pip-version-check -c constraints.txt -e '.[all,dev,docs]'
touch .venv/.ready
echo "setup: done"
