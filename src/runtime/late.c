#include "runtime/late.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/ops/common/op.h"
#include "optimize/plan/plan.h"
#include "runtime/late_bind.h"
#include "runtime/pools.h"
#include "runtime/reference.h"

#include <string.h>

enum { COUNT_BYTES = HN_LATE_COUNTED * HN_LATE_RANK * sizeof(int64_t) };

hone_status hn_late_open(const hn_plan *p, hn_remote *remote, hn_lent *lent, hn_late *late,
                         hone_error *error) {
  *late = (hn_late){.plan = p, .remote = remote, .lent = lent};
  late->bound = hn_calloc(p->steps.len + 1, sizeof *late->bound);
  late->fell_back = hn_calloc(p->steps.len + 1, sizeof *late->fell_back);
  late->counting = hn_calloc(p->steps.len + 1, sizeof *late->counting);
  late->uncounted = hn_calloc(p->slots.len + 1, sizeof *late->uncounted);
  if (!late->bound || !late->fell_back || !late->counting || !late->uncounted)
    return hn_fail_memory(error, p->steps.len * sizeof *late->bound, "a context");
  for (uint32_t k = 0; k < p->steps.len && p->backend->asynchronous; k++) {
    const hn_step *s = &p->steps.ptr[k];
    if (s->kind == HN_STEP_LATE && hn_late_counted(s)) late->counting[k] = ++late->n_counting;
  }
  const size_t bytes = late->n_counting * COUNT_BYTES;
  if (bytes)
    late->count = hn_device_alloc(p->backend, p->device, &p->tenant, true, HONE_MEMORY_FOR_LATE, bytes);
  return !bytes || late->count ? HONE_OK
                               : hn_no_memory(p->backend, p->device, bytes, "counts (pinned)", error);
}

void hn_late_close(hn_late *late) {
  const hn_plan *p = late->plan;
  if (!p) return;
  hn_late_forget(late);
  if (late->workspace) p->backend->free(p->device, late->workspace);
  for (size_t i = 0; i < late->used.len; i++) p->backend->free(p->device, late->used.ptr[i].at);
  for (size_t i = 0; i < late->spare.len; i++) p->backend->free(p->device, late->spare.ptr[i].at);
  hn_vec_free(&late->used);
  hn_vec_free(&late->spare);
  if (late->count) p->backend->free_host(p->device, late->count);
  hn_vec_free(&late->counts);
  hn_free(late->counting);
  hn_free(late->uncounted);
  hn_vec_free(&late->key);
  hn_vec_free(&late->bodies);
  hn_arena_free(&late->bodies_arena);
  hn_free(late->bound);
  hn_free(late->fell_back);
  *late = (hn_late){0};
}

/* ------------------------------------------------------------------ memory */

/* Four sizes for each power of two: runs of ever other shapes must not leave a block of each size behind. */
static size_t size_class(size_t bytes) {
  size_t step = 256;
  while (step < bytes / 8) step *= 2;
  return bytes > SIZE_MAX - step ? bytes : hn_round_up(bytes ? bytes : 1, step);
}

void *hn_late_take(hn_late *late, size_t bytes) {
  const hn_plan *p = late->plan;
  const size_t want = size_class(bytes);
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < late->spare.len; i++)
    if (late->spare.ptr[i].bytes >= want && late->spare.ptr[i].bytes / 2 <= want &&
        (best == SIZE_MAX || late->spare.ptr[i].bytes < late->spare.ptr[best].bytes))
      best = i;
  hn_late_block b = {NULL, want};
  if (best != SIZE_MAX) {
    b = late->spare.ptr[best];
    late->spare.ptr[best] = late->spare.ptr[--late->spare.len];
  } else if (!(b.at = hn_pools_take(p, HONE_MEMORY_FOR_LATE, want))) {
    for (size_t i = 0; i < late->spare.len; i++) p->backend->free(p->device, late->spare.ptr[i].at);
    late->spare.len = 0;
    if (!(b.at = hn_pools_take(p, HONE_MEMORY_FOR_LATE, want))) return NULL;
  }
  if (hn_vec_push(&late->used, b)) return b.at;
  p->backend->free(p->device, b.at);
  return NULL;
}

void hn_late_give(hn_late *late, void *at) {
  for (size_t i = 0; i < late->used.len; i++) {
    if (late->used.ptr[i].at != at) continue;
    if (!hn_vec_push(&late->spare, late->used.ptr[i])) late->plan->backend->free(late->plan->device, at);
    late->used.ptr[i] = late->used.ptr[--late->used.len];
    return;
  }
}

