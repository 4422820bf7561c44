/* (x - mean) * (gamma / sqrt(max(mean(x^2) - mean^2, 0) + eps)) + beta
 *   ->  LayerNormalization(x, gamma, beta)
 * x * (gamma / sqrt(mean(x^2) + eps))
 *   ->  RMSNormalization(x, gamma)
 *
 * Flax and others of JAX write norms so: over the last dimension, which the sums lose and a view gives back.
 * Without gamma it is ones. What keeps its dimensions and takes the squares of what is centred is a pattern
 * (match/patterns/layer_norm.c, rms_norm.c). */
#include "optimize/passes/common/pass.h"

#include <math.h>

static int64_t last_of(const hn_value *x) { return x->desc.rank < 1 ? 0 : x->desc.dim[x->desc.rank - 1]; }

static bool over_last(const hone_node *r) {
  const int32_t rank = r->in[0]->desc.rank;
  int64_t axes[HONE_MAX_RANK];
  bool absent;
  return hn_node_ints_or_input(r, "axes", 1, axes, HONE_MAX_RANK, &absent) == 1 &&
         (axes[0] == -1 || axes[0] == rank - 1);
}

/* x of its mean over the last dimension: ReduceMean, or ReduceSum divided by their number. */
static hn_value *of_mean(hn_value *v) {
  v = hn_behind_views(v);
  hone_node *p = v ? v->producer : NULL;
  double number;
  bool divided = true;
  if (p && hn_is_op(p, "ReduceMean") && p->in[0]) return over_last(p) ? p->in[0] : NULL;
  if (!p || (!hn_is_op(p, "Mul") && !hn_is_op(p, "Div"))) return NULL;
  for (uint32_t k = hn_is_op(p, "Mul") ? 0 : 1; k < 2; k++) {
    if (!hn_constant_scalar(p->in[k], &number)) continue;
    hn_value *sum = hn_behind_views(p->in[1 - k]);
    hone_node *r = sum ? sum->producer : NULL;
    if (!r || !hn_is_op(r, "ReduceSum") || !r->in[0] || !over_last(r)) continue;
    const double n = (double)last_of(r->in[0]);
    divided = hn_is_op(p, "Mul") ? fabs(number * n - 1) < 1e-6 : number == n;
    if (divided) return r->in[0];
  }
  return NULL;
}

/* x of x * x. */
static hn_value *of_square(hn_value *v) {
  hone_node *p = v ? v->producer : NULL;
  double two;
  if (!p || p->n_in != 2) return NULL;
  if (hn_is_op(p, "Mul") && p->in[0] == p->in[1]) return p->in[0];
  return hn_is_op(p, "Pow") && hn_constant_scalar(p->in[1], &two) && two == 2 ? p->in[0] : NULL;
}

/* Whether v is mean(x^2), less mean(x)^2 where `centred`. */
static bool is_variance(hn_value *v, const hn_value *x, bool centred) {
  v = hn_behind_views(v);
  hone_node *p = v ? v->producer : NULL;
  double zero;
  if (centred && p && hn_is_op(p, "Max") && p->n_in == 2)
    for (uint32_t k = 0; k < 2; k++)
      if (hn_constant_scalar(p->in[k], &zero) && zero == 0) {
        v = hn_behind_views(p->in[1 - k]);
        p = v ? v->producer : NULL;
        break;
      }
  if (centred) {
    if (!p || !hn_is_op(p, "Sub") || of_mean(of_square(hn_behind_views(p->in[1]))) != x) return false;
    v = p->in[0];
  }
  hn_value *squares = of_mean(v);
  /* What keeps its dimension is the pattern's. */
  const bool kept = hn_is_op(v->producer, "ReduceMean") && hone_node_int(v->producer, "keepdims", 1);
  return squares && of_square(squares) == x && (centred || !kept);
}

/* The variance and epsilon of sqrt(variance + epsilon), of one number a row of x. */
static hn_value *under_root(hn_value *v, const hn_value *x, double *eps) {
  v = hn_behind_views(v);
  hone_node *root = v ? v->producer : NULL;
  hn_value *sum = root && hn_is_op(root, "Sqrt") ? hn_behind_views(root->in[0]) : NULL;
  hone_node *add = sum ? sum->producer : NULL;
  if (!add || !hn_is_op(add, "Add") || last_of(x) < 1 ||
      hone_desc_count(&sum->desc) * last_of(x) != hone_desc_count(&x->desc))
    return NULL;
  for (uint32_t k = 0; k < 2; k++)
    if (hn_constant_scalar(add->in[k], eps) && *eps >= 0) return add->in[1 - k];
  return NULL;
}

/* One number a row, in the form that broadcasts. */
static bool is_column(const hn_value *v, const hn_value *x) {
  const int32_t rank = x->desc.rank;
  if (!v || v->desc.rank != rank) return false;
  for (int32_t i = 0; i < rank; i++)
    if (v->desc.dim[i] < 0 || v->desc.dim[i] != (i == rank - 1 ? 1 : x->desc.dim[i])) return false;
  return true;
}

