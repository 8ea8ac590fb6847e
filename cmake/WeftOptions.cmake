# Build options and the flags that every target shares.

option(WEFT_BUILD_COMPILER "Build the compiler, the frontend and the examples (needs MLIR 19)" ON)
option(WEFT_BUILD_PLANNER "Build the planner and what needs it; the compiler is among that" ON)
option(WEFT_BUILD_TESTS "Build the tests" ON)
option(WEFT_PCH "Precompile what most sources include; OFF shows whether each includes all that it uses" ON)
option(WEFT_FUZZ "Build weft-fuzz, the libFuzzer program over all readers (needs clang)" OFF)
if(WEFT_BUILD_COMPILER AND NOT WEFT_BUILD_PLANNER)
  message(FATAL_ERROR "WEFT_BUILD_COMPILER=ON needs the planner: set WEFT_BUILD_PLANNER=ON or WEFT_BUILD_COMPILER=OFF")
endif()
set(WEFT_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")
set(WEFT_SANITIZE_WITHOUT "" CACHE STRING "Value of -fno-sanitize=: checks of WEFT_SANITIZE that are left out")
set(WEFT_TEST_ENVIRONMENT "" CACHE STRING "Environment of all tests, NAME=VALUE;...: options of the sanitizers")
set(WEFT_DEFAULT_DATA_DIR "${CMAKE_CURRENT_SOURCE_DIR}/../shared/data")
set(WEFT_DATA_DIR "${WEFT_DEFAULT_DATA_DIR}" CACHE PATH
    "Real data for tests and examples; tests that need it skip where the default is absent")
# Where someone said where the data is, it must be there.
string(COMPARE NOTEQUAL "${WEFT_DATA_DIR}" "${WEFT_DEFAULT_DATA_DIR}" WEFT_DATA_REQUIRED)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Same bits on every layout need the same rounding everywhere: no contraction across expressions.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-designated-field-initializers -Wno-deprecated-declarations -ffp-contract=off)
# We return statuses. Code that nothing can be thrown through takes a fifth less time to compile; what stands between
# libraries that throw and runtime/base/guarded.h says -fexceptions itself. The JSON library asks for the same
# everywhere: its templates are shared.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
add_compile_definitions(JSON_NOEXCEPTION)
# What tests are compiled with beside that; see weft_link_optimized_first.
set(WEFT_TEST_FLAGS -O0)
if(WEFT_SANITIZE)
  # A finding ends the program, so that the test fails.
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE_WITHOUT)
    add_compile_options(-fno-sanitize=${WEFT_SANITIZE_WITHOUT})
  endif()
endif()
if(WEFT_FUZZ)
  # Coverage for libFuzzer, and the standard library's own checks of what ASan does not see (an empty optional).
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
add_link_options(-fuse-ld=lld-19)

# The compiler, too, is faster on jemalloc, with huge pages: it takes a tenth less time.
set(launcher)
find_library(WEFT_JEMALLOC jemalloc)
if(WEFT_JEMALLOC)
  list(APPEND launcher LD_PRELOAD=${WEFT_JEMALLOC} MALLOC_CONF=thp:always)
endif()
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  list(APPEND launcher CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime ${WEFT_CCACHE})
  # Makes the precompiled header itself cacheable.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Xclang> $<$<COMPILE_LANGUAGE:CXX>:-fno-pch-timestamp>)
endif()
if(launcher)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${launcher})
endif()
