/* Weights that plans have in common: the same bytes as packed alone, whoever goes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "temporary.h"

#include "api/api.h"
#include "base/mem.h"
#include "optimize/plan/packed.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_engine *engine_of(uint32_t threads) {
  hone_engine *engine = NULL;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = threads}, &engine, NULL), HONE_OK);
  return engine;
}

static hn_packed_store *store_of(hone_engine *engine) {
  hn_device *device = NULL;
  const hn_backend *backend = hn_api_backend(engine, &device);
  hn_packed_store *store = hn_packed_store_create(backend, device);
  assert_non_null(store);
  return store;
}

static hone_plan *plan_of(hone_engine *engine, hone_model *m, int64_t batch, const char *precision,
                          hn_packed_store *store) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  const hone_plan_options o = {.level = 2, .batch = batch, .precision = precision};
  if (hn_api_plan_create(engine, m, &o, NULL, store, &plan, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  return plan;
}

/* Step by step, every byte of every blob. */
static void same_bytes(const hone_plan *shared, const hone_plan *alone, const char *name) {
  const hn_plan *a = hn_api_plan(shared), *b = hn_api_plan(alone);
  assert_int_equal(a->steps.len, b->steps.len);
  assert_int_equal(a->blob_bytes, b->blob_bytes);
  for (size_t i = 0; i < a->steps.len; i++) {
    const hn_step *x = &a->steps.ptr[i], *y = &b->steps.ptr[i];
    assert_ptr_equal(x->tactic, y->tactic);
    assert_int_equal(x->need.blob_bytes, y->need.blob_bytes);
    if (!x->need.blob_bytes) continue;
    const size_t at = x->shared ? x->shared_at : x->need.blob_bytes;
    if (memcmp(x->blob, y->blob, at) != 0) fail_msg("%s: the own part of '%s'", name, x->desc.name);
    const void *other = y->shared ? y->shared : (const char *)y->blob + at; /* it may be another step's */
    if (x->shared && memcmp(x->shared, other, x->need.blob_bytes - at) != 0)
      fail_msg("%s: the shared part of '%s' (%s)", name, x->desc.name, x->tactic->name);
  }
}

/* Bytes of packed weights that a plan could have found: of steps that an earlier one runs by the same tactic.
 */
static uint64_t could_find(const hone_plan *later, hone_plan *const *earlier, int64_t count) {
  const hn_plan *a = hn_api_plan(later);
  uint64_t bytes = 0;
  for (size_t i = 0; i < a->steps.len; i++) {
    const hn_step *x = &a->steps.ptr[i];
    bool there = false;
    for (int64_t n = 0; n < count && x->shared; n++) {
      const hn_plan *b = hn_api_plan(earlier[n]);
      for (size_t j = 0; j < b->steps.len; j++)
        there |= b->steps.ptr[j].tactic == x->tactic && !strcmp(b->steps.ptr[j].desc.name, x->desc.name);
    }
    if (there) bytes += x->need.blob_bytes - x->shared_at;
  }
  return bytes;
}

static hone_model *zoo(const char *name, int64_t size, double width) {
  hone_model *m = NULL;
  const hone_zoo_options o = {.size = size, .width = width};
  assert_int_equal(hone_zoo_build(name, &o, &m, NULL), HONE_OK);
  return m;
}

static void shared_weights_are_those_packed_alone(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t size;
    double width;
    const char *precision;
  } nets[] = {{"mobilenetv2", 64, 0.5, "f32"},
              {"resnet50", 64, 0.25, "f32"},
              {"bert_base", 16, 0.25, "f32"},
              {"resnet50", 64, 0.25, "bf16"},
              {"mobilenetv2", 64, 0.5, "bf16"}};
  uint64_t of_all = 0, all = 0;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    hone_engine *engine = engine_of(threads);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
      hone_model *m = zoo(nets[i].name, nets[i].size, nets[i].width);
      hn_packed_store *store = store_of(engine);
      hone_plan *kept[4];
      uint64_t found = 0, could = 0;
      for (int64_t n = 0; n < 4; n++) {
        const int64_t batch = (int64_t[]){1, 2, 7, 16}[n];
        kept[n] = plan_of(engine, m, batch, nets[i].precision, store);
        hone_plan *alone = plan_of(engine, m, batch, nets[i].precision, NULL);
        same_bytes(kept[n], alone, nets[i].name);
        hone_plan_destroy(alone);
        if (n) found += hn_api_plan(kept[n])->found_bytes, could += could_find(kept[n], kept, n);
        if (n) all += hn_api_plan(kept[n])->blob_bytes;
      }
      /* The form of the packed weights may change with the batch. */
      assert_true(could > 0 && found * 3 > could * 2);
      of_all += found;
      for (int64_t n = 0; n < 4; n++) hone_plan_destroy(kept[n]);
      hn_packed_store_drop(store);
      hone_model_release(m);
    }
    hone_engine_destroy(engine);
  }
  assert_true(of_all * 2 > all); /* of all that was packed, whatever tactics came and went with the batch */
}

