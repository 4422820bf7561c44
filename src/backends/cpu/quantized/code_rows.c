#include "backends/cpu/quantized/code_rows.h"

#include <string.h>

#include "base/fault.h"

size_t hn_code_rows_bytes(int64_t rows, int64_t n) { return ((size_t)(rows * n) * 5 + 63) / 64 * 64; }

/* The epilogue as one bias and one function; false: it is more than that. */
static bool read_epilogue(const hn_epilogue *e, hn_act_codes *a) {
  uint32_t i = 0;
  if (e->flags) return false; /* what other kernels do in registers */
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

void hn_code_rows_put(const hn_code_rows *c, float *block, int64_t rows, int64_t n, int64_t c0, uint8_t *y,
                      int64_t pitch) {
  const size_t all = (size_t)(rows * n);
  if (c->joined) {
    hn_act_codes a = c->act;
    if (a.bias) a.bias += HN_FAULT("code_rows_bias") ? 0 : c0;
    if (a.vectors) a.scale += c0, a.over += c0;
    c->joined->rows(&a, y, pitch, block, n, (size_t)rows, (size_t)n);
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
