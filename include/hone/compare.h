/* compare: what got slower, faster, new, gone or fused between two profiles, whatever tools recorded them.
 *
 * Layers are aligned by the ONNX nodes they execute: all layers of both sides that share a node, directly or
 * through others, form one row, so a convolution that swallowed its ReLU stands beside the two steps it
 * replaced. Layers that name no node are aligned by their own name, and what is then left by type, shape and
 * order. Nothing is run; the profiles are only read and must outlive the comparison. */
#ifndef HONE_COMPARE_H
#define HONE_COMPARE_H

#include <hone/insight.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the layers of a row correspond. */
#define HONE_ALIGNMENTS(X)                                                                                   \
  X(ONE, "one")             /* one layer on each side */                                                     \
  X(FUSED, "fused")         /* several before, fewer after */                                                \
  X(SPLIT, "split")         /* fewer before, several after */                                                \
  X(REGROUPED, "regrouped") /* as many on both sides, cut differently */                                     \
  X(NEW, "new")             /* nothing before */                                                             \
  X(GONE, "gone")           /* nothing after */

typedef enum hone_alignment {
#define X(id, word) HONE_ALIGNMENT_##id,
  HONE_ALIGNMENTS(X)
#undef X
} hone_alignment;

/* Its word above. Static storage. */
HONE_API const char *hone_alignment_name(hone_alignment alignment);

/* What became of the time. */
#define HONE_CHANGES(X)                                                                                      \
  X(SAME, "same")     /* no difference that counts */                                                        \
  X(SLOWER, "slower") /* significant, and at least as large as asked for */                                  \
  X(FASTER, "faster")                                                                                        \
  X(UNCLEAR, "unclear") /* differs, but there are no samples that could say whether by chance */

typedef enum hone_change {
#define X(id, word) HONE_CHANGE_##id,
  HONE_CHANGES(X)
#undef X
} hone_change;

/* Its word above. Static storage. */
HONE_API const char *hone_change_name(hone_change change);

/* Times before and after, in milliseconds of a typical iteration (median of its samples). */
typedef struct hone_difference {
  double before_ms, after_ms;
  double delta_ms;  /* after - before */
  double delta_pct; /* of before; 0 when before is 0 */
  double p_value;   /* two-sided rank test on the samples of iterations, or Welch's test where only mean and
                       deviation are known; negative: neither is */
  hone_change change;
} hone_difference;

typedef struct hone_compare_row {
  const char *name; /* of the slowest layer, before if there is one */
  const char *type;
  const char *aligned_by; /* "ONNX node", "name", "type and order"; NULL: new or gone */
  hone_alignment alignment;
  hone_difference time;
  const hone_layer *const *before; /* the layers of each side, in order of execution */
  size_t before_count;
  const hone_layer *const *after;
  size_t after_count;
} hone_compare_row;

typedef struct hone_comparison {
  const hone_profile *before, *after; /* borrowed */
  hone_difference wall;
  const hone_compare_row *rows; /* largest difference in milliseconds first */
  size_t row_count;
  size_t slower, faster, same, unclear; /* rows with both sides, by change */
  size_t added, gone, fused;            /* rows by alignment; fused counts split and regrouped ones too */
  /* Why the figures may not be comparable: other device, batch, precision, tool. */
  const char *const *warnings;
  size_t warning_count;
} hone_comparison;

typedef struct hone_compare_options {
  double alpha;          /* share of false rows that is accepted (false discovery rate); 0: 0.01 */
  double min_effect_pct; /* smaller differences are "same"; 0: 5 */
} hone_compare_options;

/* options may be NULL. HONE_ERROR_USAGE for an option out of range, HONE_ERROR_MEMORY. The caller owns
 * *comparison. */
HONE_API hone_status hone_compare(const hone_profile *before, const hone_profile *after,
                                  const hone_compare_options *options, hone_comparison **comparison,
                                  hone_error *error);
HONE_API void hone_comparison_destroy(hone_comparison *comparison); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
