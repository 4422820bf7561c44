/* Concats that are left out, as what they would gather is written in its place: which ones, and that answers
 * are as if they were there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <hone/hone.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2, C = 19, H = 9, W = 13 };

static hn_value *image(hn_model *m) {
  return net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){N, C, H, W});
}

/* A convolution of k x k taps that keeps the image's size, and Relu; group 0: depthwise. */
static hn_value *conv(hn_model *m, hn_value *x, int64_t from, int64_t to, int64_t k, int64_t group,
                      unsigned seed) {
  const int64_t groups = group ? group : from, pad = k / 2;
  hn_value *w = net_weights(m, 4, (const int64_t[]){to, from / groups, k, k}, seed);
  hn_value *y = net_op(m, "Conv", (hn_value *[]){x, w}, 2);
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){pad, pad, pad, pad}, 4));
  assert_true(hn_node_set_int(y->producer, "group", groups));
  return net_op(m, "Relu", &y, 1);
}

static hn_value *concat(hn_model *m, hn_value *const *in, uint32_t n, int64_t axis) {
  hn_value *y = net_op(m, "Concat", in, n);
  assert_true(hn_node_set_int(y->producer, "axis", axis));
  return y;
}

typedef hn_model *(*builder)(void);

/* Branches of odd widths, a pool of one of them, and one that takes all. */
static hn_model *branches(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *a = conv(m, x, C, 7, 1, 1, 1), *b = conv(m, x, C, 33, 3, 1, 2);
  hn_value *p = net_op(m, "MaxPool", &b, 1);
  assert_true(hn_node_set_ints(p->producer, "kernel_shape", (const int64_t[]){3, 3}, 2));
  assert_true(hn_node_set_ints(p->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  hn_value *all = concat(m, (hn_value *[]){a, b, p}, 3, 1);
  net_finish(m, conv(m, all, 73, 5, 1, 1, 3));
  return m;
}

/* Chains of a depthwise convolution and others at both ends. */
static hn_model *chains(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *part[2];
  for (unsigned i = 0; i < 2; i++) {
    hn_value *a = conv(m, x, C, 29, 1, 1, 3 * i + 1), *b = conv(m, a, 29, 29, 3, 0, 3 * i + 2);
    part[i] = conv(m, b, 29, 21, 1, 1, 3 * i + 3);
  }
  hn_value *all = concat(m, part, 2, 1), *d = conv(m, all, 42, 42, 3, 0, 9);
  net_finish(m, conv(m, d, 42, 6, 1, 1, 10));
  return m;
}

/* Each adds to what the one before gave; all of them are read. */
static hn_model *dense(void) {
  hn_model *m = net_begin();
  hn_value *all = conv(m, image(m), C, 10, 1, 1, 1);
  for (int i = 0; i < 4; i++) {
    hn_value *scale = net_weights(m, 3, (const int64_t[]){10 + 6 * i, 1, 1}, 20 + (unsigned)i);
    hn_value *y = net_op(m, "Mul", (hn_value *[]){all, scale}, 2);
    y = net_op(m, "Relu", &y, 1);
    y = conv(m, y, 10 + 6 * i, 6, 3, 1, 30 + (unsigned)i);
    all = concat(m, (hn_value *[]){all, y}, 2, 1);
  }
  net_finish(m, conv(m, all, 34, 8, 1, 1, 40));
  return m;
}

/* The Concat is what the caller gets. */
static hn_model *returned(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m);
  net_finish(m, concat(m, (hn_value *[]){conv(m, x, C, 8, 1, 1, 1), conv(m, x, C, 24, 1, 1, 2)}, 2, 1));
  return m;
}

/* The caller gets an input of it, too. */
static hn_model *part_returned(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *a = conv(m, x, C, 8, 1, 1, 1), *b = conv(m, x, C, 24, 1, 1, 2);
  net_output(m, a);
  net_finish(m, conv(m, concat(m, (hn_value *[]){a, b}, 2, 1), 32, 8, 3, 1, 3));
  return m;
}

/* Twice the same, and what the caller gave. */
static hn_model *twice(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *a = conv(m, x, C, 8, 1, 1, 1), *b = conv(m, x, C, 9, 1, 1, 2);
  hn_value *all = concat(m, (hn_value *[]){b, a, a, x}, 4, 1);
  net_finish(m, conv(m, all, 25 + C, 8, 1, 1, 3));
  return m;
}

/* Two Concats of one input: it can lie in one of them alone. */
static hn_model *shared(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *a = conv(m, x, C, 8, 1, 1, 1), *b = conv(m, x, C, 9, 1, 1, 2);
  hn_value *one = conv(m, concat(m, (hn_value *[]){a, b}, 2, 1), 17, 11, 1, 1, 3);
  hn_value *two = conv(m, concat(m, (hn_value *[]){b, a}, 2, 1), 17, 11, 1, 1, 4);
  net_finish(m, net_op(m, "Add", (hn_value *[]){one, two}, 2));
  return m;
}

/* Along the batch, and along the height. */
static hn_model *other_axes(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m), *a = conv(m, x, C, 16, 1, 1, 1), *b = conv(m, x, C, 16, 1, 1, 2);
  hn_value *batch = concat(m, (hn_value *[]){a, b}, 2, 0);
  hn_value *height = concat(m, (hn_value *[]){batch, conv(m, batch, 16, 16, 3, 1, 3)}, 2, 2);
  net_finish(m, conv(m, height, 16, 8, 3, 1, 4));
  return m;
}

