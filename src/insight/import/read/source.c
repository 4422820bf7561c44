#include "insight/import/read/source.h"

#include "base/error.h"
#include "base/late/late.h"
#include "base/late/zlib.h"
#include "base/mem.h"
#include "base/os.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 1 << 18, PACKED = 1 << 16, AHEAD_MOST = 65536 };

typedef struct hn_source_input {
  int file;              /* -1: the bytes below */
  bool owned;            /* the file is to be closed */
  const uint8_t *memory; /* the rest of them */
  size_t left;
  bool packed; /* gz */
  bool ended;  /* nothing more will come */
  z_stream z;
  uint64_t yielded; /* bytes handed to the window so far */
  uint64_t limit;
  uint8_t raw[PACKED];
  uint8_t window[WINDOW];
} input;

static hone_status fail_io(hn_source *s) {
  s->status = hn_fail(s->error, errno == EISDIR ? HONE_ERROR_INPUT : HONE_ERROR_IO, "cannot read: %s",
                      strerror(errno));
  hn_error_where(s->error, "%s", s->path);
  return s->status;
}

/* Up to `room` bytes as they lie in the file; 0 at its end. */
static size_t read_raw(hn_source *s, uint8_t *to, size_t room) {
  input *in = s->input;
  if (in->file < 0) {
    size_t n = room < in->left ? room : in->left;
    memcpy(to, in->memory, n);
    in->memory += n;
    in->left -= n;
    return n;
  }
  size_t n;
  if (hn_file_pull(in->file, to, room, &n, NULL) != HONE_OK && !n) fail_io(s);
  return n;
}

static size_t unpack(hn_source *s, uint8_t *to, size_t room) {
  input *in = s->input;
  in->z.next_out = to;
  in->z.avail_out = (uInt)room;
  while (in->z.avail_out == room && !in->ended && !s->status) {
    if (!in->z.avail_in) {
      in->z.next_in = in->raw;
      in->z.avail_in = (uInt)read_raw(s, in->raw, PACKED);
      if (s->status) break;
      if (!in->z.avail_in) {
        s->status = hn_fail(s->error, HONE_ERROR_INPUT, "the gzip data ends too early");
        hn_error_where(s->error, "%s: offset %llu of the unpacked text", s->path,
                       (unsigned long long)in->yielded);
        hn_error_hint(s->error, "was the file copied completely?");
        break;
      }
    }
    int code = inflate(&in->z, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      /* Another member may follow; anything else behind the last one is padding. */
      if (!in->z.avail_in) {
        in->z.next_in = in->raw;
        in->z.avail_in = (uInt)read_raw(s, in->raw, PACKED);
      }
      if (!in->z.avail_in || in->z.next_in[0] != 0x1f || inflateReset(&in->z) != Z_OK) in->ended = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      s->status = hn_fail(s->error, HONE_ERROR_INPUT, "damaged gzip data: %s",
                          in->z.msg ? in->z.msg : "cannot be unpacked");
      hn_error_where(s->error, "%s: offset %llu of the unpacked text", s->path,
                     (unsigned long long)in->yielded);
    }
  }
  return room - in->z.avail_out;
}

size_t hn_source_ahead(hn_source *s, size_t want) {
  input *in = s->input;
  if (want > AHEAD_MOST) want = AHEAD_MOST;
  size_t have = (size_t)(s->end - s->at);
  if (have >= want || !in || in->ended || s->status) return have;
  memmove(in->window, s->at, have);
  while (have < want && !in->ended && !s->status) {
    size_t n = in->packed ? unpack(s, in->window + have, WINDOW - have)
                          : read_raw(s, in->window + have, WINDOW - have);
    if (!n && !in->packed) in->ended = true;
    have += n;
    in->yielded += n;
    if (in->yielded > in->limit && !s->status) {
      s->status = hn_fail(s->error, HONE_ERROR_INPUT, "the file is larger than the limit of %llu bytes",
                          (unsigned long long)in->limit);
      hn_error_where(s->error, "%s", s->path);
    }
  }
  if (s->status) have = 0;
  s->at = in->window;
  s->end = in->window + have;
  return have;
}

