/* check_late: models whose shapes come with the run's data, on a GPU (an emulated one in CI) against the CPU:
 * one context runs them with changing shapes, and nothing may be left to the host but work on shapes. Runs
 * whose numbers make no sense, or whose calls the driver refuses (the fake one, on purpose), must fail with
 * an error and leave the context usable. Prints what is wrong; exit 1 when something is. */
#include "skipped.h"
#include "api/api.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/ir/text.h"
#include "model/operators.h"
#include "runtime/context.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, NUMBERS = 6, MOST = 6 };

typedef struct late_case {
  const char *name, *text;
  uint32_t waits; /* of the host for what steps have counted; 0: any */
  /* by run: the numbers of all integer inputs, one behind the other; bad: the run must fail */
  struct {
    int64_t number[NUMBERS];
    bool bad;
  } run[RUNS];
} late_case;

#define HEAD "ir 8\nopset 17\n"
/* Thirty of a value. */
#define FIVE(v) v ", " v ", " v ", " v ", " v
#define MANY(v) FIVE(v) ", " FIVE(v) ", " FIVE(v) ", " FIVE(v) ", " FIVE(v) ", " FIVE(v)

static const late_case cases[] = {
    {"product of a reshaped matrix",
     HEAD "graph g(%x: f32[6x8], %s: i64[2]) -> (%y) {\n"
          "  const %w: f32[4x5] = rand(3)\n  %r = Reshape(%x, %s)\n  %m = MatMul(%r, %w)\n"
          "  %a = Sigmoid(%m)\n  %b = Add(%a, %m)\n  %y = Softmax(%b)\n}\n",
     .run = {{{12, 4}, 0}, {{-1, 4}, 0}, {{7, 4}, 1}, {{12, 4}, 0}, {{-1, -1}, 1}}},
    {"convolution of a cut picture, a product behind it",
     HEAD "graph g(%x: f32[1x8x12x12], %st: i64[2], %en: i64[2]) -> (%y) {\n"
          "  const %w: f32[16x8x3x3] = rand(4, -0.2, 0.2)\n  const %v: f32[16x10] = rand(5)\n"
          "  %c = Slice(%x, %st, %en, i64[2]{2, 3})\n  %d = Conv(%c, %w) {pads=[1, 1, 1, 1]}\n"
          "  %e = Relu(%d)\n  %p = GlobalAveragePool(%e)\n  %f = Flatten(%p)\n  %g = MatMul(%f, %v)\n"
          "  %y = Tanh(%g)\n}\n",
     .run =
         {{{0, 0, 12, 12}, 0}, {{2, 3, 9, 8}, 0}, {{1, 1, -1, -1}, 0}, {{2, 3, 9, 8}, 0}, {{0, 0, 1, 1}, 0}}},
    {"integers divided by integers",
     HEAD "graph g(%x: f32[3], %n: i64[3], %d: i64[3]) -> (%y) {\n"
          "  %q = Div(%n, %d)\n  %r = Mod(%n, %d)\n  %s = Add(%q, %r)\n  %f = Cast(%s) {to=1}\n"
          "  %y = Mul(%x, %f)\n}\n",
     .run = {{{7, 8, -9, 2, 3, 4}, 0},
             {{7, 8, 9, 2, 0, 4}, 1},
             {{7, 8, 9, 2, 3, 0}, 1},
             {{7, 8, 9, -1, 3, 4}, 0},
             {{0, 0, 0, 1, 1, 1}, 0}}},
    {"shapes of shapes",
     HEAD "graph g(%x: f32[4x6], %z: f32[24], %s: i64[2]) -> (%y, %n) {\n"
          "  %r = Reshape(%x, %s)\n  %sh = Shape(%r)\n  %d = Gather(%sh, i64[1]{0})\n"
          "  %t = Concat(%d, i64[1]{-1}) {axis=0}\n  %q = Reshape(%z, %t)\n  %y = Mul(%q, %r)\n"
          "  %n = Size(%q)\n}\n",
     .run = {{{2, 12}, 0}, {{24, 1}, 0}, {{3, -1}, 0}, {{5, 5}, 1}, {{2, 12}, 0}}},
    {"sums, tiles and the largest",
     HEAD "graph g(%x: f32[3x5x7], %a: i64[1], %r: i64[3], %k: i64[1]) -> (%y, %v, %i) {\n"
          "  %s = ReduceSum(%x, %a)\n  %t = Tile(%s, %r)\n  %y = Neg(%t)\n"
          "  %v, %i = TopK(%x, %k) {axis=2}\n}\n",
     .run = {{{0, 1, 2, 1, 3}, 0},
             {{-1, 2, 1, 3, 7}, 0},
             {{1, 1, 1, 1, 1}, 0},
             {{4, 1, 1, 1, 1}, 1},
             {{2, 0, 1, 1, 2}, 0}}},
    {"a length that the device computes",
     HEAD "graph g(%x: f32[2x9], %n: i64[4]) -> (%y) {\n"
          "  %m = ReduceMax(%n) {keepdims=0}\n  %r = Range(i64[]{0}, %m, i64[]{1})\n"
          "  %p = Gather(%x, %r) {axis=1}\n  %y = Exp(%p)\n}\n",
     .run = {{{1, 5, 2, 0}, 0}, {{9, 1, 1, 1}, 0}, {{0, 0, 0, 0}, 0}, {{3, 3, 3, 3}, 0}, {{1, 5, 2, 0}, 0}}},
    {"resized and normalised",
     HEAD "graph g(%x: f32[1x3x8x8], %s: i64[4]) -> (%y) {\n"
          "  const %c: f32[3] = rand(7, 0.5, 1.5)\n  const %b: f32[3] = rand(8)\n"
          "  %r = Resize(%x, _, _, %s) {mode=\"linear\"}\n"
          "  %n = InstanceNormalization(%r, %c, %b)\n  %t = Transpose(%n) {perm=[0, 2, 3, 1]}\n"
          "  %y = LeakyRelu(%t)\n}\n",
     .run = {{{1, 3, 16, 12}, 0},
             {{1, 3, 5, 5}, 0},
             {{1, 3, 8, 8}, 0},
             {{1, 3, 16, 12}, 0},
             {{1, 3, 9, 20}, 0}}},
    {"as many rows as numbers that are not zero",
     HEAD
     "graph g(%x: f32[6x3], %n: i64[6]) -> (%y, %u, %c, %k, %w, %v) {\n"
     "  %z = NonZero(%n)\n  %s = Squeeze(%z, i64[1]{0})\n  %p = Gather(%x, %s) {axis=0}\n"
     "  %e = Exp(%p)\n  %y = ReduceSum(%e, i64[1]{1})\n  %u, _, _, %c = Unique(%n)\n"
     "  %b = Greater(%n, i64[]{2})\n  %q = Compress(%x, %b) {axis=0}\n  %k = Tanh(%q)\n"
     "  const %f: f32[3x5] = rand(10)\n  %w = MatMul(%p, %f)\n"
     "  %h = Cast(%p) {to=10}\n  %i = MatMul(%h, f16[3x1]{1, 0, 0})\n  %v = Cast(%i) {to=1}\n}\n", /* products
                                                                                                      of no
                                                                                                      rows,
                                                                                                      too */
     .run = {{{1, 0, 3, 3, 0, 9}, 0},
             {{0, 0, 0, 0, 0, 0}, 0},
             {{5, 4, 3, 2, 1, 6}, 0},
             {{0, 0, 0, 0, 0, 7}, 0},
             {{1, 0, 3, 3, 0, 9}, 0}}},
    {"two classes, each as long as numbers say, and what is left of each",
     HEAD "graph g(%x: f32[6x3], %n: i64[6]) -> (%y, %k, %l) {\n"
          "  %b = Greater(%n, i64[]{1})\n  %z = NonZero(%b)\n  %s = Squeeze(%z, i64[1]{0})\n"
          "  %p = Gather(%x, %s) {axis=0}\n  %e = Exp(%p)\n  %m = ReduceMax(%p) {axes=[1], keepdims=0}\n"
          "  %f = Greater(%m, f32[]{0.3})\n  %q = Compress(%p, %f) {axis=0}\n  %k = Tanh(%q)\n"
          "  %c = Greater(%n, i64[]{3})\n  %w = NonZero(%c)\n  %t = Squeeze(%w, i64[1]{0})\n"
          "  %r = Gather(%x, %t) {axis=0}\n  %g = Exp(%r)\n  %o = ReduceMax(%r) {axes=[1], keepdims=0}\n"
          "  %h = Greater(%o, f32[]{0.3})\n  %u = Compress(%r, %h) {axis=0}\n  %l = Tanh(%u)\n"
          "  %y = Concat(%e, %g) {axis=0}\n}\n",
     .waits = 2,
     .run = {{{1, 0, 3, 3, 0, 9}, 0},
             {{0, 0, 0, 0, 0, 0}, 0},
             {{5, 4, 3, 2, 1, 6}, 0},
             {{0, 0, 0, 0, 0, 7}, 0},
             {{1, 0, 3, 3, 0, 9}, 0}}},
    {"boxes that remain",
     HEAD "graph g(%x: f32[6x4], %n: i64[6]) -> (%y, %s) {\n"
          "  const %b: f32[1x6x4] = rand(9, 0, 1)\n  %f = Cast(%n) {to=1}\n  %m = Mul(%f, f32[]{0.125})\n"
          "  %p = Reshape(%m, i64[3]{1, 1, 6})\n"
          "  %s = NonMaxSuppression(%b, %p, i64[1]{5}, f32[1]{0.5}, f32[1]{0.2})\n"
          "  %c = Slice(%s, i64[1]{2}, i64[1]{3}, i64[1]{1})\n  %r = Reshape(%c, i64[1]{-1})\n"
          "  %g = Gather(%x, %r) {axis=0}\n  %y = Sigmoid(%g)\n}\n",
     .run = {{{1, 2, 3, 4, 5, 6}, 0},
             {{0, 0, 0, 0, 0, 0}, 0},
             {{8, 7, 6, 5, 4, 3}, 0},
             {{0, 9, 0, 0, 2, 0}, 0},
             {{1, 2, 3, 4, 5, 6}, 0}}},
};

