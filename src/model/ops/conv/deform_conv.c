/* DeformConv: Conv in which every tap reads where its offset says, between pixels by linear interpolation,
 * and counts as much as its mask says. What lies outside of the input is zero. */
#include "base/wide.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { X, W, OFFSET, BIAS, MASK };
enum { SPACE = HONE_MAX_RANK - 2 };

typedef struct geometry {
  int32_t space;                     /* spatial dimensions */
  int64_t group, offset_group, taps; /* taps: of one channel's kernel, < 0: not known */
  int64_t kernel[SPACE], stride[SPACE], dilation[SPACE], pad[SPACE], y[SPACE]; /* < 0: not known */
} geometry;

static hone_status list(const hone_node *node, const char *name, int32_t n, int64_t least, int64_t otherwise,
                        int64_t *out, hone_error *error) {
  size_t given = 0;
  const int64_t *v = hone_node_ints(node, name, &given);
  if (v && given != (size_t)n)
    return hn_op_bad(node, error, "%s holds %zu numbers, expected %d", name, given, (int)n);
  for (int32_t i = 0; i < n; i++) {
    out[i] = v ? v[i] : otherwise;
    if (v && (v[i] < least || v[i] > INT32_MAX))
      return hn_op_bad(node, error, "%s has %lld", name, (long long)v[i]);
  }
  return HONE_OK;
}

/* What the attributes, X and W say; x and w have the same rank >= 3. */
static hone_status find_geometry(const hone_node *node, const hone_tensor_desc *x, const hone_tensor_desc *w,
                                 geometry *g, hone_error *error) {
  int64_t pads[2 * SPACE];
  *g = (geometry){.space = x->rank - 2,
                  .group = hone_node_int(node, "group", 1),
                  .offset_group = hone_node_int(node, "offset_group", 1),
                  .taps = 1};
  if (g->group < 1 || g->offset_group < 1)
    return hn_op_bad(node, error, "group is %lld, offset_group %lld", (long long)g->group,
                     (long long)g->offset_group);
  hone_status s = list(node, "kernel_shape", g->space, 1, HONE_DIM_UNKNOWN, g->kernel, error);
  if (!s) s = list(node, "strides", g->space, 1, 1, g->stride, error);
  if (!s) s = list(node, "dilations", g->space, 1, 1, g->dilation, error);
  if (!s) s = list(node, "pads", 2 * g->space, 0, 0, pads, error);
  for (int32_t i = 0; i < g->space && !s; i++) {
    if (g->kernel[i] < 0) g->kernel[i] = w->dim[2 + i];
    if (w->dim[2 + i] >= 0 && g->kernel[i] != w->dim[2 + i])
      return hn_op_bad(node, error, "kernel_shape has %lld, the weights %lld", (long long)g->kernel[i],
                       (long long)w->dim[2 + i]);
    g->pad[i] = pads[i];
    g->y[i] = HONE_DIM_UNKNOWN;
    if (g->kernel[i] < 0) g->taps = HONE_DIM_UNKNOWN;
    if (g->kernel[i] == 0) return hn_op_bad(node, error, "the kernel is empty");
    if (g->taps > 0 && __builtin_mul_overflow(g->taps, g->kernel[i], &g->taps))
      return hn_op_bad(node, error, "the kernel is too large");
    if (g->kernel[i] < 0 || x->dim[2 + i] < 0) continue;
    int64_t span, room;
    if (__builtin_mul_overflow(g->kernel[i] - 1, g->dilation[i], &span) ||
        __builtin_add_overflow(x->dim[2 + i], pads[i] + pads[g->space + i], &room))
      return hn_op_bad(node, error, "the kernel or the input is too large");
    if (room <= span)
      return hn_op_bad(node, error, "the kernel spans %lld, the padded input is %lld", (long long)span + 1,
                       (long long)room);
    g->y[i] = (room - span - 1) / g->stride[i] + 1;
  }
  return s;
}

static bool differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

