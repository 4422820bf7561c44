/* GroupQueryAttention: new keys and values are written behind those of the cache, which is what is handed on,
 * and attention reads them there. With one new token the heads of a group are the rows of one product, so
 * that each key and value is read once for all of them. A cache of f16 or bf16 is read and written as such:
 * what one input of the batch has in it becomes f32 in scratch, for that input's attention. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/halves/halves.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { Q, K, V, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, FURTHER, SINK };
enum { Y, PRESENT_KEY, PRESENT_VALUE };

typedef struct blob_head {
  hn_attention plan; /* of one input of the batch, for as many keys as there can be */
  int64_t batch, heads, kv_heads, tokens, size;
  int64_t had, room;     /* tokens of the cache that comes and of the one that is handed on */
  int64_t row[3], at[3]; /* of Q, K and V: values a token, place of the first one */
  int64_t half, rows;    /* pairs that are turned, positions that the caches have; else 0 */
  int64_t n_positions, turned_bytes;
  int64_t wide_floats, wide_at, row_at; /* of narrow caches: an input's keys (or values) in f32, and their
                                         * place and that of a row for each thread, in floats of scratch */
  int64_t scratch_floats;               /* before the scratch of attention */
  hone_dtype cache;
  bool neighbours;
} blob_head;

static bool describe_attention(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_attention *p = &h->plan;
  const int64_t group = h->heads / h->kv_heads, size = h->size,
                window = hone_node_int(s->node, "local_window_size", -1),
                q_row = h->half ? h->heads * size : h->row[Q];
  const float scale = hone_node_float(s->node, "scale", 0);
  p->isa = hn_isa_of(m->isa);
  if (!hn_attention_has(p)) return hn_refuse(why, "no kernels for %s", hn_isa_name(p->isa));
  p->keys = h->room, p->depth = p->depth_v = size;
  p->k_row = p->v_row = size, p->k_col = 1;
  p->scale = scale != 0 ? scale : 1.0f / sqrtf((float)size);
  const float cap = hone_node_float(s->node, "softcap", 0);
  if (cap > 0) p->cap = cap, p->scale /= cap;
  p->batch[0] = h->kv_heads;
  p->q_batch[0] = p->y_batch[0] = group * size;
  p->k_batch[0] = p->v_batch[0] = h->room * size;
  p->sinks = hn_step_has(s, SINK) || hone_node_int(s->node, "smooth_softmax", 0) > 0;
  p->sink_batch[0] = group, p->sink_batch[1] = 1, p->sink_row = h->tokens == 1;
  if (h->tokens == 1) {
    p->n_batch = 1, p->rows = group, p->q_row = p->y_row = size;
  } else {
    p->n_batch = 2, p->rows = h->tokens, p->q_row = q_row, p->y_row = h->heads * size;
    p->batch[1] = group, p->q_batch[1] = p->y_batch[1] = size;
  }
  p->ends = hone_node_int(s->node, "causal", 1) != 0;
  p->begins = window > 0;
  p->window = window - 1;
  hn_attention_plan(p, m->threads, m->l1, m->l2);
  return true;
}

static bool is_plain(const hone_tensor_desc *d, hone_dtype type) {
  return d->dtype == type && hone_desc_known(d) && d->layout == HONE_LAYOUT_ROW_MAJOR;
}

