/* The text form of models: what is read must print, and the print must read again. */
#include "model/ir/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hn_model *m = NULL, *again = NULL;
  hn_str s = {0};
  if (hn_model_parse("fuzz", (const char *)data, size, &m, NULL) != HONE_OK) return 0;
  if (hn_model_check(m, NULL) == HONE_OK &&
      hn_model_print(m, &(hn_print_options){.max_elements = 1 << 16, .node_names = true}, &s)) {
    hone_error e = {0};
    if (!strstr(s.ptr ? s.ptr : "", "#") &&
        hn_model_parse("printed", s.ptr, s.len, &again, &e) == HONE_ERROR_INTERNAL)
      __builtin_trap();
  }
  hn_str_free(&s);
  hn_model_destroy(again);
  hn_model_destroy(m);
  return 0;
}
