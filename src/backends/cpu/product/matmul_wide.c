/* MatMul and Gemm of f64, and of integers of 32 and 64 bits: B in panels of a tile's columns, packed in the
 * run or, where it is constant, before; a column by dot products. */
#include "backends/cpu/product/matmul_wide.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/wide/wide.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "base/nest.h"
#include "base/wide.h"

enum {
  DEPTH = 256, /* products of a sum between two looks at the result */
  ROWS = 64,
  PER_TASK = 1 << 21, /* products */
  MOST_ROWS = 8,
  PANELS = 16,      /* of a task, so that they stay in L2 while rows go by */
  TILE_BYTES = 4096 /* of the largest tile */
};

typedef struct head {
  hn_isa isa;
  hn_wide_type type;
  int64_t size, m, n, k;
  int64_t a_row, a_step, b_row, b_step; /* between rows, and between elements of a row */
  bool column;                          /* B is one, and rows of A lie side by side */
  int64_t matrices, panels, matrix_bytes,
      packed_at;                /* of packed B; in the blob from there on, 0: not there */
  int64_t rows, panels_at_once; /* of a task */
  double alpha, beta;           /* beta 0: there is no C */
  int64_t c_row, c_step;        /* steps through C */
  hn_nest nest;                 /* over the batch; operands: result, A, and the number of B's matrix */
} head;

static bool type_of(hone_dtype dtype, hn_wide_type *type) {
  switch (dtype) {
  case HONE_DTYPE_F64: *type = HN_WIDE_F64; return true;
  case HONE_DTYPE_I32:
  case HONE_DTYPE_U32: *type = HN_WIDE_W32; return true;
  case HONE_DTYPE_I64:
  case HONE_DTYPE_U64: *type = HN_WIDE_W64; return true;
  default: return false;
  }
}

/* What both have in common, once the sizes are known. */
static bool plan(const hone_step *s, head *h, hone_reason *why) {
  if (h->m < 1 || h->n < 1 || h->k < 1 || hn_nest_count(&h->nest) < 1)
    return hn_refuse(why, "an empty operand");
  const struct hn_wide_product *o = &hn_wide_find(h->isa)->of[h->type];
  h->column = h->n == 1 && h->a_step == 1 && h->b_row == 1;
  h->panels = hn_div_up(h->n, o->columns);
  h->matrix_bytes = (int64_t)hn_round_up((size_t)(h->panels * o->columns * h->k * h->size), 64);
  h->packed_at = s->input[1].constant && !h->column ? (int64_t)hn_round_up(sizeof *h, 64) : 0;
  h->rows = hn_min(ROWS, hn_fill_up(h->m, o->rows));
  h->panels_at_once =
      hn_min(hn_min(h->panels, PANELS), hn_max(1, PER_TASK / (hn_min(h->rows, h->m) * o->columns * h->k)));
  return true;
}

