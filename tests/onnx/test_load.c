/* The reader and the writer on valid models: what is read, that it means the right thing, that it is written
 * back, and that every allocation may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "temporary.h"
#include "base/half.h"
#include "base/mem.h"
#include "model/ir/eval.h"
#include "model/ir/text.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "onnx/good_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static hn_model *load(const char *name) {
  hn_model *m = NULL;
  hone_error e = {0};
  const pb *b = make_good_model(name);
  assert_non_null(b);
  if (hn_onnx_load_memory(b->ptr, b->len, NULL, name, &m, &e) != HONE_OK)
    fail_msg("%s: %s %s", name, e.where, e.what);
  assert_int_equal(hn_model_check(m, &e), HONE_OK);
  return m;
}

static hn_model *ready(const char *name) {
  hn_model *m = load(name);
  hone_error e = {0};
  if (hn_model_ready(m, &e) != HONE_OK) fail_msg("%s: %s %s", name, e.where, e.what);
  return m;
}

/* Output 0 of the main graph for x = -1, 2, -3, 4, -5, 6; c (if there is one) as given. */
static void run(hn_model *m, bool c, float *y) {
  float data[] = {-1, 2, -3, 4, -5, 6};
  hone_tensor x = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 3}), data},
              cond = {hone_desc(HONE_DTYPE_BOOL, 0, NULL), &c};
  const hone_tensor *in[3] = {0};
  hone_tensor out = {0};
  hn_arena keep = {0};
  hone_error e = {0};
  for (size_t i = 0; i < m->graph->inputs.len; i++) {
    const char *name = m->graph->inputs.ptr[i]->name;
    in[i] = strcmp(name, "x") == 0 ? &x : strcmp(name, "c") == 0 ? &cond : NULL;
  }
  hn_budget budget = {0};
  if (hn_eval_graph(m->graph, in, &out, NULL, &keep, &budget, NULL, NULL, &e) != HONE_OK)
    fail_msg("%s %s", e.where, e.what);
  assert_int_equal(hone_desc_count(&out.desc), 6);
  memcpy(y, out.data, 6 * sizeof *y);
  hn_free(out.data);
  hn_arena_free(&keep);
}

static void expect(const float *y, float a, float b, float c, float d, float e, float f) {
  const float want[] = {a, b, c, d, e, f};
  for (int i = 0; i < 6; i++) assert_true(fabsf(y[i] - want[i]) < 1e-6f);
}

static const void *constant(const hn_model *m, const char *name, hone_dtype dtype, int64_t count) {
  const hn_value *v = hn_value_find(m->graph, name);
  assert_non_null(v);
  assert_non_null(v->constant);
  assert_int_equal(v->constant->desc.dtype, dtype);
  assert_int_equal(hone_desc_count(&v->constant->desc), count);
  return v->constant->data;
}

static void all_load(void **state) {
  (void)state;
  for (size_t i = 0; i < n_good_models; i++) {
    hn_model_destroy(ready(good_models[i].name));
    pb_done();
  }
}

/* Calls and nodes without names, and calls of one name, must not make nodes of one name. */
static void names_inside(void **state) {
  (void)state;
  static const char *const models[] = {"functions", "function_with_body", "function_names", "overload"};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    hn_model *m = load(models[i]);
    for (const hone_node *n = m->graph->first; n; n = n->next)
      for (const hone_node *o = n->next; o; o = o->next)
        if (!strcmp(n->name, o->name)) fail_msg("%s: two nodes are called '%s'", models[i], n->name);
    hn_model_destroy(m);
    pb_done();
  }
}

