# Operators: own cases beside the public conformance suites.
hone_test(test_ops_b test_ops_b.c op_case.c)