/* ------------------------------------------------------------------ running */

static void shape(hone_tensor_desc *d, const int64_t *dim) {
  memcpy(d->dim, dim, (size_t)d->rank * sizeof *dim);
  hone_desc_set_layout(d, HONE_LAYOUT_ROW_MAJOR, 0);
}

/* No tactic takes it: its operands to the host, its results back. */
static hone_status fall_back(hn_late *late, const hn_step *s, const hone_tensor *const *tin,
                             hone_tensor *const *tout, hn_arena *keep, hn_budget *budget, hone_error *error) {
  const hn_plan *p = late->plan;
  hone_tensor in[32] = {0}, out[32] = {0}, *pout[32];
  const hone_tensor *pin[32];
  hone_status status = HONE_OK;
  if (!s->node) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "no tactic rewrites '%s'", s->desc.name);
  for (uint32_t i = 0; i < s->desc.n_inputs && status == HONE_OK; i++) {
    pin[i] = tin[i];
    if (!tin[i] || !tin[i]->desc.device) continue;
    status = hn_remote_fetch(p, late->remote, tin[i], s->node->in[i]->desc.dtype, &in[i], error);
    pin[i] = &in[i];
  }
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) pout[i] = tout[i] ? &out[i] : NULL;
  if (status == HONE_OK) status = hn_eval_node(s->node, pin, pout, keep, budget, error);
  for (uint32_t i = 0; i < s->desc.n_outputs && status == HONE_OK; i++) {
    if (!tout[i]) continue;
    if (hn_late_counted(s)) shape(&tout[i]->desc, out[i].desc.dim);
    status = hn_remote_put(p, late->remote, &out[i], tout[i], error);
  }
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) hn_free(in[i].data);
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    if (!out[i].data) continue;
    const int64_t bytes = hone_desc_bytes(&out[i].desc);
    if (bytes > 0) budget->bytes -= (uint64_t)bytes < budget->bytes ? (uint64_t)bytes : budget->bytes;
    hn_free(out[i].data);
  }
  return status;
}

/* What a data-dependent operator's tactic leaves at the beginning of the workspace becomes the outputs'
 * dimensions: it goes to the host behind the step, and hn_late_settle waits for it. */
static hone_status count(hn_late *late, uint32_t k, const hn_step *s, hone_tensor *const *tout,
                         hone_error *error) {
  const hn_plan *p = late->plan;
  hn_late_count c = {.step = k};
  for (uint32_t i = 0; i < s->desc.n_outputs && i < HN_LATE_COUNTED; i++) c.out[i] = tout[i];
  if (!hn_vec_push(&late->counts, c)) return hn_fail_memory(error, sizeof c, "counts");
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    if (s->out[i] != HN_NO_SLOT) late->uncounted[hn_slot_root(p, s->out[i])] = true;
  return p->backend->copy(p->device, late->remote->queue,
                          late->count + (size_t)(late->counting[k] - 1) * HN_LATE_COUNTED * HN_LATE_RANK,
                          late->workspace, COUNT_BYTES, error);
}

static hone_status settle(const hn_late *late, const hn_late_count *c, hone_error *error) {
  const hn_step *s = &late->plan->steps.ptr[c->step];
  const int64_t *n = late->count + (size_t)(late->counting[c->step] - 1) * HN_LATE_COUNTED * HN_LATE_RANK;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < HN_LATE_COUNTED && status == HONE_OK; i++) {
    if (!c->out[i]) continue;
    hone_tensor_desc *d = &c->out[i]->desc;
    int64_t dim[HONE_MAX_RANK];
    for (int32_t k = 0; k < d->rank; k++) {
      const int64_t told = k < HN_LATE_RANK ? n[i * HN_LATE_RANK + (uint32_t)k] : 0;
      dim[k] = told > 0 ? told - 1 : d->dim[k];
      if (dim[k] > d->dim[k])
        status = hn_fail(error, HONE_ERROR_INTERNAL, "%s counted %lld, at most %lld were expected",
                         s->desc.anchor, (long long)dim[k], (long long)d->dim[k]);
    }
    shape(d, dim);
  }
  return status;
}

void hn_late_forget_counts(hn_late *late) {
  for (size_t k = 0; k < late->counts.len; k++) {
    const hn_step *s = &late->plan->steps.ptr[late->counts.ptr[k].step];
    for (uint32_t i = 0; i < s->desc.n_outputs; i++)
      if (s->out[i] != HN_NO_SLOT) late->uncounted[hn_slot_root(late->plan, s->out[i])] = false;
  }
  late->counts.len = 0;
}

