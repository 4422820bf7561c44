hone_test(test_base test_base.c)
