#include "api/shapes/proofs.h"

#include "base/error.h"
#include "model/bind.h"

#include <pthread.h>
#include <string.h>

enum { MOST_PAIRS = 4096 }; /* then they are forgotten, and proved again */

typedef struct pair {
  hn_sizes wanted, size;
  bool proved;
  hone_reason why;
  hn_pad *map; /* NULL: not proved */
} pair;

struct hn_proofs {
  hone_model *model;
  const hone_plan_options *plan;
  char *const *symbol;
  uint32_t n_profiles, n_values;
  pthread_mutex_t lock;
  HN_VEC(pair) pairs;
};

hone_binding *hn_shapes_bindings(const hone_plan_options *plan, char *const *symbol, uint32_t n_profiles,
                                 const hn_sizes *size, uint32_t *n) {
  const uint32_t given = plan->bindings ? plan->n_bindings : 0;
  hone_binding *b = hn_calloc(given + n_profiles + 1, sizeof *b);
  if (!b) return NULL;
  if (given) memcpy(b, plan->bindings, given * sizeof *b);
  for (uint32_t i = 0; i < n_profiles; i++)
    b[given + i] = (hone_binding){.symbol = symbol[i], .rank = 1, .dim = {size->of[i]}};
  *n = given + n_profiles;
  return b;
}

hone_status hn_proofs_create(hone_model *model, const hone_plan_options *plan, char *const *symbol,
                             uint32_t n_profiles, hn_proofs **out, hone_error *error) {
  hn_proofs *p = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "what was proved of shapes");
  p->model = hn_model_retain(model);
  p->plan = plan, p->symbol = symbol, p->n_profiles = n_profiles;
  for (size_t i = 0; i < model->graph->inputs.len; i++) p->n_values += !model->graph->inputs.ptr[i]->constant;
  p->n_values += (uint32_t)model->graph->outputs.len;
  pthread_mutex_init(&p->lock, NULL);
  *out = p;
  return HONE_OK;
}

static void forget(hn_proofs *p) {
  for (size_t i = 0; i < p->pairs.len; i++) hn_free(p->pairs.ptr[i].map);
  p->pairs.len = 0;
}

void hn_proofs_destroy(hn_proofs *p) {
  if (!p) return;
  forget(p);
  hn_vec_free(&p->pairs);
  pthread_mutex_destroy(&p->lock);
  hn_model_destroy(p->model);
  hn_free(p);
}

uint32_t hn_proofs_values(const hn_proofs *p) { return p->n_values; }

static hone_status bind(hn_proofs *p, const hn_sizes *size, hn_model **out, hone_error *error) {
  uint32_t n = 0;
  hone_binding *b = hn_shapes_bindings(p->plan, p->symbol, p->n_profiles, size, &n);
  if (!b) return hn_fail_memory(error, sizeof *b, "binding shapes");
  const hone_status status = hn_model_bind(p->model, b, n, p->plan->batch, out, NULL, error);
  hn_free(b);
  return status;
}

bool hn_proofs_precision(const char *precision, hone_reason *why) {
  return strcmp(precision, "fp8") != 0 || hn_refuse(why, "precision fp8 scales by the most of all elements");
}

/* Elements that point to bytes elsewhere are not copied. */
static bool plain(const hn_model *m, const hn_pad *in, const hn_pad *out, hone_reason *why) {
  for (size_t i = 0; i < m->graph->inputs.len; i++)
    if (in[i].kind == HN_PAD_ROWS && hn_dtype_points(m->graph->inputs.ptr[i]->desc.dtype))
      return hn_refuse(why, "input '%.80s' is of strings", m->graph->inputs.ptr[i]->name);
  for (size_t i = 0; i < m->graph->outputs.len; i++)
    if (out[i].kind == HN_PAD_ROWS && hn_dtype_points(m->graph->outputs.ptr[i]->desc.dtype))
      return hn_refuse(why, "output '%.80s' is of strings", m->graph->outputs.ptr[i]->name);
  return true;
}

/* One dimension after the other: from small, where those before it are long already, to large. */
static hone_status prove_one(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                             hn_pad *map, bool *proved, hone_reason *why, hone_error *error) {
  const size_t n_in = small->graph->inputs.len, n_out = small->graph->outputs.len;
  hn_pad *in = hn_calloc(n_in + n_out + 1, sizeof *in), *out = in ? in + n_in : NULL;
  if (!in) return hn_fail_memory(error, n_in * sizeof *in, "what was proved of shapes");
  const hone_status status = hn_prove_padding(small, large, wanted, size, in, out, proved, why, error);
  if (status == HONE_OK && *proved) *proved = plain(small, in, out, why);
  uint32_t at = 0;
  for (size_t i = 0; i < n_in; i++)
    if (!small->graph->inputs.ptr[i]->constant) map[at++] = in[i];
  memcpy(map + at, out, n_out * sizeof *out);
  hn_free(in);
  return status;
}

static hone_status prove(hn_proofs *p, pair *k, hone_error *error) {
  hn_model *small = NULL, *large = NULL;
  hn_sizes now = k->wanted;
  hone_status status = bind(p, &now, &small, error);
  k->proved = true;
  for (uint32_t i = 0; i < p->n_profiles && status == HONE_OK && k->proved; i++) {
    if (k->wanted.of[i] == k->size.of[i]) continue;
    now.of[i] = k->size.of[i];
    status = bind(p, &now, &large, error);
    if (status == HONE_OK)
      status = prove_one(small, large, k->wanted.of[i], k->size.of[i], k->map + i * p->n_values, &k->proved,
                         &k->why, error);
    hn_model_destroy(small);
    small = large;
    large = NULL;
  }
  hn_model_destroy(small);
  return status;
}

static bool same(const hn_sizes *a, const hn_sizes *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Copies what is known of the pair; with the lock. */
static bool look(const hn_proofs *p, const hn_sizes *wanted, const hn_sizes *size, hn_pad *map, bool *proved,
                 hone_reason *why) {
  for (size_t i = 0; i < p->pairs.len; i++) {
    const pair *k = &p->pairs.ptr[i];
    if (!same(&k->wanted, wanted) || !same(&k->size, size)) continue;
    if (map) memcpy(map, k->map, (size_t)p->n_profiles * p->n_values * sizeof *map);
    *proved = k->proved;
    *why = k->why;
    return true;
  }
  return false;
}

hone_status hn_proofs_get(hn_proofs *p, const hn_sizes *wanted, const hn_sizes *size, hn_pad *map,
                          bool *proved, hone_reason *why, hone_error *error) {
  const size_t cells = (size_t)p->n_profiles * p->n_values;
  pthread_mutex_lock(&p->lock);
  const bool known = look(p, wanted, size, map, proved, why);
  pthread_mutex_unlock(&p->lock);
  if (known) return HONE_OK;
  pair k = {.wanted = *wanted, .size = *size, .map = hn_calloc(cells + 1, sizeof *k.map)};
  if (!k.map) return hn_fail_memory(error, cells * sizeof *k.map, "what was proved of shapes");
  const hone_status status = prove(p, &k, error);
  *proved = k.proved;
  *why = k.why;
  if (status == HONE_OK && map) memcpy(map, k.map, cells * sizeof *map);
  pthread_mutex_lock(&p->lock);
  if (p->pairs.len >= MOST_PAIRS) forget(p);
  const bool kept = status == HONE_OK && hn_vec_push(&p->pairs, k);
  pthread_mutex_unlock(&p->lock);
  if (!kept) hn_free(k.map);
  return status;
}
