/* check_attention: fused attention on a GPU (an emulated one in CI) against sums in double, over types, odd
 * sizes, masks and memory layouts. Prints what is wrong; exit 1 when something is. */
#include "skipped.h"
#include "backends/cuda/backend.h"
#include "base/half.h"
#include "base/rng.h"
#include "model/ir/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct hone_tactic_desc hn_cuda_tactic_attention_mma;

enum { Q, K, V, BIAS, KEEP, Y, TENSORS };

typedef struct shape {
  int64_t batch, heads, rows, keys, depth, depth_v;
  int masks;       /* bit 0: an addend for every key; bit 1: who may look at what; bit 2: some at nothing */
  bool transposed; /* keys lie depth by key */
} shape;

typedef struct tensor {
  double scale, zero; /* of codes */
  hone_tensor_desc desc;
  void *host, *device;
  size_t bytes;
} tensor;

static const hn_backend *const cuda = &hn_backend_cuda;
static hn_device *device;
static hn_queue *queue;
static hn_rng rng = {11};
static int failures;

static void must(hone_status s, const hone_error *error) {
  if (!s) return;
  printf("FAIL %s\n", error->what);
  exit(1);
}

static double value(const tensor *t, int64_t i) {
  if (t->desc.dtype == HONE_DTYPE_F32) return ((const float *)t->host)[i];
  if (t->desc.dtype == HONE_DTYPE_U8) return (((const uint8_t *)t->host)[i] - t->zero) * t->scale;
  if (t->desc.dtype == HONE_DTYPE_I8) return (((const int8_t *)t->host)[i] - t->zero) * t->scale;
  const uint16_t h = ((const uint16_t *)t->host)[i];
  return t->desc.dtype == HONE_DTYPE_F16 ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
}

static void set(tensor *t, int64_t i, float f) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: ((float *)t->host)[i] = f; break;
  case HONE_DTYPE_F16: ((uint16_t *)t->host)[i] = hn_f32_to_f16(f); break;
  case HONE_DTYPE_BF16: ((uint16_t *)t->host)[i] = hn_f32_to_bf16(f); break;
  case HONE_DTYPE_U8:
  case HONE_DTYPE_I8: ((uint8_t *)t->host)[i] = (uint8_t)(int)(127.4f * f + 128); break;
  default: ((uint8_t *)t->host)[i] = f > 0;
  }
}

/* [batch, heads, rows, columns] whose elements lie at these distances. */
static tensor make(hone_dtype type, const int64_t dim[4], const int64_t stride[4], int64_t elements,
                   bool fill) {
  hone_error error = {0};
  tensor t = {.desc = hone_desc(type, 4, dim), .bytes = (size_t)elements * hone_dtype_size(type)};
  t.desc.layout = HONE_LAYOUT_STRIDED;
  for (int i = 0; i < 4; i++) t.desc.stride[i] = stride[i];
  t.host = malloc(t.bytes);
  t.device = cuda->alloc(device, t.bytes);
  if (!t.host || !t.device) exit(2);
  memset(t.host, 0xff, t.bytes);
  for (int64_t i = 0; fill && i < elements; i++) set(&t, i, (float)(2 * hn_rng_unit(&rng) - 1));
  must(cuda->copy(device, queue, t.device, t.host, t.bytes, &error), &error);
  return t;
}

/* The weights of the keys for one row of a head, in x; returns their sum. */
static double weights(const shape *s, const tensor *t, float scale, int64_t b, int64_t h, int64_t r,
                      double *x) {
  double top = -INFINITY, sum = 0;
  const int64_t *q = t[Q].desc.stride, *k = t[K].desc.stride;
  for (int64_t j = 0; j < s->keys; j++) {
    x[j] = 0;
    for (int64_t d = 0; d < s->depth; d++)
      x[j] += value(&t[Q], b * q[0] + h * q[1] + r * q[2] + d * q[3]) *
              value(&t[K], b * k[0] + h * k[1] + j * k[2] + d * k[3]);
    x[j] *= scale;
    if (s->masks & 1) x[j] += 2 * value(&t[BIAS], b * s->keys + j);
    if (s->masks & 2 && !((const uint8_t *)t[KEEP].host)[r * s->keys + j])
      x[j] = s->masks & 4 ? -INFINITY : -1e9;
    if (x[j] > top) top = x[j];
  }
  for (int64_t j = 0; j < s->keys; j++) {
    x[j] = top == -INFINITY ? 0 : exp(x[j] - top);
    sum += x[j];
  }
  return sum;
}

