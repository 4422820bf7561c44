/* Proving that optimised answers are the model's answers. */
#include <hone/improve.h>

#include "backends/cpu/kernels/features.h"
#include "base/error.h"
#include "base/os.h"
#include "improve/compare.h"
#include "improve/dump.h"
#include "improve/feeds.h"
#include "improve/judge.h"
#include "improve/narrowing.h"
#include "improve/roundings.h"
#include "improve/values.h"
#include "model/ops/common/op.h"
#include "optimize/step/work.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  INPUTS = 100,
  EDGES_FROM = 8,   /* who asks for fewer inputs wants a quick look */
  LEAST_INPUTS = 4, /* that a scalar reference must have time for, if no more are wanted */
  MOST_ALONE = 8    /* inputs that get edge values by themselves */
};
#define EDGE_SHARE 0.25 /* of the time for random inputs, and after them */
#define NUDGE 1e-6f     /* some units in the last place of f32 */
#define REFERENCE_FLOPS                                                                                      \
  4e9 /* what scalar references do in a second, about; only decides who the reference is */

typedef struct job {
  const hone_verify_options *o;
  hone_model *a, *b;
  hn_side test, reference;
  hn_side_options best; /* of the side under test */
  hn_side_options ref;  /* and of the reference */
  bool by_scalar;
  double most_seconds;          /* of one run that decides something */
  double tolerance;             /* of the caller; 0: by dtype */
  bool quantised, by_roundings; /* by_roundings: both sides are quantised */
  hone_dtype narrowest;
  bool lenient;  /* ends may be one of an output's neighbouring values off */
  bool by_steps; /* quantised: each step on the reference's values decides, and the ends are only told */
  double *sway;  /* by output, quantised models: how far a nudge of the inputs moves the reference itself */
  uint32_t n_feeds;
  hn_feed *feeds;
  uint32_t n_outputs;
  double *range;          /* by output: largest range seen */
  uint64_t *first_hash;   /* by output: of the reference's first answer */
  bool *varies, *telling; /* by output: between inputs; within one answer */
  hone_verify_result *out;
} job;

/* ---- choosing sides */

static double plan_flops(const hn_plan *p) {
  double sum = 0;
  for (size_t i = 0; i < p->steps.len; i++) sum += p->steps.ptr[i].desc.cost.flops;
  return sum * p->slices;
}

static void look_at(const hn_graph *g, bool *quantised, hone_dtype *narrowest) {
  for (const hone_node *n = g->first; n; n = n->next) {
    if (strstr(n->op_type, "Quantize") || strncmp(n->op_type, "QLinear", 7) == 0 ||
        strstr(n->op_type, "Integer"))
      *quantised = true;
    for (uint32_t i = 0; i < n->n_out; i++) {
      hone_dtype d = n->out[i] ? n->out[i]->desc.dtype : HONE_DTYPE_NONE;
      if (d == HONE_DTYPE_BF16 || (d == HONE_DTYPE_F16 && *narrowest != HONE_DTYPE_BF16)) *narrowest = d;
    }
  }
}

/* The type whose tolerance results of a precision are judged by: tf32 has the bits of f16. */
static hone_dtype narrowest_of(hn_precision precision) {
  return precision == HN_PRECISION_FP8    ? HONE_DTYPE_F8E4M3FN
         : precision == HN_PRECISION_BF16 ? HONE_DTYPE_BF16
         : precision == HN_PRECISION_F32  ? HONE_DTYPE_F32
                                          : HONE_DTYPE_F16;
}

static bool is_narrow(hone_dtype d) { return hone_dtype_is_float(d) && hone_dtype_size(d) < 4; }

/* Does a step multiply, read or leave floats of less than 32 bits? A plan for bf16 need not have one: codes
 * of 8 bits are multiplied as they are. On accelerators not every kernel tells. */
static bool computes_narrow(const hn_plan *p) {
  if (p->backend->asynchronous) return true;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    const hone_work work = hn_tactic_work(s->tactic, &s->desc, &p->machine);
    bool narrow = work.arithmetic == HONE_ARITHMETIC_UNKNOWN ||
                  is_narrow(hn_arithmetic_types_of(&s->desc, &work).operand);
    for (uint32_t k = 0; k < s->desc.n_inputs; k++) narrow |= is_narrow(s->desc.input[k].desc.dtype);
    for (uint32_t k = 0; k < s->desc.n_outputs; k++) narrow |= is_narrow(s->desc.output[k].desc.dtype);
    if (narrow) return true;
  }
  return false;
}

/* Does a step multiply numbers of 8 bits where the graph has floats (MatMulNBits that allows it)? */
static bool multiplies_bytes(const hn_plan *p) {
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    const hone_arithmetic a = hn_tactic_work(s->tactic, &s->desc, &p->machine).arithmetic;
    if (a == HONE_ARITHMETIC_INT8 || a == HONE_ARITHMETIC_INT8_VECTORS) return true;
  }
  return false;
}

/* Whether steps can be compared one by one: of another model where both are quantised. */
static bool has_steps(const job *j) { return j->by_roundings && j->tolerance <= 0; }

