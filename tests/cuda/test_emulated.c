/* The emulator's own tests: what it runs is right, and every mistake that a kernel or a caller of the driver
 * may make is noticed. */
#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/driver/dl_cuda.h"
#include "backends/cuda/driver/dl_nvrtc.h"
#include "base/os.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct test_args {
  void *a, *b, *out;
  int n, mode;
} test_args;

enum { N = 4096 };
static hn_dl_cuda cu;
static hn_dl_nvrtc rtc;
static CUcontext context;
static CUmodule module;
static CUstream stream[3];
static float *host[2]; /* pinned, N + 16 floats each */
static CUdeviceptr device[3];
static void (*reset)(void);

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static char *read_text(const char *path) {
  static char text[65536];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

static nvrtcResult build(const char *text, char **object, char *log, size_t log_bytes) {
  const char *const names[] = {"prelude.cuh", "types.h"};
  const char *const headers[] = {hn_cuda_text("prelude"), hn_cuda_text("types")};
  const char *const options[] = {"--gpu-architecture=sm_80"};
  nvrtcProgram p;
  size_t size;
  assert_int_equal(rtc.nvrtcCreateProgram(&p, text, "kernels.cu", 2, headers, names), NVRTC_SUCCESS);
  const nvrtcResult r = rtc.nvrtcCompileProgram(p, 1, options);
  assert_int_equal(rtc.nvrtcGetProgramLogSize(p, &size), NVRTC_SUCCESS);
  char *all = malloc(size);
  assert_int_equal(rtc.nvrtcGetProgramLog(p, all), NVRTC_SUCCESS);
  snprintf(log, log_bytes, "%s", all);
  free(all);
  *object = NULL;
  if (r == NVRTC_SUCCESS) {
    assert_int_equal(rtc.nvrtcGetCUBINSize(p, &size), NVRTC_SUCCESS);
    *object = malloc(size);
    assert_int_equal(rtc.nvrtcGetCUBIN(p, *object), NVRTC_SUCCESS);
  }
  rtc.nvrtcDestroyProgram(&p);
  return r;
}

static void open_context(void) {
  OK(cu.cuInit(0));
  OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
  OK(cu.cuCtxSetCurrent(context));
  char log[4096], *object;
  if (build(read_text("tests/cuda/emulated_kernels.cu"), &object, log, sizeof log) != NVRTC_SUCCESS)
    fail_msg("%s", log);
  OK(cu.cuModuleLoadData(&module, object));
  free(object);
  for (int i = 0; i < 3; i++) OK(cu.cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 2; i++) OK(cu.cuMemHostAlloc((void **)&host[i], (N + 16) * sizeof(float), 0));
  for (int i = 0; i < 3; i++) OK(cu.cuMemAlloc(&device[i], N * sizeof(float)));
}

static void close_context(void) {
  OK(cu.cuModuleUnload(module));
  for (int i = 0; i < 3; i++) OK(cu.cuStreamDestroy(stream[i]));
  for (int i = 0; i < 2; i++) OK(cu.cuMemFreeHost(host[i]));
  for (int i = 0; i < 3; i++) OK(cu.cuMemFree(device[i]));
  OK(cu.cuDevicePrimaryCtxRelease(0));
}

static int setup(void **state) {
  (void)state;
  char path[256] = "";
  hone_error error = {0};
  setenv("HONE_LIBCUDA", FAKE_CUDA, 1);
  setenv("HONE_LIBNVRTC", FAKE_NVRTC, 1);
  setenv("HONE_FAKE_QUIET", "1", 0);
  assert_int_equal(hn_dl_cuda_load(&cu, path, sizeof path, &error), HONE_OK);
  assert_int_equal(hn_dl_nvrtc_load(&rtc, path, sizeof path, &error), HONE_OK);
  void *lib = hn_library_open(FAKE_CUDA, &error);
  void *symbol = hn_library_symbol(lib, "hn_fake_reset");
  assert_non_null(symbol);
  memcpy(&reset, &symbol, sizeof symbol);
  open_context();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  close_context();
  return 0;
}

static CUresult launch_clusters(CUstream s, CUfunction f, unsigned blocks, unsigned cluster, unsigned threads,
                                unsigned shared, test_args args) {
  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
  attribute.value.clusterDim.x = cluster;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  const CUlaunchConfig c = {.gridDimX = blocks,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = threads,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .sharedMemBytes = shared,
                            .hStream = s,
                            .attrs = &attribute,
                            .numAttrs = cluster > 0};
  return cu.cuLaunchKernelEx(&c, f, (void *[]){&args}, NULL);
}

static CUresult launch_on(CUstream s, const char *name, unsigned blocks, unsigned threads, unsigned shared,
                          test_args args) {
  CUfunction f;
  OK(cu.cuModuleGetFunction(&f, module, name));
  return launch_clusters(s, f, blocks, 0, threads, shared, args);
}

static void *at(int i) { return (void *)(uintptr_t)device[i]; }

static void upload(int to, const void *from, size_t bytes) {
  OK(cu.cuMemcpyAsync(device[to], (CUdeviceptr)(uintptr_t)from, bytes, stream[0]));
}

static void *download(int from, size_t bytes) {
  OK(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host[1], device[from], bytes, stream[0]));
  OK(cu.cuStreamSynchronize(stream[0]));
  return host[1];
}

