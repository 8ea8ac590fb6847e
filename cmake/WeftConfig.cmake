# find_package(Weft REQUIRED COMPONENTS runtime)    Weft::runtime: runs plans; needs no LLVM
# find_package(Weft REQUIRED COMPONENTS compiler)   Weft::compiler, and Weft::runtime with it: graphs, compiling, training
#
# Without COMPONENTS: those of these that are installed, with what they need.

include(CMakeFindDependencyMacro)
include(${CMAKE_CURRENT_LIST_DIR}/WeftPackages.cmake)

foreach(component ${Weft_FIND_COMPONENTS})
  if(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/Weft_${component}.cmake)
    set(Weft_${component}_FOUND FALSE)
    if(Weft_FIND_REQUIRED_${component})
      set(Weft_FOUND FALSE)
      set(Weft_NOT_FOUND_MESSAGE
          "component '${component}' is not installed here; Weft has 'runtime', and 'compiler' where it was built")
      return()
    endif()
  endif()
endforeach()

foreach(package ${WEFT_RUNTIME_PACKAGES})
  separate_arguments(package)
  find_dependency(${package})
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/Weft_runtime.cmake)
set(Weft_runtime_FOUND TRUE)

if((NOT Weft_FIND_COMPONENTS OR "compiler" IN_LIST Weft_FIND_COMPONENTS)
   AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/Weft_compiler.cmake)
  if(Weft_FIND_REQUIRED_compiler)
    find_dependency(${WEFT_MLIR_PACKAGE})
  else()
    find_package(${WEFT_MLIR_PACKAGE} QUIET)
  endif()
  set(Weft_compiler_FOUND ${MLIR_FOUND})
  if(MLIR_FOUND)
    include(${CMAKE_CURRENT_LIST_DIR}/Weft_compiler.cmake)
  endif()
endif()
