/* hone_layers: which layer of a quantised model is wrong, and why. */
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

enum { C = 8 };

static hn_value *conv(hn_model *m, hn_value *x, int64_t cin, unsigned seed, float first) {
  const int64_t dims[] = {C, cin, 3, 3}, n = C;
  float b[C];
  hn_value *w = net_weights(m, 4, dims, seed);
  for (int64_t i = 0; i < cin * 9; i++) ((float *)w->constant->data)[i] *= first;
  for (int i = 0; i < C; i++) b[i] = 0.05f * (float)i;
  hn_value *y = net_op(m, "Conv", (hn_value *[]){x, w, net_constant(m, HONE_DTYPE_F32, 1, &n, b)}, 3);
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  return y;
}

/* Three convolutions; the weights of the second one's first channel are larger by this factor, and Clip keeps
 * its values where the others' are. */
static hn_model *network(float first) {
  const float ends[] = {0, 6};
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 12, 12});
  x = net_op(m, "Relu", (hn_value *[]){conv(m, x, 3, 1, 1)}, 1);
  x = net_op(m, "Clip",
             (hn_value *[]){conv(m, x, C, 2, first), net_constant(m, HONE_DTYPE_F32, 0, NULL, &ends[0]),
                            net_constant(m, HONE_DTYPE_F32, 0, NULL, &ends[1])},
             3);
  x = net_op(m, "Relu", (hn_value *[]){conv(m, x, C, 3, 1)}, 1);
  x = net_op(m, "Flatten", (hn_value *[]){net_op(m, "GlobalAveragePool", &x, 1)}, 1);
  net_finish(m, net_op(m, "Gemm", (hn_value *[]){x, net_weights(m, 2, (const int64_t[]){C, 5}, 4)}, 2));
  return m;
}

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

static hone_node *nth(const hn_model *m, const char *op, int k) {
  for (hone_node *n = m->graph->first; n; n = n->next)
    if (strcmp(n->op_type, op) == 0 && k-- == 0) return n;
  fail_msg("no %s", op);
  return NULL;
}

/* The QuantizeLinear of what the k-th convolution's layer ends in. */
static hone_node *rounding_of(const hn_model *m, int k) {
  const hn_value *v = nth(m, "Conv", k)->out[0];
  while (v->users.len && strcmp(v->users.ptr[0].node->op_type, "QuantizeLinear") != 0)
    v = v->users.ptr[0].node->out[0];
  assert_true(v->users.len > 0);
  return v->users.ptr[0].node;
}

static void scale_by(const hn_model *m, int k, float factor) {
  *(float *)rounding_of(m, k)->in[1]->constant->data *= factor;
}

/* Codes of all channels under the largest scale. */
static void share_scale(const hn_model *m, int k) {
  const hone_node *dq = nth(m, "Conv", k)->in[1]->producer;
  int8_t *code = dq->in[0]->constant->data;
  float *scale = dq->in[1]->constant->data, most = 0;
  const int64_t n = hone_desc_count(&dq->in[0]->desc), each = n / C;
  for (int c = 0; c < C; c++) most = fmaxf(most, scale[c]);
  for (int64_t i = 0; i < n; i++) code[i] = (int8_t)nearbyintf((float)code[i] * scale[i / each] / most);
  for (int c = 0; c < C; c++) scale[c] = most;
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_healthy),      cmocka_unit_test(test_broken),
      cmocka_unit_test(test_other_faults), cmocka_unit_test(test_groups),
      cmocka_unit_test(test_by_place),     cmocka_unit_test(test_nothing_in_common)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
