/* Depthwise convolution of f16 and bf16, dilation 1, on tensor cores. A product of 16 pixels by 8 channels takes
 * two taps of a kernel row: A is [16 pixels][2 taps x 8 channels] as ldmatrix reads it from a row in shared
 * memory, B the two taps' weights on two diagonals, so that nothing is converted to f32 but the sums. 7 of 8
 * multiplications are by zero, which costs less than the conversions do. (A value that is not finite makes its
 * seven neighbours in the pixel NaN.)
 *
 * Rows pass through a ring as in depthwise_ring.cu, and sums are kept for the HN_NA output rows that an input row
 * belongs to. A warp makes HN_MT * 16 pixels of 16 channels; the pixels of a block's images count through. Prefix:
 * HN_MT, HN_CHUNKS (16-byte pieces of a row that a thread fetches, at most), HN_IMAGES (of a block), HN_STAGES,
 * HN_STRIDE (threads that fetch one vector of different pixels: HN_THREADS / block_vectors, exactly), HN_BLOCKS.
 *
 * A block takes all channels, or at least some 256 bytes of them: slices of 32 or 96 bytes of a pixel, which
 * blocks that drift apart read and write at different times, halve the memory's rate. */
#include "depthwise.cuh"

#define HN_PAIRS ((HN_KW + 1) / 2)
#define hn_mma HN_JOIN(hn_mma_, HN_T)
#define HN_PAIR_f16 hn_to_f16x2
#define HN_PAIR_bf16 hn_to_bf16x2
#define hn_pair HN_JOIN(HN_PAIR_, HN_T)

/* Element t of the four threads of a quad, for its thread t. */
HN_FN hn_u4 hn_turn(const u32 v[4], int t) {
  const bool odd = t & 1, high = t & 2;
  const u32 a = hn_shfl_xor_u32(odd ? v[0] : v[1], 1), b = hn_shfl_xor_u32(odd ? v[2] : v[3], 1);
  const u32 w0 = odd ? a : v[0], w1 = odd ? v[1] : a, w2 = odd ? b : v[2], w3 = odd ? v[3] : b;
  const u32 c = hn_shfl_xor_u32(high ? w0 : w2, 2), d = hn_shfl_xor_u32(high ? w1 : w3, 2);
  hn_u4 r;
  r.v[0] = high ? c : w0, r.v[1] = high ? d : w1, r.v[2] = high ? w2 : c, r.v[3] = high ? w3 : d;
  return r;
}

/* The weights of channels c to c + 7 at one tap as half of B: on the diagonal. */
HN_FN u32 hn_diagonal(const hn_depthwise_args *a, int tap, int c, int lane) {
  const int row = lane % 4 * 2, n = lane / 4;
  if (n / 2 != lane % 4 || c + n >= a->w_tap) return 0;
  const float w = ((const float *)a->w)[(i64)tap * a->w_tap + c + n];
  return n == row ? hn_pair(w, 0.0f) : hn_pair(0.0f, w);
}

