/* What the files of slots share. sizes.c: how long and how many sequences are, and the plans of all sizes of
 * a run; adapt.c: the model as a device runs it; caches.c: the memory of keys and values, whose bytes nobody
 * else touches; slots.c: who has which slot, and the run; hole.c: may there be a hole between the keys of a
 * sequence and what is joined to them?
 */
#ifndef HN_API_SERVE_SLOTS_H
#define HN_API_SERVE_SLOTS_H

#include "api/serve/generate.h"
#include "base/vec.h"

enum { HN_MOST_PASTS = 3 };

/* Keys or values of all slots: [slots][heads][room][size]. */
typedef struct hn_cache {
  uint32_t in, out; /* of the plan */
  hone_dtype dtype;
  int64_t heads, size;
  size_t row, slot; /* bytes of a token in a head, and of a slot with room for the context */
  char *data;
  size_t bytes;
} hn_cache;

/* A plan for a number of sequences and of tokens of each. */
typedef struct hn_run_size {
  uint32_t batch, tokens;
  uint32_t past; /* rows of the caches that come */
  hone_plan *plan;
  hone_context *context;
  int64_t bound; /* the slot from which on the caches are bound to it on a device, or -1 */
} hn_run_size;

struct hn_slots {
  const hn_served *m;
  hone_engine *engine;
  bool apart;      /* it computes in memory of its own, where the caches lie, too */
  hn_model *model; /* that is planned */
  const hn_decoder *d;
  hone_plan_options options;
  hone_weights *weights;
  uint32_t n, context, chunk;
  uint32_t past[HN_MOST_PASTS], n_pasts; /* rows that caches of a run may have, the fewest first */
  uint32_t room;                         /* that they have now, each slot behind the other */
  bool share, each_row;                  /* logits are those of each token, not of the last alone */
  bool pads;                             /* behind the tokens of a run may be others, of nobody */
  hone_reason alone;
  hn_cache *cache;
  uint32_t n_caches;
  hn_sequence **at; /* [n] NULL: free */
  HN_VEC(hn_run_size) size;
  void *block; /* that all runs compute in */
  size_t block_bytes;
  int64_t vocabulary; /* ids that may come */
  int64_t row;        /* logits of a token */

  hone_tensor *in, *out; /* [inputs], [outputs] of a run */
  const hone_tensor **given, **bound;
  int64_t *tokens, *positions, *real; /* [max(n, chunk)] */
  int64_t *mask;                      /* [n][context]; joined: rows of a run, one behind the other */
  uint32_t *masked;                   /* [n] ones in that row */
  int64_t *lengths, *fed, *ends;      /* [n] */
  uint32_t *written; /* [n] rows of the slot's caches that may be other than zeros; joined alone */
  void *zeros;       /* joined, on a device: as many as a slot of the largest cache has bytes */
  uint64_t moved;    /* sequences, from slot to slot */
  void *typed[HN_DECODER_ROLES]; /* what of those the plan reads as i32 */
  float *logits;                 /* [n][row] */
};

/* ---- sizes.c. In this order: the context; the model that is planned; how many sequences (with the caches'
 * sizes known); plans; and what they run in. */
hone_status hn_sizes_context(hn_slots *s, const hone_served_options *o, hone_error *error);
hone_status hn_sizes_model(hn_slots *s, hn_decoder *d, hone_error *error);
hone_status hn_sizes_sequences(hn_slots *s, const hone_served_options *o, hone_error *error);
/* room: [inputs]. May make the sequences fewer. */
hone_status hn_sizes_plans(hn_slots *s, hone_binding *room, hone_error *error);
hone_status hn_sizes_contexts(hn_slots *s, hone_error *error);
void hn_sizes_free(hn_slots *s);
/* The shape of an input for so many sequences, tokens, and rows of the caches. */
hone_tensor_desc hn_sizes_shape(const hn_slots *s, const hn_decoder_input *in, int64_t batch, int64_t tokens,
                                int64_t past);
/* Inputs are fixed for that: room [inputs]. The number of bindings. */
uint32_t hn_sizes_bindings(const hn_slots *s, int64_t batch, int64_t tokens, int64_t past,
                           hone_binding *room);
/* A plan of the model that is served, with the weights of all. */
hone_status hn_sizes_plan(const hn_slots *s, int64_t batch, int64_t tokens, int64_t past, hone_plan **out,
                          hone_error *error);
void hn_sizes_drop(hn_slots *s, size_t i); /* the i-th plan */
/* Tokens of a run of one sequence: 1, and what comes next. */
uint32_t hn_sizes_next_chunk(const hn_slots *s, uint32_t tokens);
/* The least number of sequences that a run has and that holds so many. */
uint32_t hn_sizes_batch(const hn_slots *s, uint32_t rows);
/* The fewest rows of caches in a run that hold so many. */
uint32_t hn_sizes_past(const hn_slots *s, uint32_t rows);
/* That with the fewest rows of caches that hold `past`. NULL: none. */
hn_run_size *hn_sizes_find(const hn_slots *s, uint32_t batch, uint32_t tokens, uint32_t past);

/* ---- adapt.c, for devices with memory of their own */
/* The model that is planned becomes one whose caches are written where they lie. HONE_ERROR_UNSUPPORTED. */
hone_status hn_adapt(hn_slots *s, hn_decoder *d, hone_error *error);
/* Input `at` is none any more. */
void hn_adapt_drop(hn_slots *s, hn_decoder *d, uint32_t at);

/* ---- caches.c */
/* Which there are, and how large one slot of each is. */
hone_status hn_caches_find(hn_slots *s, hone_error *error);
hone_status hn_caches_create(hn_slots *s, hone_error *error); /* memory for s->n slots */
void hn_caches_free(hn_slots *s);
uint64_t hn_caches_slot_bytes(const hn_slots *s); /* of one slot in all caches */
/* The first `tokens` tokens of slot `from` go to slot `to`. */
hone_status hn_caches_move(hn_slots *s, uint32_t from, uint32_t to, size_t tokens, hone_error *error);
/* A run of these has failed: on a device there may be anything behind what they have. */
void hn_caches_doubt(hn_slots *s, const hn_part *part, uint32_t n);
/* From now on slots have room for so many rows. What sequences have stays. */
void hn_caches_stretch(hn_slots *s, uint32_t room);
/* Behind what sequences have there is nothing but zeros, in `n` slots from `first` on. */
hone_status hn_caches_clear(hn_slots *s, uint32_t first, uint32_t n, hone_error *error);
/* The caches from slot `first` on are inputs of the next run, and outputs where the plan can write them
 * there. s->in has the run's shapes. */
hone_status hn_caches_give(hn_slots *s, hn_run_size *z, uint32_t first, hone_error *error);
/* What of them the run made elsewhere goes where it belongs: the new tokens of each part. */
void hn_caches_keep(hn_slots *s, const hn_run_size *z, uint32_t first, const hn_part *part, uint32_t n);

/* ---- hole.c, for joined caches: plans that give other numbers with a hole between past and new tokens than
 * without go. HONE_ERROR_UNSUPPORTED: so do those for one token. */
hone_status hn_hole_check(hn_slots *s, hone_error *error);

#endif
