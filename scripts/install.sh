# Sourced by demo.sh and test.sh: installs what Weft builds with (Debian 12), once.

weft_packages=(
  clang-19 lld-19 llvm-19-dev llvm-19-tools libmlir-19-dev mlir-19-tools libclang-rt-19-dev
  cmake ninja-build ccache python3
  libabsl-dev libprotobuf-dev protobuf-compiler libdnnl-dev ocl-icd-opencl-dev nlohmann-json3-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev clang-format-19
)

weft_install() {
  local missing=() package
  for package in "${weft_packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
  fi
  echo "Installing: ${missing[*]}"
  if ! "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
  fi
}
