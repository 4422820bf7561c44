/* Whether the ways to run a step agree: a library's engine that is fast and wrong must not be chosen. Inside
 * of improve only. */
#ifndef HN_IMPROVE_TUNE_ANSWERS_H
#define HN_IMPROVE_TUNE_ANSWERS_H

#include "improve/tune.h"

/* Elements of a step's outputs as numbers: all of them, or pieces spread over each output. Zeroed: none. */
typedef struct hn_answer {
  double *value;
  size_t n;
} hn_answer;

/* Takes them from the device's memory; what was launched on the queue is done. Free in any case. */
hone_status hn_answer_take(const hn_plan *plan, hn_queue *queue, const hone_step *step, void *const *out,
                           hn_answer *answer, hone_error *error);
void hn_answer_free(hn_answer *answer);

/* Sets `difference` and `differs` of the trials. What most of them agree on is right, of equal numbers what
 * the cost models prefer. */
void hn_answers_judge(const hn_answer *answer, hn_trial *trial, uint32_t n);

#endif
