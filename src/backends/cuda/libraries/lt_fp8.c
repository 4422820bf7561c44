#include "backends/cuda/libraries/lt_fp8.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/libraries/fp8_args.h"
#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/libraries/lt_answer.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"
#include "base/narrow.h"

enum { FP8_ARCH = 89, PIECE = 256 };
#define E4M3_MOST 448.0f

typedef struct problem {
  hn_lt_step l;                                  /* as the step would be in its storage type */
  hn_lt_spec spec;                               /* of e4m3 */
  int64_t columns;                               /* of packed weights: rows of spec.k codes */
  int64_t all;                                   /* sixteens of the other operand */
  size_t bias, scale, blob_bytes;                /* in the blob */
  size_t parts, codes, library, workspace_bytes; /* in the workspace; the scale comes first */
} problem;

static void place_all(const hone_step *s, problem *p) {
  p->bias = hn_round_up((size_t)(p->columns * p->spec.k), 256);
  p->scale = p->bias + (p->l.bias.in_blob ? hn_round_up((size_t)p->columns * sizeof(float), 256) : 0);
  p->blob_bytes = p->scale + 256;
  p->parts = 256;
  p->codes = p->parts + HN_FP8_PARTS * sizeof(float);
  p->library = p->codes + hn_round_up((size_t)p->all * 16, 256);
  p->spec.workspace = hn_library_workspace(s);
  p->workspace_bytes = p->library + p->spec.workspace;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_lt_config *config, problem *p,
                     hone_reason *why) {
  if (s->math < HONE_MATH_FP8) return hn_refuse(why, "the step's precision is not fp8");
  if (m->arch < FP8_ARCH) return hn_refuse(why, "e4m3 wants compute capability 8.9");
  if (!config->describe(s, &p->l, why)) return false;
  const hn_lt_spec *l = &p->l.spec;
  if (!p->l.b.in_blob) return hn_refuse(why, "weights are not constant");
  if (l->batches != 1 || l->a.turned) return hn_refuse(why, "the other operand is not one matrix of rows");
  p->spec = *l;
  p->spec.dtype = HONE_DTYPE_F8E4M3FN, p->spec.out = l->dtype;
  p->spec.k = (int64_t)hn_round_up((size_t)p->l.depth, 16);
  p->spec.a = p->spec.b = (hn_lt_matrix){p->spec.k, 0, false};
  p->spec.b.turned = true;
  p->columns = l->n;
  p->all = l->m * (p->spec.k / 16);
  if (p->all > INT32_MAX / 16) return hn_refuse(why, "more than 2^31 codes");
  place_all(s, p);
  return true;
}

static hone_status describe_again(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                                  problem *p, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, config, p, &why)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
}

bool hn_lt_fp8_accepts(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                       hone_reason *why) {
  problem p;
  if (!(m->libraries & HONE_LIB_CUBLASLT)) return hn_refuse(why, "cuBLASLt is not on this machine");
  return describe(s, m, config, &p, why) && hn_lt_answers(&p.spec, m, config->candidate, why);
}

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_lt_fp8_cost(const hone_step *s, const hone_machine *m, const hn_lt_config *config) {
  problem p;
  if (!describe(s, m, config, &p, NULL)) return HN_REFUSED_SECONDS;
  const double rows = (double)p.spec.m, columns = (double)p.columns, depth = (double)p.spec.k;
  const double x = rows * depth * (double)hone_dtype_size(p.spec.out);
  const double bytes = rows * depth + columns * depth + hn_cuda_epilogue_bytes(s) +
                       rows * columns * (double)hone_dtype_size(p.spec.out);
  return (hn_library_seconds(m, HONE_DTYPE_F8E4M3FN, s->math, rows, columns, depth, bytes, 0.55) +
          hn_cuda_seconds(m, 0, 0, x, 0.7) + hn_cuda_seconds(m, 0, 0, x + rows * depth, 0.7) + 2e-6) *
         (1 + 0.02 * config->candidate);
}

hone_status hn_lt_fp8_need(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                           hone_tactic_need *need, hone_error *error) {
  problem p;
  hone_status status = describe_again(s, m, config, &p, error);
  if (status) return status;
  need->blob_bytes = p.blob_bytes;
  need->workspace_bytes = p.workspace_bytes;
  need->packed = p.l.packed;
  return HONE_OK;
}

/* ---------------------------------------------------------------- packing */

