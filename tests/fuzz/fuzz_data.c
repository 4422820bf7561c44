/* Arrays and pictures that a user gives as inputs: .npy, .npz, .png, .jpg. */
#include "runtime/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  /* The first byte chooses what the input wants. */
  static const hone_dtype dtypes[] = {HONE_DTYPE_NONE, HONE_DTYPE_F32,    HONE_DTYPE_U8,
                                      HONE_DTYPE_I64,  HONE_DTYPE_STRING, HONE_DTYPE_BOOL};
  hone_dtype dtype = dtypes[data[0] % 6];
  int64_t dims[4] = {1, 3, 8, data[0] & 64 ? -1 : 8};
  hone_tensor_desc want = data[0] & 128 ? hone_desc(dtype, 4, dims) : hone_desc(dtype, -1, NULL);
  hn_arena arena = {.limit = 256 << 20};
  hone_tensor t;
  hn_data_parse("fuzz", (hn_bytes){data + 1, size - 1}, "x", &want, NULL, &arena, &t, NULL, NULL);
  hn_arena_free(&arena);
  return 0;
}
