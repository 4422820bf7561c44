hone_test(test_chain_parts test_chain_parts.c)
target_link_libraries(test_chain_parts PRIVATE PkgConfig::JANSSON)
hone_test(test_chain test_chain.c)
hone_ctest(chain_command sh ${CMAKE_CURRENT_SOURCE_DIR}/chain/command.sh ${CMAKE_BINARY_DIR}/hone)
