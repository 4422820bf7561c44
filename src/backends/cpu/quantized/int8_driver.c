#include "backends/cpu/quantized/int8_driver.h"
#include "backends/cpu/quantized/int8_rows.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"
#include "base/map.h"

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

/* Cycles of a byte that another core has written last: read, and written again, whoever reads it next
 * included. */
static const double read_across = 0.35, write_across = 0.7;

/* Products for one. */
static double planes_of(const hn_int8_conv *c) { return c->halves ? 2 : 1; }

static void plan_tasks(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads) {
  const double cycles =
      planes_of(c) * (double)c->rows * (double)c->k_packed * (double)c->cout / (32 * o->rate);
  const double weights = (double)c->k_packed * (double)c->cout,
               input = planes_of(c) * (double)c->in_bytes / (double)c->groups,
               codes = (double)c->rows * (double)c->cout,
               gather = c->direct  ? 0
                        : c->lines ? input / 16
                                   : planes_of(c) * (double)c->rows * (double)c->k / 16;
  /* What one thread does alone, the others had a part of its input in their caches. */
  const double alone = cycles + gather + weights / 8 + input * read_across * (threads - 1) / threads;
  int64_t want = threads;
  if (c->groups >= 4 * (int64_t)threads || threads == 1 || alone * (double)c->groups < 8000)
    want = 1;
  else if (cycles > 200000.0 * threads)
    want = 2 * (int64_t)threads;
  double best = 0;
  c->m_tasks = c->n_tasks = 1;
  for (int64_t n = 1; n <= hn_min(c->n_panels, want); n++) {
    const int64_t m = hn_min(hn_div_up(want, n), c->tiles), tasks = m * n;
    const int64_t busiest = hn_div_up(tasks, threads) * hn_div_up(c->tiles, m) * hn_div_up(c->n_panels, n);
    const double at_once = (double)hn_min(tasks, threads), others = (double)(n - 1) / (double)n;
    /* Steps share their work by rows wherever they can. With columns of its own, a thread reads what the
     * others wrote, and codes are read, and their places were written, by the others (f32 is mostly on its
     * way to steps that share by columns, too). */
    const double across = others * (input * read_across + (c->wide ? 0 : codes * write_across / at_once));
    /* Every row task reads all weights of its columns, every column task all input of its rows. */
    const double all = cycles * (double)busiest / (double)(c->tiles * c->n_panels) + across +
                       (weights * (double)m / 8 + (input / 16 + gather) * (double)n) / at_once;
    if (best == 0 || all < best * 0.999) best = all, c->m_tasks = m, c->n_tasks = n;
  }
}

/* Pixels of a line, and lines, that so many outputs read. In doubles: taps may lie far apart. */
static double span(const hn_int8_conv *c, int axis) {
  return (double)(c->out[axis] - 1) * (double)c->stride[axis] +
         (double)(c->kernel[axis] - 1) * (double)c->dilation[axis] + 1;
}

/* Lines with padding instead of rows brought together: less is written, but tiles end with a line. Rows are
 * better where outputs or taps lie so far apart that lines are mostly gaps, where the lines of one output
 * line do not stay in L2, and where there are too few lines for all threads: a matrix is a single one. */
static bool lines_pay(const hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads, size_t l2) {
  if (c->direct || c->kernel[0] != 1 || c->in[0] != 1 || c->out[0] != 1 || c->pad[0]) return false;
  const int64_t taps = c->kernel[1] * c->kernel[2];
  if (taps > HN_INT8_SEGMENTS) return false;
  if (span(c, 1) * span(c, 2) > (double)(c->out[1] * c->out[2]) * (double)taps) return false;
  const double lines = (double)(c->kernel[1] - 1) * (double)c->dilation[1] + 1;
  if (lines * span(c, 2) * (double)c->cin > (double)l2 / 2) return false;
  if (c->batch * c->groups * c->out[1] < (int64_t)threads) return false;
  return 10 * c->out[2] >= 7 * hn_div_up(c->out[2], o->mr) * o->mr;
}

