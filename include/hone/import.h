/* Reading what other tools have measured: trtexec, ONNX Runtime, Ascend's msprof ... and hone itself. Files
 * in, facts out; then everything of hone/insight.h works on them as on hone's own runs. */
#ifndef HONE_IMPORT_H
#define HONE_IMPORT_H

#include <hone/facts.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kind of file that can be read. */
typedef struct hone_import_format {
  const char *name;  /* "trtexec" */
  const char *about; /* one line */
} hone_import_format;

/* The i-th of them, from 0; NULL behind the last. Static storage. */
HONE_API const hone_import_format *hone_import_format_at(size_t i);

typedef struct hone_import_options {
  const char *format; /* name of a format; NULL: found out from each file's first bytes and its name */
  const char *model;  /* what to call the model; NULL: what the files say */
  uint64_t max_bytes; /* of one unpacked file; 0: 64 GiB */
} hone_import_options;

/* Reads `n` files of ONE run into one record: a trtexec profile, its times and its layer information, say.
 * They must all come from one tool. "-" is standard input; gz is unpacked. options may be NULL. The caller
 * owns *facts. A file that is missing, of no known format, damaged or hostile is one error that names the
 * file and the offset or line. Memory is bounded by what is kept, not by the size of the files. Thread safe.
 */
HONE_API hone_status hone_import_files(const char *const *paths, size_t n, const hone_import_options *options,
                                       hone_facts **facts, hone_error *error);

/* The same of one file that lies in memory; `name` stands for its name. Databases (Nsight Systems) must lie
 * in files: HONE_ERROR_UNSUPPORTED. */
HONE_API hone_status hone_import_memory(const char *name, const void *bytes, size_t size,
                                        const hone_import_options *options, hone_facts **facts,
                                        hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
