/* Patterns of plugins: their texts checked, and as the nodes that they describe. */
#include <hone/plugins.h>

#include "base/error.h"
#include "model/ir/text.h"
#include "model/ops/common/op.h"
#include "optimize/match/condition.h"
#include "optimize/match/patterns.h"

#include <string.h>

hone_status hone_pattern_check(const hone_pattern_desc *pattern, hone_pattern_place *place,
                               hone_error *error) {
  hn_pattern_place at = {0};
  if (place) *place = (hone_pattern_place){0};
  if (!pattern || !pattern->name || !pattern->text || !pattern->inputs)
    return hn_fail(error, HONE_ERROR_USAGE, "a pattern needs name, text and inputs");
  hone_status status = hn_pattern_check(pattern, &at, error);
  if (status == HONE_OK) status = hn_pattern_operators(pattern, &at, error);
  if (place && status != HONE_OK) *place = (hone_pattern_place){at.in, at.line, at.column};
  return status;
}

typedef struct sketch {
  hn_pattern pattern;
  hone_match match;
  hn_model *model;
  hn_arena arena;
} sketch;

/* The value of pattern name i; made when it is new. */
static hn_value *value_of(sketch *s, uint32_t i) {
  if (!s->match.bound[i]) s->match.value[i] = hn_value_create(s->model->graph, s->pattern.names[i]);
  s->match.bound[i] = s->match.value[i] != NULL;
  return s->match.value[i];
}

static hn_value *value_named(sketch *s, const char *name) {
  const int i = hn_pattern_name(&s->pattern, name);
  return i >= 0 ? value_of(s, (uint32_t)i) : NULL;
}

/* The operator's inputs, as far as they are there. */
static bool bind_inputs(sketch *s, const char *names, const hone_tensor_desc *const *input, uint32_t n) {
  for (uint32_t i = 0; *names; i++) {
    const size_t len = strcspn(names, " ");
    char *name = hn_arena_strndup(&s->arena, names + (*names == '%'), len - (*names == '%'));
    const bool there = i < n && input[i];
    hn_value *v = name && there ? value_named(s, name) : NULL;
    if (!name) return false;
    if (v) {
      v->desc = *input[i];
      if (!hn_graph_add_input(s->model->graph, v)) return false;
    }
    names += len + strspn(names + len, " ");
  }
  return true;
}

/* A constant of one element: the attribute that the pattern makes of it, else 1. */
static bool make_constant(sketch *s, uint32_t i, const hone_node *node, hone_dtype dtype) {
  double number = 1;
  for (uint32_t k = 0; node && k < s->pattern.n_settings; k++) {
    const hn_setting *set = &s->pattern.setting[k];
    const hn_attr *a = hn_node_attr(node, set->attr);
    if (!a || set->term->kind != HN_TERM_VALUE || strcmp(set->term->name, s->pattern.names[i]) != 0) continue;
    number = a->type == HONE_ATTR_INT ? (double)a->i : a->type == HONE_ATTR_FLOAT ? (double)a->f : 1;
  }
  hone_tensor *t = HN_NEW(&s->model->arena, hone_tensor);
  void *data = hn_arena_alloc(&s->model->arena, sizeof number);
  if (!t || !data) return false;
  *t = (hone_tensor){.desc = hone_desc(dtype, 0, NULL), .data = data};
  hn_set_f64(t, 0, number);
  hn_value_set_constant(s->match.value[i], t);
  return true;
}

static hn_value *operand(sketch *s, const hn_operand *o, const hone_node *node, hone_dtype dtype) {
  for (uint32_t i = 0; o->kind == HN_OPERAND_VALUE && i < s->pattern.n_names; i++) {
    if (strcmp(s->pattern.names[i], o->name) != 0) continue;
    const bool made = s->pattern.made_by[i] >= 0, bound = s->match.bound[i];
    if (o->optional && !made && !bound) return NULL;
    hn_value *v = value_of(s, i);
    return !v || made || bound || make_constant(s, i, node, dtype) ? v : NULL;
  }
  return NULL;
}

