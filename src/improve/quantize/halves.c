/* Weights and activations as f16 or bf16: half the file. Each operator is narrow or stays f32; where a value
 * goes from one kind to the other, a Cast does it, one for all readers. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "base/half.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#define LARGEST_F16 65504.0

typedef struct halving {
  hn_quantizing *q;
  hone_dtype narrow;
  uint32_t n;          /* ids of values before the rewriting */
  hn_value **other;    /* by id: the same value in the other type, once made */
  bool *ours;          /* by id: it was f32; what the file has in 16 bits stays so */
  hn_map narrow_nodes; /* names of the nodes */
} halving;

static bool is_one_of(const hone_node *n, const char *const *ops) {
  for (; *ops; ops++)
    if (hn_is_op(n, *ops)) return true;
  return false;
}

/* Types are part of what these say, or the plain ones are all that runtimes have. */
static bool says_its_types(const hone_node *n) {
  static const char *const ops[] = {"Cast",
                                    "CastLike",
                                    "BitCast",
                                    "Constant",
                                    "ConstantOfShape",
                                    "EyeLike",
                                    "Range",
                                    "QuantizeLinear",
                                    "DequantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "Bernoulli",
                                    "Multinomial",
                                    "NonMaxSuppression",
                                    "If",
                                    "Loop",
                                    "Scan",
                                    NULL};
  return is_one_of(n, ops) || (n->op && n->op->flags & (HONE_OP_CONTROL | HONE_OP_RANDOM)) || n->domain[0];
}

/* Sums of many terms, powers and exponentials leave f16's range (65504) where their inputs do not. */
static bool overflows(const hone_node *n) {
  static const char *const ops[] = {"Exp",
                                    "Pow",
                                    "ReduceSum",
                                    "ReduceSumSquare",
                                    "ReduceL1",
                                    "ReduceL2",
                                    "ReduceProd",
                                    "ReduceLogSum",
                                    "ReduceLogSumExp",
                                    "ReduceMean",
                                    "CumSum",
                                    "Softmax",
                                    "LogSoftmax",
                                    "LayerNormalization",
                                    "InstanceNormalization",
                                    "GroupNormalization",
                                    "RMSNormalization",
                                    "LpNormalization",
                                    "MeanVarianceNormalization",
                                    "Softplus",
                                    "Reciprocal",
                                    "DFT",
                                    "STFT",
                                    "MelWeightMatrix",
                                    NULL};
  return is_one_of(n, ops);
}

static bool is_f32(const hn_value *v) { return v && v->desc.dtype == HONE_DTYPE_F32; }

/* Scales of Resize are f32 whatever it resizes. Exponents of Pow had no bf16 before opset 15; before opset 12
 * both operands are of one type. */
static bool has_own_type(const halving *h, const hone_node *n, uint32_t i) {
  if (i == 0) return false;
  if (hn_is_op(n, "Pow")) return h->narrow == HONE_DTYPE_BF16 && n->opset >= 12 && n->opset < 15;
  return hn_is_op(n, "Resize") || hn_is_op(n, "Upsample");
}

static bool follows(const halving *h, const hone_node *n, uint32_t i) {
  return is_f32(n->in[i]) && !has_own_type(h, n, i);
}

/* ONNX never gave them bf16, or in its newest opset alone. */
static bool lacks_bf16(const hone_node *n) {
  static const char *const ops[] = {"OneHot",
                                    "Scatter",
                                    "Shrink",
                                    "Upsample",
                                    "SequenceAt",
                                    "SequenceInsert",
                                    "SequenceConstruct",
                                    "ConcatFromSequence",
                                    "SplitToSequence",
                                    NULL};
  return is_one_of(n, ops);
}

/* A constant that f16 cannot hold: a mask of -1e9, an end of Clip. */
static bool too_large(const halving *h, const hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!follows(h, n, i) || !hn_quantize_is_constant(n->in[i]) || !n->in[i]->constant->data) continue;
    const void *v = n->in[i]->constant->data;
    for (int64_t k = 0, count = hone_desc_count(&n->in[i]->constant->desc); k < count; k++)
      if (fabs((double)hn_quantize_f32(v, k)) > LARGEST_F16) return true;
  }
  return false;
}

/* A constant of which f16 leaves nothing, such as an epsilon of 1e-12: what it keeps from 0 would be 0. */
static bool vanishes(const halving *h, const hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!follows(h, n, i) || !hn_quantize_is_constant(n->in[i]) || !n->in[i]->constant->data) continue;
    const void *v = n->in[i]->constant->data;
    bool any = false, left = false;
    for (int64_t k = 0, count = hone_desc_count(&n->in[i]->constant->desc); k < count && !left; k++) {
      const float f = hn_quantize_f32(v, k);
      any |= f != 0;
      left = hn_f32_to_f16(f) & 0x7fff;
    }
    if (any && !left) return true;
  }
  return false;
}

