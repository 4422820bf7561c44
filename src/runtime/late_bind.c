#include "runtime/late_bind.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "optimize/step/choose.h"
#include "optimize/step/denormals.h"
#include "optimize/step/shared.h"
#include "optimize/step/tactics.h"
#include "optimize/step/tuned.h"
#include "runtime/pools.h"

#include <string.h>

/* Bytes of operands and results from which on a choice is quicker than the reference, for one run and for
 * many. */
enum { WORTH = 16 << 10, WORTH_OFTEN = 2 << 10 };

int64_t hn_late_weighed(const hone_step *s, int64_t bytes) {
  enum { DEAR = 8 };
  _Static_assert(HONE_PW_COUNT <= 64, "a bit for each operation");
  static const uint64_t dear =
      (uint64_t)1 << HONE_PW_EXP | (uint64_t)1 << HONE_PW_LOG | (uint64_t)1 << HONE_PW_ERF |
      (uint64_t)1 << HONE_PW_TANH | (uint64_t)1 << HONE_PW_SIGMOID | (uint64_t)1 << HONE_PW_SILU |
      (uint64_t)1 << HONE_PW_GELU_ERF | (uint64_t)1 << HONE_PW_GELU_TANH | (uint64_t)1 << HONE_PW_SOFTPLUS |
      (uint64_t)1 << HONE_PW_MISH | (uint64_t)1 << HONE_PW_POW;
  for (uint32_t i = 0; s->program && i < s->program->n_instr; i++)
    if (dear >> s->program->instr[i].op & 1) return bytes * DEAR;
  return bytes;
}

static void drop_move(const hn_plan *p, hn_late_move *m) {
  if (m->blob) p->backend->free(p->device, m->blob);
}

static void unbind(const hn_plan *p, hn_bound *b) {
  if (!b) return;
  if (b->before) drop_move(p, b->before);
  for (uint32_t i = 0; b->after && i < b->step.n_outputs; i++) drop_move(p, &b->after[i]);
  if (b->blob && b->blob != b->weights.memory) p->backend->free(p->device, b->blob);
  if (b->weights.memory) p->backend->free(p->device, b->weights.memory);
  hn_arena_free(&b->arena);
  hn_free(b);
}

void hn_late_forget(hn_late *late) {
  for (size_t k = 0; late->bound && k < late->plan->steps.len; k++) {
    unbind(late->plan, late->bound[k]);
    late->bound[k] = NULL;
  }
  for (size_t i = 0; i < late->bodies.len; i++) {
    unbind(late->plan, late->bodies.ptr[i]->bound);
    late->bodies.ptr[i]->bound = NULL;
  }
}

/* Steps of bodies have no slots: their node says what their operands are. */
static bool reads_constant(const hn_plan *p, const hn_step *s, uint32_t i, const hone_tensor *t) {
  if (s->in) return p->slots.ptr[hn_slot_root(p, s->in[i])].place == HN_PLACE_CONST;
  const hn_value *v = s->node->in[i];
  return v->constant && v->constant->data == t->data;
}

static bool makes(const hn_step *s, uint32_t i) {
  return s->out ? s->out[i] != HN_NO_SLOT : s->node->out[i] != NULL;
}

static bool on_host(const hn_step *s, uint32_t i) {
  return s->node && s->node->op && i < 32 && s->node->op->host_inputs >> i & 1;
}

static size_t words(size_t bytes) { return (bytes + 7) / 8; }

