/* com.microsoft.nchwc, which ONNX Runtime writes at its level "all", its default:
 *
 *   ReorderInput(x)        ->  Pad(x): channels of zeros up to whole blocks
 *   ReorderOutput(x)       ->  Slice(x): without what lies behind its channels
 *   Conv(x, w, b, z)       ->  FusedConv(x, w', b, z)
 *   MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool, Upsample  ->  the same
 *
 * Tensors there lie as [N, C / block, H, W, block] under the shape [N, C, H, W]. What is computed of them
 * does not hang on how they lie, and so they become row-major here. Weights must be put in order: rows of
 * outputs lie in blocks, and columns, too, but where each output has one channel of its own or x is no tensor
 * of blocks.
 *
 * A block is 16 channels on processors with AVX-512, 8 on others, and the file does not say which: it shows
 * where a number of channels fits one of them alone. Where none does, HONE_NCHWC says it. */
#include "model/open_blocked.h"

#include "base/error.h"
#include "base/vec.h"
#include "model/ir/bytes.h"

#include <stdlib.h>

static const char domain[] = "com.microsoft.nchwc";

enum { X, W, BIAS, SUM };
enum { SHORT = 8, LONG = 16 };

static bool is_blocked_node(const hone_node *n) { return strcmp(n->domain, domain) == 0; }
static bool is(const hone_node *n, const char *type) {
  return is_blocked_node(n) && strcmp(n->op_type, type) == 0;
}

static hone_status refuse(const hone_node *n, hone_error *error, const char *what) {
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s of %s: %s", n->op_type, domain, what);
  hn_error_where(error, "node '%.80s'", n->name);
  return HONE_ERROR_UNSUPPORTED;
}

enum { NONE, PERHAPS, BLOCKS }; /* whether a value is a tensor of blocks */

/* A graph with what is known of its values, by index, and the graphs around it. */
typedef struct scope {
  const hn_graph *graph;
  unsigned char *of;
  const struct scope *outer;
} scope;

static unsigned char kind_of(const hn_value *v, const scope *s) {
  if (!v || v->constant) return NONE;
  while (s && s->graph != v->graph) s = s->outer;
  return s ? s->of[v->index] : PERHAPS;
}

static bool has_graph(const hone_node *n) {
  for (uint32_t k = 0; k < n->n_attr; k++)
    if (n->attr[k].type == HONE_ATTR_GRAPH) return true;
  return false;
}

static bool find_blocks(scope *s, hn_arena *arena);

/* What output i of a node with graphs is by them: that of an If by its branches; a loop hands what one of its
 * outputs is to its next trip, and by that to any other. */
static bool made_inside(const hone_node *n, const scope *around, hn_arena *arena, unsigned char *kind) {
  const bool branches = strcmp(n->op_type, "If") == 0;
  for (uint32_t k = 0; k < n->n_attr; k++) {
    if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
    scope s = {.graph = n->attr[k].g, .outer = around};
    if (!find_blocks(&s, arena)) return false;
    for (size_t o = 0; o < s.graph->outputs.len; o++) {
      const unsigned char made = kind_of(s.graph->outputs.ptr[o], &s);
      for (uint32_t i = branches ? (uint32_t)o : 0; i < n->n_out && (i == o || !branches); i++)
        if (made > kind[i]) kind[i] = made;
    }
  }
  return true;
}

/* Which values of the graph are tensors of blocks. PERHAPS: a loop hands them in. */
static bool find_blocks(scope *s, hn_arena *arena) {
  const hn_graph *g = s->graph;
  s->of = HN_NEW_ARRAY(arena, unsigned char, g->values.len + 1);
  if (!s->of) return false;
  memset(s->of, NONE, g->values.len + 1);
  for (size_t i = 0; i < g->inputs.len && g->parent; i++) s->of[g->inputs.ptr[i]->index] = PERHAPS;
  for (const hone_node *n = g->first; n; n = n->next) {
    unsigned char kind = is_blocked_node(n) ? BLOCKS : NONE;
    for (uint32_t i = 0; i < n->n_in; i++) {
      const unsigned char given = kind_of(n->in[i], s);
      if (given > kind) kind = given;
    }
    if (is(n, "ReorderOutput")) kind = NONE;
    unsigned char *made = HN_NEW_ARRAY(arena, unsigned char, n->n_out + 1);
    if (!made) return false;
    memset(made, kind, n->n_out + 1);
    if (has_graph(n) && !made_inside(n, s, arena, made)) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) s->of[n->out[i]->index] = made[i];
  }
  return true;
}

