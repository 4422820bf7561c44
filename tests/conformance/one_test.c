#include "temporary.h"
#include "one_test.h"

#include "base/error.h"
#include "base/half.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double RTOL = 1e-3, ATOL = 1e-5;
typedef struct test {
  hn_arena arena;
  hn_model *model;
  char *reason;
  size_t size;
} test;

static verdict say(test *t, verdict v, const char *format, ...) __attribute__((format(printf, 3, 4)));
static verdict say(test *t, verdict v, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  vsnprintf(t->reason, t->size, format, ap);
  va_end(ap);
  return v;
}

/* A refusal is typed: only HONE_ERROR_UNSUPPORTED counts as one. */
static verdict failed(test *t, hone_status status, const hone_error *error) {
  char text[1024];
  hone_error_format(error, text, sizeof text);
  return say(t, status == HONE_ERROR_UNSUPPORTED ? REFUSED : WRONG, "%s: %s", hone_status_name(status), text);
}

hone_status run_eval(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                     double seconds, hone_error *error) {
  hn_budget budget = {.deadline_ns = hn_now_ns() + (uint64_t)(seconds * 1e9), .max_bytes = 8ull << 30};
  return hn_eval_graph(model->graph, inputs, outputs, NULL, keep, &budget, NULL, NULL, error);
}

hone_status run_saved(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                      double seconds, hone_error *error) {
  char path[128];
  hn_model *again;
  const int fd = mkstemp(temporary(path, sizeof path, "hone-conformance"));
  if (fd >= 0) close(fd);
  hone_status status = fd >= 0 ? hn_onnx_save(model, path, error) : HONE_ERROR_MEMORY;
  if (status == HONE_OK) status = hn_onnx_load(path, &again, error);
  if (fd >= 0) unlink(path);
  if (status == HONE_OK) status = hn_model_ready(again, error);
  return status == HONE_OK ? run_eval(again, inputs, outputs, keep, seconds, error) : status;
}

/* ------------------------------------------------------------------ comparing */

static double number(const hone_tensor *t, int64_t i) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: return ((const float *)t->data)[i];
  case HONE_DTYPE_F64: return ((const double *)t->data)[i];
  case HONE_DTYPE_F16: return hn_f16_to_f32(((const uint16_t *)t->data)[i]);
  default: return hn_bf16_to_f32(((const uint16_t *)t->data)[i]);
  }
}

static bool close_enough(double got, double want) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got)) return got == want;
  return fabs(got - want) <= ATOL + RTOL * fabs(want);
}

static bool same_string(const hone_tensor *a, const hone_tensor *b, int64_t i) {
  const hone_string *x = (const hone_string *)a->data + i, *y = (const hone_string *)b->data + i;
  return x->len == y->len && memcmp(x->ptr, y->ptr, x->len) == 0;
}

static verdict compare(test *t, const char *name, const hone_tensor *got, const hone_tensor *want);

static verdict compare_items(test *t, const char *name, const hone_items *got, const hone_items *want) {
  if (got->count != want->count)
    return say(t, WRONG, "output '%s' has %zu values instead of %zu", name, got->count, want->count);
  for (size_t i = 0; i < want->count; i++) {
    verdict v = compare(t, name, got->item[i], want->item[i]);
    if (v != PASSED) return v;
  }
  return PASSED;
}

