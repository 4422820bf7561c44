/* Chains of convolutions, each with its epilogue, as one step whose inner tensors never reach memory.
 *
 * Around a depthwise convolution: (convolution +) depthwise (+ 1x1). Inverted residuals (expand + depthwise +
 * project), separable convolutions (depthwise + pointwise), a network's first convolution with what follows
 * and what stands before a squeeze-and-excite (expand + depthwise) are such chains, found by their structure;
 * which convolutions may stand in front is for the tactics to say. The inner values must have no other
 * reader. Of the chains that a depthwise convolution could be part of, the one with the largest gain is made,
 * measured where all that is compared was measured, else predicted; none, when its parts are faster alone.
 *
 * On accelerators also in front of a 1x1 convolution: (1x1 +) convolution + 1x1, the bottleneck of residual
 * networks: a tile of the product in the middle stays where the last product reads it. */
#include "optimize/lower/lowering.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static bool is_conv(const hn_unit *u) {
  return u->kind == HN_UNIT_NODE && !u->into &&
         hn_anchor_named(u->anchor, u->node).product == HONE_PRODUCT_CONV && u->n_nodes == 1 &&
         hn_fusable_anchor(u) && u->n_in >= 2 && u->in[0] && u->in[1] && u->in[1]->constant &&
         hone_desc_known(&u->in[0]->desc) && u->in[1]->constant->desc.rank >= 3 &&
         u->out->desc.rank == u->in[0]->desc.rank;
}

static bool is_pointwise_conv(const hn_unit *u) {
  if (!is_conv(u) || hone_node_int(u->node, "group", 1) != 1) return false;
  const hone_tensor_desc *w = &u->in[1]->constant->desc, *x = &u->in[0]->desc, *y = &u->out->desc;
  for (int32_t i = 2; i < w->rank; i++)
    if (w->dim[i] != 1 || x->dim[i] != y->dim[i]) return false;
  return true;
}

static bool is_depthwise_conv(const hn_unit *u) {
  if (!is_conv(u)) return false;
  const hone_tensor_desc *w = &u->in[1]->constant->desc;
  return w->dim[1] == 1 && w->dim[0] == hone_node_int(u->node, "group", 1) &&
         u->in[0]->desc.dim[1] == w->dim[0] && w->dim[0] > 1;
}

/* What a unit makes, with its epilogue. */
static const hn_value *result_of(const hn_unit *u) {
  return u->n_absorbed ? u->absorbed[u->n_absorbed - 1]->out : u->out;
}

hn_unit *hn_lower_maker(const hn_lowering *l, const hn_value *v) {
  hn_unit *u = v->producer && !v->constant ? l->by_value[v->id] : NULL;
  if (u && u->into) u = u->into;
  return u && result_of(u) == v ? u : NULL;
}

/* Why a value cannot stay inside of a step with `with`, which reads it. */
static hn_miss visible(const hn_lowering *l, const hn_value *v, const hn_unit *with) {
  return hn_lower_shared(l, HN_FUSION_chain, v, with);
}

bool hn_stays_inside(const hn_value *v) {
  return !v->is_output && v->users.len == 1 && v->users.ptr[0].node->graph == v->graph;
}

/* The first unit that reads v and that is a 1x1 convolution. */
static hn_unit *reader(const hn_lowering *l, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *n = v->users.ptr[i].node;
    hn_unit *u = n->graph == v->graph && n->n_out && n->out[0] ? l->by_value[n->out[0]->id] : NULL;
    if (u && is_pointwise_conv(u) && u->in[0] == v) return u;
  }
  return NULL;
}

static void note(hn_lowering *l, hn_unit *u, const char *reason) {
  hn_refusals all = {.arena = &l->plan->arena};
  hn_refuse_all(&all, u->note, u->n_notes);
  hn_refuse_add(&all, HONE_REFUSED_FUSION, "ConvChain", reason);
  u->note = hn_refusals_take(&all, &u->n_notes);
}

