#include "backends/cpu/movement/scatter.h"

#include <string.h>

#include "backends/cpu/step/step.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/wide.h"
#include "model/ops/indexing/combine.h"
#include "optimize/step/boxes.h"

enum { COPY_TASK = 128 * 1024 }; /* bytes */

/* ------------------------------------------------------------------ what an update does */

#define PUT(NAME, T, RESULT)                                                                                 \
  static void NAME(void *to, const uint32_t *place, int64_t step, int64_t along, const void *from,           \
                   int64_t n) {                                                                              \
    const T *u = from;                                                                                       \
    T *y = to;                                                                                               \
    for (int64_t i = 0; i < n; i++, y += along) {                                                            \
      const T b = u[i];                                                                                      \
      T *const p = y + place[i] * step;                                                                      \
      *p = (T)(RESULT);                                                                                      \
    }                                                                                                        \
  }
PUT(put_1, uint8_t, b)
PUT(put_2, uint16_t, b)
PUT(put_4, uint32_t, b)
PUT(put_8, uint64_t, b)

/* The same of lines of n neighbours, in blocks that compilers make vectors of: results wait in a place of
 * their own, because lines may be anywhere. */
#define LINES(NAME, T, RESULT)                                                                               \
  HN_WIDE_BODY void NAME##_body(T *y, const int64_t *at, int64_t lines, const T *u, int64_t step,            \
                                int64_t n) {                                                                 \
    enum { BLOCK = 16 };                                                                                     \
    const int64_t whole = n - n % BLOCK;                                                                     \
    for (int64_t k = 0; k < lines; k++, u += step) {                                                         \
      T *to = y + at[k];                                                                                     \
      for (int64_t j = 0; j < whole; j += BLOCK) {                                                           \
        T result[BLOCK];                                                                                     \
        for (int i = 0; i < BLOCK; i++) {                                                                    \
          const T b = u[j + i], *p = to + j + i;                                                             \
          result[i] = (T)(RESULT);                                                                           \
        }                                                                                                    \
        for (int i = 0; i < BLOCK; i++) to[j + i] = result[i];                                               \
      }                                                                                                      \
      for (int64_t j = whole; j < n; j++) {                                                                  \
        const T b = u[j], *p = to + j;                                                                       \
        to[j] = (T)(RESULT);                                                                                 \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, NAME, NAME##_body,                                                                           \
          (void *y, const int64_t *at, int64_t lines, const void *u, int64_t step, int64_t n),               \
          (y, at, lines, u, step, n))

/* Of numbers that C computes with. U: an unsigned type no narrower than int, where sums wrap. NaN spreads, as
 * it does in the reference. */
#define COMBINE(NAME, T, U)                                                                                  \
  PUT(add_##NAME, T, (U)*p + (U)b)                                                                           \
  PUT(mul_##NAME, T, (U)*p *(U)b)                                                                            \
  PUT(max_##NAME, T, b > *p || b != b ? b : *p)                                                              \
  PUT(min_##NAME, T, b < *p || b != b ? b : *p)
#define COMBINE_LINES(NAME, T, U)                                                                            \
  LINES(add_lines_##NAME, T, (U)*p + (U)b)                                                                   \
  LINES(mul_lines_##NAME, T, (U)*p *(U)b)                                                                    \
  LINES(max_lines_##NAME, T, b > *p || b != b ? b : *p)                                                      \
  LINES(min_lines_##NAME, T, b < *p || b != b ? b : *p)
COMBINE_LINES(f32, float, float)
COMBINE_LINES(f64, double, double)
COMBINE_LINES(i8, int8_t, uint32_t)
COMBINE_LINES(i16, int16_t, uint32_t)
COMBINE_LINES(u8, uint8_t, uint32_t)
COMBINE_LINES(u16, uint16_t, uint32_t)
COMBINE_LINES(u32, uint32_t, uint32_t)
COMBINE_LINES(u64, uint64_t, uint64_t)
COMBINE_LINES(i32, int32_t, uint32_t)
COMBINE_LINES(i64, int64_t, uint64_t)
COMBINE(f32, float, float)
COMBINE(f64, double, double)
COMBINE(i8, int8_t, uint32_t)
COMBINE(i16, int16_t, uint32_t)
COMBINE(i32, int32_t, uint32_t)
COMBINE(i64, int64_t, uint64_t)
COMBINE(u8, uint8_t, uint32_t)
COMBINE(u16, uint16_t, uint32_t)
COMBINE(u32, uint32_t, uint32_t)
COMBINE(u64, uint64_t, uint64_t)
PUT(or_bool, uint8_t, (*p | b) != 0)
PUT(and_bool, uint8_t, *p != 0 && b != 0)

/* Sums of 16 bits are the reference's: whether they round every time or are an f32 value that the plan
 * stores so is not to be seen here. */
#define COMBINE_HALF(NAME, WIDE, NARROW)                                                                     \
  PUT(max_##NAME, uint16_t, NARROW(WIDE(b) > WIDE(*p) || WIDE(b) != WIDE(b) ? WIDE(b) : WIDE(*p)))           \
  PUT(min_##NAME, uint16_t, NARROW(WIDE(b) < WIDE(*p) || WIDE(b) != WIDE(b) ? WIDE(b) : WIDE(*p)))
COMBINE_HALF(f16, hn_f16_to_f32, hn_f32_to_f16)
COMBINE_HALF(bf16, hn_bf16_to_f32, hn_f32_to_bf16)

static hn_scatter_fn combining(hone_dtype dtype, hn_combine how) {
#define ROW(NAME)                                                                                            \
  { add_##NAME, mul_##NAME, max_##NAME, min_##NAME }
#define ROW_HALF(NAME)                                                                                       \
  { NULL, NULL, max_##NAME, min_##NAME }
  static const hn_scatter_fn of[][4] = {[HONE_DTYPE_F32] = ROW(f32),
                                        [HONE_DTYPE_F64] = ROW(f64),
                                        [HONE_DTYPE_F16] = ROW_HALF(f16),
                                        [HONE_DTYPE_BF16] = ROW_HALF(bf16),
                                        [HONE_DTYPE_I8] = ROW(i8),
                                        [HONE_DTYPE_I16] = ROW(i16),
                                        [HONE_DTYPE_I32] = ROW(i32),
                                        [HONE_DTYPE_I64] = ROW(i64),
                                        [HONE_DTYPE_U8] = ROW(u8),
                                        [HONE_DTYPE_U16] = ROW(u16),
                                        [HONE_DTYPE_U32] = ROW(u32),
                                        [HONE_DTYPE_U64] = ROW(u64),
                                        [HONE_DTYPE_BOOL] = {or_bool, and_bool, or_bool, and_bool}};
#undef ROW_HALF
#undef ROW
  return (size_t)dtype < sizeof of / sizeof *of ? of[dtype][how - HN_COMBINE_ADD] : NULL;
}

static hn_scatter_lines_fn lines_of(hone_dtype dtype, hn_combine how) {
#define ROW(NAME)                                                                                            \
  { add_lines_##NAME, mul_lines_##NAME, max_lines_##NAME, min_lines_##NAME }
  static const hn_scatter_lines_fn of[][4] = {
      [HONE_DTYPE_F32] = ROW(f32), [HONE_DTYPE_F64] = ROW(f64), [HONE_DTYPE_I8] = ROW(i8),
      [HONE_DTYPE_I16] = ROW(i16), [HONE_DTYPE_U8] = ROW(u8),   [HONE_DTYPE_U16] = ROW(u16),
      [HONE_DTYPE_U32] = ROW(u32), [HONE_DTYPE_U64] = ROW(u64), [HONE_DTYPE_I32] = ROW(i32),
      [HONE_DTYPE_I64] = ROW(i64)};
#undef ROW
  return (size_t)dtype < sizeof of / sizeof *of ? of[dtype][how - HN_COMBINE_ADD] : NULL;
}

static hn_scatter_fn replacing(int32_t element) {
  return element == 1 ? put_1 : element == 2 ? put_2 : element == 4 ? put_4 : put_8;
}

bool hn_scatter_describe(const hone_step *s, hn_scatter *sc, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *u = &s->input[2].desc, *y = &s->output[0].desc;
  hn_combine how;
  if (!hn_boxes_check(s, &sc->element, why)) return false;
  if (!hn_step_plain(x) || !hn_step_plain(u) || !hn_step_plain(y))
    return hn_refuse(why, "a tensor is not row-major");
  if (u->dtype != x->dtype) return hn_refuse(why, "updates are of another type");
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "the output is not like the data");
  if (!s->node || hn_combine_of(s->node, &how, NULL)) return hn_refuse(why, "no reduction of that name");
  sc->replaces = how == HN_COMBINE_NONE;
  sc->put = sc->replaces ? replacing(sc->element) : combining(x->dtype, how);
  sc->lines = sc->replaces ? NULL : lines_of(x->dtype, how);
  return sc->put ? true : hn_refuse(why, "no such reduction of %s", hone_dtype_name(x->dtype));
}

double hn_scatter_seconds(const hone_step *s, const hone_machine *m, double index_bytes) {
  const double n = (double)hone_desc_count(&s->input[2].desc);
  const double element = (double)hone_dtype_size(s->input[0].desc.dtype);
  const double bytes = 2 * element * (n + (double)hone_desc_count(&s->output[0].desc)) + index_bytes;
  return hn_step_seconds(m, 0, bytes, 1) + n * 0.7e-9 / (m->threads > 0 ? m->threads : 1);
}

/* ------------------------------------------------------------------ the copy */

typedef struct copy {
  const unsigned char *x;
  unsigned char *y;
  int64_t bytes;
} copy;

static void copy_task(void *arg, int64_t index, uint32_t thread) {
  const copy *c = arg;
  const int64_t first = index * COPY_TASK;
  (void)thread;
  memcpy(c->y + first, c->x + first, (size_t)hn_min(COPY_TASK, c->bytes - first));
}

void hn_scatter_copy(const hone_step_run *r) {
  copy c = {r->in[0], r->out[0], hone_desc_bytes(&r->step->output[0].desc)};
  const int64_t tasks = hn_div_up(c.bytes, COPY_TASK);
  if (tasks == 1)
    copy_task(&c, 0, 0);
  else if (tasks)
    r->parallel(r->pool, tasks, copy_task, &c);
}
