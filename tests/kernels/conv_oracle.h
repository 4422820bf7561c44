/* What the adapters of dots, planes and depthwise share: convolutions of channels-last tensors, checked
 * against sums in double by the definition. */
#ifndef HN_TESTS_KERNELS_CONV_ORACLE_H
#define HN_TESTS_KERNELS_CONV_ORACLE_H

#include "backends/cpu/conv/window.h"
#include "backends/cpu/step/step.h"
#include "check.h"
#include "conv_cases.h"

/* A case in memory. */
typedef struct ck_conv_data {
  const ck_conv_case *s;
  hn_window window;
  int64_t in_pixel, in_batch;
  hn_view view;         /* of y and the residual */
  float *x, *w, *y;     /* w: [groups * cout][cin][taps] */
  float *bias;          /* of each output channel */
  float *residual;      /* NULL: none */
  hn_epilogue epilogue; /* `post`: -2 x */
} ck_conv_data;

/* The geometry of a case, where its pixels lie. */
void ck_conv_geometry(const ck_conv_case *s, hn_window *g, int64_t *in_pixel, int64_t *in_batch,
                      hn_view *view);

/* All tasks, the last one first, as one thread. */
void ck_backwards(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg);

/* A line of a bench, of images of size x size. */
typedef struct ck_conv_line {
  const char *label;
  int64_t channels[3]; /* groups, cin, cout */
  int64_t size, kernel, stride;
} ck_conv_line;

/* Floats of a bench, one behind the other from x on. */
typedef struct ck_conv_memory {
  float *x, *y, *w, *scratch;
  hn_epilogue epilogue;
} ck_conv_memory;
ck_conv_memory ck_conv_memory_of(int64_t nx, int64_t ny, size_t nw, size_t bias, size_t scratch);

/* The seconds of a call; frees the memory. */
double ck_conv_seconds(void (*call)(void *), void *args, ck_conv_memory *m);

/* What differs between the families. */
typedef struct ck_conv_rules {
  const char *family;
  int64_t roundings; /* for each product */
  bool residual;     /* its driver adds one */
  bool zeros_beside; /* multiplies the zeros beside a row; rows that are not there are never multiplied */
  /* Packs t->w, calls the driver. */
  void (*run)(ck *c, const void *ops, const ck_conv_data *t, size_t cache);
  double (*seconds)(const struct hn_kernel *k, const ck_conv_case *s); /* of a call */
  size_t cache[2];                                                     /* take turns */
  /* Every case runs with every count of channels and every fill. The counts stand for the groups of cases
   * that have none, for cin of others. */
  const ck_conv_case *cases;
  const int64_t *channels;
  const ck_conv_line *lines;
  size_t n_cases, n_channels, n_lines;
} ck_conv_rules;
void ck_conv_check(ck *c, const struct hn_kernel *k, const ck_conv_rules *r);
void ck_conv_bench(ck *c, const struct hn_kernel *k, const ck_conv_rules *r);

/* The adapter of a family with its own run, seconds, cases, channels and lines; the other rules follow. */
#define CK_CONV_FAMILY(name, ...)                                                                            \
  static const ck_conv_rules rules = {.family = #name,                                                       \
                                      .run = run,                                                            \
                                      .seconds = seconds,                                                    \
                                      .cases = cases,                                                        \
                                      .channels = channels,                                                  \
                                      .lines = lines,                                                        \
                                      .n_cases = sizeof cases / sizeof *cases,                               \
                                      .n_channels = sizeof channels / sizeof *channels,                      \
                                      .n_lines = sizeof lines / sizeof *lines,                               \
                                      __VA_ARGS__};                                                          \
  static void check(ck *c, const struct hn_kernel *k) { ck_conv_check(c, k, &rules); }                       \
  static void bench(ck *c, const struct hn_kernel *k) { ck_conv_bench(c, k, &rules); }                       \
  const ck_family ck_family_##name = {#name, check, bench}

#endif
