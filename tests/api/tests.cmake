hone_test(test_session test_session.c)
