#include "api/chain/quad.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void hn_quad_map(const double x[4], const double y[4], double m[8]) {
  const double dx1 = x[1] - x[2], dx2 = x[3] - x[2], sx = x[0] - x[1] + x[2] - x[3];
  const double dy1 = y[1] - y[2], dy2 = y[3] - y[2], sy = y[0] - y[1] + y[2] - y[3];
  const double area = dx1 * dy2 - dy1 * dx2;
  /* A parallelogram is reached without perspective; so is what has no area, for want of better. */
  const bool plain = (fabs(sx) < 1e-9 && fabs(sy) < 1e-9) || fabs(area) < 1e-12;
  const double g = plain ? 0 : (sx * dy2 - sy * dx2) / area, h = plain ? 0 : (dx1 * sy - dy1 * sx) / area;
  const double map[8] = {x[1] - x[0] + g * x[1], x[3] - x[0] + h * x[3], x[0],
                         y[1] - y[0] + g * y[1], y[3] - y[0] + h * y[3], y[0], g, h};
  memcpy(m, map, sizeof map);
}

/* NaN becomes 0. */
static double within(double v, double most) { return v > 0 ? (v < most ? v : most) : 0; }

static void pixel(const uint8_t *rgb, int64_t height, int64_t width, double x, double y, uint8_t *to) {
  x = within(x - 0.5, (double)(width - 1));
  y = within(y - 0.5, (double)(height - 1));
  const int64_t x0 = (int64_t)x, y0 = (int64_t)y, x1 = x0 + 1 < width ? x0 + 1 : x0,
                y1 = y0 + 1 < height ? y0 + 1 : y0;
  const float fx = (float)(x - (double)x0), fy = (float)(y - (double)y0);
  const uint8_t *a = rgb + (y0 * width + x0) * 3, *b = rgb + (y0 * width + x1) * 3,
                *c = rgb + (y1 * width + x0) * 3, *d = rgb + (y1 * width + x1) * 3;
  for (int k = 0; k < 3; k++) {
    const float above = (float)a[k] + fx * (float)(b[k] - a[k]), below = (float)c[k] + fx * (float)(d[k] - c[k]);
    to[k] = (uint8_t)(above + fy * (below - above) + 0.5f);
  }
}

void hn_quad_sample(const uint8_t *rgb, int64_t height, int64_t width, const double x[4], const double y[4],
                    int64_t to_height, int64_t to_width, uint8_t *to) {
  double m[8];
  hn_quad_map(x, y, m);
  for (int64_t j = 0; j < to_height; j++)
    for (int64_t i = 0; i < to_width; i++, to += 3) {
      const double u = ((double)i + 0.5) / (double)to_width, v = ((double)j + 0.5) / (double)to_height;
      const double w = m[6] * u + m[7] * v + 1;
      pixel(rgb, height, width, (m[0] * u + m[1] * v + m[2]) / w, (m[3] * u + m[4] * v + m[5]) / w, to);
    }
}
