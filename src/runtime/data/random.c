/* Seeded random inputs that a model can digest, and the ranges that its integers must keep. */
#include "runtime/data/data.h"

#include "base/os.h"
#include "base/rng.h"
#include "base/wide.h"
#include "model/ir/graph.h"
#include "model/ops/common/op.h"

#include <string.h>
#include <strings.h>

/* ---- which rows may be asked for */

enum { WALK_NODES = 4096 };

/* Node types through which an index keeps its value. */
static bool passes_index(const hone_node *n) {
  static const char *const through[] = {"Cast",  "Identity",  "Reshape", "Unsqueeze", "Squeeze", "Flatten",
                                        "Slice", "Transpose", "Expand",  "Concat",    "Split",   "Gather"};
  for (size_t i = 0; i < sizeof through / sizeof *through; i++)
    if (hn_is_op(n, through[i])) return true;
  return false;
}

/* An operand whose numbers are places along a dimension of another. */
typedef struct indexing {
  const char *domain, *type;
  uint32_t index, table;
  const char
      *axis; /* the attribute (`layout` of recurrent networks is where the sequence lies); NULL: always... */
  int64_t otherwise;
  int64_t beyond; /* 1: lengths, which may be the whole dimension */
} indexing;

/* What the numbers of n's operand `index` have to stay below; 0: they may be anything. */
static int64_t bound_of(const hone_node *n, uint32_t index) {
  static const char *const ms = "com.microsoft";
  const indexing all[] = {{"", "Gather", 1, 0, "axis", 0, 0},
                          {"", "GatherElements", 1, 0, "axis", 0, 0},
                          {"", "Scatter", 1, 0, "axis", 0, 0},
                          {"", "ScatterElements", 1, 0, "axis", 0, 0},
                          {"", "TensorScatter", 2, 0, "axis", -2, 0},
                          {"", "RotaryEmbedding", 3, 1, NULL, 0, 0},
                          {"", "RoiAlign", 2, 0, NULL, 0, 0},
                          {"", "NegativeLogLikelihoodLoss", 1, 0, NULL, 1, 0},
                          {"", "SoftmaxCrossEntropyLoss", 1, 0, NULL, 1, 0},
                          {"", "ReverseSequence", 1, 0, "time_axis", 0, 1},
                          {"", "RNN", 4, 0, "layout", 0, 1},
                          {"", "GRU", 4, 0, "layout", 0, 1},
                          {"", "LSTM", 4, 0, "layout", 0, 1},
                          {"", "Attention", 6, 1, NULL, -2, 1},
                          {"ai.onnx.ml", "ArrayFeatureExtractor", 1, 0, NULL, -1, 0},
                          {ms, "GatherBlockQuantized", 1, 0, "gather_axis", 0, 0},
                          {ms, "RotaryEmbedding", 1, 2, NULL, 0, 0},
                          {ms, "EmbedLayerNormalization", 0, 2, NULL, 0, 0},
                          {ms, "EmbedLayerNormalization", 1, 4, NULL, 0, 0},
                          {ms, "EmbedLayerNormalization", 7, 3, NULL, 0, 0}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const indexing *x = &all[i];
    if (x->index != index || x->table >= n->n_in || !n->in[x->table] || strcmp(n->op_type, x->type) != 0)
      continue;
    if (*x->domain ? strcmp(n->domain, x->domain) != 0 : !hn_is_op(n, x->type)) continue;
    const hone_tensor_desc *t = &n->in[x->table]->desc;
    const int64_t named = x->axis ? hone_node_int(n, x->axis, x->otherwise) : x->otherwise,
                  axis = named < 0 ? named + t->rank : named;
    return t->rank > 0 && axis >= 0 && axis < t->rank && t->dim[axis] > 0 ? t->dim[axis] + x->beyond : 0;
  }
  return 0;
}

/* GatherND and ScatterND: each number of a row of indices is a place along a dimension of its own. */
static int64_t bound_of_rows(const hone_node *n, uint32_t index) {
  const bool gather = hn_is_op(n, "GatherND");
  if (index != 1 || !(gather || hn_is_op(n, "ScatterND")) || !n->in[0] || !n->in[1]) return 0;
  const hone_tensor_desc *t = &n->in[0]->desc, *rows = &n->in[1]->desc;
  const int64_t first = gather ? hone_node_int(n, "batch_dims", 0) : 0,
                width = rows->rank > 0 ? rows->dim[rows->rank - 1] : 0;
  int64_t least = 0;
  for (int64_t k = first; k >= 0 && k < t->rank && k - first < width; k++)
    if (t->dim[k] > 0 && (!least || t->dim[k] < least)) least = t->dim[k];
  return least;
}

