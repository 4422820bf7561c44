# Tests of the ONNX reader and writer.
hone_test_tool(test_bad_models test_bad_models.c bad_models.c pb.c)
hone_ctest(test_bad_models test_bad_models)
hone_test(test_load test_load.c good_models.c pb.c)