hone_status hn_late_settle(hn_late *late, hone_error *error) {
  const hn_plan *p = late->plan;
  if (!late->counts.len) return HONE_OK;
  hone_status status = p->backend->sync(p->device, late->remote->queue, error);
  for (size_t k = 0; k < late->counts.len && status == HONE_OK; k++)
    status = settle(late, &late->counts.ptr[k], error);
  hn_late_forget_counts(late);
  return status;
}

bool hn_late_wants_counts(const hn_late *late, const hn_step *s) {
  if (!late->counts.len || HN_FAULT("counts_not_waited")) return false;
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++)
    if (s->in[i] != HN_NO_SLOT && late->uncounted[hn_slot_root(late->plan, s->in[i])]) return true;
  return false;
}

static hone_status move(hn_late *late, const hn_late_move *m, const void *from, void *to, hone_error *error) {
  const void *in[1] = {from};
  void *out[1] = {to};
  hone_step_run run = {.step = &m->step, .in = in, .out = out, .blob = m->blob, .workspace = late->workspace};
  return late->plan->backend->launch(late->plan->device, late->remote->queue, m->tactic, &run, error);
}

/* The tactic that was chosen, between reformats where it wants another layout. */
static hone_status launch(hn_late *late, const hn_step *s, const hn_bound *b, const void *const *in,
                          void *const *out, hone_error *error) {
  const hn_plan *p = late->plan;
  const void *at[32];
  void *to[32] = {NULL}, *x = NULL;
  hone_status status = HONE_OK;
  memcpy(at, in, s->desc.n_inputs * sizeof *at);
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) to[i] = out[i];
  if (b->before) {
    const int64_t bytes = hone_desc_bytes(&b->before->to.desc);
    at[0] = x = hn_late_take(late, (size_t)bytes);
    status = x ? move(late, b->before, in[0], x, error)
               : hn_no_memory(p->backend, p->device, (uint64_t)bytes, s->desc.name, error);
  }
  for (uint32_t i = 0; b->after && i < s->desc.n_outputs && status == HONE_OK; i++) {
    if (!b->after[i].tactic) continue;
    const int64_t bytes = hone_desc_bytes(&b->after[i].from.desc);
    to[i] = hn_late_take(late, (size_t)bytes);
    if (!to[i]) status = hn_no_memory(p->backend, p->device, (uint64_t)bytes, s->desc.name, error);
  }
  hone_step_run run = {.step = &b->step,
                       .in = at,
                       .out = to,
                       .blob = b->blob,
                       .shared = b->weights.at,
                       .workspace = late->workspace,
                       .threads = s->threads,
                       .flush = b->flush};
  if (status == HONE_OK) status = p->backend->launch(p->device, late->remote->queue, b->tactic, &run, error);
  for (uint32_t i = 0; b->after && i < s->desc.n_outputs; i++) {
    if (!b->after[i].tactic || !to[i]) continue;
    if (status == HONE_OK) status = move(late, &b->after[i], to[i], out[i], error);
    if (to[i] != out[i]) hn_late_give(late, to[i]); /* what gets it next comes behind this */
  }
  if (x) hn_late_give(late, x);
  return status;
}

/* Does the step join a few runs, or long ones, which the reference copies as fast as any tactic? */
static bool joins_runs(const hn_step *s, const hone_tensor *const *tin, int64_t bytes) {
  enum { FEW = 64, RUN = 256 };
  if (!hn_is_op(s->node, "Concat")) return false;
  int64_t runs = 0;
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
    const hone_tensor_desc *d = tin[i] ? &tin[i]->desc : NULL;
    int32_t axis;
    if (!d || hn_axis(hone_node_int(s->node, "axis", 1), d->rank, &axis, NULL) != HONE_OK) return false;
    int64_t of = hone_desc_bytes(d) > 0;
    for (int32_t k = 0; k < axis; k++) of *= d->dim[k];
    runs += of;
  }
  return runs <= FEW || bytes / runs >= RUN;
}

/* Too small for a choice to pay, whatever the operator makes of it? Where small inputs say how large the
 * result is, binding finds out. A cache that grows has another shape each time: binding costs as much as to
 * copy some 100 KiB, which more threads hardly save below twice that. */
static bool trifle(const hn_step *s, const hone_tensor *const *tin) {
  enum { TRIFLE = 1024, JOINED = 256 << 10 };
  int64_t bytes = 0;
  if (!s->node || s->node->op->host_inputs) return false;
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) bytes += tin[i] ? hone_desc_bytes(&tin[i]->desc) : 0;
  return hn_late_weighed(&s->desc, bytes) < TRIFLE || (bytes < JOINED && joins_runs(s, tin, bytes));
}

