/* Cross-layer equalisation: channels of one activation that differ in size share one scale, so small ones get
 * few codes. A factor per channel moves from the weights before the activation to those behind it; with Relu,
 * pools and depthwise products in between the answers stay the same, as these commute with a positive factor.
 *
 * Weights have a scale an output channel, so the product in front takes any factor at no cost. Behind it the
 * factor spreads the inputs of each filter: the channel's range and its weights' meet half way (their
 * geometric mean), in turns along a chain. A depthwise product has one input a filter, and takes all of it.
 */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "improve/values.h"
#include "model/bind.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 16, SWEEPS = 8 };
#define LARGEST 0x1p20 /* factor of a channel */

typedef struct pair {
  hone_node *front, *behind;
  const char *name; /* of what lies between them, first of all operators that commute */
  int64_t channels;
  double *most;   /* [channels] largest |x| */
  double *factor; /* [channels] by which the front is divided so far */
} pair;

typedef struct equalising {
  hn_quantizing *q;
  HN_VEC(pair) pairs;
  hn_map by_name; /* of what a pair's front makes, behind its activation function */
  const hn_plan *plan;
  bool failed;
} equalising;

/* pools: channels are dimension 1, and not what is pooled. */
static bool commutes(const hone_node *n, bool pools) {
  static const char *const ops[] = {"Relu",    "LeakyRelu",   "Identity",
                                    "MaxPool", "AveragePool", "GlobalAveragePool"};
  for (size_t i = 0; i < (pools ? 6 : 3); i++)
    if (hn_is_op(n, ops[i])) return true;
  return false;
}

/* Weights that nobody else reads, and a bias that can be scaled. */
static bool own_weights(const hone_node *n, hn_quantize_weights *w) {
  if (!hn_quantize_weights_of(n, w) || n->in[1]->users.len != 1 || n->in[1]->is_output) return false;
  const hn_value *b = n->n_in > 2 ? n->in[2] : NULL;
  return !b || (hn_quantize_is_constant(b) && b->users.len == 1 && b->desc.dtype == HONE_DTYPE_F32);
}

static bool is_product(const hone_node *n) {
  return hn_is_op(n, "Conv") || hn_is_op(n, "Gemm") || hn_is_op(n, "MatMul");
}

static hone_status find_pair(equalising *e, hone_node *front, hone_error *error) {
  hn_quantize_weights a, b;
  if (!is_product(front) || !own_weights(front, &a)) return HONE_OK;
  const hn_value *bias = front->n_in > 2 ? front->in[2] : NULL;
  const hone_tensor_desc *d = bias ? &bias->constant->desc : NULL;
  if (bias && (d->rank < 1 || d->dim[d->rank - 1] != a.outputs || hone_desc_count(d) != a.outputs))
    return HONE_OK;
  hn_value *v = front->out[0];
  const char *name = v->name;
  hone_node *n = NULL;
  while (hn_value_single_use(v) && (n = v->users.ptr[0].node)->graph == v->graph &&
         commutes(n, hn_is_op(front, "Conv"))) {
    v = n->out[0];
    if (hn_is_op(n, "Relu") || hn_is_op(n, "LeakyRelu")) name = v->name;
  }
  if (!hn_value_single_use(v) || !is_product(n) || n->in[0] != v || !own_weights(n, &b) ||
      hone_node_int(n, "transA", 0) || b.inputs != a.outputs ||
      hn_is_op(n, "Conv") != hn_is_op(front, "Conv"))
    return HONE_OK;
  pair p = {.front = front, .behind = n, .name = name, .channels = a.outputs};
  p.most = HN_NEW_ARRAY(&e->q->arena, double, p.channels);
  p.factor = HN_NEW_ARRAY(&e->q->arena, double, p.channels);
  if (!p.most || !p.factor || !hn_vec_push(&e->pairs, p))
    return hn_fail_memory(error, sizeof p, "equalising channels");
  for (int64_t c = 0; c < p.channels; c++) p.factor[c] = 1;
  return HONE_OK;
}

