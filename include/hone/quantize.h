/* Writing a quantised model: calibration on samples, and plain ONNX with QuantizeLinear and DequantizeLinear.
 */
#ifndef HONE_QUANTIZE_H
#define HONE_QUANTIZE_H

#include <hone/dataset.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a range is chosen from what the samples held. */
typedef enum hone_calibration {
  HONE_CALIBRATION_MINMAX = 0, /* all that was seen: nothing is cut off */
  HONE_CALIBRATION_KL,         /* the range whose 8-bit distribution lies nearest to the values' (entropy) */
  HONE_CALIBRATION_PERCENTILE, /* `percentile` of the values */
  HONE_CALIBRATION_MSE,        /* the least squared error, cut off and rounded together */
  HONE_CALIBRATIONS
} hone_calibration;
HONE_API const char *hone_calibration_name(hone_calibration method); /* "minmax", "kl"...; "": unknown */

/* Who is to run the file: which operators are quantised, and where Q and DQ stand.
 *   hone, ort, openvino: u8 activations, before and behind each quantised operator; biases i32.
 *   tensorrt: i8 activations with zero point 0, only in front of quantised operators; biases f32. */
typedef enum hone_quantize_target {
  HONE_QUANTIZE_HONE = 0,
  HONE_QUANTIZE_ORT,
  HONE_QUANTIZE_TENSORRT,
  HONE_QUANTIZE_OPENVINO,
  HONE_QUANTIZE_TARGETS
} hone_quantize_target;
HONE_API const char *
hone_quantize_target_name(hone_quantize_target target); /* "hone", "ort"...; "": unknown */

/* What weights and activations become. */
typedef enum hone_quantize_type {
  HONE_QUANTIZE_INT8 = 0,
  HONE_QUANTIZE_FP16,
  HONE_QUANTIZE_BF16,
  HONE_QUANTIZE_TYPES
} hone_quantize_type;
HONE_API const char *
hone_quantize_type_name(hone_quantize_type type); /* "int8", "fp16", "bf16"; "": unknown */

typedef enum hone_quantize_zero {
  HONE_QUANTIZE_ZERO_OF_TARGET = 0,
  HONE_QUANTIZE_SYMMETRIC, /* i8, zero point 0 */
  HONE_QUANTIZE_ASYMMETRIC /* u8 */
} hone_quantize_zero;

/* What hone_quantize is doing, for progress. */
typedef enum hone_quantize_stage {
  HONE_QUANTIZE_EQUALIZES = 0,
  HONE_QUANTIZE_CALIBRATES,
  HONE_QUANTIZE_CHECKS
} hone_quantize_stage;

typedef struct hone_quantize_options {
  /* A folder of .npy, .npz, .jpg and .png files, a sample each (.npz: an entry an input); one .npz (or .npy)
   * whose arrays have a leading sample axis; "random"; NULL: `ranges` has been written before. */
  const char *calib;
  const hone_dataset *set; /* or, where that is NULL, the samples of labelled data */
  uint32_t first, every;   /* of the samples only the first-th and every `every`-th behind it; 0, 0: all */
  const char *ranges; /* JSON file in which what the samples held is kept; it is read in place of a run when
                         it is of this model and these samples, else written. NULL: none */
  /* fp16, bf16: the samples only check the result, and nothing below is used but skip, only and narrow_io.
   * Operators whose results may leave f16's range stay f32 (unless `only` names them). */
  hone_quantize_type to;
  bool narrow_io; /* fp16, bf16: inputs and outputs, too; else they stay f32, behind Casts */
  hone_calibration method;
  double percentile; /* 0: 99.99 */
  hone_quantize_target target;
  hone_quantize_zero zero;
  bool equalize;           /* cross-layer equalisation: channels of one tensor are brought to one range */
  bool bias_correction;    /* the mean error of rounded weights is taken off the biases */
  bool again;              /* run, whatever `ranges` holds */
  const char *const *skip; /* globs of node names or operator types that stay float */
  uint32_t n_skip;
  const char *const
      *only; /* and the only ones that are quantised; none: all that the target runs in 8 bits */
  uint32_t n_only;
  uint32_t samples;                  /* at most so many; 0: all, of "random" 16 */
  uint32_t checks;                   /* samples on which the result is held against the float model; 0: 8 */
  uint64_t seed;                     /* of random samples; 0: 1 */
  const hone_preprocess *preprocess; /* NULL: as hone_data_load */
  uint32_t threads;
  int64_t batch;
  const hone_binding *bindings;
  uint32_t n_bindings;
  /* false: stop. What the samples held so far is used then; a check that was not finished is left out. */
  bool (*progress)(void *arg, hone_quantize_stage stage, uint32_t done, uint32_t total);
  void *progress_arg;
} hone_quantize_options;

