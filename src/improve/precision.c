/* Which steps may compute in bf16 (on an accelerator: compute and store in fp16 or bf16): measured on sample
 * inputs against f32, within a budget of error. */
#include <hone/improve.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/vec.h"
#include "improve/compare.h"
#include "improve/side.h"

#include <hone/data.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More groups find the sensitive steps more exactly; every group costs a plan. */
enum { SAMPLES = 3, HELD_OUT = 8, GROUPS = 8, MOST_PLANS = 64 };

/* A step that may be narrow. */
typedef struct candidate {
  char *name;  /* of its node */
  double macs; /* its work */
} candidate;

/* Neighbouring candidates that are judged together. */
typedef struct group {
  double macs;
  double error; /* of the outputs when this group alone is narrow */
  uint32_t first, n;
  bool f32;
} group;

typedef struct job {
  hone_model *model;
  const hone_precision_options *o;
  hn_side_options side;
  hn_side reference;
  uint32_t samples, held_out; /* those that choose, and behind them those that only check */
  uint32_t n_outputs;
  hone_tensor *expected; /* [samples + held_out][n_outputs] */
  double *range;         /* by output, over the samples */
  hn_feed *feeds;        /* [samples + held_out][n_inputs] */
  char **input_names;
  uint32_t n_inputs;
  HN_VEC(candidate) candidates;
  HN_VEC(group) groups;
  const char *narrow;
  const char **keep; /* [candidates]: names for the plan that is being tried */
  uint32_t plans;
  bool measured; /* groups know their error */
  uint64_t start;
  double max_seconds;
} job;

/* ------------------------------------------------------------------ samples */

static hone_status keep_output(hone_tensor *to, const hone_tensor *from, hone_error *error) {
  int64_t bytes = hone_desc_bytes(&from->desc);
  to->desc = from->desc;
  if (bytes <= 0 || hn_dtype_points(from->desc.dtype)) return HONE_OK;
  to->data = hn_malloc((size_t)bytes);
  if (!to->data) return hn_fail_memory(error, (unsigned long long)bytes, "an output to compare with");
  memcpy(to->data, from->data, (size_t)bytes);
  return HONE_OK;
}

