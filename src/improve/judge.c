#include "base/dims.h"
#include "improve/judge.h"
#include "optimize/step/anchor.h"

#include "backends/cpu/kernels/winograd/winograd.h"
#include "base/error.h"
#include "improve/compare.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_INPUTS = 16 };

typedef struct judge {
  const hn_plan *plan;
  const hn_step *step;
  const hn_values *kept;
  const hn_feed *feeds;
  uint32_t n_feeds;
  const hone_node *node;
  const hone_tensor *in[MOST_INPUTS]; /* of the node */
  hone_tensor view[MOST_INPUTS + HONE_MAX_EPILOGUE];
  const hone_tensor *extra[HONE_MAX_EPILOGUE]; /* of the epilogue */
  hone_tensor exact, sizes;                    /* the reference's answer, and its answer on absolute values */
  double most;                                 /* the largest operand */
} judge;

/* ---- what the step was given */

static const hone_tensor *fed(const judge *q, const hn_value *v) {
  for (uint32_t i = 0; i < q->plan->n_inputs; i++) {
    if (q->plan->inputs[i] != v) continue;
    for (uint32_t k = 0; k < q->n_feeds; k++)
      if (strcmp(q->feeds[k].name, v->name) == 0) return &q->feeds[k].data.tensor;
    return i < q->n_feeds ? &q->feeds[i].data.tensor : NULL;
  }
  return NULL;
}

/* Views have no step of their own: their elements are those of what they look at. */
static const hone_tensor *value_of(const judge *q, const hn_value *v, hone_tensor *view) {
  const hone_tensor_desc *shape = &v->desc;
  for (int depth = 0; depth < 64 && v; depth++) {
    const hone_tensor *t =
        v->constant && v->constant->data ? v->constant : hn_map_get(&q->kept->kept, v->name);
    if (!t) t = fed(q, v);
    if (t) {
      if (t->desc.layout != HONE_LAYOUT_ROW_MAJOR || t->desc.dtype != shape->dtype ||
          !hone_desc_known(shape) || hone_desc_count(&t->desc) != hone_desc_count(shape))
        return NULL;
      *view = (hone_tensor){hone_desc(shape->dtype, shape->rank, shape->dim), t->data};
      return view;
    }
    const hone_node *n = v->producer;
    v = n && n->op && n->op->flags & HONE_OP_VIEW && v->producer_index == 0 ? n->in[0] : NULL;
  }
  return NULL;
}

static bool find_inputs(judge *q) {
  const hn_step *s = q->step;
  for (uint32_t i = 0; i < q->node->n_in; i++) {
    const hn_value *v = q->node->in[i];
    if (!v) continue;
    /* The step must have been given the node's own operands: lowering may have put others in their place. */
    const bool pointwise = s->desc.program != NULL;
    if (!pointwise &&
        (i >= s->desc.n_anchor_inputs || s->in[i] == HN_NO_SLOT || q->plan->slots.ptr[s->in[i]].value != v))
      return false;
    if (!(q->in[i] = value_of(q, v, &q->view[i]))) return false;
  }
  for (uint32_t k = 0; k < s->desc.n_epilogue; k++) {
    const hone_epilogue *e = &s->desc.epilogue[k];
    if (e->kind == HONE_EPI_ACT) continue;
    if (e->kind > HONE_EPI_MUL) return false;
    const hone_step_tensor *t = &s->desc.input[e->input];
    const uint32_t slot = s->in[e->input];
    const hn_value *v = slot == HN_NO_SLOT ? NULL : q->plan->slots.ptr[slot].value;
    hone_tensor *view = &q->view[MOST_INPUTS + k];
    if (t->desc.dtype != HONE_DTYPE_F32) return false;
    if (e->kind >= HONE_EPI_ADD)
      q->extra[k] = v ? value_of(q, v, view) : NULL;
    else if (t->constant) {
      *view = (hone_tensor){t->desc, (void *)t->constant};
      q->extra[k] = view;
    }
    if (!q->extra[k]) return false;
  }
  return true;
}

/* ---- references */