static bool set_attr(hone_node *n, const char *name, const hn_attr *a) {
  switch (a->type) {
  case HONE_ATTR_INT: return hn_node_set_int(n, name, a->i);
  case HONE_ATTR_FLOAT: return hn_node_set_float(n, name, a->f);
  case HONE_ATTR_STRING: return hn_node_set_string(n, name, a->s.ptr, a->s.len);
  case HONE_ATTR_INTS: return hn_node_set_ints(n, name, a->list.ptr, a->list.n);
  case HONE_ATTR_FLOATS: return hn_node_set_floats(n, name, a->list.ptr, a->list.n);
  default: return true;
  }
}

static bool make_node(sketch *s, uint32_t k, const hone_node *node, hone_dtype dtype) {
  const hn_line *l = &s->pattern.line[k];
  hn_value **in = HN_NEW_ARRAY(&s->arena, hn_value *, l->n_in + 1),
           **out = HN_NEW_ARRAY(&s->arena, hn_value *, l->n_out + 1);
  if (!in || !out) return false;
  for (uint32_t i = 0; i < l->n_in; i++) {
    in[i] = operand(s, &l->in[i], node, dtype);
    if (l->in[i].kind != HN_OPERAND_NUMBER) continue;
    in[i] = hn_value_create(s->model->graph, NULL); /* its name: the number as it was written */
    if (!in[i]) return false;
    in[i]->name = l->in[i].spelled;
  }
  for (uint32_t i = 0; i < l->n_out; i++)
    if (l->out[i] && !(out[i] = value_named(s, l->out[i]))) return false;
  hone_node *n = hn_node_create(s->model->graph, NULL, l->op[0], l->domain, NULL, in, l->n_in, out, l->n_out);
  if (!n) return false;
  s->match.node[k] = n;
  for (uint32_t i = 0; i < l->n_attr; i++)
    if (!set_attr(n, l->attr[i].name, &l->attr[i])) return false;
  return true;
}

/* What the operator has copied from the nodes goes back to them, then what their conditions ask for. */
static bool give_attributes(sketch *s, const hone_node *node) {
  for (uint32_t i = 0; node && i < s->pattern.n_settings; i++) {
    const hn_setting *set = &s->pattern.setting[i];
    const hn_attr *a = hn_node_attr(node, set->attr);
    if (a && set->term->kind == HN_TERM_ATTR && !set_attr(s->match.node[set->term->line], set->term->attr, a))
      return false;
  }
  for (uint32_t i = 0; i < s->pattern.n_conditions; i++)
    if (!hn_where_give(&s->pattern.condition[i], &s->match)) return false;
  return true;
}

static const char *print_name(void *arg, const hn_value *v) {
  sketch *s = arg;
  hn_str text = {0};
  if (!v->producer && !hn_value_find(s->model->graph, v->name)) return v->name; /* a number */
  hn_name_print(v->name, &text);
  const char *kept = text.failed ? NULL : hn_arena_strdup(&s->arena, text.ptr);
  hn_str_free(&text);
  return kept ? kept : "";
}

static bool print_all(sketch *s, hn_str *out) {
  for (uint32_t i = 0; i < s->pattern.n_names; i++) {
    const hn_value *v = s->match.bound[i] ? s->match.value[i] : NULL;
    if (!v || !v->constant) continue;
    hn_str_puts(out, "const ");
    hn_name_print(v->name, out);
    hn_str_printf(out, ": %s = {%.9g}\n", hone_dtype_name(v->constant->desc.dtype),
                  hn_get_f64(v->constant, 0));
  }
  for (uint32_t k = 0; k < s->pattern.n_lines; k++)
    if (!hn_node_print(s->match.node[k], print_name, s, out)) return false;
  return !out->failed;
}

