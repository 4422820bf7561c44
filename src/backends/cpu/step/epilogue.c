#include "backends/cpu/kernels/post/epilogue.h"

#include <stdbool.h>

#include "base/fault.h"

enum { WIDE = 2048 };

/* One tensor of 16 bits among the operations: block by block, with as much of it in f32. */
static void post_narrow(const hn_epilogue *e, hn_post_op *op, uint32_t n_ops, uint32_t at,
                        const uint16_t *from, float *y, int64_t pitch, int64_t count, size_t n) {
  float wide[WIDE];
  const int64_t from_pitch = op[at].pitch;
  const float *v[HN_MAX_POST];
  for (uint32_t i = 0; i < n_ops; i++) v[i] = op[i].v;
  for (size_t c = 0; c < n; c += WIDE) {
    const size_t columns = n - c < WIDE ? n - c : WIDE;
    const int64_t most = (int64_t)(WIDE / columns);
    for (int64_t i = 0, rows; i < count; i += rows) {
      rows = count - i < most ? count - i : most;
      for (int64_t r = 0; r < rows; r++)
        e->widen(wide + (size_t)r * columns, from + (i + r) * from_pitch + c, columns);
      for (uint32_t k = 0; k < n_ops; k++)
        if (v[k]) op[k].v = v[k] + c;
      op[at].v = wide, op[at].pitch = (ptrdiff_t)columns;
      e->rows->rows(op, n_ops, y + i * pitch + c, pitch, (size_t)rows, columns);
    }
  }
}

void hn_epilogue_post_pixels(const hn_epilogue *e, float *y, int64_t pitch, int64_t count, size_t c0,
                             size_t n, int64_t b, int64_t z, int64_t row, int64_t x) {
  const uint16_t *narrow = NULL;
  uint32_t narrow_at = 0;
  hn_post_op op[HN_MAX_POST];
  uint32_t n_ops = 0;
  for (uint32_t i = 0; i < e->n_post; i++) {
    const hn_post *p = &e->post[i];
    if (p->kind == HN_POST_ACT && HN_FAULT("epilogue_no_act")) continue;
    const bool tensor =
        (p->kind == HN_POST_ADD || p->kind == HN_POST_MUL) && !HN_FAULT("epilogue_tensor_row");
    op[n_ops] = (hn_post_op){.kind = p->kind, .op = p->op, .act = p->act, .p = {p->p[0], p->p[1]}};
    const int64_t at = (int64_t)c0 + (tensor ? hn_view_at(&p->view, b, z, row, x) : 0);
    if (p->v) op[n_ops].v = p->v + at;
    if (p->narrow) narrow = p->narrow + at, narrow_at = n_ops;
    op[n_ops++].pitch = tensor ? p->view.pixel : 0;
  }
  if (narrow)
    post_narrow(e, op, n_ops, narrow_at, narrow, y, pitch, count, n);
  else
    e->rows->rows(op, n_ops, y, pitch, (size_t)count, n);
}
