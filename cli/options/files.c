/* Output files that appear whole or not at all. */
#include "cli/options/files.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static hone_status io_error(hone_error *error, const char *path, const char *doing) {
  int e = errno;
  *error = (hone_error){.status = HONE_ERROR_IO};
  snprintf(error->what, sizeof error->what, "cannot %s: %s", doing, strerror(e));
  snprintf(error->where, sizeof error->where, "%s", path);
  return HONE_ERROR_IO;
}

static ssize_t put(void *user, const char *data, size_t length) {
  cli_file *file = user;
  if (hone_writer_sink(file->writer, data, length, &file->failed) == HONE_OK) return (ssize_t)length;
  errno = EIO;
  return 0; /* how such a stream is told; file->failed says more */
}

static hone_status begin(cli_file *file, const char *path,
                         hone_status (*open)(const char *, hone_writer **, hone_error *), hone_error *error) {
  *file = (cli_file){0};
  cli_hold(true);
  hone_status status = open(path, &file->writer, error);
  if (status == HONE_OK) {
    file->stream = fopencookie(file, "w", (cookie_io_functions_t){.write = put});
    if (file->stream) return HONE_OK;
    status = io_error(error, path, "create");
    hone_writer_abandon(file->writer);
  }
  cli_hold(false);
  return status;
}

hone_status cli_file_open(cli_file *file, const char *path, hone_error *error) {
  return begin(file, path, hone_writer_open, error);
}

hone_status cli_file_append(cli_file *file, const char *path, hone_error *error) {
  return begin(file, path, hone_writer_append, error);
}

hone_status cli_print_failed(hone_error *error) {
  if (errno != EPIPE) return io_error(error, "standard output", "write");
  *error = (hone_error){.status = HONE_ERROR_IO};
  return HONE_ERROR_IO;
}

static hone_status failed(const cli_file *file, hone_error *error) {
  if (!file->failed.status) return cli_print_failed(error);
  *error = file->failed;
  return error->status;
}

hone_status cli_file_sink(void *user, const char *data, size_t length, hone_error *error) {
  cli_file *file = user;
  return fwrite(data, 1, length, file->stream) == length ? HONE_OK : failed(file, error);
}

void cli_file_abort(cli_file *file) {
  if (!file->stream) return;
  fclose(file->stream);
  file->stream = NULL;
  hone_writer_abandon(file->writer);
  cli_hold(false);
}

hone_status cli_file_commit(cli_file *file, hone_error *error) {
  hone_status status = HONE_OK;
  if (fflush(file->stream) != 0 || ferror(file->stream)) {
    status = failed(file, error);
    cli_file_abort(file);
    return status;
  }
  fclose(file->stream);
  file->stream = NULL;
  status = hone_writer_commit(file->writer, error);
  cli_hold(false);
  return status;
}

