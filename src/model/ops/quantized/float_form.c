#include "model/ops/quantized/float_form.h"

#include "base/mem.h"
#include "model/ir/graph.h"
#include "model/ops/microsoft/common/inner.h"

/* ONNX Runtime's optimiser writes poolings so: the channels are the last dimension of the operand and the
 * result. */
static bool is_last(const hone_node *n) { return hone_node_int(n, "channels_last", 0) != 0; }

/* The float operator, as a node of its own with this node's attributes. */
static hone_node float_node(const hone_node *n) {
  const hone_float_form *f = n->op->float_form;
  hone_node out = *n;
  out.domain = "";
  out.op = f->op;
  out.op_type = f->op->op_type;
  out.opset = f->opset ? f->opset : (int32_t)hone_node_int(n, "opset", 0);
  return out;
}

static uint32_t operands_of(const hone_float_form *f, uint32_t n_inputs) {
  return f->operands ? f->operands : (n_inputs - f->first + 1) / 3;
}

/* ---- inference */

static hone_status check_one(const hone_infer *io, uint32_t i, const char *what, hone_error *error) {
  if (!hn_has_input(io, i)) return HONE_OK;
  const int64_t n = hone_desc_count(io->input[i]);
  return n < 0 || n == 1 ? HONE_OK : hn_op_refuse(io->node, error, "%s with %lld values", what, (long long)n);
}