/* offset or mask: [batch, offset_group x taps x each, output space]. */
static hone_status check_taps(const hone_infer *io, uint32_t i, const geometry *g, int64_t each,
                              hone_error *error) {
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  int64_t channels = HONE_DIM_UNKNOWN;
  if (!d || d->rank < 0) return HONE_OK;
  if (g->taps > 0 && (__builtin_mul_overflow(g->taps, g->offset_group, &channels) ||
                      __builtin_mul_overflow(channels, each, &channels)))
    return hn_op_bad(io->node, error, "the kernel is too large");
  bool fits =
      d->rank == g->space + 2 && !differ(d->dim[0], io->input[X]->dim[0]) && !differ(d->dim[1], channels);
  for (int32_t k = 0; k < g->space && fits; k++) fits = !differ(d->dim[2 + k], g->y[k]);
  char text[96];
  return fits ? HONE_OK
              : hn_op_bad(io->node, error, "%s is %s, which does not fit the output: %lld channels expected",
                          i == OFFSET ? "offset" : "mask", hone_desc_format(d, text, sizeof text),
                          (long long)channels);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W];
  geometry g;
  hone_status s = HONE_OK;
  for (uint32_t i = W; i <= MASK && !s; i++) s = hn_infer_same_dtype(io, X, i, error);
  if (s) return s;
  if (x->rank < 0 || w->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if (x->rank < 3 || x->rank != w->rank)
    return hn_op_bad(io->node, error, "X has rank %d, W %d", (int)x->rank, (int)w->rank);
  s = find_geometry(io->node, x, w, &g, error);
  if (!s) s = check_taps(io, OFFSET, &g, g.space, error);
  if (!s) s = check_taps(io, MASK, &g, 1, error);
  if (!s) s = hn_infer_vector(io, BIAS, w->dim[0], error);
  if (s) return s;
  const int64_t c = x->dim[1];
  if ((c >= 0 && (c % g.group || c % g.offset_group || differ(c / g.group, w->dim[1]))) ||
      (w->dim[0] >= 0 && w->dim[0] % g.group))
    return hn_op_bad(io->node, error,
                     "%lld channels of X, W for %lld of them, %lld filters, group %lld, offset_group %lld",
                     (long long)c, (long long)w->dim[1], (long long)w->dim[0], (long long)g.group,
                     (long long)g.offset_group);
  int64_t y[HONE_MAX_RANK] = {x->dim[0], w->dim[0]};
  for (int32_t i = 0; i < g.space; i++)
    y[2 + i] = g.y[i] < 0 && io->input[OFFSET]->rank == x->rank ? io->input[OFFSET]->dim[2 + i] : g.y[i];
  hn_infer_set(io, 0, x->dtype, x->rank, y);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *w = io->input[W];
  const double filters = w->rank > 0 && w->dim[0] > 0 ? (double)w->dim[0] : 1;
  hn_cost_macs(cost, hn_known_count(io->output[0]) * hn_known_count(w) / filters);
}

/* The pixels around a place between them, and their parts of what is there. */
typedef struct corners {
  int64_t at[1 << SPACE];
  double part[1 << SPACE];
  uint32_t n; /* 0: the place is outside */
} corners;

static corners around(const int64_t *dim, int32_t space, const double *place) {
  corners c = {.n = 0};
  for (int32_t i = 0; i < space; i++)
    if (!(place[i] > -1 && place[i] < (double)dim[i])) return c;
  for (uint32_t corner = 0; corner < 1u << space; corner++) {
    double part = 1;
    int64_t at = 0;
    for (int32_t i = 0; i < space && part != 0; i++) {
      const double low = floor(place[i]), beyond = place[i] - low;
      const bool high = corner >> i & 1;
      const int64_t k = (int64_t)low + high;
      part *= k < 0 || k >= dim[i] ? 0 : high ? beyond : 1 - beyond;
      at = at * dim[i] + k;
    }
    if (part != 0) c.at[c.n] = at, c.part[c.n++] = part;
  }
  return c;
}