/* Numbers of a first place, which others follow: the rest of a sequence behind one position for all, and of
 * what is written into a cache. */
static int64_t room_for_rest(const hone_node *n, uint32_t index, int64_t below) {
  const bool writes = hn_is_op(n, "TensorScatter");
  const hn_value *of = writes && n->n_in > 1 ? n->in[1] : n->in[0];
  const hone_tensor_desc *x = of ? &of->desc : NULL;
  if (below <= 0 || !x) return below;
  int64_t axis = x->rank == 4 ? 2 : 1;
  if (writes) {
    axis = hone_node_int(n, "axis", -2);
    if (axis < 0) axis += x->rank;
  } else if (x->rank < 3 || strcmp(n->op_type, "RotaryEmbedding") != 0 || n->in[index]->desc.rank != 1) {
    return below;
  }
  const int64_t rest = axis >= 0 && axis < x->rank ? x->dim[axis] : 0;
  return rest > 0 && rest <= below ? below - rest + 1 : below;
}

/* MaxUnpool's indices count the elements of what it makes. */
static int64_t bound_of_places(const hone_node *n, uint32_t index) {
  const hn_value *y = n->n_out ? n->out[0] : NULL;
  const int64_t all = y && hn_is_op(n, "MaxUnpool") && index == 1 ? hone_desc_count(&y->desc) : 0;
  return all > 0 ? all : 0;
}

/* What operand `index` of n is called in the body that gets it, as it is or, of a Scan, by parts; NULL: none.
 */
static const hn_value *within(const hone_node *n, uint32_t index) {
  const hn_attr *body = NULL;
  size_t at = index;
  if (hn_is_op(n, "Loop")) {
    body = hn_node_attr(n, "body");
  } else if (hn_is_op(n, "Scan")) {
    body = hn_node_attr(n, "body");
    at -= n->opset < 9; /* of lengths */
  } else if (index == 0 && n->op && n->op->flags & HONE_OP_CONTROL) {
    body = hn_node_attr(n, hn_node_attr(n, "encoder") ? "encoder" : "decoder"); /* of a search */
  }
  return body && body->type == HONE_ATTR_GRAPH && body->g && at < body->g->inputs.len
             ? body->g->inputs.ptr[at]
             : NULL;
}

/* Smallest table that is read with `v` as index; 0: none found. *budget bounds the walk on hostile graphs. */
static int64_t smallest_table(const hn_value *v, int *budget, int depth) {
  int64_t best = 0;
  for (size_t u = 0; u<v->users.len && * budget> 0; u++) {
    const hone_node *n = v->users.ptr[u].node;
    const uint32_t index = v->users.ptr[u].index;
    int64_t found = 0;
    --*budget;
    if (!n) continue;
    found = bound_of(n, index);
    if (!found) found = bound_of_rows(n, index);
    if (!found) found = bound_of_places(n, index);
    found = room_for_rest(n, index, found);
    const hn_value *inner = found || depth >= 32 ? NULL : within(n, index);
    if (inner) found = smallest_table(inner, budget, depth + 1);
    if (!found && (index == 0 || hn_is_op(n, "Concat")) && depth < 32 && passes_index(n)) {
      for (uint32_t o = 0; o < n->n_out; o++) {
        int64_t f = n->out[o] ? smallest_table(n->out[o], budget, depth + 1) : 0;
        if (f && (!found || f < found)) found = f;
      }
    }
    if (found && (!best || found < best)) best = found;
  }
  return best;
}

/* Input i in the public order: those without an initializer come first. */
static const hn_value *input_at(const hn_graph *g, uint32_t i) {
  for (int optional = 0; optional < 2; optional++)
    for (size_t k = 0; k < g->inputs.len; k++)
      if ((g->inputs.ptr[k]->constant != NULL) == optional && i-- == 0) return g->inputs.ptr[k];
  return NULL;
}

int64_t hone_model_input_bound(const hone_model *model, uint32_t i) {
  const hn_value *v = model ? input_at(model->graph, i) : NULL;
  int budget = WALK_NODES;
  return v ? smallest_table(v, &budget, 0) : 0;
}

/* ---- what a branch is chosen by */

/* Does the value become the condition of an If? */
static bool decides(const hn_value *v, int *budget, int depth) {
  static const char *const through[] = {"Cast",      "Identity", "Reshape", "Squeeze",
                                        "Unsqueeze", "Not",      "And",     "Or"};
  for (size_t u = 0; u<v->users.len && * budget> 0 && depth < 16; u++) {
    const hone_node *n = v->users.ptr[u].node;
    --*budget;
    if (!n) continue;
    if (hn_is_op(n, "If")) return true;
    for (size_t k = 0; k < sizeof through / sizeof *through; k++)
      if (hn_is_op(n, through[k]) && n->n_out && n->out[0] && decides(n->out[0], budget, depth + 1))
        return true;
  }
  return false;
}