/* What step s is bound for, bound again where its operands are other ones now. */
static hone_status bound_for(hn_late *late, const hn_step *s, hn_bound **bound, const hone_tensor *const *tin,
                             uint64_t most, hone_error *error) {
  hn_bound *b = *bound;
  if (b) {
    const size_t n = hn_late_describe(s, tin, NULL);
    const bool like = n == b->key_words && hn_vec_reserve(&late->key, n + 1);
    if (like) hn_late_describe(s, tin, late->key.ptr);
    if (like && memcmp(late->key.ptr, b->key, n * sizeof *b->key) == 0) return HONE_OK;
  }
  *bound = NULL; /* used up, also when this fails */
  return hn_late_bind(late, s, tin, b, most, bound, error);
}

hone_status hn_late_run(hn_late *late, uint32_t k, const void *const *in, const hone_tensor *const *tin,
                        hone_tensor *const *tout, hn_arena *keep, hn_budget *budget, bool *done,
                        hone_error *error) {
  const hn_plan *p = late->plan;
  const hn_step *s = &p->steps.ptr[k];
  const bool apart = p->backend->asynchronous;
  void *out[32];
  bool any = false; /* element to make */
  *done = apart;
  late->fell_back[k] = !apart;
  if (!apart && trifle(s, tin)) return HONE_OK;
  hone_status status = bound_for(late, s, &late->bound[k], tin, budget->max_bytes, error);
  if (status != HONE_OK) return status;
  const hn_bound *b = late->bound[k];
  if (!apart && !b->tactic) return HONE_OK;
  *done = true;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    out[i] = NULL;
    if (!tout[i]) continue;
    const hn_slot *slot = &p->slots.ptr[s->out[i]];
    const int64_t bytes = hone_desc_bytes(&b->out[i].desc);
    if (slot->place != HN_PLACE_HEAP && slot->alias == HN_NO_SLOT)
      status = hn_same_as_planned(s, i, &b->out[i].desc, &slot->desc, error);
    if (status != HONE_OK) return status;
    tout[i]->desc = b->out[i].desc;
    any |= bytes > 0;
    if (slot->alias != HN_NO_SLOT) continue;
    if (slot->place == HN_PLACE_HEAP && !apart) {
      status = hn_lent_late(p, late->lent, s->out[i], &b->out[i].desc, &tout[i]->data, error);
      if (status == HONE_OK && !tout[i]->data) status = hn_budget_alloc(budget, bytes, &tout[i]->data, error);
    }
    if (slot->place == HN_PLACE_HEAP && apart &&
        !(tout[i]->data = hn_late_take(late, bytes > 0 ? (size_t)bytes : 0)))
      status = hn_no_memory(p->backend, p->device, (uint64_t)bytes, s->desc.name, error);
    if (status != HONE_OK) return status;
    out[i] = tout[i]->data;
  }
  if (s->out[0] != HN_NO_SLOT && p->slots.ptr[s->out[0]].alias != HN_NO_SLOT) return HONE_OK;
  late->fell_back[k] = !b->tactic && (any || hn_late_counted(s));
  if (!any && !hn_late_counted(s)) return HONE_OK; /* nothing to compute, which no tactic takes */
  if (!b->tactic) return fall_back(late, s, tin, tout, keep, budget, error);
  status = launch(late, s, b, in, out, error);
  return status == HONE_OK && hn_late_counted(s) ? count(late, k, s, tout, error) : status;
}

/* ------------------------------------------------------------------ bodies */

