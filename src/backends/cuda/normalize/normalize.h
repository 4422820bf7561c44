/* Steps that are functions of rows (normalize/normalize.cu). */
#ifndef HN_CUDA_NORMALIZE_NORMALIZE_H
#define HN_CUDA_NORMALIZE_NORMALIZE_H

#include "backends/tactic.h"

typedef enum hn_row_kind { /* the numbers of normalize.cu */
                           HN_ROWS_SOFTMAX,
                           HN_ROWS_LOG_SOFTMAX,
                           HN_ROWS_HARDMAX,
                           HN_ROWS_NORM1,
                           HN_ROWS_NORM2,
                           HN_ROWS_MOMENTS,
                           HN_ROWS_RMS,
                           HN_ROWS_STANDARD
} hn_row_kind;

typedef enum hn_row_place {
  HN_AT_NOTHING,
  HN_AT_ELEMENT,
  HN_AT_PLANE,
  HN_AT_CHANNEL,
  HN_AT_GROUP
} hn_row_place;

#define HN_ROWS_NONE 0xffffffffu

/* What a tactic reads out of its step. */
typedef struct hn_rows {
  hn_row_kind kind;
  uint32_t axes; /* set of dimensions that make a row */
  hn_row_place place;
  int64_t planes, each, inner;               /* of scale and shift, see normalize_args.h */
  uint32_t scale, shift, skip, bias;         /* inputs */
  uint32_t x_scale, x_zero, y_scale, y_zero; /* inputs: of codes of 8 bits, one constant number each */
  uint32_t mean, inv_std, sum;               /* outputs */
  float epsilon;
} hn_rows;

/* An hn_rows of a kind without tensors. */
hn_rows hn_rows_make(hn_row_kind kind, uint32_t axes);
/* The axis attribute as a set; `trailing`: and all behind it. */
bool hn_rows_axis(const hone_step *s, int64_t otherwise, bool trailing, uint32_t *axes, hone_reason *why);

bool hn_cuda_rows_accepts(const hone_step *s, const hn_rows *rows, hone_reason *why);
double hn_cuda_rows_cost(const hone_step *s, const hone_machine *m);
/* Room for the moments of parts of rows. */
hone_status hn_cuda_rows_need(const hone_step *s, const hone_machine *m, const hn_rows *rows,
                              hone_tactic_need *n);
hone_status hn_cuda_rows_run(const hone_step_run *r, const hn_rows *rows, hone_error *error);

/* The tactic NAME for ANCHOR; READ(step, hn_rows *, why) describes a step. */
#define HN_CUDA_ROWS(NAME, ANCHOR, READ)                                                                     \
  static bool NAME##_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                  \
    hn_rows rows;                                                                                            \
    (void)m;                                                                                                 \
    return READ(s, &rows, why) && hn_cuda_rows_accepts(s, &rows, why);                                       \
  }                                                                                                          \
  static hone_status NAME##_run(const hone_step_run *r, hone_error *error) {                                 \
    hn_rows rows;                                                                                            \
    hone_reason why = {""};                                                                                  \
    if (!READ(r->step, &rows, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, #NAME ": %s", why.text);     \
    return hn_cuda_rows_run(r, &rows, error);                                                                \
  }                                                                                                          \
  static hone_status NAME##_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,             \
                                 hone_error *error) {                                                        \
    hn_rows rows;                                                                                            \
    hone_reason why = {""};                                                                                  \
    if (!READ(s, &rows, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, #NAME ": %s", why.text);           \
    return hn_cuda_rows_need(s, m, &rows, n);                                                                \
  }                                                                                                          \
  HN_TACTIC(cuda, NAME, ANCHOR, 2, .accepts = NAME##_accepts, .cost = hn_cuda_rows_cost,                     \
            .need = NAME##_need, .run = NAME##_run)

#endif
