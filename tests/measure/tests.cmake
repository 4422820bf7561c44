hone_test(test_slower test_slower.c)
hone_test(test_measure test_measure.c)