uint64_t hn_source_offset(const hn_source *s) {
  return s->input ? s->input->yielded - (uint64_t)(s->end - s->at) : 0;
}

/* The first bytes tell whether the file is packed, and how the text is encoded. */
static hone_status begin(hn_source *s) {
  input *in = s->input;
  size_t n = read_raw(s, in->raw, PACKED);
  if (n >= 2 && in->raw[0] == 0x1f && in->raw[1] == 0x8b) {
    const hone_status there = hn_late_need(HN_LATE_LIBRARY_ZLIB, s->error);
    if (there != HONE_OK) return there;
    if (inflateInit2(&in->z, 15 + 16) != Z_OK)
      return hn_fail_memory(s->error, sizeof(z_stream), "unpacking gzip");
    in->packed = true;
    in->z.next_in = in->raw;
    in->z.avail_in = (uInt)n;
  } else {
    memcpy(in->window, in->raw, n);
    in->yielded = n;
    s->end = in->window + n;
  }
  size_t have = hn_source_ahead(s, 3);
  if (s->status) return s->status;
  if (have >= 2 && (memcmp(s->at, "\xff\xfe", 2) == 0 || memcmp(s->at, "\xfe\xff", 2) == 0)) {
    hone_status status = hn_fail(s->error, HONE_ERROR_INPUT, "the text is UTF-16");
    hn_error_where(s->error, "%s", s->path);
    hn_error_expected(s->error, "UTF-8");
    hn_error_hint(s->error, "convert it: iconv -f UTF-16 -t UTF-8");
    return status;
  }
  if (have >= 3 && memcmp(s->at, "\xef\xbb\xbf", 3) == 0) s->at += 3;
  return HONE_OK;
}

hone_status hn_source_open(hn_source *s, const char *path, const void *bytes, size_t size, uint64_t max_bytes,
                           hone_error *error) {
  *s = (hn_source){.path = path, .line = 1, .error = error};
  hone_status status = HONE_OK;
  s->input = hn_calloc(1, sizeof *s->input);
  if (!s->input) return hn_fail_memory(error, sizeof *s->input, "reading a file");
  s->input->file = -1;
  s->input->limit = max_bytes ? max_bytes : (uint64_t)64 << 30;
  s->at = s->end = s->input->window;
  if (bytes) {
    s->input->memory = bytes;
    s->input->left = size;
  } else if (strcmp(path, "-") == 0 || hn_own_descriptor(path) >= 0) {
    /* Whoever gives an open pipe ("<(nsys ...)") wants it to be waited for; a name in a folder is no such
     * wish. */
    s->input->file = path[1] ? hn_own_descriptor(path) : STDIN_FILENO;
  } else {
    uint64_t bytes;
    status = hn_file_open(path, NULL, HN_FILE_PROFILE, &s->input->file, &bytes, error);
    s->input->owned = status == HONE_OK;
  }
  if (status == HONE_OK) status = begin(s);
  if (status) hn_source_close(s);
  return status;
}

void hn_source_close(hn_source *s) {
  if (!s->input) return;
  if (s->input->packed) inflateEnd(&s->input->z);
  if (s->input->owned) close(s->input->file);
  hn_free(s->input);
  *s = (hn_source){0};
}

static hone_status fail_at(const hn_source *s, hone_error *error, const char *unit, uint64_t place,
                           const char *format, va_list ap) {
  if (s->status) return s->status; /* its description stands in s->error, which callers share */
  char what[sizeof error->what];
  vsnprintf(what, sizeof what, format, ap);
  hone_status status = hn_fail(error, HONE_ERROR_INPUT, "%s", what);
  hn_error_where(error, "%s: %s %llu", s->path, unit, (unsigned long long)place);
  return status;
}

hone_status hn_source_fail(const hn_source *s, hone_error *error, uint64_t offset, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  hone_status status = fail_at(s, error, "offset", offset, format, ap);
  va_end(ap);
  return status;
}

hone_status hn_source_fail_line(const hn_source *s, hone_error *error, uint64_t line, const char *format,
                                ...) {
  va_list ap;
  va_start(ap, format);
  hone_status status = fail_at(s, error, "line", line, format, ap);
  va_end(ap);
  return status;
}
