/* GatedRMSNorm: each run of C values (C: the length of scale) over its root mean square, times scale and
 * times SiLU or Sigmoid of the gate. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/normalize/moments.h"

enum { X, SCALE, GATE };

static hone_status plain_sigmoid(const hone_node *node, bool *plain, hone_error *error) {
  const char *name = hone_node_string(node, "activation", "silu");
  *plain = strcmp(name, "sigmoid") == 0;
  if (*plain || strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0) return HONE_OK;
  return hn_op_bad(node, error, "activation is '%s'", name);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *scale = io->input[SCALE];
  bool plain;
  hone_status s = plain_sigmoid(io->node, &plain, error);
  if (!s) s = hn_infer_same_dtype(io, X, SCALE, error);
  if (!s) s = hn_infer_same_dtype(io, X, GATE, error);
  if (!s) s = hn_infer_vector(io, SCALE, HONE_DIM_UNKNOWN, error);
  if (!s && x->rank == 0) s = hn_op_bad(io->node, error, "the input has rank 0");
  if (!s && x->rank > 0) s = hn_infer_dims(io, GATE, "the gate", x->rank, x->dim, error);
  if (s) return s;
  const int64_t c = hn_dim(scale, 0), last = x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN;
  if (c == 0 || (c > 0 && last >= 0 && last % c))
    return hn_op_bad(io->node, error, "rows of %lld do not divide into runs of %lld", (long long)last,
                     (long long)c);
  return hn_infer_same(io, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 10 * hn_known_count(io->input[X]));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-5f);
  bool plain;
  const hone_status s = plain_sigmoid(call->node, &plain, error);
  if (s) return s;
  const int64_t c = hn_count(call->input[SCALE]);
  const double *scale = hn_all_f64(call, call->input[SCALE], error);
  double *row = scale ? hn_scratch(call, c, sizeof *row, error) : NULL,
         *gate = row ? hn_scratch(call, c, sizeof *gate, error) : NULL;
  if (!gate) return HONE_ERROR_MEMORY;
  for (int64_t at = 0; at < hn_count(x); at += c) {
    hn_load_f64(row, x, at, c);
    hn_load_f64(gate, call->input[GATE], at, c);
    const double inverse = 1 / sqrt(hn_mean_square(row, c, HONE_DTYPE_F32) + epsilon);
    for (int64_t i = 0; i < c; i++) {
      const double open = 1 / (1 + exp(-gate[i]));
      row[i] *= inverse * scale[i] * (plain ? open : gate[i] * open);
    }
    hn_store_f64(call->output[0], at, row, c);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "epsilon", .type = HONE_ATTR_FLOAT}, {.name = "activation", .type = HONE_ATTR_STRING}, {0}};

HN_OP(gated_rms_norm) = {HONE_DESC_HEAD(hone_op_desc),
                         .domain = "com.microsoft",
                         .op_type = "GatedRMSNorm",
                         .since = 1,
                         HN_INPUTS(3, 3),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_FLOAT,
                         .attrs = attrs,
                         .infer = infer,
                         .cost = cost,
                         .reference = reference};
