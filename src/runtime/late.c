#include "runtime/late.h"

#include "base/error.h"
#include "optimize/step/choose.h"
#include "base/mem.h"
#include "base/str.h"
#include "runtime/pools.h"

#include <string.h>

/* Input 0 or an output in another layout than the plan has: brought there by a step of its own. */
typedef struct moved {
  hone_step step; /* tactic NULL: it lies as the plan has it */
  hone_step_tensor from, to;
  const hone_tactic_desc *tactic;
} moved;

/* What was chosen for the operands that `key` describes. */
struct hn_bound {
  hn_arena arena;
  uint64_t *key; /* dimensions of all inputs, bytes of those on the host */
  size_t key_words;
  hone_step step;
  hone_step_tensor *in, *out;
  const hone_tactic_desc *tactic; /* NULL: the host does it, or nothing is to be done (a view) */
  void *blob;                     /* on the device */
  moved *before, *after;          /* of input 0; by output. NULL: all is row-major */
};

hone_status hn_late_open(const hn_plan *p, hn_remote *remote, hn_late *late, hone_error *error) {
  *late = (hn_late){.plan = p, .remote = remote};
  late->bound = hn_calloc(p->steps.len + 1, sizeof *late->bound);
  late->fell_back = hn_calloc(p->steps.len + 1, sizeof *late->fell_back);
  return late->bound && late->fell_back
             ? HONE_OK
             : hn_fail_memory(error, p->steps.len * sizeof *late->bound, "a context");
}

static void unbind(const hn_plan *p, hn_bound *b) {
  if (!b) return;
  if (b->blob) p->backend->free(p->device, b->blob);
  hn_arena_free(&b->arena);
  hn_free(b);
}

static void forget(hn_late *late) {
  for (size_t k = 0; late->bound && k < late->plan->steps.len; k++) {
    unbind(late->plan, late->bound[k]);
    late->bound[k] = NULL;
  }
}

void hn_late_close(hn_late *late) {
  const hn_plan *p = late->plan;
  if (!p) return;
  forget(late);
  if (late->workspace) p->backend->free(p->device, late->workspace);
  for (size_t i = 0; i < late->used.len; i++) p->backend->free(p->device, late->used.ptr[i].at);
  for (size_t i = 0; i < late->spare.len; i++) p->backend->free(p->device, late->spare.ptr[i].at);
  hn_vec_free(&late->used);
  hn_vec_free(&late->spare);
  hn_vec_free(&late->key);
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

/* ------------------------------------------------------------------ binding */

static bool on_host(const hn_step *s, uint32_t i) {
  return s->node && s->node->op && i < 32 && s->node->op->host_inputs >> i & 1;
}

static size_t words(size_t bytes) { return (bytes + 7) / 8; }

/* What the choice depends on, into key (NULL: only counts). */
static size_t describe(const hn_step *s, const hone_tensor *const *tin, uint64_t *key) {
  size_t n = 0;
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
    const hone_tensor_desc *d = tin[i] ? &tin[i]->desc : NULL;
    if (key) key[n] = d ? (uint64_t)d->rank : UINT64_MAX;
    n++;
    for (int32_t k = 0; d && k < d->rank; k++, n++)
      if (key) key[n] = (uint64_t)d->dim[k];
    const int64_t bytes = d && on_host(s, i) ? hone_desc_bytes(d) : 0;
    if (bytes <= 0) continue;
    if (key) {
      key[n + words((size_t)bytes) - 1] = 0;
      memcpy(key + n, tin[i]->data, (size_t)bytes);
    }
    n += words((size_t)bytes);
  }
  return n;
}

/* Do the elements tell the dimensions? What is planned with is then the most that they can be. */
static bool counted(const hn_step *s) {
  return s->node && s->node->op && s->node->op->flags & HONE_OP_DATA_DEPENDENT;
}

