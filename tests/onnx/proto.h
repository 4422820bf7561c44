/* A tiny protobuf writer for tests: messages are nested by writing into a buffer of their own. */
#ifndef TESTS_ONNX_PROTO_H
#define TESTS_ONNX_PROTO_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct proto {
  uint8_t *ptr;
  size_t len, cap;
} proto;

static inline void p_raw(proto *p, const void *data, size_t n) {
  if (p->len + n > p->cap) {
    p->cap = (p->len + n) * 2 + 64;
    p->ptr = realloc(p->ptr, p->cap);
    if (!p->ptr) abort();
  }
  if (n) memcpy(p->ptr + p->len, data, n);
  p->len += n;
}

static inline void p_varint(proto *p, uint64_t v) {
  for (; v >= 0x80; v >>= 7) p_raw(p, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
  p_raw(p, &(uint8_t){(uint8_t)v}, 1);
}

static inline void p_int(proto *p, uint32_t field, int64_t v) {
  p_varint(p, field << 3);
  p_varint(p, (uint64_t)v);
}

static inline void p_bytes(proto *p, uint32_t field, const void *data, size_t n) {
  p_varint(p, field << 3 | 2);
  p_varint(p, n);
  p_raw(p, data, n);
}

static inline void p_text(proto *p, uint32_t field, const char *s) { p_bytes(p, field, s, strlen(s)); }

/* Appends `inner` as a message and empties it. */
static inline void p_message(proto *p, uint32_t field, proto *inner) {
  p_bytes(p, field, inner->ptr, inner->len);
  inner->len = 0;
}

static inline void p_free(proto *p) {
  free(p->ptr);
  *p = (proto){0};
}

/* ValueInfoProto of a tensor; dims < 0 become the symbol "N". */
static inline void p_value(proto *graph, uint32_t field, const char *name, int dtype, int rank, const int64_t *dims) {
  proto dim = {0}, shape = {0}, tensor = {0}, type = {0}, value = {0};
  for (int i = 0; i < rank; i++) {
    if (dims[i] == -1)
      p_text(&dim, 2, "N");
    else
      p_int(&dim, 1, dims[i]);
    p_message(&shape, 1, &dim);
  }
  p_int(&tensor, 1, dtype);
  p_message(&tensor, 2, &shape);
  p_message(&type, 1, &tensor);
  p_text(&value, 1, name);
  p_message(&value, 2, &type);
  p_message(graph, field, &value);
  p_free(&dim), p_free(&shape), p_free(&tensor), p_free(&type), p_free(&value);
}

/* TensorProto with raw data. */
static inline void p_tensor(proto *out, const char *name, int dtype, int rank, const int64_t *dims, const void *raw, size_t n) {
  for (int i = 0; i < rank; i++) p_int(out, 1, dims[i]);
  p_int(out, 2, dtype);
  p_text(out, 8, name);
  p_bytes(out, 9, raw, n);
}

/* NodeProto; in and out are space-separated names; attr (may be NULL) holds finished AttributeProto fields (number 5). */
static inline void p_node(proto *graph, const char *op, const char *in, const char *out, const char *name, const proto *attr) {
  proto node = {0};
  const char *lists[2] = {in, out};
  for (int k = 0; k < 2; k++)
    for (const char *s = lists[k]; *s;) {
      size_t n = strcspn(s, " ");
      p_bytes(&node, (uint32_t)k + 1, s, n);
      s += n + (s[n] == ' ');
    }
  p_text(&node, 3, name);
  p_text(&node, 4, op);
  if (attr) p_raw(&node, attr->ptr, attr->len);
  p_message(graph, 1, &node);
  p_free(&node);
}

/* ModelProto around a graph. */
static inline void p_model(proto *out, int64_t ir, int64_t opset, proto *graph) {
  proto o = {0};
  p_int(out, 1, ir);
  p_text(out, 2, "test");
  p_message(out, 7, graph);
  p_text(&o, 1, "");
  p_int(&o, 2, opset);
  p_message(out, 8, &o);
  p_free(&o);
}

#endif
