#include "model/onnx/wire.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* A second reader of the same message; it has nowhere to tell errors. */
static hn_pb again(const hn_pb *m, hn_pb_source *scratch) {
  *scratch = (hn_pb_source){.name = "", .data = m->source->data, .size = m->source->size};
  hn_pb copy = *m;
  copy.source = scratch;
  hn_pb_rewind(&copy);
  return copy;
}

static bool utf8_valid(const uint8_t *s, size_t n) {
  for (size_t i = 0; i < n;) {
    uint8_t b = s[i++];
    if (b < 0x80) continue;
    int more = b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : 1;
    if (b < 0xc2 || b > 0xf4 || (size_t)more > n - i) return false;
    uint32_t c = b & (0x3fu >> more);
    for (int k = 0; k < more; k++, i++) {
      if ((s[i] & 0xc0) != 0x80) return false;
      c = c << 6 | (s[i] & 0x3fu);
    }
    if ((more == 2 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
        (more == 3 && (c < 0x10000 || c > 0x10ffff)))
      return false;
  }
  return true;
}

/* "graph.node[3]'conv1'.attribute[0]'pads'". A message knows only its parent and its first byte: its index is
 * counted by reading the parent again, which costs nothing as long as nothing fails. */
static size_t path(const hn_pb *m, char *buf, size_t size) {
  if (!m->as || !m->parent) return 0;
  size_t n = path(m->parent, buf, size);
  if (n + 1 < size) n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "." : "", m->as->name);
  if (m->as->form == HN_PB_MANY && n + 1 < size) {
    hn_pb_source scratch;
    hn_pb parent = again(m->parent, &scratch), self;
    size_t index = 0;
    for (hn_pb_field f; hn_pb_next(&parent, &f) && f.ptr != m->start;)
      if (f.desc == m->as) index++;
    n += (size_t)snprintf(buf + n, size - n, "[%zu]", index);
    self = again(m, &scratch);
    for (hn_pb_field f; hn_pb_next(&self, &f);) {
      if (strcmp(f.desc->name, "name") != 0 || !utf8_valid(f.ptr, f.len) || n + 1 >= size) continue;
      if (f.len)
        n += (size_t)snprintf(buf + n, size - n, "'%.*s'", f.len < 64 ? (int)f.len : 64, (const char *)f.ptr);
      break;
    }
  }
  return n < size ? n : size - 1;
}

static void vfail(const hn_pb *m, const uint8_t *at, hone_status status, const char *what, va_list ap) {
  hn_pb_source *s = m->source;
  if (s->status != HONE_OK) return;
  s->status = status;
  if (!s->error) return; /* also ends the second reading of a broken message, below */
  char text[sizeof s->error->what], place[192];
  vsnprintf(text, sizeof text, what, ap);
  hn_fail(s->error, status, "%s", text);
  size_t n = path(m, place, sizeof place);
  hn_error_where(s->error, "%s: byte %zu%s%.*s", s->name, (size_t)(at - s->data), n ? ": " : "", (int)n,
                 place);
}