static bool common(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  h->alpha = 1, h->beta = 0; /* beta: of a C that is there */
  if (!hn_wide_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (s->n_epilogue) return hn_refuse(why, "it has an epilogue");
  if (!type_of(a->dtype, &h->type) || b->dtype != a->dtype || y->dtype != a->dtype)
    return hn_refuse(why, "the operands are %s", hone_dtype_name(a->dtype));
  if (!hn_step_plain(a) || !hn_step_plain(b) || !hn_step_plain(y))
    return hn_refuse(why, "an operand is not row-major");
  h->size = (int64_t)hone_dtype_size(a->dtype);
  return true;
}

/* Steps of the batch's dimensions through a tensor whose matrices have `size` elements; how many there are.
 */
static int64_t walk(const hone_tensor_desc *d, int32_t matrix, int32_t batch, int64_t size, int64_t *step) {
  int64_t at = size;
  for (int32_t i = batch - 1; i >= 0; i--) {
    const int32_t own = i - (batch - (d->rank - matrix));
    const int64_t n = own < 0 ? 1 : d->dim[own];
    step[i] = n == 1 ? 0 : at;
    at *= n;
  }
  return size ? at / size : 0;
}

static bool describe_matmul(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *y = &s->output[0].desc;
  if (!common(s, m, h, why)) return false;
  if (a->rank < 1 || b->rank < 1) return hn_refuse(why, "an operand is no vector");
  const int32_t of_a = a->rank > 1 ? 2 : 1, of_b = b->rank > 1 ? 2 : 1,
                batch = y->rank - (of_a - 1) - (of_b - 1);
  h->m = of_a > 1 ? a->dim[a->rank - 2] : 1, h->k = a->dim[a->rank - 1];
  h->n = of_b > 1 ? b->dim[b->rank - 1] : 1;
  h->a_row = h->k, h->a_step = 1, h->b_row = h->n, h->b_step = 1;
  if (b->rank <= 2 && a->rank > 2) { /* one matrix serves all: they are one product */
    h->m = hn_dims(a, 0, a->rank - 1), h->matrices = 1;
    hn_nest_begin(&h->nest, 0, y->dim);
    for (int o = 0; o < 3; o++) hn_nest_add(&h->nest, (int64_t[1]){0});
  } else {
    int64_t step[3][HONE_MAX_RANK] = {{0}};
    walk(y, y->rank - batch, batch, h->m * h->n, step[0]);
    walk(a, of_a, batch, h->m * h->k, step[1]);
    h->matrices = walk(b, of_b, batch, 1, step[2]);
    hn_nest_begin(&h->nest, batch, y->dim);
    for (int o = 0; o < 3; o++) hn_nest_add(&h->nest, step[o]);
  }
  hn_nest_finish(&h->nest);
  return plan(s, h, why);
}

static bool describe_gemm(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *a = &s->input[0].desc, *b = &s->input[1].desc, *c = &s->input[2].desc;
  if (!common(s, m, h, why)) return false;
  const bool ta = hone_node_int(s->node, "transA", 0) != 0, tb = hone_node_int(s->node, "transB", 0) != 0,
             with_c = s->n_anchor_inputs > 2 && hn_step_has(s, 2);
  h->alpha = (double)hone_node_float(s->node, "alpha", 1),
  h->beta = (double)hone_node_float(s->node, "beta", 1);
  if (h->type != HN_WIDE_F64 && (h->alpha != 1 || (with_c && h->beta != 1)))
    return hn_refuse(why, "alpha or beta of integers");
  h->m = a->dim[ta], h->k = a->dim[!ta], h->n = b->dim[!tb], h->matrices = 1;
  h->a_row = ta ? 1 : h->k, h->a_step = ta ? h->m : 1;
  h->b_row = tb ? 1 : h->n, h->b_step = tb ? h->k : 1;
  if (!with_c) h->beta = 0;
  if (h->beta != 0) {
    if (c->dtype != a->dtype || !hn_step_plain(c) || c->rank > 2) return hn_refuse(why, "C is no matrix");
    h->c_step = c->rank > 0 && c->dim[c->rank - 1] > 1;
    h->c_row = c->rank > 1 && c->dim[0] > 1 ? c->dim[1] : 0;
  }
  hn_nest_begin(&h->nest, 0, a->dim);
  for (int o = 0; o < 3; o++) hn_nest_add(&h->nest, (int64_t[1]){0});
  hn_nest_finish(&h->nest);
  return plan(s, h, why);
}

/* Element by element; b_row and b_step say where. */
#define PACK(T)                                                                                              \
  for (int64_t p = 0; p < h->k; p++, to += columns * (int64_t)sizeof(T)) {                                   \
    T *row = (T *)(void *)to;                                                                                \
    const T *x = (const T *)(const void *)from + p * h->b_row;                                               \
    if (h->b_step == 1)                                                                                      \
      memcpy(row, x, (size_t)n * sizeof(T));                                                                 \
    else                                                                                                     \
      for (int64_t j = 0; j < n; j++) row[j] = x[j * h->b_step];                                             \
    memset(row + n, 0, (size_t)(columns - n) * sizeof(T));                                                   \
  }

static void pack_panel(const head *h, const void *b, int64_t matrix, int64_t panel, char *packed) {
  const int64_t columns = hn_wide_find(h->isa)->of[h->type].columns,
                n = hn_min(columns, h->n - panel * columns);
  const char *from = (const char *)b + (matrix * h->k * h->n + panel * columns * h->b_step) * h->size;
  char *to = packed + matrix * h->matrix_bytes + panel * columns * h->k * h->size;
  if (h->size == 8)
    PACK(uint64_t)
  else
    PACK(uint32_t)
}
#undef PACK

static void need_of(const head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s, (void)m;
  const size_t packed = h->column ? 0 : (size_t)(h->matrices * h->matrix_bytes);
  n->blob_bytes = h->packed_at ? (size_t)h->packed_at + packed : sizeof *h;
  n->workspace_bytes = h->packed_at ? 0 : packed;
  n->packed = h->packed_at ? 1u << 1 : 0;
}

static hone_status fill(const head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  for (int64_t i = 0; h->packed_at && i < h->matrices * h->panels; i++)
    pack_panel(h, s->input[1].constant, i / h->panels, i % h->panels, (char *)blob + h->packed_at);
  return HONE_OK;
}

static double cost_of(const head *h, const hone_step *s, const hone_machine *m) {
  const double products = (double)hn_nest_count(&h->nest) * (double)h->m * (double)h->n * (double)h->k;
  const double packing = h->packed_at || h->column ? 0 : 3 * (double)(h->matrices * h->matrix_bytes);
  return hn_step_seconds(m, 2 * products * (double)h->size / 4, s->cost.bytes + packing, 0.5);
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  const struct hn_wide_product *o;
  const char *packed;
  int64_t row_blocks, panel_blocks;
} job;

static void pack_task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  (void)thread;
  pack_panel(j->h, j->run->in[1], index / j->h->panels, index % j->h->panels, j->run->workspace);
}

