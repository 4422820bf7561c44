/* GroupNorm(x, gamma, beta)                 ->  f(GroupNormalization(x, gamma, beta))
 * SkipGroupNorm(x, gamma, beta, skip, bias) ->  the same of x + skip + bias
 *
 * Where the channels are the last dimension, between Transposes. f: nothing, or SiLU. */
#include "model/ops/microsoft/norms/group_norm.h"
#include "optimize/passes/common/pass.h"

enum { X, GAMMA, BETA, SKIP, BIAS };
enum { Y, SUM };
enum { BY_CHANNELS = 21 }; /* the opset since which gamma and beta are by channels, not by groups */

/* x + v, where v has dimensions of 1 but for the first (where it has one) and the channels. */
static hn_value *add(hn_pass_context *ctx, hone_node *n, hn_value *x, hn_value *v, bool last) {
  const hone_tensor_desc *d = &x->desc;
  if (v->desc.rank != d->rank) {
    int64_t dim[HONE_MAX_RANK];
    const int32_t axis = last ? d->rank - 1 : 1;
    for (int32_t i = 0; i < d->rank; i++)
      dim[i] = i == axis ? d->dim[axis] : i == 0 && v->desc.rank == 2 ? d->dim[0] : 1;
    const hone_tensor_desc like = hone_desc(d->dtype, d->rank, dim);
    hn_value *shape = hn_make_ints(ctx, v->name, dim, d->rank);
    v = shape ? hn_make_newest(ctx, n, "Reshape", (hn_value *const[]){v, shape}, 2, &like) : NULL;
  }
  return v ? hn_make_newest(ctx, n, "Add", (hn_value *const[]){x, v}, 2, d) : NULL;
}

/* A number for each of `groups`. */
static hn_value *for_groups(hn_pass_context *ctx, hone_node *n, int64_t groups, double each) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &groups);
  void *data;
  hn_value *v = hn_make_room(ctx, n->in[GAMMA]->name, &d, &data);
  for (int64_t i = 0; i < groups && v; i++) ((float *)data)[i] = (float)each;
  return v;
}

/* x gamma + beta, by channels. */
static hn_value *by_channels(hn_pass_context *ctx, hone_node *n, hn_value *x) {
  hn_value *part[2];
  const int64_t channels = x->desc.dim[1];
  for (int i = 0; i < 2; i++) {
    int64_t dim[HONE_MAX_RANK];
    for (int32_t k = 0; k < x->desc.rank; k++) dim[k] = k == 1 ? channels : 1;
    const hone_tensor_desc like = hone_desc(HONE_DTYPE_F32, x->desc.rank, dim);
    hn_value *shape = hn_make_ints(ctx, n->in[GAMMA + i]->name, dim, x->desc.rank);
    if (!shape) return NULL;
    part[i] = hn_make_newest(ctx, n, "Reshape", (hn_value *const[]){n->in[GAMMA + i], shape}, 2, &like);
    if (!part[i]) return NULL;
  }
  hn_value *v = hn_make_newest(ctx, n, "Mul", (hn_value *const[]){x, part[0]}, 2, &x->desc);
  return v ? hn_make_newest(ctx, n, "Add", (hn_value *const[]){v, part[1]}, 2, &x->desc) : NULL;
}

static hn_value *normalised(hn_pass_context *ctx, hone_node *n, const hn_group_norm *g, hn_value *x) {
  hn_value *v = g->last ? hn_make_turned(ctx, n, x, hn_channels_first_perm) : x;
  const bool whole = hn_model_opset(ctx->model, "") >= BY_CHANNELS;
  hn_value *one = whole ? n->in[GAMMA] : for_groups(ctx, n, g->groups, 1),
           *none = whole ? n->in[BETA] : for_groups(ctx, n, g->groups, 0);
  if (!one || !none) return NULL;
  if (v) v = hn_make_newest(ctx, n, "GroupNormalization", (hn_value *const[]){v, one, none}, 3, &v->desc);
  if (v && (!hn_node_set_int(v->producer, "num_groups", g->groups) ||
            !hn_node_set_float(v->producer, "epsilon", g->epsilon)))
    return hn_pass_memory(ctx), NULL;
  if (v && !whole) v = by_channels(ctx, n, v);
  if (v && g->silu) {
    hn_value *open = hn_make_newest(ctx, n, "Sigmoid", &v, 1, &v->desc);
    v = open ? hn_make_newest(ctx, n, "Mul", (hn_value *const[]){v, open}, 2, &v->desc) : NULL;
  }
  return v && g->last ? hn_make_turned(ctx, n, v, hn_channels_last_perm) : v;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  const bool skips = strcmp(n->op_type, "SkipGroupNorm") == 0;
  if (!skips && strcmp(n->op_type, "GroupNorm") != 0) return HN_PASS_NONE;
  hn_group_norm g;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && (n->in[i]->desc.dtype != HONE_DTYPE_F32 || !hone_desc_known(&n->in[i]->desc)))
      return hn_pass_miss(ctx, "an operand is not f32, or of unknown shape");
  if (hn_group_norm_of(n, &g, NULL)) return hn_pass_miss(ctx, "its attributes");
  hn_value *x = n->in[X];
  if (skips) x = add(ctx, n, x, n->in[SKIP], g.last);
  if (x && skips && hn_in(n, BIAS)) x = add(ctx, n, x, n->in[BIAS], g.last);
  hn_value *y = x ? normalised(ctx, n, &g, x) : NULL;
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "GroupNormalization of ONNX");
  if (skips && n->n_out > SUM && n->out[SUM] && hn_value_needed(n->out[SUM]) &&
      !hn_replace(ctx, n->out[SUM], x))
    return HN_PASS_FAIL;
  if (!hn_replace(ctx, n->out[Y], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_group_norms) = {
    .name = "open_group_norms",
    .level = 1,
    .about = "GroupNorm and SkipGroupNorm of com.microsoft -> Add, GroupNormalization, SiLU",
    .visit = visit,
    .roots = HN_ROOTS("SkipGroupNorm", "GroupNorm"),
};
