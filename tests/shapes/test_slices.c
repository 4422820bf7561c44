/* Batches that a run takes a slice after the other: the same answers as all at once, by every way to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "temporary.h"

#include "api/api.h"
#include "base/rng.h"
#include "model/bind.h"
#include "model/padding.h"

#include <hone/facts.h>
#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 6, MOST = 4 };

static hone_plan *plan_of(hone_engine *engine, hone_model *m, uint32_t slices, const char *precision) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  const hone_plan_options o = {.level = 2, .batch = BATCH, .precision = precision, .slices = slices};
  if (hone_plan_create(engine, m, &o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return plan;
}

static hone_engine *engine_of(uint32_t threads) {
  hone_engine *engine = NULL;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = threads}, &engine, NULL), HONE_OK);
  return engine;
}

static hone_tensor random_tensor(const hone_tensor_desc *d, uint64_t seed) {
  hn_rng rng = {seed};
  hone_tensor t = {*d, malloc((size_t)hone_desc_bytes(d) + 1)};
  assert_non_null(t.data);
  for (int64_t i = 0; i < hone_desc_count(d); i++)
    if (d->dtype == HONE_DTYPE_F32)
      ((float *)t.data)[i] = (float)(hn_rng_unit(&rng) * 2 - 1);
    else
      ((int64_t *)t.data)[i] = (int64_t)hn_rng_below(&rng, 2);
  return t;
}

typedef struct given {
  uint32_t n;
  hone_tensor tensor[MOST];
  const hone_tensor *list[MOST];
} given;

static given inputs_of(const hone_plan *plan, uint64_t seed) {
  given g = {.n = hone_plan_inputs(plan)};
  assert_true(g.n <= MOST);
  for (uint32_t i = 0; i < g.n; i++) {
    assert_int_equal(hone_plan_input_desc(plan, i)->dim[0], BATCH);
    g.tensor[i] = random_tensor(hone_plan_input_desc(plan, i), seed + i);
  }
  for (uint32_t i = 0; i < g.n; i++) g.list[i] = &g.tensor[i];
  return g;
}

static void let_go(given *g) {
  for (uint32_t i = 0; i < g->n; i++) free(g->tensor[i].data);
}

/* `list` is in g, wherever that went. */
static hone_context *run(hone_plan *plan, given *g) {
  hone_context *c = NULL;
  hone_error e = {0};
  for (uint32_t i = 0; i < g->n; i++) g->list[i] = &g->tensor[i];
  assert_int_equal(hone_context_create(plan, &c, NULL), HONE_OK);
  if (hone_context_run(c, g->list, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return c;
}

static void same(const hone_tensor *a, const hone_tensor *b, double tolerance, const char *what) {
  double most = 0, range = 0;
  assert_true(hone_desc_same_dims(&a->desc, &b->desc));
  assert_int_equal(a->desc.dtype, HONE_DTYPE_F32);
  const float *x = a->data, *y = b->data;
  for (int64_t i = 0; i < hone_desc_count(&a->desc); i++) {
    range = fmax(range, fabs((double)y[i]));
    most = fmax(most, fabs((double)x[i] - (double)y[i]));
  }
  assert_true(range > 0);
  if (!(most <= tolerance * range)) fail_msg("%s: %g of %g", what, most, range);
}

static void outputs_are_the_same(const hone_plan *plan, const hone_context *a, const hone_context *b,
                                 double tolerance, const char *what) {
  for (uint32_t i = 0; i < hone_plan_outputs(plan); i++) {
    assert_int_equal(hone_plan_output_desc(plan, i)->dim[0] % BATCH, 0);
    same(hone_context_output(a, i), hone_context_output(b, i), tolerance, what);
  }
}

static hone_model *zoo(const char *name, int64_t batch, int64_t size, double width) {
  hone_model *m = NULL;
  const hone_zoo_options o = {.batch = batch, .size = size, .width = width};
  assert_int_equal(hone_zoo_build(name, &o, &m, NULL), HONE_OK);
  return m;
}

static void networks_answer_the_same(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t batch, size; /* batch 0: open */
    double width;
  } nets[] = {{"mobilenetv2", 0, 64, 0.25},
              {"resnet50", BATCH, 64, 0.125},
              {"yolov3", 0, 64, 0.0625},
              {"bert_base", BATCH, 16, 0.125}};
  for (uint32_t threads = 1; threads <= 2; threads++) {
    hone_engine *engine = engine_of(threads);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
      hone_model *m = zoo(nets[i].name, nets[i].batch, nets[i].size, nets[i].width);
      for (int narrow = 0; narrow < 2; narrow++) {
        const char *precision = narrow ? "bf16" : "f32";
        hone_plan *whole = plan_of(engine, m, 1, precision);
        assert_int_equal(hone_plan_slices(whole), 1);
        given g = inputs_of(whole, 7);
        hone_context *want = run(whole, &g);
        for (uint32_t n = 2; n <= BATCH; n++) {
          if (BATCH % n) continue;
          hone_plan *cut = plan_of(engine, m, n, precision);
          assert_int_equal(hone_plan_slices(cut), n);
          uint64_t all, part;
          hone_plan_memory(whole, &all, NULL, NULL);
          hone_plan_memory(cut, &part, NULL, NULL);
          assert_true(part < all);
          hone_context *got = run(cut, &g);
          outputs_are_the_same(whole, got, want, narrow ? 0.03 : 1e-4, nets[i].name);
          hone_context_destroy(got);
          hone_plan_destroy(cut);
        }
        hone_context_destroy(want);
        let_go(&g);
        hone_plan_destroy(whole);
      }
      hone_model_release(m);
    }
    hone_engine_destroy(engine);
  }
}

