/* What passes, patterns and finders ask of nodes, values and constants. */
#ifndef HN_OPTIMIZE_MATCH_READ_H
#define HN_OPTIMIZE_MATCH_READ_H

#include "model/ir/bytes.h"
#include "model/ir/graph.h"
#include "model/ops/common/op.h"

#include <string.h>

/* Input i, or NULL. */
static inline hn_value *hn_in(const hone_node *n, uint32_t i) { return i < n->n_in ? n->in[i] : NULL; }
/* The value's bytes when it is a constant that nobody can override; else NULL. */
static inline const hone_tensor *hn_known(const hn_value *v) {
  return v && v->constant && !v->is_input && hn_value_make_bytes(v) ? v->constant : NULL;
}
/* The same when its descriptor is enough: the bytes of a deferred constant stay unmade (data is NULL). */
static inline const hone_tensor *hn_known_desc(const hn_value *v) {
  return v && v->constant && !v->is_input ? v->constant : NULL;
}
/* v without the views that made it of values in the same order. */
hn_value *hn_behind_views(hn_value *v);
/* f32 or f64: what folding computes with. */
static inline bool hn_foldable_float(hone_dtype d) { return d == HONE_DTYPE_F32 || d == HONE_DTYPE_F64; }
/* Integers of a known value of rank 0 or 1 into out[max]; their number, or -1. */
int64_t hn_known_ints(const hn_value *v, int64_t *out, int64_t max);
/* Ints from an attribute, or from input `input` (newer opsets): their number, -1 when not known; 0 with
 * *absent set when neither is there. */
int64_t hn_node_ints_or_input(const hone_node *n, const char *attr, uint32_t input, int64_t *out, int64_t max,
                              bool *absent);
/* Same known rank, and every dimension the same number or the same symbol. */
bool hn_same_shape(const hone_tensor_desc *a, const hone_tensor_desc *b);
/* True when broadcasting `c` against the value `v` leaves v's shape as it is, whatever its unknown dimensions
 * are. */
bool hn_broadcasts_into(const hone_tensor_desc *c, const hone_tensor_desc *v);
/* A constant that varies along dimension `axis` of a tensor of rank `rank` at most: its values there, as
 * doubles in out[n] (a scalar is repeated). False when it varies along another dimension or is not known. */
bool hn_channel_values(const hn_value *c, int32_t rank, int32_t axis, int64_t n, double *out);

#endif
