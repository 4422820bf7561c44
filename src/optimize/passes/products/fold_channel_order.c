/* Conv(Gather(x, order), W)  ->  Conv(x, W')        order: all channels of x, each once
 * Gather(Conv(x, W, b), order)  ->  Conv(x, W', b') order: any channels, which nobody else reads
 *
 * Weights that are known take the order of channels in, which then costs nothing. On the way to them an order
 * passes depthwise convolutions, whose filters change places with it, and whatever treats all channels alike.
 * Only where every reader takes it in: else the Gather would stay. */
#include "optimize/passes/common/pass.h"

enum { FARTHEST = 8 }; /* nodes between a Gather and a Conv */

/* The channels that a Gather along dimension 1 takes from its input, negative ones counted from the end;
 * NULL: it is no such Gather, or they are not known. */
static const int64_t *order_of(hn_pass_context *ctx, const hone_node *n, int64_t *count) {
  const hone_tensor *index = hn_is_op(n, "Gather") ? hn_known(hn_in(n, 1)) : NULL;
  const hone_tensor_desc *x = index ? &n->in[0]->desc : NULL;
  if (!x || index->desc.rank != 1 || x->rank < 3 || x->dim[1] < 1 || !hn_foldable_float(x->dtype))
    return NULL;
  const int64_t axis = hone_node_int(n, "axis", 0), channels = x->dim[1];
  *count = hn_count(index);
  if ((axis != 1 && axis != 1 - x->rank) || *count < 1) return NULL;
  int64_t *order = HN_NEW_ARRAY(ctx->scratch, int64_t, *count);
  for (int64_t i = 0; order && i < *count; i++) {
    order[i] = hn_get_i64(index, i);
    if (order[i] < 0) order[i] += channels;
    if (order[i] < 0 || order[i] >= channels) return NULL;
  }
  return order;
}

static bool each_once(hn_pass_context *ctx, const int64_t *order, int64_t n) {
  bool *seen = HN_NEW_ARRAY(ctx->scratch, bool, n);
  for (int64_t i = 0; seen && i < n; i++) {
    if (order[i] >= n || seen[order[i]]) return false;
    seen[order[i]] = true;
  }
  return seen != NULL;
}

/* One result, of which each channel follows from the same channel of input 0, by a rule for all of them. */
static bool alike(const hone_node *n) {
  static const char *const ops[] = {
      "Relu",         "LeakyRelu",         "Clip",    "Sigmoid",     "HardSigmoid", "HardSwish", "Tanh",
      "Elu",          "GlobalAveragePool", "MaxPool", "AveragePool", "Softplus",    "Mish",      "Gelu",
      "GlobalMaxPool"};
  bool found = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) found |= hn_is_op(n, ops[i]);
  uint32_t outputs = 0;
  for (uint32_t i = 0; i < n->n_out; i++) outputs += n->out[i] != NULL;
  for (uint32_t i = 1; i < n->n_in; i++)
    if (n->in[i] && !n->in[i]->constant) return false;
  return found && outputs == 1 && n->out[0];
}

/* Weights of a Conv that are numbers, and its bias, where it has one. */
static const hone_tensor *weights_of(const hone_node *n) {
  const hone_tensor *w = hn_is_op(n, "Conv") ? hn_known(hn_in(n, 1)) : NULL, *b = hn_known(hn_in(n, 2));
  if (!w || w->desc.rank < 3 || !hn_foldable_float(w->desc.dtype)) return NULL;
  if (hn_in(n, 2) && (!b || hn_count(b) != w->desc.dim[0])) return NULL;
  return w;
}

/* Conv of all channels: its weights' columns are what it takes of each. */
static bool takes_in(const hone_node *n, int64_t channels) {
  const hone_tensor *w = weights_of(n);
  return w && hone_node_int(n, "group", 1) == 1 && w->desc.dim[1] == channels;
}

