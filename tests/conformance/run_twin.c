/* Function bodies as patterns. The suite has many operators twice: as a node, and as the nodes of the
 * function that ONNX defines it by (test_X_expanded). Engine "twin" makes a custom operator of the first,
 * whose pattern is the body, and runs the second: its nodes must have become that operator. */
#include "one_test.h"

#include "base/error.h"
#include "model/onnx/onnx.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"
#include "runtime/devices.h"

#include <hone/session.h>
#include <stdio.h>
#include <string.h>

#define ENDING "_expanded/model.onnx"

/* ------------------------------------------------------------------ the operator */

/* It is its own tactic, by its reference. */
static hone_status run_step(const hone_step_run *r, hone_error *error) {
  enum { MOST = 16 };
  const hone_step *s = r->step;
  hone_tensor in[MOST], made[MOST] = {0}, *out[MOST] = {0};
  const hone_tensor *given[MOST];
  hn_arena keep = {0};
  hn_budget budget = {.deadline_ns = UINT64_MAX, .max_bytes = 1ull << 30};
  if (s->n_inputs > MOST || s->n_outputs > MOST) return HONE_ERROR_UNSUPPORTED;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    in[i] = (hone_tensor){.desc = s->input[i].desc, .data = (void *)(uintptr_t)r->in[i]};
    given[i] = s->input[i].desc.dtype ? &in[i] : NULL;
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) out[i] = r->out[i] ? &made[i] : NULL;
  hone_status status = hn_eval_node(s->node, given, out, &keep, &budget, error);
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (status == HONE_OK && out[i])
      memcpy(r->out[i], made[i].data, (size_t)hone_desc_bytes(&s->output[i].desc));
    hn_free(made[i].data);
  }
  hn_arena_free(&keep);
  return status;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (s->input[i].desc.dtype && s->input[i].desc.layout != HONE_LAYOUT_ROW_MAJOR)
      return snprintf(why->text, sizeof why->text, "not row-major"), false;
  return !s->n_epilogue && s->output[0].desc.layout == HONE_LAYOUT_ROW_MAJOR;
}

static double cost(const hone_step *s, const hone_machine *m) { return (void)s, (void)m, 1e-12; }

typedef struct twin {
  hn_model *original;
  hone_node *node;
  char name[80];
  hone_op_desc op;
  hone_tactic_desc tactic;
  hone_pattern_desc pattern[2];
  uint32_t n_patterns;
} twin;

