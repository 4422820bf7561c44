/* x + 0, x - 0, x * 1, x / 1, x ^ 1, x or false, x and true  ->  x
 *
 * When the constant does not broadcast x to a larger shape. (-0 + 0 is +0: the sign of a zero may change.) */
#include "optimize/passes/common/pass.h"

typedef struct neutral {
  const char *op;
  double value;
  bool both; /* the constant may stand on either side */
} neutral;

static const neutral neutrals[] = {
    {"Add", 0, true},  {"Sub", 0, false}, {"Mul", 1, true}, {"Div", 1, false},
    {"Pow", 1, false}, {"Or", 0, true},   {"And", 1, true},
};

/* Every element of the known value is v. */
static bool all_equal(const hn_value *c, double v) {
  const hone_tensor *t = hn_known(c);
  if (!t || t->desc.dtype == HONE_DTYPE_STRING) return false;
  int64_t n = hn_count(t);
  for (int64_t i = 0; i < n; i++)
    if (hn_get_f64(t, i) != v) return false;
  return n > 0;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const neutral *e = NULL;
  for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals && !e; i++)
    if (hn_is_op(n, neutrals[i].op)) e = &neutrals[i];
  if (!e || n->n_in != 2 || !n->in[0] || !n->in[1] || !n->out[0]) return HN_PASS_NONE;
  for (uint32_t side = 0; side < 1 + (uint32_t)e->both; side++) {
    hn_value *x = n->in[side], *c = n->in[1 - side];
    if (!all_equal(c, e->value) || x->constant) continue;
    /* Pow may take another type for its exponent; its result has the base's. */
    if (!hn_broadcasts_into(&c->desc, &x->desc))
      return hn_pass_miss(ctx, "the constant %g broadcasts '%.60s' to another shape", e->value, x->name);
    if (!hn_can_replace(n->out[0], x))
      return hn_pass_miss(ctx, "%s connects two ends of the graph", n->op_type);
    hn_pass_hit(ctx, "%s with %g changes nothing", n->op_type, e->value);
    if (!hn_replace(ctx, n->out[0], x)) return HN_PASS_FAIL;
    hn_node_remove(n);
    return HN_PASS_HIT;
  }
  return HN_PASS_NONE;
}

HN_PASS(drop_neutral) = {
    .name = "drop_neutral", .level = 1, .about = "x + 0, x * 1 and their like -> x", .visit = visit};