static hone_status check_operand(const hone_infer *io, uint32_t at, hone_error *error) {
  if (!hn_has_input(io, at) || !hn_has_input(io, at + 1))
    return hn_op_bad(io->node, error, "input %u, an operand or its scale, is left out", at);
  hone_status s = hn_infer_dtype_in(io, at, HN_TYPES_CODES, error);
  if (!s) s = hn_infer_dtype_in(io, at + 1, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_same_dtype(io, at, at + 2, error);
  if (!s) s = check_one(io, at + 1, "a scale", error);
  return s ? s : check_one(io, at + 2, "a zero point", error);
}

static hone_status check(const hone_infer *io, hone_error *error) {
  const hone_float_form *f = io->node->op->float_form;
  if (is_last(io->node) && hn_has_input(io, f->first) && io->input[f->first]->rank >= 0 &&
      io->input[f->first]->rank < 3)
    return hn_op_bad(io->node, error, "the input has rank %d", (int)io->input[f->first]->rank);
  if (!hn_has_input(io, f->y)) return hn_op_bad(io->node, error, "the scale of the output is left out");
  hone_status s = hn_infer_dtype_in(io, f->y, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = check_one(io, f->y, "a scale", error);
  if (!s) s = check_one(io, f->y + 1u, "a zero point", error);
  if (!s && !f->operands && (io->n_inputs - f->first) % 3 == 1)
    s = hn_op_bad(io->node, error, "input %u is an operand without a scale", io->n_inputs - 1);
  for (uint32_t k = 0; k < operands_of(f, io->n_inputs) && !s; k++)
    s = check_operand(io, f->first + 3 * k, error);
  return s;
}

/* What the float operator sees of io; freed with hn_free(view->input). */
typedef struct view {
  hone_node node;
  hone_infer io;
  const hone_tensor_desc **input;
  hone_tensor_desc y, *output;
} view;

static hone_status open_view(const hone_infer *io, view *v, hone_error *error) {
  const hone_float_form *f = io->node->op->float_form;
  const uint32_t n = operands_of(f, io->n_inputs), all = f->plain + n;
  v->node = float_node(io->node);
  const size_t room = all * (sizeof(void *) + sizeof(hone_tensor_desc) + sizeof(void *));
  v->input = hn_calloc(1, room + 1);
  if (!v->input) return hn_fail_memory(error, room, "inputs");
  const hone_tensor **value = (const hone_tensor **)(void *)(v->input + all);
  hone_tensor_desc *desc = (hone_tensor_desc *)(void *)(value + all);
  for (uint32_t i = 0; i < f->plain; i++) {
    v->input[i] = io->input[i];
    value[i] = io->value ? io->value[i] : NULL;
  }
  for (uint32_t k = 0; k < n; k++) {
    desc[k] = *io->input[f->first + 3 * k];
    if (is_last(io->node)) desc[k] = hn_channels_first(&desc[k]);
    desc[k].dtype = HONE_DTYPE_F32;
    v->input[f->plain + k] = &desc[k];
  }
  v->y = (hone_tensor_desc){.rank = -1};
  v->output = &v->y;
  v->io = (hone_infer){.node = &v->node,
                       .n_inputs = all,
                       .n_outputs = 1,
                       .input = v->input,
                       .value = value,
                       .output = &v->output};
  return HONE_OK;
}

hone_status hn_float_form_infer(const hone_infer *io, hone_error *error) {
  const hone_float_form *f = io->node->op->float_form;
  view v = {0};
  hone_status s = check(io, error);
  if (!s) s = open_view(io, &v, error);
  if (!s) s = v.node.op->infer(&v.io, error);
  if (!s && is_last(io->node)) v.y = hn_channels_last(&v.y);
  if (!s)
    hn_infer_set(io, 0, hn_has_input(io, f->y + 1u) ? io->input[f->y + 1]->dtype : io->input[f->first]->dtype,
                 v.y.rank, v.y.dim);
  hn_free((void *)v.input);
  return s;
}

void hn_float_form_cost(const hone_infer *io, hone_cost *cost) {
  view v = {0};
  *cost = (hone_cost){.bytes = -1};
  if (check(io, NULL) || open_view(io, &v, NULL)) return;
  v.output = io->output[0];
  if (v.node.op->cost && v.output)
    v.node.op->cost(&v.io, cost);
  else if (v.output)
    hn_cost_flops(cost, hn_known_count(v.output));
  hn_free((void *)v.input);
}

/* ---- reference */

static hone_status dequantise(hone_call *call, uint32_t at, hone_tensor *out, hone_error *error) {
  const hone_tensor *q = call->input[at];
  const int64_t n = hn_count(q);
  const float scale = (float)hn_get_f64(call->input[at + 1], 0),
              zero = hn_call_has(call, at + 2) ? (float)hn_get_f64(call->input[at + 2], 0) : 0;
  float *v = hn_scratch(call, n, sizeof *v, error);
  if (!v) return HONE_ERROR_MEMORY;
  hn_load_f32(v, q, 0, n);
  for (int64_t i = 0; i < n; i++) v[i] = (v[i] - zero) * scale;
  *out = (hone_tensor){hone_desc(HONE_DTYPE_F32, q->desc.rank, q->desc.dim), v};
  return HONE_OK;
}

static hone_status quantise(hone_call *call, const float *v, hone_error *error) {
  enum { CHUNK = 256 };
  const uint32_t at = call->node->op->float_form->y;
  hone_tensor *y = call->output[0];
  const float scale = (float)hn_get_f64(call->input[at], 0);
  const double zero = hn_call_has(call, at + 1) ? hn_get_f64(call->input[at + 1], 0) : 0;
  double q[CHUNK], lo, hi;
  if (!hn_quant_range(y->desc.dtype, &lo, &hi)) return hn_op_refuse(call->node, error, "the output dtype");
  for (int64_t i = 0, n = hn_count(y); i < n; i += CHUNK) {
    const int64_t part = hn_min(CHUNK, n - i);
    for (int64_t j = 0; j < part; j++) q[j] = hn_saturate((double)rintf(v[i + j] / scale) + zero, lo, hi);
    hn_store_f64(y, i, q, part);
  }
  return HONE_OK;
}

hone_status hn_float_form_reference(hone_call *call, hone_error *error) {
  const hone_float_form *f = call->node->op->float_form;
  const uint32_t n = operands_of(f, call->n_inputs), all = f->plain + n;
  const hone_node node = float_node(call->node);
  hone_status s;
  const hone_tensor **input = hn_scratch(call, all, sizeof *input, error);
  hone_tensor *made = input ? hn_scratch(call, n + 1, sizeof *made, error) : NULL;
  if (!made) return HONE_ERROR_MEMORY;
  for (uint32_t i = 0; i < f->plain; i++) input[i] = call->input[i];
  for (uint32_t k = 0; k < n; k++) {
    if ((s = dequantise(call, f->first + 3 * k, &made[k], error))) return s;
    if (is_last(call->node)) {
      const hone_tensor last = made[k];
      int64_t perm[HONE_MAX_RANK];
      hn_channels_first_perm(last.desc.rank, perm);
      if (!hn_inner_transpose(call, &last, perm, &made[k], error)) return HONE_ERROR_MEMORY;
    }
    input[f->plain + k] = &made[k];
  }
  hone_tensor *y = &made[n];
  const hone_tensor_desc made_desc = call->output[0]->desc, first = hn_channels_first(&made_desc),
                         *d = is_last(call->node) ? &first : &made_desc;
  *y = (hone_tensor){hone_desc(HONE_DTYPE_F32, d->rank, d->dim),
                     hn_scratch(call, hone_desc_count(d), sizeof(float), error)};
  if (!y->data) return HONE_ERROR_MEMORY;
  hone_call inner = *call;
  inner.node = &node;
  inner.n_inputs = all;
  inner.n_outputs = 1;
  inner.input = input;
  inner.output = &y;
  s = node.op->reference(&inner, error);
  if (!s && is_last(call->node)) {
    const hone_tensor turned = *y;
    int64_t perm[HONE_MAX_RANK];
    hn_channels_last_perm(turned.desc.rank, perm);
    if (!hn_inner_transpose(call, &turned, perm, y, error)) return HONE_ERROR_MEMORY;
  }
  return s ? s : quantise(call, y->data, error);
}
