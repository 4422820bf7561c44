/* hone_layers: which layer of a quantised model is wrong, and why. */
#include "broken.h"
#include "samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/layers.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { C = BROKEN_CHANNELS };

static hn_model *network(float first) { return chain_network(3, 1, first); }

static hone_layers_report layers(hn_model *m, hn_model *q, uint64_t max_bytes) {
  hone_layers_report r;
  hone_error e = {0};
  char line[1200];
  if (hone_layers(m, q, &(hone_layers_options){.threads = 1, .samples = 3, .seed = 9, .max_bytes = max_bytes},
                  &r, &e) != HONE_OK) {
    hone_error_format(&e, line, sizeof line);
    fail_msg("%s", line);
  }
  return r;
}

static void names(const hone_layers_report *r, const char *layer, hone_layer_reason reason,
                  const char *says) {
  if (r->first < 0) fail_msg("nothing is named, not '%s'", layer);
  const hone_layer_error *l = &r->layer[r->first];
  if (strcmp(l->name, layer) != 0 || l->reason != reason)
    fail_msg("'%s' is %s (%s) instead of '%s' %s", l->name, hone_layer_reason_name(l->reason), l->why, layer,
             hone_layer_reason_name(reason));
  if (!strstr(l->why, says)) fail_msg("'%s' lacks '%s'", l->why, says);
  assert_int_equal(r->worst, r->first);
  for (uint32_t i = 0; i < r->n_layers; i++)
    if ((int32_t)i != r->first && r->layer[i].bad)
      fail_msg("'%s', too: %s", r->layer[i].name, r->layer[i].why);
}