static void typed_data(void **state) {
  (void)state;
  hn_model *m = load("typed_data");
  assert_int_equal(((const uint8_t *)constant(m, "u8", HONE_DTYPE_U8, 2))[1], 255);
  assert_int_equal(((const int8_t *)constant(m, "i8", HONE_DTYPE_I8, 2))[0], -128);
  assert_int_equal(((const uint16_t *)constant(m, "u16", HONE_DTYPE_U16, 2))[1], 65535);
  assert_int_equal(((const int16_t *)constant(m, "i16", HONE_DTYPE_I16, 2))[0], -32768);
  assert_int_equal(((const int32_t *)constant(m, "i32", HONE_DTYPE_I32, 2))[0], INT32_MIN);
  assert_true(((const int64_t *)constant(m, "i64", HONE_DTYPE_I64, 2))[0] == INT64_MIN);
  assert_int_equal(((const uint32_t *)constant(m, "u32", HONE_DTYPE_U32, 2))[1], UINT32_MAX);
  assert_true(((const uint64_t *)constant(m, "u64", HONE_DTYPE_U64, 2))[1] == INT64_MAX);
  assert_int_equal(((const uint8_t *)constant(m, "bool", HONE_DTYPE_BOOL, 2))[1], 1);
  assert_true(hn_f16_to_f32(((const uint16_t *)constant(m, "f16", HONE_DTYPE_F16, 2))[1]) == -2);
  assert_true(hn_bf16_to_f32(((const uint16_t *)constant(m, "bf16", HONE_DTYPE_BF16, 2))[1]) == -2);
  assert_true(((const float *)constant(m, "f32", HONE_DTYPE_F32, 2))[1] == -2);
  assert_true(((const float *)constant(m, "f32one", HONE_DTYPE_F32, 2))[0] == 1.5f);
  assert_true(((const double *)constant(m, "f64", HONE_DTYPE_F64, 2))[0] == 1.5);
  const int64_t *packed = constant(m, "packed", HONE_DTYPE_I64, 3);
  assert_true(packed[0] == 1 && packed[1] == 300 && packed[2] == -1);
  const hone_string *s = constant(m, "str", HONE_DTYPE_STRING, 2);
  assert_true(s[0].len == 3 && memcmp(s[0].ptr, "one", 3) == 0 && s[1].len == 0);
  constant(m, "none", HONE_DTYPE_F32, 0);
  assert_memory_equal(constant(m, "odd", HONE_DTYPE_BOOL, 3), "\0\1\1", 3);
  hn_model_destroy(m);
}

static void constant_nodes(void **state) {
  (void)state;
  hn_model *m = load("constants");
  assert_int_equal(m->graph->n_nodes, 7);
  const hone_node *n = hn_value_find(m->graph, "is")->producer;
  size_t count;
  const int64_t *ints = hone_node_ints(n, "value_ints", &count);
  assert_true(count == 3 && ints[2] == 300);
  const hone_string *strings =
      hone_node_strings(hn_value_find(m->graph, "ss")->producer, "value_strings", &count);
  assert_true(count == 2 && strings[0].len == 0 && memcmp(strings[1].ptr, "two", 3) == 0);
  const hn_attr *s = hn_node_attr(hn_value_find(m->graph, "s")->producer, "value_string");
  assert_true(s->s.len == 3 && memcmp(s->s.ptr, "a\0b", 4) == 0);
  assert_true(hone_node_int(hn_value_find(m->graph, "i")->producer, "value_int", 0) == -7);
  hn_model_destroy(m);
}

static void order_and_meaning(void **state) {
  (void)state;
  float y[6];
  hn_model *m = ready("unsorted"); /* -(|relu x| + relu x) */
  assert_string_equal(m->graph->first->op_type, "Relu");
  run(m, false, y);
  expect(y, 0, -4, 0, -8, 0, -12);
  hn_model_destroy(m);
  m = ready("optional_operands"); /* min(x, 0) */
  run(m, false, y);
  expect(y, -1, 0, -3, 0, -5, 0);
  hn_model_destroy(m);
  m = ready("loop"); /* x + 3 x */
  run(m, false, y);
  expect(y, -4, 8, -12, 16, -20, 24);
  hn_model_destroy(m);
  m = ready("branches");
  run(m, true, y);
  expect(y, 0, 2, 0, 4, 0, 6);
  run(m, false, y);
  expect(y, -1, 2, -3, 4, -5, 6);
  hn_model_destroy(m);
}

