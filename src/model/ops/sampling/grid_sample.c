/* GridSample: samples the input at the places that a grid gives, in any number of spatial dimensions.
 * Coordinates are computed in f32, so that nearest-neighbour ties fall as elsewhere; sums in double. */
#include "model/ops/common/bulk.h"

enum { MAX_AXES = HONE_MAX_RANK - 2, CUBIC_TAPS = 4 };
typedef enum { NEAREST, LINEAR, CUBIC } sampling;
typedef enum { ZEROS, BORDER, REFLECTION } padding;

typedef struct options {
  sampling mode;
  padding pad;
  bool align;
} options;

/* The taps of one axis for one point; index < 0: a zero of the padding. */
typedef struct taps {
  int32_t n;
  int64_t index[CUBIC_TAPS];
  double weight[CUBIC_TAPS];
} taps;

static hone_status read_options(const hone_node *node, options *o, hone_error *error) {
  bool old = hone_node_opset(node) < 20;
  const char *mode = hone_node_string(node, "mode", old ? "bilinear" : "linear");
  const char *pad = hone_node_string(node, "padding_mode", "zeros");
  o->align = hone_node_int(node, "align_corners", 0) != 0;
  if (!strcmp(mode, "nearest"))
    o->mode = NEAREST;
  else if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear"))
    o->mode = LINEAR;
  else if (!strcmp(mode, "cubic") || !strcmp(mode, "bicubic"))
    o->mode = CUBIC;
  else
    return hn_op_bad(node, error, "mode is \"%s\"", mode);
  if (!strcmp(pad, "zeros"))
    o->pad = ZEROS;
  else if (!strcmp(pad, "border"))
    o->pad = BORDER;
  else if (!strcmp(pad, "reflection"))
    o->pad = REFLECTION;
  else
    return hn_op_bad(node, error, "padding_mode is \"%s\"", pad);
  return HONE_OK;
}

/* Input [N, C, D1...Dr], grid [N, E1...Er, r] gives [N, C, E1...Er]. */
static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *grid = io->input[1];
  int64_t dims[HONE_MAX_RANK];
  int32_t rank = x->rank >= 0 ? x->rank : grid->rank;
  options o;
  hone_status s = read_options(io->node, &o, error);
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

/* Reflects x at lo and hi until it lies between them. */
static double reflect(double x, double lo, double hi) {
  double range = hi - lo, beyond = x < lo ? lo - x : x > hi ? x - hi : 0;
  if (!(range > 0)) return lo;
  if (beyond == 0) return x;
  double turns = floor(beyond / range), rest = beyond - turns * range;
  bool even = fmod(turns, 2) == 0;
  return (x < lo) == even ? lo + rest : hi - rest;
}

static int64_t tap_index(const options *o, double i, int64_t n) {
  if (o->pad == ZEROS) return i >= 0 && i < (double)n ? (int64_t)i : -1;
  if (o->pad == REFLECTION) i = o->align ? reflect(i, 0, (double)n - 1) : reflect(i, -0.5, (double)n - 0.5);
  return !(i > 0) ? 0 : i >= (double)n ? n - 1 : (int64_t)i;
}

static void find_taps(const options *o, float g, int64_t n, taps *t) {
  const double a = -0.75; /* parameter of Keys' kernel */
  float size = (float)n;
  float coordinate = o->align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
  double x = o->mode == NEAREST ? (double)rintf(coordinate) : (double)coordinate;
  double lo = o->align ? 0 : -0.5, hi = o->align ? (double)n - 1 : (double)n - 0.5;
  if (isnan(x)) x = -100; /* outside, whatever the padding makes of that */
  if (x < lo || x > hi) {
    /* Cubic weights keep the true place; its taps are moved to the border one by one. */
    if (o->pad == BORDER && o->mode != CUBIC) x = x < 0 ? 0 : (double)n - 1;
    if (o->pad == REFLECTION) x = isinf(x) ? lo : reflect(x, lo, hi);
  }
  double base = floor(x), f = x - base;
  if (isinf(x)) f = 0;
  if (o->mode == NEAREST) {
    *t = (taps){1, {tap_index(o, o->pad == ZEROS ? x : rint(x), n)}, {1}};
    return;
  }
  t->n = o->mode == LINEAR ? 2 : CUBIC_TAPS;
  for (int32_t k = 0; k < t->n; k++) {
    double at = base + k - (o->mode == CUBIC), d = fabs((double)k - (o->mode == CUBIC) - f);
    t->index[k] = tap_index(o, at, n);
    t->weight[k] = o->mode == LINEAR ? 1 - d
                   : d <= 1          ? ((a + 2) * d - (a + 3)) * d * d + 1
                                     : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
}

/* Sum over the product of all axes' taps. */
static double sample(const double *plane, const int64_t *dim, const taps *t, int32_t axes) {
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
  int64_t channels = x->desc.dim[1], in = hn_dims_product(&x->desc, 2, rank),
          out = hn_dims_product(&y->desc, 2, rank);
  options o;
  taps t[MAX_AXES];
  hone_status s = read_options(call->node, &o, error);
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
        find_taps(&o, g[(n * out + p) * axes + axes - 1 - d], x->desc.dim[2 + d], &t[d]);
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
  options o;
  double each = 0;
  if (y && y->rank > 2 && read_options(io->node, &o, NULL) == HONE_OK)
    each = o.mode == NEAREST ? 1 : 2 * pow(o.mode == LINEAR ? 2 : 4, y->rank - 2);
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