/* The largest difference of an answer from the sum in double; infinite when one is not a number. */
static double worst_of(const shape *s, const tensor *t, float scale) {
  double worst = 0, *x = malloc(sizeof *x * (size_t)s->keys);
  if (!x) exit(2);
  const int64_t *v = t[V].desc.stride, *to = t[Y].desc.stride;
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t h = 0; h < s->heads; h++)
      for (int64_t r = 0; r < s->rows; r++) {
        const double sum = weights(s, t, scale, b, h, r, x);
        for (int64_t c = 0; c < s->depth_v; c++) {
          double y = 0;
          for (int64_t j = 0; j < s->keys; j++)
            y += x[j] * value(&t[V], b * v[0] + h * v[1] + j * v[2] + c * v[3]);
          const double d =
              fabs(value(&t[Y], b * to[0] + h * to[1] + r * to[2] + c * to[3]) - (sum > 0 ? y / sum : y));
          if (!(d <= worst)) worst = d != d ? INFINITY : d;
        }
      }
  free(x);
  return worst;
}

static hone_node *make_node(hn_model *m, float scale, const int64_t *kind, const float *fill, size_t masks) {
  hn_value *in[3], *out[1];
  for (int i = 0; i < 3; i++) in[i] = hn_value_create(m->graph, NULL);
  out[0] = hn_value_create(m->graph, NULL);
  hone_node *n = hn_node_create(m->graph, NULL, "FusedAttention", NULL, "it", in, 3, out, 1);
  hn_node_set_float(n, "scale", scale);
  hn_node_set_ints(n, "mask_kind", kind, masks);
  hn_node_set_floats(n, "mask_value", fill, masks);
  return n;
}

/* Zero points near the middle of the codes, so that scores are about as large as those of floats. */
static void set_codes(hone_node *node, tensor *t) {
  float scale[3];
  int64_t zero[3];
  for (int i = 0; i < 3; i++) {
    scale[i] = 0.007f + 0.001f * (float)i;
    zero[i] = (t->desc.dtype == HONE_DTYPE_U8 ? 128 : 0) + 9 * i - 7;
    t[i].scale = scale[i], t[i].zero = (double)zero[i];
  }
  hn_node_set_floats(node, "codes_scale", scale, 3);
  hn_node_set_ints(node, "codes_zero", zero, 3);
}

static void check(const shape *s, hone_dtype type, hone_math math, double bound) {
  const int64_t B = s->batch, H = s->heads, R = s->rows, S = s->keys, D = s->depth, E = s->depth_v;
  hone_error error = {0};
  hone_reason why = {""};
  tensor t[TENSORS] = {{.bytes = 0}};
  t[Q] = make(type, (int64_t[]){B, H, R, D}, (int64_t[]){R * H * D, D, H * D, 1}, B * R * H * D, true);
  t[K] = s->transposed
             ? make(type, (int64_t[]){B, H, S, D}, (int64_t[]){H * D * S, D * S, 1, S}, B * H * D * S, true)
             : make(type, (int64_t[]){B, H, S, D}, (int64_t[]){S * H * D, D, H * D, 1}, B * S * H * D, true);
  t[V] = make(type, (int64_t[]){B, H, S, E}, (int64_t[]){S * H * E, E, H * E, 1}, B * S * H * E, true);
  const bool codes = type == HONE_DTYPE_U8 || type == HONE_DTYPE_I8;
  t[Y] = make(codes ? HONE_DTYPE_F32 : type, (int64_t[]){B, H, R, E}, (int64_t[]){R * H * E, E, H * E, 1},
              B * R * H * E, false);
  hone_step_tensor input[5] = {{t[Q].desc, NULL}, {t[K].desc, NULL}, {t[V].desc, NULL}},
                   output = {t[Y].desc, NULL};
  const void *in[5] = {t[Q].device, t[K].device, t[V].device};
  int64_t kind[2];
  float fill[2];
  uint32_t n = 3;
  if (s->masks & 1) {
    t[BIAS] = make(HONE_DTYPE_F32, (int64_t[]){B, H, R, S}, (int64_t[]){S, 0, 0, 1}, B * S, true);
    kind[n - 3] = 0, fill[n - 3] = 2;
    input[n].desc = t[BIAS].desc, in[n++] = t[BIAS].device;
  }
  if (s->masks & 2) {
    t[KEEP] = make(HONE_DTYPE_BOOL, (int64_t[]){B, H, R, S}, (int64_t[]){0, 0, S, 1}, R * S, true);
    for (int64_t i = 0; s->masks & 4 && i < R * S; i++)
      if (i / S % 3 == 1) set(&t[KEEP], i, 0);
    must(cuda->copy(device, queue, t[KEEP].device, t[KEEP].host, t[KEEP].bytes, &error), &error);
    kind[n - 3] = 1, fill[n - 3] = s->masks & 4 ? -INFINITY : -1e9f;
    input[n].desc = t[KEEP].desc, in[n++] = t[KEEP].device;
  }
  hn_model *m = hn_model_create("attention");
  const float scale = (float)(1 / sqrt((double)D));
  hone_step step = {HONE_DESC_HEAD(hone_step),
                    .anchor = "FusedAttention",
                    .name = "it",
                    .n_inputs = n,
                    .n_anchor_inputs = n,
                    .input = input,
                    .n_outputs = 1,
                    .output = &output,
                    .math = math};
  hone_node *node = make_node(m, scale, kind, fill, n - 3);
  if (codes) set_codes(node, t);
  if (s->masks & 4) hn_node_set_int(node, "nan_to_zero", 1);
  step.node = node;
  void *out[1] = {t[Y].device};
  hone_step_run run = {.step = &step, .in = in, .out = out};
  const hone_tactic_desc *tactic = &hn_cuda_tactic_attention_mma;
  if (!tactic->accepts(&step, cuda->machine(device), &why)) {
    printf("FAIL %s\n", why.text);
    exit(1);
  }
  must(cuda->launch(device, queue, tactic, &run, &error), &error);
  must(cuda->copy(device, queue, t[Y].host, t[Y].device, t[Y].bytes, &error), &error);
  must(cuda->sync(device, queue, &error), &error);
  const double worst = worst_of(s, t, scale);
  if (!(worst < bound)) {
    printf("FAIL %s %lld x %lld rows, %lld keys, depth %lld, %lld, masks %d%s: off by %.3g\n",
           hone_dtype_name(type), (long long)(B * H), (long long)R, (long long)S, (long long)D, (long long)E,
           s->masks, s->transposed ? ", transposed" : "", worst);
    failures++;
  }
  for (int i = 0; i < TENSORS; i++) {
    if (t[i].device) cuda->free(device, t[i].device);
    free(t[i].host);
  }
  hn_model_destroy(m);
}

