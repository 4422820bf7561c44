/* The half of a tactic that Gemm and MatMul share: blob, workspace and run around a described product. */
#ifndef HN_CPU_PRODUCT_MATMUL_STEP_H
#define HN_CPU_PRODUCT_MATMUL_STEP_H

#include "backends/cpu/product/matmul_driver.h"
#include "backends/tactic.h"

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

bool hn_matmul_describe_gemm(const hone_step *s, const hone_machine *m, hn_matmul_step *d, hone_reason *why);
bool hn_matmul_describe_matmul(const hone_step *s, const hone_machine *m, hn_matmul_step *d,
                               hone_reason *why);

/* Plans d->p and lays out the blob; called last by a describe function. */
void hn_matmul_step_plan(hn_matmul_step *d, const hone_machine *m, bool bias);

/* For tactics whose blob begins with an hn_matmul_step: writes all but the blob's head, the seconds that it
 * takes with its products at `flops`, and what a run adds to the products. */
void hn_matmul_step_fill(const hn_matmul_step *d, const hone_step *s, void *blob);
double hn_matmul_step_seconds(const hn_matmul_step *d, const hone_step *s, const hone_machine *m,
                              double flops);
void hn_matmul_step_bind(const hn_matmul_step *d, const hone_step_run *r, hn_epilogue *e);

typedef struct hn_matmul_step_config {
  hn_matmul_describe describe;
} hn_matmul_step_config;

HN_FAMILY_PACKED(hn_matmul_step);
HN_FAMILY_SHARED(hn_matmul_step);

#define hn_cpu_matmul_tactic(NAME, ANCHOR, ...)                                                              \
  HN_TACTIC_PACKED_SHARED(cpu, NAME, ANCHOR, 4, hn_matmul_step, __VA_ARGS__)

#endif
