#include "model/zoo/common/build.h"

#include "base/rng.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "prefix_17": one counter for everything that has a name. */
static void fresh_name(hn_zoo *z, const char *prefix, char *buf, size_t size) {
  snprintf(buf, size, "%s_%llu", prefix, (unsigned long long)++z->names);
}

hn_value *hn_zoo_op(hn_zoo *z, const char *op, const char *out, hn_value *const *in, uint32_t n_in) {
  if (z->failed) return NULL;
  char value_name[64], node_name[64], lower[48];
  if (!out) {
    size_t i = 0;
    for (; op[i] && i + 1 < sizeof lower; i++) lower[i] = (char)tolower((unsigned char)op[i]);
    lower[i] = 0;
    fresh_name(z, lower, value_name, sizeof value_name);
    out = value_name;
  }
  fresh_name(z, op, node_name, sizeof node_name);
  hn_value *v = hn_value_create(z->graph, out);
  z->node = v ? hn_node_create(z->graph, NULL, op, NULL, node_name, in, n_in, &v, 1) : NULL;
  z->failed = z->node == NULL;
  return z->failed ? NULL : v;
}

void hn_zoo_int(hn_zoo *z, const char *name, int64_t v) {
  if (!z->failed) z->failed = !hn_node_set_int(z->node, name, v);
}

void hn_zoo_ints(hn_zoo *z, const char *name, const int64_t *v, size_t n) {
  if (!z->failed) z->failed = !hn_node_set_ints(z->node, name, v, n);
}

void hn_zoo_float(hn_zoo *z, const char *name, float v) {
  if (!z->failed) z->failed = !hn_node_set_float(z->node, name, v);
}

void hn_zoo_string(hn_zoo *z, const char *name, const char *v) {
  if (!z->failed) z->failed = !hn_node_set_string(z->node, name, v, strlen(v));
}

void hn_zoo_rename(hn_zoo *z, const char *name) {
  if (!z->failed) z->node->name = name;
}

/* A constant with uninitialised elements, which *data points to. */
static hn_value *constant(hn_zoo *z, const char *name, hone_dtype dtype, int32_t rank, const int64_t *dims,
                          void **data) {
  *data = NULL;
  if (z->failed) return NULL;
  char made_up[64];
  if (!name) {
    fresh_name(z, "w", made_up, sizeof made_up);
    name = made_up;
  }
  hone_tensor_desc desc = hone_desc(dtype, rank, dims);
  int64_t bytes = hone_desc_bytes(&desc);
  void *p = bytes < 0 ? NULL : hn_arena_aligned(&z->model->arena, (size_t)bytes, HN_MEM_ALIGN);
  hn_value *v = p ? hn_value_constant(z->graph, name, &desc, p, false) : NULL;
  z->failed = v == NULL;
  if (v) *data = p;
  return v;
}

hn_value *hn_zoo_tensor_f32(hn_zoo *z, const char *name, int32_t rank, const int64_t *dims, const float *v) {
  void *p;
  hn_value *c = constant(z, name, HONE_DTYPE_F32, rank, dims, &p);
  if (c) memcpy(p, v, (size_t)hone_desc_bytes(&c->desc));
  return c;
}

hn_value *hn_zoo_tensor_i64(hn_zoo *z, const char *name, int32_t rank, const int64_t *dims,
                            const int64_t *v) {
  void *p;
  hn_value *c = constant(z, name, HONE_DTYPE_I64, rank, dims, &p);
  if (c) memcpy(p, v, (size_t)hone_desc_bytes(&c->desc));
  return c;
}

hn_value *hn_zoo_f32(hn_zoo *z, float v) { return hn_zoo_tensor_f32(z, NULL, 0, NULL, &v); }

/* The stream of the next tensor: a function of the seed and the tensor's number alone. */
static hn_rng stream(hn_zoo *z) {
  hn_rng r = {z->opt.seed * 0x9e3779b97f4a7c15u ^ ++z->tensors * 0xd1342543de82ef95u};
  hn_rng_u64(&r);
  return r;
}

hn_value *hn_zoo_normal(hn_zoo *z, int32_t rank, const int64_t *dims, float mean, float deviation) {
  void *data;
  hn_value *c = constant(z, NULL, HONE_DTYPE_F32, rank, dims, &data);
  if (!c) return NULL;
  hn_rng r = stream(z);
  float *p = data;
  for (int64_t i = 0, n = hone_desc_count(&c->desc); i < n; i++) p[i] = mean + deviation * hn_rng_normal(&r);
  return c;
}

static hn_value *uniform(hn_zoo *z, int64_t n, float low, float high) {
  void *data;
  hn_value *c = constant(z, NULL, HONE_DTYPE_F32, 1, &n, &data);
  if (!c) return NULL;
  hn_rng r = stream(z);
  float *p = data;
  for (int64_t i = 0; i < n; i++) p[i] = low + (high - low) * (float)hn_rng_unit(&r);
  return c;
}

hn_value *hn_zoo_zeros(hn_zoo *z, int64_t n) {
  void *data;
  hn_value *c = constant(z, NULL, HONE_DTYPE_F32, 1, &n, &data);
  if (c) memset(data, 0, (size_t)n * sizeof(float));
  return c;
}

hn_value *hn_zoo_input(hn_zoo *z, const char *name, hone_dtype dtype, int32_t rank, const int64_t *dims) {
  hn_value *v = z->failed ? NULL : hn_value_create(z->graph, name);
  if (v) v->desc = hone_desc(dtype, rank, dims);
  if (!v || !hn_graph_add_input(z->graph, v)) z->failed = true;
  return v;
}

