/* ONNX's messages as tables (schema.def): numbers for the loader and writer, forms and names for the wire
 * reader. */
#ifndef HN_MODEL_ONNX_SCHEMA_H
#define HN_MODEL_ONNX_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hn_pb_message_id {
  HN_ONNX_NONE = 0,
#define MESSAGE(id, name, policy) HN_ONNX_##id,
#define FIELD(...)
#include "model/onnx/schema.def"
#undef MESSAGE
#undef FIELD
  HN_ONNX_MESSAGES
} hn_pb_message_id;

/* Field numbers: HN_ONNX_NODE_OP_TYPE is 4. */
enum {
#define MESSAGE(...)
#define FIELD(message, id, number, name, form, holds) HN_ONNX_##message##_##id = number,
#include "model/onnx/schema.def"
#undef MESSAGE
#undef FIELD
};

typedef enum hn_pb_form {
  HN_PB_INT,     /* varint, at most once (the last one counts) */
  HN_PB_FLOAT,   /* four bytes, at most once */
  HN_PB_INTS,    /* varints, packed or not */
  HN_PB_FLOATS,  /* four bytes each, packed or not */
  HN_PB_DOUBLES, /* eight bytes each, packed or not */
  HN_PB_STRING,  /* UTF-8, once or repeated */
  HN_PB_BYTES,   /* any bytes, once or repeated */
  HN_PB_ONE,     /* a message, at most once */
  HN_PB_MANY     /* messages */
} hn_pb_form;

typedef struct hn_pb_field_desc {
  uint8_t number, form, holds; /* hn_pb_form, hn_pb_message_id */
  const char *name;
} hn_pb_field_desc;

typedef struct hn_pb_message_desc {
  const char *name;
  bool skip_unknown;
  const hn_pb_field_desc *field[32]; /* by number; NULL: not known */
} hn_pb_message_desc;

extern const hn_pb_message_desc hn_pb_messages[HN_ONNX_MESSAGES];

#endif