size_t hn_late_describe(const hn_step *s, const hone_tensor *const *tin, uint64_t *key) {
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

bool hn_late_counted(const hn_step *s) {
  return s->node && s->node->op && s->node->op->flags & HONE_OP_DATA_DEPENDENT;
}

/* Output descriptors by the operator's inference, in the types of the graph, and what it computes. */
static hone_status infer(const hn_plan *p, const hn_step *s, const hone_tensor *const *tin,
                         hone_tensor_desc *out, hone_cost *cost, hone_error *error) {
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
    if (on_host(s, i) || reads_constant(p, s, i, tin[i])) known[i] = &value[i];
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    out[i] = (hone_tensor_desc){.rank = -1};
    dout[i] = makes(s, i) ? &out[i] : NULL;
  }
  if (n->n_in && din[0]) {
    hone_status takes = hn_op_takes(n, din[0], 0, error);
    if (takes != HONE_OK) return takes;
  }
  hone_status (*of)(const hone_infer *, hone_error *) = hn_late_counted(s) ? n->op->most : n->op->infer;
  const hone_infer io = {n, n->n_in, n->n_out, din, known, dout};
  hone_status status = of(&io, error);
  for (uint32_t i = 0; i < n->n_out && status == HONE_OK; i++)
    if (dout[i] && hone_desc_count(&out[i]) < 0)
      status =
          hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s does not say what shape output %u has", n->op_type, i);
  if (status != HONE_OK) return status;
  if (n->op->cost)
    n->op->cost(&io, cost);
  else if (dout[0] && !(n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW)))
    cost->flops = (double)hone_desc_count(&out[0]);
  return HONE_OK;
}

/* Scratch of one run, which all late steps have in common. */
static hone_status widen_workspace(hn_late *late, size_t bytes, hone_error *error) {
  const hn_plan *p = late->plan;
  if (bytes <= late->workspace_bytes) return HONE_OK;
  if (late->workspace) p->backend->free(p->device, late->workspace);
  late->workspace = hn_pools_take(p, HONE_MEMORY_FOR_WORKSPACE, bytes);
  late->workspace_bytes = late->workspace ? bytes : 0;
  if (late->workspace) return HONE_OK;
  hn_late_forget(late); /* what other steps were bound with is gone: they ask for theirs again */
  return hn_no_memory(p->backend, p->device, bytes, "a step's workspace", error);
}

/* The step's constants as the tactic wants them, where the device reads them. */
static hone_status pack_into(hn_late *late, const hone_tactic_desc *tactic, const hone_step *step,
                             size_t bytes, void **out, hone_error *error) {
  const hn_plan *p = late->plan;
  const bool apart = p->backend->asynchronous;
  if (!(*out = hn_pools_take(p, HONE_MEMORY_FOR_WEIGHTS, bytes)))
    return hn_no_memory(p->backend, p->device, bytes, "packed weights", error);
  void *made = apart ? hn_aligned(4096, bytes) : *out;
  if (!made) return hn_fail_memory(error, bytes, "packed weights");
  hone_status status = hn_tactic_pack(tactic, step, &p->machine, made, bytes, error);
  if (!apart) return status;
  if (status == HONE_OK) status = p->backend->copy(p->device, late->remote->queue, *out, made, bytes, error);
  if (status == HONE_OK) status = p->backend->sync(p->device, late->remote->queue, error);
  hn_free(made);
  return status;
}

/* From which byte on the step's blob would be the same for other shapes, and what that part follows from. */
static size_t shared_at(const hn_late *late, const hn_bound *b, size_t bytes, hn_late_weights *w) {
  hn_str text = {0};
  *w = (hn_late_weights){0};
  size_t at;
  if (late->plan->backend->asynchronous ||
      hn_tactic_shares(b->tactic, &b->step, &late->plan->machine, &at, &w->key) != HN_SHARES_PART ||
      at >= bytes)
    return 0;
  hn_step_signature_of_weights(&b->step, &text);
  const bool good = !text.failed;
  if (good) *w = (hn_late_weights){b->tactic, w->key, hn_hash(text.ptr, text.len, 0), bytes - at, NULL, NULL};
  hn_str_free(&text);
  return good ? at : 0;
}

static bool same_weights(const hn_late_weights *a, const hn_late_weights *b) {
  return a->tactic == b->tactic && a->key == b->key && a->form == b->form && a->bytes == b->bytes;
}