/* The parts of a row, and how lines lie. */
static void segment(hn_int8_conv *c, const hn_int8_ops *o) {
  const int64_t across = c->kernel[2] / c->run_taps;
  c->n_segments = c->lines ? c->kernel[1] * across : 1;
  c->segment = (int64_t)hn_int8_round((size_t)(c->k / c->n_segments), o->k_step);
  c->k_packed = c->n_segments * c->segment;
  if (!c->lines) return;
  c->width = (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
  c->line = (int64_t)hn_int8_round((size_t)(c->width * c->cin), 64);
  for (int64_t i = 0; i < c->n_segments; i++)
    c->segment_at[i] = i / across * c->dilation[1] * c->line + i % across * c->dilation[2] * c->cin;
}

static bool plan(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads, size_t l2, const char **why) {
  const int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
  c->rows = c->batch * c->out[0] * c->out[1] * c->out[2];
  if (c->rows < 1 || c->cin < 1 || c->cout < 1) return *why = "an empty tensor", false;
  c->k = c->cin * taps;
  /* Sums of codes: |u8 - zero| * |s8| <= 255 * 128 each. */
  if (c->k > 32000) return *why = "sums of more than 32000 products", false;
  bool in_place = taps == 1 && !c->flip;
  for (int i = 0; i < 3; i++)
    in_place = in_place && c->stride[i] == 1 && c->pad[i] == 0 && c->in[i] == c->out[i];
  c->direct = in_place;
  c->listed = o->arrange != NULL;
  c->lines = lines_pay(c, o, threads, l2);
  c->run_taps = c->dilation[2] == 1 && (c->lines || c->in_pitch == c->cin) ? c->kernel[2] : 1;
  c->run = c->run_taps * c->cin;
  segment(c, o);
  /* An odd number of cache lines from row to row, so that rows spread over the sets of L1. */
  c->ld = (int64_t)hn_int8_round((size_t)(c->k_packed + SLACK), 64);
  if (c->ld / 64 % 2 == 0) c->ld += 64;
  c->unit = c->lines ? c->out[2] : o->mr;
  c->tiles = hn_div_up(c->rows, c->unit);
  c->n_panels = hn_div_up(c->cout, o->nr);
  plan_tasks(c, o, threads);
  const int64_t task_rows = hn_div_up(c->tiles, c->m_tasks) * c->unit;
  if (c->lines) {
    const int64_t most = ((int64_t)(l2 / 4) / c->line - hn_int8_lines(c, 1)) / c->stride[1] + 1;
    c->slab = hn_min(hn_min(hn_max(most, 1), c->out[1]) * c->unit, task_rows);
  } else {
    c->slab = c->direct ? o->mr : hn_min(hn_max((int64_t)(l2 / 4) / c->ld / o->mr, 1) * o->mr, task_rows);
  }
  const int64_t columns = hn_div_up(c->n_panels, c->n_tasks) * o->nr;
  c->weights_outside = c->k_packed * columns > (int64_t)(l2 / 2);
  if (c->direct && c->weights_outside)
    c->slab = hn_min(hn_max((int64_t)(l2 / 4) / c->in_pitch / o->mr, 1) * o->mr, task_rows);
  return true;
}

/* Cycles to compare plans of other numbers of groups by: the model's, and what each group costs beside. */
static double cycles_of(const hn_int8_conv *c, const hn_int8_ops *o) {
  const double flops = 64, bytes = 32, call = 100, run = 4; /* a cycle; cycles */
  const int64_t runs = c->k / c->run;                       /* of a row */
  const double pixels = c->direct  ? 0
                        : c->lines ? (double)c->in_bytes / (double)c->in_pitch
                                   : (double)c->rows * (double)runs;
  return hn_int8_seconds(c, o, flops, bytes) +
         (double)c->groups * (pixels * run + (double)c->rows / o->mr * (double)c->n_panels * call);
}

/* Groups of few channels fill neither the steps of K nor the columns of a tile. Several of them are one
 * product whose weights are 0 where a column's group has no channel, as long as that is less work. Not of a
 * channel each: there are kernels for that. */
bool hn_int8_plan(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads, size_t l2, const char **why) {
  hn_int8_conv best = *c;
  best.joined = 1;
  if (c->halves) l2 /= 2; /* as much of each */
  if (!plan(&best, o, threads, l2, why)) return false;
  double least = cycles_of(&best, o);
  const int64_t most = c->cin * c->cout == 1 ? 0 : hn_max(o->k_step, HN_INT8_BLOCK);
  for (int64_t join = 2; join <= c->groups && join * c->cin <= most; join++) {
    if (c->groups % join) continue;
    hn_int8_conv next = *c;
    const char *reason;
    next.joined = join, next.groups /= join, next.cin *= join, next.cout *= join;
    if (!plan(&next, o, threads, l2, &reason)) continue;
    const double cycles = cycles_of(&next, o);
    if (cycles < least) least = cycles, best = next;
  }
  *c = best;
  return true;
}

double hn_int8_seconds(const hn_int8_conv *c, const hn_int8_ops *o, double peak, double cache) {
  const double groups = (double)c->groups, rows = (double)c->rows;
  const double columns = (double)hn_int8_columns(c);
  const double planes = planes_of(c);
  const double compute = planes * 2 * rows * columns * (double)c->k_packed * groups / (peak * o->rate * 0.6);
  const double store = planes * planes * rows * columns * groups * 4 / (peak * 0.5);
  const double gather = c->direct  ? 0
                        : c->lines ? planes * (double)c->in_bytes / cache
                                   : planes * rows * (double)c->k * groups / cache;
  const double bytes =
      planes * (double)c->in_bytes + (double)hn_int8_weights(c) * groups + rows * (double)c->cout * groups;
  const double sums = c->offsets ? rows * (double)c->k * groups / cache + store / 4 : 0;
  return compute + store + gather + sums + bytes / cache + 3e-6;
}

uint64_t hn_int8_order(const hn_int8_conv *c) {
  const int64_t order[] = {c->cin,      c->cout,    c->groups,     c->k,
                           c->k_packed, c->segment, c->n_segments, c->listed};
  const uint64_t packed = hn_hash(order, sizeof order, 0);
  /* Lists say where the segments of a row lie, too: lines of another width have them elsewhere. */
  return c->listed && c->n_segments > 1
             ? hn_hash(c->segment_at, (size_t)c->n_segments * sizeof *c->segment_at, packed)
             : packed;
}

size_t hn_int8_columns(const hn_int8_conv *c) { return hn_int8_round((size_t)c->cout, HN_INT8_BLOCK); }

static size_t codes_bytes(const hn_int8_conv *c) { return hn_int8_columns(c) * (size_t)c->k_packed; }
static size_t list_bytes(const hn_int8_conv *c) {
  return c->listed ? sizeof(hn_int8_fours) + (size_t)c->k_packed / 4 * sizeof(struct hn_int8_four) : 0;
}
size_t hn_int8_weights(const hn_int8_conv *c) {
  return hn_int8_round(codes_bytes(c) + hn_int8_columns(c) / HN_INT8_BLOCK * list_bytes(c), 64);
}
/* Of the block of a group's packed weights that holds column n. */
static size_t list_at(const hn_int8_conv *c, int64_t n) {
  return codes_bytes(c) + (size_t)n / HN_INT8_BLOCK * list_bytes(c);
}

/* With a tile to spare: kernels read whole tiles, and the last rows of an input in place are copied. */
static size_t rows_bytes(const hn_int8_conv *c, const hn_int8_ops *o) {
  if (c->lines)
    return (size_t)(hn_int8_lines(c, c->slab / c->out[2]) * c->line + o->whole_rows * c->stride[2] * c->cin +
                    SLACK);
  return (size_t)(((c->direct ? 0 : c->slab) + o->mr) * c->ld + SLACK);
}

/* Rows and their sums behind them. */
static size_t slab_bytes(const hn_int8_conv *c, const hn_int8_ops *o) {
  const size_t sums = c->offsets ? (size_t)(c->slab + 3) * sizeof(int32_t) : 0;
  return hn_int8_round(hn_int8_round(rows_bytes(c, o), 64) + sums, 64);
}

/* Behind them, of both halves, a tile of f32 that becomes codes, then one of sums for each half. */
static size_t tile_at(const hn_int8_conv *c, const hn_int8_ops *o) {
  return slab_bytes(c, o) * (c->halves ? 2 : 1);
}

static size_t halves_at(const hn_int8_conv *c, const hn_int8_ops *o) {
  return tile_at(c, o) + (c->coded ? hn_code_rows_bytes(o->mr, o->nr) : 0);
}

static size_t scratch_bytes(const hn_int8_conv *c, const hn_int8_ops *o) {
  if (!c->coded && !c->offsets && !c->halves) return rows_bytes(c, o);
  return halves_at(c, o) + (c->halves ? 2 * (size_t)o->mr * o->nr * sizeof(int32_t) : 0);
}

size_t hn_int8_workspace(const hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads) {
  return scratch_bytes(c, o) * threads;
}

/* The offset of the channel whose weights begin with w[at]. Joined groups have zeros among them. */
static int32_t offset_of(const hn_int8_conv *c, const hn_weight_codes *w, int32_t zero, int64_t at,
                         int64_t s_tap, int64_t s_channel) {
  const int64_t taps = c->k / c->cin;
  int32_t least = c->joined > 1 ? zero : 255, most = c->joined > 1 ? zero : -128;
  for (int64_t tap = 0; tap < taps; tap++, at += s_tap)
    for (int64_t i = 0; i < c->cin / c->joined; i++) {
      const int32_t v = hn_weight_code(w, w->w, at + i * s_channel);
      least = v < least ? v : least, most = v > most ? v : most;
    }
  return hn_weight_offset(least - zero, most - zero);
}

/* n codes, `step` bytes from one to the next, less `less`: bytes wrap. Returns their sum. Blocks have a
 * constant length, and sums of 16 bits that hold it, so that compilers make vectors of them. */
static int32_t take_codes(int8_t *restrict to, const uint8_t *restrict from, int64_t step, int64_t n,
                          uint8_t less) {
  enum { BLOCK = 64 };
  int32_t sum = 0;
  int64_t i = 0;
  for (; step == 1 && i + BLOCK <= n; i += BLOCK) {
    int16_t part = 0;
    for (int k = 0; k < BLOCK; k++) {
      to[i + k] = (int8_t)(uint8_t)(from[i + k] - less);
      part = (int16_t)(part + to[i + k]);
    }
    sum += part;
  }
  for (; i < n; i++) {
    to[i] = (int8_t)(uint8_t)(from[i * step] - less);
    sum += to[i];
  }
  return sum;
}

/* Values [at, at + n) of a channel to their places: four together, blocks of channels apart. */
static void put_codes(int8_t *block, int64_t at, const int8_t *v, int64_t n) {
  int64_t i = 0;
  for (; i < n && at % 4; i++, at++) block[at / 4 * 64 + at % 4] = v[i];
  for (; i + 4 <= n; i += 4, at += 4) memcpy(block + at * 16, v + i, 4);
  for (; i < n; i++, at++) block[at / 4 * 64 + at % 4] = v[i];
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t pairs8 __attribute__((vector_size(16)));
typedef int16_t sums8 __attribute__((vector_size(16)));
typedef uint32_t fours4 __attribute__((vector_size(16)));

static inline bytes16 bytes_at(const uint8_t *p) {
  bytes16 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* The bytes as signed numbers: shifted down from above. */
static inline sums8 low_of(bytes16 v) {
  return (sums8)__builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7) >> 8;
}
static inline sums8 high_of(bytes16 v) {
  return (sums8)__builtin_shufflevector(v, v, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15) >>
         8;
}

#define INTERLEAVE_LOW(x, y)                                                                                 \
  __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(x, y)                                                                                \
  __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
/* Four rows of 16 bytes, those of a column together. */
static inline void put_four_rows(int8_t *block, bytes16 a, bytes16 b, bytes16 c, bytes16 d) {
  const pairs8 ab[] = {(pairs8)INTERLEAVE_LOW(a, b), (pairs8)INTERLEAVE_HIGH(a, b)},
               cd[] = {(pairs8)INTERLEAVE_LOW(c, d), (pairs8)INTERLEAVE_HIGH(c, d)};
  for (int half = 0; half < 2; half++) {
    const pairs8 low = __builtin_shufflevector(ab[half], cd[half], 0, 8, 1, 9, 2, 10, 3, 11),
                 high = __builtin_shufflevector(ab[half], cd[half], 4, 12, 5, 13, 6, 14, 7, 15);
    memcpy(block + 32 * half, &low, sizeof low);
    memcpy(block + 32 * half + 16, &high, sizeof high);
  }
}

enum { ROWS_AT_ONCE = 128 }; /* of weights that lie side by side: their sums stay within 16 bits */

/* A whole block of channels whose weights lie side by side, k <= ROWS_AT_ONCE rows `step` apart, less one
 * number a channel. */
static void pack_columns(int8_t *block, const uint8_t *from, int64_t step, int64_t k,
                         const uint8_t less[HN_INT8_BLOCK], int32_t sum[HN_INT8_BLOCK]) {
  const bytes16 minus = bytes_at(less);
  _Static_assert(sizeof minus == HN_INT8_BLOCK && ROWS_AT_ONCE * 128 <= 32768, "of a block");
  int64_t i = 0;
  sums8 low = {0}, high = {0};
  for (; i + 4 <= k; i += 4, from += 4 * step, block += 4 * HN_INT8_BLOCK) {
    const bytes16 a = bytes_at(from) - minus, b = bytes_at(from + step) - minus,
                  c = bytes_at(from + 2 * step) - minus, d = bytes_at(from + 3 * step) - minus;
    put_four_rows(block, a, b, c, d);
    low += low_of(a) + low_of(b) + low_of(c) + low_of(d);
    high += high_of(a) + high_of(b) + high_of(c) + high_of(d);
  }
  for (int j = 0; j < HN_INT8_BLOCK; j++) sum[j] += j < 8 ? low[j] : high[j - 8];
  for (int64_t r = 0; i < k; i++, r++, from += step)
    for (int j = 0; j < HN_INT8_BLOCK; j++) {
      block[4 * j + r] = (int8_t)(uint8_t)(from[j] - less[j]);
      sum[j] += block[4 * j + r];
    }
}

/* Four vectors of four 4-byte groups: group i of all of them together. */
static inline void put_four_columns(int8_t *block, bytes16 a, bytes16 b, bytes16 c, bytes16 d) {
  const fours4 ab[] = {__builtin_shufflevector((fours4)a, (fours4)b, 0, 4, 1, 5),
                       __builtin_shufflevector((fours4)a, (fours4)b, 2, 6, 3, 7)},
               cd[] = {__builtin_shufflevector((fours4)c, (fours4)d, 0, 4, 1, 5),
                       __builtin_shufflevector((fours4)c, (fours4)d, 2, 6, 3, 7)};
  for (int half = 0; half < 2; half++) {
    const fours4 low = __builtin_shufflevector(ab[half], cd[half], 0, 1, 4, 5),
                 high = __builtin_shufflevector(ab[half], cd[half], 2, 3, 6, 7);
    memcpy(block + (2 * half) * 4 * HN_INT8_BLOCK, &low, sizeof low);
    memcpy(block + (2 * half + 1) * 4 * HN_INT8_BLOCK, &high, sizeof high);
  }
}

static inline bytes16 all_of(uint8_t v) { return (bytes16){0} + v; }
static inline int32_t sum_of(sums8 v) { return v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]; }

/* Four channels of a block whose k weights each lie side by side, `step` bytes from channel to channel. */
static void pack_four_rows(int8_t *block, const uint8_t *from, int64_t step, int64_t k, const uint8_t less[4],
                           int32_t sum[4]) {
  enum { WIDTH = 16, TOGETHER = 64 }; /* vectors whose sums of pairs stay within 16 bits */
  _Static_assert(sizeof(bytes16) == WIDTH && TOGETHER * 2 * 128 <= 32768, "of a vector");
  const bytes16 la = all_of(less[0]), lb = all_of(less[1]), lc = all_of(less[2]), ld = all_of(less[3]);
  int64_t i = 0;
  while (i + WIDTH <= k) {
    sums8 sa = {0}, sb = {0}, sc = {0}, sd = {0};
    for (int n = 0; n < TOGETHER && i + WIDTH <= k; n++, i += WIDTH) {
      const uint8_t *at = from + i;
      const bytes16 a = bytes_at(at) - la, b = bytes_at(at + step) - lb, c = bytes_at(at + 2 * step) - lc,
                    d = bytes_at(at + 3 * step) - ld;
      put_four_columns(block + i * HN_INT8_BLOCK, a, b, c, d);
      sa += low_of(a) + high_of(a), sb += low_of(b) + high_of(b);
      sc += low_of(c) + high_of(c), sd += low_of(d) + high_of(d);
    }
    sum[0] += sum_of(sa), sum[1] += sum_of(sb), sum[2] += sum_of(sc), sum[3] += sum_of(sd);
  }
  for (; i < k; i++)
    for (int c = 0; c < 4; c++) {
      const int8_t one = (int8_t)(uint8_t)(from[c * step + i] - less[c]);
      block[i / 4 * 4 * HN_INT8_BLOCK + 4 * c + i % 4] = one;
      sum[c] += one;
    }
}

/* The order of a block's fours. */
static void list_fours(const hn_int8_conv *c, const hn_int8_ops *o, const int8_t *b, hn_int8_fours *to) {
  to->n = (uint32_t)(c->k_packed / 4);
  to->narrow = o->arrange(b, to->n, to->at);
  const uint32_t segment = (uint32_t)c->segment;
  for (uint32_t i = 0; i < to->n; i++) {
    const uint32_t k = to->at[i].b / HN_INT8_BLOCK; /* packed */
    to->at[i].a = (uint32_t)(c->n_segments > 1 ? c->segment_at[k / segment] : 0) + k % segment;
  }
}

/* The whole blocks of channels of one tap, `column` bytes from channel to channel; one of that and s_channel
 * is 1. Returns how many channels they have. */
static int64_t pack_blocks(const hn_int8_conv *c, const hn_weight_codes *w, int64_t group, int64_t column,
                           int64_t s_channel, int8_t *dst, int32_t *sums, int32_t *offsets) {
  enum { LINE = 64 }; /* channels that a line of a row has are packed together, while it is near */
  const int64_t whole = c->cout / HN_INT8_BLOCK * HN_INT8_BLOCK, first = group * c->cout,
                fours = c->k / 4 * 4; /* values that fill fours */
  for (int64_t j = 0, n; j < whole; j += n) {
    n = hn_min(whole - j, LINE);
    const uint8_t *from = (const uint8_t *)w->w + (first + j) * column;
    uint8_t less[LINE];
    for (int64_t i = j; i < j + n; i++) {
      const int32_t zero = hn_weight_zero(w, first + i);
      offsets[i] = c->offsets ? offset_of(c, w, zero, (first + i) * column, 0, s_channel) : 0;
      less[i - j] = (uint8_t)(zero + offsets[i]); /* what is left is an i8: bytes may wrap */
      sums[i] = offsets[i] * (int32_t)c->k;
    }
    for (int64_t b = 0; b < n; b += HN_INT8_BLOCK)
      memset(dst + (j + b) * c->k_packed + fours * HN_INT8_BLOCK, 0,
             (size_t)((c->k_packed - fours) * HN_INT8_BLOCK));
    for (int64_t i = 0; s_channel == 1 && i < n; i += 4) {
      int8_t *block = dst + (j + i / HN_INT8_BLOCK * HN_INT8_BLOCK) * c->k_packed;
      pack_four_rows(block + i % HN_INT8_BLOCK * 4, from + i * column, column, c->k, less + i, sums + j + i);
    }
    for (int64_t r = 0; s_channel != 1 && r < c->k; r += ROWS_AT_ONCE)
      for (int64_t b = 0; b < n; b += HN_INT8_BLOCK)
        pack_columns(dst + (j + b) * c->k_packed + r * HN_INT8_BLOCK, from + r * s_channel + b, s_channel,
                     hn_min(c->k - r, ROWS_AT_ONCE), less + b, sums + j + b);
  }
  return whole;
}

bool hn_int8_pack(const hn_int8_conv *c, const hn_int8_ops *o, const hn_weight_codes *w, int64_t group,
                  int64_t column, int64_t s_tap, int64_t s_channel, int8_t *dst, int32_t *sums,
                  int32_t *offsets) {
  enum { CHUNK = 512 };
  const int64_t part = c->k / c->n_segments, taps = c->k / c->cin, own = c->cin / c->joined;
  const bool plain = taps == 1 && c->n_segments == 1 && c->joined == 1 && (column == 1 || s_channel == 1);
  const int64_t done = plain ? pack_blocks(c, w, group, column, s_channel, dst, sums, offsets) : 0;
  bool any = false;
  for (int64_t j = 0; j < done; j++) any = any || offsets[j];
  memset(dst + done * c->k_packed, 0, hn_int8_weights(c) - (size_t)(done * c->k_packed));
  for (int64_t j = done; j < c->cout; j++) {
    int8_t row[CHUNK], *block = dst + j / HN_INT8_BLOCK * HN_INT8_BLOCK * c->k_packed + j % HN_INT8_BLOCK * 4;
    const int64_t first = (group * c->cout + j) * column;
    const int32_t zero = hn_weight_zero(w, group * c->cout + j),
                  offset = c->offsets ? offset_of(c, w, zero, first, s_tap, s_channel) : 0;
    const uint8_t less = (uint8_t)(zero + offset); /* what is left is an i8: bytes may wrap */
    const int8_t other = (int8_t)(uint8_t)(zero + (HN_FAULT("int8_joined") ? 1 : 0) - less);
    const int64_t own_at = j / (c->cout / c->joined) * own; /* of all channels, those of j's group */
    int64_t at = 0, left = part;                            /* of the segment */
    int32_t sum = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
      const uint8_t *from = (const uint8_t *)w->w + first + tap * s_tap;
      for (int64_t i = 0, n; i < c->cin; i += n) {
        n = hn_min(hn_min(c->cin - i, left), CHUNK);
        const int64_t live = hn_max(i, own_at), end = hn_min(i + n, own_at + own);
        const int64_t lives = end > live ? end - live : 0;
        if (lives < n) memset(row, other, (size_t)n);
        sum += (int32_t)(n - lives) * other;
        if (lives)
          sum += take_codes(row + (live - i), from + (live - own_at) * s_channel, s_channel, lives, less);
        put_codes(block, at, row, n);
        at += n, left -= n;
        if (left == 0) at += c->segment - part, left = part;
      }
    }
    sums[j] = sum + offset * (int32_t)c->k, offsets[j] = offset;
    any = any || offset;
  }
  for (int64_t j = 0; c->listed && j < c->cout; j += HN_INT8_BLOCK)
    list_fours(c, o, dst + j * c->k_packed, (hn_int8_fours *)(void *)(dst + list_at(c, j)));
  return any;
}

