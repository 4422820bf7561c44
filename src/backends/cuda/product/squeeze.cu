/* Squeeze and excitation: y = program(x, gate, ...), gate = f2(W2 f1(W1 average(x) + b1) + b2), an average and a gate a
 * channel of an image.
 *
 * A cluster has an image, or a block where there are no clusters. Its blocks divide the channels into slices and the
 * pixels into parts. W1 is linear: every block multiplies the sums of its own channels over its own pixels, and all
 * blocks get all blocks' products; that is the one time that they meet. Each then makes the gates of its own slice, and
 * what it read first is read again while it is near.
 *
 * Prefix: HN_T, HN_SIZE; HN_W: elements of 16 bytes; HN_THREADS; HN_BLOCKS: of a cluster; hn_epilogue1 and hn_inner1,
 * f1 and f2 with their biases; HN_UNROLLED: pixels that a thread has on their way; hn_raw, hn_fetch and hn_finish: a
 * vector of what the program reads, and the program. Of either product, 1 and 2: HN_LANES: threads that share a sum,
 * a power of two; HN_PER: vectors of weights that each of them has of it; HN_PASSES: sums of a thread, of which it
 * fetches the weights of HN_CHUNK at once; HN_HELD: these are all, and fetched before x is there. */
#include "squeeze_args.h"

#define hn_words HN_JOIN(hn_word_, HN_T)
#define HN_ROWS1 (HN_THREADS / HN_LANES1)
#define HN_ROWS2 (HN_THREADS / HN_LANES2)
enum { HN_SUMMED = 4 }; /* pixels that a thread has on their way to its sums */

/* The thread's weights of rows row, row + HN_ROWS..., HN_CHUNK of them. */
HN_FN void hn_weights1(const hn_squeeze_args *a, i32 from, i32 row, u32 (*w)[4]) {
  const i32 lane = (i32)threadIdx.x % HN_LANES1;
  HN_UNROLL for (int p = 0; p < HN_CHUNK1; p++) {
    HN_UNROLL for (int k = 0; k < HN_PER1; k++) {
      const i32 h = row + p * HN_ROWS1, v = lane + k * HN_LANES1;
      hn_clear_words(w[p * HN_PER1 + k], 16);
      if (h < a->hidden && v < a->slice && from + v < a->vectors)
        hn_ld_words(w[p * HN_PER1 + k], (const char *)a->first + ((i64)h * a->vectors + from + v) * 16, 16);
    }
  }
}
HN_FN void hn_weights2(const hn_squeeze_args *a, i32 from, i32 row, u32 (*w)[4]) {
  const i32 lane = (i32)threadIdx.x % HN_LANES2;
  HN_UNROLL for (int p = 0; p < HN_CHUNK2; p++) {
    HN_UNROLL for (int k = 0; k < HN_PER2; k++) {
      const i32 c = row + p * HN_ROWS2, v = lane + k * HN_LANES2;
      hn_clear_words(w[p * HN_PER2 + k], 16);
      if (c < a->slice * HN_W && v < a->hidden_vectors && from * HN_W + c < a->channels)
        hn_ld_words(w[p * HN_PER2 + k],
                    (const char *)a->last + ((i64)(from * HN_W + c) * a->hidden_vectors + v) * 16, 16);
    }
  }
}

/* What the thread multiplies: the vectors of n of x, in shared memory, that are its lane's. */
HN_FN void hn_factors(const float *x, i32 n, int lanes, int per, float (*to)[HN_W]) {
  const i32 lane = (i32)threadIdx.x % lanes;
  HN_UNROLL for (int k = 0; k < per; k++) {
    const i32 v = lane + k * lanes;
    HN_UNROLL for (int i = 0; i < HN_W; i += 4) {
      const float4 f = v < n ? *(const float4 *)(x + v * HN_W + i) : make_float4(0, 0, 0, 0);
      to[k][i] = f.x, to[k][i + 1] = f.y, to[k][i + 2] = f.z, to[k][i + 3] = f.w;
    }
  }
}