void hn_zoo_output_of(hn_zoo *z, hn_value *v, hone_dtype dtype, int32_t rank, const int64_t *dims) {
  if (z->failed) return;
  v->desc = hone_desc(dtype, rank, dims);
  z->failed = !hn_graph_add_output(z->graph, v);
}

void hn_zoo_output(hn_zoo *z, hn_value *v, int32_t rank, const int64_t *dims) {
  hn_zoo_output_of(z, v, HONE_DTYPE_F32, rank, dims);
}

hn_fmap hn_zoo_image(hn_zoo *z) {
  int64_t s = z->opt.size;
  return (hn_fmap){hn_zoo_input(z, "input", HONE_DTYPE_F32, 4, (int64_t[]){z->batch, 3, s, s}), 3, s, s};
}

static int64_t scaled(const hn_zoo *z, int64_t count, int64_t round) {
  int64_t c = (int64_t)((double)count * z->opt.width / (double)round + 0.5) * round;
  return c < round ? round : c;
}
int64_t hn_zoo_scaled(const hn_zoo *z, int64_t count) { return scaled(z, count, 1); }
int64_t hn_zoo_width(const hn_zoo *z, int64_t channels) { return scaled(z, channels, z->opt.round); }

hn_fmap hn_zoo_conv(hn_zoo *z, hn_fmap x, int64_t cout, int64_t k, int64_t stride, int64_t groups, bool bias,
                    const char *out) {
  int64_t p = k / 2, cin = x.c / groups;
  float he = (float)sqrt(2.0 / (double)(cin * k * k));
  hn_value *w = hn_zoo_normal(z, 4, (int64_t[]){cout, cin, k, k}, 0, he);
  hn_value *b = bias ? hn_zoo_normal(z, 1, &cout, 0, 0.01f) : NULL;
  if (out) z->names++; /* an exporter makes up a name before the output gets its own */
  hn_value *y = hn_zoo_op(z, "Conv", out, (hn_value *const[]){x.v, w, b}, bias ? 3 : 2);
  hn_zoo_ints(z, "dilations", HN_INTS(1, 1));
  hn_zoo_int(z, "group", groups);
  hn_zoo_ints(z, "kernel_shape", HN_INTS(k, k));
  hn_zoo_ints(z, "pads", HN_INTS(p, p, p, p));
  hn_zoo_ints(z, "strides", HN_INTS(stride, stride));
  return (hn_fmap){y, cout, (x.h + 2 * p - k) / stride + 1, (x.w + 2 * p - k) / stride + 1};
}

hn_fmap hn_zoo_bn(hn_zoo *z, hn_fmap x, float gamma, float second_moment) {
  float v = 2.0f * second_moment;
  hn_value *g = hn_zoo_normal(z, 1, &x.c, gamma, 0.1f * gamma);
  hn_value *b = hn_zoo_normal(z, 1, &x.c, 0, 0.1f);
  hn_value *m = hn_zoo_normal(z, 1, &x.c, 0, 0.1f);
  hn_value *var = uniform(z, x.c, 0.9f * v, 1.1f * v);
  hn_value *y = hn_zoo_op(z, "BatchNormalization", NULL, HN_IN(x.v, g, b, m, var));
  hn_zoo_float(z, "epsilon", 1e-5f);
  hn_zoo_float(z, "momentum", 0.9f);
  return (hn_fmap){y, x.c, x.h, x.w};
}

hn_fmap hn_zoo_unary(hn_zoo *z, const char *op, hn_fmap x) {
  x.v = hn_zoo_op(z, op, NULL, HN_IN(x.v));
  return x;
}

hn_fmap hn_zoo_relu6(hn_zoo *z, hn_fmap x) {
  if (!z->clip[0]) {
    z->clip[0] = hn_zoo_tensor_f32(z, "clip_min", 0, NULL, &(float){0});
    z->clip[1] = hn_zoo_tensor_f32(z, "clip_max", 0, NULL, &(float){6});
  }
  x.v = hn_zoo_op(z, "Clip", NULL, HN_IN(x.v, z->clip[0], z->clip[1]));
  return x;
}

hn_fmap hn_zoo_add(hn_zoo *z, hn_fmap a, hn_fmap b) {
  a.v = hn_zoo_op(z, "Add", NULL, HN_IN(a.v, b.v));
  return a;
}

void hn_zoo_classifier(hn_zoo *z, hn_fmap x, int64_t classes) {
  hn_value *t = hn_zoo_op(z, "GlobalAveragePool", NULL, HN_IN(x.v));
  t = hn_zoo_op(z, "Flatten", NULL, HN_IN(t));
  hn_zoo_int(z, "axis", 1);
  hn_value *w = hn_zoo_normal(z, 2, (int64_t[]){classes, x.c}, 0, (float)(1 / sqrt((double)x.c)));
  hn_value *b = hn_zoo_zeros(z, classes);
  hn_value *y = hn_zoo_op(z, "Gemm", "output", HN_IN(t, w, b));
  hn_zoo_float(z, "alpha", 1);
  hn_zoo_float(z, "beta", 1);
  hn_zoo_int(z, "transA", 0);
  hn_zoo_int(z, "transB", 1);
  hn_zoo_output(z, y, 2, (int64_t[]){z->batch, classes});
}