/* A constant of the file, also while a Constant node still makes it. */
static const hone_tensor *constant_of(const hn_value *v) {
  const hone_node *n = v->producer;
  return v->constant ? v->constant : hn_is_op(n, "Constant") ? hone_node_tensor(n, "value") : NULL;
}

/* The constant that an If compares v with. */
static bool compared_with(const hn_value *v, int *budget, int depth, int64_t *out) {
  for (size_t u = 0; u<v->users.len && * budget> 0 && depth < 16; u++) {
    const hone_node *n = v->users.ptr[u].node;
    const uint32_t index = v->users.ptr[u].index;
    --*budget;
    if (!n || !n->n_out || !n->out[0]) continue;
    if (hn_is_op(n, "Equal") && n->n_in == 2 && n->in[1 - index]) {
      const hone_tensor *c = constant_of(n->in[1 - index]);
      if (!c || hone_desc_count(&c->desc) != 1 || c->desc.dtype == HONE_DTYPE_STRING ||
          !decides(n->out[0], budget, 0))
        continue;
      *out = hn_get_i64(c, 0);
      return true;
    }
    if (index == 0 && passes_index(n) && compared_with(n->out[0], budget, depth + 1, out)) return true;
  }
  return false;
}

/* ---- values */

static bool contains(const char *name, const char *word) {
  size_t n = strlen(word);
  for (; name && *name; name++)
    if (strncasecmp(name, word, n) == 0) return true;
  return false;
}

static hone_status fill_strings(hone_string *s, int64_t count, hn_rng *r, hn_arena *arena,
                                hone_error *error) {
  for (int64_t i = 0; i < count; i++) {
    char *text = hn_arena_printf(arena, "s%u", (unsigned)hn_rng_below(r, 1000));
    if (!text) return hn_fail(error, HONE_ERROR_MEMORY, "out of memory for random strings");
    s[i] = (hone_string){text, strlen(text)};
  }
  return HONE_OK;
}

/* hn_rng_normal n times, in blocks that compilers turn into vectors; n is a multiple of a block. */
enum { NORMALS = 8 };
HN_WIDE_BODY void normals_body(uint64_t state, int64_t n, float *restrict out) {
  for (int64_t i = 0; i < n; i += NORMALS, state += NORMALS * 3 * HN_RNG_STEP) {
    uint64_t u[3][NORMALS], sum[NORMALS];
    for (int k = 0; k < 3; k++)
      for (int j = 0; j < NORMALS; j++) u[k][j] = hn_rng_mix(state + (uint64_t)(3 * j + k + 1) * HN_RNG_STEP);
    for (int j = 0; j < NORMALS; j++) sum[j] = 0;
    for (int k = 0; k < 3; k++)
      for (int j = 0; j < NORMALS; j++)
        sum[j] +=
            (u[k][j] & 0xffff) + ((u[k][j] >> 16) & 0xffff) + ((u[k][j] >> 32) & 0xffff) + (u[k][j] >> 48);
    for (int j = 0; j < NORMALS; j++) out[i + j] = hn_rng_as_normal(sum[j]);
  }
}

HN_WIDE(void, normals, normals_body, (uint64_t state, int64_t n, float *restrict out), (state, n, out))

static void fill_normal(hn_rng *r, int64_t n, float *out) {
  const int64_t whole = n / NORMALS * NORMALS;
  normals(r->state, whole, out);
  r->state += (uint64_t)whole * 3 * HN_RNG_STEP;
  for (int64_t i = whole; i < n; i++) out[i] = hn_rng_normal(r);
}

/* Whether so many bytes may be drawn: more than there are would end in swapping, or the process. */
static hone_status fits(const char *name, uint64_t bytes, hone_error *error) {
  const uint64_t available = hn_memory_available(), limit = hn_memory_limit();
  const uint64_t most = limit && (limit < available || !available) ? limit : available;
  if (!most || bytes <= most) return HONE_OK;
  hn_fail(error, HONE_ERROR_MEMORY, "random values need more memory than there is");
  hn_error_where(error, "%s", name ? name : "");
  hn_error_expected(error, "at most %llu MiB, which are available", (unsigned long long)(most >> 20));
  hn_error_got(error, "%llu MiB", (unsigned long long)(bytes >> 20));
  hn_error_hint(error, "a smaller shape or batch (--shape, --batch)");
  return HONE_ERROR_MEMORY;
}