/* The sum, which all its threads get. */
HN_FN float hn_sum(const u32 (*w)[4], const float (*x)[HN_W], int per, int lanes) {
  float sum = 0;
  HN_UNROLL for (int k = 0; k < per; k++) {
    HN_UNROLL for (int i = 0; i < HN_W; i++) sum += hn_words(w[k], i) * x[k][i];
  }
  HN_UNROLL for (int m = lanes / 2; m; m >>= 1) sum += hn_shfl_xor(sum, m);
  return sum;
}

/* A chunk of the first product, to all blocks of the cluster. */
HN_FN void hn_partial(const hn_squeeze_args *a, int rank, i32 row, const u32 (*w)[4], const float (*x)[HN_W], float *partial) {
  const int lane = (int)threadIdx.x % HN_LANES1;
  HN_UNROLL for (int p = 0; p < HN_CHUNK1; p++) {
    const i32 h = row + p * HN_ROWS1;
    const float s = hn_sum(w + p * HN_PER1, x, HN_PER1, HN_LANES1);
    if (h >= a->hidden) continue;
    if (HN_BLOCKS == 1) {
      if (!lane) partial[h] = s;
    } else {
      HN_UNROLL for (int b = 0; b < HN_BLOCKS; b += HN_LANES1)
        if (lane + b < HN_BLOCKS) hn_cluster_store(partial + rank * a->hidden_vectors * HN_W + h, (u32)(lane + b), s);
    }
  }
}

/* A chunk of the second one, as gates. */
HN_FN void hn_gates(const hn_squeeze_args *a, i32 from, i32 row, const u32 (*w)[4], const float (*x)[HN_W], float *gate) {
  HN_UNROLL for (int p = 0; p < HN_CHUNK2; p++) {
    const i32 c = row + p * HN_ROWS2;
    float s = hn_sum(w + p * HN_PER2, x, HN_PER2, HN_LANES2);
    if (c >= a->slice * HN_W || threadIdx.x % HN_LANES2) continue;
    hn_inner1(&s, from * HN_W + c, 0, &a->outer);
    gate[c] = from * HN_W + c < a->channels ? s : 0.0f;
  }
}

/* Vectors of an epilogue into the first-level cache. */
HN_FN void hn_squeeze_touch(const hn_epilogue_args *e, const i32 *bytes) {
  HN_UNROLL for (int i = 0; i < HN_EPILOGUE_INPUTS; i++)
    for (i32 at = (i32)threadIdx.x * 32; at + 4 <= bytes[i]; at += HN_THREADS * 32) hn_touch((const char *)e->in[i] + at);
}

