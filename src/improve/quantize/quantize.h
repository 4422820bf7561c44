/* Post-training quantisation: what its files share. Inside of improve only.
 *
 *   select.c     which nodes and values get 8 bits, by target
 *   samples.c    the calibration set, one sample at a time
 *   histogram.c  what a value held, in fixed memory
 *   calibrate.c  the float model on all samples
 *   range.c      methods: from a histogram to a range, from a range to scale and zero point
 *   rewrite.c    QuantizeLinear and DequantizeLinear into the graph
 *   check.c      the result against the float model */
#ifndef HN_IMPROVE_QUANTIZE_H
#define HN_IMPROVE_QUANTIZE_H

#include "base/map.h"
#include "improve/side.h"
#include "model/ir/graph.h"

#include <hone/quantize.h>

/* ---- histograms */

enum { HN_QZ_BINS = 4096 };

/* Bins of equal width over [-reach, reach), reach a power of two that doubles when a value lies outside. */
typedef struct hn_qz_histogram {
  double reach;               /* 0: nothing but zeros so far */
  uint64_t count, zeros, odd; /* zeros: exact; odd: not finite, in no bin */
  double least, most;
  double early_least, early_most; /* in the first three quarters of the samples */
  uint64_t bin[HN_QZ_BINS];       /* zeros included */
} hn_qz_histogram;

void hn_qz_observe(hn_qz_histogram *h, const float *values, int64_t n);
/* Lower and upper edge of a bin. */
static inline double hn_qz_edge(const hn_qz_histogram *h, int i) {
  return h->reach * (2.0 * i / HN_QZ_BINS - 1);
}
/* Share of the values outside of [low, high], whole bins. */
double hn_qz_outside(const hn_qz_histogram *h, double low, double high);

/* ---- ranges */

typedef struct hn_qz_range { /* of one activation, or of several that share their codes */
  const char *name;          /* of the value that is observed; also in the calibration side's plan */
  hn_value *value;
  hn_qz_histogram *seen;
  int32_t axis; /* along which channels lie for `sums`; negative: from the end */
  int64_t channels;
  double *sums; /* [channels], of all values; NULL: not wanted */
  double low, high;
  float scale;
  int32_t zero_point;
  hn_value *scale_value, *zero_value; /* constants, once made */
} hn_qz_range;

/* Fills low and high by the method, then scale and zero point. */
void hn_qz_choose(hn_qz_range *range, hone_calibration method, double percentile, bool symmetric);

/* ---- what is quantised */

typedef enum hn_qz_kind {
  HN_QZ_PRODUCT, /* activations times constant weights */
  HN_QZ_BOTH,    /* of two activations: sums, products */
  HN_QZ_POOL,    /* of one */
  HN_QZ_MANY,    /* Concat */
  HN_QZ_SAME     /* its codes are codes of its input */
} hn_qz_kind;

typedef struct hn_qz_layer {
  hone_node *node;
  hn_qz_kind kind;
  bool chosen;
  const char *reason; /* static or in the arena; why not */
  hn_value *input;    /* the first activation */
  uint32_t channels;
  double scale_low, scale_high;
} hn_qz_layer;

typedef struct hn_quantizing {
  const hone_quantize_options *o;
  bool symmetric;
  hn_model *model; /* optimised copy, to be rewritten */
  hn_arena arena;
  HN_VEC(hn_qz_layer) layers; /* in order of execution */
  HN_VEC(hn_qz_range *) ranges;
  hn_map by_name;    /* of ranges */
  uint32_t n_values; /* ids that the side tables below cover */
  hn_qz_range **of;  /* by value id: gets Q and DQ with this range; NULL: none */
  bool *ends;        /* by value id: made by a quantised operator, so that all readers read the DQ */
  HN_VEC(const char *) warnings; /* in the arena */
  uint32_t samples, samples_wanted;
  bool stopped, ranges_read;
  HN_VEC(hone_quantize_output) outputs;
  uint32_t checks;
} hn_quantizing;

hone_status hn_qz_warn(hn_quantizing *q, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

hone_status hn_qz_select(hn_quantizing *q, hone_error *error);
/* Raises the model to opset 13, whose DequantizeLinear has an axis. */
hone_status hn_qz_raise_opset(hn_model *model, hone_error *error);
/* Has the node constant f32 weights? Which dimension are its output channels; -1: one scale for all. */
int32_t hn_qz_weight_axis(const hone_node *node);

/* ---- samples */

typedef struct hn_qz_samples hn_qz_samples;
/* side's plan says which inputs with which shapes. */
hone_status hn_qz_samples_open(const hn_quantizing *q, const hone_model *bound, const hn_plan *plan,
                               hn_qz_samples **out, hone_error *error);
uint32_t hn_qz_samples_count(const hn_qz_samples *samples);
/* The feeds of sample i, valid until the next call; the plan's inputs in order. */
hone_status hn_qz_samples_read(hn_qz_samples *samples, uint32_t i, const hn_feed **feeds, hone_error *error);
void hn_qz_samples_close(hn_qz_samples *samples);

/* ---- stages */

hone_status hn_qz_calibrate(hn_quantizing *q, hn_side *side, hn_qz_samples *samples, hone_error *error);
hone_status hn_qz_rewrite(hn_quantizing *q, hone_error *error);
hone_status hn_qz_check(hn_quantizing *q, hn_side *exact, hn_qz_samples *samples, hone_error *error);

#endif
