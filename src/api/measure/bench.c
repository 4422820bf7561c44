/* Models timed on generated inputs, for demos. */
#include "api/measure/bench.h"
#include "api/measure/median.h"
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/mem.h"

#include <hone/data.h>
#include <hone/measure.h>
#include <hone/quantize.h>

#include <string.h>

enum { WARM = 3, SAMPLES = 8 };

void hn_bench_free(hn_bench *b) {
  hone_context_destroy(b->context);
  hone_plan_destroy(b->plan);
  hone_engine_destroy(b->engine);
  for (uint32_t i = 0; b->tensor && i < b->n; i++) hn_free(b->tensor[i].data);
  hn_free(b->tensor);
  hn_free((void *)b->in);
  *b = (hn_bench){0};
}

static hone_status no_memory(hone_error *error) {
  return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for the inputs of a demo");
}

/* Random rows, a few of them repeated: making billions of random numbers would be most of the demo. */
static hone_status fill(hone_tensor *t, uint64_t seed, hone_error *error) {
  const int64_t bytes = hone_desc_bytes(&t->desc);
  hone_tensor_desc part = t->desc;
  if (part.rank > 0 && part.dim[0] > 4) part.dim[0] = 4;
  part = hone_desc(part.dtype, part.rank, part.dim);
  hone_data few = {0};
  t->data = hn_aligned(64, (size_t)bytes + 64);
  if (!t->data) return no_memory(error);
  hone_status status = hone_data_random("x", &part, 0, seed, &few, error);
  if (status != HONE_OK) return status;
  const int64_t n = hone_desc_bytes(&part);
  for (int64_t at = 0; at < bytes; at += n)
    memcpy((char *)t->data + at, few.tensor.data, (size_t)(bytes - at < n ? bytes - at : n));
  hone_data_free(&few);
  return HONE_OK;
}

hone_status hn_bench_open(const hone_engine_options *engine, hone_model *model, const hone_plan_options *plan,
                          hn_bench *b, hone_error *error) {
  *b = (hn_bench){.device = engine->device && strcmp(engine->device, "cpu") != 0};
  hone_status status = hone_engine_create(engine, &b->engine, error);
  if (status == HONE_OK) status = hone_plan_create(b->engine, model, plan, &b->plan, error);
  if (status != HONE_OK) return status;
  b->n = hone_plan_inputs(b->plan);
  b->tensor = hn_calloc(b->n + 1, sizeof *b->tensor);
  b->in = hn_calloc(b->n + 1, sizeof *b->in);
  if (!b->tensor || !b->in) return no_memory(error);
  for (uint32_t i = 0; i < b->n && status == HONE_OK; i++) {
    b->tensor[i].desc = *hone_plan_input_desc(b->plan, i);
    b->in[i] = &b->tensor[i];
    status = fill(&b->tensor[i], i + 1, error);
  }
  return status == HONE_OK ? hone_context_create(b->plan, &b->context, error) : status;
}

hone_status hn_bench_run(hn_bench *b, uint32_t runs, double *ms, double *h2d, double *end,
                         hone_error *error) {
  double steps = 0, back = 0;
  hone_status status = b->device ? hone_context_clock(b->context, true, error) : HONE_OK;
  for (uint32_t i = 0; i < WARM + runs && status == HONE_OK; i++) {
    const double t = hn_watch_ms();
    double in = 0;
    status = hone_context_run(b->context, b->in, NULL, error);
    if (i < WARM || status != HONE_OK) continue;
    end[i - WARM] = ms[i - WARM] = hn_watch_ms() - t;
    if (b->device) status = hone_context_times(b->context, &in, &steps, &back, error);
    h2d[i - WARM] = in * 1e3;
  }
  for (uint32_t i = 0; b->device && i < runs && status == HONE_OK; i++) {
    status = hone_context_repeat(b->context, &steps, error);
    ms[i] = steps * 1e3;
  }
  return status;
}

hone_status hn_bench_time(hn_bench *b, uint32_t runs, hn_bench_times *out, hone_error *error) {
  double *ms = hn_calloc(runs, 3 * sizeof *ms);
  if (!ms) return no_memory(error);
  const hone_status status = hn_bench_run(b, runs, ms, ms + runs, ms + 2 * runs, error);
  *out = (hn_bench_times){hn_median_of(ms, runs), hn_median_of(ms + runs, runs),
                          hn_median_of(ms + 2 * runs, runs)};
  hn_free(ms);
  return status;
}

hone_status hn_bench_quantise(const hone_demo_machine *m, hone_model *model, const char *calib,
                              const char *const *skip, uint32_t n_skip, hone_model **out, uint32_t *layers,
                              hone_error *error) {
  const hone_quantize_options o = {.calib = calib ? calib : "random",
                                   .samples = calib ? 0 : SAMPLES,
                                   .checks = 1,
                                   .batch = 1,
                                   .threads = m->threads,
                                   .skip = skip,
                                   .n_skip = n_skip};
  hone_quantize_report report = {0};
  const hone_status status = hone_quantize(model, &o, out, &report, error);
  if (layers) *layers = report.quantized;
  hone_quantize_report_free(&report);
  return status;
}
