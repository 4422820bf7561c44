/* f16 and bf16 in the file  ->  f32 in the plan
 *
 * A model of 16-bit floats says how values are stored, hardly ever that sums are to be rounded after every
 * operator: all that computes works on f32, so that every fusion and every kernel is there, and the plan
 * stores narrow what its device reads narrow. What the caller hands in and gets back keeps its type. What is
 * rounded in steps (Floor, comparisons, casts to integers) sees the numbers that the file's type has.
 *
 * Bodies of If, Loop and Scan that compute do so in f32 as well, and what goes into them, from trip to trip
 * and out of them is f32: it is rounded before the first trip and after the last one. What a body reads of
 * the graphs around it is widened there, once. */
#include "model/ir/bytes.h"
#include "optimize/passes/common/pass.h"

typedef struct widening {
  hn_pass_context *ctx;
  hn_value **wide; /* by id of a value of 16 bits: the same in f32, once there is one */
  bool *cast_on;   /* by id of a value of 16 bits (find_casts) */
  bool *stays;     /* by id: the result of a node that moves it from a caller to a caller */
  hn_graph *at;    /* the graph whose nodes are being changed */
  struct place *place;
  uint32_t n_places, n_nodes,
      n_moves; /* n_nodes: places that are operators; n_moves: these only move elements */
} widening;

/* What is to be done, in order. */
typedef struct place {
  hone_node *node;
  enum { COMPUTES, BEGINS, ENDS, NOTHING } what; /* BEGINS, ENDS: around what its bodies have */
} place;

static bool is_half(const hn_value *v) {
  return v && (v->desc.dtype == HONE_DTYPE_F16 || v->desc.dtype == HONE_DTYPE_BF16);
}

static bool is_one_of(const hone_node *n, const char *const *ops) {
  for (; *ops; ops++)
    if (hn_same_name(n->op_type, *ops)) return true;
  return false;
}

/* Operators that say their results' type by themselves, or look at bits; those of unknown domains; what holds
 * no tensors. */
static bool keeps_its_types(const hone_node *n) {
  static const char *const ops[] = {"BitCast", "CastLike", "Constant", "ConstantOfShape", NULL};
  if ((n->domain[0] && !hn_same_name(n->domain, "com.microsoft")) || !n->op || is_one_of(n, ops)) return true;
  if (n->op->flags & (HONE_OP_CONTROL | HONE_OP_RANDOM)) return true;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && !hone_dtype_is_tensor(n->in[i]->desc.dtype)) return true;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && !hone_dtype_is_tensor(n->out[i]->desc.dtype)) return true;
  return hn_node_attr(n, "dtype") || hn_node_attr(n, "output_dtype");
}

static bool is_cast(const hone_node *n) { return !n->domain[0] && hn_same_name(n->op_type, "Cast"); }

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

/* Caches that stay as they are: a processor's GroupQueryAttention reads and writes them where they lie. */
static bool keeps_caches(const widening *w, const hone_node *n) {
  enum { PAST_KEY = 3, PAST_VALUE, PRESENT_KEY = 1, PRESENT_VALUE };
  return w->ctx->options->processor && hn_same_name(n->op_type, "GroupQueryAttention") &&
         hn_same_name(n->domain, "com.microsoft") && n->n_in > PAST_VALUE && is_half(n->in[PAST_KEY]) &&
         is_half(n->in[PAST_VALUE]) && n->n_out > PRESENT_VALUE && n->out[PRESENT_KEY] &&
         n->out[PRESENT_VALUE];
}

/* An operand, or a result, that is to become f32. */
static bool widens_in(const hone_node *n, uint32_t i, bool caches) {
  return is_half(n->in[i]) && !(caches && (i == 3 || i == 4));
}
static bool widens_out(const hone_node *n, uint32_t i, bool caches) {
  return is_half(n->out[i]) && !(caches && (i == 1 || i == 2));
}

