/* softmax(scale q k + mask) v on a GPU. A block has 8 queries and goes over the keys 128 at a time: a thread scores one
 * key for all 8, what was summed before is scaled to the new largest score, then a thread sums one or two columns of
 * the values. LOAD and STORE say the type; sums are f32. */

typedef struct attention_args { /* the same as in softmax_attention_cuda.c */
  const void *q, *k, *v, *mask;
  void *y;
  i64 m, d, s, e, pieces, batch[2], stride[4];
  float scale;
} attention_args;

enum { ROWS = 8, KEYS = 128 };

HN_FN float of_warp_most(float x) {
  for (int i = 16; i; i /= 2) x = fmaxf(x, hn_shfl_xor(x, i));
  return x;
}
HN_FN float of_warp_sum(float x) {
  for (int i = 16; i; i /= 2) x += hn_shfl_xor(x, i);
  return x;
}

HN_KERNEL(softmax_attention, attention_args, a) {
  HN_SHARED float score[ROWS][KEYS], part[ROWS][4], most[ROWS], sum[ROWS], shrink[ROWS];
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32;
  const i64 batch = blockIdx.x / a.pieces, first = blockIdx.x % a.pieces * ROWS, q = (batch * a.m + first) * a.d,
            k = batch * a.d * a.s, v = batch * a.s * a.e;
  const i64 mask = a.mask ? batch / a.batch[1] * a.stride[0] + batch % a.batch[1] * a.stride[1] : 0;
  float x[2][ROWS];
  HN_UNROLL
  for (int r = 0; r < ROWS; r++) x[0][r] = x[1][r] = 0;
  if (t < ROWS) most[t] = -INFINITY, sum[t] = 0;
  for (i64 base = 0; base < a.s; base += KEYS) {
    const i64 key = base + t;
    float s[ROWS];
    HN_UNROLL
    for (int r = 0; r < ROWS; r++) s[r] = 0;
    for (i64 d = 0; key < a.s && d < a.d; d++) {
      const float b = LOAD(a.k, k + d * a.s + key);
      HN_UNROLL
      for (int r = 0; r < ROWS; r++)
        if (first + r < a.m) s[r] += LOAD(a.q, q + r * a.d + d) * b;
    }
    HN_UNROLL
    for (int r = 0; r < ROWS; r++) {
      s[r] *= a.scale;
      if (a.mask && first + r < a.m && key < a.s) s[r] += LOAD(a.mask, mask + (first + r) * a.stride[2] + key * a.stride[3]);
      if (key >= a.s) s[r] = -INFINITY;
      const float top = of_warp_most(s[r]);
      if (lane == 0) part[r][warp] = top;
    }
    HN_SYNC();
    if (t < ROWS) {
      const float top = fmaxf(fmaxf(fmaxf(part[t][0], part[t][1]), fmaxf(part[t][2], part[t][3])), most[t]);
      /* Nothing but -infinity so far: it weighs nothing, whatever comes. */
      shrink[t] = most[t] == -INFINITY ? 0.0f : expf(most[t] - top);
      most[t] = top;
    }
    HN_SYNC();
    HN_UNROLL
    for (int r = 0; r < ROWS; r++) {
      const float e = most[r] == -INFINITY && s[r] == -INFINITY ? 0.0f : expf(s[r] - most[r]);
      const float all = of_warp_sum(e);
      score[r][t] = e;
      if (lane == 0) part[r][warp] = all;
    }
    HN_SYNC();
    if (t < ROWS) sum[t] = sum[t] * shrink[t] + part[t][0] + part[t][1] + part[t][2] + part[t][3];
    const i64 keys = a.s - base < KEYS ? a.s - base : KEYS;
    for (int c = 0; c < 2; c++) {
      const i64 column = (i64)t + c * KEYS;
      if (column >= a.e) continue;
      HN_UNROLL
      for (int r = 0; r < ROWS; r++) x[c][r] *= shrink[r];
      for (i64 j = 0; j < keys; j++) {
        const float b = LOAD(a.v, v + (base + j) * a.e + column);
        HN_UNROLL
        for (int r = 0; r < ROWS; r++) x[c][r] += score[r][j] * b;
      }
    }
    HN_SYNC();
  }
  for (int c = 0; c < 2; c++)
    for (int r = 0; r < ROWS; r++) {
      const i64 column = (i64)t + c * KEYS;
      if (column < a.e && first + r < a.m) STORE(a.y, (batch * a.m + first + r) * a.e + column, x[c][r] / sum[r]);
    }
}
