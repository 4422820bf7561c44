#include "model/ir/cast_names.h"

#include <strings.h>

static const char *const names[] = {
    [HONE_DTYPE_F32] = "FLOAT",   [HONE_DTYPE_U8] = "UINT8",      [HONE_DTYPE_I8] = "INT8",
    [HONE_DTYPE_U16] = "UINT16",  [HONE_DTYPE_I16] = "INT16",     [HONE_DTYPE_I32] = "INT32",
    [HONE_DTYPE_I64] = "INT64",   [HONE_DTYPE_STRING] = "STRING", [HONE_DTYPE_BOOL] = "BOOL",
    [HONE_DTYPE_F16] = "FLOAT16", [HONE_DTYPE_F64] = "DOUBLE",    [HONE_DTYPE_U32] = "UINT32",
    [HONE_DTYPE_U64] = "UINT64"};

const char *hn_cast_name(int64_t dtype) {
  return dtype > 0 && dtype < (int64_t)(sizeof names / sizeof *names) ? names[dtype] : NULL;
}

hone_dtype hn_cast_named(const char *name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i] && strcasecmp(names[i], name) == 0) return (hone_dtype)i;
  return HONE_DTYPE_NONE;
}
