/* max(a + b, 0) on a GPU, 16 bytes a thread. */

HN_FN float one(float a, float b) {
  const float s = a + b;
  return s < 0.0f ? 0.0f : s; /* NaN stays */
}

HN_KERNEL(add_relu_f32, add_relu_args, args) {
  const u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  const float *a = (const float *)args.a + i, *b = (const float *)args.b + i;
  float *y = (float *)args.y + i;
  if (i + 4 <= args.n && !(((u64)a | (u64)b | (u64)y) & 15)) {
    hn_u4 v = hn_ld16(a), w = hn_ld16(b);
    HN_UNROLL
    for (int k = 0; k < 4; k++) v.v[k] = hn_bits(one(hn_from_bits(v.v[k]), hn_from_bits(w.v[k])));
    hn_st16(y, v);
  } else {
    for (u64 k = 0; k < 4 && i + k < args.n; k++) y[k] = one(a[k], b[k]);
  }
}

/* Types of two bytes differ in how they become floats. The sum is rounded before Relu, as Add alone rounds it. */
#define OF_TWO_BYTES(name, read, write)                                                                \
  HN_KERNEL(name, add_relu_args, args) {                                                               \
    const u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 8;                                    \
    const u16 *a = (const u16 *)args.a + i, *b = (const u16 *)args.b + i;                              \
    u16 *y = (u16 *)args.y + i;                                                                        \
    if (i + 8 <= args.n && !(((u64)a | (u64)b | (u64)y) & 15)) {                                       \
      hn_u4 v = hn_ld16(a), w = hn_ld16(b);                                                            \
      HN_UNROLL                                                                                        \
      for (int k = 0; k < 4; k++) {                                                                    \
        const u32 low = write(one(read((u16)v.v[k]), read((u16)w.v[k])));                              \
        const u32 high = write(one(read((u16)(v.v[k] >> 16)), read((u16)(w.v[k] >> 16))));             \
        v.v[k] = low | high << 16;                                                                     \
      }                                                                                                \
      hn_st16(y, v);                                                                                   \
    } else {                                                                                           \
      for (u64 k = 0; k < 8 && i + k < args.n; k++) y[k] = write(one(read(a[k]), read(b[k])));         \
    }                                                                                                  \
  }
OF_TWO_BYTES(add_relu_f16, hn_f16, hn_to_f16)
OF_TWO_BYTES(add_relu_bf16, hn_bf16, hn_to_bf16)