/* More operands than a tactic's description holds: the host does that part. */
static const late_case wide = {
    "a row of many, put together on the host",
    HEAD
    "graph g(%x: f32[6x3], %n: i64[6]) -> (%y, %u) {\n"
    "  %z = NonZero(%n)\n  %s = Squeeze(%z, i64[1]{0})\n  %p = Gather(%x, %s) {axis=0}\n  %q = Sigmoid(%x)\n"
    "  %c = Concat(" MANY("%p") ") {axis=0}\n  %d = Concat(" MANY(
        "%q") ") {axis=1}\n"
              "  %y = Tanh(%c)\n  %u = Exp(%d)\n}\n",
    .run = {{{1, 0, 3, 3, 0, 9}, 0},
            {{0, 0, 0, 0, 0, 0}, 0},
            {{5, 4, 3, 2, 1, 6}, 0},
            {{0, 0, 0, 0, 0, 7}, 0},
            {{1, 0, 3, 3, 0, 9}, 0}}};

static int failures, disturbed;
static bool emulated; /* a driver that fails when it is told to */

static void fail(const late_case *c, const char *precision, int run, const char *what) {
  printf("FAIL %s, %s, run %d: %s\n", c->name, precision, run, what);
  failures++;
}

static hone_plan *plan_of(const late_case *c, hone_engine *engine, const char *precision) {
  hone_error error = {0};
  hn_model *m;
  hone_plan *plan = NULL;
  hone_status s = hn_model_parse("case", c->text, strlen(c->text), &m, &error);
  if (!s) s = hn_model_ready(m, &error);
  if (!s)
    s = hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &plan, &error);
  if (s) {
    printf("FAIL %s: %s %s\n", c->name, error.what, error.where);
    failures++;
  }
  hn_model_destroy(m);
  return plan;
}

