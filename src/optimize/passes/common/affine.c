#include "base/dims.h"
#include "model/ops/normalize/training.h"
#include "optimize/passes/common/affine.h"

#include <math.h>
#include <string.h>

static bool is_gemm(const hone_node *n) { return hn_is_op(n, "Gemm"); }

static int64_t refuse(hn_pass_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int64_t refuse(hn_pass_context *ctx, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(ctx->why.text, sizeof ctx->why.text, format, args);
  va_end(args);
  return -1;
}

int64_t hn_affine_channels(hn_pass_context *ctx, const hone_node *n) {
  const hone_tensor *w = hn_known_desc(hn_in(n, 1)), *b = hn_known(hn_in(n, 2));
  if (!w) return refuse(ctx, "the weights of '%.80s' are no constant", n->name);
  if (!hn_foldable_float(w->desc.dtype))
    return refuse(ctx, "the weights of '%.80s' are %s, not f32 or f64", n->name,
                  hone_dtype_name(w->desc.dtype));
  if (hn_in(n, 2) && !b) return refuse(ctx, "the bias of '%.80s' is no constant", n->name);
  if (w->desc.rank < 2) return refuse(ctx, "the weights of '%.80s' have rank %d", n->name, w->desc.rank);
  int64_t channels;
  if (hn_is_op(n, "Conv"))
    channels = w->desc.dim[0];
  else if (hn_is_op(n, "ConvTranspose"))
    channels = w->desc.dim[1] * hone_node_int(n, "group", 1);
  else if (is_gemm(n))
    channels = w->desc.dim[hone_node_int(n, "transB", 0) ? 0 : 1];
  else
    return refuse(ctx, "%s has no channels to scale", n->op_type);
  if (channels < 1) return refuse(ctx, "'%.80s' has no channels", n->name);
  if (b && is_gemm(n)) { /* C broadcasts: one value a column is what a bias is */
    int64_t count = hn_count(b);
    if (b->desc.rank > 2 || (count != 1 && !(count == channels && b->desc.dim[b->desc.rank - 1] == channels)))
      return refuse(ctx, "input C of '%.80s' is no bias", n->name);
  } else if (b && hn_count(b) != channels)
    return refuse(ctx, "the bias of '%.80s' has another length than its channels", n->name);
  return channels;
}

/* Conv: one run a channel. ConvTranspose [C, M/group, ...]: a row of C has M/group runs, of its group's
 * channels. Gemm without transB is the same with one group. */
static hn_runs runs_of(const hone_node *n, const hone_tensor *w) {
  const int64_t inner = hn_dims(&w->desc, 2, w->desc.rank), columns = w->desc.dim[1];
  if (hn_is_op(n, "Conv") || (is_gemm(n) && hone_node_int(n, "transB", 0)))
    return (hn_runs){.length = inner * columns, .period = 1};
  int64_t group = is_gemm(n) ? 1 : hone_node_int(n, "group", 1);
  return (hn_runs){
      .length = inner, .period = columns, .rows = group > 0 ? w->desc.dim[0] / group : 0, .transposed = true};
}

/* The weights times alpha * k, on top of what a pass before this one deferred. */
static const hn_deferred *scale_f32(hn_pass_context *ctx, const hone_node *n, double alpha, const double *k,
                                    int64_t channels) {
  hn_arena *a = &ctx->model->arena;
  const hn_deferred *old = n->in[1]->deferred;
  const hone_tensor *w = n->in[1]->constant;
  hn_deferred *d = HN_NEW(a, hn_deferred);
  double *factor = HN_NEW_ARRAY(a, double, channels);
  if (!d || !factor) return NULL;
  for (int64_t c = 0; c < channels; c++) factor[c] = alpha * k[c] * (old && old->factor ? old->factor[c] : 1);
  *d = (hn_deferred){.from = old ? old->from : w->data,
                     .type = old ? old->type : HONE_DTYPE_F32,
                     .count = hn_count(w),
                     .runs = runs_of(n, w),
                     .factor = factor};
  return d;
}

/* Only what a step of the main graph alone will read, and only if it is large enough to be worth it. */
static bool deferrable(const hn_pass_context *ctx, const hone_node *n, const hone_tensor *w) {
  return ctx->options->defer && !n->graph->parent && hone_desc_bytes(&w->desc) >= HN_BYTES_LARGE;
}

static bool scale_f64(const hone_node *n, const hone_tensor *w, double alpha, const double *k, double *out) {
  hn_runs r = runs_of(n, w);
  const double *in = w->data;
  int64_t count = hn_count(w);
  bool bad = false;
  for (int64_t run = 0, i = 0; i < count; run++, i += r.length)
    for (int64_t j = i; j < i + r.length; j++) {
      out[j] = in[j] * alpha * k[hn_run_channel(&r, run)];
      bad |= !isfinite(out[j]) && isfinite(in[j]);
    }
  return !bad;
}

static bool fits(double v, hone_dtype d) {
  return d == HONE_DTYPE_F64 ? isfinite(v) : fabs(v) <= 3.4028234e38;
}

hn_pass_result hn_affine_apply(hn_pass_context *ctx, hone_node *n, const double *k, const double *d,
                               int64_t channels) {
  const hone_tensor *w = hn_known_desc(n->in[1]), *b = hn_known(hn_in(n, 2));
  hone_dtype dtype = w->desc.dtype;
  double alpha = is_gemm(n) ? hone_node_float(n, "alpha", 1) : 1,
         beta = is_gemm(n) ? hone_node_float(n, "beta", 1) : 1;
  double *bias = HN_NEW_ARRAY(ctx->scratch, double, channels);
  if (!bias) return hn_pass_memory(ctx);
  for (int64_t c = 0; c < channels; c++) {
    double old = b ? beta * hn_get_f64(b, hn_count(b) == 1 ? 0 : c) : 0;
    bias[c] = old * (k ? k[c] : 1) + (d ? d[c] : 0);
    if (!fits(bias[c], dtype)) return hn_pass_miss(ctx, "the folded bias of '%.80s' would overflow", n->name);
  }
  hn_value *new_w = n->in[1], *new_b = NULL;
  const hn_deferred *scaled = NULL;
  void *data;
  if (k) {
    if (dtype == HONE_DTYPE_F32 && !(scaled = scale_f32(ctx, n, alpha, k, channels)))
      return hn_pass_memory(ctx);
    if (scaled && deferrable(ctx, n, w)) {
      if (!(new_w = hn_make_deferred(ctx, n->in[1]->name, &w->desc, scaled))) return HN_PASS_FAIL;
    } else if (!(w = hn_known(n->in[1])) || !(new_w = hn_make_room(ctx, n->in[1]->name, &w->desc, &data)))
      return hn_pass_memory(ctx);
    else if (!(scaled ? hn_deferred_make(scaled, data) : scale_f64(n, w, alpha, k, data)))
      return hn_pass_miss(ctx, "the folded weights of '%.80s' would overflow", n->name);
  }
  if (d || b) {
    hone_tensor_desc bd = hone_desc(dtype, 1, &channels);
    new_b = hn_make_floats(ctx, b ? n->in[2]->name : n->in[1]->name, &bd, bias);
    if (!new_b) return HN_PASS_FAIL;
  }
  if (!hn_set_input(ctx, n, 1, new_w) || (new_b && !hn_set_input(ctx, n, 2, new_b))) return HN_PASS_FAIL;
  if (k) hn_node_drop_attr(n, "alpha");
  if (new_b) hn_node_drop_attr(n, "beta");
  return HN_PASS_HIT;
}

/* hn_get_f64, without asking for each number what it is. */
static double number_at(const hone_tensor *t, int64_t i) {
  if (t->desc.dtype != HONE_DTYPE_F32) return hn_get_f64(t, i);
  float x;
  memcpy(&x, (const char *)t->data + i * (int64_t)sizeof x, sizeof x);
  return x;
}

int64_t hn_affine_of_batch_norm(hn_pass_context *ctx, const hone_node *n, double **k, double **d) {
  static const char *const what[] = {"", "scale", "bias", "mean", "variance"};
  double eps = hone_node_float(n, "epsilon", 1e-5f);
  if (hn_batch_norm_trains(n)) return refuse(ctx, "the normalisation is in training mode");
  if (hone_node_int(n, "spatial", 1) != 1)
    return refuse(ctx, "the normalisation is not per channel (spatial = 0)");
  for (uint32_t i = 1; i < n->n_out; i++)
    if (n->out[i] && hn_value_needed(n->out[i])) return refuse(ctx, "the running statistics are read");
  int64_t channels = -1;
  for (uint32_t i = 1; i < 5; i++) {
    const hone_tensor *t = hn_known(hn_in(n, i));
    if (!t || !hn_foldable_float(t->desc.dtype) || t->desc.rank != 1)
      return refuse(ctx, "the %s of '%.80s' is no constant vector of f32 or f64", what[i], n->name);
    if (channels >= 0 && t->desc.dim[0] != channels) return refuse(ctx, "the parameters differ in length");
    channels = t->desc.dim[0];
  }
  *k = HN_NEW_ARRAY(ctx->scratch, double, channels + 1);
  *d = HN_NEW_ARRAY(ctx->scratch, double, channels + 1);
  if (!*k || !*d) return hn_pass_memory(ctx), -1;
  for (int64_t c = 0; c < channels; c++) {
    double p[5];
    for (uint32_t i = 1; i < 5; i++) p[i] = number_at(n->in[i]->constant, c);
    (*k)[c] = p[1] / sqrt(p[4] + eps);
    (*d)[c] = p[2] - p[3] * (*k)[c];
    if (!isfinite((*k)[c]) || !isfinite((*d)[c]))
      return refuse(ctx, "channel %lld of '%.60s' is not finite", (long long)c, n->name);
  }
  return channels;
}
