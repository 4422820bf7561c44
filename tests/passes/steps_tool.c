/* Counts the steps that a model ends at and compares its answers with the reference plan:
 * steps_tool [-l LEVEL] [-n] [-s] FILE.onnx   -n: do not compare, -s: list the steps */
#include <hone/data.h>
#include <hone/session.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 16 };

static hone_status make(hone_engine *e, hone_model *m, int level, bool reference, hone_plan **p,
                        hone_context **c, hone_error *error) {
  hone_plan_options o = {.level = level, .reference = reference};
  hone_status s = hone_plan_create(e, m, &o, p, error);
  return s == HONE_OK ? hone_context_create(*p, c, error) : s;
}

int main(int argc, char **argv) {
  int level = 2;
  bool list = false, compare = true;
  const char *file = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-l") == 0 && i + 1 < argc)
      level = atoi(argv[++i]);
    else if (strcmp(argv[i], "-s") == 0)
      list = true;
    else if (strcmp(argv[i], "-n") == 0)
      compare = false;
    else
      file = argv[i];
  }
  if (!file) return 2;
  hone_error error = {0};
  hone_engine *engine = NULL;
  hone_model *model = NULL;
  hone_plan *plan[2] = {NULL, NULL};
  hone_context *context[2] = {NULL, NULL};
  double worst = 0;
  hone_status s = hone_engine_create(NULL, &engine, &error);
  if (s == HONE_OK) s = hone_model_load(file, &model, &error);
  for (int k = 0; k < 1 + compare && s == HONE_OK; k++)
    s = make(engine, model, k ? 0 : level, k, &plan[k], &context[k], &error);
  for (uint32_t i = 0; list && s == HONE_OK && i < hone_plan_steps(plan[0]); i++) {
    hone_step_info info;
    if (hone_plan_step(plan[0], i, &info))
      printf("%3u %-28s %-40s %-24s %s\n", i, info.tactic, info.what, info.shape, info.name);
  }
  for (int k = 0; k < 1 + compare && s == HONE_OK; k++) {
    hone_data data[MAX_INPUTS] = {{.impl = NULL}};
    const hone_tensor *in[MAX_INPUTS] = {NULL};
    for (uint32_t i = 0; i < hone_plan_inputs(plan[k]) && i < MAX_INPUTS && s == HONE_OK; i++) {
      const char *name = hone_plan_input_name(plan[k], i);
      s = hone_data_random(name, hone_plan_input_desc(plan[k], i), 0, 1, &data[i], &error);
      in[i] = &data[i].tensor;
    }
    if (s == HONE_OK) s = hone_context_run(context[k], in, NULL, &error);
    for (int i = 0; i < MAX_INPUTS; i++) hone_data_free(&data[i]);
  }
  for (uint32_t i = 0; compare && s == HONE_OK && i < hone_plan_outputs(plan[0]); i++) {
    const hone_tensor *a = hone_context_output(context[0], i), *b = hone_context_output(context[1], i);
    if (a->desc.dtype != HONE_DTYPE_F32) continue;
    double range = 1e-9, diff = 0;
    for (int64_t k = 0, n = hone_desc_count(&b->desc); k < n; k++) {
      double x = ((const float *)a->data)[k], y = ((const float *)b->data)[k];
      if (fabs(y) > range) range = fabs(y);
      if (!(fabs(x - y) <= diff)) diff = fabs(x - y);
    }
    if (!(diff / range <= worst)) worst = diff / range;
  }
  if (s == HONE_OK)
    printf("%s: level %d, %u steps, largest difference %.2e of the range\n", file, level,
           hone_plan_steps(plan[0]), worst);
  else {
    char line[1024];
    hone_error_format(&error, line, sizeof line);
    fprintf(stderr, "%s\n", line);
  }
  for (int k = 0; k < 2; k++) {
    hone_context_destroy(context[k]);
    hone_plan_destroy(plan[k]);
  }
  hone_model_release(model);
  hone_engine_destroy(engine);
  return s == HONE_OK ? 0 : hone_status_exit_code(s);
}
