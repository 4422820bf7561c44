#include "improve/narrowing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "improve/compare.h"
#include "improve/values.h"

#define F16_ENDS 65520.0f /* from here on a number becomes infinite */

typedef struct look {
  hone_dtype type;
  bool overflows; /* the type's ends count, too */
  hn_narrowing *out;
  bool failed;
} look;

/* All constants but numbers. */
static bool is_rounded(const hn_value *v) {
  return v->constant && v->constant->data && v->desc.dtype == HONE_DTYPE_F32 && v->desc.rank > 0;
}

static const char *called(const hn_step *s) { return s->node ? s->node->name : ""; }

/* The first that the type cannot hold. */
static void find_large(void *arg, const hn_step *s, hone_tensor *const *out) {
  look *l = arg;
  float most = 0;
  for (uint32_t i = 0; i < s->desc.n_outputs && !l->out->node[0]; i++) {
    if (!out[i] || !out[i]->data || out[i]->desc.dtype != HONE_DTYPE_F32) continue;
    hone_tensor *rows = hn_rows_of(out[i]);
    l->failed = l->failed || !rows;
    const float *x = rows ? rows->data : NULL;
    for (int64_t e = 0, n = hone_desc_count(&out[i]->desc); x && e < n; e++)
      if (isfinite(x[e]) && fabsf(x[e]) > most) most = fabsf(x[e]);
    hn_rows_free(rows);
  }
  if (most < F16_ENDS || l->out->node[0] || !s->node) return;
  l->out->most = (double)most;
  snprintf(l->out->node, sizeof l->out->node, "node '%.80s' (%.32s)", called(s), s->node->op_type);
}

/* The first constant that the type cannot hold and round_weights makes infinite. */
static void find_large_constant(const hn_graph *g, hn_narrowing *out) {
  for (size_t i = 0; i < g->values.len && !out->node[0]; i++) {
    const hn_value *v = g->values.ptr[i];
    if (!is_rounded(v)) continue;
    const float *x = v->constant->data;
    float most = 0;
    for (int64_t e = 0, n = hone_desc_count(&v->constant->desc); e < n; e++)
      if (isfinite(x[e]) && fabsf(x[e]) > most) most = fabsf(x[e]);
    if (most < F16_ENDS) continue;
    out->most = (double)most;
    snprintf(out->node, sizeof out->node, "constant '%.80s'", v->name);
  }
}

/* f16, and f32 with its bits where the ends do not count. */
static float as_f16(float x, bool overflows) {
  int e = 0;
  if (overflows || !isfinite(x) || fabsf(x) < F16_ENDS) return hn_f16_to_f32(hn_f32_to_f16(x));
  const float part = frexpf(x, &e);
  return ldexpf(hn_f16_to_f32(hn_f32_to_f16(part)), e);
}

static void round_all(const look *l, float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    x[i] = l->type == HONE_DTYPE_F16 ? as_f16(x[i], l->overflows) : hn_bf16_to_f32(hn_f32_to_bf16(x[i]));
}

static bool round_weights(hn_model *m, const look *l) {
  for (size_t i = 0; i < m->graph->values.len; i++) {
    hn_value *v = m->graph->values.ptr[i];
    if (!is_rounded(v)) continue;
    const size_t bytes = (size_t)hone_desc_bytes(&v->constant->desc);
    hone_tensor *t = HN_NEW(&m->arena, hone_tensor);
    void *data = hn_arena_aligned(&m->arena, bytes, HN_MEM_ALIGN);
    if (!t || !data) return false;
    *t = (hone_tensor){v->constant->desc, data};
    memcpy(data, v->constant->data, bytes);
    round_all(l, data, hone_desc_count(&t->desc));
    hn_value_set_constant(v, t);
  }
  return true;
}

static void narrow(void *arg, const hn_step *s, hone_tensor *const *out) {
  look *l = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    if (!out[i] || !out[i]->data || out[i]->desc.dtype != HONE_DTYPE_F32) continue;
    hone_tensor *rows = hn_rows_of(out[i]);
    l->failed = l->failed || !rows;
    if (rows) {
      round_all(l, rows->data, hone_desc_count(&out[i]->desc));
      hn_rows_put(rows, out[i]);
    }
    hn_rows_free(rows);
  }
}

static void compare(const hn_side *side, hone_tensor *const *plain, hn_narrowing *out) {
  for (uint32_t i = 0; i < side->plan->n_outputs; i++) {
    const hone_tensor *now = hn_context_output(side->context, i);
    if (!plain[i] || now->desc.dtype != HONE_DTYPE_F32) continue;
    if (!hone_desc_same_dims(&now->desc, &plain[i]->desc)) {
      out->unlike = true;
      continue;
    }
    hn_difference d;
    hn_compare(now, plain[i], &d);
    out->unlike |= d.unlike > 0;
    const double scale = d.range > 0 ? d.range : d.magnitude > 0 ? d.magnitude : 1;
    if (d.max_abs / scale > out->apart) out->apart = d.max_abs / scale;
  }
}

/* Runs `side` with all that its steps make rounded, and compares. */
static hone_status run_narrow(hn_side *side, const hn_feed *feeds, uint32_t n, look *l,
                              hone_tensor *const *plain, hone_error *error) {
  hn_context_watch(side->context, narrow, l, true);
  const hone_status status = hn_side_run(side, feeds, n, error);
  hn_context_watch(side->context, NULL, NULL, false);
  if (!status) compare(side, plain, l->out);
  return status;
}

/* Errors of a rounded model are answers about it; those of the machine and of the caller are not. */
static bool is_an_answer(hone_status status) {
  return status && status != HONE_ERROR_MEMORY && status != HONE_ERROR_BUDGET &&
         status != HONE_ERROR_CANCELLED;
}

hone_status hn_side_narrowing(hn_side *reference, hone_model *model, const hn_side_options *again,
                              const hn_feed *feeds, uint32_t n, hone_dtype type, bool overflows,
                              hn_narrowing *out, hone_error *error) {
  const uint32_t many = reference->plan->n_outputs;
  look l = {.type = type, .overflows = overflows, .out = out};
  hn_model *rounded = NULL;
  hn_side side = {0};
  *out = (hn_narrowing){0};
  hone_tensor **plain = hn_calloc(many + 1, sizeof *plain);
  if (!plain) return hn_fail_memory(error, many * sizeof *plain, "outputs");
  if (overflows) hn_context_watch(reference->context, find_large, &l, false);
  hone_status status = hn_side_run(reference, feeds, n, error);
  hn_context_watch(reference->context, NULL, NULL, false);
  if (status || out->node[0]) goto done;
  for (uint32_t i = 0; i < many; i++) plain[i] = hn_rows_of(hn_context_output(reference->context, i));
  if (again) {
    status = hn_model_clone(model, &rounded, error);
    if (!status && !round_weights(rounded, &l)) status = hn_fail_memory(error, 0, "weights");
    if (!status) status = hn_side_open(rounded, again, &side, error);
    side.max_seconds = reference->max_seconds;
  }
  if (!status) status = run_narrow(again ? &side : reference, feeds, n, &l, plain, error);
  if (!status && out->unlike && overflows && again) find_large_constant(model->graph, out);
  if (is_an_answer(status)) {
    out->fails = true;
    status = HONE_OK;
    if (error) *error = (hone_error){0};
  }
done:
  hn_side_close(&side);
  if (rounded) hone_model_release(rounded);
  for (uint32_t i = 0; i < many; i++) hn_rows_free(plain[i]);
  hn_free(plain);
  if (!status && l.failed) return hn_fail_memory(error, 0, "values of the reference");
  return status;
}
