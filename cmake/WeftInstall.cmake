# What `cmake --install` installs, in two components (docs/adr/0023-what-is-installed.md):
#
#   runtime    Weft::runtime and weft-run: run plans; without LLVM
#   compiler   Weft::compiler and weft: graphs, compiling, training; needs the component runtime
#
# A component is one library with all libraries of the tree that it links, and its public headers with all headers of the
# tree that these include. Nothing of either is listed again here.

include(CMakePackageConfigHelpers)
set(WEFT_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/Weft)

# weft_component(NAME LIBRARY PROGRAM HEADERS ...): HEADERS are patterns of names as includes write them. What an earlier
# component installs is not installed again.
function(weft_component name library program)
  cmake_parse_arguments(ARG "" "" "HEADERS" ${ARGN})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  weft_linked_libraries(libraries ${library})
  get_property(earlier GLOBAL PROPERTY WEFT_INSTALLED_LIBRARIES)
  list(REMOVE_ITEM libraries ${earlier})
  set_property(GLOBAL APPEND PROPERTY WEFT_INSTALLED_LIBRARIES ${libraries})
  install(TARGETS ${libraries} EXPORT weft_${name} ARCHIVE COMPONENT ${name})
  install(EXPORT weft_${name} NAMESPACE Weft:: FILE Weft_${name}.cmake DESTINATION ${WEFT_PACKAGE_FOLDER}
    COMPONENT ${name})
  install(TARGETS ${program} RUNTIME COMPONENT ${name})
  # When it installs, not when it configures: which headers include which changes with every edit.
  install(CODE "
    include(\"${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake\")
    weft_install_headers(\"\${CMAKE_INSTALL_PREFIX}/${WEFT_INSTALLED_INCLUDES}\"
      ROOTS \"${WEFT_INCLUDES}\" HEADERS \"${ARG_HEADERS}\")"
    COMPONENT ${name})
endfunction()

weft_component(runtime weft_runtime weft-run
  HEADERS runtime/base/file_writer.h runtime/base/random.h runtime/base/status.h runtime/base/stop_request.h
    runtime/exec/executor.h runtime/io/*.h runtime/plan/plan_file.h runtime/plan/statistics.h)
if(WEFT_BUILD_COMPILER)
  weft_component(compiler weft_frontend weft HEADERS weft/*.h weft/models/*.h)
endif()

# The libraries' interfaces still change with every minor version.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/WeftConfig.cmake cmake/WeftPackages.cmake ${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake
  DESTINATION ${WEFT_PACKAGE_FOLDER} COMPONENT runtime)
