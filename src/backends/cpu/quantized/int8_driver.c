#include "backends/cpu/quantized/int8_driver.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

const hn_int8_ops *hn_int8_find(hn_isa isa) {
  static const hn_int8_ops *_Atomic found[HN_ISA_COUNT];
  if ((unsigned)isa >= HN_ISA_COUNT) return NULL;
  const hn_int8_ops *o = atomic_load_explicit(&found[isa], memory_order_relaxed);
  if (o) return o;
  const struct hn_kernel *k = hn_kernel_find("gemm_int8", "u8s8", isa);
  o = k ? k->ops : NULL;
  atomic_store_explicit(&found[isa], o, memory_order_relaxed);
  return o;
}

/* ---------------------------------------------------------------- planning */

/* Copies of runs may write that many bytes too many. */
enum { SLACK = 64 };

static void plan_tasks(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads) {
  const double cycles = (double)c->rows * (double)c->k_packed * (double)c->cout / (32 * o->rate);
  const double weights = (double)c->k_packed * (double)c->cout,
               input = (double)c->in_bytes / (double)c->groups,
               gather = c->direct ? 0 : (double)c->rows * (double)c->k / 16;
  int64_t want = threads;
  if (c->groups >= 4 * (int64_t)threads || threads == 1 || (cycles + gather) * (double)c->groups < 8000)
    want = 1;
  else if (cycles > 200000.0 * threads)
    want = 2 * (int64_t)threads;
  double best = 0;
  c->m_tasks = c->n_tasks = 1;
  for (int64_t n = 1; n <= hn_min(c->n_panels, want); n++) {
    const int64_t m = hn_min(hn_div_up(want, n), c->tiles), tasks = m * n;
    const int64_t busiest = hn_div_up(tasks, threads) * hn_div_up(c->tiles, m) * hn_div_up(c->n_panels, n);
    const double at_once = (double)hn_min(tasks, threads);
    /* Every row task reads all weights of its columns, every column task all input of its rows. */
    const double all = cycles * (double)busiest / (double)(c->tiles * c->n_panels) +
                       (weights * (double)m / 8 + (input / 16 + gather) * (double)n) / at_once;
    if (best == 0 || all < best * 0.999) best = all, c->m_tasks = m, c->n_tasks = n;
  }
}

bool hn_int8_plan(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads, size_t l2, const char **why) {
  const int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
  c->rows = c->batch * c->out[0] * c->out[1] * c->out[2];
  if (c->rows < 1 || c->cin < 1 || c->cout < 1) return *why = "an empty tensor", false;
  c->k = c->cin * taps;
  /* Sums of codes: |u8 - zero| * |s8| <= 255 * 128 each. */
  if (c->k > 32000) return *why = "sums of more than 32000 products", false;
  c->k_packed = (int64_t)hn_int8_round((size_t)c->k, o->k_step);
  bool in_place = taps == 1 && !c->flip;
  for (int i = 0; i < 3; i++)
    in_place = in_place && c->stride[i] == 1 && c->pad[i] == 0 && c->in[i] == c->out[i];
  c->direct = in_place;
  c->run_taps = c->dilation[2] == 1 && c->in_pitch == c->cin ? c->kernel[2] : 1;
  c->run = c->run_taps * c->cin;
  /* An odd number of cache lines from row to row, so that rows spread over the sets of L1. */
  c->ld = (int64_t)hn_int8_round((size_t)(c->k_packed + SLACK), 64);
  if (c->ld / 64 % 2 == 0) c->ld += 64;
  c->tiles = hn_div_up(c->rows, o->mr);
  c->n_panels = hn_div_up(c->cout, o->nr);
  plan_tasks(c, o, threads);
  const int64_t task_rows = hn_div_up(c->tiles, c->m_tasks) * o->mr;
  c->slab = c->direct ? o->mr : hn_min(hn_max((int64_t)(l2 / 4) / c->ld / o->mr, 1) * o->mr, task_rows);
  const int64_t columns = hn_div_up(c->n_panels, c->n_tasks) * o->nr;
  c->weights_outside = c->k_packed * columns > (int64_t)(l2 / 2);
  if (c->direct && c->weights_outside)
    c->slab = hn_min(hn_max((int64_t)(l2 / 4) / c->in_pitch / o->mr, 1) * o->mr, task_rows);
  return true;
}

