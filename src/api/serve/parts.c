/* Which runs may be shared: for the sizes at hand it is proved that a batch is what its samples are by
 * themselves, and how the outputs follow it. What was proved of one size says nothing of another: Reshape to
 * rows of 64 takes a sample of 64 apart and makes one row of two samples of 32. */
#include "api/serve/serve.h"
#include "api/shapes/keep.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/bind.h"

#include <string.h>

enum { MOST_PROVED = 4096 }; /* then the older half is forgotten, and proved again where it is wanted */

typedef struct proved {
  hn_sizes size;
  bool holds;
  hn_pad *rows; /* [outputs] */
} proved;

struct hn_parts {
  const hn_served *m;
  uint32_t n, batch; /* profiles, and which of them is the batch's */
  char *symbol[HONE_PROFILES];
  struct {
    uint32_t input;
    int32_t axis;
  } at[HONE_PROFILES]; /* where a request says the size */
  pthread_mutex_t lock;
  HN_VEC(proved) known;
};

/* ------------------------------------------------------------------ a proof */

static hone_status bind(const hn_parts *p, const hn_sizes *size, hn_model **out, hone_error *error) {
  const hone_plan_options *o = &p->m->plan_options;
  uint32_t n = 0;
  hone_binding *b = hn_shapes_bindings(o, p->symbol, p->n, size, &n);
  if (!b) return hn_fail_memory(error, sizeof *b, "a served model");
  const hone_status status = hn_model_bind(p->m->model, b, n, o->batch, out, NULL, error);
  hn_free(b);
  return status;
}

static bool leads(const hn_pad *p) { return p->kind == HN_PAD_ROWS && p->axis == 0; }

static bool joins(const hn_model *model, const hn_pad *in, const hn_pad *out, hone_reason *why) {
  for (size_t i = 0; i < model->graph->inputs.len; i++) {
    const hn_value *v = model->graph->inputs.ptr[i];
    if (v->constant) continue;
    if (!leads(&in[i])) return hn_refuse(why, "input '%.80s' has no batch in front", v->name);
    if (hn_dtype_points(v->desc.dtype)) return hn_refuse(why, "input '%.80s' is of strings", v->name);
  }
  for (size_t i = 0; i < model->graph->outputs.len; i++) {
    const hn_value *v = model->graph->outputs.ptr[i];
    if (out[i].kind != HN_PAD_SAME && !leads(&out[i]))
      return hn_refuse(why, "output '%.80s' has no batch in front", v->name);
    if (hn_dtype_points(v->desc.dtype)) return hn_refuse(why, "output '%.80s' is of strings", v->name);
  }
  return true;
}

/* Is a run of this size what so many runs of one sample are? Errors: HONE_ERROR_MEMORY alone. */
static hone_status prove(const hn_parts *p, proved *k, hone_reason *why, hone_error *error) {
  hn_model *small = NULL, *large = NULL;
  hone_error own = {0};
  hn_sizes one = k->size;
  one.of[p->batch] = 1;
  k->holds = false;
  hone_status status = bind(p, &one, &small, &own);
  if (status == HONE_OK) status = bind(p, &k->size, &large, &own);
  const size_t n_in = small ? small->graph->inputs.len : 0, n_out = small ? small->graph->outputs.len : 0;
  hn_pad *in = hn_calloc(n_in + n_out + 1, sizeof *in);
  if (!in) status = hn_fail_memory(&own, n_in * sizeof *in, "a served model");
  if (status == HONE_OK && n_out != p->m->n_out)
    status = hn_fail(&own, HONE_ERROR_INTERNAL, "the plan has other outputs than the model");
  if (status == HONE_OK)
    status = hn_prove_parts(small, large, 1, k->size.of[p->batch], in, in + n_in, &k->holds, why, &own);
  if (status == HONE_OK && k->holds) k->holds = joins(small, in, in + n_in, why);
  if (status == HONE_OK) memcpy(k->rows, in + n_in, n_out * sizeof *in);
  hn_free(in);
  hn_model_destroy(small);
  hn_model_destroy(large);
  if (status == HONE_OK) return HONE_OK;
  if (status == HONE_ERROR_MEMORY) {
    if (error) *error = own;
    return status;
  }
  hn_refuse(why, "%.150s", own.what); /* the model does not take that size */
  return HONE_OK;
}

/* ------------------------------------------------------------------ what is known */

/* The first `n`, which were proved first. */
static void forget(hn_parts *p, size_t n) {
  for (size_t i = 0; i < n; i++) hn_free(p->known.ptr[i].rows);
  p->known.len -= n;
  if (p->known.len) memmove(p->known.ptr, p->known.ptr + n, p->known.len * sizeof *p->known.ptr);
}

/* With the lock. */
static const proved *look(const hn_parts *p, const hn_sizes *size) {
  for (size_t i = 0; i < p->known.len; i++)
    if (memcmp(&p->known.ptr[i].size, size, sizeof *size) == 0) return &p->known.ptr[i];
  return NULL;
}

