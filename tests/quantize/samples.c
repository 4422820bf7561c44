#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float uniform(unsigned *seed) {
  return (float)((*seed = *seed * 1664525u + 1013904223u) >> 8) / 16777216.0f;
}

float normal(unsigned *seed) {
  float sum = -6;
  for (int i = 0; i < 12; i++) sum += uniform(seed);
  return sum;
}

const char *write_samples(const char *name, int32_t rank, const int64_t *dims, unsigned seed, int outliers,
                          float factor) {
  static char path[512];
  const char *folder = getenv("TMPDIR");
  hone_error e = {0};
  hone_tensor t = {.desc = hone_desc(HONE_DTYPE_F32, rank, dims)};
  const int64_t n = hone_desc_count(&t.desc);
  float *v = t.data = malloc((size_t)n * sizeof *v);
  for (int64_t i = 0; i < n; i++) {
    v[i] = normal(&seed);
    if (outliers && uniform(&seed) < (float)outliers * 1e-6f) v[i] *= factor;
  }
  snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "/tmp", name);
  assert_int_equal(hone_data_save_npy(&t, path, &e), HONE_OK);
  free(v);
  return path;
}

static hn_value *op(hn_model *m, const char *type, hn_value *a, hn_value *b, hn_value *c) {
  return net_op(m, type, (hn_value *[]){a, b, c}, c ? 3 : b ? 2 : 1);
}

/* Filters whose output channel o is multiplied by out[o] and input channel i divided by in[i]. */
static hn_value *filters(hn_model *m, int64_t o_n, int64_t i_n, int64_t k, unsigned seed, const float *out,
                         const float *in) {
  const int64_t dims[] = {o_n, i_n, k, k};
  float *w = malloc((size_t)(o_n * i_n * k * k) * sizeof *w);
  for (int64_t o = 0; o < o_n; o++)
    for (int64_t i = 0; i < i_n; i++)
      for (int64_t t = 0; t < k * k; t++)
        w[(o * i_n + i) * k * k + t] = (uniform(&seed) - 0.5f) * (out ? out[o] : 1) / (in ? in[i] : 1);
  hn_value *v = net_constant(m, HONE_DTYPE_F32, 4, dims, w);
  free(w);
  return v;
}

static hn_value *bias(hn_model *m, int64_t n, unsigned seed, const float *by) {
  float *b = malloc((size_t)n * sizeof *b);
  for (int64_t i = 0; i < n; i++) b[i] = (uniform(&seed) - 0.3f) * (by ? by[i] : 1);
  hn_value *v = net_constant(m, HONE_DTYPE_F32, 1, &n, b);
  free(b);
  return v;
}

static hn_value *conv(hn_model *m, hn_value *x, hn_value *w, hn_value *b, int64_t group) {
  hn_value *y = op(m, "Conv", x, w, b);
  const int64_t pad = w->constant->desc.dim[2] / 2;
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){pad, pad, pad, pad}, 4));
  if (group > 1) assert_true(hn_node_set_int(y->producer, "group", group));
  return y;
}

hn_model *residual_network(int64_t batch, float spread) {
  enum { C = 8 };
  hn_model *m = net_begin();
  float by[C], both[C];
  for (int i = 0; i < C; i++) by[i] = powf(spread, (float)(i % 2 ? i : -i)), both[i] = by[i] * by[i];
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){batch, 3, 12, 12});
  hn_value *first =
      op(m, "Relu", conv(m, x, filters(m, C, 3, 3, 1, NULL, NULL), bias(m, C, 2, NULL), 1), NULL, NULL);
  hn_value *wide =
      op(m, "Relu", conv(m, first, filters(m, C, C, 1, 8, by, NULL), bias(m, C, 9, by), 1), NULL, NULL);
  hn_value *depth =
      op(m, "Relu", conv(m, wide, filters(m, C, 1, 3, 3, by, NULL), bias(m, C, 4, both), C), NULL, NULL);
  hn_value *back = conv(m, depth, filters(m, C, C, 1, 5, NULL, both), bias(m, C, 6, NULL), 1);
  hn_value *sum = op(m, "Relu", op(m, "Add", back, first, NULL), NULL, NULL);
  hn_value *pool = op(m, "MaxPool", sum, NULL, NULL);
  assert_true(hn_node_set_ints(pool->producer, "kernel_shape", (const int64_t[]){2, 2}, 2));
  assert_true(hn_node_set_ints(pool->producer, "strides", (const int64_t[]){2, 2}, 2));
  hn_value *flat = op(m, "Flatten", op(m, "GlobalAveragePool", pool, NULL, NULL), NULL, NULL);
  net_finish(m, op(m, "Gemm", flat, net_weights(m, 2, (const int64_t[]){C, 5}, 7), bias(m, 5, 8, NULL)));
  return m;
}

quantised quantise(hone_model *model, const hone_quantize_options *options) {
  quantised q = {0};
  hone_error e = {0};
  char line[1200];
  if (hone_quantize(model, options, &q.model, &q.report, &e) != HONE_OK) {
    hone_error_format(&e, line, sizeof line);
    fail_msg("%s", line);
  }
  return q;
}

void quantised_free(quantised *q) {
  hone_quantize_report_free(&q->report);
  hone_model_release(q->model);
}

const hone_quantize_layer *layer_of(const quantised *q, const char *op_type, int which) {
  for (uint32_t i = 0; i < q->report.n_layers; i++)
    if (strcmp(q->report.layer[i].op_type, op_type) == 0 && which-- == 0) return &q->report.layer[i];
  fail_msg("no layer %s", op_type);
  return NULL;
}
