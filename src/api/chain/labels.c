#include "api/chain/labels.h"

#include "base/error.h"
#include "base/os.h"

#include <string.h>

hone_status hn_chain_labels_read(hone_chain *c, const hn_stage *s, const char *path, hn_chain_labels *out,
                                 hone_error *error) {
  hn_file file;
  *out = (hn_chain_labels){0};
  hone_status status = hn_file_map(path, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s: line %d, column %d, stage '%s'", c->path, s->place.line, s->place.column,
                   s->name);
    return status;
  }
  uint32_t lines = 0;
  for (size_t i = 0; i < file.size; i++) lines += file.data[i] == '\n' || i + 1 == file.size;
  out->text = HN_NEW_ARRAY(&c->keep, const char *, (size_t)lines + 2);
  status = out->text ? HONE_OK : hn_fail_memory(error, lines * sizeof *out->text, "labels");
  for (size_t at = 0; at < file.size && status == HONE_OK;) {
    const char *line = (const char *)file.data + at, *end = memchr(line, '\n', file.size - at);
    size_t n = end ? (size_t)(end - line) : file.size - at;
    at += n + 1;
    if (n && line[n - 1] == '\r') n--;
    if (!(out->text[out->n++] = hn_arena_strndup(&c->keep, line, n)))
      status = hn_fail_memory(error, n, "labels");
  }
  hn_file_unmap(&file);
  return status;
}

const char *hn_chain_label(const hn_chain_labels *labels, int64_t class_id) {
  return class_id >= 0 && class_id < (int64_t)labels->n ? labels->text[class_id] : NULL;
}
