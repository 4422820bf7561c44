/* Convolution of few channels by products of warpgroups: output channels by pixels. The weights of 64 channels stay in
 * registers; the other operand comes straight from rows of pixels in shared memory, where a tap is the same rows read from
 * another pixel on. (Tiles of conv_wgmma.cu fetch every tap by itself, and read as many bytes of weights as of pixels.)
 *
 * A block walks down strips of images, line by line: each row of x comes once, into a ring. One warpgroup brings rows by
 * the copy engine, each of the others multiplies HN_N pixels of every line; they take turns, so that one multiplies while
 * the other stores. Results, and what is added to them, cross shared memory as panels of HN_N pixels x 64 channels,
 * swizzled over 128 bytes.
 *
 * A row is HN_SW parts, one for each remainder of the column, so that pixels HN_SW apart lie side by side: pixels of HN_CIN
 * channels, swizzled over their bytes. What lies outside of the image, or has no channel, is zeros.
 *
 * Prefix: HN_T (f16, bf16), HN_CIN (16, 32 or 64), HN_KH, HN_KW, HN_SH (at most HN_KH), HN_SW (1, 2), HN_N, HN_ROWS (rows in
 * the ring), HN_BUFFERS (panels of a warpgroup: 1; 2 where something is added), HN_STAGED (what is added comes by the copy
 * engine), hn_wgmma_first and hn_wgmma_add (products of 64 x HN_N x 32 bytes), the epilogue. Or, of codes
 * (turned_codes.cuh), HN_T u8 or i8 and HN_CODE in place of the epilogue: HN_CIN 32, 64 or 128; HN_BORDER: what zeros outside
 * of the image lack is added to the sums. */
#include "conv_strip_args.h"
#include "sums.cuh"
#ifdef HN_CODE
#include "turned_codes.cuh"
#define HN_BYTES 1
HN_FN void ending_of(const hn_conv_strip_args *g, i32 channel, ending *e) { ending_at(&g->codes, g->channels, channel, e); }
HN_FN void finish_pixels(const hn_conv_strip_args *g, const i32 *d, const ending *e, u32 to, i32 channel) {
  (void)channel;
  finish_codes(&g->codes, d, HN_N, e, to);
}
#else
#include "turned.cuh"
#define HN_BYTES 2
typedef struct ending {
  float vectors[HN_EPILOGUE_VECTORS + 1][4];
} ending;
HN_FN void ending_of(const hn_conv_strip_args *g, i32 channel, ending *e) { channel_vectors(e->vectors, channel, &g->epilogue); }
HN_FN void finish_pixels(const hn_conv_strip_args *g, const float *d, ending *e, u32 to, i32 channel) {
  finish_panel(d, HN_N, e->vectors, to, channel, &g->epilogue);
}
#endif

enum {
  GROUPS = 2,
  WIDE = GROUPS * HN_N,
  PIXEL = HN_CIN * HN_BYTES,           /* bytes */
  PIXELS = WIDE + (HN_KW - 1) / HN_SW, /* of a part of a row */
  PART = (PIXELS * PIXEL + 1023) / 1024 * 1024,
  ROW = HN_SW * PART,
  K_STEPS = PIXEL / 32, /* of a tap */
  STEPS = HN_KH * HN_KW * K_STEPS,
  PANEL = HN_N * 64 * HN_BYTES
};

typedef struct shared_map {
  u32 panels, rows, full, empty, arrived, turn; /* addresses */
  u32 kinds;                                    /* HN_BORDER: of each warpgroup's pixels */
} shared_map;

/* Lines of the output: image, strip, row. */
typedef struct line {
  i32 n, strip, y;
} line;
HN_FN line line_of(const hn_conv_strip_args *g, i32 at) {
  line l;
  l.y = at % g->out_h;
  at /= g->out_h;
  l.strip = at % g->strips;
  l.n = at / g->strips;
  return l;
}
HN_FN void next_line(const hn_conv_strip_args *g, line *l) {
  if (++l->y < g->out_h) return;
  l->y = 0;
  if (++l->strip == g->strips) l->strip = 0, l->n++;
}
HN_FN i32 first_line(const hn_conv_strip_args *g, u32 block) { return (i32)((i64)g->lines * block / gridDim.x); }

