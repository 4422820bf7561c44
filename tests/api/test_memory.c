/* Weights wherever they lie, made late, and given back: answers do not depend on it, memory does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "temporary.h"
#include "net.h"
#include "base/os.h"
#include "model/operators.h"

#include <hone/session.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHANNELS = 64, SIDE = 12, VALUES = CHANNELS * SIDE * SIDE, OUT = 300 };

static hn_value *batch_norm(hn_model *m, hn_value *x, float scale) {
  float g[CHANNELS];
  int64_t n = CHANNELS;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  for (int i = 0; i < CHANNELS; i++) g[i] = scale * (1 + (float)i / CHANNELS);
  hn_value *gamma = hn_value_constant(m->graph, NULL, &d, g, true), *b = net_weights(m, 1, &n, 7);
  for (int i = 0; i < CHANNELS; i++) g[i] = 1 + (float)(i % 3);
  hn_value *var = hn_value_constant(m->graph, NULL, &d, g, true);
  return net_op(m, "BatchNormalization", (hn_value *[]){x, gamma, b, b, var}, 5);
}

static hn_value *conv3x3(hn_model *m, hn_value *x, hn_value *w) {
  hn_value *y = net_op(m, "Conv", (hn_value *[]){x, w}, 2);
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  return y;
}

/* Large constants in every role: packed after scaling, packed as they are, read by a tactic (the table of
 * Gather) and read by a reference (Cos of a constant is folded; Trilu has no tactic). */
static hn_model *big_net(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, SIDE, SIDE});
  hn_value *ids = net_input(m, "ids", HONE_DTYPE_I64, 1, (const int64_t[]){3});
  hn_value *w = net_weights(m, 4, (const int64_t[]){CHANNELS, CHANNELS, 3, 3}, 1);
  hn_value *y = net_op(m, "Relu", (hn_value *[]){batch_norm(m, conv3x3(m, x, w), 1)}, 1);
  y = conv3x3(m, y, w); /* the same weights once more, not scaled */
  y = batch_norm(m,
                 net_op(m, "Conv",
                        (hn_value *[]){y, net_weights(m, 4, (const int64_t[]){CHANNELS, CHANNELS, 5, 5}, 2)},
                        2),
                 2);
  y = net_op(m, "GlobalAveragePool", &y, 1);
  y = net_op(m, "Flatten", &y, 1);
  y = net_op(m, "MatMul", (hn_value *[]){y, net_weights(m, 2, (const int64_t[]){CHANNELS, OUT}, 3)}, 2);
  hn_value *table = net_weights(m, 2, (const int64_t[]){100, OUT}, 4);
  hn_value *rows = net_op(m, "Gather", (hn_value *[]){table, ids}, 2);
  hn_value *wide = net_weights(m, 2, (const int64_t[]){64, OUT}, 5);
  hn_value *sum = net_op(m, "Mul", (hn_value *[]){wide, y}, 2);
  sum = net_op(m, "Trilu", &sum, 1);
  sum = net_op(m, "ReduceMean", &sum, 1);
  y = net_op(m, "Add", (hn_value *[]){rows, y}, 2);
  y = net_op(m, "Add", (hn_value *[]){y, sum}, 2);
  net_finish(m, y);
  return m;
}