static hone_status holds(hn_parts *p, const hn_sizes *size, hn_pad *rows, bool *out, hone_reason *why,
                         hone_error *error) {
  const size_t bytes = p->m->n_out * sizeof *rows;
  pthread_mutex_lock(&p->lock);
  const proved *old = look(p, size);
  if (old) {
    *out = old->holds;
    memcpy(rows, old->rows, bytes);
  }
  pthread_mutex_unlock(&p->lock);
  if (old) return HONE_OK;
  proved k = {.size = *size, .rows = hn_calloc(p->m->n_out + 1, sizeof *k.rows)};
  if (!k.rows) return hn_fail_memory(error, bytes, "a served model");
  const hone_status status = prove(p, &k, why, error);
  *out = k.holds;
  memcpy(rows, k.rows, bytes);
  pthread_mutex_lock(&p->lock);
  if (p->known.len >= MOST_PROVED) forget(p, MOST_PROVED / 2);
  const bool kept = status == HONE_OK && hn_vec_push(&p->known, k);
  pthread_mutex_unlock(&p->lock);
  if (!kept) hn_free(k.rows);
  return status;
}

bool hn_parts_hold(hn_parts *p, hn_ask *const *group, uint32_t n, int64_t samples, hn_pad *rows) {
  hn_sizes size = {{0}};
  hone_reason why = {""};
  hone_error error = {0};
  bool good = true;
  for (uint32_t i = 0; i < p->n; i++) size.of[i] = group[0]->in[p->at[i].input].desc.dim[p->at[i].axis];
  /* A request of several samples by itself has to be what its samples are, too; the whole comes last, for its
   * rows. */
  for (uint32_t k = 0; k <= n && good; k++) {
    size.of[p->batch] = k < n ? group[k]->samples : samples;
    if (size.of[p->batch] > 1) good = holds(p, &size, rows, &good, &why, &error) == HONE_OK && good;
  }
  return good;
}

/* ------------------------------------------------------------------ the beginning */

static void find_inputs(hn_parts *p) {
  hone_port port;
  for (uint32_t i = 0; i < p->m->n_in; i++)
    for (uint32_t g = 0; hone_model_input(p->m->model, g, &port); g++) {
      if (strcmp(port.name, p->m->in[i].name) != 0) continue;
      for (int32_t k = 0; k < port.desc.rank; k++)
        for (uint32_t q = 0; port.symbol[k] && q < p->n; q++)
          if (strcmp(port.symbol[k], p->symbol[q]) == 0) p->at[q].input = i, p->at[q].axis = k;
    }
}

static hone_status make(hn_served *m, const hone_size_profile *profile, uint32_t n, hone_error *error) {
  hn_parts *p = m->parts = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "a served model");
  pthread_mutex_init(&p->lock, NULL);
  p->m = m;
  p->batch = n;
  for (; p->n < n; p->n++) {
    if (m->symbol && strcmp(profile[p->n].symbol, m->symbol) == 0) p->batch = p->n;
    p->symbol[p->n] = hn_strdup(profile[p->n].symbol);
    if (!p->symbol[p->n]) return hn_fail_memory(error, sizeof *p, "a served model");
  }
  find_inputs(p);
  return HONE_OK;
}

hone_status hn_parts_create(hn_served *m, const hone_size_profile *profile, uint32_t n, hone_error *error) {
  hone_status status = make(m, profile, n, error);
  if (status != HONE_OK) return status;
  hn_parts *p = m->parts;
  if (p->batch == n) {
    if (m->symbol) hn_refuse(&m->alone, "its batch has no profile, and no more dimensions may have one");
    return HONE_OK;
  }
  if (m->max_batch < 2) {
    hn_refuse(&m->alone, "its runs take one sample");
    return HONE_OK;
  }
  hn_pad *rows = hn_calloc(m->n_out + 1, sizeof *rows);
  if (!rows) return hn_fail_memory(error, m->n_out * sizeof *rows, "a served model");
  hn_sizes size = {{0}};
  const int64_t *bucket;
  for (uint32_t i = 0; i < n; i++) size.of[i] = profile[i].opt;
  m->shares = true;
  const uint32_t buckets = hone_shapes_buckets(m->replica[0].shapes, p->batch, &bucket);
  for (uint32_t i = 0; i < buckets && m->shares && status == HONE_OK; i++) {
    size.of[p->batch] = bucket[i];
    if (bucket[i] > 1) status = holds(p, &size, rows, &m->shares, &m->alone, error);
  }
  hn_free(rows);
  return status;
}

void hn_parts_check(hn_served *m, const hone_shapes *shapes) {
  if (m->shares) m->shares = hn_proofs_precision(hn_shapes_precision(shapes), &m->alone);
}

void hn_parts_destroy(hn_parts *p) {
  if (!p) return;
  forget(p, p->known.len);
  hn_vec_free(&p->known);
  pthread_mutex_destroy(&p->lock);
  for (uint32_t i = 0; i < p->n; i++) hn_free(p->symbol[i]);
  hn_free(p);
}