static const hone_tensor *weights_of(const hone_node *n) {
  const hn_value *w = n->n_in > W ? n->in[W] : NULL;
  const hone_tensor *t = w ? w->constant : NULL;
  return t && t->desc.dtype == HONE_DTYPE_F32 && t->desc.rank == 4 ? t : NULL;
}

/* Channels that a tensor of blocks has by one of its readers; 0: not known. */
static int64_t read_by(const hn_use *use, const hn_graph *g, const int64_t *of) {
  const hone_node *n = use->node;
  const hone_tensor *w = n && is(n, "Conv") ? weights_of(n) : NULL;
  if (!n) return 0;
  if (is(n, "Conv") && use->index == SUM) return w ? w->desc.dim[0] : 0;
  if (is(n, "Conv")) {
    const int64_t group = hone_node_int(n, "group", 1);
    return w && group > 0 && group <= w->desc.dim[0] ? w->desc.dim[1] * group : 0;
  }
  if (is(n, "ReorderOutput") || strcmp(n->op_type, "Concat") == 0 || !n->n_out || !n->out[0] || n->graph != g)
    return 0;
  return of[n->out[0]->index];
}

/* Channels that each value of a graph has as a tensor of blocks, by index: those that a convolution reads of
 * it, or of what has as many. 0: not known. From the last node to the first, so that each reader is looked at
 * once. */
static int64_t *channels_read(const hn_graph *g, hn_arena *arena) {
  int64_t *of = HN_NEW_ARRAY(arena, int64_t, g->values.len + 1);
  if (!of) return NULL;
  memset(of, 0, (g->values.len + 1) * sizeof *of);
  for (const hone_node *n = g->last; n; n = n->prev)
    for (uint32_t k = 0; k < n->n_out; k++) {
      const hn_value *v = n->out[k];
      for (size_t i = 0; v && i < v->users.len && !of[v->index]; i++)
        of[v->index] = read_by(&v->users.ptr[i], g, of);
    }
  return of;
}

/* What the node shows of the length of blocks; 0: nothing. */
static int64_t shown_by(const hone_node *n, const scope *s, const int64_t *channels) {
  if (is(n, "ReorderInput") && n->n_in && n->in[X] && n->out[0]) {
    const hone_tensor_desc *x = &n->in[X]->desc;
    const int64_t read = channels[n->out[0]->index],
                  has = x->rank == 4 ? x->dim[hone_node_int(n, "channels_last", 0) ? 3 : 1] : -1;
    if (read % LONG) return SHORT;
    return read && has > 0 && read - has >= SHORT ? LONG : 0;
  }
  if (is(n, "ReorderOutput") && n->n_in && n->in[X] && n->in[X]->producer) {
    const hone_node *from = n->in[X]->producer;
    const hone_tensor *w = is(from, "Conv") ? weights_of(from) : NULL;
    return w && w->desc.dim[0] - hone_node_int(n, "channels", 0) >= SHORT ? LONG : 0;
  }
  const hone_tensor *w = is(n, "Conv") ? weights_of(n) : NULL;
  if (!w || !n->in[X]) return 0;
  if (w->desc.dim[0] % LONG) return SHORT;
  if (hone_node_int(n, "group", 1) != 1) return 0;
  switch (kind_of(n->in[X], s)) {
  case BLOCKS: return w->desc.dim[1] % LONG ? SHORT : 0;
  case NONE: return w->desc.dim[1] >= SHORT ? LONG : 0;
  default: return 0;
  }
}

/* Who asks for a tensor of blocks would get it row-major. ONNX Runtime hands out none. What is not f32 (a
 * shape, an index) is none. */
static hone_status check_outputs(const scope *s, hone_error *error) {
  const hn_graph *g = s->graph;
  for (size_t i = 0; i < g->outputs.len && !g->parent; i++) {
    const hn_value *v = g->outputs.ptr[i];
    if (v->graph != g || kind_of(v, s) != BLOCKS || (v->desc.dtype && v->desc.dtype != HONE_DTYPE_F32))
      continue;
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%.80s' is a tensor of blocks of %s", v->name, domain);
    hn_error_hint(error, "let ONNX Runtime save the model at its level \"extended\"");
    return HONE_ERROR_UNSUPPORTED;
  }
  return HONE_OK;
}

