/* Any bytes as a graph in text: parse, print, read back; what resolves is optimised. */
#include "model/ir/text.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A short text may ask for a constant of a gigabyte: legal, and slow. */
static bool huge(const uint8_t *data, size_t size) {
  int digits = 0;
  for (size_t i = 0; i < size; i++) {
    digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : data[i] == 'x' || data[i] == ',' ? digits : 0;
    if (digits > 6) return true;
  }
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_model *m = NULL, *again = NULL;
  if (size > 1 << 16 || huge(data, size)) return 0;
  if (hn_model_parse("fuzz", (const char *)data, size, &m, NULL) != HONE_OK) return 0;
  hn_str a = {0}, b = {0};
  hn_print_options all = {.max_elements = UINT32_MAX, .node_names = true};
  if (hn_model_print(m, &all, &a)) {
    if (hn_model_parse("again", a.ptr, a.len, &again, NULL) != HONE_OK) abort();
    if (hn_model_print(again, &all, &b) && strcmp(a.ptr, b.ptr) != 0) abort();
  }
  hn_optimize_options o = {.level = 2, .check_each = true, .fold_seconds = 1, .fold_bytes = 1 << 24};
  hone_error e = {0};
  if (hn_model_ready(m, NULL) == HONE_OK && hn_optimize(m, &o, NULL, &e) == HONE_ERROR_INTERNAL) abort();
  hn_str_free(&a);
  hn_str_free(&b);
  hn_model_destroy(m);
  hn_model_destroy(again);
  return 0;
}
