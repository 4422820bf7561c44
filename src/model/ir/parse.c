/* Reads the text form of a model (text.h). */
#include "model/ir/line.h"

#include "base/error.h"

#include <string.h>

enum { MAX_TEXT = 64 << 20, MAX_NESTING = 16 };
#define MAX_CONSTANT_BYTES ((uint64_t)1 << 30)

typedef struct parser {
  hn_lex lex;
  hn_model *model;
  hn_graph *graph; /* the one being read */
  uint64_t bytes;  /* left for constants */
  int depth;
} parser;

static bool memory(parser *p) {
  if (p->lex.status == HONE_OK)
    p->lex.status = hn_fail(p->lex.error, HONE_ERROR_MEMORY, "cannot allocate memory for the model");
  p->lex.token.kind = HN_TOKEN_END;
  return false;
}

/* Failures found after the line was read point at the place that is wrong. */
static void point(parser *p, int line, int column) {
  p->lex.token.line = line;
  p->lex.token.column = column;
}

/* A new value of this graph; a name that exists already is an error. */
static hn_value *define(parser *p, const char *name) {
  if (hn_map_has(&p->graph->by_name, name))
    return hn_lex_fail(&p->lex, "'%%%.80s' is made twice", name), NULL;
  hn_value *v = hn_value_create(p->graph, name);
  if (!v) memory(p);
  return v;
}

/* ["map" | ["optional"] ["seq"] ["map_i64" | "map_string"]] type */
static bool value_type(parser *p, hn_value *v) {
  unsigned form = 0;
  v->foreign = hn_lex_accept_word(&p->lex, "map");
  if (hn_lex_accept_word(&p->lex, "optional")) form |= HONE_OPTIONAL;
  if (hn_lex_accept_word(&p->lex, "seq")) form |= HONE_SEQUENCE;
  if (hn_lex_accept_word(&p->lex, "map_i64")) form |= HONE_MAP_I64;
  if (hn_lex_accept_word(&p->lex, "map_string")) form |= HONE_MAP_STRING;
  if (!hn_lex_desc(&p->lex, p->model, &v->desc)) return false;
  if (form) v->desc = hone_desc((hone_dtype)(form | v->desc.dtype), 0, NULL);
  return true;
}

static bool constant_value(parser *p, hn_value *v) {
  hone_tensor *t = hn_lex_constant(&p->lex, &v->desc, &p->bytes);
  if (t) hn_value_set_constant(v, t);
  return t != NULL;
}

static bool expect_value(parser *p, const char **name) {
  char buf[64];
  if (p->lex.token.kind != HN_TOKEN_VALUE)
    return hn_lex_fail(&p->lex, "expected a %%name, found %s", hn_lex_describe(&p->lex, buf)), false;
  *name = p->lex.token.text;
  hn_lex_next(&p->lex);
  return p->lex.status == HONE_OK;
}

/* const %w: f32[2] = {1, 2} */
static bool constant_line(parser *p) {
  const char *name;
  hn_value *v;
  return expect_value(p, &name) && (v = define(p, name)) && hn_lex_expect(&p->lex, ':') && value_type(p, v) &&
         hn_lex_expect(&p->lex, '=') && constant_value(p, v);
}

static hn_graph *read_graph(void *arg, hn_lex *lex);

static hn_value *operand_value(parser *p, const hn_operand *o) {
  hn_value *v = NULL;
  if (o->kind == HN_OPERAND_VALUE) {
    hn_token now = p->lex.token;
    point(p, o->line, o->column);
    if (o->optional || o->constant)
      return hn_lex_fail(&p->lex, "'?' and '!' have a meaning in patterns only"), NULL;
    v = hn_value_find(p->graph, o->name);
    if (!v)
      hn_lex_fail(&p->lex, "'%%%.80s' is read before it is made", o->name);
    else
      p->lex.token = now;
    return v;
  }
  v = hn_value_create(p->graph, NULL);
  if (!v) return memory(p), NULL;
  hone_tensor *t = o->tensor;
  if (o->kind == HN_OPERAND_NUMBER) {
    t = HN_NEW(&p->model->arena, hone_tensor);
    float *data = HN_NEW(&p->model->arena, float);
    if (!t || !data) return memory(p), NULL;
    *data = (float)o->number;
    t->desc = hone_desc(HONE_DTYPE_F32, 0, NULL);
    t->data = data;
  }
  hn_value_set_constant(v, t);
  return v;
}