/* A tensor between two steps is written by one and read by the other, on its way through the caches. The cost
 * models of single steps take that for hidden behind the arithmetic, as far as it is less; between steps of
 * little arithmetic it is not. Not so of what a depthwise convolution reads on accelerators: models of
 * expansions were fitted to measurements of both steps and of the one. */
static double handing_over(const hn_lowering *l, const hn_unit *u) {
  double bandwidth = l->plan->machine.cache_bytes;
  return bandwidth > 0 ? 2.0 * (double)hone_desc_bytes(&result_of(u)->desc) / bandwidth : 0;
}

static hn_unit *make_chain(hn_lowering *l, hn_unit *const *part, uint32_t n) {
  hn_unit *u = HN_NEW(l->temp, hn_unit), **parts = HN_NEW_ARRAY(l->temp, hn_unit *, n);
  if (!u || !parts) return NULL;
  memcpy(parts, part, n * sizeof *parts);
  const hn_unit *first = part[0], *last = part[n - 1];
  *u = (hn_unit){.kind = HN_UNIT_CHAIN,
                 .anchor = "ConvChain",
                 .node = last->node,
                 .n_in = 1,
                 .in = first->in,
                 .out = last->out,
                 .n_nodes = last->n_nodes,
                 .nodes = last->nodes,
                 .order = last->order,
                 .n_parts = n,
                 .parts = parts};
  return u;
}

/* Seconds that the chain of these parts saves. */
static double gain_of(const hn_lowering *l, hn_unit *const *part, const hn_estimate *apart, uint32_t n,
                      const hn_estimate *together, double *sum) {
  bool measured = together->measured;
  for (uint32_t k = 0; k < n; k++) measured = measured && apart[k].measured;
  *sum = 0;
  for (uint32_t k = 0; k < n; k++) {
    *sum += measured ? apart[k].seconds : apart[k].predicted;
    const bool in_them = l->plan->backend->asynchronous && is_depthwise_conv(part[k]);
    if (k && !measured && !in_them) *sum += handing_over(l, part[k - 1]); /* is part of what was measured */
  }
  return *sum - (measured ? together->seconds : together->predicted);
}

static void near(hn_lowering *l, hn_miss miss, const hn_unit *chain) {
  for (uint32_t k = 0; k < chain->n_parts; k++) miss.node[miss.n_nodes++] = chain->parts[k]->node;
  hn_miss_add(&l->plan->misses, &miss);
}

/* Makes the best chain among the parts (NULL: not there) that has part[1] in it, and with least_to 3 also
 * part[2]; none, when they are faster alone. */
static hone_status weigh(hn_lowering *l, hn_unit *part[3], uint32_t least_to, hone_error *error) {
  hn_unit *d = part[1], *best = NULL;
  hn_estimate apart[3], together;
  double gain = 0, sum;
  hn_miss miss = {.fusion = HN_FUSION_chain};
  hn_unit *nearest = NULL; /* of what was not faster, that which came closest; else what no tactic takes */
  for (uint32_t k = 0; k < 3; k++)
    if (part[k] && !hn_lower_predict(l, part[k], &apart[k])) part[k] = NULL;
  if (!part[1] || (least_to == 3 && !part[2])) return HONE_OK;
  for (uint32_t from = part[0] ? 0 : 1; from < 2; from++)
    for (uint32_t to = part[2] ? 3 : 2; to > from + 1 && to >= least_to; to--) {
      hn_unit *u = make_chain(l, part + from, to - from);
      if (!u) return hn_fail_memory(error, sizeof *u, "lowering");
      char text[128];
      if (!hn_lower_predict(l, u, &together)) {
        note(l, d, "no tactic takes it (shape, epilogue, or switched off)");
        if (!nearest) nearest = u, miss.why = HN_MISS_TACTIC;
        continue;
      }
      double saved = gain_of(l, part + from, apart + from, to - from, &together, &sum), seconds = sum - saved;
      l->plan->weighed = true;
      if (l->plan->chains == HONE_CHAINS_NEVER) continue;
      if (l->plan->chains == HONE_CHAINS_ALWAYS) saved = to - from; /* the longest */
      if (saved > gain) {
        best = u;
        gain = saved;
      } else if (saved <= 0) {
        if (miss.why != HN_MISS_SLOWER || seconds - sum < miss.together - miss.apart)
          nearest = u, miss.why = HN_MISS_SLOWER, miss.together = seconds, miss.apart = sum;
        snprintf(text, sizeof text, "%u convolutions: %.3f ms together, %.3f ms apart", to - from,
                 seconds * 1e3, sum * 1e3);
        note(l, d, text);
      }
    }
  if (!best) {
    if (nearest) near(l, miss, nearest);
    return HONE_OK;
  }
  best->note = d->note;
  best->n_notes = d->n_notes;
  for (uint32_t k = 0; k < best->n_parts; k++) best->parts[k]->into = best;
  if (!hn_vec_push(&l->units, best)) return hn_fail_memory(error, sizeof *best, "lowering");
  return HONE_OK;
}

