/* A 1x1 convolution and the depthwise one behind it as one kernel: what lies between them, the widest tensor of an
 * inverted residual, is in no memory but the multiprocessor's own.
 *
 * A block makes HN_CB channels of a box of HN_BH x HN_BW output pixels of an image: first, by mma.sync, those channels
 * of all pixels that the box's taps want, with the first epilogue, into shared memory in 16 bits (what lies outside of
 * the image is zero); then the depthwise convolution from there. Neighbouring boxes compute the pixels between them
 * twice. Weights, and whatever else does not hang on the kernel before, are there when that one ends, so that a block
 * waits for memory once: the pixels' channels go from memory to registers.
 *
 * Fragments: within 32 channels of x a thread of a quad has eight that lie together, so that it reads them as 16 bytes,
 * and within 16 channels of the result four; the weights are packed in that order.
 *
 * A slice's weights: fragments [HN_CB / 16][HN_K32][2 halves of 32][32 threads][4 words], then f32: [HN_CB] bias of
 * the 1x1, [HN_KH HN_KW][HN_CB] and [HN_CB] bias of the depthwise convolution.
 *
 * Prefix: HN_T f16 | bf16, HN_KH, HN_KW, HN_SH, HN_SW, HN_DH, HN_DW (kernel, stride, dilation of the depthwise
 * convolution), HN_CB, HN_BH, HN_BW, HN_TW (pixels of a row that a thread makes; divides HN_BW), HN_K32 (channels of x
 * in thirty-twos), HN_AHEAD (sixteens of pixels) and HN_TOGETHER (thirty-twos of their channels) that a warp
 * has on their way, HN_BLOCKS (a multiprocessor shall hold),
 * and the generated epilogues: hn_inner4 of the 1x1, hn_epilogue4 of the depthwise convolution. */
#include "conv_chain_expand_args.h"
#include "pairs.cuh"

#define hn_mma HN_PASTE(hn_mma_, HN_T)
#define hn_pack HN_PASTE(HN_PACK_, HN_T)

enum {
  THREADS = 256,
  WARPS = THREADS / 32,
  GROUPS = HN_CB / 16,
  QUADS = HN_CB / 4, /* threads of a pixel */
  IN_W = (HN_BW - 1) * HN_SW + (HN_KW - 1) * HN_DW + 1,
  IN_H = (HN_BH - 1) * HN_SH + (HN_KH - 1) * HN_DH + 1,
  TAPS = HN_KH * HN_KW,
  FRAGMENTS = GROUPS * HN_K32 * 1024,
  SLICE = FRAGMENTS + (TAPS + 2) * HN_CB * 4,
  BOX = IN_H * IN_W * HN_CB * 2,
  STRIPS = HN_BW / HN_TW, /* of a row of the box */
  COLUMNS = HN_DW == 1 ? (HN_TW - 1) * HN_SW + HN_KW : HN_TW * HN_KW /* that a thread reads of a row */
};

/* The part of the input that a box's taps want and that exists. */
typedef struct region {
  i32 y, x; /* of the box's first tap; may lie outside */
  i32 top, left, width, count;
} region;

HN_FN region region_of(const hn_conv_chain_expand_args *g, i32 bx, i32 by) {
  region r;
  r.y = by * (HN_BH * HN_SH) - g->pad_h, r.x = bx * (HN_BW * HN_SW) - g->pad_w;
  r.top = r.y < 0 ? 0 : r.y, r.left = r.x < 0 ? 0 : r.x;
  const i32 bottom = r.y + IN_H < g->in_h ? r.y + IN_H : g->in_h, right = r.x + IN_W < g->in_w ? r.x + IN_W : g->in_w;
  r.width = right - r.left;
  r.count = r.width > 0 && bottom > r.top ? r.width * (bottom - r.top) : 0;
  return r;
}

HN_FN void widen4(const u8 *at, float f[4]) {
  const u64 v = *(const u64 *)(const void *)at;
  HN_UNROLL for (u32 k = 0; k < 4; k++) f[k] = HN_PASTE(hn_, HN_T)((u16)(v >> 16 * k));
}

