/* Cast between integers, bool, f32 and f64, in any dense layout, as the reference has it: integers wrap;
 * floats truncate, NaN to 0, into i32 and i64 with saturation, into other integers by way of i64; bool is x
 * != 0. What becomes f32 from f16, bf16 and the types that fit it is cast.c's. */
#include <tgmath.h>

#include "backends/cpu/elementwise/cast.h"
#include "backends/tactic.h"
#include "base/fault.h"
#include "base/integers.h"

enum { TASK = 32768, BLOCK = 128 };

typedef void loop(const void *from, void *to, int64_t n);

static inline int64_t truncated(double v) {
  return v >= 0x1p63 ? INT64_MAX : v > -0x1p63 ? (int64_t)v : v == v ? INT64_MIN : 0;
}
static inline int32_t to_i32(double v) {
  return v >= 0x1p31 ? INT32_MAX : v > -0x1p31 - 1 ? (int32_t)v : v == v ? INT32_MIN : 0;
}
static inline uint64_t to_u64(double v) {
  return v >= 0x1p64 ? UINT64_MAX : v >= 0x1p63 ? (uint64_t)v : (uint64_t)truncated(v);
}

#define LOOP(from, to, F, T, expr)                                                                           \
  static void from##_##to(const void *a, void *b, int64_t n) {                                               \
    const F *restrict x = a;                                                                                 \
    T *restrict y = b;                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const F v = x[i];                                                                                      \
      y[i] = (T)(expr);                                                                                      \
    }                                                                                                        \
  }
#define OF_INTEGER(from, F)                                                                                  \
  LOOP(from, u8, F, uint8_t, v)                                                                              \
  LOOP(from, i8, F, int8_t, v)                                                                               \
  LOOP(from, u16, F, uint16_t, v)                                                                            \
  LOOP(from, i16, F, int16_t, v)                                                                             \
  LOOP(from, u32, F, uint32_t, v)                                                                            \
  LOOP(from, i32, F, int32_t, v)                                                                             \
  LOOP(from, u64, F, uint64_t, v)                                                                            \
  LOOP(from, i64, F, int64_t, v)                                                                             \
  LOOP(from, truth, F, uint8_t, v != 0)                                                                      \
  LOOP(from, f32, F, float, v)                                                                               \
  LOOP(from, f64, F, double, v)
/* Blocks of numbers that fit i32, which most are, go by way of it: processors convert several at once. */
#define TRUNCATING(from, to, F, T, expr)                                                                     \
  static void from##_##to(const void *a, void *b, int64_t n) {                                               \
    const F *restrict x = a;                                                                                 \
    T *restrict y = b;                                                                                       \
    int64_t at = 0;                                                                                          \
    for (; at + BLOCK <= n; at += BLOCK) {                                                                   \
      int32_t within = 0;                                                                                    \
      for (int64_t i = at; i < at + BLOCK; i++) within += fabs(x[i]) < (F)0x1p31;                            \
      if (within == BLOCK) {                                                                                 \
        for (int64_t i = at; i < at + BLOCK; i++) y[i] = (T)(int32_t)x[i];                                   \
        continue;                                                                                            \
      }                                                                                                      \
      for (int64_t i = at; i < at + BLOCK; i++) {                                                            \
        const F v = x[i];                                                                                    \
        y[i] = (T)(expr);                                                                                    \
      }                                                                                                      \
    }                                                                                                        \
    for (; at < n; at++) {                                                                                   \
      const F v = x[at];                                                                                     \
      y[at] = (T)(expr);                                                                                     \
    }                                                                                                        \
  }
#define OF_FLOAT(from, F)                                                                                    \
  TRUNCATING(from, u8, F, uint8_t, truncated(v))                                                             \
  TRUNCATING(from, i8, F, int8_t, truncated(v))                                                              \
  TRUNCATING(from, u16, F, uint16_t, truncated(v))                                                           \
  TRUNCATING(from, i16, F, int16_t, truncated(v))                                                            \
  TRUNCATING(from, u32, F, uint32_t, truncated(v))                                                           \
  TRUNCATING(from, i32, F, int32_t, to_i32(v))                                                               \
  TRUNCATING(from, u64, F, uint64_t, to_u64(v))                                                              \
  TRUNCATING(from, i64, F, int64_t, truncated(v))                                                            \
  LOOP(from, truth, F, uint8_t, v != 0)                                                                      \
  LOOP(from, f32, F, float, v)                                                                               \
  LOOP(from, f64, F, double, v)

