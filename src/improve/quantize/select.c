/* Which operators get 8 bits, and so which values get QuantizeLinear and DequantizeLinear. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/ir/bytes.h"

#include <fnmatch.h>
#include <math.h>

enum {
  H = 1 << HONE_QUANTIZE_HONE,
  R = 1 << HONE_QUANTIZE_ORT,
  T = 1 << HONE_QUANTIZE_TENSORRT,
  V = 1 << HONE_QUANTIZE_OPENVINO
};

/* What can be quantised, and for whom it is without being asked for: what the target runs in 8 bits. */
static const struct {
  const char *op_type;
  hn_quantize_kind kind;
  unsigned targets;
} known[] = {{"Conv", HN_QUANTIZE_PRODUCT, H | R | T | V},
             {"ConvTranspose", HN_QUANTIZE_PRODUCT, R | T | V},
             {"Gemm", HN_QUANTIZE_PRODUCT, H | R | T | V},
             {"MatMul", HN_QUANTIZE_PRODUCT, H | R | T | V},
             {"Add", HN_QUANTIZE_BOTH, H | R | T | V},
             {"Sum", HN_QUANTIZE_BOTH, H},
             {"Mul", HN_QUANTIZE_BOTH, R | V},
             {"GlobalAveragePool", HN_QUANTIZE_POOL, H | R | T | V},
             {"AveragePool", HN_QUANTIZE_POOL, R | T | V},
             {"Concat", HN_QUANTIZE_MANY, R | V},
             {"MaxPool", HN_QUANTIZE_SAME, H | R | V},
             {"Reshape", HN_QUANTIZE_SAME, H | R | V},
             {"Flatten", HN_QUANTIZE_SAME, H | R | V},
             {"Squeeze", HN_QUANTIZE_SAME, H | R | V},
             {"Unsqueeze", HN_QUANTIZE_SAME, H | R | V},
             {"Transpose", HN_QUANTIZE_SAME, H | R | V}};

static size_t kind_of(const hone_node *n) {
  size_t k = 0;
  while (k < sizeof known / sizeof *known && !hn_is_op(n, known[k].op_type)) k++;
  return k;
}

const char *hone_quantize_target_name(hone_quantize_target target) {
  static const char *const names[HONE_QUANTIZE_TARGETS] = {"hone", "ort", "tensorrt", "openvino"};
  return (unsigned)target < HONE_QUANTIZE_TARGETS ? names[target] : "";
}

static bool fits(const hone_node *n, const char *const *globs, uint32_t count, bool *hit) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++)
    if (fnmatch(globs[i], n->name, 0) == 0 || fnmatch(globs[i], n->op_type, 0) == 0) any = hit[i] = true;
  return any;
}

static bool activation(const hn_value *v) { return v && !v->constant && v->desc.dtype == HONE_DTYPE_F32; }

/* ---- ranges */

/* The value whose codes v has: behind operators that keep them. */
static hn_value *root_of(hn_value *v) {
  while (v->producer && v->producer->graph == v->graph) {
    const size_t k = kind_of(v->producer);
    if (k == sizeof known / sizeof *known || known[k].kind != HN_QUANTIZE_SAME || v->producer_index != 0 ||
        !activation(v->producer->in[0]))
      break;
    v = v->producer->in[0];
  }
  return v;
}

static hone_status mark(hn_quantizing *q, hn_value *v, hone_error *error) {
  hn_value *root = root_of(v);
  hn_quantize_range *r = hn_map_get(&q->by_name, root->name);
  if (!r) {
    r = HN_NEW(&q->arena, hn_quantize_range);
    if (!r || !(r->seen = HN_NEW(&q->arena, hn_quantize_histogram)) || !hn_vec_push(&q->ranges, r) ||
        !hn_map_set(&q->by_name, root->name, r))
      return hn_fail_memory(error, sizeof *r->seen, "what a value holds");
    r->name = root->name;
    r->value = root;
  }
  q->of[v->id] = r;
  return HONE_OK;
}

/* What a quantised operator makes: behind its bias and an activation function that its kernel applies. */
static hone_status mark_end(hn_quantizing *q, const hone_node *n, hone_error *error) {
  const hone_node *add = hn_quantize_bias_add(n);
  hn_value *v = (add ? add : n)->out[0];
  if (q->o->target == HONE_QUANTIZE_TENSORRT) return HONE_OK;
  if (hn_value_single_use(v)) {
    const hone_node *next = v->users.ptr[0].node;
    const bool bounded = hn_is_op(next, "Relu") || (hn_is_op(next, "Clip") && next->in[0] == v);
    if (bounded && next->graph == v->graph) v = next->out[0];
  }
  if (!activation(v)) return HONE_OK;
  q->ends[v->id] = true;
  return mark(q, v, error);
}

/* ---- operators */

