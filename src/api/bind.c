/* Memory of the caller for a context's inputs and outputs: whether it fits. */
#include "api/api.h"
#include "base/error.h"
#include "base/strided.h"
#include "optimize/plan/plan.h"
#include "runtime/context.h"
#include "runtime/remote.h"

static char nothing[1]; /* where tensors without elements lie */

static hone_status misfit(const char *what, const char *name, const hone_tensor_desc *want,
                          const hone_tensor_desc *got, hone_error *error) {
  char expected[128], text[128];
  hn_fail(error, HONE_ERROR_USAGE, "what is bound to %s '%s' does not fit the plan", what, name);
  hn_error_expected(error, "%s", hone_desc_format(want, expected, sizeof expected));
  hn_error_got(error, "%s", hone_desc_format(got, text, sizeof text));
  return HONE_ERROR_USAGE;
}

/* The tensor as it is kept: with strides that say what its layout does, and never without memory. */
static hone_status take(const char *what, const char *name, const hone_tensor_desc *want,
                        const hone_tensor *given, hone_tensor *out, hone_error *error) {
  const hone_tensor_desc *d = &given->desc;
  const bool open = !hone_desc_known(want);
  if (d->rank > HONE_MAX_RANK)
    return hn_fail(error, HONE_ERROR_USAGE, "%s '%s': at most %d dimensions, got %d", what, name,
                   HONE_MAX_RANK, (int)d->rank);
  if (d->dtype != want->dtype || d->rank < 0 || hone_desc_count(d) < 0 ||
      (!open && !hone_desc_same_dims(d, want)))
    return misfit(what, name, want, d, error);
  *out = *given;
  if (!hone_desc_count(d)) {
    if (!out->data) out->data = nothing;
    out->desc.device = 0;
    return HONE_OK;
  }
  if (!given->data) return hn_fail(error, HONE_ERROR_USAGE, "%s '%s': data is NULL", what, name);
  if (hn_strided_bytes(d) < 0)
    return hn_fail(error, HONE_ERROR_USAGE, "%s '%s': a stride is negative or too large", what, name);
  const size_t size = hone_dtype_size(d->dtype), align = size < sizeof(void *) ? size : sizeof(void *);
  if ((uintptr_t)given->data % align)
    return hn_fail(error, HONE_ERROR_USAGE, "%s '%s': data is not aligned to its elements of %zu bytes", what,
                   name, size);
  return HONE_OK;
}

/* Says in the tensor where it lies: its own word and what the device knows of the address have to agree. */
static hone_status locate(const hn_plan *p, const char *what, const char *name, hone_tensor *t,
                          hone_error *error) {
  const hn_backend *b = p->backend;
  const int64_t bytes = hone_desc_count(&t->desc) ? hn_strided_bytes(&t->desc) : 0;
  if (t->desc.device && !b->where)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s '%s': only memory of the host can be used on device %s",
                   what, name, b->name);
  if (!b->where || bytes <= 0) return HONE_OK;
  const hone_memory_kind kind = b->where(p->device, t->data, (size_t)bytes);
  const bool device = kind == HONE_MEMORY_DEVICE;
  if (kind == HONE_MEMORY_UNKNOWN || (t->desc.device && !device)) {
    const hone_status lost = b->sync(p->device, NULL, error); /* of a device that is, nothing is known */
    if (lost != HONE_OK) return lost;
    return hn_fail(error, HONE_ERROR_USAGE, "%s '%s' does not lie in the memory of the plan's device", what,
                   name);
  }
  t->desc.device = device;
  if (device && !hn_strided_dense(&t->desc))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "%s '%s': a tensor in the device's memory can only be row-major", what, name);
  return HONE_OK;
}

/* The host cannot read what lies in the device's memory. */
static hone_status readable(const hn_plan *p, uint32_t i, const hone_tensor *t, hone_error *error) {
  if (!t->desc.device || !hn_remote_here(p, i)) return HONE_OK;
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "input '%s' is read by steps of the host", p->inputs[i]->name);
  hn_error_hint(error, "give it in memory of the host");
  return HONE_ERROR_UNSUPPORTED;
}