static hone_status evaluate(judge *q, bool absolute, hn_budget *budget, hone_tensor *y, hone_error *error) {
  hn_arena keep = {0};
  const hone_tensor *in[MOST_INPUTS] = {0};
  hone_tensor copy[MOST_INPUTS] = {0};
  hone_tensor *out[1] = {y};
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < q->node->n_in && status == HONE_OK; i++) {
    in[i] = q->in[i];
    if (!absolute || !in[i] || in[i]->desc.dtype != HONE_DTYPE_F32) continue;
    const int64_t n = hone_desc_count(&in[i]->desc);
    copy[i] = (hone_tensor){in[i]->desc, hn_malloc((size_t)n * sizeof(float))};
    if (!copy[i].data) status = hn_fail_memory(error, (uint64_t)n * sizeof(float), "judging a step");
    for (int64_t k = 0; k < n && status == HONE_OK; k++) {
      const float a = fabsf(((const float *)in[i]->data)[k]);
      ((float *)copy[i].data)[k] = a;
      if ((double)a > q->most) q->most = (double)a;
    }
    in[i] = &copy[i];
  }
  if (status == HONE_OK) status = hn_eval_node(q->node, in, out, &keep, budget, error);
  for (uint32_t i = 0; i < q->node->n_in; i++) hn_free(copy[i].data);
  hn_arena_free(&keep);
  return status;
}

/* ---- bounds */

/* One element on its way through the step: its value, how far right answers may lie from it, and, while
 * nothing but sums and products has happened, the sum of the sizes of what was added. */
typedef struct element {
  double value, error, sizes;
  int64_t terms;
  bool linear;
} element;

static void settle(element *x, double most) {
  if (!x->linear) return;
  x->linear = false;
  /* Operands below the least normal number may count as zero. */
  x->error = 2 * hn_gamma(x->terms) * x->sizes * (1 + 4 * HN_UNIT_ROUNDING) +
             (double)x->terms * FLT_MIN * fmax(1, most);
}

/* y = f(x), the most that f stretches a difference by, and its own error at x. */
static bool activate(const hone_epilogue *e, element *x) {
  const double v = x->value, a = e->alpha, b = e->beta, ulp = 2 * HN_UNIT_ROUNDING;
  double y, stretch = 1, own = 0;
  switch (e->act) {
  case HONE_PW_RELU: y = fmax(v, 0); break;
  case HONE_PW_CLIP: y = fmin(fmax(v, a), b); break;
  case HONE_PW_LEAKYRELU:
    y = v < 0 ? v * a : v;
    stretch = fmax(1, fabs(a));
    own = ulp * fabs(y);
    break;
  case HONE_PW_SIGMOID:
    y = 1 / (1 + exp(-v));
    stretch = 0.25;
    own = 2.5 * ulp * y;
    break;
  case HONE_PW_TANH:
    y = tanh(v);
    own = 2.5 * ulp * fabs(y);
    break;
  case HONE_PW_HARDSWISH: /* alpha x + beta lies in [0, 1] where the slope is not 0 or 1 */
    y = v * fmin(fmax(a * v + b, 0), 1);
    stretch = 2 + fabs(b);
    own = ulp * fabs(y) + fabs(v) * ulp * (1 + 2 * fabs(b));
    break;
  case HONE_PW_GELU_ERF:
    y = 0.5 * v * (1 + erf(v * M_SQRT1_2));
    stretch = 1.13;
    own = ulp * fabs(y) + fabs(v) * ulp;
    break;
  default: return false;
  }
  x->value = y;
  x->error = x->error * stretch + own + 4 * FLT_MIN;
  return true;
}

static double other_of(const judge *q, uint32_t k, int64_t i, int64_t channels, int64_t inner) {
  const bool vector = q->step->desc.epilogue[k].kind <= HONE_EPI_SCALE;
  const float *data = q->extra[k]->data;
  return (double)data[vector ? i / inner % channels : i];
}

