/* Squeeze-and-excitation as one step: an average over all pixels, two products of it with their epilogues,
 * and the pointwise group that reads what they make as a gate, one number a channel of an image.
 *
 * Found from the group backwards: through views, from one product to the next, to the average of what has the
 * group's dimensions. What lies between must have no other reader; what is averaged and what the group reads
 * beside the gate may be read by anyone. On accelerators, whose steps of a few numbers wait for each other;
 * made where it is predicted (or, where all of it was measured, was measured) to be faster than its parts. */
#include "optimize/lower/lowering.h"

#include "base/error.h"

#include <string.h>

enum { MOST = 10 }; /* of them four steps; the rest are views */

typedef struct path {
  uint32_t n; /* from the group backwards */
  hn_unit *unit[MOST];
  hn_value *inner[MOST]; /* what the unit reads of the one before it; NULL: it is a view, or the average */
} path;

static bool push(path *p, hn_unit *u, hn_value *inner) {
  if (p->n == MOST) return false;
  p->unit[p->n] = u;
  p->inner[p->n++] = inner;
  return true;
}

/* The unit behind the views that make v, which are put on the path. NULL: there is none, or others read what
 * it makes. */
static hn_unit *behind_views(const hn_lowering *l, hn_value *v, path *p) {
  for (;;) {
    hn_unit *u = hn_lower_maker(l, v);
    if (!u || !hn_stays_inside(v)) return NULL;
    if (u->kind != HN_UNIT_VIEW) return u;
    if (!push(p, u, NULL)) return NULL;
    v = u->in[0];
  }
}

static bool is_product(const hn_unit *u) {
  if (u->kind != HN_UNIT_NODE || u->into || u->n_parts || !hn_fusable_anchor(u) || u->n_in < 2 || !u->in[0] ||
      !u->in[1])
    return false;
  const hone_product product = hn_anchor_named(u->anchor, u->node).product;
  return u->in[1]->constant && product != HONE_PRODUCT_NONE && product != HONE_PRODUCT_CONV_TRANSPOSE;
}

static bool is_average(const hn_unit *u, const hone_tensor_desc *out) {
  return u->kind == HN_UNIT_NODE && !u->into && u->n_in && u->in[0] && u->n_nodes == 1 &&
         (strcmp(u->anchor, "GlobalAveragePool") == 0 || strcmp(u->anchor, "ReduceMean") == 0) &&
         hone_desc_same_dims(&u->in[0]->desc, out);
}

/* One number a channel of an image. */
static bool is_gate(const hone_tensor_desc *d, const hone_tensor_desc *out) {
  if (d->rank != out->rank || d->rank < 3) return false;
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] != (i < 2 ? out->dim[i] : 1)) return false;
  return !hone_desc_same_dims(d, out);
}

static bool walk(const hn_lowering *l, hn_unit *group, hn_value *gate, path *p) {
  *p = (path){0};
  hn_value *v = gate;
  push(p, group, gate);
  for (int k = 0; k < 2; k++) {
    hn_unit *u = behind_views(l, v, p);
    if (!u || !is_product(u) || !push(p, u, u->in[0])) return false;
    v = u->in[0];
  }
  hn_unit *average = behind_views(l, v, p);
  return average && is_average(average, &group->out->desc) && push(p, average, NULL);
}

static bool find(const hn_lowering *l, hn_unit *group, path *p) {
  for (uint32_t k = 0; k <= group->n_absorbed; k++) {
    const hn_unit *u = k < group->n_absorbed ? group->absorbed[k] : group;
    for (uint32_t i = 0; i < u->n_in; i++)
      if (u->in[i] && is_gate(&u->in[i]->desc, &group->out->desc) && walk(l, group, u->in[i], p)) return true;
  }
  return false;
}

static hn_unit *make(hn_lowering *l, const path *p) {
  hn_unit *u = HN_NEW(l->temp, hn_unit), **parts = HN_NEW_ARRAY(l->temp, hn_unit *, p->n);
  hn_value **inner = HN_NEW_ARRAY(l->temp, hn_value *, p->n);
  if (!u || !parts || !inner) return NULL;
  for (uint32_t k = 0; k < p->n; k++) {
    parts[k] = p->unit[p->n - 1 - k];
    inner[k] = p->inner[p->n - 1 - k];
  }
  const hn_unit *group = p->unit[0];
  *u = (hn_unit){.kind = HN_UNIT_CHAIN,
                 .anchor = "SqueezeExcite",
                 .node = group->node,
                 .n_in = 1,
                 .in = parts[0]->in,
                 .out = group->out,
                 .n_nodes = group->n_nodes,
                 .nodes = group->nodes,
                 .order = group->order,
                 .n_parts = p->n,
                 .parts = parts,
                 .inner = inner};
  return u;
}

/* Seconds of the parts one by one; false where no tactic takes one of them. */
static bool apart(hn_lowering *l, const hn_unit *u, bool measured, double *sum, bool *all_measured) {
  *sum = 0;
  *all_measured = true;
  for (uint32_t k = 0; k < u->n_parts; k++) {
    hn_estimate e;
    if (u->parts[k]->kind == HN_UNIT_VIEW) continue;
    if (!hn_lower_predict(l, u->parts[k], &e)) return false;
    *sum += measured ? e.seconds : e.predicted;
    *all_measured = *all_measured && e.measured;
  }
  return true;
}

static void near(hn_lowering *l, hn_miss miss, const hn_unit *u) {
  miss.fusion = HN_FUSION_squeeze;
  for (uint32_t k = 0; k < u->n_parts && miss.n_nodes < HN_MISS_NODES; k++)
    if (u->parts[k]->kind != HN_UNIT_VIEW) miss.node[miss.n_nodes++] = u->parts[k]->node;
  hn_miss_add(&l->plan->misses, &miss);
}

static hone_status weigh(hn_lowering *l, const path *p, hone_error *error) {
  hn_estimate together;
  double sum;
  bool measured;
  hn_unit *u = make(l, p);
  if (!u) return hn_fail_memory(error, sizeof *u, "lowering");
  if (!apart(l, u, false, &sum, &measured)) return HONE_OK;
  if (!hn_lower_predict(l, u, &together)) {
    near(l, (hn_miss){.why = HN_MISS_TACTIC}, u);
    return HONE_OK;
  }
  l->plan->weighed = true;
  if (l->plan->chains == HONE_CHAINS_NEVER) return HONE_OK;
  measured = measured && together.measured;
  if (measured && !apart(l, u, true, &sum, &measured)) return HONE_OK;
  const double seconds = measured ? together.seconds : together.predicted;
  if (seconds >= sum && l->plan->chains != HONE_CHAINS_ALWAYS) {
    near(l, (hn_miss){.why = HN_MISS_SLOWER, .together = seconds, .apart = sum}, u);
    return HONE_OK;
  }
  for (uint32_t k = 0; k < u->n_parts; k++) u->parts[k]->into = u;
  return hn_vec_push(&l->units, u) ? HONE_OK : hn_fail_memory(error, sizeof *u, "lowering");
}

hone_status hn_lower_squeezes(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->separate || l->plan->level < 2 || !l->plan->backend->asynchronous ||
      !hn_fuses(l->plan, HN_FUSION_squeeze))
    return HONE_OK;
  for (size_t i = 0, n = l->units.len; i < n; i++) {
    hn_unit *u = l->units.ptr[i];
    path p;
    if (u->kind != HN_UNIT_POINTWISE || u->into || !u->out || !hone_desc_known(&u->out->desc) ||
        !find(l, u, &p))
      continue;
    const hone_status status = weigh(l, &p, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