static float *answer(const hone_plan *plan) {
  hone_context *context = NULL;
  assert_int_equal(hone_context_create((hone_plan *)(uintptr_t)plan, &context, NULL), HONE_OK);
  hone_tensor x = {*hone_plan_input_desc(plan, 0), NULL};
  const int64_t n = hone_desc_count(&x.desc);
  float *data = malloc((size_t)n * sizeof *data);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(i % 17) / 17 - 0.5f;
  x.data = data;
  assert_int_equal(hone_context_run(context, (const hone_tensor *[]){&x}, NULL, NULL), HONE_OK);
  const hone_tensor *out = hone_context_output(context, 0);
  float *y = malloc((size_t)hone_desc_bytes(&out->desc));
  memcpy(y, out->data, (size_t)hone_desc_bytes(&out->desc));
  hone_context_destroy(context);
  free(data);
  return y;
}

/* The maker of the weights goes, and whoever made the store: those who read them stay. */
static void plans_go_in_any_order(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hone_model *m = zoo("mobilenetv2", 32, 0.25);
  hn_packed_store *store = store_of(engine);
  hone_plan *first = plan_of(engine, m, 2, "f32", store), *second = plan_of(engine, m, 3, "f32", store),
            *alone = plan_of(engine, m, 3, "f32", NULL);
  assert_true(hn_api_plan(second)->found_bytes > 0);
  uint32_t blocks = 0;
  const uint64_t both = hn_packed_store_bytes(store, &blocks);
  assert_int_equal(blocks, 2);
  assert_true(both < hn_api_plan(first)->blob_bytes + hn_api_plan(second)->blob_bytes);
  hone_plan_destroy(first);
  assert_int_equal(hn_packed_store_bytes(store, NULL), both); /* the second reads in it */
  hn_packed_store_drop(store);
  hone_model_release(m);
  float *y = answer(second), *want = answer(alone);
  assert_memory_equal(y, want, 3 * 1000 * sizeof *y);
  free(y);
  free(want);
  hone_plan_destroy(second);
  hone_plan_destroy(alone);
  hone_engine_destroy(engine);
}

/* Saved, a plan has all its weights; memory tells all that it needs. */
static void a_saved_plan_is_whole(void **state) {
  (void)state;
  char folder[200], path[240];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "packed")));
  snprintf(path, sizeof path, "%s/p.honeplan", folder);
  hone_engine *engine = engine_of(1);
  hone_model *m = zoo("mobilenetv2", 32, 0.25);
  hn_packed_store *store = store_of(engine);
  hone_plan *first = plan_of(engine, m, 2, "f32", store), *second = plan_of(engine, m, 3, "f32", store),
            *alone = plan_of(engine, m, 3, "f32", NULL), *opened = NULL;
  hone_error e = {0};
  if (hone_plan_save(second, path, &e) != HONE_OK) fail_msg("%s", e.what);
  float *y = answer(second);
  uint64_t shared = 0, whole = 0;
  hone_plan_memory(second, NULL, &shared, NULL);
  hone_plan_memory(alone, NULL, &whole, NULL);
  assert_int_equal(shared, whole);
  hone_plan_destroy(first);
  hone_plan_destroy(second);
  hone_plan_destroy(alone);
  hn_packed_store_drop(store);
  if (hone_plan_open(engine, path, &opened, &e) != HONE_OK) fail_msg("%s", e.what);
  float *again = answer(opened);
  assert_memory_equal(y, again, 3 * 1000 * sizeof *y);
  free(y);
  free(again);
  hone_plan_destroy(opened);
  hone_model_release(m);
  hone_engine_destroy(engine);
  temporary_remove(folder);
}

/* Weights are told apart by what they are, not by where they lie: a constant that one plan folded is another
 * one's at the same place. */
