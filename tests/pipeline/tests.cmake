hone_test(test_flow test_flow.c)
hone_test(test_post test_post.c)
hone_test(test_control test_control.c)
hone_test(test_pipeline test_pipeline.c ../accuracy/pictures.c ../net.c)