static bool touches_halves(const widening *w, const hone_node *n) {
  const bool caches = keeps_caches(w, n);
  bool half = false;
  for (uint32_t i = 0; i < n->n_in; i++) half |= widens_in(n, i, caches);
  for (uint32_t i = 0; i < n->n_out; i++) half |= widens_out(n, i, caches);
  return half;
}

static bool only_moves(const hone_node *n) {
  return n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW) || hn_is_op(n, "Identity");
}

/* Every element of its results is one of its operands', its negative or 0: rounded it is what it is of
 * rounded operands. */
static bool picks(const hone_node *n) {
  static const char *const ops[] = {
      "Abs",       "Clip",      "GlobalMaxPool", "Max",     "MaxPool",         "MaxUnpool", "Min",  "Neg",
      "ReduceMax", "ReduceMin", "Relu",          "Scatter", "ScatterElements", "ScatterND", "TopK", "Where",
      NULL};
  const char *reduction = hone_node_string(n, "reduction", "none");
  return only_moves(n) || (!n->domain[0] && is_one_of(n, ops) && strcmp(reduction, "add") != 0 &&
                           strcmp(reduction, "mul") != 0);
}

static hn_graph *body_of(const hone_node *n, uint32_t attr) {
  return n->attr[attr].type == HONE_ATTR_GRAPH ? n->attr[attr].g : NULL;
}

/* Of the values of g and of bodies in it: whether somebody casts them to another type, at once or picked out
 * by others. That is what their rounding is for. */
static void find_casts(widening *w, const hn_graph *g) {
  for (const hone_node *n = g->last; n; n = n->prev) {
    bool on = false;
    for (uint32_t i = 0; i < n->n_out && n->op; i++) on |= n->out[i] && w->cast_on[n->out[i]->id];
    on = on && picks(n);
    for (uint32_t i = 0; i < n->n_in; i++) {
      hn_value *v = n->in[i];
      if (!is_half(v) || v->graph != g) continue;
      if (is_cast(n) ? n->out[0] && n->out[0]->desc.dtype != v->desc.dtype : on) w->cast_on[v->id] = true;
    }
    for (uint32_t i = 0; i < n->n_attr; i++)
      if (body_of(n, i)) find_casts(w, body_of(n, i));
  }
}

/* A Cast to 16 bits whose rounding somebody wants, be it beside others who compute in f32: these read it
 * rounded as well. Or one that nobody who computes in f32 reads. */
static bool rounds(const widening *w, const hone_node *n) {
  if (!is_cast(n) || !is_half(n->out[0]) || n->in[0]->desc.dtype == n->out[0]->desc.dtype) return false;
  if (w->cast_on[n->out[0]->id]) return true;
  for (size_t i = 0; i < n->out[0]->users.len; i++) {
    const hone_node *reader = n->out[0]->users.ptr[i].node;
    if (reader->graph == n->graph && !keeps_its_types(reader)) return false;
  }
  return !is_half(n->in[0]);
}

/* A Cast to f32 of what has 16 bits in any case. */
static bool enters(const widening *w, const hone_node *n) {
  const hone_node *from = n->in[0] ? n->in[0]->producer : NULL;
  if (!is_cast(n) || !n->out[0] || n->out[0]->desc.dtype != HONE_DTYPE_F32 || hn_known_desc(n->in[0]))
    return false;
  return !from || keeps_its_types(from) || rounds(w, from);
}

static hone_tensor_desc in_type(const hn_value *v, hone_dtype type) {
  hone_tensor_desc d = v->desc;
  d.dtype = type;
  return d;
}

/* A Cast for a graph around the one that is being changed: its name must not be one that is hidden there. */
static hone_node *outer_cast(widening *w, hone_node *before, hn_value *from, const hone_tensor_desc *d) {
  hn_value *to = hn_value_create(from->graph, NULL);
  hone_node *n = to ? hn_node_create(from->graph, before, "Cast", "", NULL, &from, 1, &to, 1) : NULL;
  if (!n) return hn_pass_memory(w->ctx), NULL;
  to->desc = *d;
  n->op = hn_op_find(w->ctx->model->operators, "", "Cast", n->opset, NULL);
  return n;
}

