#!/usr/bin/env bash
# Installs what is missing, builds, and trains a small GPT on 4 ranks (dp=2, tp=2) with progress and a result; then
# again on as many ranks under the plan that mode auto finds, and shows both plans.
# Arguments are passed on to the example: scripts/demo.sh --steps 300 --text my.txt. One that says what the plan is, as
# --mesh or --stages, leaves nothing for mode auto to compare: the second run is left out.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/install.sh"
weft_install
cd "$root"
cmake --preset release >/dev/null
cmake --build --preset release --target gpt weft weft-run
build/release/bin/gpt --mesh dp=2,tp=2 --tensor-parallel --steps 120 "$@"
for argument in "$@"; do
  case "$argument" in
    --mesh* | --devices* | --stage* | --mode* | --plan-only*) exit 0 ;;
  esac
done
echo
echo "The same on 4 ranks, nothing said about the plan (--mode auto):"
build/release/bin/gpt --mode auto --devices 4 --steps 120 "$@"
echo
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
build/release/bin/gpt --mesh dp=2,tp=2 --tensor-parallel "$@" --plan-only "$plans/written.plan" >/dev/null
build/release/bin/gpt --mode auto --devices 4 "$@" --plan-only "$plans/auto.plan" >/dev/null 2>&1
for plan in written auto; do
  echo "plan $plan:"
  build/release/bin/weft explain "$plans/$plan.plan" | grep -E '^(stage +mesh|[0-9]+ |micro-batches|schedule|ZeRO|recomputed|time) '
done