static hone_status open_sides(job *j, double max_seconds, hone_error *error) {
  hn_side_options best = {.level = j->o->level > 0 ? j->o->level : 2,
                          .threads = j->o->threads,
                          .bindings = j->o->bindings,
                          .n_bindings = j->o->n_bindings,
                          .batch = j->o->batch,
                          .device = j->o->device,
                          .precision = j->o->precision,
                          .f32_nodes = j->o->f32_nodes,
                          .n_f32_nodes = j->o->n_f32_nodes};
  /* Values between steps are compared of the whole alone. */
  best.sliced = !has_steps(j) && !j->o->dump;
  j->best = best;
  hone_status status = j->o->plan ? hn_side_open_saved(j->o->plan, &best, &j->test, error)
                                  : hn_side_open(j->b ? j->b : j->a, &best, &j->test, error);
  if (status != HONE_OK) return status;
  const hone_dtype narrow = narrowest_of(j->test.plan->precision);
  if (narrow != HONE_DTYPE_F32 && computes_narrow(j->test.plan)) j->narrowest = narrow;
  j->quantised |= multiplies_bytes(j->test.plan);
  hn_isa isa = hn_cpu()->isa;
  /* As many inputs as bring edge values with them, if so many are wanted. */
  const uint32_t wanted = j->o->inputs ? j->o->inputs : INPUTS, least = wanted < LEAST_INPUTS ? LEAST_INPUTS
                                                                        : wanted < EDGES_FROM ? wanted
                                                                                              : EDGES_FROM;
  j->by_scalar = isa == HN_ISA_SCALAR || least * plan_flops(j->test.plan) / REFERENCE_FLOPS <= max_seconds;
  hn_side_options ref = best;
  ref.level = 0;
  ref.device = ref.precision = NULL;
  ref.reference = j->by_scalar;
  ref.isa = j->by_scalar ? NULL : isa > HN_ISA_AVX2 ? "avx2" : "scalar";
  snprintf(j->out->reference, sizeof j->out->reference,
           j->by_scalar ? "scalar reference, node by node" : "%s tier, node by node", ref.isa);
  j->ref = ref;
  if (!j->o->plan) return hn_side_open(j->a, &ref, &j->reference, error);
  /* The shapes are the plan's. */
  uint32_t n = j->test.plan->n_inputs;
  hone_binding *bindings = hn_calloc(n, sizeof *bindings);
  if (!bindings) return hn_fail_memory(error, n * sizeof *bindings, "verify");
  for (uint32_t i = 0; i < n; i++) {
    const hone_tensor_desc *d = hn_plan_given(j->test.plan, i);
    bindings[i] = (hone_binding){.input = j->test.plan->inputs[i]->name, .rank = d->rank};
    memcpy(bindings[i].dim, d->dim, sizeof bindings[i].dim);
  }
  ref.bindings = bindings;
  ref.n_bindings = n;
  status = hn_side_open(j->a, &ref, &j->reference, error);
  hn_free(bindings);
  return status;
}

/* ---- inputs */

/* Samples are not compared twice. */
static uint32_t wanted_of(const job *j) {
  const uint64_t all = hone_dataset_samples(j->o->data);
  const uint32_t n = j->n_feeds == 0 || hn_feeds_all_given(j->o->given, j->n_feeds) ? 1
                     : j->o->inputs                                                 ? j->o->inputs
                                                                                    : INPUTS;
  return all && all < n ? (uint32_t)all : n;
}

static hn_feed_case random_case(const job *j, uint32_t k) {
  const uint64_t all = hone_dataset_samples(j->o->data), n = wanted_of(j);
  return (hn_feed_case){.seed = (j->o->seed ? j->o->seed : 1) + (uint64_t)k * 1000003,
                        .only = -1,
                        .sample = all && k < n ? 1 + k * all / n : 0};
}

/* A sample in the place of random values. */
static hone_status put_sample(job *j, uint64_t sample, hone_error *error) {
  hn_feed *feed = &j->feeds[j->o->data_input];
  const hone_tensor_desc want = feed->data.tensor.desc;
  hone_data_free(&feed->data);
  return hone_dataset_load(j->o->data, sample - 1, &want, j->o->preprocess, &feed->data, NULL, error);
}

static hone_status make_feeds(job *j, const hn_feed_case *c, hone_error *error) {
  hone_status status = hn_feeds_make(j->reference.plan, j->a, c, j->feeds, error);
  if (status == HONE_OK && !c->edge) status = hn_feeds_give(j->feeds, j->n_feeds, j->o->given, error);
  return status == HONE_OK && c->sample ? put_sample(j, c->sample, error) : status;
}

/* ---- comparing */

/* What a difference within one answer is relative to. */
static double scale_of(const hn_difference *d) {
  return d->range > 0 ? d->range : d->magnitude > 0 ? d->magnitude : 1;
}