static void run(hone_engine *engine, hone_model *m, const hone_plan_options *o, float out[3 * OUT]) {
  float x[VALUES];
  int64_t ids[3] = {5, 99, 0};
  for (int i = 0; i < VALUES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1;
  hone_tensor a = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, SIDE, SIDE}), x},
              b = {hone_desc(HONE_DTYPE_I64, 1, (const int64_t[]){3}), ids};
  const hone_tensor *in[] = {&a, &b};
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_error e = {0};
  if (hone_plan_create(engine, m, o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  assert_int_equal(hone_context_run(context, in, NULL, &e), HONE_OK);
  memcpy(out, hone_context_output(context, 0)->data, 3 * OUT * sizeof *out);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
}

static void near(const float *got, const float *want) {
  float range = 0;
  for (int i = 0; i < 3 * OUT; i++) range = fmaxf(range, fabsf(want[i]));
  assert_true(range > 0);
  for (int i = 0; i < 3 * OUT; i++) assert_true(fabsf(got[i] - want[i]) <= 1e-5f * range);
}

/* The bytes of a file, to be placed at any alignment. */
static unsigned char *saved(size_t *size) {
  char path[128];
  int fd = mkstemp(temporary(path, sizeof path, "hone-memory"));
  assert_true(fd >= 0);
  hn_model *m = big_net();
  hone_error e = {0};
  assert_int_equal(hone_model_save(m, path, &e), HONE_OK);
  hone_model_release(m);
  close(fd);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  unsigned char *data = malloc(8 << 20);
  *size = fread(data, 1, 8 << 20, f);
  fclose(f);
  unlink(path);
  return data;
}

static void any_alignment_gives_the_same_answer(void **state) {
  (void)state;
  size_t size;
  unsigned char *data = saved(&size), *room = malloc(size + 16);
  float want[3 * OUT], got[3 * OUT], first[3 * OUT];
  hone_engine *engine;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2}, &engine, &e), HONE_OK);
  for (int shift = 0; shift < 4; shift++) {
    hone_model *m;
    memcpy(room + shift, data, size);
    assert_int_equal(hone_model_load_memory(room + shift, size, NULL, &m, &e), HONE_OK);
    run(engine, m, &(hone_plan_options){.level = 0, .reference = true}, want);
    run(engine, m, &(hone_plan_options){.level = 0}, got);
    near(got, want);
    for (int again = 0; again < 2; again++) { /* what one plan packed and gave back, the next finds again */
      run(engine, m, NULL, got);
      near(got, want);
      if (!shift && !again) memcpy(first, got, sizeof first);
      assert_memory_equal(got, first, sizeof first);
    }
    hone_model_release(m);
  }
  hone_engine_destroy(engine);
  free(room);
  free(data);
}

/* Finite weights and a finite factor whose product is not: the normalisation stays, and the plan is made. */
static void scaling_beyond_the_range_is_left_alone(void **state) {
  (void)state;
  for (int huge = 0; huge < 2; huge++) {
    hn_model *m = net_begin();
    hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, 1, 1});
    hn_value *w = net_weights(m, 4, (const int64_t[]){CHANNELS, CHANNELS, 3, 3}, 1);
    float *data = w->constant->data;
    for (int i = 0; huge && i < 9; i++) data[i] = i == 4 ? 1e30f : 0;
    net_finish(m, batch_norm(m, conv3x3(m, x, w), 1e10f));
    net_session s = net_open(m, 2, false, 2);
    uint32_t folded = 0;
    const hone_rewrites *r = hone_plan_rewrites(s.plan);
    for (uint32_t i = 0; i < r->n; i++)
      folded += r->record[i].hit && !strcmp(r->record[i].pass, "fold_batch_norm");
    assert_int_equal(folded, !huge);
    float v[CHANNELS] = {0};
    hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, 1, 1}), v};
    const hone_tensor *inputs[] = {&in};
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
    const float *y = hone_context_output(s.context, 0)->data;
    for (int i = 0; i < CHANNELS; i++) assert_true(isfinite(y[i]));
    net_close(&s);
  }
}

static uint64_t constants(hone_engine *engine, hone_model *m, hone_prefer prefer) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  uint64_t bytes;
  assert_int_equal(
      hone_plan_create(engine, m, &(hone_plan_options){.level = -1, .prefer = prefer}, &plan, &e), HONE_OK);
  hone_plan_memory(plan, NULL, &bytes, NULL);
  hone_plan_destroy(plan);
  return bytes;
}

/* A 3x3 convolution of this stride whose fastest tactic packs at least `most` times its weights. */
static void memory_of_winograd(hone_engine *engine, bool chosen, int64_t stride, double most) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 128, 52, 52});
  hn_value *y = conv3x3(m, x, net_weights(m, 4, (const int64_t[]){128, 128, 3, 3}, 1));
  assert_true(hn_node_set_ints(y->producer, "strides", (const int64_t[]){stride, stride}, 2));
  net_finish(m, y);
  const uint64_t weights = 128 * 128 * 9 * 4, speed = constants(engine, m, HONE_PREFER_SPEED),
                 memory = constants(engine, m, HONE_PREFER_MEMORY);
  assert_true(memory < weights + weights / 8 + 8192);
  assert_true(memory <= speed);
  if (chosen) assert_true((double)speed > (double)weights * most);
  hone_model_release(m);
}

