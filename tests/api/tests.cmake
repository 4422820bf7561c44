hone_test(test_session test_session.c net.c)
hone_test(test_lowering test_lowering.c net.c)
hone_test(test_qdq test_qdq.c)
hone_test(test_tune test_tune.c net.c)