static verdict compare(test *t, const char *name, const hone_tensor *got, const hone_tensor *want) {
  char a[96], b[96];
  if (got->desc.dtype != want->desc.dtype || !hone_desc_same_dims(&got->desc, &want->desc))
    return say(t, WRONG, "output '%s' is %s instead of %s", name, hone_desc_format(&got->desc, a, sizeof a),
               hone_desc_format(&want->desc, b, sizeof b));
  if (!hone_dtype_is_tensor(want->desc.dtype)) return compare_items(t, name, got->data, want->data);
  int64_t n = hone_desc_count(&want->desc), bad = 0, first = -1;
  size_t size = hone_dtype_size(want->desc.dtype);
  bool floats = hone_dtype_is_float(want->desc.dtype);
  for (int64_t i = 0; i < n; i++) {
    bool same =
        floats ? close_enough(number(got, i), number(want, i))
        : want->desc.dtype == HONE_DTYPE_STRING
            ? same_string(got, want, i)
            : memcmp((char *)got->data + (size_t)i * size, (char *)want->data + (size_t)i * size, size) == 0;
    if (same) continue;
    if (bad++ == 0) first = i;
  }
  if (!bad) return PASSED;
  if (floats)
    return say(t, WRONG, "output '%s' %s: %lld of %lld differ, the first at %lld: %.9g instead of %.9g", name,
               hone_desc_format(&got->desc, a, sizeof a), (long long)bad, (long long)n, (long long)first,
               number(got, first), number(want, first));
  int64_t g = 0, w = 0;
  if (want->desc.dtype != HONE_DTYPE_STRING) {
    memcpy(&g, (char *)got->data + (size_t)first * size, size);
    memcpy(&w, (char *)want->data + (size_t)first * size, size);
  }
  return say(t, WRONG, "output '%s' %s: %lld of %lld differ, the first at %lld: bits %llx instead of %llx",
             name, hone_desc_format(&got->desc, a, sizeof a), (long long)bad, (long long)n, (long long)first,
             (unsigned long long)g, (unsigned long long)w);
}

/* ------------------------------------------------------------------ running */

static verdict check_types(test *t) {
  const hn_graph *g = t->model->graph;
  for (size_t i = 0; i < g->inputs.len + g->outputs.len; i++) {
    const hn_value *v = i < g->inputs.len ? g->inputs.ptr[i] : g->outputs.ptr[i - g->inputs.len];
    if (v->foreign) return say(t, REFUSED, "unsupported: '%s' is a map", v->name);
  }
  return PASSED;
}

/* The value in <folder>/<stem>_<index>.pb; *there says whether the file exists. The suites keep the bits of
 * bf16 values in tensors of u16, as NumPy has no bf16: `declared` tells them apart. */
static hone_status load(test *t, const char *folder, const char *stem, size_t index, hone_dtype declared,
                        hone_tensor *out, bool *there, hone_error *error) {
  const char *path = hn_arena_printf(&t->arena, "%s/%s_%zu.pb", folder, stem, index);
  *there = path && access(path, F_OK) == 0;
  if (!*there) return HONE_OK;
  hone_status status = hn_onnx_load_value(path, declared, &t->arena, out, error);
  if (status == HONE_OK && declared == HONE_DTYPE_BF16 && out->desc.dtype == HONE_DTYPE_U16)
    out->desc.dtype = declared;
  return status;
}

/* Some tests feed an input whose shape is not the declared one (CastLike's `like`): the data rules, as in
 * ONNX's runner. */
static void follow_data(hn_value *v, const hone_tensor *given) {
  bool differs = v->desc.rank >= 0 && v->desc.rank != given->desc.rank;
  for (int32_t i = 0; i < v->desc.rank && !differs; i++)
    differs = v->desc.dim[i] >= 0 && v->desc.dim[i] != given->desc.dim[i];
  if (differs) v->desc = hone_desc(v->desc.dtype, given->desc.rank, given->desc.dim);
}

