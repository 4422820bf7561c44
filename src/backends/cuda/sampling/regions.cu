/* RoiAlign and MaxRoiPool: a thread a cell of a region and channel. A device cannot refuse regions that make no
 * sense: those that are not finite or name no image give zeros, and no cell takes more than 2^14 samples a direction. */
#include "direct.cuh"

/* p: channels, rows and columns of the image, rows and columns of a region, images */
typedef struct hn_cell {
  u32 region, row, column;
  i64 plane; /* the channel's first element within its image */
} hn_cell;

HN_FN hn_cell hn_cell_of(const hn_direct_args *a, u32 i) {
  hn_cell c;
  const u32 columns = (u32)a->p[4], rows = (u32)a->p[3], channels = (u32)a->p[0];
  u32 next = i / columns;
  c.column = i - next * columns, i = next;
  next = i / rows;
  c.row = i - next * rows, i = next;
  c.region = i / channels;
  c.plane = (i64)(i - c.region * channels) * a->p[1] * a->p[2];
  return c;
}

#ifdef HN_TAKE_MAX /* RoiAlign. Prefix: HN_TAKE_MAX, HN_HALF_PIXEL. p[6]: sampling_ratio; f[0]: spatial_scale */
HN_FN double hn_limit(double x, double most) { return x > 0 ? (x < most ? x : most) : 0; }

HN_EACH(hn_roi_align) {
  const hn_cell c = hn_cell_of(a, i);
  const i64 height = a->p[1], width = a->p[2], image = (i64)HN_IN(2, c.region);
  double v[4];
  int sensible = image >= 0 && image < a->p[5];
  for (int k = 0; k < 4; k++) {
    v[k] = (double)HN_IN(1, c.region * 4 + k) * a->f[0] - (HN_HALF_PIXEL ? 0.5 : 0);
    sensible = sensible && v[k] - v[k] == 0;
  }
  double w = v[2] - v[0], h = v[3] - v[1];
  if (!HN_HALF_PIXEL) w = fmax(w, 1.0), h = fmax(h, 1.0); /* malformed regions count as one pixel */
  const double cell_h = h / (double)a->p[3], cell_w = w / (double)a->p[4];
  const i64 down = !sensible ? 0 : a->p[6] ? a->p[6] : (i64)ceil(hn_limit(cell_h, 16384));
  const i64 right = !sensible ? 0 : a->p[6] ? a->p[6] : (i64)ceil(hn_limit(cell_w, 16384));
  const double samples = fmax((double)(down * right), 1.0);
  const i64 plane = (sensible ? image : 0) * a->p[0] * height * width + c.plane;
  double result = 0;
  for (i64 r = 0; r < down; r++)
    for (i64 s = 0; s < right; s++) {
      double y = v[1] + ((double)c.row + ((double)r + 0.5) / (double)down) * cell_h;
      double x = v[0] + ((double)c.column + ((double)s + 0.5) / (double)right) * cell_w;
      double q[4] = {0, 0, 0, 0};
      if (y >= -1 && y <= (double)height && x >= -1 && x <= (double)width) {
        y = hn_limit(y, (double)(height - 1)), x = hn_limit(x, (double)(width - 1));
        const i64 y0 = (i64)y, x0 = (i64)x, y1 = y0 + 1 < height ? y0 + 1 : y0, x1 = x0 + 1 < width ? x0 + 1 : x0;
        const double ly = y - (double)y0, lx = x - (double)x0;
        q[0] = (1 - ly) * (1 - lx) * HN_IN(0, plane + y0 * width + x0);
        q[1] = (1 - ly) * lx * HN_IN(0, plane + y0 * width + x1);
        q[2] = ly * (1 - lx) * HN_IN(0, plane + y1 * width + x0);
        q[3] = ly * lx * HN_IN(0, plane + y1 * width + x1);
      }
      /* "max" is defined over the weighted corners, not over their sum. */
      const double most = fmax(fmax(q[0], q[1]), fmax(q[2], q[3]));
      if (!HN_TAKE_MAX)
        result += (q[0] + q[1] + q[2] + q[3]) / samples;
      else
        result = r + s == 0 ? most : fmax(result, most);
    }
  HN_OUT(0, i, result);
}
#else
/* Pixels [low, high) of cell `i` of n, of a region that starts at pixel `start` and covers `size`. */
HN_FN void hn_cell_range(double start, double size, u32 i, i64 n, i64 limit, i64 *low, i64 *high) {
  const double cell = size / (double)n, top = (double)limit;
  *low = (i64)fmin(fmax(floor((double)i * cell) + start, 0.0), top);
  *high = (i64)fmin(fmax(ceil((double)(i + 1) * cell) + start, 0.0), top);
}

/* f[0]: spatial_scale */
HN_EACH(hn_max_roi_pool) {
  const hn_cell c = hn_cell_of(a, i);
  const double image = (double)HN_IN(1, c.region * 5);
  double v[5];
  int sensible = image >= 0 && image < (double)a->p[5];
  for (int k = 1; k < 5; k++) {
    v[k] = round((double)HN_IN(1, c.region * 5 + k) * a->f[0]);
    sensible = sensible && v[k] - v[k] == 0;
  }
  i64 y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  if (sensible) {
    hn_cell_range(v[2], fmax(v[4] - v[2] + 1, 1.0), c.row, a->p[3], a->p[1], &y0, &y1);
    hn_cell_range(v[1], fmax(v[3] - v[1] + 1, 1.0), c.column, a->p[4], a->p[2], &x0, &x1);
  }
  const i64 plane = sensible ? (i64)image * a->p[0] * a->p[1] * a->p[2] + c.plane : 0;
  HN_REAL best = 0;
  for (i64 y = y0; y < y1; y++)
    for (i64 x = x0; x < x1; x++) {
      const HN_REAL at = HN_IN(0, plane + y * a->p[2] + x);
      if ((y == y0 && x == x0) || at > best || best != best) best = at;
    }
  HN_OUT(0, i, best);
}
#endif
