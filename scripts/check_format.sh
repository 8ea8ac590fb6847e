#!/usr/bin/env bash
# Checks that C++ files are formatted as .clang-format says; with --fix, formats them.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files -- '*.cc' '*.h')
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${files[@]}"
else
  clang-format-19 --dry-run --Werror "${files[@]}"
fi