static void preferring_memory_packs_less(void **state) {
  (void)state;
  hone_engine *engine;
  hone_error e = {0};
  /* AMX would win over Winograd here: the tiers below have a choice to make. */
  const char *isa = getenv("HONE_CPU") ? NULL : "avx2";
  hone_status status =
      hone_engine_create(&(hone_engine_options){.threads = 1, .isa = isa, .tactics = "conv_*"}, &engine, &e);
  if (status == HONE_ERROR_MISSING) skip();
  assert_int_equal(status, HONE_OK);
  memory_of_winograd(engine, isa != NULL, 1, 1.5);
  memory_of_winograd(engine, isa != NULL, 2, 2.5);
  hone_engine_destroy(engine);
}

/* Values that inference computes on the side (shape arithmetic) are bounded together, not only each. */
static void shape_arithmetic_has_a_bound(void **state) {
  (void)state;
  enum { NODES = 8000, N = 512 };
  hn_model *m = net_begin();
  static int64_t ones[N];
  int64_t n = N;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &n);
  hn_value *c = hn_value_constant(m->graph, NULL, &d, ones, true), *y = NULL;
  for (int i = 0; i < NODES; i++) {
    y = net_op(m, "Concat", (hn_value *[]){c, c}, 2);
    assert_true(hn_node_set_int(y->producer, "axis", 0));
  }
  assert_true(hn_graph_add_output(m->graph, y));
  hone_error e = {0};
  assert_int_equal(hn_model_resolve(m, &e), HONE_OK);
  uint64_t before = hn_rss_peak_bytes();
  assert_int_equal(hn_model_infer(m, &e), HONE_OK);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)before; /* instrumented memory takes several times as much */
#else
  assert_true(hn_rss_peak_bytes() - before < (uint64_t)24 << 20); /* all of them: 62 MiB */
#endif
  assert_int_equal(y->desc.dim[0], 2 * N);
  hone_model_release(m);
}

/* A size that is the largest of n floats, which are computed, too. */
static int64_t size_of_floats(int64_t n) {
  static const float halves[32] = {1.5f, 1.5f, 1.5f, 1.5f};
  hn_model *m = net_begin();
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  hn_value *c = hn_value_constant(m->graph, NULL, &d, halves, true);
  hn_value *most = net_op(m, "ReduceMax", (hn_value *[]){net_op(m, "Add", (hn_value *[]){c, c}, 2)}, 1);
  hn_value *whole = net_op(m, "Cast", &most, 1);
  assert_true(hn_node_set_int(whole->producer, "to", HONE_DTYPE_I64));
  hn_value *y = net_op(m, "ConstantOfShape", &whole, 1);
  assert_true(hn_graph_add_output(m->graph, y));
  hone_error e = {0};
  assert_int_equal(hn_model_resolve(m, &e), HONE_OK);
  assert_int_equal(hn_model_infer(m, &e), HONE_OK);
  const int64_t size = y->desc.dim[0];
  hone_model_release(m);
  return size;
}

/* Scales of Resize and the like are known beforehand, weights that a file computes are not. */
static void sizes_are_computed_in_few_floats(void **state) {
  (void)state;
  assert_int_equal(size_of_floats(4), 3);
  assert_int_equal(size_of_floats(2 * HONE_MAX_RANK), 3);
  assert_int_equal(size_of_floats(2 * HONE_MAX_RANK + 1), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_alignment_gives_the_same_answer),
      cmocka_unit_test(scaling_beyond_the_range_is_left_alone),
      cmocka_unit_test(preferring_memory_packs_less),
      cmocka_unit_test(shape_arithmetic_has_a_bound),
      cmocka_unit_test(sizes_are_computed_in_few_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