/* Output descriptors by the operator's inference, in the types of the graph. */
static hone_status infer(const hn_plan *p, const hn_step *s, const hone_tensor *const *tin,
                         hone_tensor_desc *out, hone_error *error) {
  const hone_node *n = s->node;
  hone_tensor value[32];
  const hone_tensor_desc *din[32];
  const hone_tensor *known[32];
  hone_tensor_desc *dout[32];
  if (n->n_in > 32 || n->n_out > 32) return hn_fail(error, HONE_ERROR_INTERNAL, "a late step is too wide");
  for (uint32_t i = 0; i < n->n_in; i++) {
    din[i] = NULL;
    known[i] = NULL;
    if (!tin[i]) continue;
    value[i] = *tin[i];
    if (n->in[i]) value[i].desc.dtype = n->in[i]->desc.dtype;
    value[i].desc.device = 0;
    din[i] = &value[i].desc;
    if (on_host(s, i) || p->slots.ptr[hn_slot_root(p, s->in[i])].place == HN_PLACE_CONST)
      known[i] = &value[i];
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    out[i] = (hone_tensor_desc){.rank = -1};
    dout[i] = s->out[i] == HN_NO_SLOT ? NULL : &out[i];
  }
  if (n->n_in && din[0]) {
    hone_status takes = hn_op_takes(n, din[0], 0, error);
    if (takes != HONE_OK) return takes;
  }
  hone_status (*of)(const hone_infer *, hone_error *) = counted(s) ? n->op->most : n->op->infer;
  hone_status status = of(&(hone_infer){n, n->n_in, n->n_out, din, known, dout}, error);
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (dout[i] && hone_desc_count(&out[i]) < 0)
      status =
          hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s does not say what shape output %u has", n->op_type, i);
  return status;
}

/* Packs what the tactic wants packed, and sends it. */
static hone_status pack(hn_late *late, hn_bound *b, hone_error *error) {
  const hn_plan *p = late->plan;
  hone_tactic_need need = {0};
  hone_status status = b->tactic->need ? b->tactic->need(&b->step, &p->machine, &need, error) : HONE_OK;
  if (status == HONE_OK && need.workspace_bytes > late->workspace_bytes) {
    if (late->workspace) p->backend->free(p->device, late->workspace);
    late->workspace = hn_pools_take(p, HONE_MEMORY_FOR_WORKSPACE, need.workspace_bytes);
    late->workspace_bytes = late->workspace ? need.workspace_bytes : 0;
    if (!late->workspace) {
      status = hn_no_memory(p->backend, p->device, need.workspace_bytes, "a step's workspace", error);
      forget(late); /* what other steps were bound with is gone: they ask for theirs again */
    }
  }
  if (status != HONE_OK || !need.blob_bytes) return status;
  void *made = hn_aligned(4096, need.blob_bytes);
  if (!made) return hn_fail_memory(error, need.blob_bytes, "packed weights");
  b->blob = hn_pools_take(p, HONE_MEMORY_FOR_WEIGHTS, need.blob_bytes);
  if (!b->blob) status = hn_no_memory(p->backend, p->device, need.blob_bytes, "packed weights", error);
  if (status == HONE_OK && b->tactic->prepack)
    status = b->tactic->prepack(&b->step, &p->machine, made, error);
  if (status == HONE_OK)
    status = p->backend->copy(p->device, late->remote->queue, b->blob, made, need.blob_bytes, error);
  if (status == HONE_OK) status = p->backend->sync(p->device, late->remote->queue, error);
  hn_free(made);
  return status;
}

static const hone_tactic_desc *cheapest(const hn_plan *p, const hone_step *s) {
  hn_candidate list[HN_MAX_CANDIDATES];
  const uint32_t n = hn_accepting_tactics(p, s, list, NULL);
  return n ? list[hn_cheapest(list, n)].tactic : NULL;
}

static bool reformat(const hn_plan *p, const hn_step *s, const hone_tensor_desc *from,
                     const hone_tensor_desc *to, moved *m) {
  m->from.desc = *from, m->to.desc = *to;
  m->step =
      (hone_step){HONE_DESC_HEAD(hone_step), .anchor = "Reformat", .name = s->desc.name, .n_inputs = 1,
                  .n_anchor_inputs = 1,      .input = &m->from,    .n_outputs = 1,       .output = &m->to};
  m->step.cost.bytes = (double)hone_desc_bytes(from) + (double)hone_desc_bytes(to);
  m->tactic = cheapest(p, &m->step);
  return m->tactic != NULL;
}

static hone_tensor_desc channels_last(const hone_tensor_desc *d) {
  hone_tensor_desc r = *d;
  hone_desc_set_layout(&r, HONE_LAYOUT_CHANNELS_LAST, hn_channel_pitch(d));
  return r;
}