double hn_int8_seconds(const hn_int8_conv *c, const hn_int8_ops *o, double peak, double cache) {
  const double groups = (double)c->groups, rows = (double)c->rows;
  const double columns = (double)hn_int8_columns(c);
  const double compute = 2 * rows * columns * (double)c->k_packed * groups / (peak * o->rate * 0.6);
  const double store = rows * columns * groups * 4 / (peak * 0.5);
  const double gather = c->direct ? 0 : rows * (double)c->k * groups / cache;
  const double bytes =
      (double)c->in_bytes + (double)hn_int8_weights(c) * groups + rows * (double)c->cout * groups;
  return compute + store + gather + bytes / cache + 3e-6;
}

size_t hn_int8_columns(const hn_int8_conv *c) { return hn_int8_round((size_t)c->cout, HN_INT8_BLOCK); }
size_t hn_int8_weights(const hn_int8_conv *c) { return hn_int8_columns(c) * (size_t)c->k_packed; }

/* With a tile to spare: kernels read whole tiles, and the last rows of an input in place are copied. */
static size_t scratch_bytes(const hn_int8_conv *c, const hn_int8_ops *o) {
  return (size_t)(((c->direct ? 0 : c->slab) + o->mr) * c->ld + SLACK);
}

size_t hn_int8_workspace(const hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads) {
  return scratch_bytes(c, o) * threads;
}

void hn_int8_pack(const hn_int8_conv *c, const void *w, bool is_u8, int64_t column, int64_t s_tap,
                  int64_t s_channel, int8_t *dst, int32_t *sums) {
  memset(dst, 0, hn_int8_weights(c));
  for (int64_t j = 0; j < c->cout; j++) {
    int8_t *block = dst + j / HN_INT8_BLOCK * HN_INT8_BLOCK * c->k_packed + j % HN_INT8_BLOCK * 4;
    int32_t sum = 0;
    for (int64_t k = 0; k < c->k; k++) {
      const int64_t at = k / c->cin * s_tap + k % c->cin * s_channel + j * column;
      const int8_t v = is_u8 ? (int8_t)(((const uint8_t *)w)[at] - 128) : ((const int8_t *)w)[at];
      block[k / 4 * 64 + k % 4] = v;
      sum += v;
    }
    sums[j] = sum;
  }
}

/* ---------------------------------------------------------------- bringing rows together */

typedef struct line_at {
  int64_t n, z, y; /* of the output */
} line_at;

/* `bytes` of a run to d, which has SLACK bytes to spare; `left` of them may be read from s. */
static inline void copy_run(uint8_t *d, const uint8_t *s, int64_t bytes, int64_t left) {
  if (bytes <= 16 && left >= 16) {
    memcpy(d, s, 16);
  } else if (bytes <= 32 && left >= 32) {
    memcpy(d, s, 32);
  } else if (left >= bytes + 63) {
    for (int64_t i = 0; i < bytes; i += 64) memcpy(d + i, s + i, 64);
  } else {
    memcpy(d, s, (size_t)bytes);
  }
}

/* One run for output x of a line; `from`: the input's line, or NULL when that lies outside. */
static void bring_edge(const hn_int8_conv *c, const uint8_t *from, const uint8_t *end, int64_t at,
                       uint8_t *d) {
  if (from && at >= 0 && at + c->run_taps <= c->in[2]) {
    const uint8_t *s = from + at * c->in_pitch;
    copy_run(d, s, c->run, end - s);
    return;
  }
  memset(d, (int)c->padding ^ (c->flip ? 0x80 : 0), (size_t)c->run);
  if (!from) return;
  /* With several taps a run, a tap is a pixel. */
  const int64_t first = hn_max(0, -at), last = hn_min(c->run_taps, c->in[2] - at);
  if (last > first)
    memcpy(d + (HN_FAULT("int8_left_padding") ? 0 : first) * c->cin, from + (at + first) * c->in_pitch,
           (size_t)((last - first) * c->cin));
}

/* n runs whose copies of a multiple of 16 bytes may be read as a whole. (Distances by value: stores of bytes
 * may be of anything, for all that the compiler knows.) */
static void copy_runs(uint8_t *d, int64_t ld, const uint8_t *s, int64_t step, int64_t run, int64_t n) {
  if (run <= 16)
    for (; n-- > 0; d += ld, s += step) memcpy(d, s, 16);
  else if (run <= 32)
    for (; n-- > 0; d += ld, s += step) memcpy(d, s, 32);
  else
    for (; n-- > 0; d += ld, s += step)
      for (int64_t i = 0; i < run; i += 64) memcpy(d + i, s + i, 64);
}

