/* Writes ONNX files byte by byte, valid or not, for tests and fuzz seeds. Everything lies in one arena that
 * the caller empties with pb_done; running out of memory ends the program. */
#ifndef TESTS_ONNX_PB_H
#define TESTS_ONNX_PB_H

#include "model/onnx/schema.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pb {
  uint8_t *ptr;
  size_t len, cap;
} pb;

void pb_done(void);

/* Fields; return b for chaining. */
pb *pb_raw(pb *b, const void *data, size_t size); /* bytes as they are, no tag */
pb *pb_varint(pb *b, uint64_t v);                 /* no tag */
pb *pb_int(pb *b, uint32_t field, int64_t v);
pb *pb_float(pb *b, uint32_t field, float v);
pb *pb_bytes(pb *b, uint32_t field, const void *data, size_t size);
pb *pb_text(pb *b, uint32_t field, const char *text);
pb *pb_put(pb *b, uint32_t field, const pb *message);
/* Appends n times the same bytes. */
pb *pb_repeat(pb *b, const void *data, size_t size, size_t n);

/* New messages. Lists of names are separated by blanks; "-" is an empty name. */
pb *pb_new(void);
pb *pb_value(const char *name, int dtype,
             const char *dims); /* "2 N ?": known, named, unknown; NULL: no shape */
pb *pb_tensor(const char *name, int dtype, const char *dims, const void *raw, size_t size);
pb *pb_floats(const char *name, const char *dims, size_t n); /* f32 0, 1, 2... as raw_data */
pb *pb_node(const char *op_type, const char *in, const char *out);
pb *pb_attr_int(const char *name, int64_t v);
pb *pb_attr_graph(const char *name, const pb *graph);
pb *pb_function(const char *domain, const char *name, const char *in, const char *out);
/* Model with IR 8, opset 17 and the graph. */
pb *pb_model(const pb *graph);
/* x: f32[2x3] -> nodes -> y: f32[2x3], to be filled with nodes. */
pb *pb_graph(void);

#endif
