/* Public: calibration of kernels, and what runs teach. Arguments are checked here and nowhere below. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "improve/kernel_speeds.h"
#include "improve/rehearse.h"
#include "runtime/record.h"

/* What is rehearsed to know the kernels: networks whose steps are of every family and, from the first layers'
 * images to the last ones' weights, of every size. Level 0 and 2 choose different kernels. */
static const struct {
  const char *network;
  int level;
  const char *precision;
} workloads[] = {{"resnet50", 2, "f32"},  {"mobilenetv2", 2, "f32"}, {"bert_base", 2, "f32"},
                 {"resnet50", 2, "bf16"}, {"bert_base", 2, "bf16"},  {"mobilenetv2", 0, "f32"},
                 {"bert_base", 0, "f32"}};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };
#define USUAL_SECONDS 4.0 /* for all workloads together; what each may take is its part of what is left */

static hone_status rehearse_network(hone_engine *engine, uint32_t i, const hone_rehearsal_options *o,
                                    hn_kernel_sums *sums, hone_error *error) {
  hone_model *model = NULL;
  hone_plan *plan = NULL;
  double *seconds = NULL;
  hone_rehearsal r;
  const hone_plan_options options = {
      .level = workloads[i].level, .precision = workloads[i].precision, .untuned = true, .preview = true};
  hone_status status = hone_zoo_build(workloads[i].network, NULL, &model, error);
  if (status == HONE_OK) status = hone_plan_create(engine, model, &options, &plan, error);
  if (status == HONE_OK) {
    const hn_plan *p = hn_api_plan(plan);
    seconds = hn_calloc(p->steps.len + 1, sizeof *seconds);
    status = seconds ? hn_rehearse(p, NULL, o, seconds, &r, error)
                     : hn_fail_memory(error, p->steps.len, "measuring kernels");
    if (status == HONE_OK) hn_kernel_sums_add(sums, p, seconds);
  }
  hn_free(seconds);
  hone_plan_destroy(plan);
  hone_model_release(model);
  return status;
}

hone_status hone_kernels_measure(hone_engine *engine, const hone_kernels_options *o, hone_kernel_speeds *out,
                                 hone_error *error) {
  static const hone_kernels_options usual = {0};
  if (!engine || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_kernels_measure needs an engine and a place for the result");
  if (!o) o = &usual;
  *out = (hone_kernel_speeds){0};
  hn_device *device;
  const hn_backend *backend = hn_api_backend(engine, &device);
  if (backend->asynchronous)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "kernels are calibrated on the CPU only");
  if (!o->again && hn_kernel_speeds_read(backend, device, out)) return HONE_OK;
  hn_kernel_sums *sums = hn_calloc(1, sizeof *sums);
  hone_kernel_speeds *old = hn_calloc(1, sizeof *old);
  if (!sums || !old) {
    hn_free(sums);
    hn_free(old);
    return hn_fail_memory(error, sizeof *sums, "measuring kernels");
  }
  *out = (hone_kernel_speeds){0};
  const hn_neighbours before = hn_neighbours_look();
  const uint64_t start = hn_now_ns();
  const double most = o->max_seconds > 0 ? o->max_seconds : USUAL_SECONDS;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < WORKLOADS && status == HONE_OK; i++) {
    const double left = most - (double)(hn_now_ns() - start) * 1e-9;
    const hone_rehearsal_options r = {left / (WORKLOADS - i), o->progress, o->progress_arg};
    if (left > 0) status = rehearse_network(engine, i, &r, sums, error);
  }
  out->seconds = (double)(hn_now_ns() - start) * 1e-9;
  out->quiet = hn_neighbours_quiet(&before);
  hn_kernel_speeds_learn(out, sums);
  if (hn_kernel_speeds_read(backend, device, old)) hn_kernel_speeds_fill(out, old);
  hn_free(sums);
  hn_free(old);
  if (status == HONE_OK && out->quiet) hn_kernel_speeds_write(backend, device, out);
  return status;
}