hone_status hone_data_random(const char *name, const hone_tensor_desc *desc, int64_t below, uint64_t seed,
                             hone_data *out, hone_error *error) {
  if (!desc || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_data_random: desc and out may not be NULL");
  *out = (hone_data){0};
  if (!hone_dtype_is_tensor(desc->dtype)) {
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "input '%s' is %s: there are random tensors alone",
            name ? name : "", hone_dtype_name(desc->dtype));
    if (desc->dtype & (HONE_MAP_I64 | HONE_MAP_STRING))
      hn_error_hint(error, "maps are given through the library (hone_items) or Python (dict)");
    else
      hn_error_hint(error, "give it as a file: --input %s=FILE.pb (a %s)", name ? name : "NAME",
                    desc->dtype & HONE_OPTIONAL ? "OptionalProto" : "SequenceProto");
    return HONE_ERROR_UNSUPPORTED;
  }
  hone_tensor_desc d = hone_desc(desc->dtype, desc->rank, desc->dim);
  int64_t count = hone_desc_count(&d), bytes = hone_desc_bytes(&d);
  if (count < 0 || bytes < 0) {
    char text[128];
    hn_fail(error, HONE_ERROR_USAGE, "random values need a known shape");
    hn_error_got(error, "%s %s", name ? name : "", hone_desc_format(desc, text, sizeof text));
    return HONE_ERROR_USAGE;
  }
  const hone_status room = fits(name, (uint64_t)bytes, error);
  if (room != HONE_OK) return room;
  hn_arena *arena = hn_calloc(1, sizeof *arena);
  void *data = arena ? hn_arena_raw(arena, bytes ? (size_t)bytes : 1, HN_MEM_ALIGN) : NULL;
  *out = (hone_data){{d, data}, arena};
  if (!data) {
    hone_data_free(out);
    return hn_fail_memory(error, (uint64_t)bytes, "random inputs");
  }
  if (d.dtype != HONE_DTYPE_F32) memset(data, 0, (size_t)bytes);
  uint64_t name_hash = name ? hn_hash(name, strlen(name), 0) : 0;
  hn_rng r = {seed * 0x9e3779b97f4a7c15u ^ name_hash};
  bool ones = contains(name, "mask"), zeros = contains(name, "token_type") || contains(name, "segment");
  hone_tensor *t = &out->tensor;
  if (d.dtype == HONE_DTYPE_STRING) {
    hone_status status = fill_strings(data, count, &r, arena, error);
    if (status != HONE_OK) hone_data_free(out);
    return status;
  }
  if (d.dtype == HONE_DTYPE_F32) {
    fill_normal(&r, count, data);
  } else if (hone_dtype_is_float(d.dtype)) {
    for (int64_t i = 0; i < count; i++) hn_set_f64(t, i, hn_rng_normal(&r));
  } else {
    int64_t n = d.dtype == HONE_DTYPE_BOOL ? 2 : below > 0 ? below : d.dtype == HONE_DTYPE_U8 ? 256 : 100;
    for (int64_t i = 0; i < count; i++)
      hn_set_i64(t, i, ones ? 1 : zeros ? 0 : (int64_t)hn_rng_below(&r, (uint64_t)n));
  }
  return HONE_OK;
}

/* The constant of an If that input i is compared with. */
static bool choice(const hone_model *model, uint32_t i, int64_t *out) {
  const hn_value *v = input_at(model->graph, i);
  int budget = WALK_NODES;
  return v && !hone_dtype_is_float(v->desc.dtype) && !hn_dtype_points(v->desc.dtype) &&
         compared_with(v, &budget, 0, out);
}

bool hn_data_chooses(const hone_model *model, uint32_t i) {
  int64_t constant;
  return choice(model, i, &constant);
}

hone_status hone_data_for_input(const hone_model *model, uint32_t i, const hone_tensor_desc *desc,
                                uint64_t seed, hone_data *out, hone_error *error) {
  const hn_value *v = model ? input_at(model->graph, i) : NULL;
  if (!v) return hn_fail(error, HONE_ERROR_USAGE, "hone_data_for_input: the model has no input %u", i);
  int64_t value;
  hone_status status = hone_data_random(v->name, desc, hone_model_input_bound(model, i), seed, out, error);
  if (status != HONE_OK || hone_desc_count(desc) != 1 || hone_dtype_is_float(desc->dtype) ||
      hn_dtype_points(desc->dtype) || !choice(model, i, &value))
    return status;
  hn_set_i64(&out->tensor, 0, value);
  return HONE_OK;
}

void hone_data_free(hone_data *data) {
  if (!data) return;
  if (data->impl) {
    hn_arena_free(data->impl);
    hn_free(data->impl);
  }
  *data = (hone_data){0};
}
