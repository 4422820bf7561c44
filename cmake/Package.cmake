# What `make install` (cmake --install BUILD --component package) puts under a prefix: bin/hone, lib/libhone.so, the
# headers, and what find_package(hone) and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package lib/cmake/hone)
install(TARGETS hone_cli RUNTIME DESTINATION bin COMPONENT package)
install(TARGETS hone_shared LIBRARY DESTINATION lib COMPONENT package)
install(DIRECTORY include/hone DESTINATION include COMPONENT package FILES_MATCHING PATTERN "*.h")
configure_file(cmake/hone.pc.in ${CMAKE_BINARY_DIR}/generated/hone.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/hone.pc DESTINATION lib/pkgconfig COMPONENT package)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/honeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/honeConfig.cmake ${CMAKE_BINARY_DIR}/generated/honeConfigVersion.cmake DESTINATION ${package}
  COMPONENT package)

# The Python package (pyproject.toml): the library under the name that it is loaded by, and the command; without
# symbols for debuggers.
if(HONE_WHEEL)
  target_link_options(hone_shared PRIVATE -s)
  target_link_options(hone_cli PRIVATE -s)
  install(PROGRAMS $<TARGET_FILE:hone_shared> DESTINATION hone/lib RENAME libhone.so.0 COMPONENT python)
  install(PROGRAMS $<TARGET_FILE:hone_cli> DESTINATION hone/bin COMPONENT python)
endif()
