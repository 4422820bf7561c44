/* The model loader, and what every command does next: operators looked up, shapes inferred, shapes bound, level 2. */
#include "mutate_proto.h"

#include "model/onnx/onnx.h"
#include "optimize/passes/optimize.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  size_t n = seed % 4 ? mutate_proto(data, size, max_size, seed) : 0;
  return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_model *m = NULL;
  hone_error e = {0};
  if (hn_onnx_load_memory(data, size, NULL, "fuzz", &m, &e) != HONE_OK) return 0;
  if (hn_model_resolve(m, &e) == HONE_OK && hn_model_infer(m, &e) == HONE_OK) {
    hn_optimize_options o = {.level = 2, .fold_seconds = 0.2, .fold_bytes = 16 << 20, .fold_tensor_bytes = 4 << 20};
    if (hn_optimize(m, &o, NULL, &e) == HONE_OK && hn_model_check(m, &e) != HONE_OK) __builtin_trap();
  }
  hn_model_destroy(m);
  return 0;
}
