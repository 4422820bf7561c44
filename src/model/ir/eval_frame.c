#include "model/ir/eval_frame.h"

#include "base/error.h"
#include "base/fault.h"
#include "model/ir/bytes.h"

#include <string.h>

static const hone_tensor *frame_find(void *self, const hn_value *v) {
  hn_frame *f = self;
  if (v->graph != f->graph) return NULL;
  return f->slot[v->index].present ? &f->slot[v->index].t : v->constant;
}

static const hone_tensor *find(const hn_scope *scope, const hn_value *v) {
  for (; scope; scope = scope->outer) {
    const hone_tensor *t = scope->find(scope->self, v);
    if (t) return t;
  }
  return v->constant;
}

static void count_uses(const hn_graph *g, hn_frame_slot *slots) {
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    uint32_t uses = 0;
    for (size_t k = 0; k < v->users.len && uses != UINT32_MAX; k++)
      uses = v->users.ptr[k].node->graph == g ? uses + 1 : UINT32_MAX;
    slots[i].reads = v->is_output ? UINT32_MAX : uses;
  }
  /* A nested graph may return an outer value without a node that reads it. */
  for (const hone_node *n = g->first; n; n = n->next)
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH)
        for (size_t i = 0; i < n->attr[k].g->outputs.len; i++)
          if (n->attr[k].g->outputs.ptr[i]->graph == g)
            slots[n->attr[k].g->outputs.ptr[i]->index].reads = UINT32_MAX;
}

hone_status hn_frame_open(hn_frame *f, const hn_graph *g, hn_scope *outer, hone_error *error) {
  *f = (hn_frame){.graph = g};
  f->scope = (hn_scope){outer, frame_find, f};
  f->slot = hn_calloc(g->values.len, sizeof *f->slot);
  if (!f->slot) return hn_fail_memory(error, g->values.len * sizeof *f->slot, "evaluating a graph");
  count_uses(g, f->slot);
  return HONE_OK;
}

void hn_frame_close(hn_frame *f) { hn_free(f->slot); }

hone_status hn_copy_tensor(const hone_tensor *from, hone_tensor *to, hn_budget *budget, hone_error *error) {
  int64_t bytes = hone_desc_bytes(&from->desc);
  hone_status status = hn_budget_alloc(budget, bytes, &to->data, error);
  if (status != HONE_OK) return status;
  to->desc = from->desc;
  if (bytes) memcpy(to->data, from->data, (size_t)bytes);
  return HONE_OK;
}

/* A node of a graph that is being evaluated, by its operator's tactics where the run has a way to them. */
static hone_status eval_inner(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                              hn_arena *keep, hn_budget *budget, hone_error *error) {
  bool done = false;
  if (!budget || !budget->quick) return hn_eval_node(n, in, out, keep, budget, error);
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) *out[i] = (hone_tensor){.desc = {.rank = -1}};
  hone_status status = budget->quick(budget->quick_self, n, in, out, budget, &done, error);
  if (status == HONE_OK && !done) return hn_eval_node(n, in, out, keep, budget, error);
  if (status == HONE_OK) status = hn_budget_check(budget, error);
  if (status == HONE_OK) return status;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) hn_budget_release(budget, out[i]);
  if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", n->name, n->op_type);
  return status;
}

/* A view of what nobody reads any more afterwards is that tensor itself, by other dimensions. false: it is
 * not, or something is wrong, which the reference will say. */
static bool takes_over(const hn_frame *f, const hone_node *n, const hone_tensor *const *in,
                       hone_tensor_desc *d) {
  enum { FEW = 4 };
  const hone_tensor_desc *din[FEW];
  hone_tensor_desc *dout[] = {d};
  hone_error unsaid = {0};
  if (!n->op || !(n->op->flags & HONE_OP_VIEW) || n->n_out != 1 || !n->out[0] || !n->n_in || n->n_in > FEW)
    return false;
  if (!n->in[0] || n->in[0]->graph != f->graph) return false;
  const hn_frame_slot *x = &f->slot[n->in[0]->index];
  if (!x->owned || (x->uses != 1 && !HN_FAULT("view_of_what_is_read")) ||
      !hone_dtype_is_tensor(x->t.desc.dtype))
    return false;
  for (uint32_t i = 0; i < n->n_in; i++) {
    din[i] = in[i] ? &in[i]->desc : NULL;
    if (in[i] && (!hn_is_aligned(in[i]) || hn_op_takes(n, din[i], i, &unsaid) != HONE_OK)) return false;
  }
  *d = (hone_tensor_desc){.rank = -1};
  if (n->op->infer(&(hone_infer){n, n->n_in, 1, din, in, dout}, &unsaid) != HONE_OK) return false;
  return d->dtype == x->t.desc.dtype && hone_desc_known(d) &&
         hone_desc_bytes(d) == hone_desc_bytes(&x->t.desc);
}

