hone_test_tool(passes_tool passes_tool.c)
hone_test_tool(steps_tool steps_tool.c)
hone_test(check_passes check_passes.c ../net.c)
hone_fuzz(fuzz_passes fuzz_passes.c)