/* Or the root of a sum with such a constant: before it the sum may be as small. */
static bool needs_vanishing(const halving *h, const hone_node *n) {
  const hone_node *from = hn_is_op(n, "Sqrt") && n->in[0] ? n->in[0]->producer : NULL;
  return vanishes(h, n) || (from && from->graph == n->graph && vanishes(h, from));
}

static bool fits_glob(const hone_node *n, const char *const *globs, uint32_t count, bool *hit) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++)
    if (fnmatch(globs[i], n->name, 0) == 0 || fnmatch(globs[i], n->op_type, 0) == 0) any = hit[i] = true;
  return any;
}

static const char *stays(const halving *h, const hone_node *n, bool *skipped, bool *wanted) {
  const hone_quantize_options *o = h->q->o;
  const bool skip = fits_glob(n, o->skip, o->n_skip, skipped),
             only = fits_glob(n, o->only, o->n_only, wanted);
  if (skip) return "left out by --skip";
  if (o->n_only && !only) return "not among --only";
  if (says_its_types(n)) return "it says its types itself";
  if (!n->op || !(n->op->types & HONE_TYPES(h->narrow))) return "it is not defined for this type";
  if (h->narrow == HONE_DTYPE_BF16 && lacks_bf16(n)) return "it is not defined for this type";
  if (only || h->narrow == HONE_DTYPE_BF16) return NULL;
  if (overflows(n)) return "its results may leave f16's range";
  if (too_large(h, n)) return "a constant is beyond f16's range";
  return needs_vanishing(h, n) ? "a constant is too small for f16" : NULL;
}

static hone_status decide(halving *h, hone_error *error) {
  hn_quantizing *q = h->q;
  hone_status status = HONE_OK;
  bool *skipped = HN_NEW_ARRAY(&q->arena, bool, q->o->n_skip + 1),
       *wanted = HN_NEW_ARRAY(&q->arena, bool, q->o->n_only + 1);
  if (!skipped || !wanted) return hn_fail_memory(error, 0, "a model of 16 bits");
  for (hone_node *n = q->model->graph->first; n && status == HONE_OK; n = n->next) {
    bool any = false;
    for (uint32_t i = 0; i < n->n_in && !any; i++) any = is_f32(n->in[i]);
    for (uint32_t i = 0; i < n->n_out && !any; i++) any = is_f32(n->out[i]);
    if (!any) continue;
    hn_quantize_layer l = {.node = n, .reason = stays(h, n, skipped, wanted)};
    l.chosen = !l.reason;
    if (!hn_vec_push(&q->layers, l) || (l.chosen && !hn_map_set(&h->narrow_nodes, n->name, n)))
      status = hn_fail_memory(error, sizeof l, "layers");
  }
  if (status == HONE_OK)
    status = hn_quantize_unused_globs(q, "--skip", q->o->skip, q->o->n_skip, skipped, error);
  if (status == HONE_OK)
    status = hn_quantize_unused_globs(q, "--only", q->o->only, q->o->n_only, wanted, error);
  return status;
}

/* ---- rewriting */

static hn_value *narrow_constant(halving *h, const hn_value *v) {
  const hone_tensor_desc *d = &v->constant->desc;
  const int64_t n = hone_desc_count(d);
  const void *from = v->constant->data;
  uint16_t *to = hn_malloc((size_t)n * sizeof *to + 1);
  if (!to) return NULL;
  for (int64_t i = 0; i < n; i++)
    to[i] = h->narrow == HONE_DTYPE_F16 ? hn_f32_to_f16(hn_quantize_f32(from, i))
                                        : hn_f32_to_bf16(hn_quantize_f32(from, i));
  hn_value *out =
      hn_quantize_constant(v->graph, v->name, hone_dtype_name(h->narrow), h->narrow, d->rank, d->dim, to);
  hn_free(to);
  return out;
}

static hn_value *cast(halving *h, hn_value *v, hone_dtype dtype) {
  hn_graph *g = h->q->model->graph;
  char name[256];
  hn_value *out = hn_value_create(g, hn_quantize_name(g, v->name, hone_dtype_name(dtype), name, sizeof name));
  if (!out) return NULL;
  out->desc = hone_desc(dtype, v->desc.rank, v->desc.dim);
  hone_node *n =
      hn_node_create(g, v->producer ? v->producer->next : g->first, "Cast", "", name, &v, 1, &out, 1);
  if (!n || !hn_node_set_int(n, "to", dtype) || (v->producer && !hn_node_inherit(n, v->producer)))
    return NULL;
  return out;
}

