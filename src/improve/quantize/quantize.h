/* Post-training quantisation: what its files share. Inside of improve only.
 *
 *   opset.c      models of older opsets as models of opset 13
 *   equalise.c   channels of one tensor brought to one range, by moving scale from weights to weights
 *   select.c     which nodes and values get 8 bits, by target
 *   samples.c    the calibration set, one sample at a time
 *   histogram.c  what a value held, in fixed memory
 *   calibrate.c  the float model on all samples
 *   coverage.c   how well the samples stand for others
 *   range.c      methods: from a histogram to a range, from a range to scale and zero point
 *   cache.c      what the samples held, in a file
 *   weights.c    weights and biases as integers
 *   bias.c       the mean error of rounded weights, taken off the bias
 *   halves.c     f16 and bf16 instead of 8 bits
 *   rewrite.c    QuantizeLinear and DequantizeLinear into the graph
 *   check.c      the result against the float model */
#ifndef HN_IMPROVE_QUANTIZE_H
#define HN_IMPROVE_QUANTIZE_H

#include "base/map.h"
#include "improve/side.h"
#include "model/ir/graph.h"

#include <hone/quantize.h>

#include <string.h>

/* ---- histograms */

enum { HN_QUANTIZE_BINS = 4096 };

/* Bins of equal width over [-reach, reach), reach a power of two that doubles when a value lies outside. */
typedef struct hn_quantize_histogram {
  double reach;               /* 0: nothing but zeros so far */
  uint64_t count, zeros, odd; /* zeros: exact; odd: not finite, in no bin */
  double least, most;
  double early_least, early_most; /* in the first three quarters of the samples */
  uint64_t bin[HN_QUANTIZE_BINS]; /* zeros included */
} hn_quantize_histogram;

void hn_quantize_observe(hn_quantize_histogram *h, const float *values, int64_t n);
/* Lower and upper edge of a bin. */
static inline double hn_quantize_edge(const hn_quantize_histogram *h, int i) {
  return h->reach * (2.0 * i / HN_QUANTIZE_BINS - 1);
}
/* Share of the values outside of [low, high], whole bins. */
double hn_quantize_outside(const hn_quantize_histogram *h, double low, double high);

/* ---- ranges */

typedef struct hn_quantize_range { /* of one activation, or of several that share their codes */
  const char *name;                /* of the value that is observed; also in the calibration side's plan */
  hn_value *value;
  hn_quantize_histogram *seen;
  double low, high;
  float scale;
  int32_t zero_point;
  hn_value *scale_value, *zero_value; /* constants, once made */
} hn_quantize_range;

/* Fills low and high by the method, then scale and zero point. */
void hn_quantize_choose(hn_quantize_range *range, hone_calibration method, double percentile, bool symmetric);

/* ---- means of what products read, for their biases */

typedef struct hn_quantize_means {
  const char *name; /* of the value that is observed: the product's input, or what that is a view of */
  bool last;        /* channels lie along the last axis of the product's input, else along dimension 1 */
  int64_t channels;
  double *sums;                   /* [channels] */
  uint64_t count;                 /* values of a channel */
  struct hn_quantize_means *next; /* of the same value */
} hn_quantize_means;

void hn_quantize_means_add(hn_quantize_means *means, const hone_tensor *rows);

/* ---- what is quantised */

typedef enum hn_quantize_kind {
  HN_QUANTIZE_PRODUCT, /* activations times constant weights */
  HN_QUANTIZE_BOTH,    /* of two activations: sums, products */
  HN_QUANTIZE_POOL,    /* of one */
  HN_QUANTIZE_MANY,    /* Concat */
  HN_QUANTIZE_SAME     /* its codes are codes of its input */
} hn_quantize_kind;

typedef struct hn_quantize_layer {
  hone_node *node;
  hn_quantize_kind kind;
  bool chosen;
  const char *reason;       /* static or in the arena; why not */
  hn_value *input;          /* the first activation; of what is chosen, the first that is quantised */
  hn_quantize_means *means; /* of its input; NULL: no bias correction */
  uint32_t channels;
  double scale_low, scale_high;
} hn_quantize_layer;

