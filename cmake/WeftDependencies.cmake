# Every outside library; each has its reason in docs/adr/0002-dependencies.md.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(dnnl REQUIRED)
find_package(ZLIB REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc)
if(WEFT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
# Programs allocate with it where it is installed; sanitizers bring an allocator of their own.
if(NOT WEFT_SANITIZE)
  find_library(WEFT_JEMALLOC jemalloc)
endif()

if(WEFT_BUILD_COMPILER)
  find_package(MLIR 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
  list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
endif()
