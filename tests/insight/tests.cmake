hone_test_tool(insight_sample sample_tool.c sample.c)