hone_status hone_kernels_learn(const hone_plan *plan, const double *step_seconds, uint32_t n,
                               uint32_t *changed, hone_error *error) {
  if (!plan || !step_seconds || n != hone_plan_steps(plan))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_kernels_learn needs a plan and the seconds of its steps");
  const hn_plan *p = hn_api_plan(plan);
  uint32_t new = 0;
  if (changed) *changed = 0;
  if (p->backend->asynchronous) return HONE_OK;
  hone_kernel_speeds *known = hn_calloc(1, sizeof *known);
  hn_kernel_sums *sums = hn_calloc(1, sizeof *sums);
  if (known && sums) {
    hn_kernel_speeds_read(p->backend, p->device, known);
    hn_kernel_sums_add(sums, p, step_seconds);
    new = hn_kernel_speeds_learn(known, sums);
    if (new) hn_kernel_speeds_write(p->backend, p->device, known);
  }
  const hone_status status =
      known && sums ? HONE_OK : hn_fail_memory(error, sizeof *known, "learning kernels");
  hn_free(known);
  hn_free(sums);
  if (changed) *changed = new;
  return status;
}

/* ------------------------------------------------------------------ rehearsing */

/* What was not timed, by its model and what is known of its kernel: from this rehearsal, else from earlier
 * ones, else from a calibration now, for which the rest of the time is taken, a second at least. */
static hone_status scale(const hone_plan *plan, const hone_rehearsal_options *o, const double *seconds,
                         double *scaled, hone_rehearsal *r, hone_error *error) {
  const hn_plan *p = hn_api_plan(plan);
  hone_status status = HONE_OK;
  hone_kernel_speeds *now = hn_calloc(1, sizeof *now), *known = hn_calloc(1, sizeof *known);
  hn_kernel_sums *sums = hn_calloc(1, sizeof *sums);
  if (!now || !known || !sums) {
    status = hn_fail_memory(error, sizeof *now, "a rehearsal");
    goto done;
  }
  hn_kernel_sums_add(sums, p, seconds);
  hn_kernel_speeds_learn(now, sums);
  hn_kernel_speeds_read(p->backend, p->device, known);
  bool asked = false;
  for (size_t i = 0; i < p->steps.len && status == HONE_OK; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (!(seconds[i] < 0)) continue; /* timed, or seen in the other plan */
    if (s->tuned) {                  /* it was measured when it was tuned */
      scaled[i] = s->predicted_s;
      continue;
    }
    const hone_kernel_place place = hn_kernel_place(&s->desc, &p->machine);
    double factor = hn_kernel_factor(now, s->tactic->name, place);
    if (factor <= 0) factor = hn_kernel_factor(known, s->tactic->name, place);
    if (factor <= 0 && !asked) {
      const double left = o->max_seconds - r->seconds;
      const hone_kernels_options options = {true, left > 1 ? left : 1, o->progress, o->progress_arg};
      asked = true;
      status = hone_kernels_measure(hn_api_engine(plan), &options, known, error);
      r->seconds += known->seconds;
      factor = hn_kernel_factor(known, s->tactic->name, place);
    }
    scaled[i] = s->predicted_s * factor;
  }
done:
  hn_free(now);
  hn_free(known);
  hn_free(sums);
  return status;
}

hone_status hone_plan_rehearse(const hone_plan *plan, const hone_plan *known, const hone_rehearsal_options *o,
                               hone_facts *facts, hone_rehearsal *out, hone_error *error) {
  enum { SECONDS = 3 };
  if (!plan || !facts || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_rehearse needs a plan, facts and a place for the result");
  hone_rehearsal_options options = o ? *o : (hone_rehearsal_options){0};
  if (options.max_seconds <= 0) options.max_seconds = SECONDS;
  const hn_plan *p = hn_api_plan(plan);
  const size_t n = p->steps.len;
  *out = (hone_rehearsal){0};
  if (p->backend->asynchronous) { /* its kernels would have to be compiled first */
    hn_recorder_preview(p, NULL, NULL, facts);
    return HONE_OK;
  }
  const hn_neighbours before = hn_neighbours_look();
  double *seconds = hn_calloc(2 * n + 1, sizeof *seconds);
  if (!seconds) return hn_fail_memory(error, 2 * n * sizeof *seconds, "a rehearsal");
  hone_status status = hn_rehearse(p, known ? hn_api_plan(known) : NULL, &options, seconds, out, error);
  const bool quiet = hn_neighbours_quiet(&before);
  if (status == HONE_OK) status = scale(plan, &options, seconds, seconds + n, out, error);
  if (status == HONE_OK && quiet) status = hone_kernels_learn(plan, seconds, (uint32_t)n, NULL, error);
  if (status == HONE_OK) hn_recorder_preview(p, seconds, seconds + n, facts);
  hn_free(seconds);
  return status;
}