/* Packs what the tactic wants packed; of what `old` had packed, what is the same is taken over. */
static hone_status pack(hn_late *late, hn_bound *b, hn_bound *old, hone_error *error) {
  const hn_plan *p = late->plan;
  hone_tactic_need need = {0};
  hn_late_weights w;
  hone_status status = b->tactic->need ? b->tactic->need(&b->step, &p->machine, &need, error) : HONE_OK;
  if (status == HONE_OK) status = widen_workspace(late, need.workspace_bytes, error);
  if (status != HONE_OK || !need.blob_bytes) return status;
  const size_t own = shared_at(late, b, need.blob_bytes, &w);
  if (!own) return pack_into(late, b->tactic, &b->step, need.blob_bytes, &b->blob, error);
  if (old && old->weights.memory && same_weights(&w, &old->weights)) {
    b->weights = old->weights;
    if (old->blob == old->weights.memory) old->blob = NULL;
    old->weights = (hn_late_weights){0};
    b->step.own_only = true;
    status = pack_into(late, b->tactic, &b->step, own, &b->blob, error);
    b->step.own_only = false;
    return status;
  }
  status = pack_into(late, b->tactic, &b->step, need.blob_bytes, &b->blob, error);
  if (status == HONE_OK) {
    w.memory = b->blob;
    w.at = (const char *)b->blob + own;
    b->weights = w;
  }
  return status;
}

/* A reformat between two layouts; m->tactic stays NULL where nothing does it. */
static hone_status reformat(hn_late *late, const hn_step *s, const hone_tensor_desc *from,
                            const hone_tensor_desc *to, hn_late_move *m, hone_error *error) {
  const hn_plan *p = late->plan;
  hone_tactic_need need = {0};
  m->from.desc = *from, m->to.desc = *to;
  m->step =
      (hone_step){HONE_DESC_HEAD(hone_step), .anchor = "Reformat", .name = s->desc.name, .n_inputs = 1,
                  .n_anchor_inputs = 1,      .input = &m->from,    .n_outputs = 1,       .output = &m->to};
  m->step.cost.bytes = (double)hone_desc_bytes(from) + (double)hone_desc_bytes(to);
  if (!(m->tactic = hn_cheapest_tactic(p, &m->step))) return HONE_OK;
  hone_status status = m->tactic->need ? m->tactic->need(&m->step, &p->machine, &need, error) : HONE_OK;
  if (status == HONE_OK) status = widen_workspace(late, need.workspace_bytes, error);
  if (status != HONE_OK || !need.blob_bytes) return status;
  return pack_into(late, m->tactic, &m->step, need.blob_bytes, &m->blob, error);
}

static hone_tensor_desc channels_last(const hn_plan *p, const hone_tensor_desc *d) {
  hone_tensor_desc r = *d;
  hone_desc_set_layout(&r, HONE_LAYOUT_CHANNELS_LAST, p->backend->asynchronous ? hn_channel_pitch(d) : 0);
  return r;
}

/* No tactic takes the step row-major: is there one for channels-last? */
static hone_status lay_last(hn_late *late, const hn_step *s, hn_bound *b, hone_error *error) {
  const hn_plan *p = late->plan;
  const uint32_t n_out = s->desc.n_outputs;
  const int32_t rank = b->in[0].desc.rank;
  hn_late_move *before = HN_NEW(&b->arena, hn_late_move),
               *after = HN_NEW_ARRAY(&b->arena, hn_late_move, n_out);
  hone_step_tensor *out = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_out);
  if (!before || !after || !out) return hn_fail_memory(error, n_out * sizeof *after, "a late step");
  if (rank < 3 || b->in[0].constant || b->out[0].desc.rank != rank) return HONE_OK;
  const hone_step_tensor row = b->in[0];
  b->in[0].desc = channels_last(p, &row.desc);
  for (uint32_t i = 0; i < n_out; i++) {
    out[i] = b->out[i];
    if (makes(s, i) && out[i].desc.rank >= 3) out[i].desc = channels_last(p, &out[i].desc);
  }
  b->step.output = out;
  b->before = before, b->after = after;
  b->tactic = hn_cheapest_tactic(p, &b->step);
  hone_status status = b->tactic ? reformat(late, s, &row.desc, &b->in[0].desc, before, error) : HONE_OK;
  bool good = before->tactic != NULL;
  for (uint32_t i = 0; i < n_out && good && status == HONE_OK; i++) {
    if (out[i].desc.layout != HONE_LAYOUT_CHANNELS_LAST) continue;
    status = reformat(late, s, &out[i].desc, &b->out[i].desc, &after[i], error);
    good = after[i].tactic != NULL;
  }
  if (good || status != HONE_OK) return status;
  drop_move(p, before);
  for (uint32_t i = 0; i < n_out; i++) drop_move(p, &after[i]);
  b->before = b->after = NULL;
  b->in[0] = row;
  b->step.output = b->out;
  b->tactic = NULL;
  return HONE_OK;
}

