/* See device.h. */
#include "cli/op/device.h"

#include "cli/op/numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 17, MOST = 4096 }; /* of the text; numbers of a constant in it */

typedef struct text {
  char *buf;
  size_t n;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->n < SIZE ? t->buf + t->n : NULL, t->n < SIZE ? SIZE - t->n : 0, format, args);
  va_end(args);
  t->n += n > 0 ? (size_t)n : 0;
}

static void put_type(text *t, const hone_tensor_desc *d) {
  put(t, "%s", hone_dtype_name(d->dtype));
  for (int32_t k = 0; k < d->rank; k++) put(t, "%s%lld", k ? "x" : "[", (long long)d->dim[k]);
  if (d->rank) put(t, "]");
}

static bool writable(const op_sample *s, uint32_t i) {
  const hone_tensor *x = &s->in[i];
  const int64_t n = s->constant[i] ? hone_desc_count(&x->desc) : 0;
  if (n < 1 || n > MOST || s->twins) return false;
  for (int64_t k = 0; k < n; k++)
    if (!isfinite(op_element(x->desc.dtype, x->data, k))) return false;
  return true;
}

static bool put_model(text *t, const op_sample *s) {
  const char *comma = "";
  put(t, "opset %d\n", *s->op->domain || s->op->since < 17 ? 17 : s->op->since);
  if (*s->op->domain) put(t, "opset \"%s\" %d\n", s->op->domain, s->op->since);
  put(t, "graph g(");
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (!s->in[i].desc.dtype || (s->twins && i == 1) || writable(s, i)) continue;
    put(t, "%s%%x%u: ", comma, i);
    put_type(t, &s->in[i].desc);
    comma = ", ";
  }
  put(t, ") -> (");
  for (uint32_t i = 0; i < s->n_out; i++) put(t, "%s%%y%u", i ? ", " : "", i);
  put(t, ") {\n");
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (!s->in[i].desc.dtype || !writable(s, i)) continue;
    put(t, "  const %%x%u: ", i);
    put_type(t, &s->in[i].desc);
    put(t, " = {");
    for (int64_t k = 0; k < hone_desc_count(&s->in[i].desc); k++)
      put(t, "%s%.17g", k ? ", " : "", op_element(s->in[i].desc.dtype, s->in[i].data, k));
    put(t, "}\n");
  }
  for (uint32_t i = 0; i < s->n_out; i++) put(t, "%s%%y%u", i ? ", " : "  ", i);
  put(t, " = %s%s%s(", s->op->domain, *s->op->domain ? "::" : "", s->op->op_type);
  for (uint32_t i = 0; i < s->n_in; i++)
    put(t, s->in[i].desc.dtype ? "%s%%x%u" : "%s_", i ? ", " : "", s->twins && i == 1 ? 0 : i);
  put(t, ") %s\n}\n", s->attrs);
  return t->n < SIZE;
}

/* Does the plan have the tactic? */
static bool uses(const hone_plan *plan, const char *tactic, char *why, size_t size) {
  hone_step_info step;
  snprintf(why, size, "the plan has another tactic");
  for (uint32_t i = 0; hone_plan_step(plan, i, &step); i++) {
    if (step.tactic && strcmp(step.tactic, tactic) == 0) return true;
    for (uint32_t k = 0; k < step.n_refused; k++)
      if (strcmp(step.refused[k].by, tactic) == 0) snprintf(why, size, "%s", step.refused[k].text);
  }
  return false;
}

static void feed(const op_sample *s, op_device_run *r) {
  char name[16];
  for (uint32_t i = 0; i < hone_plan_inputs(r->plan) && i < OP_MOST; i++)
    for (uint32_t k = 0; k < s->n_in; k++) {
      snprintf(name, sizeof name, "x%u", k);
      if (strcmp(hone_plan_input_name(r->plan, i), name) == 0) r->in[i] = &s->in[k];
    }
}

hone_status op_device_make(hone_engine *engine, const op_sample *s, const char *tactic, op_device_run *r,
                           hone_error *error) {
  text t = {malloc(SIZE), 0};
  hone_model *m = NULL;
  hone_status status = HONE_ERROR_MEMORY;
  *r = (op_device_run){0};
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "there is no memory for the test"};
  if (t.buf && put_model(&t, s)) status = hone_model_parse(t.buf, t.n, &m, error);
  free(t.buf);
  const hone_plan_options options = {.level = 2};
  if (status == HONE_OK) status = hone_plan_create(engine, m, &options, &r->plan, error);
  hone_model_release(m);
  if (status != HONE_OK) return status;
  if (!uses(r->plan, tactic, error->what, sizeof error->what)) return HONE_ERROR_UNSUPPORTED;
  feed(s, r);
  return hone_context_create(r->plan, &r->context, error);
}

void op_device_free(op_device_run *r) {
  hone_context_destroy(r->context);
  hone_plan_destroy(r->plan);
  *r = (op_device_run){0};
}
