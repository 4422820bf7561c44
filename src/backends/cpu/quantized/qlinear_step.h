/* Quantised Conv, MatMul and Gemm on the float tactics: codes less their zero point are integers of at most
 * 255, which bf16 holds exactly, and f32 adds integers exactly below 2^24.  The weights say at plan time
 * whether every partial sum stays below; if not, the step is refused. Then one multiplication and one
 * rounding a result, as QLinearConv defines it. */
#ifndef HN_CPU_QUANTIZED_QLINEAR_STEP_H
#define HN_CPU_QUANTIZED_QLINEAR_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "optimize/step/qlinear.h"

/* What makes one kind of step. */
typedef struct hn_qlinear {
  const char *anchor;                          /* of the f32 step inside: "Conv" */
  const struct hone_tactic_desc *const *inner; /* its tactics, ended by NULL */
  /* Index of the output channel that weight i belongs to: i / per % channels, with per of this step's
   * weights. */
  int64_t (*per_channel)(const hone_step *step);
} hn_qlinear;

/* A scale or zero point of one value, as f32; 0 for a zero point left out. */
bool hn_qlinear_param(const hone_step *step, uint32_t input, float *out, hone_reason *why);
/* An 8-bit tensor whose memory has no gaps. */
bool hn_qlinear_codes(const hone_tensor_desc *desc, hone_reason *why);

/* What codes go in and come out of a step without epilogue. False with a reason where there are none. */
typedef struct hn_qlinear_ends {
  float x_scale, x_zero, y_scale, y_zero;
  bool x_signed, y_signed;
} hn_qlinear_ends;
bool hn_qlinear_ends_of(const hone_step *step, hn_qlinear_ends *ends, hone_reason *why);

/* What every quantised step says, and the f32 step that it would be. */
typedef struct hn_qlinear_info {
  hn_isa isa;
  bool x_signed, y_signed, biased, vectors; /* vectors: one weight scale a channel */
  float x_zero, y_zero;
  int64_t channels, x_count, y_count;
} hn_qlinear_info;
typedef struct hn_qlinear_inner {
  hone_step step;
  hone_step_tensor in[3], out;
} hn_qlinear_inner;

/* What becomes of each of the 256 codes of a QLinearConvTable's convolution; NULL: it is a step without. */
const uint8_t *hn_qlinear_table(const hone_step_run *run);

/* anchor: of the f32 step; per: see per_channel.  False with a reason. */
bool hn_qlinear_read(const char *anchor, int64_t per, const hone_step *step, const hone_machine *machine,
                     hn_qlinear_info *info, hn_qlinear_inner *inner, hone_reason *why);
/* x scale * w scale / y scale of each channel. */
void hn_qlinear_scales(const hone_step *step, const hn_qlinear_info *info, float *scale);

/* The kinds. */
extern const hn_qlinear hn_qlinear_conv, hn_qlinear_gemm, hn_qlinear_matmul;

typedef struct hn_qlinear_config {
  const hn_qlinear *kind;
} hn_qlinear_config;

HN_FAMILY_COUNTED(hn_qlinear);

#define hn_cpu_qlinear_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC_COUNTED(cpu, NAME, ANCHOR, 3, hn_qlinear, __VA_ARGS__)

#endif
