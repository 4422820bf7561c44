/* Writes the text form of a model (text.h). */
#include "model/ir/text.h"

#include "base/half.h"
#include "base/narrow.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct printer {
  hn_str *out;
  const hn_model *model;
  uint32_t max_elements;
  bool node_names, types;
  const char *(*name)(void *arg, const hn_value *value); /* NULL: their own */
  void *arg;
} printer;

static void quote(hn_str *s, const char *text, size_t len) {
  hn_str_putc(s, '"');
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      hn_str_printf(s, "\\%c", c);
    else if (c == '\n')
      hn_str_puts(s, "\\n");
    else if (c < ' ' || c == 127)
      hn_str_printf(s, "\\x%02x", c);
    else
      hn_str_putc(s, (char)c);
  }
  hn_str_putc(s, '"');
}

void hn_name_print(const char *name, hn_str *out) {
  bool bare = *name != 0 && strstr(name, "//") == NULL;
  for (const char *p = name; bare && *p; p++) bare = hn_lex_name_char(*p);
  hn_str_putc(out, '%');
  if (bare)
    hn_str_puts(out, name);
  else
    quote(out, name, strlen(name));
}

/* A word as it stands, anything else quoted. */
static void word(hn_str *s, const char *text) {
  bool bare = *text && strcmp(text, "_") != 0 && (*text < '0' || *text > '9') && *text != '.' && *text != '/';
  for (const char *p = text; bare && *p; p++) bare = hn_lex_name_char(*p) && *p != '/';
  if (bare)
    hn_str_puts(s, text);
  else
    quote(s, text, strlen(text));
}

/* "f32[Nx3x224x224]" with the model's symbol names. */
static void print_desc(const hn_model *m, const hone_tensor_desc *d, hn_str *s) {
  hn_str_puts(s, d->dtype ? hone_dtype_name(d->dtype) : "?");
  if (!hone_dtype_is_tensor(d->dtype)) return;
  if (d->rank < 0) {
    if (d->dtype) hn_str_puts(s, "[*]");
    return;
  }
  hn_str_putc(s, '[');
  for (int32_t i = 0; i < d->rank; i++) {
    if (i) hn_str_putc(s, 'x');
    const char *symbol = m ? hn_model_symbol_name(m, d->dim[i]) : NULL;
    if (d->dim[i] >= 0)
      hn_str_printf(s, "%" PRId64, d->dim[i]);
    else if (symbol) {
      bool bare = *symbol && (*symbol < '0' || *symbol > '9') && !strchr(symbol, 'x');
      for (const char *p = symbol; bare && *p; p++) bare = hn_lex_name_char(*p) && *p != '.' && *p != '/';
      hn_str_printf(s, bare ? "%s" : "\"%s\"", symbol);
    } else
      hn_str_putc(s, '?');
  }
  hn_str_putc(s, ']');
}

static void value_type(printer *p, const hn_value *v) {
  if (v->foreign) hn_str_puts(p->out, "map ");
  print_desc(p->model, &v->desc, p->out);
}

static void real(hn_str *s, double v, int digits) {
  if (isnan(v))
    hn_str_puts(s, "nan");
  else if (isinf(v))
    hn_str_puts(s, v > 0 ? "inf" : "-inf");
  else
    hn_str_printf(s, "%.*g", digits, v);
}

static void element(hn_str *s, const hone_tensor *t, int64_t i) {
  const void *d = t->data;
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: real(s, ((const float *)d)[i], 9); break;
  case HONE_DTYPE_F64: real(s, ((const double *)d)[i], 17); break;
  case HONE_DTYPE_F16: real(s, hn_f16_to_f32(((const uint16_t *)d)[i]), 9); break;
  case HONE_DTYPE_BF16: real(s, hn_bf16_to_f32(((const uint16_t *)d)[i]), 9); break;
  case HONE_DTYPE_U8:
  case HONE_DTYPE_BOOL: hn_str_printf(s, "%d", ((const uint8_t *)d)[i]); break;
  case HONE_DTYPE_I8: hn_str_printf(s, "%d", ((const int8_t *)d)[i]); break;
  case HONE_DTYPE_U16: hn_str_printf(s, "%d", ((const uint16_t *)d)[i]); break;
  case HONE_DTYPE_I16: hn_str_printf(s, "%d", ((const int16_t *)d)[i]); break;
  case HONE_DTYPE_U32: hn_str_printf(s, "%" PRIu32, ((const uint32_t *)d)[i]); break;
  case HONE_DTYPE_I32: hn_str_printf(s, "%" PRId32, ((const int32_t *)d)[i]); break;
  case HONE_DTYPE_U64: hn_str_printf(s, "%" PRIu64, ((const uint64_t *)d)[i]); break;
  case HONE_DTYPE_I64: hn_str_printf(s, "%" PRId64, ((const int64_t *)d)[i]); break;
  case HONE_DTYPE_STRING: quote(s, ((const hone_string *)d)[i].ptr, ((const hone_string *)d)[i].len); break;
  default:
    if (hn_narrow_bits(t->desc.dtype))
      real(s, (double)hn_narrow_to_f32(t->desc.dtype, ((const uint8_t *)d)[i]), 9);
    else
      hn_str_putc(s, '0');
    break;
  }
}

