#include "optimize/passes/common/dims.h"

#include "optimize/passes/common/pass.h"

enum { MAX_DEPTH = 24, MAX_STEPS = 512 };

static int32_t elements(const hn_value *v, hn_dim *out, int depth, int *steps);

static int32_t constant(const hone_tensor *t, hn_dim *out) {
  hone_dtype d = t->desc.dtype;
  if (t->desc.rank > 1 || !(hone_dtype_is_signed_int(d) || hone_dtype_is_unsigned_int(d))) return -1;
  int64_t n = hn_count(t);
  if (n < 0 || n > HN_DIMS_MAX) return -1;
  for (int64_t i = 0; i < n; i++) out[i] = (hn_dim){.known = true, .value = hn_get_i64(t, i)};
  return (int32_t)n;
}

/* Shape, with the start and end of newer opsets. */
static int32_t shape(const hone_node *n, hn_dim *out) {
  const hone_tensor_desc *d = &n->in[0]->desc;
  if (d->rank < 0) return -1;
  int64_t start = hone_node_int(n, "start", 0), end = hone_node_int(n, "end", d->rank);
  start = start < 0 ? start + d->rank : start;
  end = end < 0 ? end + d->rank : end;
  start = start < 0 ? 0 : start > d->rank ? d->rank : start;
  end = end < start ? start : end > d->rank ? d->rank : end;
  for (int64_t i = start; i < end; i++)
    out[i - start] = d->dim[i] >= 0 ? (hn_dim){.known = true, .value = d->dim[i]}
                                    : (hn_dim){.of = n->in[0], .axis = (int32_t)i};
  return (int32_t)(end - start);
}

static int32_t gather(const hone_node *n, hn_dim *out, int depth, int *steps) {
  hn_dim data[HN_DIMS_MAX];
  int64_t index[HN_DIMS_MAX];
  int32_t len = elements(n->in[0], data, depth + 1, steps);
  int64_t count = hn_known_ints(n->in[1], index, HN_DIMS_MAX);
  if (len < 0 || count < 0 || n->in[0]->desc.rank != 1) return -1;
  for (int64_t i = 0; i < count; i++) {
    int64_t at = index[i] < 0 ? index[i] + len : index[i];
    if (at < 0 || at >= len) return -1;
    out[i] = data[at];
  }
  return (int32_t)count;
}

/* Slice of a vector; starts, ends and steps as attributes (opset 1) or inputs. */
static int32_t slice(const hone_node *n, hn_dim *out, int depth, int *steps) {
  hn_dim data[HN_DIMS_MAX];
  int64_t start, end, step = 1;
  bool absent;
  int32_t len = elements(n->in[0], data, depth + 1, steps);
  if (len < 0 || n->in[0]->desc.rank != 1) return -1;
  if (hn_node_ints_or_input(n, "starts", 1, &start, 1, &absent) != 1 ||
      hn_node_ints_or_input(n, "ends", 2, &end, 1, &absent) != 1)
    return -1;
  if (hn_in(n, 4) && hn_known_ints(n->in[4], &step, 1) != 1) return -1;
  if (step != 1) return -1;
  start = start < 0 ? start + len : start;
  end = end < 0 ? end + len : end;
  start = start < 0 ? 0 : start > len ? len : start;
  end = end > len ? len : end < start ? start : end;
  for (int64_t i = start; i < end; i++) out[i - start] = data[i];
  return (int32_t)(end - start);
}

static int32_t concat(const hone_node *n, hn_dim *out, int depth, int *steps) {
  int32_t total = 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    hn_dim part[HN_DIMS_MAX];
    int32_t k = n->in[i] ? elements(n->in[i], part, depth + 1, steps) : -1;
    if (k < 0 || total + k > HN_DIMS_MAX) return -1;
    memcpy(out + total, part, (size_t)k * sizeof *part);
    total += k;
  }
  return total;
}

