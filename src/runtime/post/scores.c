/* Scores of classes: softmax, sigmoid, the best of them. */
#include "runtime/post/post.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <stdlib.h>

hone_status hn_post_check(const char *function, const hone_tensor *t, hone_error *error) {
  char text[128];
  if (!t) return hn_fail(error, HONE_ERROR_USAGE, "%s: the tensor may not be NULL", function);
  const hone_dtype type = t->desc.dtype;
  if (hone_dtype_is_float(type) || hone_dtype_is_signed_int(type) || hone_dtype_is_unsigned_int(type) ||
      type == HONE_DTYPE_BOOL) {
    if (hone_desc_count(&t->desc) >= 0 && t->desc.device == 0 && t->desc.layout == HONE_LAYOUT_ROW_MAJOR &&
        (t->data || hone_desc_count(&t->desc) == 0))
      return HONE_OK;
    return hn_fail(error, HONE_ERROR_USAGE, "%s: the tensor is not row-major on the host", function);
  }
  hn_fail(error, HONE_ERROR_INPUT, "post-processing is for numbers");
  hn_error_got(error, "%s", hone_desc_format(&t->desc, text, sizeof text));
  return HONE_ERROR_INPUT;
}

/* A tensor as [before][n][after] around an axis. */
typedef struct lines {
  int64_t before, n, after;
} lines;

static hone_status lines_of(const char *function, const hone_tensor *t, int32_t axis, lines *l,
                            hone_error *error) {
  hone_status status = hn_post_check(function, t, error);
  if (status != HONE_OK) return status;
  const int32_t rank = t->desc.rank, a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    return hn_fail(error, HONE_ERROR_INPUT, "%s: a tensor of %d dimensions has no axis %d", function, rank,
                   axis);
  *l = (lines){1, t->desc.dim[a], 1};
  for (int32_t k = 0; k < rank; k++) *(k < a ? &l->before : &l->after) *= k == a ? 1 : t->desc.dim[k];
  return HONE_OK;
}

hone_status hone_post_softmax(const hone_tensor *in, int32_t axis, float *out, hone_error *error) {
  lines l;
  const hone_status status = lines_of("hone_post_softmax", in, axis, &l, error);
  if (status != HONE_OK) return status;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_post_softmax: out may not be NULL");
  for (int64_t line = 0; line < l.before * l.after; line++) {
    const int64_t first = line / l.after * l.n * l.after + line % l.after;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < l.n; i++) most = fmax(most, hn_get_f64(in, first + i * l.after));
    for (int64_t i = 0; i < l.n; i++) {
      const double e = exp(hn_get_f64(in, first + i * l.after) - most);
      out[first + i * l.after] = (float)e;
      sum += e;
    }
    for (int64_t i = 0; i < l.n; i++) out[first + i * l.after] = (float)(out[first + i * l.after] / sum);
  }
  return HONE_OK;
}

hone_status hone_post_sigmoid(const hone_tensor *in, float *out, hone_error *error) {
  const hone_status status = hn_post_check("hone_post_sigmoid", in, error);
  if (status != HONE_OK) return status;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_post_sigmoid: out may not be NULL");
  const int64_t n = hone_desc_count(&in->desc);
  for (int64_t i = 0; i < n; i++) out[i] = (float)(1 / (1 + exp(-hn_get_f64(in, i))));
  return HONE_OK;
}

/* a comes after b in the list. */
static bool worse(hone_ranked a, hone_ranked b) {
  return a.score != b.score ? a.score < b.score : a.index > b.index;
}

static int by_rank(const void *a, const void *b) {
  const hone_ranked x = *(const hone_ranked *)a, y = *(const hone_ranked *)b;
  return worse(x, y) ? 1 : worse(y, x) ? -1 : 0;
}

/* A heap with the worst at its root: what is worse than the k-th best never gets in. */
static void sink(hone_ranked *heap, uint32_t n, uint32_t at) {
  for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && worse(heap[child + 1], heap[child])) child++;
    if (!worse(heap[child], heap[at])) return;
    const hone_ranked t = heap[at];
    heap[at] = heap[child];
    heap[child] = t;
  }
}

hone_status hone_post_top_k(const float *scores, uint32_t n, uint32_t k, float least, hone_ranked *out,
                            uint32_t *count, hone_error *error) {
  if ((n && !scores) || (n && k && !out) || !count)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_top_k: scores, out and count may not be NULL");
  uint32_t kept = 0;
  for (uint32_t i = 0; k && i < n; i++) {
    const hone_ranked r = {i, scores[i]};
    if (!(r.score >= least)) continue;
    if (kept < k) {
      out[kept++] = r;
      if (kept == k)
        for (uint32_t at = k / 2; at-- > 0;) sink(out, k, at);
    } else if (worse(out[0], r)) {
      out[0] = r;
      sink(out, k, 0);
    }
  }
  if (kept) qsort(out, kept, sizeof *out, by_rank);
  *count = kept;
  return HONE_OK;
}

hone_status hone_post_argmax(const hone_tensor *in, int32_t axis, int64_t *out, float *score,
                             hone_error *error) {
  lines l;
  const hone_status status = lines_of("hone_post_argmax", in, axis, &l, error);
  if (status != HONE_OK) return status;
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_post_argmax: out may not be NULL");
  if (!l.n) return hn_fail(error, HONE_ERROR_INPUT, "hone_post_argmax: axis %d has no values", axis);
  for (int64_t line = 0; line < l.before * l.after; line++) {
    const int64_t first = line / l.after * l.n * l.after + line % l.after;
    int64_t best = 0;
    double most = hn_get_f64(in, first);
    for (int64_t i = 1; i < l.n; i++) {
      const double v = hn_get_f64(in, first + i * l.after);
      if (isnan(most) ? isnan(v) : !(v > most)) continue;
      most = v;
      best = i;
    }
    out[line] = best;
    if (score) score[line] = (float)most;
  }
  return HONE_OK;
}
