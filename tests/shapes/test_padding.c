/* The proof that padding changes nothing: against execution, and where it must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/shapes/rows.h"
#include "base/rng.h"
#include "model/bind.h"
#include "model/ir/eval.h"
#include "model/padding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 8 };

typedef struct proof {
  hn_model *small, *large;
  int64_t wanted, size;
  hn_pad in[VALUES], out[VALUES];
  bool proved;
  hone_reason why;
} proof;

static hn_model *bind(hn_model *m, const char *symbol, int64_t size) {
  const hone_binding b = {.symbol = symbol, .rank = 1, .dim = {size}};
  hn_model *out = NULL;
  hone_error e = {0};
  if (hn_model_bind(m, &b, 1, 0, &out, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return out;
}

static proof prove(hn_model *m, const char *symbol, int64_t wanted, int64_t size) {
  proof p = {.wanted = wanted, .size = size};
  p.small = bind(m, symbol, wanted), p.large = bind(m, symbol, size);
  assert_true(p.small->graph->inputs.len <= VALUES && p.small->graph->outputs.len <= VALUES);
  assert_int_equal(hn_prove_padding(p.small, p.large, wanted, size, p.in, p.out, &p.proved, &p.why, NULL),
                   HONE_OK);
  return p;
}

static void end(proof *p) {
  hn_model_destroy(p->small);
  hn_model_destroy(p->large);
}

static hone_tensor random_tensor(const hone_tensor_desc *d, hn_rng *rng) {
  hone_tensor t = {*d, malloc((size_t)hone_desc_bytes(d) + 1)};
  assert_non_null(t.data);
  for (int64_t i = 0; i < hone_desc_count(d); i++)
    if (d->dtype == HONE_DTYPE_F32)
      ((float *)t.data)[i] = (float)(hn_rng_unit(rng) * 2 - 1);
    else if (d->dtype == HONE_DTYPE_I64)
      ((int64_t *)t.data)[i] = (int64_t)hn_rng_below(rng, 3);
    else if (d->dtype == HONE_DTYPE_I32)
      ((int32_t *)t.data)[i] = (int32_t)hn_rng_below(rng, 3);
    else
      fail_msg("%s is not made here", hone_dtype_name(d->dtype));
  return t;
}

static void eval(const hn_model *m, const hone_tensor *const *in, hone_tensor *out) {
  hn_arena keep = {0};
  hone_error e = {0};
  if (hn_eval_graph(m->graph, in, out, NULL, &keep, NULL, NULL, NULL, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  hn_arena_free(&keep);
}

/* The references give the same bits in the part that is wanted, whatever stands in the rest. */
static void same_when_run(const proof *p, uint64_t seed) {
  const size_t n_in = p->small->graph->inputs.len, n_out = p->small->graph->outputs.len;
  hone_tensor small[VALUES] = {0}, large[VALUES] = {0}, y[VALUES] = {0}, z[VALUES] = {0};
  const hone_tensor *a[VALUES] = {0}, *b[VALUES] = {0};
  hn_rng rng = {seed};
  for (size_t i = 0; i < n_in; i++) {
    large[i] = random_tensor(&p->large->graph->inputs.ptr[i]->desc, &rng);
    small[i] = random_tensor(&p->small->graph->inputs.ptr[i]->desc, &rng);
    hn_rows_cut(&large[i], &small[i]);
    a[i] = &small[i], b[i] = &large[i];
  }
  eval(p->small, a, y);
  eval(p->large, b, z);
  for (size_t i = 0; i < n_out; i++) {
    hone_tensor cut = {y[i].desc, malloc((size_t)hone_desc_bytes(&y[i].desc) + 1)};
    if (p->out[i].kind == HN_PAD_ROWS)
      assert_int_equal(y[i].desc.dim[p->out[i].axis], p->out[i].each * p->wanted);
    hn_rows_cut(&z[i], &cut);
    assert_memory_equal(cut.data, y[i].data, (size_t)hone_desc_bytes(&y[i].desc));
    free(cut.data);
  }
  for (size_t i = 0; i < n_in; i++) free(small[i].data), free(large[i].data);
  for (size_t i = 0; i < n_out; i++) hn_free(y[i].data), hn_free(z[i].data);
}

/* ------------------------------------------------------------------ graphs with an answer */

typedef struct given {
  const char *inputs, *body; /* "%x: f32[Nx4]", "%y = Relu(%x)" */
  const char *against;       /* NULL: proved; else in the reason */
} given;

#define X "%x: f32[Nx4x6]"
#define I "%x: f32[Nx2x5x5]"