static void note_telling(job *j, uint32_t i, const hone_tensor *ref, const hn_difference *d, uint32_t k) {
  bool first = k == 0;
  int64_t bytes = hone_desc_bytes(&ref->desc);
  if (!hn_dtype_points(ref->desc.dtype) && bytes >= 0) {
    uint64_t h = hn_hash(ref->data, (size_t)bytes, (uint64_t)bytes);
    if (first) j->first_hash[i] = h;
    if (h != j->first_hash[i]) j->varies[i] = true;
  } else {
    j->varies[i] = true;
  }
  bool finite = d->not_finite * 2 <= d->count;
  if (finite && d->common * 10 <= d->count * 9) j->telling[i] = true;
  if (finite && d->count < 10) j->telling[i] = true; /* too few elements to say anything by themselves */
}

/* How far an output's neighbouring values lie apart: a level of its codes, or of what they were. 0: it is no
 * rounding. */
static double level_of(const hn_value *v) {
  enum { MOST_VIEWS = 16 };
  for (int i = 0; i < MOST_VIEWS; i++) {
    const hone_node *n = v->producer;
    if (hn_narrow_codes(v->desc.dtype)) return 1;
    if (!n || !n->op || !n->in[0]) return 0;
    if (hn_is_op(n, "DequantizeLinear")) {
      const hone_tensor *scale = n->in[1]->constant;
      return scale && scale->data && hone_desc_count(&scale->desc) == 1 ? hn_get_f64(scale, 0) : 0;
    }
    if (!(n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW))) return 0;
    v = n->in[0];
  }
  return 0;
}

/* How two ends differ, the worst last. */
typedef enum ends {
  ENDS_SAME,
  ENDS_APART, /* by more than the tolerance */
  ENDS_UNLIKE /* finite on one side only; of another type or shape, or missing: nothing excuses that */
} ends;

/* The relative difference that is still right for this output. scale: what it is relative to. */
static double tolerated(const job *j, uint32_t i, const hone_tensor *ref, double scale) {
  hone_dtype dtype = j->narrowest != HONE_DTYPE_NONE && hone_dtype_is_float(ref->desc.dtype)
                         ? j->narrowest
                         : ref->desc.dtype;
  double tolerance =
      j->tolerance > 0 ? j->tolerance : hn_verify_tolerance(hone_dtype_element(dtype), j->quantised);
  if (j->tolerance <= 0 && 2 * j->sway[i] > tolerance) tolerance = 2 * j->sway[i];
  /* Last bits decide which of two neighbours it is, however few there are. */
  const double level = j->lenient ? level_of(j->reference.plan->outputs[i]) : 0;
  if (level * (1 + (double)NUDGE) > tolerance * scale) tolerance = level * (1 + (double)NUDGE) / scale;
  return tolerance;
}

/* One output of one input. Where the answers differ the reason is filled in. The range of edge values'
 * answers is no measure for those of random inputs. */
static ends compare_output(job *j, uint32_t i, uint32_t k, hn_edge edge) {
  hone_verify_result *out = j->out;
  const char *name = j->reference.plan->outputs[i]->name;
  int other = hn_output_of(j->test.plan, name, i);
  const hone_tensor *ref = hn_context_output(j->reference.context, i);
  const hone_tensor *got = other < 0 ? NULL : hn_context_output(j->test.context, (uint32_t)other);
  char a[128], b[128];
  if (!got || got->desc.dtype != ref->desc.dtype || !hone_desc_same_dims(&got->desc, &ref->desc)) {
    snprintf(out->reason, sizeof out->reason, "output '%.80s' is %s instead of %s", name,
             got ? hone_desc_format(&got->desc, a, sizeof a) : "missing",
             hone_desc_format(&ref->desc, b, sizeof b));
    return ENDS_UNLIKE;
  }
  hn_difference d;
  hn_compare(got, ref, &d);
  if (!edge) note_telling(j, i, ref, &d, k);
  double scale = d.range > j->range[i] ? d.range : j->range[i];
  if (!edge) j->range[i] = scale;
  if (hn_edge_is_extreme(edge) && d.magnitude > scale) scale = d.magnitude; /* often all answers are equal */
  if (!(scale > 0)) scale = d.magnitude > 0 ? d.magnitude : 1;
  const double tolerance = tolerated(j, i, ref, scale), rel = d.max_abs / scale;
  /* Integers are exact, however large they are. */
  const bool wrong = j->by_steps ? false : tolerance > 0 ? rel > tolerance : d.max_abs > 0;
  if (!edge && d.max_abs > out->max_abs) out->max_abs = d.max_abs;
  if (rel >= out->max_rel) {
    out->max_rel = rel;
    out->tolerance = j->by_steps ? 0 : tolerance;
  }
  if (!d.unlike && !wrong) return ENDS_SAME;
  if (d.unlike)
    snprintf(out->reason, sizeof out->reason,
             "output '%.80s': %lld of %lld elements are not finite (or text) on one side only; first at %lld",
             name, (long long)d.unlike, (long long)d.count, (long long)d.where);
  else
    snprintf(out->reason, sizeof out->reason,
             "output '%.80s' differs by %.3g at element %lld: %.3g of its range, tolerance %.3g", name,
             d.max_abs, (long long)d.where, rel, tolerance);
  out->tolerance = tolerance;
  return d.unlike ? ENDS_UNLIKE : ENDS_APART;
}