static void take_over(hn_frame_slot *x, const hone_tensor_desc *d, hone_tensor *out) {
  *out = (hone_tensor){*d, x->t.data};
  hone_desc_set_layout(&out->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  x->t.data = NULL;
  x->owned = x->present = false;
}

hone_status hn_eval_frame(hn_frame *f, const hone_tensor *const *inputs, const bool *given,
                          hone_tensor *outputs, hn_arena *keep, hn_budget *budget, hn_eval_watch watch,
                          void *watch_arg, hone_error *error) {
  enum {
    FEW = 16
  }; /* a body is evaluated in every trip of its loop: no memory is asked for where little is wanted */
  const hn_graph *g = f->graph;
  const hone_tensor *few_in[FEW];
  hone_tensor *few_out[FEW];
  hone_status status = HONE_OK;
  hn_arena temp = {0};
  hone_tensor_desc d;
  for (size_t i = 0; i < g->outputs.len; i++) outputs[i] = (hone_tensor){.desc = {.rank = -1}};
  for (size_t i = 0; i < g->values.len; i++) {
    f->slot[i].uses = f->slot[i].reads;
    f->slot[i].present = f->slot[i].owned = false;
  }
  for (size_t i = 0; i < g->inputs.len && given; i++) {
    if (!given[i]) continue;
    hn_frame_slot *s = &f->slot[g->inputs.ptr[i]->index];
    s->t = *inputs[i];
    s->owned = true;
  }
  for (size_t i = 0; i < g->inputs.len; i++) {
    const hn_value *v = g->inputs.ptr[i];
    const hone_tensor *t = inputs[i] ? inputs[i] : v->constant;
    if (!t) {
      status = hn_fail(error, HONE_ERROR_USAGE, "input '%s' has no value", v->name);
      goto done;
    }
    f->slot[v->index].t = *t;
    f->slot[v->index].present = true;
  }
  for (const hone_node *n = g->first; n; n = n->next) {
    const hone_tensor **in = few_in;
    hone_tensor **out = few_out;
    if (n->n_in > FEW) in = HN_NEW_ARRAY(&temp, const hone_tensor *, n->n_in);
    if (n->n_out > FEW) out = HN_NEW_ARRAY(&temp, hone_tensor *, n->n_out);
    if (!in || !out) {
      status = hn_fail_memory(error, n->n_in + n->n_out, "evaluating a node");
      goto done;
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
      in[i] = NULL;
      if (!n->in[i]) continue;
      in[i] = find(&f->scope, n->in[i]);
      if (!in[i]) {
        status = hn_fail(error, HONE_ERROR_INTERNAL, "value '%s' is not there when '%s' reads it",
                         n->in[i]->name, n->name);
        goto done;
      }
    }
    for (uint32_t i = 0; i < n->n_out; i++) out[i] = n->out[i] ? &f->slot[n->out[i]->index].t : NULL;
    if (takes_over(f, n, in, &d)) {
      status = hn_budget_check(budget, error);
      if (status == HONE_OK) take_over(&f->slot[n->in[0]->index], &d, out[0]);
    } else {
      status = n->op && (n->op->flags & HONE_OP_CONTROL)
                   ? hn_eval_control(n, in, out, &f->scope, keep, budget, error)
                   : eval_inner(n, in, out, keep, budget, error);
    }
    if (status != HONE_OK) goto done;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) f->slot[n->out[i]->index].present = f->slot[n->out[i]->index].owned = true;
    if (watch && !watch(watch_arg, n, (const hone_tensor *const *)out)) {
      status = hn_fail(error, HONE_ERROR_CANCELLED, "the evaluation was stopped");
      goto done;
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (!n->in[i] || n->in[i]->graph != g) continue;
      hn_frame_slot *s = &f->slot[n->in[i]->index];
      if (s->uses != UINT32_MAX && --s->uses == 0 && s->owned) {
        hn_budget_release(budget, &s->t);
        s->owned = s->present = false;
      }
    }
    for (uint32_t i = 0; i < n->n_out; i++) { /* nobody reads it */
      if (!n->out[i]) continue;
      hn_frame_slot *s = &f->slot[n->out[i]->index];
      if (s->uses == 0 && s->owned) {
        hn_budget_release(budget, &s->t);
        s->owned = s->present = false;
      }
    }
    if (temp.used > 1 << 16) hn_arena_free(&temp);
  }
  for (size_t i = 0; i < g->outputs.len; i++) {
    const hn_value *v = g->outputs.ptr[i];
    hn_frame_slot *s = v->graph == g ? &f->slot[v->index] : NULL;
    if (s && s->owned &&
        s->present) { /* hand over; a second mention of the same output copies from the first */
      outputs[i] = s->t;
      s->owned = false;
      continue;
    }
    const hone_tensor *t = find(&f->scope, v);
    if (!t) {
      status = hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' was not made", v->name);
      goto done;
    }
    status = hn_copy_tensor(t, &outputs[i], budget, error);
    if (status != HONE_OK) goto done;
  }
done:
  for (size_t i = 0; i < g->values.len; i++)
    if (f->slot[i].owned) hn_budget_release(budget, &f->slot[i].t);
  if (status != HONE_OK)
    for (size_t i = 0; i < g->outputs.len; i++) hn_budget_release(budget, &outputs[i]);
  hn_arena_free(&temp);
  return status;
}

hone_status hn_eval_graph(const hn_graph *g, const hone_tensor *const *inputs, hone_tensor *outputs,
                          hn_scope *outer, hn_arena *keep, hn_budget *budget, hn_eval_watch watch,
                          void *watch_arg, hone_error *error) {
  hn_frame f;
  hone_status status = hn_frame_open(&f, g, outer, error);
  if (status == HONE_OK)
    status = hn_eval_frame(&f, inputs, NULL, outputs, keep, budget, watch, watch_arg, error);
  hn_frame_close(&f);
  return status;
}
