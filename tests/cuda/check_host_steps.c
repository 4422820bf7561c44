/* check_host_steps: plans of real networks for a GPU (an emulated one will do; nothing runs) in f32 and fp16:
 * no step may be left to the host.
 *
 * usage: check_host_steps [FOLDER]   FOLDER: models, also one folder below; default $HONE_SHARED or
 * ../shared, in cases/models. Without it nothing is checked (SKIP).
 */
#include "skipped.h"
#include "api/api.h"

#include <hone/hone.h>
#include <hone/session.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps on the host, named; negative: the model has no plan. */
static int host_steps(hone_engine *engine, const char *path, const char *precision) {
  hone_model *model = NULL, *bound = NULL;
  hone_plan *plan = NULL;
  hone_error e = {0};
  int n = -1;
  hone_status s = hone_model_load(path, &model, &e);
  if (!s) s = hone_model_bind(model, NULL, 0, 1, &bound, NULL, &e);
  if (!s)
    s = hone_plan_create(engine, bound, &(hone_plan_options){.level = -1, .precision = precision}, &plan, &e);
  if (s) printf("FAIL: %s: %s%s%s\n", path, e.what, *e.where ? ", " : "", e.where);
  const hn_plan *p = s ? NULL : hn_api_plan(plan);
  if (p) n = 0;
  for (size_t i = 0; p && i < p->steps.len; i++) {
    const hn_step *step = &p->steps.ptr[i];
    if (!hn_step_falls_back(step)) continue;
    printf("FAIL: %s %s: step %s (%s) is on the host: %s\n", path, precision, step->desc.name,
           step->desc.anchor, step->n_refused ? step->refused[0].text : "no tactic");
    n++;
  }
  hone_plan_destroy(plan);
  hone_model_release(bound);
  hone_model_release(model);
  return n;
}

int main(int argc, char **argv) {
  const char *shared = getenv("HONE_SHARED");
  char folder[3000], pattern[4000];
  snprintf(folder, sizeof folder, "%s%s",
           argc > 1 ? argv[1]
           : shared ? shared
                    : "../shared",
           argc > 1 ? "" : "/cases/models");
  glob_t g;
  snprintf(pattern, sizeof pattern, "%s/*.onnx", folder);
  glob(pattern, 0, NULL, &g);
  snprintf(pattern, sizeof pattern, "%s/*/*.onnx", folder);
  glob(pattern, GLOB_APPEND, NULL, &g);
  if (!g.gl_pathc) {
    printf("SKIP: no models in %s\n", folder);
    return SKIPPED;
  }
  hone_engine *engine = NULL;
  hone_error e = {0};
  hone_status s = hone_engine_create(&(hone_engine_options){.device = "cuda", .threads = 2, .tuning = "off"},
                                     &engine, &e);
  if (s == HONE_ERROR_MISSING) printf("SKIP: %s\n", e.what);
  if (s) return s == HONE_ERROR_MISSING ? SKIPPED : 1;
  int bad = 0;
  static const char *const precisions[] = {"f32", "fp16"};
  for (size_t i = 0; i < g.gl_pathc; i++)
    for (size_t k = 0; k < 2; k++) bad += host_steps(engine, g.gl_pathv[i], precisions[k]) != 0;
  printf("%zu models, %d plans with steps on the host\n", g.gl_pathc, bad);
  hone_engine_destroy(engine);
  globfree(&g);
  return bad != 0;
}
