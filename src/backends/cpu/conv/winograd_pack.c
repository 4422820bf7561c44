/* Weights of Winograd's convolution: transformed in f64, and packed as its products read them. */
#include <string.h>

#include "backends/cpu/conv/winograd_driver.h"
#include "base/stream.h"
#include "base/wide.h"

/* Rows of G, a row a piece.  Stride 1, row of point x: [1 x x^2] / product of its distances to the other
 * points; b = sqrt(2). */
#define SQRT2 1.4142135623730950488
static const double g2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                    g4[6][3] = {{1, 0, 0},
                                {-2 / 3.0, -SQRT2 / 3, -1 / 3.0},
                                {-2 / 3.0, SQRT2 / 3, -1 / 3.0},
                                {1 / 6.0, SQRT2 / 6, 1 / 3.0},
                                {1 / 6.0, -SQRT2 / 6, 1 / 3.0},
                                {0, 0, 1}},
                    g2s2[5][3] = {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}},
                    g3s2[7][3] = {{1, 0, 0},      {0, 1, 0}, {0.5, 0, 0.5}, {0, 1, 0},
                                  {0.5, 0, -0.5}, {0, 0, 1}, {0, 1, 0}};

enum { WIDEST_PANEL = 64 };

enum { BLOCK = 8 }; /* columns of a vector */
typedef double vector __attribute__((vector_size(BLOCK * sizeof(double))));
typedef float halves __attribute__((vector_size(BLOCK * sizeof(float))));

/* Whether row i is the one before with the other sign of its middle: points x and -x. */
HN_WIDE_BODY bool is_mirrored(const double (*g)[3], int i) {
  return i && g[i][1] != 0 && g[i][0] == g[i - 1][0] && g[i][1] == -g[i - 1][1] && g[i][2] == g[i - 1][2];
}

/* The rows of g times (a, b, c).  What a row does not take is not multiplied by 0: it may be an Inf. */
HN_WIDE_BODY void spread(const double (*g)[3], int n, const vector *a, const vector *b, const vector *c,
                         vector *restrict out) {
  vector outer = *a, middle = *b;
#pragma GCC unroll 7
  for (int i = 0; i < n; i++) {
    if (is_mirrored(g, i)) {
      out[i] = outer - middle;
      continue;
    }
    outer = g[i][2] == 0 ? g[i][0] * *a : g[i][0] == 0 ? g[i][2] * *c : g[i][0] * *a + g[i][2] * *c;
    middle = g[i][1] * *b;
    out[i] = g[i][1] == 0 ? outer : g[i][0] == 0 && g[i][2] == 0 ? middle : outer + middle;
  }
}

enum {
  TOGETHER = 8, /* input channels at a time: so many rows of a piece are written together */
  PIECES = HN_WINOGRAD_MAX_PIECES * HN_WINOGRAD_MAX_PIECES
};

/* One input channel of a panel; `taps`: nine rows of its columns. */
HN_WIDE_BODY void pack_body(const double (*g)[3], int n, const float *taps, int64_t width,
                            float (*restrict out)[TOGETHER * WIDEST_PANEL]) {
  for (int64_t j = 0; j < width; j += BLOCK) {
    vector filter[9], rows[3][HN_WINOGRAD_MAX_PIECES], sum[HN_WINOGRAD_MAX_PIECES];
#pragma GCC unroll 9
    for (int t = 0; t < 9; t++) {
      halves x;
      memcpy(&x, taps + t * WIDEST_PANEL + j, sizeof x);
      filter[t] = __builtin_convertvector(x, vector);
    }
#pragma GCC unroll 3
    for (int t = 0; t < 3; t++) spread(g, n, &filter[t], &filter[3 + t], &filter[6 + t], rows[t]);
#pragma GCC unroll 7
    for (int i = 0; i < n; i++) {
      spread(g, n, &rows[0][i], &rows[1][i], &rows[2][i], sum);
#pragma GCC unroll 7
      for (int k = 0; k < n; k++) {
        const halves x = __builtin_convertvector(sum[k], halves);
        memcpy(out[i * n + k] + j, &x, sizeof x);
      }
    }
  }
}

HN_WIDE_BODY void pack_any(const hn_winograd_form *f, const float *taps, int64_t width,
                           float (*restrict out)[TOGETHER * WIDEST_PANEL]) {
  if (f->stride == 2 && f->m == 3)
    pack_body(g3s2, 7, taps, width, out);
  else if (f->stride == 2)
    pack_body(g2s2, 5, taps, width, out);
  else if (f->m == 4)
    pack_body(g4, 6, taps, width, out);
  else
    pack_body(g2, 4, taps, width, out);
}

HN_WIDE(void, pack_channel, pack_any,
        (const hn_winograd_form *f, const float *taps, int64_t width,
         float (*restrict out)[TOGETHER * WIDEST_PANEL]),
        (f, taps, width, out))

/* Where the pieces of tap j of depth lie among the packed weights' matrices, and which they are. */
typedef struct packed_piece {
  int64_t at, piece;
} packed_piece;

static void packed_order(const hn_winograd *p, int64_t j, packed_piece order[PIECES]) {
  const hn_winograd_form *f = hn_winograd_plan_form(p);
  packed_piece *to = order;
  for (int64_t i = 0; i < f->points * f->points; i++) {
    const hn_winograd_frequency here = hn_winograd_frequency_of(f, i);
    int64_t at = here.before * p->depth.kernel + j * here.n;
    for (int64_t y = here.row; y < here.row + here.rows; y++)
      for (int64_t x = here.column; x < here.column + here.columns; x++)
        *to++ = (packed_piece){at++, y * f->pieces + x};
  }
}

