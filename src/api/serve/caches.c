/* The memory of keys and values: the host's, or the device's where that has its own. What else there is of
 * generation does not touch its bytes. */
#include "api/serve/slots.h"
#include "base/error.h"
#include "base/fault.h"

#include <hone/device_memory.h>
#include <string.h>

enum { PAGE = 4096 };

hone_status hn_caches_find(hn_slots *s, hone_error *error) {
  const hn_decoder *d = s->d;
  s->cache = hn_calloc(d->n_in + 1, sizeof *s->cache);
  if (!s->cache) return hn_fail_memory(error, d->n_in * sizeof *s->cache, "a decoder's caches");
  for (uint32_t i = 0; i < d->n_in; i++) {
    const hn_decoder_input *in = &d->in[i];
    if (in->role != HN_DECODER_CACHE) continue;
    hn_cache *c = &s->cache[s->n_caches++];
    *c = (hn_cache){.in = i, .out = in->output, .dtype = in->dtype, .heads = in->dim[1], .size = in->dim[3]};
    const hone_tensor_desc one = hn_sizes_shape(s, in, 1, 1, s->apart ? s->past[0] : s->context);
    const int64_t bytes = hone_desc_bytes(&one);
    if (bytes < 1 || bytes > (int64_t)1 << 40)
      return hn_fail(error, HONE_ERROR_USAGE, "a sequence's cache '%.80s' would be too large", in->name);
    c->slot = (size_t)bytes;
    if (s->apart && c->slot % 256 != 0) {
      hn_fail(
          error, HONE_ERROR_UNSUPPORTED,
          "a sequence's cache '%.80s' of %u tokens has %zu bytes, no multiple of 256, which a device reads",
          in->name, s->context, c->slot);
      hn_error_hint(error, "take a --context that is a multiple of 64");
      return HONE_ERROR_UNSUPPORTED;
    }
    c->row = (size_t)c->size * hone_dtype_size(c->dtype);
  }
  return HONE_OK;
}

/* A copy on the device is the only way to its zeros. */
static hone_status make_zeros(hn_slots *s, hone_error *error) {
  size_t most = 0;
  for (uint32_t i = 0; i < s->n_caches; i++)
    if (s->cache[i].slot > most) most = s->cache[i].slot;
  void *here = hn_calloc(most + 1, 1);
  if (!here) return hn_fail_memory(error, most, "a decoder's caches");
  hone_status status = hone_memory_alloc(s->engine, HONE_MEMORY_DEVICE, most, &s->zeros, error);
  if (status == HONE_OK) status = hone_memory_copy(s->engine, s->zeros, here, most, error);
  hn_free(here);
  for (uint32_t k = 0; k < s->n; k++) s->written[k] = s->room; /* the memory holds anything */
  return status;
}

hone_status hn_caches_create(hn_slots *s, hone_error *error) {
  uint64_t all = 0;
  bool good = true;
  for (uint32_t i = 0; i < s->n_caches && good; i++) {
    hn_cache *c = &s->cache[i];
    const size_t bytes = hn_round_up(c->slot * s->n, PAGE);
    all += bytes;
    if (s->apart) {
      void *data = NULL;
      const hone_status status = hone_memory_alloc(s->engine, HONE_MEMORY_DEVICE, bytes, &data, error);
      if (status != HONE_OK) return status;
      c->data = data;
    } else
      c->data = hn_pages(PAGE, bytes);
    c->bytes = c->data ? bytes : 0;
    good = c->data != NULL;
  }
  if (!good) return hn_fail_memory(error, all, "a decoder's caches");
  return s->apart && s->d->form == HN_DECODER_JOINED ? make_zeros(s, error) : HONE_OK;
}

void hn_caches_free(hn_slots *s) {
  for (uint32_t i = 0; i < s->n_caches; i++) {
    if (!s->cache[i].data) continue;
    if (s->apart)
      hone_memory_free(s->engine, s->cache[i].data);
    else
      hn_pages_free(s->cache[i].data, s->cache[i].bytes);
  }
  if (s->zeros) hone_memory_free(s->engine, s->zeros);
  hn_free(s->cache);
}

uint64_t hn_caches_slot_bytes(const hn_slots *s) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < s->n_caches; i++) all += s->cache[i].slot;
  return all;
}

uint64_t hn_slots_bytes(const hn_slots *s) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < s->n_caches; i++) all += s->cache[i].bytes;
  return all;
}

/* Bytes of a slot as they lie now. */
static size_t slot_of(const hn_slots *s, const hn_cache *c) { return (size_t)c->heads * s->room * c->row; }

hone_status hn_caches_move(hn_slots *s, uint32_t from, uint32_t to, size_t tokens, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_caches && status == HONE_OK; i++) {
    const hn_cache *c = &s->cache[i];
    const size_t head = c->row * s->room, slot = slot_of(s, c);
    if (s->apart) { /* a call of the device costs more than what it copies too much */
      status = hone_memory_copy(s->engine, c->data + to * slot, c->data + from * slot, slot, error);
      continue;
    }
    for (size_t h = 0; h < (size_t)c->heads; h++)
      memcpy(c->data + to * slot + h * head, c->data + from * slot + h * head, tokens * c->row);
  }
  const uint32_t rows = s->apart ? s->written[from] : (uint32_t)tokens;
  if (s->written[to] < rows || (s->apart && status == HONE_OK)) s->written[to] = rows;
  return status;
}