/* ---------------------------------------------------------------- running */

/* The epilogue of rows [m0, m1), n columns from column c0 on, which lie at y, `pitch` floats from row to row.
 */
static void post(const hn_int8_args *a, float *y, int64_t pitch, int64_t m0, int64_t m1, int64_t c0,
                 size_t n) {
  const hn_int8_conv *c = a->conv;
  for (int64_t run; m0 < m1; m0 += run, y += run * pitch) {
    const int64_t x = m0 % c->out[2], line = m0 / c->out[2];
    run = hn_min(c->out[2] - x, m1 - m0);
    hn_epilogue_post_pixels(a->epilogue, y, pitch, run, (size_t)c0, n, line / c->out[1] / c->out[0],
                            line / c->out[1] % c->out[0], line % c->out[1], x);
  }
}

static int32_t *row_sums_of(const hn_int8_args *a, uint8_t *slab) {
  return (int32_t *)(void *)(slab + hn_int8_round(rows_bytes(a->conv, a->ops), 64));
}

/* A panel's tiles share asking for the next one, which comes from far away: as slowly as they can, by AHEAD
 * at most (asking for a line again costs next to nothing, but not nothing). */
enum { AHEAD = 8 };

/* Where rows [m0, m1) of an input lie: in place, or in a slab that begins with row s0. */
static void place(const hn_int8_args *a, const uint8_t *x, int64_t group, uint8_t *slab, int64_t s0,
                  int64_t m0, int64_t m1, hn_int8_tile *t) {
  const hn_int8_conv *c = a->conv;
  t->row_sum = c->offsets ? row_sums_of(a, slab) + (m0 - s0) : NULL;
  if (c->direct) {
    t->a = x + m0 * c->in_pitch + group * c->cin;
    t->lda = c->in_pitch;
    const int64_t read = (int64_t)hn_int8_round((size_t)(m1 - m0), a->ops->whole_rows);
    if ((m0 + read - 1) * c->in_pitch + group * c->cin + c->k_packed > c->in_bytes) {
      /* Reading would run past the input's end. */
      for (int64_t i = 0; i < m1 - m0; i++) memcpy(slab + i * c->ld, t->a + i * t->lda, (size_t)c->k);
      t->a = slab, t->lda = c->ld;
    }
  } else if (c->lines) {
    t->lda = c->stride[2] * c->cin;
    t->a = slab + (m0 - s0) / c->out[2] * c->stride[1] * c->line + (m0 - s0) % c->out[2] * t->lda;
  } else {
    t->a = slab + (m0 - s0) * c->ld;
    t->lda = c->ld;
  }
}