static hone_status refuse(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static hone_status refuse(hone_error *error, const char *format, ...) {
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s", text);
}

/* The operator of the test that has it as one node. */
static hone_status find_original(const hn_model *expanded, twin *t, hone_error *error) {
  char path[4096];
  const size_t n = strlen(expanded->path), end = strlen(ENDING);
  if (n <= end || strcmp(expanded->path + n - end, ENDING) != 0)
    return refuse(error, "it is no expanded function");
  snprintf(path, sizeof path, "%.*s/model.onnx", (int)(n - end), expanded->path);
  hone_status status = hn_onnx_load(path, &t->original, error);
  if (status == HONE_OK) status = hn_model_ready(t->original, error);
  if (status != HONE_OK) return status;
  t->node = t->original->graph->first;
  if (!t->node || t->original->graph->n_nodes != 1) return refuse(error, "its original has several nodes");
  if (t->node->op->min_outputs > 1)
    return refuse(error, "it makes several results at once: a pattern has one");
  snprintf(t->name, sizeof t->name, "twin.%.60s", t->node->op_type);
  const hone_op_desc *d = t->node->op;
  t->op = (hone_op_desc){HONE_DESC_HEAD(hone_op_desc),
                         .domain = "twin",
                         .op_type = d->op_type,
                         .since = (int16_t)t->node->opset,
                         .min_inputs = d->min_inputs,
                         .max_inputs = d->max_inputs,
                         .min_outputs = d->min_outputs,
                         .max_outputs = d->max_outputs,
                         .types = d->types,
                         .attrs = d->attrs,
                         .infer = d->infer,
                         .cost = d->cost,
                         .reference = d->reference,
                         .host_inputs = d->host_inputs,
                         .most = d->most};
  t->tactic = (hone_tactic_desc){HONE_DESC_HEAD(hone_tactic_desc),
                                 .name = "twin",
                                 .device = "cpu",
                                 .anchor = t->name,
                                 .version = 1,
                                 .accepts = accepts,
                                 .cost = cost,
                                 .run = run_step};
  return HONE_OK;
}

/* ------------------------------------------------------------------ the pattern */

static bool put_list(hn_str *out, const hn_attr *a) {
  hn_str_putc(out, '[');
  for (size_t i = 0; i < a->list.n; i++)
    if (a->type == HONE_ATTR_INTS)
      hn_str_printf(out, "%s%lld", i ? ", " : "", (long long)((const int64_t *)a->list.ptr)[i]);
    else
      hn_str_printf(out, "%s%.9g", i ? ", " : "", (double)((const float *)a->list.ptr)[i]);
  hn_str_putc(out, ']');
  return true;
}

/* The attributes of the node, as the pattern's own. */
static bool put_settings(const hone_node *n, hn_str *out) {
  for (uint32_t i = 0; i < n->n_attr; i++) {
    const hn_attr *a = &n->attr[i];
    hn_str_printf(out, "%s = ", a->name);
    switch (a->type) {
    case HONE_ATTR_INT: hn_str_printf(out, "%lld", (long long)a->i); break;
    case HONE_ATTR_FLOAT: hn_str_printf(out, "%.9g", (double)a->f); break;
    case HONE_ATTR_STRING: hn_str_printf(out, "\"%.*s\"", (int)a->s.len, a->s.ptr); break;
    case HONE_ATTR_INTS:
    case HONE_ATTR_FLOATS: put_list(out, a); break;
    default: return false;
    }
    hn_str_putc(out, '\n');
  }
  return !out->failed;
}

/* Lists of whole numbers that the body has as constants are part of what it computes. */
static void put_constants(const hone_subgraph *part, hn_model *m, hn_str *out) {
  bool first = true;
  for (uint32_t i = 0; i < part->n_values; i++) {
    const hone_subgraph_value *v = &part->value[i];
    const hn_value *of = v->node < 0 && !v->is_number ? hn_value_find(m->graph, v->value) : NULL;
    const hone_tensor *c = of && of->constant && !of->is_input ? of->constant : NULL;
    if (!c || c->desc.dtype != HONE_DTYPE_I64 || c->desc.rank > 1 || hone_desc_count(&c->desc) > 16) continue;
    hn_str_printf(out, "%svalue(%%%s) == [", first ? " where " : " and ", v->name);
    for (int64_t k = 0; k < hone_desc_count(&c->desc); k++)
      hn_str_printf(out, "%s%lld", k ? ", " : "", (long long)((const int64_t *)c->data)[k]);
    hn_str_putc(out, ']');
    first = false;
  }
}

/* What the operator's inputs are called in the pattern. */
static hone_status put_inputs(const twin *t, const hone_subgraph *part, hn_str *out, hone_error *error) {
  for (uint32_t i = 0; i < t->node->n_in; i++) {
    const hn_value *x = t->node->in[i];
    const hone_subgraph_value *v = NULL;
    for (uint32_t k = 0; x && k < part->n_values && !v; k++)
      if (part->value[k].node < 0 && !part->value[k].is_number && strcmp(part->value[k].value, x->name) == 0)
        v = &part->value[k];
    if (!v) return refuse(error, "input %u is not read by the body%s", i, x ? "" : ", it is left out");
    hn_str_printf(out, "%s%%%s", i ? " " : "", v->name);
  }
  return HONE_OK;
}

/* All nodes of the model as a pattern, but for constants. */
static hone_status add_pattern(twin *t, hn_model *m, hone_error *error) {
  enum { MOST = 200 };
  const char *names[MOST];
  uint32_t n = 0;
  hone_subgraph part;
  hn_str text = {0}, inputs = {0}, settings = {0};
  for (const hone_node *node = m->graph->first; node && n < MOST; node = node->next)
    if (strcmp(node->op_type, "Constant") != 0) names[n++] = node->name;
  if (!n) return refuse(error, "nothing is left of the body");
  if (n > 24) return refuse(error, "%u nodes: a pattern has at most 24 lines", n);
  hone_status status = hone_model_subgraph(m, names, n, &part, error);
  if (status != HONE_OK) return refuse(error, "no pattern: %s", error ? error->what : "");
  status = put_inputs(t, &part, &inputs, error);
  if (status != HONE_OK) return status;
  size_t end = strlen(part.pattern);
  while (end && part.pattern[end - 1] == '\n') end--;
  hn_str_append(&text, part.pattern, end);
  put_constants(&part, m, &text);
  if (!put_settings(t->node, &settings)) return refuse(error, "an attribute is no number, text or list");
  t->pattern[t->n_patterns++] =
      (hone_pattern_desc){HONE_DESC_HEAD(hone_pattern_desc), .name = t->name, .text = text.ptr,
                          .inputs = inputs.ptr, .settings = settings.len ? settings.ptr : NULL};
  hone_subgraph_free(&part);
  return HONE_OK;
}

/* A pattern has one result: of those that a node may leave out, the model forgets. */
static void forget_results(hn_model *m) {
  hn_graph *g = m->graph;
  for (size_t i = 1; i < g->outputs.len; i++)
    g->outputs.ptr[i]->is_output = g->outputs.ptr[i] == g->outputs.ptr[0];
  if (g->outputs.len) g->outputs.len = 1;
}

/* The model once more, with the operators of now. */
static hone_status load_again(const char *path, hn_model **out, hone_error *error) {
  hone_status status = hn_onnx_load(path, out, error);
  if (status != HONE_OK) return status;
  forget_results(*out);
  return hn_model_ready(*out, error);
}

/* The body as the file has it, and as the passes leave it. */
static hone_status make_patterns(twin *t, const char *path, hone_error *error) {
  hn_model *expanded, *rewritten;
  hone_status status = load_again(path, &expanded, error);
  if (status == HONE_OK)
    status = hone_model_optimize(expanded, &(hone_optimize_options){.level = 1}, &rewritten, NULL, error);
  if (status != HONE_OK) return status;
  status = add_pattern(t, expanded, error);
  const hone_status second = add_pattern(t, rewritten, status == HONE_OK ? NULL : error);
  if (t->n_patterns == 2 && strcmp(t->pattern[0].text, t->pattern[1].text) == 0) t->n_patterns = 1;
  return t->n_patterns ? HONE_OK : second;
}

static hone_status install(const twin *t, hone_error *error) {
  hone_status status = hn_registry_add(&hn_operators, (const void *[]){&t->op}, 1, error);
  if (status == HONE_OK) status = hn_tactic_add(&t->tactic, error);
  for (uint32_t i = 0; i < t->n_patterns && status == HONE_OK; i++)
    status = hn_registry_add(hn_pattern_registry(), (const void *[]){&t->pattern[i]}, 1, error);
  return status;
}

/* ------------------------------------------------------------------ running */

static hone_status was_matched(void *arg, const hone_plan *plan, hone_error *error) {
  const twin *t = arg;
  hone_step_info info;
  uint32_t found = 0, others = 0;
  for (uint32_t i = 0; hone_plan_step(plan, i, &info); i++)
    if (strcmp(info.tactic, "twin") == 0)
      found++;
    else
      others++;
  if (found == 1 && !others) return HONE_OK;
  if (!hone_desc_known(&hone_plan_model(plan)->graph->outputs.ptr[0]->desc))
    return refuse(error, "only the run knows the dimensions: custom operators want to know them before");
  return refuse(error, "not matched: %u steps of it, %u others; the pattern:\n%s", found, others,
                t->pattern[0].text);
}

hone_status run_twin(hn_model *model, const hone_tensor *const *inputs, hone_tensor *outputs, hn_arena *keep,
                     double seconds, hone_error *error) {
  static twin t; /* its units live until the process ends */
  static hn_model *again;
  hone_status status = HONE_OK;
  if (!again) {
    status = find_original(model, &t, error);
    if (status == HONE_OK) status = make_patterns(&t, model->path, error);
    if (status == HONE_OK) status = install(&t, error);
    if (status == HONE_OK) status = load_again(model->path, &again, error);
  }
  if (status == HONE_OK) status = run_eval(model, inputs, outputs, keep, seconds, error); /* all results */
  const plan_way way = {.level = 1, .look = was_matched, .arg = &t};
  return status == HONE_OK ? run_way(&way, again, inputs, outputs, keep, seconds, error) : status;
}
