hone_test(test_session test_session.c)
hone_test(test_qdq test_qdq.c)