/* The same in two dimensions, with the same products. */
static inline void around_in_plane(const int64_t *dim, const double *place, corners *c) {
  c->n = 0;
  if (!(place[0] > -1 && place[0] < (double)dim[0] && place[1] > -1 && place[1] < (double)dim[1])) return;
  int64_t y = (int64_t)place[0], x = (int64_t)place[1];
  y -= (double)y > place[0], x -= (double)x > place[1];
  const double below = place[0] - (double)y, right = place[1] - (double)x;
  const double rows[2] = {y < 0 ? 0 : 1 - below, y + 1 >= dim[0] ? 0 : below},
               columns[2] = {x < 0 ? 0 : 1 - right, x + 1 >= dim[1] ? 0 : right};
  for (int corner = 0; corner < 4; corner++) {
    const double part = rows[corner & 1] * columns[corner >> 1];
    if (part != 0) c->at[c->n] = (y + (corner & 1)) * dim[1] + x + (corner >> 1), c->part[c->n++] = part;
  }
}

enum { AT_ONCE = 16, FILTERS = 4 }; /* pixels of the output, and filters, that go side by side */

/* What every tap of every channel reads for some pixels of the output: to[channels x taps][AT_ONCE]. */
static void gather(const hone_call *call, const geometry *g, const double *image, int64_t b, int64_t pixel,
                   int64_t some, int64_t pixels, double *to) {
  const hone_tensor_desc *x = &call->input[X]->desc;
  const int64_t plane = hn_dims(x, 2, x->rank), each = x->dim[1] / g->offset_group;
  int64_t base[SPACE][AT_ONCE]; /* where the windows begin */
  for (int p = 0; p < some; p++) {
    int64_t o = pixel + p;
    for (int32_t i = g->space - 1; i >= 0; o /= g->y[i], i--)
      base[i][p] = o % g->y[i] * g->stride[i] - g->pad[i];
  }
  for (int64_t tap = 0; tap < g->offset_group * g->taps; tap++) {
    double shift[SPACE][AT_ONCE], weight[AT_ONCE];
    corners at[AT_ONCE];
    int64_t k = tap % g->taps, along[SPACE];
    const int64_t first = b * g->offset_group * g->taps + tap, part = tap / g->taps;
    for (int32_t i = g->space - 1; i >= 0; k /= g->kernel[i], i--)
      along[i] = k % g->kernel[i] * g->dilation[i];
    for (int32_t i = 0; i < g->space; i++)
      hn_load_f64(shift[i], call->input[OFFSET], (first * g->space + i) * pixels + pixel, some);
    for (int p = 0; p < AT_ONCE; p++) weight[p] = 1;
    if (hn_call_has(call, MASK)) hn_load_f64(weight, call->input[MASK], first * pixels + pixel, some);
    for (int p = 0; p < AT_ONCE; p++) {
      double place[SPACE];
      at[p].n = 0;
      if (p >= some) continue;
      for (int32_t i = 0; i < g->space; i++) place[i] = (double)(base[i][p] + along[i]) + shift[i][p];
      if (g->space == 2)
        around_in_plane(x->dim + 2, place, &at[p]);
      else
        at[p] = around(x->dim + 2, g->space, place);
    }
    for (int64_t c = part * each; c < (part + 1) * each; c++) {
      double *row = to + (c * g->taps + tap % g->taps) * AT_ONCE;
      const double *from = image + c * plane;
      for (int p = 0; p < AT_ONCE; p++) {
        double sum = 0;
        for (uint32_t i = 0; i < at[p].n; i++) sum += at[p].part[i] * from[at[p].at[i]];
        row[p] = weight[p] * sum;
      }
    }
  }
}

typedef double lanes __attribute__((vector_size(64), aligned(8)));
enum { VECTORS = AT_ONCE * sizeof(double) / sizeof(lanes) };

