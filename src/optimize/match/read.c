#include "optimize/match/read.h"

int64_t hn_known_ints(const hn_value *v, int64_t *out, int64_t max) {
  const hone_tensor *t = hn_known(v);
  if (!t || t->desc.rank > 1 || (t->desc.dtype != HONE_DTYPE_I64 && t->desc.dtype != HONE_DTYPE_I32))
    return -1;
  int64_t n = hn_count(t);
  if (n > max) return -1;
  for (int64_t i = 0; i < n; i++) out[i] = hn_get_i64(t, i);
  return n;
}

int64_t hn_node_ints_or_input(const hone_node *n, const char *attr, uint32_t input, int64_t *out, int64_t max,
                              bool *absent) {
  size_t count;
  const int64_t *list = hone_node_ints(n, attr, &count);
  *absent = false;
  if (hone_node_has(n, attr)) {
    if ((int64_t)count > max) return -1;
    for (size_t i = 0; i < count; i++) out[i] = list[i];
    return (int64_t)count;
  }
  if (hn_in(n, input)) return hn_known_ints(n->in[input], out, max);
  *absent = true;
  return 0;
}

bool hn_same_shape(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  if (a->rank < 0 || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dim[i] == HONE_DIM_UNKNOWN || a->dim[i] != b->dim[i]) return false;
  return true;
}

bool hn_broadcasts_into(const hone_tensor_desc *c, const hone_tensor_desc *v) {
  if (c->rank < 0 || v->rank < 0 || c->rank > v->rank) return false;
  for (int32_t i = 1; i <= c->rank; i++) {
    int64_t dc = c->dim[c->rank - i], dv = v->dim[v->rank - i];
    if (dc != 1 && (dc == HONE_DIM_UNKNOWN || dc != dv)) return false;
  }
  return true;
}

bool hn_channel_values(const hn_value *c, int32_t rank, int32_t axis, int64_t n, double *out) {
  const hone_tensor *t = hn_known(c);
  if (!t || t->desc.rank > rank || !hone_dtype_is_float(t->desc.dtype)) return false;
  int64_t count = hn_count(t);
  for (int32_t i = 0; i < t->desc.rank; i++) {
    int32_t at = i + rank - t->desc.rank; /* place in the larger tensor */
    if (t->desc.dim[i] != 1 && (at != axis || t->desc.dim[i] != n)) return false;
  }
  for (int64_t i = 0; i < n; i++) out[i] = hn_get_f64(t, count == 1 ? 0 : i);
  return true;
}

hn_value *hn_behind_views(hn_value *v) {
  while (v && v->producer && v->producer->in[0] &&
         (hn_is_op(v->producer, "Reshape") || hn_is_op(v->producer, "Unsqueeze") ||
          hn_is_op(v->producer, "Squeeze")))
    v = v->producer->in[0];
  return v;
}