static void folded_constants_are_compared(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hn_model *m =
      net_parse("folded", "ir 8\nopset 17\ngraph g(%x: f32[Nx64]) -> (%y) { const %w: f32[64x32] = rand(1) "
                          "%k = Mul(%w, 2.0) %y = MatMul(%x, %k) }");
  hn_packed_store *store = store_of(engine);
  hone_plan *first = plan_of(engine, m, 2, "f32", store);
  hone_plan *second = plan_of(engine, m, 5, "f32", store), *alone = plan_of(engine, m, 5, "f32", NULL);
  same_bytes(second, alone, "folded");
  assert_true(hn_api_plan(second)->found_bytes > 0);
  hone_plan_destroy(first);
  hone_plan_destroy(second);
  hone_plan_destroy(alone);
  hn_packed_store_drop(store);
  hn_model_destroy(m);
  hone_engine_destroy(engine);
}

/* Weights of 8 bits, and parts of one tensor, which differ in nothing but where they begin. */
static void codes_and_parts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t least;
  } nets[] = {
      {"graph g(%x: f32[Nx8x8x8]) -> (%y) { const %w: i8[16x8x3x3] = rand(1, -100, 100) "
       "%q = QuantizeLinear(%x, 0.02, u8{120}) %d = DequantizeLinear(%q, 0.02, u8{120}) "
       "%v = DequantizeLinear(%w, 0.01, i8{0}) %c = Conv(%d, %v) {pads=[1, 1, 1, 1]} "
       "%r = QuantizeLinear(%c, 0.05, u8{128}) %y = DequantizeLinear(%r, 0.05, u8{128}) }",
       16 * 8 * 9},
      {"graph g(%x: f32[Nx32]) -> (%y, %z) { const %w: f32[64x48] = rand(1) "
       "%a = Slice(%w, i64[1]{0}, i64[1]{32}, i64[1]{0}) %b = Slice(%w, i64[1]{32}, i64[1]{64}, i64[1]{0}) "
       "%y = MatMul(%x, %a) %z = MatMul(%x, %b) }",
       2 * 32 * 48 * 4},
  };
  hone_engine *engine = engine_of(1);
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    char text[1200];
    snprintf(text, sizeof text, "ir 8\nopset 17\n%s", nets[i].text);
    hn_model *m = net_parse("codes", text);
    hn_packed_store *store = store_of(engine);
    hone_plan *first = plan_of(engine, m, 2, "f32", store), *second = plan_of(engine, m, 5, "f32", store),
              *alone = plan_of(engine, m, 5, "f32", NULL);
    same_bytes(second, alone, "codes");
    /* Without vectors other kernels are chosen, which pack nothing here. */
    if (hone_engine_machine(engine)->isa & HONE_ISA_AVX2)
      assert_true(hn_api_plan(second)->found_bytes >= nets[i].least);
    hone_plan_destroy(first);
    hone_plan_destroy(second);
    hone_plan_destroy(alone);
    hn_packed_store_drop(store);
    hn_model_destroy(m);
  }
  hone_engine_destroy(engine);
}

/* The answers of two plans to one picture for each input differ by one code at most. */
static void near_answers(hone_plan *a, hone_plan *b, float code) {
  hone_plan *plan[2] = {a, b};
  hone_context *context[2];
  hone_tensor in[2];
  const hone_tensor *list[2] = {&in[0], &in[1]};
  for (uint32_t k = 0; k < 2; k++) {
    in[k].desc = *hone_plan_input_desc(a, k);
    const int64_t n = hone_desc_count(&in[k].desc);
    float *x = in[k].data = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hone_context_create(plan[i], &context[i], NULL), HONE_OK);
    assert_int_equal(hone_context_run(context[i], list, NULL, NULL), HONE_OK);
  }
  for (uint32_t k = 0; k < 2; k++) {
    const hone_tensor *x = hone_context_output(context[0], k), *y = hone_context_output(context[1], k);
    for (int64_t i = 0; i < hone_desc_count(&x->desc); i++)
      assert_true(fabsf(((const float *)x->data)[i] - ((const float *)y->data)[i]) < 1.01f * code);
    free(in[k].data);
  }
  for (int i = 0; i < 2; i++) hone_context_destroy(context[i]);
}

/* Without VNNI, packed codes are listed with where in the lines of a picture they are wanted: pictures of
 * another width share none of it, in one plan nor between two. */
