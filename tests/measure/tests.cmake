hone_test(test_slower test_slower.c)
hone_test(test_measure test_measure.c)
hone_test_of_time(test_loop_limit test_loop_limit.c)
