/* See network.h. */
#include "cli/op/network.h"

#include "cli/op/numbers.h"

#include <ctype.h>
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

static void put_constant(text *t, const char *name, const hone_tensor *x) {
  enum { FEW = 32 };
  const int64_t n = hone_desc_count(&x->desc);
  put(t, "  const %%%s: ", name);
  put_type(t, &x->desc);
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
      put_constant(t, op_input_name(s, i, name, sizeof name), &x->in[i]);
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

/* %a of a text; returns what is behind it. */
static const char *read_name(const char *p, char *out, size_t size) {
  size_t n = 0;
  while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.' || p[n] == '/') n++;
  snprintf(out, size, "%.*s", (int)n, p);
  return p + n;
}

/* Is `name` made by a line of the text, or an input that is there? */
static bool known(const op_subject *s, const op_sample *x, const char *body, const char *name) {
  char other[80];
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i].desc.dtype && strcmp(op_input_name(s, i, other, sizeof other), name) == 0) return true;
  for (const char *line = body; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    const char *eq = strchr(line, '='), *p = line;
    while ((p = strchr(p, '%')) && eq && p < eq) {
      p = read_name(p + 1, other, sizeof other);
      if (strcmp(other, name) == 0) return true;
    }
  }
  return false;
}

/* What a pattern reads and nothing gives: an attribute of the operator, as a number. */
static void put_numbers(text *t, const op_subject *s, const op_sample *x, const char *body) {
  char name[80], seen[600] = " ", word[90];
  for (const char *p = body; (p = strchr(p, '%'));) {
    p = read_name(p + 1, name, sizeof name);
    snprintf(word, sizeof word, " %s ", name);
    if (known(s, x, body, name) || strstr(seen, word)) continue;
    put(t, "  const %%%s: f32 = {1.0}\n", name);
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", name);
  }
}

/* Without the marks that only patterns have; of several operators the first. */
static void put_body(text *t, const char *body) {
  for (const char *p = body; *p; p++) {
    if ((*p == '?' || *p == '!') && p[1] == '%') continue;
    if (*p == '|') {
      while (*p && *p != '(') p++;
      p--;
      continue;
    }
    put(t, "%c", *p);
  }
}

bool op_network_of_pattern(const op_subject *s, const op_sample *x, char *buf, size_t size) {
  text t = {buf, size, 0};
  char body[2000], root[84] = "%";
  if (!s->pattern) return false;
  const char *end = strstr(s->pattern->text, "\nor\n");
  const size_t n = end ? (size_t)(end - s->pattern->text) : strlen(s->pattern->text);
  if (n >= sizeof body) return false;
  snprintf(body, sizeof body, "%.*s", (int)n, s->pattern->text);
  for (size_t k = strlen(body); k && isspace((unsigned char)body[k - 1]); k--) body[k - 1] = 0;
  const char *last = strrchr(body, '\n'), *mark = strchr(last ? last : body, '%');
  if (!mark) return false;
  read_name(mark + 1, root + 1, sizeof root - 1);
  put_head(&t, s, x, root);
  put_numbers(&t, s, x, body);
  put_body(&t, body);
  put(&t, "\n}\n");
  return t.n < size;
}
