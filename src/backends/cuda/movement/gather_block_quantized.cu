/* GatherBlockQuantized: a thread an element of the result, code less zero point, times the scale of its block.
 *
 * p: elements behind the gathered axis, its size, indices, rank, the axis of blocks, their length, bits of a code; from 8
 * the table's dimensions, counted in codes, from 16 the scales'. Defines HN_PACKED: codes and zero points lie in bytes,
 * whole ones to a row; HN_ZEROS; HN_MIDDLE, the zero point where there is none. Indices outside give zeros, as ONNX
 * Runtime's do. */
#include "direct.cuh"

/* Code i of a table with `row` codes in its last dimension. */
#ifdef HN_PACKED
HN_FN float code_at(const hn_direct_args *a, const void *codes, i64 i, i64 row) {
  const u32 bits = (u32)a->p[6], each = 8 / bits;
  const i64 line = i / row;
  const u32 k = (u32)(i - line * row);
  return (float)(((const u8 *)codes)[line * ((row + each - 1) / each) + k / each] >> (k % each * bits) & ((1u << bits) - 1));
}
#define CODE(k, i, row) code_at(a, a->in[k], i, row)
#else
#define CODE(k, i, row) ((float)HN_IN(k, i))
#endif

HN_EACH(gather_block_quantized) {
  const i64 inner = a->p[0], rows = a->p[1], line = i / inner, from_line = line / a->p[2];
  const int rank = (int)a->p[3];
  i64 row = (i64)HN_IN(1, line - from_line * a->p[2]);
  if (row < 0) row += rows;
  if (row < 0 || row >= rows) {
    HN_OUT(0, i, 0.0f);
    return;
  }
  const i64 from = (from_line * rows + row) * inner + (i - line * inner);
  i64 rest = from, at = 0, step = 1;
  for (int d = rank - 1; d >= 0; d--) {
    const i64 next = rest / a->p[8 + d], k = rest - next * a->p[8 + d];
    at += (d == (int)a->p[4] ? k / a->p[5] : k) * step;
    step *= a->p[16 + d], rest = next;
  }
#ifdef HN_ZEROS
  const float zero = CODE(3, at, a->p[16 + rank - 1]);
#else
  const float zero = HN_MIDDLE;
#endif
  HN_OUT(0, i, (CODE(0, from, a->p[8 + rank - 1]) - zero) * (float)HN_IN(2, at));
}
