/* Max-, average and Lp-pooling: a thread makes HN_W channels of an output pixel (vectors where channels are
 * contiguous in both tensors). Prefix: HN_TYPE, HN_OUT, HN_VALUE, HN_ACC, HN_W, HN_KD, HN_KH, HN_KW (kernel),
 * HN_LAST (threads count channels first) and one of
 *   HN_MAX (the lowest value; NaN wins), perhaps with HN_INDEX (1: of the transposed plane), or with HN_PAIRS (two
 *   16-bit values are compared at once: the lowest one in both halves), or HN_BYTE_PAIRS (u16, i16: bytes are compared
 *   as the upper halves of two such pairs a word)
 *   HN_AVERAGE (1: padding counts)
 *   HN_LP (the exponent) */
#include "divide.cuh"
#include "pool_args.h"
#include "typed.cuh"

#if defined(HN_PAIRS)
#define hn_larger HN_PASTE(HN_PASTE(hn_max_, HN_TYPE), x2)
#elif defined(HN_BYTE_PAIRS)
#define hn_larger HN_PASTE(HN_PASTE(hn_max_, HN_BYTE_PAIRS), x2)
#define HN_UPPER 0xff00ff00u
#endif

HN_FN void hn_add(HN_ACC *acc, HN_VALUE v) {
#if defined(HN_MAX)
  *acc = (v > *acc || v != v) && *acc == *acc ? v : *acc;
#elif defined(HN_AVERAGE)
  *acc += v;
#else
  *acc += HN_LP == 2 ? v * v : HN_LP == 1 ? (HN_ACC)fabs((double)v) : (HN_ACC)pow(fabs((double)v), (double)HN_LP);
#endif
}

/* Elements of a window that average pooling counts. */
HN_FN int hn_counted(const hn_pool_args *a, int d, int out, int kernel, int inside) {
#if defined(HN_AVERAGE) && HN_AVERAGE
  const int room = a->in[d] + a->end[d] + a->begin[d] - out * a->stride[d];
  const int n = (room + a->dilation[d] - 1) / a->dilation[d];
  return n < kernel ? n : kernel;
#else
  return inside;
#endif
}

HN_FN int hn_inside(const hn_pool_args *a, int d, int first, int kernel) {
  int n = 0;
  for (int k = 0; k < kernel; k++) n += (u32)(first + k * a->dilation[d]) < (u32)a->in[d];
  return n;
}

HN_KERNEL_BOUNDS(hn_pool, hn_pool_args, a, 128, 4) {
  HN_GRID_GO();
  u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= a.work) return;
  u32 q, c;
  int o[3];
#if HN_LAST
  q = hn_quotient(i, &a.c), c = i - q * a.c.by, i = q;
#endif
  for (int d = 2; d >= 0; d--) q = hn_quotient(i, &a.out[d]), o[d] = (int)(i - q * a.out[d].by), i = q;
#if !HN_LAST
  q = hn_quotient(i, &a.c), c = i - q * a.c.by, i = q;
#endif
  const u32 n = i;
  int first[3];
  for (int d = 0; d < 3; d++) first[d] = o[d] * a.stride[d] - a.begin[d];
  const i64 base = n * a.x_n + (i64)c * HN_W * a.x_c;
  HN_ACC acc[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] =
#if defined(HN_MAX)
      (HN_ACC)(HN_MAX);
#else
      0;
#endif
#if defined(HN_INDEX)
  i64 best = 0;
  bool any = false;
#elif defined(HN_PAIRS)
  u32 pair[4] = {HN_PAIRS, HN_PAIRS, HN_PAIRS, HN_PAIRS};
#elif defined(HN_BYTE_PAIRS)
  u32 even[4], odd[4];
  HN_UNROLL for (int w = 0; w < 4; w++) even[w] = odd[w] = (u32)(HN_MAX & 0xff) * 0x01000100u;
