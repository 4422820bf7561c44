/* Tuning: measuring what may run a step. Knows backends by their vtable only. Inside of improve and api.
 *
 *   tune.c       which steps, in which order, and what to choose
 *   tune_time.c  one step: memory, candidates, interleaved rounds
 *   tune_answers.c  whether the candidates agree
 */
#ifndef HN_IMPROVE_TUNE_H
#define HN_IMPROVE_TUNE_H

#include "optimize/step/step.h"
#include "optimize/step/tuned.h"

#include <hone/improve.h>

/* Rows of `out` for the plan; choices go into the table. See hone_tune. */
hone_status hn_tune(const hn_plan *plan, hn_tuned *table, const hone_tune_options *options,
                    hone_tune_report *out, hone_error *error);
void hn_tune_report_free(hone_tune_report *report);

/* One way to run a step, with what its measurement needs and gives. */
typedef struct hn_trial {
  const hone_tactic_desc *tactic;
  uint32_t threads; /* 0: all; 1 */
  double predicted;
  double median, spread; /* seconds, after hn_time_step */
  uint32_t samples;
  double difference; /* of its answer from the others', relative to its length */
  bool differs;      /* too far: not to be chosen */
} hn_trial;

/* Median and spread of the first `samples` times (at most HONE_TUNE_ROUNDS): the notch of a box plot, half
 * the width of the median's 95 % interval (1.57 IQR / sqrt(n); McGill, Tukey, Larsen 1978). */
void hn_trial_summarise(hn_trial *trial, const double *times);

/* A step and what will be measured of it. */
typedef struct hn_ready {
  const hn_step *step;
  const hn_trial *trial;
  uint32_t n;
} hn_ready;

/* On devices whose kernels are compiled: compiles those of all trials of n steps, on as many threads as there
 * are, which takes longer than measuring them. stop(arg) true, which the calling thread asks, leaves the rest
 * to hn_time_step (may be NULL). */
hone_status hn_make_ready(const hn_plan *plan, const hn_ready *list, uint32_t n, bool (*stop)(void *arg),
                          void *arg, hone_error *error);

/* Measures the trials of one step in interleaved rounds. other_bytes: what the rest of the model moves
 * through the caches between two runs of the step. stop(arg) true ends it with HONE_ERROR_CANCELLED (may be
 * NULL). */
hone_status hn_time_step(const hn_plan *plan, const hn_step *step, hn_trial *trial, uint32_t n,
                         uint64_t other_bytes, bool (*stop)(void *arg), void *arg, hone_error *error);

/* True when a is faster than b by more than noise: the intervals of their medians do not meet, and the
 * difference is more than HN_TUNE_MARGIN of the slower. */
#define HN_TUNE_MARGIN 0.02
bool hn_trial_beats(const hn_trial *a, const hn_trial *b);
/* Of those whose answers agree; n > 0. */
uint32_t hn_trial_fastest(const hn_trial *trial, uint32_t n);

#endif
