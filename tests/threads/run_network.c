/* usage: run_network NAME PRECISION   a network of the zoo on four threads, twice; its outputs must be finite
 * and the same. What it does is for a sanitizer that watches the threads (make tsan): nothing of the command
 * has to be built for that. */
#include <hone/hone.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(hone_status status, const hone_error *e) {
  if (status == HONE_OK) return;
  fprintf(stderr, "FAIL %s: %s %s\n", hone_status_name(status), e->what, e->where);
  exit(1);
}

int main(int argc, char **argv) {
  hone_error e = {0};
  hone_engine *engine;
  hone_model *model;
  hone_plan *plan;
  hone_context *context;
  if (argc != 3) {
    fprintf(stderr, "usage: run_network NAME PRECISION\n");
    return 2;
  }
  must(hone_engine_create(&(hone_engine_options){.threads = 4}, &engine, &e), &e);
  must(hone_zoo_build(argv[1], &(hone_zoo_options){.batch = 1}, &model, &e), &e);
  must(hone_plan_create(engine, model, &(hone_plan_options){.level = -1, .precision = argv[2]}, &plan, &e),
       &e);
  must(hone_context_create(plan, &context, &e), &e);
  const hone_tensor_desc *in = hone_plan_input_desc(plan, 0), *out = hone_plan_output_desc(plan, 0);
  const int64_t n = hone_desc_count(in);
  const size_t bytes = (size_t)hone_desc_bytes(out);
  float *x = malloc((size_t)hone_desc_bytes(in)), *first = malloc(bytes);
  if (in->dtype != HONE_DTYPE_F32 || out->dtype != HONE_DTYPE_F32 || !x || !first) abort();
  for (int64_t i = 0; i < n; i++) x[i] = sinf((float)i);
  const hone_tensor image = {*in, x};
  const hone_tensor *const feed[] = {&image};
  int wrong = 0;
  for (int run = 0; run < 2; run++) {
    must(hone_context_run(context, feed, NULL, &e), &e);
    const float *y = hone_context_output(context, 0)->data;
    if (run)
      wrong += memcmp(first, y, bytes) != 0;
    else
      memcpy(first, y, bytes);
  }
  for (int64_t i = 0; i < hone_desc_count(out); i++) wrong += !isfinite(first[i]);
  printf("%s in %s: %s\n", argv[1], argv[2],
         wrong ? "FAIL: outputs differ, or are not finite" : "twice the same");
  free(x), free(first);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_model_release(model);
  hone_engine_destroy(engine);
  return wrong != 0;
}
