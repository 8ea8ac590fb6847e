# Precompiled headers: outside headers that most sources include, parsed once per kind of source instead of once per
# source, which is a third of the time of a build from nothing. Sources go on including all that they use: -DWEFT_PCH=OFF
# builds without.
#
#   weft_pch            libraries and programs without LLVM
#   weft_test_pch       their tests
#   weft_mlir_pch       what sees MLIR
#   weft_mlir_test_pch  its tests
#
# Our own headers stay out: a change of one would compile everything again.

set(WEFT_COMMON_HEADERS
    <algorithm> <array> <cmath> <cstdint> <fstream> <functional> <iostream> <limits> <map> <memory> <mutex> <numeric>
    <optional> <set> <sstream> <string> <tuple> <unordered_map> <utility> <variant> <vector>
    <absl/algorithm/container.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/container/inlined_vector.h>
    <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h>
    <nlohmann/json.hpp>
    # What the generated plan.pb.h includes.
    <google/protobuf/extension_set.h> <google/protobuf/generated_message_reflection.h> <google/protobuf/map.h>
    <google/protobuf/map_field.h> <google/protobuf/message.h> <google/protobuf/repeated_field.h>
    <google/protobuf/unknown_field_set.h>)
set(WEFT_TEST_HEADERS <random> <thread> <gmock/gmock.h> <gtest/gtest.h>)

# weft_precompile(NAME HEADERS...): a target that weft_reuse_precompiled names.
function(weft_precompile name)
  if(WEFT_PCH)
    add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
    target_precompile_headers(${name} PRIVATE ${ARGN})
  endif()
endfunction()

function(weft_reuse_precompiled name precompiled)
  if(NOT WEFT_PCH)
    return()
  endif()
  target_precompile_headers(${name} REUSE_FROM ${precompiled})
  # A precompiled header fits only objects with its own flags: programs take -fPIC as libraries do, not -fPIE.
  get_target_property(type ${name} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
endfunction()

weft_precompile(weft_pch ${WEFT_COMMON_HEADERS})
if(WEFT_BUILD_TESTS)
  weft_precompile(weft_test_pch ${WEFT_COMMON_HEADERS} ${WEFT_TEST_HEADERS})
endif()
if(WEFT_BUILD_COMPILER)
  set(WEFT_MLIR_HEADERS
      <mlir/Dialect/Func/IR/FuncOps.h>
      <mlir/IR/Builders.h> <mlir/IR/BuiltinAttributes.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h>
      <mlir/IR/DialectImplementation.h> <mlir/IR/OpDefinition.h> <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h>
      <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h>
      <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>)
  weft_precompile(weft_mlir_pch ${WEFT_COMMON_HEADERS} ${WEFT_MLIR_HEADERS})
  if(WEFT_BUILD_TESTS)
    weft_precompile(weft_mlir_test_pch ${WEFT_COMMON_HEADERS} ${WEFT_MLIR_HEADERS} ${WEFT_TEST_HEADERS})
  endif()
endif()
# What the users of a header are compiled with.
foreach(precompiled weft_test_pch weft_mlir_test_pch)
  if(TARGET ${precompiled})
    target_link_libraries(${precompiled} PRIVATE GTest::gtest GTest::gmock)
    target_compile_options(${precompiled} PRIVATE ${WEFT_TEST_FLAGS})
  endif()
endforeach()
foreach(precompiled weft_mlir_pch weft_mlir_test_pch)
  if(TARGET ${precompiled})
    target_include_directories(${precompiled} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  endif()
endforeach()