/* Of f64, a row: alpha y + beta c, whose elements lie `step` apart (0: one for all). */
HN_WIDE_BODY void finish_row_body(double *y, const double *c, int64_t step, double alpha, double beta,
                                  int64_t n) {
  typedef double part __attribute__((vector_size(64)));
  enum { ONE = sizeof(part) / sizeof(double) };
  part a, b = (part){0} + beta * *c;
  int64_t i = 0;
  for (; i + ONE <= n && step <= 1; i += ONE) {
    memcpy(&a, y + i, sizeof a);
    if (step) memcpy(&b, c + i, sizeof b), b *= beta;
    a = alpha * a + b;
    memcpy(y + i, &a, sizeof a);
  }
  for (; i < n; i++) y[i] = alpha * y[i] + beta * c[i * step];
}
HN_WIDE(void, finish_row, finish_row_body,
        (double *y, const double *c, int64_t step, double alpha, double beta, int64_t n),
        (y, c, step, alpha, beta, n))

/* alpha y + beta C, of a block of the result. */
static void finish(const job *j, char *to, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const head *h = j->h;
  const void *c = h->beta != 0 ? j->run->in[2] : NULL;
  if (!c && h->alpha == 1) return;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = c ? (row + r) * h->c_row + column * h->c_step : 0;
    if (h->type == HN_WIDE_F64) {
      const double zero = 0;
      finish_row((double *)(void *)to + r * h->n, c ? (const double *)c + at : &zero, c ? h->c_step : 0,
                 h->alpha, c ? h->beta : 0, columns);
    } else if (h->size == 4) {
      uint32_t *y = (uint32_t *)(void *)to + r * h->n;
      for (int64_t i = 0; i < columns; i++) y[i] += ((const uint32_t *)c)[at + i * h->c_step];
    } else {
      uint64_t *y = (uint64_t *)(void *)to + r * h->n;
      for (int64_t i = 0; i < columns; i++) y[i] += ((const uint64_t *)c)[at + i * h->c_step];
    }
  }
}

/* rows x depth of A, turned: what stands in a column comes side by side, `tile` elements a column. */
#define TURN(NAME, T)                                                                                        \
  static void NAME(T *restrict to, const T *restrict a, int64_t row, int64_t step, int64_t rows,             \
                   int64_t depth, int64_t tile) {                                                            \
    if (rows == MOST_ROWS && tile == MOST_ROWS)                                                              \
      for (int64_t p = 0; p < depth; p++, a += step, to += MOST_ROWS)                                        \
        HN_UNROLL for (int r = 0; r < MOST_ROWS; r++) to[r] = a[r * row];                                    \
    else                                                                                                     \
      for (int64_t p = 0; p < depth; p++, a += step, to += tile)                                             \
        for (int64_t r = 0; r < rows; r++) to[r] = a[r * row];                                               \
  }
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)
#undef TURN

