/* PagedAttention: new keys and values go into their pages, then each text's are brought together out of the
 * pages and attention reads them there. With one new token of a text the heads of a group are the rows of one
 * product, so that each key and value is read once for all of them. */
#include <math.h>
#include <string.h>

#include "backends/cpu/attention/attention_driver.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { Q, K, V, KEYS, VALUES, STARTS, PAST, TABLE, COS, SIN, SLOTS, FURTHER };
enum { Y, KEYS_OUT, VALUES_OUT };
enum {
  MOST_TOKENS = 4096,
  PIECE = 1 << 20
}; /* of a text for which plans are compared; bytes of a cache that are copied at once */

typedef struct blob_head {
  int64_t texts, tokens, heads, kv_heads, size;
  int64_t pages, page, columns; /* columns: pages that a text may have */
  int64_t row[3], at[3];        /* of Q, K and V: values a token, place of the first one */
  int64_t half, turns;          /* pairs that are turned, positions that the caches have; else 0 */
  int64_t window, scratch;      /* floats that attention needs */
  uint64_t l1, l2;
  uint32_t threads;
  hn_isa isa;
  float scale, cap;
  bool neighbours, causal;
} blob_head;

/* Floats, before attention's own: turned queries, and a text's keys and values. */
static int64_t turned_floats(const blob_head *h) {
  return h->half ? hn_fill_up(h->tokens * h->heads * h->size, 16) : 0;
}
/* Tokens that a text can have: those of its row of the table, and no more than there are pages. */
static int64_t room(const blob_head *h) { return hn_min(h->columns, h->pages) * h->page; }
static int64_t text_floats(const blob_head *h) { return hn_fill_up(h->kv_heads * room(h) * h->size, 16); }

/* Attention of `n` new tokens of a text, for as many keys as there can be. */
static bool plan_text(const blob_head *h, int64_t n, hn_attention *p) {
  const int64_t group = h->heads / h->kv_heads, size = h->size, q_row = h->half ? h->heads * size : h->row[Q];
  *p = (hn_attention){
      .isa = h->isa, .keys = room(h), .depth = size, .depth_v = size, .k_row = size, .k_col = 1};
  p->v_row = size, p->scale = h->scale, p->cap = h->cap;
  p->batch[0] = h->kv_heads;
  p->q_batch[0] = p->y_batch[0] = group * size;
  p->k_batch[0] = p->v_batch[0] = room(h) * size;
  if (n == 1) {
    p->n_batch = 1, p->rows = group, p->q_row = p->y_row = size;
  } else {
    p->n_batch = 2, p->rows = n, p->q_row = q_row, p->y_row = h->heads * size;
    p->batch[1] = group, p->q_batch[1] = p->y_batch[1] = size;
  }
  p->ends = h->causal;
  p->begins = h->window > 0;
  p->window = h->window - 1;
  return hn_attention_has(p) && hn_attention_plan(p, h->threads, h->l1, h->l2);
}

static bool is_plain(const hone_tensor_desc *d, hone_dtype type) {
  return d->dtype == type && hone_desc_known(d) && d->layout == HONE_LAYOUT_ROW_MAJOR;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "paged attention has no epilogue");
  if (s->n_outputs <= VALUES_OUT || s->output[KEYS_OUT].desc.dtype == HONE_DTYPE_NONE ||
      s->output[VALUES_OUT].desc.dtype == HONE_DTYPE_NONE)
    return hn_refuse(why, "the cache is not handed on");
  for (uint32_t i = 0; i < s->n_inputs && i < FURTHER; i++) {
    const hone_dtype type =
        i == STARTS || i == PAST || i == TABLE || i == SLOTS ? HONE_DTYPE_I32 : HONE_DTYPE_F32;
    if (hn_step_has(s, i) && !is_plain(&s->input[i].desc, type))
      return hn_refuse(why, "input %u is not row-major %s of a known shape", i, hone_dtype_name(type));
  }
  for (uint32_t i = 0; i < 3; i++)
    if (!is_plain(&s->output[i].desc, HONE_DTYPE_F32))
      return hn_refuse(why, "output %u is not row-major f32 of a known shape", i);
  const hone_tensor_desc *q = &s->input[Q].desc, *keys = &s->input[KEYS].desc;
  const bool packed = !hn_step_has(s, K);
  h->isa = hn_isa_of(m->isa), h->threads = m->threads, h->l1 = m->l1, h->l2 = m->l2;
  h->texts = s->input[PAST].desc.dim[0], h->tokens = q->dim[0];
  h->heads = hone_node_int(s->node, "num_heads", 0), h->kv_heads = hone_node_int(s->node, "kv_num_heads", 0);
  h->pages = keys->dim[0], h->page = keys->dim[1], h->size = keys->dim[3];
  h->columns = s->input[TABLE].desc.dim[1];
  h->causal = hone_node_int(s->node, "is_causal", 1) != 0;
  h->window = hone_node_int(s->node, "local_window_size", -1);
  if (h->texts < 1 || h->tokens < 1 || h->size < 1 || h->pages < 1 || h->page < 1 || h->columns < 1)
    return hn_refuse(why, "an empty operand");
  if (h->tokens > MOST_TOKENS) return hn_refuse(why, "more than %d tokens", MOST_TOKENS);
  if (!h->causal && h->window > 0) return hn_refuse(why, "a window that looks ahead");
  const float scale = hone_node_float(s->node, "scale", 0), cap = hone_node_float(s->node, "softcap", 0);
  h->scale = scale != 0 ? scale : 1.0f / sqrtf((float)h->size);
  if (cap > 0) h->cap = cap, h->scale /= cap;
  for (int i = 0; i < 3; i++) {
    h->row[i] = packed ? q->dim[1] : (i ? h->kv_heads : h->heads) * h->size;
    h->at[i] = packed && i ? (h->heads + (i - 1) * h->kv_heads) * h->size : 0;
  }
  if (hone_node_int(s->node, "do_rotary", 0)) {
    h->turns = s->input[COS].desc.dim[0], h->half = s->input[COS].desc.dim[1];
    h->neighbours = hone_node_int(s->node, "rotary_interleaved", 0) != 0;
  }
  /* Texts have any number of the tokens: room for the one that needs most. */
  for (int64_t n = 1; n <= h->tokens; n++) {
    hn_attention p;
    if (!plan_text(h, n, &p)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
    h->scratch = hn_max(h->scratch, (int64_t)hn_attention_workspace(&p, h->threads));
  }
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.4);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = (size_t)(turned_floats(&h) + 2 * text_floats(&h) + h.scratch) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (!describe(s, m, blob, &why)) return hn_not_described(s, &why, error);
  return HONE_OK;
}

