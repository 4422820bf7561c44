# Operators: own cases beside the public conformance suites.
hone_test(test_ops_a test_ops_a.c op_case.c)
hone_test(test_ops_b test_ops_b.c op_case.c)
hone_test_tool(test_ops_random test_ops_random.c op_case.c)
hone_ctest(test_ops_random test_ops_random)
