#!/usr/bin/env bash
# Searches for inputs that break a reader: scripts/fuzz.sh SECONDS [TARGET...]
#
# Each target (default: all) runs so long from its corpus in tests/fuzz/corpus. An input counts as a finding when the
# program ends on it, takes more than 10 s, or more than 2048 MB. Findings lie in build/fuzz/findings/TARGET, what was
# learned in build/fuzz/corpus/TARGET, where the next call goes on. Status 1: there are findings.
set -euo pipefail
seconds=${1:?"say for how many seconds each target runs: scripts/fuzz.sh SECONDS [TARGET...]"}
shift
cd "$(dirname "$0")/.."
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
fuzz=build/fuzz/bin/weft-fuzz
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do
    targets+=("$(basename "$folder")")
  done
fi
most_findings=10 # of one target: after that it is to be mended first
found=0

# Runs one target until its time is over; libFuzzer ends at a finding, so it is started again for what is left.
run_target() {
  local target=$1 runs=0 findings=0 begin=$SECONDS left
  local log=build/fuzz/findings/$target.log
  mkdir -p "build/fuzz/corpus/$target" "build/fuzz/findings/$target"
  : >"$log"
  while left=$((seconds - (SECONDS - begin))) && [ "$left" -gt 0 ] && [ "$findings" -lt "$most_findings" ]; do
    if ! "$fuzz" "--target=$target" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" -max_total_time="$left" \
      -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target/" \
      >"$log.part" 2>&1; then
      findings=$((findings + 1))
    fi
    runs=$((runs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log.part" | tail -1)))
    cat "$log.part" >>"$log"
    rm "$log.part"
  done
  printf '%-14s %10d runs %6d inputs %8d bytes %3d findings\n' "$target" "$runs" \
    "$(find "build/fuzz/corpus/$target" -type f | wc -l)" \
    "$(find "build/fuzz/corpus/$target" -type f -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }')" "$findings"
  found=$((found + findings))
}

for target in "${targets[@]}"; do
  run_target "$target"
done
if [ "$found" -gt 0 ]; then
  echo "findings: build/fuzz/findings/*/ (reproduce: $fuzz --target=TARGET FILE)"
  exit 1
fi