/* Element by element where both are numbers; x * 1, x / 1, x + 0 and x - 0 keep what x is. */
static int32_t arithmetic(const hone_node *n, char op, hn_dim *out, int depth, int *steps) {
  hn_dim a[HN_DIMS_MAX], b[HN_DIMS_MAX];
  int32_t na = elements(n->in[0], a, depth + 1, steps), nb = elements(n->in[1], b, depth + 1, steps);
  if (na < 0 || nb < 0 || (na != nb && na != 1 && nb != 1)) return -1;
  int32_t count = na == 1 ? nb : na;
  for (int32_t i = 0; i < count; i++) {
    hn_dim x = a[na == 1 ? 0 : i], y = b[nb == 1 ? 0 : i];
    int64_t r = 0;
    out[i] = (hn_dim){.known = false};
    if (x.known && y.known) {
      bool bad = op == '*'   ? __builtin_mul_overflow(x.value, y.value, &r)
                 : op == '+' ? __builtin_add_overflow(x.value, y.value, &r)
                 : op == '-'
                     ? __builtin_sub_overflow(x.value, y.value, &r)
                     : y.value == 0 || (x.value < 0) != (y.value < 0) || (r = x.value / y.value, false);
      if (!bad) out[i] = (hn_dim){.known = true, .value = r};
    } else if (y.known && y.value == (op == '*' || op == '/'))
      out[i] = x;
    else if (x.known && (op == '*' || op == '+') && x.value == (op == '*'))
      out[i] = y;
  }
  return count;
}

static int32_t elements(const hn_value *v, hn_dim *out, int depth, int *steps) {
  if (hn_known(v)) return constant(v->constant, out);
  const hone_node *n = v->producer;
  if (!n || depth > MAX_DEPTH || ++*steps > MAX_STEPS || n->n_in < 1 || !n->in[0]) return -1;
  if (hn_is_op(n, "Shape")) return shape(n, out);
  if (hn_is_op(n, "Size")) {
    int64_t count = hone_desc_count(&n->in[0]->desc);
    out[0] = (hn_dim){.known = count >= 0, .value = count};
    return 1;
  }
  if (v->desc.rank < 0 || v->desc.rank > 1) return -1;
  if (hn_is_op(n, "Cast")) {
    int64_t to = hone_node_int(n, "to", 0), from = n->in[0]->desc.dtype;
    bool whole =
        (to == HONE_DTYPE_I64 || to == HONE_DTYPE_I32) && (from == HONE_DTYPE_I64 || from == HONE_DTYPE_I32);
    return whole ? elements(n->in[0], out, depth + 1, steps) : -1;
  }
  if (hn_is_op(n, "Identity") || hn_is_op(n, "Squeeze") || hn_is_op(n, "Unsqueeze") ||
      hn_is_op(n, "Reshape")) {
    if (n->in[0]->desc.rank < 0 || n->in[0]->desc.rank > 1) return -1;
    return elements(n->in[0], out, depth + 1, steps);
  }
  if (hn_is_op(n, "Gather") && hone_node_int(n, "axis", 0) == 0 && hn_in(n, 1))
    return gather(n, out, depth, steps);
  if (hn_is_op(n, "Slice")) return slice(n, out, depth, steps);
  if (hn_is_op(n, "Concat")) return concat(n, out, depth, steps);
  static const struct {
    const char *op;
    char sign;
  } ops[] = {{"Mul", '*'}, {"Add", '+'}, {"Sub", '-'}, {"Div", '/'}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i].op) && hn_in(n, 1)) return arithmetic(n, ops[i].sign, out, depth, steps);
  return -1;
}

int32_t hn_dims_of(const hn_value *v, hn_dim out[HN_DIMS_MAX]) {
  int steps = 0;
  hone_dtype d = v->desc.dtype;
  if (d != HONE_DTYPE_I64 && d != HONE_DTYPE_I32) return -1;
  return elements(v, out, 0, &steps);
}

bool hn_dims_reshape(const hone_tensor_desc *x, const hone_tensor_desc *y, int64_t shape[HONE_MAX_RANK]) {
  int unknown = 0;
  for (int32_t i = 0; i < y->rank; i++) {
    const int64_t d = y->dim[i];
    if (d == 0) return false; /* would mean "copy" */
    if (d > 0)
      shape[i] = d;
    else if (d <= -2 && i < x->rank && x->dim[i] == d)
      shape[i] = 0;
    else {
      shape[i] = -1;
      unknown++;
    }
  }
  return y->rank >= 0 && unknown <= 1;
}
