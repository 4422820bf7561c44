/* softmax(scale q k + mask) v on the processor. A task is 32 queries: their scores stay in the cache, all of
 * them, until they have weighed the values. Compiled once for each instruction set. */
#include "softmax_attention_op.h"

enum {
  TASK = 32, /* queries of a task */
  ROWS = HONE_LANES == 16 ? 8 : 4,
  VECTORS = 2, /* of results that are summed in registers */
  WIDE = VECTORS * HONE_LANES,
  PADDED = 32
};

#define INLINE static inline __attribute__((always_inline))

/* y[rows][vectors * HONE_LANES] = a[rows][depth] b[depth][...]; the last vector has k numbers. */
INLINE void block(const int rows, const int vectors, const float *a, int64_t a_row, const float *b,
                  int64_t b_row, int64_t depth, float *y, int64_t y_row, int k, const float *divide) {
  hone_vf sum[8][2];
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < vectors; c++) sum[r][c] = hone_all(0);
  for (int64_t d = 0; d < depth; d++) {
    hone_vf v[2];
    for (int c = 0; c < vectors; c++)
      v[c] = hone_load(b + d * b_row + c * HONE_LANES, vectors > 1 ? HONE_LANES : k);
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < vectors; c++) sum[r][c] += v[c] * a[r * a_row + d];
  }
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < vectors; c++)
      hone_store(y + r * y_row + c * HONE_LANES, divide ? sum[r][c] / divide[r] : sum[r][c],
                 vectors > 1 ? HONE_LANES : k);
}

/* n columns of the product; rows of y and b have at least n numbers. The last vector may begin before the
 * others end: its numbers are computed twice. */
INLINE void columns(const int rows, const float *a, int64_t a_row, const float *b, int64_t b_row,
                    int64_t depth, float *y, int64_t y_row, int64_t n, const float *divide) {
  int64_t j = 0;
  for (; j + WIDE <= n; j += WIDE)
    block(rows, VECTORS, a, a_row, b + j, b_row, depth, y + j, y_row, HONE_LANES, divide);
  while (j < n) {
    if (n >= HONE_LANES) {
      j = j + HONE_LANES <= n ? j : n - HONE_LANES;
      block(rows, 1, a, a_row, b + j, b_row, depth, y + j, y_row, HONE_LANES, divide);
    } else
      block(rows, 1, a, a_row, b, b_row, depth, y, y_row, (int)n, divide);
    j += HONE_LANES;
  }
}

/* All rows, in parts of at most ROWS that are as equal as can be. */
static void product(int64_t rows, const float *a, int64_t a_row, const float *b, int64_t b_row, int64_t depth,
                    float *y, int64_t y_row, int64_t n, const float *divide) {
  for (int64_t r = 0; r < rows;) {
    const int64_t left = rows - r, parts = (left + ROWS - 1) / ROWS, now = (left + parts - 1) / parts;
    switch (now) {
#define PART(count)                                                                                          \
  case count:                                                                                                \
    columns(count, a + r * a_row, a_row, b, b_row, depth, y + r * y_row, y_row, n,                           \
            divide ? divide + r : NULL);                                                                     \
    break
      PART(1);
      PART(2);
      PART(3);
#if HONE_LANES == 16
      PART(4);
      PART(5);
      PART(6);
      PART(7);
#endif
      PART(ROWS);
    }
    r += now;
  }
}

static inline int64_t whole_vectors(int64_t n) { return (n + HONE_LANES - 1) / HONE_LANES * HONE_LANES; }

/* Scores become e^(scale s + mask - the largest); their sum is returned. */
static float weigh(float *s, int64_t n, float scale, const float *mask, int64_t step) {
  hone_vf most = hone_all(-INFINITY), sum = hone_all(0);
  static const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  hone_vi lane;
  memcpy(&lane, numbers, sizeof lane);
  for (int64_t i = 0; i < n; i += HONE_LANES) {
    const int k = hone_lanes(n - i);
    hone_vf v = hone_load(s + i, HONE_LANES) * scale;
    if (mask) v += step ? hone_load(mask + i, k) : hone_all(*mask);
    if (k < HONE_LANES) v = hone_select(lane < k, v, hone_all(-INFINITY));
    hone_store(s + i, v, HONE_LANES);
    most = hone_max(most, v);
  }
  const float top = hone_most(most);
  for (int64_t i = 0; i < n; i += HONE_LANES) {
    const hone_vf e = hone_exp(hone_load(s + i, HONE_LANES) - top);
    sum += e;
    hone_store(s + i, e, HONE_LANES);
  }
  return hone_sum(sum);
}

