/* Biases of products of codes: i32 in units of x scale times w scale, as the file has them, or rounded to
 * such where the file leaves them in f32. */
#include "optimize/lower/codes.h"

#include "base/mem.h"
#include "optimize/step/qlinear.h"

#include <math.h>
#include <string.h>

static float at(const hone_tensor *t, int64_t i) {
  float f;
  memcpy(&f, (const char *)t->data + i * (int64_t)sizeof f, sizeof f);
  return f;
}

bool hn_codes_bias_by_column(const hone_node *product, const hn_value *bias) {
  const hone_tensor_desc *d = &bias->desc;
  return product->op->product != HONE_PRODUCT_GEMM ||
         (d->rank > 0 && hone_desc_count(d) == d->dim[d->rank - 1]);
}

bool hn_codes_bias_fits(const hone_node *b, const hone_node *x, const hone_node *w) {
  const hone_tensor *bs = b->in[1]->constant, *xs = x->in[1]->constant, *ws = w->in[1]->constant;
  if (!hn_fixed(b->in[0]) || b->in[0]->desc.dtype != HONE_DTYPE_I32 || hone_desc_count(&xs->desc) != 1)
    return false;
  const int64_t n = hone_desc_count(&bs->desc), m = hone_desc_count(&ws->desc);
  if ((n != m && n != 1 && m != 1) || n < 1 || m < 1) return false;
  for (int64_t i = 0; i < (n > m ? n : m); i++) {
    const double want = (double)at(xs, 0) * (double)at(ws, m == 1 ? 0 : i);
    if (fabs((double)at(bs, n == 1 ? 0 : i) - want) > 1e-6 * want) return false;
  }
  const hn_value *z = hn_quantise_zero(b);
  for (int64_t i = 0; z && i < hone_desc_count(&z->constant->desc); i++)
    if (((const int32_t *)z->constant->data)[i]) return false;
  return true;
}

bool hn_codes_round_bias(const hn_value *bias, int64_t channels, const hone_node *x, const hone_node *w,
                         const hone_node *y, hone_tensor *out) {
  const hone_tensor *b = bias->constant, *xs = x->in[1]->constant, *ws = w->in[1]->constant,
                    *ys = y->in[1]->constant;
  const int64_t m = hone_desc_count(&ws->desc), steps = hone_desc_count(&ys->desc);
  if (hone_desc_count(&b->desc) != channels || channels < 1 || (m != 1 && m != channels) ||
      hone_desc_count(&xs->desc) != 1 || (steps != 1 && steps != channels))
    return false;
  int32_t *codes = out ? hn_malloc((size_t)channels * sizeof *codes) : NULL;
  if (out) *out = (hone_tensor){.desc = hone_desc(HONE_DTYPE_I32, 1, &channels), .data = codes};
  for (int64_t i = 0; i < channels; i++) {
    const double unit = (double)at(xs, 0) * (double)at(ws, m == 1 ? 0 : i),
                 units = nearbyint((double)at(b, i) / unit);
    if (!(unit > 0 && unit * HN_QLINEAR_UNITS_OF_LEVEL <= (double)at(ys, steps == 1 ? 0 : i) &&
          fabs(units) <= 0x1p30)) {
      hn_free(codes);
      return false;
    }
    if (codes) codes[i] = (int32_t)units;
  }
  return true;
}