hone_status cli_make_folder(const char *path, size_t *made, hone_error *error) {
  char part[4096];
  int n = snprintf(part, sizeof part, "%s", path);
  *made = 0;
  if (n <= 0 || n >= (int)sizeof part) {
    errno = ENAMETOOLONG;
    return io_error(error, path, "create the folder");
  }
  for (char *p = part + 1;; p++) {
    if (*p != '/' && *p) continue;
    char c = *p;
    struct stat st;
    *p = 0;
    if (mkdir(part, 0777) == 0) {
      if (!*made) *made = (size_t)(p - part);
    } else {
      if (errno == EEXIST && stat(part, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR;
      if (errno != EEXIST) {
        const hone_status status = io_error(error, part, "create the folder");
        cli_drop_folder(path, *made);
        *made = 0;
        return status;
      }
    }
    if (!c) return HONE_OK;
    *p = c;
  }
}

void cli_drop_folder(const char *path, size_t made) {
  char part[4096];
  if (!made || snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return;
  for (size_t n = strlen(part); n >= made; n--) {
    if (part[n] && part[n] != '/') continue;
    part[n] = 0;
    if (rmdir(part) != 0 && errno != ENOENT) return; /* holds what was there, or what was asked for */
  }
}

hone_status cli_keep_inputs(const cli_args *args, const char *output, hone_error *error) {
  struct stat out, in;
  if (!output || stat(output, &out) != 0 || !S_ISREG(out.st_mode)) return HONE_OK;
  for (size_t i = 0; i < args->rest.n; i++) {
    if (stat(args->rest.item[i], &in) != 0 || in.st_dev != out.st_dev || in.st_ino != out.st_ino) continue;
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what, "would be written over while it is the input");
    snprintf(error->where, sizeof error->where, "%.200s", output);
    snprintf(error->hint, sizeof error->hint, "give another name");
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

hone_status cli_output_ready(const char *path, hone_error *error) {
  struct stat s;
  if (!path) return HONE_OK;
  const bool there = stat(path, &s) == 0;
  if (there && S_ISDIR(s.st_mode)) {
    errno = EISDIR;
    return io_error(error, path, "write");
  }
  if (there && !S_ISREG(s.st_mode)) return HONE_OK; /* a device or a pipe, written in place */
  char folder[4096];
  const char *slash = strrchr(path, '/');
  const int n =
      snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
  if (n <= 0 || n >= (int)sizeof folder) {
    errno = ENAMETOOLONG;
    return io_error(error, path, "write");
  }
  if (access(folder, W_OK | X_OK) == 0) return HONE_OK;
  const bool missing = errno == ENOENT;
  const hone_status status = io_error(error, path, "write");
  if (missing) snprintf(error->hint, sizeof error->hint, "the folder does not exist");
  return status;
}

void cli_array_name(const char *output, json_t *taken, char *buf, size_t size) {
  static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  char clean[300];
  snprintf(clean, sizeof clean, "%s", output);
  for (char *p = clean; *p; p++)
    if (!strchr(good, *p)) *p = '_';
  snprintf(buf, size, "%s.npy", clean);
  for (int k = 2; json_object_get(taken, buf); k++) snprintf(buf, size, "%s_%d.npy", clean, k);
  json_object_set_new(taken, buf, json_true());
}

hone_status cli_file_json(const char *path, json_t *document, hone_error *error) {
  cli_file file;
  char *text = cli_json_text(document);
  if (!text) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for JSON"};
    return HONE_ERROR_MEMORY;
  }
  hone_status status = cli_file_open(&file, path, error);
  if (status == HONE_OK) status = cli_file_sink(&file, text, strlen(text), error);
  if (status == HONE_OK) status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  free(text);
  return status;
}

hone_status cli_file_report(const char *path, const hone_report_input *input, hone_report_format format,
                            hone_error *error) {
  cli_file file;
  hone_status status = cli_file_open(&file, path, error);
  if (status == HONE_OK) status = hone_report_write(input, format, cli_file_sink, &file, error);
  if (status == HONE_OK) status = cli_file_commit(&file, error);
  if (status != HONE_OK) cli_file_abort(&file);
  return status;
}

hone_status cli_file_reports(const cli_args *args, const hone_report_input *in, const cli_report_file *files,
                             size_t n, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    if (!files[i].path) continue;
    status = cli_keep_inputs(args, files[i].path, error);
    if (status == HONE_OK) status = cli_file_report(files[i].path, in, files[i].format, error);
  }
  return status;
}

/* Text for people: lines fit the terminal. */
static hone_status show(void *user, const char *data, size_t length, hone_error *error) {
  cli_file *file = user;
  char *text = strndup(data, length);
  if (!text) return cli_file_sink(user, data, length, error);
  cli_put(file->stream, text);
  free(text);
  return HONE_OK;
}

int cli_print_report(const hone_report_input *input, hone_report_format format) {
  hone_error error = {0};
  cli_file out = {.stream = stdout};
  cli_progress_end();
  const int begun = cli_flush();
  if (begun) return begun;
  const hone_sink sink = format == HONE_REPORT_TEXT ? show : cli_file_sink;
  hone_report_input here = *input;
  here.width = cli_columns(), here.colors = cli_colors(stdout), here.unicode = cli_unicode();
  if (hone_report_write(&here, format, sink, &out, &error) != HONE_OK) return cli_report(&error);
  return cli_flush();
}
