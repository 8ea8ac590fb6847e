#!/usr/bin/env bash
# Installs what is missing, builds, and trains a small GPT on 4 ranks (dp=2, tp=2) with progress and a result.
# Arguments are passed on to the example: scripts/demo.sh --steps 300 --text my.txt
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/install.sh"
weft_install
cd "$root"
cmake --preset release >/dev/null
cmake --build --preset release --target gpt weft weft-run
build/release/bin/gpt --mesh dp=2,tp=2 --tensor-parallel --steps 120 "$@"
