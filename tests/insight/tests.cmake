hone_test(test_facts test_facts.c sample.c)
hone_test(test_profile test_profile.c)
hone_test_tool(insight_sample sample_tool.c sample.c)