typedef struct ring {
  u32 at, phase;
} ring;
HN_FN void advance(ring *r) {
  if (++r->at == HN_ROWS) r->at = 0, r->phase ^= 1;
}

/* Column x of the image is pixel x / HN_SW of the map of its remainder. */
HN_FN void bring_row(const hn_conv_strip_args *g, u32 to, u32 full, line l, i32 y) {
  const i32 x0 = l.strip * (WIDE * HN_SW) - g->pad_w;
  hn_barrier_expect(full, HN_SW * PIXELS * PIXEL);
  HN_UNROLL for (i32 p = 0; p < HN_SW; p++) {
    const i32 x = x0 + p, remainder = x & (HN_SW - 1);
    hn_tma_load_4d(to + (u32)p * PART, remainder ? &g->odd : &g->x, full, 0, (x - remainder) / HN_SW, y, l.n);
  }
}

HN_FN void produce(const hn_conv_strip_args *g, const shared_map *s) {
  if (threadIdx.x != 0) return;
  const i32 end = first_line(g, blockIdx.x + 1);
  i32 at = first_line(g, blockIdx.x), known = 0; /* rows of the kernel that the line before has brought */
  line l = line_of(g, at);
  ring in = {0, 0};
  hn_map_prefetch(&g->x);
  HN_GRID_WAIT();
  for (; at < end; at++) {
    for (i32 k = known; k < HN_KH; k++) {
      hn_barrier_wait(s->empty + 8 * in.at, in.phase ^ 1);
      bring_row(g, s->rows + in.at * ROW, s->full + 8 * in.at, l, l.y * HN_SH - g->pad_h + k);
      advance(&in);
    }
    next_line(g, &l);
    known = l.y ? HN_KH - HN_SH : 0;
  }
}

HN_FN void load_staged(const hn_conv_strip_args *g, u32 to, u32 arrived, i32 channel, line l, u32 group) {
  hn_barrier_expect(arrived, PANEL);
  hn_tma_load_4d(to, &g->staged, arrived, channel, l.strip * WIDE + (i32)group * HN_N, l.y, l.n);
}