/* The value as a reader of that type needs it. */
static hn_value *as(halving *h, hn_value *v, hone_dtype dtype) {
  if (v->desc.dtype == dtype) return v;
  hn_value **other = &h->other[v->id];
  if (!*other)
    *other = hn_quantize_is_constant(v) && !v->is_input ? narrow_constant(h, v) : cast(h, v, dtype);
  return *other;
}

/* Everything that reads v, inputs of the nodes as they stand before any is changed. */
static bool serve(halving *h, hn_value *v) {
  for (size_t i = v->users.len; i-- > 0;) {
    hone_node *n = v->users.ptr[i].node;
    const uint32_t at = v->users.ptr[i].index;
    const bool narrow = n->graph == v->graph && hn_map_get(&h->narrow_nodes, n->name) == n;
    if (hn_is_op(n, "Cast") && n->graph == v->graph) continue; /* from any type */
    hn_value *with = as(h, v, narrow && !has_own_type(h, n, at) ? h->narrow : HONE_DTYPE_F32);
    if (!with) return false;
    if (with != v && !hn_node_set_input(n, at, with)) return false;
  }
  return true;
}

/* Outputs keep their name and type. */
static bool serve_output(halving *h, hn_value *v) {
  if (v->desc.dtype == HONE_DTYPE_F32 || !h->ours[v->id] || !v->is_output) return true;
  hn_value *wide = as(h, v, HONE_DTYPE_F32);
  if (!wide) return false;
  hone_node *n = wide->producer;
  /* The names are exchanged, and all readers with them: the narrow ones come back. */
  HN_VEC(hn_use) readers = {0};
  bool whole = true;
  for (size_t i = 0; i < v->users.len; i++) whole &= hn_vec_push(&readers, v->users.ptr[i]);
  whole = whole && hn_value_replace(v, wide) && hn_node_set_input(n, 0, v);
  for (size_t i = 0; i < readers.len && whole; i++)
    if (readers.ptr[i].node != n) whole = hn_node_set_input(readers.ptr[i].node, readers.ptr[i].index, v);
  hn_vec_free(&readers);
  return whole;
}

static bool rewrite(halving *h) {
  hn_graph *g = h->q->model->graph;
  const bool io = h->q->o->narrow_io;
  const size_t count = g->values.len;
  for (size_t i = 0; i < count; i++)
    if (g->values.ptr[i]->id < h->n) h->ours[g->values.ptr[i]->id] = is_f32(g->values.ptr[i]);
  for (const hone_node *n = g->first; n; n = n->next)
    for (uint32_t i = 0; i < n->n_out; i++)
      if (is_f32(n->out[i]) && hn_map_get(&h->narrow_nodes, n->name) == n) n->out[i]->desc.dtype = h->narrow;
  for (size_t i = 0; i < g->inputs.len && io; i++)
    if (is_f32(g->inputs.ptr[i]) && !g->inputs.ptr[i]->constant) g->inputs.ptr[i]->desc.dtype = h->narrow;
  for (size_t i = 0; i < count; i++) {
    hn_value *v = g->values.ptr[i];
    if (v->id < h->n && h->ours[v->id] && !serve(h, v)) return false;
  }
  for (size_t i = 0; i < g->outputs.len && !io; i++)
    if (g->outputs.ptr[i]->id < h->n && !serve_output(h, g->outputs.ptr[i])) return false;
  for (size_t i = 0; i < g->outputs.len; i++)
    if (io) g->outputs.ptr[i]->declared = NULL;
  return true;
}

hone_status hn_quantize_halve(hn_quantizing *q, hone_error *error) {
  halving h = {.q = q,
               .narrow = q->o->to == HONE_QUANTIZE_BF16 ? HONE_DTYPE_BF16 : HONE_DTYPE_F16,
               .n = q->model->next_value_id};
  h.other = HN_NEW_ARRAY(&q->arena, hn_value *, h.n + 1);
  h.ours = HN_NEW_ARRAY(&q->arena, bool, h.n + 1);
  hone_status status =
      h.other && h.ours ? decide(&h, error) : hn_fail_memory(error, h.n, "a model of 16 bits");
  if (status == HONE_OK && !h.narrow_nodes.len)
    status =
        hn_fail(error, HONE_ERROR_INPUT, "no operator of the model computes in f32 and could be narrower");
  if (status == HONE_OK && !rewrite(&h)) status = hn_fail_memory(error, 0, "a model of 16 bits");
  hn_map_free(&h.narrow_nodes);
  return status;
}
