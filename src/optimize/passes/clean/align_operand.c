/* Add(a, b) {axis=k, broadcast=1}  ->  Add(a, Reshape(b, [d..., 1...])) {broadcast=1}
 * PRelu(x, slope)  ->  PRelu(x, Reshape(slope, [d, 1...]))
 *
 * Before opset 7 an attribute says where b's dimensions lie among a's, and slopes belong to dimension 1; with
 * ones behind them they are the last ones, as everything that knows ordinary broadcasting expects. */
#include "model/ops/common/elementwise.h"
#include "optimize/passes/common/pass.h"

static bool is_binary(const hone_node *n) {
  static const char *const ops[] = {"Add", "Sub", "Mul",  "Div",     "Pow",  "And",
                                    "Or",  "Xor", "Less", "Greater", "Equal"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return true;
  return false;
}

/* b's descriptor as it is meant beside a. */
static bool meant(const hone_node *n, const hone_tensor_desc *a, const hone_tensor_desc *b,
                  hone_tensor_desc *d) {
  if (!hn_is_op(n, "PRelu")) return hn_align_operand(n, a, b, d, NULL) == HONE_OK;
  *d = *a;
  for (int32_t i = 0; i < a->rank; i++) d->dim[i] = i == 1 ? b->dim[0] : 1;
  return true;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hone_tensor_desc d;
  if (n->opset >= 7 || n->n_in != 2 || !n->in[0] || !n->in[1]) return HN_PASS_NONE;
  const hone_tensor_desc *a = &n->in[0]->desc, *b = &n->in[1]->desc;
  if (hn_is_op(n, "PRelu") ? b->rank != 1 || b->dim[0] == 1 || (a->rank >= 0 && a->rank <= 2)
                           : !is_binary(n) || !hone_node_has(n, "axis") || !hone_node_int(n, "broadcast", 0))
    return HN_PASS_NONE;
  if (a->rank < 0 || !hone_desc_known(b)) return hn_pass_miss(ctx, "shapes are not known");
  if (!meant(n, a, b, &d)) return hn_pass_miss(ctx, "operand B does not fit");
  int32_t lead = 0; /* ones in front say nothing */
  while (lead < d.rank - b->rank && d.dim[lead] == 1) lead++;
  const int32_t rank = d.rank - lead;
  for (int32_t i = 0; i < rank; i++) {
    if (d.dim[lead + i] == 0) return hn_pass_miss(ctx, "operand B is empty");
    d.dim[i] = d.dim[lead + i];
  }
  d.rank = rank;
  if (hn_same_shape(&d, b)) {
    hn_node_drop_attr(n, "axis");
    return hn_pass_hit(ctx, "the last dimensions are meant anyway");
  }
  const hone_tensor_desc like = hone_desc(b->dtype, rank, d.dim);
  hn_value *shape = n->opset >= 5 ? hn_make_ints(ctx, n->in[1]->name, d.dim, rank) : NULL;
  if (n->opset >= 5 && !shape) return HN_PASS_FAIL;
  hone_node *r = hn_make_node(ctx, n, "Reshape", (hn_value *const[]){n->in[1], shape}, shape ? 2 : 1, &like);
  if (!r || !hn_inherit(ctx, r, n)) return HN_PASS_FAIL;
  if (!shape && !hn_node_set_ints(r, "shape", d.dim, (size_t)rank)) return hn_pass_memory(ctx);
  if (!hn_set_input(ctx, n, 1, r->out[0])) return HN_PASS_FAIL;
  hn_node_drop_attr(n, "axis");
  return hn_pass_hit(ctx, "operand B has %d dimensions now", (int)rank);
}

HN_PASS(align_operand) = {
    .name = "align_operand",
    .level = 1,
    .about = "Add(a, b) {axis=k}, as before opset 7  ->  Add(a, Reshape(b))",
    .visit = visit,
};