HN_KERNEL_BOUNDS(hn_depthwise_mma, hn_depthwise_args, a, HN_THREADS, HN_BLOCKS) {
  HN_DYNAMIC_SHARED(hn_u4, ring);
  const int cv = a.block_vectors, bt = a.block_tiles, bi = a.block_images, pitch = cv | 1;
  const int slices = (a.vectors + cv - 1) / cv, parts = (a.out_w + bt - 1) / bt;
  u32 b = blockIdx.x;
  const int v0 = (int)(b % (u32)slices) * cv;
  b /= (u32)slices;
  const int xo = (int)(b % (u32)parts) * bt;
  b /= (u32)parts;
  const int y0 = (int)(b % (u32)a.strips) * a.rows, n0 = (int)(b / (u32)a.strips) * bi;
  const int left = a.out_h - y0, made = left < a.rows ? left : a.rows, steps = made + HN_NA - 1;
  const int inputs = (made - 1) * HN_SH + HN_KH, yin = y0 * HN_SH - a.pad_h, xin = xo * HN_SW - a.pad_w;
  const int width = (bt - 1) * HN_SW + HN_KW, slot = bi * width * pitch;
  const int tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32;
  /* What this thread fetches of each row: vector `vec` of every HN_STRIDE-th pixel. */
  const int vec = tid % cv, first = tid / cv;
  const bool mine = v0 + vec < a.vectors;
#if HN_IMAGES > 1
  i32 from[HN_CHUNKS];
  HN_UNROLL for (int c = 0; c < HN_CHUNKS; c++) {
    const int px = first + c * HN_STRIDE, im = px / width, x = px % width + xin;
    from[c] = mine && im < bi && (u32)x < (u32)a.in_w && n0 + im < a.batch ? (i32)(im * a.x_image) + x * a.x_pixel : -1;
  }
#define HN_FROM(c) from[c]
#define HN_INSIDE(c) (from[c] >= 0)
#else
  const i32 step = HN_STRIDE * a.x_pixel, from0 = (first + xin) * a.x_pixel;
#define HN_FROM(c) (from0 + (c) * step)
#define HN_INSIDE(c) (mine && (u32)(first + (c) * HN_STRIDE + xin) < (u32)a.in_w)
#endif
  const u8 *next_row = (const u8 *)a.x + n0 * a.x_image + yin * a.x_row + (v0 + vec) * 16;
  int next = 0;
  hn_u4 *fill = ring + first * pitch + vec;
  const hn_u4 *end = fill + HN_STAGES * slot;
#define HN_FILL()                                                                                            \
  do {                                                                                                       \
    if (next < inputs) {                                                                                     \
      const bool in = (u32)(yin + next) < (u32)a.in_h;                                                       \
      HN_UNROLL for (int c = 0; c < HN_CHUNKS; c++) {                                                        \
        const bool ok = in && HN_INSIDE(c);                                                                  \
        if (first + c * HN_STRIDE < bi * width)                                                              \
          hn_cp_async16(fill + c * HN_STRIDE * pitch, ok ? next_row + HN_FROM(c) : (const u8 *)a.x, ok ? 16 : 0); \
      }                                                                                                      \
      next_row += a.x_row, next++, fill += slot;                                                             \
      if (fill == end) fill -= HN_STAGES * slot;                                                             \
    }                                                                                                        \
    hn_cp_async_commit();                                                                                    \
  } while (0)
  HN_GRID_WAIT();
  HN_UNROLL for (int r = 0; r < HN_STAGES - 1; r++) HN_FILL();

  /* The warp's channels and pixels. */
  const int groups = (cv + 1) / 2, vg = warp % groups * 2, p0 = warp / groups * 16 * HN_MT;
  const int pixels = bi * bt;
  const bool works = p0 < pixels && v0 + vg < a.vectors;
  const bool both = works && vg + 1 < cv && v0 + vg + 1 < a.vectors; /* 16 channels, not 8 */
  const int channel = (v0 + vg) * 8;
  u32 w[HN_KH][HN_PAIRS][2][2];
  HN_UNROLL for (int kh = 0; kh < HN_KH; kh++)
    HN_UNROLL for (int k = 0; k < HN_PAIRS; k++)
      HN_UNROLL for (int g = 0; g < 2; g++)
        HN_UNROLL for (int h = 0; h < 2; h++)
          w[kh][k][g][h] = works && 2 * k + h < HN_KW ? hn_diagonal(&a, kh * HN_KW + 2 * k + h, channel + 8 * g, lane) : 0;
  /* Bias: the row behind the last tap. */
  float bias[2][2];
  HN_UNROLL for (int g = 0; g < 2; g++)
    HN_UNROLL for (int h = 0; h < 2; h++) {
      const int c = channel + 8 * g + lane % 4 * 2 + h;
      bias[g][h] = works && c < a.w_tap ? ((const float *)a.w)[(i64)HN_KH * HN_KW * a.w_tap + c] : 0.0f;
    }
  /* Rows of A: lanes 0 to 15 give the first tap's pixels, the others the second's. */
  int row_of[HN_MT];
  i32 out_of[HN_MT][2];
  bool live[HN_MT][2];
  HN_UNROLL for (int m = 0; m < HN_MT; m++) {
    const int p = p0 + m * 16 + lane % 16, q = p < pixels ? p : 0;
    row_of[m] = (q / bt * width + q % bt * HN_SW) * pitch + (works ? vg : 0);
    HN_UNROLL for (int h = 0; h < 2; h++) {
      const int o = p0 + m * 16 + lane / 4 + 8 * h, im = o / bt, x = xo + o % bt;
      live[m][h] = works && o < pixels && n0 + im < a.batch && x < a.out_w;
      out_of[m][h] = live[m][h] ? (i32)(im * (a.y_image / HN_SIZE)) + x * (a.y_pixel / HN_SIZE) : 0;
    }
  }
  const int second = lane / 16; /* this lane addresses the second tap of a pair */
  const int gap = both ? 1 : 0; /* to the second eight channels */
  i64 y_at = (n0 * a.y_image + y0 * a.y_row) / HN_SIZE + channel;
  float acc[HN_NA][HN_MT][2][4];
  HN_UNROLL for (int j = 0; j < HN_NA; j++)
    HN_UNROLL for (int m = 0; m < HN_MT; m++)
      HN_UNROLL for (int g = 0; g < 2; g++)
        HN_UNROLL for (int k = 0; k < 4; k++) acc[j][m][g][k] = bias[g][k % 2];
  const hn_u4 *use = ring;
  for (int t0 = 0; t0 < steps; t0 += HN_NA) {
    HN_UNROLL for (int u = 0; u < HN_NA; u++) {
      if (t0 + u >= steps) break;
      HN_UNROLL for (int s = 0; s < HN_SH; s++) {
        if ((t0 + u) * HN_SH + s >= inputs) break;
        HN_CP_ASYNC_WAIT(HN_STAGES - 2);
        HN_SYNC();
        HN_FILL();
        HN_UNROLL for (int k = 0; k < HN_PAIRS; k++) {
          /* Behind the last column the second tap's weights are zero: it reads the first tap's pixels again. */
          const int column = 2 * k + (2 * k + 1 < HN_KW ? second : 0);
          HN_UNROLL for (int m = 0; m < HN_MT; m++)
            HN_UNROLL for (int g = 0; g < 2; g++) {
              u32 x[4];
              hn_ldmatrix4(x, use + row_of[m] + column * pitch + g * gap);
              HN_UNROLL for (int j = 0; j < HN_NA; j++) {
                const int kh = j * HN_SH + s;
                if (kh < HN_KH) hn_mma(acc[(u - j + HN_NA) % HN_NA][m][g], x, w[kh < HN_KH ? kh : 0][k][g]);
              }
            }
        }
        use = use + slot == ring + HN_STAGES * slot ? ring : use + slot;
      }
      const int o = t0 + u - (HN_NA - 1), done = (u + 1) % HN_NA;
      if (o >= 0) {
        HN_UNROLL for (int m = 0; m < HN_MT; m++) {
          u32 v[4];
          HN_UNROLL for (int h = 0; h < 2; h++)
            HN_UNROLL for (int g = 0; g < 2; g++) {
              float *f = acc[done][m][g] + 2 * h;
              if (live[m][h] && (g == 0 || both))
                hn_epilogue2(f, channel + 8 * g + lane % 4 * 2, y_at + out_of[m][h] + 8 * g + lane % 4 * 2, &a.epilogue);
              v[2 * h + g] = hn_pair(f[0], f[1]);
            }
          const hn_u4 r = hn_turn(v, lane % 4);
          const bool lower = lane % 4 < 2;
          const int g = lane % 2;
          if ((lower ? live[m][0] : live[m][1]) && (g == 0 || both))
            hn_st16((u16 *)a.y + y_at + (lower ? out_of[m][0] : out_of[m][1]) + 8 * g, r);
        }
        y_at += a.y_row / HN_SIZE;
      }
      HN_UNROLL for (int m = 0; m < HN_MT; m++)
        HN_UNROLL for (int g = 0; g < 2; g++)
          HN_UNROLL for (int k = 0; k < 4; k++) acc[done][m][g][k] = bias[g][k % 2];
    }
  }
}
