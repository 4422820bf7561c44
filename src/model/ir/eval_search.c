/* GreedySearch and Sampling: a text goes on with the likeliest word, or with one drawn of the likeliest,
 * until every text has met its end or the longest length is reached. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/ir/search.h"

enum { PRESENCE = 7, SEED }; /* what Sampling takes beside the rest */
static const uint8_t places[HN_SEARCH_N_IN] = {0, 1, 2, 3, 4, 5, 6, HN_SEARCH_NOWHERE};

/* How Sampling draws. */
typedef struct lot {
  float temperature, top_p, filter, presence_penalty;
  int64_t least; /* words that stay, however likely the first are */
  bool custom;
  const int32_t *presence; /* [batch][words] */
  hn_rng rng;
  int32_t *order;   /* [words], a heap */
  double *sum;      /* [words] */
  hone_tensor *out; /* filtered_logits; NULL: not wanted */
} lot;

/* Of equal words the last goes before, as where words are taken away from the least likely on; in the custom
 * way the first. */
static bool likelier(const float *score, bool custom, int32_t a, int32_t b) {
  return score[a] > score[b] || (score[a] == score[b] && (a < b) == custom);
}

static void sink(const lot *l, int64_t n, int64_t at, const float *score) {
  int32_t *heap = l->order;
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && likelier(score, l->custom, heap[child + 1], heap[child])) child++;
    if (!likelier(score, l->custom, heap[child], heap[at])) return;
    const int32_t t = heap[at];
    heap[at] = heap[child];
    heap[child] = t;
  }
}

/* Words stay from the likeliest on while those before them have less than top_p together; what a heap of the
 * scores still holds then is filtered out. */
static void filter(const hn_search *s, lot *l) {
  float *score = s->score;
  int64_t n = s->words;
  double all = 0, before = 0, top = -INFINITY;
  for (int64_t w = 0; w < n; w++) l->order[w] = (int32_t)w, top = fmax(top, score[w]);
  for (int64_t w = 0; w < n; w++) all += exp(score[w] - top);
  for (int64_t i = n / 2; i-- > 0;) sink(l, n, i, score);
  for (int64_t kept = 0; n > 0; kept++) {
    const bool stays =
        l->custom ? kept == 0 || before <= l->top_p * all : kept < l->least || before < l->top_p * all;
    if (!stays) break;
    before += exp(score[l->order[0]] - top);
    l->order[0] = l->order[--n];
    sink(l, n, 0, score);
  }
  for (int64_t i = 0; i < n; i++) score[l->order[i]] = l->filter;
}

static int64_t draw(const hn_search *s, lot *l) {
  double top = -INFINITY, total = 0;
  for (int64_t w = 0; w < s->words; w++) top = fmax(top, s->score[w]);
  for (int64_t w = 0; w < s->words; w++) l->sum[w] = total += exp(s->score[w] - top);
  const double u = hn_rng_unit(&l->rng) * total;
  int64_t lo = 0, hi = s->words - 1; /* the first word whose running sum exceeds u */
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (l->sum[mid] > u)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

static hone_status begin_lot(const hn_search *s, lot *l, hone_error *error) {
  const hone_node *n = s->node;
  *l = (lot){.temperature = (float)hone_node_float(n, "temperature", 1),
             .top_p = (float)hone_node_float(n, "top_p", 0),
             .filter = (float)hone_node_float(n, "filter_value", -1e20),
             .presence_penalty = (float)hone_node_float(n, "presence_penalty", 0),
             .least = hone_node_int(n, "min_tokens_to_keep", 0),
             .custom = hone_node_int(n, "custom", 0) != 0};
  const hone_status status = hn_search_one(s, SEED, HONE_DTYPE_I32, error);
  if (!status && n->n_in > SEED && s->in[SEED])
    l->rng.state = (uint64_t) * (const int32_t *)s->in[SEED]->data;
  return status;
}

/* When the first logits have said how many words there are. */
static hone_status prepare_lot(const hn_search *s, lot *l, hone_error *error) {
  const hone_tensor *t = s->node->n_in > PRESENCE ? s->in[PRESENCE] : NULL;
  if (t && (t->desc.dtype != HONE_DTYPE_I32 || hone_desc_count(&t->desc) != s->batch * s->words))
    return hn_fail(error, HONE_ERROR_INPUT, "presence_mask is not i32 [%lld, %lld]", (long long)s->batch,
                   (long long)s->words);
  l->presence = t ? t->data : NULL;
  l->order = hn_calloc((size_t)s->words, sizeof *l->order);
  l->sum = hn_calloc((size_t)s->words, sizeof *l->sum);
  if (!l->order || !l->sum) return hn_fail_memory(error, (size_t)s->words, "Sampling");
  if (!l->out) return HONE_OK;
  l->out->desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){s->batch, s->words});
  return hn_budget_alloc(s->budget, hone_desc_bytes(&l->out->desc), &l->out->data, error);
}

