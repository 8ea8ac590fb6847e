# weft_library(NAME SRCS ... [DEPS ...] [OWN_FLAGS])   a static library without LLVM; OWN_FLAGS: its compile options differ
# weft_mlir_library(NAME SRCS ... [DEPS ...])          one that sees MLIR
# weft_program(NAME SRCS ... [DEPS ...] [MLIR])        an executable in build/<preset>/bin
# weft_test(NAME SRCS ... [DEPS ...] [MLIR] [OPTIMIZED] [LABELS ...] [SHARDS N])
#   a GTest executable, one ctest entry. With SHARDS its tests are shared out among N entries, which run side by side:
#   for those that take longest. With OPTIMIZED its sources are compiled as libraries are: for those that compute much
#   themselves, to compare with.
#
# weft_all_checks(NAME)                                for what reckons with raw memory: sanitizers leave nothing out
# weft_exceptions(SRCS...)                             sources of tests that throw or catch
#
# What of these is installed says cmake/WeftInstall.cmake.

# Includes are written from the top of the tree; public frontend headers also as <weft/...>.
set(WEFT_INCLUDES ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/frontend ${PROJECT_BINARY_DIR})
# Where installed headers lie, below the prefix: a folder of our own, as they are included as "runtime/..." too.
set(WEFT_INSTALLED_INCLUDES ${CMAKE_INSTALL_INCLUDEDIR}/weft)

function(weft_add_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${WEFT_INCLUDES}>"
    $<INSTALL_INTERFACE:${WEFT_INSTALLED_INCLUDES}>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

function(weft_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "" ${ARGN})
  weft_add_library(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(NOT ARG_OWN_FLAGS)
    weft_reuse_precompiled(${name} weft_pch)
  elseif(WEFT_PCH)
    target_precompile_headers(${name} PRIVATE ${WEFT_COMMON_HEADERS})
  endif()
endfunction()

# For libraries with OWN_FLAGS.
function(weft_all_checks name)
  if(WEFT_SANITIZE_WITHOUT)
    target_compile_options(${name} PRIVATE -fsanitize=${WEFT_SANITIZE_WITHOUT})
  endif()
endfunction()

function(weft_exceptions)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -fexceptions SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Only the two shared libraries are linked, never single MLIR archives beside them. No installed header includes MLIR.
function(weft_use_mlir name)
  target_include_directories(${name} SYSTEM PUBLIC "$<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS};${LLVM_INCLUDE_DIRS}>")
  target_link_libraries(${name} PUBLIC MLIR LLVM)
endfunction()

function(weft_mlir_library name)
  weft_add_library(${name} ${ARGN})
  weft_use_mlir(${name})
  weft_reuse_precompiled(${name} weft_mlir_pch)
endfunction()

# weft_linked_libraries(OUT NAME): NAME and all libraries of the tree that it links.
function(weft_linked_libraries out name)
  set(found ${name})
  set(open ${name})
  while(open)
    list(POP_FRONT open library)
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    list(FILTER links INCLUDE REGEX "^weft_")
    list(REMOVE_ITEM links ${found})
    list(APPEND found ${links})
    list(APPEND open ${links})
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Programs allocate with jemalloc where it is installed; sanitizers bring an allocator of their own. It must stand before
# the C library, which comes last.
function(weft_use_allocator name)
  if(WEFT_JEMALLOC AND NOT WEFT_SANITIZE)
    target_link_libraries(${name} PRIVATE ${WEFT_JEMALLOC})
  endif()
endfunction()

function(weft_program name)
  cmake_parse_arguments(ARG "MLIR" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${WEFT_INCLUDES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  weft_use_allocator(${name})
  if(ARG_MLIR)
    weft_use_mlir(${name})
    weft_reuse_precompiled(${name} weft_mlir_pch)
  else()
    weft_reuse_precompiled(${name} weft_pch)
  endif()
endfunction()

# One ctest entry of a GTest executable.
function(weft_add_test name program environment labels)
  add_test(NAME ${name} COMMAND ${program})
  # A folder of its own for what it writes: tests run in parallel, and /tmp may be another user's.
  set(folder ${CMAKE_BINARY_DIR}/tests/tmp/${name})
  file(MAKE_DIRECTORY ${folder})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "TEST_TMPDIR=${folder};${WEFT_TEST_ENVIRONMENT};${environment}" LABELS "${labels}")
endfunction()

# Most tests are compiled without optimization (WEFT_TEST_FLAGS), in half the time. An inline function or template that
# a test and a library both use is in both, and the linker keeps the one that it meets first. So it meets all libraries
# before the tests, which then run optimized code; what no test reaches is dropped again.
function(weft_link_optimized_first name)
  set(files)
  foreach(library ${ARGN})
    weft_linked_libraries(libraries ${library})
    foreach(linked ${libraries})
      list(APPEND files $<TARGET_FILE:${linked}>)
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES files)
  list(JOIN files " " files)
  target_link_options(${name} PRIVATE LINKER:--gc-sections "SHELL:-Wl,--whole-archive ${files} -Wl,--no-whole-archive")
endfunction()

function(weft_test name)
  cmake_parse_arguments(ARG "MLIR;OPTIMIZED" "SHARDS" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${WEFT_INCLUDES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  weft_use_allocator(${name})
  target_compile_definitions(${name} PRIVATE WEFT_DATA_DIR="${WEFT_DATA_DIR}"
    WEFT_DATA_REQUIRED=$<BOOL:${WEFT_DATA_REQUIRED}>)
  set(sees "")
  if(ARG_MLIR)
    weft_use_mlir(${name})
    set(sees _mlir)
  endif()
  if(ARG_OPTIMIZED)
    weft_reuse_precompiled(${name} weft${sees}_pch)
  else()
    target_compile_options(${name} PRIVATE ${WEFT_TEST_FLAGS})
    weft_link_optimized_first(${name} ${ARG_DEPS})
    weft_reuse_precompiled(${name} weft${sees}_test_pch)
  endif()
  if(NOT ARG_SHARDS)
    weft_add_test(${name} ${name} "" "${ARG_LABELS}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    weft_add_test(${name}_${shard} ${name} "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}" "${ARG_LABELS}")
  endforeach()
endfunction()