#endif
  HN_GRID_WAIT();
  for (int kd = 0; kd < HN_KD; kd++) {
    const int z = first[0] + kd * a.dilation[0];
    if ((u32)z >= (u32)a.in[0]) continue;
#if HN_KH * HN_KW <= 16
    HN_UNROLL
#endif
    for (int kh = 0; kh < HN_KH; kh++) {
      const int y = first[1] + kh * a.dilation[1];
      const bool row_in = (u32)y < (u32)a.in[1];
      const i64 row = base + z * a.x_step[0] + y * a.x_step[1];
#if defined(HN_INDEX)
      for (int kw = 0; kw < HN_KW; kw++) {
        const int x = first[2] + kw * a.dilation[2];
        if (!row_in || (u32)x >= (u32)a.in[2]) continue;
        const HN_VALUE v = hn_get(a.x, row + x * a.x_step[2]);
        if (any && !(v > acc[0]) && !(v != v && acc[0] == acc[0])) continue;
        any = true, acc[0] = v;
        best = HN_INDEX ? ((i64)x * a.in[1] + y) * a.in[0] + z : ((i64)z * a.in[1] + y) * a.in[2] + x;
      }
#elif HN_W > 1 && HN_KW <= 16
      hn_u4 r[HN_KW]; /* a row's loads are on their way together */
      HN_UNROLL for (int kw = 0; kw < HN_KW; kw++) {
        const int x = first[2] + kw * a.dilation[2];
        if (row_in && (u32)x < (u32)a.in[2]) r[kw] = hn_ld16((const u8 *)a.x + (row + x * a.x_step[2]) * (16 / HN_W));
      }
      HN_UNROLL for (int kw = 0; kw < HN_KW; kw++) {
        const int x = first[2] + kw * a.dilation[2];
        if (row_in && (u32)x < (u32)a.in[2])
#if defined(HN_PAIRS)
          HN_UNROLL for (int w = 0; w < 4; w++) pair[w] = hn_larger(pair[w], r[kw].v[w]);
#elif defined(HN_BYTE_PAIRS)
          HN_UNROLL for (int w = 0; w < 4; w++) {
            even[w] = hn_larger(even[w], r[kw].v[w] << 8 & HN_UPPER);
            odd[w] = hn_larger(odd[w], r[kw].v[w] & HN_UPPER);
          }
#else
          HN_UNROLL for (int w = 0; w < HN_W; w++) hn_add(&acc[w], hn_word(r[kw].v, w));
#endif
      }
#else
      for (int kw = 0; kw < HN_KW; kw++) {
        const int x = first[2] + kw * a.dilation[2];
        if (!row_in || (u32)x >= (u32)a.in[2]) continue;
#if HN_W > 1
        const hn_u4 r = hn_ld16((const u8 *)a.x + (row + x * a.x_step[2]) * (16 / HN_W));
        HN_UNROLL for (int w = 0; w < HN_W; w++) hn_add(&acc[w], hn_word(r.v, w));
#else
        hn_add(&acc[0], hn_get(a.x, row + x * a.x_step[2]));
#endif
      }
#endif
    }
  }
#if defined(HN_AVERAGE)
  const int counted = hn_counted(&a, 0, o[0], HN_KD, hn_inside(&a, 0, first[0], HN_KD)) *
                      hn_counted(&a, 1, o[1], HN_KH, hn_inside(&a, 1, first[1], HN_KH)) *
                      hn_counted(&a, 2, o[2], HN_KW, hn_inside(&a, 2, first[2], HN_KW));
  HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = counted > 0 ? acc[w] / (HN_ACC)counted : 0;
#elif defined(HN_LP)
  HN_UNROLL for (int w = 0; w < HN_W; w++) acc[w] = HN_LP == 2 ? sqrt(acc[w]) : HN_LP == 1 ? acc[w] : (HN_ACC)pow((double)acc[w], 1.0 / HN_LP);
#endif
  const i64 at = n * a.y_n + (i64)c * HN_W * a.y_c + o[0] * a.y_step[0] + o[1] * a.y_step[1] + o[2] * a.y_step[2];
#if defined(HN_PAIRS)
  hn_u4 r;
  HN_UNROLL for (int w = 0; w < 4; w++) {
    const int left = a.channels - (int)c * HN_W - 2 * w;
    r.v[w] = left > 1 ? pair[w] : left > 0 ? pair[w] & 0xffff : 0;
  }
  hn_st16((u8 *)a.y + at * (16 / HN_W), r);
#elif defined(HN_BYTE_PAIRS)
  hn_u4 r;
  HN_UNROLL for (int w = 0; w < 4; w++) {
    const int left = a.channels - (int)c * HN_W - 4 * w;
    r.v[w] = left > 3 ? even[w] >> 8 | odd[w] : left > 0 ? (even[w] >> 8 | odd[w]) & 0xffffffffu >> (32 - 8 * left) : 0;
  }
  hn_st16((u8 *)a.y + at * (16 / HN_W), r);
#elif HN_W > 1
  HN_VALUE out[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) out[w] = (int)c * HN_W + w < a.channels ? (HN_VALUE)acc[w] : (HN_VALUE)0;
  hn_u4 r;
  hn_pack(r.v, out, HN_W);
  hn_st16((u8 *)a.y + at * (16 / HN_W), r);
#else
  hn_put(a.y, at, (int)c < a.channels ? (HN_VALUE)acc[0] : (HN_VALUE)0);
#endif
#if defined(HN_INDEX)
  if ((int)c < a.channels)
    a.index[n * a.i_n + c * a.i_c + o[0] * a.i_step[0] + o[1] * a.i_step[1] + o[2] * a.i_step[2]] =
        ((i64)n * a.channels + c) * a.in[0] * a.in[1] * a.in[2] + best;
#endif
}
