/* A model ready to be timed on generated inputs. */
#ifndef HN_API_MEASURE_BENCH_H
#define HN_API_MEASURE_BENCH_H

#include <hone/measure.h>

typedef struct hn_bench {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_tensor *tensor; /* of its inputs */
  const hone_tensor **in;
  uint32_t n;
  bool device; /* with a clock of its own */
} hn_bench;

/* The model is the caller's, and stays until hn_bench_free, which is called in any case. */
hone_status hn_bench_open(const hone_engine_options *engine, hone_model *model, const hone_plan_options *plan,
                          hn_bench *out, hone_error *error);
void hn_bench_free(hn_bench *bench);

/* Medians: the steps (of a device by its own clock), the copies of inputs, the whole call. */
typedef struct hn_bench_times {
  double ms, h2d_ms, end_ms;
} hn_bench_times;
/* The samples themselves, `runs` of each. */
hone_status hn_bench_run(hn_bench *bench, uint32_t runs, double *ms, double *h2d, double *end,
                         hone_error *error);
hone_status hn_bench_time(hn_bench *bench, uint32_t runs, hn_bench_times *out, hone_error *error);

/* In codes of 8 bits, calibrated on `calib` (NULL: some random samples). *layers (may be NULL): how many are.
 * Release *out. */
hone_status hn_bench_quantise(const hone_demo_machine *machine, hone_model *model, const char *calib,
                              const char *const *skip, uint32_t n_skip, hone_model **out, uint32_t *layers,
                              hone_error *error);

#endif
