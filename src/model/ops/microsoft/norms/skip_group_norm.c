/* SkipGroupNorm: GroupNorm of x + skip + bias, a sum that is an output, too. skip has x's dimensions, or one
 * pixel, or none. */
#include "model/ops/microsoft/norms/group_norm.h"

enum { X, GAMMA, BETA, SKIP, BIAS };
enum { Y, SUM };

/* Whether skip is one pixel for all. */
static bool one_pixel(const hone_tensor_desc *x, const hone_tensor_desc *skip) {
  return skip->rank != x->rank || hn_dims(skip, 1, skip->rank) < hn_dims(x, 1, x->rank);
}

static hone_status check_skip(const hone_infer *io, int64_t channels, bool last, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *skip = io->input[SKIP];
  int64_t pixel[HONE_MAX_RANK];
  if (x->rank < 0 || skip->rank < 0) return HONE_OK;
  const int32_t axis = last ? x->rank - 1 : 1;
  if (skip->rank == 2)
    return hn_infer_dims(io, SKIP, "skip", 2, (const int64_t[]){x->dim[0], channels}, error);
  bool one = skip->rank == x->rank;
  for (int32_t i = 1; i < x->rank && one; i++) one = i == axis || skip->dim[i] == 1;
  for (int32_t i = 0; i < x->rank; i++) pixel[i] = i == 0 || i == axis || !one ? x->dim[i] : 1;
  return hn_infer_dims(io, SKIP, "skip", x->rank, pixel, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t channels;
  hone_status s = hn_group_norm_infer(io, &channels, error);
  if (!s) s = hn_infer_same_dtype(io, X, SKIP, error);
  if (!s) s = hn_infer_same_dtype(io, X, BIAS, error);
  if (!s) s = check_skip(io, channels, hone_node_int(io->node, "channels_last", 1) != 0, error);
  if (!s) s = hn_infer_vector(io, BIAS, channels, error);
  if (!s) hn_infer_set(io, SUM, io->input[X]->dtype, io->input[X]->rank, io->input[X]->dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *skip = call->input[SKIP];
  const hone_tensor_desc *d = &x->desc;
  const bool last = hone_node_int(call->node, "channels_last", 1) != 0, one = one_pixel(d, &skip->desc);
  const int64_t channels = d->dim[last ? d->rank - 1 : 1], each = hn_dims(d, 1, d->rank),
                pixels = channels ? each / channels : 0, row = last ? channels : pixels;
  const double *bias = hn_call_has(call, BIAS) ? hn_all_f64(call, call->input[BIAS], error) : NULL;
  double *data = hn_scratch(call, row, sizeof *data, error),
         *more = data ? hn_scratch(call, row, sizeof *more, error) : NULL;
  hone_tensor room, *sum = call->n_outputs > SUM && call->output[SUM] ? call->output[SUM] : &room;
  if (!more || (!bias && hn_call_has(call, BIAS)) ||
      (sum == &room && !hn_inner_tensor(call, d->dtype, d->rank, d->dim, &room, error)))
    return HONE_ERROR_MEMORY;
  for (int64_t at = 0; row && at < hn_count(x); at += row) {
    const int64_t sample = at / each, c = last ? 0 : at % each / pixels;
    hn_load_f64(data, x, at, row);
    if (!one)
      hn_load_f64(more, skip, at, row);
    else if (last)
      hn_load_f64(more, skip, sample * channels, row);
    for (int64_t i = 0; i < row; i++) {
      data[i] += one && !last ? hn_get_f64(skip, sample * channels + c) : more[i];
      if (bias) data[i] += bias[last ? i : c];
    }
    hn_store_f64(sum, at, data, row);
  }
  return hn_group_norm_run(call, sum, error);
}

static const hone_attr_desc attrs[] = {HN_GROUP_NORM_ATTRS, {0}};

HN_OP(skip_group_norm) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "SkipGroupNorm",
                          .since = 1,
                          HN_INPUTS(4, 5),
                          HN_OUTPUTS(1, 2),
                          .types = HN_TYPES_FLOAT,
                          .attrs = attrs,
                          .infer = infer,
                          .cost = hn_group_norm_cost,
                          .reference = reference};
