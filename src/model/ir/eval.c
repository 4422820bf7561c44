#include "model/ir/eval.h"

#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ir/items.h"

#include <string.h>

/* ------------------------------------------------------------------ budgets */

hone_status hn_budget_check(hn_budget *b, hone_error *error) {
  if (!b) return HONE_OK;
  b->nodes++;
  if (b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed))
    return hn_fail(error, HONE_ERROR_CANCELLED, "the run was cancelled");
  if (b->max_nodes && b->nodes > b->max_nodes) {
    hone_status s = hn_fail(error, HONE_ERROR_BUDGET, "the run executed its budget of %llu nodes",
                            (unsigned long long)b->max_nodes);
    return s;
  }
  if (b->deadline_ns && hn_now_ns() > b->deadline_ns) {
    hn_fail(error, HONE_ERROR_BUDGET, "the run did not end within its time budget");
    hn_error_hint(error,
                  "raise the limit (max_seconds, --max-seconds), or look for a loop that does not end");
    return HONE_ERROR_BUDGET;
  }
  return HONE_OK;
}

hone_status hn_budget_alloc(hn_budget *b, int64_t bytes, void **out, hone_error *error) {
  *out = NULL;
  if (b && b->max_bytes && ((uint64_t)bytes > b->max_bytes || b->bytes > b->max_bytes - (uint64_t)bytes)) {
    hn_fail(error, HONE_ERROR_MEMORY, "the run would need more than its budget of %llu bytes",
            (unsigned long long)b->max_bytes);
    return HONE_ERROR_MEMORY;
  }
  *out = b && b->take ? b->take(b->memory, (size_t)bytes) : hn_aligned(HN_MEM_ALIGN, (size_t)bytes);
  if (!*out) return hn_fail_memory(error, (unsigned long long)bytes, "a tensor");
  if (b) b->bytes += (uint64_t)bytes;
  return HONE_OK;
}

void hn_budget_release(hn_budget *b, hone_tensor *t) {
  if (!t->data) return;
  if (b && b->lend && b->lent(b->lender, t->data)) {
    t->data = NULL;
    return;
  }
  int64_t bytes = hone_desc_bytes(&t->desc);
  if (b && bytes > 0) b->bytes -= (uint64_t)bytes < b->bytes ? (uint64_t)bytes : b->bytes;
  if (b && b->give)
    b->give(b->memory, t->data);
  else
    hn_free(t->data);
  t->data = NULL;
}

/* ------------------------------------------------------------------ one node */

hone_status hn_op_takes(const hone_node *n, const hone_tensor_desc *d, uint32_t i, hone_error *error) {
  const uint32_t types = i == 0 && d->dtype != HONE_DTYPE_NONE ? n->op->types : 0;
  const bool takes = hone_dtype_is_tensor(d->dtype) ? !types || types & HONE_TYPES(d->dtype)
                                                    : (n->op->flags & HONE_OP_ITEMS) != 0;
  return takes ? HONE_OK
               : hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s is not implemented for %s", n->op_type,
                         hone_dtype_name(d->dtype));
}

typedef struct call_impl {
  hn_arena scratch;
  hn_arena *keep;
  hn_budget *budget;
} call_impl;

static hone_status alloc_output(hone_call *c, uint32_t i, const hone_tensor_desc *desc, hone_error *error) {
  call_impl *impl = c->impl;
  if (i >= c->n_outputs || !c->output[i]) return HONE_OK;
  hone_tensor *t = c->output[i];
  hone_tensor_desc d = *desc;
  int64_t bytes = hone_desc_bytes(&d);
  if (bytes < 0)
    return hn_fail(error, HONE_ERROR_INPUT, "output %u of '%s' would be too large", i, c->node->name);
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_budget_release(impl->budget, t);
  t->desc = d;
  const hn_budget *b = impl->budget;
  if (b && b->lend && (!b->max_bytes || (uint64_t)bytes <= b->max_bytes)) {
    const hone_status status = b->lend(b->lender, i, &d, &t->data, error);
    if (status != HONE_OK || t->data) return status;
  }
  return hn_budget_alloc(impl->budget, bytes, &t->data, error);
}

static void *scratch(hone_call *c, size_t bytes) {
  return hn_arena_aligned(&((call_impl *)c->impl)->scratch, bytes, HN_MEM_ALIGN);
}
/* Counts until the run ends. */
static void *scratch_keep(hone_call *c, size_t bytes) {
  const call_impl *impl = c->impl;
  hn_budget *b = impl->budget;
  if (b && b->max_bytes && (bytes > b->max_bytes || b->bytes > b->max_bytes - bytes)) return NULL;
  void *p = hn_arena_aligned(impl->keep, bytes, HN_MEM_ALIGN);
  if (b && p) b->bytes += bytes;
  return p;
}

