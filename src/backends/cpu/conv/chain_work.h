/* What a chain works on, and a task of it at work, for the files that do it (chain_driver.h says how):
 * chain_driver.c, and chain_parts.c, the 1x1 convolutions in bf16 parts. */
#ifndef HN_CPU_CONV_CHAIN_WORK_H
#define HN_CPU_CONV_CHAIN_WORK_H

#include "backends/cpu/conv/chain_plan.h"

typedef struct hn_chain_args {
  const hn_chain *chain;
  const hn_gemm_ops *gemm; /* its panels */
  const hn_strip_ops *strip;
  const hn_depthwise_ops *depthwise;
  const hn_bf16_ops *bf16;            /* with parts */
  const hn_depthwise_bf16_ops *pairs; /* paired */
  const void *x;
  const void *w_expand, *w_project; /* packed: hn_gemm_pack_weights; with parts hn_bf16_pack (a window's only
                                       when paired) */
  const float *w_depthwise;         /* hn_depthwise_pack */
  const float *ones;                /* splits * cout rounded up to 16, each 1 */
  void *y;
  void (*widen)(float *dst, const void *src, size_t n); /* narrow_in, narrow_out */
  void (*narrow)(void *dst, const float *src, size_t n);
  const hn_epilogue *e_expand, *e_depthwise, *e_project;
  float *scratch, *partials;
} hn_chain_args;

typedef struct hn_chain_work {
  const hn_chain_args *a;
  int64_t n, split;
  int64_t g0, g1; /* output rows of the group */
  int64_t ready;  /* hidden rows below this one are in the ring already */
  bool first;     /* the task's first group */
  int64_t b0, b1; /* panels of the block */
  int64_t p0, p1; /* panels of the task */
  float *ring, *middle;
  float *rows; /* window: image rows with their padding (paired: in bf16) */
  int32_t *at; /* where the pixels that the group expands lie in a panel's ring (hn_chain_has_places) */
  float *sums; /* blocks of results */
  /* with parts: */
  const uint16_t *e_from; /* the group's input */
  uint16_t *e_parts, *p_parts;
  int32_t e_step[HN_CHAIN_STEPS], p_step[HN_CHAIN_STEPS];
} hn_chain_work;

static inline int64_t hn_chain_live(const hn_chain *c, int64_t p0, int64_t p1) {
  return hn_min(p1 * c->width, c->hidden) - p0 * c->width;
}

/* Where element i of the input, the output lies. */
static inline const void *hn_chain_x_at(const hn_chain_args *a, int64_t i) {
  return (const char *)a->x + i * (a->chain->narrow_in ? 2 : 4);
}
static inline void *hn_chain_y_at(const hn_chain_args *a, int64_t i) {
  return (char *)a->y + i * (a->chain->narrow_out ? 2 : 4);
}

static inline float *hn_chain_ring_row(const hn_chain_work *w, int64_t panel, int64_t row) {
  const hn_chain *c = w->a->chain;
  int64_t slot = c->slots > 1 ? panel - w->p0 : 0;
  return w->ring + slot * c->ring_panel + row % c->ring_rows * c->ring_row;
}

static inline void hn_chain_post(const hn_epilogue *e, float *y, int64_t pitch, int64_t c0, int64_t channels,
                                 int64_t n, int64_t row, int64_t x0, int64_t pixels) {
  hn_epilogue_post_pixels(e, y, pitch, pixels, (size_t)c0, (size_t)channels, n, 0, row, x0);
}

static inline hn_bf16_store hn_chain_store_of(const hn_epilogue *e, int64_t column) {
  return (hn_bf16_store){.flags = e->flags,
                         .lo = e->lo,
                         .hi = e->hi,
                         .slope = e->slope,
                         .bias = e->bias ? e->bias + column : NULL,
                         .ldr = e->residual_view.pixel};
}

/* Where the group's partial sums begin. */
static inline float *hn_chain_partials_of(const hn_chain_work *w) {
  const hn_chain *c = w->a->chain;
  const int64_t image = c->out[0] * c->out[1];
  return w->a->partials + ((w->split * c->batch + w->n) * image + w->g0 * c->out[1]) * c->cout;
}

/* Rows of a row tile for so many pixels: as equal as can be. */
int64_t hn_chain_tile_rows(const hn_chain_work *w, int64_t pixels);

/* The input's pixels under hidden rows [h0, h1), into parts. */
void hn_chain_bring_rows(const hn_chain_work *w, int64_t h0, int64_t h1);

/* Hidden rows [h0, h1) of a panel into the ring: hn_chain_bring_rows has been called for them. */
void hn_chain_expand_parts(const hn_chain_work *w, int64_t panel, int64_t h0, int64_t h1);

/* Rows [y0, y1) of a panel of the depthwise result, into parts. */
void hn_chain_bring_middle(const hn_chain_work *w, int64_t panel, int64_t y0, int64_t y1);

/* The group's depthwise result, of which all panels are there, times the weights behind, into the output or
 * the partial sum. */
void hn_chain_project_parts(const hn_chain_work *w);

/* m of the group's results from pixel p, column n on, which lie in `sums`: more operations, and on to their
 * place in 16 bits. */
void hn_chain_post_and_narrow(const hn_chain_work *w, float *sums, int64_t p, int64_t n, uint32_t m,
                              uint32_t columns);

#endif
