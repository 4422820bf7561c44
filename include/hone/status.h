/* Status codes and the error record that every fallible function of hone fills. */
#ifndef HONE_STATUS_H
#define HONE_STATUS_H

#include <hone/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_status {
  HONE_OK = 0,
  HONE_ERROR_USAGE,       /* the caller's arguments are wrong */
  HONE_ERROR_INPUT,       /* a file or model is malformed or contradicts itself */
  HONE_ERROR_UNSUPPORTED, /* valid, but outside what hone implements (operator, opset, dtype, attribute) */
  HONE_ERROR_MISSING,     /* something is not there: a file, a library, a device */
  HONE_ERROR_IO,          /* reading or writing failed half way */
  HONE_ERROR_MEMORY,      /* an allocation failed or a byte budget is spent */
  HONE_ERROR_BUDGET,      /* the deadline or node budget is spent */
  HONE_ERROR_CANCELLED,   /* the run was cancelled */
  HONE_ERROR_DEVICE,      /* the device reported a fault */
  HONE_ERROR_INTERNAL     /* a broken promise inside hone: a bug */
} hone_status;

/* What went wrong, in parts, so that every front end can print it in its own way.
 * All strings are NUL-terminated and may be empty. Zero-initialise before use; only failing calls write it.
 */
typedef struct hone_error {
  hone_status status;
  char what[320];     /* the fact: "Conv has 4 input channels, its weights expect 3" */
  char where[256];    /* file, byte offset, node or tensor: "m.onnx: node 'conv1' (Conv)" */
  char expected[160]; /* what was expected, when that is not obvious */
  char got[160];      /* what was found */
  char hint[320];     /* what the user can do */
} hone_error;

/* Short lower-case name of a status: "bad input". Static storage. */
HONE_API const char *hone_status_name(hone_status status);

/* Process exit code that the command line uses for a status (see docs/reference/exit-codes.md):
 * 0 good, 2 usage, 3 bad input, 4 missing on this machine, 6 resources or device, 130 cancelled. */
HONE_API int hone_status_exit_code(hone_status status);

/* Writes the whole error as one line into buf (always terminated); returns the length that was needed. */
HONE_API unsigned long hone_error_format(const hone_error *error, char *buf, unsigned long size);

#ifdef __cplusplus
}
#endif
#endif
