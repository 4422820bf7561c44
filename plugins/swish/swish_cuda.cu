/* Swish on a GPU. A thread does 16 bytes: 4 floats, or 8 numbers of two bytes; the last one may do fewer. The struct
 * swish_args (n, x, y, attributes) comes from swish.json. */

HN_FN float one(float x, float beta) { return x / (1.0f + expf(-beta * x)); }

HN_KERNEL(swish_f32, swish_args, a) {
  const u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  const float *x = (const float *)a.x + i;
  float *y = (float *)a.y + i;
  if (i + 4 <= a.n && !(((u64)x | (u64)y) & 15)) {
    hn_u4 v = hn_ld16(x);
    HN_UNROLL
    for (int k = 0; k < 4; k++) v.v[k] = hn_bits(one(hn_from_bits(v.v[k]), a.beta));
    hn_st16(y, v);
  } else {
    for (u64 k = 0; k < 4 && i + k < a.n; k++) y[k] = one(x[k], a.beta);
  }
}

/* Types of two bytes differ in how they become floats. */
#define OF_TWO_BYTES(name, read, write)                                                                    \
  HN_KERNEL(name, swish_args, a) {                                                                        \
    const u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 8;                                        \
    const u16 *x = (const u16 *)a.x + i;                                                                   \
    u16 *y = (u16 *)a.y + i;                                                                               \
    if (i + 8 <= a.n && !(((u64)x | (u64)y) & 15)) {                                                       \
      hn_u4 v = hn_ld16(x);                                                                                \
      HN_UNROLL                                                                                            \
      for (int k = 0; k < 4; k++)                                                                          \
        v.v[k] = (u32)write(one(read((u16)v.v[k]), a.beta)) | (u32)write(one(read((u16)(v.v[k] >> 16)), a.beta)) << 16; \
      hn_st16(y, v);                                                                                       \
    } else {                                                                                               \
      for (u64 k = 0; k < 8 && i + k < a.n; k++) y[k] = write(one(read(x[k]), a.beta));                    \
    }                                                                                                      \
  }
OF_TWO_BYTES(swish_f16, hn_f16, hn_to_f16)
OF_TWO_BYTES(swish_bf16, hn_bf16, hn_to_bf16)
