/* What SoftmaxAttention computes, in f64 and without any haste, its shapes, and what kernels take. */
#include "softmax_attention_op.h"

enum { Q, K, V, MASK };

static hone_status wrong(hone_error *error, const char *what) {
  if (error) {
    error->status = HONE_ERROR_INPUT;
    strncpy(error->what, what, sizeof error->what - 1);
  }
  return HONE_ERROR_INPUT;
}

static bool differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

hone_status softmax_attention_shape(const softmax_attention_attrs *attrs, const hone_infer *io,
                                    hone_error *error) {
  (void)attrs;
  const hone_tensor_desc *q = io->input[Q], *k = io->input[K], *v = io->input[V],
                         *mask = io->n_inputs > MASK ? io->input[MASK] : NULL;
  hone_tensor_desc *y = io->output[0];
  if (q->rank < 0 || k->rank < 0 || v->rank < 0) {
    if (y) y->rank = -1;
    return HONE_OK;
  }
  const int32_t n = q->rank - 2;
  if (n < 0 || k->rank != q->rank || v->rank != q->rank)
    return wrong(error, "q, k and v are not of one rank, at least 2");
  for (int32_t i = 0; i < n; i++)
    if (differ(q->dim[i], k->dim[i]) || differ(q->dim[i], v->dim[i]))
      return wrong(error, "the batches of q, k and v differ");
  if (differ(q->dim[n + 1], k->dim[n]) || differ(k->dim[n + 1], v->dim[n]))
    return wrong(error, "q [.., m, d], k [.., d, s] and v [.., s, e] do not fit together");
  if (mask && mask->rank > q->rank) return wrong(error, "the mask has more dimensions than the scores");
  for (int32_t i = 0; mask && i < mask->rank; i++) {
    const int32_t at = q->rank - mask->rank + i;
    const int64_t dim = at == n + 1 ? k->dim[n + 1] : q->dim[at];
    if (mask->dim[i] != 1 && differ(mask->dim[i], dim))
      return wrong(error, "the mask does not fit the scores");
  }
  if (y) y->dim[n + 1] = v->dim[n + 1];
  return HONE_OK;
}

/* Two products, and about a dozen operations a score for its exponential. */
void softmax_attention_count(const softmax_attention_attrs *attrs, const hone_infer *io, hone_cost *cost) {
  (void)attrs;
  const hone_tensor_desc *q = io->input[Q], *v = io->input[V];
  const int32_t n = q->rank;
  double scores = 1;
  for (int32_t i = 0; i < n - 1; i++) scores *= (double)q->dim[i];
  scores *= (double)v->dim[n - 2];
  cost->macs = scores * (double)(q->dim[n - 1] + v->dim[n - 1]);
  cost->flops = 2 * cost->macs + 12 * scores;
  cost->bytes = -1;
}

/* Where the mask of row `row` of batch `batch` begins; *step is 0 when one number serves the whole row. */
static int64_t mask_at(const hone_array *mask, const int64_t *dim, int32_t rank, int64_t batch, int64_t row,
                       int64_t *step) {
  int64_t at = 0, stride = 1;
  *step = 0;
  for (int32_t i = rank - 1, m = mask->rank - 1; m >= 0; i--, m--) {
    const bool wide = mask->dim[m] != 1;
    if (i == rank - 1) {
      *step = wide;
    } else if (i == rank - 2) {
      if (wide) at += row * stride;
    } else {
      if (wide) at += batch % dim[i] * stride;
      batch /= dim[i];
    }
    stride *= mask->dim[m];
  }
  return at;
}

/* One query and one key. Scores beyond the range of f32 are infinite there, as in the nodes; where that hangs
 * on the order of a sum, or on what is rounded between, nothing is said. */
static double score_of(const softmax_attention_attrs *a, const hone_array *in, const double *q,
                       const double *k, double mask) {
  const int64_t d = in[Q].dim[in[Q].rank - 1], step = in[K].dim[in[K].rank - 1];
  double sum = 0, size = 0;
  for (int64_t c = 0; c < d; c++) sum += q[c] * k[c * step], size += fabs(q[c] * k[c * step]);
  const double scaled = sum * (double)a->scale, score = scaled + mask;
  if (hone_beyond(&in[Q], size)) return NAN;
  if (hone_beyond(&in[Q], score)) return score > 0 ? INFINITY : -INFINITY;
  return hone_beyond(&in[Q], scaled) ? NAN : score;
}