/* Is the node one that a tactic may do? Its step, then. */
static bool describe_body(hn_late *late, const hone_node *n, hn_body_step *b) {
  enum {
    APART = HONE_OP_CONTROL | HONE_OP_SHAPE_ONLY | HONE_OP_DATA_DEPENDENT | HONE_OP_RANDOM | HONE_OP_VIEW |
            HONE_OP_ITEMS
  };
  const hn_plan *p = late->plan;
  *b = (hn_body_step){.node = n};
  if (!n->op || !n->op->infer || n->op->flags & APART || n->n_in > 32 || n->n_out > 32) return true;
  const char *anchor =
      n->domain[0] ? hn_arena_printf(&late->bodies_arena, "%s.%s", n->domain, n->op_type) : n->op_type;
  if (!anchor) return false;
  hone_pw_program *program = NULL;
  if (!hn_listing_find(p->tactics, anchor)) {
    if (!hn_plan_function(p, n, &late->bodies_arena, NULL)) return true;
    program = HN_NEW(&late->bodies_arena, hone_pw_program);
    if (!program || !hn_plan_function(p, n, &late->bodies_arena, program)) return false;
  }
  bool good = n->n_out && n->out[0];
  for (uint32_t i = 0; i < n->n_in; i++) good = good && (!n->in[i] || hn_value_is_plain(n->in[i]));
  for (uint32_t i = 0; i < n->n_out; i++) good = good && (!n->out[i] || hn_value_is_plain(n->out[i]));
  if (!good) return true;
  hone_step_tensor *out = HN_NEW_ARRAY(&late->bodies_arena, hone_step_tensor, n->n_out);
  if (!out) return false;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i]) out[i].desc.dtype = n->out[i]->desc.dtype;
  const uint32_t last = n->op->layouts;
  b->step = (hn_step){.desc = {HONE_DESC_HEAD(hone_step), .anchor = program ? "Pointwise" : anchor,
                               .program = program, .name = n->name, .node = n,
                               .math = p->level < 2 ? HONE_MATH_STRICT : HONE_MATH_F32, .n_inputs = n->n_in,
                               .n_anchor_inputs = n->n_in, .n_outputs = n->n_out, .output = out},
                      .kind = HN_STEP_LATE,
                      .node = n,
                      .late_last = last && !(last & HONE_LAST_ALL)};
  return true;
}

/* The step of a node, made when it is met for the first time. NULL: out of memory. */
static hn_body_step *body_step(hn_late *late, const hone_node *n) {
  size_t lo = 0, hi = late->bodies.len;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    if (late->bodies.ptr[mid]->node == n) return late->bodies.ptr[mid];
    if ((uintptr_t)late->bodies.ptr[mid]->node < (uintptr_t)n)
      lo = mid + 1;
    else
      hi = mid;
  }
  hn_body_step *b = HN_NEW(&late->bodies_arena, hn_body_step);
  if (!b || !describe_body(late, n, b) || !hn_vec_push(&late->bodies, b)) return NULL;
  for (size_t i = late->bodies.len - 1; i > lo; i--) late->bodies.ptr[i] = late->bodies.ptr[i - 1];
  late->bodies.ptr[lo] = b;
  return b;
}

hone_status hn_late_body(void *self, const hone_node *n, const hone_tensor *const *tin,
                         hone_tensor *const *tout, hn_budget *budget, bool *done, hone_error *error) {
  hn_late *late = self;
  hn_body_step *k = body_step(late, n);
  const void *in[32];
  void *out[32];
  bool any = false;
  *done = false;
  if (!k) return hn_fail_memory(error, sizeof *k, "a body");
  if (!k->step.desc.anchor || trifle(&k->step, tin)) return HONE_OK;
  enum { OFTEN = 4 };
  const hn_bound *was = k->bound;
  hone_status status = bound_for(late, &k->step, &k->bound, tin, budget->max_bytes, error);
  if (was != k->bound) k->met = 0;
  if (status == HONE_OK && !k->bound->tactic && k->met < OFTEN && ++k->met == OFTEN) {
    late->often = true;
    hn_bound *small = k->bound;
    k->bound = NULL; /* used up, also when this fails */
    status = hn_late_bind(late, &k->step, tin, small, budget->max_bytes, &k->bound, error);
    late->often = false;
  }
  if (status != HONE_OK || !k->bound->tactic) return status;
  const hn_bound *b = k->bound;
  for (uint32_t i = 0; i < n->n_in; i++) in[i] = tin[i] ? tin[i]->data : NULL;
  for (uint32_t i = 0; i < n->n_out; i++) any |= tout[i] && hone_desc_bytes(&b->out[i].desc) > 0;
  if (!any) return HONE_OK;
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++) {
    out[i] = NULL;
    if (!tout[i]) continue;
    tout[i]->desc = b->out[i].desc;
    status = hn_budget_alloc(budget, hone_desc_bytes(&b->out[i].desc), &tout[i]->data, error);
    out[i] = tout[i]->data;
  }
  if (status == HONE_OK) status = launch(late, &k->step, b, in, out, error);
  *done = status == HONE_OK;
  return status;
}

const hone_step *hn_late_step(const hn_late *late, uint32_t k, const hone_tactic_desc **tactic) {
  const hn_bound *b = late->bound[k];
  *tactic = b ? b->tactic : NULL;
  return b ? &b->step : &late->plan->steps.ptr[k].desc;
}
