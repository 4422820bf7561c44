hone_test(test_flow test_flow.c)
