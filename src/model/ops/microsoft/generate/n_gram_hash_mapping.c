/* NGramHashMapping: for each token and each length n of 2 and more, its number and those of the n - 1 tokens
 * before it, each times an odd multiplier, joined by xor; modulo the size of each head's table. Where there
 * is no token before, or a text ended in between, another number stands for it. The last tokens are the
 * second result, for the call that goes on. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/inner.h"

enum { IDS, MULTIPLIERS, SIZES, PAST, OFFSETS, END, SEGMENTS };
enum { MOST_N = 64 };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *ids = io->input[IDS];
  const int64_t n = hone_node_int(io->node, "max_ngram_size", 0),
                heads = hone_node_int(io->node, "n_head_per_ngram", 0);
  if (n < 2 || n > MOST_N)
    return hn_op_bad(io->node, error, "max_ngram_size is %lld, expected 2 to %d", (long long)n, MOST_N);
  if (heads < 1 || heads > INT32_MAX)
    return hn_op_bad(io->node, error, "n_head_per_ngram is %lld", (long long)heads);
  if (ids->rank >= 0 && ids->rank != 2)
    return hn_op_bad(io->node, error, "input_ids have rank %d, expected 2", (int)ids->rank);
  const int64_t batch = hn_dim(ids, 0), all = (n - 1) * heads, past[2] = {batch, n - 1},
                tokens[2] = {batch, hn_dim(ids, 1)};
  hone_status s = hn_infer_vector(io, MULTIPLIERS, HONE_DIM_UNKNOWN, error);
  const int64_t given = hn_dim(io->input[MULTIPLIERS], 0);
  if (!s && given >= 0 && given < n)
    s = hn_op_bad(io->node, error, "%lld multipliers for n-grams of up to %lld", (long long)given,
                  (long long)n);
  if (!s) s = hn_infer_vector(io, SIZES, all, error);
  if (!s) s = hn_infer_dims(io, PAST, "past_ids", 2, past, error);
  if (!s) s = hn_infer_vector(io, OFFSETS, all, error);
  if (!s) s = hn_infer_dims(io, SEGMENTS, "segment_ids", 2, tokens, error);
  for (uint32_t i = MULTIPLIERS; i <= END && !s; i++)
    if (hn_has_input(io, i)) s = hn_infer_same_dtype(io, IDS, i, error);
  if (!s) s = hn_infer_dtype_in(io, SEGMENTS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && hn_has_input(io, END) && io->input[END]->rank >= 0 &&
      hn_dims_differ(hone_desc_count(io->input[END]), 1))
    s = hn_op_bad(io->node, error, "eos_token_id is not one number");
  if (s) return s;
  hn_infer_set(io, 0, ids->dtype, 3, (const int64_t[]){batch, tokens[1], all});
  hn_infer_set(io, 1, ids->dtype, 2, past);
  return HONE_OK;
}

typedef struct text {
  const hone_call *call;
  int64_t tokens, before, fill; /* before: of the past; fill: where no token is */
  bool ends;                    /* an end hides what was before it */
} text;

/* Token i of row b; those of the past are below 0. */
static int64_t token(const text *t, int64_t b, int64_t i) {
  if (i >= 0) return hn_get_i64(t->call->input[IDS], b * t->tokens + i);
  return hn_call_has(t->call, PAST) ? hn_get_i64(t->call->input[PAST], b * t->before + t->before + i)
                                    : t->fill;
}

/* How many tokens before i are of its text, up to `before`. */
static int64_t reach(const text *t, int64_t b, int64_t i) {
  const hone_tensor *segment = hn_call_has(t->call, SEGMENTS) ? t->call->input[SEGMENTS] : NULL;
  int64_t k = 0;
  for (; k < t->before; k++) {
    const int64_t at = i - k; /* the first so far */
    if (t->ends && token(t, b, at - 1) == t->fill) break;
    if (segment && at > 0 &&
        hn_get_i64(segment, b * t->tokens + at) != hn_get_i64(segment, b * t->tokens + at - 1))
      break;
  }
  return k;
}

/* As ids of i32 wrap, too. */
static uint64_t wrapped(uint64_t v, bool wide) { return wide ? v : (uint64_t)(int64_t)(int32_t)(uint32_t)v; }

static void hash(const text *t, int64_t b, int64_t i, hone_tensor *out) {
  const hone_call *call = t->call;
  const int64_t n = t->before + 1, heads = hone_node_int(call->node, "n_head_per_ngram", 1),
                near = reach(t, b, i);
  const bool wide = call->input[IDS]->desc.dtype == HONE_DTYPE_I64;
  uint64_t mix = 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t id = k > near ? t->fill : token(t, b, i - k);
    mix ^= wrapped((uint64_t)id * (uint64_t)hn_get_i64(call->input[MULTIPLIERS], k), wide);
    for (int64_t h = 0; k > 0 && h < heads; h++) {
      const int64_t at = (k - 1) * heads + h, size = hn_get_i64(call->input[SIZES], at),
                    rest = (int64_t)mix % size;
      uint64_t y = (uint64_t)(rest < 0 ? rest + size : rest);
      if (hn_call_has(call, OFFSETS)) y += (uint64_t)hn_get_i64(call->input[OFFSETS], at);
      hn_set_i64(out, (b * t->tokens + i) * t->before * heads + at, (int64_t)wrapped(y, wide));
    }
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *ids = call->input[IDS], *sizes = call->input[SIZES];
  const bool end = hn_call_has(call, END);
  const text t = {call, ids->desc.dim[1], hone_node_int(call->node, "max_ngram_size", 2) - 1,
                  end ? hn_get_i64(call->input[END], 0) : hone_node_int(call->node, "pad_id", 0),
                  end && hone_node_int(call->node, "reset_on_eos", 0)};
  for (int64_t i = 0; i < hn_count(sizes); i++)
    if (hn_get_i64(sizes, i) < 1)
      return hn_op_bad(call->node, error, "vocab_sizes[%lld] is %lld", (long long)i,
                       (long long)hn_get_i64(sizes, i));
  for (int64_t b = 0; b < ids->desc.dim[0]; b++) {
    for (int64_t i = 0; i < t.tokens; i++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      hash(&t, b, i, call->output[0]);
    }
    for (int64_t k = 0; call->n_outputs > 1 && call->output[1] && k < t.before; k++)
      hn_set_i64(call->output[1], b * t.before + k, token(&t, b, t.tokens - t.before + k));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "max_ngram_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "n_head_per_ngram", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "pad_id", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "reset_on_eos", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(n_gram_hash_mapping) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "NGramHashMapping",
                              .since = 1,
                              HN_INPUTS(3, 7),
                              HN_OUTPUTS(1, 2),
                              .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
                              .attrs = attrs,
                              .infer = infer,
                              .reference = reference};