static bool stopped(hone_call *c) {
  const hn_budget *b = ((call_impl *)c->impl)->budget;
  return b && ((b->cancel && atomic_load_explicit(b->cancel, memory_order_relaxed)) ||
               (b->deadline_ns && hn_now_ns() > b->deadline_ns));
}

/* References read elements through their type: operands that lie elsewhere in a file are copied first. */
static const hone_tensor *const *aligned(const hone_node *n, const hone_tensor *const *in, hn_arena *a,
                                         bool *ok) {
  uint32_t odd = 0;
  for (uint32_t i = 0; i < n->n_in; i++) odd += in[i] && !hn_is_aligned(in[i]);
  *ok = true;
  if (!odd) return in;
  const hone_tensor **out = HN_NEW_ARRAY(a, const hone_tensor *, n->n_in);
  hone_tensor *copy = HN_NEW_ARRAY(a, hone_tensor, odd);
  *ok = out && copy;
  for (uint32_t i = 0; i < n->n_in && *ok; i++) {
    out[i] = in[i];
    if (!in[i] || hn_is_aligned(in[i])) continue;
    size_t bytes = (size_t)hone_desc_bytes(&in[i]->desc);
    copy[--odd] = *in[i];
    *ok = (copy[odd].data = hn_arena_raw(a, bytes, HN_MEM_ALIGN)) != NULL;
    if (*ok) memcpy(copy[odd].data, in[i]->data, bytes);
    out[i] = &copy[odd];
  }
  return out;
}

hone_status hn_eval_node(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                         hn_arena *keep, hn_budget *budget, hone_error *error) {
  enum { FEW = 16 };
  const hone_tensor_desc *few_in[FEW];
  hone_tensor_desc *few_out[FEW];
  call_impl impl = {.keep = keep, .budget = budget};
  const hone_tensor_desc **din = few_in;
  hone_tensor_desc **dout = few_out;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) *out[i] = (hone_tensor){.desc = {.rank = -1}};
  hone_status status = hn_budget_check(budget, error);
  if (status != HONE_OK) goto done;
  if (!n->op || !n->op->reference) {
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s has no reference implementation", n->op_type);
    goto done;
  }
  bool ok;
  in = aligned(n, in, &impl.scratch, &ok);
  if (!ok) {
    status = hn_fail_memory(error, n->n_in, "evaluating a node");
    goto done;
  }
  if (n->n_in > FEW) din = HN_NEW_ARRAY(&impl.scratch, const hone_tensor_desc *, n->n_in);
  if (n->n_out > FEW) dout = HN_NEW_ARRAY(&impl.scratch, hone_tensor_desc *, n->n_out);
  if (!din || !dout) {
    status = hn_fail_memory(error, n->n_in, "evaluating a node");
    goto done;
  }
  for (uint32_t i = 0; i < n->n_in; i++) din[i] = in[i] ? &in[i]->desc : NULL;
  for (uint32_t i = 0; i < n->n_out; i++) dout[i] = out[i] ? &out[i]->desc : NULL;
  for (uint32_t i = 0; i < n->n_in && status == HONE_OK; i++)
    if (din[i]) status = hn_op_takes(n, din[i], i, error);
  if (status == HONE_OK) status = n->op->infer(&(hone_infer){n, n->n_in, n->n_out, din, in, dout}, error);
  hone_call call = {.node = n,
                    .n_inputs = n->n_in,
                    .n_outputs = n->n_out,
                    .input = in,
                    .output = out,
                    .alloc_output = alloc_output,
                    .scratch = scratch,
                    .scratch_keep = scratch_keep,
                    .stopped = stopped,
                    .impl = &impl};
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (out[i] && hone_desc_known(&out[i]->desc) && !(n->op->flags & HONE_OP_DATA_DEPENDENT)) {
      hone_tensor_desc d = out[i]->desc;
      status = alloc_output(&call, i, &d, error);
    }
  if (status == HONE_OK) status = n->op->reference(&call, error);
  /* A reference that was told to stop does not know whether a user or the clock said so. */
  if (status == HONE_ERROR_CANCELLED) {
    hone_status why = hn_budget_check(budget, error);
    if (why != HONE_OK) status = why;
  }
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (out[i] && !out[i]->data)
      status = hn_fail(error, HONE_ERROR_INTERNAL, "%s did not make its output %u", n->op_type, i);
