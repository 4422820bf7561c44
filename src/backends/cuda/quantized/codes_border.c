#include "backends/cuda/quantized/codes_border.h"

#include <string.h>

#include "base/integers.h"
#include "base/mem.h"

enum { MOST = 15, KINDS = 64 };

/* Kernel rows (or columns) [first, end) lie inside. */
typedef struct inside {
  int first, end;
} inside;

typedef struct axis {
  int size, kernel, stride, dilation, pad; /* size: of the input */
  uint32_t grid;
} axis;

static axis rows_of(const hn_product_args *g) {
  return (axis){g->in_y, g->kernel_y, g->stride_y, g->dilation_y, g->pad_y, g->grid_y};
}
static axis columns_of(const hn_product_args *g) {
  return (axis){g->in_x, g->kernel_x, g->stride_x, g->dilation_x, g->pad_x, g->grid_x};
}

static inside inside_at(const axis *a, uint32_t o) {
  const int64_t from = (int64_t)o * a->stride - a->pad;
  inside in = {0, a->kernel};
  while (in.first < a->kernel && from + (int64_t)in.first * a->dilation < 0) in.first++;
  while (in.end > in.first && from + (int64_t)(in.end - 1) * a->dilation >= a->size) in.end--;
  return in;
}

/* Fills the classes that there are, and that of each place where `of` is given; how many, 0: too many. */
static uint32_t classes_of(const axis *a, inside list[MOST], uint8_t *of) {
  uint32_t n = 1;
  list[0] = (inside){0, a->kernel};
  for (uint32_t o = 0; o < a->grid; o++) {
    const inside in = inside_at(a, o);
    uint32_t k = 0;
    while (k < n && (list[k].first != in.first || list[k].end != in.end)) k++;
    if (k == n && n == MOST) return 0;
    if (k == n) list[n++] = in;
    if (of) of[o] = (uint8_t)k;
  }
  return n;
}

bool hn_codes_border_of(const hn_product *p, size_t at, hn_codes_border *b) {
  const hn_product_args *g = &p->args;
  const axis y = rows_of(g), x = columns_of(g);
  inside list[MOST];
  b->rows = classes_of(&y, list, NULL), b->columns = classes_of(&x, list, NULL);
  b->pitch = (uint32_t)hn_round_up(g->n, 16) + 256; /* kernels read whole tiles */
  b->classes = hn_round_up(at, 16);
  b->vectors = b->classes + hn_round_up((size_t)g->grid_y + g->grid_x, 16);
  b->bytes = b->vectors + (size_t)b->rows * b->columns * b->pitch * sizeof(int32_t);
  return b->rows && b->columns && b->rows * b->columns <= KINDS;
}

static bool lies_in(inside in, int k) { return k >= in.first && k < in.end; }

void hn_codes_border_fill(const hn_codes *c, const hn_product *p, const int8_t *weights,
                          const hn_codes_border *b, void *blob) {
  const hn_product_args *g = &p->args;
  const axis y = rows_of(g), x = columns_of(g);
  inside rows[MOST], columns[MOST];
  uint8_t *classes = (uint8_t *)blob + b->classes;
  int32_t *to = (int32_t *)(void *)((char *)blob + b->vectors);
  classes_of(&y, rows, classes);
  classes_of(&x, columns, classes + g->grid_y);
  const int taps = g->kernel_y * g->kernel_x;
  memset(to, 0, (size_t)b->rows * b->columns * b->pitch * sizeof *to);
  /* A tap's weights are summed once, for all classes that it lies outside of. */
  for (int64_t n = 0; n < c->channels; n++)
    for (int tap = 0; tap < taps; tap++) {
      int32_t sum = 0;
      for (int64_t i = n * c->per + tap; i < (n + 1) * c->per; i += taps) sum += weights[i];
      for (uint32_t i = 0; i < b->rows; i++)
        for (uint32_t k = 0; k < b->columns; k++)
          if (!lies_in(rows[i], tap / g->kernel_x) || !lies_in(columns[k], tap % g->kernel_x))
            to[((size_t)i * b->columns + k) * b->pitch + (size_t)n] += c->x_zero * sum;
    }
}