/* What an operator always makes is made for nobody where the node leaves it out. */
static void needless_outputs(void **state) {
  (void)state;
  float y[6];
  hn_model *m = ready("needless_outputs");
  hone_error e;
  assert_int_equal(hn_model_check(m, &e), HONE_OK);
  const hone_node *n = m->graph->first;
  assert_true(n->out[0] && n->out[0]->producer == n && n->out[0]->desc.dtype == HONE_DTYPE_F32);
  assert_null(n->out[1]);
  run(m, false, y); /* the places of -1, 2, -3, 4, -5, 6 in order */
  expect(y, 2, 3, 1, 4, 0, 5);
  hn_model_destroy(m);
}

/* Outputs at the end without a name are none: BatchNormalization does not train for them. */
static void nameless_outputs(void **state) {
  (void)state;
  float y[6];
  hn_model *m = ready("batch_norm_infers"); /* (x - 1) / 2 */
  assert_int_equal(m->graph->first->n_out, 1);
  run(m, false, y);
  expect(y, -1, 0.5f, -2, 1.5f, -3, 2.5f);
  hn_model_destroy(m);
  m = ready("batch_norm_trains");
  assert_int_equal(m->graph->first->n_out, 3);
  run(m, false, y);
  expect(y, -1, 1, -1, 1, -1, 1);
  hn_model_destroy(m);
}

static void symbols(void **state) {
  (void)state;
  hn_model *m = load("symbols");
  const hone_tensor_desc *x = &m->graph->inputs.ptr[0]->desc, *z = &m->graph->inputs.ptr[1]->desc;
  assert_int_equal(x->rank, 4);
  assert_string_equal(hn_model_symbol_name(m, x->dim[0]), "N");
  assert_int_equal(x->dim[1], 3);
  assert_string_equal(hn_model_symbol_name(m, x->dim[2]), "H");
  assert_int_equal(x->dim[3], HONE_DIM_UNKNOWN);
  assert_int_equal(z->dim[0], x->dim[0]);
  for (int i = 1; i < 4; i++) assert_int_equal(z->dim[i], HONE_DIM_UNKNOWN);
  assert_int_equal(m->symbols.len, 2);
  hn_model_destroy(m);
}

static void initializers_as_inputs(void **state) {
  (void)state;
  hn_model *m = load("default_input");
  assert_int_equal(m->graph->inputs.len, 2);
  assert_true(m->graph->inputs.ptr[1]->is_input && m->graph->inputs.ptr[1]->constant);
  hn_model_destroy(m);
  m = load("ir_3");
  assert_int_equal(m->graph->inputs.len, 1);
  hn_model_destroy(m);
}

static void functions(void **state) {
  (void)state;
  float y[6];
  hn_model *m = ready("functions");
  for (const hone_node *n = m->graph->first; n; n = n->next) assert_string_equal(n->domain, "");
  /* m = leaky(leaky(x, 0.5), 0.25), n = x; k = leaky(leaky(m, 0.25), 0.25); y = k + n */
  run(m, false, y);
  expect(y, -1 - 1 / 128.f, 4, -3 - 3 / 128.f, 8, -5 - 5 / 128.f, 12);
  assert_int_equal(m->source.len, m->graph->n_nodes - 1); /* less the Identity for an input handed back */
  hn_model_destroy(m);
  m = ready("function_with_body"); /* c: relu(relu(x)), else x */
  run(m, true, y);
  expect(y, 0, 2, 0, 4, 0, 6);
  run(m, false, y);
  expect(y, -1, 2, -3, 4, -5, 6);
  hn_model_destroy(m);
  m = ready("overload");
  run(m, false, y);
  expect(y, 1, 2, 3, 4, 5, 6);
  hn_model_destroy(m);
}

static char *print(const hn_model *m) {
  hn_str s = {0};
  assert_true(hn_model_print(m, &(hn_print_options){.max_elements = UINT32_MAX, .node_names = true}, &s));
  return s.ptr;
}