/* ---- how large channels are */

static void watch(void *arg, const hn_step *s, hone_tensor *const *out) {
  equalising *e = arg;
  const hn_value *v = s->desc.n_outputs && out[0] ? hn_value_of_step(e->plan, s, 0) : NULL;
  const pair *p = v ? hn_map_get(&e->by_name, v->name) : NULL;
  if (!p || out[0]->desc.dtype != HONE_DTYPE_F32) return;
  hone_tensor *t = hn_rows_of(out[0]);
  if (!t) {
    e->failed = true;
    return;
  }
  const float *x = t->data;
  const bool last = !hn_is_op(p->front, "Conv");
  const int64_t n = hone_desc_count(&t->desc);
  const int64_t inner = last || t->desc.rank < 2 ? 1 : n / (t->desc.dim[0] * t->desc.dim[1]);
  for (int64_t i = 0; i < n; i++) {
    double *m = &p->most[i / inner % p->channels];
    const double a = fabs((double)x[i]);
    if (isfinite(a) && a > *m) *m = a;
  }
  hn_rows_free(t);
}

static hone_status measure(equalising *e, hone_error *error) {
  const hone_quantize_options *o = e->q->o;
  hn_side side = {0};
  hn_quantize_samples *samples = NULL;
  hn_model *bound = NULL;
  hone_status status = hn_side_open(e->q->model,
                                    &(hn_side_options){.level = 0,
                                                       .threads = o->threads,
                                                       .bindings = o->bindings,
                                                       .n_bindings = o->n_bindings,
                                                       .batch = o->batch},
                                    &side, error);
  if (status == HONE_OK)
    status = hn_model_bind(e->q->model, o->bindings, o->n_bindings, o->batch, &bound, NULL, error);
  if (status == HONE_OK) status = hn_quantize_samples_open(e->q->o, bound, side.plan, &samples, error);
  const uint32_t all = status == HONE_OK ? hn_quantize_samples_count(samples) : 0,
                 n = all < SAMPLES ? all : SAMPLES;
  if (status == HONE_OK) {
    e->plan = side.plan;
    hn_context_watch(side.context, watch, e, false);
  }
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    const hn_feed *feeds;
    status = hn_quantize_samples_read(samples, i, &feeds, error);
    if (status == HONE_OK) status = hn_side_run(&side, feeds, side.plan->n_inputs, error);
    if (status == HONE_OK && o->progress && !o->progress(o->progress_arg, HONE_QUANTIZE_EQUALIZES, i + 1, n))
      status = hn_fail(error, HONE_ERROR_CANCELLED, "stopped while channels were measured");
  }
  if (status == HONE_OK && e->failed) status = hn_fail_memory(error, 0, "equalising channels");
  hn_quantize_samples_close(samples);
  hn_model_destroy(bound);
  hn_side_close(&side);
  return status;
}

/* ---- factors */

/* The largest weight that reads each channel, with the factors of both sides so far. */
static void reading(const equalising *e, const pair *p, double *most) {
  hn_quantize_weights w;
  hn_quantize_weights_of(p->behind, &w);
  const pair *next = NULL;
  for (size_t i = 0; i < e->pairs.len; i++)
    if (e->pairs.ptr[i].front == p->behind) next = &e->pairs.ptr[i];
  memset(most, 0, (size_t)p->channels * sizeof *most);
  for (int64_t i = 0; i < w.n; i++) {
    const int64_t c = hn_quantize_input_of(&w, i);
    const double by = next ? next->factor[hn_quantize_output_of(&w, i)] : 1;
    most[c] = fmax(most[c], fabs((double)hn_quantize_f32(w.v, i)) * p->factor[c] / by);
  }
}

static bool depthwise(const hone_node *n) {
  hn_quantize_weights w;
  return hn_quantize_weights_of(n, &w) && w.filters_of_group && w.dim[1] == 1;
}