/* `from` in f32, behind its producer; of a graph's inputs, in front of all nodes. */
static hn_value *widened(widening *w, hn_value *from) {
  const hone_tensor_desc d = in_type(from, HONE_DTYPE_F32);
  hone_node *before = from->producer ? from->producer->next : from->graph->first;
  w->ctx->graph = from->graph;
  hone_node *n = from->graph == w->at ? hn_make_node(w->ctx, before, "Cast", &from, 1, &d)
                                      : outer_cast(w, before, from, &d);
  if (n && (!hn_node_set_int(n, "to", HONE_DTYPE_F32) ||
            (from->producer && !hn_inherit(w->ctx, n, from->producer))))
    return hn_pass_memory(w->ctx), NULL;
  return n ? n->out[0] : NULL;
}

static hn_value *wide_of(widening *w, hn_value *v) {
  hn_value **made = &w->wide[v->id];
  /* What follows from sizes stays a node's result, which a plan for other sizes asks again. */
  if (!*made) *made = hn_known_desc(v) && !v->sized ? hn_make_widened(w->ctx, v) : widened(w, v);
  return *made;
}

/* v becomes f32, a result of n (NULL: an input of a body). Who read it reads it rounded, and so do callers;
 * where that is nobody in the end the Cast falls away. */
static bool widen_value(widening *w, hone_node *n, hn_value *v) {
  const hone_dtype type = v->desc.dtype;
  hn_value *rounded = hn_value_create(v->graph, NULL);
  if (!rounded) return hn_pass_memory(w->ctx), false;
  rounded->desc = v->desc;
  v->folds += (uint32_t)v->users.len; /* they saw nothing of it */
  if (!hn_replace(w->ctx, v, rounded)) return false;
  hone_node *cast =
      hn_node_create(v->graph, n ? n->next : v->graph->first, "Cast", "", NULL, &v, 1, &rounded, 1);
  if (!cast || !hn_node_set_int(cast, "to", type) || (n && !hn_inherit(w->ctx, cast, n)))
    return hn_pass_memory(w->ctx), false;
  v->desc.dtype = HONE_DTYPE_F32;
  w->wide[rounded->id] = v;
  return true;
}

static bool widen_node(widening *w, hone_node *n) {
  const bool exact = jumps(n), caches = keeps_caches(w, n);
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!widens_in(n, i, caches)) continue;
    hn_value *from = n->in[i], *v = exact && !hn_known_desc(from) ? widened(w, from) : wide_of(w, from);
    if (!v || !hn_set_input(w->ctx, n, i, v)) return hn_pass_memory(w->ctx), false;
    from->folds++; /* a reader that is gone and saw nothing of it */
  }
  for (uint32_t i = 0; i < n->n_out; i++)
    if (widens_out(n, i, caches) && !widen_value(w, n, n->out[i])) return false;
  if (is_cast(n) && n->out[0]->desc.dtype == HONE_DTYPE_F32)
    return hn_node_set_int(n, "to", HONE_DTYPE_F32) || (hn_pass_memory(w->ctx), false);
  return true;
}

/* ------------------------------------------------------------------ bodies */

static bool same_halves(const hn_value *a, const hn_value *b) {
  return is_half(a) == is_half(b) && (!is_half(a) || a->desc.dtype == b->desc.dtype);
}

/* Whether what goes into the bodies and out of them has the types of the node's own operands and results, and
 * some of it 16 bits. Old Scans, whose operands are others, keep theirs. */
static bool carries_halves(const hone_node *n) {
  bool half = false;
  for (uint32_t k = 0; k < n->n_attr; k++) {
    const hn_graph *g = body_of(n, k);
    if (!g) continue;
    const size_t lead = g->outputs.len - n->n_out; /* a Loop's condition */
    if (g->outputs.len < n->n_out || lead > 1 || (g->inputs.len && g->inputs.len != n->n_in)) return false;
    for (size_t i = 0; i < g->inputs.len; i++) {
      if (n->in[i] && !same_halves(g->inputs.ptr[i], n->in[i])) return false;
      if (!n->in[i] && is_half(g->inputs.ptr[i])) return false;
      half |= is_half(g->inputs.ptr[i]);
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
      const hn_value *y = g->outputs.ptr[lead + i];
      if (y->graph != g || y->is_input || (n->out[i] && !same_halves(y, n->out[i]))) return false;
      half |= is_half(y);
    }
  }
  return half;
}