static const char *unfit_product(const hone_node *n, hone_quantize_target target) {
  const hn_value *w = n->n_in > 1 ? n->in[1] : NULL;
  if (!hn_quantize_is_constant(w)) {
    if (hn_is_op(n, "MatMul") && target != HONE_QUANTIZE_HONE && activation(w)) return NULL;
    return "its weights are no constants";
  }
  if (w->desc.dtype != HONE_DTYPE_F32) return "its weights are not f32";
  if (hn_is_op(n, "Gemm") && (hone_node_float(n, "alpha", 1) != 1 || hone_node_float(n, "beta", 1) != 1 ||
                              hone_node_int(n, "transA", 0)))
    return "alpha, beta or transA of Gemm";
  return NULL;
}

static bool all_finite(const hn_model *m, const hn_value *v) {
  bool good = true;
  if (!hn_quantize_is_constant(v) || v->desc.dtype != HONE_DTYPE_F32) return true;
  const int64_t n = hone_desc_count(&v->constant->desc);
  for (int64_t i = 0; i < n && good; i++) good = isfinite(hn_quantize_f32(v->constant->data, i));
  hn_model_drop_pages(m, v->constant->data, (size_t)n * sizeof(float));
  return good;
}

static const char *unfit(const hone_node *n, hn_quantize_kind kind, hone_quantize_target target) {
  if (!n->n_out || !n->out[0]) return "it has no output";
  if (!activation(n->in[0]))
    return hn_quantize_is_constant(n->in[0]) ? "an operand is a constant" : "it does not read f32";
  if (!activation(n->out[0])) return "it does not make f32";
  if (kind == HN_QUANTIZE_PRODUCT) return unfit_product(n, target);
  if (kind == HN_QUANTIZE_BOTH) {
    if (n->n_in != 2) return "it has not two operands";
    if (!activation(n->in[1])) return "an operand is a constant";
  }
  for (uint32_t i = 0; kind == HN_QUANTIZE_MANY && i < n->n_in; i++)
    if (!activation(n->in[i])) return "an operand is a constant";
  return NULL;
}

/* Sums and moves follow what is around them: alone they win nothing. */
static bool joined(const hn_quantizing *q, const hone_node *n, hn_quantize_kind kind) {
  if (kind == HN_QUANTIZE_PRODUCT) return true;
  bool any = kind != HN_QUANTIZE_SAME || q->of[n->out[0]->id];
  for (size_t i = 0; i < n->out[0]->users.len && !any; i++) {
    const size_t k = kind_of(n->out[0]->users.ptr[i].node);
    any = k < sizeof known / sizeof *known && known[k].targets & 1u << q->o->target;
  }
  for (uint32_t i = 0; any && i < n->n_in && (i == 0 || kind == HN_QUANTIZE_BOTH || kind == HN_QUANTIZE_MANY);
       i++)
    if (n->in[i] && q->of[n->in[i]->id]) return true;
  return false;
}

static bool made_by_product(const hn_quantizing *q, const hn_value *v) {
  if (!v->producer || !hn_value_single_use(v)) return false;
  for (size_t i = 0; i < q->layers.len; i++)
    if (q->layers.ptr[i].node == v->producer)
      return q->layers.ptr[i].chosen && q->layers.ptr[i].kind == HN_QUANTIZE_PRODUCT;
  return false;
}

/* The bias of a MatMul that is quantised. */
static bool adds_bias(const hn_quantizing *q, const hone_node *n) {
  if (!hn_is_op(n, "Add")) return false;
  for (uint32_t i = 0; i < 2 && i < n->n_in; i++)
    if (n->in[i] && n->in[i]->producer && hn_quantize_bias_add(n->in[i]->producer) == n &&
        made_by_product(q, n->in[i]))
      return true;
  return false;
}

static hone_status mark_inputs(hn_quantizing *q, const hn_quantize_layer *l, hone_error *error) {
  const hone_node *n = l->node;
  hone_status status = HONE_OK;
  /* TensorRT adds the shortcut inside of the convolution before it: only the shortcut is quantised. */
  if (q->o->target == HONE_QUANTIZE_TENSORRT && l->kind == HN_QUANTIZE_BOTH) {
    const bool first = made_by_product(q, n->in[0]), second = made_by_product(q, n->in[1]);
    if (first || second) return mark(q, n->in[first ? 1 : 0], error);
  }
  const uint32_t count = l->kind == HN_QUANTIZE_BOTH || l->kind == HN_QUANTIZE_MANY             ? n->n_in
                         : l->kind == HN_QUANTIZE_PRODUCT && !hn_quantize_is_constant(n->in[1]) ? 2
                                                                                                : 1;
  for (uint32_t i = 0; i < count && status == HONE_OK; i++) status = mark(q, n->in[i], error);
  return status;
}

