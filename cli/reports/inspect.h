/* What hone inspect says beyond counting: bounds by the machine's roofs, fusions, 8 bits, and the ceiling of
 * the throughput. */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

/* Peaks of the device, GFLOP/s and GB/s; 0: not known. */
typedef struct cli_roof_peaks {
  char name[128];
  char why[320]; /* "" or why nothing is known */
  bool low;      /* measured while others were busy */
  double f32, half, int8, gbs;
} cli_roof_peaks;

typedef enum cli_bound {
  CLI_BOUND_UNKNOWN = 0, /* no roofs */
  CLI_BOUND_NONE,        /* does and moves nothing */
  CLI_BOUND_COMPUTE,
  CLI_BOUND_MEMORY
} cli_bound;

typedef struct cli_analysis {
  cli_roof_peaks peaks;
  hone_fusions fusions;
  char no_fusions[320]; /* "" or why there is no plan */
  bool planned;
  double roof_ms, predicted_ms; /* of the level-2 plan's steps: at the roofs; by the tactics' cost models */
  hone_recording profile;       /* measured stages; empty without --profile */
} cli_analysis;

hone_status cli_analyse(const cli_args *args, hone_model *model, const hone_binding *bindings, uint32_t n,
                        cli_analysis *out, hone_error *error);
void cli_analysis_free(cli_analysis *a);

cli_bound cli_bound_of(const cli_roof_peaks *peaks, const hone_node_info *node);
const char *cli_bound_name(cli_bound bound); /* "compute", "memory", "-", "" */
/* Milliseconds that the roofs allow a node at least; 0: not known. */
double cli_roof_ms(const cli_roof_peaks *peaks, hone_dtype dtype, double flops, double bytes);

void cli_analysis_text(const cli_analysis *a, const hone_inspection *in, int64_t batch, uint32_t rows);
/* Adds "roofs", "fusions", "quantisation" and "throughput" to the document. */
void cli_analysis_json(const cli_analysis *a, const hone_inspection *in, int64_t batch, json_t *doc);

#endif