/* All elements have the same bits. */
static bool uniform(const hone_tensor *t, int64_t count) {
  size_t size = hone_dtype_size(t->desc.dtype);
  if (t->desc.dtype == HONE_DTYPE_STRING) return false;
  return memcmp(t->data, (const char *)t->data + size, (size_t)(count - 1) * size) == 0;
}

static uint64_t content(const hone_tensor *t, int64_t count) {
  if (t->desc.dtype != HONE_DTYPE_STRING) return hn_hash(t->data, (size_t)hone_desc_bytes(&t->desc), 0);
  uint64_t h = 0;
  for (int64_t i = 0; i < count; i++) {
    const hone_string *s = (const hone_string *)t->data + i;
    h = hn_hash(s->ptr, s->len, h);
  }
  return h;
}

static void constant(printer *p, const hone_tensor *t) {
  int64_t count = hone_desc_count(&t->desc);
  if (count > 4 && uniform(t, count)) {
    hn_str_puts(p->out, "full(");
    element(p->out, t, 0);
    hn_str_putc(p->out, ')');
  } else if (count < 0 || (uint64_t)count > p->max_elements)
    hn_str_printf(p->out, "#%016" PRIx64, content(t, count));
  else {
    hn_str_putc(p->out, '{');
    for (int64_t i = 0; i < count; i++) {
      if (i) hn_str_puts(p->out, ", ");
      element(p->out, t, i);
    }
    hn_str_putc(p->out, '}');
  }
}

static void indent(printer *p, int depth) {
  for (int i = 0; i < depth; i++) hn_str_puts(p->out, "  ");
}

static void graph(printer *p, const hn_graph *g, int depth);

static void attribute(printer *p, const hn_attr *a, int depth) {
  hn_str *s = p->out;
  hn_str_printf(s, "%s=", a->name);
  switch (a->type) {
  case HONE_ATTR_INT: hn_str_printf(s, "%" PRId64, a->i); break;
  case HONE_ATTR_TYPE: hn_str_printf(s, "type \"%s\"", hone_dtype_name((hone_dtype)a->i)); break;
  case HONE_ATTR_FLOAT: {
    size_t at = s->len;
    real(s, a->f, 9);
    /* A float without a point would be read back as an integer. */
    if (!s->failed && isfinite(a->f) && !strpbrk(s->ptr + at, ".e")) hn_str_puts(s, ".0");
    break;
  }
  case HONE_ATTR_STRING: quote(s, a->s.ptr, a->s.len); break;
  case HONE_ATTR_TENSOR:
    print_desc(p->model, &a->t->desc, s);
    hn_str_putc(s, ' ');
    constant(p, a->t);
    break;
  case HONE_ATTR_GRAPH: graph(p, a->g, depth); break;
  case HONE_ATTR_FLOATS:
    hn_str_puts(s, "floats[");
    for (size_t i = 0; i < a->list.n; i++) {
      if (i) hn_str_puts(s, ", ");
      real(s, ((const float *)a->list.ptr)[i], 9);
    }
    hn_str_putc(s, ']');
    break;
  case HONE_ATTR_STRINGS:
    hn_str_puts(s, "strings[");
    for (size_t i = 0; i < a->list.n; i++) {
      if (i) hn_str_puts(s, ", ");
      const hone_string *e = (const hone_string *)a->list.ptr + i;
      quote(s, e->ptr, e->len);
    }
    hn_str_putc(s, ']');
    break;
  case HONE_ATTR_INTS:
    hn_str_putc(s, '[');
    for (size_t i = 0; i < a->list.n; i++)
      hn_str_printf(s, "%s%" PRId64, i ? ", " : "", ((const int64_t *)a->list.ptr)[i]);
    hn_str_putc(s, ']');
    break;
  default: hn_str_putc(s, '0'); break;
  }
}

