# find_package(hone): the library as hone::hone, the command as HONE_COMMAND, and
#   hone_add_operator(NAME)   a target that builds the plugin NAME.so in the build folder, from NAME.json and the C files
#                             beside the caller's CMakeLists.txt
# Of lib/cmake/hone, or lib/x86_64-linux-gnu/cmake/hone.
get_filename_component(HONE_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${HONE_PREFIX}/include/hone/hone.h")
  get_filename_component(HONE_PREFIX "${HONE_PREFIX}/.." ABSOLUTE)
endif()
get_filename_component(HONE_LIBRARY "${CMAKE_CURRENT_LIST_DIR}/../../libhone.so" ABSOLUTE)
set(HONE_COMMAND "${HONE_PREFIX}/bin/hone")
if(NOT TARGET hone::hone)
  add_library(hone::hone SHARED IMPORTED)
  set_target_properties(hone::hone PROPERTIES IMPORTED_LOCATION "${HONE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${HONE_PREFIX}/include")
endif()
function(hone_add_operator name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}.json" "${CMAKE_CURRENT_SOURCE_DIR}/${name}_*.c"
    "${CMAKE_CURRENT_SOURCE_DIR}/${name}_*.cu")
  add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.so" DEPENDS ${sources} "${HONE_COMMAND}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E env "CC=${CMAKE_C_COMPILER}" "${HONE_COMMAND}" op build
      "${CMAKE_CURRENT_SOURCE_DIR}/${name}.json" --output-dir "${CMAKE_CURRENT_BINARY_DIR}")
  add_custom_target(${name} ALL DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/${name}.so")
endfunction()