done:
  if (status != HONE_OK) {
    for (uint32_t i = 0; i < n->n_out; i++)
      if (out[i]) hn_budget_release(budget, out[i]);
    if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", n->name, n->op_type);
  }
  hn_arena_free(&impl.scratch);
  return status;
}

/* ------------------------------------------------------------------ graphs */

typedef struct slot {
  hone_tensor t;
  uint32_t uses; /* reads left in this graph; UINT32_MAX: kept to the end */
  bool present, owned;
} slot;

typedef struct frame {
  const hn_graph *graph;
  slot *slot; /* by value index */
  hn_scope scope;
} frame;

static const hone_tensor *frame_find(void *self, const hn_value *v) {
  frame *f = self;
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

static void count_uses(const hn_graph *g, slot *slots) {
  for (size_t i = 0; i < g->values.len; i++) {
    const hn_value *v = g->values.ptr[i];
    uint32_t uses = 0;
    for (size_t k = 0; k < v->users.len && uses != UINT32_MAX; k++)
      uses = v->users.ptr[k].node->graph == g ? uses + 1 : UINT32_MAX;
    slots[i].uses = v->is_output ? UINT32_MAX : uses;
  }
  /* A nested graph may return an outer value without a node that reads it. */
  for (const hone_node *n = g->first; n; n = n->next)
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH)
        for (size_t i = 0; i < n->attr[k].g->outputs.len; i++)
          if (n->attr[k].g->outputs.ptr[i]->graph == g)
            slots[n->attr[k].g->outputs.ptr[i]->index].uses = UINT32_MAX;
}

static hone_status copy_tensor(const hone_tensor *from, hone_tensor *to, hn_budget *budget,
                               hone_error *error) {
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

hone_status hn_eval_graph(const hn_graph *g, const hone_tensor *const *inputs, hone_tensor *outputs,
                          hn_scope *outer, hn_arena *keep, hn_budget *budget, hn_eval_watch watch,
                          void *watch_arg, hone_error *error) {
  enum {
    FEW = 16
  }; /* a body is evaluated in every trip of its loop: no memory is asked for where little is wanted */
  const hone_tensor *few_in[FEW];
  hone_tensor *few_out[FEW];
  hone_status status = HONE_OK;
  hn_arena temp = {0};
  frame f = {.graph = g};
  for (size_t i = 0; i < g->outputs.len; i++) outputs[i] = (hone_tensor){.desc = {.rank = -1}};
  f.scope = (hn_scope){outer, frame_find, &f};
  f.slot = hn_calloc(g->values.len, sizeof *f.slot);
  if (!f.slot) return hn_fail_memory(error, g->values.len * sizeof *f.slot, "evaluating a graph");
  count_uses(g, f.slot);
  for (size_t i = 0; i < g->inputs.len; i++) {
    const hn_value *v = g->inputs.ptr[i];
    const hone_tensor *t = inputs[i] ? inputs[i] : v->constant;
    if (!t) {
      status = hn_fail(error, HONE_ERROR_USAGE, "input '%s' has no value", v->name);
      goto done;
    }
    f.slot[v->index].t = *t;
    f.slot[v->index].present = true;
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
      in[i] = find(&f.scope, n->in[i]);
      if (!in[i]) {
        status = hn_fail(error, HONE_ERROR_INTERNAL, "value '%s' is not there when '%s' reads it",
                         n->in[i]->name, n->name);
        goto done;
      }
    }
    for (uint32_t i = 0; i < n->n_out; i++) out[i] = n->out[i] ? &f.slot[n->out[i]->index].t : NULL;
    status = n->op && (n->op->flags & HONE_OP_CONTROL)
                 ? hn_eval_control(n, in, out, &f.scope, keep, budget, error)
                 : eval_inner(n, in, out, keep, budget, error);
    if (status != HONE_OK) goto done;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i]) f.slot[n->out[i]->index].present = f.slot[n->out[i]->index].owned = true;
    if (watch && !watch(watch_arg, n, (const hone_tensor *const *)out)) {
      status = hn_fail(error, HONE_ERROR_CANCELLED, "the evaluation was stopped");
      goto done;
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (!n->in[i] || n->in[i]->graph != g) continue;
      slot *s = &f.slot[n->in[i]->index];
      if (s->uses != UINT32_MAX && --s->uses == 0 && s->owned) {
        hn_budget_release(budget, &s->t);
        s->owned = s->present = false;
      }
    }
    for (uint32_t i = 0; i < n->n_out; i++) { /* nobody reads it */
      if (!n->out[i]) continue;
      slot *s = &f.slot[n->out[i]->index];
      if (s->uses == 0 && s->owned) {
        hn_budget_release(budget, &s->t);
        s->owned = s->present = false;
      }
    }
    if (temp.used > 1 << 16) hn_arena_free(&temp);
  }
  for (size_t i = 0; i < g->outputs.len; i++) {
    const hn_value *v = g->outputs.ptr[i];
    slot *s = v->graph == g ? &f.slot[v->index] : NULL;
    if (s && s->owned &&
        s->present) { /* hand over; a second mention of the same output copies from the first */
      outputs[i] = s->t;
      s->owned = false;
      continue;
    }
    const hone_tensor *t = find(&f.scope, v);
    if (!t) {
      status = hn_fail(error, HONE_ERROR_INTERNAL, "output '%s' was not made", v->name);
      goto done;
    }
    status = copy_tensor(t, &outputs[i], budget, error);
    if (status != HONE_OK) goto done;
  }