static const given givens[] = {
    {X, "%y = Relu(%x)", NULL},
    {X, "%y = Add(%x, %x)", NULL},
    {X, "const %b: f32[6] = rand(1) %y = Mul(%x, %b)", NULL},
    {X, "%y = Softmax(%x) {axis=-1}", NULL},
    {X, "%y = Softmax(%x) {axis=0}", "normalises over it"},
    {X, "%y = LogSoftmax(%x) {axis=1}", NULL},
    {X, "%y = ReduceMean(%x) {axes=[1], keepdims=0}", NULL},
    {X, "%y = ReduceMean(%x) {axes=[0]}", "reduces over it"},
    {X, "%y = ReduceMax(%x)", "reduces over all axes"},
    {X, "%t = Transpose(%x) {perm=[2, 0, 1]} %y = ReduceMean(%t) {axes=[0], keepdims=0}", NULL},
    {X, "%t = Transpose(%x) %y = Softmax(%t) {axis=2}", "normalises over it"},
    {X, "%y = Reshape(%x, i64[2]{0, -1})", NULL},
    {X, "%y = Reshape(%x, i64[2]{-1, 6})", NULL},
    {X, "%t = Transpose(%x) {perm=[1, 0, 2]} %y = Reshape(%t, i64[2]{-1, 6})", "dimension before it"},
    {X, "%y = Reshape(%x, i64[1]{-1})", NULL},
    {X, "%r = Reshape(%x, i64[2]{-1, 6}) %y = Reshape(%r, i64[3]{-1, 4, 6})", NULL},
    {X, "const %w: f32[6x3] = rand(1) %y = MatMul(%x, %w)", NULL},
    {X, "%t = Transpose(%x) {perm=[0, 2, 1]} %y = MatMul(%x, %t)", NULL},
    {"%x: f32[Nx6]", "%t = Transpose(%x) %y = MatMul(%x, %t)", "multiplies it by itself"},
    {"%x: f32[Nx6]", "%t = Transpose(%x) %y = MatMul(%t, %x)", "sums over it"},
    {"%x: f32[Nx6]",
     "const %w: f32[3x6] = rand(1) const %b: f32[3] = rand(2) %y = Gemm(%x, %w, %b) {transB=1}", NULL},
    {"%x: f32[4xN]", "const %w: f32[4x6] = rand(1) %y = Gemm(%x, %w) {transA=1}", NULL},
    {"%x: f32[Nx4]", "const %w: f32[5x4] = rand(1) %y = Gemm(%w, %x) {transB=1}", NULL},
    {"%x: f32[4xN]", "const %w: f32[3x4] = rand(1) %y = MatMul(%w, %x)", NULL},
    {X, "%y = Concat(%x, %x) {axis=2}", NULL},
    {X, "%y = Concat(%x, %x) {axis=0}", "along its own axis"},
    {X, "%y, %z = Split(%x) {axis=1}", NULL},
    {X, "%y = Slice(%x, i64[1]{1}, i64[1]{3}, i64[1]{1})", NULL},
    {X, "%y = Slice(%x, i64[1]{0}, i64[1]{9223372036854775807}, i64[1]{0})", NULL},
    {X, "%y = Slice(%x, i64[1]{0}, i64[1]{1}, i64[1]{0})", "takes a part of it"},
    {X, "%y = Slice(%x, i64[1]{-1}, i64[1]{-99}, i64[1]{0}, i64[1]{-1})", "takes a part of it"},
    {X, "%y = Gather(%x, i64[2]{3, 0}) {axis=1}", NULL},
    {X, "%y = Gather(%x, i64[1]{-1}) {axis=0}", "by their number"},
    {"%x: i64[Nx5]", "const %w: f32[3x4] = rand(1) %y = Gather(%w, %x)", NULL},
    {X, "%y = ArgMax(%x) {axis=2, keepdims=0}", NULL},
    {X, "%y = ArgMax(%x) {axis=0}", "searches along it"},
    {X, "%y, %z = TopK(%x, i64[1]{2})", NULL},
    {X, "%y = CumSum(%x, i64{1})", NULL},
    {X, "%y = CumSum(%x, i64{0})", "sums along it"},
    {X, "const %s: f32[6] = rand(1) %y = LayerNormalization(%x, %s)", NULL},
    {X, "%y = Unsqueeze(%x, i64[1]{0})", NULL},
    {X, "%y = Pad(%x, i64[6]{0, 1, 0, 0, 0, 2})", NULL},
    {X, "%y = Pad(%x, i64[6]{0, 0, 0, 1, 0, 0})", "pads along it"},
    {X, "%y = Tile(%x, i64[3]{1, 2, 1})", NULL},
    {X, "%y = Tile(%x, i64[3]{2, 1, 1})", "repeats it"},
    {X, "%y = Einsum(%x, %x) {equation=\"nij,nkj->nik\"}", NULL},
    {X, "%y = Einsum(%x, %x) {equation=\"nij,nkj->ik\"}", "sums over it"},
    {I, "const %w: f32[3x2x3x3] = rand(1) %y = Conv(%x, %w) {pads=[1, 1, 1, 1]}", NULL},
    {I, "%y = GlobalAveragePool(%x)", NULL},
    {I, "%y = MaxPool(%x) {kernel_shape=[2, 2]}", NULL},
    {I,
     "const %s: f32[2] = rand(1) const %v: f32[2] = rand(2, 0.5, 1) %y = BatchNormalization(%x, %s, %s, %s, "
     "%v)",
     NULL},
    {I,
     "const %s: f32[2] = rand(1) const %v: f32[2] = rand(2, 0.5, 1) %y, %m, %n = BatchNormalization(%x, %s, "
     "%s, %s, %v) "
     "{training_mode=1}",
     "training mode"},
    {"%x: f32[1x2xNx5]", "%y = GlobalAveragePool(%x)", "works across that dimension"},
    {"%x: f32[1x2xNx5]", "const %w: f32[3x2x3x3] = rand(1) %y = Conv(%x, %w)", "works across that dimension"},
    {"%x: f32[1x2xNx5]", "const %w: f32[5x3] = rand(1) %y = MatMul(%x, %w)", NULL},
    /* Numbers made of the size. */
    {X, "%s = Shape(%x) %c = Cast(%s) {to=1} %g = Gather(%c, i64{0}) %y = Div(%x, %g)",
     "computes with its size"},
    {X, "%s = Shape(%x) %c = Cast(%s) {to=1} %g = Gather(%c, i64{1}) %y = Div(%x, %g)", NULL},
    {X,
     "%s = Shape(%x) %g = Slice(%s, i64[1]{0}, i64[1]{1}) %k = Concat(%g, i64[1]{24}) {axis=0} %y = "
     "Reshape(%x, %k)",
     NULL},
    {X, "%s = Shape(%x) %g = Slice(%s, i64[1]{0}, i64[1]{1}) %y = Expand(3.5, %g)", NULL},
    {X, "%s = Shape(%x) %z = ConstantOfShape(%s) %y = Add(%x, %z)", NULL},
    {X, "%y = Shape(%x)", "says how long it is"},
    {X, "%y, %s, %z = DynamicQuantizeLinear(%x)", "all elements"},
    {X, "%y = NonZero(%x)", "only the run knows"},
    {"%x: f32[3xNx4]",
     "const %w: f32[1x20x4] = rand(1) const %r: f32[1x20x5] = rand(2) %y, %h = LSTM(%x, %w, %r) "
     "{hidden_size=5}",
     NULL},
    {"%x: f32[Nx3x4]",
     "const %w: f32[1x20x4] = rand(1) const %r: f32[1x20x5] = rand(2) %y = LSTM(%x, %w, %r) {hidden_size=5}",
     "step by step"},
    {"%x: f32[NxN]", "%y = Relu(%x)", "more than one dimension"},
    {"%x: f32[Nx4], %m: f32[4]", "%y = Add(%x, %m)", NULL},
    {"%x: f32[Nx4], %m: f32[4]", "%y = Add(%m, %m)", NULL},
};

