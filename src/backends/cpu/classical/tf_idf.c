/* TfIdfVectorizer by two tables of hashes: tokens of the pool become numbers, and n-grams of these are found
 * at once. The reference walks through the pool for every place of a text. */
#include <math.h>
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/integers.h"
#include "model/ops/text/tf_idf_vectorizer.h"

enum { PER_TASK = 4096 /* tokens */ };
#define MOST_PLACES 5e7 /* half a second */

/* Behind it: slot of a token [token_mask + 1], slot of an n-gram [gram_mask + 1], each a place in the pool
 * plus one, 0: free; token[place]: the first place of the same token. */
typedef struct head {
  uint64_t token_mask, gram_mask;
} head;

static uint32_t *token_slots(const head *h) { return (uint32_t *)(uintptr_t)(h + 1); }
static uint32_t *gram_slots(const head *h) { return token_slots(h) + h->token_mask + 1; }
static uint32_t *token_of(const head *h) { return gram_slots(h) + h->gram_mask + 1; }

static uint64_t slots_for(size_t n) {
  uint64_t slots = 4;
  while (slots < 2 * (uint64_t)n) slots *= 2;
  return slots;
}

static size_t blob_bytes(size_t size) {
  return sizeof(head) + (2 * slots_for(size) + size) * sizeof(uint32_t);
}

