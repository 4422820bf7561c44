#include "optimize/step/anchor.h"

#include "base/str.h"
#include "model/operators.h"
#include "optimize/step/qlinear.h"

#include <string.h>

/* Anchors that lowering makes, and operators that are no product of ONNX but take an epilogue. */
static const struct {
  const char *name;
  hn_anchor is;
} made[] = {
    {"Pointwise", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_ALL}},
    {"ConvChain", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED, .channels = true}},
    {"SqueezeExcite", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED, .channels = true}},
    {"ConvIntegerToFloat",
     {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED, .epilogue = true, .channels = true}},
    {"MatMulIntegerToFloat", {.epilogue = true}},
    {"ConvIntegerToCodes",
     {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED, .to_codes = true, .channels = true}},
    {"MatMulIntegerToCodes", {.to_codes = true}},
    {"com.microsoft.MatMulNBits", {.epilogue = true}},
    {"QLinearConvAdd",
     {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
      .channels = true,
      .like_output = 1u << HN_QLINEAR_ADDED}},
    {"QLinearConvTable", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED, .channels = true}},
    {"QLinearMatMulAdd", {.like_output = 1u << HN_QLINEAR_ADDED}},
    {"QLinearMatMulTable", {.layouts = 0}},
    {"CodeTable", {.layouts = HONE_LAST_ALLOWED}},
    {"QLinearAdd", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_ALL}},
    {"QLinearMul", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED | HONE_LAST_ALL}},
    {"QLinearAveragePool", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED}},
    {"QLinearMaxPool", {.layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED}},
};

static const hone_op_desc *operator_of(const char *anchor, const hone_node *n) {
  const size_t domain = strlen(n->domain);
  const char *type =
      domain && !strncmp(anchor, n->domain, domain) && anchor[domain] == '.' ? anchor + domain + 1 : anchor;
  if (n->op && hn_same_name(n->op_type, type)) return n->op;
  int64_t opset;
  return n->graph ? hn_op_newest(n->graph->model->operators, "", anchor, &opset) : NULL;
}

hn_anchor hn_anchor_named(const char *anchor, const hone_node *node) {
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (hn_same_name(made[i].name, anchor)) return made[i].is;
  const hone_op_desc *op = node ? operator_of(anchor, node) : NULL;
  if (!op) return (hn_anchor){0};
  return (hn_anchor){.product = op->product,
                     .layouts = op->layouts,
                     .epilogue = op->product != HONE_PRODUCT_NONE,
                     .channels =
                         op->product == HONE_PRODUCT_CONV || op->product == HONE_PRODUCT_CONV_TRANSPOSE};
}