static bool is_whole_conv(const hn_unit *u) {
  return u && is_conv(u) && hone_node_int(u->node, "group", 1) == 1;
}

/* Takes out a part whose neighbour's result cannot stay inside, and says so. */
static void drop(hn_lowering *l, hn_unit *d, const hn_value *v, hn_unit *with, const hn_unit *first,
                 hn_unit **part) {
  if (!*part || hn_stays_inside(v)) return;
  const hn_miss m = visible(l, v, with);
  char text[200];
  hn_miss_say(&m, text, sizeof text);
  note(l, d, text);
  hn_near(l, m, first->node, with->node);
  *part = NULL;
}

/* The best chain around depthwise unit d, or none. */
static hone_status grow(hn_lowering *l, hn_unit *d, hone_error *error) {
  hn_unit *part[3] = {hn_lower_maker(l, d->in[0]), d, reader(l, result_of(d))};
  if (!is_whole_conv(part[0])) part[0] = NULL;
  if (part[0]) drop(l, d, result_of(part[0]), d, part[0], &part[0]);
  if (part[2]) drop(l, d, result_of(d), part[2], d, &part[2]);
  return weigh(l, part, 2, error);
}

/* The best chain that ends with 1x1 convolution u and has a larger one before it, or none. */
static hone_status grow_product(hn_lowering *l, hn_unit *u, hone_error *error) {
  hn_unit *middle = hn_lower_maker(l, u->in[0]), *first = NULL;
  if (!is_whole_conv(middle) || is_pointwise_conv(middle)) return HONE_OK;
  if (!hn_stays_inside(result_of(middle))) {
    hn_near(l, visible(l, result_of(middle), u), middle->node, u->node);
    return HONE_OK;
  }
  first = hn_lower_maker(l, middle->in[0]);
  if (!first || !is_pointwise_conv(first) || !hn_stays_inside(result_of(first))) first = NULL;
  hn_unit *part[3] = {first, middle, u};
  return weigh(l, part, 3, error);
}

hone_status hn_lower_chains(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->separate || l->plan->level < 2 || !hn_fuses(l->plan, HN_FUSION_chain))
    return HONE_OK;
  for (size_t i = 0, n = l->units.len; i < n; i++) {
    hone_status status = is_depthwise_conv(l->units.ptr[i]) ? grow(l, l->units.ptr[i], error) : HONE_OK;
    if (status != HONE_OK) return status;
  }
  for (size_t i = 0, n = l->units.len; i < n && l->plan->backend->asynchronous; i++) {
    hone_status status =
        is_pointwise_conv(l->units.ptr[i]) ? grow_product(l, l->units.ptr[i], error) : HONE_OK;
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
