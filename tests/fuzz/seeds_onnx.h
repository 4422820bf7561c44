/* Models written by the tests themselves, as starting inputs of fuzz_onnx. */
#ifndef TESTS_FUZZ_SEEDS_ONNX_H
#define TESTS_FUZZ_SEEDS_ONNX_H

void seeds_onnx(const char *folder);

#endif