static void answers_are_as_they_must_be(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof givens / sizeof *givens; i++) {
    const given *g = &givens[i];
    char text[1000];
    snprintf(text, sizeof text, "ir 8\nopset 17\ngraph g(%s) -> (%%y) { %s }", g->inputs, g->body);
    hn_model *m = net_parse(g->body, text);
    proof p = prove(m, "N", 3, 8);
    if (p.proved != !g->against) fail_msg("%s: %s", g->body, p.proved ? "proved" : p.why.text);
    if (g->against && !strstr(p.why.text, g->against)) fail_msg("%s: %s", g->body, p.why.text);
    if (p.proved)
      for (uint64_t k = 0; k < 3; k++) same_when_run(&p, k);
    end(&p);
    hn_model_destroy(m);
  }
}

static void a_reason_names_the_node(void **state) {
  (void)state;
  hn_model *m = net_parse("named", "ir 8\nopset 17\ngraph g(%x: f32[Nx4]) -> (%y) { %r = Relu(%x) "
                                   "%y = ReduceMean(%r) {axes=[0]} \"mean_7\" }");
  proof p = prove(m, "N", 1, 2);
  assert_false(p.proved);
  assert_string_equal(p.why.text, "node 'mean_7' (ReduceMean) reduces over it");
  end(&p);
  hn_model_destroy(m);
}

