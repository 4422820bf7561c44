/* MaxPool, with the positions of the maxima as second output. NaN wins; the first of equal maxima is
 * reported. */
#include "model/ops/pooling/pool.h"

#include "base/wide.h"

typedef struct max_arg {
  int64_t *index; /* NULL: not wanted */
  bool column_major;
  double least; /* of a window that lies wholly in the padding */
} max_arg;

static double window_max(void *p, const hn_pool_tile *t, const double *x, int64_t at) {
  const max_arg *arg = p;
  const hn_window *w = t->window;
  double best = arg->least;
  int64_t place[3] = {0};
  bool any = false;
  for (int64_t i = 0, d = t->first[0]; i < t->count[0]; i++, d += w->dilation[0])
    for (int64_t j = 0, h = t->first[1]; j < t->count[1]; j++, h += w->dilation[1])
      for (int64_t k = 0, c = t->first[2]; k < t->count[2]; k++, c += w->dilation[2]) {
        double v = x[(d * w->in[1] + h) * w->in[2] + c];
        if (any && !(v > best) && !(isnan(v) && !isnan(best))) continue;
        any = true;
        best = v;
        place[0] = d, place[1] = h, place[2] = c;
      }
  if (arg->index) {
    int64_t in_plane = arg->column_major ? (place[2] * w->in[1] + place[1]) * w->in[0] + place[0]
                                         : (place[0] * w->in[1] + place[1]) * w->in[2] + place[2];
    arg->index[at] = t->plane * w->in[0] * w->in[1] * w->in[2] + in_plane;
  }
  return best;
}

/* Outputs o of a row, whose windows have their largest elements so far, and where these lie, in `best` and
 * `place`: another tap of each, `step` apart from x on, at places from `from` on. */
HN_WIDE_BODY void tap_max_body(const double *restrict x, int64_t step, int64_t from, double *restrict best,
                               int64_t *restrict place, int64_t n) {
  enum { BLOCK = 8 };
  const int64_t whole = step == 1 ? n - n % BLOCK : 0;
  for (int64_t j = 0; j < whole; j += BLOCK)
    for (int64_t o = j; o < j + BLOCK; o++) {
      const double v = x[o], b = best[o];
      const bool is = (v > b) | ((v != v) & (b == b));
      best[o] = is ? v : b;
      place[o] = is ? from + o : place[o];
    }
  for (int64_t o = whole; o < n; o++) {
    const double v = x[o * step], b = best[o];
    const bool is = (v > b) | ((v != v) & (b == b));
    best[o] = is ? v : b;
    place[o] = is ? from + o * step : place[o];
  }
}
HN_WIDE(void, tap_max, tap_max_body,
        (const double *x, int64_t step, int64_t from, double *best, int64_t *place, int64_t n),
        (x, step, from, best, place, n))

/* All taps of a row, which begins at place `row` of the plane. */
static void row_max(const hn_window *w, const double *plane, int64_t row, double *best, int64_t *place) {
  for (int64_t k = 0; k < w->kernel[2]; k++) {
    int64_t lo, hi;
    hn_window_range(w, 2, k, &lo, &hi);
    const int64_t step = w->stride[2], from = row + lo * step + k * w->dilation[2] - w->pad[2];
    if (lo < hi) tap_max(plane + from, step, from, best + lo, place + lo, hi - lo);
  }
}

/* As hn_pool_run with window_max, for places row by row of windows that all meet the input. False: some do
 * not. */
