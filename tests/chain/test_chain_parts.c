/* What links compute: regions of maps, quadrangles as pictures; and where members of a JSON text stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/chain/place.h"
#include "api/chain/quad.h"
#include "api/chain/regions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 64, W = 96 };

/* ---------------------------------------------------------------- regions */

typedef struct found {
  hn_arena arena;
  hn_region *region;
  uint32_t n;
} found;

static found look(const float *map, bool upright, uint32_t most) {
  found f = {0};
  hone_error error = {0};
  assert_int_equal(hn_regions_find(map, H, W, 0.5f, upright, most, &f.arena, &f.region, &f.n, &error),
                   HONE_OK);
  return f;
}

static void paint(float *map, int64_t x0, int64_t y0, int64_t x1, int64_t y1) {
  for (int64_t y = y0; y < y1; y++)
    for (int64_t x = x0; x < x1; x++) map[y * W + x] = 0.9f;
}

static void is_rectangle(const hn_rectangle *r, double x, double y, double w, double h) {
  assert_float_equal(r->x, x, 1e-9);
  assert_float_equal(r->y, y, 1e-9);
  assert_float_equal(r->w, w / 2, 1e-9);
  assert_float_equal(r->h, h / 2, 1e-9);
}

static void upright_regions(void **state) {
  float map[H * W] = {0};
  (void)state;
  paint(map, 10, 5, 30, 13);
  paint(map, 40, 20, 41, 60); /* one pixel wide */
  paint(map, 90, 60, 96, 64); /* in the corner */
  map[2 * W + 70] = 0.5f;     /* the threshold itself is not above it */
  found f = look(map, false, 100);
  assert_int_equal(f.n, 3);
  is_rectangle(&f.region[0].around, 20, 9, 20, 8);
  is_rectangle(&f.region[1].around, 40.5, 40, 1, 40);
  is_rectangle(&f.region[2].around, 93, 62, 6, 4);
  assert_int_equal(f.region[0].pixels, 160);
  double x[4], y[4];
  hn_rectangle_corners(&f.region[0].around, x, y);
  assert_float_equal(x[0], 10, 1e-9);
  assert_float_equal(y[0], 5, 1e-9);
  assert_float_equal(x[2], 30, 1e-9);
  assert_float_equal(y[2], 13, 1e-9);
  assert_float_equal(hn_rectangle_mean(&f.region[0].around, map, H, W), 0.9, 1e-6);
  hn_arena_free(&f.arena);
  f = look(map, false, 2);
  assert_int_equal(f.n, 2);
  hn_arena_free(&f.arena);
}

static void connected(void **state) {
  float map[H * W] = {0};
  (void)state;
  map[3 * W + 3] = map[4 * W + 4] = map[5 * W + 3] = 1; /* by their corners */
  map[3 * W + 6] = 1;                                   /* two away */
  found f = look(map, true, 100);
  assert_int_equal(f.n, 2);
  assert_int_equal(f.region[0].pixels, 3);
  is_rectangle(&f.region[0].around, 4, 4.5, 2, 3);
  hn_arena_free(&f.arena);
  memset(map, 0, sizeof map);
  f = look(map, false, 100);
  assert_int_equal(f.n, 0);
  hn_arena_free(&f.arena);
  for (int i = 0; i < H * W; i++) map[i] = i == 77 ? NAN : 1; /* a NaN is above nothing */
  f = look(map, false, 100);
  assert_int_equal(f.n, 1);
  assert_int_equal(f.region[0].pixels, H * W - 1);
  is_rectangle(&f.region[0].around, W / 2, H / 2, W, H);
  hn_arena_free(&f.arena);
}

/* A ring and what is inside of it are two regions; a U that meets below is one. */
static void shapes(void **state) {
  float map[H * W] = {0};
  (void)state;
  paint(map, 10, 10, 40, 40);
  for (int64_t y = 14; y < 36; y++)
    for (int64_t x = 14; x < 36; x++) map[y * W + x] = 0;
  paint(map, 20, 20, 25, 22);
  paint(map, 60, 10, 62, 50);
  paint(map, 70, 10, 72, 50);
  paint(map, 60, 48, 72, 50);
  found f = look(map, false, 100);
  assert_int_equal(f.n, 3);
  is_rectangle(&f.region[0].around, 25, 25, 30, 30);
  is_rectangle(&f.region[1].around, 66, 30, 12, 40);
  is_rectangle(&f.region[2].around, 22.5, 21, 5, 2);
  hn_arena_free(&f.arena);
}

