/* The model loader, and what every command does next: operators looked up, shapes inferred, shapes bound,
 * level 2. */
#include "mutate.h"

#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *result, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return mutate_file(data, size, max_size, seed, HN_ONNX_MODEL);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *result, size_t max_size, unsigned seed) {
  return cross_files(a, a_size, b, b_size, result, max_size, seed, HN_ONNX_MODEL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_model *m = NULL;
  hone_error e = {0};
  hone_status status = hn_onnx_load_memory(data, size, NULL, "fuzz", &m, &e);
  if (status != HONE_OK) {
    if ((status != HONE_ERROR_INPUT && status != HONE_ERROR_UNSUPPORTED) || !e.what[0]) __builtin_trap();
    return 0;
  }
  if (hn_model_check(m, &e) != HONE_OK) __builtin_trap();
  if (hn_model_ready(m, &e) == HONE_OK) {
    hn_optimize_options o = {
        .level = 2, .fold_seconds = 0.2, .fold_bytes = 16 << 20, .fold_tensor_bytes = 4 << 20};
    if (hn_optimize(m, &o, NULL, &e) == HONE_OK && hn_model_check(m, &e) != HONE_OK) __builtin_trap();
  }
  hn_model_destroy(m);
  return 0;
}
