#include "runtime/lent.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/strided.h"
#include "optimize/plan/plan.h"

#include <string.h>

/* ------------------------------------------------------------------ binding */

hone_status hn_lent_bind_input(const hn_plan *p, hn_lent *l, uint32_t i, const hone_tensor *t,
                               hone_error *error) {
  if (!l->input) {
    if (!t) return HONE_OK;
    l->input = hn_calloc(p->n_inputs, sizeof *l->input);
    if (!l->input) return hn_fail_memory(error, p->n_inputs * sizeof *l->input, "bound inputs");
  }
  hn_lent_input now = {0};
  if (t) {
    now.given = now.plain = *t;
    now.plain.desc = *hn_plan_given(p, i);
    now.plain.desc.device = t->desc.device;
    if (!hn_strided_dense(&t->desc)) {
      const size_t bytes = (size_t)hone_desc_bytes(&now.plain.desc);
      now.own = now.plain.data =
          hn_device_alloc(p->backend, p->device, &p->tenant, true, HONE_MEMORY_FOR_IO, bytes);
      if (!now.own) return hn_fail_memory(error, bytes, "a row-major copy of an input");
    }
  }
  hn_device_free(p->backend, p->device, true, l->input[i].own);
  l->input[i] = now;
  return HONE_OK;
}

/* May the output be made in the caller's memory when its shape is known? The step decides when it is bound.
 */
static bool made_late(const hn_plan *p, uint32_t i) {
  const uint32_t slot = p->output_slot[i];
  if (p->backend->asynchronous || p->slots.ptr[slot].place != HN_PLACE_HEAP ||
      p->slots.ptr[slot].alias != HN_NO_SLOT || !hone_dtype_is_tensor(p->output_desc[i].dtype) ||
      p->output_desc[i].dtype == HONE_DTYPE_STRING)
    return false;
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (k != i && hn_slot_root(p, p->output_slot[k]) == slot) return false;
  return true;
}

/* Can the device, which makes the output, copy it there by itself? */
static bool reached(const hn_plan *p, uint32_t i, const hone_tensor *t) {
  const hn_slot *s = &p->slots.ptr[p->output_slot[i]];
  if (!p->backend->asynchronous || !s->desc.device || !s->bytes) return false;
  if (!hone_desc_known(&p->output_desc[i]) || s->desc.dtype != p->output_desc[i].dtype) return false;
  if (!hn_strided_dense(&s->desc) || !hn_strided_dense(&t->desc)) return false;
  const hone_memory_kind at = p->backend->where(p->device, t->data, s->bytes);
  return at == HONE_MEMORY_PINNED || at == HONE_MEMORY_DEVICE;
}

/* Is that memory of the kind that the step writes? Kernels expect the alignment of all tensors there. */
static bool written_there(const hn_plan *p, const hone_tensor *t) {
  return !p->backend->asynchronous || (t->desc.device && (uintptr_t)t->data % 256 == 0);
}

static hone_status bind_output(const hn_plan *p, hn_lent *l, uint32_t i, const hn_lent_output *now,
                               hone_error *error) {
  if (!l->output) {
    l->output = hn_calloc(p->n_outputs, sizeof *l->output);
    if (!l->output) return hn_fail_memory(error, p->n_outputs * sizeof *l->output, "bound outputs");
  }
  hn_lent_output *o = &l->output[i];
  const hn_lent_output old = *o;
  *o = *now;
  o->late = now->bound && made_late(p, i);
  o->at = old.at;
  o->late_at = old.late_at;
  o->result = old.result;
  return HONE_OK;
}

hone_status hn_lent_bind_output(const hn_plan *p, hn_lent *l, uint32_t i, const hone_tensor *t,
                                hone_error *error) {
  hn_lent_output now = {0};
  if (!t && !l->output) return HONE_OK;
  if (t) {
    now.bound = true;
    now.to = *t;
    now.here = hn_plan_movable(p, i) && hn_strided_dense(&t->desc) && written_there(p, t);
    now.straight = !now.here && reached(p, i, t);
    if (t->desc.device && !now.here && !now.straight)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                     "output '%s' is made on the host, or its shape in the run: bind memory of the host",
                     p->outputs[i]->name);
  }
  return bind_output(p, l, i, &now, error);
}

hone_status hn_lent_bind_allocator(const hn_plan *p, hn_lent *l, uint32_t i, hone_allocate allocate,
                                   void *arg, hone_error *error) {
  const bool here = !p->backend->asynchronous && hn_plan_movable(p, i);
  const hn_lent_output now = {.bound = true, .allocate = allocate, .arg = arg, .here = here};
  if (!allocate) return hn_lent_bind_output(p, l, i, NULL, error);
  return bind_output(p, l, i, &now, error);
}

