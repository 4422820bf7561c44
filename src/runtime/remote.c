#include "runtime/remote.h"

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"

#include <string.h>

#define PIECE ((uint64_t)4 << 20) /* bytes that are gathered while the piece before crosses */

hone_status hn_remote_open(const hn_plan *p, hn_remote *r, hone_error *error) {
  const hn_backend *b = p->backend;
  uint64_t returned = 0;
  hone_status status = b->queue_open(p->device, &r->queue, error);
  if (status != HONE_OK) return status;
  r->returned_at = hn_calloc(p->n_outputs + 1, sizeof *r->returned_at);
  if (!r->returned_at) return hn_fail_memory(error, p->n_outputs * sizeof *r->returned_at, "a context");
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const hn_slot *s = &p->slots.ptr[p->output_slot[i]];
    r->returned_at[i] = s->desc.device ? returned : UINT64_MAX;
    if (s->desc.device) returned += hn_round_up(s->bytes, 256);
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
      {&r->gathered, p->staged_bytes, true, HONE_MEMORY_FOR_IO, 1u << HN_PLACE_STAGED,
       "the model's inputs (pinned)"},
      {&r->host, p->host_bytes, true, HONE_MEMORY_FOR_ACTIVATIONS, 0,
       "what steps on the host read and write (pinned)"},
      {&r->returned, returned, true, HONE_MEMORY_FOR_IO, 0, "the model's outputs (pinned)"}};
  for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
    if (!block[i].bytes) continue;
    *block[i].at = hn_device_alloc(b, p->device, &p->tenant, block[i].host, block[i].purpose, block[i].bytes);
    if (!*block[i].at) return hn_plan_no_memory(p, block[i].bytes, block[i].what, block[i].places, error);
  }
  for (int i = 0; i < HN_MARKS; i++)
    if ((status = b->event_open(p->device, &r->mark[i], error)) != HONE_OK) return status;
  return HONE_OK;
}

void hn_remote_close(const hn_plan *p, hn_remote *r) {
  const hn_backend *b = p->backend;
  for (int i = 0; i < HN_MARKS; i++)
    if (r->mark[i]) b->event_close(p->device, r->mark[i]);
  if (r->staged) b->free(p->device, r->staged);
  if (r->gathered) b->free_host(p->device, r->gathered);
  if (r->host) b->free_host(p->device, r->host);
  if (r->returned) b->free_host(p->device, r->returned);
  if (r->queue) b->queue_close(p->device, r->queue);
  hn_free(r->returned_at);
}

typedef struct gathering {
  const hn_plan *p;
  const hone_tensor *const *in;
  char *to;
  uint64_t from, until; /* bytes of the block */
} gathering;

/* The part of every input that lies in [from, until) of the block. */
static void gather(const gathering *g) {
  for (size_t i = 0; i < g->p->slots.len; i++) {
    const hn_slot *s = &g->p->slots.ptr[i];
    if (s->place != HN_PLACE_STAGED || s->alias != HN_NO_SLOT) continue;
    uint64_t a = s->offset > g->from ? s->offset : g->from,
             e = s->offset + s->bytes < g->until ? s->offset + s->bytes : g->until;
    if (a < e) memcpy(g->to + a, (const char *)g->in[s->input]->data + (a - s->offset), e - a);
  }
}

/* A piece of a large block in parts, one a thread. */
static void gather_part(void *arg, int64_t task, uint32_t thread) {
  const gathering *g = arg;
  (void)thread;
  gathering part = *g;
  part.from = g->from + (uint64_t)task * (PIECE / 4);
  part.until = part.from + PIECE / 4 < g->until ? part.from + PIECE / 4 : g->until;
  if (part.from < part.until) gather(&part);
}

hone_status hn_remote_give(const hn_plan *p, hn_remote *r, const hone_tensor *const *in, hone_error *error) {
  const hn_backend *b = p->backend;
  hone_status status = b->event_record(p->device, r->queue, r->mark[HN_MARK_BEGIN], error);
  for (size_t i = 0; p->separate && status == HONE_OK && i < p->slots.len;
       i++) { /* as if nothing was merged */
    const hn_slot *s = &p->slots.ptr[i];
    if (s->place != HN_PLACE_STAGED || s->alias != HN_NO_SLOT) continue;
    gather(&(gathering){p, in, r->gathered, s->offset, s->offset + s->bytes});
    status = b->copy(p->device, r->queue, (char *)r->staged + s->offset, (char *)r->gathered + s->offset,
                     s->bytes, error);
  }
  for (uint64_t at = 0; !p->separate && status == HONE_OK && at < p->staged_bytes; at += PIECE) {
    const uint64_t n = p->staged_bytes - at < PIECE ? p->staged_bytes - at : PIECE;
    gathering g = {p, in, r->gathered, at, at + n};
    if (p->staged_bytes > 2 * PIECE)
      b->parallel(p->device, 4, gather_part, &g);
    else
      gather(&g);
    status = b->copy(p->device, r->queue, (char *)r->staged + at, (char *)r->gathered + at, n, error);
  }
  return status == HONE_OK ? b->event_record(p->device, r->queue, r->mark[HN_MARK_GIVEN], error) : status;
}

hone_status hn_remote_take(const hn_plan *p, hn_remote *r, const hone_tensor *tensor, hone_error *error) {
  const hn_backend *b = p->backend;
  hone_status status = b->event_record(p->device, r->queue, r->mark[HN_MARK_DONE], error);
  for (uint32_t i = 0; i < p->n_outputs && status == HONE_OK; i++) {
    const hn_slot *s = &p->slots.ptr[p->output_slot[i]];
    if (r->returned_at[i] == UINT64_MAX || !s->bytes) continue;
    status = b->copy(p->device, r->queue, (char *)r->returned + r->returned_at[i],
                     tensor[p->output_slot[i]].data, s->bytes, error);
  }
  return status == HONE_OK ? b->event_record(p->device, r->queue, r->mark[HN_MARK_TAKEN], error) : status;
}

hone_status hn_remote_times(const hn_plan *p, const hn_remote *r, double *h2d, double *infer, double *d2h,
                            hone_error *error) {
  double *out[] = {h2d, infer, d2h};
  hone_status status = HONE_OK;
  for (int i = 0; i < 3 && status == HONE_OK; i++)
    status = p->backend->event_seconds(p->device, r->mark[i], r->mark[i + 1], out[i], error);
  return status;
}

hone_status hn_remote_fetch(const hn_plan *p, hn_remote *r, const hone_tensor *from, hone_dtype seen,
                            hone_tensor *to, hone_error *error) {
  const int64_t bytes = hone_desc_bytes(&from->desc);
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
  const int64_t bytes = hone_desc_bytes(&to->desc);
  uint16_t *narrow = NULL;
  if (bytes <= 0) return HONE_OK;
  if (from->desc.dtype != to->desc.dtype) {
    narrow = hn_aligned(HN_MEM_ALIGN, (size_t)bytes);
    if (!narrow) return hn_fail_memory(error, (unsigned long long)bytes, "a tensor of the device");
    for (int64_t i = 0; i < bytes / 2; i++) {
      const float x = ((const float *)from->data)[i];
      narrow[i] = to->desc.dtype == HONE_DTYPE_F16 ? hn_f32_to_f16(x) : hn_f32_to_bf16(x);
    }
  }
  hone_status status =
      p->backend->copy(p->device, r->queue, to->data, narrow ? narrow : from->data, (size_t)bytes, error);
  if (status == HONE_OK) status = p->backend->sync(p->device, r->queue, error);
  hn_free(narrow);
  return status;
}