HN_FN void floats4(const u8 *at, float f[4]) {
  const hn_u4 v = *(const hn_u4 *)(const void *)at;
  HN_UNROLL for (u32 k = 0; k < 4; k++) f[k] = hn_from_bits(v.v[k]);
}

/* The 1x1 convolution of the region, and its epilogue, into the box. */
HN_FN void expand(const hn_conv_chain_expand_args *g, const region *r, i32 image, i32 channel0, const u8 *weights, u8 *box) {
  const i32 warp = (i32)threadIdx.x / 32, lane = (i32)threadIdx.x % 32, row = lane / 4, t = lane % 4;
  const u16 *x = (const u16 *)g->x + image * g->x_image + t * 8;
  for (i32 first = warp * HN_AHEAD; first * 16 < r->count; first += WARPS * HN_AHEAD) {
    i32 from[HN_AHEAD][2], to[HN_AHEAD][2];
    float d[HN_AHEAD][GROUPS][2][4];
    HN_UNROLL for (i32 a = 0; a < HN_AHEAD; a++) {
      HN_UNROLL for (i32 h = 0; h < 2; h++) {
        const i32 m = (first + a) * 16 + h * 8 + row, y = m / r->width, c = m - y * r->width;
        from[a][h] = to[a][h] = -1;
        if (m >= r->count) continue;
        from[a][h] = (r->top + y) * g->x_row + (r->left + c) * g->x_pixel;
        to[a][h] = ((r->top + y - r->y) * IN_W + r->left + c - r->x) * (HN_CB * 2) + t * 8;
      }
      HN_UNROLL for (i32 n = 0; n < GROUPS; n++) {
        float bias[4];
        floats4(weights + FRAGMENTS + (n * 16 + t * 4) * 4, bias);
        HN_UNROLL for (i32 k = 0; k < 4; k++) d[a][n][k / 2][k % 2] = d[a][n][k / 2][2 + k % 2] = bias[k];
      }
    }
    for (i32 k0 = 0; k0 < HN_K32; k0 += HN_TOGETHER) {
      hn_u4 v[HN_TOGETHER][HN_AHEAD][2];
      HN_UNROLL for (i32 j = 0; j < HN_TOGETHER; j++) HN_UNROLL for (i32 a = 0; a < HN_AHEAD; a++) HN_UNROLL for (i32 h = 0; h < 2; h++) {
        HN_UNROLL for (i32 e = 0; e < 4; e++) v[j][a][h].v[e] = 0;
        if (from[a][h] >= 0 && (k0 + j) * 4 + t < g->vectors) v[j][a][h] = hn_ld16(x + from[a][h] + (k0 + j) * 32);
      }
      HN_UNROLL for (i32 j = 0; j < HN_TOGETHER; j++) {
        if (HN_K32 % HN_TOGETHER && k0 + j >= HN_K32) break;
        HN_UNROLL for (i32 n = 0; n < GROUPS; n++) HN_UNROLL for (i32 s = 0; s < 2; s++) {
          const hn_u4 w = *(const hn_u4 *)(const void *)(weights + ((n * HN_K32 + k0 + j) * 2 + s) * 512 + lane * 16);
          HN_UNROLL for (i32 a = 0; a < HN_AHEAD; a++) {
            const u32 p[4] = {v[j][a][0].v[s * 2], v[j][a][1].v[s * 2], v[j][a][0].v[s * 2 + 1], v[j][a][1].v[s * 2 + 1]};
            hn_mma(d[a][n][0], p, w.v);
            hn_mma(d[a][n][1], p, w.v + 2);
          }
        }
      }
    }
    HN_UNROLL for (i32 a = 0; a < HN_AHEAD; a++) HN_UNROLL for (i32 n = 0; n < GROUPS; n++) HN_UNROLL for (i32 h = 0; h < 2; h++) {
      float f[4] = {d[a][n][0][h * 2], d[a][n][0][h * 2 + 1], d[a][n][1][h * 2], d[a][n][1][h * 2 + 1]};
      hn_inner4(f, channel0 + n * 16 + t * 4, 0, &g->inner);
      if (to[a][h] >= 0)
        *(u64 *)(void *)(box + to[a][h] + n * 32) = hn_pack(f[0], f[1]) | (u64)hn_pack(f[2], f[3]) << 32;
    }
  }
}