/* The taps of depth j of some input channels from c0 on, of a panel that begins with filter n0. */
static void gather_taps(const hn_winograd *p, const float *w, int64_t n0, int64_t live, int64_t c0,
                        int64_t channels, int64_t j, float *to) {
  const int64_t depth = p->depth.kernel, filter = p->cin * depth * 9;
  const float *from = w + n0 * filter + (c0 * depth + j) * 9;
  if (depth == 1)
    hn_gemm_turn(from, filter, (size_t)channels * 9, (size_t)live, WIDEST_PANEL, to);
  else
    for (int64_t c = 0; c < channels; c++)
      hn_gemm_turn(from + c * depth * 9, filter, 9, (size_t)live, WIDEST_PANEL, to + c * 9 * WIDEST_PANEL);
}

/* Pieces lie so far apart that their lines push each other out of the caches: they are gathered here,
 * and written in pieces; past the caches where nobody reads them soon. */
static void pack_tap(const hn_winograd *p, const float *w, int64_t n0, int64_t live, int64_t width, int64_t j,
                     bool stream, float *dst) {
  _Alignas(64) float taps[TOGETHER * 9 * WIDEST_PANEL] = {0};
  _Alignas(64) float out[PIECES][TOGETHER * WIDEST_PANEL];
  packed_piece order[PIECES];
  packed_order(p, j, order);
  for (int64_t c0 = 0; c0 < p->cin; c0 += TOGETHER) {
    const int64_t channels = hn_min(p->cin - c0, TOGETHER);
    const size_t bytes = (size_t)(channels * width) * sizeof *dst;
    gather_taps(p, w, n0, live, c0, channels, j, taps);
    for (int64_t c = 0; c < channels; c++)
      pack_channel(hn_winograd_plan_form(p), taps + c * 9 * WIDEST_PANEL, width,
                   (float(*)[TOGETHER * WIDEST_PANEL])(void *)(out[0] + c * width));
    for (int64_t i = 0; i < hn_winograd_pieces(p); i++) {
      float *to = dst + (order[i].at * p->cin + c0) * width;
      if (stream)
        hn_stream_copy(to, out[order[i].piece], bytes);
      else
        memcpy(to, out[order[i].piece], bytes);
    }
  }
}

static void pack(const hn_winograd *p, const float *w, int64_t n0, int64_t live, int64_t width, bool stream,
                 float *dst) {
  for (int64_t j = 0; j < p->depth.kernel; j++) pack_tap(p, w, n0, live, width, j, stream, dst);
  if (stream) hn_stream_end();
}

static int64_t packed_before(const hn_winograd *p, const hn_gemm_ops *o, int64_t panel) {
  const int64_t n = hn_winograd_group_panels(p, o), in_group = panel % n * o->nr * p->cin;
  return hn_winograd_pieces(p) * p->depth.kernel *
         (panel / n * (int64_t)hn_gemm_packed_size(o, (size_t)p->cout, (size_t)p->cin) + in_group);
}

static int64_t panel_width(const hn_winograd *p, const hn_gemm_ops *o, int64_t panel) {
  return (int64_t)hn_gemm_panel_width(o, (size_t)p->cout,
                                      (size_t)(panel % hn_winograd_group_panels(p, o) * o->nr));
}

void hn_winograd_pack_panel(const hn_winograd *p, const hn_gemm_ops *o, const float *w, int64_t panel,
                            float *dst) {
  const int64_t n0 = hn_winograd_column_of(p, o, panel), n1 = hn_winograd_column_of(p, o, panel + 1);
  pack(p, w, n0, n1 - n0, panel_width(p, o, panel), true, dst + packed_before(p, o, panel));
}

size_t hn_winograd_panel(const hn_winograd *p) {
  return (size_t)(hn_winograd_pieces(p) * p->cin) * HN_BF16_PANEL;
}

size_t hn_winograd_bf16_before(const hn_winograd *p, int64_t panel) {
  return hn_bf16_packed((size_t)(panel * HN_BF16_PANEL),
                        (size_t)(hn_winograd_pieces(p) * hn_winograd_steps(p)), 1);
}
size_t hn_winograd_bf16_piece(const hn_winograd *p, int64_t panel) {
  const int64_t n = hn_min(p->cout - panel * HN_BF16_PANEL, HN_BF16_PANEL);
  return hn_bf16_packed((size_t)n, (size_t)hn_winograd_steps(p), 1);
}

void hn_winograd_pack_bf16(const hn_winograd *p, const hn_bf16_ops *o, const float *w, int64_t panel,
                           float *wide, int64_t *at, uint16_t *dst) {
  const int64_t n0 = panel * HN_BF16_PANEL, live = hn_min(p->cout - n0, HN_BF16_PANEL),
                steps = hn_winograd_steps(p);
  pack(p, w, n0, live, HN_BF16_PANEL, false, wide);
  for (int64_t k = 0; k < steps * HN_BF16_STEP; k++) at[k] = k < p->cin ? k * HN_BF16_PANEL : -1;
  dst += hn_winograd_bf16_before(p, panel);
  for (int64_t i = 0; i < hn_winograd_pieces(p); i++, dst += hn_winograd_bf16_piece(p, panel))
    hn_bf16_pack(o, wide + i * p->cin * HN_BF16_PANEL, at, 1, (size_t)steps, (size_t)live, 0, (size_t)live, 1,
                 1, dst);
}
