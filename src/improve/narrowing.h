/* What a narrow type does to a model, without any kernel of it: the reference runs with weights and
 * everything that its steps make rounded to the type. Where that changes the answers as much as a run in the
 * type did, the type is too narrow for the model; where it does not, something else is wrong. Inside of
 * improve only. */
#ifndef HN_IMPROVE_NARROWING_H
#define HN_IMPROVE_NARROWING_H

#include "improve/side.h"

typedef struct hn_narrowing {
  double apart;   /* of an output, the most, relative to its range */
  double most;    /* what the node reaches, which the type cannot hold; then nothing is known of apart */
  char node[128]; /* or a constant of this name reaches; "": the type holds every value */
  bool unlike;    /* an output has another shape, or is no number on one side alone */
  bool fails;     /* the rounded reference does not run: an index or a shape follows from what was rounded */
} hn_narrowing;

/* type: f16 or bf16; overflows: only its bits count, not how large its numbers are, where this is false.
 * again: how the reference was opened for the model; NULL: weights stay as they are. */
hone_status hn_side_narrowing(hn_side *reference, hone_model *model, const hn_side_options *again,
                              const hn_feed *feeds, uint32_t n, hone_dtype type, bool overflows,
                              hn_narrowing *out, hone_error *error);

#endif
