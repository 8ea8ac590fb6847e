#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all checks and tests. Arguments go to ctest.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/install.sh"
weft_install
cd "$root"
python3 -B scripts/check_layers.py
scripts/check_format.sh
cmake --preset release >/dev/null
cmake --build --preset release
cd build/release
ctest --output-on-failure -j "$(nproc)" -LE full "$@"
