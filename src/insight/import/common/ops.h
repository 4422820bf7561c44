/* Operator types from what other tools call their layers: by ONNX's names, which the rules know. */
#ifndef HN_INSIGHT_IMPORT_OPS_H
#define HN_INSIGHT_IMPORT_OPS_H

#include <stddef.h>

/* The operator that a node's name speaks of ("/layer1/conv/Conv", "Conv_12", "node_of_Relu_3" -> "Conv",
 * "Relu"); NULL: none. `length` bytes of name. */
const char *hn_op_of_name(const char *name, size_t length);

/* ONNX's name for a word of TensorRT, msprof or another tool ("CaskConvolution", "MatMulV2" -> "Conv",
 * "MatMul"); NULL: not known. */
const char *hn_op_of_word(const char *word);

/* How likely an operator decides the cost of a fused layer: products before reductions before elementwise. */
int hn_op_weight(const char *op);

#endif