/* Roundings to a few levels amplify: a difference in the last bit flips one, which flips others behind it,
 * and two right evaluations of a quantised model end some steps apart. How far is a property of model and
 * input, so it is measured: the reference answers once more with inputs moved by a small part, and what that
 * changes (by output, relative to its range; what is there already counts if it is more) is no error. */
static hone_status measure_sway(job *j, const hn_feed_case *c, float part, double *sways, hone_error *error) {
  hone_tensor *moved = hn_calloc(j->n_outputs + 1u, sizeof *moved);
  if (!moved) return hn_fail_memory(error, j->n_outputs * sizeof *moved, "verify");
  hn_feeds_nudge(j->feeds, j->n_feeds, part, c->seed + 77);
  hone_status status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
  for (uint32_t i = 0; status == HONE_OK && i < j->n_outputs; i++) {
    const hone_tensor *t = hn_context_output(j->reference.context, i);
    if (!hone_dtype_is_float(t->desc.dtype)) continue;
    size_t bytes = (size_t)hone_desc_bytes(&t->desc);
    moved[i].desc = t->desc;
    moved[i].data = hn_malloc(bytes);
    if (!moved[i].data)
      status = hn_fail_memory(error, bytes, "verify");
    else if (bytes)
      memcpy(moved[i].data, t->data, bytes);
  }
  if (status == HONE_OK) status = make_feeds(j, c, error);
  if (status == HONE_OK) status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
  for (uint32_t i = 0; status == HONE_OK && i < j->n_outputs; i++) {
    const hone_tensor *t = hn_context_output(j->reference.context, i);
    if (!moved[i].data || !hone_desc_same_dims(&moved[i].desc, &t->desc)) continue;
    hn_difference d;
    hn_compare(&moved[i], t, &d);
    double sway = d.unlike ? INFINITY : d.max_abs / scale_of(&d);
    if (sway > sways[i]) sways[i] = sway;
  }
  for (uint32_t i = 0; i < j->n_outputs; i++) hn_free(moved[i].data);
  hn_free(moved);
  return status;
}

static void put_fault(job *j, const hn_stepwise *w) {
  hone_verify_result *out = j->out;
  const size_t size = sizeof out->reason;
  snprintf(out->first_different_node, sizeof out->first_different_node, "%s", w->node);
  switch (w->fault) {
  case HN_STEPWISE_WRONG_ASTRAY:
    snprintf(out->reason, size,
             "node '%.80s', given the reference's inputs, rounds %.2g %% of its values to another level than "
             "the ones they are near, first element %lld",
             w->node, 100 * w->wrong, (long long)w->element);
    break;
  case HN_STEPWISE_WRONG_OUTPUT:
    snprintf(
        out->reason, size,
        "node '%.80s', given the reference's roundings, makes an output that differs by %.3g of its range at "
        "element %lld",
        w->node, w->wrong, (long long)w->element);
    break;
  default:
    snprintf(out->reason, size,
             "node '%.80s', given the reference's inputs, differs by %g levels at element %lld, which no "
             "rounding of what is about halfway between two explains",
             w->node, w->wrong, (long long)w->element);
  }
}

/* What the sway of whole answers would hide: each step on the reference's own values. covers: all codes
 * were compared. */
static hone_status compare_steps(job *j, bool *same, bool *covers, hone_error *error) {
  hone_verify_result *out = j->out;
  hn_stepwise w = {0};
  hone_status status =
      hn_side_stepwise(&j->test, &j->reference, j->feeds, j->n_feeds, j->narrowest, &w, error);
  if (status != HONE_OK) return status;
  out->steps_compared = w.steps;
  if (w.worst > out->worst_levels) out->worst_levels = w.worst;
  if (w.differ > out->differing) out->differing = w.differ;
  if (w.astray > out->astray) out->astray = w.astray;
  *covers = w.steps && !w.unseen && j->narrowest == HONE_DTYPE_NONE;
  if (!w.fault) return HONE_OK;
  *same = false;
  put_fault(j, &w);
  return HONE_OK;
}

/* All of them: the worst, of equals the first, is the reason. */
static ends compare_outputs(job *j, uint32_t k, hn_edge edge) {
  ends worst = ENDS_SAME;
  double tolerance = 0;
  char reason[sizeof j->out->reason];
  for (uint32_t i = 0; i < j->n_outputs; i++) {
    const ends e = compare_output(j, i, k, edge);
    if (e <= worst) continue;
    worst = e;
    tolerance = j->out->tolerance;
    memcpy(reason, j->out->reason, sizeof reason);
  }
  if (worst == ENDS_SAME) return worst;
  j->out->tolerance = tolerance;
  memcpy(j->out->reason, reason, sizeof reason);
  return worst;
}

/* The ends are apart. Another quantised model is right all the same when each of its steps is, on the
 * reference's values: these prove it right, never wrong. before: what was known ahead of this input. */