done:
  for (size_t i = 0; i < g->values.len; i++)
    if (f.slot[i].owned) hn_budget_release(budget, &f.slot[i].t);
  if (status != HONE_OK)
    for (size_t i = 0; i < g->outputs.len; i++) hn_budget_release(budget, &outputs[i]);
  hn_free(f.slot);
  hn_arena_free(&temp);
  return status;
}

/* ------------------------------------------------------------------ control flow */

static const hn_graph *body_of(const hone_node *n, const char *attr) {
  const hn_attr *a = hn_node_attr(n, attr);
  return a && a->type == HONE_ATTR_GRAPH ? a->g : NULL;
}

static bool truth(const hone_tensor *t) {
  return t->data && hone_desc_count(&t->desc) > 0 && *(const uint8_t *)t->data;
}

static hone_status eval_if(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                           hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  if (hone_desc_count(&in[0]->desc) != 1 || in[0]->desc.dtype != HONE_DTYPE_BOOL)
    return hn_fail(error, HONE_ERROR_INPUT, "the condition of If must be one bool");
  const hn_graph *g = body_of(n, truth(in[0]) ? "then_branch" : "else_branch");
  if (!g || g->outputs.len != n->n_out || g->inputs.len)
    return hn_fail(error, HONE_ERROR_INPUT,
                   "the branch of If has %zu outputs and %zu inputs, expected %u and 0",
                   g ? g->outputs.len : 0, g ? g->inputs.len : 0, n->n_out);
  hone_tensor *result = hn_calloc(n->n_out, sizeof *result);
  if (!result) return hn_fail_memory(error, n->n_out, "If");
  hone_status status = hn_eval_graph(g, NULL, result, scope, keep, budget, NULL, NULL, error);
  for (uint32_t i = 0; status == HONE_OK && i < n->n_out; i++) {
    if (out[i])
      *out[i] = result[i];
    else
      hn_budget_release(budget, &result[i]);
  }
  hn_free(result);
  return status;
}

/* Per-trip results of one output, to be stacked at the end. */
typedef HN_VEC(hone_tensor) pile;

static void pile_free(pile *p, hn_budget *budget) {
  for (size_t i = 0; i < p->len; i++) hn_budget_release(budget, &p->ptr[i]);
  hn_vec_free(p);
}

/* Stacks equal shapes along a new dimension `axis`; `like` gives dtype and shape when there is nothing to
 * stack. */
