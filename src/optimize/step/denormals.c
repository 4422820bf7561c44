#include "optimize/step/denormals.h"

#include "optimize/step/anchor.h"

#include <string.h>

static bool multiplies(const hone_step *s) { return hn_anchor_of_step(s).product != HONE_PRODUCT_NONE; }

double hn_denormal_weights(const hone_step *s) {
  if (s->n_inputs < 2 || !s->input[1].constant || !multiplies(s)) return -1;
  const hone_tensor_desc *d = &s->input[1].desc;
  const int64_t n = d->dtype == HONE_DTYPE_F32 && hone_desc_known(d) ? hone_desc_count(d) : 0;
  const unsigned char *w = s->input[1].constant; /* at any address */
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, w + (size_t)i * sizeof u, sizeof u);
    found += (u & 0x7fffffff) - 1 < 0x7fffff;
  }
  return n ? 100 * (double)found / (double)n : -1;
}

bool hn_step_flushes(const hone_step *s) {
  return s->math >= HONE_MATH_F32 && (multiplies(s) || s->n_parts > 0);
}
