/* What running several operators as one step saves: the values between them are neither written nor read. */
#include <hone/session.h>

#include "api/api.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef HN_VEC(hone_fusion) fusions;

/* The model's nodes as they stand in the file, with the shapes of a plan. */
typedef struct nodes {
  hn_model *bound;
  uint32_t n;
  const hone_node **by_source; /* NULL: inside of another node, or gone */
  hn_map by_name;              /* places in by_source; the first of several nodes of one name */
} nodes;

static void nodes_free(nodes *n) {
  hn_map_free(&n->by_name);
  hn_model_destroy(n->bound);
  hn_free(n->by_source);
}

static bool name_nodes(nodes *n) {
  for (uint32_t i = 0; i < n->n; i++) {
    const hone_node *node = n->by_source[i];
    if (node && !hn_map_has(&n->by_name, node->name) &&
        !hn_map_set(&n->by_name, node->name, &n->by_source[i]))
      return false;
  }
  return true;
}

static hone_status nodes_of(const hone_plan *plan, hone_model *source, nodes *out, hone_error *error) {
  const uint32_t inputs = hone_plan_inputs(plan);
  hone_binding *bindings = hn_calloc(inputs + 1u, sizeof *bindings);
  *out = (nodes){.n = hone_plan_source_nodes(plan)};
  if (!bindings) return hn_fail_memory(error, inputs * sizeof *bindings, "fusions");
  for (uint32_t i = 0; i < inputs; i++) {
    const hone_bound_shape *b = hone_plan_bound(plan, i);
    bindings[i] = (hone_binding){.input = b->input, .rank = b->desc.rank};
    memcpy(bindings[i].dim, b->desc.dim, sizeof bindings[i].dim);
  }
  hone_status status = hn_model_bind(source, bindings, inputs, 0, &out->bound, NULL, error);
  if (status == HONE_OK && !(out->by_source = hn_calloc(out->n + 1u, sizeof(*out->by_source))))
    status = hn_fail_memory(error, out->n * sizeof *out->by_source, "fusions");
  for (const hone_node *n = status == HONE_OK ? out->bound->graph->first : NULL; n; n = n->next)
    if (n->n_origin && n->origin[0] < out->n) out->by_source[n->origin[0]] = n;
  if (status == HONE_OK && !name_nodes(out))
    status = hn_fail_memory(error, out->n * sizeof *out->by_name.slot, "fusions");
  hn_free(bindings);
  return status;
}

/* By source node, the step that it is part of; -1: none. */
static int32_t *owners_of(const hn_plan *p, uint32_t n) {
  int32_t *owner = hn_malloc((n + 1u) * sizeof *owner);
  for (uint32_t i = 0; owner && i < n; i++) owner[i] = -1;
  for (size_t s = 0; owner && s < p->steps.len; s++)
    for (uint32_t i = 0; i < p->steps.ptr[s].n_origin; i++) {
      const uint32_t at = p->steps.ptr[s].origin[i];
      if (at < n && owner[at] < 0) owner[at] = (int32_t)s;
    }
  return owner;
}

static bool is_view(const hone_node *n) { return n && n->op && n->op->flags & HONE_OP_VIEW; }

static double bytes_of(const hn_value *v) {
  const int64_t b =
      hone_desc_known(&v->desc) && v->desc.dtype != HONE_DTYPE_NONE ? hone_desc_bytes(&v->desc) : 0;
  return b > 0 ? (double)b : 0;
}

/* Step of the node that reads a value; -1: none of its own. */
static int32_t reader(const hn_value *v, size_t u, const int32_t *owner, uint32_t n) {
  const hone_node *r = v->users.ptr[u].node;
  return r && r->n_origin && r->origin[0] < n ? owner[r->origin[0]] : -1;
}

/* Traffic of one value that stays inside of the step that makes it. */
static double kept_inside(const hn_value *v, int32_t step, const int32_t *owner, uint32_t n) {
  size_t inside = 0, reads = 0;
  for (size_t u = 0; u < v->users.len; u++) {
    if (reader(v, u, owner, n) != step) continue;
    inside++;
    reads += !is_view(v->users.ptr[u].node);
  }
  if (!inside) return 0;
  return bytes_of(v) * (double)(reads + (inside == v->users.len && !v->is_output));
}

static double saved_by(const hone_node *node, int32_t step, const int32_t *owner, uint32_t n) {
  double sum = 0;
  for (uint32_t o = 0; o < node->n_out && !is_view(node); o++)
    if (node->out[o]) sum += kept_inside(node->out[o], step, owner, n);
  return sum;
}

static void append(char *buf, size_t size, const char *name) {
  const size_t at = strlen(buf);
  snprintf(buf + at, size - at, "%s%s", at ? ", " : "", name);
}

static bool add(fusions *to, const hone_fusion *f) { return hn_vec_push(to, *f); }

/* "Conv (Conv, BatchNormalization)": what became one operator. */
static void name_types(const hn_step *step, const nodes *from, const int32_t *owner, int32_t s,
                       hone_fusion *f) {
  char types[120] = "";
  for (uint32_t i = 0; i < step->n_origin; i++) {
    const uint32_t at = step->origin[i];
    const hone_node *node = at < from->n && owner[at] == s ? from->by_source[at] : NULL;
    if (node && node->n_in && !strstr(types, node->op_type)) append(types, sizeof types, node->op_type);
  }
  snprintf(f->what, sizeof f->what, "%.60s (%s)", step->what, types);
}

