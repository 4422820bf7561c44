hone_test(test_slower test_slower.c)
hone_test(test_measure test_measure.c)
hone_test(test_loop_limit test_loop_limit.c)
target_link_options(test_loop_limit PRIVATE -Wl,--wrap=hn_now_ns)
