/* Files that appear whole or not at all. */
#ifndef HONE_CLI_FILES_H
#define HONE_CLI_FILES_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>

typedef struct cli_file {
  FILE *stream; /* NULL: closed */
  hone_writer *writer;
  hone_error failed; /* of the first write that failed */
} cli_file;

hone_status cli_file_open(cli_file *file, const char *path, hone_error *error);
/* The same for one that is added to. */
hone_status cli_file_append(cli_file *file, const char *path, hone_error *error);
/* What errno says of writing to standard output; without words where the reader has had enough (head). */
hone_status cli_print_failed(hone_error *error);
/* A hone_sink whose user is a cli_file. */
hone_status cli_file_sink(void *file, const char *data, size_t length, hone_error *error);
/* Closes and puts the file in its place. */
hone_status cli_file_commit(cli_file *file, hone_error *error);
void cli_file_abort(cli_file *file); /* after any error; no-op when closed */
hone_status cli_file_json(const char *path, json_t *document, hone_error *error); /* releases document */
hone_status cli_make_folder(const char *path, size_t *made, hone_error *error);
/* After a failure: removes the folder and its parents as far as cli_make_folder made them and they are empty.
 */
void cli_drop_folder(const char *path, size_t made);
/* HONE_ERROR_USAGE when an output is a file that the command reads. output may be NULL. */
hone_status cli_keep_inputs(const cli_args *args, const char *output, hone_error *error);
/* HONE_ERROR_IO where the file cannot be written: its folder is missing, or it is a folder. Asked before any
 * work is done for it. path may be NULL. */
hone_status cli_output_ready(const char *path, hone_error *error);
/* "boxes/1" -> "boxes_1.npy": every character outside A-Za-z0-9._- becomes _. A name that is taken (keys of
 * `taken`, to which it is added) gets a number. */
void cli_array_name(const char *name, json_t *taken, char *buf, size_t size);
/* A report of insight into a file. */
hone_status cli_file_report(const char *path, const hone_report_input *input, hone_report_format format,
                            hone_error *error);

/* The same for each of n that has a path; none is an input of the command. */
typedef struct cli_report_file {
  const char *path; /* NULL: not wanted */
  hone_report_format format;
} cli_report_file;

hone_status cli_file_reports(const cli_args *args, const hone_report_input *in, const cli_report_file *files,
                             size_t n, hone_error *error);
/* A report of insight to standard output, as wide and as coloured as that wants it. */
int cli_print_report(const hone_report_input *input, hone_report_format format);

#endif
