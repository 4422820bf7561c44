hone_test(test_serve test_serve.c ../net.c)
target_link_libraries(test_serve PRIVATE PkgConfig::JANSSON)
hone_test(test_serve_http test_serve_http.c ../net.c)
hone_ctest(serve_command sh ${CMAKE_CURRENT_SOURCE_DIR}/serve/command.sh ${CMAKE_BINARY_DIR}/hone)
