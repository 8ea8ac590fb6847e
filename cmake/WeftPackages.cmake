# The outside packages that Weft's libraries link, as arguments of find_package: read by the tree's own build and, once
# installed, by WeftConfig.cmake.

set(WEFT_RUNTIME_PACKAGES Threads absl Protobuf nlohmann_json dnnl ZLIB "ICU COMPONENTS uc")
# The compiler's alone. The hint is where the packages of Debian, Ubuntu and apt.llvm.org put it.
set(WEFT_MLIR_PACKAGE MLIR 19.1 CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