/* ------------------------------------------------------------------ random graphs */

/* Lines that read %a, a tensor of rank 3, and make %b, one of rank 3. */
static const char *const lines[] = {
    "Relu(%a)",
    "Softmax(%a) {axis=0}",
    "Softmax(%a) {axis=1}",
    "Softmax(%a) {axis=2}",
    "Transpose(%a) {perm=[1, 0, 2]}",
    "Transpose(%a) {perm=[0, 2, 1]}",
    "Transpose(%a) {perm=[2, 0, 1]}",
    "ReduceMax(%a) {axes=[0]}",
    "ReduceMax(%a) {axes=[1]}",
    "ReduceMax(%a) {axes=[2]}",
    "Concat(%a, %a) {axis=0}",
    "Concat(%a, %a) {axis=1}",
    "Concat(%a, %a) {axis=2}",
    "CumSum(%a, i64{0})",
    "CumSum(%a, i64{1})",
    "Slice(%a, i64[1]{0}, i64[1]{1}, i64[1]{1})",
    "Slice(%a, i64[1]{0}, i64[1]{1}, i64[1]{2})",
    "Unsqueeze(%c, i64[1]{1})",
    "Add(%a, %e)",
    "Tile(%a, i64[3]{1, 1, 2})",
    "MatMul(%a, %t)",
    "LpNormalization(%a) {axis=1}",
    "Reshape(%a, i64[3]{0, 1, -1})",
    "Reshape(%a, i64[3]{-1, 1, 1})",
    "Reshape(%a, i64[3]{1, -1, 1})",
};

static void write_line(char *text, size_t size, int at, const char *line) {
  size_t n = strlen(text);
  n += (size_t)snprintf(text + n, size - n,
                        " %%t%d = Transpose(%%v%d) {perm=[0, 2, 1]} %%c%d = Reshape(%%v%d, i64[2]{0, -1})"
                        " %%e%d = ReduceMean(%%v%d) {axes=[2]} %%v%d = ",
                        at, at, at, at, at, at, at + 1);
  for (const char *c = line; *c; c++)
    if (*c == '%')
      n += (size_t)snprintf(text + n, size - n, "%%%c%d", c[1] == 'a' ? 'v' : c[1], at), c++;
    else
      text[n++] = *c, text[n] = 0;
}

static void random_graphs(void **state) {
  (void)state;
  hn_rng rng = {20};
  uint32_t proved = 0, refused = 0;
  for (int round = 0; round < 400; round++) {
    char text[4000] = "ir 8\nopset 17\ngraph g(%v0: f32[Nx2x3]) -> (%out) {";
    const int n = 1 + (int)hn_rng_below(&rng, 5);
    for (int i = 0; i < n; i++)
      write_line(text, sizeof text, i, lines[hn_rng_below(&rng, sizeof lines / sizeof *lines)]);
    snprintf(text + strlen(text), sizeof text - strlen(text), " %%out = Neg(%%v%d) }", n);
    hn_model *m = net_parse(text, text);
    proof p = prove(m, "N", 2, 5);
    proved += p.proved, refused += !p.proved;
    if (p.proved) same_when_run(&p, (uint64_t)round);
    end(&p);
    hn_model_destroy(m);
  }
  assert_true(proved > 80 && refused > 80);
}

/* ------------------------------------------------------------------ networks */

static void networks(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int64_t size;
    double width;
    bool run;
  } nets[] = {{"mobilenetv2", 32, 0.1, true},
              {"resnet50", 32, 0.05, true},
              {"yolov3", 32, 0.05, false},
              {"bert_base", 8, 0.1, false}};
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    const hone_zoo_options o = {.size = nets[i].size, .width = nets[i].width};
    hn_model *m = NULL;
    hone_error e = {0};
    if (hone_zoo_build(nets[i].name, &o, &m, &e) != HONE_OK) fail_msg("%s: %s", nets[i].name, e.what);
    proof p = prove(m, "N", 1, 3);
    if (!p.proved) fail_msg("%s: %s", nets[i].name, p.why.text);
    if (nets[i].run) same_when_run(&p, 1);
    end(&p);
    hn_model_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_as_they_must_be),
      cmocka_unit_test(a_reason_names_the_node),
      cmocka_unit_test(random_graphs),
      cmocka_unit_test(networks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
