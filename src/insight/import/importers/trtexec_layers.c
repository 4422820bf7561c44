#include "insight/import/importers/trtexec_layers.h"

#include "insight/import/common/ops.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { DIMS = 16, NODES_MOST = 4096 };

/* ---- names ---- */

const char *hn_trt_name(hn_import *in, const char *name) {
  char *copy = hn_arena_strdup(&in->arena, name);
  if (!copy) return NULL;
  for (char *p = copy; *p; p++)
    if (*p == 0x1e || *p == 0x1f) *p = ' ';
  char *suffix = strstr(copy, " [profile ");
  for (char *next = suffix; next; next = strstr(next + 1, " [profile ")) suffix = next;
  if (suffix && strspn(suffix + 10, "0123456789") + 11 == strlen(suffix) && hn_text_ends(suffix, "]"))
    *suffix = 0;
  return copy;
}

typedef struct names {
  hn_import *in;
  const char *list[NODES_MOST];
  size_t count;
} names;

static bool is_parameter(const char *name, size_t n) {
  static const char *const ends[] = {".weight", ".bias", "_weight", "_bias"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    size_t m = strlen(ends[i]);
    if (n >= m && memcmp(name + n - m, ends[i], m) == 0) return true;
  }
  return false;
}

static void add_name(names *to, const char *name, size_t n) {
  while (n && (*name == ' ' || *name == '\t')) name++, n--;
  while (n && (name[n - 1] == ' ' || name[n - 1] == '\t')) n--;
  if (!n || to->count == NODES_MOST || is_parameter(name, n)) return;
  for (size_t i = 0; i < to->count; i++)
    if (strlen(to->list[i]) == n && memcmp(to->list[i], name, n) == 0) return;
  const char *copy = hn_arena_strndup(&to->in->arena, name, n);
  if (copy) to->list[to->count++] = copy;
}

/* "[ONNX Layer: /x/Conv]" and more of them, whatever stands between. */
static void names_of_metadata(names *to, const char *text) {
  static const char open[] = "[ONNX Layer: ";
  for (const char *p = strstr(text, open); p; p = strstr(p, open)) {
    p += sizeof open - 1;
    /* Names may hold brackets: the end is the one before the next entry. */
    const char *next = strstr(p, open), *end = next ? next : p + strlen(p);
    while (end > p && end[-1] != ']') end--;
    add_name(to, p, end > p ? (size_t)(end - p - 1) : strlen(p));
  }
}

