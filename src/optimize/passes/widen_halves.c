/* f16 and bf16 in the file  ->  f32 in the plan
 *
 * A model of 16-bit floats says how values are stored, hardly ever that sums are to be rounded after every
 * operator: all that computes works on f32, so that every fusion and every kernel is there, and the plan
 * stores narrow what its device reads narrow. What the caller hands in and gets back keeps its type. What is
 * rounded in steps (Floor, comparisons, casts to integers) sees the numbers that the file's type has. */
#include "model/ir/bytes.h"
#include "optimize/passes/common/pass.h"

typedef struct widening {
  hn_pass_context *ctx;
  hn_value **wide; /* by id of a value of 16 bits: the same in f32, once there is one */
} widening;

static bool is_half(const hn_value *v) {
  return v && v->kind == HN_TENSOR && (v->desc.dtype == HONE_DTYPE_F16 || v->desc.dtype == HONE_DTYPE_BF16);
}

static bool is_one_of(const hone_node *n, const char *const *ops) {
  for (; *ops; ops++)
    if (strcmp(n->op_type, *ops) == 0) return true;
  return false;
}

/* Operators that say their results' type by themselves, or look at bits; those of unknown domains; what holds
 * no tensors. */
static bool keeps_its_types(const hone_node *n) {
  static const char *const ops[] = {"BitCast", "CastLike", "Constant", "ConstantOfShape", NULL};
  if ((n->domain[0] && strcmp(n->domain, "com.microsoft") != 0) || !n->op || is_one_of(n, ops)) return true;
  if (n->op->flags & (HONE_OP_CONTROL | HONE_OP_RANDOM)) return true;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && n->in[i]->kind != HN_TENSOR) return true;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && n->out[i]->kind != HN_TENSOR) return true;
  return hn_node_attr(n, "dtype") || hn_node_attr(n, "output_dtype");
}

static bool is_cast(const hone_node *n) { return !n->domain[0] && strcmp(n->op_type, "Cast") == 0; }

/* Its result may jump where an operand changes by a rounding. */
static bool jumps(const hone_node *n) {
  static const char *const ops[] = {"Floor",
                                    "Ceil",
                                    "Round",
                                    "Sign",
                                    "Mod",
                                    "Equal",
                                    "Less",
                                    "LessOrEqual",
                                    "Greater",
                                    "GreaterOrEqual",
                                    "IsInf",
                                    "TopK",
                                    "ArgMax",
                                    "ArgMin",
                                    "Unique",
                                    "NonZero",
                                    "QuantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "NonMaxSuppression",
                                    NULL};
  if (is_cast(n)) return n->out[0] && !hone_dtype_is_float(n->out[0]->desc.dtype);
  return is_one_of(n, ops);
}

static bool touches_halves(const hone_node *n) {
  bool half = false;
  for (uint32_t i = 0; i < n->n_in; i++) half |= is_half(n->in[i]);
  for (uint32_t i = 0; i < n->n_out; i++) half |= is_half(n->out[i]);
  return half;
}

/* A Cast to 16 bits that nobody who computes in f32 reads. */
static bool rounds(const hone_node *n) {
  if (!is_cast(n) || n->in[0]->desc.dtype != HONE_DTYPE_F32) return false;
  for (size_t i = 0; i < n->out[0]->users.len; i++) {
    const hone_node *reader = n->out[0]->users.ptr[i].node;
    const bool widens = is_cast(reader) && reader->out[0] && reader->out[0]->desc.dtype == HONE_DTYPE_F32;
    if (reader->graph == n->graph && !widens && !keeps_its_types(reader)) return false;
  }
  return true;
}

/* A Cast to f32 of what has 16 bits in any case. */
static bool enters(const hone_node *n) {
  const hone_node *from = n->in[0] ? n->in[0]->producer : NULL;
  if (!is_cast(n) || !n->out[0] || n->out[0]->desc.dtype != HONE_DTYPE_F32 || hn_known_desc(n->in[0]))
    return false;
  return !from || keeps_its_types(from) || rounds(from);
}

static hone_tensor_desc in_type(const hn_value *v, hone_dtype type) {
  hone_tensor_desc d = v->desc;
  d.dtype = type;
  return d;
}

/* `from` in f32, behind its producer; of the model's inputs, in front of all nodes. */
static hn_value *widened(widening *w, hn_value *from) {
  const hone_tensor_desc d = in_type(from, HONE_DTYPE_F32);
  hone_node *n = hn_make_node(w->ctx, from->producer ? from->producer->next : w->ctx->graph->first, "Cast",
                              &from, 1, &d);
  if (n && (!hn_node_set_int(n, "to", HONE_DTYPE_F32) ||
            (from->producer && !hn_inherit(w->ctx, n, from->producer))))
    return hn_pass_memory(w->ctx), NULL;
  return n ? n->out[0] : NULL;
}

