/* See op_case.h. */
#include "ops/op_case.h"

#include "model/operators.h"
#include "model/ops/common/op.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                                          \
  do {                                                                                                       \
    if (!(cond)) {                                                                                           \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, c->op_type, #cond);                             \
      abort();                                                                                               \
    }                                                                                                        \
  } while (0)

void op_begin_in(op_case *c, const char *domain, const char *op_type, int64_t opset) {
  *c = (op_case){.op_type = op_type, .model = hn_model_create("test")};
  CHECK(c->model);
  const hn_opset set = {domain, opset}, onnx = {"", 18};
  CHECK(hn_vec_push(&c->model->opsets, set) && (!*domain || hn_vec_push(&c->model->opsets, onnx)));
  /* A node to hold attributes; inputs and outputs are attached when it runs. */
  c->node = hn_node_create(c->model->graph, NULL, op_type, *domain ? domain : NULL, "n", NULL, 0, NULL, 0);
  CHECK(c->node);
}

void op_begin(op_case *c, const char *op_type, int64_t opset) {
  static const char microsoft[] = "com.microsoft.";
  const size_t n = sizeof microsoft - 1;
  if (strncmp(op_type, microsoft, n) == 0)
    op_begin_in(c, "com.microsoft", op_type + n, opset);
  else
    op_begin_in(c, "", op_type, opset);
}

static int32_t read_dims(const char *text, int64_t *dims) {
  int32_t rank = 0;
  while (*text) {
    char *end;
    dims[rank++] = strtoll(text, &end, 10);
    text = *end == 'x' ? end + 1 : end;
  }
  return rank;
}

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

hone_tensor *op_in(op_case *c, hone_dtype dtype, const char *dims, const double *values, uint32_t seed) {
  int64_t d[HONE_MAX_RANK];
  int32_t rank = read_dims(dims, d);
  CHECK(c->n_in < OP_CASE_MAX);
  hone_tensor *t = &c->in[c->n_in];
  c->given[c->n_in++] = true;
  t->desc = hone_desc(dtype, rank, d);
  int64_t n = hone_desc_count(&t->desc);
  t->data = n ? malloc((size_t)n * hone_dtype_size(dtype)) : NULL; /* plans without memory give none, too */
  CHECK(t->data || !n);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < n; i++) {
    uint32_t r = next_random(&state);
    double v = hone_dtype_is_float(dtype) ? (double)r / 8388608.0 - 1
               : dtype == HONE_DTYPE_BOOL
                   ? (double)(r & 1)
                   : (double)(int32_t)(r & 255) - (hone_dtype_is_signed_int(dtype) ? 128 : 0);
    hn_set_f64(t, i, values ? values[i] : v);
  }
  return t;
}

void op_skip(op_case *c) {
  CHECK(c->n_in < OP_CASE_MAX);
  c->given[c->n_in++] = false;
}

static void set_attr(op_case *c, const char *name, char *value) {
  int64_t ints[32];
  float floats[32];
  size_t n = 0;
  if (!strncmp(value, "s:", 2)) {
    CHECK(hn_node_set_string(c->node, name, value + 2, strlen(value + 2)));
    return;
  }
  if (!strncmp(value, "S:", 2)) {
    hone_string list[32];
    for (char *item = strtok(value + 2, ","); item; item = strtok(NULL, ","))
      list[n++] = (hone_string){item, strlen(item)};
    CHECK(hn_node_set_strings(c->node, name, list, n));
    return;
  }
  if (!strncmp(value, "f:", 2)) {
    CHECK(hn_node_set_float(c->node, name, strtof(value + 2, NULL)));
    return;
  }
  bool is_float = !strncmp(value, "F:", 2), list = is_float || strchr(value, ',');
  for (char *p = is_float ? value + 2 : value; *p;) {
    char *end;
    floats[n] = strtof(p, NULL);
    ints[n++] = strtoll(p, &end, 10);
    p = end + strcspn(end, ",");
    if (*p) p++;
  }
  if (is_float)
    CHECK(hn_node_set_floats(c->node, name, floats, n));
  else if (list)
    CHECK(hn_node_set_ints(c->node, name, ints, n));
  else
    CHECK(hn_node_set_int(c->node, name, ints[0]));
}

void op_attrs(op_case *c, const char *text) {
  char copy[512], *save = NULL;
  CHECK(strlen(text) < sizeof copy);
  strcpy(copy, text);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(word, '=');
    CHECK(eq);
    *eq = 0;
    set_attr(c, word, eq + 1);
  }
}

