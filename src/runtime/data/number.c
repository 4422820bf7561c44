/* A number where a file could stand: every element of an input (--input sr=16000). */
#include "runtime/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool hn_is_number(const char *text) {
  char *end;
  if (!*text || !strchr("+-.0123456789", *text)) return false;
  strtod(text, &end);
  return !*end;
}

hone_status hn_number_tensor(const char *text, const hone_tensor_desc *want, hn_arena *arena,
                             hone_tensor *out, hone_error *error) {
  const hone_dtype dtype = want->dtype ? want->dtype : HONE_DTYPE_F32;
  const hone_tensor_desc d = hone_desc(dtype, want->rank, want->dim);
  const int64_t count = hone_desc_count(&d), bytes = hone_desc_bytes(&d);
  char *end;
  if (count < 0 || bytes < 0) {
    hn_fail(error, HONE_ERROR_USAGE, "a number fills an input whose shape is known");
    hn_error_hint(error, "give the shape, too (--shape), or a file");
    return HONE_ERROR_USAGE;
  }
  errno = 0;
  int64_t whole = strtoll(text, &end, 10);
  double real = strtod(text, NULL);
  const bool is_whole = !*end && errno == 0;
  hone_tensor one = {hone_desc(is_whole ? HONE_DTYPE_I64 : HONE_DTYPE_F64, 0, NULL),
                     is_whole ? (void *)&whole : (void *)&real},
              value;
  hone_status status = hn_tensor_convert(&one, dtype, arena, &value, error);
  if (status != HONE_OK) return status;
  const size_t size = hone_dtype_size(dtype);
  *out = (hone_tensor){d, hn_arena_aligned(arena, bytes ? (size_t)bytes : 1, HN_MEM_ALIGN)};
  if (!out->data) return hn_fail_memory(error, (uint64_t)bytes, "an input");
  for (int64_t i = 0; i < count; i++) memcpy((char *)out->data + (size_t)i * size, value.data, size);
  return HONE_OK;
}
