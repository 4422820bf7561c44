hone_test(test_pytorch test_pytorch.c timeline_help.c)
hone_test(test_nsys test_nsys.c timeline_help.c)
hone_test(test_counters test_counters.c timeline_help.c)
