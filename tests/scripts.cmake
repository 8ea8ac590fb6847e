# ctest entries of what is checked by scripts.
find_package(Python3 COMPONENTS Interpreter REQUIRED)

# Does scripts/install.sh install what this build tree was made with?
add_test(NAME packages COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/check_packages.py ${CMAKE_BINARY_DIR})
set_tests_properties(packages PROPERTIES SKIP_RETURN_CODE 77)

# Both commands of the README in a minimal Debian; as root, and long.
add_test(NAME minimal_root COMMAND ${PROJECT_SOURCE_DIR}/scripts/test_minimal_root.sh)
set_tests_properties(minimal_root PROPERTIES LABELS full TIMEOUT 7200)

# A project outside of the tree, against the installed package.
if(WEFT_BUILD_COMPILER AND CMAKE_BUILD_TYPE STREQUAL Release)
  add_test(NAME install COMMAND ${PROJECT_SOURCE_DIR}/tests/install/test_install.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(install PROPERTIES LABELS full TIMEOUT 1200)
endif()