static bool finish(const judge *q, int64_t i, int64_t channels, int64_t inner, element *x) {
  const hone_step *s = &q->step->desc;
  for (uint32_t k = 0; k < s->n_epilogue; k++) {
    const hone_epilogue *e = &s->epilogue[k];
    if (e->kind == HONE_EPI_ACT) {
      settle(x, q->most);
      if (!activate(e, x)) return false;
      continue;
    }
    const double o = other_of(q, k, i, channels, inner), size = fabs(x->value) + fabs(o);
    const bool sum = e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_ADD;
    if (sum)
      x->error += 4 * HN_UNIT_ROUNDING * (size + x->error), x->sizes += fabs(o);
    else
      x->error = fabs(o) * (x->error + 4 * HN_UNIT_ROUNDING * fabs(x->value)), x->sizes *= fabs(o);
    x->value = sum ? x->value + o : x->value * o;
    x->terms += 2;
  }
  settle(x, q->most);
  return true;
}

/* Sum over the filter's channels and taps of depth of the largest weight and the largest input of each, for
 * every image and filter. */
static double winograd_sizes(const judge *q, int64_t image, int64_t filter) {
  const hone_tensor *x = q->in[0], *w = q->in[1];
  const bool deep = x->desc.rank == 5;
  const int64_t channels = w->desc.dim[1], depth = deep ? w->desc.dim[2] : 1,
                pixels = x->desc.dim[2] * x->desc.dim[3] * (deep ? x->desc.dim[4] : 1);
  double sum = 0;
  const int64_t groups = x->desc.dim[1] / channels, first = filter / (w->desc.dim[0] / groups) * channels;
  for (int64_t c = 0; c < channels; c++) {
    const float *d = (const float *)x->data + (image * x->desc.dim[1] + first + c) * pixels;
    float b = 0;
    for (int64_t k = 0; k < pixels; k++) b = fmaxf(b, fabsf(d[k]));
    for (int64_t j = 0; j < depth; j++) {
      const float *g = (const float *)w->data + ((filter * channels + c) * depth + j) * 9;
      float a = 0;
      for (int k = 0; k < 9; k++) a = fmaxf(a, fabsf(g[k]));
      sum += (double)a * (double)b;
    }
  }
  return sum;
}

static double largest_of(const hone_tensor *t) {
  double most = 0;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++)
    most = fmax(most, fabs((double)((const float *)t->data)[i]));
  return most;
}

/* Of all rows and columns, of which only some meet: with what each of them adds to a sum at the most. */
static double strassen_sizes(const judge *q, int64_t terms) {
  const double alpha = strcmp(q->node->op_type, "Gemm") == 0 ? hone_node_float(q->node, "alpha", 1) : 1;
  return (double)terms * alpha * largest_of(q->in[0]) * largest_of(q->in[1]);
}

static double spread_of(const hone_tensor *t) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    const double v = (double)((const float *)t->data)[i];
    if (!isfinite(v)) continue;
    low = fmin(low, v);
    high = fmax(high, v);
  }
  return high > low ? high - low : 0;
}

static void start(const judge *q, const hn_tolerance *t, int64_t i, double scale, element *x) {
  const double y = (double)((const float *)q->exact.data)[i], u = HN_UNIT_ROUNDING;
  *x = (element){.value = y, .terms = t->terms};
  switch (t->class) {
  case HN_TOLERANCE_SUM:
    x->linear = true;
    x->sizes = (double)((const float *)q->sizes.data)[i];
    break;
  case HN_TOLERANCE_STRASSEN:
  case HN_TOLERANCE_WINOGRAD:
    x->error = hn_tolerance_share(t) * scale + 2 * u * fabs(y) + (double)t->terms * FLT_MIN * fmax(1, scale);
    break;
  case HN_TOLERANCE_FUNCTION: { /* slack: Gelu and HardSwish, whose input has the output's elements */
    const double in = t->slack > 0 ? fabs((double)((const float *)q->in[0]->data)[i]) : 0;
    x->error = (2 * t->ulps + 1) * u * fabs(y) + t->slack * u * in + 4 * FLT_MIN;
    break;
  }
  case HN_TOLERANCE_SOFTMAX: /* kernels take weights below e^-87 = 1.4 FLT_MIN as 0 */
    x->error = 1.01 * (hn_tolerance_share(t) + 2 * u * scale) * y + 2 * FLT_MIN;
    break;
  default: break;
  }
}

