/* Quantised against float, layer by layer: what its files share. Inside of improve only.
 *
 *   match.c    which values of the two plans are the same, and which scales their codes have
 *   weights.c  the weights behind a value
 *   runs.c     the runs: values as they come, and each layer on the float model's values
 *   figures.c  what is summed, and what it says
 *   dump.c     tensors that are wanted by name
 *   layers.c   groups, samples and the report */
#ifndef HN_IMPROVE_LAYERS_H
#define HN_IMPROVE_LAYERS_H

#include "improve/feeds.h"
#include "improve/quantize/quantize.h"

#include <hone/layers.h>

typedef struct hn_layers_sums {
  double signal, noise, both,
      other; /* squares of the float value, of the difference; products for the cosine */
  double most;
} hn_layers_sums;

typedef struct hn_layers_scale {
  bool known;
  double scale;
  int32_t zero, low, high; /* codes at the ends */
} hn_layers_scale;

/* A float value and the value of the quantised plan that is held against it. */
typedef struct hn_layers_pair {
  const hn_value *exact, *quantized;
  const char *name;      /* of exact, in its model's file */
  const hn_step *step;   /* that makes it in the float plan; NULL: an input */
  hn_layers_scale scale; /* of quantized, when it holds codes */
  uint32_t depth, group;
  uint64_t bytes;
  bool by_place, unlike; /* unlike: shapes differ in the run */
  /* of the sample at hand */
  bool wanted;        /* in the group, or read by a layer of it */
  bool judged;        /* what the layer adds was seen in this run */
  hone_tensor *truth; /* the float model's value */
  hone_tensor *fresh; /* what the float layer makes of inputs that have passed the codes */
  /* of all samples */
  hn_layers_sums whole, own;
  int64_t channels; /* of `channel`: of own, in each */
  hn_layers_sums *channel;
  double clipped_noise; /* squares of what lies outside of the codes */
  uint64_t count, ends, outside;
  bool used[256];
  double sum, squares;
  hn_quantize_histogram seen;
} hn_layers_pair;

/* A value of the quantised plan that is to be given the float model's value. */
typedef struct hn_layers_stand_in {
  hn_layers_pair *pair; /* NULL: the float plan does not hold it */
  hn_layers_scale scale;
  bool named; /* the float model's file has it */
} hn_layers_stand_in;

typedef struct hn_ly {
  const hone_layers_options *o;
  hn_model *exact_file, *file; /* the float model and the quantised one as they came */
  hn_side exact, quantized;
  HN_VEC(hn_layers_pair *) pairs; /* in order of execution of the quantised plan */
  hn_layers_pair **of_exact;      /* by value id of the float plan */
  hn_layers_stand_in *stand_in;   /* by value id of the quantised plan */
  hn_layers_pair **dumped;        /* by name of o->dump */
  uint32_t unmatched, groups, group, samples, sample;
  bool by_place, failed;
  hone_status dump_status;
  hone_error dump_error;
  hn_arena arena;
} hn_ly;

/* ---- match.c */
hone_status hn_layers_match(hn_ly *q, bool by_place, hone_error *error);
void hn_layers_forget(hn_ly *q);

/* ---- weights.c */
typedef struct hn_layers_weights {
  uint32_t channels;
  bool one_scale;
  double imbalance;
} hn_layers_weights;
/* The product whose bias, normalisation and activation end in a value of the float model, or NULL. */
const hone_node *hn_layers_layer_of(const hn_value *value);
/* Of the product in the file that `quantized` comes from. */
void hn_layers_weights_of(const hn_ly *q, const hn_layers_pair *pair, hn_layers_weights *out);

/* ---- runs.c: one sample through one group */
hone_status hn_layers_run(hn_ly *q, const hn_feed *feeds, hone_error *error);

/* ---- dump.c */
/* The pairs of the names that are wanted; after matching. */
hone_status hn_layers_choose_dumps(hn_ly *q, hone_error *error);
/* Of the first sample. got: the quantised model's value, row-major. */
hone_status hn_layers_dump(const hn_ly *q, const hn_layers_pair *pair, const hone_tensor *got,
                           hone_error *error);

/* ---- figures.c */
double hn_layers_decoded(const hn_layers_scale *scale, double code);
double hn_layers_code(const hn_layers_scale *scale, double value);
bool hn_layers_observe(hn_layers_pair *pair, const hone_tensor *got);
bool hn_layers_observe_own(hn_layers_pair *pair, const hone_tensor *got);
hone_status hn_layers_report(hn_ly *q, hone_layers_report *out, hone_error *error);

#endif
