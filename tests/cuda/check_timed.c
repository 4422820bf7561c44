/* check_timed: hone_tune times every step of yolov3's plan in memory of its own (an emulated GPU, which
 * watches the bounds, will do): what a step writes into a part of a Concat's output included. */
#include "skipped.h"
#include "api/api.h"

#include <hone/hone.h>
#include <hone/improve.h>
#include <hone/session.h>

#include <stdio.h>
#include <string.h>

/* Few kernels, or the emulator takes minutes. */
#define TACTICS "conv_mma_64x64,conv_mma_32x32,concat,resize,reformat,pointwise*,convert*"

static int count_parts(const hn_plan *p) {
  int n = 0;
  for (size_t i = 0; i < p->slots.len; i++)
    n += p->slots.ptr[i].alias != HN_NO_SLOT && p->slots.ptr[i].desc.layout == HONE_LAYOUT_CHANNELS_LAST;
  return n;
}

int main(void) {
  hone_model *model = NULL;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_tune_report report = {0};
  hone_error error = {0};
  hone_status s = hone_engine_create(
      &(hone_engine_options){.device = "cuda", .threads = 2, .tuning = "off", .tactics = TACTICS}, &engine,
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
  if (!s)
    s = hone_tune(plan, &(hone_tune_options){.alone = true, .again = true, .unsaved = true}, &report, &error);
  if (s) printf("FAIL: %s%s%s\n", *error.where ? error.where : "", *error.where ? ": " : "", error.what);
  const int parts = s ? 0 : count_parts(hn_api_plan(plan));
  const bool good = !s && parts > 0 && report.measured == report.n_steps && report.n_steps > 10;
  printf("%u of %u kinds of steps timed, %d tensors are parts of others: %s\n", report.measured,
         report.n_steps, parts, good ? "good" : "FAIL");
  hone_tune_report_free(&report);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(model);
  return !good;
}
