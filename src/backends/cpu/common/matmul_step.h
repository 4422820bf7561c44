/* The half of a tactic that Gemm and MatMul share: blob, workspace and run around a described product. */
#ifndef HN_CPU_COMMON_MATMUL_STEP_H
#define HN_CPU_COMMON_MATMUL_STEP_H

#include "backends/cpu/common/matmul_driver.h"

typedef struct hn_matmul_step {
  hn_matmul p;
  int64_t bias_at;    /* constant bias vector in the blob (in bytes from its begin); 0: none */
  int64_t bias_input; /* else the anchor input that is the bias; 0: none */
  float bias_scale;
  int64_t residual_input; /* anchor input of the output's dimensions that is added; 0: none */
  int64_t weights_at, bytes;
} hn_matmul_step;

/* Reads the step; false with a reason when it is outside what the driver does. */
typedef bool (*hn_matmul_describe)(const hone_step *s, const hone_machine *m, hn_matmul_step *d,
                                   hone_reason *why);

double hn_matmul_step_cost(const hone_step *s, const hone_machine *m, hn_matmul_describe describe);
hone_status hn_matmul_step_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,
                                hone_error *error, hn_matmul_describe describe);
hone_status hn_matmul_step_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error,
                                   hn_matmul_describe describe);
hone_status hn_matmul_step_run(const hone_step_run *r, hone_error *error);

/* Plans d->p and lays out the blob; called last by a describe function. */
void hn_matmul_step_plan(hn_matmul_step *d, const hone_machine *m, bool bias);

#endif