int main(void) {
  static const shape shapes[] = {{2, 3, 37, 50, 64, 64, 1, false},
                                 {1, 2, 70, 130, 20, 36, 3, false},
                                 {1, 1, 5, 9, 7, 5, 2, false},
                                 {1, 2, 33, 65, 256, 256, 0, false},
                                 {2, 2, 1, 33, 32, 16, 1, true},
                                 {1, 4, 64, 64, 64, 64, 0, true},
                                 /* rows of 8 and of 4 bytes, not of 16 (XCiT's channels look at channels) */
                                 {1, 1, 20, 20, 100, 52, 0, false},
                                 {1, 1, 12, 40, 66, 34, 1, false},
                                 /* the same of codes, of which a vector holds twice as many */
                                 {1, 2, 40, 70, 8, 24, 1, false},
                                 /* few rows: warps divide the keys */
                                 {1, 1, 1, 300, 64, 64, 3, false},
                                 {1, 2, 12, 100, 40, 24, 3, true},
                                 {1, 1, 16, 257, 128, 256, 1, false},
                                 /* rows that see nothing */
                                 {1, 2, 70, 130, 20, 36, 7, false},
                                 {1, 1, 12, 257, 40, 24, 6, false}};
  static const struct {
    hone_dtype type;
    hone_math math;
    double bound;
  } kinds[] = {{HONE_DTYPE_F16, HONE_MATH_TF32, 2e-3}, {HONE_DTYPE_BF16, HONE_MATH_BF16, 1.5e-2},
               {HONE_DTYPE_F32, HONE_MATH_TF32, 2e-3}, {HONE_DTYPE_U8, HONE_MATH_TF32, 2e-3},
               {HONE_DTYPE_I8, HONE_MATH_BF16, 2e-3},  {HONE_DTYPE_F32, HONE_MATH_F32, 3e-6}};
  hone_error error = {0};
  const hone_status opened = cuda->open(0, 2, NULL, &device, &error);
  if (opened == HONE_ERROR_MISSING) return printf("SKIP: %s\n", error.what), SKIPPED;
  must(opened, &error);
  must(cuda->queue_open(device, &queue, &error), &error);
  int runs = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++, runs++)
      check(&shapes[i], kinds[k].type, kinds[k].math, kinds[k].bound);
  cuda->queue_close(device, queue);
  cuda->close(device);
  printf("%d runs of attention_mma, %d failures\n", runs, failures);
  return failures != 0;
}
