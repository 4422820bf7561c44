#include "runtime/remote.h"

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/strided.h"
#include "optimize/plan/plan.h"

#include <string.h>

/* The block of inputs, by its slots. */
static hone_status list_inputs(const hn_plan *p, hn_remote *r, hone_error *error) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->slots.len; i++)
    n += p->slots.ptr[i].place == HN_PLACE_STAGED && p->slots.ptr[i].alias == HN_NO_SLOT;
  if (!n) return HONE_OK;
  r->input = hn_calloc(n, sizeof *r->input);
  r->piece = hn_calloc(hn_remote_pieces(p, n), sizeof *r->piece);
  if (!r->input || !r->piece) return hn_fail_memory(error, n * sizeof *r->input, "a context");
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    if (s->place != HN_PLACE_STAGED || s->alias != HN_NO_SLOT) continue;
    r->input[r->n_inputs++] =
        (hn_remote_input){.slot = i, .input = s->input, .offset = s->offset, .bytes = s->bytes};
  }
  return HONE_OK;
}

hone_status hn_remote_open(const hn_plan *p, hn_remote *r, hone_error *error) {
  const hn_backend *b = p->backend;
  uint64_t returned = 0;
  hone_status status = b->queue_open(p->device, &r->queue, error);
  if (status != HONE_OK) return status;
  r->returned_at = hn_calloc(p->n_outputs + 1, sizeof *r->returned_at);
  if (!r->returned_at) return hn_fail_memory(error, p->n_outputs * sizeof *r->returned_at, "a context");
  if ((status = list_inputs(p, r, error)) != HONE_OK) return status;
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const hn_slot *s = &p->slots.ptr[p->output_slot[i]];
    r->returned_at[i] = s->desc.device ? returned : UINT64_MAX;
    if (s->desc.device && !p->slots.ptr[hn_slot_root(p, p->output_slot[i])].lent)
      returned += hn_round_up(s->bytes, 256);
  }
  const struct {
    void **at;
    uint64_t bytes;
    bool host;
    hone_memory_purpose purpose;
    uint32_t places;
    const char *what;
  } block[] = {
      {&r->staged, p->staged_bytes, false, HONE_MEMORY_FOR_IO, 1u << HN_PLACE_STAGED, "the model's inputs"},
      {&r->gathered, hn_remote_gathered(p), true, HONE_MEMORY_FOR_IO, 1u << HN_PLACE_STAGED,
       "the model's inputs (pinned)"},
      {&r->host, p->host_bytes, true, HONE_MEMORY_FOR_ACTIVATIONS, 0,
       "what steps on the host read and write (pinned)"},
      {&r->returned, returned, true, HONE_MEMORY_FOR_IO, 0, "the model's outputs (pinned)"}};
  for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
    if (!block[i].bytes) continue;
    *block[i].at = hn_device_alloc(b, p->device, &p->tenant, block[i].host, block[i].purpose, block[i].bytes);
    if (!*block[i].at) return hn_plan_no_memory(p, block[i].bytes, block[i].what, block[i].places, error);
  }
  /* What crosses needs a kernel, perhaps, which no run should have to wait for. */
  if (r->staged && r->gathered) {
    status = b->cross(p->device, r->queue, r->staged, r->gathered, 16, error);
    if (status == HONE_OK) status = b->sync(p->device, r->queue, error); /* the host may write there again */
    if (status != HONE_OK) return status;
  }
  for (int i = 0; i < HN_MARKS; i++)
    if ((status = b->event_open(p->device, &r->mark[i], error)) != HONE_OK) return status;
  for (int i = 0; i < HN_RING && p->staged_bytes > hn_remote_gathered(p); i++)
    if ((status = b->event_open(p->device, &r->ring[i], error)) != HONE_OK) return status;
  return HONE_OK;
}

void hn_remote_close(const hn_plan *p, hn_remote *r) {
  const hn_backend *b = p->backend;
  /* First: what a run that failed has left in it may still read and write the blocks. */
  if (r->queue) b->queue_close(p->device, r->queue);
  for (int i = 0; i < HN_MARKS; i++)
    if (r->mark[i]) b->event_close(p->device, r->mark[i]);
  for (int i = 0; i < HN_RING; i++)
    if (r->ring[i]) b->event_close(p->device, r->ring[i]);
  if (r->staged) b->free(p->device, r->staged);
  if (r->gathered) b->free_host(p->device, r->gathered);
  if (r->host) b->free_host(p->device, r->host);
  if (r->returned) b->free_host(p->device, r->returned);
  hn_free(r->returned_at);
  hn_free(r->input);
  hn_free(r->piece);
}

bool hn_remote_here(const hn_plan *p, uint32_t input) {
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const hn_slot *s = &p->slots.ptr[hn_slot_root(p, p->output_slot[i])];
    if (s->place == HN_PLACE_INPUT && s->input == input) return true;
  }
  return hn_plan_read_here(p, input);
}