/* Both halves' tiles, whose sums become f32 at y, `pitch` bytes from row to row. `high` says what to do but
 * for where its sums go; `low` where the other half's rows lie. */
static void run_halves(const hn_int8_args *a, hn_int8_tile high, const hn_int8_tile *low, int32_t *sums,
                       int64_t at, char *y, int64_t pitch) {
  const int64_t n = high.n;
  high.c = sums, high.ldc = n * (int64_t)sizeof *sums, high.whole = true;
  a->ops->tile(&high);
  hn_int8_tile half = high;
  half.a = low->a, half.lda = low->lda, half.row_sum = low->row_sum, half.ahead = NULL;
  half.bias = a->bias_low + at;
  half.c = sums + high.m * n;
  a->ops->tile(&half);
  for (int64_t i = 0; i < high.m; i++)
    a->halves->join((float *)(void *)(y + i * pitch), sums + i * n, sums + (high.m + i) * n, (size_t)n,
                    a->scale + at);
}

/* Rows [m0, m1) of a slab that begins with row s0, columns [n0, n1). The tile asks for part `ahead` of
 * `at_once`. */
static void run_tile(const hn_int8_args *a, int64_t group, uint8_t *slab, int64_t s0, int64_t m0, int64_t m1,
                     int64_t n0, int64_t n1, int64_t ahead, int64_t at_once) {
  const hn_int8_conv *c = a->conv;
  const hn_int8_ops *o = a->ops;
  const int64_t columns = (int64_t)hn_int8_columns(c);
  hn_int8_tile t = {.k = (size_t)c->segment,
                    .segments = (uint32_t)c->n_segments,
                    .segment_at = c->segment_at,
                    .ldc = c->out_pitch,
                    .m = (uint32_t)(m1 - m0),
                    .zero = (int32_t)c->zero,
                    .is_signed = c->is_signed != 0,
                    .wide = c->wide != 0,
                    .whole = c->whole != 0,
                    .ahead_step = o->nr * 4 / at_once},
               low = {0};
  const int64_t size = c->wide && !c->coded ? (int64_t)sizeof(float) : 1;
  place(a, a->x, group, slab, s0, m0, m1, &t);
  if (c->halves) place(a, a->x_low, group, slab + slab_bytes(c, o), s0, m0, m1, &low);
  for (int64_t n = n0; n < n1; n += o->nr) {
    const int64_t at = group * columns + n;
    t.n = (uint32_t)hn_min(o->nr, n1 - n);
    t.b = a->w + group * (int64_t)hn_int8_weights(c) + n * c->k_packed;
    if (ahead < AHEAD && (c->weights_outside || !o->ahead_outside))
      t.ahead = t.b + (o->nr + ahead * o->nr / at_once) * c->k_packed;
    if (c->listed)
      t.fours =
          (const hn_int8_fours *)(const void *)(a->w + group * (int64_t)hn_int8_weights(c) + list_at(c, n));
    t.bias = a->bias + at;
    t.offset = t.row_sum ? a->offset + at : NULL;
    if (!c->whole) t.scale = a->scale + at;
    char *y = (char *)a->y + m0 * c->out_pitch + (group * c->cout + n) * size;
    float *block = c->coded ? (float *)(void *)(slab + tile_at(c, o)) : (float *)(void *)y;
    t.c = block;
    if (c->coded) t.ldc = t.n * (int64_t)sizeof(float);
    if (c->halves)
      run_halves(a, t, &low, (int32_t *)(void *)(slab + halves_at(c, o)), at, (char *)block, t.ldc);
    else
      o->tile(&t);
    if (a->table) a->tables->rows(t.c, t.ldc, (size_t)(m1 - m0), t.n, a->table);
    if (a->epilogue && a->epilogue->n_post)
      post(a, block, t.ldc / (int64_t)sizeof(float), m0, m1, group * c->cout + n, t.n);
    if (c->coded)
      hn_code_rows_put(a->codes, block, m1 - m0, t.n, group * c->cout + n, (uint8_t *)y, c->out_pitch);
  }
}

