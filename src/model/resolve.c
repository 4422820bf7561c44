/* Which operator a node is, and whether hone implements it as the node uses it. */
#include "model/operators.h"

#include "base/error.h"
#include "base/str.h"
#include "model/open_blocked.h"
#include "model/open_flex.h"

#include <stdio.h>
#include <string.h>

static bool exists(const hone_attr_desc *a, int32_t opset) {
  return (!a->since || opset >= a->since) && (!a->until || opset <= a->until);
}

/* An attribute whose type changed has a row for each: the one of the node's opset counts, all where it has
 * none. */
static bool has_type(const hone_node *n, const hone_op_desc *d, const char *name, hone_attr_type type) {
  bool any = false, here = false, fits_here = false;
  for (const hone_attr_desc *a = d->attrs; a && a->name; a++) {
    if (!hn_same_name(a->name, name)) continue;
    any |= a->type == type;
    here |= exists(a, n->opset);
    fits_here |= exists(a, n->opset) && a->type == type;
  }
  return here ? fits_here : any;
}

/* The last opset that has the attribute, where the node's is newer: what it says is an input by then, or
 * nothing, and a file that has it was not made for that opset. 0: the node may have it. Some never changed a
 * result. */
static int32_t ended(const hone_node *n, const hone_op_desc *d, const char *name) {
  static const char *const idle[] = {"consumed_inputs", "is_test", "output_sequence", "ratio", "spatial"};
  int32_t last = 0;
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
    if (hn_same_name(idle[i], name)) return 0;
  for (const hone_attr_desc *a = d->attrs; a && a->name; a++)
    if (hn_same_name(a->name, name)) {
      if (!a->until || a->until >= n->opset) return 0;
      last = a->until > last ? a->until : last;
    }
  return last;
}

/* False with the reason when the node does not fit its operator's definition. *bad: the model is wrong
 * (rather than hone incomplete). */
static bool fits(const hone_node *n, const hone_op_desc *d, hone_reason *why, bool *bad) {
  *bad = true;
  uint32_t given = n->n_in;
  while (given && !n->in[given - 1]) given--; /* trailing left-out inputs do not count */
  if (given < d->min_inputs || given > d->max_inputs)
    return snprintf(why->text, sizeof why->text, "%s takes %u to %d inputs, has %u", n->op_type,
                    d->min_inputs, (int)d->max_inputs, given),
           false;
  if (n->n_out < d->min_outputs || n->n_out > d->max_outputs)
    return snprintf(why->text, sizeof why->text, "%s makes %u to %d outputs, has %u", n->op_type,
                    d->min_outputs, (int)d->max_outputs, n->n_out),
           false;
  if (d->min_outputs == 1 && d->max_outputs == 1 && !n->out[0])
    return snprintf(why->text, sizeof why->text, "the output of %s is left out but required", n->op_type),
           false;
  for (uint32_t i = 0; i < d->min_inputs && i < n->n_in; i++)
    if (!n->in[i] && d->max_inputs != HONE_VARIADIC)
      return snprintf(why->text, sizeof why->text, "input %u of %s is left out but required", i, n->op_type),
             false;
  for (const hone_attr_desc *a = d->attrs; a && a->name; a++) {
    hn_attr *have = (hn_attr *)hn_node_attr(n, a->name);
    if (!have && a->required && exists(a, n->opset))
      return snprintf(why->text, sizeof why->text, "%s lacks its attribute '%s'", n->op_type, a->name), false;
    if (have && !has_type(n, d, a->name, have->type))
      return snprintf(why->text, sizeof why->text, "attribute '%s' of %s has the wrong type", a->name,
                      n->op_type),
             false;
    if (have && ended(n, d, a->name))
      return snprintf(why->text, sizeof why->text,
                      "attribute '%s' of %s ended with opset %d, the model imports %d", a->name, n->op_type,
                      (int)ended(n, d, a->name), (int)n->opset),
             false;
    if (have) have->name = a->name; /* as below */
  }
  *bad = false;
  for (uint32_t k = 0; k < n->n_attr; k++) {
    const hone_attr_desc *a = d->attrs;
    while (a && a->name && !hn_same_name(a->name, n->attr[k].name)) a++;
    if (!a || !a->name)
      return snprintf(why->text, sizeof why->text, "attribute '%.40s' of %s is not known", n->attr[k].name,
                      n->op_type),
             false;
  }
  return true;
}

