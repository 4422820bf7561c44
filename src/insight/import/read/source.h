/* The bytes of one foreign file: read through a window, gz unpacked on the way, so that a file of any size
 * takes the same memory. */
#ifndef HN_INSIGHT_IMPORT_SOURCE_H
#define HN_INSIGHT_IMPORT_SOURCE_H

#include <hone/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_SOURCE_EOF = -1 };

typedef struct hn_source {
  const uint8_t *at, *end; /* the window's unread bytes */
  const char *path;        /* for errors; borrowed */
  uint64_t line;           /* of `at`, from 1; counted by those who read lines */
  struct hn_source_input *input;
  hone_status status; /* the first failure of reading or unpacking; then the source is at its end */
  hone_error *error;  /* where that failure is described; may be NULL */
} hn_source;

/* Opens a file ("-" is standard input), or `size` bytes in memory when bytes is not NULL (path then only
 * names them). A byte order mark is skipped; UTF-16 is refused. max_bytes bounds what unpacking may yield (0:
 * 64 GiB). */
hone_status hn_source_open(hn_source *source, const char *path, const void *bytes, size_t size,
                           uint64_t max_bytes, hone_error *error);
void hn_source_close(hn_source *source); /* zeroed: nothing */

/* The number of unread bytes in the window, at least `want` of them (65536 at most) unless the source ends
 * before. */
size_t hn_source_ahead(hn_source *source, size_t want);

/* The next byte without taking it; HN_SOURCE_EOF at the end (or after a failure: see status). */
static inline int hn_source_peek(hn_source *s) {
  return s->at < s->end || hn_source_ahead(s, 1) ? *s->at : HN_SOURCE_EOF;
}

/* Offset of `at` in the unpacked text. */
uint64_t hn_source_offset(const hn_source *source);

/* Records a failure of this file at the current offset, or at a line: "t.json: offset 17". Returns
 * HONE_ERROR_INPUT; when reading itself has failed, that failure instead. */
hone_status hn_source_fail(const hn_source *source, hone_error *error, uint64_t offset, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
hone_status hn_source_fail_line(const hn_source *source, hone_error *error, uint64_t line, const char *format,
                                ...) __attribute__((format(printf, 4, 5)));

#endif
