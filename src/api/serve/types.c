/* The protocol's names of element types. */
#include "api/serve/serve.h"

#include <string.h>

static const struct {
  hone_dtype dtype;
  const char *name;
} types[] = {{HONE_DTYPE_BOOL, "BOOL"},  {HONE_DTYPE_U8, "UINT8"},    {HONE_DTYPE_U16, "UINT16"},
             {HONE_DTYPE_U32, "UINT32"}, {HONE_DTYPE_U64, "UINT64"},  {HONE_DTYPE_I8, "INT8"},
             {HONE_DTYPE_I16, "INT16"},  {HONE_DTYPE_I32, "INT32"},   {HONE_DTYPE_I64, "INT64"},
             {HONE_DTYPE_F16, "FP16"},   {HONE_DTYPE_F32, "FP32"},    {HONE_DTYPE_F64, "FP64"},
             {HONE_DTYPE_BF16, "BF16"},  {HONE_DTYPE_STRING, "BYTES"}};

enum { TYPES = sizeof types / sizeof *types };

const char *hn_served_datatype(hone_dtype dtype) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].dtype == dtype) return types[i].name;
  return NULL;
}

hone_dtype hn_served_dtype(const char *datatype) {
  for (int i = 0; i < TYPES; i++)
    if (strcmp(types[i].name, datatype) == 0) return types[i].dtype;
  return HONE_DTYPE_NONE;
}
