hone_test(test_roofs test_roofs.c ../cli/process.c)
target_link_libraries(test_roofs PRIVATE PkgConfig::JANSSON)
target_compile_definitions(test_roofs PRIVATE HONE_BINARY="${CMAKE_BINARY_DIR}/hone")
add_dependencies(test_roofs hone_cli)
