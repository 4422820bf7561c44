#include "backends/cuda/movement/tile.h"

#include <string.h>

#include "backends/cuda/device/moves_args.h"
#include "backends/cuda/step/launch.h"
#include "base/error.h"
#include "base/str.h"

hone_dtype hn_cuda_bits_of_size(int32_t bytes) {
  return bytes == 1   ? HONE_DTYPE_U8
         : bytes == 2 ? HONE_DTYPE_U16
         : bytes == 4 ? HONE_DTYPE_U32
                      : HONE_DTYPE_U64;
}

hone_dtype hn_cuda_bits_of(hone_dtype dtype) { return hn_cuda_bits_of_size((int32_t)hone_dtype_size(dtype)); }

bool hn_cuda_tile_of(const hn_nest *n, int32_t *source) {
  const int32_t last = n->rank - 1;
  if (n->stride[0][last] != 1 || n->stride[1][last] == 1 || n->stride[1][last] == 0) return false;
  *source = -1;
  for (int32_t i = 0; i < last; i++)
    if (n->stride[1][i] == 1) *source = i;
  return *source >= 0 && n->rank - 2 <= HN_TILE_RANK && n->dim[last] < 0x7fffff00 &&
         n->dim[*source] < 0x7fffff00;
}

/* Elements of a vector that every row of one side allows. */
static int vector_of(const hn_nest *n, int32_t k, int32_t contiguous, int size, const void *at) {
  const int widest = 16 / size < 8 ? 16 / size : 8;
  if ((uintptr_t)at % (uintptr_t)(widest * size)) return 1;
  for (int32_t i = 0; i < n->rank; i++)
    if (i != contiguous && n->stride[k][i] % widest) return 1;
  return widest;
}

hone_status hn_cuda_tile_launch(hn_cuda_queue *q, const hn_cuda_tile *t, void *to, const void *from,
                                hone_error *error) {
  const hn_nest *n = t->nest;
  const int32_t last = n->rank - 1;
  const int64_t rows = n->dim[last], cols = n->dim[t->source], padded = t->padded > rows ? t->padded : rows;
  const hone_dtype type[2] = {t->from == t->to ? hn_cuda_bits_of(t->from) : t->from,
                              t->from == t->to ? hn_cuda_bits_of(t->to) : t->to};
  const int from_size = (int)hone_dtype_size(t->from), to_size = (int)hone_dtype_size(t->to);
  const int edge = from_size == 8 ? 32 : 64, narrow = 16;
  int tile_rows = edge, tile_cols = edge;
  if (padded <= narrow)
    tile_rows = narrow, tile_cols = edge * edge / narrow;
  else if (cols <= narrow)
    tile_cols = narrow, tile_rows = edge * edge / narrow;
  hn_tile_args a;
  memset(&a, 0, sizeof a);
  a.to = to, a.from = from;
  a.from_row = n->stride[1][last], a.to_col = n->stride[0][t->source];
  a.rows = (uint32_t)rows, a.padded = (uint32_t)padded, a.cols = (uint32_t)cols;
  const uint32_t tiles_c = hn_cuda_blocks(cols, tile_cols), tiles_r = hn_cuda_blocks(padded, tile_rows);
  a.tiles_c = hn_cuda_divisor(tiles_c), a.tiles_r = hn_cuda_divisor(tiles_r);
  int64_t blocks = (int64_t)tiles_c * tiles_r;
  for (int32_t i = 0; i < last; i++) {
    if (i == t->source) continue;
    a.to_stride[a.rank] = n->stride[0][i], a.from_stride[a.rank] = n->stride[1][i];
    a.dim[a.rank++] = hn_cuda_divisor((uint32_t)n->dim[i]);
    blocks *= n->dim[i];
  }
  if (blocks == 0 || rows == 0 || cols == 0) return HONE_OK;
  if (blocks >= 0x7fffffff)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "a transpose of more than 2^31 tiles");
  hn_str prefix = {0};
  hn_str_printf(&prefix,
                "#define HN_FROM %s\n#define HN_TO %s\n#define HN_FROM_SIZE %d\n#define HN_TO_SIZE %d\n"
                "#define HN_ROWS %d\n#define HN_COLS %d\n#define HN_LOAD %d\n#define HN_STORE %d\n",
                hone_dtype_name(type[0]), hone_dtype_name(type[1]), from_size, to_size, tile_rows, tile_cols,
                vector_of(n, 1, t->source, from_size, from), vector_of(n, 0, last, to_size, to));
  hone_status status = HONE_OK;
  if (prefix.failed) {
    status = hn_fail_memory(error, prefix.cap, "device text");
  } else {
    const hn_cuda_kernel kernel = {"tile", prefix.ptr, "tile"};
    const hn_cuda_shape shape = {.grid = {(uint32_t)blocks, 1, 1}, .threads = 256, .overlap = true};
    status = hn_cuda_launch(q, &kernel, &shape, &a, sizeof a, error);
  }
  hn_str_free(&prefix);
  return status;
}