static hone_status choose(hn_quantizing *q, hn_quantize_layer *l, hone_error *error) {
  if (!l->chosen || !joined(q, l->node, l->kind)) {
    if (l->chosen) l->reason = "nothing around it is quantised";
    l->chosen = false;
    return HONE_OK;
  }
  hone_status status = mark_inputs(q, l, error);
  for (uint32_t i = 0; i < l->node->n_in && !(l->input && q->of[l->input->id]); i++)
    if (l->node->in[i] && q->of[l->node->in[i]->id]) l->input = l->node->in[i];
  if (status == HONE_OK && q->o->bias_correction && l->kind == HN_QUANTIZE_PRODUCT)
    status = hn_quantize_want_means(q, l, error);
  return status == HONE_OK ? mark_end(q, l->node, error) : status;
}

/* Every operator that computes, with the reason why it stays float, if so. */
static hone_status consider(hn_quantizing *q, hone_node *n, bool *skipped, bool *wanted, hone_error *error) {
  const hone_quantize_options *o = q->o;
  const size_t k = kind_of(n);
  const bool is_known = k < sizeof known / sizeof *known;
  hn_quantize_layer l = {.node = n, .input = n->n_in && n->in[0] ? n->in[0] : NULL};
  const bool skip = fits(n, o->skip, o->n_skip, skipped), only = fits(n, o->only, o->n_only, wanted);
  if (!is_known && (!n->n_out || !n->out[0] || n->out[0]->desc.dtype != HONE_DTYPE_F32)) return HONE_OK;
  l.kind = is_known ? known[k].kind : HN_QUANTIZE_MANY;
  l.reason = !is_known                                          ? "it has no 8-bit form"
             : skip                                             ? "left out by --skip"
             : o->n_only && l.kind != HN_QUANTIZE_SAME && !only ? "not among --only"
             : !only && !(known[k].targets & 1u << o->target)   ? "the target runs it in float"
                                                                : unfit(n, l.kind, o->target);
  for (uint32_t i = 1; i < n->n_in && !l.reason && l.kind == HN_QUANTIZE_PRODUCT; i++)
    if (n->in[i] && !all_finite(q->model, n->in[i])) l.reason = "its weights are not all finite";
  l.chosen = !l.reason;
  return hn_vec_push(&q->layers, l) ? HONE_OK : hn_fail_memory(error, sizeof l, "layers");
}

hone_status hn_quantize_unused_globs(hn_quantizing *q, const char *option, const char *const *globs,
                                     uint32_t n, const bool *hit, hone_error *error) {
  for (uint32_t i = 0; i < n; i++)
    if (!hit[i] && hn_quantize_warn(q, error, "%s '%s' fits no node name and no operator type", option,
                                    globs[i]) != HONE_OK)
      return HONE_ERROR_MEMORY;
  return HONE_OK;
}

hone_status hn_quantize_select(hn_quantizing *q, hone_error *error) {
  q->n_values = q->model->next_value_id;
  q->of = HN_NEW_ARRAY(&q->arena, hn_quantize_range *, q->n_values + 1);
  q->ends = HN_NEW_ARRAY(&q->arena, bool, q->n_values + 1);
  bool *skipped = HN_NEW_ARRAY(&q->arena, bool, q->o->n_skip + 1),
       *wanted = HN_NEW_ARRAY(&q->arena, bool, q->o->n_only + 1);
  if (!q->of || !q->ends || !skipped || !wanted)
    return hn_fail_memory(error, q->n_values, "a quantised model");
  hone_status status = HONE_OK;
  for (hone_node *n = q->model->graph->first; n && status == HONE_OK; n = n->next)
    status = consider(q, n, skipped, wanted, error);
  /* Products first: what stands around them asks what they read. */
  for (int products = 1; products >= 0; products--)
    for (size_t i = 0; i < q->layers.len && status == HONE_OK; i++)
      if ((q->layers.ptr[i].kind == HN_QUANTIZE_PRODUCT) == (products == 1))
        status = choose(q, &q->layers.ptr[i], error);
  /* A bias, and an activation function that the kernel before it applies, is no operator of its own. */
  size_t kept = 0;
  for (size_t i = 0; i < q->layers.len && status == HONE_OK; i++) {
    const hone_node *n = q->layers.ptr[i].node;
    if (adds_bias(q, n)) continue;
    if (kind_of(n) < sizeof known / sizeof *known || !q->ends[n->out[0]->id])
      q->layers.ptr[kept++] = q->layers.ptr[i];
  }
  if (status == HONE_OK) q->layers.len = kept;
  if (status == HONE_OK)
    status = hn_quantize_unused_globs(q, "--skip", q->o->skip, q->o->n_skip, skipped, error);
  if (status == HONE_OK)
    status = hn_quantize_unused_globs(q, "--only", q->o->only, q->o->n_only, wanted, error);
  return status;
}
