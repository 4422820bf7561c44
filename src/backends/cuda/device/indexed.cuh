/* Moves by index, a thread an output unit (scatters: a thread a line of them). Prefix:
 *   HN_BODY    the function below that is wanted
 *   HN_UNIT    bytes of a unit: an element, or up to 16 bytes of a run
 *   HN_INDEX   element type of the indices
 *   HN_TYPE    element type of the data, for those that compute; HN_COMBINE(a, b) for scatters
 *   HN_RESULT  element type of the output, where it is another
 * Indices count from the end when negative. Those outside give zeros, or are passed over by scatters, and are
 * reported (hn_cuda_refusal), but OneHot's, which may lie there. Every order is fixed: equal runs give equal bits. */
#include "elements.cuh"
#include "indexed_args.h"

#ifndef HN_INDEX
#define HN_INDEX i64
#endif
#ifndef HN_TYPE
#define HN_TYPE u32
#endif
#ifndef HN_RESULT
#define HN_RESULT HN_TYPE
#endif
#ifndef HN_SUM
#define HN_SUM double
#endif
#ifndef HN_COMBINE
#define HN_COMBINE(a, b) (b)
#endif

/* -1: outside. */
HN_FN i64 hn_any_index(const hn_indexed_args *a, i64 at, i64 size) {
  i64 v = (i64)HN_PASTE(hn_get_, HN_INDEX)(a->in[1], at);
  if (v < 0) v += size;
  return v < 0 || v >= size ? -1 : v;
}

HN_FN i64 hn_index(const hn_indexed_args *a, i64 at, i64 size) {
  const i64 v = hn_any_index(a, at, size);
  if (v < 0) *(volatile u64 *)a->refused = a->node;
  return v;
}

/* Unit `from` of in[0] (-1: zeros) to unit `to`. */
HN_FN void hn_move_unit(const hn_indexed_args *a, i64 to, i64 from) {
  u32 w[4] = {0, 0, 0, 0};
  if (from >= 0) hn_ld_words(w, (const char *)a->in[0] + from * HN_UNIT, HN_UNIT);
  hn_st_words((char *)a->out + to * HN_UNIT, w, HN_UNIT);
}

/* p: units of a block, indices, size of the axis */
HN_FN void hn_gather(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], n = (u32)a->p[1], block = i / inner, outer = block / n;
  const i64 at = hn_index(a, block - outer * n, a->p[2]);
  hn_move_unit(a, i, at < 0 ? -1 : (outer * a->p[2] + at) * inner + (i - block * inner));
}

/* The same from one floating type to another, HN_EACH elements at a time: HN_READ bytes there, HN_WRITE here. */
#ifdef HN_EACH
HN_FN void hn_gather_convert(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], n = (u32)a->p[1], block = i / inner, outer = block / n;
  const i64 at = hn_index(a, block - outer * n, a->p[2]);
  const i64 from = (outer * a->p[2] + at) * inner + (i - block * inner);
  u32 read[4] = {0, 0, 0, 0}, written[4];
  float v[HN_EACH];
  if (at >= 0) hn_ld_words(read, (const char *)a->in[0] + from * HN_READ, HN_READ);
  HN_UNROLL for (int k = 0; k < HN_EACH; k++) v[k] = HN_PASTE(hn_word_, HN_TYPE)(read, k);
  HN_PASTE(hn_pack_, HN_RESULT)(written, v, HN_EACH);
  hn_st_words((char *)a->out + (i64)i * HN_WRITE, written, HN_WRITE);
}
#endif

/* p: units of a block, tuples of a batch, length of a tuple, units of a batch; from 4 sizes, from 12 units of a
 * step. */
HN_FN void hn_gather_nd(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], block = i / inner;
  i64 from = block / (u32)a->p[1] * a->p[3] + (i - block * inner);
  for (int k = 0; k < (int)a->p[2]; k++) {
    const i64 at = hn_index(a, block * a->p[2] + k, a->p[4 + k]);
    from = at < 0 || from < 0 ? -1 : from + at * a->p[12 + k];
  }
  hn_move_unit(a, i, from);
}

/* p: rank, axis, its size in the data; from 4 dimensions of the indices, from 12 steps in the data. */
HN_FN void hn_gather_elements(const hn_indexed_args *a, u32 i) {
  i64 from = 0;
  u32 rest = i;
  for (int k = (int)a->p[0] - 1; k >= 0; k--) {
    const u32 next = rest / (u32)a->p[4 + k];
    if (k != (int)a->p[1]) from += (rest - next * (u32)a->p[4 + k]) * a->p[12 + k];
    rest = next;
  }
  const i64 at = hn_index(a, i, a->p[2]);
  hn_move_unit(a, i, at < 0 ? -1 : from + at * a->p[12 + a->p[1]]);
}

HN_FN void hn_combine_at(const hn_indexed_args *a, i64 to, i64 from) {
  const HN_PASTE(hn_value_, HN_TYPE) was = HN_PASTE(hn_get_, HN_TYPE)(a->out, to);
  const HN_PASTE(hn_value_, HN_TYPE) is = HN_PASTE(hn_get_, HN_TYPE)(a->in[2], from);
  (void)was;
  HN_PASTE(hn_put_, HN_TYPE)(a->out, to, HN_COMBINE(was, is));
}

/* A line of indices along the axis. p: rank, axis, its size in the data, length of the line;
 * from 4 dimensions of the indices (1 for the axis), from 12 steps in the data, from 20 steps
 * in the indices. */