/* A constant along the last dimension as a vector. NULL: it is none, or memory is short (ctx->status). */
static hn_value *vector(hn_pass_context *ctx, const hone_node *n, const hn_value *from, const hn_value *x) {
  const int64_t width = last_of(x);
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &width);
  double *v = HN_NEW_ARRAY(ctx->scratch, double, width);
  if (!v) return hn_pass_memory(ctx), NULL;
  for (int64_t i = 0; i < width; i++) v[i] = 1;
  if (from &&
      (from->desc.rank > x->desc.rank || !hn_channel_values(from, x->desc.rank, x->desc.rank - 1, width, v)))
    return NULL;
  return hn_make_floats(ctx, n->name, &d, v);
}

/* What alone reads n, `op` with a constant, which is *with. */
static hone_node *followed_by(const hone_node *n, const char *op, const hn_value *x, hn_value **with) {
  hone_node *next = hn_value_single_use(n->out[0]) ? n->out[0]->users.ptr[0].node : NULL;
  if (!next || !hn_is_op(next, op) || next->graph != n->graph ||
      !hn_same_shape(&next->out[0]->desc, &x->desc))
    return NULL;
  for (uint32_t k = 0; k < 2; k++)
    if (next->in[k] != n->out[0] && hn_known_desc(next->in[k])) return *with = next->in[k], next;
  return NULL;
}

typedef struct norm {
  hn_value *x, *gamma; /* gamma NULL: none */
  double eps;
  bool centred;
} norm;

/* Is `by` what d is divided by (multiplied with, where `times`) in a norm? */
static bool read_norm(hn_value *d, hn_value *by, bool times, norm *f, bool *near) {
  hone_node *sub = d->producer;
  *f = (norm){.x = d};
  if (sub && hn_is_op(sub, "Sub") && sub->in[0] && is_column(sub->in[1], sub->in[0]) &&
      of_mean(sub->in[1]) == sub->in[0])
    f->x = sub->in[0], f->centred = true;
  hone_node *scale = by->producer;
  if (times && scale && hn_is_op(scale, "Mul"))
    for (uint32_t k = 0; k < 2 && !f->gamma; k++)
      if (hn_known_desc(scale->in[k])) f->gamma = scale->in[k], by = scale->in[1 - k];
  if (!is_column(by, f->x)) return false;
  hn_value *root = hn_behind_views(by);
  if (times) {
    if (!root->producer || !hn_is_op(root->producer, "Reciprocal")) return false;
    root = root->producer->in[0];
  }
  hn_value *variance = under_root(root, f->x, &f->eps);
  *near = variance && f->centred;
  return variance && is_variance(variance, f->x, f->centred);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const bool times = hn_is_op(n, "Mul");
  if (!ctx->options->lowered || n->n_in != 2 || !n->in[0] || !n->in[1] ||
      n->out[0]->desc.dtype != HONE_DTYPE_F32 || hone_desc_count(&n->out[0]->desc) < 1)
    return HN_PASS_NONE;
  norm f;
  bool found = false, near = false;
  for (uint32_t k = 0; k < (times ? 2 : 1) && !found; k++) {
    bool nearly = false;
    found = read_norm(n->in[k], n->in[1 - k], times, &f, &nearly);
    near |= nearly;
  }
  if (!found) return near ? hn_pass_miss(ctx, "what is under the root is no variance") : HN_PASS_NONE;
  hn_value *with = f.gamma, *in[3] = {f.x, NULL, NULL};
  hone_node *end = n, *next = f.gamma ? NULL : followed_by(n, "Mul", f.x, &with);
  if (f.gamma || next) in[1] = vector(ctx, n, with, f.x);
  if (in[1] && next) end = next;
  if (!in[1] && f.gamma && !ctx->status) return hn_pass_miss(ctx, "its scale is no vector");
  if (!in[1] && !ctx->status) in[1] = vector(ctx, n, NULL, f.x);
  next = f.centred && !ctx->status ? followed_by(end, "Add", f.x, &with) : NULL;
  if (next) in[2] = vector(ctx, next, with, f.x);
  if (in[2]) end = next;
  if (ctx->status) return HN_PASS_FAIL;
  hn_value *y = hn_make_newest(ctx, end, f.centred ? "LayerNormalization" : "RMSNormalization", in,
                               in[2] ? 3 : 2, &f.x->desc);
  if (!y || !hn_node_set_int(y->producer, "axis", -1) ||
      !hn_node_set_float(y->producer, "epsilon", (float)f.eps) ||
      (end != n && !hn_inherit(ctx, y->producer, n)))
    return HN_PASS_FAIL;
  hn_pass_hit(ctx, "this is %s", y->producer->op_type);
  if (!hn_replace(ctx, end->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(end, 12);
  return HN_PASS_HIT;
}

HN_PASS(spelled_norm) = {
    .name = "spelled_norm",
    .level = 2,
    .about = "(x - mean) / sqrt(mean of squares - mean^2 + eps) -> LayerNormalization, RMSNormalization",
    .visit = visit,
    .roots = HN_ROOTS("Mul", "Div")};
