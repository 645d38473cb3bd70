#!/usr/bin/env bash
# Azurite, Microsoft's emulator of Azure Blob Storage, for tests/faults/test_bucket.py: the promises of runs in
# az:// are then tried on it too. It comes from npm, so it is not part of `make setup`.
# Usage: azurite_env.sh [FOLDER], .azurite by default, where the tests look.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.azurite}
version=3.35.0
[ -e "$folder/node_modules/.bin/azurite-blob" ] && exit 0
mkdir -p "$folder"
npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts --silent "azurite@$version"