/* Grouped and shuffled: ShuffleNet's unit. */
static hn_model *shuffled(void) {
  hn_model *m = net_begin();
  const int64_t order[] = {0, 12, 1, 13, 2, 14, 3, 15, 4, 16, 5, 17}, twelve = 12;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &twelve);
  hn_value *x = image(m), *a = conv(m, x, C, 12, 1, 1, 1), *b = conv(m, x, C, 12, 1, 1, 2);
  hn_value *all = concat(m, (hn_value *[]){a, b}, 2, 1);
  hn_value *g =
      net_op(m, "Gather", (hn_value *[]){all, hn_value_constant(m->graph, NULL, &d, order, true)}, 2);
  assert_true(hn_node_set_int(g->producer, "axis", 1));
  hn_value *c = conv(m, g, 12, 12, 3, 3, 3);
  net_finish(m, conv(m, concat(m, (hn_value *[]){c, a}, 2, 1), 24, 8, 1, 1, 4));
  return m;
}

static const float *input(void) {
  static float x[N * C * H * W];
  for (int i = 0; i < N * C * H * W; i++) x[i] = (float)((i * 37) % 101) / 50.0f - 1.0f;
  return x;
}

static void run(net_session *s) {
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){N, C, H, W}), (void *)(uintptr_t)input()};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  if (hone_context_run(s->context, inputs, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
}

static void assert_same(const net_session *a, const net_session *b) {
  for (uint32_t k = 0; k < hone_plan_outputs(a->plan); k++) {
    const hone_tensor *x = hone_context_output(a->context, k), *y = hone_context_output(b->context, k);
    assert_true(hone_desc_same_dims(&x->desc, &y->desc));
    for (int64_t i = 0; i < hone_desc_count(&x->desc); i++) {
      const float want = ((const float *)x->data)[i], got = ((const float *)y->data)[i];
      if (!(fabsf(got - want) <= 1e-4f))
        fail_msg("output %u [%lld] is %g, not %g", k, (long long)i, got, want);
    }
  }
}

static int concats(const hone_plan *plan) {
  int n = 0;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(plan, i, &info));
    n += !strcmp(info.op_type, "Concat");
  }
  return n;
}

/* The plan answers as the reference does, twice (nothing of a run is left that the next one meets), and has
 * so many Concats at most. */
static void assert_right(builder build, int most) {
  for (uint32_t threads = 1; threads <= 2; threads++) {
    net_session want = net_open(build(), 0, true, 1), got = net_open(build(), 2, false, threads);
    assert_in_range(concats(got.plan), 0, most);
    run(&want);
    run(&got);
    assert_same(&want, &got);
    run(&got);
    assert_same(&want, &got);
    net_close(&want);
    net_close(&got);
  }
}

static void what_is_gathered_is_written_in_its_place(void **state) {
  (void)state;
  assert_right(branches, 0);
  assert_right(chains, 0);
  assert_right(dense, 2); /* what reads a part may be slower than the copy */
  assert_right(returned, 0);
  assert_right(part_returned, 0); /* row-major, while the part is channels-last */
  assert_right(shuffled, 1);      /* a is in the first one already */
}

static void what_cannot_lie_there_is_copied(void **state) {
  (void)state;
  assert_right(other_axes, 1); /* height, in images of a batch */
  assert_right(twice, 1);
  assert_right(shared, 1);
}

static void below_level_2_every_node_is_a_step(void **state) {
  (void)state;
  net_session s = net_open(branches(), 1, false, 1);
  assert_int_equal(concats(s.plan), 1);
  net_close(&s);
}

/* The memory of the caller is where the parts are written, too. */
static void parts_go_to_memory_of_the_caller(void **state) {
  (void)state;
  net_session want = net_open(returned(), 0, true, 1), got = net_open(returned(), 2, false, 1);
  run(&want);
  run(&got);
  hone_tensor to = {hone_context_output(got.context, 0)->desc, NULL};
  const size_t bytes = (size_t)hone_desc_bytes(&to.desc);
  to.data = malloc(bytes);
  assert_non_null(to.data);
  memset(to.data, 0x7f, bytes);
  assert_int_equal(hone_context_bind_output(got.context, 0, &to, NULL), HONE_OK);
  run(&got);
  assert_ptr_equal(hone_context_output(got.context, 0)->data, to.data);
  assert_same(&want, &got);
  net_close(&want);
  net_close(&got);
  free(to.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_gathered_is_written_in_its_place),
      cmocka_unit_test(what_cannot_lie_there_is_copied),
      cmocka_unit_test(below_level_2_every_node_is_a_step),
      cmocka_unit_test(parts_go_to_memory_of_the_caller),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