static int64_t sample(const hn_search *s, lot *l, int64_t b) {
  for (int64_t w = 0; w < s->words; w++) {
    if (l->temperature > 0) s->score[w] /= l->temperature;
    if (l->presence) s->score[w] -= (float)l->presence[b * s->words + w] * l->presence_penalty;
  }
  filter(s, l);
  if (l->out) memcpy((float *)l->out->data + b * s->words, s->score, (size_t)s->words * sizeof *s->score);
  return draw(s, l);
}

/* The next word of each text; true in *all: all texts have ended. */
static hone_status choose(hn_search *s, lot *l, bool *ended, bool *all, hone_error *error) {
  if (l && !l->order) {
    const hone_status status = prepare_lot(s, l, error);
    if (status) return status;
  }
  *all = true;
  for (int64_t b = 0; b < s->batch; b++) {
    hn_search_read(s, b);
    hn_search_rule(s, b);
    int64_t best = l ? sample(s, l, b) : 0;
    for (int64_t w = 1; w < s->words && !l; w++)
      if (s->score[w] > s->score[best]) best = w;
    ended[b] = ended[b] || best == s->end;
    s->text[b * s->longest + s->length] = (int32_t)(ended[b] ? s->pad : best);
    *all = *all && ended[b];
  }
  return HONE_OK;
}

hone_status hn_eval_search(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                           hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  hn_search s = {
      .node = n, .in = in, .place = places, .scope = scope, .keep = keep, .budget = budget, .beams = 1};
  lot drawn = {0}, *l = strcmp(n->op_type, "Sampling") == 0 ? &drawn : NULL;
  hone_tensor none = {.desc = {.rank = -1}}, *text = out[0] ? out[0] : &none;
  bool *ended = NULL;
  hone_status status = hn_search_begin(&s, error);
  if (!status && l) status = begin_lot(&s, l, error);
  if (!status) status = hn_search_prepare(&s, text, error);
  if (!status && !(ended = hn_calloc((size_t)s.batch + 1, sizeof *ended)))
    status = hn_fail_memory(error, (size_t)s.batch, n->op_type);
  drawn.out = n->n_out > 1 ? out[1] : NULL;
  for (bool all = s.batch == 0; !status && !all && s.length < s.longest; s.length++) {
    status = hn_search_step(&s, error);
    if (!status) status = choose(&s, l, ended, &all, error);
    if (!status) status = hn_search_go_on(&s, NULL, error);
  }
  if (!status && drawn.out && !drawn.order) { /* no text: no words known */
    drawn.out->desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){0, 0});
    status = hn_budget_alloc(budget, 0, &drawn.out->data, error);
  }
  hn_search_end(&s);
  if (text == &none) hn_budget_release(budget, &none);
  hn_free(ended);
  hn_free(drawn.order);
  hn_free(drawn.sum);
  return status;
}
