/* YoloDecode on the processor. A task is some cells of an anchor: their numbers are computed as they lie, a
 * vector of cells at a time, and turned into rows from the cache. */
#include "yolo_decode_op.h"

#include "../yolo_decode.h"
#ifdef __SSE__
#include <immintrin.h>
#endif

enum { CELLS = 64, DEEP = 88 }; /* of a task; numbers of a box that are turned at once */

typedef struct job {
  const hone_step_run *run;
  yolo_sizes z;
  int64_t pieces;
  float stride;
  bool five, half;
} job;

static float constant(const job *j, int input, int64_t at) {
  return (float)hone_element(j->run->in[input], j->run->step->input[input].desc.dtype, at);
}

/* Place and size: n cells from `first` on of number k of a box. */
static void place(const job *j, int64_t anchor, int64_t k, int64_t first, int64_t n, const float *x,
                  float *to) {
  const yolo_sizes *z = &j->z;
  const int64_t *step = k < 2 ? z->cell : z->size;
  const int input = k < 2 ? YOLO_CELLS : YOLO_SIZES;
  const bool floats = j->run->step->input[input].desc.dtype == HONE_DTYPE_F32;
  const float *direct = (const float *)j->run->in[input];
  int64_t row = first / z->across, column = first % z->across;
  float own[CELLS] = {0};
  for (int64_t i = 0; i < n; row++, column = 0) {
    const int64_t end = n - i < z->across - column ? n : i + z->across - column, by = step[2];
    int64_t at = anchor * step[0] + row * step[1] + column * by + k % 2;
    for (; i < end && floats; i++, at += by) own[i] = direct[at];
    for (; i < end; i++, at += by) own[i] = constant(j, input, at);
  }
  for (int64_t i = 0; i < n; i += HONE_LANES) {
    const int lanes = hone_lanes(n - i);
    const hone_vf v = hone_load(x + i, lanes), with = hone_load(own + i, HONE_LANES);
    hone_vf y;
    if (k >= 2 && !j->five) {
      y = hone_exp(v) * with;
    } else {
      const hone_vf s = hone_sigmoid(v), twice = s + s;
      y = k >= 2 ? twice * twice * with : ((j->five ? twice : s) + with) * j->stride;
    }
    hone_store(to + i, y, HONE_LANES);
  }
}

static void score(const float *x, int64_t n, float *to) {
  int64_t i = 0;
  /* What the next task reads: no stream is long enough for the processor to see it coming. */
  for (int k = 0; k < CELLS; k += 16) __builtin_prefetch((const char *)x + (CELLS + k) * (int)sizeof *x);
  for (; i + HONE_LANES <= n; i += HONE_LANES)
    hone_store(to + i, hone_sigmoid(hone_load(x + i, HONE_LANES)), HONE_LANES);
  if (i < n) hone_store(to + i, hone_sigmoid(hone_load(x + i, (int)(n - i))), HONE_LANES);
}

/* n cells of `deep` numbers as rows that lie `wide` apart. */
static void turn(float (*tile)[CELLS], int64_t deep, int64_t n, float *to, int64_t wide) {
  int64_t i = 0;
#ifdef __SSE__
  for (; i + 4 <= n; i += 4) {
    int64_t k = 0;
    for (; k + 4 <= deep; k += 4) {
      __m128 a = _mm_loadu_ps(&tile[k][i]), b = _mm_loadu_ps(&tile[k + 1][i]),
             c = _mm_loadu_ps(&tile[k + 2][i]), d = _mm_loadu_ps(&tile[k + 3][i]);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      float *at = to + i * wide + k;
      _mm_storeu_ps(at, a);
      _mm_storeu_ps(at + wide, b);
      _mm_storeu_ps(at + 2 * wide, c);
      _mm_storeu_ps(at + 3 * wide, d);
    }
    for (; k < deep; k++)
      for (int r = 0; r < 4; r++) to[(i + r) * wide + k] = tile[k][i + r];
  }
#endif
  for (; i < n; i++)
    for (int64_t k = 0; k < deep; k++) to[i * wide + k] = tile[k][i];
}

static void cells(void *arg, int64_t task, uint32_t thread) {
  const job *j = arg;
  const yolo_sizes *z = &j->z;
  const int64_t plane = z->high * z->across, of = task / j->pieces, first = task % j->pieces * CELLS,
                n = plane - first < CELLS ? plane - first : CELLS;
  float tile[DEEP][CELLS], wide[CELLS];
  (void)thread;
  for (int64_t base = 0; base < z->wide; base += DEEP) {
    const int64_t deep = z->wide - base < DEEP ? z->wide - base : DEEP;
    for (int64_t k = 0; k < deep; k++) {
      const int64_t at = (of * z->wide + base + k) * plane + first;
      const float *x = (const float *)j->run->in[YOLO_HEAD] + at;
      if (j->half) {
        for (int64_t i = 0; i < n; i++)
          wide[i] = hone_from_f16(((const uint16_t *)j->run->in[YOLO_HEAD])[at + i]);
        x = wide;
      }
      if (base + k < 4)
        place(j, of % z->anchors, base + k, first, n, x, tile[k]);
      else
        score(x, n, tile[k]);
    }
    const int64_t at = (of * plane + first) * z->wide + base;
    if (!j->half) turn(tile, deep, n, (float *)j->run->out[0] + at, z->wide);
    for (int64_t i = 0; i < n && j->half; i++)
      for (int64_t k = 0; k < deep; k++)
        ((uint16_t *)j->run->out[0])[at + i * z->wide + k] = hone_to_f16((double)tile[k][i]);
  }
}

hone_status HONE_KERNEL(yolo_decode)(const yolo_decode_attrs *attrs, const hone_step_run *run,
                                     hone_error *error) {
  const hone_step_tensor *in = run->step->input;
  job j = {.run = run,
           .z = yolo_sizes_of(in[YOLO_HEAD].desc.dim, in[YOLO_CELLS].desc.dim, in[YOLO_SIZES].desc.dim),
           .stride = attrs->stride,
           .five = attrs->form == YOLO_V5,
           .half = in[YOLO_HEAD].desc.dtype == HONE_DTYPE_F16};
  (void)error;
  j.pieces = (j.z.high * j.z.across + CELLS - 1) / CELLS;
  if (hone_desc_count(&run->step->output[0].desc) > 0)
    run->parallel(run->pool, j.z.images * j.z.anchors * j.pieces, cells, &j);
  return HONE_OK;
}
