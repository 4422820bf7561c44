#include "backends/cpu/epilogue.h"

#include "base/fault.h"

#include <stdbool.h>

void hn_epilogue_post_row(const hn_epilogue *e, float *y, size_t c0, size_t n, int64_t b, int64_t z,
                          int64_t row, int64_t x) {
  for (uint32_t i = 0; i < e->n_post; i++) {
    const hn_post *p = &e->post[i];
    const float *v = p->v ? p->v + c0 : NULL;
    if (v && (p->kind == HN_POST_ADD || p->kind == HN_POST_MUL))
      v += HN_FAULT("epilogue_tensor_row") ? 0 : hn_view_at(&p->view, b, z, row, x);
    switch (p->kind) {
    case HN_POST_ACT:
      if (!HN_FAULT("epilogue_no_act")) p->act(y, n, p->p);
      break;
    case HN_POST_BIAS:
    case HN_POST_ADD:
      for (size_t j = 0; j < n; j++) y[j] += v[j];
      break;
    case HN_POST_SCALE:
    case HN_POST_MUL:
      for (size_t j = 0; j < n; j++) y[j] *= v[j];
      break;
    }
  }
}

enum { WIDE = 64, TOGETHER = 1024 };

/* y[r][j] += or *= v[r * step + j]. */
static void combine(float *y, const float *v, int64_t step, int64_t rows, size_t n, bool multiply) {
  if (step == (int64_t)n) n *= (size_t)rows, rows = 1;
  if (n == 1) {
    for (int64_t r = 0; r < rows; r++) y[r] = multiply ? y[r] * v[r * step] : y[r] + v[r * step];
    return;
  }
  for (int64_t r = 0; r < rows; r++, y += n, v += step)
    if (multiply)
      for (size_t j = 0; j < n; j++) y[j] *= v[j];
    else
      for (size_t j = 0; j < n; j++) y[j] += v[j];
}

void hn_epilogue_post_pixels(const hn_epilogue *e, float *y, int64_t pitch, int64_t count, size_t c0,
                             size_t n, int64_t b, int64_t z, int64_t row, int64_t x) {
  float space[TOGETHER];
  const bool dense = pitch == (int64_t)n;
  const int64_t most = n ? (int64_t)(TOGETHER / n) : 0;
  if (n >= WIDE || count == 1) {
    for (int64_t i = 0; i < count; i++) hn_epilogue_post_row(e, y + i * pitch, c0, n, b, z, row, x + i);
    return;
  }
  for (int64_t i = 0; n && i < count; i += most, y += most * pitch) {
    const int64_t rows = count - i < most ? count - i : most;
    float *at = dense ? y : space;
    for (int64_t r = 0; !dense && r < rows; r++)
      for (size_t j = 0; j < n; j++) space[(size_t)r * n + j] = y[r * pitch + (int64_t)j];
    for (uint32_t k = 0; k < e->n_post; k++) {
      const hn_post *p = &e->post[k];
      const bool placed =
          (p->kind == HN_POST_ADD || p->kind == HN_POST_MUL) && !HN_FAULT("epilogue_tensor_row");
      if (p->kind != HN_POST_ACT)
        combine(at, p->v + c0 + (placed ? hn_view_at(&p->view, b, z, row, x + i) : 0),
                placed ? p->view.pixel : 0, rows, n, p->kind == HN_POST_SCALE || p->kind == HN_POST_MUL);
      else if (!HN_FAULT("epilogue_no_act"))
        p->act(at, (size_t)rows * n, p->p);
    }
    for (int64_t r = 0; !dense && r < rows; r++)
      for (size_t j = 0; j < n; j++) y[r * pitch + (int64_t)j] = space[(size_t)r * n + j];
  }
}