static float scale_of(const hone_step *s, const hn_lt_step *l) {
  const hone_step_tensor *w = &s->input[l->b.input];
  float most = 0, piece[PIECE];
  const int64_t all = hone_desc_count(&w->desc);
  for (int64_t i = 0; i < all; i += PIECE) {
    const int64_t n = all - i < PIECE ? all - i : PIECE;
    hn_cuda_constant_f32(w, i, n, piece);
    for (int64_t k = 0; k < n; k++) most = fmaxf(most, fabsf(piece[k]));
  }
  return most > 0 && isfinite(most) ? most / E4M3_MOST : 1;
}

hone_status hn_lt_fp8_prepack(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                              void *blob, hone_error *error) {
  problem p;
  hone_status status = describe_again(s, m, config, &p, error);
  if (status) return status;
  const hn_narrow_rule rule = {.powers = HN_NARROW_NEAREST};
  const float scale = scale_of(s, &p.l);
  unsigned char *to = blob;
  const hn_cuda_weights all = {.from = &s->input[p.l.b.input],
                               .by_column = p.l.b_n,
                               .by_channel = p.l.b_k,
                               .columns = (uint32_t)p.l.columns,
                               .taps = 1,
                               .channels = (uint32_t)p.l.depth};
  for (hn_cuda_weights_tile t = {.all = all}; hn_cuda_weights_next(&t);)
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t k = 0; k < t.channels; k++)
        to[(int64_t)(t.column + n) * p.spec.k + t.channel + k] =
            hn_narrow_from_f64(HONE_DTYPE_F8E4M3FN, (double)t.w[n][k] / (double)scale, rule);
  for (int64_t n = 0; p.l.bias.in_blob && n < p.l.columns; n++) {
    float v = 0;
    hn_cuda_constant_f32(&s->input[p.l.bias.input], n, 1, &v);
    hn_library_put(to + p.bias, n, p.spec.out, v * p.l.bias_scale);
  }
  memcpy(to + p.scale, &scale, sizeof scale);
  return HONE_OK;
}

/* A library's kernels, which no roof of ours is measured for. */
void hn_lt_fp8_work(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_work *work) {
  (void)s, (void)m, (void)config;
  work->arithmetic = HONE_ARITHMETIC_UNKNOWN;
}

/* ---------------------------------------------------------------- a run */

static hone_status narrow_rows(const hone_step_run *r, const problem *p, hone_error *error) {
  char *work = r->workspace;
  const void *x = r->in[p->l.a.input];
  const int64_t blocks = hn_cuda_blocks(p->all, 256), row = p->l.spec.a.row;
  const hone_dtype type = r->step->input[p->l.a.input].desc.dtype;
  const hn_fp8_args a = {.x = x,
                         .parts = work + p->parts,
                         .scale = work,
                         .y = work + p->codes,
                         .row = row,
                         .sixteens = hn_cuda_divisor((u32)(p->spec.k / 16)),
                         .length = (u32)p->l.depth,
                         .all = (u32)p->all,
                         .n_parts = (u32)(blocks < HN_FP8_PARTS ? blocks : HN_FP8_PARTS)};
  const bool vectors = (uintptr_t)x % 16 == 0 && row * (int64_t)hone_dtype_size(type) % 16 == 0;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hn_str text = {0};
  hn_cuda_define_type(&text, type);
  hn_str_printf(&text, "#define HN_W %d\n", vectors ? 8 : 1);
  hone_status status =
      hn_cuda_launch_line(q, "fp8", &text, "fp8_most", (int64_t)a.n_parts * 256, 256, &a, sizeof a, error);
  if (!status) status = hn_cuda_launch_line(q, "fp8", &text, "fp8_rows", p->all, 256, &a, sizeof a, error);
  hn_str_free(&text);
  return status;
}

hone_status hn_lt_fp8_run(const hone_step_run *r, const hn_lt_config *config, hone_error *error) {
  problem p;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hone_status status = describe_again(r->step, hn_cuda_machine(q), config, &p, error);
  if (!status) status = narrow_rows(r, &p, error);
  if (status) return status;
  const char *blob = r->blob;
  char *work = r->workspace;
  const hn_lt_source *bias = &p.l.bias;
  const hn_lt_place at = {.a = work + p.codes,
                          .b = blob,
                          .c = p.l.c.there ? r->in[p.l.c.input] : NULL,
                          .bias = !bias->there    ? NULL
                                  : bias->in_blob ? (const void *)(blob + p.bias)
                                                  : r->in[bias->input],
                          .a_scale = work,
                          .b_scale = blob + p.scale,
                          .d = r->out[0],
                          .workspace = work + p.library};
  return hn_lt_launch(q, &p.spec, config->candidate, &at, error);
}
