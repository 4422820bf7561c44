/* check_timed: hone_tune times every step of yolov3's plan in memory of its own (an emulated GPU, which
 * watches the bounds, will do): what a step writes into a part of a Concat's output included. And it may be
 * stopped at any time: what was not made ready by then is no error. */
#include "skipped.h"
#include "api/api.h"

#include <hone/hone.h>
#include <hone/improve.h>
#include <hone/session.h>

#include <stdio.h>
#include <string.h>

/* Few kernels, or the emulator takes minutes. */
#define TACTICS "conv_mma_64x64,conv_mma_32x32,concat,resize,reformat,pointwise*"

static int count_parts(const hn_plan *p) {
  int n = 0;
  for (size_t i = 0; i < p->slots.len; i++)
    n += p->slots.ptr[i].alias != HN_NO_SLOT && p->slots.ptr[i].desc.layout == HONE_LAYOUT_CHANNELS_LAST;
  return n;
}

/* Stops when the first steps are to be made ready. */
static bool stop_second(void *arg, uint32_t done, uint32_t total, double left) {
  (void)done, (void)total, (void)left;
  return ++*(int *)arg < 2;
}

static hone_status tune_stopped(hone_plan *plan, bool *stopped, hone_error *error) {
  int asked = 0;
  hone_tune_report report = {0};
  const hone_tune_options options = {
      .again = true, .unsaved = true, .progress = stop_second, .progress_arg = &asked};
  const hone_status s = hone_tune(plan, &options, &report, error);
  *stopped = !s && report.stopped && !report.measured;
  hone_tune_report_free(&report);
  return s;
}

int main(void) {
  hone_model *model = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_tune_report report = {0};
  hone_error error = {0};
  hone_status s = hone_engine_create(
      &(hone_engine_options){.device = "cuda", .threads = 1, .tuning = "off", .tactics = TACTICS}, &engine,
      &error);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", error.what);
    return SKIPPED;
  }
  const hone_zoo_options zoo = {.batch = 1, .width = 0.125, .size = 64, .seed = 1};
  if (!s) s = hone_zoo_build("yolov3", &zoo, &model, &error);
  if (!s)
    s = hone_plan_create(engine, model, &(hone_plan_options){.level = -1, .precision = "fp16"}, &plan,
                         &error);
  bool stopped = false;
  if (!s) s = tune_stopped(plan, &stopped, &error); /* before anything but the plan's own tactics is ready */
  if (!s)
    s = hone_tune(plan, &(hone_tune_options){.alone = true, .again = true, .unsaved = true}, &report, &error);
  if (s) printf("FAIL: %s%s%s\n", *error.where ? error.where : "", *error.where ? ": " : "", error.what);
  const int parts = s ? 0 : count_parts(hn_api_plan(plan));
  const bool good = !s && parts > 0 && report.measured == report.n_steps && report.n_steps > 10 && stopped;
  printf("%s when asked to; %u of %u kinds of steps timed, %d tensors are parts of others: %s\n",
         stopped ? "stopped" : "NOT stopped", report.measured, report.n_steps, parts, good ? "good" : "FAIL");
  hone_tune_report_free(&report);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(model);
  return !good;
}
