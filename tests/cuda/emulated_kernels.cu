/* Kernels of test_emulated: what must work, and one for each mistake that must be noticed. */
#include "prelude.cuh"

typedef struct test_args {
  void *a, *b, *out;
  i32 n, mode;
} test_args;

HN_KERNEL(shuffles, test_args, args) { /* sums of warps, maxima, ballots */
  const float *a = (const float *)args.a;
  float *out = (float *)args.out;
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const float sum = hn_warp_sum(a[i]), most = hn_warp_max(a[i]), next = hn_shfl(a[i], (int)threadIdx.x + 1);
  out[4 * i] = sum, out[4 * i + 1] = most, out[4 * i + 2] = next;
  out[4 * i + 3] = (float)hn_shfl_xor_u32((u32)i, 5);
}

HN_KERNEL_BOUNDS(block_sum, test_args, args, 256, 1) {
  const float *a = (const float *)args.a;
  HN_SHARED float part[256];
  const int t = (int)threadIdx.x;
  part[t] = a[blockIdx.x * 256 + t];
  HN_SYNC();
  for (int step = 128; step; step >>= 1) {
    if (t < step) part[t] += part[t + step];
    HN_SYNC();
  }
  if (!t) {
    ((float *)args.out)[blockIdx.x] = part[0];
    hn_atomic_add((float *)args.out + gridDim.x, part[0]);
    hn_atomic_add_u32((u32 *)args.out + gridDim.x + 1, 1);
  }
}

HN_KERNEL_BOUNDS(forgets_barrier, test_args, args, 256, 1) { /* right only if the threads come in one order */
  HN_SHARED float part[256];
  const int t = (int)threadIdx.x;
  part[t] = ((const float *)args.a)[t];
  if (args.mode) HN_SYNC();
  ((float *)args.out)[t] = part[255 - t];
}

/* 16 x 8 = 16 x 16 . 16 x 8 through cp.async, ldmatrix and mma; a row-major, b row-major (k, n). mode 0 f16,
 * 1 bf16, 2 tf32 (16 x 8 . 8 x 8, from f32); + 4: without waiting for the copies */