/* Heads go to their new places one after the other, so that none is written over before it has gone. */
void hn_caches_stretch(hn_slots *s, uint32_t room) {
  const bool grows = room > s->room;
  if (room == s->room) return;
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    const size_t heads = (size_t)c->heads, all = s->n * heads;
    for (size_t k = 0; k < all; k++) {
      const size_t at = grows ? all - 1 - k : k;
      const hn_sequence *q = s->at[at / heads];
      const size_t has = (q ? q->fed : 0) * c->row;
      char *to = c->data + at * room * c->row;
      memmove(to, c->data + at * s->room * c->row, has);
      memset(to + has, 0, room * c->row - has);
    }
  }
  for (uint32_t k = 0; k < s->n; k++) s->written[k] = s->at[k] ? s->at[k]->fed : 0;
  s->room = room;
}

/* On a device a run writes nothing but zeros behind what a sequence has: a slot is cleared for who begins,
 * whole, and behind what is there after a run that failed. */
static hone_status clear_apart(hn_slots *s, uint32_t k, uint32_t has, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    char *slot = c->data + k * slot_of(s, c);
    const size_t heads = has ? (size_t)c->heads : 1, head = slot_of(s, c) / heads, from = has * c->row,
                 bytes = (has ? s->written[k] * c->row : head) - from;
    for (size_t h = 0; h < heads && status == HONE_OK; h++)
      status = hone_memory_copy(s->engine, slot + h * head + from, s->zeros, bytes, error);
  }
  if (status == HONE_OK) s->written[k] = has;
  return status;
}

void hn_caches_doubt(hn_slots *s, const hn_part *part, uint32_t n) {
  for (uint32_t i = 0; i < n && s->apart; i++) s->written[part[i].of->slot] = s->room;
}

hone_status hn_caches_clear(hn_slots *s, uint32_t first, uint32_t n, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t k = first; k < first + n && status == HONE_OK; k++) {
    const uint32_t has = s->at[k] ? s->at[k]->fed : 0;
    if (s->written[k] <= has || HN_FAULT("generate_hole_is_left")) continue;
    if (s->apart) {
      status = clear_apart(s, k, has, error);
      continue;
    }
    for (uint32_t i = 0; i < s->n_caches; i++) {
      const hn_cache *c = &s->cache[i];
      for (size_t h = 0; h < (size_t)c->heads; h++)
        memset(c->data + k * slot_of(s, c) + (h * s->room + has) * c->row, 0, (s->written[k] - has) * c->row);
    }
    s->written[k] = has;
  }
  return status;
}

/* Captured work knows addresses: what is bound stays so until a run begins at another slot. */
static hone_status bind_apart(hn_slots *s, hn_run_size *z, uint32_t first, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_caches && status == HONE_OK; i++) {
    const hn_cache *c = &s->cache[i];
    s->given[c->in] = NULL;
    if (z->bound == first) continue;
    s->in[c->in].data = c->data + first * slot_of(s, c);
    s->in[c->in].desc.device = 1;
    s->out[c->out] = s->in[c->in];
    s->bound[c->out] = &s->out[c->out];
    status = hone_context_bind_input(z->context, c->in, &s->in[c->in], error);
  }
  if (status == HONE_OK && z->bound != first) status = hone_context_bind_outputs(z->context, s->bound, error);
  z->bound = status == HONE_OK ? (int64_t)first : -1;
  return status;
}

hone_status hn_caches_give(hn_slots *s, hn_run_size *z, uint32_t first, hone_error *error) {
  if (s->apart) return bind_apart(s, z, first, error);
  memset((void *)s->bound, 0, s->d->n_out * sizeof *s->bound);
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    s->in[c->in].data = c->data + first * slot_of(s, c);
    s->out[c->out] = s->in[c->in];
    if (hone_plan_output_over(z->plan, c->out) == (int32_t)c->in) s->bound[c->out] = &s->out[c->out];
  }
  return hone_context_bind_outputs(z->context, s->bound, error);
}

void hn_caches_keep(hn_slots *s, const hn_run_size *z, uint32_t first, const hn_part *part, uint32_t n) {
  const bool joined = s->d->form == HN_DECODER_JOINED;
  uint32_t most = s->room;
  for (uint32_t k = 0; k < n && joined; k++)
    if (part[k].of->fed + part[k].tokens > most) most = part[k].of->fed + part[k].tokens;
  hn_caches_stretch(s, hn_sizes_past(s, most));
  for (uint32_t i = 0; i < s->n_caches && !s->apart; i++) {
    const hn_cache *c = &s->cache[i];
    if (s->bound[c->out]) continue;
    const hone_tensor *made = hone_context_output(z->context, c->out);
    const size_t there = (size_t)made->desc.dim[2] * c->row, here = s->room * c->row;
    for (uint32_t k = 0; k < n; k++) {
      const size_t slot = (size_t)part[k].of->slot, at = part[k].of->fed * c->row,
                   from = joined && !HN_FAULT("generate_joined_is_elsewhere") ? z->past * c->row : at;
      for (size_t h = 0; h < (size_t)c->heads; h++)
        memcpy(c->data + slot * slot_of(s, c) + h * here + at,
               (const char *)made->data + ((slot - first) * (size_t)c->heads + h) * there + from,
               part[k].tokens * c->row);
    }
  }
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t has = part[k].of->fed + part[k].tokens;
    uint32_t *written = &s->written[part[k].of->slot];
    if (*written < has) *written = has;
  }
}