static void codes_of_other_widths(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  if (hone_engine_create(&(hone_engine_options){.threads = 1, .isa = "avx2"}, &engine, NULL) != HONE_OK)
    skip();
  hn_model *m = net_parse(
      "widths",
      "ir 8\nopset 17\n"
      "graph g(%x: f32[1x8x8xV], %z: f32[1x8x8xW]) -> (%y, %u) { const %w: i8[16x8x3x3] = rand(1, -60, 60) "
      "%q = QuantizeLinear(%x, 0.02, u8{120}) %d = DequantizeLinear(%q, 0.02, u8{120}) "
      "%p = QuantizeLinear(%z, 0.02, u8{120}) %e = DequantizeLinear(%p, 0.02, u8{120}) "
      "%v = DequantizeLinear(%w, 0.01, i8{0}) %c = Conv(%d, %v) {pads=[1, 1, 1, 1]} "
      "%f = Conv(%e, %v) {pads=[1, 1, 1, 1]} "
      "%r = QuantizeLinear(%c, 0.05, u8{128}) %y = DequantizeLinear(%r, 0.05, u8{128}) "
      "%s = QuantizeLinear(%f, 0.05, u8{128}) %u = DequantizeLinear(%s, 0.05, u8{128}) }");
  hn_packed_store *store = store_of(engine);
  hone_plan *kept[3];
  for (int i = 0; i < 3; i++) {
    const hone_binding b[] = {{.symbol = "V", .rank = 1, .dim = {(int64_t[]){8, 12, 12}[i]}},
                              {.symbol = "W", .rank = 1, .dim = {(int64_t[]){8, 12, 20}[i]}}};
    const hone_plan_options o = {.level = 2, .bindings = b, .n_bindings = 2};
    hone_plan *alone = NULL, *reference = NULL;
    hone_error e = {0};
    if (hn_api_plan_create(engine, m, &o, NULL, store, &kept[i], &e) != HONE_OK) fail_msg("%s", e.what);
    assert_int_equal(hn_api_plan_create(engine, m, &o, NULL, NULL, &alone, &e), HONE_OK);
    same_bytes(kept[i], alone, "widths");
    const hone_plan_options plain = {.reference = true, .bindings = b, .n_bindings = 2};
    assert_int_equal(hn_api_plan_create(engine, m, &plain, NULL, NULL, &reference, &e), HONE_OK);
    near_answers(kept[i], reference, 0.05f);
    hone_plan_destroy(alone);
    hone_plan_destroy(reference);
  }
  for (int i = 0; i < 3; i++) hone_plan_destroy(kept[i]);
  hn_packed_store_drop(store);
  hn_model_destroy(m);
  hone_engine_destroy(engine);
}

/* Every allocation fails once: an error, or a plan that is right; nothing stays behind. */
static void memory_may_be_short(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hn_model *m =
      net_parse("short", "ir 8\nopset 17\ngraph g(%x: f32[Nx64]) -> (%y) { const %w: f32[64x32] = rand(1) "
                         "%y = MatMul(%x, %w) }");
  hn_packed_store *store = store_of(engine);
  hone_plan *first = plan_of(engine, m, 2, "f32", store);
  const hone_plan_options o = {.level = 2, .batch = 3};
  bool reached = true;
  for (uint64_t n = 1; reached; n++) {
    hone_plan *plan = NULL;
    hone_error e = {0};
    hn_mem_fail_after(n);
    const hone_status status = hn_api_plan_create(engine, m, &o, NULL, store, &plan, &e);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_true(status == HONE_OK || status == HONE_ERROR_MEMORY);
    assert_int_equal(status == HONE_OK, plan != NULL);
    hone_plan_destroy(plan);
    uint32_t blocks = 0;
    hn_packed_store_bytes(store, &blocks);
    assert_int_equal(blocks, 1);
  }
  hone_plan_destroy(first);
  hn_packed_store_drop(store);
  hn_model_destroy(m);
  hone_engine_destroy(engine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shared_weights_are_those_packed_alone),
      cmocka_unit_test(plans_go_in_any_order),
      cmocka_unit_test(a_saved_plan_is_whole),
      cmocka_unit_test(folded_constants_are_compared),
      cmocka_unit_test(codes_and_parts),
      cmocka_unit_test(codes_of_other_widths),
      cmocka_unit_test(memory_may_be_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
