/* Operator types of other tools in ONNX's words, so that rules and comparisons need not know the tools. */
#ifndef HN_INSIGHT_IMPORT_OPTYPE_H
#define HN_INSIGHT_IMPORT_OPTYPE_H

#include <stdbool.h>

/* Of a framework's operator ("aten::addmm_", "Convolution", "inner_product", "MIOpenConvolution"): "Gemm",
 * "Conv"...; NULL when it means nothing here. Static text. */
const char *hn_optype_of_operator(const char *name);

/* Guessed from the name of a device kernel ("ampere_sgemm_128x64_nn"): "MatMul"...; NULL. */
const char *hn_optype_of_kernel(const char *name);

/* What numbers a device kernel multiplies, by its name ("ampere_sgemm...": "f32"); NULL: the name does not
 * say. Where sums are wider than what is multiplied, the latter. */
const char *hn_optype_dtype_of_kernel(const char *name);

/* Is an operator of this type an exchange between devices? */
bool hn_optype_is_communication(const char *type);
/* Does a kernel of this name only change layout or type? */
bool hn_optype_is_reformat(const char *type);

#endif