/* Written and read again, every model is the same, less outputs at the end without a name. */
static void round_trip(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  for (size_t i = 0; i < n_good_models; i++) {
    hn_model *m = load(good_models[i].name), *again = NULL;
    hone_error e = {0};
    if (hn_onnx_save(m, path, &e) != HONE_OK) fail_msg("%s: %s %s", good_models[i].name, e.where, e.what);
    if (hn_onnx_load(path, &again, &e) != HONE_OK)
      fail_msg("%s: %s %s", good_models[i].name, e.where, e.what);
    assert_int_equal(hn_model_check(again, &e), HONE_OK);
    assert_int_equal(m->ir_version, again->ir_version);
    for (hone_node *n = m->graph->first; n; n = n->next) hn_node_trim_outputs(n, 1);
    char *a = print(m), *b = print(again);
    assert_string_equal(a, b);
    hn_free(a);
    hn_free(b);
    hn_model_destroy(m);
    hn_model_destroy(again);
    pb_done();
  }
}

static void save_failures(void **state) {
  (void)state;
  hone_error e = {0};
  hn_model *m = load("plain");
  char path[160];
  snprintf(path, sizeof path, "%s/absent/m.onnx", folder);
  assert_int_equal(hn_onnx_save(m, path, &e), HONE_ERROR_IO);
  assert_non_null(strstr(e.where, path));
  hn_model_destroy(m);
}

/* Cast's `to` is written as the model's opset has it, whatever a pass set. */
static void cast_before_numbers(void **state) {
  (void)state;
  static const struct {
    int opset, to;
    const char *name; /* "": a number; NULL: no such file */
  } cases[] = {{5, HONE_DTYPE_F16, "FLOAT16"}, {6, HONE_DTYPE_F16, ""}, {5, HONE_DTYPE_BF16, NULL}};
  char path[128], text[128];
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hone_error e = {0};
    hn_model *m = NULL, *again = NULL;
    snprintf(text, sizeof text, "opset %d\ngraph g(%%x: f32[2]) -> (%%y) {\n  %%y = Cast(%%x) {to=%d}\n}\n",
             cases[i].opset, cases[i].to);
    if (hn_model_parse("m", text, strlen(text), &m, &e) || hn_model_ready(m, &e)) fail_msg("%s", e.what);
    assert_int_equal(hn_onnx_save(m, path, &e), cases[i].name ? HONE_OK : HONE_ERROR_UNSUPPORTED);
    hn_model_destroy(m);
    if (!cases[i].name) continue;
    if (hn_onnx_load(path, &again, &e) || hn_model_ready(again, &e)) fail_msg("%s", e.what);
    const hone_node *n = again->graph->first;
    assert_string_equal(hone_node_string(n, "to", ""), cases[i].name);
    assert_int_equal(hone_node_int(n, "to", 0), cases[i].name[0] ? 0 : cases[i].to);
    assert_int_equal(n->out[0]->desc.dtype, cases[i].to);
    hn_model_destroy(again);
  }
}

static void tensors(void **state) {
  (void)state;
  char path[128];
  hone_error e = {0};
  hn_arena arena = {0};
  hone_tensor out;
  const char *name;
  float data[] = {1, 2, 3, 4, 5, 6};
  hone_string words[] = {{"ab", 2}, {"", 0}};
  const hone_tensor f = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 3}), data};
  const hone_tensor s = {hone_desc(HONE_DTYPE_STRING, 1, (const int64_t[]){2}), words};
  snprintf(path, sizeof path, "%s/t.pb", folder);
  assert_int_equal(hn_onnx_save_tensor(&f, "f", path, &e), HONE_OK);
  assert_int_equal(hn_onnx_load_tensor(path, &arena, &out, &name, &e), HONE_OK);
  assert_string_equal(name, "f");
  assert_true(hone_desc_same_dims(&out.desc, &f.desc));
  assert_memory_equal(out.data, data, sizeof data);
  assert_int_equal(hn_onnx_save_tensor(&s, "s", path, &e), HONE_OK);
  assert_int_equal(hn_onnx_load_tensor(path, &arena, &out, NULL, &e), HONE_OK);
  assert_true(((hone_string *)out.data)[0].len == 2 && ((hone_string *)out.data)[1].len == 0);
  /* A sequence of tensors: its elements are in the field that a tensor has for segments. */
  pb *sequence = pb_put(pb_int(pb_new(), 2, 1), 3, pb_floats("e", "3", 3));
  assert_int_equal(hn_onnx_load_tensor_memory(sequence->ptr, sequence->len, "q", &arena, &out, NULL, &e),
                   HONE_ERROR_UNSUPPORTED);
  assert_non_null(strstr(e.what, "sequence"));
  assert_int_equal(hn_onnx_load_tensor_memory("", 0, "q", &arena, &out, NULL, &e), HONE_ERROR_INPUT);
  hn_arena_free(&arena);
}

