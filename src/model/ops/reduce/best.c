/* Largest and smallest elements of types of any width, where they lie: rows of neighbours that are kept are
 * compared as a whole, runs of neighbours that are reduced in lanes. */
#include "model/ops/reduce/best.h"

#include "base/fault.h"
#include "base/integers.h"
#include "base/wide.h"

enum { BLOCK = 64, VECTOR = 32, PART = 8 /* bytes */ };

typedef uint8_t bytes __attribute__((vector_size(VECTOR)));
typedef uint8_t eight __attribute__((vector_size(PART)));

/* Lanes of a where the mask is set, else of b. */
#define CHOOSE(V, bits, mask, a, b) ((V)(((bits)(a) & (bits)(mask)) | ((bits)(b) & ~(bits)(mask))))

/* Of two; what is not a number wins. */
#define OF_TWO(better, v, b) ((((v)better(b)) | ((v) != (v))) ? (v) : (b))

/* best[i] against x[i] for rows of n, one behind the other; NaN wins and stays. And the best of each of some
 * runs of n > 0; runs 0: one that goes on. */
#define BEST(name, T, better)                                                                                \
  HN_WIDE_BODY void rows_##name##_body(T *restrict best, const T *restrict x, int64_t n, int64_t runs) {     \
    const int64_t whole = n - n % BLOCK;                                                                     \
    for (int64_t r = 0; r < runs; r++, x += n) {                                                             \
      for (int64_t j = 0; j < whole; j += BLOCK)                                                             \
        for (int64_t i = j; i < j + BLOCK; i++) {                                                            \
          const T v = x[i], b = best[i];                                                                     \
          best[i] = OF_TWO(better, v, b);                                                                    \
        }                                                                                                    \
      for (int64_t i = whole; i < n; i++) best[i] = OF_TWO(better, x[i], best[i]);                           \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, rows_##name, rows_##name##_body, (void *best, const void *x, int64_t n, int64_t runs),       \
          (best, x, n, runs))                                                                                \
  typedef T vector_##name __attribute__((vector_size(VECTOR)));                                              \
  typedef T part_##name __attribute__((vector_size(PART)));                                                  \
  HN_WIDE_BODY void run_##name##_body(T *restrict best, const T *restrict x, int64_t n) {                    \
    enum { LANES = VECTOR / sizeof(T) };                                                                     \
    T one = *best;                                                                                           \
    int64_t i = 0;                                                                                           \
    if (n >= LANES) { /* the last lanes meet some elements twice */                                          \
      vector_##name lane, v;                                                                                 \
      memcpy(&lane, x, VECTOR);                                                                              \
      for (i = LANES; i < n; i += LANES) {                                                                   \
        memcpy(&v, x + (i + LANES <= n ? i : n - LANES), VECTOR);                                            \
        lane = CHOOSE(vector_##name, bytes, (v better lane) | (v != v), v, lane);                            \
      }                                                                                                      \
      part_##name part[VECTOR / PART], first; /* in pieces that one store has written */                     \
      T last[PART / sizeof(T)];                                                                              \
      memcpy(part, &lane, VECTOR);                                                                           \
      first = part[0];                                                                                       \
      for (int k = 1; k < VECTOR / PART; k++)                                                                \
        first = CHOOSE(part_##name, eight, (part[k] better first) | (part[k] != part[k]), part[k], first);   \
      memcpy(last, &first, PART);                                                                            \
      for (size_t k = 0; k < PART / sizeof(T); k++) one = OF_TWO(better, last[k], one);                      \
    }                                                                                                        \
    for (; i < n; i++) one = OF_TWO(better, x[i], one);                                                      \
    *best = one;                                                                                             \
  }                                                                                                          \
  HN_WIDE_BODY void runs_##name##_body(T *restrict best, const T *restrict x, int64_t n, int64_t runs) {     \
    if (!runs) run_##name##_body(best, x, n);                                                                \
    for (int64_t r = 0; r < runs; r++, x += n) {                                                             \
      best[r] = *x;                                                                                          \
      run_##name##_body(best + r, x, n);                                                                     \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, run_##name, runs_##name##_body, (void *best, const void *x, int64_t n, int64_t runs),        \
          (best, x, n, runs))

#define BOTH(name, T)                                                                                        \
  BEST(max_##name, T, >)                                                                                     \
  BEST(min_##name, T, <)
BOTH(i8, int8_t)
BOTH(u8, uint8_t)
BOTH(i32, int32_t)
BOTH(u32, uint32_t)
BOTH(i64, int64_t)
BOTH(u64, uint64_t)
BOTH(f32, float)
BOTH(f64, double)

typedef void (*best_fn)(void *best, const void *x, int64_t n, int64_t runs);

/* Rows, runs; smallest, largest. */
#define OF(name)                                                                                             \
  {                                                                                                          \
    {rows_min_##name, rows_max_##name}, { run_min_##name, run_max_##name }                                   \
  }
static const best_fn of[][2][2] = {
    [HONE_DTYPE_I8] = OF(i8),   [HONE_DTYPE_U8] = OF(u8),   [HONE_DTYPE_BOOL] = OF(u8),
    [HONE_DTYPE_I32] = OF(i32), [HONE_DTYPE_U32] = OF(u32), [HONE_DTYPE_I64] = OF(i64),
    [HONE_DTYPE_U64] = OF(u64), [HONE_DTYPE_F32] = OF(f32), [HONE_DTYPE_F64] = OF(f64)};

typedef struct walk {
  int32_t n;
  int64_t dim[HONE_MAX_RANK], step[HONE_MAX_RANK], index[HONE_MAX_RANK], at, count;
} walk;

static void next(walk *w) {
  for (int32_t d = w->n - 1; d >= 0; d--) {
    w->at += w->step[d];
    if (++w->index[d] < w->dim[d]) return;
    w->at -= w->step[d] * w->dim[d];
    w->index[d] = 0;
  }
}

static void add(walk *w, int64_t dim, int64_t step) {
  w->dim[w->n] = dim, w->step[w->n++] = step;
  w->count *= dim;
}

bool hn_reduce_best_takes(hone_dtype t) { return (size_t)t < sizeof of / sizeof *of && of[t][0][0]; }

hone_status hn_reduce_best(hone_call *call, const bool *on, bool largest, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *d = &x->desc;
  const int64_t size = (int64_t)hone_dtype_size(d->dtype);
  walk kept = {.count = 1}, gone = {.count = 1};
  int64_t block = 1, left = 0;
  int32_t end = d->rank;
  /* Neighbours that are kept together or reduced together. */
  while (end > 0 && d->dim[end - 1] == 1) end--;
  const bool runs = end > 0 && on[end - 1];
  for (; end > 0 && (on[end - 1] == runs || d->dim[end - 1] == 1); end--) block *= d->dim[end - 1];
  int64_t step = block;
  int64_t steps[HONE_MAX_RANK];
  for (int32_t i = end - 1; i >= 0; i--) steps[i] = step, step *= d->dim[i];
  for (int32_t i = 0; i < end; i++) add(on[i] ? &gone : &kept, d->dim[i], steps[i]);
  const best_fn fn = of[d->dtype][runs][largest != HN_FAULT("reduce_best_least")];
  const int64_t row = (runs ? 1 : block) * size;
  unsigned char *to = y->data;
  for (int64_t k = 0, some; runs && gone.count == 1 && k < kept.count; k += some, to += some * row) {
    some = hn_min(kept.count - k, hn_max(1, (1 << 18) / block)); /* they lie one behind the other */
    fn(to, (const unsigned char *)x->data + k * block * size, block, some);
    const hone_status status = hn_call_check(call, error);
    if (status || k + some == kept.count) return status;
  }
  for (int64_t k = 0; k < kept.count; k++, to += row, next(&kept)) {
    for (int64_t g = 0; g < gone.count; g++, next(&gone)) {
      const unsigned char *from = (const unsigned char *)x->data + (kept.at + gone.at) * size;
      if (g == 0) memcpy(to, from, (size_t)row);
      if (g || runs) fn(to, from, block, !runs);
      if ((left -= block) < 0) {
        left = 1 << 18;
        const hone_status status = hn_call_check(call, error);
        if (status) return status;
      }
    }
  }
  return HONE_OK;
}
