#include "backends/cpu/epilogue.h"

#include "base/fault.h"

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