/* One run for each of the outputs [x0, x1) of a line. */
static void bring_runs(const hn_int8_conv *c, const uint8_t *from, const uint8_t *end, int64_t dx, int64_t x0,
                       int64_t x1, uint8_t *d) {
  int64_t first = x1, last = x1; /* outputs whose runs lie inside, with what whole copies read behind them */
  if (from) {
    const int64_t read = c->run <= 16   ? 16
                         : c->run <= 32 ? 32
                                        : (int64_t)hn_int8_round((size_t)c->run, 64),
                  most = hn_min(c->in[2] - c->run_taps, (end - from - read) / c->in_pitch) - dx;
    first = hn_min(hn_max(x0, dx < 0 ? hn_div_up(-dx, c->stride[2]) : 0), x1);
    last = end - from < read || most < 0 ? first : hn_max(first, hn_min(x1, most / c->stride[2] + 1));
  }
  for (int64_t x = x0; x < first; x++, d += c->ld) bring_edge(c, from, end, x * c->stride[2] + dx, d);
  if (last > first)
    copy_runs(d, c->ld, from + (first * c->stride[2] + dx) * c->in_pitch, c->stride[2] * c->in_pitch, c->run,
              last - first);
  d += (last - first) * c->ld;
  for (int64_t x = last; x < x1; x++, d += c->ld) bring_edge(c, from, end, x * c->stride[2] + dx, d);
}

static void turn(uint8_t *d, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) d[i] ^= 0x80;
}

/* Rows [r0, r1) of A. */
static void bring(const hn_int8_args *a, int64_t group, int64_t r0, int64_t r1, uint8_t *d) {
  const hn_int8_conv *c = a->conv;
  const uint8_t *x = a->x + group * c->cin, *end = a->x + c->in_bytes;
  while (r0 < r1) {
    int64_t r = r0, x0 = r % c->out[2];
    r /= c->out[2];
    const line_at at = {r / c->out[1] / c->out[0], r / c->out[1] % c->out[0], r % c->out[1]};
    const int64_t count = hn_min(c->out[2] - x0, r1 - r0);
    uint8_t *to = d;
    for (int64_t tz = 0; tz < c->kernel[0]; tz++)
      for (int64_t ty = 0; ty < c->kernel[1]; ty++) {
        const int64_t z = at.z * c->stride[0] + tz * c->dilation[0] - c->pad[0],
                      y = at.y * c->stride[1] + ty * c->dilation[1] - c->pad[1];
        const bool inside = z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1];
        const uint8_t *line =
            inside ? x + ((at.n * c->in[0] + z) * c->in[1] + y) * c->in[2] * c->in_pitch : NULL;
        for (int64_t tx = 0; tx < c->kernel[2]; tx += c->run_taps, to += c->run)
          bring_runs(c, line, end, tx * c->dilation[2] - c->pad[2], x0, x0 + count, to);
      }
    if (c->flip)
      for (int64_t i = 0; i < count; i++) turn(d + i * c->ld, c->k);
    r0 += count, d += count * c->ld;
  }
}

/* ---------------------------------------------------------------- running */

/* The epilogue of rows [m0, m1), n columns from column c0 on. */
static void post(const hn_int8_args *a, int64_t m0, int64_t m1, int64_t c0, size_t n) {
  const hn_int8_conv *c = a->conv;
  const int64_t pitch = c->out_pitch / (int64_t)sizeof(float);
  for (int64_t run; m0 < m1; m0 += run) {
    const int64_t x = m0 % c->out[2], line = m0 / c->out[2];
    run = hn_min(c->out[2] - x, m1 - m0);
    hn_epilogue_post_pixels(a->epilogue, (float *)a->y + m0 * pitch + c0, pitch, run, (size_t)c0, n,
                            line / c->out[1] / c->out[0], line / c->out[1] % c->out[0], line % c->out[1], x);
  }
}