/* No tactic takes the step row-major: is there one for channels-last? */
static hone_status lay_last(const hn_plan *p, const hn_step *s, hn_bound *b, hone_error *error) {
  const uint32_t n_out = s->desc.n_outputs;
  const int32_t rank = b->in[0].desc.rank;
  moved *before = HN_NEW(&b->arena, moved), *after = HN_NEW_ARRAY(&b->arena, moved, n_out);
  hone_step_tensor *out = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_out);
  if (!before || !after || !out) return hn_fail_memory(error, n_out * sizeof *after, "a late step");
  if (rank < 3 || b->in[0].constant || b->out[0].desc.rank != rank) return HONE_OK;
  const hone_step_tensor row = b->in[0];
  b->in[0].desc = channels_last(&row.desc);
  for (uint32_t i = 0; i < n_out; i++) {
    out[i] = b->out[i];
    if (s->out[i] != HN_NO_SLOT && out[i].desc.rank >= 3) out[i].desc = channels_last(&out[i].desc);
  }
  b->step.output = out;
  b->tactic = cheapest(p, &b->step);
  bool good = b->tactic && reformat(p, s, &row.desc, &b->in[0].desc, before);
  for (uint32_t i = 0; i < n_out && good; i++)
    if (out[i].desc.layout == HONE_LAYOUT_CHANNELS_LAST)
      good = reformat(p, s, &out[i].desc, &b->out[i].desc, &after[i]);
  if (good) {
    b->before = before, b->after = after;
    return HONE_OK;
  }
  b->in[0] = row;
  b->step.output = b->out;
  b->tactic = NULL;
  return HONE_OK;
}

static hone_status bind(hn_late *late, const hn_step *s, const hone_tensor *const *tin, hn_bound *b,
                        hone_error *error) {
  const hn_plan *p = late->plan;
  const uint32_t n_in = s->desc.n_inputs, n_out = s->desc.n_outputs;
  hone_tensor_desc out[32];
  b->key_words = describe(s, tin, NULL);
  b->key = HN_NEW_ARRAY(&b->arena, uint64_t, b->key_words + 1);
  b->in = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_in + 1);
  b->out = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_out + 1);
  if (!b->key || !b->in || !b->out) return hn_fail_memory(error, b->key_words * 8, "a late step");
  describe(s, tin, b->key);
  const uint64_t *value = b->key;
  hone_tensor held[32];
  const hone_tensor *now[32];
  if (n_in > 32 || n_out > 32) return hn_fail(error, HONE_ERROR_INTERNAL, "a late step is too wide");
  for (uint32_t i = 0; i < n_in; i++) {
    value += 1 + (tin[i] ? tin[i]->desc.rank : 0);
    now[i] = NULL;
    if (!tin[i]) continue;
    const bool constant = p->slots.ptr[hn_slot_root(p, s->in[i])].place == HN_PLACE_CONST;
    b->in[i] = (hone_step_tensor){tin[i]->desc, constant ? tin[i]->data : NULL};
    held[i] = *tin[i];
    now[i] = &held[i];
    const int64_t bytes = on_host(s, i) ? hone_desc_bytes(&tin[i]->desc) : 0;
    if (!on_host(s, i)) continue;
    held[i].data = (void *)(uintptr_t)value; /* aligned, and it stays */
    b->in[i].constant = value;
    value += bytes > 0 ? words((size_t)bytes) : 0;
  }
  hone_status status = HONE_OK;
  if (s->node)
    status = infer(p, s, now, out, error);
  else
    out[0] = tin[0]->desc; /* a reformat */
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < n_out; i++) {
    if (s->out[i] == HN_NO_SLOT) continue;
    hone_tensor_desc d = s->desc.output[i].desc;
    d.rank = out[i].rank;
    memcpy(d.dim, out[i].dim, sizeof d.dim);
    hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
    b->out[i].desc = d;
  }
  b->step = s->desc;
  b->step.input = b->in;
  b->step.output = b->out;
  if (s->out[0] != HN_NO_SLOT && p->slots.ptr[s->out[0]].alias != HN_NO_SLOT) return HONE_OK; /* a view */
  double bytes = 0;
  for (uint32_t i = 0; i < n_in + n_out; i++) {
    const hone_tensor_desc *d = i < n_in ? &b->in[i].desc : &b->out[i - n_in].desc;
    const int64_t n = d->dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(d);
    bytes += n > 0 ? (double)n : 0;
  }
  b->step.cost = (hone_cost){.flops = bytes / 4, .bytes = bytes};
  b->tactic = cheapest(p, &b->step);
  if (!b->tactic && s->late_last) status = lay_last(p, s, b, error);
  return status == HONE_OK && b->tactic ? pack(late, b, error) : status;
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
    if (counted(s)) shape(&tout[i]->desc, out[i].desc.dim);
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

/* What a data-dependent operator's tactic has left at the beginning of the workspace becomes the outputs'
 * dimensions. */