static bool set_attr(parser *p, hone_node *n, const hn_attr *a) {
  switch (a->type) {
  case HONE_ATTR_INT: return hn_node_set_int(n, a->name, a->i);
  case HONE_ATTR_TYPE: return hn_node_set_type(n, a->name, (hone_dtype)a->i);
  case HONE_ATTR_FLOAT: return hn_node_set_float(n, a->name, a->f);
  case HONE_ATTR_STRING: return hn_node_set_string(n, a->name, a->s.ptr, a->s.len);
  case HONE_ATTR_INTS: return hn_node_set_ints(n, a->name, a->list.ptr, a->list.n);
  case HONE_ATTR_FLOATS: return hn_node_set_floats(n, a->name, a->list.ptr, a->list.n);
  case HONE_ATTR_STRINGS: return hn_node_set_strings(n, a->name, a->list.ptr, a->list.n);
  case HONE_ATTR_TENSOR: return hn_node_set_tensor(n, a->name, a->t);
  case HONE_ATTR_GRAPH: return hn_node_set_graph(n, a->name, a->g);
  default: return hn_lex_fail(&p->lex, "attribute '%.40s' has no type", a->name), false;
  }
}

static bool node_line(parser *p) {
  hn_line line;
  if (hn_line_parse(&p->lex, &line, p->model, &p->bytes, read_graph, p) != HONE_OK) return false;
  hn_token now = p->lex.token;
  if (line.n_op != 1) point(p, line.line, line.column);
  if (line.n_op != 1) return hn_lex_fail(&p->lex, "alternatives have a meaning in patterns only"), false;
  hn_arena *a = &p->model->arena;
  hn_value **in = HN_NEW_ARRAY(a, hn_value *, line.n_in), **out = HN_NEW_ARRAY(a, hn_value *, line.n_out);
  if (!in || !out) return memory(p);
  for (uint32_t i = 0; i < line.n_in; i++)
    if (line.in[i].kind != HN_OPERAND_NONE && !(in[i] = operand_value(p, &line.in[i]))) return false;
  point(p, line.line, line.column);
  for (uint32_t i = 0; i < line.n_out; i++)
    if (line.out[i] && !(out[i] = define(p, line.out[i]))) return false;
  p->lex.token = now;
  hone_node *n =
      hn_node_create(p->graph, NULL, line.op[0], line.domain, line.name, in, line.n_in, out, line.n_out);
  if (!n) return memory(p);
  for (uint32_t i = 0; i < line.n_attr; i++)
    if (!set_attr(p, n, &line.attr[i])) return memory(p);
  uint32_t source = (uint32_t)p->model->source.len;
  return (hn_vec_push(&p->model->source, (hn_source_node){n->name, n->op_type}) &&
          hn_node_set_origin(n, &source, 1)) ||
         memory(p);
}

static bool inputs(parser *p) {
  if (!hn_lex_expect(&p->lex, '(')) return false;
  for (size_t i = 0; !hn_lex_accept(&p->lex, ')'); i++) {
    const char *name;
    hn_value *v;
    if (i && !hn_lex_expect(&p->lex, ',')) return false;
    if (!expect_value(p, &name) || !(v = define(p, name))) return false;
    if (hn_lex_accept(&p->lex, ':') && !value_type(p, v)) return false;
    if (hn_lex_accept(&p->lex, '=') && !constant_value(p, v)) return false;
    if (!hn_graph_add_input(p->graph, v)) return memory(p);
  }
  return p->lex.status == HONE_OK;
}

typedef struct declared {
  const char *name;
  hn_value type; /* kind and desc alone */
  bool typed;
  hn_token at;
} declared;

typedef HN_VEC(declared) declared_list;

static bool outputs(parser *p, declared_list *list) {
  char buf[64];
  if (p->lex.token.kind != HN_TOKEN_ARROW)
    return hn_lex_fail(&p->lex, "expected '->', found %s", hn_lex_describe(&p->lex, buf)), false;
  hn_lex_next(&p->lex);
  if (!hn_lex_expect(&p->lex, '(')) return false;
  for (size_t i = 0; !hn_lex_accept(&p->lex, ')'); i++) {
    declared d = {.at = p->lex.token};
    if ((i && !hn_lex_expect(&p->lex, ',')) || !expect_value(p, &d.name)) return false;
    if (hn_lex_accept(&p->lex, ':')) {
      d.typed = true;
      if (!value_type(p, &d.type)) return false;
    }
    if (!hn_vec_push(list, d)) return memory(p);
  }
  return p->lex.status == HONE_OK;
}

