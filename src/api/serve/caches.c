/* The memory of keys and values. What else there is of generation does not touch its bytes. */
#include "api/serve/slots.h"
#include "base/error.h"

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
    const hone_tensor_desc one = hn_sizes_shape(s, in, 1, 1);
    const int64_t bytes = hone_desc_bytes(&one);
    if (bytes < 1 || bytes > (int64_t)1 << 40)
      return hn_fail(error, HONE_ERROR_USAGE, "a sequence's cache '%.80s' would be too large", in->name);
    c->slot = (size_t)bytes;
    c->row = (size_t)c->size * hone_dtype_size(c->dtype);
  }
  return HONE_OK;
}

hone_status hn_caches_create(hn_slots *s, hone_error *error) {
  uint64_t all = 0;
  bool good = true;
  for (uint32_t i = 0; i < s->n_caches && good; i++) {
    hn_cache *c = &s->cache[i];
    const size_t bytes = hn_round_up(c->slot * s->n, PAGE);
    all += bytes;
    c->data = hn_pages(PAGE, bytes);
    c->bytes = c->data ? bytes : 0;
    good = c->data != NULL;
  }
  return good ? HONE_OK : hn_fail_memory(error, all, "a decoder's caches");
}

void hn_caches_free(hn_slots *s) {
  for (uint32_t i = 0; i < s->n_caches; i++)
    if (s->cache[i].data) hn_pages_free(s->cache[i].data, s->cache[i].bytes);
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

void hn_caches_move(hn_slots *s, uint32_t from, uint32_t to, size_t tokens) {
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    const size_t head = c->row * s->context;
    for (size_t h = 0; h < (size_t)c->heads; h++)
      memcpy(c->data + to * c->slot + h * head, c->data + from * c->slot + h * head, tokens * c->row);
  }
}

void hn_caches_give(hn_slots *s, const hn_run_size *z, uint32_t first) {
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    s->in[c->in].data = c->data + first * c->slot;
    s->out[c->out] = s->in[c->in];
    if (hone_plan_output_over(z->plan, c->out) == (int32_t)c->in) s->bound[c->out] = &s->out[c->out];
  }
}

void hn_caches_keep(hn_slots *s, const hn_run_size *z, uint32_t first, const hn_part *part, uint32_t n) {
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    if (s->bound[c->out]) continue;
    const hone_tensor *made = hone_context_output(z->context, c->out);
    const size_t there = (size_t)made->desc.dim[2] * c->row, here = s->context * c->row;
    for (uint32_t k = 0; k < n; k++) {
      const size_t slot = (size_t)part[k].of->slot, at = part[k].of->fed * c->row;
      for (size_t h = 0; h < (size_t)c->heads; h++)
        memcpy(c->data + slot * c->slot + h * here + at,
               (const char *)made->data + ((slot - first) * (size_t)c->heads + h) * there + at,
               part[k].tokens * c->row);
    }
  }
}