static uint64_t mixed(uint64_t v) {
  v = (v ^ v >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return v ^ v >> 29;
}

/* One token, wherever it stands. */
typedef struct token {
  int64_t number;
  hone_string text;
} token;

static token pool_token(const hn_tf_idf_pool *p, size_t at) {
  return p->string ? (token){.text = p->string[at]} : (token){.number = p->number[at]};
}

/* The slot of a token: where it stands, or a free one. */
static uint64_t token_slot(const head *h, const hn_tf_idf_pool *p, const token *t) {
  const uint32_t *slot = token_slots(h);
  uint64_t at = p->string ? hn_hash(t->text.ptr, t->text.len, 0) : mixed((uint64_t)t->number);
  for (at &= h->token_mask; slot[at]; at = (at + 1) & h->token_mask) {
    const token k = pool_token(p, slot[at] - 1);
    if (p->string ? k.text.len == t->text.len && (!k.text.len || !memcmp(k.text.ptr, t->text.ptr, k.text.len))
                  : k.number == t->number)
      break;
  }
  return at;
}

/* The slot of the n-gram whose tokens are id[0], id[step]... */
static uint64_t gram_slot(const head *h, const hn_tf_idf_pool *p, const uint32_t *id, int64_t step,
                          int64_t n) {
  const uint32_t *slot = gram_slots(h), *of = token_of(h);
  const int64_t from = p->count[n - 1], to = n < (int64_t)p->n_counts ? p->count[n] : (int64_t)p->size;
  uint64_t at = (uint64_t)n;
  for (int64_t k = 0; k < n; k++) at = mixed(at ^ (uint64_t)id[k * step] << 8);
  for (at &= h->gram_mask; slot[at]; at = (at + 1) & h->gram_mask) {
    const int64_t place = slot[at] - 1;
    int64_t k = 0;
    if (place < from || place >= to) continue;
    while (k < n && of[place + k] == id[k * step]) k++;
    if (k == n) break;
  }
  return at;
}

/* In how many places n-grams of the pool's lengths, with all skips, are looked for. */
static double places(const hone_step *s, const hn_tf_idf_pool *p) {
  const hone_tensor_desc *x = &s->input[0].desc;
  const double length = x->rank > 0 ? (double)x->dim[x->rank - 1] : 1;
  double each = 1; /* of one token: it is looked up itself */
  for (int64_t n = p->min_gram; n <= p->max_gram && (double)n <= length; n++)
    each += n == 1 ? 1 : fmin((double)p->skips + 1, length / (double)(n - 1));
  return (double)hone_desc_count(x) * each;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  hn_tf_idf_pool p;
  hone_error error = {0};
  (void)m;
  if (!hn_step_plain(x) || !hn_step_plain(&s->output[0].desc))
    return hn_refuse(why, "a tensor is not row-major");
  if (s->output[0].desc.dtype != HONE_DTYPE_F32)
    return hn_refuse(why, "the result is %s", hone_dtype_name(s->output[0].desc.dtype));
  if (hn_tf_idf_pool_of(s->node, &p, &error) != HONE_OK) return hn_refuse(why, "%s", error.what);
  if (p.size >= INT32_MAX / 4) return hn_refuse(why, "the pool has %zu tokens", p.size);
  /* The reference asks from time to time whether the run is over. */
  if (places(s, &p) > MOST_PLACES) return hn_refuse(why, "%.0f places are looked at", places(s, &p));
  return true;
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double bytes =
      (double)hone_desc_bytes(&s->input[0].desc) + (double)hone_desc_bytes(&s->output[0].desc);
  hn_tf_idf_pool p;
  hone_error error = {0};
  const double looked = hn_tf_idf_pool_of(s->node, &p, &error) == HONE_OK ? places(s, &p) : 0;
  return hn_step_seconds(m, 0, bytes, 1) + (double)hone_desc_count(&s->input[0].desc) * 4e-8 + looked * 1e-8;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  hn_tf_idf_pool p;
  (void)m;
  hone_status status = hn_tf_idf_pool_of(s->node, &p, error);
  if (status != HONE_OK) return status;
  n->blob_bytes = blob_bytes(p.size);
  n->workspace_bytes = (size_t)hone_desc_count(&s->input[0].desc) * sizeof(uint32_t);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  head *h = blob;
  hn_tf_idf_pool p;
  (void)m;
  hone_status status = hn_tf_idf_pool_of(s->node, &p, error);
  if (status != HONE_OK) return status;
  h->token_mask = h->gram_mask = slots_for(p.size) - 1;
  uint32_t *slot = token_slots(h), *of = token_of(h);
  memset(slot, 0, (size_t)((char *)of - (char *)slot));
  for (size_t i = 0; i < p.size; i++) {
    const token t = pool_token(&p, i);
    const uint64_t at = token_slot(h, &p, &t);
    if (!slot[at]) slot[at] = (uint32_t)i + 1;
    of[i] = slot[at] - 1;
  }
  slot = gram_slots(h);
  for (int64_t n = 1; n <= p.max_gram; n++) {
    const int64_t to = n < (int64_t)p.n_counts ? p.count[n] : (int64_t)p.size;
    for (int64_t i = p.count[n - 1]; i < to; i += n) {
      const uint64_t at = gram_slot(h, &p, of + i, 1, n);
      if (!slot[at]) slot[at] = (uint32_t)i + 1;
    }
  }
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  const hn_tf_idf_pool *pool;
  int64_t rows, length, at_once;
} job;

static token row_token(const hone_step_run *r, int64_t i) {
  const void *x = r->in[0];
  switch (r->step->input[0].desc.dtype) {
  case HONE_DTYPE_STRING: return (token){.text = ((const hone_string *)x)[i]};
  case HONE_DTYPE_I32: return (token){.number = ((const int32_t *)x)[i]};
  default: return (token){.number = ((const int64_t *)x)[i]};
  }
}

static void count_grams(const job *j, const uint32_t *id, float *y, int64_t n, int64_t first) {
  const hn_tf_idf_pool *p = j->pool;
  const head *h = j->run->blob;
  const uint32_t *slot = gram_slots(h);
  for (int64_t step = 1; step - 1 <= (n == 1 ? 0 : p->skips) && (n - 1) * step < j->length; step++)
    for (int64_t start = 0; start + (n - 1) * step < j->length; start++) {
      int64_t k = 0;
      while (k < n && id[start + k * step] != UINT32_MAX) k++;
      if (k < n) continue;
      const uint32_t found = slot[gram_slot(h, p, id + start, step, n)];
      if (!found) continue;
      const int64_t gram = first + (found - 1 - p->count[n - 1]) / n;
      float *to = &y[p->index[gram]];
      const float w = p->weight ? p->weight[gram] : 1;
      *to = p->once ? w : *to + w;
    }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_tf_idf_pool *p = j->pool;
  const head *h = j->run->blob;
  (void)thread;
  for (int64_t r = index * j->at_once; r < hn_min(j->rows, (index + 1) * j->at_once); r++) {
    uint32_t *id = (uint32_t *)j->run->workspace + r * j->length;
    float *y = (float *)j->run->out[0] + r * p->outputs;
    memset(y, 0, (size_t)p->outputs * sizeof *y);
    for (int64_t i = 0; i < j->length; i++) {
      const token t = row_token(j->run, r * j->length + i);
      id[i] = token_slots(h)[token_slot(h, p, &t)] - 1; /* UINT32_MAX: no token of the pool */
    }
    int64_t first = 0;
    for (int64_t n = 1; n <= p->max_gram; n++) {
      const int64_t to = n < (int64_t)p->n_counts ? p->count[n] : (int64_t)p->size;
      if (n >= p->min_gram + HN_FAULT("tf_idf_short_grams")) count_grams(j, id, y, n, first);
      first += (to - p->count[n - 1]) / n;
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hone_tensor_desc *x = &r->step->input[0].desc;
  hn_tf_idf_pool p;
  hone_status status = hn_tf_idf_pool_of(r->step->node, &p, error);
  if (status != HONE_OK) return status;
  job j = {r, &p, x->rank == 2 ? x->dim[0] : 1, x->dim[x->rank - 1], 1};
  j.at_once = hn_max(1, PER_TASK / hn_max(1, j.length));
  const int64_t tasks = hn_div_up(j.rows, j.at_once);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, tf_idf, "TfIdfVectorizer", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
