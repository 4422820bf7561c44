/* The bytes of constants: made late, wherever they lie, and let go of early.
 *
 * Weights are most of a model. Those of a file are read where they are mapped, at any alignment (consumers
 * that need another one copy that tensor alone); a pass that only scales them says by what instead of making
 * a second set; and pages that nobody will read soon are given back. */
#ifndef HN_MODEL_IR_BYTES_H
#define HN_MODEL_IR_BYTES_H

#include "model/ir/graph.h"

#include <string.h>

/* From this size on a constant may lie unaligned in its file, and may be deferred. */
enum { HN_BYTES_LARGE = 64 << 10 };

/* How a weight tensor is cut into runs of elements that belong to one output channel. */
typedef struct hn_runs {
  int64_t length;  /* elements of a run */
  int64_t period;  /* transposed: runs in a row */
  int64_t rows;    /* transposed: rows of a group */
  bool transposed; /* false: run r belongs to channel r */
} hn_runs;

static inline int64_t hn_run_channel(const hn_runs *r, int64_t run) {
  if (!r->transposed) return run;
  return r->rows ? run / r->period / r->rows * r->period + run % r->period : 0;
}

/* f32 numbers that are not computed until somebody needs them: those at `from` (any alignment) times one
 * factor a channel, rounded once. */
typedef struct hn_deferred {
  const void *from;
  hone_dtype type; /* of what lies there: F32, F16 or BF16 */
  int64_t count;
  hn_runs runs;         /* one run of all where there are no factors */
  const double *factor; /* by channel; NULL: none */
} hn_deferred;

static inline uint64_t hn_deferred_bytes(const hn_deferred *d) {
  return (uint64_t)d->count * hone_dtype_size(d->type);
}

/* Computes them; false when a finite number became infinite. */
bool hn_deferred_make(const hn_deferred *d, float *out);

/* The type of 16 bits that the file has of a constant in f32, number for number; NONE: it has another. */
hone_dtype hn_value_was_half(const hn_value *value);

/* Makes the bytes of a deferred constant now, for good, in the model's arena. False: out of memory, or beyond
 * f32's range. */
bool hn_value_make_bytes(const hn_value *value);

/* Number i of f32 numbers at any alignment. */
static inline float hn_f32_at(const void *data, int64_t i) {
  float v;
  memcpy(&v, (const char *)data + (size_t)i * sizeof v, sizeof v);
  return v;
}

/* Whether the bytes lie so that elements can be read through their type. */
bool hn_is_aligned(const hone_tensor *tensor);

/* Lets go of the pages under [p, p + size) when they are those of a file that the model (or the one it was
 * cloned from) maps: they are read again if anybody asks. */
void hn_model_drop_pages(const hn_model *model, const void *p, size_t size);
/* The same for all its files. */
void hn_model_drop_all_pages(const hn_model *model);

/* Elements that are all the same. Of large constants that a model's nodes fill with one number, each shows
 * the beginning of the longest so far. */
typedef struct hn_filled {
  const void *data;
  size_t bytes, item; /* in all, and of an element */
  struct hn_filled *next;
} hn_filled;

/* Such bytes of this very model, at least so many; NULL: it has none. */
const void *hn_model_filled(const hn_model *model, const void *element, size_t item, size_t bytes);
/* Notes that data, which lives as long as the model, is so filled. False: out of memory. */
bool hn_model_note_filled(hn_model *model, const void *data, size_t item, size_t bytes);
/* Whether several constants may have their bytes there. */
bool hn_model_is_filled(const hn_model *model, const void *data);

/* True when the bytes belong to this very model, not to a file or to the model that it was cloned from. */
bool hn_model_owns(const hn_model *model, const void *p);

#endif
