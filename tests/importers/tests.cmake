hone_test(test_pytorch test_pytorch.c timeline_help.c)
