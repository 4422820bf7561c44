/* Functions of rows: softmax and its relatives, normalisations by moments or norms. A row is any set of dimensions.
 * HN_GROUP threads share one. Prefix:
 *   HN_TYPE, HN_OUT, HN_VECTOR (type of scale and shift), HN_W (elements of a vector), HN_GROUP, HN_THREADS
 *   HN_OUT_WORDS, HN_VECTOR_WORDS   32-bit words of HN_W elements of those types
 *   HN_BLOCKS    that a multiprocessor is to hold
 *   HN_KEPT_RANK, HN_GONE_RANK   of the walks over rows and within one
 *   HN_COLUMNS   rows lie across memory: threads beside each other have different rows
 *   HN_KEEP      vectors of a row that a thread keeps in registers; 0: rows are read again for every pass
 *   HN_KIND      one of the numbers below
 *   HN_PLACE     where scale and shift are: 0 nowhere, 1 at the element, 2 at the row's channel, 3 at the channel
 *                within the row's group, 4 at the group
 *   HN_EARLY     scale and shift are constants at the element: they are loaded while the kernel before works
 *   HN_SKIP      something is added first
 *   HN_PARTS     rows are few and long, and lie in parts on as many blocks: 1 makes each part's moments, 2 normalises by
 *                those of all parts; else 0
 *   HN_CODES_IN  codes of 8 bits are read: 0x80 where they are i8, else 0
 *   HN_CODES_OUT codes of 8 bits are written */
#include "normalize_args.h"
#include "quantise.cuh"
#include "typed.cuh"
#include "walk.cuh"

#define HN_SOFTMAX 0
#define HN_LOG_SOFTMAX 1
#define HN_HARDMAX 2
#define HN_NORM1 3
#define HN_NORM2 4
#define HN_MOMENTS 5  /* (x - mean) / sqrt(variance + epsilon) */
#define HN_RMS 6      /* x / sqrt(mean of squares + epsilon) */
#define HN_STANDARD 7 /* (x - mean) / (deviation + epsilon) */

#define hn_get_vector HN_PASTE(hn_get_, HN_VECTOR)
#define hn_word_vector HN_PASTE(hn_word_, HN_VECTOR)

/* What is read as a number. A code less the lowest one is the low byte of a sum with 2^23: conversions have a pipe of
 * their own, that is four times narrower. */
#ifdef HN_CODES_IN
HN_FN float hn_number(const hn_normalize_args *a, u32 word, int k) {
  const float code = hn_from_bits(hn_bytes(word ^ HN_CODES_IN * 0x01010101u, 0x4b000000u, 0x7440u | ((u32)k & 3)));
  return (code - 8388608.0f - a->x_zero) * a->x_scale;
}
#define HN_READ(words, k) hn_number(a, (words)[(k) / 4], k)
#define HN_READ_ONE(p, i) hn_number(a, ((const u8 *)(p))[i], 0)
#else
#define HN_READ(words, k) hn_word(words, k)
#define HN_READ_ONE(p, i) ((float)hn_get(p, i))
#endif
/* What is written of a number. */
typedef HN_PASTE(hn_value_, HN_OUT) hn_written;
HN_FN hn_written hn_write(const hn_normalize_args *a, float x) {
#ifdef HN_CODES_OUT
  return (hn_written)hn_quantise(x, &a->codes);
#else
  (void)a;
  return (hn_written)x;
#endif
}

/* What the threads of a row have in common: HN_BOTH of all their values. */
#define HN_MEET(name, HN_BOTH)                                                                               \
  HN_FN float name(float v, float *met) {                                                                    \
    const int tid = (int)threadIdx.x;                                                                        \
    if (HN_COLUMNS) {                                                                                        \
      const int step = HN_THREADS / HN_GROUP;                                                                \
      if (HN_GROUP == 1) return v;                                                                           \
      HN_SYNC();                                                                                             \
      met[tid] = v;                                                                                          \
      for (int half = HN_GROUP / 2; half > 0; half /= 2) {                                                   \
        HN_SYNC();                                                                                           \
        if (tid / step < half) met[tid] = HN_BOTH(met[tid], met[tid + half * step]);                         \
      }                                                                                                      \
      HN_SYNC();                                                                                             \
      return met[tid % step];                                                                                \
    }                                                                                                        \
    HN_UNROLL for (int m = (HN_GROUP < 32 ? HN_GROUP : 32) / 2; m > 0; m /= 2) {                             \
      const float other = hn_shfl_xor(v, m);                                                                 \
      v = HN_BOTH(v, other);                                                                                 \
    }                                                                                                        \
    if (HN_GROUP > 32) {                                                                                     \
      const int warps = HN_GROUP / 32, first = tid / HN_GROUP * warps;                                       \
      HN_SYNC();                                                                                             \
      if (tid % 32 == 0) met[tid / 32] = v;                                                                  \
      HN_SYNC();                                                                                             \
      v = met[first];                                                                                        \
      for (int w = 1; w < warps; w++) v = HN_BOTH(v, met[first + w]);                                        \
    }                                                                                                        \
    return v;                                                                                                \
  }