static hone_dtype cache_type(const hone_step *s) {
  const hone_dtype t = hn_step_has(s, PAST_KEY) ? s->input[PAST_KEY].desc.dtype : HONE_DTYPE_F32;
  return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16 ? t : HONE_DTYPE_F32;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "group query attention has no epilogue");
  if (s->n_outputs <= PRESENT_VALUE || s->output[PRESENT_KEY].desc.dtype == HONE_DTYPE_NONE ||
      s->output[PRESENT_VALUE].desc.dtype == HONE_DTYPE_NONE)
    return hn_refuse(why, "the cache is not handed on");
  if (hone_node_int(s->node, "qk_output", 0)) return hn_refuse(why, "the scores are handed on, too");
  if (hone_node_int(s->node, "sliding_window_cache", 0) > 0) return hn_refuse(why, "the cache drops tokens");
  for (uint32_t i = FURTHER; i < s->n_inputs; i++)
    if (hn_step_has(s, i) && i != SINK) return hn_refuse(why, "input %u", i);
  if (hn_step_has(s, SINK) && !is_plain(&s->input[SINK].desc, HONE_DTYPE_F32))
    return hn_refuse(why, "head_sink is no row of f32");
  for (uint32_t i = 0; i < s->n_inputs && i < FURTHER; i++) {
    const hone_dtype type = i == POSITIONS                     ? HONE_DTYPE_I64
                            : i == LENGTHS || i == TOTAL       ? HONE_DTYPE_I32
                            : i == PAST_KEY || i == PAST_VALUE ? cache_type(s)
                                                               : HONE_DTYPE_F32;
    if (hn_step_has(s, i) && !is_plain(&s->input[i].desc, type))
      return hn_refuse(why, "input %u is not row-major %s of a known shape", i, hone_dtype_name(type));
  }
  h->cache = cache_type(s);
  for (uint32_t i = 0; i < 3; i++) {
    const hone_dtype type = i ? h->cache : HONE_DTYPE_F32;
    if (!is_plain(&s->output[i].desc, type))
      return hn_refuse(why, "output %u is not row-major %s of a known shape", i, hone_dtype_name(type));
  }
  if (h->cache != HONE_DTYPE_F32 && !hn_halves_find(hn_isa_of(m->isa)))
    return hn_refuse(why, "no kernels for halves");
  const hone_tensor_desc *q = &s->input[Q].desc;
  const bool packed = !hn_step_has(s, K), turned = hone_node_int(s->node, "do_rotary", 0) != 0;
  h->batch = q->dim[0], h->tokens = q->dim[1];
  h->heads = hone_node_int(s->node, "num_heads", 0), h->kv_heads = hone_node_int(s->node, "kv_num_heads", 0);
  h->size = s->output[PRESENT_KEY].desc.dim[3], h->room = s->output[PRESENT_KEY].desc.dim[2];
  h->had = hn_step_has(s, PAST_KEY) ? s->input[PAST_KEY].desc.dim[2] : 0;
  if (h->batch < 1 || h->tokens < 1 || h->size < 1 || h->room < h->tokens || h->had > h->room)
    return hn_refuse(why, "an empty operand");
  for (int i = 0; i < 3; i++) {
    h->row[i] = packed ? q->dim[2] : (i ? h->kv_heads : h->heads) * h->size;
    h->at[i] = packed && i ? (h->heads + (i - 1) * h->kv_heads) * h->size : 0;
  }
  if (turned) {
    h->rows = s->input[COS].desc.dim[0], h->half = s->input[COS].desc.dim[1];
    h->neighbours = hone_node_int(s->node, "rotary_interleaved", 0) != 0;
    h->n_positions = hn_step_has(s, POSITIONS) ? hone_desc_count(&s->input[POSITIONS].desc) : 0;
    h->turned_bytes = h->half ? h->batch * h->tokens * h->heads * h->size * (int64_t)sizeof(float) : 0;
  }
  return describe_attention(s, m, h, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.4);
}

/* Floats before the scratch of attention. */
static int64_t scratch_at(blob_head *h, const hone_machine *m) {
  enum { FLOATS = 16 };
  const bool narrow = h->cache != HONE_DTYPE_F32;
  h->wide_at = hn_fill_up(h->turned_bytes, 64) / (int64_t)sizeof(float);
  h->wide_floats = narrow ? hn_fill_up(h->kv_heads * h->room * h->size, FLOATS) : 0;
  h->row_at = h->wide_at + 2 * h->wide_floats;
  return h->row_at + (narrow ? hn_fill_up(h->size, FLOATS) * (int64_t)m->threads : 0);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes =
      (size_t)scratch_at(&h, m) * sizeof(float) + hn_attention_workspace(&h.plan, m->threads) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (!describe(s, m, blob, &why)) return hn_not_described(s, &why, error);
  ((blob_head *)blob)->scratch_floats = scratch_at(blob, m);
  return HONE_OK;
}

/* Tokens of input b that stood in the cache before: none where the call is about all there are. */
static int64_t before(const hone_step_run *r, const blob_head *h, int64_t b) {
  if (((const int32_t *)r->in[TOTAL])[0] == h->tokens) return 0;
  return (int64_t)((const int32_t *)r->in[LENGTHS])[b] + 1 - h->tokens;
}

