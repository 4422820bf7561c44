#include "onnx/pb.h"

#include "base/arena.h"
#include "base/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hn_arena arena;

void pb_done(void) { hn_arena_free(&arena); }

static void *need(void *p) {
  if (p) return p;
  fprintf(stderr, "out of memory\n");
  exit(6);
}

pb *pb_new(void) { return need(HN_NEW(&arena, pb)); }

pb *pb_raw(pb *b, const void *data, size_t size) {
  if (size > b->cap - b->len) {
    size_t cap = (b->len + size) * 2 + 64;
    uint8_t *p = need(hn_arena_alloc(&arena, cap));
    if (b->len) memcpy(p, b->ptr, b->len);
    b->ptr = p;
    b->cap = cap;
  }
  if (size) memcpy(b->ptr + b->len, data, size);
  b->len += size;
  return b;
}

pb *pb_varint(pb *b, uint64_t v) {
  uint8_t out[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (uint8_t)(v | 0x80);
  out[n++] = (uint8_t)v;
  return pb_raw(b, out, n);
}

pb *pb_int(pb *b, uint32_t field, int64_t v) { return pb_varint(pb_varint(b, field << 3), (uint64_t)v); }

pb *pb_float(pb *b, uint32_t field, float v) {
  uint32_t bits = hn_f32_bits(v);
  return pb_raw(pb_varint(b, field << 3 | 5), &bits, 4);
}

pb *pb_bytes(pb *b, uint32_t field, const void *data, size_t size) {
  return pb_raw(pb_varint(pb_varint(b, field << 3 | 2), size), data, size);
}

pb *pb_text(pb *b, uint32_t field, const char *text) { return pb_bytes(b, field, text, strlen(text)); }
pb *pb_put(pb *b, uint32_t field, const pb *m) { return pb_bytes(b, field, m->ptr, m->len); }

pb *pb_repeat(pb *b, const void *data, size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) pb_raw(b, data, size);
  return b;
}

/* Calls what for every blank-separated word. */
static void words(const char *list, void (*what)(pb *b, uint32_t field, const char *word), pb *b,
                  uint32_t field) {
  char word[256];
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, " ");
    snprintf(word, sizeof word, "%.*s", (int)n, p);
    what(b, field, word);
    p += n + (p[n] == ' ');
  }
}

static void name_word(pb *b, uint32_t field, const char *word) {
  pb_text(b, field, strcmp(word, "-") == 0 ? "" : word);
}
static void int_word(pb *b, uint32_t field, const char *word) { pb_int(b, field, strtoll(word, NULL, 10)); }

static void dim_word(pb *b, uint32_t field, const char *word) {
  pb *dim = pb_new();
  if ((*word >= '0' && *word <= '9') || *word == '-')
    pb_int(dim, HN_ONNX_DIM_DIM_VALUE, strtoll(word, NULL, 10));
  else if (*word != '?')
    pb_text(dim, HN_ONNX_DIM_DIM_PARAM, word);
  pb_put(b, field, dim);
}

pb *pb_value(const char *name, int dtype, const char *dims) {
  pb *v = pb_text(pb_new(), HN_ONNX_VALUE_NAME, name),
     *type = pb_int(pb_new(), HN_ONNX_TENSOR_TYPE_ELEM_TYPE, dtype);
  if (dims) {
    pb *shape = pb_new();
    words(dims, dim_word, shape, HN_ONNX_SHAPE_DIM);
    pb_put(type, HN_ONNX_TENSOR_TYPE_SHAPE, shape);
  }
  return pb_put(v, HN_ONNX_VALUE_TYPE, pb_put(pb_new(), HN_ONNX_TYPE_TENSOR_TYPE, type));
}

pb *pb_tensor(const char *name, int dtype, const char *dims, const void *raw, size_t size) {
  pb *t = pb_new();
  words(dims, int_word, t, HN_ONNX_TENSOR_DIMS);
  pb_int(t, HN_ONNX_TENSOR_DATA_TYPE, dtype);
  pb_text(t, HN_ONNX_TENSOR_NAME, name);
  return raw ? pb_bytes(t, HN_ONNX_TENSOR_RAW_DATA, raw, size) : t;
}

pb *pb_floats(const char *name, const char *dims, size_t n) {
  float *v = need(HN_NEW_ARRAY(&arena, float, n));
  for (size_t i = 0; i < n; i++) v[i] = (float)i;
  return pb_tensor(name, 1, dims, v, n * sizeof *v);
}

pb *pb_node(const char *op_type, const char *in, const char *out) {
  pb *n = pb_new();
  words(in, name_word, n, HN_ONNX_NODE_INPUT);
  words(out, name_word, n, HN_ONNX_NODE_OUTPUT);
  return pb_text(n, HN_ONNX_NODE_OP_TYPE, op_type);
}

pb *pb_attr_int(const char *name, int64_t v) {
  return pb_int(pb_int(pb_text(pb_new(), HN_ONNX_ATTRIBUTE_NAME, name), HN_ONNX_ATTRIBUTE_I, v),
                HN_ONNX_ATTRIBUTE_TYPE, 2);
}

pb *pb_attr_graph(const char *name, const pb *graph) {
  return pb_int(pb_put(pb_text(pb_new(), HN_ONNX_ATTRIBUTE_NAME, name), HN_ONNX_ATTRIBUTE_G, graph),
                HN_ONNX_ATTRIBUTE_TYPE, 5);
}

pb *pb_function(const char *domain, const char *name, const char *in, const char *out) {
  pb *f = pb_text(pb_text(pb_new(), HN_ONNX_FUNCTION_NAME, name), HN_ONNX_FUNCTION_DOMAIN, domain);
  words(in, name_word, f, HN_ONNX_FUNCTION_INPUT);
  words(out, name_word, f, HN_ONNX_FUNCTION_OUTPUT);
  return pb_put(f, HN_ONNX_FUNCTION_OPSET_IMPORT, pb_int(pb_new(), HN_ONNX_OPSET_VERSION, 17));
}

pb *pb_model(const pb *graph) {
  pb *m = pb_int(pb_new(), HN_ONNX_MODEL_IR_VERSION, 8);
  pb_put(m, HN_ONNX_MODEL_GRAPH, graph);
  return pb_put(m, HN_ONNX_MODEL_OPSET_IMPORT, pb_int(pb_new(), HN_ONNX_OPSET_VERSION, 17));
}

pb *pb_graph(void) {
  pb *g = pb_text(pb_new(), HN_ONNX_GRAPH_NAME, "g");
  pb_put(g, HN_ONNX_GRAPH_INPUT, pb_value("x", 1, "2 3"));
  return pb_put(g, HN_ONNX_GRAPH_OUTPUT, pb_value("y", 1, "2 3"));
}