/* Operands of n and inputs of its bodies. */
static bool widen_entry(widening *w, hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!is_half(n->in[i])) continue;
    hn_value *v = wide_of(w, n->in[i]);
    if (!v || !hn_set_input(w->ctx, n, i, v)) return hn_pass_memory(w->ctx), false;
  }
  for (uint32_t k = 0; k < n->n_attr; k++) {
    const hn_graph *g = body_of(n, k);
    for (size_t i = 0; g && i < g->inputs.len; i++)
      if (is_half(g->inputs.ptr[i]) && !widen_value(w, NULL, g->inputs.ptr[i])) return false;
  }
  return true;
}

/* A body returns `to` in the place of `from`. */
static void returns(hn_graph *g, hn_value *from, hn_value *to) {
  for (size_t i = 0; i < g->outputs.len; i++)
    if (g->outputs.ptr[i] == from) g->outputs.ptr[i] = to;
  from->is_output = false;
  to->declared = NULL; /* as 16 bits */
  to->is_output = true;
}

/* Outputs of the bodies and results of n. */
static bool widen_exit(widening *w, hone_node *n) {
  for (uint32_t k = 0; k < n->n_attr; k++) {
    hn_graph *g = body_of(n, k);
    for (size_t i = 0; g && i < g->outputs.len; i++) {
      if (!is_half(g->outputs.ptr[i])) continue;
      hn_value *to = wide_of(w, g->outputs.ptr[i]);
      if (!to) return false;
      returns(g, g->outputs.ptr[i], to);
    }
  }
  for (uint32_t i = 0; i < n->n_out; i++)
    if (is_half(n->out[i]) && !widen_value(w, n, n->out[i])) return false;
  return true;
}

/* ------------------------------------------------------------------ all of it */

/* At most so many values are made: one for each place where a node reads or makes one, or a body does. */
static void count_places(const hn_graph *g, uint32_t *values, uint32_t *nodes) {
  *values += (uint32_t)(g->inputs.len + g->outputs.len);
  for (const hone_node *k = g->first; k; k = k->next) {
    *values += k->n_in + k->n_out;
    *nodes += 2;
    for (uint32_t i = 0; i < k->n_attr; i++)
      if (body_of(k, i)) count_places(body_of(k, i), values, nodes);
  }
}

/* What moves elements of a large constant does so in 16 bits: half as much is kept in memory, and of a table
 * only the rows that are read are widened. */
static bool moves_constant(const hone_node *n) {
  const hn_value *x = n->n_in ? n->in[0] : NULL;
  if (!only_moves(n) || !is_half(x) || !hn_known_desc(x) || hone_desc_bytes(&x->desc) < HN_BYTES_LARGE)
    return false;
  for (uint32_t i = 1; i < n->n_in; i++)
    if (is_half(n->in[i])) return false;
  return n->n_out == 1 && n->out[0] && !n->out[0]->is_output;
}

/* Nothing is computed, and nothing rounded: what is not moved but scattered may be added. */
static bool moves_bits(const hone_node *n) {
  return n->op && only_moves(n) && !keeps_its_types(n) && !hn_node_attr(n, "reduction") && n->n_out > 0 &&
         n->out[0];
}

/* Its operands have 16 bits in any case. */
static bool reads_halves(const widening *w, const hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (!is_half(v) || hn_known_desc(v) || w->stays[v->id]) continue;
    if (v->producer ? !keeps_its_types(v->producer) && !rounds(w, v->producer) : !v->is_input) return false;
  }
  return true;
}

static bool stays(const widening *w, const hone_node *n) {
  return n->n_out > 0 && n->out[0] && w->stays[n->out[0]->id];
}