typedef struct job {
  const hone_step_run *run;
  float scale;
  int32_t rank;
  int64_t m, d, s, e, padded;  /* queries, their depth, keys, numbers of a value */
  int64_t pieces, piece;       /* tasks of a batch, and the queries of one */
  int64_t mask[HONE_MAX_RANK]; /* strides, 0 where one serves all */
} job;

static const float *mask_of(const job *j, int64_t batch, int64_t row) {
  const float *mask = j->run->step->n_inputs > 3 ? (const float *)j->run->in[3] : NULL;
  if (!mask) return NULL;
  const hone_tensor_desc *q = &j->run->step->input[0].desc;
  for (int32_t i = j->rank - 3; i >= 0; i--) {
    mask += batch % q->dim[i] * j->mask[i];
    batch /= q->dim[i];
  }
  return mask + row * j->mask[j->rank - 2];
}

static void queries(void *arg, int64_t task, uint32_t thread) {
  const job *j = (const job *)arg;
  const int64_t batch = task / j->pieces, first = task % j->pieces * j->piece, left = j->m - first,
                rows = left < j->piece ? left : j->piece;
  float *scores = (float *)j->run->workspace + (int64_t)thread * (TASK * j->padded + PADDED * j->d),
        *keys = scores + TASK * j->padded, sum[TASK];
  const float *q = (const float *)j->run->in[0] + (batch * j->m + first) * j->d,
              *k = (const float *)j->run->in[1] + batch * j->d * j->s,
              *v = (const float *)j->run->in[2] + batch * j->s * j->e;
  for (int64_t c = 0; c < j->s; c += PADDED) {
    const int64_t wide = j->s - c < PADDED ? j->s - c : PADDED;
    for (int64_t d = 0; d < j->d; d++) {
      const float *from = k + d * j->s + c;
      float *to = keys + d * PADDED;
      /* What lies behind the last key is written over when scores become weights: numbers of the next row do.
       */
      if (d * j->s + c + PADDED <= j->d * j->s)
        memcpy(to, from, PADDED * sizeof *to);
      else
        for (int64_t i = 0; i < PADDED; i++) to[i] = i < wide ? from[i] : 0;
    }
    product(rows, q, j->d, keys, PADDED, j->d, scores + c, j->padded, whole_vectors(wide), NULL);
  }
  for (int64_t r = 0; r < rows; r++)
    sum[r] =
        weigh(scores + r * j->padded, j->s, j->scale, mask_of(j, batch, first + r), j->mask[j->rank - 1]);
  product(rows, scores, j->padded, v, j->e, j->s, (float *)j->run->out[0] + (batch * j->m + first) * j->e,
          j->e, j->e, sum);
}

hone_status HONE_KERNEL(softmax_attention)(const softmax_attention_attrs *attrs, const hone_step_run *run,
                                           hone_error *error) {
  const hone_step_tensor *in = run->step->input;
  const hone_tensor_desc *q = &in[0].desc, *v = &in[2].desc;
  const int32_t n = q->rank;
  job j = {.run = run,
           .scale = attrs->scale,
           .rank = n,
           .m = q->dim[n - 2],
           .d = q->dim[n - 1],
           .s = v->dim[n - 2],
           .e = v->dim[n - 1]};
  (void)error;
  j.padded = (j.s + PADDED - 1) / PADDED * PADDED;
  j.pieces = (j.m + TASK - 1) / TASK;
  j.piece = j.pieces ? (j.m + j.pieces - 1) / j.pieces : 1;
  int64_t batches = 1, stride = 1;
  for (int32_t i = 0; i < n - 2; i++) batches *= q->dim[i];
  if (run->step->n_inputs > 3 && run->in[3])
    for (int32_t i = n - 1, k = in[3].desc.rank - 1; k >= 0; i--, k--) {
      j.mask[i] = in[3].desc.dim[k] == 1 ? 0 : stride;
      stride *= in[3].desc.dim[k];
    }
  if (hone_desc_count(&run->step->output[0].desc) > 0)
    run->parallel(run->pool, batches * j.pieces, queries, &j);
  return HONE_OK;
}