static hone_status exonerate(job *j, uint32_t k, hn_edge edge, const hone_verify_result *before, bool *same,
                             hone_error *error) {
  const hone_verify_result found = *j->out;
  bool covers = false, steps_same = true;
  *j->out = *before;
  hone_status status = compare_steps(j, &steps_same, &covers, error);
  if (status == HONE_OK && steps_same && !covers) { /* nothing is known of some steps */
    status = hn_side_run(&j->test, j->feeds, j->n_feeds, error);
    j->lenient = true;
    *same = status == HONE_OK && compare_outputs(j, k, edge) == ENDS_SAME;
    j->lenient = false;
  } else {
    *same = steps_same && status == HONE_OK;
  }
  if (!*same) {
    *j->out = found;
  } else if (covers) {
    j->out->judged_steps = true;
    j->out->max_abs = found.max_abs;
    j->out->max_rel = found.max_rel;
    j->out->tolerance = 0;
  }
  return status;
}

static hone_status compare_once(job *j, uint32_t k, bool *same, hone_error *error) {
  const hn_feed_case c = random_case(j, k);
  const hone_verify_result before = *j->out;
  const bool alone = has_steps(j) && !j->b;
  bool steps_same = true;
  ends how = ENDS_SAME;
  hone_status status = make_feeds(j, &c, error);
  j->by_steps = false;
  if (status == HONE_OK && alone) status = compare_steps(j, &steps_same, &j->by_steps, error);
  if (alone) j->out->judged_steps = j->by_steps;
  j->lenient = alone && !j->by_steps;
  if (status == HONE_OK && j->quantised && j->tolerance <= 0 && !j->by_steps)
    status = measure_sway(j, &c, NUDGE, j->sway, error);
  if (status == HONE_OK) status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
  if (status == HONE_OK) status = hn_side_run(&j->test, j->feeds, j->n_feeds, error);
  if (status == HONE_OK && steps_same) how = compare_outputs(j, k, HN_EDGE_NONE);
  *same = how == ENDS_SAME;
  if (status == HONE_OK && k == 0 && j->o->dump)
    status = hn_dump_sides(&j->reference, &j->test, j->feeds, j->n_feeds, j->o->dump, error);
  if (status == HONE_OK && how == ENDS_APART && j->b && has_steps(j))
    status = exonerate(j, k, HN_EDGE_NONE, &before, same, error);
  *same = *same && steps_same;
  return status;
}

/* ---- edge values */

/* Whether every value of a run keeps far enough from its type's largest that no order of sums, and no square
 * or cube inside of an operator, leaves it. Values that are only moved may be anything finite. */
typedef struct room {
  double most, largest; /* largest: of the inputs; 0: their type's */
  bool kept;
} room;

/* Sums that leave nothing behind: what comes out of a gate is at most 1, weights of an attention are, and a
 * norm divides by what it summed. */