static bool rows_with_places(hone_call *call, const hn_window *w, const max_arg *arg, double *plane,
                             double *best, int64_t *begin) {
  const hone_tensor *x = call->input[0];
  const int64_t in = w->in[0] * w->in[1] * w->in[2], planes = x->desc.dim[0] * x->desc.dim[1];
  int64_t at = 0, lo[3], hi[3], first[3];
  for (int32_t d = 0; d < 3; d++)
    for (int64_t o = 0; o < w->out[d]; o++) {
      hn_window_taps(w, d, o, &lo[d], &hi[d], &first[d]);
      if (lo[d] >= hi[d]) return false;
    }
  for (int64_t p = 0; p < planes && !call->stopped(call); p++) {
    hn_load_f64(plane, x, p * in, in);
    for (int64_t d = 0; d < w->out[0]; d++)
      for (int64_t h = 0; h < w->out[1]; h++, at += w->out[2]) {
        int64_t *place = arg->index + at;
        hn_window_taps(w, 0, d, &lo[0], &hi[0], &first[0]);
        hn_window_taps(w, 1, h, &lo[1], &hi[1], &first[1]);
        for (int64_t o = 0; o < w->out[2]; o++) {
          if (p + d + h == 0) {
            hn_window_taps(w, 2, o, &lo[2], &hi[2], &first[2]);
            begin[o] = first[2];
          }
          place[o] = (first[0] * w->in[1] + first[1]) * w->in[2] + begin[o];
          best[o] = plane[place[o]];
        }
        for (int64_t i = lo[0]; i < hi[0]; i++)
          for (int64_t j = lo[1]; j < hi[1]; j++) {
            const int64_t row = ((first[0] + (i - lo[0]) * w->dilation[0]) * w->in[1] + first[1] +
                                 (j - lo[1]) * w->dilation[1]) *
                                w->in[2];
            row_max(w, plane, row, best, place);
          }
        for (int64_t o = 0; o < w->out[2]; o++) place[o] += p * in;
        if (call->output[0]) hn_store_f64(call->output[0], at, best, w->out[2]);
      }
  }
  return true;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t order = hone_node_int(io->node, "storage_order", 0);
  if (order != 0 && order != 1) return hn_op_bad(io->node, error, "storage_order is %lld", (long long)order);
  return hn_pool_infer(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_dtype d = call->input[0]->desc.dtype;
  max_arg arg = {.column_major = hone_node_int(call->node, "storage_order", 0) == 1,
                 .least = d == HONE_DTYPE_I8   ? -128
                          : d == HONE_DTYPE_U8 ? 0
                                               : -INFINITY};
  if (call->n_outputs > 1 && call->output[1]) arg.index = call->output[1]->data;
  if (arg.index && !arg.column_major) {
    hn_window w;
    hone_status s = hn_window_init(&w, call->node, &call->input[0]->desc, NULL,
                                   hone_node_int(call->node, "ceil_mode", 0) != 0, error);
    if (s) return s;
    w = hn_window_3d(&w);
    double *plane = hn_scratch(call, w.in[0] * w.in[1] * w.in[2], sizeof *plane, error);
    double *best = plane ? hn_scratch(call, w.out[2], sizeof *best, error) : NULL;
    int64_t *begin = best ? hn_scratch(call, w.out[2], sizeof *begin, error) : NULL;
    if (!begin) return HONE_ERROR_MEMORY;
    if (rows_with_places(call, &w, &arg, plane, best, begin))
      return call->stopped(call) ? HONE_ERROR_CANCELLED : HONE_OK;
  }
  return hn_pool_run(call, window_max, &arg, error);
}

static const hone_attr_desc attrs[] = {HN_POOL_ATTRS,
                                       {"storage_order", HONE_ATTR_INT, false, 8, 0},
                                       {"ceil_mode", HONE_ATTR_INT, false, 10, 0},
                                       {"dilations", HONE_ATTR_INTS, false, 10, 0},
                                       {0}};

HN_OP(max_pool) = {HN_OP_HEAD,
                   .op_type = "MaxPool",
                   .since = 1,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 2),
                   .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_U8),
                   .attrs = attrs,
                   .infer = infer,
                   .cost = hn_pool_cost,
                   .reference = reference,
                   .layouts = HONE_LAST_ALLOWED | HONE_LAST_WANTED,
                   .codes = HONE_CODES_SAME,
                   .on_codes = "QLinearMaxPool"};
