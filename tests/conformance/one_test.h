/* One ONNX backend test: a folder with model.onnx and test_data_set_N/{input,output}_M.pb. */
#ifndef TESTS_CONFORMANCE_ONE_TEST_H
#define TESTS_CONFORMANCE_ONE_TEST_H

#include "model/ir/eval.h"

#include <hone/session.h>

typedef enum verdict { PASSED = 0, REFUSED = 1, WRONG = 2, VERDICTS = 3 } verdict;

/* Runs a model's main graph on inputs (one for each graph input, NULL where the test gives none); fills
 * outputs, whose memory may stay allocated: every test has a process of its own. */
typedef hone_status engine_fn(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs,
                              hn_arena *keep, double seconds, hone_error *error);

engine_fn run_eval;  /* scalar references, one node after the other */
engine_fn run_saved; /* the references again, on the model written to a file and read back */
engine_fn run_cuda;  /* the same on device "cuda" */
engine_fn run_plan;  /* what users get: optimised at level 2, planned, run by a context */
engine_fn run_twin;  /* the same at level 1, of an expanded function (run_twin.c) */

/* How a model becomes a plan; `look` (or NULL) sees it before it runs. */
typedef struct plan_way {
  const char *device; /* NULL: the CPU */
  int level;
  hone_status (*look)(void *arg, const hone_plan *plan, hone_error *error);
  void *arg;
} plan_way;
hone_status run_way(const plan_way *way, hn_model *model, const hone_tensor *const *inputs,
                    hone_tensor *outputs, hn_arena *keep, double seconds, hone_error *error);

/* After run_cuda: the steps that ran on the host, with the reason of the first tactic that refused; "" when
 * there were none. */
const char *steps_on_host(void);

/* Runs the test in `folder` and says why it did not pass in reason. */
verdict run_test(const char *folder, engine_fn *engine, double seconds, char *reason, size_t size);

#endif
