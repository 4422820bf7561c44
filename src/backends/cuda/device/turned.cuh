/* How products of warpgroups end whose rows are output channels and whose columns are pixels: through panels of pixels
 * x 64 channels in shared memory, swizzled over 128 bytes, where what is added lies before. Wanted: HN_T (f16, bf16),
 * HN_STAGED, the generated epilogue. */
#ifndef HN_TURNED_CUH
#define HN_TURNED_CUH

#include "pairs.cuh"
#include "transposed.cuh"

/* Where in a panel this thread's rows of matrices lie, and its channel of the panel's 64: the other one is eight
 * further. */
HN_FN u32 place_in_panel(u32 warp, u32 lane) {
  return (lane / 16 * 8 + lane % 8) * 128 + (((warp * 2 + lane / 8 % 2) ^ lane % 8) << 4);
}
HN_FN i32 channel_in_panel(u32 warp, u32 lane) { return (i32)(warp * 16 + lane / 4); }

/* The epilogue's vectors at this thread's two channels. */
HN_FN void channel_vectors(float (*v)[4], i32 channel, const hn_epilogue_args *e) {
  float pairs[HN_EPILOGUE_VECTORS + 1][4];
  hn_epilogue_fragment_vectors(pairs, channel / 2 * 2, e);
  HN_UNROLL for (u32 k = 0; k < HN_EPILOGUE_VECTORS; k++) {
    v[k][0] = v[k][1] = channel % 2 ? pairs[k][1] : pairs[k][0];
    v[k][2] = v[k][3] = channel % 2 ? pairs[k][3] : pairs[k][2];
  }
}

/* `pixels` pixels, sixteen at a time (at the end eight): of each eight this thread has two, of its channel and of that
 * eight further. A fragment of the epilogue's has two channels side by side, of which this thread has one. to: the
 * thread's place in the panel. */
HN_FN void finish_panel(const float *d, u32 pixels, float (*vectors)[4], u32 to, i32 channel,
                        const hn_epilogue_args *e) {
  HN_UNROLL for (u32 k = 0; k < pixels / 8; k += 2, to += 16 * 128) {
    const u32 four = k + 2 <= pixels / 8;
    u32 v[4];
#if HN_STAGED
    u32 added[4] = {0, 0, 0, 0};
    float other[8];
    load_transposed(to, added, four ? 4 : 2);
    HN_PASTE(unpack_, HN_T)(added, other);
#endif
    HN_UNROLL for (u32 i = 0; i < 2; i++) {
      if (i && !four) continue;
      const float *p = d + (k + i) * 4;
      float x[8] = {p[0], 0, p[1], 0, p[2], 0, p[3], 0};
#if HN_STAGED
      const float *o = other + i * 4, z[8] = {o[0], 0, o[1], 0, o[2], 0, o[3], 0};
#else
      const float *z = 0;
#endif
      hn_epilogue_fragment(x, vectors, z, channel, 0, 0, 0, e);
      v[2 * i] = HN_PASTE(HN_PACK_, HN_T)(x[0], x[2]), v[2 * i + 1] = HN_PASTE(HN_PACK_, HN_T)(x[4], x[6]);
    }
    store_transposed(to, v, four ? 4 : 2);
  }
}

#endif