/* What the samples were like, while they are read. */
typedef struct hn_quantize_cover {
  hone_quantize_coverage told; /* once all are; strings in the arena */
  double light, light_squares, contrast, contrast_squares;
  HN_VEC(uint64_t) sums; /* a checksum of each sample */
  uint32_t *of_class;    /* [told.classes] */
  uint32_t *last;        /* [told.classes] the last sample that had the class, + 1 */
} hn_quantize_cover;

typedef struct hn_quantizing {
  const hone_quantize_options *o;
  bool symmetric;
  hn_model *model; /* optimised copy, to be rewritten */
  hn_arena arena;
  HN_VEC(hn_quantize_layer) layers; /* in order of execution */
  HN_VEC(hn_quantize_range *) ranges;
  hn_map by_name; /* of ranges */
  HN_VEC(hn_quantize_means *) means;
  hn_map means_by_name;
  uint32_t n_values;      /* ids that the side tables below cover */
  hn_quantize_range **of; /* by value id: gets Q and DQ with this range; NULL: none */
  bool *ends;             /* by value id: made by a quantised operator, so that all readers read the DQ */
  HN_VEC(const char *) warnings; /* in the arena */
  hn_quantize_cover cover;
  const char *calib; /* of the samples, also where ranges are read */
  uint32_t samples, samples_wanted, equalised;
  bool stopped, ranges_read;
  HN_VEC(hone_quantize_output) outputs;
  uint32_t checks;
} hn_quantizing;

hone_status hn_quantize_warn(hn_quantizing *q, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* HONE_ERROR_INPUT for a model that computes with codes of 8 bits. */
hone_status hn_quantize_refuse_quantised(const hn_model *model, hone_error *error);
hone_status hn_quantize_select(hn_quantizing *q, hone_error *error);
/* Raises the model to opset 13, whose DequantizeLinear has an axis. */
hone_status hn_quantize_raise_opset(hn_model *model, hone_error *error);
static inline bool hn_quantize_is_constant(const hn_value *v) { return v && v->constant && !v->producer; }
/* "stem_tail" as the name of a new value, with a number where that is taken. */
const char *hn_quantize_name(const hn_graph *graph, const char *stem, const char *tail, char *buf,
                             size_t size);
hn_value *hn_quantize_constant(hn_graph *graph, const char *stem, const char *tail, hone_dtype dtype,
                               int32_t rank, const int64_t *dims, const void *data);
/* QuantizeLinear or DequantizeLinear before a node; what it makes. NULL: no memory. */
hn_value *hn_quantize_node(hn_graph *graph, hone_node *before, const char *op, hn_value *x, hn_value *scale,
                           hn_value *zero, const char *stem, hone_dtype dtype, const hone_node *from);

/* ---- weights */

/* Large constants lie where the file has them, at any alignment. */
static inline float hn_quantize_f32(const void *data, int64_t i) {
  float x;
  memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);
  return x;
}

/* Constant f32 weights of a product; which output and input channel an element belongs to. */
typedef struct hn_quantize_weights {
  const void *v; /* hn_quantize_f32 */
  int64_t n, outputs, inputs;
  int64_t dim[3];           /* row-major, what lies behind dimension 1 in one */
  int32_t out_dim;          /* 0 or 1 */
  int64_t filters_of_group; /* Conv: input channels of a filter are those of its group; 0: no groups */
} hn_quantize_weights;

/* False where the node's weights are none of a matrix or filters. */
bool hn_quantize_weights_of(const hone_node *node, hn_quantize_weights *out);
/* The Add of a constant, one number a column, that alone reads the MatMul `node`: its bias. NULL: none. */
hone_node *hn_quantize_bias_add(const hone_node *node);
static inline int64_t hn_quantize_output_of(const hn_quantize_weights *w, int64_t at) {
  return w->out_dim == 0 ? at / (w->dim[1] * w->dim[2]) : at / w->dim[2] % w->dim[1];
}
static inline int64_t hn_quantize_input_of(const hn_quantize_weights *w, int64_t at) {
  const int64_t i = w->out_dim == 0 ? at / w->dim[2] % w->dim[1] : at / (w->dim[1] * w->dim[2]);
  return w->filters_of_group ? at / (w->dim[1] * w->dim[2]) / w->filters_of_group * w->dim[1] + i : i;
}