/* Filters of one channel each. */
static bool depthwise(const hone_node *n, int64_t channels) {
  const hone_tensor *w = weights_of(n);
  return w && hone_node_int(n, "group", 1) == channels && w->desc.dim[1] == 1 &&
         w->desc.dim[0] % channels == 0;
}

/* Does all that reads v take an order of its channels in? *convs: how many do in the end. */
static bool all_take_in(const hn_value *v, int64_t channels, int depth, uint32_t *convs) {
  if (v->is_output || !v->users.len || depth > FARTHEST) return false;
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *n = v->users.ptr[i].node;
    if (v->users.ptr[i].index != 0 || n->graph != v->graph) return false;
    if (takes_in(n, channels)) {
      ++*convs;
      continue;
    }
    const bool own = depthwise(n, channels);
    if (!own && !alike(n)) return false;
    const int64_t after = own ? weights_of(n)->desc.dim[0] : channels;
    if (!all_take_in(n->out[0], after, depth + 1, convs)) return false;
  }
  return true;
}

/* Rows (or columns: dimension 1) of a tensor in another order: row from[i] becomes row to[i], NULL: row i. */
static hn_value *reorder(hn_pass_context *ctx, const hn_value *v, int dim, const int64_t *to,
                         const int64_t *from, int64_t n) {
  const hone_tensor *t = hn_known(v);
  hone_tensor_desc d = t->desc;
  void *data;
  const int64_t outer = dim ? d.dim[0] : 1, inner = hn_count(t) / (outer * d.dim[dim]), old = d.dim[dim];
  d.dim[dim] = n;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_value *made = hn_make_room(ctx, v->name, &d, &data);
  const size_t row = (size_t)inner * hone_dtype_size(d.dtype);
  for (int64_t o = 0; made && o < outer; o++)
    for (int64_t i = 0; i < n; i++) {
      char *at = (char *)data + (size_t)(o * n + (to ? to[i] : i)) * row;
      const char *was = (const char *)t->data + (size_t)(o * old + (from ? from[i] : i)) * row;
      if (row == sizeof(float)) /* no call for each number of a filter of one pixel */
        memcpy(at, was, sizeof(float));
      else
        memcpy(at, was, row);
    }
  return made;
}

/* The node on x, with weights and bias (NULL: its own) instead, before itself. */
static hone_node *again(hn_pass_context *ctx, hone_node *n, hn_value *x, hn_value *w, hn_value *b,
                        const hone_tensor_desc *like) {
  enum { MOST = 8 };
  hn_value *in[MOST] = {x};
  for (uint32_t i = 1; i < n->n_in && i < MOST; i++) in[i] = n->in[i];
  if (w) in[1] = w;
  if (b) in[2] = b;
  hone_node *made = hn_make_node(ctx, n, n->op_type, in, n->n_in, like);
  return made && hn_node_copy_attrs(made, n) && hn_inherit(ctx, made, n) ? made : NULL;
}

static int64_t *order_of_filters(hn_pass_context *ctx, const int64_t *order, int64_t n, int64_t each) {
  int64_t *rows = HN_NEW_ARRAY(ctx->scratch, int64_t, n * each);
  for (int64_t i = 0; rows && i < n * each; i++) rows[i] = order[i / each] * each + i % each;
  return rows;
}

/* What reads v, whose channel i is channel order[i] of x, reads x. */
static bool move_readers(hn_pass_context *ctx, hn_value *v, hn_value *x, const int64_t *order, int64_t n,
                         const hone_node *gather) {
  while (v->users.len) {
    hone_node *u = v->users.ptr[0].node;
    if (takes_in(u, n)) {
      hn_value *w = reorder(ctx, u->in[1], 1, order, NULL, n);
      if (!w || !hn_set_input(ctx, u, 1, w) || !hn_set_input(ctx, u, 0, x) || !hn_inherit(ctx, u, gather))
        return false;
      continue;
    }
    const int64_t *after = order;
    int64_t count = n;
    hn_value *w = NULL, *b = NULL;
    if (depthwise(u, n)) {
      count = weights_of(u)->desc.dim[0];
      if (!(after = order_of_filters(ctx, order, n, count / n))) return hn_pass_memory(ctx), false;
      if (!(w = reorder(ctx, u->in[1], 0, after, NULL, count))) return false;
      if (hn_in(u, 2) && !(b = reorder(ctx, u->in[2], 0, after, NULL, count))) return false;
    }
    hone_node *made = again(ctx, u, x, w, b, &u->out[0]->desc);
    if (!made || !move_readers(ctx, u->out[0], made->out[0], after, count, gather)) return false;
    hn_node_remove(u);
  }
  return true;
}