static hone_status prepare(op_case *c, uint32_t n_out) {
  hn_value *in[OP_CASE_MAX] = {NULL}, *out[OP_CASE_MAX];
  c->n_out = n_out;
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->given[i]) continue;
    CHECK((in[i] = hn_value_create(c->model->graph, NULL)));
    in[i]->desc = c->in[i].desc;
    CHECK(hn_graph_add_input(c->model->graph, in[i]));
  }
  for (uint32_t i = 0; i < n_out; i++) CHECK((out[i] = hn_value_create(c->model->graph, NULL)));
  hone_node *n = hn_node_create(c->model->graph, NULL, c->node->op_type, c->node->domain, "node", in, c->n_in,
                                out, n_out);
  CHECK(n && hn_node_copy_attrs(n, c->node));
  hn_node_remove(c->node);
  c->node = n;
  return hn_model_resolve(c->model, &c->error);
}

hone_status op_run(op_case *c, uint32_t n_out) {
  const hone_tensor *in[OP_CASE_MAX] = {NULL};
  hone_tensor *out[OP_CASE_MAX];
  hone_status s = prepare(c, n_out);
  for (uint32_t i = 0; i < c->n_in; i++) in[i] = c->given[i] ? &c->in[i] : NULL;
  for (uint32_t i = 0; i < n_out; i++) out[i] = &c->out[i];
  hn_budget budget = {.max_bytes = 1u << 28,
                      .deadline_ns = hn_now_ns() + (uint64_t)(1e9 * (c->seconds > 0 ? c->seconds : 60))};
  return s ? s : hn_eval_node(c->node, in, out, &c->keep, &budget, &c->error);
}

hone_status op_infer(op_case *c, uint32_t n_out, uint32_t hide_dims, uint32_t hide_rank, uint32_t known) {
  hone_tensor_desc d[OP_CASE_MAX];
  const hone_tensor_desc *in[OP_CASE_MAX] = {NULL};
  const hone_tensor *value[OP_CASE_MAX] = {NULL};
  hone_tensor_desc *out[OP_CASE_MAX];
  hone_status s = prepare(c, n_out);
  if (s) return s;
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->given[i]) continue;
    d[i] = c->in[i].desc;
    if (hide_dims >> i & 1)
      for (int32_t k = 0; k < d[i].rank; k++) d[i].dim[k] = HONE_DIM_UNKNOWN;
    if (hide_rank >> i & 1) d[i].rank = -1;
    in[i] = &d[i];
    if (known >> i & 1) value[i] = &c->in[i];
  }
  for (uint32_t i = 0; i < n_out; i++) {
    c->out[i].desc = (hone_tensor_desc){.rank = -1};
    out[i] = &c->out[i].desc;
  }
  hone_infer io = {c->node, c->n_in, n_out, in, value, out};
  s = c->node->op->infer(&io, &c->error);
  hone_cost cost = {0};
  if (!s && c->node->op->cost) c->node->op->cost(&io, &cost);
  CHECK(cost.flops >= 0 && cost.macs >= 0);
  return s;
}

void op_end(op_case *c) {
  for (uint32_t i = 0; i < c->n_in; i++) free(c->in[i].data);
  for (uint32_t i = 0; i < OP_CASE_MAX; i++) hn_free(c->out[i].data);
  hn_arena_free(&c->keep);
  hn_model_destroy(c->model);
}

void op_set(hone_tensor *t, int64_t i, double v) { hn_set_f64(t, i, v); }
double op_get(const hone_tensor *t, int64_t i) { return hn_get_f64(t, i); }

void op_expect(op_case *c, uint32_t i, hone_dtype dtype, const char *dims, const double *values,
               double tolerance) {
  int64_t d[HONE_MAX_RANK];
  int32_t rank = read_dims(dims, d);
  hone_tensor_desc want = hone_desc(dtype, rank, d);
  char a[96], b[96];
  if (c->out[i].desc.dtype != dtype || !hone_desc_same_dims(&c->out[i].desc, &want)) {
    fprintf(stderr, "%s: output %u is %s, expected %s\n", c->op_type, i,
            hone_desc_format(&c->out[i].desc, a, sizeof a), hone_desc_format(&want, b, sizeof b));
    abort();
  }
  for (int64_t k = 0; values && k < hone_desc_count(&want); k++) {
    double got = op_get(&c->out[i], k);
    if (got == values[k] || (isnan(got) && isnan(values[k])) || fabs(got - values[k]) <= tolerance) continue;
    fprintf(stderr, "%s: output %u element %lld is %.9g, expected %.9g\n", c->op_type, i, (long long)k, got,
            values[k]);
    abort();
  }
}