static hone_status sketch_nodes(sketch *s, const hone_pattern_desc *d, const hone_node *node,
                                const hone_tensor_desc *const *input, uint32_t n, hn_str *out,
                                hone_error *error) {
  enum { MOST_SPELLINGS = 16 };
  hn_pattern_text text = {.name = d->name, .text = d->text, .settings = d->settings};
  uint32_t count;
  hn_pattern *all = HN_NEW_ARRAY(&s->arena, hn_pattern, MOST_SPELLINGS);
  s->model = hn_model_create("");
  if (!all || !s->model) return hn_fail_memory(error, sizeof *all, "a pattern");
  hone_status status = hn_pattern_compile_all(&text, &s->arena, all, MOST_SPELLINGS, &count, error);
  if (status != HONE_OK) return status;
  s->pattern = all[0];
  s->match.pattern = &s->pattern;
  const hone_dtype dtype =
      n && input[0] && hone_dtype_is_float(input[0]->dtype) ? input[0]->dtype : HONE_DTYPE_F32;
  bool ok = bind_inputs(s, d->inputs, input, n);
  for (uint32_t k = 0; k < s->pattern.n_lines && ok; k++) ok = make_node(s, k, node, dtype);
  ok = ok && give_attributes(s, node) && print_all(s, out);
  return ok ? HONE_OK : hn_fail_memory(error, sizeof *s, "a pattern");
}

hone_status hone_pattern_nodes(const hone_pattern_desc *pattern, const hone_node *node,
                               const hone_tensor_desc *const *input, uint32_t n_inputs, char **nodes,
                               char **result, hone_error *error) {
  if (nodes) *nodes = NULL;
  if (result) *result = NULL;
  if (!nodes || !result || (n_inputs && !input))
    return hn_fail(error, HONE_ERROR_USAGE, "there is nowhere to put the nodes, or inputs are missing");
  hone_status status = hone_pattern_check(pattern, NULL, error);
  sketch *s = status == HONE_OK ? hn_calloc(1, sizeof *s) : NULL;
  if (!s) return status != HONE_OK ? status : hn_fail_memory(error, sizeof *s, "a pattern");
  hn_str text = {0}, last = {0};
  status = sketch_nodes(s, pattern, node, input, n_inputs, &text, error);
  const hn_line *root = status == HONE_OK ? &s->pattern.line[s->pattern.n_lines - 1] : NULL;
  if (root && root->n_out && root->out[0]) hn_str_puts(&last, root->out[0]);
  if (root && (!last.len || last.failed || text.failed))
    status = last.failed || text.failed
                 ? hn_fail_memory(error, text.len, "a pattern")
                 : hn_fail(error, HONE_ERROR_INPUT, "the pattern's last line makes nothing");
  if (status == HONE_OK) {
    *nodes = text.ptr;
    *result = last.ptr;
  } else {
    hn_str_free(&text);
    hn_str_free(&last);
  }
  if (s->model) hn_model_destroy(s->model);
  hn_arena_free(&s->arena);
  hn_free(s);
  return status;
}

static const char *print_operand(void *arg, const hn_value *v) {
  (void)arg;
  return v && v->name ? v->name : "";
}

hone_status hone_pattern_operator(const hone_pattern_desc *pattern, hone_model *model, char **line,
                                  hone_error *error) {
  hone_node *node;
  hn_str text = {0};
  if (line) *line = NULL;
  if (!line || !model)
    return hn_fail(error, HONE_ERROR_USAGE, "a model, or a place for the line, is missing");
  hone_status status = hone_pattern_check(pattern, NULL, error);
  if (status == HONE_OK) status = hn_pattern_operator(pattern, model->graph, &node, error);
  if (status != HONE_OK) return status;
  if (!hn_node_print(node, print_operand, NULL, &text) || text.failed) {
    hn_str_free(&text);
    return hn_fail_memory(error, text.len, "a pattern");
  }
  *line = text.ptr;
  return HONE_OK;
}
