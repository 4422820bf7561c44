#include "backends/cpu/kernels/post/epilogue.h"

#include <stdbool.h>

#include "base/fault.h"

void hn_epilogue_post_pixels(const hn_epilogue *e, float *y, int64_t pitch, int64_t count, size_t c0,
                             size_t n, int64_t b, int64_t z, int64_t row, int64_t x) {
  hn_post_op op[HN_MAX_POST];
  uint32_t n_ops = 0;
  for (uint32_t i = 0; i < e->n_post; i++) {
    const hn_post *p = &e->post[i];
    if (p->kind == HN_POST_ACT && HN_FAULT("epilogue_no_act")) continue;
    const bool tensor =
        (p->kind == HN_POST_ADD || p->kind == HN_POST_MUL) && !HN_FAULT("epilogue_tensor_row");
    op[n_ops] = (hn_post_op){.kind = p->kind, .op = p->op, .act = p->act, .p = {p->p[0], p->p[1]}};
    if (p->v) op[n_ops].v = p->v + c0 + (tensor ? hn_view_at(&p->view, b, z, row, x) : 0);
    op[n_ops++].pitch = tensor ? p->view.pixel : 0;
  }
  e->rows->rows(op, n_ops, y, pitch, (size_t)count, n);
}
