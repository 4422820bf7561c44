/* Weights in the blocks that ONNX Runtime lays them in for one processor come in order, and how long blocks
 * are is seen, said or asked for. */
#include "model/ir/eval.h"
#include "model/ir/text.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DOMAIN "com.microsoft.nchwc"
#define HEAD "opset 17\nopset \"" DOMAIN "\" 1\n"
#define HEAD9 "opset 9\nopset \"" DOMAIN "\" 1\n"
#define IN "%a = " DOMAIN "::ReorderInput(%x)\n  "
#define CONV(x, more) "%c = " DOMAIN "::Conv(%" x ", %w) {kernel_shape=[2, 3]" more "}\n  "
#define OUT(n) "%y = " DOMAIN "::ReorderOutput(%c) {channels=" n "}\n}\n"

/* A convolution of `x` in both branches. */
#define SIDE(name, made, x) "_branch=graph " name "() -> (%c) {\n    " made CONV(x, "") "}"
#define BRANCH(columns, rows, made, x)                                                                       \
  HEAD "graph g(%x: f32[1x" columns "x4x5], %s: bool[]) -> (%y) {\n  const %w: f32[" rows "x" columns        \
       "x2x3] = rand(1)\n  " IN                                                                              \
       "%c = If(%s) {then" SIDE("t", made, x) ", else" SIDE("e", made, x) "}\n  " OUT(rows)

typedef struct one {
  const char *name, *text, *said; /* said: HONE_NCHWC */
  int64_t block;                  /* 0: refused */
  bool columns;                   /* lie in blocks, too */
} one;