static hone_status stack(const pile *p, int64_t axis, bool backwards, const hone_tensor_desc *like,
                         hone_tensor *out, hn_budget *budget, hone_error *error) {
  hone_tensor_desc e = p->len ? p->ptr[0].desc : *like;
  if (!hone_dtype_is_tensor(e.dtype))
    return hn_fail(error, HONE_ERROR_INPUT, "a scan output is %s", hone_dtype_name(e.dtype));
  if (e.rank < 0) e.rank = 0;
  for (int32_t i = 0; i < e.rank; i++)
    if (e.dim[i] < 0) e.dim[i] = 0;
  if (e.rank + 1 > HONE_MAX_RANK)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the result has more than %d dimensions", HONE_MAX_RANK);
  if (axis < 0) axis += e.rank + 1;
  if (axis < 0 || axis > e.rank) return hn_fail(error, HONE_ERROR_INPUT, "scan output axis is out of range");
  for (size_t i = 1; i < p->len; i++)
    if (!hone_desc_same_dims(&p->ptr[i].desc, &e))
      return hn_fail(error, HONE_ERROR_INPUT, "a scan output changes its shape from trip to trip");
  int64_t dims[HONE_MAX_RANK], outer = 1, inner = 1;
  for (int32_t i = 0, o = 0; i <= e.rank; i++) dims[i] = i == axis ? (int64_t)p->len : e.dim[o++];
  for (int32_t i = 0; i < axis; i++) outer *= dims[i];
  for (int32_t i = (int32_t)axis + 1; i <= e.rank; i++) inner *= dims[i];
  out->desc = hone_desc(e.dtype, e.rank + 1, dims);
  int64_t bytes = hone_desc_bytes(&out->desc);
  if (bytes < 0) return hn_fail(error, HONE_ERROR_INPUT, "a scan output would be too large");
  hone_status status = hn_budget_alloc(budget, bytes, &out->data, error);
  if (status != HONE_OK) return status;
  size_t run = (size_t)inner * hone_dtype_size(e.dtype);
  for (size_t k = 0; k < p->len; k++) {
    size_t to = backwards ? p->len - 1 - k : k;
    for (int64_t o = 0; o < outer && run; o++)
      memcpy((char *)out->data + ((size_t)o * p->len + to) * run,
             (const char *)p->ptr[k].data + (size_t)o * run, run);
  }
  return HONE_OK;
}

/* Loop and Scan share the machinery: state that goes round, and outputs that pile up. */
typedef struct rounds {
  uint32_t n_state, n_scan;
  hone_tensor *state; /* [n_state] */
  bool *owned;
  pile *piles;         /* [n_scan] */
  hone_tensor *result; /* scratch for a body's outputs */
} rounds;

static hone_status rounds_begin(rounds *r, uint32_t n_state, uint32_t n_scan, size_t n_results,
                                hone_error *error) {
  *r = (rounds){.n_state = n_state, .n_scan = n_scan};
  r->state = hn_calloc(n_state, sizeof *r->state);
  r->owned = hn_calloc(n_state, sizeof *r->owned);
  r->piles = hn_calloc(n_scan, sizeof *r->piles);
  r->result = hn_calloc(n_results, sizeof *r->result);
  return r->state && r->owned && r->piles && r->result ? HONE_OK : hn_fail_memory(error, n_results, "a loop");
}

static void rounds_end(rounds *r, hn_budget *budget) {
  for (uint32_t i = 0; r->state && r->owned && i < r->n_state; i++)
    if (r->owned[i]) hn_budget_release(budget, &r->state[i]);
  for (uint32_t i = 0; r->piles && i < r->n_scan; i++) pile_free(&r->piles[i], budget);
  hn_free(r->state);
  hn_free(r->owned);
  hn_free(r->piles);
  hn_free(r->result);
}

/* A state that no trip has changed is the initial one; where the body makes what an optional holds, that. */
static hone_status untouched(const hone_tensor *state, const hone_tensor_desc *made, hone_tensor *out,
                             hn_budget *budget, hone_error *error) {
  const hone_dtype d = state->desc.dtype;
  if (d != HONE_OPTIONAL_OF(made->dtype) || d == made->dtype) return copy_tensor(state, out, budget, error);
  const hone_items *held = hn_items(state);
  return held->count ? copy_tensor(held->item[0], out, budget, error)
                     : hn_fail(error, HONE_ERROR_INPUT, "no trip was made, and a state is an empty optional");
}

/* Takes over a body's outputs: result[first...] are the new states, then the scan outputs. */
static hone_status rounds_take(rounds *r, uint32_t first, hn_budget *budget, hone_error *error) {
  for (uint32_t i = 0; i < r->n_state; i++) {
    if (r->owned[i]) hn_budget_release(budget, &r->state[i]);
    r->state[i] = r->result[first + i];
    r->owned[i] = true;
    r->result[first + i].data = NULL;
  }
  for (uint32_t i = 0; i < r->n_scan; i++) {
    hone_tensor *t = &r->result[first + r->n_state + i];
    if (!hn_vec_push(&r->piles[i], *t)) {
      for (; i < r->n_scan; i++) hn_budget_release(budget, &r->result[first + r->n_state + i]);
      return hn_fail_memory(error, sizeof *t, "a loop's outputs");
    }
    t->data = NULL;
  }
  return HONE_OK;
}

