/* See network.h. */
#include "cli/op/network.h"

#include "cli/op/numbers.h"

#include <hone/plugins.h>
#include <hone/text.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct text {
  char *buf;
  size_t size, n;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n =
      vsnprintf(t->n < t->size ? t->buf + t->n : NULL, t->n < t->size ? t->size - t->n : 0, format, args);
  va_end(args);
  t->n += n > 0 ? (size_t)n : 0;
}

static void put_type(text *t, const hone_tensor_desc *d) {
  put(t, "%s", hone_dtype_name(d->dtype));
  for (int32_t k = 0; k < d->rank; k++) put(t, "%s%lld", k ? "x" : "[", (long long)d->dim[k]);
  if (d->rank) put(t, "]");
}

static void put_constant(text *t, const char *name, const hone_tensor *x, bool as_it_is) {
  enum { FEW = 32 };
  const int64_t n = hone_desc_count(&x->desc);
  put(t, "  const %%%s: ", name);
  put_type(t, &x->desc);
  if (as_it_is && hone_dtype_is_float(x->desc.dtype)) {
    put(t, " = {%.9g}\n", op_element(x->desc.dtype, x->data, 0));
    return;
  }
  if (hone_dtype_is_float(x->desc.dtype) || n > FEW) {
    put(t, " = rand(1)\n");
    return;
  }
  put(t, " = {");
  for (int64_t i = 0; i < n; i++)
    put(t, "%s%lld", i ? ", " : "", (long long)op_element(x->desc.dtype, x->data, i));
  put(t, "}\n");
}

/* Everything up to the nodes. `made`: what they make, with its '%'. */
static void put_head(text *t, const op_subject *s, const op_sample *x, const char *made) {
  char name[80];
  bool first = true;
  put(t, "opset %d\n", *s->op->domain || s->op->since < 17 ? 17 : s->op->since);
  if (*s->op->domain) put(t, "opset \"%s\" %d\n", s->op->domain, s->op->since);
  put(t, "graph g(");
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (!x->in[i].desc.dtype || x->constant[i]) continue;
    put(t, "%s%%%s: ", first ? "" : ", ", op_input_name(s, i, name, sizeof name));
    put_type(t, &x->in[i].desc);
    first = false;
  }
  put(t, ") -> (%s) {\n", made);
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i].desc.dtype && x->constant[i])
      put_constant(t, op_input_name(s, i, name, sizeof name), &x->in[i],
                   op_measure_of(s->op, i) != OP_NO_MEASURE);
}

bool op_network_of_operator(const op_subject *s, const op_sample *x, char *buf, size_t size) {
  text t = {buf, size, 0};
  char made[300] = "", name[80];
  for (uint32_t i = 0; i < x->n_out; i++)
    snprintf(made + strlen(made), sizeof made - strlen(made), "%s%%made%u", i ? ", " : "", i);
  put_head(&t, s, x, made);
  put(&t, "  %s = %s%s%s(", made, s->op->domain, *s->op->domain ? "::" : "", s->op->op_type);
  for (uint32_t i = 0; i < x->n_in; i++)
    put(&t, x->in[i].desc.dtype ? "%s%%%s" : "%s_", i ? ", " : "", op_input_name(s, i, name, sizeof name));
  put(&t, ") %s\n}\n", x->attrs);
  return t.n < size;
}

/* ------------------------------------------------------------------ patterns */

static uint32_t names_of(const hone_pattern_desc *p) {
  uint32_t n = 0;
  for (const char *c = p->inputs; *c; c++) n += *c == '%';
  return n;
}

/* The first pattern that takes as many operands as there are: an operator may stand for nodes with and
 * without some. */
static const hone_pattern_desc *pattern_of(const op_subject *s, const op_sample *x) {
  const hone_plugin *p = s->of;
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i].desc.dtype) n = i + 1;
  for (uint32_t k = 0; k < p->n_patterns; k++)
    if (strcmp(p->pattern[k]->name, s->name) == 0 && names_of(p->pattern[k]) == n) return p->pattern[k];
  return s->pattern;
}

bool op_network_of_pattern(const op_subject *subject, const op_sample *x, char *buf, size_t size) {
  op_subject named = *subject; /* inputs are called as the pattern calls them */
  const op_subject *s = &named;
  named.pattern = pattern_of(subject, x);
  text t = {buf, size, 0};
  const hone_tensor_desc *input[OP_MOST];
  char *nodes = NULL, *made = NULL, result[100];
  hone_error ignored;
  if (!s->pattern) return false;
  for (uint32_t i = 0; i < x->n_in; i++) input[i] = x->in[i].desc.dtype ? &x->in[i].desc : NULL;
  const bool ok = hone_pattern_nodes(s->pattern, x->node, input, x->n_in, &nodes, &made, &ignored) == HONE_OK;
  if (ok) {
    snprintf(result, sizeof result, "%%%.90s", made);
    put_head(&t, s, x, result);
    put(&t, "%s}\n", nodes);
  }
  hone_text_free(nodes);
  hone_text_free(made);
  return ok && t.n < size;
}