static hone_status count(hn_late *late, const hn_step *s, hone_tensor *const *tout, hone_error *error) {
  enum { RANK = 8, OUTPUTS = 4 };
  const int64_t dims[] = {OUTPUTS, RANK};
  hone_tensor at = {hone_desc(HONE_DTYPE_I64, 2, dims), late->workspace}, here = {0};
  at.desc.device = 1;
  hone_status status = hn_remote_fetch(late->plan, late->remote, &at, HONE_DTYPE_I64, &here, error);
  const int64_t *n = here.data;
  for (uint32_t i = 0; i < s->desc.n_outputs && i < OUTPUTS && status == HONE_OK; i++) {
    if (!tout[i]) continue;
    hone_tensor_desc *d = &tout[i]->desc;
    int64_t dim[HONE_MAX_RANK];
    for (int32_t k = 0; k < d->rank; k++) {
      const int64_t told = k < RANK ? n[i * RANK + k] : 0;
      dim[k] = told > 0 ? told - 1 : d->dim[k];
      if (dim[k] > d->dim[k])
        status = hn_fail(error, HONE_ERROR_INTERNAL, "%s counted %lld, at most %lld were expected",
                         s->desc.anchor, (long long)dim[k], (long long)d->dim[k]);
    }
    shape(d, dim);
  }
  hn_free(here.data);
  return status;
}

static hone_status move(hn_late *late, const moved *m, const void *from, void *to, hone_error *error) {
  const void *in[1] = {from};
  void *out[1] = {to};
  hone_step_run run = {.step = &m->step, .in = in, .out = out};
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
                       .workspace = late->workspace,
                       .threads = s->threads};
  if (status == HONE_OK) status = p->backend->launch(p->device, late->remote->queue, b->tactic, &run, error);
  for (uint32_t i = 0; b->after && i < s->desc.n_outputs; i++) {
    if (!b->after[i].tactic || !to[i]) continue;
    if (status == HONE_OK) status = move(late, &b->after[i], to[i], out[i], error);
    if (to[i] != out[i]) hn_late_give(late, to[i]); /* what gets it next comes behind this */
  }
  if (x) hn_late_give(late, x);
  return status;
}

hone_status hn_late_run(hn_late *late, uint32_t k, const void *const *in, const hone_tensor *const *tin,
                        hone_tensor *const *tout, hn_arena *keep, hn_budget *budget, hone_error *error) {
  const hn_plan *p = late->plan;
  const hn_step *s = &p->steps.ptr[k];
  hn_bound *b = late->bound[k];
  hone_status status = HONE_OK;
  void *out[32];
  bool any = false; /* element to make */
  if (b) {          /* for these operands? */
    const size_t n = describe(s, tin, NULL);
    const bool like = n == b->key_words && hn_vec_reserve(&late->key, n + 1);
    if (like) describe(s, tin, late->key.ptr);
    if (!like || memcmp(late->key.ptr, b->key, n * sizeof *b->key) != 0) {
      unbind(p, b);
      b = late->bound[k] = NULL;
    }
  }
  if (!b) {
    b = hn_calloc(1, sizeof *b);
    status = b ? bind(late, s, tin, b, error) : hn_fail_memory(error, sizeof *b, "a late step");
    if (status != HONE_OK) {
      unbind(p, b);
      return status;
    }
    late->bound[k] = b;
  }
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    out[i] = NULL;
    if (!tout[i]) continue;
    const hn_slot *slot = &p->slots.ptr[s->out[i]];
    const int64_t bytes = hone_desc_bytes(&b->out[i].desc);
    tout[i]->desc = b->out[i].desc;
    any |= bytes > 0;
    if (slot->alias != HN_NO_SLOT) continue;
    if (slot->place == HN_PLACE_HEAP && !(tout[i]->data = hn_late_take(late, bytes > 0 ? (size_t)bytes : 0)))
      return hn_no_memory(p->backend, p->device, (uint64_t)bytes, s->desc.name, error);
    out[i] = tout[i]->data;
  }
  if (s->out[0] != HN_NO_SLOT && p->slots.ptr[s->out[0]].alias != HN_NO_SLOT) return HONE_OK;
  late->fell_back[k] = !b->tactic && (any || counted(s));
  if (!any && !counted(s)) return HONE_OK; /* nothing to compute, which no tactic takes */
  if (!b->tactic) return fall_back(late, s, tin, tout, keep, budget, error);
  status = launch(late, s, b, in, out, error);
  return status == HONE_OK && counted(s) ? count(late, s, tout, error) : status;
}

const hone_step *hn_late_step(const hn_late *late, uint32_t k, const hone_tactic_desc **tactic) {
  const hn_bound *b = late->bound[k];
  *tactic = b ? b->tactic : NULL;
  return b ? &b->step : &late->plan->steps.ptr[k].desc;
}
