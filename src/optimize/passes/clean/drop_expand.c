/* f(Expand(x), b)  ->  f(x, b)        f elementwise, of two operands or more
 *
 * When the operands beside it have, dimension by dimension, what x would lack: f broadcasts by itself. All
 * readers of the Expand must be such. */
#include "optimize/passes/common/dims.h"
#include "optimize/passes/common/pass.h"

/* Broadcasts its operands in all directions at the node's opset. */
static bool broadcasts(const hone_node *n) {
  static const struct {
    const char *op;
    int32_t since;
  } ops[] = {{"Add", 7},         {"Sub", 7},        {"Mul", 7},        {"Div", 7},
             {"Pow", 7},         {"And", 7},        {"Or", 7},         {"Xor", 7},
             {"Equal", 7},       {"Less", 7},       {"Greater", 7},    {"LessOrEqual", 12},
             {"Where", 9},       {"Max", 8},        {"Min", 8},        {"Sum", 8},
             {"Mean", 8},        {"Mod", 10},       {"BitShift", 11},  {"GreaterOrEqual", 12},
             {"BitwiseAnd", 18}, {"BitwiseOr", 18}, {"BitwiseXor", 18}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i].op)) return n->opset >= ops[i].since;
  return false;
}

/* Dimension i from the end; 1 beyond the first. */
static int64_t dim_of(const hone_tensor_desc *d, int32_t i) {
  return i < d->rank ? d->dim[d->rank - 1 - i] : 1;
}

/* What an Expand makes of its input: its result, and the shape that was asked for where that is known. */
typedef struct expansion {
  const hn_value *x, *y;
  int32_t n; /* of `asked`; -1: not known */
  hn_dim asked[HN_DIMS_MAX];
} expansion;

/* Whether dimension i from the end of v is the expanded one, whatever number that is. */
static bool has_dim(const expansion *e, const hn_value *v, int32_t i) {
  const int64_t d = dim_of(&v->desc, i), y = dim_of(&e->y->desc, i);
  if (d == y && d != HONE_DIM_UNKNOWN) return true;
  if (e->n < 0 || i >= e->n) return false;
  const hn_dim *a = &e->asked[e->n - 1 - i];
  if (a->known) return d >= 0 && d == a->value;
  if (!a->of) return false;
  const int64_t of = a->of->desc.dim[a->axis];
  return (a->of == v && a->axis == v->desc.rank - 1 - i) || (d == of && d != HONE_DIM_UNKNOWN);
}

/* Whether n's result keeps its shape when n reads x instead of y: what the Expand adds stays among the
 * operands, or was nothing. */
static bool keeps_shape(const expansion *e, const hone_node *n) {
  int32_t rank = e->x->desc.rank;
  for (uint32_t k = 0; k < n->n_in; k++) {
    const hn_value *v = n->in[k];
    if (!v || v->desc.rank < 0) return false;
    if (v != e->y && v->desc.rank > rank) rank = v->desc.rank;
  }
  if (rank < e->y->desc.rank) return false;
  for (int32_t i = 0; i < e->y->desc.rank; i++) {
    bool there = dim_of(&e->y->desc, i) == 1 || has_dim(e, e->x, i);
    for (uint32_t k = 0; k < n->n_in && !there; k++) there = n->in[k] != e->y && has_dim(e, n->in[k], i);
    if (!there) return false;
  }
  return true;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *expand) {
  if (!hn_is_op(expand, "Expand") || !expand->in[0] || expand->out[0]->is_output) return HN_PASS_NONE;
  hn_value *x = expand->in[0], *y = expand->out[0];
  if (x->graph != expand->graph || !y->users.len || x->desc.rank < 0 || y->desc.rank < 0) return HN_PASS_NONE;
  expansion e = {.x = x, .y = y, .n = -1};
  if (hn_in(expand, 1)) e.n = hn_dims_of(expand->in[1], e.asked);
  const hone_node *other = NULL, *short_of = NULL; /* readers that need the Expand */
  bool one = false;
  for (size_t i = 0; i < y->users.len; i++) {
    const hone_node *n = y->users.ptr[i].node;
    if (n->graph != expand->graph || !broadcasts(n))
      other = n;
    else if (!keeps_shape(&e, n))
      short_of = n;
    else
      one = true;
  }
  if (short_of)
    return hn_pass_miss(ctx, "no other operand of '%.80s' has what the Expand adds", short_of->name);
  if (other && one) return hn_pass_miss(ctx, "'%.80s' reads it whole", other->name);
  if (other) return HN_PASS_NONE;
  hn_pass_hit(ctx, "its readers broadcast '%.80s' by themselves", x->name);
  while (y->users.len) {
    const hn_use use = y->users.ptr[0];
    if (!hn_inherit(ctx, use.node, expand) || !hn_set_input(ctx, use.node, use.index, x)) return HN_PASS_FAIL;
  }
  hn_remove_unread(expand, 1);
  return HN_PASS_HIT;
}

HN_PASS(drop_expand) = {.name = "drop_expand",
                        .level = 1,
                        .about = "f(Expand(x), b) -> f(x, b), f elementwise",
                        .visit = visit,
                        .roots = HN_ROOTS("Expand")};