/* The depthwise convolution of the box. */
HN_FN void depthwise(const hn_conv_chain_expand_args *g, i32 bx, i32 by, i32 image, i32 channel0, const u8 *weights,
                     const u8 *box) {
  for (i32 i = (i32)threadIdx.x; i < QUADS * STRIPS * HN_BH; i += THREADS) {
    const i32 quad = i % QUADS, strip = i / QUADS % STRIPS, row = i / (QUADS * STRIPS);
    const i32 y = by * HN_BH + row, x0 = bx * HN_BW + strip * HN_TW, v = channel0 + quad * 4;
    if (y >= g->out_h || x0 >= g->out_w || v >= g->channels) continue;
    const u8 *in = box + (row * HN_SH * IN_W + strip * (HN_TW * HN_SW)) * (HN_CB * 2) + quad * 8, *w = weights + quad * 16;
    float d[HN_TW][4];
    HN_UNROLL for (i32 p = 0; p < HN_TW; p++) floats4(w + TAPS * HN_CB * 4, d[p]);
    HN_UNROLL for (i32 kh = 0; kh < HN_KH; kh++) {
      float f[COLUMNS][4];
      HN_UNROLL for (i32 c = 0; c < COLUMNS; c++) {
        const i32 at = HN_DW == 1 ? c : c / HN_KW * HN_SW + c % HN_KW * HN_DW;
        widen4(in + (kh * HN_DH * IN_W + at) * (HN_CB * 2), f[c]);
      }
      HN_UNROLL for (i32 kw = 0; kw < HN_KW; kw++) {
        float tap[4];
        floats4(w + (kh * HN_KW + kw) * (HN_CB * 4), tap);
        HN_UNROLL for (i32 p = 0; p < HN_TW; p++) {
          const i32 c = HN_DW == 1 ? p * HN_SW + kw : p * HN_KW + kw;
          HN_UNROLL for (i32 k = 0; k < 4; k++) d[p][k] += tap[k] * f[c][k];
        }
      }
    }
    HN_UNROLL for (i32 p = 0; p < HN_TW; p++) {
      if (x0 + p >= g->out_w) continue;
      const i64 at = image * g->y_image + (i64)y * g->y_row + (i64)(x0 + p) * g->y_pixel + v;
      hn_epilogue4(d[p], v, at, &g->epilogue);
      *(u64 *)((u16 *)g->y + at) = hn_pack(d[p][0], d[p][1]) | (u64)hn_pack(d[p][2], d[p][3]) << 32;
    }
  }
}

HN_KERNEL_BOUNDS(conv_chain_expand, hn_conv_chain_expand_args, g, 256, HN_BLOCKS) {
  HN_DYNAMIC_SHARED(u8, shared);
  u8 *box = shared + SLICE;
  HN_GRID_GO();
  const i32 slice = (i32)(blockIdx.x % (u32)g.slices), rest = (i32)(blockIdx.x / (u32)g.slices);
  const i32 bx = rest % g.boxes_x, by = rest / g.boxes_x % g.boxes_y, image = rest / g.boxes_x / g.boxes_y;
  const region r = region_of(&g, bx, by);
  const u8 *weights = (const u8 *)g.weights + (i64)slice * SLICE;
  for (i32 i = (i32)threadIdx.x; i < SLICE / 16; i += THREADS) hn_cp_async16(shared + i * 16, weights + i * 16, 16);
  hn_cp_async_commit();
  if (r.count < IN_H * IN_W)
    for (i32 i = (i32)threadIdx.x; i < BOX / 16; i += THREADS) {
      const hn_u4 zero = {{0, 0, 0, 0}};
      *(hn_u4 *)(void *)(box + i * 16) = zero;
    }
  HN_CP_ASYNC_WAIT(0);
  HN_SYNC();
  HN_GRID_WAIT();
  expand(&g, &r, image, slice * HN_CB, shared, box);
  HN_SYNC();
  depthwise(&g, bx, by, image, slice * HN_CB, shared + FRAGMENTS + HN_CB * 4, box);
}