/* *length: what the graph and those in it show; 0: nothing. *any: it has such a node. */
static hone_status look(const hn_graph *g, const scope *outer, int64_t *length, const hone_node **any,
                        hone_error *error) {
  hn_arena arena = {0};
  scope here = {.graph = g, .outer = outer};
  const int64_t *channels = find_blocks(&here, &arena) ? channels_read(g, &arena) : NULL;
  hone_status s =
      channels ? check_outputs(&here, error) : hn_fail_memory(error, g->values.len, "tensors of blocks");
  for (const hone_node *n = g->first; n && !s; n = n->next) {
    for (uint32_t k = 0; k < n->n_attr && !s; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) s = look(n->attr[k].g, &here, length, any, error);
    if (s || !is_blocked_node(n)) continue;
    *any = n;
    const int64_t shown = shown_by(n, &here, channels);
    if (shown && *length && shown != *length)
      s = refuse(n, error, "some weights lie in blocks of 8, others in blocks of 16");
    if (shown) *length = shown;
  }
  hn_arena_free(&arena);
  return s;
}

static hone_status length_of_blocks(const hone_node *any, int64_t *length, hone_error *error) {
  const char *said = getenv("HONE_NCHWC");
  if (*length) return HONE_OK;
  if (said && (strcmp(said, "8") == 0 || strcmp(said, "16") == 0)) {
    *length = strcmp(said, "8") == 0 ? SHORT : LONG;
    return HONE_OK;
  }
  refuse(any, error, "weights lie in blocks of 8 or of 16 channels, and no number of channels shows which");
  hn_error_hint(
      error, "HONE_NCHWC=16 where the file was saved on a processor with AVX-512, else HONE_NCHWC=8; or let "
             "ONNX Runtime save it at its level \"extended\"");
  return HONE_ERROR_UNSUPPORTED;
}

/* ------------------------------------------------------------------ nodes */

typedef struct opening {
  hone_node *node;
  int64_t opset, block;
  bool memory; /* was refused */
} opening;

static hn_value *add(opening *o, const char *op, const char *where, hn_value *const *in, uint32_t n_in) {
  hn_value *y = hn_value_create(o->node->graph, NULL);
  hone_node *n = y ? hn_node_create(o->node->graph, o->node, op, where, NULL, in, n_in, &y, 1) : NULL;
  if (n && hn_node_inherit(n, o->node)) return y;
  o->memory = true;
  return NULL;
}

static hn_value *constant(opening *o, hone_dtype type, int64_t n, const void *data) {
  const hone_tensor_desc d = hone_desc(type, 1, &n);
  hn_value *v = hn_value_constant(o->node->graph, NULL, &d, data, true);
  o->memory |= !v;
  return v;
}

static void with_ints(opening *o, hn_value *v, const char *name, const int64_t *at, size_t n) {
  if (v && !hn_node_set_ints(v->producer, name, at, n)) o->memory = true;
}
static void with_string(opening *o, hn_value *v, const char *name, const char *text) {
  if (v && !hn_node_set_string(v->producer, name, text, strlen(text))) o->memory = true;
}

/* v from `first` to `end` along an axis. */
static hn_value *cut(opening *o, hn_value *v, int64_t first, int64_t end, int64_t axis) {
  if (v && o->opset >= 10) {
    hn_value *in[4] = {v, constant(o, HONE_DTYPE_I64, 1, &first), constant(o, HONE_DTYPE_I64, 1, &end),
                       constant(o, HONE_DTYPE_I64, 1, &axis)};
    return o->memory ? NULL : add(o, "Slice", "", in, 4);
  }
  v = v ? add(o, "Slice", "", &v, 1) : NULL;
  with_ints(o, v, "starts", &first, 1);
  with_ints(o, v, "ends", &end, 1);
  with_ints(o, v, "axes", &axis, 1);
  return v;
}

static hn_value *turned(opening *o, hn_value *v, const int64_t perm[4]) {
  v = v ? add(o, "Transpose", "", &v, 1) : NULL;
  with_ints(o, v, "perm", perm, 4);
  return v;
}

/* (block - channels % block) % block, where the run knows the channels of v: [1]. Opsets below 10 have no
 * Mod; all is above 0. */