static void fail_at(const hn_pb *m, const uint8_t *at, hone_status status, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
static void fail_at(const hn_pb *m, const uint8_t *at, hone_status status, const char *what, ...) {
  va_list ap;
  va_start(ap, what);
  vfail(m, at, status, what, ap);
  va_end(ap);
}

hone_status hn_pb_fail(const hn_pb *m, hone_status status, const char *what, ...) {
  va_list ap;
  va_start(ap, what);
  vfail(m, m->start, status, what, ap);
  va_end(ap);
  return m->source->status;
}

hone_status hn_pb_no_memory(const hn_pb *m) {
  return hn_pb_fail(m, HONE_ERROR_MEMORY, "out of memory while reading the model");
}

void hn_pb_begin(hn_pb *m, hn_pb_source *source, hn_pb_message_id id) {
  *m = (hn_pb){.source = source,
               .desc = &hn_pb_messages[id],
               .start = source->data,
               .at = source->data,
               .end = source->data + source->size};
}

bool hn_pb_open(hn_pb *m, const hn_pb *parent, const hn_pb_field *f) {
  *m = (hn_pb){.source = parent->source,
               .parent = parent,
               .desc = &hn_pb_messages[f->desc->holds],
               .as = f->desc,
               .start = f->ptr,
               .at = f->ptr,
               .end = f->ptr + f->len,
               .depth = parent->depth + 1};
  if (m->depth < HN_PB_DEPTH) return true;
  /* Without the path: it would be hundreds of names long. */
  hn_pb outermost = *m;
  outermost.as = NULL;
  fail_at(&outermost, m->start, HONE_ERROR_INPUT, "messages are nested more than %d deep", HN_PB_DEPTH);
  return false;
}

static bool long_varint(const uint8_t **p, const uint8_t *end, uint64_t *value) {
  uint64_t v = 0;
  const uint8_t *q = *p;
  for (int shift = 0; shift < 70 && q < end; shift += 7) {
    uint8_t b = *q++;
    if (shift == 63 && b > 1) return false;
    v |= (uint64_t)(b & 0x7f) << shift;
    if (!(b & 0x80)) {
      *p = q;
      *value = v;
      return true;
    }
  }
  return false;
}

/* Reads a varint of at most 10 bytes below end; most have one. */
static inline bool varint(const uint8_t **p, const uint8_t *end, uint64_t *value) {
  if (*p == end || **p & 0x80) return long_varint(p, end, value);
  *value = *(*p)++;
  return true;
}

uint64_t hn_pb_varint(const uint8_t **p) {
  uint64_t v = 0;
  varint(p, *p + 10, &v);
  return v;
}

static uint64_t little_endian(const uint8_t *p, int n) {
  uint64_t v = 0;
  for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

/* The wire types in which a form may come: the second one is for packed numbers. */
static bool form_fits(uint8_t form, hn_pb_wire wire) {
  switch ((hn_pb_form)form) {
  case HN_PB_INT: return wire == HN_PB_VARINT;
  case HN_PB_FLOAT: return wire == HN_PB_FIXED32;
  case HN_PB_INTS: return wire == HN_PB_VARINT || wire == HN_PB_LENGTH;
  case HN_PB_FLOATS: return wire == HN_PB_FIXED32 || wire == HN_PB_LENGTH;
  case HN_PB_DOUBLES: return wire == HN_PB_FIXED64 || wire == HN_PB_LENGTH;
  default: return wire == HN_PB_LENGTH;
  }
}

/* These bytes are no protobuf. */
static bool damaged(const hn_pb *m, const uint8_t *at, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
static bool damaged(const hn_pb *m, const uint8_t *at, const char *what, ...) {
  va_list ap;
  va_start(ap, what);
  vfail(m, at, HONE_ERROR_INPUT, what, ap);
  va_end(ap);
  hn_error_hint(m->source->error, "the file is damaged, or it is no ONNX model: get it again");
  return false;
}

/* Reads tag and value; the value is complete inside the message when this returns true. */
static bool read_field(hn_pb *m, hn_pb_field *f) {
  const uint8_t *tag_at = m->at;
  uint64_t tag, length;
  if (!varint(&m->at, m->end, &tag) || tag >> 32) {
    return damaged(m, tag_at, "not a protobuf field");
  }
  *f = (hn_pb_field){.number = (uint32_t)(tag >> 3), .wire = (hn_pb_wire)(tag & 7)};
  if (f->number < sizeof m->desc->field / sizeof *m->desc->field) f->desc = m->desc->field[f->number];
  const char *name = f->desc ? f->desc->name : "an unknown field";
  size_t left = (size_t)(m->end - m->at);
  switch (f->number ? (int)f->wire : -1) {
  case HN_PB_VARINT:
    if (varint(&m->at, m->end, &f->value)) return true;
    break;
  case HN_PB_FIXED32:
  case HN_PB_FIXED64: {
    size_t n = f->wire == HN_PB_FIXED32 ? 4 : 8;
    if (left < n) break;
    f->ptr = m->at;
    f->value = little_endian(m->at, (int)n);
    m->at += n;
    return true;
  }
  case HN_PB_LENGTH:
    if (!varint(&m->at, m->end, &length)) break;
    left = (size_t)(m->end - m->at);
    if (length > left) {
      fail_at(m, tag_at, HONE_ERROR_INPUT, "%s of %s is %llu bytes long, but only %zu are left", name,
              m->desc->name, (unsigned long long)length, left);
      if (!m->as)
        hn_error_hint(m->source->error, "the file is cut off, or it is no ONNX model: get it again");
      return false;
    }
    f->ptr = m->at;
    f->len = (size_t)length;
    m->at += length;
    return true;
  default: return damaged(m, tag_at, "not a protobuf field");
  }
  return damaged(m, tag_at, "%s of %s is cut off", name, m->desc->name);
}

bool hn_pb_next(hn_pb *m, hn_pb_field *f) {
  while (m->source->status == HONE_OK && m->at < m->end) {
    const uint8_t *tag_at = m->at;
    if (!read_field(m, f)) return false;
    if (f->desc) {
      if (form_fits(f->desc->form, f->wire)) return true;
      fail_at(m, tag_at, HONE_ERROR_INPUT, "%s of %s has wire type %d", f->desc->name, m->desc->name,
              (int)f->wire);
      return false;
    }
    if (!m->desc->skip_unknown) {
      fail_at(m, tag_at, HONE_ERROR_UNSUPPORTED, "%s has the field %u, which hone does not know",
              m->desc->name, f->number);
      hn_error_hint(m->source->error, "the model needs a newer reader, or the file is damaged");
      return false;
    }
  }
  return false;
}

size_t hn_pb_count(const hn_pb *m, const hn_pb_field *f) {
  if (f->wire != HN_PB_LENGTH) return 1;
  if (f->desc->form != HN_PB_INTS) {
    size_t size = f->desc->form == HN_PB_FLOATS ? 4 : 8;
    if (f->len % size == 0) return f->len / size;
    fail_at(m, f->ptr, HONE_ERROR_INPUT, "%s of %s is %zu bytes long, no multiple of %zu", f->desc->name,
            m->desc->name, f->len, size);
    return SIZE_MAX;
  }
  size_t n = 0;
  uint64_t v;
  for (const uint8_t *p = f->ptr, *end = p + f->len; p < end; n++)
    if (!varint(&p, end, &v)) {
      damaged(m, p, "a number in %s of %s is cut off", f->desc->name, m->desc->name);
      return SIZE_MAX;
    }
  return n;
}

void hn_pb_ints(const hn_pb_field *f, int64_t *out) {
  if (f->wire != HN_PB_LENGTH) {
    *out = (int64_t)f->value;
    return;
  }
  for (const uint8_t *p = f->ptr, *end = p + f->len; p < end;) *out++ = (int64_t)hn_pb_varint(&p);
}

void hn_pb_fixed(const hn_pb_field *f, void *out) {
  size_t size = f->wire == HN_PB_FIXED32 ? 4 : f->wire == HN_PB_FIXED64 ? 8 : f->len;
  if (size) memcpy(out, f->ptr, size);
}

char *hn_pb_name(const hn_pb *m, const hn_pb_field *f, hn_arena *arena) {
  if (f->desc->form == HN_PB_STRING && (memchr(f->ptr, 0, f->len) || !utf8_valid(f->ptr, f->len))) {
    fail_at(m, f->ptr, HONE_ERROR_INPUT, "%s of %s is not UTF-8 text", f->desc->name, m->desc->name);
    return NULL;
  }
  char *s = hn_arena_strndup(arena, (const char *)f->ptr, f->len);
  if (!s) hn_pb_no_memory(m);
  return s;
}
