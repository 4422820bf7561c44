/* ONNX's elementwise functions as C: in f64, with vectors, on a GPU. */
#ifndef HONE_CLI_OP_FORMULAS_H
#define HONE_CLI_OP_FORMULAS_H

#include "cli/commands/op/text.h"

typedef struct op_formula op_formula;

typedef enum op_form {
  OP_WIDE,   /* f64, operands by their names */
  OP_EACH,   /* f64, operands a, b and c: HONE_EACH of hone/nodes.h */
  OP_VECTOR, /* hone_vf */
  OP_GPU
} op_form;

/* NULL: the node is no function that is known. */
const op_formula *op_formula_of(const hone_subgraph_node *n);
bool op_formula_has_vectors(const op_formula *f);
/* Of a node that has one. */
void op_put_formula(const hone_subgraph *part, const hone_subgraph_node *n, op_form form, op_text *out);

#endif