/* The Conv of which only this Gather reads the channels, behind nodes that treat them alike. */
static hone_node *maker(const hone_node *gather) {
  hn_value *v = gather->in[0];
  for (int depth = 0; depth <= FARTHEST && v; depth++) {
    hone_node *n = v->producer;
    if (!n || n->graph != gather->graph || !hn_value_single_use(v)) return NULL;
    const hone_tensor *w = weights_of(n);
    if (w && hone_node_int(n, "group", 1) == 1)
      return w->desc.dim[0] == gather->in[0]->desc.dim[1] ? n : NULL;
    if (!alike(n)) return NULL;
    v = n->in[0];
  }
  return NULL;
}

/* The nodes from the Conv to the Gather anew, with the filters that it wants. */
static bool move_before(hn_pass_context *ctx, hone_node *gather, hone_node *conv, const int64_t *order,
                        int64_t n) {
  hn_value *w = reorder(ctx, conv->in[1], 0, NULL, order, n), *b = NULL, *y;
  if (!w || (hn_in(conv, 2) && !(b = reorder(ctx, conv->in[2], 0, NULL, order, n)))) return false;
  hone_tensor_desc like = conv->out[0]->desc;
  like.dim[1] = n;
  hone_node *made = again(ctx, conv, conv->in[0], w, b, &like);
  for (const hone_node *last = conv; made && last->out[0] != gather->in[0];) {
    hone_node *next = last->out[0]->users.ptr[0].node;
    y = made->out[0];
    like = next->out[0]->desc;
    like.dim[1] = n;
    made = again(ctx, next, y, NULL, NULL, &like);
    last = next;
  }
  return made && hn_inherit(ctx, made, gather) && hn_replace(ctx, gather->out[0], made->out[0]);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *gather) {
  int64_t n;
  uint32_t convs = 0;
  const int64_t *order = order_of(ctx, gather, &n);
  if (!order || gather->in[0]->desc.rank != gather->out[0]->desc.rank) return HN_PASS_NONE;
  hn_value *x = gather->in[0], *y = gather->out[0];
  hone_node *conv = n <= x->desc.dim[1] ? maker(gather) : NULL; /* none is made twice */
  if (conv) {
    hn_pass_hit(ctx, "%lld channels in the order in which they are wanted, made so by '%.80s'", (long long)n,
                conv->name);
    if (!move_before(ctx, gather, conv, order, n)) return HN_PASS_FAIL;
    hn_remove_unread(gather, FARTHEST + 2);
    return HN_PASS_HIT;
  }
  if (n != x->desc.dim[1] || !each_once(ctx, order, n)) return HN_PASS_NONE;
  if (!all_take_in(y, n, 0, &convs))
    return hn_pass_miss(ctx, "not all that reads '%.80s' takes in an order of channels", y->name);
  hn_pass_hit(ctx, "the order of %lld channels is in the weights of %u convolutions", (long long)n, convs);
  if (!move_readers(ctx, y, x, order, n, gather)) return HN_PASS_FAIL;
  hn_remove_unread(gather, 1);
  return HN_PASS_HIT;
}

HN_PASS(fold_channel_order) = {
    .name = "fold_channel_order",
    .level = 2,
    .about = "Conv(Gather(x, order), W) -> Conv(x, W'), Gather(Conv(x, W)) -> Conv(x, W')",
    .visit = visit,
    .roots = HN_ROOTS("Gather")};