/* Runs the kernel on device 0 (and 1) to 2; the result. */
static void *run(const char *name, unsigned blocks, unsigned threads, unsigned shared, int n, int mode,
                 size_t bytes) {
  OK(launch_on(stream[0], name, blocks, threads, shared, (test_args){at(0), at(1), at(2), n, mode}));
  return download(2, bytes);
}

static void test_shuffles(void **state) {
  (void)state;
  for (int i = 0; i < 256; i++) host[0][i] = (float)(i * 7 % 31);
  upload(0, host[0], 1024);
  const float *out = run("shuffles", 4, 64, 0, 0, 0, 4096);
  for (int i = 0; i < 256; i++) {
    float sum = 0, most = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) sum += host[0][k], most = fmaxf(most, host[0][k]);
    assert_float_equal(out[4 * i], sum, 0);
    assert_float_equal(out[4 * i + 1], most, 0);
    assert_float_equal(out[4 * i + 2], host[0][i / 32 * 32 + (i + 1) % 32], 0);
    assert_float_equal(out[4 * i + 3], (float)(i ^ 5), 0);
  }
}

static void test_barriers_and_atomics(void **state) {
  (void)state;
  for (int i = 0; i < 2048; i++) host[0][i] = (float)(i % 64);
  upload(0, host[0], 8192);
  OK(cu.cuMemsetD8Async(device[2], 0, 1024, stream[0]));
  const float *out = run("block_sum", 8, 256, 0, 0, 0, 1024);
  for (int b = 0; b < 8; b++) assert_float_equal(out[b], 4 * 2016, 0);
  assert_float_equal(out[8], 8 * 4 * 2016, 0);
  unsigned count;
  memcpy(&count, &out[9], 4);
  assert_int_equal(count, 8);
}

static void test_forgotten_barrier(void **state) {
  (void)state;
  for (int mode = 0; mode < 2; mode++) {
    int wrong = 0;
    for (int i = 0; i < 256; i++) host[0][i] = (float)i;
    upload(0, host[0], 1024);
    for (int k = 0; k < 4; k++) {
      const float *out = run("forgets_barrier", 1, 256, 0, 0, mode, 1024);
      for (int i = 0; i < 256; i++) wrong += !(out[i] == (float)(255 - i));
    }
    if (mode)
      assert_int_equal(wrong, 0);
    else
      assert_true(wrong > 0);
  }
}

/* Every block tells all others of its cluster its number, by writing there and by being read. mode 1: without
 * a barrier; 2: it returns before it is read; 3: to a block that is none. */