/* An operator that could be quantised, or that is float and says why. Strings are the report's. */
typedef struct hone_quantize_layer {
  const char *name, *op_type;
  bool quantized;
  const char *reason;    /* why it stayed float; "" */
  const uint32_t *nodes; /* [n_nodes] numbers of the file's nodes that it stands for, as in hone_step_info; of
                            the model that is returned, and as long as that lives */
  uint32_t n_nodes;
  const char *input;  /* the activation that it reads, whose figures follow; "": none */
  double least, most; /* seen */
  double low, high;   /* kept */
  double clipped;     /* share of the values outside of [low, high] */
  double scale;
  int32_t zero_point;
  uint32_t channels;            /* of the weights' scales; 0: no weights */
  double scale_low, scale_high; /* the weights' smallest and largest scale */
} hone_quantize_layer;

/* An output of the model: quantised against float, on the samples of the check. */
typedef struct hone_quantize_output {
  const char *name;
  double sqnr_db;    /* 10 log10 (sum of squares / sum of squared differences); infinite: equal */
  double mean_error; /* mean of (quantised - float) */
  double max_error;
  uint64_t rows, same_top1; /* rows of the last dimension, and those whose largest value stays the same */
} hone_quantize_output;

/* How well the samples stand for others. Each thing that is wrong with them is a warning of the report. */
typedef struct hone_quantize_coverage {
  bool known;        /* false: a file of ranges that does not say, or no calibration; only growth is filled */
  uint32_t problems; /* warnings that are about the samples */
  uint32_t ranges, grown; /* of activations; those that the last quarter of the samples made over 5 % wider */
  double growth;          /* of a range with each of these samples, in the mean; NaN: fewer than 4 samples */
  double most_growth;     /* of one range with all of them, as a share */
  const char *most_grown; /* its value; "": none */
  uint32_t repeated;      /* samples that equal an earlier one */
  uint32_t pictures;      /* samples that are pictures; of their pixels, 0 black and 1 white: */
  double darkest, brightest, brightness, spread; /* means of a picture: least, most, mean, deviation */
  double contrast, contrast_spread;              /* deviations in a picture: mean, deviation */
  uint32_t one_colour;                           /* pictures without contrast */
  uint32_t classes,
      missing;           /* that folders or labels name, and those of them without a sample; 0: none named */
  bool boxes;            /* a picture may be of several classes */
  uint32_t fewest, most; /* samples of a class that has some */
  const char *rarest, *commonest, *absent; /* names: of these, and of the first one without; "" */
} hone_quantize_coverage;

typedef struct hone_quantize_report {
  hone_quantize_type to;
  hone_calibration method;
  hone_quantize_target target;
  uint32_t n_layers, quantized;
  hone_quantize_layer *layer;
  uint32_t n_outputs;
  hone_quantize_output *output;
  uint32_t samples, samples_wanted; /* seen; less than wanted: stopped by the caller */
  uint32_t checks;
  uint32_t equalized; /* pairs of layers */
  bool ranges_read;   /* from the file: no run was needed */
  bool stopped;
  hone_quantize_coverage coverage;
  uint32_t n_warnings;
  const char **warning; /* of the samples' coverage, globs that nothing fits... */
  void *impl;
} hone_quantize_report;

/* Folds batch normalisation and the like on a copy of the model, runs it on the samples one by one, and
 * returns the quantised model (opset 13 or newer): hone_model_save writes it. Memory does not grow with the
 * samples. Release *out, free *report (in any case). HONE_ERROR_INPUT: samples that cannot be read or fit no
 * input; HONE_ERROR_CANCELLED: stopped before a sample was seen; HONE_ERROR_USAGE. */
HONE_API hone_status hone_quantize(hone_model *model, const hone_quantize_options *options, hone_model **out,
                                   hone_quantize_report *report, hone_error *error);
HONE_API void hone_quantize_report_free(hone_quantize_report *report);

#ifdef __cplusplus
}
#endif
#endif
