# The folder build-portable/portable: the command, the library, the programs that test and measure a GPU machine, and what they read,
# to be copied to another x86-64 Linux machine. `cmake --build build-portable --target portable` fills it (stripped).
# hone_portable(NAME...)             programs and libraries that go in; also usable in a tests.cmake
# hone_portable_libraries(FILE...)   shared libraries that another machine may lack, under the names by which they are loaded
# hone_portable_files(FOLDER FILE...) files, relative to the source folder
function(hone_portable)
  if(NOT HONE_PORTABLE)
    return()
  endif()
  foreach(name ${ARGN})
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${name} RUNTIME DESTINATION . COMPONENT portable LIBRARY DESTINATION . COMPONENT portable NAMELINK_SKIP)
    set_property(GLOBAL APPEND PROPERTY HONE_PORTABLE_TARGETS ${name})
  endforeach()
endfunction()

function(hone_portable_libraries)
  if(HONE_PORTABLE)
    foreach(library ${ARGN})
      file(REAL_PATH ${library} real)
      execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${real} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
      if(text MATCHES "SONAME +([^\n ]+)" AND NOT real MATCHES "/lib[cm]\\.so") # the C library stays the machine's own
        string(REGEX REPLACE ".*SONAME +([^\n ]+).*" "\\1" soname "${text}")
        install(FILES ${real} DESTINATION . RENAME ${soname} COMPONENT portable)
      endif()
    endforeach()
  endif()
endfunction()

function(hone_portable_files folder)
  if(HONE_PORTABLE)
    list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/)
    install(FILES ${ARGN} DESTINATION ${folder} COMPONENT portable)
  endif()
endfunction()

# Called last, when every target is known.
function(hone_portable_folder)
  if(NOT HONE_PORTABLE)
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/portable)
  get_property(targets GLOBAL PROPERTY HONE_PORTABLE_TARGETS)
  # The node tests travel packed: 40 MB of small files are 6 MB.
  set(pack)
  if(EXISTS /usr/share/libonnx-testdata/data/node)
    set(pack COMMAND tar -cJf ${folder}/onnx-testdata.tar.xz -C /usr/share/libonnx-testdata/data node simple pytorch-operator pytorch-converted)
  endif()
  add_custom_target(portable DEPENDS ${targets}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${folder} --component portable --strip
    ${pack} VERBATIM)
endfunction()