static bool sums_inside(const hone_node *n) {
  static const char *const own[] = {"RNN",
                                    "GRU",
                                    "LSTM",
                                    "Attention",
                                    "LinearAttention",
                                    "LayerNormalization",
                                    "RMSNormalization",
                                    "GroupNormalization",
                                    "InstanceNormalization",
                                    "LpNormalization",
                                    "MeanVarianceNormalization"};
  static const char *const others[] = {"Attention",
                                       "MultiHeadAttention",
                                       "GroupQueryAttention",
                                       "PagedAttention",
                                       "SkipLayerNormalization",
                                       "SimplifiedLayerNormalization",
                                       "SkipSimplifiedLayerNormalization",
                                       "DynamicQuantizeLSTM",
                                       "EmbedLayerNormalization"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (hn_is_op(n, own[i])) return true;
  for (size_t i = 0; i < sizeof others / sizeof *others && strcmp(n->domain, "com.microsoft") == 0; i++)
    if (strcmp(n->op_type, others[i]) == 0) return true;
  return false;
}

static void look_for_room(void *arg, const hn_step *s, hone_tensor *const *out) {
  room *r = arg;
  if (s->node && sums_inside(s->node) && (r->largest <= 0 || r->largest > r->most)) r->kept = false;
  for (uint32_t i = 0; i < s->desc.n_outputs && r->kept; i++) {
    const hone_tensor *t = out[i];
    if (!t || !t->data || !hone_dtype_is_float(t->desc.dtype)) continue;
    const double most = s->desc.cost.flops > 0 ? r->most : DBL_MAX;
    hone_tensor *rows = hn_rows_of(t);
    for (int64_t e = 0, n = hone_desc_count(&t->desc); rows && e < n && r->kept; e++)
      r->kept = fabs(hn_get_f64(rows, e)) <= most;
    r->kept = r->kept && rows;
    hn_rows_free(rows);
  }
}

/* "the largest value (6.87e+10) in 'x': " */
static void name_case(const job *j, const hn_feed_case *c, char *buf, size_t size) {
  char value[32] = "";
  if (c->largest > 0) snprintf(value, sizeof value, " (%.3g)", c->largest);
  snprintf(buf, size, "%s%s in %s%.60s%s: ", hn_edge_name(c->edge), value, c->only < 0 ? "" : "'",
           c->only < 0 ? "every input" : j->reference.plan->inputs[c->only]->name, c->only < 0 ? "" : "'");
}

static void put_reason(job *j, const hn_feed_case *c, const char *what) {
  char name[160], text[sizeof j->out->reason];
  name_case(j, c, name, sizeof name);
  snprintf(text, sizeof text, "%s%s", name, what);
  memcpy(j->out->reason, text, sizeof text);
}

static void prefix_reason(job *j, const hn_feed_case *c) {
  char what[sizeof j->out->reason];
  memcpy(what, j->out->reason, sizeof what);
  put_reason(j, c, what);
}

/* The side under test on an edge input that the reference answers. */
static hone_status answer_of_test(job *j, const hn_feed_case *c, bool *answered, bool *same,
                                  hone_error *error) {
  hone_error why = {0};
  hone_status status = hn_side_run(&j->test, j->feeds, j->n_feeds, &why);
  *answered = status == HONE_OK;
  if (status == HONE_OK || status == HONE_ERROR_BUDGET) return HONE_OK; /* out of time: nothing is known */
  if (status == HONE_ERROR_CANCELLED) {
    if (error) *error = why;
    return status;
  }
  *same = false;
  put_reason(j, c, why.what);
  return HONE_OK;
}

/* The reference's answer. Extreme values are lowered until everything in the network has room. Not answered:
 * it refuses such an input, takes too long, or never has room. */
static hone_status answer_of_reference(job *j, hn_feed_case *c, bool *answered, bool *same,
                                       hone_error *error) {
  static const double largest[] = {0, 0x1p36, 0x1p24, 0x1p12, 0x1p6, 0x1p3};
  const bool extreme = hn_feeds_extreme(j->reference.plan, j->a, c);
  *answered = false;
  for (size_t i = 0; i < (extreme ? sizeof largest / sizeof *largest : 1) && *same; i++) {
    hone_error why = {0};
    bool ran;
    /* fp8 stores f16 between steps. */
    const bool half = j->narrowest == HONE_DTYPE_F16 || j->narrowest == HONE_DTYPE_F8E4M3FN;
    room r = {half ? 0x1p12 : 0x1p40, largest[i], true};
    c->largest = largest[i];
    hone_status status = make_feeds(j, c, error);
    if (status != HONE_OK) return status;
    if (extreme) hn_context_watch(j->reference.context, look_for_room, &r, false);
    status = hn_side_run(&j->reference, j->feeds, j->n_feeds, &why);
    hn_context_watch(j->reference.context, NULL, NULL, false);
    if (status == HONE_ERROR_CANCELLED && error) *error = why;
    if (status != HONE_OK) return status == HONE_ERROR_CANCELLED ? status : HONE_OK;
    if ((*answered = r.kept)) return HONE_OK;
    /* What overflows is not compared, but must be survived. */
    if (i == 0 && (status = answer_of_test(j, c, &ran, same, error)) != HONE_OK) return status;
  }
  return HONE_OK;
}

/* Does the reference itself move as much when its inputs move in their last places? Such an input proves
 * nothing: there is no right answer to be near. */
static hone_status is_excused(job *j, const hn_feed_case *c, bool *excused, hone_error *error) {
  const float part = j->narrowest == HONE_DTYPE_F8E4M3FN ? 0x1p-4f
                     : j->narrowest == HONE_DTYPE_BF16   ? 0x1p-8f
                     : j->narrowest == HONE_DTYPE_F16    ? 0x1p-11f
                                                         : NUDGE;
  /* Zeros and ones are exact in every type. */
  if (!hn_edge_is_extreme(c->edge) && c->edge != HN_EDGE_TIMES_8 && c->edge != HN_EDGE_DENORMALS)
    return HONE_OK;
  double *sways = hn_calloc(j->n_outputs + 1u, sizeof *sways);
  if (!sways) return hn_fail_memory(error, j->n_outputs * sizeof *sways, "verify");
  hone_status status = measure_sway(j, c, part, sways, error);
  *excused = status == HONE_OK;
  for (uint32_t i = 0; i < j->n_outputs && *excused; i++) {
    const hone_tensor *ref = hn_context_output(j->reference.context, i), *got = NULL;
    const int other = hn_output_of(j->test.plan, j->reference.plan->outputs[i]->name, i);
    if (other >= 0) got = hn_context_output(j->test.context, (uint32_t)other);
    if (!got || got->desc.dtype != ref->desc.dtype || !hone_desc_same_dims(&got->desc, &ref->desc)) {
      *excused = false;
    } else if (isfinite(sways[i])) {
      hn_difference d;
      hn_compare(got, ref, &d);
      *excused = !d.unlike && d.max_abs <= 2 * sways[i] * scale_of(&d);
    }
  }
  hn_free(sways);
  return status;
}

static hone_status compare_edge(job *j, hn_feed_case *c, bool *same, hone_error *error) {
  const hone_verify_result before = *j->out;
  bool answered, excused = false;
  j->out->edge_inputs_unjudged++;
  hone_status status = answer_of_reference(j, c, &answered, same, error);
  if (status != HONE_OK || !*same || !answered) return status;
  status = answer_of_test(j, c, &answered, same, error);
  if (status != HONE_OK || !*same || !answered) return status;
  bool covers = true, steps_same = true;
  if (j->by_steps) status = compare_steps(j, &steps_same, &covers, error);
  if (status == HONE_ERROR_BUDGET) return HONE_OK;
  if (status != HONE_OK) return status;
  if (!covers || !steps_same) { /* no room for all values: nothing is known */
    *same = steps_same;
    if (!steps_same) prefix_reason(j, c);
    return HONE_OK;
  }
  const ends how = compare_outputs(j, 1, c->edge);
  if (how != ENDS_SAME) {
    const hone_verify_result found = *j->out;
    j->test.max_seconds = j->reference.max_seconds = j->most_seconds; /* a difference needs a verdict */
    status = is_excused(j, c, &excused, error);
    *j->out = excused ? before : found;
    *same = excused;
    if (status == HONE_OK && !excused && how == ENDS_APART && j->b && has_steps(j))
      status = exonerate(j, 1, c->edge, &before, same, error);
    if (status != HONE_OK) return status;
    if (!*same) prefix_reason(j, c);
  }
  j->out->edge_inputs_unjudged = before.edge_inputs_unjudged + excused;
  j->out->edge_inputs = before.edge_inputs + !excused;
  return HONE_OK;
}

/* Every kind of edge value in all inputs together, then in each alone. */
static hone_status compare_edges(job *j, double max_seconds, bool *same, hone_error *error) {
  const int32_t alone = j->n_feeds < 2 ? 0 : j->n_feeds > MOST_ALONE ? MOST_ALONE : (int32_t)j->n_feeds;
  const uint64_t start = hn_now_ns();
  for (int32_t only = -1; only < alone; only++)
    for (int edge = HN_EDGE_NONE + 1; edge < HN_EDGE_KINDS && *same; edge++) {
      hn_feed_case c = random_case(j, INPUTS + (uint32_t)edge);
      c.edge = (hn_edge)edge;
      c.only = only;
      c.sample = 0;
      if (!hn_feeds_differ(j->reference.plan, &c)) continue;
      const double left = max_seconds - (double)(hn_now_ns() - start) * 1e-9;
      j->out->edge_inputs_wanted++;
      if (left <= 0) continue;
      if (j->o->progress && !j->o->progress(j->o->progress_arg, j->out->inputs, j->out->inputs_wanted))
        return hn_fail(error, HONE_ERROR_CANCELLED, "verify was cancelled");
      j->test.max_seconds = j->reference.max_seconds = left > 1 ? left : 1;
      hone_status status = compare_edge(j, &c, same, error);
      if (status != HONE_OK) return status;
    }
  return HONE_OK;
}

/* ---- verdict */

static void mistrust(job *j) {
  hone_verify_result *out = j->out;
  bool telling = false, varies = j->n_feeds == 0 || out->inputs < 2;
  for (uint32_t i = 0; i < j->n_outputs; i++) {
    telling = telling || j->telling[i];
    varies = varies || j->varies[i];
  }
  if (telling && varies) return;
  out->verdict = HONE_VERDICT_MISTRUSTED;
  snprintf(out->reason, sizeof out->reason, "%s",
           !telling ? "the outputs are mostly constant, zero or not finite: equal answers prove little"
                    : "the outputs do not depend on the inputs: equal answers prove little");
}

/* Is it the type, or how it is computed in? The reason goes on with what rounding alone does. */
static hone_status blame_type(job *j, hone_error *error) {
  enum { ITS_OWN = 4 }; /* rounding does a quarter of it: weights and orders of sums do the rest */
  const hone_dtype type = j->narrowest;
  const char *name = j->o->precision;
  if (!name || (type != HONE_DTYPE_F16 && type != HONE_DTYPE_BF16)) return HONE_OK;
  hn_narrowing w;
  const hone_status status =
      hn_side_narrowing(&j->reference, j->a, j->o->plan ? NULL : &j->ref, j->feeds, j->n_feeds, type,
                        j->test.plan->precision == HN_PRECISION_F16, &w, error);
  if (status != HONE_OK) return status;
  char *reason = j->out->reason;
  const size_t size = sizeof j->out->reason, at = strlen(reason);
  if (w.node[0])
    snprintf(reason + at, size - at, "; %s reaches %.3g, and %s ends at 65504", w.node, w.most, name);
  else if (w.fails)
    snprintf(reason + at, size - at, "; the reference rounded to %s does not run", name);
  else if (w.unlike)
    snprintf(reason + at, size - at,
             "; that is %s itself: the reference rounded to it has other shapes or no numbers", name);
  else if (w.apart * ITS_OWN >= j->out->max_rel)
    snprintf(reason + at, size - at, "; that is %s itself: the reference rounded to it is %.3g off", name,
             w.apart);
  else
    snprintf(reason + at, size - at, "; rounding to %s alone makes %.3g of it", name, w.apart);
  return HONE_OK;
}

static hone_status run_all(job *j, double max_seconds, hone_error *error) {
  const hone_verify_options *o = j->o;
  const uint32_t wanted = wanted_of(j);
  const uint64_t start = hn_now_ns();
  bool same = true;
  double spent = 0;
  hone_status status = HONE_OK;
  j->out->inputs_wanted = wanted;
  for (uint32_t k = 0; k < wanted && same; k++) {
    if (k && spent * (k + 1) / k > max_seconds) break;
    if (o->progress && !o->progress(o->progress_arg, k, wanted))
      return hn_fail(error, HONE_ERROR_CANCELLED, "verify was cancelled");
    status = compare_once(j, k, &same, error);
    if (status != HONE_OK) return status;
    j->out->inputs++;
    spent = (double)(hn_now_ns() - start) * 1e-9;
  }
  /* A network that has no time for some random inputs has none for edges either. */
  if (same && wanted >= EDGES_FROM) {
    const double left = spent / j->out->inputs < EDGE_SHARE * max_seconds ? EDGE_SHARE * max_seconds : 0;
    status = compare_edges(j, left, &same, error);
    j->test.max_seconds = j->reference.max_seconds = j->most_seconds;
    if (status != HONE_OK) return status;
  }
  if (same) {
    mistrust(j);
    return HONE_OK;
  }
  j->out->verdict = HONE_VERDICT_DIFFERENT;
  if (j->out->first_different_node[0]) return HONE_OK;
  if (j->test.plan->slices > 1 && !j->o->plan) { /* where it is found in the whole batch, too */
    hn_side_close(&j->test);
    j->best.sliced = false;
    status = hn_side_open(j->b ? j->b : j->a, &j->best, &j->test, error);
    if (status != HONE_OK) return status;
    j->test.max_seconds = j->most_seconds;
  }
  status = hn_side_localise(&j->test, &j->reference, j->feeds, j->n_feeds, j->out->tolerance,
                            j->out->first_different_node, sizeof j->out->first_different_node, error);
  if (status != HONE_OK) return status;
  if (j->narrowest != HONE_DTYPE_NONE) return blame_type(j, error);
  return hn_side_judge(&j->test, j->feeds, j->n_feeds, EDGE_SHARE * max_seconds, j->out->first_different_node,
                       sizeof j->out->first_different_node, &j->out->judgement, error);
}

hone_status hone_verify(hone_model *a, hone_model *b, const hone_verify_options *options,
                        hone_verify_result *out, hone_error *error) {
  static const hone_verify_options none = {0};
  if (!a || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_verify needs a model and a place for the result");
  const uint64_t lost = hn_mem_lost();
  *out = (hone_verify_result){.verdict = HONE_VERDICT_SAME};
  job j = {.o = options ? options : &none, .a = a, .b = b, .out = out};
  double max_seconds = j.o->max_seconds > 0 ? j.o->max_seconds : 30;
  j.tolerance = j.o->tolerance;
  look_at(a->graph, &j.quantised, &j.narrowest);
  bool other = false;
  if (b) look_at(b->graph, &other, &j.narrowest);
  j.by_roundings = j.quantised && (!b || other);
  j.quantised |= other;
  hone_status status = open_sides(&j, max_seconds, error);
  if (status != HONE_OK) goto done;
  /* One input must be compared even when it takes longer than planned, but a loop without end must end. */
  j.test.max_seconds = j.reference.max_seconds = j.most_seconds = 4 * max_seconds;
  j.n_feeds = j.reference.plan->n_inputs;
  j.n_outputs = j.reference.plan->n_outputs;
  hn_tolerances_of_plan(j.test.plan, out);
  size_t n = j.n_outputs + 1u;
  j.feeds = hn_calloc(j.n_feeds + 1u, sizeof *j.feeds);
  j.range = hn_calloc(n, sizeof *j.range);
  j.sway = hn_calloc(n, sizeof *j.sway);
  j.first_hash = hn_calloc(n, sizeof *j.first_hash);
  j.varies = hn_calloc(n, sizeof *j.varies);
  j.telling = hn_calloc(n, sizeof *j.telling);
  if (!j.feeds || !j.range || !j.sway || !j.first_hash || !j.varies || !j.telling) {
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory for verify");
    goto done;
  }
  if (j.o->data && j.o->data_input >= j.n_feeds)
    status = hn_fail(error, HONE_ERROR_USAGE, "hone_verify: no input %u for the data", j.o->data_input);
  if (status == HONE_OK) status = run_all(&j, max_seconds, error);
done:
  hn_feeds_free(j.feeds, j.n_feeds);
  hn_free(j.feeds);
  hn_free(j.range);
  hn_free(j.sway);
  hn_free(j.first_hash);
  hn_free(j.varies);
  hn_free(j.telling);
  hn_side_close(&j.test);
  hn_side_close(&j.reference);
  return hn_settle(status, lost, error);
}