static const one cases[] = {
    {"24 rows are blocks of 8",
     HEAD "graph g(%x: f32[1x8x4x5]) -> (%y) {\n  const %w: f32[24x8x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("24"),
     NULL, 8, true},
    {"32 rows for 20 channels are blocks of 16",
     HEAD "graph g(%x: f32[1x16x4x5]) -> (%y) {\n  const %w: f32[32x16x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("20"),
     NULL, 16, true},
    {"12 columns that no blocks hold",
     HEAD "graph g(%x: f32[1x12x4x5]) -> (%y) {\n  const %w: f32[16x12x2x3] = rand(1)\n  " CONV("x", "")
         OUT("16"),
     NULL, 16, false},
    {"8 columns of a tensor of blocks",
     HEAD "graph g(%x: f32[1x8x4x5]) -> (%y) {\n  const %w: f32[16x8x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("16"),
     NULL, 8, true},
    {"20 channels become 32",
     HEAD "graph g(%x: f32[1x20x4x5]) -> (%y) {\n  const %w: f32[32x32x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("32"),
     NULL, 16, true},
    {"a channel of its own for each row",
     HEAD "graph g(%x: f32[1x32x4x5]) -> (%y) {\n  const %w: f32[32x1x2x3] = rand(1)\n  " IN CONV(
         "a", ", group=32") OUT("24"),
     NULL, 16, false},
    {"groups",
     HEAD "graph g(%x: f32[1x64x4x5]) -> (%y) {\n  const %w: f32[32x32x2x3] = rand(1)\n  " IN CONV(
         "a", ", group=2") OUT("32"),
     "16", 16, true},
    {"said to be 8",
     HEAD "graph g(%x: f32[1x3x4x5]) -> (%y) {\n  const %w: f32[16x3x2x3] = rand(1)\n  " CONV("x", "")
         OUT("16"),
     "8", 8, false},
    {"not said",
     HEAD "graph g(%x: f32[1x3x4x5]) -> (%y) {\n  const %w: f32[16x3x2x3] = rand(1)\n  " CONV("x", "")
         OUT("16"),
     NULL, 0, false},
    {"said to be 12",
     HEAD "graph g(%x: f32[1x3x4x5]) -> (%y) {\n  const %w: f32[16x3x2x3] = rand(1)\n  " CONV("x", "")
         OUT("16"),
     "12", 0, false},
    {"seen, whatever is said",
     HEAD "graph g(%x: f32[1x3x4x5]) -> (%y) {\n  const %w: f32[24x3x2x3] = rand(1)\n  " CONV("x", "")
         OUT("24"),
     "16", 8, false},
    {"20 rows",
     HEAD "graph g(%x: f32[1x3x4x5]) -> (%y) {\n  const %w: f32[20x3x2x3] = rand(1)\n  " CONV("x", "")
         OUT("20"),
     NULL, 0, false},
    {"weights that are made",
     HEAD "graph g(%x: f32[1x3x4x5], %w: f32[16x3x2x3]) -> (%y) {\n  " CONV("x", "") OUT("16"), "16", 0,
     false},
    {"channels that nobody declares",
     HEAD "graph g(%x: f32[1x?x4x5]) -> (%y) {\n  const %w: f32[16x16x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("16"),
     "16", 16, true},
    {"20 channels become 32 by an attribute",
     HEAD9 "graph g(%x: f32[1x20x4x5]) -> (%y) {\n  const %w: f32[32x32x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("32"),
     NULL, 16, true},
    {"channels that nobody declares, before Pad had operands",
     HEAD9 "graph g(%x: f32[1x?x4x5]) -> (%y) {\n  const %w: f32[16x16x2x3] = rand(1)\n  " IN CONV("a", "")
         OUT("16"),
     "16", 16, true},
    {"in a branch, 8 columns of a tensor of blocks outside", BRANCH("8", "16", "", "a"), NULL, 8, true},
    {"in a branch, of what is made of a tensor of blocks outside",
     BRANCH("8", "16", "%m = Relu(%a)\n    ", "m"), "8", 8, true},
    {"in a branch, of what is made of a tensor of blocks outside, not said",
     BRANCH("8", "16", "%m = Relu(%a)\n    ", "m"), NULL, 8, true},
    {"in a branch, 24 rows", BRANCH("8", "24", "%m = Relu(%a)\n    ", "m"), "16", 8, true},
    {"of what a branch makes",
     HEAD "graph g(%x: f32[1x8x4x5], %s: bool[]) -> (%y) {\n  const %w: f32[16x8x2x3] = rand(1)\n  " IN
          "%m = If(%s) {then_branch=graph t() -> (%p) {\n    %p = Relu(%a)\n  }, "
          "else_branch=graph e() -> (%q) {\n    %q = Neg(%a)\n  }}\n  " CONV("m", "") OUT("16"),
     "8", 8, true},
    {"blocks that are handed out", HEAD "graph g(%x: f32[1x20x4x5]) -> (%y) {\n  " IN "%y = Relu(%a)\n}\n",
     "16", 0, false},
    {"blocks that a branch hands out",
     HEAD "graph g(%x: f32[1x20x4x5], %s: bool[]) -> (%y) {\n  " IN
          "%y = If(%s) {then_branch=graph t() -> (%p) {\n    %p = Relu(%a)\n  }, "
          "else_branch=graph e() -> (%q) {\n    %q = " DOMAIN "::ReorderOutput(%a) {channels=20}\n  }}\n}\n",
     "16", 0, false},
    {"blocks that a branch makes and hands out",
     HEAD "graph g(%x: f32[1x20x4x5], %s: bool[]) -> (%y) {\n"
          "  %y = If(%s) {then_branch=graph t() -> (%p) {\n    "
          "%p = " DOMAIN "::ReorderInput(%x)\n  }, "
          "else_branch=graph e() -> (%q) {\n    %q = Relu(%x)\n  }}\n}\n",
     "16", 0, false},
    {"blocks that a loop hands out",
     HEAD
     "graph g(%x: f32[1x20x4x5], %n: i64[]) -> (%y) {\n  " IN
     "%y = Loop(%n, _, %a) {body=graph b(%i: i64[], %go: bool[], %s: f32[1x32x4x5]) -> (%more, %next) {\n"
     "    %more = Identity(%go)\n    %next = Relu(%s)\n  }}\n}\n",
     "16", 0, false},
    {"row-major out of a branch",
     HEAD "graph g(%x: f32[1x8x4x5], %s: bool[]) -> (%y, %z) {\n  const %w: f32[16x8x2x3] = rand(1)\n  " IN
          "%z = If(%s) {then_branch=graph t() -> (%p) {\n    %p = Relu(%x)\n  }, "
          "else_branch=graph e() -> (%q) {\n    %q = " DOMAIN
          "::ReorderOutput(%a) {channels=8}\n  }}\n  " CONV("a", "") OUT("16"),
     NULL, 8, true},
    {"another operator", HEAD "graph g(%x: f32[1x8x4x5]) -> (%y) {\n  %y = " DOMAIN "::Resize(%x)\n}\n", "16",
     0, false},
};

