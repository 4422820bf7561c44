/* Where a quantised model leaves its float model, layer by layer, and why. */
#ifndef HONE_LAYERS_H
#define HONE_LAYERS_H

#include <hone/data.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wrong with a layer. */
typedef enum hone_layer_reason {
  HONE_LAYER_HEALTHY = 0,
  HONE_LAYER_SATURATED, /* values lie outside of the codes: the scale is too small, or the zero point wrong */
  HONE_LAYER_COARSE,    /* few codes are used: the scale is too large */
  HONE_LAYER_OUTLIERS,  /* few values take most of the range */
  HONE_LAYER_IMBALANCED,  /* one scale for weights, or for values, whose channels differ widely */
  HONE_LAYER_ARITHMETIC,  /* none of these: its weights' codes or scales, its bias, or its kernel */
  HONE_LAYER_ACCUMULATED, /* right by itself: what came before it is wrong */
  HONE_LAYER_REASONS
} hone_layer_reason;
HONE_API const char *hone_layer_reason_name(hone_layer_reason reason); /* "saturated"...; "": unknown */

/* Below these a layer is named: of what it adds itself, and of what has come together. */
#define HONE_LAYERS_OWN_DB 20.0
#define HONE_LAYERS_CHANNEL_DB 12.0 /* of the channel in the middle */
#define HONE_LAYERS_ACCUMULATED_DB 10.0

/* One value of the float model and what stands for it in the quantised one. Strings are the report's. */
typedef struct hone_layer_error {
  const char *name, *op_type; /* of the layer in the float model: its product, else the node that makes it */
  const char *value, *quantized;    /* the two values */
  uint32_t depth;                   /* its place in the order of execution */
  bool by_place;                    /* paired by its place, not by its name */
  uint64_t elements;                /* of all samples */
  double snr_db, cosine, max_error; /* as it came out; infinite: equal */
  double own_snr_db, own_max_error; /* against the float layer on the same values: what the layer adds */
  double channel_snr_db;            /* half of the channels have a lower own_snr_db than this */
  double least, most;               /* of the float values */
  double beyond_6_sigma;            /* share of them */
  double peak;                      /* largest |x| over the 99.9th percentile of |x| */
  bool codes;                       /* of 8 bits with a known scale: the figures from here on */
  double scale;
  int32_t zero_point;
  double saturated, at_ends; /* shares: float values outside of the codes; codes that are an end */
  uint32_t codes_used, codes_available;
  double range_used; /* share of the codes between those of `least` and `most` */
  uint32_t channels; /* of constant weights of 8 bits; 0: none found */
  bool one_scale;    /* for all channels */
  double imbalance;  /* largest over smallest range of a channel */
  bool bad;          /* adds too much by itself */
  hone_layer_reason reason;
  const char *why; /* in words; "" for a healthy one */
} hone_layer_error;

typedef struct hone_layers_report {
  uint32_t n_layers;
  hone_layer_error *layer;  /* in order of execution */
  int32_t first, worst;     /* indices; -1: none is bad */
  uint32_t unmatched;       /* values of 8 bits for which the float model has none */
  uint32_t samples, groups; /* groups of layers that were held in memory together */
  bool by_place;            /* names are mostly gone: paired by place */
  void *impl;
} hone_layers_report;

typedef struct hone_layers_options {
  const char *data; /* a folder of .npy, .npz, .jpg and .png files, one .npz or .npy of stacked samples; NULL:
                       random */
  uint32_t samples; /* 0: 4 */
  uint64_t seed;    /* of random ones; 0: 1 */
  uint64_t max_bytes; /* of values held together; 0: 256 MiB. What does not fit takes further runs */
  int level;          /* of both models, 1 to 3; 0: 2 */
  const hone_preprocess *preprocess; /* NULL: as hone_data_load */
  uint32_t threads;
  int64_t batch;
  const hone_binding *bindings;
  uint32_t n_bindings;
  bool (*progress)(void *arg, uint32_t done, uint32_t total); /* false: cancel; NULL */
  void *progress_arg;
  /* In place of the samples' values, by input of the float model (hone_model_inputs of them); without bytes:
   * random. All given: one sample. Not together with `data`. NULL: none. */
  const hone_data *given;
  /* Of the first sample, by the float model's layer, node or value: sides "float", "quantized" (decoded) and
   * "codes" (as held in 8 bits). HONE_ERROR_USAGE for a name without a value in both models. NULL: none. */
  const hone_dump *dump;
} hone_layers_options;

/* Runs both on the same samples. HONE_ERROR_INPUT: nothing in the second model stands for values of the
 * first. */
HONE_API hone_status hone_layers(hone_model *exact, hone_model *quantized, const hone_layers_options *options,
                                 hone_layers_report *out, hone_error *error);
HONE_API void hone_layers_report_free(hone_layers_report *report);

#ifdef __cplusplus
}
#endif
#endif
