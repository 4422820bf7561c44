/* What every built-in network is written with: layers as an exporter would write them, and seeded weights.
 *
 * Errors are sticky: after a failed allocation every helper returns NULL and does nothing, and hone_zoo_build
 * reports it once. Names count up over weights, tensors and nodes alike ("w_1", "conv_2", "Conv_3"), as
 * exporters' names do. */
#ifndef HN_MODEL_ZOO_BUILD_H
#define HN_MODEL_ZOO_BUILD_H

#include "base/error.h"
#include "model/ir/graph.h"

typedef struct hn_zoo {
  hn_model *model;
  hn_graph *graph;
  hone_zoo_options opt; /* every field set: no zeros but batch, which stays 0 for symbolic */
  int64_t batch;        /* dimension: opt.batch, or the symbol N */
  uint64_t names;       /* given so far */
  uint64_t tensors;     /* filled so far: each has its own random stream */
  hone_node *node;      /* the newest, for the attribute helpers */
  hn_value *clip[2];    /* shared bounds of ReLU6 */
  bool failed;
} hn_zoo;

/* An image-like tensor with its channels, height and width. */
typedef struct hn_fmap {
  hn_value *v;
  int64_t c, h, w;
} hn_fmap;

/* A network: the entry symbol of src/model/zoo/<name>.c is `const struct hn_zoo_unit hn_zoo_<name>`. */
struct hn_zoo_unit {
  const char *name, *about;
  int64_t size;     /* image side or sequence length by default */
  int64_t multiple; /* sizes must be a multiple of this: what the graph joins after upsampling must fit */
  int64_t max_size;
  void (*build)(hn_zoo *z);
  bool detects; /* opt.boxes is for it */
};

#define HN_IN(...)                                                                                           \
  (hn_value *const[]){__VA_ARGS__}, (uint32_t)(sizeof((hn_value *[]){__VA_ARGS__}) / sizeof(hn_value *))
#define HN_INTS(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Appends a node with one output; out NULL: a made-up name. A NULL entry of `in` is an optional input left
 * out. */
hn_value *hn_zoo_op(hn_zoo *z, const char *op, const char *out, hn_value *const *in, uint32_t n_in);
/* Attributes of the newest node; exporters write them in alphabetical order. */
void hn_zoo_int(hn_zoo *z, const char *name, int64_t v);
void hn_zoo_ints(hn_zoo *z, const char *name, const int64_t *v, size_t n);
void hn_zoo_float(hn_zoo *z, const char *name, float v);
void hn_zoo_string(hn_zoo *z, const char *name, const char *v);
/* Gives the newest node another name (its output's name is hn_zoo_op's `out`). */
void hn_zoo_rename(hn_zoo *z, const char *name);

/* Constants. name NULL: made up. */
hn_value *hn_zoo_f32(hn_zoo *z, float v);
hn_value *hn_zoo_tensor_f32(hn_zoo *z, const char *name, int32_t rank, const int64_t *dims, const float *v);
hn_value *hn_zoo_tensor_i64(hn_zoo *z, const char *name, int32_t rank, const int64_t *dims, const int64_t *v);
/* mean + deviation * standard normal. */
hn_value *hn_zoo_normal(hn_zoo *z, int32_t rank, const int64_t *dims, float mean, float deviation);
hn_value *hn_zoo_zeros(hn_zoo *z, int64_t n);

/* Graph inputs and outputs. */
hn_value *hn_zoo_input(hn_zoo *z, const char *name, hone_dtype dtype, int32_t rank, const int64_t *dims);
void hn_zoo_output_of(hn_zoo *z, hn_value *v, hone_dtype dtype, int32_t rank, const int64_t *dims);
void hn_zoo_output(hn_zoo *z, hn_value *v, int32_t rank, const int64_t *dims); /* f32 */
hn_fmap hn_zoo_image(hn_zoo *z); /* "input": batch x 3 x size x size */

/* A count after the width multiplier, at least 1. */
int64_t hn_zoo_scaled(const hn_zoo *z, int64_t count);
/* Channels after the width multiplier: the nearest multiple of opt.round, at least one. */
int64_t hn_zoo_width(const hn_zoo *z, int64_t channels);

/* Convolution with He-initialised weights and padding k / 2. The output's name is `out` or made up. */
hn_fmap hn_zoo_conv(hn_zoo *z, hn_fmap x, int64_t cout, int64_t k, int64_t stride, int64_t groups, bool bias,
                    const char *out);
/* Batch normalisation that knows the second moment of the convolution's input: a He-initialised convolution
 * has twice that variance, so activations keep unit scale through depth. Jittered as trained nets are. */
hn_fmap hn_zoo_bn(hn_zoo *z, hn_fmap x, float gamma, float second_moment);
hn_fmap hn_zoo_unary(hn_zoo *z, const char *op, hn_fmap x);
hn_fmap hn_zoo_relu6(hn_zoo *z, hn_fmap x);
hn_fmap hn_zoo_add(hn_zoo *z, hn_fmap a, hn_fmap b);
/* Global average pool, flatten, fully connected to `classes`; graph output "output". */
void hn_zoo_classifier(hn_zoo *z, hn_fmap x, int64_t classes);

#endif