static hone_status take_output(const hn_plan *p, hn_context *c, uint32_t i, const hone_tensor *given,
                               hone_tensor *out, hone_error *error) {
  const hone_tensor_desc *want = &p->output_desc[i];
  const char *name = p->outputs[i]->name;
  hone_status status = take("output", name, want, given, out, error);
  if (status == HONE_OK) status = locate(p, "output", name, out, error);
  if (status != HONE_OK) return status;
  if (hn_strided_shares(&out->desc))
    return hn_fail(error, HONE_ERROR_USAGE, "output '%s': elements of the tensor share their memory", name);
  if (!hone_desc_known(want) && !hn_strided_dense(&out->desc))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "output '%s' gets its shape in the run: its memory can only be row-major", name);
  const int64_t other = hn_lent_overlap(p, hn_context_lent(c), out, i);
  if (other < 0) return HONE_OK;
  return hn_fail(error, HONE_ERROR_USAGE, "the memory for output '%s' overlaps that of output '%s'", name,
                 p->outputs[other]->name);
}

static hone_status no_port(const char *what, uint32_t n, uint32_t i, hone_error *error) {
  return hn_fail(error, HONE_ERROR_USAGE, "the plan has %u %ss, there is no number %u", n, what, i);
}

/* Strings and what is in sequences live in the context's memory. */
static hone_status no_memory_type(const hn_plan *p, uint32_t i, hone_error *error) {
  const hone_dtype dtype = p->output_desc[i].dtype;
  if (hone_dtype_is_tensor(dtype) && dtype != HONE_DTYPE_STRING) return HONE_OK;
  return hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%s' (%s) cannot be bound: it points to other memory",
                 p->outputs[i]->name, hone_dtype_name(dtype));
}

static hone_status bind_input(const hn_plan *p, hn_context *c, uint32_t i, const hone_tensor *t,
                              hone_error *error) {
  hone_tensor kept;
  if (i >= p->n_inputs) return no_port("input", p->n_inputs, i, error);
  const char *name = p->inputs[i]->name;
  hone_status status = t ? take("input", name, hn_plan_given(p, i), t, &kept, error) : HONE_OK;
  if (t && status == HONE_OK) status = locate(p, "input", name, &kept, error);
  if (t && status == HONE_OK) status = readable(p, i, &kept, error);
  return status == HONE_OK ? hn_lent_bind_input(p, hn_context_lent(c), i, t ? &kept : NULL, error) : status;
}

static hone_status bind_output(const hn_plan *p, hn_context *c, uint32_t i, const hone_tensor *t,
                               hone_error *error) {
  hone_tensor kept;
  if (i >= p->n_outputs) return no_port("output", p->n_outputs, i, error);
  hone_status status = t ? no_memory_type(p, i, error) : HONE_OK;
  if (t && status == HONE_OK) status = take_output(p, c, i, t, &kept, error);
  return status == HONE_OK ? hn_lent_bind_output(p, hn_context_lent(c), i, t ? &kept : NULL, error) : status;
}

static hone_status bind_allocator(const hn_plan *p, hn_context *c, uint32_t i, hone_allocate allocate,
                                  void *arg, hone_error *error) {
  if (i >= p->n_outputs) return no_port("output", p->n_outputs, i, error);
  const hone_status status = allocate ? no_memory_type(p, i, error) : HONE_OK;
  if (status != HONE_OK) return status;
  return hn_lent_bind_allocator(p, hn_context_lent(c), i, allocate, arg, error);
}

hone_status hone_context_bind_input(hone_context *c, uint32_t i, const hone_tensor *t, hone_error *error) {
  hn_context *inside;
  const hone_status status = hn_api_enter(c, &inside, error);
  if (status != HONE_OK) return status;
  return hn_api_leave(c, bind_input(hn_api_plan(hone_context_plan(c)), inside, i, t, error));
}