/* A turned bar is found with its angle and sides, within the pixels' own width. */
static void turned(void **state) {
  (void)state;
  for (int degrees = -40; degrees <= 40; degrees += 10) {
    float map[H * W] = {0};
    const double a = degrees * 3.14159265358979 / 180, ux = cos(a), uy = sin(a);
    for (int64_t y = 0; y < H; y++)
      for (int64_t x = 0; x < W; x++) {
        const double dx = (double)x + 0.5 - 48, dy = (double)y + 0.5 - 32;
        if (fabs(dx * ux + dy * uy) <= 22 && fabs(dy * ux - dx * uy) <= 5) map[y * W + x] = 1;
      }
    found f = look(map, false, 100);
    assert_int_equal(f.n, 1);
    const hn_rectangle *r = &f.region[0].around;
    assert_float_equal(r->x, 48, 0.6);
    assert_float_equal(r->y, 32, 0.6);
    assert_float_equal(atan2(r->uy, r->ux), a, 0.06);
    assert_float_equal(r->w, 22, 1.2);
    assert_float_equal(r->h, 5, 1.2);
    assert_true(r->w * r->h <= 22 * 5 * 1.3);
    double x[4], y[4];
    hn_rectangle_corners(r, x, y);
    assert_true(x[0] < x[1] && x[3] < x[2] && y[0] < y[3] && y[1] < y[2]);
    hn_arena_free(&f.arena);
  }
}

/* ---------------------------------------------------------------- quadrangles */

static uint8_t *noise(int64_t h, int64_t w) {
  uint8_t *p = malloc((size_t)(h * w * 3));
  unsigned seed = 7;
  for (int64_t i = 0; i < h * w * 3; i++) p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
  return p;
}

/* Boxes on the pixels' edges give the very pixels, turned as the corners say. */
static void exact_crops(void **state) {
  enum { PH = 37, PW = 53 };
  uint8_t *p = noise(PH, PW), out[9 * 17 * 3];
  (void)state;
  for (int turn = 0; turn < 8; turn++) { /* each linear, and cubic */
    const double ex[4] = {11, 28, 28, 11}, ey[4] = {20, 20, 29, 29};
    double x[4], y[4];
    for (int k = 0; k < 4; k++) x[k] = ex[(k + turn) % 4], y[k] = ey[(k + turn) % 4];
    const int64_t w = turn % 2 ? 9 : 17, h = turn % 2 ? 17 : 9;
    hn_quad_sample(p, PH, PW, x, y, turn > 3, h, w, out);
    for (int64_t j = 0; j < h; j++)
      for (int64_t i = 0; i < w; i++) {
        const int64_t at[4][2] = {{i, j}, {16 - j, i}, {16 - i, 8 - j}, {j, 8 - i}};
        const uint8_t *want = p + ((20 + at[turn % 4][1]) * PW + 11 + at[turn % 4][0]) * 3;
        assert_memory_equal(out + (j * w + i) * 3, want, 3);
      }
  }
  free(p);
}