static void external_data(void **state) {
  (void)state;
  char path[128];
  hone_error e = {0};
  hn_model *m = NULL;
  pb *t = pb_int(pb_tensor("w", 1, "3", NULL, 0), HN_ONNX_TENSOR_DATA_LOCATION, 1), *g = pb_graph();
  static const char *const entries[][2] = {{"location", "sub/w.bin"}, {"offset", "4"}, {"length", "12"}};
  for (int i = 0; i < 3; i++)
    pb_put(t, HN_ONNX_TENSOR_EXTERNAL_DATA, pb_text(pb_text(pb_new(), 1, entries[i][0]), 2, entries[i][1]));
  pb_put(pb_put(g, HN_ONNX_GRAPH_NODE, pb_node("Add", "x w", "y")), HN_ONNX_GRAPH_INITIALIZER, t);
  const pb *file = pb_model(g);
  snprintf(path, sizeof path, "%s/sub", folder);
  assert_int_equal(hn_mkdirs(path, &e), HONE_OK);
  snprintf(path, sizeof path, "%s/sub/w.bin", folder);
  assert_int_equal(hn_file_write(path, (const float[]){9, 10, 20, 30}, 16, &e), HONE_OK);
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  assert_int_equal(hn_file_write(path, file->ptr, file->len, &e), HONE_OK);
  if (hn_onnx_load(path, &m, &e) != HONE_OK) fail_msg("%s %s", e.where, e.what);
  assert_memory_equal(constant(m, "w", HONE_DTYPE_F32, 3), ((const float[]){10, 20, 30}), 12);
  hn_model_destroy(m);
  assert_int_equal(hn_onnx_load_memory(file->ptr, file->len, NULL, "m", &m, &e), HONE_ERROR_UNSUPPORTED);
}

/* Loading with the n-th allocation refused ends with HONE_ERROR_MEMORY, for every n, and loses nothing (ASan
 * looks). */
static void every_allocation_fails(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/f.onnx", folder);
  for (size_t i = 0; i < n_good_models; i++) {
    const pb *b = good_models[i].make();
    uint64_t n = 1;
    for (;; n++) {
      hn_model *m = NULL;
      hone_error e = {0};
      uint64_t before = hn_mem_count();
      hn_mem_fail_after(n);
      hone_status status = hn_onnx_load_memory(b->ptr, b->len, NULL, "f", &m, &e);
      uint64_t used = hn_mem_count() - before;
      if (status == HONE_OK && used >= n) status = hn_onnx_save(m, path, &e);
      hn_mem_fail_after(0);
      hn_model_destroy(m);
      if (status == HONE_OK && used < n) break;
      if (status != HONE_OK && status != HONE_ERROR_MEMORY)
        fail_msg("%s, allocation %d: %s", good_models[i].name, (int)n, e.what);
      assert_true(n < 100000);
    }
    assert_true(n > 5);
    pb_done();
  }
}

static int setup(void **state) {
  (void)state;
  return mkdtemp(temporary(folder, sizeof folder, "hone-load")) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  pb_done();
  return temporary_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_load),
      cmocka_unit_test(names_inside),
      cmocka_unit_test(typed_data),
      cmocka_unit_test(constant_nodes),
      cmocka_unit_test(order_and_meaning),
      cmocka_unit_test(needless_outputs),
      cmocka_unit_test(nameless_outputs),
      cmocka_unit_test(symbols),
      cmocka_unit_test(initializers_as_inputs),
      cmocka_unit_test(functions),
      cmocka_unit_test(round_trip),
      cmocka_unit_test(save_failures),
      cmocka_unit_test(cast_before_numbers),
      cmocka_unit_test(tensors),
      cmocka_unit_test(external_data),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