/* graph name(inputs) -> (outputs) { lines } into the parser's current graph. */
static bool graph_body(parser *p) {
  declared_list out = {0};
  bool ok = false;
  if (p->lex.token.kind == HN_TOKEN_WORD || p->lex.token.kind == HN_TOKEN_STRING) {
    p->graph->name = p->lex.token.text;
    hn_lex_next(&p->lex);
  }
  if (!inputs(p) || !outputs(p, &out) || !hn_lex_expect(&p->lex, '{')) goto done;
  while (!hn_lex_accept(&p->lex, '}'))
    if (hn_lex_accept_word(&p->lex, "const") ? !constant_line(p) : !node_line(p)) goto done;
  for (size_t i = 0; i < out.len; i++) {
    hn_value *v = hn_value_find(p->graph, out.ptr[i].name);
    if (!v) {
      p->lex.token = out.ptr[i].at;
      hn_lex_fail(&p->lex, "nothing makes the output '%%%.80s'", out.ptr[i].name);
      goto done;
    }
    if (out.ptr[i].typed) {
      v->foreign = out.ptr[i].type.foreign;
      v->desc = out.ptr[i].type.desc;
    }
    if (!hn_graph_add_output(p->graph, v)) {
      memory(p);
      goto done;
    }
  }
  ok = p->lex.status == HONE_OK;
done:
  hn_vec_free(&out);
  return ok;
}

/* The graph of an attribute: then_branch=graph name() -> (%y) {...}. */
static hn_graph *read_graph(void *arg, hn_lex *lex) {
  parser *p = arg;
  if (p->depth == MAX_NESTING) return hn_lex_fail(lex, "graphs are nested deeper than %d", MAX_NESTING), NULL;
  hn_graph *outer = p->graph, *inner = hn_graph_create(p->model, outer, "");
  if (!inner) return memory(p), NULL;
  hn_lex_next(lex);
  p->depth++;
  p->graph = inner;
  bool ok = graph_body(p);
  p->graph = outer;
  p->depth--;
  return ok ? inner : NULL;
}

static bool header(parser *p) {
  char buf[64];
  for (;;) {
    hn_lex *lex = &p->lex;
    bool ir = hn_lex_accept_word(lex, "ir");
    if (!ir && !hn_lex_accept_word(lex, "opset")) break;
    const char *domain = "";
    if (!ir && lex->token.kind == HN_TOKEN_STRING) {
      domain = lex->token.text;
      hn_lex_next(lex);
    }
    if (lex->token.kind != HN_TOKEN_NUMBER || !lex->token.is_int)
      return hn_lex_fail(lex, "expected a version, found %s", hn_lex_describe(lex, buf)), false;
    if (ir)
      p->model->ir_version = lex->token.integer;
    else if (!hn_vec_push(&p->model->opsets, (hn_opset){domain, lex->token.integer}))
      return memory(p);
    hn_lex_next(lex);
  }
  if (p->model->opsets.len == 0 && !hn_vec_push(&p->model->opsets, (hn_opset){"", 17})) return memory(p);
  return hn_lex_accept_word(&p->lex, "graph") ||
         (hn_lex_fail(&p->lex, "expected 'graph', found %s", hn_lex_describe(&p->lex, buf)), false);
}

hone_status hn_model_parse(const char *source, const char *text, size_t len, hn_model **out,
                           hone_error *error) {
  *out = NULL;
  if (len > MAX_TEXT)
    return hn_fail(error, HONE_ERROR_INPUT, "the text has %zu bytes, more than %d", len, MAX_TEXT);
  parser p = {.model = hn_model_create(""), .bytes = MAX_CONSTANT_BYTES};
  if (!p.model) return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory for the model");
  p.graph = p.model->graph;
  hn_lex_start(&p.lex, source, text, len, &p.model->arena, error);
  char buf[64];
  if (header(&p) && graph_body(&p) && p.lex.token.kind != HN_TOKEN_END)
    hn_lex_fail(&p.lex, "unexpected %s after the graph", hn_lex_describe(&p.lex, buf));
  if (p.lex.status == HONE_OK)
    *out = p.model;
  else
    hn_model_destroy(p.model);
  return p.lex.status;
}
