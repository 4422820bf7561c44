/* An operator with attributes, shapes and values to try it on: what one node of a model gives it. */
#ifndef HONE_CLI_OP_SAMPLE_H
#define HONE_CLI_OP_SAMPLE_H

#include "cli/op/shapes.h"
#include "cli/op/values.h"

#include <hone/hone.h>

#define OP_TEXT 600

typedef struct op_sample {
  const hone_op_desc *op;
  hone_model *model;
  const hone_node *node;
  uint32_t n_in, n_out;
  hone_tensor in[OP_MOST];       /* row-major; dtype NONE: left out */
  bool constant[OP_MOST];        /* known when a step is planned */
  bool twins;                    /* inputs 0 and 1 are the same value */
  hone_tensor_desc out[OP_MOST]; /* row-major; dtype NONE: not wanted */
  hone_cost cost;
  double elements; /* of its inputs */
  double depth;    /* operations behind an element of an output, 1 or more */
  op_values values;
  char attrs[OP_TEXT], text[OP_TEXT]; /* "{scale=2.5}"; all of it, for people */
} op_sample;

typedef struct op_wish {
  const hone_op_desc *op;
  hone_dtype dtype; /* of input 0 */
  uint32_t scheme;
  const op_shape *given; /* [n_given], or NULL: by scheme */
  uint32_t n_given;
  uint32_t n_inputs; /* 0: drawn */
  bool exact;        /* the given shapes as they are, all inputs there, attributes at their defaults */
  double most;       /* work: elements and operations; 0: a case's */
  op_values values;
} op_wish;

/* Draws one. False: what was drawn is nothing that the operator takes; error says why. Free it in any case.
 */
bool op_sample_draw(op_random *r, const op_wish *wish, op_sample *out, hone_error *error);
/* Makes the given shapes of a wish smaller where they are too much work: dimensions that are equal stay so,
 * and the operator takes what they become. */
void op_sample_shrink(const op_wish *wish, op_shape *given);
/* Other values of the same kind, of the inputs that are not constant. */
void op_sample_refill(op_random *r, op_sample *sample);
/* The same inputs, to the operator with other attributes ("{scale=2.5}"). False: it does not take them. */
bool op_sample_become(op_sample *sample, const char *attrs, hone_error *error);
void op_sample_free(op_sample *sample);
/* What an input is to codes (hone_codes_port). */
typedef enum op_measure { OP_NO_MEASURE = 0, OP_SCALE, OP_ZERO } op_measure;
op_measure op_measure_of(const hone_op_desc *op, uint32_t input);
/* Is output 0 codes of an output scale? */
bool op_makes_codes(const op_sample *sample);
/* "Swish", or "domain.Swish": name of operator and anchor. */
void op_name(const hone_op_desc *op, char *buf, size_t size);

#endif