static bool returns_halves(const widening *w, const hone_node *n) {
  for (uint32_t i = 0; i < n->n_out; i++) {
    const hn_value *v = n->out[i];
    for (size_t u = 0; v && u < v->users.len; u++) {
      const hone_node *reader = v->users.ptr[u].node;
      if (reader->graph != n->graph) return false;
      if (!stays(w, reader) && !keeps_its_types(reader)) return false;
    }
  }
  return true;
}

/* What is moved from the graph's inputs to its outputs, as a cache that is reordered, stays as it is:
 * widening it and rounding it again would be most of the work. */
static void find_moves(widening *w, const hn_graph *g) {
  const hone_node *last = NULL;
  for (const hone_node *n = g->first; n; last = n, n = n->next)
    if (moves_bits(n) && reads_halves(w, n))
      for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) w->stays[n->out[i]->id] = true;
  for (const hone_node *n = last; n; n = n->prev)
    if (moves_bits(n) && !returns_halves(w, n))
      for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) w->stays[n->out[i]->id] = false;
}

static void collect(widening *w, const hn_graph *g);

/* The bodies of n; none of them is touched where nothing is computed there. */
static void collect_bodies(widening *w, hone_node *n) {
  const widening before = *w;
  w->place[w->n_places++] = (place){n, BEGINS};
  for (uint32_t i = 0; i < n->n_attr; i++)
    if (body_of(n, i)) collect(w, body_of(n, i));
  if (w->n_nodes - before.n_nodes == w->n_moves - before.n_moves)
    *w = before;
  else if (carries_halves(n))
    w->place[w->n_places++] = (place){n, ENDS};
  else
    w->place[before.n_places].what = NOTHING;
}

static void collect(widening *w, const hn_graph *g) {
  for (hone_node *k = g->first; k; k = k->next) {
    if (touches_halves(w, k) && !keeps_its_types(k) && !rounds(w, k) && !enters(w, k) && !moves_constant(k) &&
        !(w->ctx->options->processor && stays(w, k))) {
      w->place[w->n_places++] = (place){k, COMPUTES};
      w->n_nodes++;
      w->n_moves += only_moves(k);
    }
    if (k->op && k->op->flags & HONE_OP_CONTROL) collect_bodies(w, k);
  }
}

static hn_pass_result run(hn_pass_context *ctx) {
  hn_graph *g = ctx->graph;
  if (g->parent || !ctx->options->lowered) return HN_PASS_NONE;
  uint32_t values = 0, nodes = 0;
  count_places(g, &values, &nodes);
  widening w = {.ctx = ctx,
                .wide = HN_NEW_ARRAY(ctx->scratch, hn_value *, ctx->model->next_value_id + values),
                .cast_on = HN_NEW_ARRAY(ctx->scratch, bool, ctx->model->next_value_id),
                .stays = HN_NEW_ARRAY(ctx->scratch, bool, ctx->model->next_value_id),
                .place = HN_NEW_ARRAY(ctx->scratch, place, nodes + 1)};
  if (!w.wide || !w.cast_on || !w.stays || !w.place) return hn_pass_memory(ctx);
  find_casts(&w, g);
  find_moves(&w, g);
  collect(&w, g);
  if (!w.n_nodes) return HN_PASS_NONE;
  hn_pass_record_add(ctx, true, NULL, 0, "%u operators compute in f32", w.n_nodes);
  bool good = true;
  for (uint32_t i = 0; i < w.n_places && good; i++) {
    const place *p = &w.place[i];
    w.at = p->node->graph;
    good = p->what == COMPUTES ? widen_node(&w, p->node)
           : p->what == BEGINS ? widen_entry(&w, p->node)
           : p->what == ENDS   ? widen_exit(&w, p->node)
                               : true;
  }
  ctx->graph = g;
  return good ? HN_PASS_HIT : hn_pass_memory(ctx);
}

HN_PASS(widen_halves) = {
    .name = "widen_halves", .level = 1, .about = "f16 and bf16 operators -> f32 operators", .run = run};