#define HN_PLUS(a, b) ((a) + (b))
HN_MEET(hn_all_sum, HN_PLUS)
HN_MEET(hn_all_max, hn_max_nan)
HN_MEET(hn_all_min, fminf)

#if HN_W > 1
/* Vector r of what every row has: bytes beside each other, as a warp reads them. */
HN_FN void hn_shared_vector(const void *p, u32 r, float v[HN_W]) {
  const u32 *from = (const u32 *)p + (i64)r * HN_VECTOR_WORDS;
  u32 raw[HN_VECTOR_WORDS];
#if HN_VECTOR_WORDS % 4 == 0
  HN_UNROLL for (int k = 0; k < HN_VECTOR_WORDS; k += 4) {
    const hn_u4 part = hn_ld16(from + k);
    HN_UNROLL for (int j = 0; j < 4; j++) raw[k + j] = part.v[j];
  }
#else
  HN_UNROLL for (int k = 0; k < HN_VECTOR_WORDS; k++) raw[k] = from[k];
#endif
  HN_UNROLL for (int w = 0; w < HN_W; w++) v[w] = hn_word_vector(raw, w);
}

HN_FN void hn_store_vector(const hn_normalize_args *a, void *y, i64 at, const float v[HN_W]) {
  u32 packed[HN_OUT_WORDS], *to = (u32 *)((u8 *)y + at * (HN_OUT_WORDS * 4 / HN_W));
  hn_written written[HN_W];
  HN_UNROLL for (int w = 0; w < HN_W; w++) written[w] = hn_write(a, v[w]);
  hn_pack(packed, written, HN_W);
#if HN_OUT_WORDS % 4 == 0
  HN_UNROLL for (int k = 0; k < HN_OUT_WORDS; k += 4) {
    hn_u4 part;
    HN_UNROLL for (int j = 0; j < 4; j++) part.v[j] = packed[k + j];
    hn_st16(to + k, part);
  }
#else
  HN_UNROLL for (int k = 0; k < HN_OUT_WORDS; k++) to[k] = packed[k];
#endif
}
#endif

/* The values of vector r of a row; stores their sum when it is wanted. */
HN_FN void hn_values(const hn_normalize_args *a, hn_walk_at row, u32 r, float v[HN_W], bool store) {
  const hn_walk_at in = hn_walk_ranked(&a->gone, HN_GONE_RANK, r);
#if defined(HN_CODES_IN) && HN_W > 1 && HN_W < 16
  const u32 *from = (const u32 *)((const u8 *)a->x + row.x + in.x);
  u32 raw[HN_W / 4];
  HN_UNROLL for (int k = 0; k < HN_W / 4; k++) raw[k] = from[k];
  HN_UNROLL for (int w = 0; w < HN_W; w++) v[w] = HN_READ(raw, w);
#elif HN_W > 1
  const hn_u4 raw = hn_ld16((const u8 *)a->x + (row.x + in.x) * (16 / HN_W));
  HN_UNROLL for (int w = 0; w < HN_W; w++) v[w] = HN_READ(raw.v, w);
#else
  v[0] = HN_READ_ONE(a->x, row.x + in.x);
#endif
#if HN_SKIP
  if (a->skip) {
#if HN_W > 1
    const hn_u4 more = hn_ld16((const u8 *)a->skip + (row.x + in.x) * (16 / HN_W));
    HN_UNROLL for (int w = 0; w < HN_W; w++) v[w] += hn_word(more.v, w);
#else
    v[0] += (float)hn_get(a->skip, row.x + in.x);
#endif
  }
#if HN_W > 1
  if (a->bias) {
    float bias[HN_W];
    hn_shared_vector(a->bias, r, bias);
    HN_UNROLL for (int w = 0; w < HN_W; w++) v[w] += bias[w];
  }
  if (a->sum && store) hn_store_vector(a, a->sum, row.y + in.y, v);
#else
  if (a->bias) v[0] += (float)hn_get_vector(a->bias, r);
  if (a->sum && store) hn_put(a->sum, row.y + in.y, hn_write(a, v[0]));
#endif
#endif
  (void)store;
}