/* Inputs of a run: integers as listed, everything else random. */
static void fill(const late_case *c, int run, const hone_plan *p, hone_tensor *in) {
  hn_rng rng = {(uint64_t)run + 1};
  int at = 0;
  for (uint32_t i = 0; i < hone_plan_inputs(p); i++) {
    in[i].desc = *hone_plan_input_desc(p, i);
    const int64_t n = hone_desc_count(&in[i].desc);
    in[i].data = hn_aligned(64, (size_t)n * 8);
    for (int64_t k = 0; k < n; k++)
      if (in[i].desc.dtype == HONE_DTYPE_I64)
        ((int64_t *)in[i].data)[k] = c->run[run].number[at++];
      else
        ((float *)in[i].data)[k] = (float)(2 * hn_rng_unit(&rng) - 1);
  }
}

static void compare(const late_case *c, const char *precision, int run, const hone_tensor *got,
                    const hone_tensor *want, double bound) {
  char text[160], a[64], b[64];
  if (got->desc.dtype != want->desc.dtype || !hone_desc_same_dims(&got->desc, &want->desc)) {
    snprintf(text, sizeof text, "%s for %s", hone_desc_format(&got->desc, a, sizeof a),
             hone_desc_format(&want->desc, b, sizeof b));
    fail(c, precision, run, text);
    return;
  }
  const int64_t n = hone_desc_count(&want->desc);
  double most = 0, range = 1e-3;
  if (want->desc.dtype == HONE_DTYPE_I64) {
    for (int64_t i = 0; i < n; i++)
      most += ((const int64_t *)got->data)[i] != ((const int64_t *)want->data)[i];
    if (most > (bound > 1e-4 ? (double)n / 4 : 0))
      fail(c, precision, run, "other numbers"); /* near ties in fp16 */
    return;
  }
  const float *g = got->data, *w = want->data;
  for (int64_t i = 0; i < n; i++) range = fmax(range, fabs((double)w[i]));
  for (int64_t i = 0; i < n; i++) {
    const double d = fabs((double)g[i] - (double)w[i]);
    most = d <= most ? most : isnan(d) ? INFINITY : d;
  }
  snprintf(text, sizeof text, "differs by %.3g of its range", most / range);
  if (!(most / range <= bound)) fail(c, precision, run, text);
}