static hn_value *missing(opening *o, hn_value *v) {
  const int64_t one = 1, two = 2, last = o->block - 1;
  hn_value *has = cut(o, v ? add(o, "Shape", "", &v, 1) : NULL, one, two, 0),
           *by = constant(o, HONE_DTYPE_I64, 1, &o->block), *more = constant(o, HONE_DTYPE_I64, 1, &last);
  hn_value *whole = o->memory ? NULL : add(o, "Add", "", (hn_value *const[]){has, more}, 2);
  if (whole) whole = add(o, "Div", "", (hn_value *const[]){whole, by}, 2);
  if (whole) whole = add(o, "Mul", "", (hn_value *const[]){whole, by}, 2);
  return whole ? add(o, "Sub", "", (hn_value *const[]){whole, has}, 2) : NULL;
}

/* v with channels of zeros behind its own up to a whole block; it has `has` of them, -1: the run knows. Below
 * opset 11 Pad has its numbers as attributes: where the run makes them, ONNX Runtime's own Pad has operands.
 */
static hn_value *up_to_block(opening *o, hn_value *v, int64_t has) {
  const int64_t zero[5] = {0}, more = has < 0 ? 0 : (o->block - has % o->block) % o->block,
                pads[8] = {0, 0, 0, 0, 0, more, 0, 0};
  if (o->opset < 11 && has >= 0) {
    v = v ? add(o, "Pad", "", &v, 1) : NULL;
    with_ints(o, v, "pads", pads, 8);
    return v;
  }
  hn_value *const parts[3] = {constant(o, HONE_DTYPE_I64, 5, zero),
                              has >= 0 ? constant(o, HONE_DTYPE_I64, 1, &more) : missing(o, v),
                              constant(o, HONE_DTYPE_I64, 2, zero)};
  hn_value *in[2] = {v, o->memory ? NULL : add(o, "Concat", "", parts, 3)};
  if (in[1] && !hn_node_set_int(in[1]->producer, "axis", 0)) o->memory = true;
  return v && in[1] ? add(o, "Pad", o->opset < 11 ? "com.microsoft" : "", in, 2) : NULL;
}

static hn_value *open_input(opening *o) {
  static const int64_t first[4] = {0, 3, 1, 2};
  hn_value *v = o->node->in[X];
  const bool last = hone_node_int(o->node, "channels_last", 0) != 0;
  const int64_t has = v->desc.rank == 4 ? v->desc.dim[last ? 3 : 1] : -1;
  if (last) v = turned(o, v, first);
  return has > 0 && has % o->block == 0 ? v : up_to_block(o, v, has > 0 ? has : -1);
}

static hone_status open_output(opening *o, hn_value **out, hone_error *error) {
  static const int64_t last[4] = {0, 2, 3, 1};
  const int64_t channels = hone_node_int(o->node, "channels", 0);
  if (channels < 1) return refuse(o->node, error, "it has no channels");
  hn_value *v = cut(o, o->node->in[X], 0, channels, 1);
  *out = hone_node_int(o->node, "channels_last", 0) ? turned(o, v, last) : v;
  return HONE_OK;
}

/* to[out][in][h][w] of weights in blocks of rows, and of columns where `columns`. Files may have them at any
 * address. */
static void put_in_order(const void *from, const int64_t d[4], int64_t b, bool columns, float *to) {
  const int64_t plane = d[2] * d[3];
  for (int64_t r = 0; r < d[0]; r++)
    for (int64_t c = 0; c < d[1]; c++)
      for (int64_t p = 0; p < plane; p++) {
        const int64_t at = columns ? (((r / b * (d[1] / b) + c / b) * plane + p) * b + c % b) * b + r % b
                                   : ((r / b * d[1] + c) * plane + p) * b + r % b;
        to[(r * d[1] + c) * plane + p] = hn_f32_at(from, at);
      }
}

static hone_status open_conv(opening *o, hn_value **out, hone_error *error) {
  hone_node *n = o->node;
  const hone_tensor *w = weights_of(n);
  const int64_t group = hone_node_int(n, "group", 1), b = o->block;
  if (!w) return refuse(n, error, "its weights are no constant of f32 and rank 4");
  const int64_t *d = w->desc.dim;
  const bool rows = (group == 1 && d[1] < b) || (group == d[0] && d[1] == 1);
  if (d[0] % b || (!rows && d[1] % b)) return refuse(n, error, "its weights are no whole blocks");
  float *data = HN_NEW_ARRAY(&n->graph->model->arena, float, (size_t)hone_desc_count(&w->desc) + 1);
  if (!data) return hn_fail_memory(error, (size_t)hone_desc_bytes(&w->desc), "weights");
  put_in_order(w->data, d, b, !rows, data);
  hn_value *in[4] = {n->in[X], hn_value_constant(n->graph, NULL, &w->desc, data, false)};
  for (uint32_t i = BIAS; i <= SUM; i++) in[i] = i < n->n_in ? n->in[i] : NULL;
  hn_value *v = in[W] ? add(o, "FusedConv", "com.microsoft", in, n->n_in < 4 ? n->n_in : 4) : NULL;
  if (!v || !hn_node_copy_attrs(v->producer, n)) o->memory = true;
  *out = v;
  return HONE_OK;
}

