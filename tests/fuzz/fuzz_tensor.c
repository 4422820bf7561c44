/* Tensors in .pb files. */
#include "mutate.h"

#include "model/onnx/onnx.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *result, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_file(data, size, max_size, seed, HN_ONNX_TENSOR);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *result, size_t max_size, unsigned seed) {
  return cross_files(a, a_size, b, b_size, result, max_size, seed, HN_ONNX_TENSOR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_arena arena = {.limit = 64 << 20};
  hone_tensor t;
  hn_onnx_load_tensor_memory(data, size, "fuzz", &arena, &t, NULL, NULL);
  hn_arena_free(&arena);
  return 0;
}