/* A part of a sum, `a` as it is turned, of rows and columns that a tile has or fewer. */
static void add_tile(const job *j, char *y, const void *a, const char *b, int64_t rows, int64_t columns,
                     int64_t depth, bool add) {
  const head *h = j->h;
  const struct hn_wide_product *o = j->o;
  _Alignas(64) char tile[TILE_BYTES];
  const int32_t vectors = (int32_t)hn_div_up(columns, o->lanes);
  if (columns == vectors * o->lanes) {
    o->tile(y, h->n, a, b, (int32_t)rows, vectors, depth, add);
    return;
  }
  const size_t bytes = (size_t)(columns * h->size);
  const int64_t pitch = o->columns * h->size, apart = h->n * h->size;
  for (int64_t i = 0; add && i < rows; i++) memcpy(tile + i * pitch, y + i * apart, bytes);
  o->tile(tile, o->columns, a, b, (int32_t)rows, vectors, depth, add);
  for (int64_t i = 0; i < rows; i++) memcpy(y + i * apart, tile + i * pitch, bytes);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  const int64_t within = index % (j->row_blocks * j->panel_blocks),
                at = index / (j->row_blocks * j->panel_blocks), row = within / j->panel_blocks * h->rows,
                rows = hn_min(h->rows, h->m - row), first = within % j->panel_blocks * h->panels_at_once,
                end = hn_min(h->panels, first + h->panels_at_once), wide = j->o->columns;
  char *y = (char *)j->run->out[0] + (hn_nest_offset(&h->nest, 0, at, 0) + row * h->n) * h->size;
  const char *a =
      (const char *)j->run->in[0] + (hn_nest_offset(&h->nest, 1, at, 0) + row * h->a_row) * h->size;
  const int64_t matrix = HN_FAULT("matmul_wide_matrix") ? 0 : hn_nest_offset(&h->nest, 2, at, 0);
  (void)thread;
  if (h->column) {
    j->o->dots(y, 1, a, h->a_row, (const char *)j->run->in[1] + matrix * h->k * h->size, rows, h->k);
    finish(j, y, row, rows, 0, 1);
    return;
  }
  const char *b = j->packed + matrix * h->matrix_bytes;
  _Alignas(64) char turned[DEPTH * MOST_ROWS * sizeof(uint64_t)];
  for (int64_t p = 0; p < h->k; p += DEPTH)
    for (int64_t r = 0; r < rows; r += j->o->rows) {
      const int64_t some = hn_min(j->o->rows, rows - r), depth = hn_min(DEPTH, h->k - p);
      const char *from = a + (r * h->a_row + p * h->a_step) * h->size;
      if (h->size == 8)
        turn_8((uint64_t *)(void *)turned, (const uint64_t *)(const void *)from, h->a_row, h->a_step, some,
               depth, j->o->rows);
      else
        turn_4((uint32_t *)(void *)turned, (const uint32_t *)(const void *)from, h->a_row, h->a_step, some,
               depth, j->o->rows);
      for (int64_t i = first; i < end; i++)
        add_tile(j, y + (r * h->n + i * wide) * h->size, turned, b + (i * h->k + p) * wide * h->size, some,
                 hn_min(wide, h->n - i * wide), depth, p > 0);
    }
  finish(j, y + first * wide * h->size, row, rows, first * wide, hn_min(end * wide, h->n) - first * wide);
}

static void share(const hone_step_run *r, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), job *j) {
  if (tasks == 1)
    fn(j, 0, 0);
  else
    r->parallel(r->pool, tasks, fn, j);
}

hone_status hn_matmul_wide_run(const hone_step_run *r, const hn_matmul_wide_config *config,
                               hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .o = &hn_wide_find(h->isa)->of[h->type], .packed = r->workspace};
  (void)config, (void)error;
  if (h->packed_at)
    j.packed = (const char *)r->blob + h->packed_at;
  else if (!h->column)
    share(r, h->matrices * h->panels, pack_task, &j);
  j.row_blocks = hn_div_up(h->m, h->rows);
  j.panel_blocks = h->column ? 1 : hn_div_up(h->panels, h->panels_at_once);
  share(r, hn_nest_count(&h->nest) * j.row_blocks * j.panel_blocks, task, &j);
  return HONE_OK;
}

static bool describe(const hone_step *s, const hone_machine *m, const hn_matmul_wide_config *config, head *h,
                     hone_reason *why) {
  return config->gemm ? describe_gemm(s, m, h, why) : describe_matmul(s, m, h, why);
}

HN_FAMILY_DESCRIBED(hn_matmul_wide, head, fill)