/* Weights and bias of a chosen product as integers behind DequantizeLinear. */
hone_status hn_quantize_narrow_weights(hn_quantizing *q, hn_quantize_layer *layer, hone_error *error);
/* Warns of globs that fitted nothing. */
hone_status hn_quantize_unused_globs(hn_quantizing *q, const char *option, const char *const *globs,
                                     uint32_t n, const bool *hit, hone_error *error);
/* Weights and activations of 16 bits; fills the layers. */
hone_status hn_quantize_halve(hn_quantizing *q, hone_error *error);
/* Asks for the means of a product's input. */
hone_status hn_quantize_want_means(hn_quantizing *q, hn_quantize_layer *layer, hone_error *error);
/* The bias less what rounding the weights adds to each output channel on average; bias NULL: none so far. In
 * the arena; NULL: no memory. */
const float *hn_quantize_corrected_bias(hn_quantizing *q, const hn_quantize_layer *layer,
                                        const hn_quantize_weights *w, const float *rounded,
                                        const float *bias);
/* Scales channels between products and the ones behind them. *pairs: how many were. */
hone_status hn_quantize_equalise(hn_quantizing *q, uint32_t *pairs, hone_error *error);

/* ---- the file of ranges */

/* What of the model ranges depend on. */
uint64_t hn_quantize_model_mark(const hn_model *model);
/* False: the file is not of this model and samples (mark 0: of any), or does not have all that is wanted. */
hone_status hn_quantize_ranges_read(hn_quantizing *q, const char *path, uint64_t model, uint64_t samples,
                                    bool *fits, hone_error *error);
hone_status hn_quantize_ranges_write(const hn_quantizing *q, const char *path, uint64_t model,
                                     uint64_t samples, hone_error *error);

/* ---- samples */

typedef struct hn_quantize_samples hn_quantize_samples;
/* side's plan says which inputs with which shapes. */
hone_status hn_quantize_samples_open(const hone_quantize_options *o, const hone_model *bound,
                                     const hn_plan *plan, hn_quantize_samples **out, hone_error *error);
/* A number that changes with the set: names, sizes and times of its files, or the seed. Never 0. */
uint64_t hn_quantize_samples_mark(const hn_quantize_samples *samples);
/* That can be asked for. */
uint32_t hn_quantize_samples_count(const hn_quantize_samples *samples);
/* The feeds of sample i, valid until the next call; the plan's inputs in order. */
hone_status hn_quantize_samples_read(hn_quantize_samples *samples, uint32_t i, const hn_feed **feeds,
                                     hone_error *error);
/* The labelled data that says which classes samples are of; NULL: nothing does. */
const hone_dataset *hn_quantize_samples_classes(const hn_quantize_samples *samples);
/* What that says of sample i; false: nothing. */
bool hn_quantize_samples_labelled(const hn_quantize_samples *samples, uint32_t i, hone_sample *out);
/* Brightness and contrast of the sample that was read last, 0 to 1; false: it was no picture. */
bool hn_quantize_samples_light(const hn_quantize_samples *samples, double *mean, double *deviation);
void hn_quantize_samples_close(hn_quantize_samples *samples);

/* ---- coverage */

hone_status hn_quantize_cover_begin(hn_quantizing *q, const hn_quantize_samples *samples, hone_error *error);
/* Of sample i, which has just been read. */
hone_status hn_quantize_cover_add(hn_quantizing *q, const hn_quantize_samples *samples, uint32_t i,
                                  const hn_feed *feeds, uint32_t n_feeds, hone_error *error);
hone_status hn_quantize_cover_end(hn_quantizing *q, const hn_quantize_samples *samples, hone_error *error);
/* Warns of what is wrong with the samples, once they or the file of ranges have been read. */
hone_status hn_quantize_cover_judge(hn_quantizing *q, hone_error *error);

/* ---- stages */

hone_status hn_quantize_calibrate(hn_quantizing *q, hn_side *side, hn_quantize_samples *samples,
                                  hone_error *error);
hone_status hn_quantize_rewrite(hn_quantizing *q, hone_error *error);
hone_status hn_quantize_check(hn_quantizing *q, hn_side *exact, hn_quantize_samples *samples,
                              hone_error *error);

#endif