void hn_lent_free(const hn_plan *p, hn_lent *l) {
  for (uint32_t i = 0; l->input && i < p->n_inputs; i++)
    hn_device_free(p->backend, p->device, true, l->input[i].own);
  hn_free(l->input);
  hn_free(l->output);
  *l = (hn_lent){0};
}

const hone_tensor *hn_lent_input_of(const hn_lent *l, uint32_t i) {
  return l->input && l->input[i].given.data ? &l->input[i].plain : NULL;
}

const hone_tensor *hn_lent_given(const hn_lent *l, uint32_t i) {
  return l->input && l->input[i].given.data ? &l->input[i].given : NULL;
}

const hone_tensor *hn_lent_given_output(const hn_lent *l, uint32_t i) {
  const hn_lent_output *o = l->output ? &l->output[i] : NULL;
  return o && o->bound && !o->allocate ? &o->to : NULL;
}

int64_t hn_lent_overlap(const hn_plan *p, const hn_lent *l, const hone_tensor *t, int64_t except) {
  const uintptr_t from = (uintptr_t)t->data;
  const int64_t bytes = l->output ? hn_strided_bytes(&t->desc) : 0;
  for (uint32_t i = 0; bytes > 0 && i < p->n_outputs; i++) {
    const hn_lent_output *o = &l->output[i];
    if (i == except || !o->bound || o->allocate) continue;
    const uintptr_t at = (uintptr_t)o->to.data;
    const int64_t span = hn_strided_bytes(&o->to.desc);
    if (span > 0 && at < from + (uint64_t)bytes && from < at + (uint64_t)span) return i;
  }
  return -1;
}

/* ------------------------------------------------------------------ runs */

static bool gathered(const hn_lent *l, const hone_tensor *in, uint32_t i) {
  return l->input[i].own && in == &l->input[i].plain;
}

bool hn_lent_gathers(const hn_plan *p, const hn_lent *l, const hone_tensor *const *in) {
  for (uint32_t i = 0; l->input && i < p->n_inputs; i++)
    if (gathered(l, in[i], i)) return true;
  return false;
}

void hn_lent_gather(const hn_plan *p, const hn_lent *l, const hone_tensor *const *in) {
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (gathered(l, in[i], i)) hn_strided_copy(&l->input[i].given, &l->input[i].plain);
}

/* Asked once a run: who wants the output again, with no more elements, gets what is there. */
static hone_status allocate(const hn_plan *p, hn_lent_output *o, uint32_t i, const hone_tensor_desc *desc,
                            hone_error *error) {
  hone_tensor_desc d = *desc;
  d.device = 0;
  const int64_t bytes = hone_desc_bytes(&d);
  if (o->given && bytes <= o->given) {
    o->to.desc = d;
    return HONE_OK;
  }
  o->to = (hone_tensor){d, o->allocate(o->arg, i, &d)};
  o->given = o->to.data ? bytes : 0;
  if (o->to.data || !hone_desc_count(&d)) return HONE_OK;
  hn_fail(error, HONE_ERROR_MEMORY, "the allocator gave no memory for output '%s', %lld bytes",
          p->outputs[i]->name, (long long)hone_desc_bytes(&d));
  return HONE_ERROR_MEMORY;
}

void hn_slot_move(const hn_plan *p, hone_tensor *tensor, uint32_t root, void *to) {
  for (uint32_t k = 0; k < p->slots.len; k++)
    if (hn_slot_root(p, k) == root) tensor[k].data = (char *)to + (k == root ? 0 : p->slots.ptr[k].offset);
}

hone_status hn_lent_place(const hn_plan *p, hn_lent *l, hone_tensor *tensor, void *arena, bool *moved,
                          hone_error *error) {
  for (uint32_t i = 0; p->lends && i < p->n_outputs; i++) {
    if (!p->slots.ptr[hn_slot_root(p, p->output_slot[i])].lent || (l->output && l->output[i].here)) continue;
    hn_fail(error, HONE_ERROR_USAGE, "output '%s' is not bound to memory that its step can write",
            p->outputs[i]->name);
    hn_error_hint(error, "the plan was made with hone_plan_options.over_bound");
    return HONE_ERROR_USAGE;
  }
  for (uint32_t i = 0; l->output && i < p->n_outputs; i++) {
    hn_lent_output *o = &l->output[i];
    const uint32_t slot = p->output_slot[i], root = hn_slot_root(p, slot);
    o->result.data = NULL;
    o->late_at = NULL;
    o->given = 0;
    if (o->here && o->allocate) {
      const hone_status status = allocate(p, o, i, &p->slots.ptr[slot].desc, error);
      if (status != HONE_OK) return status;
    }
    void *want = o->here ? o->to.data : NULL;
    if (want == o->at) continue;
    hn_slot_move(p, tensor, root, want ? want : (char *)arena + p->slots.ptr[root].offset);
    o->at = want;
    *moved = true;
  }
  return HONE_OK;
}

