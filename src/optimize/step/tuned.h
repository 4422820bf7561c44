/* Measured choices of tactics: a table from steps to what `hone tune` found, and its file.
 *
 * The file is text. Line 1 is "hone-tactics 1 CHECKSUM"; a line "key KEY" starts the choices of one device,
 * processor, thread count and version; every line below it is one step: CHOSEN <tab>
 * NAME:VERSION:THREADS:SECONDS:SPREAD ... <tab> SIGNATURE, with ":differs" behind the SPREAD of a tactic
 * whose answer was not the others'. What belongs to other keys is kept as it is. A file that is damaged is
 * not used at all. */
#ifndef HN_OPTIMIZE_STEP_TUNED_H
#define HN_OPTIMIZE_STEP_TUNED_H

#include "base/str.h"
#include "optimize/step/backend.h"

/* Canonical text of the work that a step is: anchor, arithmetic, types, shapes, layouts, strides, attributes,
 * epilogue. One line without tabs. */
void hn_step_signature(const hone_step *step, hn_str *out);
/* The same without the sizes of what is not constant, but with the parts of a chain: steps with the same text
 * and the same constants have the same packed weights. */
void hn_step_signature_of_weights(const hone_step *step, hn_str *out);

typedef struct hn_timing {
  const char *tactic;
  int32_t version;
  uint32_t threads; /* 0: all of the device; 1: the step runs on one */
  double seconds;   /* median */
  double spread;    /* half the width of the median's confidence interval, in seconds */
  bool differs;     /* from the answer of the others: never chosen */
} hn_timing;

#define HN_MAX_TIMINGS 64

typedef struct hn_tuned_step {
  const char *signature;
  uint32_t chosen, n;
  const hn_timing *timing;
} hn_tuned_step;

typedef struct hn_tuned hn_tuned;

/* An empty table for that key (one line); NULL when out of memory. */
hn_tuned *hn_tuned_create(const char *key);
void hn_tuned_destroy(hn_tuned *table);
size_t hn_tuned_count(hn_tuned *table);

/* Thread-safe. What was found stays valid until the table is destroyed. */
const hn_tuned_step *hn_tuned_find(hn_tuned *table, const char *signature);
/* Copies; replaces what stood there. False when out of memory. */
bool hn_tuned_put(hn_tuned *table, const hn_tuned_step *step);

/* Adds the choices of this table's key from a file. HONE_OK also when there is no file. A file that cannot be
 * used is HONE_ERROR_INPUT with the reason; the table is then unchanged. */
hone_status hn_tuned_read(hn_tuned *table, const char *path, hone_error *error);
/* Writes the file anew: this table's choices over what the file holds (other processes may have added to it).
 */
hone_status hn_tuned_write(hn_tuned *table, const char *path, hone_error *error);

/* Where an engine's choices come from. */
typedef struct hn_tuned_source {
  char path[4096];   /* "": nowhere */
  char warning[256]; /* why the file was not used; "" */
} hn_tuned_source;
/* The table of a device (there as long as files are read and written), with what its file holds. file NULL:
 * HONE_TUNE_CACHE, or tactics.txt in the user's cache folder; "off": none. NULL only when out of memory. */
hn_tuned *hn_tuned_open(const hn_backend *backend, const hn_device *device, const char *file,
                        hn_tuned_source *source);

#endif