/* Tiles share [b0, b1), or each of its lines, evenly. */
static void run_slab(const hn_int8_args *a, int64_t group, uint8_t *slab, int64_t b0, int64_t b1, int64_t n0,
                     int64_t n1) {
  const int64_t rows = a->conv->lines ? a->conv->out[2] : b1 - b0, tiles = hn_div_up(rows, a->ops->mr),
                at_once = hn_min((b1 - b0) / rows * tiles, AHEAD);
  int64_t ahead = 0;
  for (int64_t b = b0; b < b1; b += rows)
    for (int64_t i = 0; i < tiles; i++, ahead++)
      run_tile(a, group, slab, b0, b + i * rows / tiles, b + (i + 1) * rows / tiles, n0, n1, ahead, at_once);
}

/* Rows [r0, r1) of an input to the slab, where they do not lie ready, and their sums. */
static void bring(const hn_int8_args *a, const hn_int8_conv *c, const uint8_t *x, int64_t group, int64_t r0,
                  int64_t r1, uint8_t *slab) {
  if (c->lines)
    hn_int8_bring_lines(c, x, group, r0, r1, slab);
  else if (!c->direct)
    hn_int8_bring_rows(c, x, group, r0, r1, slab);
  if (c->offsets) hn_int8_sum_rows(c, a->ops, x, group, slab, r0, r1, row_sums_of(a, slab));
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hn_int8_args *a = arg;
  const hn_int8_conv *c = a->conv;
  const hn_int8_ops *o = a->ops;
  const int64_t m = i % c->m_tasks, rest = i / c->m_tasks, n = rest % c->n_tasks, group = rest / c->n_tasks;
  const int64_t r1 = (m + 1) * c->tiles / c->m_tasks * c->unit;
  int64_t r0 = m * c->tiles / c->m_tasks * c->unit;
  const int64_t n0 = n * c->n_panels / c->n_tasks * o->nr,
                n1 = hn_min((n + 1) * c->n_panels / c->n_tasks * o->nr, c->cout);
  uint8_t *scratch = a->scratch + thread * scratch_bytes(c, o);
  hn_int8_conv low = *c;
  low.padding = c->padding_low;
  o->begin();
  for (int64_t end = hn_min(r1, c->rows), s1; r0 < end; r0 = s1) {
    s1 = hn_min(r0 + c->slab, end);
    if (c->lines) {
      const int64_t image = c->out[1] * c->out[2];
      s1 = hn_min(s1, (r0 / image + 1) * image);
    }
    bring(a, c, a->x, group, r0, s1, scratch);
    if (c->halves) bring(a, &low, a->x_low, group, r0, s1, scratch + slab_bytes(c, o));
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