/* What the driver refuses in the middle of a run fails that run alone. Returns how many did. */
static int disturb(const late_case *c, const char *precision, int run, hone_context *b,
                   const hone_tensor *const *list) {
  /* codes after which the device goes on */
  static const char *const calls[] = {"cuMemAlloc_v2:%d:2", "cuLaunchKernelEx:%d:701", "cuMemcpyAsync:%d:1",
                                      "cuGraphLaunch:%d:701", "cuModuleLoadData:%d:2"};
  int failed = 0;
  for (size_t i = 0; i < 2 * (sizeof calls / sizeof *calls); i++) {
    char text[64];
    hone_error error = {0};
    snprintf(text, sizeof text, calls[i / 2], i % 2 ? 3 : 1);
    setenv("HONE_FAKE_FAIL", text, 1);
    const hone_status s = hone_context_run(b, list, NULL, &error);
    setenv("HONE_FAKE_FAIL", "", 1);
    if (s == HONE_OK) continue;
    failed++;
    if ((s != HONE_ERROR_MEMORY && s != HONE_ERROR_DEVICE) || !error.what[0])
      fail(c, precision, run, error.what[0] ? error.what : "an error without a word");
  }
  return failed;
}

/* What a step on the device computes with lies in the device's memory. An emulated device would not notice:
 * its memory is the host's. */
static void check_places(const late_case *c, const char *precision, const hn_plan *p) {
  for (size_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    if (s->kind != HN_STEP_TACTIC && s->kind != HN_STEP_LATE) continue;
    for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
      if (s->in[i] == HN_NO_SLOT || (s->node && s->node->op && i < 32 && s->node->op->host_inputs >> i & 1))
        continue;
      const hn_slot *at = &p->slots.ptr[s->in[i]];
      if (p->slots.ptr[hn_slot_root(p, s->in[i])].place != HN_PLACE_CONST && !at->desc.device)
        fail(c, precision, -1, s->desc.name);
    }
  }
}

static bool is_counted(const hn_step *s) {
  return s->kind == HN_STEP_LATE && s->node && s->node->op && s->node->op->flags & HONE_OP_DATA_DEPENDENT;
}