/* Walks the weights as they lie in blocks: each must stand in its place now. */
static void check_weights(const one *c, const float *raw, const hone_tensor *w) {
  const int64_t *d = w->desc.dim, b = c->block, in_block = c->columns ? b : 1, plane = d[2] * d[3];
  const float *to = w->data;
  for (int64_t r = 0; r < d[0]; r += b)
    for (int64_t i = 0; i < d[1]; i += in_block)
      for (int64_t p = 0; p < plane; p++)
        for (int64_t k = 0; k < in_block; k++)
          for (int64_t o = 0; o < b; o++)
            if (to[((r + o) * d[1] + i + k) * plane + p] != *raw++)
              fail_msg("%s: a weight is misplaced", c->name);
}

/* How many convolutions there are, each of whose weights are in order. */
static int check_graph(const one *c, const float *raw, const hn_graph *g) {
  int found = 0;
  for (const hone_node *n = g->first; n; n = n->next) {
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) found += check_graph(c, raw, n->attr[k].g);
    if (strcmp(n->op_type, "FusedConv") != 0) continue;
    check_weights(c, raw, n->in[1]->constant);
    found++;
  }
  return found;
}

static void weights(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const one *c = &cases[i];
    hone_error error = {0};
    hn_model *m = NULL;
    if (c->said)
      setenv("HONE_NCHWC", c->said, 1);
    else
      unsetenv("HONE_NCHWC");
    if (hn_model_parse(c->name, c->text, strlen(c->text), &m, &error))
      fail_msg("%s: %s", c->name, error.what);
    const hn_value *w = hn_value_find(m->graph, "w");
    const float *raw = w && w->constant ? w->constant->data : NULL;
    const hone_status s = hn_model_ready(m, &error);
    if ((s == HONE_OK) != (c->block > 0)) fail_msg("%s: %s", c->name, s ? error.what : "is taken");
    if (s) assert_int_equal(s, HONE_ERROR_UNSUPPORTED);
    if (!s && check_graph(c, raw, m->graph) < 1) fail_msg("%s: no convolution", c->name);
    hn_model_destroy(m);
  }
}

/* Large weights stay where they lie in the file, at any address. */
static void at_odd_addresses(void **state) {
  (void)state;
  static const one c = {.name = "at an odd address", .block = 16, .columns = true};
  char folder[96], path[128], text[512];
  int odd = 0;
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-blocked")));
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  setenv("HONE_NCHWC", "16", 1);
  for (int i = 1; i <= 4; i++) {
    hone_error error = {0};
    hn_model *m = NULL, *again = NULL;
    snprintf(text, sizeof text,
             HEAD "graph %.*s(%%x: f32[1x64x4x5]) -> (%%y) {\n  const %%w: f32[64x64x2x3] = rand(1)\n"
                  "  %%a = " DOMAIN "::ReorderInput(%%x)\n  %%c = " DOMAIN
                  "::Conv(%%a, %%w) {kernel_shape=[2, 3]}\n  %%y = " DOMAIN
                  "::ReorderOutput(%%c) {channels=64}\n}\n",
             i, "gggg");
    if (hn_model_parse(c.name, text, strlen(text), &m, &error) || hn_onnx_save(m, path, &error) ||
        hn_onnx_load(path, &again, &error))
      fail_msg("%s", error.what);
    odd += (uintptr_t)hn_value_find(again->graph, "w")->constant->data % sizeof(float) != 0;
    if (hn_model_ready(again, &error)) fail_msg("%s", error.what);
    assert_int_equal(check_graph(&c, hn_value_find(m->graph, "w")->constant->data, again->graph), 1);
    hn_model_destroy(m), hn_model_destroy(again);
  }
  assert_true(odd > 0);
  unsetenv("HONE_NCHWC");
  assert_int_equal(temporary_remove(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights), cmocka_unit_test(at_odd_addresses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
