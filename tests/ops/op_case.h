/* One operator on given inputs: builds a model of a single node, infers it and runs its reference. */
#ifndef HN_TESTS_OP_CASE_H
#define HN_TESTS_OP_CASE_H

#include "model/ir/eval.h"

enum { OP_CASE_MAX = 18 };

typedef struct op_case {
  hn_model *model;
  hone_node *node;
  const char *op_type;
  uint32_t n_in, n_out;
  hone_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  bool given[OP_CASE_MAX]; /* inputs that are not left out */
  hone_error error;
  hn_arena keep;
  double seconds; /* that a run may take at most; 0: a minute */
} op_case;

/* Begins a case; inputs and attributes follow, then op_run. Setup failures end the test program (assert). */
/* op_type: of ONNX's own domain, or "com.microsoft.QLinearAdd". */
void op_begin(op_case *c, const char *op_type, int64_t opset);
/* The same for an operator of any domain. */
void op_begin_in(op_case *c, const char *domain, const char *op_type, int64_t opset);
/* The next input: dims as "2x3", "" for a scalar. values NULL: a fixed pseudo-random pattern (`seed`); floats
 * lie in
 * [-1, 1), integers span their type. Returns the tensor. */
hone_tensor *op_in(op_case *c, hone_dtype dtype, const char *dims, const double *values, uint32_t seed);
void op_skip(op_case *c); /* the next input is left out */
/* Attributes from text: "pads=1,0,0,1 mode=s:linear epsilon=f:0.5 scales=F:1,2 strides=2,"; a trailing comma
 * makes a list of one. */
void op_attrs(op_case *c, const char *text);
/* Makes the node with n_out outputs, resolves, infers with everything known, and runs it. */
hone_status op_run(op_case *c, uint32_t n_out);
/* Only resolves and infers. input k's dimensions become unknown where bit k of hide_dims is set, its rank
 * where bit k of hide_rank is; values are known where bit k of `known` is set. out descriptors go to
 * c->out[].desc. */
hone_status op_infer(op_case *c, uint32_t n_out, uint32_t hide_dims, uint32_t hide_rank, uint32_t known);
void op_end(op_case *c);

void op_set(hone_tensor *t, int64_t i, double v);
double op_get(const hone_tensor *t, int64_t i);
/* Asserts that output i has dims (text) and values (NULL: dims alone) within an absolute tolerance. */
void op_expect(op_case *c, uint32_t i, hone_dtype dtype, const char *dims, const double *values,
               double tolerance);

#endif