static void test_healthy(void **state) {
  (void)state;
  hn_model *m = network(1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hone_layers_report r = layers(m, q.model, 0);
  if (r.first >= 0) fail_msg("'%s': %s", r.layer[r.first].name, r.layer[r.first].why);
  assert_int_equal(r.worst, -1);
  assert_false(r.by_place);
  assert_true(r.n_layers >= 5);
  int convs = 0;
  for (uint32_t i = 0; i < r.n_layers; i++) {
    const hone_layer_error *l = &r.layer[i];
    if (!(l->snr_db > 25 && l->own_snr_db > 25 && l->cosine > 0.99 && l->saturated < 0.01 && l->codes))
      fail_msg("'%s': %g dB, own %g dB, cosine %g, saturated %g", l->name, l->snr_db, l->own_snr_db,
               l->cosine, l->saturated);
    convs += strcmp(l->op_type, "Conv") == 0;
    if (strcmp(l->op_type, "Conv") == 0) assert_int_equal(l->channels, C);
  }
  assert_int_equal(convs, 3);
  hone_layers_report_free(&r);
  quantised_free(&q);
  hone_model_release(m);
}

static void test_broken(void **state) {
  (void)state;
  static const struct {
    float first, factor;
    bool share;
    hone_layer_reason reason;
    const char *says;
  } cases[] = {{1, 0.25f, false, HONE_LAYER_SATURATED, "too small"},
               {1, 4, false, HONE_LAYER_COARSE, "too large"},
               {200, 1, true, HONE_LAYER_IMBALANCED, "one scale for weights of 8 channels"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hn_model *m = network(cases[i].first);
    quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
    hone_layers_report r = layers(m, q.model, 0);
    assert_int_equal(r.first, -1);
    hone_layers_report_free(&r);
    scale_by(q.model, 1, cases[i].factor);
    if (cases[i].share) share_scale(q.model, 1);
    r = layers(m, q.model, 0);
    names(&r, nth(m, "Conv", 1)->name, cases[i].reason, cases[i].says);
    hone_layers_report_free(&r);
    quantised_free(&q);
    hone_model_release(m);
  }
}

/* A zero point far off cuts one end of the range; one wrong scale among the weights' is neither. */
static void test_other_faults(void **state) {
  (void)state;
  hn_model *m = network(1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  uint8_t *zero = rounding_of(q.model, 2)->in[2]->constant->data, old = *zero;
  *zero = 200;
  hone_layers_report r = layers(m, q.model, 0);
  names(&r, nth(m, "Conv", 2)->name, HONE_LAYER_SATURATED, "zero point 200");
  hone_layers_report_free(&r);
  *zero = old;
  ((float *)nth(q.model, "Conv", 1)->in[1]->producer->in[1]->constant->data)[3] *= 4;
  r = layers(m, q.model, 0);
  names(&r, nth(m, "Conv", 1)->name, HONE_LAYER_ARITHMETIC, "weights");
  hone_layers_report_free(&r);
  quantised_free(&q);
  hone_model_release(m);
}

/* Little memory takes more runs and says the same. */
static void test_groups(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  scale_by(q.model, 1, 0.25f);
  hone_layers_report whole = layers(m, q.model, 0), parts = layers(m, q.model, 10000);
  assert_int_equal(whole.groups, 1);
  assert_true(parts.groups >= 3);
  assert_int_equal(whole.n_layers, parts.n_layers);
  assert_int_equal(whole.first, parts.first);
  assert_true(whole.first >= 0);
  for (uint32_t i = 0; i < whole.n_layers; i++) {
    const hone_layer_error *a = &whole.layer[i], *b = &parts.layer[i];
    assert_string_equal(a->name, b->name);
    if (a->snr_db != b->snr_db || a->own_snr_db != b->own_snr_db || a->codes_used != b->codes_used)
      fail_msg("'%s': %g and %g dB, own %g and %g dB", a->name, a->snr_db, b->snr_db, a->own_snr_db,
               b->own_snr_db);
  }
  hone_layers_report_free(&whole);
  hone_layers_report_free(&parts);
  quantised_free(&q);
  hone_model_release(m);
}

/* Where a tool has renamed everything, layers are paired by where they stand. */
static void test_by_place(void **state) {
  (void)state;
  hn_model *m = network(1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hn_graph *g = q.model->graph;
  scale_by(q.model, 1, 0.25f);
  hn_map_free(&g->by_name);
  for (size_t i = 0; i < g->values.len; i++) {
    hn_value *v = g->values.ptr[i];
    if (!v->is_input) v->name = hn_arena_printf(&q.model->arena, "renamed%zu", i);
    assert_true(hn_map_set(&g->by_name, v->name, v));
  }
  hone_layers_report r = layers(m, q.model, 0);
  assert_true(r.by_place);
  names(&r, nth(m, "Conv", 1)->name, HONE_LAYER_SATURATED, "too small");
  hone_layers_report_free(&r);
  quantised_free(&q);
  hone_model_release(m);
}

/* Operators on codes have the scale of what they make where their definitions say, not where a product has
 * it. */
static void test_scales_of_operators_on_codes(void **state) {
  (void)state;
#define CODES                                                                                                \
  "  %p = Sigmoid(%x)\n  %t = Tanh(%x)\n"                                                                    \
  "  %p_quantized = QuantizeLinear(%p, f32 0.004, u8 0)\n"                                                   \
  "  %t_quantized = QuantizeLinear(%t, f32 0.008, u8 128)\n"
  static const char *const cases[][2] = {
      {"  %p = Sigmoid(%x)\n  %t = Tanh(%x)\n  %y = Concat(%p, %t) {axis=1}\n",
       CODES "  %y_quantized = com.microsoft::QLinearConcat(f32 0.01, u8 120, %p_quantized, f32 0.004, u8 0,"
             " %t_quantized, f32 0.008, u8 128) {axis=1}\n"},
      {"  %p = Sigmoid(%x)\n  %t = Tanh(%x)\n  %c = Greater(%x, f32 0)\n  %y = Where(%c, %p, %t)\n",
       CODES "  %c = Greater(%x, f32 0)\n"
             "  %y_quantized = com.microsoft::QLinearWhere(%c, %p_quantized, f32 0.004, u8 0,"
             " %t_quantized, f32 0.008, u8 128, f32 0.01, u8 120)\n"},
      {"  %t = Tanh(%x)\n  %y = Sigmoid(%t)\n",
       "  %t = Tanh(%x)\n  %t_quantized = QuantizeLinear(%t, f32 0.008, u8 128)\n"
       "  %y_quantized = com.microsoft::QLinearSigmoid(%t_quantized, f32 0.008, u8 128, f32 0.004, u8 0)\n"}};
#undef CODES
  /* Codes that are outputs keep the operator from being spelled out. */
  static const char *const y[][3] = {
      {"1x8x9", "0.01, u8 120", "p"}, {"1x4x9", "0.01, u8 120", "p"}, {"1x4x9", "0.004, u8 0", "t"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[2][1200];
    static const char head[] = "opset 17\nopset \"com.microsoft\" 1\ngraph g(%x: f32[1x4x9])";
    snprintf(text[0], sizeof *text, "%s -> (%%y: f32[%s]) {\n%s}\n", head, y[i][0], cases[i][0]);
    snprintf(text[1], sizeof *text,
             "%s -> (%%y: f32[%s], %%y_quantized: u8[%s], %%%s_quantized: u8[1x4x9]) {\n%s"
             "  %%y = DequantizeLinear(%%y_quantized, f32 %s)\n}\n",
             head, y[i][0], y[i][0], y[i][2], cases[i][1], y[i][1]);
    hn_model *m = net_parse("float", text[0]), *q = net_parse("codes", text[1]);
    hone_layers_report r = layers(m, q, 0);
    const hone_layer_error *l = NULL;
    for (uint32_t k = 0; k < r.n_layers; k++)
      if (strcmp(r.layer[k].name, nth(m, i == 0 ? "Concat" : i == 1 ? "Where" : "Sigmoid", 0)->name) == 0)
        l = &r.layer[k];
    if (!l) fail_msg("case %zu: the layer is not there", i);
    if (!(l->codes && l->snr_db > 30)) fail_msg("case %zu: '%s' %g dB", i, l->name, l->snr_db);
    hone_layers_report_free(&r);
    hone_model_release(m);
    hone_model_release(q);
  }
}

/* The float model runs fused: a layer ends where steps of both plans end, under the name that its file gives
 * to the numbers there. Normalisations go into convolutions, a sum and its Relu into a third; a depthwise
 * convolution is no part of its neighbour's step here. */
static void test_fused_boundaries(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%x: f32[1x3x12x12]) -> (%y) {\n"
      " const %w0: f32[8x3x3x3] = rand(1, -0.5, 0.5)\n const %w1: f32[8x1x3x3] = rand(2, -0.5, 0.5)\n"
      " const %w2: f32[8x8x1x1] = rand(3, -0.5, 0.5)\n const %s: f32[8] = rand(4, 2, 4)\n"
      " const %b: f32[8] = rand(5, -1, 1)\n const %v: f32[8] = rand(6, 0.5, 1)\n"
      " %c0 = Conv(%x, %w0) {pads=[1, 1, 1, 1]} \"first\"\n %n0 = BatchNormalization(%c0, %s, %b, %b, %v)\n"
      " %c1 = Conv(%n0, %w1) {pads=[1, 1, 1, 1], group=8} \"depthwise\"\n"
      " %n1 = BatchNormalization(%c1, %s, %b, %b, %v)\n"
      " %c2 = Conv(%n1, %w2) \"last\"\n %n2 = BatchNormalization(%c2, %s, %b, %b, %v)\n"
      " %a = Add(%n2, %n0)\n %r = Relu(%a)\n %i = Identity(%r)\n %y = GlobalAveragePool(%i)\n}\n";
  static const char *const ends[] = {"x", "n0", "n1", "r"}, *const inside[] = {"c0", "c1", "c2", "n2", "a"};
  hn_model *m = net_parse("fused", text);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hone_layers_report r = layers(m, q.model, 0);
  if (r.first >= 0) fail_msg("'%s': %s", r.layer[r.first].name, r.layer[r.first].why);
  assert_false(r.by_place);
  assert_int_equal(r.unmatched, 0);
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
    const hone_layer_error *found = NULL;
    for (uint32_t i = 0; i < r.n_layers; i++)
      if (strcmp(r.layer[i].value, ends[k]) == 0) found = &r.layer[i];
    if (!found) fail_msg("no layer ends in '%s'", ends[k]);
    if (!(found->own_snr_db > 25 && found->snr_db > 20))
      fail_msg("'%s': own %g dB, %g dB", ends[k], found->own_snr_db, found->snr_db);
  }
  for (uint32_t i = 0; i < r.n_layers; i++)
    for (size_t k = 0; k < sizeof inside / sizeof *inside; k++)
      assert_string_not_equal(r.layer[i].value, inside[k]);
  hone_layers_report_free(&r);
  scale_by(q.model, 1, 0.25f);
  r = layers(m, q.model, 0);
  names(&r, "depthwise", HONE_LAYER_SATURATED, "too small");
  hone_layers_report_free(&r);
  quantised_free(&q);
  hone_model_release(m);
}

static void test_nothing_in_common(void **state) {
  (void)state;
  hn_model *m = network(1), *other = net_begin();
  hn_value *x = net_input(other, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 12, 12});
  net_finish(other, net_op(other, "Sigmoid", &x, 1));
  hone_layers_report r;
  hone_error e = {0};
  assert_int_equal(hone_layers(m, other, NULL, &r, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "stands for"));
  assert_int_equal(hone_layers(m, NULL, NULL, &r, &e), HONE_ERROR_USAGE);
  hone_model_release(other);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_healthy),
                                     cmocka_unit_test(test_broken),
                                     cmocka_unit_test(test_other_faults),
                                     cmocka_unit_test(test_groups),
                                     cmocka_unit_test(test_fused_boundaries),
                                     cmocka_unit_test(test_by_place),
                                     cmocka_unit_test(test_scales_of_operators_on_codes),
                                     cmocka_unit_test(test_nothing_in_common)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