hone_status hn_lent_late(const hn_plan *p, hn_lent *l, uint32_t slot, const hone_tensor_desc *desc, void **at,
                         hone_error *error) {
  *at = NULL;
  for (uint32_t i = 0; l->output && i < p->n_outputs; i++) {
    hn_lent_output *o = &l->output[i];
    if (!o->late || p->output_slot[i] != slot || hone_desc_bytes(desc) <= 0) continue;
    if (o->allocate) {
      const hone_status status = allocate(p, o, i, desc, error);
      if (status != HONE_OK) return status;
    } else if (!hn_strided_dense(&o->to.desc) || hn_strided_bytes(&o->to.desc) < hone_desc_bytes(desc))
      return HONE_OK;
    o->late_at = *at = o->to.data;
    return HONE_OK;
  }
  return HONE_OK;
}

bool hn_lent_holds(const hn_plan *p, const hn_lent *l, const void *data) {
  for (uint32_t i = 0; l->output && i < p->n_outputs; i++)
    if (l->output[i].late_at == data) return true;
  return false;
}

void hn_lent_forget(const hn_plan *p, hn_lent *l) {
  for (uint32_t i = 0; l->output && i < p->n_outputs; i++) l->output[i].at = NULL;
}

bool hn_lent_stays(const hn_plan *p, const hn_lent *l) {
  for (uint32_t i = 0; l->output && i < p->n_outputs; i++)
    if (l->output[i].at != (l->output[i].here ? l->output[i].to.data : NULL)) return false;
  return true;
}

bool hn_lent_moved(const hn_lent *l, uint32_t i) { return l->output && l->output[i].at; }

void *hn_lent_straight(const hn_lent *l, uint32_t i) {
  return l->output && l->output[i].straight ? l->output[i].to.data : NULL;
}

void *hn_lent_whole(const hn_plan *p, const hn_lent *l, uint32_t i) {
  const hn_lent_output *o = l->output ? &l->output[i] : NULL;
  if (!o || !o->bound || o->allocate || !hn_strided_dense(&o->to.desc)) return NULL;
  return hn_strided_dense(&p->output_desc[i]) ? o->to.data : NULL;
}

/* The memory is enough for what was made, which may be known only now. */
static hone_status fits(const hn_plan *p, const hn_lent_output *o, uint32_t i, const hone_tensor_desc *made,
                        hone_error *error) {
  const int64_t need = hone_desc_bytes(made), has = hn_strided_bytes(&o->to.desc);
  char text[128];
  if (hone_desc_known(&p->output_desc[i]) || need <= has) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "the memory bound to output '%s' is too small", p->outputs[i]->name);
  hn_error_expected(error, "%lld bytes, for %s", (long long)need, hone_desc_format(made, text, sizeof text));
  hn_error_got(error, "%lld bytes", (long long)has);
  hn_error_hint(error, "bind an allocator: hone_context_bind_allocator");
  return HONE_ERROR_USAGE;
}

hone_status hn_lent_fill(const hn_plan *p, hn_lent *l, uint32_t i, const hone_tensor *made,
                         hone_error *error) {
  hn_lent_output *o = l->output ? &l->output[i] : NULL;
  if (!o || !o->bound) return HONE_OK;
  const bool there = o->here || (o->late_at && o->late_at == made->data);
  hone_status status = o->allocate && !there ? allocate(p, o, i, &made->desc, error) : HONE_OK;
  if (status == HONE_OK) status = fits(p, o, i, &made->desc, error);
  if (status != HONE_OK) return status;
  o->result = o->to;
  if (!hone_desc_known(&p->output_desc[i])) o->result.desc = made->desc;
  if (!o->result.data) o->result.data = made->data; /* no elements */
  if (!o->at && !o->straight && made->data != o->result.data) hn_strided_copy(made, &o->result);
  return HONE_OK;
}

const hone_tensor *hn_lent_result(const hn_lent *l, uint32_t i) {
  return l->output && l->output[i].result.data ? &l->output[i].result : NULL;
}