static int64_t position(const hone_step_run *r, const blob_head *h, int64_t b, int64_t t) {
  const int64_t *p = h->n_positions ? r->in[POSITIONS] : NULL;
  if (!p) return before(r, h, b) + t;
  return h->n_positions == 1 ? p[0] + t : p[b * h->tokens + t];
}

static const float *input(const hone_step_run *r, const blob_head *h, int which, int64_t b) {
  const float *from = h->row[which] && h->at[which] ? r->in[Q] : r->in[which];
  return from + h->at[which] + b * h->tokens * h->row[which];
}

/* One head of a token, turned or as it is. */
static void put(const hone_step_run *r, const blob_head *h, const hn_attention_ops *ops, const float *x,
                float *y, int64_t at) {
  const float *c = r->in[COS], *s = r->in[SIN];
  const int64_t rest = h->size - 2 * h->half;
  ops->turn(y, x, c + at * h->half, s + at * h->half, (size_t)h->half, h->neighbours);
  if (rest) memcpy(y + 2 * h->half, x + 2 * h->half, (size_t)rest * sizeof *y);
}

static void to_cache(const blob_head *h, void *to, const float *from, int64_t n) {
  const struct hn_halves_ops *o = h->cache == HONE_DTYPE_F32 ? NULL : hn_halves_find(h->plan.isa);
  if (!o)
    memcpy(to, from, (size_t)n * sizeof *from);
  else if (h->cache == HONE_DTYPE_F16)
    o->to_f16(to, from, (size_t)n);
  else
    o->to_bf16(to, from, (size_t)n);
}

/* A head of keys or values: the cache, the new ones behind it, and zeros. */
static void hand_on(const hone_step_run *r, const blob_head *h, int which, int64_t b, int64_t head,
                    float *row) {
  const hn_attention_ops *ops = hn_attention_find(h->plan.isa);
  const int64_t one = b * h->kv_heads + head, size = h->size, old = before(r, h, b);
  const size_t token = (size_t)size * hone_dtype_size(h->cache);
  const char *past =
      h->had ? (const char *)r->in[which == K ? PAST_KEY : PAST_VALUE] + (size_t)(one * h->had) * token
             : NULL;
  char *y = (char *)r->out[which == K ? PRESENT_KEY : PRESENT_VALUE] + (size_t)(one * h->room) * token;
  const float *x = input(r, h, which, b) + head * size;
  const bool turns = which == K && h->half, narrow = h->cache != HONE_DTYPE_F32;
  if (past && past != y) memcpy(y, past, (size_t)h->had * token);
  memset(y + (size_t)h->had * token, 0, (size_t)(h->room - h->had) * token);
  y += (size_t)(HN_FAULT("group_query_place") ? 0 : old) * token;
  for (int64_t t = 0; t < h->tokens; t++, y += token, x += h->row[which]) {
    if (turns) put(r, h, ops, x, narrow ? row : (float *)(void *)y, position(r, h, b, t));
    if (narrow || !turns) to_cache(h, y, turns ? row : x, size);
  }
}

/* What input b has in a narrow cache, a head of keys or values a task, in f32. */
typedef struct widening {
  const hone_step_run *r;
  int64_t b, from, n; /* tokens */
} widening;

static void widen(void *arg, int64_t index, uint32_t thread) {
  const widening *w = arg;
  const blob_head *h = w->r->blob;
  const struct hn_halves_ops *o = hn_halves_find(h->plan.isa);
  const int64_t head = index / 2, at = ((w->b * h->kv_heads + head) * h->room + w->from) * h->size;
  const char *x = (const char *)w->r->out[index % 2 ? PRESENT_VALUE : PRESENT_KEY] + at * 2;
  float *y = (float *)w->r->workspace + h->wide_at + index % 2 * h->wide_floats + head * w->n * h->size;
  const size_t n = (size_t)(w->n - (HN_FAULT("group_query_widens_less") ? 1 : 0)) * (size_t)h->size;
  (void)thread;
  if (h->cache == HONE_DTYPE_F16)
    o->from_f16(y, x, n);
  else
    o->from_bf16(y, x, n);
}

