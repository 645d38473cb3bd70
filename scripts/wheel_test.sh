#!/usr/bin/env bash
# The wheel as a user gets it: build it, look into it, install it with the core dependencies alone
# into a new environment, and work with it from a folder that has nothing to do with this one.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH
root=$PWD
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Pins also what the build itself needs.
export PIP_CONSTRAINT=$root/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1

fail() { echo "wheel: $1" >&2; exit 1; }
# says WORD COMMAND...: the command succeeds and prints the word.
says() {
  local word=$1 said; shift
  said=$("$@" 2>&1) || fail "'$*' failed:"$'\n'"$said"
  grep -qF -- "$word" <<<"$said" || fail "'$*' should say '$word', but said:"$'\n'"$said"
}

"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" wheel -q --no-deps --wheel-dir "$work" "$root"
wheel=$(echo "$work"/perdure-*.whl)
[ -f "$wheel" ] || fail "no wheel was built"

# Every file of the package (the report's templates, scripts and styles among them) and no other.
"$bin/python" - "$wheel" <<'PYTHON'
import sys, zipfile
from pathlib import Path

names = {n for n in zipfile.ZipFile(sys.argv[1]).namelist() if ".dist-info/" not in n}
files = (p for p in Path("src/perdure").rglob("*") if p.is_file() and "__pycache__" not in p.parts)
expected = {p.relative_to("src").as_posix() for p in files}
if names != expected:
    sys.exit(f"wheel: missing {sorted(expected - names)}, too many {sorted(names - expected)}")
report = "perdure/show/report/templates/"
for kind in (".html.j2", ".css", ".js"):
    if not any(n.startswith(report) and n.endswith(kind) for n in names):
        sys.exit(f"wheel: no {kind} among the report's templates")
if "perdure/py.typed" not in names:
    sys.exit("wheel: no py.typed, so its types are not seen")
PYTHON

"$bin/pip" install -q "$wheel"
"$bin/pip" check >/dev/null || fail "the core dependencies do not fit together"

mkdir "$work/elsewhere"
cd "$work/elsewhere"
says "$work/venv/" "$bin/python" -c 'import perdure; print(perdure.__file__)'
if "$bin/python" -c 'import torch' 2>/dev/null; then fail "torch came with the core"; fi
perdure=$bin/perdure
says "report" "$perdure" --help
says "toy/compass" "$perdure" ls
says "right after learning" "$perdure" run toy/compass,steps=200 --agent random --agent q --out runs/toy
says "q, random" "$bin/python" -c '
import perdure
rows = perdure.Run("runs/toy").rows()
assert {"learn", "eval"} <= set(rows["kind"].to_pylist()), rows["kind"]
print(*sorted(set(rows["agent"].to_pylist())), sep=", ")'
says "summary.final" "$perdure" measure runs/toy
says "runs/toy/_report.html" "$perdure" report runs/toy
for word in '</html>' '<script' '<style' 'toy/compass'; do
  grep -qF -- "$word" runs/toy/_report.html || fail "the report holds no '$word'"
done
# What needs more than the core says so.
if "$perdure" run toy/compass --agent ppo --out runs/ppo >said 2>&1; then fail "ppo ran without torch"; fi
grep -qF "'.[torch]'" said || fail "ppo should name the extra it needs, but said: $(cat said)"
echo "wheel: $(basename "$wheel") holds the package and works with the core dependencies alone"