static const char cluster_text[] =
    "#include \"prelude.cuh\"\n"
    "typedef struct test_args { void *a, *b, *out; i32 n, mode; } test_args;\n"
    "HN_KERNEL(meet, test_args, args) {\n"
    "  HN_DYNAMIC_SHARED(float, shared);\n"
    "  float *out = (float *)args.out + blockIdx.x * 32, x[8];\n"
    "  const u32 t = threadIdx.x, n = (u32)args.n, rank = blockIdx.x % n, next = (rank + 1) % n;\n"
    "  if (t < 8) shared[32 + t] = (float)(100 * blockIdx.x + t);\n"
    "  hn_cluster_arrive();\n"
    "  hn_cluster_wait();\n"
    "  if (t < n) hn_cluster_store(shared + rank, args.mode == 3 ? n : t, (float)blockIdx.x);\n"
    "  if (args.mode != 1) hn_cluster_sync();\n"
    "  if (t < n) out[t] = shared[t];\n"
    "  if (args.mode == 2 && next == 0) return;\n"
    "  hn_cluster_load8(shared + 32, next, x);\n"
    "  if (t < 8) out[16 + t] = x[t];\n"
    "  hn_cluster_sync();\n"
    "}\n";

static void test_clusters(void **state) {
  (void)state;
  enum { BLOCKS = 12, SIZE = 4, BYTES = 64 * sizeof(float) };
  char log[512], *object;
  CUmodule m;
  CUfunction f;
  test_args args = {at(0), at(1), at(2), SIZE, 0};
  if (build(cluster_text, &object, log, sizeof log) != NVRTC_SUCCESS) fail_msg("%s", log);
  OK(cu.cuModuleLoadData(&m, object));
  free(object);
  OK(cu.cuModuleGetFunction(&f, m, "meet"));
  assert_int_equal(launch_clusters(stream[0], f, BLOCKS, SIZE, 32, BYTES, args), CUDA_ERROR_NOT_SUPPORTED);
  setenv("HONE_FAKE_ARCH", "90", 1);
  assert_int_equal(launch_clusters(stream[0], f, BLOCKS, 5, 32, BYTES, args), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(launch_clusters(stream[0], f, 16, 16, 32, BYTES, args), CUDA_ERROR_INVALID_VALUE);
  OK(launch_clusters(stream[0], f, BLOCKS, SIZE, 32, BYTES, args));
  const float *out = download(2, BLOCKS * 32 * sizeof(float));
  for (int b = 0; b < BLOCKS; b++) {
    const int first = b / SIZE * SIZE;
    for (int k = 0; k < SIZE; k++) assert_float_equal(out[b * 32 + k], (float)(first + k), 0);
    for (int k = 0; k < 8; k++)
      assert_float_equal(out[b * 32 + 16 + k], (float)(100 * (first + (b + 1) % SIZE) + k), 0);
  }
  args.mode = 1; /* what was not waited for is NaN in some block */
  OK(launch_clusters(stream[0], f, BLOCKS, SIZE, 32, BYTES, args));
  out = download(2, BLOCKS * 32 * sizeof(float));
  int unknown = 0;
  for (int b = 0; b < BLOCKS; b++)
    for (int k = 0; k < SIZE; k++) unknown += isnan(out[b * 32 + k]);
  assert_true(unknown > 0);
  OK(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  args.mode = 0, args.n = 16;
  OK(launch_clusters(stream[0], f, 16, 16, 32, BYTES, args));
  OK(cu.cuStreamSynchronize(stream[0]));
  for (args.mode = 2, args.n = SIZE; args.mode < 4; args.mode++) {
    OK(launch_clusters(stream[0], f, BLOCKS, SIZE, 32, BYTES, args));
    assert_int_equal(cu.cuStreamSynchronize(stream[0]), CUDA_ERROR_LAUNCH_FAILED);
    reset();
  }
  OK(cu.cuModuleUnload(m));
  unsetenv("HONE_FAKE_ARCH");
}

/* Small integers are exact in all three types. */
static void test_products(void **state) {
  (void)state;
  static const char *const name[] = {"f16", "bf16", "tf32"};
  for (int kind = 0; kind < 3; kind++) {
    const int depth = kind == 2 ? 8 : 16;
    float a[16][16], b[16][8];
    unsigned char bytes[2][1024] = {{0}};
    for (int m = 0; m < 2; m++)
      for (int i = 0; i < (m ? 8 : 16) * depth; i++) {
        const float x = (float)((i * 5 + m * 3) % 17 - 8);
        const _Float16 h = (_Float16)x;
        unsigned bits;
        memcpy(&bits, &x, 4);
        const unsigned short upper = (unsigned short)(bits >> 16);
        if (m)
          b[i / 8][i % 8] = x;
        else
          a[i / depth][i % depth] = x;
        if (kind == 2)
          memcpy(bytes[m] + 4 * i, &x, 4);
        else
          memcpy(bytes[m] + 2 * i, kind ? (const void *)&upper : (const void *)&h, 2);
      }
    upload(0, bytes[0], 1024);
    upload(1, bytes[1], 1024);
    const float *out = run("product", 1, 32, 1024, 0, kind, 512);
    for (int r = 0; r < 16; r++)
      for (int c = 0; c < 8; c++) {
        float want = 0;
        for (int k = 0; k < depth; k++) want += a[r][k] * b[k][c];
        if (out[r * 8 + c] != want)
          fail_msg("%s (%d,%d): %g, want %g", name[kind], r, c, (double)out[r * 8 + c], (double)want);
      }
    if (kind == 2) continue;
    out = run("product", 1, 32, 1024, 0, kind + 4, 512); /* nobody waited for the copies */
    int nan = 0;
    for (int i = 0; i < 128; i++) nan += isnan(out[i]);
    assert_true(nan > 0);
  }
}

static int within(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

static void test_products_of_codes(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    unsigned char a[16][32];
    signed char b[8][32];
    for (int i = 0; i < 512; i++) a[i / 32][i % 32] = (unsigned char)(i * 37 % 251);
    for (int i = 0; i < 256; i++) b[i / 32][i % 32] = (signed char)(i * 11 % 7 - 3);
    upload(0, a, sizeof a);
    upload(1, b, sizeof b);
    const int *out = (const int *)(const void *)run("product_of_codes", 1, 32, 0, 0, kind, 1280);
    int beyond = 0;
    for (int r = 0; r < 16; r++)
      for (int c = 0; c < 8; c++) {
        const int lane = r % 8 * 4 + c / 2, i = r / 8 * 2 + c % 2;
        int want = i;
        for (int k = 0; k < 32; k++) want += (kind ? (signed char)a[r][k] : a[r][k]) * b[c][k];
        assert_int_equal(out[r * 8 + c], want);
        assert_int_equal((unsigned)out[128 + lane] >> 8 * i & 0xff, within(want, 0, 255));
        assert_int_equal((signed char)((unsigned)out[160 + lane] >> 8 * i), within(want, -128, 127));
        beyond += want > 255 || want < 0;
      }
    assert_in_range(beyond, 1, 127);
    for (int lane = 0; lane < 32; lane++) {
      const unsigned char *x = &a[lane / 4][lane % 4 * 4], *y = &a[lane / 4 + 8][lane % 4 * 4];
      int want = 5;
      for (int k = 0; k < 4; k++) want += (kind ? (signed char)x[k] : x[k]) * b[lane / 4][lane % 4 * 4 + k];
      assert_int_equal(out[192 + lane], want);
      assert_int_equal((unsigned)out[224 + lane],
                       x[0] | (unsigned)y[0] << 8 | (unsigned)x[2] << 16 | (unsigned)y[3] << 24);
      for (int k = 0; k < 2; k++) {
        const unsigned u = x[2 * k] | (unsigned)x[2 * k + 1] << 8, v = y[2 * k] | (unsigned)y[2 * k + 1] << 8;
        assert_int_equal((unsigned)out[256 + lane] >> 16 * k & 0xffff, u > v ? u : v);
        assert_int_equal((unsigned)out[288 + lane] >> 16 * k & 0xffff, (short)u > (short)v ? u : v);
      }
    }
  }
}

static void test_conversions(void **state) {
  (void)state;
  hn_rng rng = {.state = 5};
  for (int i = 0; i < N; i++) {
    unsigned u = (unsigned)hn_rng_u64(&rng);
    if (i % 2) u = (u & 0x8fffffffu) | 0x30000000u; /* near f16's subnormal and normal range */
    if (i % 7 == 0) u &= 0xffffe000u;               /* ties */
    if (i % 7 == 1) u = (u & 0xffffe000u) | 0x1000;
    memcpy(&host[0][i], &u, 4);
    if (isnan(host[0][i])) host[0][i] = 65519.996f;
  }
  host[0][0] = 65520, host[0][1] = INFINITY, host[0][2] = 0x1p-25f, host[0][3] = 0x1.8p-25f;
  upload(0, host[0], N * 4);
  const unsigned *out = run("conversions", N / 128, 128, 0, N, 0, N * 4);
  for (int i = 0; i < N; i++) {
    const _Float16 h = (_Float16)host[0][i];
    unsigned short want;
    memcpy(&want, &h, 2);
    if ((out[i] & 0xffff) != want) fail_msg("%a: f16 %x, want %x", (double)host[0][i], out[i] & 0xffff, want);
    unsigned u = out[i] & 0xffff0000u, v;
    float b, step;
    memcpy(&b, &u, 4);
    v = u + 0x10000;
    memcpy(&step, &v, 4);
    if (isfinite(b) && isfinite(step))
      assert_true(fabs((double)b - (double)host[0][i]) <= fabs((double)step - (double)b) / 2 * 1.0000001);
  }
}

static void test_differences(void **state) {
  enum { CODES = 2048 };
  (void)state;
  const unsigned *out = run("differences", CODES / 128, 128, 0, CODES, 0, CODES * 8);
  for (int i = 0; i < CODES; i++)
    for (int half = 0; half < 2; half++) {
      const int want = (i >> 4 * half & 15) - (i >> 8 & 15);
      const unsigned short narrow = (unsigned short)(out[2 * i] >> 16 * half);
      const unsigned wide = out[2 * i + 1] >> 16 * half << 16;
      _Float16 h;
      float b;
      memcpy(&h, &narrow, sizeof h), memcpy(&b, &wide, sizeof b);
      assert_true((float)h == (float)want && b == (float)want);
    }
}

static void test_mistakes(void **state) {
  (void)state;
  static const char *const say[] = {
      "have returned", "line",    "returned",           "diverged",      "behind the allocation",
      "illegal",       "aligned", "behind its dynamic", "not in shared", "before the allocation"};
  for (int mode = 0; mode < 10; mode++) {
    const char *text = "";
    OK(launch_on(stream[0], "mistake", 2, 64, 256,
                 (test_args){at(0), at(1), at(2), mode == 7 ? 64 : N, mode}));
    const CUresult r = cu.cuStreamSynchronize(stream[0]);
    if (r != CUDA_ERROR_LAUNCH_FAILED && r != CUDA_ERROR_ILLEGAL_ADDRESS)
      fail_msg("mistake %d was not noticed (%d)", mode, (int)r);
    cu.cuGetErrorString(r, &text);
    if (!strstr(text, say[mode])) fail_msg("mistake %d: %s", mode, text);
    assert_int_equal(cu.cuStreamSynchronize(stream[0]), r); /* the context is lost */
    assert_int_equal(cu.cuMemAlloc(&device[2], 16), r);
    reset();
  }
  OK(cu.cuStreamSynchronize(stream[0]));
}

/* out = a + 1 on one stream, then out2 = out + 1 on another: without the event it is sometimes wrong. */
static int wrong_of(bool wait, bool reversed) {
  int wrong = 0;
  CUevent e;
  OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  CUstream first = stream[reversed ? 2 : 1], second = stream[reversed ? 1 : 2];
  for (int k = 0; k < 24; k++) {
    for (int i = 0; i < N; i++) host[0][i] = (float)(i + k);
    upload(0, host[0], N * 4);
    OK(cu.cuStreamSynchronize(stream[0]));
    OK(launch_on(first, "plus_one", N / 128, 128, 0, (test_args){at(0), NULL, at(1), N, 0}));
    if (wait) {
      OK(cu.cuEventRecord(e, first));
      OK(cu.cuStreamWaitEvent(second, e, 0));
    }
    OK(launch_on(second, "plus_one", N / 128, 128, 0, (test_args){at(1), NULL, at(2), N, 0}));
    OK(cu.cuStreamSynchronize(second));
    OK(cu.cuStreamSynchronize(first));
    const float *out = download(2, N * 4);
    wrong += !(out[9] == (float)(9 + k + 2));
  }
  OK(cu.cuEventDestroy(e));
  return wrong;
}

static void test_streams(void **state) {
  (void)state;
  for (int reversed = 0; reversed < 2; reversed++) {
    assert_int_equal(wrong_of(true, reversed), 0);
    assert_true(wrong_of(false, reversed) > 0);
  }
  /* What is read before waiting is not there yet; what is overwritten too early is lost. */
  host[0][0] = 3;
  host[1][0] = 5;
  upload(0, host[0], 4);
  OK(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host[1], device[0], 4, stream[0]));
  assert_float_equal(host[1][0], 5, 0);
  host[0][0] = 4;
  OK(cu.cuStreamSynchronize(stream[0]));
  assert_float_equal(host[1][0], 4, 0);
}

static void test_graphs(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphExec exec;
  CUevent fork, join, from, to;
  float ms = -1;
  OK(cu.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cu.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  OK(cu.cuEventCreate(&from, 0));
  OK(cu.cuEventCreate(&to, 0));
  for (int round = 0; round < 2; round++) { /* the second forgets to join */
    OK(cu.cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cu.cuEventRecordWithFlags(from, stream[0], CU_EVENT_RECORD_EXTERNAL));
    OK(cu.cuEventRecord(fork, stream[0]));
    OK(cu.cuStreamWaitEvent(stream[1], fork, 0));
    OK(launch_on(stream[0], "plus_one", 1, 128, 0, (test_args){at(0), NULL, at(1), 64, 0}));
    OK(launch_on(stream[1], "plus_one", 1, 128, 0,
                 (test_args){(float *)at(0) + 64, NULL, (float *)at(1) + 64, 64, 0}));
    OK(cu.cuEventRecord(join, stream[1]));
    if (!round) OK(cu.cuStreamWaitEvent(stream[0], join, 0));
    OK(launch_on(stream[0], "plus_one", 1, 128, 0, (test_args){at(1), NULL, at(2), 128, 0}));
    OK(cu.cuEventRecordWithFlags(to, stream[0], CU_EVENT_RECORD_EXTERNAL));
    assert_int_equal(cu.cuStreamEndCapture(stream[0], &graph),
                     round ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS);
    if (round) break;
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.cuGraphDestroy(graph));
    float least = INFINITY;
    for (int k = 0; k < 8; k++) {
      for (int i = 0; i < 128; i++) host[0][i] = (float)(i * k);
      upload(0, host[0], 512);
      OK(cu.cuGraphLaunch(exec, stream[0]));
      const float *out = download(2, 512);
      for (int i = 0; i < 128; i++) assert_float_equal(out[i], (float)(i * k + 2), 0);
      OK(cu.elapsed(&ms, from, to));
      assert_true(ms >= 0);
      least = fminf(least, ms);
    }
    assert_true(least < 1000);
    OK(cu.cuGraphExecDestroy(exec));
  }
  OK(cu.cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr p;
  assert_int_equal(cu.cuMemAlloc(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_int_equal(cu.cuStreamEndCapture(stream[0], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cu.cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_int_equal(cu.cuStreamSynchronize(stream[0]), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_int_equal(cu.cuStreamEndCapture(stream[0], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cu.cuStreamSynchronize(stream[0]));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cu.cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cu.cuMemAlloc(&p, 64));
  OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
  OK(cu.cuStreamEndCapture(stream[0], &graph));
  OK(cu.cuGraphDestroy(graph));
  OK(cu.cuMemFree(p));
  const CUevent all[] = {fork, join, from, to};
  for (int i = 0; i < 4; i++) OK(cu.cuEventDestroy(all[i]));
}

static void test_wrong_calls(void **state) {
  (void)state;
  CUdeviceptr p;
  CUfunction f;
  CUmodule m;
  size_t free_bytes, total;
  OK(cu.cuMemGetInfo(&free_bytes, &total));
  assert_int_equal(cu.cuMemAlloc(&p, total), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(cu.cuMemFree(device[0] + 256), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuMemcpyAsync(device[0], device[1], N * 4 + 1, stream[0]), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuMemsetD32Async(device[0] + 2, 0, 1, stream[0]), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuModuleGetFunction(&f, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  assert_int_equal(
      cu.cuModuleLoadData(&m, "\177ELF but not really, and long enough to have a whole header...."),
      CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(launch_on(stream[0], "plus_one", 1, 2048, 0, (test_args){0}), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(launch_on(stream[0], "block_sum", 1, 512, 0, (test_args){0}),
                   CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  assert_int_equal(launch_on(stream[0], "product", 1, 32, 64 << 10, (test_args){0}),
                   CUDA_ERROR_INVALID_VALUE);
  OK(cu.cuModuleGetFunction(&f, module, "product"));
  OK(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
  assert_int_equal(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 256 << 10),
                   CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuStreamSynchronize((CUstream)&p), CUDA_ERROR_INVALID_HANDLE);
}

static void test_failures(void **state) {
  (void)state;
  CUdeviceptr p;
  char log[512], *object;
  setenv("HONE_FAKE_FAIL",
         "cuMemAlloc_v2:2,cuLaunchKernelEx:1:701,kernel:2:719,nvrtcCompileProgram:1:6:no luck", 1);
  reset();
  OK(cu.cuMemAlloc(&p, 64));
  OK(cu.cuMemFree(p));
  assert_int_equal(cu.cuMemAlloc(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cu.cuMemAlloc(&p, 64));
  OK(cu.cuMemFree(p));
  const test_args args = {at(0), NULL, at(1), N, 0};
  assert_int_equal(launch_on(stream[0], "plus_one", 1, 32, 0, args), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  OK(launch_on(stream[0], "plus_one", 1, 32, 0, args));
  OK(cu.cuStreamSynchronize(stream[0]));
  OK(launch_on(stream[0], "plus_one", 1, 32, 0, args));
  assert_int_equal(cu.cuStreamSynchronize(stream[0]), CUDA_ERROR_LAUNCH_FAILED);
  assert_int_equal(build("", &object, log, sizeof log), NVRTC_ERROR_COMPILATION);
  assert_string_equal(log, "no luck");
  unsetenv("HONE_FAKE_FAIL");
  reset();
  assert_int_equal(build("#include \"prelude.cuh\"\nHN_KERNEL(x, hn_u4, a) { surprise(a.v[0]); }\n", &object,
                         log, sizeof log),
                   NVRTC_ERROR_COMPILATION);
  assert_non_null(strstr(log, "surprise"));
  OK(cu.cuStreamSynchronize(stream[0]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shuffles),          cmocka_unit_test(test_barriers_and_atomics),
      cmocka_unit_test(test_products),          cmocka_unit_test(test_products_of_codes),
      cmocka_unit_test(test_forgotten_barrier), cmocka_unit_test(test_conversions),
      cmocka_unit_test(test_streams),           cmocka_unit_test(test_graphs),
      cmocka_unit_test(test_wrong_calls),       cmocka_unit_test(test_differences),
      cmocka_unit_test(test_mistakes),          cmocka_unit_test(test_clusters),
      cmocka_unit_test(test_failures),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