HN_KERNEL_BOUNDS(squeeze, hn_squeeze_args, a, HN_THREADS, 1) {
  HN_DYNAMIC_SHARED(float, shared);
  float *sums = shared + a.at_sums, *group = shared + a.at_groups, *mean = shared + a.at_mean,
        *partial = shared + a.at_partial, *hidden = shared + a.at_hidden, *gate = shared + a.at_gate;
  const i32 t = (i32)threadIdx.x;
  const u32 rank = blockIdx.x % HN_BLOCKS;
  const i32 from = (i32)(rank % (u32)a.slices) * a.slice, begin = (i32)(rank / (u32)a.slices) * a.part,
            end = min(begin + a.part, a.pixels);
  const i32 row = t / a.slice, v = t - row * a.slice, channel = (from + v) * HN_W, width = a.slice * HN_W;
  const bool mine = row < a.rows && from + v < a.vectors;
  const i64 base = (i64)(blockIdx.x / HN_BLOCKS) * a.image + channel;
  HN_GRID_GO();
  if (HN_BLOCKS > 1) hn_cluster_arrive(); /* nobody writes to a block that has not begun */
  const i32 row1 = t / HN_LANES1, row2 = t / HN_LANES2;
#if HN_HELD1
  u32 w1[HN_CHUNK1 * HN_PER1][4];
  hn_weights1(&a, from, row1, w1);
#endif
#if HN_HELD2
  u32 w2[HN_CHUNK2 * HN_PER2][4];
  hn_weights2(&a, from, row2, w2);
#endif
  hn_squeeze_touch(&a.inner, a.inner_bytes);
  hn_squeeze_touch(&a.outer, a.outer_bytes);
  HN_GRID_WAIT();

  float sum[HN_W];
  HN_UNROLL for (int k = 0; k < HN_W; k++) sum[k] = 0;
  for (i32 p = begin + row; mine && p < end; p += HN_SUMMED * a.rows) {
    u32 r[HN_SUMMED][4];
    HN_UNROLL for (int u = 0; u < HN_SUMMED; u++)
      if (p + u * a.rows < end) hn_ld_words(r[u], (const char *)a.x + (base + (i64)(p + u * a.rows) * a.pixel) * HN_SIZE, 16);
    HN_UNROLL for (int u = 0; u < HN_SUMMED; u++)
      if (p + u * a.rows < end) { HN_UNROLL for (int k = 0; k < HN_W; k++) sum[k] += hn_words(r[u], k); }
  }
  if (row < a.rows) { HN_UNROLL for (int k = 0; k < HN_W; k++) sums[(row * a.slice + v) * HN_W + k] = sum[k]; }
  HN_SYNC();
  for (i32 i = t; i < a.groups * width; i += HN_THREADS) {
    const i32 g = i / width, c = i - g * width;
    float s = 0;
    for (i32 k = g; k < a.rows; k += a.groups) s += sums[k * width + c];
    group[i] = s;
  }
  HN_SYNC();
  for (i32 c = t; c < width; c += HN_THREADS) {
    float s = 0;
    for (i32 g = 0; g < a.groups; g++) s += group[g * width + c];
    mean[c] = s * a.inverse;
  }
  HN_SYNC();

  const i32 padded = a.hidden_vectors * HN_W;
  float x1[HN_PER1][HN_W];
  hn_factors(mean, a.slice, HN_LANES1, HN_PER1, x1);
  if (HN_BLOCKS > 1) hn_cluster_wait();
#if HN_HELD1
  hn_partial(&a, (int)rank, row1, w1, x1, partial);
#else
  for (i32 p = 0; p < HN_PASSES1; p += HN_CHUNK1) {
    u32 w1[HN_CHUNK1 * HN_PER1][4];
    hn_weights1(&a, from, row1 + p * HN_ROWS1, w1);
    hn_partial(&a, (int)rank, row1 + p * HN_ROWS1, w1, x1, partial);
  }
#endif
  if (HN_BLOCKS > 1)
    hn_cluster_sync();
  else
    HN_SYNC();
  for (i32 h = t; h < padded; h += HN_THREADS) {
    float s = 0;
    if (h < a.hidden) {
      HN_UNROLL for (int b = 0; b < HN_BLOCKS; b++) s += partial[b * padded + h];
      s = hn_epilogue1(s, h, 0, &a.inner);
    }
    hidden[h] = s;
  }
  HN_SYNC();
  float x2[HN_PER2][HN_W];
  hn_factors(hidden, a.hidden_vectors, HN_LANES2, HN_PER2, x2);
#if HN_HELD2
  hn_gates(&a, from, row2, w2, x2, gate);
#else
  for (i32 p = 0; p < HN_PASSES2; p += HN_CHUNK2) {
    u32 w2[HN_CHUNK2 * HN_PER2][4];
    hn_weights2(&a, from, row2 + p * HN_ROWS2, w2);
    hn_gates(&a, from, row2 + p * HN_ROWS2, w2, x2, gate);
  }
#endif
  HN_SYNC();

  if (!mine) return;
  float g[HN_W];
  HN_UNROLL for (int k = 0; k < HN_W; k++) g[k] = gate[v * HN_W + k];
  for (i32 p = begin + row; p < end; p += HN_UNROLLED * a.rows) {
    hn_raw r[HN_UNROLLED];
    HN_UNROLL for (int u = 0; u < HN_UNROLLED; u++)
      if (p + u * a.rows < end) hn_fetch(&a, base + (i64)(p + u * a.rows) * a.pixel, &r[u]);
    HN_UNROLL for (int u = 0; u < HN_UNROLLED; u++)
      if (p + u * a.rows < end) hn_finish(&a, base + (i64)(p + u * a.rows) * a.pixel, channel, &r[u], g);
  }
}
