/* The memory of a chain: one block in which all its contexts compute, and blocks for what passes between
 * stages, which are used again as soon as the last reader is done. */
#include "api/api.h"
#include "api/chain/chain.h"
#include "base/error.h"
#include "runtime/context.h"

struct hn_chain_block {
  void *data;
  size_t size;
  const hn_passed *user; /* NULL: free */
};

enum { CLASS_LEAST = 4096, SPARE = 65536 };

/* Up to a quarter more, so that values that differ a little take each other's place. */
static size_t class_of(size_t bytes) {
  size_t step = CLASS_LEAST;
  while (step * 4 < bytes && step < SIZE_MAX / 8) step *= 2;
  return bytes > SIZE_MAX - step ? bytes : hn_round_up(bytes ? bytes : 1, step);
}

/* The smallest free block that is large enough and not much too large. */
static hn_chain_block *fitting(hone_chain *c, size_t size) {
  hn_chain_block *best = NULL;
  for (uint32_t i = 0; i < c->n_blocks; i++) {
    hn_chain_block *b = &c->block[i];
    if (b->user || b->size < size || b->size - size > size + SPARE) continue;
    if (!best || b->size < best->size) best = b;
  }
  return best;
}

/* A place for a new block: that of a free one, which nobody could use now, or another. */
static hn_chain_block *place(hone_chain *c) {
  hn_chain_block *old = NULL;
  for (uint32_t i = 0; i < c->n_blocks; i++) {
    hn_chain_block *b = &c->block[i];
    if (!b->user && (!old || b->size > old->size)) old = b;
  }
  if (old) {
    hn_free(old->data);
    *old = (hn_chain_block){0};
    return old;
  }
  if (c->n_blocks == c->cap_blocks) {
    const uint32_t cap = c->cap_blocks ? 2 * c->cap_blocks : 16;
    hn_chain_block *more = hn_realloc(c->block, cap * sizeof *more);
    if (!more) return NULL;
    c->block = more;
    c->cap_blocks = cap;
  }
  hn_chain_block *b = &c->block[c->n_blocks++];
  *b = (hn_chain_block){0};
  return b;
}

void *hn_chain_take(hone_chain *c, const hn_passed *value, size_t bytes) {
  const size_t size = class_of(bytes);
  hn_chain_block *b = fitting(c, size);
  if (!b) {
    b = place(c);
    if (!b || !(b->data = hn_aligned(HN_MEM_ALIGN, size))) return NULL;
    b->size = size;
  }
  b->user = value;
  c->links_apart += bytes;
  return b->data;
}

void hn_chain_give_back(hone_chain *c, const hn_passed *value) {
  for (uint32_t i = 0; i < c->n_blocks; i++)
    if (c->block[i].user == value) c->block[i].user = NULL;
}

void hn_chain_give_all(hone_chain *c) {
  for (uint32_t i = 0; i < c->n_blocks; i++) c->block[i].user = NULL;
  c->links_apart = 0;
}

uint64_t hn_chain_link_bytes(const hone_chain *c) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < c->n_blocks; i++) sum += c->block[i].size;
  return sum;
}

static hone_status grow(hone_chain *c, const hn_plan *p, uint64_t need, hone_error *error) {
  hn_device *device;
  const hn_backend *backend = hn_api_backend(c->engine, &device);
  void *block = backend->alloc(device, need);
  if (!block) {
    const hone_status status =
        hn_plan_no_memory(p, need, "the activations of a chain", 1u << HN_PLACE_ARENA, error);
    hn_error_hint(error, "use a smaller batch or smaller pictures");
    return status;
  }
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < c->n_stages && status == HONE_OK; i++)
    if (c->stage[i].model) status = hn_chain_model_moved(c->stage[i].model, block, error);
  if (status != HONE_OK) { /* back, so that none is left in what is freed */
    hone_error other = {0};
    for (uint32_t i = 0; i < c->n_stages; i++)
      if (c->stage[i].model) hn_chain_model_moved(c->stage[i].model, c->shared, &other);
    backend->free(device, block);
    return status;
  }
  if (c->shared) backend->free(device, c->shared);
  c->shared = block;
  c->shared_bytes = need;
  return HONE_OK;
}

hone_status hn_chain_context(hone_chain *c, hone_plan *plan, hone_context **out, hone_error *error) {
  const hn_plan *p = hn_api_plan(plan);
  const uint64_t need = hn_context_needs(p);
  hone_status status = need > c->shared_bytes ? grow(c, p, need, error) : HONE_OK;
  return status == HONE_OK ? hn_api_context_in(plan, c->shared, out, error) : status;
}

void hn_chain_memory_end(hone_chain *c) {
  hn_device *device;
  const hn_backend *backend = hn_api_backend(c->engine, &device);
  if (c->shared) backend->free(device, c->shared);
  for (uint32_t i = 0; i < c->n_blocks; i++) hn_free(c->block[i].data);
  hn_free(c->block);
  c->block = NULL;
  c->shared = NULL;
  c->n_blocks = c->cap_blocks = 0;
}
