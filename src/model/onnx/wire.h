/* Bounded, zero-copy reader of the protobuf wire format, steered by the tables of schema.h.
 *
 * A reader walks the fields of one message inside a block of memory. Every length is checked against the
 * message that encloses it, every known field against its form, and messages may nest only HN_PB_DEPTH deep.
 * The first error is kept in the source with file, byte offset and message path; from then on everything
 * answers "no more fields". */
#ifndef HN_MODEL_ONNX_WIRE_H
#define HN_MODEL_ONNX_WIRE_H

#include "base/arena.h"
#include "model/onnx/schema.h"

#include <hone/status.h>

enum { HN_PB_DEPTH = 100 }; /* as protobuf's own default */

typedef enum hn_pb_wire {
  HN_PB_VARINT = 0,
  HN_PB_FIXED64 = 1,
  HN_PB_LENGTH = 2,
  HN_PB_FIXED32 = 5
} hn_pb_wire;

/* The bytes that are read, and the first thing that went wrong with them. */
typedef struct hn_pb_source {
  const char *name; /* of the file, for errors */
  const uint8_t *data;
  size_t size;
  hone_status status;
  hone_error *error; /* may be NULL */
} hn_pb_source;

/* A message being read. Parents must stay alive and in place: errors print the path through them. */
typedef struct hn_pb {
  hn_pb_source *source;
  const struct hn_pb *parent;
  const hn_pb_message_desc *desc;
  const hn_pb_field_desc *as; /* the parent's field that holds this message; NULL: outermost */
  const uint8_t *start, *at, *end;
  uint32_t depth;
} hn_pb;

typedef struct hn_pb_field {
  const hn_pb_field_desc *desc;
  uint32_t number;
  hn_pb_wire wire;
  uint64_t value;     /* VARINT, FIXED32 and FIXED64 as bits */
  const uint8_t *ptr; /* LENGTH: the bytes */
  size_t len;
} hn_pb_field;

/* Starts at the outermost message, which fills the source. */
void hn_pb_begin(hn_pb *m, hn_pb_source *source, hn_pb_message_id id);
/* Starts at a message held by a field that hn_pb_next of the parent returned. False: nested too deep
 * (recorded). */
bool hn_pb_open(hn_pb *m, const hn_pb *parent, const hn_pb_field *field);
/* Next known field; unknown ones are skipped or refused as the message's table says. False: end or error. */
bool hn_pb_next(hn_pb *m, hn_pb_field *field);
/* Back to the first field. */
static inline void hn_pb_rewind(hn_pb *m) { m->at = m->start; }

/* Elements of a repeated number (packed or a single one); SIZE_MAX and an error for ragged or cut off
 * packing. */
size_t hn_pb_count(const hn_pb *m, const hn_pb_field *field);
/* Decodes them into out[hn_pb_count]: varints as int64_t, or fixed ones as their 4 or 8 bytes. */
void hn_pb_ints(const hn_pb_field *field, int64_t *out);
void hn_pb_fixed(const hn_pb_field *field, void *out);
/* The element at *p of packed varints, for decoding without a buffer; p moves on. */
uint64_t hn_pb_varint(const uint8_t **p);

/* Copy of a STRING or BYTES field, NUL-terminated. NULL and an error: out of memory, or (names only) not
 * UTF-8 or a NUL inside. */
char *hn_pb_name(const hn_pb *m, const hn_pb_field *field, hn_arena *arena);

/* Records an error about this message (the place is added) unless there is one already; returns the status.
 */
hone_status hn_pb_fail(const hn_pb *m, hone_status status, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
hone_status hn_pb_no_memory(const hn_pb *m);

#endif