static void perspective(void **state) {
  const double x[4] = {10, 80, 70, 5}, y[4] = {8, 14, 60, 50};
  double m[8];
  (void)state;
  hn_quad_map(x, y, m);
  for (int k = 0; k < 4; k++) {
    const double u = k == 1 || k == 2, v = k >= 2, w = m[6] * u + m[7] * v + 1;
    assert_float_equal((m[0] * u + m[1] * v + m[2]) / w, x[k], 1e-9);
    assert_float_equal((m[3] * u + m[4] * v + m[5]) / w, y[k], 1e-9);
  }
  /* The diagonals of the square meet where those of the quadrangle do. */
  const double w = (m[6] + m[7]) / 2 + 1, cx = ((m[0] + m[1]) / 2 + m[2]) / w,
               cy = ((m[3] + m[4]) / 2 + m[5]) / w;
  assert_float_equal((x[2] - x[0]) * (cy - y[0]) - (y[2] - y[0]) * (cx - x[0]), 0, 1e-6);
  assert_float_equal((x[3] - x[1]) * (cy - y[1]) - (y[3] - y[1]) * (cx - x[1]), 0, 1e-6);
  /* Bilinear values of a plane are the plane's. */
  uint8_t *p = malloc(64 * 90 * 3), *out = malloc(30 * 40 * 3);
  for (int j = 0; j < 64; j++)
    for (int i = 0; i < 90; i++)
      for (int c = 0; c < 3; c++) p[(j * 90 + i) * 3 + c] = (uint8_t)(2 * i + j / (c + 1));
  for (int smooth = 0; smooth < 2; smooth++) {
    hn_quad_sample(p, 64, 90, x, y, smooth, 30, 40, out);
    for (int j = 0; j < 30; j++)
      for (int i = 0; i < 40; i++) {
        const double u = (i + 0.5) / 40, v = (j + 0.5) / 30, d = m[6] * u + m[7] * v + 1;
        const double px = (m[0] * u + m[1] * v + m[2]) / d, py = (m[3] * u + m[4] * v + m[5]) / d;
        assert_float_equal(out[(j * 40 + i) * 3], 2 * (px - 0.5) + py - 0.5, 0.51);
      }
  }
  free(p);
  free(out);
}

/* Outside of the picture its edge goes on; what has no area, or no number, stays within memory. */
static void outside(void **state) {
  uint8_t *p = noise(5, 7), out[4 * 4 * 3];
  (void)state;
  for (int i = 0; i < 2; i++) {
    hn_quad_sample(p, 5, 7, (const double[]){-9, -5, -5, -9}, (const double[]){-9, -9, -5, -5}, i % 2, 4, 4,
                   out);
    for (int k = 0; k < 16; k++) assert_memory_equal(out + k * 3, p, 3);
    hn_quad_sample(p, 5, 7, (const double[]){3, 3, 3, 3}, (const double[]){1, 1, 1, 1}, i % 2, 4, 4, out);
    hn_quad_sample(p, 5, 7, (const double[]){0, 6, 3, 3}, (const double[]){0, 0, 0, 0}, i % 2, 4, 4, out);
    hn_quad_sample(p, 5, 7, (const double[]){NAN, 1, 1e30, -1e30}, (const double[]){0, INFINITY, 1, 1}, i % 2,
                   4, 4, out);
  }
  free(p);
}

/* ---------------------------------------------------------------- places */

static const char text[] = "{\n"
                           "  \"a\": 1, \"b\\\"{\": [1, [2, {}], \"x,]\",\n"
                           "    {\"c\" : true }, -3e5],\n"
                           "\t\"d\": null}";

static void place_is(const hn_json_way *way, int line, int column) {
  const hn_json_position p = hn_json_where(text, sizeof text - 1, way);
  assert_int_equal(p.line, line);
  assert_int_equal(p.column, column);
}

static void places(void **state) {
  json_error_t where;
  json_t *root = json_loads(text, 0, &where);
  (void)state;
  assert_non_null(root);
  json_t *b = json_object_get(root, "b\"{"), *third = json_array_get(b, 3);
  const hn_json_way top = {NULL, NULL, NULL, 0}, a = {&top, root, "a", 0}, d = {&top, root, "d", 0},
                    in_b = {&top, root, "b\"{", 0}, first = {&in_b, b, NULL, 0},
                    text_of = {&in_b, b, NULL, 2}, object = {&in_b, b, NULL, 3}, c = {&object, third, "c", 0},
                    last = {&in_b, b, NULL, 4}, none = {&object, third, "nobody", 0};
  place_is(&top, 1, 1);
  place_is(&a, 2, 8);
  place_is(&in_b, 2, 19);
  place_is(&first, 2, 20);
  place_is(&text_of, 2, 32);
  place_is(&object, 3, 5);
  place_is(&c, 3, 12);
  place_is(&last, 3, 20);
  place_is(&d, 4, 7);
  place_is(&none, 3, 5);
  json_decref(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(upright_regions), cmocka_unit_test(connected),
                                     cmocka_unit_test(shapes),          cmocka_unit_test(turned),
                                     cmocka_unit_test(exact_crops),     cmocka_unit_test(perspective),
                                     cmocka_unit_test(outside),         cmocka_unit_test(places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
