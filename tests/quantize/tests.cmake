hone_test(test_quantize test_quantize.c samples.c ../net.c)
