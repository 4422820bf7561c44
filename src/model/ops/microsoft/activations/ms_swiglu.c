/* SwiGLU of com.microsoft: G / (1 + exp(-alpha G)) times L + beta, where G is the gate up to a limit and L
 * the other operand within it. The gate's rows hold both, G first, where there is no other operand. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/inner.h"

enum { GATE, UP };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *g = io->input[GATE];
  hone_tensor_desc y = *g;
  hone_status s = HONE_OK;
  if (hn_has_input(io, UP)) {
    s = hn_infer_same_dtype(io, GATE, UP, error);
    if (!s && g->rank >= 0) s = hn_infer_dims(io, UP, "up", g->rank, g->dim, error);
  } else if (g->rank == 0 || (g->rank > 0 && g->dim[g->rank - 1] >= 0 && g->dim[g->rank - 1] % 2)) {
    s = hn_op_bad(io->node, error, "rows of the gate have no two halves, and up is left out");
  } else if (g->rank > 0 && g->dim[g->rank - 1] >= 0) {
    y.dim[g->rank - 1] /= 2;
  }
  if (!s) hn_infer_set(io, 0, g->dtype, y.rank, y.dim);
  return s;
}

static double swish(double g, double alpha) { return g / (1 + exp(-alpha * g)); }

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *gate = call->input[GATE], *up = hn_call_has(call, UP) ? call->input[UP] : NULL;
  hone_tensor *out = call->output[0];
  const double alpha = (double)hone_node_float(call->node, "activation_alpha", 1),
               beta = (double)hone_node_float(call->node, "activation_beta", 0),
               limit = (double)hone_node_float(call->node, "limit", 0);
  const bool rounds = hone_node_int(call->node, "round_activation", 0) != 0;
  const int64_t rank = out->desc.rank, n = hn_count(out),
                width = up || rank < 1 ? n : out->desc.dim[rank - 1];
  for (int64_t i = 0; i < n; i++) {
    const int64_t row = width ? i / width : 0, at = up ? i : row * 2 * width + i % width;
    if (i % HN_STOP_EVERY == 0) {
      const hone_status s = hn_call_check(call, error);
      if (s) return s;
    }
    double g = hn_get_f64(gate, at), l = up ? hn_get_f64(up, i) : hn_get_f64(gate, at + width);
    if (limit > 0 && g > limit) g = limit;
    if (limit > 0 && l > limit) l = limit;
    if (limit > 0 && l < -limit) l = -limit;
    g = swish(g, alpha);
    if (rounds) {
      hn_set_f64(out, i, g);
      g = hn_get_f64(out, i);
    }
    hn_set_f64(out, i, g * (beta != 0 ? l + beta : l));
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_cost_flops(c, 7 * hn_known_count(io->output[0])); }

static const hone_attr_desc attrs[] = {{.name = "activation_alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "activation_beta", .type = HONE_ATTR_FLOAT},
                                       {.name = "limit", .type = HONE_ATTR_FLOAT},
                                       {.name = "round_activation", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(ms_swiglu) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "SwiGLU",
                    .since = 1,
                    HN_INPUTS(1, 2),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_FLOAT,
                    .attrs = attrs,
                    .infer = infer,
                    .cost = cost,
                    .reference = reference};