OF_INTEGER(u8, uint8_t)
OF_INTEGER(i8, int8_t)
OF_INTEGER(u16, uint16_t)
OF_INTEGER(i16, int16_t)
OF_INTEGER(u32, uint32_t)
OF_INTEGER(i32, int32_t)
OF_INTEGER(u64, uint64_t)
OF_INTEGER(i64, int64_t)
OF_FLOAT(f32, float)
OF_FLOAT(f64, double)

/* Of bytes that are 0 or not. */
#define OF_BOOL(to, T) LOOP(truth, to, uint8_t, T, v != 0)
OF_BOOL(u8, uint8_t)
OF_BOOL(i8, int8_t)
OF_BOOL(u16, uint16_t)
OF_BOOL(i16, int16_t)
OF_BOOL(u32, uint32_t)
OF_BOOL(i32, int32_t)
OF_BOOL(u64, uint64_t)
OF_BOOL(i64, int64_t)
OF_BOOL(truth, uint8_t)
OF_BOOL(f32, float)
OF_BOOL(f64, double)

#define ROW(TYPE, from)                                                                                      \
  [HONE_DTYPE_##TYPE] = {                                                                                    \
      [HONE_DTYPE_U8] = from##_u8,   [HONE_DTYPE_I8] = from##_i8,   [HONE_DTYPE_U16] = from##_u16,           \
      [HONE_DTYPE_I16] = from##_i16, [HONE_DTYPE_U32] = from##_u32, [HONE_DTYPE_I32] = from##_i32,           \
      [HONE_DTYPE_U64] = from##_u64, [HONE_DTYPE_I64] = from##_i64, [HONE_DTYPE_BOOL] = from##_truth,        \
      [HONE_DTYPE_F32] = from##_f32, [HONE_DTYPE_F64] = from##_f64}

static loop *loop_of(const hone_step *s) {
  static loop *const loops[HONE_DTYPE_COUNT][HONE_DTYPE_COUNT] = {
      ROW(U8, u8),   ROW(I8, i8),   ROW(U16, u16),    ROW(I16, i16), ROW(U32, u32), ROW(I32, i32),
      ROW(U64, u64), ROW(I64, i64), ROW(BOOL, truth), ROW(F32, f32), ROW(F64, f64)};
  const hone_dtype from = s->input[0].desc.dtype, to = s->output[0].desc.dtype;
  return from != to && from < HONE_DTYPE_COUNT && to < HONE_DTYPE_COUNT ? loops[from][to] : NULL;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  if (!loop_of(s))
    return hn_refuse(why, "%s to %s", hone_dtype_name(s->input[0].desc.dtype),
                     hone_dtype_name(s->output[0].desc.dtype));
  return hn_cast_takes(s, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  const size_t bytes = hone_dtype_size(s->input[0].desc.dtype) + hone_dtype_size(s->output[0].desc.dtype);
  return hn_step_seconds(m, 16 * n, (double)bytes * n, 0.5);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)s, (void)m, (void)error;
  n->blob_bytes = n->workspace_bytes = 0;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  (void)s, (void)m, (void)blob, (void)error;
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  loop *loop;
  int64_t count;
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t at = index * TASK,
                n = (j->count - at < TASK ? j->count - at : TASK) - HN_FAULT("cast_numbers");
  const hone_step *s = j->run->step;
  (void)thread;
  j->loop((const char *)j->run->in[0] + (size_t)at * hone_dtype_size(s->input[0].desc.dtype),
          (char *)j->run->out[0] + (size_t)at * hone_dtype_size(s->output[0].desc.dtype), n);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  job j = {r, loop_of(r->step), hone_desc_count(&r->step->input[0].desc)};
  (void)error;
  const int64_t tasks = hn_div_up(j.count, TASK);
  if (tasks == 1)
    task(&j, 0, 0);
  else if (tasks)
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, cast_numbers, "Cast", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
