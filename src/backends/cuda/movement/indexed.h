/* Moves by index: Gather and its relations, scatters, and what needs a place's coordinates. Tensors are
 * row-major. */
#ifndef HN_CUDA_MOVEMENT_INDEXED_H
#define HN_CUDA_MOVEMENT_INDEXED_H

#include "backends/cuda/device/indexed_args.h"
#include "backends/cuda/movement/moves.h"
#include "backends/cuda/step/step.h"

typedef struct hn_cuda_indexed {
  hn_indexed_args args;           /* count and p; addresses come with the run */
  int32_t in[3];                  /* which inputs of the step; -1: none */
  const char *body;               /* "hn_gather" */
  int64_t run;                    /* bytes of a contiguous run that units may cut; 0: units are elements */
  int32_t element;                /* bytes of an element of input 0 or of the output */
  hone_dtype index, type, result; /* NONE: not needed */
  const char *combine, *sum;      /* device text; NULL: not needed */
  bool copied;                    /* the output starts as a copy of input 0 */
} hn_cuda_indexed;

typedef bool (*hn_cuda_indexed_plan)(const hone_step *s, hn_cuda_indexed *plan, hone_reason *why);

typedef struct hn_cuda_indexed_config {
  hn_cuda_indexed_plan plan;
} hn_cuda_indexed_config;

HN_FAMILY_PLAIN(hn_cuda_indexed);

/* ScatterElements' and ScatterND's attribute `reduction` as an expression of a and b. */
bool hn_cuda_combine(const hone_step *s, const char **text, hone_reason *why);
bool hn_cuda_scatter_elements(const hone_step *s, hn_cuda_indexed *plan, hone_reason *why);

#define hn_cuda_indexed_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_indexed, __VA_ARGS__)

#endif