HN_FN void hn_results(const hn_normalize_args *a, hn_walk_at row, u32 r, const float v[HN_W]) {
  const hn_walk_at in = hn_walk_ranked(&a->gone, HN_GONE_RANK, r);
#if HN_W > 1
  hn_store_vector(a, a->y, row.y + in.y, v);
#else
  hn_put(a->y, row.y + in.y, hn_write(a, v[0]));
#endif
}

/* Of element `element`; vectors of elements of their own are read as such (hn_shared_vector). */
HN_FN float hn_factor(const hn_normalize_args *a, const void *vector, u32 plane, u32 element, float none) {
#if HN_PLACE == 0
  return none;
#else
  if (!vector) return none;
#if HN_PLACE == 1
  const u32 at = element;
#elif HN_PLACE == 3
  const u32 at = plane * (u32)a->each + element / (u32)a->inner;
#else
  const u32 at = plane;
#endif
  return (float)hn_get_vector(vector, at);
#endif
}

/* Runs statements for every vector of the thread: float *v its values, u32 r its number. */
#if HN_PARTS
#define HN_BEGIN begin
#define HN_END end
#else
#define HN_BEGIN 0u
#define HN_END a.length
#endif
#if HN_KEEP
#define HN_EACH(...)                                                                                         \
  HN_UNROLL for (int k = 0; k < HN_KEEP; k++) {                                                              \
    const u32 r = HN_BEGIN + (u32)mine + (u32)k * HN_GROUP;                                                  \
    float *v = kept[k];                                                                                      \
    if (r < HN_END) {                                                                                      \
      __VA_ARGS__ \
    }                                                                                                        \
  }
#else
#define HN_EACH(...)                                                                                         \
  for (u32 r = HN_BEGIN + (u32)mine; r < HN_END; r += HN_GROUP) {                                            \
    float v[HN_W];                                                                                           \
    hn_values(&a, row, r, v, false);                                                                         \
    __VA_ARGS__ \
  }
#endif
#define HN_EVERY HN_UNROLL for (int w = 0; w < HN_W; w++)

#if HN_EARLY
#define HN_FACTORS const float *scale = scales[k], *shift = shifts[k];
#define HN_SCALE(w) scale[w]
#define HN_SHIFT(w) shift[w]
#elif HN_W > 1 && HN_PLACE == 1
#define HN_FACTORS                                                                                           \
  float scale[HN_W], shift[HN_W];                                                                            \
  HN_EVERY scale[w] = 1.0f, shift[w] = 0.0f;                                                                 \
  if (a.scale) hn_shared_vector(a.scale, r, scale);                                                          \
  if (a.shift) hn_shared_vector(a.shift, r, shift);
#define HN_SCALE(w) scale[w]
#define HN_SHIFT(w) shift[w]
#else
#define HN_FACTORS
#define HN_SCALE(w) hn_factor(&a, a.scale, plane, r * HN_W + (w), 1.0f)
#define HN_SHIFT(w) hn_factor(&a, a.shift, plane, r * HN_W + (w), 0.0f)
#endif

