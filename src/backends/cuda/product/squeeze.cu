/* Squeeze and excitation: y = program(x, gate, ...), gate = f2(W2 f1(W1 average(x) + b1) + b2), an average and a gate a
 * channel of an image.
 *
 * A cluster has an image, or a block where there are no clusters. Its blocks divide the channels into slices and the
 * pixels into parts. W1 is linear: every block multiplies the sums of its own channels over its own pixels, and all
 * blocks get all blocks' products, HN_SQUEEZE hidden numbers from each; that is the one time that they meet. Each then
 * makes the gates of its own slice, and what it read first is read again while it is near.
 *
 * Prefix: HN_T, HN_SIZE; HN_W: elements of 16 bytes; HN_THREADS; HN_BLOCKS: of a cluster; hn_epilogue1 and hn_inner4,
 * f1 and f2 with their biases; HN_UNROLLED: pixels that a thread has on their way; hn_raw, hn_fetch and hn_finish: a
 * vector of what the program reads, and the program. */
#include "squeeze_args.h"

#define hn_words HN_JOIN(hn_word_, HN_T)

enum { HN_SUMMED = 4 }; /* pixels that a thread has on their way to its sums */

/* Weights of the block's slice, while the kernel before still runs. */
HN_FN void hn_squeeze_weights(const hn_squeeze_args *a, float *shared, i32 from) {
  u16 *first = (u16 *)(shared + a->at_first), *last = (u16 *)(shared + a->at_last);
  const u16 *w1 = (const u16 *)a->first, *w2 = (const u16 *)a->last;
  for (i32 i = (i32)threadIdx.x; i < a->hidden * a->slice; i += HN_THREADS) {
    const i32 row = i / a->slice, v = i - row * a->slice;
    const bool there = from + v < a->vectors;
    hn_cp_async16(first + (i64)i * 8, w1 + (there ? (i64)row * a->vectors + from + v : 0) * 8, there ? 16 : 0);
  }
  for (i32 i = (i32)threadIdx.x; i < a->slice * HN_W * a->hidden_vectors; i += HN_THREADS) {
    const bool there = from * HN_W + i / a->hidden_vectors < a->channels;
    hn_cp_async16(last + (i64)i * 8, w2 + (there ? (i64)from * HN_W * a->hidden_vectors + i : 0) * 8, there ? 16 : 0);
  }
  hn_cp_async_commit();
}

/* The product of a row of weights with n vectors of floats, by 2^lanes threads side by side; all of them get it. */
HN_FN float hn_squeeze_dot(const void *weights, const float *x, i32 n, i32 lanes) {
  const i32 lane = (i32)threadIdx.x & ((1 << lanes) - 1);
  float sum = 0;
  for (i32 v = lane; v < n; v += 1 << lanes) {
    u32 w[4];
    const u32 *at = (const u32 *)weights + 4 * v;
    HN_UNROLL for (int k = 0; k < 4; k++) w[k] = at[k];
    HN_UNROLL for (int k = 0; k < HN_W; k++) sum += hn_words(w, k) * x[v * HN_W + k];
  }
  for (i32 m = (1 << lanes) >> 1; m; m >>= 1) sum += hn_shfl_xor(sum, m);
  return sum;
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
  hn_squeeze_weights(&a, shared, from);
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
  HN_CP_ASYNC_WAIT(0);
  HN_SYNC();

  if (HN_BLOCKS > 1) hn_cluster_wait();
  const i32 lane = t & ((1 << a.lanes_first) - 1), padded = a.hidden_vectors * HN_W;
  for (i32 first = 0; first < a.hidden; first += HN_THREADS >> a.lanes_first) {
    const i32 h = first + (t >> a.lanes_first);
    const float s = hn_squeeze_dot((const u16 *)(shared + a.at_first) + (i64)min(h, a.hidden - 1) * a.slice * 8, mean, a.slice,
                                   a.lanes_first);
    if (h >= a.hidden) continue;
    if (HN_BLOCKS == 1) {
      if (!lane) partial[h] = s;
    } else {
      for (i32 b = lane; b < HN_BLOCKS; b += 1 << a.lanes_first) hn_cluster_store(partial + (i32)rank * padded + h, (u32)b, s);
    }
  }
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
  for (i32 first = 0; first < width; first += HN_THREADS >> a.lanes_last) {
    const i32 c = first + (t >> a.lanes_last);
    const float s = hn_squeeze_dot((const u16 *)(shared + a.at_last) + (i64)min(c, width - 1) * a.hidden_vectors * 8, hidden,
                                   a.hidden_vectors, a.lanes_last);
    if (c < width && !(t & ((1 << a.lanes_last) - 1))) gate[c] = s;
  }
  HN_SYNC();
  for (i32 c = t * 4; c < width; c += HN_THREADS * 4) {
    float s[4];
    HN_UNROLL for (int k = 0; k < 4; k++) s[k] = gate[c + k];
    hn_inner4(s, from * HN_W + c, 0, &a.outer);
    HN_UNROLL for (int k = 0; k < 4; k++) gate[c + k] = s[k];
  }
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