static hone_status make_samples(job *j, hone_error *error) {
  const hn_plan *p = j->reference.plan;
  const uint32_t all = j->samples + j->held_out;
  j->n_inputs = p->n_inputs;
  j->n_outputs = p->n_outputs;
  j->feeds = hn_calloc((size_t)all * p->n_inputs + 1, sizeof *j->feeds);
  j->expected = hn_calloc((size_t)all * p->n_outputs + 1, sizeof *j->expected);
  j->range = hn_calloc((size_t)p->n_outputs + 1, sizeof *j->range);
  j->input_names = hn_calloc((size_t)p->n_inputs + 1, sizeof *j->input_names);
  if (!j->feeds || !j->expected || !j->range || !j->input_names)
    return hn_fail_memory(error, all * sizeof *j->feeds, "samples");
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (!(j->input_names[i] = hn_strdup(p->inputs[i]->name))) /* the feeds outlive this plan */
      return hn_fail_memory(error, strlen(p->inputs[i]->name), "samples");
  hone_status status = HONE_OK;
  for (uint32_t k = 0; k < all; k++) {
    hn_feed *feeds = j->feeds + (size_t)k * p->n_inputs;
    uint64_t seed = (j->o->seed ? j->o->seed : 1) + (uint64_t)k * 1000003;
    for (uint32_t i = 0; i < p->n_inputs && status == HONE_OK; i++) {
      feeds[i].name = j->input_names[i];
      status = hone_data_for_input(j->model, i, &p->inputs[i]->desc, seed, &feeds[i].data, error);
    }
    if (status == HONE_OK) status = hn_side_run(&j->reference, feeds, p->n_inputs, error);
    for (uint32_t i = 0; i < p->n_outputs && status == HONE_OK; i++) {
      const hone_tensor *t = hn_context_output(j->reference.context, i);
      hn_difference d;
      hn_compare(t, t, &d);
      double scale = d.range > 0 ? d.range : d.magnitude;
      if (scale > j->range[i]) j->range[i] = scale;
      status = keep_output(&j->expected[(size_t)k * p->n_outputs + i], t, error);
    }
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* Largest difference over samples [from, to) and outputs, relative to the output's range; infinite when
 * something is not finite on one side only. */
static hone_status error_of(job *j, hn_side *s, uint32_t from, uint32_t to, double *worst,
                            hone_error *error) {
  *worst = 0;
  for (uint32_t k = from; k < to; k++) {
    hone_status status = hn_side_run(s, j->feeds + (size_t)k * j->n_inputs, j->n_inputs, error);
    if (status != HONE_OK) return status;
    for (uint32_t i = 0; i < j->n_outputs; i++) {
      const hone_tensor *want = &j->expected[(size_t)k * j->n_outputs + i],
                        *got = hn_context_output(s->context, i);
      if (!want->data) continue;
      if (!hone_desc_same_dims(&want->desc, &got->desc)) { /* a selection that came out otherwise */
        *worst = INFINITY;
        continue;
      }
      hn_difference d;
      hn_compare(got, want, &d);
      double e = d.unlike ? INFINITY : d.max_abs / (j->range[i] > 0 ? j->range[i] : 1);
      if (e > *worst) *worst = e;
    }
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ candidates */

/* Does a plan of the narrow type store what lies between its steps narrow? */
static bool stores_narrow(const job *j) {
  const hn_plan *p = j->reference.plan;
  if (p->backend->asynchronous) return true;
  const hone_dtype narrow = strcmp(j->narrow, "fp16") == 0 ? HONE_DTYPE_F16 : HONE_DTYPE_BF16;
  return p->backend->stores(&p->machine, narrow);
}

static hone_status find_candidates(job *j, hone_error *error) {
  const hn_plan *p = j->reference.plan;
  const bool stores = stores_narrow(j); /* then every step rounds, not only products */
  double total = 0, sum = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (s->kind != HN_STEP_TACTIC || !s->node || (s->desc.cost.macs <= 0 && !stores)) continue;
    candidate c = {hn_strdup(s->node->name), s->desc.cost.macs};
    /* What is multiplied in the time that a byte takes, roughly. */
    if (stores) c.macs += 64 * fmax(s->desc.cost.bytes, 1);
    if (!c.name || !hn_vec_push(&j->candidates, c)) {
      hn_free(c.name);
      return hn_fail_memory(error, sizeof c, "the choice of precision");
    }
    total += c.macs;
  }
  size_t n = j->candidates.len;
  j->keep = hn_calloc(n + 1, sizeof *j->keep);
  if (!j->keep) return hn_fail_memory(error, n * sizeof *j->keep, "the choice of precision");
  uint32_t share = UINT32_MAX; /* groups have about equal work, in order */
  for (size_t i = 0; i < n; i++) {
    const candidate *c = &j->candidates.ptr[i];
    uint32_t here = (uint32_t)(sum / total * GROUPS);
    sum += c->macs;
    if (here != share && !hn_vec_push(&j->groups, (group){.first = (uint32_t)i}))
      return hn_fail_memory(error, sizeof(group), "the choice of precision");
    share = here;
    group *last = &j->groups.ptr[j->groups.len - 1];
    last->macs += c->macs;
    last->n++;
  }
  return HONE_OK;
}

/* Error when the groups with `f32` stay f32 and, of the others, only `alone` is bf16 (NULL: all others); on
 * the samples that choose, or on those held out. */
static hone_status try_groups(job *j, const group *alone, bool held_out, double *worst, hone_error *error) {
  hn_side s;
  uint32_t n = 0;
  for (size_t g = 0; g < j->groups.len; g++) {
    const group *at = &j->groups.ptr[g];
    if (alone ? at == alone : !at->f32) continue;
    for (uint32_t i = 0; i < at->n; i++) j->keep[n++] = j->candidates.ptr[at->first + i].name;
  }
  hn_side_options o = j->side;
  o.precision = j->narrow;
  o.f32_nodes = j->keep;
  o.n_f32_nodes = n;
  if (j->o->progress && !j->o->progress(j->o->progress_arg, j->plans, MOST_PLANS))
    return hn_fail(error, HONE_ERROR_CANCELLED, "the choice of precision was cancelled");
  j->plans++;
  hone_status status = hn_side_open(j->model, &o, &s, error);
  if (status != HONE_OK) return status;
  status =
      error_of(j, &s, held_out ? j->samples : 0, j->samples + (held_out ? j->held_out : 0), worst, error);
  hn_side_close(&s);
  return status;
}

/* Of plans and of time the search has a share, so that something is left for what the samples held out want
 * back. */
#define SEARCH 0.75
#define WHOLE 1.0

static bool out_of_time(const job *j, double share) {
  return j->plans >= share * MOST_PLANS || (double)(hn_now_ns() - j->start) * 1e-9 > share * j->max_seconds;
}

/* The bf16 group that costs most error for its work. */
static group *worst_group(job *j) {
  group *worst = NULL;
  for (size_t g = 0; g < j->groups.len; g++) {
    group *at = &j->groups.ptr[g];
    if (at->f32 || at->error <= 0) continue;
    if (!worst || at->error * at->error * worst->macs > worst->error * worst->error * at->macs) worst = at;
  }
  return worst;
}

/* Errors of independent roundings add up as squares do. */
static double expected_error(const job *j) {
  double sum = 0;
  for (size_t g = 0; g < j->groups.len; g++)
    if (!j->groups.ptr[g].f32) sum += j->groups.ptr[g].error * j->groups.ptr[g].error;
  return sqrt(sum);
}

/* Cuts group g in two at half its work; false when it is one step. */
static bool split(job *j, size_t g, hone_error *error, hone_status *status) {
  group old = j->groups.ptr[g], b = old;
  if (old.n < 2) return false;
  double sum = 0;
  uint32_t n = 0;
  while (n < old.n - 1 && (n == 0 || sum < old.macs / 2)) sum += j->candidates.ptr[old.first + n++].macs;
  b.first += n, b.n -= n, b.macs -= sum;
  if (!hn_vec_push(&j->groups, b)) {
    *status = hn_fail_memory(error, sizeof b, "the choice of precision");
    return false;
  }
  j->groups.ptr[g].n = n, j->groups.ptr[g].macs = sum;
  return true;
}

static void widen_all(job *j) {
  for (size_t g = 0; g < j->groups.len; g++) j->groups.ptr[g].f32 = true;
}

/* What each group costs alone. */
static hone_status measure_groups(job *j, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t g = 0; g < j->groups.len && status == HONE_OK; g++)
    status = try_groups(j, &j->groups.ptr[g], false, &j->groups.ptr[g].error, error);
  j->measured = true;
  return status;
}

static hone_status search(job *j, double budget, hone_precision_choice *out, hone_error *error) {
  double now = 0;
  hone_status status = try_groups(j, NULL, false, &now, error);
  if (status != HONE_OK) return status;
  out->error_bf16 = out->error = now;
  if (now <= budget) return HONE_OK;
  status = measure_groups(j, error);
  /* Back to f32, worst first, until the budget is kept. */
  while (status == HONE_OK && now > budget) {
    group *worst = worst_group(j);
    if (!worst || out_of_time(j, SEARCH)) break;
    worst->f32 = true;
    if (expected_error(j) > budget && worst_group(j)) continue; /* surely not enough yet */
    status = try_groups(j, NULL, false, &now, error);
  }
  if (status == HONE_OK && now > budget) { /* no proof: nothing is narrowed */
    widen_all(j);
    now = 0;
  }
  /* Halves of the groups that stayed f32 go back to bf16 where the budget allows: cheapest error first. */
  for (size_t g = 0; g < j->groups.len && status == HONE_OK && !out_of_time(j, SEARCH); g++) {
    if (!j->groups.ptr[g].f32 || !split(j, g, error, &status)) continue;
    for (uint32_t half = 0; half < 2 && status == HONE_OK && !out_of_time(j, SEARCH); half++) {
      group *h = &j->groups.ptr[half ? j->groups.len - 1 : g];
      double then = 0;
      h->f32 = false;
      status = try_groups(j, NULL, false, &then, error);
      if (status == HONE_OK && then <= budget)
        now = then;
      else
        h->f32 = true;
    }
    if (j->groups.ptr[g].f32 && j->groups.ptr[g].n > 1) g--; /* and its halves in turn */
  }
  out->error = now;
  return status;
}

static bool any_narrow(const job *j) {
  for (size_t g = 0; g < j->groups.len; g++)
    if (!j->groups.ptr[g].f32) return true;
  return false;
}

/* What keeps the budget on the samples that chose must keep it on others, too: until it does on both, more
 * goes back to f32, worst first, and then all of it. Roundings may cancel: a group that goes back can make
 * the error on the samples that chose larger, so they are looked at again, which is a plan more each time. */
static hone_status check(job *j, double budget, hone_precision_choice *out, hone_error *error) {
  hone_status status = HONE_OK;
  while (status == HONE_OK && any_narrow(j)) {
    status = try_groups(j, NULL, true, &out->error_held_out, error);
    bool kept = status == HONE_OK && out->error_held_out <= budget;
    if (kept && out->returned) {
      status = try_groups(j, NULL, false, &out->error, error);
      kept = status == HONE_OK && out->error <= budget;
    }
    if (status != HONE_OK || kept) return status;
    if (!j->measured) status = measure_groups(j, error);
    group *worst = status == HONE_OK && !out_of_time(j, WHOLE) ? worst_group(j) : NULL;
    if (worst)
      worst->f32 = true;
    else
      widen_all(j);
    out->returned++;
  }
  if (status == HONE_OK && out->returned) out->error = out->error_held_out = 0;
  return status;
}

static hone_status give(job *j, hone_precision_choice *out, hone_error *error) {
  out->f32_nodes = hn_calloc(j->candidates.len + 1, sizeof *out->f32_nodes);
  if (!out->f32_nodes)
    return hn_fail_memory(error, j->candidates.len * sizeof *out->f32_nodes, "the choice of precision");
  for (size_t g = 0; g < j->groups.len; g++)
    for (uint32_t i = 0; j->groups.ptr[g].f32 && i < j->groups.ptr[g].n; i++) {
      candidate *c = &j->candidates.ptr[j->groups.ptr[g].first + i];
      out->f32_nodes[out->n_f32_nodes++] = c->name;
      c->name = NULL;
    }
  return HONE_OK;
}

hone_status hone_precision_choose(hone_model *model, const hone_precision_options *options,
                                  hone_precision_choice *out, hone_error *error) {
  static const hone_precision_options none = {0};
  if (!model || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_precision_choose needs a model and a place for the result");
  const uint64_t lost = hn_mem_lost();
  *out = (hone_precision_choice){0};
  job j = {.model = model, .o = options ? options : &none, .start = hn_now_ns()};
  const bool accelerator = j.o->device && strncmp(j.o->device, "cpu", 3) != 0;
  j.narrow = j.o->narrow ? j.o->narrow : accelerator ? "fp16" : "bf16";
  out->narrow = j.narrow;
  const double usual = strcmp(j.narrow, "fp16") == 0 ? 0.002 : 0.01;
  double budget = out->budget = j.o->budget > 0 ? j.o->budget : usual;
  j.max_seconds = j.o->max_seconds > 0 ? j.o->max_seconds : 60;
  j.samples = out->samples = j.o->samples ? j.o->samples : SAMPLES;
  j.held_out = out->held_out = HELD_OUT;
  j.side = (hn_side_options){.level = 2,
                             .device = j.o->device,
                             .threads = j.o->threads,
                             .bindings = j.o->bindings,
                             .n_bindings = j.o->n_bindings,
                             .batch = j.o->batch};
  hone_status status = hn_side_open(model, &j.side, &j.reference, error);
  if (status == HONE_OK) status = make_samples(&j, error);
  if (status == HONE_OK) status = find_candidates(&j, error);
  out->candidates = (uint32_t)j.candidates.len;
  hn_side_close(&j.reference);
  if (status == HONE_OK && j.candidates.len) status = search(&j, budget, out, error);
  if (status == HONE_OK && j.candidates.len) status = check(&j, budget, out, error);
  out->plans = j.plans;
  if (status == HONE_OK) status = give(&j, out, error);
  const uint32_t all = j.samples + j.held_out;
  for (size_t i = 0; j.feeds && i < (size_t)all * j.n_inputs; i++) hone_data_free(&j.feeds[i].data);
  for (uint32_t i = 0; j.input_names && i < j.n_inputs; i++) hn_free(j.input_names[i]);
  for (size_t i = 0; j.expected && i < (size_t)all * j.n_outputs; i++) hn_free(j.expected[i].data);
  for (size_t i = 0; i < j.candidates.len; i++) hn_free(j.candidates.ptr[i].name);
  hn_vec_free(&j.candidates);
  hn_vec_free(&j.groups);
  hn_free(j.keep);
  hn_free(j.feeds);
  hn_free(j.input_names);
  hn_free(j.expected);
  hn_free(j.range);
  status = hn_settle(status, lost, error);
  if (status != HONE_OK) hone_precision_choice_free(out);
  return status;
}

void hone_precision_choice_free(hone_precision_choice *c) {
  if (!c) return;
  for (uint32_t i = 0; i < c->n_f32_nodes; i++) hn_free(c->f32_nodes[i]);
  hn_free(c->f32_nodes);
  c->f32_nodes = NULL;
  c->n_f32_nodes = 0;
}
