/* See net.h. */
#include "net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/ir/text.h"
#include "model/operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(hone_status status, const hone_error *e, const char *name) {
  char line[900];
  if (status == HONE_OK) return;
  hone_error_format(e, line, sizeof line);
  fail_msg("%s: %s", name, line);
}

hn_model *net_parse(const char *name, const char *text) {
  hn_model *m = NULL;
  hone_error e = {0};
  hone_status status = hn_model_parse(name, text, strlen(text), &m, &e);
  if (status == HONE_OK) status = hn_model_ready(m, &e);
  check(status, &e, name);
  return m;
}

void net_save(const char *folder, const char *name, const char *text) {
  char path[600];
  hone_error e = {0};
  hn_model *m = net_parse(name, text);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  check(hone_model_save(m, path, &e), &e, path);
  hone_model_release(m);
}

hn_model *net_begin(void) {
  hn_model *m = hn_model_create(NULL);
  assert_non_null(m);
  assert_true(hn_vec_push(&m->opsets, (hn_opset){"", 17}));
  return m;
}

hn_value *net_input(hn_model *m, const char *name, hone_dtype dtype, int32_t rank, const int64_t *dims) {
  hn_value *v = hn_value_create(m->graph, name);
  v->desc = hone_desc(dtype, rank, dims);
  assert_true(hn_graph_add_input(m->graph, v));
  return v;
}

hn_value *net_op(hn_model *m, const char *type, hn_value *const *in, uint32_t n) {
  hn_value *out = hn_value_create(m->graph, NULL);
  hone_node *node = hn_node_create(m->graph, NULL, type, NULL, NULL, in, n, &out, 1);
  assert_non_null(node);
  uint32_t origin = (uint32_t)m->source.len;
  assert_true(hn_vec_push(&m->source, (hn_source_node){node->name, node->op_type}));
  assert_true(hn_node_set_origin(node, &origin, 1));
  return out;
}

hn_value *net_output(hn_model *m, hn_value *out) {
  assert_true(hn_graph_add_output(m->graph, out));
  return out;
}

void net_finish(hn_model *m, hn_value *out) {
  hone_error e = {0};
  net_output(m, out);
  check(hn_model_ready(m, &e), &e, "network");
}

hn_value *net_constant(hn_model *m, hone_dtype dtype, int32_t rank, const int64_t *dims, const void *data) {
  hone_tensor_desc d = hone_desc(dtype, rank, dims);
  hn_value *v = hn_value_constant(m->graph, NULL, &d, data, true);
  assert_non_null(v);
  return v;
}

hn_value *net_weights(hn_model *m, int32_t rank, const int64_t *dims, unsigned seed) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, rank, dims);
  int64_t n = hone_desc_count(&d);
  float *w = malloc((size_t)n * sizeof *w);
  for (int64_t i = 0; i < n; i++)
    w[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
  hn_value *v = hn_value_constant(m->graph, NULL, &d, w, true);
  free(w);
  return v;
}

hn_model *net_loop(int64_t trips) {
  hn_model *m = net_begin();
  hn_value *start = net_input(m, "start", HONE_DTYPE_F32, 1, (const int64_t[]){4});
  int64_t none = 0;
  hone_tensor_desc scalar = hone_desc(HONE_DTYPE_I64, 0, &none);
  hn_value *count = hn_value_constant(m->graph, "trips", &scalar, &trips, true);
  hn_graph *body = hn_graph_create(m, m->graph, "body");
  hn_value *i = hn_value_create(body, "i"), *c = hn_value_create(body, "c"),
           *x = hn_value_create(body, "state");
  hn_graph_add_input(body, i);
  hn_graph_add_input(body, c);
  hn_graph_add_input(body, x);
  hn_value *go = hn_value_create(body, "go"), *next = hn_value_create(body, "next");
  assert_non_null(hn_node_create(body, NULL, "Identity", NULL, NULL, &c, 1, &go, 1));
  assert_non_null(hn_node_create(body, NULL, "Add", NULL, NULL, (hn_value *[]){x, start}, 2, &next, 1));
  hn_graph_add_output(body, go);
  hn_graph_add_output(body, next);
  hn_value *y = net_op(m, "Loop", (hn_value *[]){count, NULL, start}, 3);
  assert_true(hn_node_set_graph(y->producer, "body", body));
  net_finish(m, y);
  return m;
}

net_session net_open(hn_model *m, int level, bool reference, uint32_t threads) {
  net_session s = {.model = m};
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = threads}, &s.engine, &e), HONE_OK);
  if (hone_plan_create(s.engine, m, &(hone_plan_options){.level = level, .reference = reference}, &s.plan,
                       &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_context_create(s.plan, &s.context, &e), HONE_OK);
  return s;
}

void net_close(net_session *s) {
  hone_context_destroy(s->context);
  hone_plan_destroy(s->plan);
  hone_engine_destroy(s->engine);
  hone_model_release(s->model);
}
