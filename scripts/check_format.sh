#!/usr/bin/env bash
# Checks that C++ files are formatted as .clang-format says; with --fix, formats them.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(python3 -B scripts/sources.py .cc .h .cpp .cu .cuh)
if [ ${#files[@]} -eq 0 ]; then
  echo "check_format.sh: no C++ file found below $PWD" >&2
  exit 1
fi
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${files[@]}"
else
  clang-format-19 --dry-run --Werror "${files[@]}"
  echo "format: ${#files[@]} files in order"
fi