/* The bound of a whole answer; a step's is never above it. */
static double bound_of_whole(const hone_tensor *t) {
  hn_difference d;
  hn_compare(t, t, &d);
  return hn_verify_tolerance(HONE_DTYPE_F32, false) * (d.range > 0       ? d.range
                                                       : d.magnitude > 0 ? d.magnitude
                                                                         : 1);
}

static void compare(judge *q, const hone_tensor *got, hn_judgement *out) {
  const hn_tolerance *t = &out->tolerance;
  const hone_tensor_desc *d = &q->exact.desc;
  const bool conv = hn_anchor_of_step(&q->step->desc).channels;
  const int32_t axis = conv ? 1 : d->rank - 1;
  const int64_t count = hone_desc_count(d), channels = d->rank ? d->dim[axis] : 1,
                inner = hn_dims(d, axis + 1, d->rank);
  int64_t block = -1;
  double scale = t->class == HN_TOLERANCE_SOFTMAX    ? spread_of(q->in[0])
                 : t->class == HN_TOLERANCE_STRASSEN ? strassen_sizes(q, t->terms)
                                                     : 0,
         worst = -1;
  const double whole = bound_of_whole(got);
  for (int64_t i = 0; i < count; i++) {
    element x;
    if (t->class == HN_TOLERANCE_WINOGRAD && i / inner != block) {
      block = i / inner;
      scale = winograd_sizes(q, block / channels, block % channels);
    }
    start(q, t, i, scale, &x);
    if (!finish(q, i, channels, inner, &x)) return;
    const double apart = fabs((double)((const float *)got->data)[i] - x.value);
    /* What is not finite on the way has no bound; compare.c judges it. The reference's own last rounding. */
    if (!isfinite(apart) || !isfinite(x.error)) continue;
    const double bound =
        fmin(whole, x.error + (q->step->desc.n_epilogue ? HN_UNIT_ROUNDING * fabs(x.value) : 0));
    const double part = apart <= 0 ? 0 : bound > 0 ? apart / bound : INFINITY;
    if (part <= worst) continue;
    worst = part;
    out->bound = bound;
    out->measured = apart;
    out->element = i;
  }
  out->known = worst >= 0;
  out->over = worst > 1;
}

/* ---- what can be judged */

/* What the step's one operator is: anchors and single elementwise nodes, f32, on the CPU, in f32's own
 * arithmetic. */
static const hone_node *node_of(const hn_plan *plan, const hn_step *s) {
  const bool pointwise = s->desc.program != NULL;
  if (s->kind != HN_STEP_TACTIC || s->desc.n_outputs != 1 || s->desc.n_parts || !s->desc.node) return NULL;
  if (strcmp(plan->backend->name, "cpu") != 0 || s->desc.math > HONE_MATH_F32) return NULL;
  const hone_node *n = pointwise && s->n_nodes == 1 ? s->nodes[0] : pointwise ? NULL : s->desc.node;
  if (!n || n->n_in > MOST_INPUTS || n->n_out != 1 || !n->in[0]) return NULL;
  return pointwise || strcmp(s->desc.anchor, n->op_type) == 0 ? n : NULL;
}

static bool has_bound(const hone_node *n, const hn_step *s, const hn_tolerance *t) {
  switch (t->class) {
  case HN_TOLERANCE_STRASSEN:
  case HN_TOLERANCE_SUM: /* Gemm's factors could cancel in the sum of sizes */
    return t->terms > 0 && hone_node_float(n, "alpha", 1) >= 0 && hone_node_float(n, "beta", 1) >= 0;
  case HN_TOLERANCE_WINOGRAD: return n->in[1]->desc.rank == 4 && hone_node_int(n, "group", 1) == 1;
  case HN_TOLERANCE_SOFTMAX: return t->terms > 0 && !s->desc.n_epilogue;
  case HN_TOLERANCE_EXACT:
  case HN_TOLERANCE_FUNCTION: return !s->desc.n_epilogue;
  default: return false;
  }
}