HN_FN void consume(const hn_conv_strip_args *g, const shared_map *s, u32 group) {
  const u32 t = threadIdx.x & 127, warp = t / 32, lane = t & 31;
  const i32 first = (i32)blockIdx.y * 64, channel = first + channel_in_panel(warp, lane), end = first_line(g, blockIdx.x + 1);
  const u32 panels = s->panels + group * HN_BUFFERS * PANEL, arrived = s->arrived + 8 * HN_BUFFERS * group;
  const u32 mine = place_in_panel(warp, lane);
  hn_u4 weights[STEPS];
  HN_UNROLL for (u32 k = 0; k < STEPS; k++) weights[k] = hn_ld16((const hn_u4 *)g->w + (blockIdx.y * STEPS + k) * 128 + t);
  i32 at = first_line(g, blockIdx.x);
  line l = line_of(g, at);
  HN_GRID_WAIT();
  ending end_of;
  ending_of(g, channel, &end_of);
  ring seen = {0, 0}, freed = {0, 0};
  u32 top = 0, round = 0; /* where in the ring the line's first row lies; lines that are done */
  i32 known = 0;
  if (HN_STAGED && HN_BUFFERS == 2 && t == 0 && at < end) load_staged(g, panels, arrived, first, l, group);
  for (; at < end; at++, round++) {
    const u32 buffer = round % HN_BUFFERS, panel = panels + buffer * PANEL;
    const line here = l;
    next_line(g, &l);
    for (i32 k = known; k < HN_KH; k++) {
      hn_barrier_wait(s->full + 8 * seen.at, seen.phase);
      advance(&seen);
    }
    if (group || round) hn_barrier_wait(s->turn + 8 * group, (round & 1) ^ !group);
    u64 row[HN_KH];
    HN_UNROLL for (u32 k = 0; k < HN_KH; k++) {
      const u32 slot = top + k;
      row[k] = hn_wgmma_operand(s->rows + (slot < HN_ROWS ? slot : slot - HN_ROWS) * ROW + group * (HN_N * PIXEL), PIXEL);
    }
    hn_sum d[HN_N / 2];
    hn_wgmma_fence();
    HN_UNROLL for (u32 k = 0; k < STEPS; k++) {
      const u32 tap = k / K_STEPS, dx = tap % HN_KW;
      const u64 pixels = row[tap / HN_KW] + (k % K_STEPS * 32 + dx % HN_SW * PART + dx / HN_SW * PIXEL) / 16;
      if (k == 0) hn_wgmma_first(d, weights[k].v, pixels);
      else hn_wgmma_add(d, weights[k].v, pixels);
      if (k + 3 == STEPS) hn_wgmma_commit();
    }
    hn_wgmma_commit();
    if (t == 0) { /* what is added comes meanwhile: of the next line, or with one buffer of this one */
      HN_BULK_WAIT_READ(0);
      if (HN_STAGED && HN_BUFFERS == 1) load_staged(g, panel, arrived, first, here, group);
      if (HN_STAGED && HN_BUFFERS == 2 && at + 1 < end)
        load_staged(g, panels + (buffer ^ 1) * PANEL, arrived + 8 * (buffer ^ 1), first, l, group);
    }
    HN_WGMMA_WAIT(1); /* all but the last two: the other's first ones follow them at once */
    if (t == 0) hn_barrier_arrive(s->turn + 8 * (group ^ 1));
    HN_WGMMA_WAIT(0);
    const u32 step = l.y ? HN_SH : HN_KH;
    known = (i32)(HN_KH - step);
    for (u32 k = 0; k < step; k++) {
      if (t == 0) hn_barrier_arrive(s->empty + 8 * freed.at);
      advance(&freed);
    }
    top = freed.at;
#ifdef HN_BORDER
    for (u32 i = t; i < HN_N; i += 128) {
      const i32 x = here.strip * WIDE + (i32)(group * HN_N + i);
      const u8 *classes = (const u8 *)g->border;
      put_kind(s->kinds + (group * HN_N + i) * 2, x < g->out_w ? (i32)classes[here.y] * g->border_columns + (i32)classes[g->out_h + x] : 0);
    }
#endif
#if HN_STAGED
    hn_barrier_wait(arrived + 8 * buffer, round / HN_BUFFERS & 1);
#endif
#if !HN_STAGED || defined(HN_BORDER)
    hn_sync_some(1 + group, 128); /* the last line's results have left; kinds are there */
#endif
#ifdef HN_BORDER
    add_lacking((const i32 *)g->lacking, g->border_pitch, d, HN_N, s->kinds + group * (HN_N * 2), channel, lane);
#endif
    finish_pixels(g, d, &end_of, panel + mine, channel);
    hn_async_fence();
    hn_sync_some(1 + group, 128);
    if (t == 0) {
      hn_tma_store_4d(&g->out, panel, first, here.strip * WIDE + (i32)group * HN_N, here.y, here.n);
      hn_bulk_commit();
    }
  }
  if (t == 0) HN_BULK_WAIT_READ(0);
}

HN_KERNEL_BOUNDS(conv_strip, hn_conv_strip_args, g, 128 * (1 + GROUPS), 1) {
  HN_DYNAMIC_SHARED(u8, memory);
  HN_GRID_GO();
  shared_map s;
  s.panels = hn_shared_address(memory);
  s.rows = s.panels + GROUPS * HN_BUFFERS * PANEL;
  s.full = s.rows + HN_ROWS * ROW;
  s.empty = s.full + 8 * HN_ROWS;
  s.arrived = s.empty + 8 * HN_ROWS;
  s.turn = s.arrived + 8 * GROUPS * HN_BUFFERS;
  s.kinds = s.turn + 8 * GROUPS;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < HN_ROWS; i++) {
      hn_barrier_init(s.full + 8 * i, 1);
      hn_barrier_init(s.empty + 8 * i, GROUPS);
    }
    for (u32 i = 0; i < GROUPS * (HN_BUFFERS + 1); i++) hn_barrier_init(s.arrived + 8 * i, 1); /* and s.turn */
    hn_barrier_init_fence();
  }
  HN_SYNC();
  if (threadIdx.x < 128) {
    HN_REGISTERS_LESS(56);
    produce(&g, &s);
  } else {
    HN_REGISTERS_MORE(224);
    consume(&g, &s, threadIdx.x / 128 - 1);
  }
}