/* How often the host must wait for counts before it knows a step's operands. */
static uint32_t waits_of(const hn_plan *p) {
  bool *pending = hn_calloc(p->slots.len + 1, sizeof *pending);
  uint32_t waits = 0;
  for (size_t k = 0; pending && k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    bool reads = false;
    for (uint32_t i = 0; i < s->desc.n_inputs; i++)
      reads |= s->in[i] != HN_NO_SLOT && pending[hn_slot_root(p, s->in[i])];
    if (reads) memset(pending, 0, p->slots.len * sizeof *pending), waits++;
    for (uint32_t i = 0; is_counted(s) && i < s->desc.n_outputs; i++)
      if (s->out[i] != HN_NO_SLOT) pending[hn_slot_root(p, s->out[i])] = true;
  }
  hn_free(pending);
  return waits;
}

static void check(const late_case *c, hone_engine *cpu, hone_engine *gpu, const char *precision, double bound,
                  bool falls_back) {
  hone_plan *want = plan_of(c, cpu, "f32"), *got = plan_of(c, gpu, precision);
  hone_context *a = NULL, *b = NULL;
  hone_error error = {0};
  if (!want || !got || hone_context_create(want, &a, &error) || hone_context_create(got, &b, &error)) {
    fail(c, precision, -1, error.what);
    goto done;
  }
  const hn_plan *p = hn_api_plan(got);
  check_places(c, precision, p);
  if (c->waits && waits_of(p) != c->waits) fail(c, precision, -1, "other waits than the case has");
  for (size_t k = 0; k < p->steps.len && !falls_back; k++)
    if (hn_step_falls_back(&p->steps.ptr[k])) fail(c, precision, -1, p->steps.ptr[k].desc.anchor);
  for (int run = 0; run < RUNS; run++) {
    hone_tensor in[MOST];
    const hone_tensor *list[MOST];
    fill(c, run, want, in);
    for (uint32_t i = 0; i < hone_plan_inputs(want); i++) list[i] = &in[i];
    const hone_status one = hone_context_run(a, list, NULL, &error);
    hone_error other = {0};
    if (emulated && !c->run[run].bad) disturbed += disturb(c, precision, run, b, list);
    const hone_status two = hone_context_run(b, list, NULL, &other);
    uint32_t step;
    if (c->run[run].bad) {
      if (!one || !two || !other.what[0]) fail(c, precision, run, "numbers without sense were taken");
    } else if (one || two) {
      fail(c, precision, run, one ? error.what : other.what);
    } else {
      for (uint32_t i = 0; i < hone_plan_outputs(want); i++)
        compare(c, precision, run, hone_context_output(b, i), hone_context_output(a, i), bound);
      if (!falls_back && hn_context_fallen_back(hn_api_context(b), &step, 1))
        fail(c, precision, run, p->steps.ptr[step].desc.anchor);
    }
    for (uint32_t i = 0; i < hone_plan_inputs(want); i++) hn_free(in[i].data);
  }
done:
  hone_context_destroy(a);
  hone_context_destroy(b);
  hone_plan_destroy(want);
  hone_plan_destroy(got);
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : ""; /* only cases whose names have it */
  hone_engine *cpu = NULL, *gpu = NULL;
  hone_error error = {0};
  hone_status s = hone_engine_create(&(hone_engine_options){.threads = 1}, &cpu, &error);
  if (!s) s = hone_engine_create(&(hone_engine_options){.threads = 1, .device = "cuda"}, &gpu, &error);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", error.what);
    hone_engine_destroy(cpu);
    return SKIPPED;
  }
  if (s) return printf("FAIL %s\n", error.what), 1;
  emulated = getenv("HONE_LIBCUDA") != NULL;
  setenv("HONE_FAKE_QUIET", "1", 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (!strstr(cases[i].name, word)) continue;
    check(&cases[i], cpu, gpu, "f32", 2e-5, false);
    check(&cases[i], cpu, gpu, "fp16", 2e-2, false);
  }
  if (!*word) {
    check(&wide, cpu, gpu, "f32", 2e-5, true);
    check(&wide, cpu, gpu, "fp16", 2e-2, true);
  }
  hone_engine_destroy(gpu);
  hone_engine_destroy(cpu);
  printf("%zu cases, %d failures, %d runs failed on purpose\n", sizeof cases / sizeof *cases + 1, failures,
         disturbed);
  return failures != 0 || (emulated && !*word && disturbed < 100);
}