static verdict run_set(test *t, const char *folder, bool first, engine_fn *engine, double seconds) {
  const hn_graph *g = t->model->graph;
  hone_error error = {0};
  bool there;
  size_t n_in = g->inputs.len, n_out = g->outputs.len;
  hone_tensor *in = HN_NEW_ARRAY(&t->arena, hone_tensor, n_in),
              *out = HN_NEW_ARRAY(&t->arena, hone_tensor, n_out);
  hone_dtype *declared = HN_NEW_ARRAY(&t->arena, hone_dtype, n_out);
  const hone_tensor **given = HN_NEW_ARRAY(&t->arena, const hone_tensor *, n_in);
  if (!in || !out || !given || !declared) return say(t, WRONG, "out of memory");
  for (size_t i = 0; i < n_in; i++) {
    hone_status status = load(t, folder, "input", i, g->inputs.ptr[i]->desc.dtype, &in[i], &there, &error);
    if (status != HONE_OK) return failed(t, status, &error);
    given[i] = there ? &in[i] : NULL;
    if (there && first) follow_data(g->inputs.ptr[i], &in[i]);
    if (!there && !g->inputs.ptr[i]->constant)
      return say(t, WRONG, "the test gives no input '%s'", g->inputs.ptr[i]->name);
  }
  hone_status status = HONE_OK;
  if (first && ((status = hn_model_infer(t->model, &error)) != HONE_OK ||
                (status = hn_model_check(t->model, &error)) != HONE_OK))
    return failed(t, status, &error);
  for (size_t i = 0; i < n_out; i++) declared[i] = g->outputs.ptr[i]->desc.dtype;
  status = engine(t->model, given, out, &t->arena, seconds, &error);
  if (status != HONE_OK) return failed(t, status, &error);
  for (size_t i = 0; i < n_out; i++) {
    hone_tensor want;
    status = load(t, folder, "output", i, hone_dtype_is_tensor(declared[i]) ? HONE_DTYPE_NONE : declared[i],
                  &want, &there, &error);
    if (status != HONE_OK) return failed(t, status, &error);
    if (!there) return say(t, WRONG, "the test gives no output %zu", i);
    /* Bits of bf16 in u16, truncated by NumPy where ONNX rounds to nearest: nothing to compare with by the
     * rule. */
    if (declared[i] == HONE_DTYPE_BF16 && want.desc.dtype == HONE_DTYPE_U16)
      return say(t, REFUSED,
                 "unsupported: the expected output %zu is of another type than the model declares", i);
    verdict v = compare(t, g->outputs.ptr[i]->name, &out[i], &want);
    if (v != PASSED) return v;
  }
  return PASSED;
}

/* The first random operator of the graph or its bodies, or NULL: there is no expected output to compare with.
 */
static const hone_node *random_node(const hn_graph *g) {
  for (const hone_node *n = g->first; n; n = n->next) {
    if (n->op && (n->op->flags & HONE_OP_RANDOM)) return n;
    for (uint32_t k = 0; k < n->n_attr; k++) {
      const hone_node *inner = n->attr[k].type == HONE_ATTR_GRAPH ? random_node(n->attr[k].g) : NULL;
      if (inner) return inner;
    }
  }
  return NULL;
}

verdict run_test(const char *folder, engine_fn *engine, double seconds, char *reason, size_t size) {
  test t = {.reason = reason, .size = size};
  hone_error error = {0};
  reason[0] = 0;
  const char *path = hn_arena_printf(&t.arena, "%s/model.onnx", folder);
  if (!path) return say(&t, WRONG, "out of memory");
  hone_status status = hn_onnx_load(path, &t.model, &error);
  if (status != HONE_OK) return failed(&t, status, &error);
  verdict v = check_types(&t);
  if (v != PASSED) return v;
  if ((status = hn_model_resolve(t.model, &error)) != HONE_OK) return failed(&t, status, &error);
  const hone_node *dice = random_node(t.model->graph);
  if (dice)
    return say(&t, REFUSED, "unsupported: %s is random, its outputs cannot be compared", dice->op_type);
  int sets = 0;
  for (;; sets++) {
    const char *set = hn_arena_printf(&t.arena, "%s/test_data_set_%d", folder, sets);
    if (!set || access(set, F_OK) != 0) break;
    v = run_set(&t, set, sets == 0, engine, seconds);
    if (v != PASSED) return v;
  }
  return sets ? PASSED : say(&t, REFUSED, "no test_data_set_0 beside the model");
}
