#include "backends/cuda/libraries/lt_codes.h"

#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/libraries/lt_answer.h"
#include "backends/cuda/quantized/codes_sums.h"
#include "backends/tactic.h"
#include "base/error.h"

typedef struct problem {
  hn_codes_sums q;
  hn_lt_spec spec;
} problem;

/* Rows of i8 times rows of weights: the one form that cuBLASLt takes. */
static bool describe(const hone_step *s, problem *x, hone_reason *why) {
  if (!hn_codes_sums_of(s, &x->q, why)) return false;
  const hn_codes_sums *q = &x->q;
  x->spec = (hn_lt_spec){.dtype = HONE_DTYPE_I8,
                         .math = HONE_MATH_STRICT,
                         .m = q->rows,
                         .n = q->columns,
                         .k = q->depth,
                         .batches = 1,
                         .a = {q->copied ? q->depth : q->row, 0, false},
                         .b = {q->depth, 0, true},
                         .d = {q->columns, 0, false},
                         .alpha = 1,
                         .workspace = hn_library_workspace(s)};
  return true;
}

static hone_status describe_again(const hone_step *s, problem *x, hone_error *error) {
  hone_reason why = {""};
  return describe(s, x, &why) ? HONE_OK : hn_not_described(s, &why, error);
}

bool hn_lt_codes_accepts(const hone_step *s, const hone_machine *m, const hn_lt_codes_config *config,
                         hone_reason *why) {
  problem x;
  if (!(m->libraries & HONE_LIB_CUBLASLT)) return hn_refuse(why, "cuBLASLt is not on this machine");
  return describe(s, &x, why) && hn_lt_answers(&x.spec, m, config->candidate, why);
}

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_lt_codes_cost(const hone_step *s, const hone_machine *m, const hn_lt_codes_config *config) {
  problem x;
  if (!describe(s, &x, NULL)) return HN_REFUSED_SECONDS;
  const double rows = (double)x.q.rows, columns = (double)x.q.columns, depth = (double)x.q.depth;
  const double bytes = rows * depth + columns * depth + 4 * rows * columns;
  return (hn_library_seconds(m, HONE_DTYPE_I8, HONE_MATH_STRICT, rows, columns, depth, bytes, 0.62) +
          hn_codes_sums_seconds(m, &x.q)) *
         (1 + 0.02 * config->candidate);
}

hone_status hn_lt_codes_need(const hone_step *s, const hone_machine *m, const hn_lt_codes_config *config,
                             hone_tactic_need *need, hone_error *error) {
  problem x;
  (void)m, (void)config;
  hone_status status = describe_again(s, &x, error);
  if (status) return status;
  need->blob_bytes = hn_codes_sums_blob(&x.q).bytes;
  need->packed = 1u << HN_QLINEAR_W;
  need->workspace_bytes = x.q.at_library + x.spec.workspace;
  return HONE_OK;
}

hone_status hn_lt_codes_prepack(const hone_step *s, const hone_machine *m, const hn_lt_codes_config *config,
                                void *blob, hone_error *error) {
  problem x;
  (void)m, (void)config;
  hone_status status = describe_again(s, &x, error);
  return status ? status : hn_codes_sums_pack(s, &x.q, blob, error);
}

void hn_lt_codes_work(const hone_step *s, const hone_machine *m, const hn_lt_codes_config *config,
                      hone_work *work) {
  (void)s, (void)m, (void)config;
  work->arithmetic = HONE_ARITHMETIC_INT8;
}

hone_status hn_lt_codes_run(const hone_step_run *run, const hn_lt_codes_config *config, hone_error *error) {
  problem x;
  hn_lt_place at = {.b = run->blob};
  hone_status status = describe_again(run->step, &x, error);
  if (!status) status = hn_codes_sums_begin(run, &x.q, &at.a, error);
  at.d = (char *)run->workspace + x.q.at_sums, at.workspace = (char *)run->workspace + x.q.at_library;
  if (!status) status = hn_lt_launch(hn_cuda_queue_of(run), &x.spec, config->candidate, &at, error);
  return status ? status : hn_codes_sums_end(run, &x.q, error);
}
