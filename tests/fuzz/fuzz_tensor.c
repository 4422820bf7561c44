/* Tensors in .pb files. */
#include "mutate_proto.h"

#include "model/onnx/onnx.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size_t n = seed % 4 ? mutate_proto(data, size, max_size, seed) : 0;
  return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_arena arena = {.limit = 64 << 20};
  hone_tensor t;
  hn_onnx_load_tensor_memory(data, size, "fuzz", &arena, &t, NULL, NULL);
  hn_arena_free(&arena);
  return 0;
}
