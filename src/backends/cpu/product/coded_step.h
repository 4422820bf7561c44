/* What the tactics of products by coded weights share, of MatMulNBits and of MatMul and Gemm by constants of
 * f16 and bf16: the step as they read it, and the blob, which holds the codes in panels (kernels/coded). All
 * of them pack alike, so that plans for few and for many rows have one copy. */
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
  int64_t bits;          /* of the file's codes; those of 2 bits are kept in 4; 16: floats, of all of K */
  int64_t bf16, turned;  /* of these: bf16, not f16; the file has [N][K], not [K][N] */
  int64_t bias;          /* the operator's own: its input, or 0 */
  int64_t block, blocks; /* of the file */
  int64_t level;         /* accuracy_level */
  int64_t zeros;         /* 0: none, 1: codes, 2: floats */
  int64_t bytes;         /* of the blob, panels at HN_CODED_HEAD */
} hn_coded_step;

typedef bool (*hn_coded_describe)(const hone_step *s, const hone_machine *m, hn_coded_step *d,
                                  hone_reason *why);
bool hn_coded_describe_nbits(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why);
bool hn_coded_describe_matmul(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why);
bool hn_coded_describe_gemm(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why);
/* Blob and packed inputs. */
void hn_coded_need(const hn_coded_step *d, hone_tactic_need *n);
/* Everything behind the head; with the head, where that is *d alone. */
void hn_coded_pack(const hn_coded_step *d, const hone_step *s, void *blob);
hone_status hn_coded_fill(hn_coded_step *d, const hone_step *s, void *blob, hone_error *error);
/* hone_tactic_desc.shared of all these tactics of one operator: one function, and so one key. */
size_t hn_coded_shared_nbits(const hone_step *s, const hone_machine *m, uint64_t *key);
size_t hn_coded_shared_matmul(const hone_step *s, const hone_machine *m, uint64_t *key);
size_t hn_coded_shared_gemm(const hone_step *s, const hone_machine *m, uint64_t *key);

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
const float *hn_coded_bias(const hn_coded_step *d, const hone_step_run *r);
/* The run's epilogue, for kernels that do none of it themselves; and its way over a block of results. */
void hn_coded_bind(const hn_coded_step *d, const hone_step_run *r, hn_epilogue *e);
void hn_coded_finish(const hn_coded_step *d, const hn_epilogue *e, float *y, int64_t from, int64_t end);
/* Columns of a task, multiples of four panels: a few tasks a thread. */
int64_t hn_coded_columns(const hn_coded_step *d, uint32_t threads);

/* The tactics, of each operator: few rows, many rows, and many rows as products of three bf16 parts. */
typedef struct hn_coded_config {
  hn_coded_describe describe;
} hn_coded_config;
typedef hn_coded_config hn_coded_few_config, hn_coded_tiles_config, hn_coded_bf16x6_config;

HN_FAMILY_PACKED(hn_coded_few);
HN_FAMILY_PACKED(hn_coded_tiles);
HN_FAMILY_COUNTED(hn_coded_bf16x6);

/* MORE: further functions of the family; those of the descriptor follow it. */
#define HN_CODED_TACTIC(NAME, ANCHOR, VERSION, FAMILY, OPERATOR, MORE, ...)                                  \
  HN_TACTIC_CONFIGURED(NAME, FAMILY, hn_coded_describe_##OPERATOR)                                           \
  HN_TACTIC_NEED(NAME, FAMILY)                                                                               \
  HN_TACTIC_PREPACK(NAME, FAMILY)                                                                            \
  MORE HN_TACTIC(cpu, NAME, ANCHOR, VERSION, .accepts = NAME##_accepts, .cost = NAME##_cost,                 \
                 .need = NAME##_need, .prepack = NAME##_prepack, .run = NAME##_run,                          \
                 .shared = hn_coded_shared_##OPERATOR, __VA_ARGS__)
#define hn_cpu_coded_few_tactic(NAME, ANCHOR, OPERATOR)                                                      \
  HN_CODED_TACTIC(NAME, ANCHOR, 2, hn_coded_few, OPERATOR, , .work = NULL)
#define hn_cpu_coded_tiles_tactic(NAME, ANCHOR, OPERATOR)                                                    \
  HN_CODED_TACTIC(NAME, ANCHOR, 1, hn_coded_tiles, OPERATOR, , .work = NULL)
#define hn_cpu_coded_bf16x6_tactic(NAME, ANCHOR, OPERATOR)                                                   \
  HN_CODED_TACTIC(NAME, ANCHOR, 1, hn_coded_bf16x6, OPERATOR, HN_TACTIC_WORK(NAME, hn_coded_bf16x6),         \
                  .work = NAME##_work)

#endif
