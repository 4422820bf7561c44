/* Proving that optimised answers are the model's answers. */
#include <hone/improve.h>

#include "backends/cpu/features.h"
#include "base/error.h"
#include "base/os.h"
#include "base/rng.h"
#include "improve/compare.h"
#include "improve/side.h"
#include "runtime/data/data.h"

#include <hone/data.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS = 100, FEWEST = 3, EDGES = 3, EDGES_FROM = 8 };
#define REFERENCE_FLOPS                                                                                      \
  4e9 /* what scalar references do in a second, about; only decides who the reference is */

typedef struct job {
  const hone_verify_options *o;
  hone_model *a, *b;
  hn_side test, reference;
  bool by_scalar;
  double tolerance; /* of the caller; 0: by dtype */
  bool quantised;
  hone_dtype narrowest;
  double *sway; /* by output, quantised models: how far a nudge of the inputs moves the reference itself */
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
  return sum;
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
  return precision == HN_PRECISION_BF16  ? HONE_DTYPE_BF16
         : precision == HN_PRECISION_F32 ? HONE_DTYPE_F32
                                         : HONE_DTYPE_F16;
}

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
  hone_status status = j->o->plan ? hn_side_open_saved(j->o->plan, &best, &j->test, error)
                                  : hn_side_open(j->b ? j->b : j->a, &best, &j->test, error);
  if (status != HONE_OK) return status;
  const hone_dtype narrow = narrowest_of(j->test.plan->precision);
  if (narrow != HONE_DTYPE_F32) j->narrowest = narrow;
  hn_isa isa = hn_cpu()->isa;
  j->by_scalar = isa == HN_ISA_SCALAR || plan_flops(j->test.plan) / REFERENCE_FLOPS <= max_seconds / 4;
  hn_side_options ref = best;
  ref.level = 0;
  ref.device = ref.precision = NULL;
  ref.reference = j->by_scalar;
  ref.isa = j->by_scalar ? NULL : isa > HN_ISA_AVX2 ? "avx2" : "scalar";
  snprintf(j->out->reference, sizeof j->out->reference,
           j->by_scalar ? "scalar reference, node by node" : "%s tier, node by node", ref.isa);
  if (!j->o->plan) return hn_side_open(j->a, &ref, &j->reference, error);
  /* The shapes are the plan's. */
  uint32_t n = j->test.plan->n_inputs;
  hone_binding *bindings = hn_calloc(n, sizeof *bindings);
  if (!bindings) return hn_fail_memory(error, n * sizeof *bindings, "verify");
  for (uint32_t i = 0; i < n; i++) {
    const hn_value *v = j->test.plan->inputs[i];
    bindings[i] = (hone_binding){.input = v->name, .rank = v->desc.rank};
    memcpy(bindings[i].dim, v->desc.dim, sizeof bindings[i].dim);
  }
  ref.bindings = bindings;
  ref.n_bindings = n;
  status = hn_side_open(j->a, &ref, &j->reference, error);
  hn_free(bindings);
  return status;
}

/* ---- inputs */

/* Edge inputs are random ones with values that kernels like to get wrong. */
static void put_edges(hone_tensor *t, uint32_t kind, uint64_t seed) {
  if (t->desc.dtype != HONE_DTYPE_F32) return;
  hn_rng r = {seed};
  float *v = t->data;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    uint64_t dice = hn_rng_below(&r, 8);
    if (kind == 0) v[i] = dice < 2 ? 0.0f : dice < 4 ? -0.0f : v[i];
    if (kind == 1) v[i] *= 8;
    if (kind == 2) v[i] = dice < 2 ? v[i] * 1e-39f : v[i] * 1e-2f;
  }
}

static hone_status make_feeds(job *j, uint32_t k, uint32_t edge, hone_error *error) {
  const hn_plan *p = j->reference.plan;
  uint64_t seed = (j->o->seed ? j->o->seed : 1) + (uint64_t)k * 1000003;
  for (uint32_t i = 0; i < j->n_feeds; i++) {
    hone_data_free(&j->feeds[i].data);
    j->feeds[i].name = p->inputs[i]->name;
    hone_status status = hone_data_random(p->inputs[i]->name, &p->inputs[i]->desc,
                                          hone_model_input_bound(j->a, i), seed, &j->feeds[i].data, error);
    if (status != HONE_OK) return status;
    if (edge) put_edges(&j->feeds[i].data.tensor, edge - 1, seed + i);
  }
  return HONE_OK;
}

/* ---- comparing */

static int output_of(const hn_plan *p, const char *name, uint32_t i) {
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (strcmp(p->outputs[k]->name, name) == 0) return (int)k;
  return i < p->n_outputs ? (int)i : -1;
}