typedef struct refusals {
  char text[300];
  size_t len;
  uint32_t count;
  bool bad, no_memory;
  char first[128];
  hn_map seen;
  hn_arena arena;
} refusals;

static void refuse(refusals *r, const hone_node *n, const char *why) {
  if (r->count++ == 0) snprintf(r->first, sizeof r->first, "node '%.80s'", n->name);
  char *key = hn_arena_strdup(&r->arena, why);
  if (!key || hn_map_has(&r->seen, key)) return;
  hn_map_set(&r->seen, key, key);
  if (r->len + strlen(why) + 3 < sizeof r->text)
    r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "%s%s", r->len ? "; " : "", why);
  else if (r->len + 6 < sizeof r->text && r->text[r->len - 1] != '.')
    r->len += (size_t)snprintf(r->text + r->len, sizeof r->text - r->len, "; ...");
}

static void resolve_graph(hn_graph *g, refusals *r) {
  for (hone_node *n = g->first; n; n = n->next) {
    hone_reason why = {""};
    bool bad = false;
    n->opset = (int32_t)hn_model_opset(g->model, n->domain);
    if (!n->op) n->op = hn_op_find(g->model->operators, n->domain, n->op_type, n->opset, &why);
    if (!n->op || !fits(n, n->op, &why, &bad)) {
      r->bad |= bad;
      refuse(r, n, why.text);
    } else {
      /* The same text, which the model holds as it holds the definition: who asks for it by these words finds
       * it without reading them. */
      n->op_type = n->op->op_type;
      r->no_memory |= !hn_node_make_outputs(n, n->op->min_outputs); /* references fill those unasked */
      /* Of a fixed list trailing outputs without a name are none; of an open one their number means
       * something. */
      if (n->op->max_outputs != HONE_VARIADIC)
        hn_node_trim_outputs(n, n->op->min_outputs ? n->op->min_outputs : 1);
    }
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) resolve_graph(n->attr[k].g, r);
  }
}

hone_status hn_model_resolve(hn_model *m, hone_error *error) {
  refusals r = {0};
  if (!m->operators) m->operators = hn_registry_take(&hn_operators);
  resolve_graph(m->graph, &r);
  hone_status status = r.no_memory ? hn_fail_memory(error, 0, "outputs that nobody reads") : HONE_OK;
  if (r.count) {
    status = hn_fail(error, r.bad ? HONE_ERROR_INPUT : HONE_ERROR_UNSUPPORTED, "%s", r.text);
    hn_error_where(error, "%s%s", r.first, r.count > 1 ? " and others" : "");
    if (!r.bad)
      hn_error_hint(
          error,
          "%u node%s refused; docs/reference/operators.md lists what is implemented, hone op list what "
          "plugins add",
          r.count, r.count > 1 ? "s" : "");
  }
  hn_map_free(&r.seen);
  hn_arena_free(&r.arena);
  return status;
}

static bool has_runtime(const hn_graph *g) {
  for (const hone_node *n = g->first; n; n = n->next) {
    if (strcmp(n->domain, "com.microsoft") == 0) return true;
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH && has_runtime(n->attr[k].g)) return true;
  }
  return false;
}

/* ONNX Runtime's tools write its operators into models that do not import them, and it reads these. All of
 * them have one version. */
static hone_status import_runtime(hn_model *m, hone_error *error) {
  const hn_opset import = {"com.microsoft", 1};
  if (hn_model_opset(m, import.domain) || !has_runtime(m->graph) || hn_vec_push(&m->opsets, import))
    return HONE_OK;
  return hn_fail_memory(error, sizeof import, "an operator set");
}

hone_status hn_model_ready(hn_model *m, hone_error *error) {
  bool opened = false;
  hone_status status = import_runtime(m, error);
  if (status == HONE_OK) status = hn_open_blocked(m, error);
  if (status == HONE_OK) status = hn_model_resolve(m, error);
  if (status == HONE_OK) status = hn_model_infer(m, error);
  if (status == HONE_OK) status = hn_open_flex(m, &opened, error);
  if (status == HONE_OK && opened) status = hn_model_resolve(m, error);
  return status == HONE_OK && opened ? hn_model_infer(m, error) : status;
}
