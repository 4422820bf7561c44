# What `make install` (cmake --install BUILD) puts under a prefix: bin/hone with man pages and completion (component
# hone), lib/libhone.so.0 (libhone0), and headers, libhone.so and what find_package(hone) and pkg-config read
# (libhone-dev). cmake/Debian.cmake makes a package of each.
include(CMakePackageConfigHelpers)
set(package lib/cmake/hone)
install(TARGETS hone_cli RUNTIME DESTINATION bin COMPONENT hone)
install(TARGETS hone_shared LIBRARY DESTINATION lib COMPONENT libhone0 NAMELINK_COMPONENT libhone-dev
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(DIRECTORY include/hone DESTINATION include COMPONENT libhone-dev FILES_MATCHING PATTERN "*.h")
set(up ../..) # from lib/pkgconfig
configure_file(cmake/hone.pc.in ${CMAKE_BINARY_DIR}/generated/hone.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/hone.pc DESTINATION lib/pkgconfig COMPONENT libhone-dev)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/honeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/honeConfig.cmake ${CMAKE_BINARY_DIR}/generated/honeConfigVersion.cmake DESTINATION ${package}
  COMPONENT libhone-dev)

# Man pages and completion come from the command itself.
set(manual ${CMAKE_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/stamp VERBATIM DEPENDS hone_cli
  COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}/man1
  COMMAND hone_cli help --format man --output-dir ${manual}/man1
  COMMAND hone_cli help --format bash > ${manual}/hone
  COMMAND hone_cli help --format zsh > ${manual}/_hone
  COMMAND hone_cli help --format fish > ${manual}/hone.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp)
add_custom_target(hone_manual ALL DEPENDS ${manual}/stamp)
install(DIRECTORY ${manual}/man1 DESTINATION share/man COMPONENT hone)
install(FILES ${manual}/hone DESTINATION share/bash-completion/completions COMPONENT hone)
install(FILES ${manual}/_hone DESTINATION share/zsh/site-functions COMPONENT hone)
install(FILES ${manual}/hone.fish DESTINATION share/fish/vendor_completions.d COMPONENT hone)

include(Debian)

# The Python package (pyproject.toml): the library under the name that it is loaded by, and the command; without
# symbols for debuggers.
if(HONE_WHEEL)
  target_link_options(hone_shared PRIVATE -s)
  target_link_options(hone_cli PRIVATE -s)
  install(PROGRAMS $<TARGET_FILE:hone_shared> DESTINATION hone/lib RENAME libhone.so.0 COMPONENT python)
  install(PROGRAMS $<TARGET_FILE:hone_cli> DESTINATION hone/bin COMPONENT python)
endif()
