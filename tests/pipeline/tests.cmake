hone_test(test_flow test_flow.c)
hone_test(test_post test_post.c)
