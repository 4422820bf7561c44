/* Caches that a decoder hands on: made in place of the one that came, or, where the run finds out how long
 * they are, written by the step that makes them to where the caller wants them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <hone/hone.h>
#include <stdlib.h>
#include <string.h>

enum { KV = 2, ROOM = 64, SIZE = 32, ROW = KV * SIZE, CACHE = KV * ROOM * SIZE, MOST = 8 };

#define HEAD                                                                                                 \
  "opset 21\nopset \"com.microsoft\" 1\ngraph g(%q: f32[1x1x128], %k: f32[1x1x64], %v: f32[1x1x64], "
#define CACHES "%pk: f32[1x2x64x32], %pv: f32[1x2x64x32], %n: i32[1]"
#define ATTEND(total)                                                                                        \
  "  %y, %ok, %ov = com.microsoft::GroupQueryAttention(%q, %k, %v, %pk, %pv, %n, " total                     \
  ") {num_heads=4, kv_num_heads=2}\n"

typedef struct decoder {
  net_session s;
  hone_context *plain;
  float q[2 * ROW], k[ROW], v[ROW], pk[CACHE], pv[CACHE];
  int32_t n, total;
  hone_tensor in[MOST];
  const hone_tensor *given[MOST];
} decoder;

static void fill(float *x, int64_t n, unsigned seed) {
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
}

static void open_decoder(decoder *d, const char *text) {
  memset(d, 0, sizeof *d);
  d->s = net_open(net_parse("continued", text), 2, false, 2);
  assert_int_equal(hone_context_create(d->s.plan, &d->plain, NULL), HONE_OK);
  void *data[MOST] = {d->q, d->k, d->v, d->pk, d->pv, &d->n, &d->total};
  for (uint32_t i = 0; i < hone_plan_inputs(d->s.plan); i++) {
    d->in[i] = (hone_tensor){*hone_plan_input_desc(d->s.plan, i), data[i]};
    d->given[i] = &d->in[i];
  }
  fill(d->pk, CACHE, 1);
  fill(d->pv, CACHE, 2);
}

static void close_decoder(decoder *d) {
  hone_context_destroy(d->plain);
  net_close(&d->s);
}

static void token(decoder *d, unsigned seed) {
  fill(d->q, 2 * ROW, seed);
  fill(d->k, ROW, seed + 1);
  fill(d->v, ROW, seed + 2);
}

static void run(hone_context *c, const hone_tensor *const *in) {
  hone_error e = {0};
  char line[400] = "";
  if (hone_context_run(c, in, NULL, &e) == HONE_OK) return;
  hone_error_format(&e, line, sizeof line);
  fail_msg("%s", line);
}

static void test_in_place(void **state) {
  (void)state;
  static const int32_t over[] = {-1, 3, 4};
  decoder d;
  float cache[2][CACHE];
  open_decoder(&d, HEAD CACHES ") -> (%y, %ok, %ov) {\n" ATTEND("i32[1]{64}") "}\n");
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(hone_plan_output_over(d.s.plan, i), over[i]);
  assert_int_equal(hone_plan_output_over(d.s.plan, 3), -1);
  assert_int_equal(hone_plan_output_over(NULL, 0), -1);
  memcpy(cache[0], d.pk, sizeof d.pk);
  memcpy(cache[1], d.pv, sizeof d.pv);
  hone_tensor own[2];
  const hone_tensor *in[MOST], *out[3] = {NULL, &own[0], &own[1]};
  memcpy(in, d.given, sizeof in);
  for (int i = 0; i < 2; i++) {
    own[i] = (hone_tensor){d.in[3 + i].desc, cache[i]};
    in[3 + i] = &own[i];
  }
  assert_int_equal(hone_context_bind_outputs(d.s.context, out, NULL), HONE_OK);
  for (d.n = 5; d.n < ROOM; d.n += 7) {
    token(&d, (unsigned)d.n);
    run(d.plain, d.given);
    run(d.s.context, in);
    for (uint32_t i = 0; i < 3; i++) {
      const hone_tensor *want = hone_context_output(d.plain, i), *got = hone_context_output(d.s.context, i);
      if (i) assert_ptr_equal(got->data, cache[i - 1]);
      assert_memory_equal(got->data, want->data, (size_t)hone_desc_bytes(&want->desc));
    }
    memcpy(d.pk, hone_context_output(d.plain, 1)->data, sizeof d.pk);
    memcpy(d.pv, hone_context_output(d.plain, 2)->data, sizeof d.pv);
  }
  close_decoder(&d);
}

/* Only just there, and only over the cache of the same kind. */
static void test_refused(void **state) {
  (void)state;
  decoder d;
  hone_error e = {0};
  float cache[2 * CACHE] = {0};
  open_decoder(&d, HEAD CACHES ") -> (%y, %ok, %ov) {\n" ATTEND("i32[1]{64}") "}\n");
  d.n = 6;
  hone_tensor key = {d.in[3].desc, cache}, value = {d.in[4].desc, cache + CACHE}, beside = key;
  beside.data = cache + SIZE;
  d.given[3] = &key, d.given[4] = &value;
  const hone_tensor *const wrong[][3] = {{NULL, &beside, NULL}, {NULL, &value, NULL}, {NULL, NULL, &key}};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hone_context_bind_outputs(d.s.context, wrong[i], &e), HONE_OK);
    assert_int_equal(hone_context_run(d.s.context, d.given, NULL, &e), HONE_ERROR_USAGE);
    assert_non_null(strstr(e.what, "overlaps the memory bound to output"));
    assert_true((strstr(e.hint, "just where the input lies") != NULL) == (i == 0));
  }
  /* One that two inputs show. */
  d.given[4] = &key;
  assert_int_equal(hone_context_bind_outputs(d.s.context, (const hone_tensor *const[]){NULL, &key, NULL}, &e),
                   HONE_OK);
  assert_int_equal(hone_context_run(d.s.context, d.given, NULL, &e), HONE_ERROR_USAGE);
  close_decoder(&d);
}

