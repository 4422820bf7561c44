/* Local functions: FunctionProto, and its expansion in the place of every call. */
#include "base/error.h"
#include "model/onnx/load.h"

#include <string.h>

/* Limits of what functions may expand to: a file of a few kilobytes can ask for 2^60 nodes. */
enum { MOST_NODES = 100000, MOST_BYTES = 32 << 20, LONGEST_PREFIX = 200 };

const char *hn_onnx_domain(const char *domain) { return strcmp(domain, "ai.onnx") == 0 ? "" : domain; }

hone_status hn_onnx_opset(hn_pb *m, hn_arena *arena, hn_opset *out) {
  out->domain = "";
  out->version = 0;
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_OPSET_VERSION)
      out->version = (int64_t)f.value;
    else if (!(out->domain = hn_pb_name(m, &f, arena)))
      return m->source->status;
  }
  if (m->source->status != HONE_OK) return m->source->status;
  out->domain = hn_onnx_domain(out->domain);
  if (out->version < 1 || out->version > INT32_MAX)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "opset version %lld of domain '%.80s' is impossible",
                      (long long)out->version, out->domain);
  return HONE_OK;
}

/* Domain, name and overload with a separator that no UTF-8 text has; in the arena. */
static const char *key(hn_arena *arena, const char *domain, const char *name, const char *overload) {
  return hn_arena_printf(arena, "%s\xff%s\xff%s", domain, name, overload);
}

hone_status hn_onnx_function_find(hn_onnx_loader *l, const hn_pb *m, const char *domain, const char *name,
                                  const char *overload, hn_onnx_function **out) {
  *out = NULL;
  if (!l->functions.len) return HONE_OK;
  hn_arena arena = {0};
  const char *k = key(&arena, domain, name, overload);
  hone_status status = k ? HONE_OK : hn_pb_no_memory(m);
  if (k) *out = hn_map_get(&l->functions, k);
  hn_arena_free(&arena);
  return status;
}

static hone_status read_function(hn_onnx_loader *l, hn_pb *m, hn_onnx_function *fn) {
  hn_pb part;
  for (hn_pb_field f; l->source.status == HONE_OK && hn_pb_next(m, &f);) {
    const char *text = NULL;
    if (f.desc->form == HN_PB_STRING && !(text = hn_pb_name(m, &f, &l->scratch))) break;
    bool ok = true;
    switch (f.number) {
    case HN_ONNX_FUNCTION_NAME: fn->name = text; break;
    case HN_ONNX_FUNCTION_DOMAIN: fn->domain = hn_onnx_domain(text); break;
    case HN_ONNX_FUNCTION_OVERLOAD: fn->overload = text; break;
    case HN_ONNX_FUNCTION_INPUT: ok = hn_vec_push(&fn->inputs, text); break;
    case HN_ONNX_FUNCTION_OUTPUT: ok = hn_vec_push(&fn->outputs, text); break;
    case HN_ONNX_FUNCTION_OPSET_IMPORT: {
      hn_opset o;
      if (hn_pb_open(&part, m, &f) && hn_onnx_opset(&part, &l->scratch, &o) == HONE_OK)
        ok = hn_vec_push(&fn->opsets, o);
      break;
    }
    default: break;
    }
    if (!ok) hn_pb_no_memory(m);
  }
  return l->source.status;
}

hone_status hn_onnx_load_function(hn_onnx_loader *l, hn_pb *m) {
  hn_onnx_function *fn = HN_NEW(&l->scratch, hn_onnx_function);
  if (!fn || !hn_vec_push(&l->function_list, fn)) return hn_pb_no_memory(m);
  fn->domain = fn->name = fn->overload = "";
  hone_status status = read_function(l, m, fn);
  if (status != HONE_OK) return status;
  if (!*fn->name) return hn_pb_fail(m, HONE_ERROR_INPUT, "a function has no name");
  const char *k = key(&l->scratch, fn->domain, fn->name, fn->overload);
  if (!k) return hn_pb_no_memory(m);
  if (hn_map_has(&l->functions, k))
    return hn_pb_fail(m, HONE_ERROR_INPUT, "the function '%.80s' of domain '%.80s' is defined twice",
                      fn->name, fn->domain);
  if (!hn_map_set(&l->functions, k, fn)) return hn_pb_no_memory(m);
  fn->body = *m;
  hn_pb_rewind(&fn->body);
  return HONE_OK;
}