static void prepare(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_attention_ops *ops = hn_attention_find(h->plan.isa);
  const int64_t each = 2 * h->kv_heads, caches = h->batch * each;
  if (index < caches) {
    float *row = (float *)r->workspace + h->row_at + (int64_t)thread * hn_fill_up(h->size, 16);
    hand_on(r, h, index % 2 ? V : K, index / each, index % each / 2, row);
    return;
  }
  const int64_t token = index - caches, b = token / h->tokens, t = token % h->tokens,
                at = position(r, h, b, t);
  const float *x = input(r, h, Q, b) + t * h->row[Q];
  float *y = (float *)r->workspace + token * h->heads * h->size;
  for (int64_t i = 0; i < h->heads; i++) put(r, h, ops, x + i * h->size, y + i * h->size, at);
}

static hone_status check(const hone_step_run *r, const blob_head *h, hone_error *error) {
  for (int64_t b = 0; b < h->batch; b++) {
    const int64_t old = before(r, h, b);
    if (old < 0 || old > h->had || old + h->tokens > h->room)
      return hn_fail(
          error, HONE_ERROR_INPUT,
          "GroupQueryAttention: seqlens_k of input %lld is %lld, with %lld tokens and a cache of %lld",
          (long long)b, (long long)(old + h->tokens - 1), (long long)h->tokens, (long long)h->had);
    for (int64_t t = 0; t < h->tokens && h->half; t++)
      if (position(r, h, b, t) < 0 || position(r, h, b, t) >= h->rows)
        return hn_fail(error, HONE_ERROR_INPUT,
                       "GroupQueryAttention: position %lld is not in the caches of %lld",
                       (long long)position(r, h, b, t), (long long)h->rows);
  }
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hone_status s = check(r, h, error);
  if (s) return s;
  const int64_t caches = 2 * h->batch * h->kv_heads, q_row = h->half ? h->heads * h->size : h->row[Q];
  const int64_t each = h->kv_heads * h->room * h->size;
  const bool narrow = h->cache != HONE_DTYPE_F32;
  float *scratch = (float *)r->workspace + h->scratch_floats;
  r->parallel(r->pool, caches + (h->half ? h->batch * h->tokens : 0), prepare, (void *)(uintptr_t)r);
  for (int64_t b = 0; b < h->batch; b++) {
    hn_attention p = h->plan;
    const float *q = h->half ? (const float *)r->workspace + b * h->tokens * q_row : input(r, h, Q, b), *k,
                *v;
    float *y = (float *)r->out[Y] + b * h->tokens * h->heads * h->size;
    int64_t skip = 0;
    p.sink = hn_step_has(r->step, SINK) && !HN_FAULT("group_query_sink") ? r->in[SINK] : NULL;
    p.place = before(r, h, b);
    p.keys = p.place + h->tokens;
    if (h->tokens == 1) { /* all rows are of one token */
      skip = p.begins && p.place > p.window ? p.place - p.window : 0;
      p.keys -= skip;
      p.begins = p.ends = false;
    }
    if (narrow) {
      widening w = {r, b, skip, p.keys};
      r->parallel(r->pool, 2 * h->kv_heads, widen, &w);
      k = (const float *)r->workspace + h->wide_at, v = k + h->wide_floats;
      p.k_batch[0] = p.v_batch[0] = p.keys * h->size;
    } else {
      k = (const float *)r->out[PRESENT_KEY] + b * each + skip * h->size;
      v = (const float *)r->out[PRESENT_VALUE] + b * each + skip * h->size;
    }
    hn_attention_exec(&p, q, k, v, NULL, y, scratch, r->parallel, r->pool);
  }
  return HONE_OK;
}

/* A cache that does not grow is the one that is handed on: what is behind the new tokens stays. */
static int32_t over(const hone_step *s, uint32_t i) {
  if (i != PRESENT_KEY && i != PRESENT_VALUE) return -1;
  const uint32_t past = i == PRESENT_KEY ? PAST_KEY : PAST_VALUE;
  return hn_step_has(s, past) && s->input[past].desc.dtype == s->output[i].desc.dtype &&
                 hone_desc_same_dims(&s->input[past].desc, &s->output[i].desc)
             ? (int32_t)past
             : -1;
}

HN_TACTIC(cpu, group_query_attention, "com.microsoft.GroupQueryAttention", 4, .accepts = accepts,
          .cost = cost, .need = need, .prepack = prepack, .run = run, .over = over);
