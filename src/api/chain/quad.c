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
  const double map[8] = {x[1] - x[0] + g * x[1],
                         x[3] - x[0] + h * x[3],
                         x[0],
                         y[1] - y[0] + g * y[1],
                         y[3] - y[0] + h * y[3],
                         y[0],
                         g,
                         h};
  memcpy(m, map, sizeof map);
}

/* NaN becomes 0. */
static double within(double v, double most) { return v > 0 ? (v < most ? v : most) : 0; }

typedef struct picture {
  const uint8_t *rgb;
  int64_t height, width;
} picture;

static int64_t clamp(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }

static uint8_t byte(float v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5f); }

static void linear(const picture *p, double x, double y, uint8_t *to) {
  const int64_t x0 = (int64_t)x, y0 = (int64_t)y, x1 = clamp(x0 + 1, p->width - 1),
                y1 = clamp(y0 + 1, p->height - 1);
  const float fx = (float)(x - (double)x0), fy = (float)(y - (double)y0);
  const uint8_t *a = p->rgb + (y0 * p->width + x0) * 3, *b = p->rgb + (y0 * p->width + x1) * 3,
                *c = p->rgb + (y1 * p->width + x0) * 3, *d = p->rgb + (y1 * p->width + x1) * 3;
  for (int k = 0; k < 3; k++) {
    const float above = (float)a[k] + fx * (float)(b[k] - a[k]),
                below = (float)c[k] + fx * (float)(d[k] - c[k]);
    to[k] = byte(above + fy * (below - above));
  }
}

/* Keys' cubic convolution, a = -1/2, of the pixels at -1, 0, 1, 2 for a place at t in 0..1. */
static void cubic_weights(float t, float w[4]) {
  w[0] = t * (-0.5f + t * (1 - 0.5f * t));
  w[1] = 1 + t * t * (-2.5f + 1.5f * t);
  w[2] = t * (0.5f + t * (2 - 1.5f * t));
  w[3] = t * t * (-0.5f + 0.5f * t);
}

static void cubic(const picture *p, double x, double y, uint8_t *to) {
  const int64_t x0 = (int64_t)x, y0 = (int64_t)y;
  float wx[4], wy[4], sum[3] = {0};
  cubic_weights((float)(x - (double)x0), wx);
  cubic_weights((float)(y - (double)y0), wy);
  for (int j = 0; j < 4; j++) {
    const uint8_t *row = p->rgb + clamp(y0 + j - 1, p->height - 1) * p->width * 3;
    for (int i = 0; i < 4; i++) {
      const uint8_t *q = row + clamp(x0 + i - 1, p->width - 1) * 3;
      const float w = wy[j] * wx[i];
      for (int k = 0; k < 3; k++) sum[k] += w * (float)q[k];
    }
  }
  for (int k = 0; k < 3; k++) to[k] = byte(sum[k]);
}

void hn_quad_sample(const uint8_t *rgb, int64_t height, int64_t width, const double x[4], const double y[4],
                    bool smooth, int64_t to_height, int64_t to_width, uint8_t *to) {
  const picture p = {rgb, height, width};
  double m[8];
  hn_quad_map(x, y, m);
  for (int64_t j = 0; j < to_height; j++)
    for (int64_t i = 0; i < to_width; i++, to += 3) {
      const double u = ((double)i + 0.5) / (double)to_width, v = ((double)j + 0.5) / (double)to_height;
      const double w = m[6] * u + m[7] * v + 1;
      const double px = within((m[0] * u + m[1] * v + m[2]) / w - 0.5, (double)(width - 1)),
                   py = within((m[3] * u + m[4] * v + m[5]) / w - 0.5, (double)(height - 1));
      if (smooth)
        cubic(&p, px, py, to);
      else
        linear(&p, px, py, to);
    }
}