static void row_of(const softmax_attention_attrs *a, const hone_array *in, const hone_array *y, int64_t batch,
                   int64_t row) {
  const int32_t rank = in[Q].rank;
  const int64_t m = in[Q].dim[rank - 2], d = in[Q].dim[rank - 1], s = in[K].dim[rank - 1],
                e = in[V].dim[rank - 1];
  const double *q = in[Q].data + (batch * m + row) * d, *k = in[K].data + batch * d * s,
               *v = in[V].data + batch * s * e;
  double *to = y->data + (batch * m + row) * e, most = -INFINITY, sum = 0;
  int64_t step = 0;
  const double *mask =
      in[MASK].data ? in[MASK].data + mask_at(&in[MASK], in[Q].dim, rank, batch, row, &step) : NULL;
  for (int64_t j = 0; j < e; j++) to[j] = 0;
  for (int pass = 0; pass < 3; pass++) /* the largest score, the sum, the result */
    for (int64_t i = 0; i < s; i++) {
      const double score = score_of(a, in, q, k + i, mask ? mask[step * i] : 0);
      if (pass == 0) most = score > most ? score : most;
      if (pass == 1) sum += exp(score - most);
      for (int64_t j = 0; pass == 2 && j < e; j++) to[j] += exp(score - most) / sum * v[i * e + j];
    }
}

void softmax_attention_ref(const softmax_attention_attrs *attrs, const hone_array in[4],
                           const hone_array out[1]) {
  const int32_t rank = in[Q].rank;
  const int64_t rows = in[Q].dim[rank - 2];
  if (!out[0].count) return;
  for (int64_t i = 0; i < out[0].count / out[0].dim[rank - 1]; i++)
    row_of(attrs, in, &out[0], i / rows, i % rows);
}

/* Of all kernels: steps that they can run exactly as they are. */
bool softmax_attention_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_dtype type = s->output[0].desc.dtype;
  const bool gpu = strcmp(m->device, "cuda") == 0;
  if (s->n_epilogue) return hone_refuse(why, "it takes no epilogue");
  if (type != HONE_DTYPE_F32 && (!gpu || (type != HONE_DTYPE_F16 && type != HONE_DTYPE_BF16)))
    return hone_refuse(why, "not of this type");
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const hone_tensor_desc *x = &s->input[i].desc;
    if (x->dtype == HONE_DTYPE_NONE) continue;
    if (x->dtype != type) return hone_refuse(why, "operands of several types");
    if (x->layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  }
  if (s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  const hone_tensor_desc *v = &s->input[V].desc;
  if (!v->dim[v->rank - 2]) return hone_refuse(why, "no keys");
  if (gpu && v->dim[v->rank - 1] > 256) return hone_refuse(why, "values of more than 256 numbers");
  return true;
}

/* A thread's scores of ROWS queries, and the keys that it works with. */
hone_status softmax_attention_need(const softmax_attention_attrs *attrs, const hone_step *s,
                                   const hone_machine *m, hone_tactic_need *need, hone_error *error) {
  (void)attrs, (void)error;
  const hone_tensor_desc *k = &s->input[K].desc;
  const size_t keys = (size_t)(k->dim[k->rank - 1] + 31) / 32 * 32, depth = (size_t)k->dim[k->rank - 2];
  if (strcmp(m->device, "cpu") == 0)
    need->workspace_bytes = m->threads * (32 * keys + 32 * depth) * sizeof(float);
  return HONE_OK;
}

/* Seconds, as well as can be said beforehand: the products with keys filled up to vectors, the exponentials,
 * and what a task of 32 queries costs beside. */
double softmax_attention_cost(const hone_step *s, const hone_machine *m) {
  const hone_tensor_desc *q = &s->input[Q].desc, *v = &s->input[V].desc;
  const int32_t n = q->rank;
  const bool gpu = strcmp(m->device, "cuda") == 0;
  const double keys = (double)v->dim[n - 2], filled = (double)((v->dim[n - 2] + 15) / 16 * 16);
  double batches = 1;
  for (int32_t i = 0; i < n - 2; i++) batches *= (double)q->dim[i];
  const double rows = batches * (double)q->dim[n - 2], tasks = batches * (double)((q->dim[n - 2] + 31) / 32);
  const double flops = 2 * rows * (filled * (double)q->dim[n - 1] + keys * (double)v->dim[n - 1]);
  if (m->peak_flops <= 0) return hone_memory_seconds(m, hone_step_bytes(s));
  if (gpu) return hone_memory_seconds(m, hone_step_bytes(s)) + flops / (0.1 * m->peak_flops);
  return flops / (0.62 * m->peak_flops) +
         (rows * filled * 0.3e-9 + tasks * 0.4e-6) / (m->threads ? m->threads : 1);
}
