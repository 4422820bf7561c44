/* Packed weights that plans of one model have in common.
 *
 * A plan packs into one block of memory. Made with a store, it leaves there what of the block says nothing of
 * shapes (hone_tactic_desc.shared), under a key of all that it follows from; a later plan that comes to
 * the same key reads it where it is. A block lives as long as a plan that made it or reads in it, so plans of
 * one store may be destroyed in any order, and before or after who made the store let go of it.
 *
 * Keys name weights of the model's file by their address: who keeps the store keeps the model. */
#ifndef HN_OPTIMIZE_PLAN_PACKED_H
#define HN_OPTIMIZE_PLAN_PACKED_H

#include "optimize/step/step.h"

typedef struct hn_packed_key {
  uint64_t part[2];
} hn_packed_key;

/* Bytes of a block that other plans may read, and what was learnt of the weights when they were packed. */
typedef struct hn_packed_piece {
  hn_packed_key key;
  const void *at;
  size_t bytes;
  double denormal_pct, sparse_pct;
} hn_packed_piece;

/* Counted; begins with 1. NULL when out of memory. Thread-safe, as is all below. */
hn_packed_store *hn_packed_store_create(const hn_backend *backend, hn_device *device);
hn_packed_store *hn_packed_store_retain(hn_packed_store *store); /* NULL is fine */
void hn_packed_store_drop(hn_packed_store *store);               /* NULL is fine */
/* Bytes of all its blocks, and of how many there are. */
uint64_t hn_packed_store_bytes(hn_packed_store *store, uint32_t *blocks);

/* What step s shares, where it shares anything: false when memory is short. by_slot: to be compared with keys
 * of this plan alone, which name weights by their slots. */
bool hn_packed_key_of(const hn_plan *plan, const hn_step *s, bool by_slot, hn_packed_key *key);
/* True: *out is what the key names, and its block is held, once for each plan that asks: *held is the plan's
 * list of blocks. False: nobody packed it yet, or memory is short. */
bool hn_packed_find(hn_packed_store *store, const hn_packed_key *key, size_t bytes, hn_packed_blocks *held,
                    hn_packed_piece *out);
/* The plan's own block, which the store owns from now on, also when it fails: false, out of memory. */
bool hn_packed_leave(hn_packed_store *store, void *memory, size_t bytes, const hn_packed_piece *piece,
                     uint32_t n, hn_packed_blocks *held);
void hn_packed_let_go(hn_packed_blocks *held);

#endif
