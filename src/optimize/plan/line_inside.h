/* Lines from inside, for line.c and move.c. */
#ifndef HN_OPTIMIZE_PLAN_LINE_INSIDE_H
#define HN_OPTIMIZE_PLAN_LINE_INSIDE_H

#include "optimize/plan/numbers.h"

typedef struct hn_sample hn_sample; /* line.h, as is what follows */
typedef struct hn_line hn_line;

typedef struct hn_dims {
  uint32_t first; /* number of dimension 0 */
  int32_t rank;
} hn_dims;

typedef struct hn_bytes {
  uint32_t desc;
  hone_dtype dtype;
  bool made;
  bool seen; /* something may have looked at what it is */
  size_t bytes;
  void *data; /* NULL: too many to keep */
} hn_bytes;

struct hn_sample {
  hn_arena arena;
  uint64_t form[2];
  uint32_t n, n_costs, n_reals, n_descs, n_contents;
  int64_t *number;
  double *cost;
  float *real;
  hn_dims *desc;
  hn_bytes *content;
};

typedef enum hn_content_kind {
  HN_CONTENT_FIXED, /* the same for all sizes */
  HN_CONTENT_EVEN,  /* whole numbers, each of which is even */
  HN_CONTENT_PART,  /* the leading block of `whole` */
  HN_CONTENT_MADE   /* evaluated by the node that it was folded of */
} hn_content_kind;

typedef struct hn_line_content {
  hn_content_kind kind;
  uint32_t desc;
  size_t count; /* EVEN */
  int64_t *base, *slope;
  const void *whole; /* FIXED, PART: as at the far end, whose dimensions these are */
  int64_t dim[HONE_MAX_RANK];
  uint64_t pattern; /* MADE, and seen: what may have been seen in it (content.c); else 0 */
} hn_line_content;

struct hn_line {
  hn_arena arena;
  uint64_t form[2];
  int64_t low, high;
  uint32_t n, n_costs, n_reals, n_descs, n_contents;
  int64_t *base, *slope;
  double (*cost)[3];
  float *real;                     /* where they do not move */
  int64_t *real_base, *real_slope; /* where they do: whole numbers */
  hn_dims *desc;
  hn_line_content *content;
};

hn_sample *hn_sample_of(const hn_numbers *numbers);
bool hn_line_fits(const hn_line *line, const hn_sample *sample, int64_t t);
/* Does one of these dimensions move? */
bool hn_line_moves(const hn_line *line, const hn_dims *dims);
double hn_line_cost(const hn_line *line, uint32_t i, int64_t t);
bool hn_leading_block(void *small, const int64_t *dim, const void *large, const int64_t *whole, int32_t rank,
                      size_t element, bool copy);

/* By value id, who of a plan's steps reads it; NULL: memory is short. Free it. */
uint8_t *hn_content_readers(const hn_plan *plan);
/* May something have looked at the constant: a pass that took it away, or lowering? */
bool hn_content_seen(const uint8_t *readers, const hn_value *value);
/* A number for what a pass sees in a constant: one value everywhere, a triangle up to its last corner, whole
 * numbers in a row. 0: none of these. */
uint64_t hn_content_pattern(const hone_tensor_desc *desc, const void *data);

float hn_line_real(const hn_line *line, uint32_t i, int64_t t);

static inline int64_t hn_line_number(const hn_line *l, uint32_t i, int64_t t) {
  return l->base[i] + l->slope[i] * t;
}

#endif