HN_KERNEL(product, test_args, args) {
  HN_DYNAMIC_SHARED(u16, tile);
  const u32 lane = threadIdx.x;
  float d[4] = {0, 0, 0, 0};
  u32 fa[4], fb[4];
  if ((args.mode & 3) == 2) {
    const float *a = (const float *)args.a, *b = (const float *)args.b;
    for (int i = 0; i < 4; i++) fa[i] = hn_to_tf32(a[(lane / 4 + 8 * (i % 2)) * 8 + lane % 4 + 4 * (i / 2)]);
    for (int i = 0; i < 2; i++) fb[i] = hn_to_tf32(b[(lane % 4 + 4 * i) * 8 + lane / 4]);
    hn_mma_tf32(d, fa, fb);
  } else {
    u16 *b = tile + 256;
    hn_cp_async16(tile + 8 * lane, (const u16 *)args.a + 8 * lane, 16);
    if (lane < 16) hn_cp_async16(b + 8 * lane, (const u16 *)args.b + 8 * lane, 16);
    hn_cp_async_commit();
    if (!(args.mode & 4)) HN_CP_ASYNC_WAIT(0);
    HN_SYNC();
    hn_ldmatrix4(fa, tile + (lane % 16) * 16 + lane / 16 * 8);
    hn_ldmatrix4_trans(fb, b + lane % 16 * 8);
    if (args.mode & 1)
      hn_mma_bf16(d, fa, fb);
    else
      hn_mma_f16(d, fa, fb);
  }
  for (int i = 0; i < 4; i++)
    ((float *)args.out)[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = d[i];
}

/* 16 x 8 = 16 x 32 . 32 x 8 of codes; a row-major, b column after column. mode 0: a is u8, 1: i8. Behind the sums
 * codes of four of them, as u8 and as i8; a product of four of a and b, and bytes of a. */
HN_KERNEL(product_of_codes, test_args, args) {
  HN_SHARED u32 tile[16 * 8];
  const u32 lane = threadIdx.x;
  i32 d[4] = {0, 1, 2, 3}, *out = (i32 *)args.out;
  u32 fa[4], fb[2];
  for (u32 i = lane; i < 128; i += 32) tile[i] = ((const u32 *)args.a)[i];
  HN_SYNC();
  hn_ldmatrix4(fa, (u8 *)tile + lane % 16 * 32 + lane / 16 * 16);
  for (u32 i = 0; i < 2; i++) fb[i] = ((const u32 *)args.b)[lane / 4 * 8 + 4 * i + lane % 4];
  if (args.mode)
    hn_mma_i8(d, fa, fb);
  else
    hn_mma_u8(d, fa, fb);
  for (int i = 0; i < 4; i++) out[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = d[i];
  ((u32 *)args.out)[128 + lane] = hn_codes_u8(d[0], d[1], d[2], d[3]);
  ((u32 *)args.out)[160 + lane] = hn_codes_i8(d[0], d[1], d[2], d[3]);
  out[192 + lane] = args.mode ? hn_dot4_i8(fa[0], fb[0], 5) : hn_dot4_u8(fa[0], fb[0], 5);
  out[224 + lane] = (i32)hn_bytes(fa[0], fa[1], 0x7240);
  out[256 + lane] = (i32)hn_max_u16x2(fa[0], fa[1]), out[288 + lane] = (i32)hn_max_i16x2(fa[0], fa[1]);
}

HN_KERNEL(conversions, test_args, args) { /* f32 bits -> f16, bf16 bits */
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((i32)i >= args.n) return;
  const float x = ((const float *)args.a)[i];
  ((u32 *)args.out)[i] = hn_to_f16(x) | (u32)hn_to_bf16(x) << 16;
}

HN_KERNEL(differences, test_args, args) { /* of codes as the last bits of 1024 (f16) and of 128 (bf16) */
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x, codes = (i & 15) | (i >> 4 & 15) << 16, zero = (i >> 8 & 15) * 0x10001u;
  if ((i32)i >= args.n) return;
  ((u32 *)args.out)[2 * i] = hn_sub_f16x2(codes | 0x64006400u, zero | 0x64006400u);
  ((u32 *)args.out)[2 * i + 1] = hn_sub_bf16x2(codes | 0x43004300u, zero | 0x43004300u);
}

HN_KERNEL(plus_one, test_args, args) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((i32)i < args.n) ((float *)args.out)[i] = ((const float *)args.a)[i] + 1;
}

HN_KERNEL(mistake, test_args, args) {
  float *out = (float *)args.out;
  HN_DYNAMIC_SHARED(float, shared);
  const int t = (int)threadIdx.x;
  switch (args.mode) {
  case 0: /* a barrier that some do not reach */
    if (t < 32) return;
    HN_SYNC();
    break;
  case 1: /* two barriers that are not one */
    if (t < 32)
      HN_SYNC();
    else
      HN_SYNC();
    break;
  case 2: /* a shuffle of half a warp */
    if (t % 2) out[t] = hn_shfl_xor((float)t, 2);
    break;
  case 3: /* a warp at two places */
    if (t % 32 < 7)
      HN_SYNC_WARP();
    else
      out[t] = hn_shfl((float)t, 0);
    break;
  case 4: out[args.n] = 1; break;            /* behind the output */
  case 5: ((float *)64)[t] = 1; break;       /* nowhere */
  case 6: out[0] = hn_ld16((u8 *)out + 4).v[0]; break; /* misaligned */
  case 7: shared[args.n] = 1; break;         /* behind shared memory */
  case 8: hn_cp_async16(out, out, 16); break; /* to global memory */
  case 9: out[-1] = 1; break;
  default: break;
  }
}