/* Two inputs, two outputs, one of several rows a sample, rows that are views. */
static const char two_of_each[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3x8x8], %s: f32[Nx4]) -> (%y, %z) {\n"
                                  "const %w: f32[4x3x3x3] = rand(1)\n"
                                  "%c = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
                                  "%r = Relu(%c)\n"
                                  "%a = Reshape(%s, i64[4]{-1, 4, 1, 1})\n"
                                  "%m = Mul(%r, %a)\n"
                                  "%p = GlobalAveragePool(%m)\n"
                                  "%y = Flatten(%p)\n"
                                  "%z = Reshape(%m, i64[2]{-1, 64})\n}";

static void callers_memory_holds_all_slices(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hn_model *m = net_parse("two", two_of_each);
  hone_plan *whole = plan_of(engine, m, 1, "f32"), *cut = plan_of(engine, m, 3, "f32");
  given g = inputs_of(whole, 3);
  hone_context *want = run(whole, &g), *got = NULL;
  assert_int_equal(hone_context_create(cut, &got, NULL), HONE_OK);
  /* An input that is bound with a row between two rows, and outputs in a caller's memory. */
  hone_tensor wide = {g.tensor[1].desc, calloc(BATCH * 8, sizeof(float))};
  for (int i = 0; i < BATCH; i++)
    memcpy((float *)wide.data + 8 * i, (float *)g.tensor[1].data + 4 * i, 4 * sizeof(float));
  wide.desc.stride[0] = 8, wide.desc.stride[1] = 1;
  hone_error e = {0};
  if (hone_context_bind_input(got, 1, &wide, &e) != HONE_OK) fail_msg("%s", e.what);
  hone_tensor out[2];
  for (uint32_t i = 0; i < 2; i++) {
    out[i] = random_tensor(hone_plan_output_desc(cut, i), 99);
    if (hone_context_bind_output(got, i, &out[i], &e) != HONE_OK) fail_msg("%s", e.what);
  }
  const hone_tensor *in[2] = {&g.tensor[0], NULL};
  for (int again = 0; again < 2; again++) {
    if (hone_context_run(got, in, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
    for (uint32_t i = 0; i < 2; i++) {
      same(&out[i], hone_context_output(want, i), 1e-5, "bound");
      assert_ptr_equal(hone_context_output(got, i)->data, out[i].data);
      memset(out[i].data, 0, (size_t)hone_desc_bytes(&out[i].desc));
    }
  }
  hone_context_destroy(got);
  hone_context_destroy(want);
  for (uint32_t i = 0; i < 2; i++) free(out[i].data);
  free(wide.data);
  let_go(&g);
  hone_plan_destroy(cut);
  hone_plan_destroy(whole);
  hone_engine_destroy(engine);
  hn_model_destroy(m);
}

static void a_saved_plan_keeps_its_slices(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hone_model *m = zoo("mobilenetv2", 0, 32, 0.25);
  hone_plan *cut = plan_of(engine, m, 3, "f32"), *read = NULL;
  hone_error e = {0};
  char path[300];
  const int file = mkstemp(temporary(path, sizeof path, "slices"));
  assert_true(file >= 0);
  if (hone_plan_save(cut, path, &e) != HONE_OK) fail_msg("%s", e.what);
  if (hone_plan_open(engine, path, &read, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(hone_plan_slices(read), 3);
  assert_int_equal(hone_plan_bound(read, 0)->desc.dim[0], BATCH);
  given g = inputs_of(read, 5);
  hone_context *a = run(cut, &g), *b = run(read, &g);
  outputs_are_the_same(cut, b, a, 0, "saved");
  hone_context_destroy(a);
  hone_context_destroy(b);
  let_go(&g);
  hone_plan_destroy(read);
  hone_plan_destroy(cut);
  hone_model_release(m);
  hone_engine_destroy(engine);
  remove(path);
}

/* A step is recorded as often as it ran, and the work of a run is that of the whole batch. */
static void a_record_counts_every_slice(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hone_model *m = zoo("mobilenetv2", 0, 32, 0.25);
  double flops[2] = {0};
  for (int k = 0; k < 2; k++) {
    hone_plan *plan = plan_of(engine, m, k ? 3 : 1, "f32");
    hone_step_info step;
    for (uint32_t i = 0; hone_plan_step(plan, i, &step); i++) flops[k] += step.flops;
    given g = inputs_of(plan, 5);
    hone_context *c = NULL;
    hone_facts *facts = hone_facts_create();
    assert_non_null(facts);
    for (uint32_t i = 0; i < g.n; i++) g.list[i] = &g.tensor[i];
    assert_int_equal(hone_context_create(plan, &c, NULL), HONE_OK);
    assert_int_equal(hone_context_record(c, facts, 2, NULL), HONE_OK);
    for (int run = 0; run < 2; run++) assert_int_equal(hone_context_run(c, g.list, NULL, NULL), HONE_OK);
    assert_int_equal(hone_context_record_end(c, NULL), HONE_OK);
    size_t n, of_first = 0;
    const hone_span *spans = hone_facts_spans(facts, &n);
    for (size_t i = 0; i < n; i++) of_first += spans[i].step == 0;
    assert_int_equal(of_first, k ? 2 * 3 : 2);
    assert_true(hone_facts_get_meta(facts)->batch == BATCH);
    hone_facts_destroy(facts);
    hone_context_destroy(c);
    let_go(&g);
    hone_plan_destroy(plan);
  }
  assert_true(fabs(flops[0] - flops[1]) < 1e-6 * flops[0]);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* ------------------------------------------------------------------ what is not cut */

static void refused(const char *body, uint32_t slices, const char *words) {
  char text[600];
  snprintf(text, sizeof text, "ir 8\nopset 17\ngraph g(%%x: f32[Nx3x4]) -> (%%y) { %s }", body);
  hn_model *m = net_parse("refused", text);
  hone_engine *engine = engine_of(1);
  hone_plan *plan = NULL;
  hone_error e = {0};
  const hone_plan_options o = {.level = 2, .batch = BATCH, .slices = slices};
  assert_int_equal(hone_plan_create(engine, m, &o, &plan, &e), HONE_ERROR_UNSUPPORTED);
  if (!strstr(e.what, words)) fail_msg("%s: %s", body, e.what);
  assert_null(plan);
  hone_plan *free_choice = plan_of(engine, m, 0, "f32");
  assert_int_equal(hone_plan_slices(free_choice), 1);
  hone_plan_destroy(free_choice);
  hone_engine_destroy(engine);
  hn_model_destroy(m);
}

#define BEFORE "const %w: f32[4x4] = rand(1) %m = MatMul(%x, %w) "

static void what_meets_is_not_cut(void **state) {
  (void)state;
  refused(BEFORE "%y = ReduceMean(%m) {axes=[0]}", 2, "begin with the batch");
  refused(BEFORE "%y = Softmax(%m) {axis=0}", 2, "normalises over it");
  refused(BEFORE "%y = Relu(%m)", 4, "equal parts");
  refused(BEFORE "%y = Transpose(%m) {perm=[1, 0, 2]}", 2, "begin with the batch");
  /* Every sample its own number: what is right for the first slice is wrong for the second. */
  refused(BEFORE "%s = Shape(%m) %n = Gather(%s, i64{0}) %r = Range(i64{0}, %n, i64{1}) %f = Cast(%r) {to=1} "
                 "%k = Reshape(%f, i64[3]{-1, 1, 1}) %y = Add(%m, %k)",
          2, "computes with its size");
}

/* A weight of 100 MB that a step makes from constants would be made and read in each slice. */
static void what_no_input_reaches_is_made_once(void **state) {
  (void)state;
  hn_model *m = net_parse("made", "graph g(%x: f32[Nx5000]) -> (%y) {\n"
                                  "  const %c: f32[100x500] = full(0.5)\n"
                                  "  const %r: i64[2] = {50, 10}\n"
                                  "  %t = Tile(%c, %r)\n"
                                  "  %w = Exp(%t)\n"
                                  "  %y = MatMul(%x, %w)\n"
                                  "}\n");
  hone_engine *engine = engine_of(1);
  hone_plan *plan = plan_of(engine, m, 0, "f32");
  assert_int_equal(hone_plan_slices(plan), 1);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hn_model_destroy(m);
}

/* The input and the result are there whole in any case: slices would save nothing, and cost a copy. */
static void what_has_no_maps_is_not_cut(void **state) {
  (void)state;
  hn_model *m = net_parse("rows", "ir 8\nopset 17\ngraph g(%x: f32[3000x3500]) -> (%y) { %y = Softmax(%x) }");
  hone_engine *engine = engine_of(1);
  hone_plan *plan = NULL;
  const hone_plan_options o = {.level = 2};
  assert_int_equal(hone_plan_create(engine, m, &o, &plan, NULL), HONE_OK);
  assert_int_equal(hone_plan_slices(plan), 1);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hn_model_destroy(m);
}

static void a_prefix_is_not_all_parts(void **state) {
  (void)state;
  hn_model *m = net_parse(
      "numbers", "ir 8\nopset 17\ngraph g(%x: f32[Nx4]) -> (%y) { %s = Shape(%x) %n = Gather(%s, i64{0}) "
                 "%r = Range(i64{0}, %n, i64{1}) %f = Cast(%r) {to=1} %k = Unsqueeze(%f, i64[1]{1}) "
                 "%y = Add(%x, %k) }");
  hn_model *small = NULL, *large = NULL;
  bool proved = false;
  hone_reason why;
  assert_int_equal(hn_model_bind(m, NULL, 0, 2, &small, NULL, NULL), HONE_OK);
  assert_int_equal(hn_model_bind(m, NULL, 0, 6, &large, NULL, NULL), HONE_OK);
  assert_int_equal(hn_prove_padding(small, large, 2, 6, NULL, NULL, &proved, &why, NULL), HONE_OK);
  assert_true(proved); /* numbers begin alike */
  assert_int_equal(hn_prove_parts(small, large, 2, 6, NULL, NULL, &proved, &why, NULL), HONE_OK);
  assert_false(proved);
  hn_model_destroy(small);
  hn_model_destroy(large);
  hn_model_destroy(m);
}

/* Right for the first part alone, or drawn once for the whole. */
static void parts_are_refused(const char *inputs, const char *body, const char *words) {
  char text[600];
  snprintf(text, sizeof text, "ir 8\nopset 17\ngraph g(%s) -> (%%y) { %s }", inputs, body);
  hn_model *m = net_parse("parts", text), *small = NULL, *large = NULL;
  bool proved = true;
  hone_reason why;
  assert_int_equal(hn_model_bind(m, NULL, 0, 2, &small, NULL, NULL), HONE_OK);
  assert_int_equal(hn_model_bind(m, NULL, 0, 6, &large, NULL, NULL), HONE_OK);
  assert_int_equal(hn_prove_parts(small, large, 2, 6, NULL, NULL, &proved, &why, NULL), HONE_OK);
  if (proved || !strstr(why.text, words)) fail_msg("%s: %s", body, proved ? "proved" : why.text);
  hn_model_destroy(small);
  hn_model_destroy(large);
  hn_model_destroy(m);
}

static void parts_that_are_not_alike(void **state) {
  (void)state;
  parts_are_refused("%x: f32[Nx2x4x4]", "%p, %i = MaxPool(%x) {kernel_shape=[2, 2]} %y = Cast(%i) {to=1}",
                    "places in the whole batch");
  parts_are_refused("%x: f32[Nx4]", "%r = RandomNormal() {shape=[1, 4]} %y = Add(%x, %r)", "draws numbers");
  parts_are_refused("%x: f32[Nx2x4x4]", "%y = Resize(%x, _, f32[4]{1.1, 1, 2, 2}) {mode=\"linear\"}",
                    "scales it");
}

/* Caches in the caller's memory, with the plan in two slices and whole. */
static void cached_in_slices(hn_model *m) {
  enum { BATCH = 4, CACHE = BATCH * 4 * 8 };
  static float x[BATCH * 8], cache[2][2][CACHE], y[2][BATCH * 8];
  int32_t lengths[BATCH] = {0, 3, 1, 2};
  hone_engine *engine = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  for (int i = 0; i < BATCH * 8; i++) x[i] = (float)(i * 7 % 23) / 23;
  for (int k = 0; k < 2; k++) {
    const hone_plan_options o = {.level = 2, .batch = BATCH, .slices = k ? 2 : 1};
    hone_plan *plan = NULL;
    hone_context *c = NULL;
    hone_tensor in[4];
    const hone_tensor *given[4], *bound[3] = {NULL};
    if (hone_plan_create(engine, m, &o, &plan, &e) != HONE_OK) fail_msg("%s", e.what);
    assert_int_equal(hone_plan_slices(plan), k ? 2 : 1);
    assert_int_equal(hone_context_create(plan, &c, NULL), HONE_OK);
    for (int j = 0; j < 2; j++)
      for (int i = 0; i < CACHE; i++) cache[k][j][i] = (float)((i + j) * 5 % 17) / 17;
    void *data[4] = {x, cache[k][0], cache[k][1], lengths};
    for (uint32_t i = 0; i < 4; i++) {
      in[i] = (hone_tensor){*hone_plan_input_desc(plan, i), data[i]};
      given[i] = &in[i];
    }
    for (uint32_t i = 1; i < 3; i++)
      if (hone_plan_output_over(plan, i) == (int32_t)i) bound[i] = &in[i];
    assert_int_equal(hone_context_bind_outputs(c, bound, &e), HONE_OK);
    if (hone_context_run(c, given, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
    memcpy(y[k], hone_context_output(c, 0)->data, sizeof y[k]);
    for (uint32_t i = 1; i < 3; i++)
      memmove(cache[k][i - 1], hone_context_output(c, i)->data, sizeof cache[k][0]);
    hone_context_destroy(c);
    hone_plan_destroy(plan);
  }
  for (int i = 0; i < BATCH * 8; i++) assert_true(fabsf(y[0][i] - y[1][i]) < 1e-5f);
  for (int j = 0; j < 2; j++)
    for (int i = 0; i < CACHE; i++) assert_true(fabsf(cache[0][j][i] - cache[1][j][i]) < 1e-5f);
  hone_engine_destroy(engine);
}

/* Of com.microsoft: what belongs to an input of a batch follows it; padding would have lengths that are none.
 */
static void attention_with_caches(void **state) {
  (void)state;
#define CACHED(total)                                                                                        \
  "opset 17 opset \"com.microsoft\" 1\ngraph g(%x: f32[Nx1x8], %k: f32[Nx1x4x8], %v: f32[Nx1x4x8], %n: "     \
  "i32[N]) -> "                                                                                              \
  "(%y, %a, %b) { %q = com.microsoft::QuickGelu(%x) %g = Reshape(%q, i64[3]{-1, 1, 8}) "                     \
  "%s = com.microsoft::SkipSimplifiedLayerNormalization(%g, %x, f32[8]{1, 2, 3, 4, 5, 6, 7, 8}) %h = "       \
  "Shape(%x) {end=1} "                                                                                       \
  "%t = Cast(%h) {to=6} %y, %a, %b = com.microsoft::GroupQueryAttention(%s, %s, %x, %k, %v, %n, " total ") " \
  "{num_heads=1, kv_num_heads=1} }"
  static const struct {
    const char *text;
    bool holds;
  } cases[] = {{CACHED("i32[1]{4}"), true}, {CACHED("%t"), false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hn_model *m = net_parse("cached", cases[i].text), *small = NULL, *large = NULL;
    hone_reason why;
    bool parts = !cases[i].holds, padding = true;
    assert_int_equal(hn_model_bind(m, NULL, 0, 1, &small, NULL, NULL), HONE_OK);
    assert_int_equal(hn_model_bind(m, NULL, 0, 3, &large, NULL, NULL), HONE_OK);
    assert_int_equal(hn_prove_padding(small, large, 1, 3, NULL, NULL, &padding, &why, NULL), HONE_OK);
    assert_false(padding);
    assert_int_equal(hn_prove_parts(small, large, 1, 3, NULL, NULL, &parts, &why, NULL), HONE_OK);
    if (parts != cases[i].holds) fail_msg("%s", why.text);
    if (parts) cached_in_slices(m);
    hn_model_destroy(small);
    hn_model_destroy(large);
    hn_model_destroy(m);
  }
}

/* ONNX's own: a mask is of each input of a batch, or of all. */
static void own_attention_with_caches(void **state) {
  (void)state;
#define OWN(inputs, body)                                                                                    \
  "opset 24\ngraph g(%x: f32[Nx2x1x4], %k: f32[Nx2x3x4], %n: i64[N]" inputs ") -> (%y) { %q = Neg(%x) " body \
  " }"
  static const struct {
    const char *text;
    bool holds;
  } cases[] = {{OWN("", "%y, %a, %b = Attention(%q, %x, %x, _, %k, %k)"), true},
               {OWN(", %m: f32[Nx1x1x4]", "%y, %a, %b = Attention(%q, %x, %x, %m, %k, %k)"), true},
               {OWN(", %m: f32[1x4]", "%y, %a, %b = Attention(%q, %x, %x, %m, %k, %k)"), true},
               {OWN("", "%c = TensorScatter(%k, %x, %n) %o = Add(%n, i64{1}) "
                        "%y = Attention(%q, %c, %c, _, _, _, %o)"),
                true},
               {"opset 24\ngraph g(%x: f32[1x2xNx4], %k: f32[1x2x3x4]) -> (%y) { %q = Neg(%x) "
                "%y = Attention(%q, %k, %k) }",
                false},
               {"opset 24\ngraph g(%x: f32[2xNx1x4], %k: f32[2xNx3x4], %n: i64[2]) -> (%y) { "
                "%y = TensorScatter(%k, %x, %n) }",
                false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hn_model *m = net_parse("cached", cases[i].text), *small = NULL, *large = NULL;
    hone_reason why = {""};
    bool parts = !cases[i].holds;
    const hone_binding of[2] = {{.symbol = "N", .rank = 1, .dim = {1}},
                                {.symbol = "N", .rank = 1, .dim = {3}}};
    assert_int_equal(hn_model_bind(m, &of[0], 1, 0, &small, NULL, NULL), HONE_OK);
    assert_int_equal(hn_model_bind(m, &of[1], 1, 0, &large, NULL, NULL), HONE_OK);
    assert_int_equal(hn_prove_parts(small, large, 1, 3, NULL, NULL, &parts, &why, NULL), HONE_OK);
    if (parts != cases[i].holds) fail_msg("%d: %s", (int)i, why.text);
    hn_model_destroy(small);
    hn_model_destroy(large);
    hn_model_destroy(m);
  }
}

/* A file that was made up says of slices what cannot be: told, and nothing is run. */
static void made_up_slices_are_refused(void **state) {
  (void)state;
  static const char *const bodies[] = {"%y = ReduceSum(%x, i64[2]{0, 1}) {keepdims=0}",
                                       "%r = Relu(%x) %y = NonZero(%r)"};
  hone_engine *engine = engine_of(1);
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char text[300], path[300];
    snprintf(text, sizeof text, "ir 8\nopset 13\ngraph g(%%x: f32[2x4]) -> (%%y) { %s }", bodies[i]);
    hn_model *m = net_parse("made up", text);
    const hone_plan_options o = {.level = 2, .slices = 1};
    hone_plan *plan = NULL, *read = NULL;
    hone_error e = {0};
    assert_int_equal(hone_plan_create(engine, m, &o, &plan, &e), HONE_OK);
    const int file = mkstemp(temporary(path, sizeof path, "slices"));
    assert_true(file >= 0);
    ((hn_plan *)(uintptr_t)hn_api_plan(plan))->slices = 64;
    if (hone_plan_save(plan, path, &e) != HONE_OK) fail_msg("%s", e.what);
    assert_int_equal(hone_plan_open(engine, path, &read, &e), HONE_ERROR_INPUT);
    if (!strstr(e.what, "slices")) fail_msg("%s", e.what);
    hone_plan_destroy(plan);
    hn_model_destroy(m);
    remove(path);
  }
  hone_engine_destroy(engine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(networks_answer_the_same),      cmocka_unit_test(callers_memory_holds_all_slices),
      cmocka_unit_test(a_saved_plan_keeps_its_slices), cmocka_unit_test(a_record_counts_every_slice),
      cmocka_unit_test(what_meets_is_not_cut),         cmocka_unit_test(what_has_no_maps_is_not_cut),
      cmocka_unit_test(a_prefix_is_not_all_parts),     cmocka_unit_test(what_no_input_reaches_is_made_once),
      cmocka_unit_test(parts_that_are_not_alike),      cmocka_unit_test(attention_with_caches),
      cmocka_unit_test(own_attention_with_caches),     cmocka_unit_test(made_up_slices_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
