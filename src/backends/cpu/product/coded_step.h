/* What the tactics of MatMulNBits share: the step as they read it, and the blob, which holds the codes in
 * panels (kernels/coded). All of them pack alike, so that plans for few and for many rows have one copy. */
#ifndef HN_CPU_PRODUCT_CODED_STEP_H
#define HN_CPU_PRODUCT_CODED_STEP_H

#include "backends/cpu/kernels/coded/coded.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

/* Bytes of the blob in front of the panels, as much for all tactics. */
enum { HN_CODED_HEAD = 2048 };

typedef struct hn_coded_step {
  hn_isa isa;
  int64_t m, n, k;
  int64_t bits;          /* of the file's codes; those of 2 bits are kept in 4 */
  int64_t block, blocks; /* of the file */
  int64_t level;         /* accuracy_level */
  int64_t zeros;         /* 0: none, 1: codes, 2: floats */
  int64_t bytes;         /* of the blob, panels at HN_CODED_HEAD */
} hn_coded_step;

bool hn_coded_describe(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why);
/* Blob and packed inputs. */
void hn_coded_need(const hn_coded_step *d, hone_tactic_need *n);
/* Everything behind the head. */
void hn_coded_fill(const hn_coded_step *d, const hone_step *s, void *blob);
/* hone_tactic_desc.shared of all these tactics: one function, and so one key. */
size_t hn_coded_shared(const hone_step *s, const hone_machine *m, uint64_t *key);

hn_coded hn_coded_matrix(const hn_coded_step *d, const hone_step_run *r);

/* One matrix by itself, of which n, bits, block, blocks and zeros are set: bytes of its panels and zero
 * points, their filling (codes and zero points lie as MatMulNBits has them), and the matrix that lies there.
 */
size_t hn_coded_panels_bytes(const hn_coded_step *d);
void hn_coded_put(const hn_coded_step *d, const uint8_t *codes, const float *scales, const void *zeros,
                  uint8_t *panels);
hn_coded hn_coded_at(const hn_coded_step *d, const uint8_t *panels);
/* Bytes of codes, scales and zero points. */
double hn_coded_bytes(const hn_coded_step *d);
/* Seconds in which all threads read them from where they are. */
double hn_coded_reading(const hn_coded_step *d, const hone_machine *m);

/* Floats of A's rows as the kernels read them: whole blocks. Bytes of workspace that this takes, 0: rows lie
 * so. The rows, brought there if need be. */
static inline int64_t hn_coded_row(const hn_coded_step *d) { return d->blocks * d->block; }
size_t hn_coded_rows_bytes(const hn_coded_step *d);
const float *hn_coded_rows_of(const hn_coded_step *d, const float *a, void *workspace);

/* The operator's own bias, or NULL: inputs behind the anchor's are the epilogue's. */
const float *hn_coded_bias(const hone_step_run *r);
/* The run's epilogue, for kernels that do none of it themselves; and its way over a block of results. */
void hn_coded_bind(const hn_coded_step *d, const hone_step_run *r, hn_epilogue *e);
void hn_coded_finish(const hn_coded_step *d, const hn_epilogue *e, float *y, int64_t from, int64_t end);
/* Columns of a task, multiples of four panels: a few tasks a thread. */
int64_t hn_coded_columns(const hn_coded_step *d, uint32_t threads);

#endif
