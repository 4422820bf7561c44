/* y = f(x) with y = x for every x  ->  x
 *
 * Identity, Dropout at inference, Cast to its own type, Transpose that keeps the order, Reshape and its like
 * to the same shape, Pad by nothing, Slice of everything, Expand and Tile to the same shape, Concat and Sum
 * of one, pooling over a 1x1 window. */
#include "optimize/passes/common/pass.h"

static bool all_ints(const hone_node *n, const char *attr, int64_t value) {
  size_t count;
  const int64_t *v = hone_node_ints(n, attr, &count);
  for (size_t i = 0; i < count; i++)
    if (v[i] != value) return false;
  return true;
}

static bool identity_transpose(const hone_node *n) {
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  if (!perm) return n->in[0]->desc.rank >= 0 && n->in[0]->desc.rank <= 1; /* the default reverses */
  for (size_t i = 0; i < count; i++)
    if (perm[i] != (int64_t)i) return false;
  return true;
}

static bool identity_pad(const hone_node *n) {
  int64_t pads[2 * HONE_MAX_RANK];
  bool absent;
  int64_t count = hn_node_ints_or_input(n, "pads", 1, pads, 2 * HONE_MAX_RANK, &absent);
  if (count <= 0) count = hone_node_has(n, "paddings") ? -1 : count;
  for (int64_t i = 0; i < count; i++)
    if (pads[i] != 0) return false;
  return count > 0;
}

/* Same shape before and after: everything is taken, in order unless a step is negative. */
static bool identity_slice(const hone_node *n) {
  int64_t steps[HONE_MAX_RANK];
  if (!hn_in(n, 4)) return true;
  int64_t count = hn_known_ints(n->in[4], steps, HONE_MAX_RANK);
  for (int64_t i = 0; i < count; i++)
    if (steps[i] < 1) return false;
  return count >= 0;
}

/* Exporters leave training on where nothing is dropped (Swin's attention in torchvision: ratio 0). */
static bool identity_dropout(const hone_node *n) {
  double training, ratio;
  if (n->n_out > 1 && n->out[1] && hn_value_needed(n->out[1])) return false;
  if (hone_node_int(n, "is_test", 1) == 0) return false;
  if (hn_in(n, 1) && hn_constant_scalar(n->in[1], &ratio) && ratio == 0) return true;
  return !hn_in(n, 2) || (hn_constant_scalar(n->in[2], &training) && training == 0);
}

static bool identity_pool(const hone_node *n) {
  size_t count;
  const char *pad = hone_node_string(n, "auto_pad", "NOTSET");
  return hone_node_ints(n, "kernel_shape", &count) && all_ints(n, "kernel_shape", 1) &&
         all_ints(n, "strides", 1) && all_ints(n, "pads", 0) &&
         (strcmp(pad, "NOTSET") == 0 || strcmp(pad, "VALID") == 0) &&
         (n->n_out < 2 || !n->out[1] || !hn_value_needed(n->out[1]));
}

static bool same_shape(const hone_node *n) { return hn_same_shape(&n->in[0]->desc, &n->out[0]->desc); }

static bool is_identity(const hone_node *n) {
  static const char *const same[] = {"Reshape", "Flatten", "Expand", "Tile"};
  static const char *const single[] = {"Concat", "Sum", "Max", "Min", "Mean"};
  if (hn_is_op(n, "Identity")) return true;
  if (hn_is_op(n, "Dropout")) return identity_dropout(n);
  if (hn_is_op(n, "Cast"))
    return n->in[0]->desc.dtype && n->in[0]->desc.dtype == (hone_dtype)hone_node_int(n, "to", 0);
  if (hn_is_op(n, "CastLike"))
    return n->in[0]->desc.dtype && hn_in(n, 1) && n->in[0]->desc.dtype == n->in[1]->desc.dtype;
  if (hn_is_op(n, "Transpose")) return identity_transpose(n);
  if (hn_is_op(n, "Pad")) return identity_pad(n);
  if (hn_is_op(n, "Slice")) return same_shape(n) && identity_slice(n);
  if (hn_is_op(n, "MaxPool") || hn_is_op(n, "AveragePool")) return identity_pool(n);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (hn_is_op(n, same[i])) return same_shape(n);
  for (size_t i = 0; i < sizeof single / sizeof *single; i++)
    if (hn_is_op(n, single[i])) return n->n_in == 1;
  return false;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_in(n, 0) || n->n_out < 1 || !n->out[0] || !is_identity(n)) return HN_PASS_NONE;
  hn_value *x = n->in[0], *y = n->out[0];
  if (x->foreign != y->foreign ||
      hone_dtype_is_tensor(x->desc.dtype) != hone_dtype_is_tensor(y->desc.dtype) ||
      (x->graph != y->graph && y->is_output))
    return HN_PASS_NONE;
  if (!hn_can_replace(y, x))
    return hn_pass_miss(ctx, "%s connects %s with an output of the graph", n->op_type,
                        x->is_input   ? "an input"
                        : x->constant ? "a constant"
                                      : "another output");
  /* A value that another one replaces takes over its name when that is a graph output: a constant has none to
   * give. */
  if (y->is_output && x->constant) return HN_PASS_NONE;
  hn_pass_hit(ctx, "%s changes nothing", n->op_type);
  if (!hn_replace(ctx, y, x)) return HN_PASS_FAIL;
  hn_node_remove(n);
  return HN_PASS_HIT;
}

HN_PASS(drop_identity) = {
    .name = "drop_identity", .level = 1, .about = "f(x) with f(x) = x -> x", .visit = visit};
