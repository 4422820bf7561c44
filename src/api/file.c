/* Public files: the writer and the opener of base. */
#include <hone/file.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"

#include <unistd.h>

struct hone_writer {
  hn_writer file;
};

static hone_status begin(const char *path, hone_writer **out, const char *function,
                         hone_status (*open)(const char *, hn_writer *, hone_error *), hone_error *error) {
  if (out) *out = NULL;
  if (!path || !out) return hn_fail(error, HONE_ERROR_USAGE, "%s: path and out may not be NULL", function);
  hone_writer *w = hn_calloc(1, sizeof *w);
  if (!w) return hn_fail_memory(error, sizeof *w, "writing a file");
  const hone_status status = open(path, &w->file, error);
  if (status == HONE_OK)
    *out = w;
  else
    hn_free(w);
  return status;
}

hone_status hone_writer_open(const char *path, hone_writer **out, hone_error *error) {
  return begin(path, out, "hone_writer_open", hn_writer_open, error);
}

hone_status hone_writer_append(const char *path, hone_writer **out, hone_error *error) {
  return begin(path, out, "hone_writer_append", hn_writer_append, error);
}

hone_status hone_writer_sink(void *writer, const char *data, size_t length, hone_error *error) {
  hone_writer *w = writer;
  if (!w || (!data && length))
    return hn_fail(error, HONE_ERROR_USAGE, "hone_writer_sink: writer and data may not be NULL");
  return hn_writer_write(&w->file, data, length, error);
}

hone_status hone_writer_commit(hone_writer *w, hone_error *error) {
  if (!w) return hn_fail(error, HONE_ERROR_USAGE, "hone_writer_commit: writer may not be NULL");
  const hone_status status = hn_writer_commit(&w->file, error);
  hn_free(w);
  return status;
}

void hone_writer_abandon(hone_writer *w) {
  if (!w) return;
  hn_writer_abandon(&w->file);
  hn_free(w);
}

void hone_writer_abandon_all(void) { hn_writer_abandon_all(); }

hone_status hone_file_read(const char *path, size_t most, char **data, size_t *size, hone_error *error) {
  int fd;
  uint64_t bytes;
  if (data) *data = NULL;
  if (size) *size = 0;
  if (!path || !data || !size)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_file_read: path, data and size may not be NULL");
  hone_status status = hn_file_open(path, NULL, HN_FILE_PLAN, &fd, &bytes, error);
  if (status != HONE_OK) return status;
  /* Some files of /proc and /sys say that they are empty; what grows meanwhile is read as far as it was. */
  const size_t room = bytes ? (size_t)bytes : most < 4096 ? most : 4096;
  char *text = NULL;
  if (bytes > most) {
    status = hn_fail(error, HONE_ERROR_INPUT, "the file is too large");
    hn_error_expected(error, "at most %zu bytes", most);
    hn_error_got(error, "%llu bytes", (unsigned long long)bytes);
  } else if (!(text = hn_malloc(room + 1))) {
    status = hn_fail_memory(error, room + 1, "a file");
  } else {
    status = hn_file_pull(fd, text, room, size, error);
    text[*size] = 0;
  }
  close(fd);
  if (status == HONE_OK) {
    *data = text;
  } else {
    hn_error_where(error, "%s", path);
    hn_free(text);
    *size = 0;
  }
  return status;
}

void hone_file_free(char *data) { hn_free(data); }

size_t hone_file_begin(const char *path, void *data, size_t room) {
  return path && data ? hn_file_begin(path, data, room) : 0;
}