static hone_status open_upsample(opening *o, hn_value **out, hone_error *error) {
  size_t n = 0;
  const int64_t *whole = hone_node_ints(o->node, "scales", &n);
  float scale[4];
  const char *mode = hone_node_string(o->node, "mode", "nearest");
  if (n != 4) return refuse(o->node, error, "it has no scales of four dimensions");
  for (int i = 0; i < 4; i++) scale[i] = (float)whole[i];
  hn_value *x = o->node->in[X], *by = o->opset >= 9 ? constant(o, HONE_DTYPE_F32, 4, scale) : NULL;
  hn_value *const three[3] = {x, NULL, by}, *const two[2] = {x, by};
  hn_value *v = o->memory        ? NULL
                : o->opset >= 11 ? add(o, "Resize", "", three, 3)
                                 : add(o, o->opset == 10 ? "Resize" : "Upsample", "", two, by ? 2 : 1);
  with_string(o, v, "mode", mode);
  if (v && !by && !hn_node_set_floats(v->producer, "scales", scale, 4)) o->memory = true;
  if (o->opset >= 11) {
    with_string(o, v, "coordinate_transformation_mode",
                hone_node_string(o->node, "coordinate_transformation_mode", "asymmetric"));
    if (strcmp(mode, "nearest") == 0) with_string(o, v, "nearest_mode", "floor");
  }
  *out = v;
  return HONE_OK;
}

static hone_status open_node(opening *o, hone_error *error) {
  hone_node *n = o->node;
  hn_value *v = NULL;
  hone_status s = HONE_OK;
  if (!n->n_in || !n->in[X] || n->n_out != 1 || !n->out[0]) return refuse(n, error, "it lacks an operand");
  static const char *const same[] = {"MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", NULL};
  const char *const *name = same;
  while (*name && strcmp(*name, n->op_type) != 0) name++;
  if (is(n, "ReorderInput"))
    v = open_input(o);
  else if (is(n, "ReorderOutput"))
    s = open_output(o, &v, error);
  else if (is(n, "Conv"))
    s = open_conv(o, &v, error);
  else if (is(n, "Upsample"))
    s = open_upsample(o, &v, error);
  else if (*name) {
    v = add(o, *name, "", n->in, 1);
    if (v && !hn_node_copy_attrs(v->producer, n)) o->memory = true;
  } else
    return refuse(n, error, "hone does not know this operator");
  if (s) return s;
  if (!v || o->memory || !hn_value_replace(n->out[0], v)) return hn_fail_memory(error, 1, domain);
  hn_node_remove(n);
  return HONE_OK;
}

static hone_status open_graph(hn_graph *g, int64_t opset, int64_t block, hone_error *error) {
  hone_status s = HONE_OK;
  for (hone_node *n = g->first, *next; n && !s; n = next) {
    next = n->next;
    for (uint32_t k = 0; k < n->n_attr && !s; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) s = open_graph(n->attr[k].g, opset, block, error);
    opening o = {.node = n, .opset = opset, .block = block};
    if (!s && is_blocked_node(n)) s = open_node(&o, error);
  }
  return s;
}

hone_status hn_open_blocked(hn_model *m, hone_error *error) {
  int64_t length = 0;
  const hone_node *any = NULL;
  if (!hn_model_opset(m, domain)) return HONE_OK;
  hone_status s = look(m->graph, NULL, &length, &any, error);
  if (s || !any) return s;
  if ((s = length_of_blocks(any, &length, error))) return s;
  if (!hn_model_opset(m, "com.microsoft")) {
    const hn_opset fused = {"com.microsoft", 1};
    if (!hn_vec_push(&m->opsets, fused)) return hn_fail_memory(error, sizeof fused, "an operator set");
  }
  return open_graph(m->graph, hn_model_opset(m, ""), length, error);
}
