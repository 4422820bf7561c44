/* Reshape: the same elements with other dimensions; 0 copies a dimension (unless allowzero), -1 takes what is
 * left. */
#include "model/ops/common/axes.h"
#include "model/ops/shape/view.h"

/* What -1 stands for: the input's dimensions without those that were copied, over the output's others.
 * Unknown dimensions may only stay when they are exactly what is left. */
static hone_status fill_rest(const hone_node *node, const hone_tensor_desc *x, const bool *copied,
                             hone_tensor_desc *y, int32_t rest, int64_t given, hone_error *error) {
  int64_t left = 1, unknown = 0;
  int32_t unknowns = 0;
  bool zero = false;
  for (int32_t i = 0; i < x->rank; i++) {
    if (copied[i]) continue;
    zero |= x->dim[i] == 0;
    if (x->dim[i] < 0) unknown = x->dim[i], unknowns++;
  }
  if (zero) left = 0;
  for (int32_t i = 0; i < x->rank && !zero; i++)
    if (!copied[i] && x->dim[i] >= 0 && __builtin_mul_overflow(left, x->dim[i], &left))
      return hn_op_bad(node, error, "the input is too large");
  if (unknowns) {
    y->dim[rest] = unknowns == 1 && left == given ? unknown : HONE_DIM_UNKNOWN;
    return HONE_OK;
  }
  if (given == 0 || left % given)
    return hn_op_bad(node, error, "-1 has no solution: %lld elements over %lld", (long long)left,
                     (long long)given);
  y->dim[rest] = left / given;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_list shape;
  hone_status status = hn_list_infer(io, "shape", 5, 1, &shape, error);
  if (status) return status;
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  if (!shape.known) {
    const hone_tensor_desc *s = io->input[1];
    if (s->rank == 1 && s->dim[0] >= 0 && s->dim[0] <= HONE_MAX_RANK) {
      y.rank = (int32_t)s->dim[0];
      for (int32_t i = 0; i < y.rank; i++) y.dim[i] = HONE_DIM_UNKNOWN;
    }
    hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
    return HONE_OK;
  }
  if (shape.n > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %d", shape.n);
  bool allowzero = hone_node_int(io->node, "allowzero", 0) != 0, copied[HONE_MAX_RANK] = {false},
       empty = false;
  int32_t rest = -1;
  int64_t given = 1;
  y.rank = shape.n;
  for (int32_t i = 0; i < shape.n; i++) {
    int64_t d = shape.at[i];
    if (d < -1) return hn_op_bad(io->node, error, "dimension %d of the shape is %lld", i, (long long)d);
    y.dim[i] = d;
    if (d == -1 && rest >= 0) return hn_op_bad(io->node, error, "the shape has more than one -1");
    if (d == -1) rest = i;
    if (d == 0 && !allowzero) {
      if (x->rank < 0) {
        y.dim[i] = HONE_DIM_UNKNOWN;
        continue;
      }
      if (i >= x->rank)
        return hn_op_bad(io->node, error, "dimension %d is to be copied, the input has %d", i, x->rank);
      y.dim[i] = x->dim[i];
      copied[i] = true;
    } else if (d == 0)
      empty = true;
    else if (d > 0 && __builtin_mul_overflow(given, d, &given))
      return hn_op_bad(io->node, error, "the shape is too large");
  }
  if (empty) given = 0;
  if (rest >= 0 && empty) return hn_op_bad(io->node, error, "the shape has both 0 and -1");
  if (rest >= 0 && x->rank < 0)
    y.dim[rest] = HONE_DIM_UNKNOWN;
  else if (rest >= 0) {
    status = fill_rest(io->node, x, copied, &y, rest, given, error);
    if (status) return status;
  }
  int64_t from = hone_desc_count(x), to = hone_desc_count(&y);
  if (hone_desc_known(x) && hone_desc_known(&y) && from != to) {
    char a[128], b[128];
    return hn_op_bad(io->node, error, "%s does not reshape to %s", hone_desc_format(x, a, sizeof a),
                     hone_desc_format(&y, b, sizeof b));
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "shape", .type = HONE_ATTR_INTS, .until = 4},
                                       {.name = "consumed_inputs", .type = HONE_ATTR_INTS, .until = 4},
                                       {.name = "allowzero", .type = HONE_ATTR_INT, .since = 14},
                                       {0}};

HN_VIEW_OP(reshape, "Reshape", 2, .attrs = attrs, .infer = infer, .host_inputs = 1u << 1);
