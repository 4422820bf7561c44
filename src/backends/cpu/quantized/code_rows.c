#include "backends/cpu/quantized/code_rows.h"

#include <string.h>

#include "base/fault.h"

size_t hn_code_rows_bytes(int64_t rows, int64_t n) { return ((size_t)(rows * n) * 5 + 63) / 64 * 64; }

/* The epilogue as one factor, one bias and one function; false: it is more than that. */
static bool read_epilogue(const hn_epilogue *e, hn_act_codes *a) {
  uint32_t i = 0;
  if (e->flags) return false; /* what other kernels do in registers */
  if (i < e->n_post && e->post[i].kind == HN_POST_SCALE) a->factor = e->post[i++].v;
  if (i < e->n_post && e->post[i].kind == HN_POST_BIAS) a->bias = e->post[i++].v;
  if (i < e->n_post && e->post[i].kind == HN_POST_ACT && e->post[i].op != HONE_PW_NONE) {
    a->act = e->post[i].op;
    memcpy(a->p, e->post[i++].p, sizeof a->p);
  }
  return i == e->n_post && hn_act_codes_takes(a->act, a->p);
}

void hn_code_rows_join(hn_code_rows *c, hn_epilogue *e, hn_isa isa, float *over, int64_t count) {
  hn_act_codes a = {.act = HONE_PW_NONE,
                    .scale = c->scale,
                    .over = over,
                    .zero = *c->zero,
                    .vectors = c->vectors,
                    .is_signed = c->is_signed};
  if (!read_epilogue(e, &a)) return;
  for (int64_t i = 0; i < count; i++) {
    if (!(c->scale[i] > 0x1p-100f && c->scale[i] < 0x1p100f) || (c->vectors && c->zero[i] != a.zero)) return;
    over[i] = 1.0f / c->scale[i];
  }
  c->joined = hn_act_codes_find(isa);
  c->act = a;
  if (c->joined) e->n_post = 0;
}

enum {
  FULL = 32,    /* columns that fill the kernels' vectors, of any tier */
  SPREAD = 256, /* columns of rows that lie side by side, at most */
  MANY = 4      /* such rows at least: their columns' parameters are copied for them */
};

static const float *spread(float *to, const float *from, int64_t n, int64_t times) {
  for (int64_t i = 0; from && i < times; i++) memcpy(to + i * n, from, (size_t)n * sizeof *from);
  return from ? to : NULL;
}

/* Rows without gaps whose columns do not fill vectors: so many of them are one row that they do. */
static int64_t put_together(const hn_act_codes *a, const struct hn_act_codes_ops *o, const float *block,
                            int64_t rows, int64_t n, uint8_t *y) {
  float own[4][SPREAD];
  int64_t times = 1;
  while (times < FULL && times * n % FULL != 0) times *= 2;
  if (times == 1 || times * n > SPREAD || rows < MANY * times) return 0;
  hn_act_codes wide = *a;
  wide.factor = spread(own[0], a->factor, n, times), wide.bias = spread(own[1], a->bias, n, times);
  if (a->vectors)
    wide.scale = spread(own[2], a->scale, n, times), wide.over = spread(own[3], a->over, n, times);
  n *= times;
  o->rows(&wide, y, n, block, n, (size_t)(rows / times), (size_t)n);
  return rows / times * times;
}

void hn_code_rows_put(const hn_code_rows *c, float *block, int64_t rows, int64_t n, int64_t c0, uint8_t *y,
                      int64_t pitch) {
  const size_t all = (size_t)(rows * n);
  if (c->joined) {
    hn_act_codes a = c->act;
    if (a.factor) a.factor += HN_FAULT("code_rows_factor") ? 0 : c0;
    if (a.bias) a.bias += HN_FAULT("code_rows_bias") ? 0 : c0;
    if (a.vectors) a.scale += c0, a.over += c0;
    const int64_t done = pitch == n ? put_together(&a, c->joined, block, rows, n, y) : 0;
    if (done < rows)
      c->joined->rows(&a, y + done * n, pitch, block + done * n, n, (size_t)(rows - done), (size_t)n);
    return;
  }
  if (c->vectors) {
    const float *scale = c->scale + c0, *zero = c->zero + c0;
    for (int64_t r = 0; r < rows; r++)
      c->ops->quantize(y + r * pitch, block + r * n, (size_t)n, scale, zero, true, c->is_signed);
    return;
  }
  if (pitch == n) {
    c->ops->quantize(y, block, all, c->scale, c->zero, false, c->is_signed);
    return;
  }
  uint8_t *codes = (uint8_t *)(block + all);
  c->ops->quantize(codes, block, all, c->scale, c->zero, false, c->is_signed);
  for (int64_t r = 0; r < rows; r++)
    memcpy(y + r * pitch, codes + r * n, (size_t)(HN_FAULT("code_rows_tail") && n > 1 ? n - 1 : n));
}