/* Rows [m0, m1) of a slab that begins with row s0, columns [n0, n1). */
static void run_tile(const hn_int8_args *a, int64_t group, uint8_t *slab, int64_t s0, int64_t m0, int64_t m1,
                     int64_t n0, int64_t n1) {
  const hn_int8_conv *c = a->conv;
  const hn_int8_ops *o = a->ops;
  const int64_t columns = (int64_t)hn_int8_columns(c);
  hn_int8_tile t = {.k = (size_t)c->k_packed,
                    .ldc = c->out_pitch,
                    .m = (uint32_t)(m1 - m0),
                    .zero = (int32_t)c->zero,
                    .is_signed = c->is_signed != 0,
                    .wide = c->wide != 0};
  const int64_t size = c->wide ? (int64_t)sizeof(float) : 1;
  if (c->direct) {
    t.a = a->x + m0 * c->in_pitch + group * c->cin;
    t.lda = c->in_pitch;
    const int64_t read = (int64_t)hn_int8_round((size_t)(m1 - m0), o->whole_rows);
    if ((m0 + read - 1) * c->in_pitch + group * c->cin + c->k_packed > c->in_bytes) {
      /* Reading would run past the input's end. */
      for (int64_t i = 0; i < m1 - m0; i++) memcpy(slab + i * c->ld, t.a + i * t.lda, (size_t)c->k);
      t.a = slab, t.lda = c->ld;
    }
  } else {
    t.a = slab + (m0 - s0) * c->ld;
    t.lda = c->ld;
  }
  for (int64_t n = n0; n < n1; n += o->nr) {
    t.n = (uint32_t)hn_min(o->nr, n1 - n);
    t.b = a->w + group * (int64_t)hn_int8_weights(c) + n * c->k_packed;
    /* The next panel comes from far away: the first two tiles of this one ask for a half each. */
    t.ahead = t.b + (o->nr + (m0 == s0 ? 0 : o->nr / 2)) * c->k_packed;
    t.bias = a->bias + group * columns + n;
    t.scale = a->scale + group * columns + n;
    t.c = (char *)a->y + m0 * c->out_pitch + (group * c->cout + n) * size;
    o->tile(&t);
    if (a->table) hn_code_table_rows(a->tables, t.c, t.ldc, m1 - m0, t.n, a->table);
    if (a->epilogue && a->epilogue->n_post) post(a, m0, m1, group * c->cout + n, t.n);
  }
}

/* Tiles share [b0, b1) evenly. */
static void run_slab(const hn_int8_args *a, int64_t group, uint8_t *slab, int64_t b0, int64_t b1, int64_t n0,
                     int64_t n1) {
  const int64_t tiles = hn_div_up(b1 - b0, a->ops->mr);
  for (int64_t i = 0; i < tiles; i++)
    run_tile(a, group, slab, b0, b0 + i * (b1 - b0) / tiles, b0 + (i + 1) * (b1 - b0) / tiles, n0, n1);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hn_int8_args *a = arg;
  const hn_int8_conv *c = a->conv;
  const hn_int8_ops *o = a->ops;
  const int64_t m = i % c->m_tasks, rest = i / c->m_tasks, n = rest % c->n_tasks, group = rest / c->n_tasks;
  const int64_t r1 = (m + 1) * c->tiles / c->m_tasks * o->mr;
  int64_t r0 = m * c->tiles / c->m_tasks * o->mr;
  const int64_t n0 = n * c->n_panels / c->n_tasks * o->nr,
                n1 = hn_min((n + 1) * c->n_panels / c->n_tasks * o->nr, c->cout);
  uint8_t *scratch = a->scratch + thread * scratch_bytes(c, o);
  o->begin();
  for (int64_t end = hn_min(r1, c->rows); r0 < end; r0 += c->slab) {
    const int64_t s1 = hn_min(r0 + c->slab, end);
    if (!c->direct) bring(a, group, r0, s1, scratch);
    if (c->weights_outside)
      for (int64_t j = n0; j < n1; j += o->nr) run_slab(a, group, scratch, r0, s1, j, hn_min(j + o->nr, n1));
    else
      run_slab(a, group, scratch, r0, s1, n0, n1);
  }
  o->end();
}

void hn_int8_exec(const hn_int8_args *a, hn_parallel_fn parallel, void *pool) {
  const hn_int8_conv *c = a->conv;
  const int64_t tasks = c->groups * c->m_tasks * c->n_tasks;
  if (tasks == 1)
    task((void *)(uintptr_t)a, 0, 0);
  else
    parallel(pool, tasks, task, (void *)(uintptr_t)a);
}