static hn_value *widened_constant(widening *w, hn_value *v) {
  const hone_tensor_desc d = in_type(v, HONE_DTYPE_F32);
  const int64_t count = hone_desc_count(&d);
  hn_deferred *from = HN_NEW(&w->ctx->model->arena, hn_deferred);
  void *data;
  if (!from) return hn_pass_memory(w->ctx), NULL;
  *from = (hn_deferred){.from = v->constant->data,
                        .type = v->desc.dtype,
                        .count = count,
                        .runs = {.length = count > 0 ? count : 1, .period = 1}};
  if (w->ctx->options->defer && hone_desc_bytes(&d) >= HN_BYTES_LARGE)
    return hn_make_deferred(w->ctx, v->name, &d, from);
  hn_value *made = hn_make_room(w->ctx, v->name, &d, &data);
  if (made) hn_deferred_make(from, data); /* cannot leave the range of f32 */
  return made;
}

static hn_value *wide_of(widening *w, hn_value *v) {
  hn_value **made = &w->wide[v->id];
  if (!*made) *made = hn_known_desc(v) ? widened_constant(w, v) : widened(w, v);
  return *made;
}

/* The node's output becomes f32. Who read it reads it rounded, and so do callers; where that is nobody in the
 * end the Cast falls away. */
static bool widen_output(widening *w, hone_node *n, hn_value *v) {
  const hone_dtype type = v->desc.dtype;
  hn_value *rounded = hn_value_create(v->graph, NULL);
  if (!rounded) return hn_pass_memory(w->ctx), false;
  rounded->desc = v->desc;
  if (!hn_replace(w->ctx, v, rounded)) return false;
  hone_node *cast = hn_node_create(v->graph, n->next, "Cast", "", NULL, &v, 1, &rounded, 1);
  if (!cast || !hn_node_set_int(cast, "to", type) || !hn_inherit(w->ctx, cast, n))
    return hn_pass_memory(w->ctx), false;
  v->desc.dtype = HONE_DTYPE_F32;
  w->wide[rounded->id] = v;
  return true;
}

static bool widen_node(widening *w, hone_node *n) {
  const bool exact = jumps(n);
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!is_half(n->in[i])) continue;
    hn_value *v = exact && !hn_known_desc(n->in[i]) ? widened(w, n->in[i]) : wide_of(w, n->in[i]);
    if (!v || !hn_set_input(w->ctx, n, i, v)) return hn_pass_memory(w->ctx), false;
  }
  for (uint32_t i = 0; i < n->n_out; i++)
    if (is_half(n->out[i]) && !widen_output(w, n, n->out[i])) return false;
  if (is_cast(n) && n->out[0]->desc.dtype == HONE_DTYPE_F32)
    return hn_node_set_int(n, "to", HONE_DTYPE_F32) || (hn_pass_memory(w->ctx), false);
  return true;
}

/* At most so many values are made: one for each place where a node reads or makes one. */
static uint32_t places_of(const hn_graph *g) {
  uint32_t n = 0;
  for (const hone_node *k = g->first; k; k = k->next) n += k->n_in + k->n_out;
  return n;
}

static hn_pass_result run(hn_pass_context *ctx) {
  hn_graph *g = ctx->graph;
  if (g->parent || !ctx->options->lowered) return HN_PASS_NONE;
  const uint32_t n = g->n_nodes;
  widening w = {.ctx = ctx,
                .wide = HN_NEW_ARRAY(ctx->scratch, hn_value *, ctx->model->next_value_id + places_of(g))};
  hone_node **nodes = HN_NEW_ARRAY(ctx->scratch, hone_node *, n + 1);
  if (!w.wide || !nodes) return hn_pass_memory(ctx);
  uint32_t count = 0;
  for (hone_node *k = g->first; k; k = k->next)
    if (touches_halves(k) && !keeps_its_types(k) && !rounds(k) && !enters(k)) nodes[count++] = k;
  if (!count) return HN_PASS_NONE;
  hn_pass_record_add(ctx, true, NULL, 0, "%u operators compute in f32", count);
  for (uint32_t i = 0; i < count; i++)
    if (!widen_node(&w, nodes[i])) return hn_pass_memory(ctx);
  return HN_PASS_HIT;
}

HN_PASS(widen_halves) = {
    .name = "widen_halves", .level = 1, .about = "f16 and bf16 operators -> f32 operators", .run = run};