HN_KERNEL_BOUNDS(hn_normalize, hn_normalize_args, a, HN_THREADS, HN_BLOCKS) {
  HN_GRID_GO();
  HN_SHARED float met[HN_THREADS];
  const int tid = (int)threadIdx.x, rows = HN_THREADS / HN_GROUP;
  const int mine = HN_COLUMNS ? tid / rows : tid % HN_GROUP;
#if HN_PARTS
  const u32 block = hn_quotient(blockIdx.x, &a.parts), part = blockIdx.x - block * a.parts.by;
  const u32 begin = part * a.part, end = a.length - begin < a.part ? a.length : begin + a.part;
#else
  const u32 block = blockIdx.x;
#endif
  const u32 number = block * (u32)rows + (u32)(HN_COLUMNS ? tid % rows : tid / HN_GROUP);
  const bool works = number < a.rows;
  const u32 o = works ? number : 0;
  const hn_walk_at row = hn_walk_ranked(&a.kept, HN_KEPT_RANK, o);
  const u32 plane = o - hn_quotient(o, &a.planes) * a.planes.by;
  const float n = (float)a.elements;
#if HN_EARLY
  float scales[HN_KEEP][HN_W], shifts[HN_KEEP][HN_W];
  HN_UNROLL for (int k = 0; k < HN_KEEP; k++) {
    const u32 r = (u32)mine + (u32)k * HN_GROUP;
    HN_UNROLL for (int w = 0; w < HN_W; w++) scales[k][w] = 1.0f, shifts[k][w] = 0.0f;
    if (r < a.length && a.scale) hn_shared_vector(a.scale, r, scales[k]);
    if (r < a.length && a.shift) hn_shared_vector(a.shift, r, shifts[k]);
  }
#endif
  HN_GRID_WAIT();
#if HN_KEEP
  float kept[HN_KEEP][HN_W];
  HN_UNROLL for (int k = 0; k < HN_KEEP; k++) {
    const u32 r = HN_BEGIN + (u32)mine + (u32)k * HN_GROUP;
    if (r < HN_END) hn_values(&a, row, r, kept[k], works);
  }
#elif HN_SKIP
  for (u32 r = (u32)mine; r < a.length; r += HN_GROUP) {
    float v[HN_W];
    hn_values(&a, row, r, v, works);
  }
#endif
#if HN_KIND <= HN_HARDMAX
  float top = hn_from_bits(0xff800000u);
  HN_EACH(HN_EVERY top = hn_max_nan(top, v[w]);)
  top = hn_all_max(top, met);
#if HN_KIND == HN_HARDMAX
  float at = n;
  HN_EACH(HN_EVERY if (v[w] == top || v[w] != v[w]) at = fminf(at, (float)(r * HN_W + w));)
  at = hn_all_min(at, met);
#else
  float sum = 0;
#if HN_KEEP && HN_KIND == HN_SOFTMAX
  HN_EACH(HN_EVERY v[w] = hn_exp(v[w] - top), sum += v[w];)
#else
  HN_EACH(HN_EVERY sum += hn_exp(v[w] - top);)
#endif
  sum = hn_all_sum(sum, met);
  const float factor = 1.0f / sum, less = logf(sum);
#endif
#elif HN_KIND <= HN_NORM2
  float sum = 0;
  HN_EACH(HN_EVERY sum += HN_KIND == HN_NORM1 ? fabsf(v[w]) : v[w] * v[w];)
  sum = hn_all_sum(sum, met);
  const float norm = HN_KIND == HN_NORM1 ? sum : sqrtf(sum);
#else
  float sum = 0, mean = 0;
#if HN_PARTS == 2 /* the mean of means, and what each part's squares are about it */
  float *const parts = a.partial + (i64)o * a.parts.by * 2;
#define HN_PART_SIZE(q) ((float)((q) + 1 == a.parts.by ? a.length - (q) * a.part : a.part) * HN_W)
#if HN_KIND != HN_RMS
  for (u32 q = (u32)mine; q < a.parts.by; q += HN_GROUP) sum += HN_PART_SIZE(q) * parts[2 * q];
  mean = hn_all_sum(sum, met) / n;
  sum = 0;
#endif
  for (u32 q = (u32)mine; q < a.parts.by; q += HN_GROUP)
    sum += parts[2 * q + 1] + HN_PART_SIZE(q) * (parts[2 * q] - mean) * (parts[2 * q] - mean);
#else
#if HN_KIND != HN_RMS
  HN_EACH(HN_EVERY sum += v[w];)
  mean = hn_all_sum(sum, met) / (HN_PARTS ? (float)(HN_END - HN_BEGIN) * HN_W : n);
  sum = 0;
#endif
  HN_EACH(HN_EVERY sum += (v[w] - mean) * (v[w] - mean);)
#endif
#if HN_PARTS == 1
  sum = hn_all_sum(sum, met);
  if (works && mine == 0) {
    float *const to = a.partial + ((i64)o * a.parts.by + part) * 2;
    to[0] = mean, to[1] = sum;
  }
  return;
#endif
  const float variance = hn_all_sum(sum, met) / n;
  const float inverse = HN_KIND == HN_STANDARD ? 1.0f / (sqrtf(variance) + a.epsilon) : 1.0f / sqrtf(variance + a.epsilon);
  if (works && mine == 0 && (HN_PARTS == 0 || HN_BEGIN == 0)) {
    if (a.mean) a.mean[o] = mean;
    if (a.inv_std) a.inv_std[o] = inverse;
  }
#endif
  if (!works) return;
  HN_EACH({
    float out[HN_W];
    HN_FACTORS
    HN_EVERY {
#if HN_KIND == HN_SOFTMAX
#if HN_KEEP
      out[w] = v[w] * factor;
#else
      out[w] = hn_exp(v[w] - top) * factor;
#endif
#elif HN_KIND == HN_LOG_SOFTMAX
      out[w] = v[w] - top - less;
#elif HN_KIND == HN_HARDMAX
      out[w] = (float)(r * HN_W + w) == at ? 1.0f : 0.0f;
#elif HN_KIND <= HN_NORM2
      out[w] = norm != 0 ? v[w] / norm : 0.0f;
#else
      out[w] = (v[w] - mean) * inverse * HN_SCALE(w) + HN_SHIFT(w);
#endif
    }
    hn_results(&a, row, r, out);
  })
}
