hone_test(test_serve test_serve.c ../net.c)
target_link_libraries(test_serve PRIVATE PkgConfig::JANSSON)
hone_test(test_serve_http test_serve_http.c decoder.c ../net.c)
hone_ctest(serve_command sh ${CMAKE_CURRENT_SOURCE_DIR}/serve/command.sh ${CMAKE_BINARY_DIR}/hone)
hone_test(test_generate test_generate.c decoder.c ../net.c)
# What continuous batches are worth: docs/guide/generate.md.
hone_test_tool(generate_bench generate_bench.c decoder.c ../net.c)
target_link_libraries(generate_bench PRIVATE ${CMOCKA_LIBRARY})