/* Whoever reads the cache that came behind the step keeps it from being written over. */
static void test_still_read(void **state) {
  (void)state;
  decoder d;
  open_decoder(&d, HEAD CACHES ") -> (%y, %ok, %ov, %z) {\n" ATTEND(
                       "i32[1]{64}") "  %s = ReduceSum(%y) {keepdims=0}\n  %z = Add(%pk, %s)\n}\n");
  assert_int_equal(hone_plan_output_over(d.s.plan, 1), -1);
  assert_int_equal(hone_plan_output_over(d.s.plan, 2), 4);
  close_decoder(&d);
}

static void *from(void *arg, uint32_t output, const hone_tensor_desc *desc) {
  (void)output;
  assert_int_equal(hone_desc_bytes(desc), (CACHE + ROW) * sizeof(float));
  return arg;
}

/* The length is an input: the run's memory has no copy of what lies in the caller's. */
static void test_late(void **state) {
  (void)state;
  decoder d;
  hone_error e = {0};
  open_decoder(&d, HEAD CACHES ", %t: i32[1]) -> (%y, %ok, %ov) {\n" ATTEND("%t") "}\n");
  d.n = ROOM, d.total = ROOM + 1;
  static float place[2][CACHE + ROW];
  const hone_tensor_desc longer = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, KV, ROOM + 1, SIZE}),
                         shorter = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, KV, ROOM, SIZE});
  const hone_tensor key = {longer, place[0]}, little = {shorter, place[1]};
  assert_int_equal(hone_context_bind_output(d.s.context, 1, &key, &e), HONE_OK);
  assert_int_equal(hone_context_bind_allocator(d.s.context, 2, from, place[1], &e), HONE_OK);
  for (unsigned round = 0; round < 3; round++) {
    token(&d, round);
    memset(place, 0xee, sizeof place);
    run(d.plain, d.given);
    run(d.s.context, d.given);
    for (uint32_t i = 0; i < 3; i++) {
      const hone_tensor *want = hone_context_output(d.plain, i), *got = hone_context_output(d.s.context, i);
      if (i) assert_ptr_equal(got->data, place[i - 1]);
      assert_true(hone_desc_same_dims(&got->desc, &want->desc));
      assert_memory_equal(got->data, want->data, (size_t)hone_desc_bytes(&want->desc));
    }
    assert_true(hone_context_peak(d.s.context) + sizeof place <= hone_context_peak(d.plain));
  }
  /* Other memory from run to run, and too little of it. */
  assert_int_equal(hone_context_bind_output(d.s.context, 2, &little, &e), HONE_OK);
  assert_int_equal(hone_context_run(d.s.context, d.given, NULL, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "the memory bound to output 'ov' is too small");
  assert_int_equal(hone_context_bind_outputs(d.s.context, NULL, &e), HONE_OK);
  run(d.s.context, d.given);
  const hone_tensor *want = hone_context_output(d.plain, 1), *got = hone_context_output(d.s.context, 1);
  assert_ptr_not_equal(got->data, place[0]);
  assert_memory_equal(got->data, want->data, (size_t)hone_desc_bytes(&want->desc));
  close_decoder(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_still_read), cmocka_unit_test(test_late)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
