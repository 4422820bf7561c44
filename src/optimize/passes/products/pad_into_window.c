/* Conv(Pad(x))  ->  Conv(x) with larger pads         likewise AveragePool that counts its padding, and
 * MaxPool
 *
 * Pad must be constant, zero for Conv and AveragePool, the lowest number for MaxPool, not negative, and leave
 * batch and channels alone. */
#include "optimize/passes/common/pass.h"

/* Pads of all dimensions (opset 18 may name axes) as begin[rank], end[rank]. */
static bool pads_of(const hone_node *n, int32_t rank, int64_t *begin, int64_t *end) {
  int64_t raw[2 * HONE_MAX_RANK], axes[HONE_MAX_RANK];
  bool absent;
  int64_t count = hn_node_ints_or_input(n, "pads", 1, raw, 2 * HONE_MAX_RANK, &absent), k = rank;
  for (int32_t i = 0; i < rank; i++) axes[i] = i;
  if (hn_in(n, 3) && (k = hn_known_ints(n->in[3], axes, HONE_MAX_RANK)) < 0) return false;
  if (absent || count != 2 * k) return false;
  memset(begin, 0, (size_t)rank * sizeof *begin);
  memset(end, 0, (size_t)rank * sizeof *end);
  for (int64_t i = 0; i < k; i++) {
    int64_t at = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (at < 0 || at >= rank) return false;
    begin[at] = raw[i];
    end[at] = raw[k + i];
  }
  return true;
}

static bool pad_value(const hone_node *n, double *v) {
  *v = n->opset < 11 ? hone_node_float(n, "value", 0) : 0;
  return n->opset < 11 || !hn_in(n, 2) || hn_constant_scalar(n->in[2], v);
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *pad = m->node[0], *n = m->node[1];
  hn_value *x = pad->in[0];
  int32_t rank = x->desc.rank;
  int64_t begin[HONE_MAX_RANK], end[HONE_MAX_RANK], pads[2 * HONE_MAX_RANK] = {0};
  double value;
  bool max = hn_is_op(n, "MaxPool"), average = hn_is_op(n, "AveragePool");
  const char *auto_pad = hone_node_string(n, "auto_pad", "NOTSET");
  if (strcmp(hone_node_string(pad, "mode", "constant"), "constant") != 0)
    return hn_pass_miss(ctx, "'%.80s' pads with %s values", pad->name, hone_node_string(pad, "mode", ""));
  if (rank < 3 || !pads_of(pad, rank, begin, end) || !pad_value(pad, &value))
    return hn_pass_miss(ctx, "what '%.80s' pads is not known", pad->name);
  if (max ? value > -3e38 : value != 0)
    return hn_pass_miss(ctx, "'%.80s' pads with %g, not %s", pad->name, value,
                        max ? "the lowest number" : "0");
  for (int32_t i = 0; i < rank; i++) {
    if (begin[i] < 0 || end[i] < 0) return hn_pass_miss(ctx, "'%.80s' cuts off elements", pad->name);
    if (i < 2 && (begin[i] || end[i]))
      return hn_pass_miss(ctx, "'%.80s' pads the batch or the channels", pad->name);
  }
  if (strcmp(auto_pad, "NOTSET") != 0 && strcmp(auto_pad, "VALID") != 0)
    return hn_pass_miss(ctx, "'%.80s' chooses its pads itself (%s)", n->name, auto_pad);
  size_t count, spatial = (size_t)rank - 2;
  const int64_t *own = hone_node_ints(n, "pads", &count);
  if (own && count != 2 * spatial) return HN_PASS_NONE;
  bool has_own = false;
  for (size_t i = 0; own && i < count; i++) has_own |= own[i] != 0;
  if ((max || average) && hone_node_int(n, "ceil_mode", 0))
    return hn_pass_miss(ctx, "'%.80s' rounds its size up", n->name);
  if (max && n->n_out > 1 && n->out[1]) return hn_pass_miss(ctx, "the indices of '%.80s' are read", n->name);
  if (average && has_own && !hone_node_int(n, "count_include_pad", 0))
    return hn_pass_miss(ctx, "'%.80s' does not count its own padding", n->name);
  size_t kernel_count;
  const int64_t *kernel = hone_node_ints(n, "kernel_shape", &kernel_count);
  for (size_t i = 0; i < spatial; i++) {
    pads[i] = (own ? own[i] : 0) + begin[i + 2];
    pads[spatial + i] = (own ? own[spatial + i] : 0) + end[i + 2];
    /* Some engines refuse pools whose padding is as large as the window. */
    if ((max || average) &&
        (!kernel || kernel_count != spatial || pads[i] >= kernel[i] || pads[spatial + i] >= kernel[i]))
      return hn_pass_miss(ctx, "the padding is as large as the window of '%.80s'", n->name);
  }
  hn_node_drop_attr(n, "auto_pad");
  if (!hn_node_set_ints(n, "pads", pads, 2 * spatial) ||
      (average && !hn_node_set_int(n, "count_include_pad", 1)))
    return hn_pass_memory(ctx);
  if (!hn_inherit(ctx, n, pad) || !hn_set_input(ctx, n, 0, x)) return HN_PASS_FAIL;
  hn_remove_unread(pad, 0);
  return hn_pass_hit(ctx, "%s '%.80s' pads itself", n->op_type, n->name);
}

HN_PASS(pad_into_window) = {
    .name = "pad_into_window",
    .level = 2,
    .about = "Conv(Pad(x)) -> Conv(x) with larger pads; pools likewise",
    .patterns = HN_PATTERNS("%t = Pad(%x, ?%pads, ?%value, ?%axes)\n%y = Conv(%t, %w, ?%b)",
                            "%t = Pad(%x, ?%pads, ?%value, ?%axes)\n%y = AveragePool|MaxPool(%t)"),
    .match = match,
};
