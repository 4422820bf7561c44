/* Output files that appear whole or not at all. */
#include "cli/cli.h"

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
  if (e == ENOSPC) snprintf(error->hint, sizeof error->hint, "free some disk space; nothing was left behind");
  return HONE_ERROR_IO;
}

hone_status cli_file_open(cli_file *file, const char *path, hone_error *error) {
  *file = (cli_file){0};
  struct stat st;
  bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
  int n = snprintf(file->path, sizeof file->path, "%s", path);
  int m = in_place ? 0 : snprintf(file->temporary, sizeof file->temporary, "%s.tmp%ld", path, (long)getpid());
  if (n >= (int)sizeof file->path || m >= (int)sizeof file->temporary) {
    errno = ENAMETOOLONG;
    return io_error(error, path, "create");
  }
  cli_hold(true);
  if (!in_place) cli_temporary(file->temporary, true);
  file->stream = fopen(in_place ? path : file->temporary, "w");
  if (file->stream) return HONE_OK;
  hone_status status = io_error(error, path, "create");
  cli_temporary(file->temporary, false);
  cli_hold(false);
  return status;
}

hone_status cli_file_sink(void *user, const char *data, size_t length, hone_error *error) {
  cli_file *file = user;
  return fwrite(data, 1, length, file->stream) == length ? HONE_OK : io_error(error, file->path, "write");
}

static void close_stream(cli_file *file) {
  fclose(file->stream);
  file->stream = NULL;
}

void cli_file_abort(cli_file *file) {
  if (!file->stream) return;
  close_stream(file);
  if (file->temporary[0]) unlink(file->temporary);
  cli_temporary(file->temporary, false);
  cli_hold(false);
}

hone_status cli_file_commit(cli_file *file, hone_error *error) {
  hone_status status = HONE_OK;
  if (fflush(file->stream) != 0 || ferror(file->stream)) {
    status = io_error(error, file->path, "write");
    cli_file_abort(file);
    return status;
  }
  close_stream(file);
  if (file->temporary[0] && rename(file->temporary, file->path) != 0) {
    status = io_error(error, file->path, "create");
    unlink(file->temporary);
  }
  cli_temporary(file->temporary, false);
  cli_hold(false);
  return status;
}

hone_status cli_make_folder(const char *path, hone_error *error) {
  char part[4096];
  int n = snprintf(part, sizeof part, "%s", path);
  if (n <= 0 || n >= (int)sizeof part) {
    errno = ENAMETOOLONG;
    return io_error(error, path, "create the folder");
  }
  for (char *p = part + 1;; p++) {
    if (*p != '/' && *p) continue;
    char c = *p;
    struct stat st;
    *p = 0;
    if (mkdir(part, 0777) != 0) {
      if (errno == EEXIST && stat(part, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR;
      if (errno != EEXIST) return io_error(error, part, "create the folder");
    }
    if (!c) return HONE_OK;
    *p = c;
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

hone_status cli_file_json(const char *path, json_t *document, hone_error *error) {
  cli_file file;
  char *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(document);
  if (!text) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for JSON"};
    return HONE_ERROR_MEMORY;
  }
  hone_status status = cli_file_open(&file, path, error);
  if (status == HONE_OK) status = cli_file_sink(&file, text, strlen(text), error);
  if (status == HONE_OK) status = cli_file_sink(&file, "\n", 1, error);
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

int cli_print_report(const hone_report_input *input, hone_report_format format) {
  hone_error error = {0};
  cli_file out = {.stream = stdout, .path = "standard output"};
  cli_progress_end();
  if (hone_report_write(input, format, cli_file_sink, &out, &error) != HONE_OK) return cli_report(&error);
  return cli_flush();
}