/* ------------------------------------------------------------------ where things lie */

typedef struct text {
  int64_t start, n, past;
} text;

static text text_of(const hone_step_run *r, int64_t b) {
  const int32_t *starts = r->in[STARTS], *past = r->in[PAST];
  return (text){starts[b], (int64_t)starts[b + 1] - starts[b], past[b]};
}

/* Token `at` of text b in tokens of the cache; < 0: its page is not mapped. */
static int64_t place(const hone_step_run *r, const blob_head *h, int64_t b, int64_t at) {
  const int32_t page = ((const int32_t *)r->in[TABLE])[b * h->columns + at / h->page];
  return page < 0 || page >= h->pages ? -1 : page * h->page + at % h->page;
}

/* Where a new token goes; -1: it is there already. */
static int64_t slot(const hone_step_run *r, const blob_head *h, int64_t b, const text *x, int64_t t) {
  return hn_step_has(r->step, SLOTS) ? ((const int32_t *)r->in[SLOTS])[x->start + t]
                                     : place(r, h, b, x->past + t);
}

static hone_status bad(hone_error *error, const char *what, int64_t a, int64_t b) {
  return hn_fail(error, HONE_ERROR_INPUT, what, (long long)a, (long long)b);
}

static hone_status check(const hone_step_run *r, const blob_head *h, hone_error *error) {
  for (int64_t b = 0; b < h->texts; b++) {
    const text x = text_of(r, b);
    if (x.start < 0 || x.n < 0 || x.start + x.n > h->tokens)
      return bad(error, "PagedAttention: text %lld is not tokens of the %lld that there are", b, h->tokens);
    if (x.past < 0 || x.past > room(h) - x.n)
      return bad(error, "PagedAttention: text %lld has more tokens than its pages, %lld", b, room(h));
    if (h->half && x.n && x.past + x.n > h->turns)
      return bad(error, "PagedAttention: position %lld is not in the caches of %lld", x.past + x.n - 1,
                 h->turns);
    for (int64_t at = 0; x.n && at < x.past + x.n; at += h->page)
      if (place(r, h, b, at) < 0)
        return bad(error, "PagedAttention: page %lld of text %lld is not mapped", at / h->page, b);
    for (int64_t t = 0; t < x.n; t++) {
      const int64_t to = slot(r, h, b, &x, t);
      if (to < -1 || to >= h->pages * h->page)
        return bad(error, "PagedAttention: token %lld has no place among %lld of the cache", x.past + t,
                   h->pages * h->page);
    }
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ tasks */

typedef struct job {
  const hone_step_run *r;
  const blob_head *h;
  const hn_attention_ops *ops;
  int64_t text; /* whose pages are gathered */
  text x;
  float *gathered[2];
} job;

static void copy_cache(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t bytes = j->h->pages * j->h->page * j->h->kv_heads * j->h->size * (int64_t)sizeof(float),
                pieces = hn_div_up(bytes, PIECE), at = index % pieces * PIECE;
  const uint32_t which = (uint32_t)(index / pieces);
  (void)thread;
  if (j->r->out[KEYS_OUT + which] != j->r->in[KEYS + which])
    memcpy((char *)j->r->out[KEYS_OUT + which] + at, (const char *)j->r->in[KEYS + which] + at,
           (size_t)hn_min(PIECE, bytes - at));
}

/* One head of a token, turned by its position. */
static void turn(const job *j, const float *x, float *y, int64_t at) {
  const blob_head *h = j->h;
  const float *c = j->r->in[COS], *s = j->r->in[SIN];
  const int64_t rest = h->size - 2 * h->half;
  j->ops->turn(y, x, c + at * h->half, s + at * h->half, (size_t)h->half, h->neighbours);
  if (rest) memcpy(y + 2 * h->half, x + 2 * h->half, (size_t)rest * sizeof *y);
}

static const float *token_of(const job *j, int which, int64_t token) {
  const blob_head *h = j->h;
  const float *from = h->row[which] && h->at[which] ? j->r->in[Q] : j->r->in[which];
  return from + h->at[which] + token * h->row[which];
}

/* New tokens of all texts, of one head of keys and values and the queries that ask it: into their pages,
 * turned. In the order of the texts, as two of them may be given one place. */
static void take_in(void *arg, int64_t g, uint32_t thread) {
  const job *j = arg;
  const hone_step_run *r = j->r;
  const blob_head *h = j->h;
  const int64_t wide = h->kv_heads * h->size, head = g * h->size, group = h->heads / h->kv_heads;
  const size_t bytes = (size_t)h->size * sizeof(float);
  (void)thread;
  for (int64_t b = 0; b < h->texts; b++) {
    const text x = text_of(r, b);
    for (int64_t t = 0; t < x.n; t++) {
      const int64_t to = HN_FAULT("paged_slot") ? 0 : slot(r, h, b, &x, t);
      const float *k = token_of(j, K, x.start + t) + head, *q = token_of(j, Q, x.start + t);
      float *turned = (float *)r->workspace + (x.start + t) * h->heads * h->size;
      if (to >= 0) {
        float *key = (float *)r->out[KEYS_OUT] + to * wide + head;
        memcpy((float *)r->out[VALUES_OUT] + to * wide + head, token_of(j, V, x.start + t) + head, bytes);
        if (h->half)
          turn(j, k, key, x.past + t);
        else
          memcpy(key, k, bytes);
      }
      for (int64_t i = g * group; h->half && i < (g + 1) * group; i++)
        turn(j, q + i * h->size, turned + i * h->size, x.past + t);
    }
  }
}

/* A page of keys or values of the text, to where its heads lie one after the other. */
static void gather(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t first = index / 2 * h->page, n = hn_min(h->page, j->x.past + j->x.n - first),
                from = place(j->r, h, j->text, first);
  const int which = (int)(index % 2);
  const float *cache = (const float *)j->r->out[KEYS_OUT + which] + from * h->kv_heads * h->size;
  (void)thread;
  for (int64_t g = 0; g < h->kv_heads; g++)
    for (int64_t t = 0; t < n; t++)
      memcpy(j->gathered[which] + (g * room(h) + first + t) * h->size,
             cache + (t * h->kv_heads + g) * h->size, (size_t)h->size * sizeof(float));
}

static void attend(job *j, float *scratch) {
  const hone_step_run *r = j->r;
  const blob_head *h = j->h;
  const text *x = &j->x;
  const float *k = j->gathered[0], *v = j->gathered[1],
              *q = h->half ? (const float *)r->workspace + x->start * h->heads * h->size
                           : token_of(j, Q, x->start);
  hn_attention p;
  plan_text(h, x->n, &p);
  p.place = x->past;
  p.keys = x->past + x->n;
  if (x->n == 1) { /* all rows are of one token */
    const int64_t skip = p.begins && p.place > p.window ? p.place - p.window : 0;
    k += skip * h->size, v += skip * h->size, p.keys -= skip;
    p.begins = p.ends = false;
  }
  hn_attention_exec(&p, q, k, v, NULL, (float *)r->out[Y] + x->start * h->heads * h->size, scratch,
                    r->parallel, r->pool);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hone_status s = check(r, h, error);
  if (s) return s;
  float *at = (float *)r->workspace + turned_floats(h);
  job j = {.r = r, .h = h, .ops = hn_attention_find(h->isa), .gathered = {at, at + text_floats(h)}};
  const int64_t row = h->heads * h->size,
                bytes = h->pages * h->page * h->kv_heads * h->size * (int64_t)sizeof(float);
  memset(r->out[Y], 0, (size_t)(h->tokens * row) * sizeof(float)); /* tokens of no text */
  r->parallel(r->pool, 2 * hn_div_up(bytes, PIECE), copy_cache, &j);
  r->parallel(r->pool, h->kv_heads, take_in, &j);
  for (j.text = 0; j.text < h->texts; j.text++) {
    j.x = text_of(r, j.text);
    if (!j.x.n) continue;
    r->parallel(r->pool, 2 * hn_div_up(j.x.past + j.x.n, h->page), gather, &j);
    attend(&j, at + 2 * text_floats(h));
  }
  return HONE_OK;
}

/* The cache is the one that is handed on: only what is new is written. */
static int32_t over(const hone_step *s, uint32_t i) {
  (void)s;
  return i == KEYS_OUT ? KEYS : i == VALUES_OUT ? VALUES : -1;
}

HN_TACTIC(cpu, paged_attention, "com.microsoft.PagedAttention", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run, .over = over);
