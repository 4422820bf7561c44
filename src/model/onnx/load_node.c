/* NodeProto -> hone_node, or the nodes of the local function that it calls. */
#include "base/error.h"
#include "model/onnx/load.h"

#include <string.h>

enum {
  MOST_ATTRIBUTES = 1024, /* looked up one after the other; operators have fewer than 30 */
  MOST_OPERANDS = 1 << 16
};

typedef HN_VEC(hn_value *) value_list;

/* A NodeProto, its strings in the arena of the one who reads it. */
typedef struct proto {
  const char *name, *op_type, *domain, *overload;
  value_list in, out;
} proto;

static hone_status read_input(hn_pb *m, const hn_pb_field *f, const hn_onnx_scope *scope, hn_arena *arena,
                              value_list *in) {
  hn_value *v = NULL;
  if (f->len) {
    const char *name = hn_pb_name(m, f, arena);
    if (!name) return m->source->status;
    if (!hn_onnx_find(scope, name, &v))
      return hn_pb_fail(m, HONE_ERROR_INPUT, "the node reads '%.80s', which nothing makes", name);
  }
  return hn_vec_push(in, v) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status read_output(hn_pb *m, const hn_pb_field *f, const hn_onnx_scope *scope, hn_arena *arena,
                               value_list *out) {
  hn_value *v = NULL;
  if (f->len) {
    const char *name = hn_pb_name(m, f, arena);
    if (!name) return m->source->status;
    hn_onnx_find(scope, name, &v); /* made by hn_onnx_load_nodes */
  }
  return hn_vec_push(out, v) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status read_node(hn_pb *m, const hn_onnx_scope *scope, hn_arena *arena, proto *p) {
  hone_status status = HONE_OK;
  size_t attributes = 0;
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);) {
    const char **text = NULL;
    switch (f.number) {
    case HN_ONNX_NODE_INPUT: status = read_input(m, &f, scope, arena, &p->in); break;
    case HN_ONNX_NODE_OUTPUT: status = read_output(m, &f, scope, arena, &p->out); break;
    case HN_ONNX_NODE_NAME: text = &p->name; break;
    case HN_ONNX_NODE_OP_TYPE: text = &p->op_type; break;
    case HN_ONNX_NODE_DOMAIN: text = &p->domain; break;
    case HN_ONNX_NODE_OVERLOAD: text = &p->overload; break;
    case HN_ONNX_NODE_ATTRIBUTE:
      if (++attributes > MOST_ATTRIBUTES)
        status = hn_pb_fail(m, HONE_ERROR_INPUT, "the node has more than %d attributes", MOST_ATTRIBUTES);
      break;
    default: break;
    }
    if (status == HONE_OK && p->in.len + p->out.len > MOST_OPERANDS)
      status = hn_pb_fail(m, HONE_ERROR_INPUT, "the node has more than %d inputs and outputs", MOST_OPERANDS);
    if (text && !(*text = hn_pb_name(m, &f, arena))) *text = "";
  }
  if (status == HONE_OK) status = m->source->status;
  if (status == HONE_OK && !*p->op_type)
    status = hn_pb_fail(m, HONE_ERROR_INPUT, "the node has no operator type");
  p->domain = hn_onnx_domain(p->domain);
  return status;
}

/* The version of a domain inside a function is the function's own. */
static int32_t opset_inside(const hn_onnx_scope *scope, const hone_node *n) {
  const hn_onnx_function *f = scope->call->function;
  for (size_t i = 0; i < f->opsets.len; i++)
    if (strcmp(f->opsets.ptr[i].domain, n->domain) == 0) return (int32_t)f->opsets.ptr[i].version;
  return n->opset;
}

/* The name of a function's node in one call. Calls without names, and nodes, would all be called alike. */
static const char *name_inside(hn_onnx_loader *l, const hn_onnx_scope *scope, const proto *p) {
  const char *name =
                 hn_arena_printf(&l->scratch, "%s/%s", scope->call->prefix, *p->name ? p->name : p->op_type),
             *own = name;
  uintptr_t met = name ? (uintptr_t)hn_map_get(&l->taken_names, name) : 0;
  while (own && met && hn_map_get(&l->taken_names, own))
    own = hn_arena_printf(&l->scratch, "%s_%zu", name, (size_t)++met);
  if (!own || !hn_map_set(&l->taken_names, name, (void *)(met ? met : 1))) return NULL;
  if (own != name && !hn_map_set(&l->taken_names, own, (void *)1)) return NULL;
  return own;
}

/* Passes set the number in models of any opset; in a file it is what ONNX's checker and ONNX Runtime refuse.
 */
static hone_status check_cast(hn_pb *m, const hone_node *n) {
  const hn_attr *to = strcmp(n->op_type, "Cast") == 0 && !n->domain[0] ? hn_node_attr(n, "to") : NULL;
  if (!to || to->type != HONE_ATTR_INT || n->opset < 1 || n->opset >= 6) return HONE_OK;
  return hn_pb_fail(m, HONE_ERROR_INPUT, "'to' of Cast is a number, as opset 6 has it, in opset %d",
                    (int)n->opset);
}

static hone_status make_node(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope, const proto *p) {
  const char *name = p->name;
  if (scope->call) {
    name = name_inside(l, scope, p);
    if (!name) return hn_pb_no_memory(m);
  }
  hone_node *n = hn_node_create(scope->graph, NULL, p->op_type, p->domain, name, p->in.ptr,
                                (uint32_t)p->in.len, p->out.ptr, (uint32_t)p->out.len);
  if (!n) return hn_pb_no_memory(m);
  if (scope->call) n->opset = opset_inside(scope, n);
  uint32_t origin = (uint32_t)l->model->source.len;
  if (!hn_vec_push(&l->model->source, (hn_source_node){n->name, n->op_type}) ||
      !hn_node_set_origin(n, &origin, 1))
    return hn_pb_no_memory(m);
  hone_status status = HONE_OK;
  hn_pb attr;
  hn_pb_rewind(m);
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);)
    if (f.number == HN_ONNX_NODE_ATTRIBUTE && hn_pb_open(&attr, m, &f))
      status = hn_onnx_load_attr(l, &attr, n, scope, NULL, 0);
  if (status == HONE_OK && l->source.status == HONE_OK) status = check_cast(m, n);
  return status != HONE_OK ? status : l->source.status;
}

hone_status hn_onnx_load_node(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  hn_arena *arena = &l->node;
  const hn_arena_mark before = hn_arena_here(arena);
  proto p = {.name = "", .op_type = "", .domain = "", .overload = ""};
  hone_status status = read_node(m, scope, arena, &p);
  hn_onnx_function *f = NULL;
  if (status == HONE_OK) status = hn_onnx_function_find(l, m, p.domain, p.op_type, p.overload, &f);
  if (status == HONE_OK) {
    if (f)
      status = hn_onnx_expand(l, f, m, *p.name ? p.name : p.op_type, p.in.ptr, p.in.len, p.out.ptr, p.out.len,
                              scope);
    else if (*p.overload)
      status = hn_pb_fail(m, HONE_ERROR_UNSUPPORTED,
                          "the node calls overload '%.80s' of %.80s, which the model does not define",
                          p.overload, p.op_type);
    else
      status = make_node(l, m, scope, &p);
  }
  hn_vec_free(&p.in);
  hn_vec_free(&p.out);
  hn_arena_back(arena, before);
  return status;
}