static void balance(const equalising *e, pair *p, double *weight) {
  double mean = 0;
  int64_t live = 0;
  const bool alone = depthwise(p->behind);
  reading(e, p, weight);
  for (int64_t c = 0; c < p->channels; c++) {
    if (!(p->most[c] > 0 && weight[c] > 0)) continue;
    weight[c] = p->most[c] / p->factor[c] / (alone ? 1 : weight[c]);
    mean += log(weight[c]);
    live++;
  }
  mean = live ? exp(mean / (double)live) : 1;
  for (int64_t c = 0; c < p->channels; c++) {
    if (!(p->most[c] > 0 && weight[c] > 0)) continue;
    const double by = p->factor[c] * (alone ? weight[c] / mean : sqrt(weight[c] / mean));
    p->factor[c] = fmin(LARGEST, fmax(1 / LARGEST, by));
  }
}

/* ---- into the weights */

static bool scaled(hone_node *n, uint32_t input, const double *by,
                   int64_t (*channel)(const hn_quantize_weights *, int64_t), const hn_quantize_weights *w,
                   bool divide) {
  const hone_tensor *t = n->in[input]->constant;
  const int64_t count = hone_desc_count(&t->desc);
  hn_value *v = hn_quantize_constant(n->graph, n->in[input]->name, "equalized", HONE_DTYPE_F32, t->desc.rank,
                                     t->desc.dim, t->data);
  if (!v) return false;
  float *x = v->constant->data;
  for (int64_t i = 0; i < count; i++) {
    const double f = by[channel ? channel(w, i) : i];
    x[i] = (float)(divide ? (double)x[i] / f : (double)x[i] * f);
  }
  return hn_node_set_input(n, input, v);
}

static bool apply(const pair *p) {
  hn_quantize_weights w;
  if (!hn_quantize_weights_of(p->front, &w) ||
      !scaled(p->front, 1, p->factor, hn_quantize_output_of, &w, true))
    return false;
  if (p->front->n_in > 2 && p->front->in[2] && !scaled(p->front, 2, p->factor, NULL, NULL, true))
    return false;
  return hn_quantize_weights_of(p->behind, &w) &&
         scaled(p->behind, 1, p->factor, hn_quantize_input_of, &w, false);
}

hone_status hn_quantize_equalise(hn_quantizing *q, uint32_t *pairs, hone_error *error) {
  equalising e = {.q = q};
  hone_status status = HONE_OK;
  int64_t widest = 1;
  for (hone_node *n = q->model->graph->first; n && status == HONE_OK; n = n->next)
    status = find_pair(&e, n, error);
  for (size_t i = 0; i < e.pairs.len && status == HONE_OK; i++) {
    pair *p = &e.pairs.ptr[i];
    widest = p->channels > widest ? p->channels : widest;
    if (!hn_map_set(&e.by_name, p->name, p)) status = hn_fail_memory(error, sizeof *p, "equalising channels");
  }
  double *weight = hn_calloc((size_t)widest, sizeof *weight);
  if (status == HONE_OK && !weight)
    status = hn_fail_memory(error, (size_t)widest * sizeof *weight, "equalising channels");
  if (status == HONE_OK && e.pairs.len) status = measure(&e, error);
  for (int sweep = 0; sweep < SWEEPS && status == HONE_OK; sweep++)
    for (size_t i = 0; i < e.pairs.len; i++) balance(&e, &e.pairs.ptr[i], weight);
  for (size_t i = 0; i < e.pairs.len && status == HONE_OK; i++)
    if (!apply(&e.pairs.ptr[i])) status = hn_fail_memory(error, 0, "equalised weights");
  *pairs = (uint32_t)e.pairs.len;
  hn_free(weight);
  hn_map_free(&e.by_name);
  hn_vec_free(&e.pairs);
  return status;
}
