# Every outside library; each has its reason in docs/adr/0002-dependencies.md.

include(WeftPackages)
foreach(package ${WEFT_RUNTIME_PACKAGES})
  separate_arguments(package)
  find_package(${package} REQUIRED)
endforeach()
if(WEFT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

if(WEFT_BUILD_COMPILER)
  find_package(${WEFT_MLIR_PACKAGE} REQUIRED)
  list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
endif()