hone_status hone_context_bind_output(hone_context *c, uint32_t i, const hone_tensor *t, hone_error *error) {
  hn_context *inside;
  const hone_status status = hn_api_enter(c, &inside, error);
  if (status != HONE_OK) return status;
  return hn_api_leave(c, bind_output(hn_api_plan(hone_context_plan(c)), inside, i, t, error));
}

static hone_status bind_outputs(const hn_plan *p, hn_context *c, const hone_tensor *const *t,
                                hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < p->n_outputs; i++) hn_lent_bind_output(p, hn_context_lent(c), i, NULL, NULL);
  for (uint32_t i = 0; t && i < p->n_outputs && status == HONE_OK; i++)
    if (t[i]) status = bind_output(p, c, i, t[i], error);
  for (uint32_t i = 0; status != HONE_OK && i < p->n_outputs; i++)
    hn_lent_bind_output(p, hn_context_lent(c), i, NULL, NULL);
  return status;
}

hone_status hone_context_bind_outputs(hone_context *c, const hone_tensor *const *t, hone_error *error) {
  hn_context *inside;
  const hone_status status = hn_api_enter(c, &inside, error);
  if (status != HONE_OK) return status;
  return hn_api_leave(c, bind_outputs(hn_api_plan(hone_context_plan(c)), inside, t, error));
}

hone_status hone_context_bind_allocator(hone_context *c, uint32_t i, hone_allocate allocate, void *arg,
                                        hone_error *error) {
  hn_context *inside;
  const hone_status status = hn_api_enter(c, &inside, error);
  if (status != HONE_OK) return status;
  return hn_api_leave(c, bind_allocator(hn_api_plan(hone_context_plan(c)), inside, i, allocate, arg, error));
}

/* ---- what runs ask */

const hone_tensor *hn_bound_input(hn_context *c, uint32_t i, const hone_tensor *given) {
  return given ? given : hn_lent_input_of(hn_context_lent(c), i);
}

hone_status hn_bound_reached(const hn_plan *p, uint32_t i, const hone_tensor *in, hone_error *error) {
  hone_tensor t = *in;
  if (!t.desc.device) return HONE_OK;
  const hone_status status = locate(p, "input", p->inputs[i]->name, &t, error);
  return status == HONE_OK ? readable(p, i, &t, error) : status;
}

/* Output i lies just where the input does, and may. */
static bool made_over(const hn_plan *p, const hn_lent *l, uint32_t i, uint32_t input, const hone_tensor *in) {
  const hone_tensor *to = hn_lent_given_output(l, i);
  return to && to->data == in->data && hone_desc_same_dims(&to->desc, &in->desc) &&
         hn_strided_dense(&to->desc) && hn_strided_dense(&in->desc) && hn_plan_over(p, i) == (int32_t)input;
}

hone_status hn_bound_apart(const hn_plan *p, hn_context *c, uint32_t i, const hone_tensor *in,
                           hone_error *error) {
  const hn_lent *lent = hn_context_lent(c);
  const bool bound = in == hn_lent_input_of(lent, i);
  const hone_tensor *given = bound ? hn_lent_given(lent, i) : in;
  int64_t at = hn_lent_overlap(p, lent, given, -1);
  if (at < 0) return HONE_OK;
  if (made_over(p, lent, (uint32_t)at, i, given) && hn_lent_overlap(p, lent, given, at) < 0) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "input '%s' overlaps the memory bound to output '%s'", p->inputs[i]->name,
          p->outputs[at]->name);
  hn_error_hint(error, hn_plan_over(p, (uint32_t)at) == (int32_t)i
                           ? "bind the output just where the input lies, or to other memory"
                           : "bind the output to other memory: it is written while inputs are still read");
  return HONE_ERROR_USAGE;
}