static hone_status rounds_finish(rounds *r, hone_tensor *const *out, const hn_graph *body, uint32_t first,
                                 const int64_t *axes, const int64_t *directions, hn_budget *budget,
                                 hone_error *error) {
  for (uint32_t i = 0; i < r->n_state; i++) {
    if (!out[i]) continue;
    if (r->owned[i])
      *out[i] = r->state[i];
    else {
      hone_status status =
          untouched(&r->state[i], &body->outputs.ptr[first + i]->desc, out[i], budget, error);
      if (status != HONE_OK) return status;
    }
    r->owned[i] = false;
  }
  for (uint32_t i = 0; i < r->n_scan; i++) {
    if (!out[r->n_state + i]) continue;
    hone_status status =
        stack(&r->piles[i], axes ? axes[i] : 0, directions && directions[i],
              &body->outputs.ptr[first + r->n_state + i]->desc, out[r->n_state + i], budget, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

static hone_status eval_loop(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  const hn_graph *g = body_of(n, "body");
  uint32_t n_state = n->n_in >= 2 ? n->n_in - 2 : 0;
  if (!g || g->inputs.len != n_state + 2 || g->outputs.len != (size_t)n->n_out + 1 || n->n_out < n_state)
    return hn_fail(
        error, HONE_ERROR_INPUT,
        "the body of Loop does not fit: %zu inputs and %zu outputs for %u inputs and %u outputs of the node",
        g ? g->inputs.len : 0, g ? g->outputs.len : 0, n->n_in, n->n_out);
  int64_t trips = INT64_MAX;
  if (n->n_in > 0 && in[0]) {
    if (in[0]->desc.dtype != HONE_DTYPE_I64 || hone_desc_count(&in[0]->desc) != 1)
      return hn_fail(error, HONE_ERROR_INPUT, "the trip count of Loop must be one i64");
    trips = *(const int64_t *)in[0]->data;
  }
  uint8_t go = n->n_in > 1 && in[1] ? truth(in[1]) : 1;
  rounds r;
  const hone_tensor **args = hn_calloc(n_state + 2, sizeof *args);
  hone_status status = rounds_begin(&r, n_state, n->n_out - n_state, g->outputs.len, error);
  if (!args && status == HONE_OK) status = hn_fail_memory(error, n_state, "a loop");
  for (uint32_t i = 0; status == HONE_OK && i < n_state; i++) {
    if (!in[i + 2])
      status = hn_fail(error, HONE_ERROR_INPUT, "Loop lacks the initial value of state %u", i);
    else
      r.state[i] = *in[i + 2];
  }
  for (int64_t trip = 0; status == HONE_OK && go && trip < trips; trip++) {
    hone_tensor count = {hone_desc(HONE_DTYPE_I64, 0, NULL), &trip},
                cond = {hone_desc(HONE_DTYPE_BOOL, 0, NULL), &go};
    args[0] = &count;
    args[1] = &cond;
    for (uint32_t i = 0; i < n_state; i++) args[i + 2] = &r.state[i];
    status = hn_budget_check(budget, error);
    if (status == HONE_OK) status = hn_eval_graph(g, args, r.result, scope, keep, budget, NULL, NULL, error);
    if (status != HONE_OK) break;
    go = truth(&r.result[0]);
    hn_budget_release(budget, &r.result[0]);
    status = rounds_take(&r, 1, budget, error);
  }
  if (status == HONE_OK) status = rounds_finish(&r, out, g, 1, NULL, NULL, budget, error);
  rounds_end(&r, budget);
  hn_free(args);
  return status;
}

/* Element `at` of t along `axis`, copied. */
static hone_status slice_of(const hone_tensor *t, int64_t axis, int64_t at, hone_tensor *out,
                            hn_budget *budget, hone_error *error) {
  int64_t dims[HONE_MAX_RANK], outer = 1, inner = 1;
  for (int32_t i = 0, o = 0; i < t->desc.rank; i++) {
    if (i == axis) continue;
    dims[o++] = t->desc.dim[i];
    *(i < axis ? &outer : &inner) *= t->desc.dim[i];
  }
  out->desc = hone_desc(t->desc.dtype, t->desc.rank - 1, dims);
  hone_status status = hn_budget_alloc(budget, hone_desc_bytes(&out->desc), &out->data, error);
  size_t run = (size_t)inner * hone_dtype_size(t->desc.dtype);
  for (int64_t o = 0; status == HONE_OK && o < outer && run; o++)
    memcpy((char *)out->data + (size_t)o * run,
           (const char *)t->data + (size_t)(o * t->desc.dim[axis] + at) * run, run);
  return status;
}

/* How a Scan walks: lists may be NULL (axis 0, forwards). */
typedef struct walk {
  const hn_graph *body;
  uint32_t n_state, n_in, n_out;
  const int64_t *axes, *directions, *out_axes, *out_directions;
} walk;

/* One Scan without batch: in[0..n_state) are initial states, the rest is walked along its axis. */
static hone_status walk_scan(const walk *w, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  uint32_t n_state = w->n_state, n_scan_in = w->n_in - w->n_state;
  int64_t trips = -1;
  for (uint32_t i = n_state; i < w->n_in; i++) {
    int64_t axis = w->axes ? w->axes[i - n_state] : 0;
    if (!in[i] || in[i]->desc.rank < 1 || axis < -in[i]->desc.rank || axis >= in[i]->desc.rank)
      return hn_fail(error, HONE_ERROR_INPUT, "Scan input %u cannot be walked along axis %lld", i,
                     (long long)axis);
    if (axis < 0) axis += in[i]->desc.rank;
    if (trips >= 0 && trips != in[i]->desc.dim[axis])
      return hn_fail(error, HONE_ERROR_INPUT, "Scan inputs differ in length");
    trips = in[i]->desc.dim[axis];
  }
  rounds r;
  hone_status status = rounds_begin(&r, n_state, w->n_out - n_state, w->n_out, error);
  const hone_tensor **args = hn_calloc(w->n_in, sizeof *args);
  hone_tensor *slices = hn_calloc(n_scan_in, sizeof *slices);
  if ((!args || !slices) && status == HONE_OK) status = hn_fail_memory(error, w->n_in, "a scan");
  for (uint32_t i = 0; status == HONE_OK && i < n_state; i++) {
    if (!in[i])
      status = hn_fail(error, HONE_ERROR_INPUT, "Scan lacks the initial value of state %u", i);
    else
      r.state[i] = *in[i];
  }
  for (int64_t trip = 0; status == HONE_OK && trip < trips; trip++) {
    for (uint32_t i = 0; i < n_state; i++) args[i] = &r.state[i];
    for (uint32_t i = 0; status == HONE_OK && i < n_scan_in; i++) {
      const hone_tensor *t = in[n_state + i];
      int64_t axis = w->axes ? w->axes[i] : 0,
              at = w->directions && w->directions[i] ? trips - 1 - trip : trip;
      status = slice_of(t, axis < 0 ? axis + t->desc.rank : axis, at, &slices[i], budget, error);
      args[n_state + i] = &slices[i];
    }
    if (status == HONE_OK)
      status = hn_eval_graph(w->body, args, r.result, scope, keep, budget, NULL, NULL, error);
    for (uint32_t i = 0; i < n_scan_in; i++) hn_budget_release(budget, &slices[i]);
    if (status == HONE_OK) status = rounds_take(&r, 0, budget, error);
  }
  if (status == HONE_OK)
    status = rounds_finish(&r, out, w->body, 0, w->out_axes, w->out_directions, budget, error);
  rounds_end(&r, budget);
  hn_free(args);
  hn_free(slices);
  return status;
}

/* Opset 8: in[0] may give lengths, and everything has a batch dimension in front, over which the scan is
 * repeated. */
static hone_status eval_scan_batch(const walk *w, const hone_tensor *const *in, hone_tensor *const *out,
                                   hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  hone_status status = HONE_OK;
  int64_t batch = in[1] && in[1]->desc.rank > 0 ? in[1]->desc.dim[0] : -1;
  hone_tensor *slices = hn_calloc(w->n_in, sizeof *slices), *made = hn_calloc(w->n_out, sizeof *made);
  const hone_tensor **args = hn_calloc(w->n_in, sizeof *args);
  hone_tensor **wanted = hn_calloc(w->n_out, sizeof *wanted);
  pile *piles = hn_calloc(w->n_out, sizeof *piles);
  if (!slices || !made || !args || !wanted || !piles) status = hn_fail_memory(error, w->n_in, "a scan");
  for (uint32_t i = 1; status == HONE_OK && i <= w->n_in; i++)
    if (!in[i] || in[i]->desc.rank < (i <= w->n_state ? 1 : 2) || in[i]->desc.dim[0] != batch)
      status = hn_fail(error, HONE_ERROR_INPUT,
                       "Scan input %u does not have the batch dimension of the others", i);
  for (int64_t b = 0; status == HONE_OK && in[0] && b < hone_desc_count(&in[0]->desc); b++)
    if (in[0]->desc.dtype != HONE_DTYPE_I64 || ((const int64_t *)in[0]->data)[b] != in[w->n_in]->desc.dim[1])
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED,
                       "Scan (opset 8) with sequences of different lengths is not implemented");
  for (int64_t b = 0; status == HONE_OK && b < batch; b++) {
    for (uint32_t i = 0; status == HONE_OK && i < w->n_in; i++) {
      status = slice_of(in[i + 1], 0, b, &slices[i], budget, error);
      args[i] = &slices[i];
    }
    for (uint32_t i = 0; i < w->n_out; i++) wanted[i] = &made[i];
    if (status == HONE_OK) status = walk_scan(w, args, wanted, scope, keep, budget, error);
    for (uint32_t i = 0; i < w->n_in; i++) hn_budget_release(budget, &slices[i]);
    for (uint32_t i = 0; i < w->n_out; i++) {
      if (status == HONE_OK && !hn_vec_push(&piles[i], made[i]))
        status = hn_fail_memory(error, sizeof *made, "a scan's outputs");
      if (status != HONE_OK) hn_budget_release(budget, &made[i]);
      made[i].data = NULL;
    }
  }
  for (uint32_t i = 0; status == HONE_OK && i < w->n_out; i++)
    if (out[i]) status = stack(&piles[i], 0, false, &w->body->outputs.ptr[i]->desc, out[i], budget, error);
  for (uint32_t i = 0; piles && i < w->n_out; i++) pile_free(&piles[i], budget);
  hn_free(slices);
  hn_free(made);
  hn_free((void *)args);
  hn_free(wanted);
  hn_free(piles);
  return status;
}

static hone_status eval_scan(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  bool batched = n->opset < 9;
  int64_t n_scan_in = hone_node_int(n, "num_scan_inputs", 0);
  uint32_t lead = batched ? 1 : 0, n_in = n->n_in >= lead ? n->n_in - lead : 0;
  walk w = {.body = body_of(n, "body"), .n_in = n_in, .n_out = n->n_out};
  if (!w.body || n_scan_in < 1 || n_scan_in > n_in || w.body->inputs.len != n_in ||
      w.body->outputs.len != n->n_out || n->n_out < n_in - n_scan_in)
    return hn_fail(error, HONE_ERROR_INPUT, "the body of Scan does not fit its inputs and outputs");
  w.n_state = n_in - (uint32_t)n_scan_in;
  size_t n_axes, n_dirs, n_oaxes, n_odirs;
  w.axes = hone_node_ints(n, "scan_input_axes", &n_axes);
  w.directions = hone_node_ints(n, batched ? "directions" : "scan_input_directions", &n_dirs);
  w.out_axes = hone_node_ints(n, "scan_output_axes", &n_oaxes);
  w.out_directions = hone_node_ints(n, "scan_output_directions", &n_odirs);
  if ((w.axes && n_axes != (size_t)n_scan_in) || (w.directions && n_dirs != (size_t)n_scan_in) ||
      (w.out_axes && n_oaxes != n->n_out - w.n_state) ||
      (w.out_directions && n_odirs != n->n_out - w.n_state))
    return hn_fail(error, HONE_ERROR_INPUT, "Scan's axes or directions have the wrong length");
  return batched ? eval_scan_batch(&w, in, out, scope, keep, budget, error)
                 : walk_scan(&w, in, out, scope, keep, budget, error);
}

hone_status hn_eval_control(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                            hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) *out[i] = (hone_tensor){.desc = {.rank = -1}};
  hone_status status = hn_budget_check(budget, error);
  if (status == HONE_OK)
    status = strcmp(n->op_type, "If") == 0            ? eval_if(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "Loop") == 0        ? eval_loop(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "Scan") == 0        ? eval_scan(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "SequenceMap") == 0 ? hn_eval_map(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "BeamSearch") == 0 || strcmp(n->op_type, "WhisperBeamSearch") == 0
                 ? hn_eval_beams(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "GreedySearch") == 0 || strcmp(n->op_type, "Sampling") == 0
                 ? hn_eval_search(n, in, out, scope, keep, budget, error)
                 : hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s is not a known control operator", n->op_type);
  if (status != HONE_OK) {
    for (uint32_t i = 0; i < n->n_out; i++)
      if (out[i]) hn_budget_release(budget, out[i]);
    if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", n->name, n->op_type);
  }
  return status;
}