static void put_value(printer *p, const hn_value *v) {
  if (!v)
    hn_str_putc(p->out, '_');
  else if (p->name)
    hn_str_puts(p->out, p->name(p->arg, v));
  else
    hn_name_print(v->name, p->out);
}

static void node(printer *p, const hone_node *n, int depth) {
  hn_str *s = p->out;
  indent(p, depth);
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (i) hn_str_puts(s, ", ");
    put_value(p, n->out[i]);
  }
  if (n->n_out) hn_str_puts(s, " = ");
  if (*n->domain) {
    word(s, n->domain);
    hn_str_puts(s, "::");
  }
  word(s, n->op_type);
  hn_str_putc(s, '(');
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (i) hn_str_puts(s, ", ");
    put_value(p, n->in[i]);
  }
  hn_str_putc(s, ')');
  for (uint32_t i = 0; i < n->n_attr; i++) {
    hn_str_puts(s, i ? ", " : " {");
    attribute(p, &n->attr[i], depth);
  }
  if (n->n_attr) hn_str_putc(s, '}');
  if (p->node_names) {
    hn_str_putc(s, ' ');
    quote(s, n->name, strlen(n->name));
  }
  if (p->types && n->n_out) {
    hn_str_puts(s, "  //");
    for (uint32_t i = 0; i < n->n_out; i++) {
      hn_str_putc(s, ' ');
      if (n->out[i]) value_type(p, n->out[i]);
    }
  }
  hn_str_putc(s, '\n');
}

static void graph(printer *p, const hn_graph *g, int depth) {
  hn_str *s = p->out;
  hn_str_puts(s, "graph ");
  word(s, g->name);
  hn_str_putc(s, '(');
  for (size_t i = 0; i < g->inputs.len; i++) {
    const hn_value *v = g->inputs.ptr[i];
    if (i) hn_str_puts(s, ", ");
    hn_name_print(v->name, s);
    if (v->desc.dtype || v->desc.rank >= 0) {
      hn_str_puts(s, ": ");
      value_type(p, v);
    }
    if (v->constant) {
      hn_str_puts(s, " = ");
      constant(p, v->constant);
    }
  }
  hn_str_puts(s, ") -> (");
  for (size_t i = 0; i < g->outputs.len; i++) {
    const hn_value *v = g->outputs.ptr[i];
    if (i) hn_str_puts(s, ", ");
    hn_name_print(v->name, s);
    if (v->desc.dtype) {
      hn_str_puts(s, ": ");
      value_type(p, v);
    }
  }
  hn_str_puts(s, ") {\n");
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    if (!v->constant || v->is_input || v->producer || !hn_value_needed(v)) continue;
    indent(p, depth + 1);
    hn_str_puts(s, "const ");
    hn_name_print(v->name, s);
    hn_str_puts(s, ": ");
    print_desc(p->model, &v->constant->desc, s);
    hn_str_puts(s, " = ");
    constant(p, v->constant);
    hn_str_putc(s, '\n');
  }
  for (const hone_node *n = g->first; n; n = n->next) node(p, n, depth + 1);
  indent(p, depth);
  hn_str_putc(s, '}');
}

static printer make_printer(const hn_model *m, const hn_print_options *o, hn_str *out) {
  return (printer){.out = out,
                   .model = m,
                   .max_elements = o && o->max_elements ? o->max_elements : 64,
                   .node_names = o && o->node_names,
                   .types = o && o->types};
}

bool hn_node_print(const hone_node *n, const char *(*name)(void *arg, const hn_value *value), void *arg,
                   hn_str *out) {
  printer p = make_printer(n->graph->model, NULL, out);
  p.name = name;
  p.arg = arg;
  node(&p, n, 0);
  return !out->failed;
}

bool hn_graph_print(const hn_graph *g, const hn_print_options *options, hn_str *out) {
  printer p = make_printer(g->model, options, out);
  graph(&p, g, 0);
  hn_str_putc(out, '\n');
  return !out->failed;
}

bool hn_model_print(const hn_model *m, const hn_print_options *options, hn_str *out) {
  hn_str_printf(out, "ir %" PRId64 "\n", m->ir_version);
  for (size_t i = 0; i < m->opsets.len; i++) {
    hn_str_puts(out, "opset ");
    if (*m->opsets.ptr[i].domain) {
      quote(out, m->opsets.ptr[i].domain, strlen(m->opsets.ptr[i].domain));
      hn_str_putc(out, ' ');
    }
    hn_str_printf(out, "%" PRId64 "\n", m->opsets.ptr[i].version);
  }
  return hn_graph_print(m->graph, options, out);
}