/* Adds to the totals; a function's first expansion is as large as what stands in the file, and free. */
static hone_status charge(hn_onnx_loader *l, const hn_pb *node, hn_onnx_function *fn) {
  uint64_t nodes = fn->inputs.len + fn->outputs.len;
  hn_pb body = fn->body;
  for (hn_pb_field f; hn_pb_next(&body, &f);) nodes += f.number == HN_ONNX_FUNCTION_NODE;
  if (fn->calls++ > 0) {
    l->expanded_nodes += nodes;
    l->expanded_bytes += (uint64_t)(body.end - body.start);
  }
  if (l->expanded_nodes > MOST_NODES || l->expanded_bytes > MOST_BYTES)
    return hn_pb_fail(node, HONE_ERROR_INPUT,
                      "the model's functions expand to more than %d nodes or %d bytes", MOST_NODES,
                      MOST_BYTES);
  return l->source.status;
}

static hone_status check_call(hn_onnx_loader *l, const hn_pb *node, const hn_onnx_function *fn, size_t n_in,
                              size_t n_out, const hn_onnx_scope *scope) {
  for (const hn_onnx_call *c = scope->call; c; c = c->scope->call)
    if (c->function == fn)
      return hn_pb_fail(node, HONE_ERROR_INPUT, "the function '%.80s' calls itself", fn->name);
  if (n_in > fn->inputs.len)
    return hn_pb_fail(node, HONE_ERROR_INPUT, "the function '%.80s' has %zu inputs, the call gives %zu",
                      fn->name, fn->inputs.len, n_in);
  if (n_out > fn->outputs.len)
    return hn_pb_fail(node, HONE_ERROR_INPUT, "the function '%.80s' has %zu outputs, the call wants %zu",
                      fn->name, fn->outputs.len, n_out);
  if (l->depth >= HN_ONNX_NESTING)
    return hn_pb_fail(node, HONE_ERROR_INPUT, "graphs and function calls are nested more than %d deep",
                      HN_ONNX_NESTING);
  return l->source.status;
}

/* Outputs that no node of the body makes: an input handed back, or one value under two names. */
static hone_status join_outputs(hn_onnx_loader *l, const hn_pb *node, const hn_onnx_function *fn,
                                hn_value *const *out, size_t n_out, const hn_onnx_scope *body) {
  for (size_t i = 0; i < n_out; i++) {
    hn_value *v = NULL;
    if (!out[i]) continue;
    if (!hn_onnx_find(body, fn->outputs.ptr[i], &v) || !v)
      return hn_pb_fail(node, HONE_ERROR_INPUT, "the function '%.80s' does not make its output '%.80s'",
                        fn->name, fn->outputs.ptr[i]);
    if (v == out[i]) continue;
    if (!hn_node_create(body->graph, NULL, "Identity", NULL, NULL, &v, 1, &out[i], 1))
      return hn_pb_no_memory(node);
  }
  return l->source.status;
}

static const char *make_prefix(hn_onnx_loader *l, const char *node_name, const hn_onnx_scope *scope) {
  const char *prefix = scope->call ? hn_arena_printf(&l->scratch, "%.*s/%.*s", LONGEST_PREFIX,
                                                     scope->call->prefix, LONGEST_PREFIX, node_name)
                                   : hn_arena_printf(&l->scratch, "%.*s", LONGEST_PREFIX, node_name);
  if (!prefix || strlen(prefix) < LONGEST_PREFIX) return prefix;
  return hn_arena_printf(&l->scratch, "call_%u", l->model->next_name++);
}

hone_status hn_onnx_expand(hn_onnx_loader *l, hn_onnx_function *fn, const hn_pb *node, const char *node_name,
                           hn_value *const *in, size_t n_in, hn_value *const *out, size_t n_out,
                           const hn_onnx_scope *scope) {
  hn_map names = {0};
  hn_onnx_call call = {
      .function = fn, .node = node, .scope = scope, .prefix = make_prefix(l, node_name, scope)};
  hn_onnx_scope inner = {.graph = scope->graph, .names = &names, .call = &call};
  hone_status status = call.prefix ? check_call(l, node, fn, n_in, n_out, scope) : hn_pb_no_memory(node);
  if (status == HONE_OK) status = charge(l, node, fn);
  if (status != HONE_OK) return status;
  l->depth++;
  for (size_t i = 0; i < fn->inputs.len && status == HONE_OK; i++)
    if (!hn_map_set(&names, fn->inputs.ptr[i], i < n_in ? in[i] : NULL)) status = hn_pb_no_memory(node);
  for (size_t i = 0; i < n_out && status == HONE_OK; i++)
    if (out[i] && !hn_map_has(&call.outputs, fn->outputs.ptr[i]) &&
        !hn_map_set(&call.outputs, fn->outputs.ptr[i], out[i]))
      status = hn_pb_no_memory(node);
  hn_pb body = fn->body;
  body.depth = node->depth;
  if (status == HONE_OK) status = hn_onnx_load_nodes(l, &body, HN_ONNX_FUNCTION_NODE, &inner);
  if (status == HONE_OK) status = join_outputs(l, node, fn, out, n_out, &inner);
  l->depth--;
  hn_map_free(&names);
  hn_map_free(&call.outputs);
  return status;
}
