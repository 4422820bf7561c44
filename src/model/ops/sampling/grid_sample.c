/* GridSample: samples the input at the places that a grid gives, in any number of spatial dimensions.
 * Coordinates are computed in f32, so that nearest-neighbour ties fall as elsewhere; sums in double. */
#include "model/ops/sampling/grid.h"
#include "model/ops/common/bulk.h"

enum { MAX_AXES = HONE_MAX_RANK - 2 };

/* Input [N, C, D1...Dr], grid [N, E1...Er, r] gives [N, C, E1...Er]. */
static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *grid = io->input[1];
  int64_t dims[HONE_MAX_RANK];
  int32_t rank = x->rank >= 0 ? x->rank : grid->rank;
  hn_grid o;
  hone_status s = hn_grid_read(io->node, &o, error);
  if (!s) s = hn_infer_dtype_in(io, 1, HN_TYPES_FLOAT, error);
  if (s) return s;
  if (rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if (rank < 3 || (grid->rank >= 0 && grid->rank != rank))
    return hn_op_bad(io->node, error, "the input has rank %d, the grid %d", (int)x->rank, (int)grid->rank);
  if (grid->rank >= 0 && grid->dim[rank - 1] >= 0 && grid->dim[rank - 1] != rank - 2)
    return hn_op_bad(io->node, error, "the grid has %lld coordinates a point, expected %d",
                     (long long)grid->dim[rank - 1], (int)rank - 2);
  if (x->rank >= 0 && grid->rank >= 0 && x->dim[0] >= 0 && grid->dim[0] >= 0 && x->dim[0] != grid->dim[0])
    return hn_op_bad(io->node, error, "the batches of input and grid differ");
  dims[0] = x->rank >= 0 && x->dim[0] >= 0 ? x->dim[0] : grid->rank >= 0 ? grid->dim[0] : HONE_DIM_UNKNOWN;
  dims[1] = x->rank >= 0 ? x->dim[1] : HONE_DIM_UNKNOWN;
  for (int32_t d = 2; d < rank; d++) dims[d] = grid->rank >= 0 ? grid->dim[d - 1] : HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, x->dtype, rank, dims);
  return HONE_OK;
}

/* Sum over the product of all axes' taps. */
static double sample(const double *plane, const int64_t *dim, const hn_grid_taps *t, int32_t axes) {
  int32_t k[MAX_AXES] = {0};
  double sum = 0;
  for (;;) {
    double w = 1;
    int64_t at = 0;
    bool inside = true;
    for (int32_t d = 0; d < axes; d++) {
      inside = inside && t[d].index[k[d]] >= 0;
      at = at * dim[d] + t[d].index[k[d]];
      w *= t[d].weight[k[d]];
    }
    if (inside) sum += w * plane[at];
    int32_t d = axes - 1;
    while (d >= 0 && ++k[d] == t[d].n) k[d--] = 0;
    if (d < 0) return sum;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *grid = call->input[1];
  hone_tensor *y = call->output[0];
  int32_t rank = x->desc.rank, axes = rank - 2;
  int64_t channels = x->desc.dim[1], in = hn_dims(&x->desc, 2, rank), out = hn_dims(&y->desc, 2, rank);
  hn_grid o;
  hn_grid_taps t[MAX_AXES];
  hone_status s = hn_grid_read(call->node, &o, error);
  if (s || hn_count(y) == 0) return s;
  if (in == 0) return hn_op_bad(call->node, error, "the input is empty");
  const double *data = hn_all_f64(call, x, error);
  const float *g = data ? hn_all_f32(call, grid, error) : NULL;
  if (!g) return HONE_ERROR_MEMORY;
  for (int64_t n = 0; n < x->desc.dim[0]; n++) {
    for (int64_t p = 0; p < out; p++) {
      if ((p & 1023) == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
      /* The grid names the last axis first. */
      for (int32_t d = 0; d < axes; d++)
        hn_grid_find(&o, g[(n * out + p) * axes + axes - 1 - d], x->desc.dim[2 + d], &t[d]);
      for (int64_t c = 0; c < channels; c++) {
        double v = sample(data + (n * channels + c) * in, x->desc.dim + 2, t, axes);
        hn_store_f64(y, (n * channels + c) * out + p, &v, 1);
      }
    }
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *y = io->output[0];
  hn_grid o;
  double each = 0;
  if (y && y->rank > 2 && hn_grid_read(io->node, &o, NULL) == HONE_OK)
    each = o.mode == HN_GRID_NEAREST ? 1 : 2 * pow(o.mode == HN_GRID_LINEAR ? 2 : 4, y->rank - 2);
  hn_cost_flops(cost, y ? each * hn_known_count(y) : 0);
}

static const hone_attr_desc attrs[] = {{"align_corners", HONE_ATTR_INT, false, 0, 0},
                                       {"mode", HONE_ATTR_STRING, false, 0, 0},
                                       {"padding_mode", HONE_ATTR_STRING, false, 0, 0},
                                       {0}};

HN_OP(grid_sample) = {HN_OP_HEAD,       .op_type = "GridSample",
                      .since = 16,      HN_INPUTS(2, 2),
                      HN_OUTPUTS(1, 1), .types = HN_TYPES_NUMBER | HN_TYPES_BOOL,
                      .attrs = attrs,   .infer = infer,
                      .cost = cost,     .reference = reference};
