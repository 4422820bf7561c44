/* Mixed precision under two budgets at once: what a model may lose, and that it may not become slower. */
#ifndef HONE_MIXED_H
#define HONE_MIXED_H

#include <hone/eval.h>
#include <hone/measure.h>
#include <hone/quantize.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the budget is about. A drop is 0 where nothing is lost and 1 where all is. */
typedef enum hone_mixed_metric {
  HONE_MIXED_TOP1 = 0, /* of labelled data: Top-1 of the input less that of the result, as shares */
  HONE_MIXED_TOP5,
  HONE_MIXED_MAP,    /* of boxes, at IoU 0.50 to 0.95 */
  HONE_MIXED_COSINE, /* of the outputs against the input's: 1 - cosine, the mean over the samples */
  HONE_MIXED_SQNR,   /* the same: power of the differences over that of the values; 0.001 is 30 dB */
  HONE_MIXED_METRICS
} hone_mixed_metric;
HONE_API const char *hone_mixed_metric_name(hone_mixed_metric metric); /* "top1"...; "": unknown */
/* Whether it needs labelled data. */
HONE_API bool hone_mixed_metric_labelled(hone_mixed_metric metric);

/* What a layer computes in, widest first. */
typedef enum hone_mixed_type {
  HONE_MIXED_F32 = 0, /* as the input */
  HONE_MIXED_F16,
  HONE_MIXED_BF16,
  HONE_MIXED_INT8,
  HONE_MIXED_TYPES
} hone_mixed_type;
HONE_API const char *hone_mixed_type_name(hone_mixed_type type); /* "f32"...; "": unknown */

/* Why a layer has its type. */
typedef enum hone_mixed_reason {
  HONE_MIXED_FASTER = 0, /* the fastest type: the budget allows it */
  HONE_MIXED_TOGETHER,   /* not faster alone, but the whole is: wide it would cost conversions */
  HONE_MIXED_FOLLOWS,    /* its time is not its own: as narrow as what is around it */
  HONE_MIXED_NO_TIME,    /* time was not asked: as narrow as the budget allows */
  HONE_MIXED_NOT_FASTER, /* no narrower type is faster here */
  HONE_MIXED_ERROR,      /* it went back: a narrower type cost too much on the samples that choose */
  HONE_MIXED_HELD_OUT,   /* the same on those held out */
  HONE_MIXED_NO_FORM,    /* it has no narrow form, or was left out */
  HONE_MIXED_REASONS
} hone_mixed_reason;
HONE_API const char *hone_mixed_reason_name(hone_mixed_reason reason); /* "faster"...; "": unknown */

typedef enum hone_mixed_verdict {
  HONE_MIXED_MET = 0,   /* there is a result */
  HONE_MIXED_NO_BUDGET, /* no narrow layer keeps the budget on the samples held out */
  HONE_MIXED_NO_GAIN,   /* no narrow layer is faster than its wide form */
  HONE_MIXED_SLOWER,    /* the whole was not faster than the input beyond doubt */
  HONE_MIXED_VERDICTS
} hone_mixed_verdict;
HONE_API const char *hone_mixed_verdict_name(hone_mixed_verdict verdict); /* "met"...; "": unknown */

typedef struct hone_mixed_options {
  /* How layers get 8 bits. calib NULL: half of `set`. `to`, first, every and progress are not read. A range
   * file: as there; samples that are calibrated on are never among those held out. */
  hone_quantize_options quantize;
  hone_mixed_metric metric;
  double max_drop; /* 0 to 1 */
  /* Labelled data, for the metrics that need it; the others take quantize.calib's samples. */
  const hone_dataset *set;
  hone_boxes_options boxes;
  bool untimed; /* the file is for another machine: layers have 8 bits or none, and time decides nothing */
  double max_seconds; /* 0: 600. Then layers whose error is not known are taken for the worst */
  const hone_watch *watch;
} hone_mixed_options;

/* A layer. Strings are the report's. Layers that share a step have a unit, a type and figures in common. */
typedef struct hone_mixed_layer {
  const char *name, *op_type;
  hone_mixed_type type;
  hone_mixed_reason reason;
  const char *why;                /* in words */
  int32_t unit;                   /* -1: NO_FORM */
  double ms[HONE_MIXED_TYPES];    /* of the unit in each type; NaN: not measured */
  double noise[HONE_MIXED_TYPES]; /* of the outputs, as the drop of SQNR, when the unit alone is so narrow;
                                     NaN */
} hone_mixed_layer;

/* Of the half of the samples that chooses, and of the half held out. */
typedef struct hone_mixed_score {
  uint64_t samples;
  double before, after; /* the metric of input and result: shares, a cosine, or dB */
  double drop;          /* as in the budget */
} hone_mixed_score;

typedef struct hone_mixed_report {
  hone_mixed_verdict verdict;
  hone_mixed_metric metric;
  double max_drop;
  uint32_t n_layers, narrow; /* narrow: that are not f32 in the result */
  hone_mixed_layer *layer;
  hone_mixed_score chosen, held_out;
  double all_narrow;  /* drop on the samples that choose, before anything went back */
  uint32_t models;    /* that were made and measured */
  uint32_t returned;  /* steps back to a wider type, and of these */
  uint32_t held_back; /* because of the samples held out */
  bool timed;         /* false: nothing below is known */
  double before_ms, after_ms;
  double change, low, high; /* after / before - 1 and its interval at 95 %; the result has high < 0 */
  uint32_t pairs;
  double seconds;
  hone_quantize_coverage coverage; /* of the samples that ranges came from, */
  uint32_t calibrated;             /* and their number */
  uint32_t n_warnings;
  const char **warning;
  void *impl;
} hone_mixed_report;

/* Gives each layer the fastest type that the budget allows, measured on one half of the samples and checked
 * on the other. *out: what was found, as hone_quantize makes it, with 16-bit layers behind Casts; NULL where
 * the verdict is not HONE_MIXED_MET, which is no error. Release *out, free *report (in any case).
 * HONE_ERROR_INPUT: fewer than 8 samples, or none that fit; HONE_ERROR_CANCELLED, HONE_ERROR_USAGE. */
HONE_API hone_status hone_mix(hone_model *model, const hone_mixed_options *options, hone_model **out,
                              hone_mixed_report *report, hone_error *error);
HONE_API void hone_mixed_report_free(hone_mixed_report *report);

#ifdef __cplusplus
}
#endif
#endif
