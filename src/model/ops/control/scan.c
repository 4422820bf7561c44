/* Scan: a body that walks along an axis of its scan inputs. The body takes (states, slices) and gives
 * (states, scan outputs). In opset 8 the first input gives lengths, everything has a batch in front, and axis
 * 1 is walked. */
#include "model/ops/control/bodies.h"

/* Entry i of a list of `want` axes; 0 where the list is absent. */
static hone_status axis_of(const hone_node *node, const char *name, uint32_t i, uint32_t want, int64_t *axis,
                           hone_error *error) {
  size_t n = 0;
  const int64_t *axes = hone_node_ints(node, name, &n);
  *axis = 0;
  if (n && n != want) return hn_op_bad(node, error, "%s has %zu values, expected %u", name, n, want);
  if (n) *axis = axes[i];
  return HONE_OK;
}

/* Opset 8: only dtypes and ranks, batch and length are said: the body knows nothing of them. */
static hone_status infer_batched(const hone_infer *io, hone_error *error) {
  int64_t scans = hone_node_int(io->node, "num_scan_inputs", 0);
  if (scans < 1 || scans >= io->n_inputs)
    return hn_op_bad(io->node, error, "num_scan_inputs is %lld of %u inputs", (long long)scans, io->n_inputs);
  uint32_t states = io->n_inputs - 1 - (uint32_t)scans;
  if (states > io->n_outputs || hn_body_outputs(io->node, "body") != io->n_outputs)
    return hn_op_bad(io->node, error, "the body has %lld outputs, the node %u and %u states",
                     (long long)hn_body_outputs(io->node, "body"), io->n_outputs, states);
  for (uint32_t i = 1; i < io->n_inputs; i++)
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is left out", i);
  for (uint32_t i = 0; i < io->n_outputs; i++) {
    const hone_tensor_desc *made = hn_body_output(io->node, "body", i);
    int64_t dims[HONE_MAX_RANK];
    int32_t more = i < states ? 1 : 2, rank = made->rank < 0 ? -1 : made->rank + more;
    if (rank > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "a result of rank %d", (int)rank);
    for (int32_t d = 0; d < rank; d++) dims[d] = d < more ? HONE_DIM_UNKNOWN : made->dim[d - more];
    hn_infer_set(io, i, made->dtype, rank, dims);
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (hone_node_opset(io->node) < 9) return infer_batched(io, error);
  int64_t scans = hone_node_int(io->node, "num_scan_inputs", 0), length = HONE_DIM_UNKNOWN, axis;
  hone_status s = HONE_OK;
  if (scans < 1 || scans > io->n_inputs)
    return hn_op_bad(io->node, error, "num_scan_inputs is %lld of %u inputs", (long long)scans, io->n_inputs);
  uint32_t states = io->n_inputs - (uint32_t)scans;
  if (states > io->n_outputs || hn_body_outputs(io->node, "body") != io->n_outputs)
    return hn_op_bad(io->node, error, "the body has %lld outputs, the node %u and %u states",
                     (long long)hn_body_outputs(io->node, "body"), io->n_outputs, states);
  for (uint32_t i = 0; i < io->n_inputs; i++)
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is left out", i);
  for (uint32_t i = 0; i < scans; i++) {
    const hone_tensor_desc *x = io->input[states + i];
    int32_t at;
    if ((s = axis_of(io->node, "scan_input_axes", i, (uint32_t)scans, &axis, error))) return s;
    if (x->rank < 0) continue;
    if ((s = hn_axis(axis, x->rank, &at, error))) return s;
    if (x->dim[at] < 0) continue;
    if (length >= 0 && length != x->dim[at])
      return hn_op_bad(io->node, error, "the scan inputs differ in length");
    length = x->dim[at];
  }
  for (uint32_t i = 0; i < io->n_outputs && !s; i++) {
    const hone_tensor_desc *made = hn_body_output(io->node, "body", i);
    if (i >= states) {
      s = axis_of(io->node, "scan_output_axes", i - states, io->n_outputs - states, &axis, error);
      if (!s) s = hn_infer_stacked(io, i, made, axis, length, error);
      continue;
    }
    hone_tensor_desc either;
    if ((s = hn_desc_either(io->node, io->input[i], made, &either, error))) return s;
    hn_infer_set(io, i, either.dtype, either.rank, either.dim);
  }
  return s;
}

static const hone_attr_desc attrs[] = {{"body", HONE_ATTR_GRAPH, true, 0, 0},
                                       {"num_scan_inputs", HONE_ATTR_INT, true, 0, 0},
                                       {"directions", HONE_ATTR_INTS, false, 8, 8},
                                       {"scan_input_axes", HONE_ATTR_INTS, false, 0, 0},
                                       {"scan_input_directions", HONE_ATTR_INTS, false, 0, 0},
                                       {"scan_output_axes", HONE_ATTR_INTS, false, 0, 0},
                                       {"scan_output_directions", HONE_ATTR_INTS, false, 0, 0},
                                       {0}};

HN_OP(scan) = {HN_OP_HEAD,
               .op_type = "Scan",
               .since = 8,
               .flags = HONE_OP_CONTROL | HONE_OP_ITEMS,
               HN_INPUTS(1, HONE_VARIADIC),
               HN_OUTPUTS(1, HONE_VARIADIC),
               .attrs = attrs,
               .infer = infer};