hone_status hn_judge_step(const hn_plan *plan, const hn_step *s, const hn_values *kept, const hn_feed *feeds,
                          uint32_t n, hn_budget *budget, hn_judgement *out, hone_error *error) {
  *out = (hn_judgement){0};
  judge q = {.plan = plan, .step = s, .kept = kept, .feeds = feeds, .n_feeds = n};
  if (!(q.node = node_of(plan, s))) return HONE_OK;
  const hn_value *v = hn_value_of_step(plan, s, 0);
  const hone_tensor *got = v ? hn_map_get(&kept->kept, v->name) : NULL;
  hn_tolerance_of(q.node, s->tactic->name, &out->tolerance);
  if (!got || got->desc.dtype != HONE_DTYPE_F32 || !has_bound(q.node, s, &out->tolerance) || !find_inputs(&q))
    return HONE_OK;
  hone_status status = evaluate(&q, false, budget, &q.exact, error);
  if (status == HONE_OK && out->tolerance.class == HN_TOLERANCE_SUM)
    status = evaluate(&q, true, budget, &q.sizes, error);
  if (status == HONE_OK && q.exact.desc.dtype == HONE_DTYPE_F32 &&
      hone_desc_count(&q.exact.desc) == hone_desc_count(&got->desc))
    compare(&q, got, out);
  hn_free(q.exact.data);
  hn_free(q.sizes.data);
  return status;
}

/* ---- a run */

static void publish(const hn_judgement *j, hone_step_judgement *out) {
  *out = (hone_step_judgement){.kind = j->tolerance.class_name,
                               .terms = (uint64_t)j->tolerance.terms,
                               .bound = j->bound,
                               .measured = j->measured,
                               .element = j->element,
                               .over = j->over};
}

/* The first step before `end` that is over its bound. What a reference refuses, or has no time for, says
 * nothing. */
static hone_status first_over(const hn_plan *p, size_t end, const hn_values *kept, const hn_feed *feeds,
                              uint32_t n, hn_budget *budget, hn_judgement *out, size_t *at,
                              hone_error *error) {
  for (*at = 0; *at < end; ++*at) {
    hone_status status = hn_judge_step(p, &p->steps.ptr[*at], kept, feeds, n, budget, out, error);
    if (status == HONE_ERROR_MEMORY || status == HONE_ERROR_CANCELLED) return status;
    if (status == HONE_ERROR_BUDGET) *at = end - 1;
    if (status == HONE_OK && out->known && out->over) return HONE_OK;
  }
  return HONE_OK;
}

hone_status hn_side_judge(hn_side *test, const hn_feed *feeds, uint32_t n, double max_seconds, char *node,
                          size_t size, hone_step_judgement *out, hone_error *error) {
  const hn_plan *p = test->plan;
  if (p->slices > 1) return HONE_OK; /* its values are those of a part of the batch */
  hn_values kept = {0};
  hn_judgement found = {0}, first = {0};
  hn_budget budget = {.deadline_ns = hn_now_ns() + (uint64_t)(max_seconds * 1e9)};
  size_t end = p->steps.len, at = 0;
  hone_error why = {0}; /* of references, which need not answer */
  for (size_t i = 0; i < p->steps.len && end == p->steps.len && *node; i++)
    if (strcmp(p->steps.ptr[i].desc.name, node) == 0) end = i;
  hone_status status = hn_values_of_run(test, feeds, n, &kept, error);
  if (status != HONE_OK) goto done;
  if (end < p->steps.len) {
    status = hn_judge_step(p, &p->steps.ptr[end], &kept, feeds, n, &budget, &found, &why);
    if (status == HONE_OK && found.known) publish(&found, out);
  }
  if (status != HONE_ERROR_MEMORY) status = first_over(p, end, &kept, feeds, n, &budget, &first, &at, &why);
  if (status == HONE_ERROR_MEMORY || status == HONE_ERROR_CANCELLED) {
    *error = why;
    goto done;
  }
  status = HONE_OK;
  if (at < end) {
    publish(&first, out);
    snprintf(node, size, "%s", p->steps.ptr[at].desc.name);
  }
done:
  hn_values_free(&kept);
  return status;
}
