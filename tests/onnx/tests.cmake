# Tests of the ONNX reader and writer.
hone_test_tool(test_bad_models test_bad_models.c)
hone_ctest(bad_models test_bad_models)