static void note_telling(job *j, uint32_t i, const hone_tensor *ref, const hn_difference *d, uint32_t k) {
  bool first = k == 0;
  int64_t bytes = hone_desc_bytes(&ref->desc);
  if (ref->desc.dtype != HONE_DTYPE_STRING && bytes >= 0) {
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

/* One output of one input. False: the answers differ; the reason is filled in. */
static bool compare_output(job *j, uint32_t i, uint32_t k, bool edge) {
  hone_verify_result *out = j->out;
  const char *name = j->reference.plan->outputs[i]->name;
  int other = output_of(j->test.plan, name, i);
  const hone_tensor *ref = hn_context_output(j->reference.context, i);
  const hone_tensor *got = other < 0 ? NULL : hn_context_output(j->test.context, (uint32_t)other);
  char a[128], b[128];
  if (!got || got->desc.dtype != ref->desc.dtype || !hone_desc_same_dims(&got->desc, &ref->desc)) {
    snprintf(out->reason, sizeof out->reason, "output '%.80s' is %s instead of %s", name,
             got ? hone_desc_format(&got->desc, a, sizeof a) : "missing",
             hone_desc_format(&ref->desc, b, sizeof b));
    return false;
  }
  hn_difference d;
  hn_compare(got, ref, &d);
  if (!edge) note_telling(j, i, ref, &d, k);
  if (d.range > j->range[i]) j->range[i] = d.range;
  hone_dtype dtype = j->narrowest != HONE_DTYPE_NONE && hone_dtype_is_float(ref->desc.dtype)
                         ? j->narrowest
                         : ref->desc.dtype;
  double tolerance = j->tolerance > 0 ? j->tolerance : hn_verify_tolerance(dtype, j->quantised);
  if (j->tolerance <= 0 && 2 * j->sway[i] > tolerance) tolerance = 2 * j->sway[i];
  double scale = j->range[i] > 0 ? j->range[i] : d.magnitude > 0 ? d.magnitude : 1;
  double rel = d.max_abs / scale;
  if (d.max_abs > out->max_abs) out->max_abs = d.max_abs;
  if (rel >= out->max_rel) {
    out->max_rel = rel;
    out->tolerance = tolerance;
  }
  if (!d.unlike && rel <= tolerance) return true;
  if (d.unlike)
    snprintf(out->reason, sizeof out->reason,
             "output '%.80s': %lld of %lld elements are not finite (or text) on one side only; first at %lld",
             name, (long long)d.unlike, (long long)d.count, (long long)d.where);
  else
    snprintf(out->reason, sizeof out->reason,
             "output '%.80s' differs by %.3g at element %lld: %.3g of its range, tolerance %.3g", name,
             d.max_abs, (long long)d.where, rel, tolerance);
  out->tolerance = tolerance;
  return false;
}

/* Roundings to a few levels amplify: a difference in the last bit flips one, which flips others behind it,
 * and two right evaluations of a quantised model end some steps apart. How far is a property of model and
 * input, so it is measured: the reference answers once more with inputs moved by one part in a million, and
 * what that changes is no error. */
static hone_status measure_sway(job *j, uint32_t k, hone_error *error) {
  hone_status status = HONE_OK;
  hn_rng r = {k + 77};
  hone_tensor *moved = hn_calloc(j->n_outputs + 1u, sizeof *moved);
  if (!moved) return hn_fail_memory(error, j->n_outputs * sizeof *moved, "verify");
  for (uint32_t i = 0; i < j->n_feeds; i++) {
    hone_tensor *t = &j->feeds[i].data.tensor;
    if (t->desc.dtype != HONE_DTYPE_F32) continue;
    float *v = t->data;
    for (int64_t e = 0, n = hone_desc_count(&t->desc); e < n; e++)
      v[e] *= hn_rng_below(&r, 2) ? 1.000001f : 0.999999f;
  }
  status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
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
  if (status == HONE_OK) status = make_feeds(j, k, 0, error);
  if (status == HONE_OK) status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
  for (uint32_t i = 0; status == HONE_OK && i < j->n_outputs; i++) {
    const hone_tensor *t = hn_context_output(j->reference.context, i);
    if (!moved[i].data || !hone_desc_same_dims(&moved[i].desc, &t->desc)) continue;
    hn_difference d;
    hn_compare(&moved[i], t, &d);
    double sway = d.range > 0 ? d.max_abs / d.range : 0;
    if (sway > j->sway[i]) j->sway[i] = sway;
  }
  for (uint32_t i = 0; i < j->n_outputs; i++) hn_free(moved[i].data);
  hn_free(moved);
  return status;
}

/* What the sway of whole answers would hide: each step on the reference's own values. Its reason is the
 * better one when both find something. */
static hone_status compare_steps(job *j, bool *same, hone_error *error) {
  hone_verify_result *out = j->out;
  hn_stepwise w = {0};
  hone_status status = hn_side_stepwise(&j->test, &j->reference, j->feeds, j->n_feeds, &w, error);
  if (status != HONE_OK) return status;
  out->steps_compared = w.steps;
  if (w.worst > out->worst_levels) out->worst_levels = w.worst;
  if (!w.node[0]) return HONE_OK;
  *same = false;
  snprintf(out->first_different_node, sizeof out->first_different_node, "%s", w.node);
  snprintf(out->reason, sizeof out->reason,
           "node '%.80s', given the reference's inputs, differs by %g levels at element %lld; %d is allowed",
           w.node, w.wrong, (long long)w.element, HN_STEPWISE_LEVELS);
  return HONE_OK;
}

static hone_status compare_once(job *j, uint32_t k, uint32_t edge, bool *same, hone_error *error) {
  hone_status status = make_feeds(j, k, edge, error);
  if (status == HONE_OK && j->quantised && !edge && j->tolerance <= 0) status = measure_sway(j, k, error);
  if (status == HONE_OK) status = hn_side_run(&j->reference, j->feeds, j->n_feeds, error);
  if (status == HONE_OK) status = hn_side_run(&j->test, j->feeds, j->n_feeds, error);
  for (uint32_t i = 0; status == HONE_OK && i < j->n_outputs && *same; i++)
    *same = compare_output(j, i, k, edge != 0);
  if (status == HONE_OK && !edge && !j->b && !j->o->plan && j->quantised && j->tolerance <= 0)
    status = compare_steps(j, same, error);
  return status;
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

static hone_status run_all(job *j, double max_seconds, hone_error *error) {
  const hone_verify_options *o = j->o;
  uint32_t wanted = j->n_feeds == 0 ? 1 : o->inputs ? o->inputs : INPUTS;
  uint64_t start = hn_now_ns();
  bool same = true;
  for (uint32_t k = 0; k < wanted && same; k++) {
    double spent = (double)(hn_now_ns() - start) * 1e-9;
    /* By default a large network gets fewer inputs; what the caller asked for is only cut by the time he
     * gave. */
    if (k && spent * (k + 1) / k > (o->inputs || k < FEWEST ? max_seconds : max_seconds / 2)) break;
    if (o->progress && !o->progress(o->progress_arg, k, wanted))
      return hn_fail(error, HONE_ERROR_CANCELLED, "verify was cancelled");
    hone_status status = compare_once(j, k, 0, &same, error);
    if (status != HONE_OK) return status;
    j->out->inputs++;
  }
  for (uint32_t e = 1; e <= EDGES && same && j->out->inputs >= EDGES_FROM; e++) {
    hone_status status = compare_once(j, wanted + e, e, &same, error);
    if (status != HONE_OK) return status;
  }
  if (same) {
    mistrust(j);
    return HONE_OK;
  }
  j->out->verdict = HONE_VERDICT_DIFFERENT;
  if (j->out->first_different_node[0]) return HONE_OK;
  return hn_side_localise(&j->test, &j->reference, j->feeds, j->n_feeds, j->out->tolerance,
                          j->out->first_different_node, sizeof j->out->first_different_node, error);
}

hone_status hone_verify(hone_model *a, hone_model *b, const hone_verify_options *options,
                        hone_verify_result *out, hone_error *error) {
  static const hone_verify_options none = {0};
  if (!a || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_verify needs a model and a place for the result");
  *out = (hone_verify_result){.verdict = HONE_VERDICT_SAME};
  job j = {.o = options ? options : &none, .a = a, .b = b, .out = out};
  double max_seconds = j.o->max_seconds > 0 ? j.o->max_seconds : 30;
  j.tolerance = j.o->tolerance;
  look_at(a->graph, &j.quantised, &j.narrowest);
  if (b) look_at(b->graph, &j.quantised, &j.narrowest);
  hone_status status = open_sides(&j, max_seconds, error);
  if (status != HONE_OK) goto done;
  /* One input must be compared even when it takes longer than planned, but a loop without end must end. */
  j.test.max_seconds = j.reference.max_seconds = 4 * max_seconds;
  j.n_feeds = j.reference.plan->n_inputs;
  j.n_outputs = j.reference.plan->n_outputs;
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
  status = run_all(&j, max_seconds, error);
done:
  for (uint32_t i = 0; j.feeds && i < j.n_feeds; i++) hone_data_free(&j.feeds[i].data);
  hn_free(j.feeds);
  hn_free(j.range);
  hn_free(j.sway);
  hn_free(j.first_hash);
  hn_free(j.varies);
  hn_free(j.telling);
  hn_side_close(&j.test);
  hn_side_close(&j.reference);
  return status;
}
