/* Weights in the blocks that ONNX Runtime lays them in for one processor come in order, and how long blocks
 * are is seen, said or asked for. */
#include "model/ir/eval.h"
#include "model/ir/text.h"
#include "model/operators.h"

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
#define IN "%a = " DOMAIN "::ReorderInput(%x)\n  "
#define CONV(x, more) "%c = " DOMAIN "::Conv(%" x ", %w) {kernel_shape=[2, 3]" more "}\n  "
#define OUT(n) "%y = " DOMAIN "::ReorderOutput(%c) {channels=" n "}\n}\n"

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
    {"channels that nobody asks for",
     HEAD "graph g(%x: f32[1x?x4x5]) -> (%y) {\n  %y = " DOMAIN "::ReorderInput(%x)\n}\n", "16", 0, false},
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
    for (const hone_node *n = m->graph->first; n && !s; n = n->next)
      if (strcmp(n->op_type, "FusedConv") == 0) check_weights(c, raw, n->in[1]->constant);
    hn_model_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
