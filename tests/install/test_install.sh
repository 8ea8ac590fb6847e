#!/usr/bin/env bash
# Installs Weft and builds and runs examples/outside against it, with the commands of its README: all of it, then the
# component runtime alone. Nothing that is installed may name the tree or need it.
#
#   tests/install/test_install.sh BUILD_TREE    of the preset release; debug information names sources
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "test_install.sh: $*" >&2
  exit 1
}

# install NAME [FLAGS]: to $folder/NAME, which is not where the files were installed to first: they may be moved.
install() {
  cmake --install "$build" --prefix "$folder/installing" "${@:2}" >"$folder/log" || { cat "$folder/log"; exit 1; }
  mv "$folder/installing" "$folder/$1"
}

# No file of a prefix names a folder of the tree or of the build.
check_names() {
  local places=("$root"/*/ "$build/") found
  found=$(printf '%s\n' "${places[@]}" | LC_ALL=C grep -rlaF -f - "$1") || [ $? -eq 1 ]
  [ -z "$found" ] || fail "these name folders of the tree: $found"
}

# All headers of a prefix compile together, without the tree and without LLVM's.
check_headers() {
  (cd "$1/include/weft" && find . -name '*.h' -printf '#include "%P"\n' | sort) >"$folder/all_headers.cc"
  [ "$(wc -l <"$folder/all_headers.cc")" -gt 10 ] || fail "hardly a header in $1/include/weft"
  clang++-19 -std=c++20 -fsyntax-only -Wno-deprecated-declarations -I "$1/include/weft" "$folder/all_headers.cc"
}

# readme N: the commands of the N-th block of the README, in a copy of the project.
readme() {
  local commands
  commands=$(awk -v block="$1" '/^```/ { fences += 1; next } fences == 2 * block - 1' "$folder/outside/README.md")
  (cd "$folder/outside" && WEFT=$2 bash -euo pipefail -c "$commands")
}

# The line of predict: a net that learned nothing of products up to 0.77 of either sign is off by as much.
check_prediction() {
  grep -qE '^-0\.875 \* -0\.875 = .*: 0\.[01][0-9]*$' "$1" ||
    fail "predict did not print products that are nearly right: $(cat "$1")"
}

install weft
check_names "$folder/weft"
check_headers "$folder/weft"
cp -r "$root/examples/outside" "$folder/outside"
readme 2 "$folder/weft" | tee "$folder/both"
grep -q '^trained on 2 ranks: loss ' "$folder/both" || fail "train did not train on 2 ranks"
check_prediction "$folder/both"
grep -q '^prelu on 2 ranks: loss ' "$folder/both" || fail "own_operator did not train"
"$folder/weft/bin/weft-run" "$folder/outside/product.plan"

install runtime --component runtime
check_headers "$folder/runtime"
rm -r "$folder/weft" "$folder/outside/build"
readme 4 "$folder/runtime" | tee "$folder/alone"
check_prediction "$folder/alone"
for program in "$folder/outside/build/predict" "$folder/runtime/bin/weft-run"; do
  ldd "$program" >"$folder/libraries"
  ! grep -iE 'LLVM|MLIR|not found' "$folder/libraries" || fail "$program links these"
done
! grep -iE '(LLVM|MLIR)_DIR' "$folder/outside/build/CMakeCache.txt" || fail "the component runtime looked for LLVM"
echo "installed, moved, and used from outside: all of it, and the component runtime alone"