static size_t separator_at(const char *p) {
  static const char *const all[] = {" + ", " || ", ", ", "PWN(", "{ForeignNode[", "...", "]}", ")"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (hn_text_starts(p, all[i])) return strlen(all[i]);
  return 0;
}

/* "w + Conv_1 + PWN(Clip_2)", "a || b", "{ForeignNode[a...b]}". */
static void names_of_name(names *to, const char *p) {
  if (hn_text_starts(p, "Reformatting CopyNode") || hn_text_starts(p, "__myl")) return;
  while (*p) {
    size_t skip = separator_at(p);
    if (skip) {
      p += skip;
      continue;
    }
    if (hn_text_starts(p, "(Unnamed Layer*")) {
      const char *end = strchr(p, ']');
      p = end ? end + 1 : p + strlen(p);
      continue;
    }
    const char *end = p;
    while (*end && !separator_at(end)) end++;
    add_name(to, p, (size_t)(end - p));
    p = end;
  }
  /* Constants' names look like nodes' names: where some tell their operator, the others are left out. */
  size_t kept = 0;
  for (size_t i = 0; i < to->count; i++)
    if (hn_op_of_name(to->list[i], strlen(to->list[i]))) kept++;
  if (!kept || kept == to->count) return;
  kept = 0;
  for (size_t i = 0; i < to->count; i++)
    if (hn_op_of_name(to->list[i], strlen(to->list[i]))) to->list[kept++] = to->list[i];
  to->count = kept;
}

/* The operator that decides the cost of a fused layer, and which of the names it is. */
static const char *heaviest(const names *n, size_t *index) {
  const char *best = NULL;
  *index = 0;
  for (size_t i = 0; i < n->count; i++) {
    const char *op = hn_op_of_name(n->list[i], strlen(n->list[i]));
    if (!op || (best && hn_op_weight(op) <= hn_op_weight(best))) continue;
    best = op;
    *index = i;
  }
  return best;
}

/* ---- tensors ---- */

size_t hn_trt_dims(const hn_jvalue *tensor, int64_t dims[16]) {
  static const char *const keys[] = {"Dimensions", "Shape", "dims", NULL};
  const hn_jvalue *list = hn_jget_any(tensor, keys);
  size_t n = 0;
  if (list && list->kind == HN_JTEXT) return hn_text_dims(list->text, dims, DIMS);
  if (!list || list->kind != HN_JARRAY) return 0;
  for (const hn_jvalue *v = list->first; v && n < DIMS; v = v->next)
    if (v->kind == HN_JNUMBER && v->number > -2 && v->number < 1e15) dims[n++] = (int64_t)v->number;
  return n;
}

static double elements(const int64_t *dims, size_t n) {
  double product = n ? 1 : 0;
  for (size_t i = 0; i < n; i++) product *= dims[i] > 0 ? (double)dims[i] : 0;
  return product;
}

/* "Thirty-two wide channel vectorized row major FP16 format", "Half", "kINT8": the last word that is a type.
 */
static const char *dtype_in(const char *text) {
  const char *found = NULL;
  char word[32];
  while (*text) {
    size_t n = strcspn(text, " ,:()[]");
    if (n && n < sizeof word) {
      memcpy(word, text, n);
      word[n] = 0;
      const char *dtype = hn_text_dtype(word);
      if (dtype) found = dtype;
    }
    text += n;
    if (*text) text++;
  }
  return found;
}

static const char *tensor_format(const hn_jvalue *tensor) {
  static const char *const keys[] = {"Format/Datatype", "Format", NULL};
  const hn_jvalue *v = hn_jget_any(tensor, keys);
  return v && v->kind == HN_JTEXT ? v->text : NULL;
}

static const char *tensor_dtype(const hn_jvalue *tensor) {
  static const char *const keys[] = {"Datatype", "DataType", "Data Type", "Type", NULL};
  const hn_jvalue *v = hn_jget_any(tensor, keys);
  const char *format = tensor_format(tensor), *dtype = v && v->kind == HN_JTEXT ? dtype_in(v->text) : NULL;
  return dtype ? dtype : format ? dtype_in(format) : NULL;
}

typedef struct tensors {
  int64_t first[DIMS]; /* dimensions of the first */
  size_t first_rank;
  double bytes;
  const char *dtype, *format; /* of the first */
  const char *shapes;         /* of all */
} tensors;

static tensors gather(hn_import *in, const hn_jvalue *list) {
  tensors t = {0};
  hn_str shapes = {0};
  if (!list || list->kind != HN_JARRAY) return t;
  for (const hn_jvalue *v = list->first; v; v = v->next) {
    if (v->kind != HN_JOBJECT) continue;
    int64_t dims[DIMS];
    size_t n = hn_trt_dims(v, dims);
    const char *dtype = tensor_dtype(v);
    t.bytes += elements(dims, n) * hn_text_dtype_bytes(dtype);
    if (v == list->first) {
      memcpy(t.first, dims, n * sizeof *dims);
      t.first_rank = n;
      t.dtype = dtype;
      /* Newer versions write the type alone. */
      const char *format = tensor_format(v);
      if (format && !hn_text_dtype(format)) t.format = hn_import_text(in, format);
    }
    if (!n) continue;
    if (shapes.len) hn_str_putc(&shapes, ' ');
    hn_text_put_shape(&shapes, dims, n);
  }
  t.shapes = hn_import_text(in, shapes.ptr);
  hn_str_free(&shapes);
  return t;
}

/* ---- a layer ---- */

static double weights(const hn_jvalue *layer, const char *key, double *count) {
  const hn_jvalue *w = hn_jget(layer, key);
  const char *type = hn_jtext(w, "Type");
  *count = hn_jnumber(w, "Count", 0);
  if (!(*count > 0 && *count < 1e15)) *count = 0;
  return type ? *count * hn_text_dtype_bytes(dtype_in(type)) : 0;
}

static uint64_t counted(double v) { return v > 0 && v < 1e18 ? (uint64_t)v : 0; }

static double product_of(const hn_jvalue *list) {
  double product = 1;
  if (!list || list->kind != HN_JARRAY || !list->count) return 0;
  for (const hn_jvalue *v = list->first; v; v = v->next) product *= v->kind == HN_JNUMBER ? v->number : 0;
  return product;
}

/* Two FLOPs a multiply-add. */
static void cost(const hn_jvalue *layer, const tensors *in, const tensors *out, hone_step_fact *step) {
  double count, bias;
  double weight_bytes = weights(layer, "Weights", &count) + weights(layer, "Bias", &bias);
  const char *op = step->op_type;
  step->weight_bytes = counted(weight_bytes);
  step->bytes = counted(in->bytes + out->bytes + weight_bytes);
  const double kernel = product_of(hn_jget(layer, "Kernel"));
  const bool conv = kernel > 0 || strcmp(op, "Conv") == 0 || strcmp(op, "ConvTranspose") == 0;
  const bool product = conv || strcmp(op, "MatMul") == 0 || strcmp(op, "Gemm") == 0;
  if (!product || in->first_rank < 2 || !out->first_rank) return;
  const double groups = hn_jnumber(layer, "Groups", 1), maps = hn_jnumber(layer, "OutMaps", 0);
  int64_t c = in->first[conv ? 1 : in->first_rank - 1];
  int64_t m = maps > 0 && maps < 1e9 ? (int64_t)maps
                                     : out->first[conv && out->first_rank > 1 ? 1 : out->first_rank - 1];
  if (c > 0 && c <= INT32_MAX) step->channels_in = (int32_t)c;
  if (m > 0 && m <= INT32_MAX) step->channels_out = (int32_t)m;
  double macs = 0;
  if (strcmp(op, "ConvTranspose") == 0)
    macs = elements(in->first, in->first_rank) * (double)m / (groups > 0 ? groups : 1) * kernel;
  else if (conv && kernel > 0 && c > 0)
    macs = elements(out->first, out->first_rank) * (double)c / (groups > 0 ? groups : 1) * kernel;
  else if (!conv && c > 0)
    macs = elements(out->first, out->first_rank) * (double)c;
  step->flops = counted(2 * macs);
}

/* A Shuffle reshapes, transposes or both; only transposing moves data. */
static bool is_identity(const hn_jvalue *permutation) {
  if (!permutation || permutation->kind != HN_JARRAY) return true;
  double at = 0;
  for (const hn_jvalue *v = permutation->first; v; v = v->next, at++)
    if (v->kind != HN_JNUMBER || v->number != at) return false;
  return true;
}

/* "(Unnamed Layer* 3) [Convolution]" and nothing else. */
static const char *type_in_brackets(hn_import *in, const char *name) {
  if (!hn_text_starts(name, "(Unnamed Layer*") || !hn_text_ends(name, "]")) return NULL;
  const char *open = strrchr(name, '[');
  const char *word = open ? hn_arena_strndup(&in->arena, open + 1, strlen(open) - 2) : NULL;
  return word ? hn_op_of_word(word) : NULL;
}

static const char *type_of(hn_import *in, const hn_jvalue *layer, const char *heavy, const char *name) {
  const char *parameter = hn_jtext(layer, "ParameterType"), *type = hn_jtext(layer, "LayerType");
  const char *origin = hn_jtext(layer, "Origin"), *pooling = hn_jtext(layer, "PoolingType");
  if (hn_text_starts(name, "Reformatting CopyNode") || hn_text_starts(name, "Reformat")) return "Reformat";
  if (origin && strcmp(origin, "QDQ") == 0 && heavy) return heavy;
  if (pooling) return strcasecmp(pooling, "MAX") == 0 ? "MaxPool" : "AveragePool";
  if (type && strcmp(type, "Shuffle") == 0)
    return is_identity(hn_jget(layer, "FirstTranspose")) && is_identity(hn_jget(layer, "SecondTranspose"))
               ? "Reshape"
               : "Transpose";
  const char *op = type ? hn_op_of_word(type) : NULL;
  if (parameter && (!op || strcmp(op, "Pointwise") == 0)) {
    const char *better = hn_op_of_word(parameter);
    if (better) op = better;
  }
  /* Generic layers run whatever the graph says. */
  if (heavy && (!op || strcmp(op, "Pointwise") == 0 || strcmp(op, "Conv") == 0)) {
    const bool conv = op && strcmp(op, "Conv") == 0;
    if (!conv || hn_op_weight(heavy) == 5) op = heavy;
  }
  if (strstr(name, "mha")) return "Attention"; /* Myelin's fused attention, whatever it consists of */
  if (op) return op;
  if (type && strcmp(type, "kgen") == 0) return "Pointwise"; /* generated kernels without metadata */
  if (type) return hn_import_text(in, type);
  if ((op = type_in_brackets(in, name))) return op;
  return hn_text_starts(name, "{ForeignNode") || hn_text_starts(name, "__myl") ? "ForeignNode" : "Layer";
}

static const char *epilogue_of(hn_import *in, const hn_jvalue *layer) {
  const char *activation = hn_jtext(layer, "Activation");
  const bool bias = hn_jnumber(layer, "HasBias", 0) > 0;
  const bool relu = hn_jnumber(layer, "HasReLU", 0) > 0;
  char text[64] = "";
  if (activation && strcasecmp(activation, "NONE") != 0)
    for (size_t i = 0; activation[i] && i + 1 < sizeof text; i++)
      text[i] = (char)tolower((unsigned char)activation[i]);
  else if (relu)
    strcpy(text, "relu");
  if (!bias && !*text) return NULL;
  return hn_import_say(in, "%s%s%s", bias ? "bias" : "", bias && *text ? "+" : "", text);
}

hn_trt_layer *hn_trt_layer_make(hn_import *in, const char *name, const hn_jvalue *value) {
  if (value && value->kind == HN_JTEXT) name = value->text;
  if (value && value->kind == HN_JOBJECT) {
    static const char *const keys[] = {"Name", "name", NULL};
    const hn_jvalue *v = hn_jget_any(value, keys);
    name = v && v->kind == HN_JTEXT ? v->text : NULL;
  }
  hn_trt_layer *l = name ? HN_NEW(&in->arena, hn_trt_layer) : NULL;
  if (!l || !(l->name = hn_trt_name(in, name))) return NULL;
  names list, *nodes = &list;
  list.in = in;
  list.count = 0;
  const char *metadata = hn_jtext(value, "Metadata");
  if (metadata) names_of_metadata(nodes, metadata);
  if (!nodes->count) names_of_name(nodes, l->name);
  tensors to = gather(in, hn_jget(value, "Outputs")), from = gather(in, hn_jget(value, "Inputs"));
  const char *type = hn_jtext(value, "LayerType"), *tactic = hn_jtext(value, "TacticName");
  l->step = (hone_step_fact){.op_type = type_of(in, value, heaviest(nodes, &l->anchor), l->name),
                             .tactic = hn_import_text(in, tactic ? tactic : type),
                             .epilogue = epilogue_of(in, value),
                             .dtype = from.dtype ? from.dtype : to.dtype,
                             .shape_in = from.shapes,
                             .shape_out = to.shapes,
                             .layout = from.format,
                             .is_reformat = (type && strcasecmp(type, "Reformat") == 0) ||
                                            hn_text_starts(l->name, "Reformatting CopyNode"),
                             .anchor_node = -1};
  if (!l->step.op_type) return NULL;
  cost(value, &from, &to, &l->step);
  l->nodes =
      hn_arena_memdup(&in->arena, nodes->list, (nodes->count ? nodes->count : 1) * sizeof *nodes->list);
  l->node_count = nodes->count;
  return l->nodes ? l : NULL;
}
