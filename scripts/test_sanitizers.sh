#!/usr/bin/env bash
# Runs tests under the sanitizers: of all that is free of LLVM under address + undefined behavior, of what threads run
# through under threads; then 20 steps of four GPT plans (data parallel, tensor parallel, stages, ZeRO-3) under threads.
# Needs build/release for the plans: run scripts/test.sh before. Arguments go to ctest.
#
# Reports name two frames of an allocation (malloc_context_size in CMakePresets.json): to record whole stacks takes a third
# of the time of a search. Run a test that fails by hand, without that option, to see them.
#
# Left out: tests that search whole plans again and again, two thirds of the time of all tests of the search. Others of
# their suites run through the same code.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/install.sh"
weft_install
cd "$root"
repeated_searches=(
  'RecordedPlan.A*' 'RecordedPlan.WordsForRecomputation*' 'RecordedPlan.WhatIsDropped*' 'SearchMemory.APin*'
  'ChoosePlan.ALevel*' 'Freedoms.PricesKnow*' 'Freedoms.WhatOneCosts*' 'Prices.Margins*'
)
GTEST_FILTER=-$(IFS=: && echo "${repeated_searches[*]}")
export GTEST_FILTER
for preset in asan-runtime tsan; do
  echo "== $preset"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset"
  (cd "build/$preset" && ctest --output-on-failure -j "$(nproc)" -LE full "$@")
done

plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
options=$(sed -n 's/^WEFT_TEST_ENVIRONMENT:[A-Z]*=TSAN_OPTIONS=//p' build/tsan/CMakeCache.txt)
train() {
  local name=$1
  shift
  echo "== tsan, gpt $name"
  build/release/bin/gpt --layers 2 --width 32 --heads 2 --context 16 --batch 8 --plan-only "$plans/$name" "$@" >/dev/null
  TSAN_OPTIONS="$options" build/tsan/bin/weft-run "$plans/$name" --steps 20 >"$plans/$name.log" 2>&1 || {
    cat "$plans/$name.log"
    return 1
  }
  tail -n 1 "$plans/$name.log"
}
train data_parallel --mesh dp=4
train tensor_parallel --mesh dp=2,tp=2 --tensor-parallel
train stages --stages 2 --mesh dp=2 --micro 4
train zero3 --mesh dp=4 --zero 3 --micro 2
