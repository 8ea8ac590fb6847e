# Sourced by the other scripts: installs what Weft builds with (Debian 12), once.

weft_packages=(
  clang-19 lld-19 llvm-19-dev llvm-19-tools libmlir-19-dev mlir-19-tools libclang-rt-19-dev
  cmake ninja-build ccache python3
  libabsl-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev zlib1g-dev libicu-dev
  libdnnl-dev ocl-icd-opencl-dev # the package file of oneDNN asks for OpenCL, which its Debian package does not depend on
  libjemalloc-dev libgtest-dev libgmock-dev libbenchmark-dev clang-format-19
)

# Packages of the arguments that are not installed, one per line.
weft_missing() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}

# Packages of the arguments that apt cannot install here, one per line with apt's reason.
weft_refused() {
  local package reason
  for package in "$@"; do
    reason=$(apt-get install --simulate --no-install-recommends "$package" 2>&1 >/dev/null) || echo "  $package: ${reason//$'\n'/ }"
  done
}

weft_install() {
  local missing
  mapfile -t missing < <(weft_missing "${weft_packages[@]}")
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "These packages are missing: ${missing[*]}" >&2
      echo "Run this script once as root, or install sudo, or install them by hand: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${#missing[@]} packages and what they depend on: ${missing[*]}"
  # A fresh machine has no package lists, or old ones.
  if ! apt-get install --simulate --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update
  fi
  # Output is left visible: a few minutes pass, and apt says what it is at. Without a person nothing may ask.
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null; then
    mapfile -t missing < <(weft_missing "${missing[@]}")
    echo "These packages could not be installed: ${missing[*]}" >&2
    weft_refused "${missing[@]}" >&2
    return 1
  fi
}