hone_status hn_remote_take(const hn_plan *p, hn_remote *r, const hn_lent *lent, const hone_tensor *tensor,
                           hone_error *error) {
  const hn_backend *b = p->backend;
  hone_status status =
      r->timed ? b->event_record(p->device, r->queue, r->mark[HN_MARK_DONE], error) : HONE_OK;
  for (uint32_t i = 0; i < p->n_outputs && status == HONE_OK; i++) {
    const hn_slot *s = &p->slots.ptr[p->output_slot[i]];
    if (r->returned_at[i] == UINT64_MAX || !s->bytes || hn_lent_moved(lent, i)) continue;
    void *straight = hn_lent_straight(lent, i);
    status = b->cross(p->device, r->queue, straight ? straight : (char *)r->returned + r->returned_at[i],
                      tensor[p->output_slot[i]].data, s->bytes, error);
  }
  return status == HONE_OK && r->timed ? b->event_record(p->device, r->queue, r->mark[HN_MARK_TAKEN], error)
                                       : status;
}

hone_status hn_remote_times(const hn_plan *p, const hn_remote *r, double *h2d, double *infer, double *d2h,
                            hone_error *error) {
  double *out[] = {h2d, infer, d2h};
  hone_status status = HONE_OK;
  if (!r->timed)
    return hn_fail(error, HONE_ERROR_USAGE, "the last run was not timed: hone_context_clock comes before it");
  for (int i = 0; i < 3 && status == HONE_OK; i++)
    if (out[i]) status = p->backend->event_seconds(p->device, r->mark[i], r->mark[i + 1], out[i], error);
  return status;
}

hone_status hn_remote_fetch(const hn_plan *p, hn_remote *r, const hone_tensor *from, hone_dtype seen,
                            hone_tensor *to, hone_error *error) {
  const int64_t bytes = hn_strided_bytes(&from->desc); /* it may be a part of another one */
  const hone_dtype type = from->desc.dtype;
  const bool widen = p->storage != HONE_DTYPE_F32 && type == p->storage && seen == HONE_DTYPE_F32;
  *to = (hone_tensor){from->desc, NULL};
  to->desc.device = 0;
  if (bytes <= 0) { /* of the type that it would have */
    if (widen) to->desc.dtype = HONE_DTYPE_F32;
    return HONE_OK;
  }
  void *raw = hn_aligned(HN_MEM_ALIGN, (size_t)bytes);
  if (!raw) return hn_fail_memory(error, (unsigned long long)bytes, "a tensor of the device");
  hone_status status = p->backend->copy(p->device, r->queue, raw, from->data, (size_t)bytes, error);
  if (status == HONE_OK) status = p->backend->sync(p->device, r->queue, error);
  if (status != HONE_OK || !widen) {
    if (status == HONE_OK)
      to->data = raw;
    else
      hn_free(raw);
    return status;
  }
  const int64_t n = bytes / 2;
  float *wide = hn_aligned(HN_MEM_ALIGN, (size_t)n * sizeof *wide);
  for (int64_t i = 0; wide && i < n; i++) {
    const uint16_t h = ((const uint16_t *)raw)[i];
    wide[i] = type == HONE_DTYPE_F16 ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
  }
  hn_free(raw);
  if (!wide) return hn_fail_memory(error, (unsigned long long)bytes * 2, "a tensor of the device");
  to->desc.dtype = HONE_DTYPE_F32;
  to->data = wide;
  return HONE_OK;
}

hone_status hn_remote_put(const hn_plan *p, hn_remote *r, const hone_tensor *from, const hone_tensor *to,
                          hone_error *error) {
  const int64_t bytes = hn_strided_bytes(&to->desc), held = hn_strided_bytes(&from->desc);
  const bool gaps = bytes > hone_desc_count(&to->desc) * (int64_t)hone_dtype_size(to->desc.dtype);
  const bool alike =
      !memcmp(from->desc.stride, to->desc.stride, (size_t)to->desc.rank * sizeof *to->desc.stride);
  hone_tensor there = {to->desc, NULL}, narrow = {from->desc, from->data};
  if (bytes <= 0) return HONE_OK;
  narrow.desc.dtype = to->desc.dtype;
  if (from->desc.dtype != to->desc.dtype) narrow.data = hn_aligned(HN_MEM_ALIGN, (size_t)held / 2);
  there.data = alike && !gaps ? narrow.data : hn_aligned(HN_MEM_ALIGN, (size_t)bytes);
  hone_status status = there.data && narrow.data
                           ? HONE_OK
                           : hn_fail_memory(error, (unsigned long long)bytes, "a tensor of the device");
  if (status == HONE_OK && narrow.data != from->data)
    for (int64_t i = 0; i < held / 4; i++) {
      const float x = ((const float *)from->data)[i];
      ((uint16_t *)narrow.data)[i] = to->desc.dtype == HONE_DTYPE_F16 ? hn_f32_to_f16(x) : hn_f32_to_bf16(x);
    }
  /* What lies between its elements may be another one's. */
  if (status == HONE_OK && gaps) {
    status = p->backend->copy(p->device, r->queue, there.data, to->data, (size_t)bytes, error);
    if (status == HONE_OK) status = p->backend->sync(p->device, r->queue, error);
  }
  if (status == HONE_OK) {
    if (there.data != narrow.data) hn_strided_copy(&narrow, &there);
    status = p->backend->copy(p->device, r->queue, to->data, there.data, (size_t)bytes, error);
  }
  if (status == HONE_OK) status = p->backend->sync(p->device, r->queue, error);
  if (there.data != narrow.data) hn_free(there.data);
  if (narrow.data != from->data) hn_free(narrow.data);
  return status;
}