/* sums[some filters][AT_ONCE] += w[..][n] column[n][AT_ONCE], in the order of n. */
HN_WIDE_BODY void products_body(double *sums, const double *w, const double *column, int64_t n,
                                const int some) {
  lanes own[FILTERS][VECTORS], *to = (lanes *)(void *)sums;
  const lanes *from = (const lanes *)(const void *)column;
  for (int f = 0; f < some; f++)
    for (unsigned v = 0; v < VECTORS; v++) own[f][v] = to[(unsigned)f * VECTORS + v];
  for (int64_t i = 0; i < n; i++, from += VECTORS)
    for (int f = 0; f < some; f++)
      for (unsigned v = 0; v < VECTORS; v++) own[f][v] += w[f * n + i] * from[v];
  for (int f = 0; f < some; f++)
    for (unsigned v = 0; v < VECTORS; v++) to[(unsigned)f * VECTORS + v] = own[f][v];
}
HN_WIDE_BODY void several_body(double *sums, const double *w, const double *column, int64_t n) {
  products_body(sums, w, column, n, FILTERS);
}
HN_WIDE_BODY void one_body(double *sums, const double *w, const double *column, int64_t n) {
  products_body(sums, w, column, n, 1);
}
HN_WIDE(void, add_several, several_body, (double *sums, const double *w, const double *column, int64_t n),
        (sums, w, column, n))
HN_WIDE(void, add_one, one_body, (double *sums, const double *w, const double *column, int64_t n),
        (sums, w, column, n))

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *x = &call->input[X]->desc, *w = &call->input[W]->desc;
  hone_tensor *y = call->output[0];
  geometry g;
  const hone_status s = find_geometry(call->node, x, w, &g, error);
  if (s) return s;
  const int64_t filters = w->dim[0], pixels = hn_dims(&y->desc, 2, y->desc.rank),
                size = hn_dims(x, 1, x->rank), n = w->dim[1] * g.taps, own = filters / g.group;
  const double *weights = hn_all_f64(call, call->input[W], error);
  double *image = weights ? hn_scratch(call, size, sizeof *image, error) : NULL,
         *column = image ? hn_scratch(call, x->dim[1] * g.taps * AT_ONCE, sizeof *column, error) : NULL,
         *sums = column ? hn_scratch(call, filters * AT_ONCE, sizeof *sums, error) : NULL;
  if (!sums) return HONE_ERROR_MEMORY;
  for (int64_t b = 0; b < x->dim[0]; b++) {
    hn_load_f64(image, call->input[X], b * size, size);
    for (int64_t pixel = 0, some; pixel < pixels; pixel += some) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      some = hn_min(AT_ONCE, pixels - pixel);
      gather(call, &g, image, b, pixel, some, pixels, column);
      for (int64_t f = 0; f < filters * AT_ONCE; f++)
        sums[f] = hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], f / AT_ONCE) : 0;
      for (int64_t k = 0; k < g.group; k++)
        for (int64_t f = 0, step; f < own; f += step) {
          const int64_t filter = k * own + f;
          step = own - f >= FILTERS ? FILTERS : 1;
          (step == FILTERS ? add_several : add_one)(sums + filter * AT_ONCE, weights + filter * n,
                                                    column + k * n * AT_ONCE, n);
        }
      for (int64_t f = 0; f < filters; f++)
        hn_store_f64(y, (b * filters + f) * pixels + pixel, sums + f * AT_ONCE, some);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "dilations", .type = HONE_ATTR_INTS},
                                       {.name = "group", .type = HONE_ATTR_INT},
                                       {.name = "kernel_shape", .type = HONE_ATTR_INTS},
                                       {.name = "offset_group", .type = HONE_ATTR_INT},
                                       {.name = "pads", .type = HONE_ATTR_INTS},
                                       {.name = "strides", .type = HONE_ATTR_INTS},
                                       {0}};

HN_OP(deform_conv) = {HN_OP_HEAD,       .op_type = "DeformConv", .since = 19,    HN_INPUTS(3, 5),
                      HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
                      .cost = cost,     .reference = reference};