HN_FN void hn_scatter_elements(const hn_indexed_args *a, u32 i) {
  i64 base = 0, first = 0;
  for (int k = (int)a->p[0] - 1; k >= 0; k--) {
    const u32 next = i / (u32)a->p[4 + k], at = i - next * (u32)a->p[4 + k];
    base += at * a->p[12 + k];
    first += at * a->p[20 + k];
    i = next;
  }
  for (i64 j = 0; j < a->p[3]; j++) {
    const i64 place = first + j * a->p[20 + a->p[1]], at = hn_index(a, place, a->p[2]);
    if (at >= 0) hn_combine_at(a, base + at * a->p[12 + a->p[1]], place);
  }
}

/* An element of all slices. p: elements of a slice, tuples, length of a tuple; from 4 sizes, from 12 steps. */
HN_FN void hn_scatter_nd(const hn_indexed_args *a, u32 i) {
  for (i64 j = 0; j < a->p[1]; j++) {
    i64 to = i;
    for (int k = 0; k < (int)a->p[2]; k++) {
      const i64 at = hn_index(a, j * a->p[2] + k, a->p[4 + k]);
      to = at < 0 || to < 0 ? -1 : to + at * a->p[12 + k];
    }
    if (to >= 0) hn_combine_at(a, to, j * a->p[0] + i);
  }
}

/* p: units of a slice, slices of the update, of the cache, blocks of them in an input, circular; in[1]: where each
 * input's begin, when not NULL */
HN_FN void hn_tensor_scatter(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], n = (u32)a->p[1], slice = i / inner, block = slice / n;
  const i64 first = a->in[1] ? ((const i64 *)a->in[1])[block / (u32)a->p[3]] : 0;
  i64 at = first < 0 ? -1 : (a->p[4] ? first % a->p[2] : first) + (slice - block * n);
  if (a->p[4] && at >= a->p[2]) at -= a->p[2];
  if (at < 0 || at >= a->p[2]) {
    *(volatile u64 *)a->refused = a->node;
    return;
  }
  hn_move_unit(a, (block * a->p[2] + at) * inner + (i - slice * inner), i);
}

/* p: rows, columns, upper, k; in[1]: k, when not NULL */
HN_FN void hn_trilu(const hn_indexed_args *a, u32 i) {
  const u32 line = i / (u32)a->p[1];
  const i64 c = i - line * (u32)a->p[1], r = line % (u32)a->p[0];
  const i64 k = a->in[1] ? *(const i64 *)a->in[1] : a->p[3];
  hn_move_unit(a, i, (a->p[2] ? c - r >= k : c - r <= k) ? (i64)i : -1);
}

/* p: inner, length, exclusive, reverse. Floats add up in double. */
HN_FN void hn_cum_sum(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], outer = i / inner;
  const i64 base = outer * a->p[1] * inner + (i - outer * inner);
  HN_SUM sum = 0;
  for (i64 k = 0; k < a->p[1]; k++) {
    const i64 at = base + (a->p[3] ? a->p[1] - 1 - k : k) * inner;
    const HN_SUM before = sum;
    sum += (HN_SUM)HN_PASTE(hn_get_, HN_TYPE)(a->in[0], at);
    HN_PASTE(hn_put_, HN_TYPE)(a->out, at, (HN_PASTE(hn_value_, HN_TYPE))(a->p[2] ? before : sum));
  }
}

/* p: inner, depth. in[0]: off and on, in[1]: indices */
HN_FN void hn_one_hot(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], depth = (u32)a->p[1], line = i / inner, outer = line / depth;
  const i64 at = hn_any_index(a, outer * inner + (i - line * inner), depth);
  hn_move_unit(a, i, at == (i64)(line - outer * depth));
}

/* p: units of a block, dimensions 0 and 1, which of them is time */
HN_FN void hn_reverse_sequence(const hn_indexed_args *a, u32 i) {
  const u32 inner = (u32)a->p[0], block = i / inner, d1 = (u32)a->p[2], x = block / d1, y = block - x * d1;
  const i64 time = a->p[3] ? y : x, n = ((const i64 *)a->in[1])[a->p[3] ? x : y];
  const i64 from = time < n ? n - 1 - time : time;
  hn_move_unit(a, i, ((a->p[3] ? x * (i64)d1 + from : from * d1 + y)) * inner + (i - block * inner));
}

/* p: columns, k */
HN_FN void hn_eye_like(const hn_indexed_args *a, u32 i) {
  const u32 r = i / (u32)a->p[0];
  HN_PASTE(hn_put_, HN_TYPE)(a->out, i, (i64)(i - r * (u32)a->p[0]) - (i64)r == a->p[1] ? 1 : 0);
}

/* p: rank, 0 edge, 1 reflect, 2 wrap; for every dimension size of the result, elements before the kept ones, how many are
 * kept, where they begin, step */
HN_FN void hn_pad_mirror(const hn_indexed_args *a, u32 i) {
  i64 from = 0;
  u32 rest = i;
  for (int k = (int)a->p[0] - 1; k >= 0; k--) {
    const i64 *n = a->p + 2 + k * 5, kept = n[2];
    const u32 next = rest / (u32)n[0];
    i64 at = (i64)(rest - next * (u32)n[0]) - n[1];
    if (a->p[1] == 0) {
      at = at < 0 ? 0 : at < kept ? at : kept - 1;
    } else {
      const i64 period = a->p[1] == 2 ? kept : kept > 1 ? 2 * (kept - 1) : 1;
      at %= period;
      if (at < 0) at += period;
      if (at >= kept) at = period - at;
    }
    from += n[3] + at * n[4];
    rest = next;
  }
  hn_move_unit(a, i, from);
}

HN_KERNEL(indexed, hn_indexed_args, a) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  HN_GRID_GO();
  HN_GRID_WAIT();
  if (i < (u32)a.count) HN_BODY(&a, i);
}
