hone_test(test_quantize test_quantize.c samples.c ../net.c)
hone_test(test_quantize_accuracy test_quantize_accuracy.c samples.c ../net.c)
hone_test(test_layers test_layers.c samples.c ../net.c)
hone_ctest(quantize_ort sh tests/quantize/ort.sh $<TARGET_FILE:hone_cli>)
