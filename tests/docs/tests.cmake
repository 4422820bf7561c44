# docs/reference/operators.md is generated; the test says when it is out of date ("make docs" writes it).
add_executable(hone_operators ${CMAKE_SOURCE_DIR}/tools/operators_md.c)
target_link_libraries(hone_operators PRIVATE hone_static)
set_target_properties(hone_operators PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(HONE_FUZZ)
  target_link_options(hone_operators PRIVATE -fsanitize=fuzzer-no-link)
endif()
hone_ctest(docs_operators sh -c "$<TARGET_FILE:hone_operators> | diff - docs/reference/operators.md")
hone_ctest(layers sh tools/check_layers.sh)