static hone_status bind(hn_late *late, const hn_step *s, const hone_tensor *const *tin, hn_bound *old,
                        uint64_t most, hn_bound *b, hone_error *error) {
  const hn_plan *p = late->plan;
  const bool apart = p->backend->asynchronous;
  const uint32_t n_in = s->desc.n_inputs, n_out = s->desc.n_outputs;
  hone_tensor_desc out[32];
  b->key_words = hn_late_describe(s, tin, NULL);
  b->key = HN_NEW_ARRAY(&b->arena, uint64_t, b->key_words + 1);
  b->in = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_in + 1);
  b->out = HN_NEW_ARRAY(&b->arena, hone_step_tensor, n_out + 1);
  if (!b->key || !b->in || !b->out) return hn_fail_memory(error, b->key_words * 8, "a late step");
  hn_late_describe(s, tin, b->key);
  const uint64_t *value = b->key;
  hone_tensor held[32];
  const hone_tensor *now[32];
  if (n_in > 32 || n_out > 32) return hn_fail(error, HONE_ERROR_INTERNAL, "a late step is too wide");
  for (uint32_t i = 0; i < n_in; i++) {
    value += 1 + (tin[i] ? tin[i]->desc.rank : 0);
    now[i] = NULL;
    if (!tin[i]) continue;
    const bool constant = reads_constant(p, s, i, tin[i]);
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
  hone_cost cost = {0};
  hone_error other = {0}; /* on the CPU the reference, which is asked then, says what is wrong */
  if (s->node)
    status = infer(p, s, now, out, &cost, apart ? error : &other);
  else
    out[0] = tin[0]->desc; /* a reformat */
  if (status != HONE_OK) return apart ? status : HONE_OK;
  for (uint32_t i = 0; i < n_out; i++) {
    if (!makes(s, i)) continue;
    hone_tensor_desc d = s->desc.output[i].desc;
    d.rank = out[i].rank;
    memcpy(d.dim, out[i].dim, sizeof d.dim);
    hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
    b->out[i].desc = d;
  }
  b->step = s->desc;
  b->step.input = b->in;
  b->step.output = b->out;
  if (s->out && s->out[0] != HN_NO_SLOT && p->slots.ptr[s->out[0]].alias != HN_NO_SLOT)
    return HONE_OK; /* a view */
  double bytes = 0;
  for (uint32_t i = 0; i < n_in + n_out; i++) {
    const hone_tensor_desc *d = i < n_in ? &b->in[i].desc : &b->out[i - n_in].desc;
    const int64_t n = d->dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(d);
    bytes += n > 0 ? (double)n : 0;
  }
  const double weighed = (double)hn_late_weighed(&b->step, (int64_t)bytes);
  if (!apart && (weighed < (late->often ? WORTH_OFTEN : WORTH) || (most && bytes > (double)most)))
    return HONE_OK;
  cost.bytes = bytes;
  b->step.cost = cost;
  b->tactic = hn_cheapest_tactic(p, &b->step);
  if (!b->tactic && s->late_last) status = lay_last(late, s, b, error);
  if (status != HONE_OK || !b->tactic) return status;
  b->flush = !apart && hn_step_flushes(&b->step);
  return pack(late, b, old, error);
}

hone_status hn_late_bind(hn_late *late, const hn_step *s, const hone_tensor *const *tin, hn_bound *before,
                         uint64_t most, hn_bound **out, hone_error *error) {
  hn_bound *b = hn_calloc(1, sizeof *b);
  *out = NULL;
  hone_status status =
      b ? bind(late, s, tin, before, most, b, error) : hn_fail_memory(error, sizeof *b, "a late step");
  unbind(late->plan, before);
  if (status == HONE_OK)
    *out = b;
  else
    unbind(late->plan, b);
  return status;
}
