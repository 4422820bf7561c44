#include "model/ops/microsoft/generate/n_gram.h"

#include "base/integers.h"

hone_status hn_n_gram_check(const hone_node *node, int64_t *before, int64_t *heads, hone_error *error) {
  const int64_t n = hone_node_int(node, "max_ngram_size", 0);
  *heads = hone_node_int(node, "n_head_per_ngram", 0);
  if (n < 2 || n > HN_N_GRAM_MOST)
    return hn_op_bad(node, error, "max_ngram_size is %lld, expected 2 to %d", (long long)n, HN_N_GRAM_MOST);
  if (*heads < 1 || *heads > INT32_MAX)
    return hn_op_bad(node, error, "n_head_per_ngram is %lld", (long long)*heads);
  *before = n - 1;
  return HONE_OK;
}

hone_status hn_n_gram_check_sizes(const hone_node *node, const hone_tensor *sizes, hone_error *error) {
  for (int64_t i = 0; i < hn_count(sizes); i++)
    if (hn_get_i64(sizes, i) < 1)
      return hn_op_bad(node, error, "vocab_sizes[%lld] is %lld", (long long)i,
                       (long long)hn_get_i64(sizes, i));
  return HONE_OK;
}

int64_t hn_n_gram_token(const hn_n_gram_text *t, int64_t i) {
  if (i >= 0) return hn_get_i64(t->ids, t->first + i);
  return t->past && t->before + i >= 0 ? hn_get_i64(t->past, (t->row + 1) * t->before + i) : t->fill;
}

/* Whether another part of the text begins at token i. */
static bool begins(const hn_n_gram_text *t, int64_t i) {
  if (!t->segments || (i <= 0 && !t->past_segments) || i <= -t->before) return false;
  const int64_t end = (t->row + 1) * t->before,
                here = i < 0 ? hn_get_i64(t->past_segments, end + i) : hn_get_i64(t->segments, t->first + i),
                last = i < 1 ? hn_get_i64(t->past_segments, end + i - 1)
                             : hn_get_i64(t->segments, t->first + i - 1);
  return here != last;
}

/* How many tokens before i are of its text, up to `before`. */
static int64_t reach(const hn_n_gram_text *t, int64_t i) {
  int64_t k = 0;
  for (; k < t->before; k++) {
    const int64_t at = i - k; /* the first so far */
    if ((t->ends && hn_n_gram_token(t, at - 1) == t->fill) || begins(t, at)) break;
  }
  return k;
}

/* As ids of i32 wrap, too. */
static uint64_t wrapped(uint64_t v, bool wide) { return wide ? v : (uint64_t)(int64_t)(int32_t)(uint32_t)v; }

void hn_n_gram_hash(const hn_n_gram_text *t, int64_t i, hone_tensor *out, int64_t at) {
  const int64_t near = reach(t, i);
  const bool wide = t->ids->desc.dtype == HONE_DTYPE_I64;
  uint64_t mix = 0;
  for (int64_t k = 0; k <= t->before; k++) {
    const int64_t id = k > near ? t->fill : hn_n_gram_token(t, i - k);
    mix ^= wrapped((uint64_t)id * (uint64_t)hn_get_i64(t->multipliers, k), wide);
    for (int64_t h = 0; k > 0 && h < t->heads; h++) {
      const int64_t head = (k - 1) * t->heads + h, size = hn_get_i64(t->sizes, head),
                    rest = (int64_t)mix % size;
      uint64_t y = (uint64_t)(rest < 0 ? rest + size : rest);
      if (t->offsets) y += (uint64_t)hn_get_i64(t->offsets, head);
      hn_set_i64(out, at + head, (int64_t)wrapped(y, wide));
    }
  }
}
