hone_test_tool(passes_tool passes_tool.c)