/* Steps of several nodes. */
static bool add_done(const hn_plan *p, const nodes *from, const int32_t *owner, const int32_t *at_level_1,
                     fusions *to) {
  for (size_t s = 0; s < p->steps.len; s++) {
    const hn_step *step = &p->steps.ptr[s];
    hone_fusion f = {.done = true, .pass = "", .level = 1, .step = (int32_t)s};
    int32_t first = -1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->n_origin; i++) {
      const uint32_t at = step->origin[i];
      const hone_node *node = at < from->n && owner[at] == (int32_t)s ? from->by_source[at] : NULL;
      if (!node || node->n_in == 0) continue;
      f.bytes_saved += saved_by(node, (int32_t)s, owner, from->n);
      append(f.nodes, sizeof f.nodes, node->name);
      if (count++ == 0) first = at_level_1[at];
      if (first < 0 || at_level_1[at] != first) f.level = 2;
    }
    if (count < 2 || f.bytes_saved <= 0) continue;
    snprintf(f.what, sizeof f.what, "%s", step->what);
    if (!strchr(f.what, '+')) name_types(step, from, owner, (int32_t)s, &f);
    if (!add(to, &f)) return false;
  }
  return true;
}

/* Source node of this name; from->n: none. */
static uint32_t find(const nodes *from, const char *name, size_t len) {
  char key[sizeof((hone_rewrite *)0)->nodes];
  snprintf(key, sizeof key, "%.*s", (int)len, name);
  const hone_node **at = hn_map_get(&from->by_name, key);
  return at ? (uint32_t)(at - from->by_source) : from->n;
}

/* Are all of these nodes one step anyway? */
static bool together(const nodes *from, const int32_t *owner, const char *names) {
  int32_t step = -1;
  uint32_t known = 0;
  for (size_t len; *names; names += len + strspn(names + len, ", ")) {
    len = strcspn(names, ",");
    const uint32_t at = find(from, names, len);
    if (at == from->n) continue;
    if (known++ && owner[at] != step) return false;
    step = owner[at];
  }
  return known > 1 && step >= 0;
}

/* "Conv + Relu": the operators of these nodes, and the step of the last one. */
static void name_types_of(const nodes *from, const int32_t *owner, const char *names, hone_fusion *f) {
  for (size_t len; *names; names += len + strspn(names + len, ", ")) {
    len = strcspn(names, ",");
    const uint32_t at = find(from, names, len);
    const size_t used = strlen(f->what);
    if (at == from->n) continue;
    snprintf(f->what + used, sizeof f->what - used, "%s%s", used ? " + " : "", from->by_source[at]->op_type);
    f->step = owner[at];
  }
}

/* Near misses that are no single step anyway. */
static bool add_refused(const hone_rewrites *r, const nodes *from, const int32_t *owner, fusions *to) {
  for (uint32_t i = 0; i < r->n; i++) {
    const hone_rewrite *w = &r->record[i];
    if (w->hit || w->by == HONE_REWRITE_SLOWER || w->bytes_saved <= 0 || together(from, owner, w->nodes))
      continue;
    hone_fusion f = {.pass = w->pass, .level = w->enable_level, .bytes_saved = w->bytes_saved, .step = -1};
    if (w->by == HONE_REWRITE_FUSION) name_types_of(from, owner, w->nodes, &f);
    if (!*f.what) snprintf(f.what, sizeof f.what, "%s", w->pass);
    snprintf(f.nodes, sizeof f.nodes, "%s", w->nodes);
    snprintf(f.reason, sizeof f.reason, "%s", w->reason);
    if (!add(to, &f)) return false;
  }
  return true;
}

static int by_bytes(const void *a, const void *b) {
  const hone_fusion *x = a, *y = b;
  if (x->done != y->done) return x->done ? -1 : 1;
  return x->bytes_saved > y->bytes_saved ? -1 : x->bytes_saved < y->bytes_saved;
}

hone_status hone_fusions_find(hone_engine *engine, hone_model *model, const hone_plan_options *options,
                              hone_fusions *out, hone_error *error) {
  if (!engine || !model || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_fusions_find needs an engine, a model and a place for the result");
  *out = (hone_fusions){0};
  hone_plan_options o = options ? *options : (hone_plan_options){.level = -1};
  hone_plan *low = NULL, *plan = NULL;
  nodes from = {0};
  fusions all = {0};
  int32_t *owner = NULL, *at_level_1 = NULL;
  o.preview = true;
  o.level = 2;
  hone_status status = hone_plan_create(engine, model, &o, &plan, error);
  o.level = 1;
  if (status == HONE_OK) status = hone_plan_create(engine, model, &o, &low, error);
  if (status == HONE_OK) status = nodes_of(plan, model, &from, error);
  if (status != HONE_OK) goto done;
  owner = owners_of(hn_api_plan(plan), from.n);
  at_level_1 = owners_of(hn_api_plan(low), from.n);
  if (!owner || !at_level_1 || !add_done(hn_api_plan(plan), &from, owner, at_level_1, &all) ||
      !add_refused(hone_plan_rewrites(plan), &from, owner, &all)) {
    status = hn_fail_memory(error, from.n * sizeof *owner, "fusions");
    goto done;
  }
  if (all.len) qsort(all.ptr, all.len, sizeof *all.ptr, by_bytes);
  out->fusion = hn_calloc(all.len + 1, sizeof *out->fusion);
  if (!out->fusion)
    status = hn_fail_memory(error, all.len * sizeof *out->fusion, "fusions");
  else if (all.len)
    memcpy(out->fusion, all.ptr, all.len * sizeof *out->fusion);
  out->n = status == HONE_OK ? (uint32_t)all.len : 0;
done:
  hn_free(owner);
  hn_free(at_level_1);
  hn_vec_free(&all);
  nodes_free(&from);
  hone_plan_destroy(low);
  hone_plan_destroy(plan);
  return status;
}

void hone_fusions_free(hone_fusions *f) {
  if (!f) return;
  hn_free(f->fusion);
  *f = (hone_fusions){0};
}
