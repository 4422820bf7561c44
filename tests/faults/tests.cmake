# Not with clang's sanitizers (make fuzz): their allocator cannot be stood in front of.
if(NOT HONE_FUZZ AND NOT HONE_SANITIZE MATCHES thread)
  hone_test_tool(test_faults test_faults.c interpose.c loop.c models.c run_models.c run_insight.c ../insight/sample.c ../cli/make_files.c)
  target_link_options(test_faults PRIVATE -rdynamic)
  target_compile_options(test_faults PRIVATE -fno-builtin)
endif()
