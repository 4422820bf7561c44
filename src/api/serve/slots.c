/* Caches whose rows are slots: each holds the keys and values of one sequence, of any length up to the
 * context. A run of one sequence reads some tokens of its prompt; a run of several reads one token of each,
 * for which they stand side by side from slot 0 on: the run's caches are then the beginning of the whole
 * ones, written where they lie. Rows between them that are free, or belong to a sequence that is not in this
 * run, get a token that nobody reads, behind all that counts.
 *
 * Where a run joins its tokens to the end of the cache, caches of all sequences of a run are as long:
 * s->room, which is no less than the longest of them has. Between what a sequence has and what is new lies a
 * hole of zeros, of which the mask tells; what is new is then taken to where the sequence ends. */
#include "api/serve/slots.h"
#include "api/api.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/half.h"
#include "model/ops/common/bulk.h"
#include "runtime/context.h"

#include <string.h>

/* ------------------------------------------------------------------ the beginning, and the end */

static hone_status make_room(hn_slots *s, hone_error *error) {
  const size_t ids = s->n > s->chunk ? s->n : s->chunk, n = s->n, keys = n * (s->context + s->chunk);
  s->at = hn_calloc(n, sizeof *s->at);
  s->tokens = hn_calloc(ids, sizeof *s->tokens);
  s->positions = hn_calloc(ids, sizeof *s->positions);
  s->real = hn_calloc(ids, sizeof *s->real);
  s->mask = hn_calloc(keys, sizeof *s->mask);
  s->lengths = hn_calloc(n, sizeof *s->lengths);
  s->fed = hn_calloc(n, sizeof *s->fed);
  s->ends = hn_calloc(n, sizeof *s->ends);
  s->written = hn_calloc(n, sizeof *s->written);
  s->masked = hn_calloc(n, sizeof *s->masked);
  s->logits = hn_calloc(n * (size_t)s->row, sizeof *s->logits);
  s->in = hn_calloc(s->d->n_in + 1, sizeof *s->in);
  s->given = hn_calloc(s->d->n_in + 1, sizeof *s->given);
  s->out = hn_calloc(s->d->n_out + 1, sizeof *s->out);
  s->bound = hn_calloc(s->d->n_out + 1, sizeof *s->bound);
  bool good = s->at && s->tokens && s->positions && s->real && s->mask && s->lengths && s->fed && s->ends &&
              s->written && s->masked && s->logits && s->in && s->given && s->out && s->bound;
  const size_t counts[HN_DECODER_ROLES] = {ids, keys, ids, n, 0, n, n, ids, 0};
  for (int r = 0; r < HN_DECODER_ROLES; r++) {
    s->typed[r] = hn_calloc(counts[r] + 1, sizeof(int32_t));
    good = good && s->typed[r];
  }
  return good ? hn_caches_create(s, error)
              : hn_fail_memory(error, keys * sizeof *s->mask, "a decoder's runs");
}

/* A model that runs do not take in these shapes is none to generate with; it may be for others. */
static hone_status unfit(hone_status status, hone_error *error) {
  if (status != HONE_ERROR_USAGE && status != HONE_ERROR_INPUT) return status;
  if (error) error->status = HONE_ERROR_UNSUPPORTED;
  return HONE_ERROR_UNSUPPORTED;
}

hone_status hn_slots_create(const hn_served *m, hn_decoder *d, const hone_served_options *o, hn_slots **out,
                            hone_error *error) {
  hn_slots *s = hn_calloc(1, sizeof *s);
  hone_binding *room = NULL;
  hone_status status = s ? HONE_OK : hn_fail_memory(error, sizeof *s, "a decoder");
  if (status == HONE_OK) {
    hn_device *device = NULL;
    s->m = m, s->d = d;
    s->engine = m->replica[0].engine;
    s->apart = hn_api_backend(s->engine, &device)->asynchronous;
  }
  if (status == HONE_OK) {
    s->options = m->plan_options;
    s->options.slices = 1; /* caches are written where they lie, of the whole batch */
    status = hn_sizes_context(s, o, error);
  }
  if (status == HONE_OK) status = hn_sizes_model(s, d, error);
  if (status == HONE_OK) status = hn_caches_find(s, error);
  if (status == HONE_OK) status = hn_sizes_sequences(s, o, error);
  if (status == HONE_OK) status = hone_weights_create(s->engine, s->model, &s->weights, error);
  if (status == HONE_OK && !(room = hn_calloc(d->n_in + 1, sizeof *room)))
    status = hn_fail_memory(error, d->n_in * sizeof *room, "a decoder");
  if (status == HONE_OK) status = unfit(hn_sizes_plans(s, room, error), error);
  if (status == HONE_OK) status = hn_sizes_contexts(s, error);
  if (status == HONE_OK) status = make_room(s, error);
  if (status == HONE_OK && d->form == HN_DECODER_JOINED) status = hn_hole_check(s, error);
  hn_free(room);
  if (status == HONE_OK)
    *out = s;
  else
    hn_slots_destroy(s);
  return status;
}

void hn_slots_destroy(hn_slots *s) {
  if (!s) return;
  hn_sizes_free(s);
  hn_caches_free(s);
  for (int r = 0; r < HN_DECODER_ROLES; r++) hn_free(s->typed[r]);
  hn_free(s->at);
  hn_free(s->tokens);
  hn_free(s->positions);
  hn_free(s->real);
  hn_free(s->mask);
  hn_free(s->lengths);
  hn_free(s->fed);
  hn_free(s->ends);
  hn_free(s->written);
  hn_free(s->masked);
  hn_free(s->logits);
  hn_free(s->in);
  hn_free(s->given);
  hn_free(s->out);
  hn_free(s->bound);
  hn_free(s);
}

uint32_t hn_slots_count(const hn_slots *s) { return s->n; }
uint64_t hn_slots_moved(const hn_slots *s) { return s->moved; }
uint64_t hn_slots_captured(const hn_slots *s) {
  uint64_t all = 0;
  for (size_t i = 0; i < s->size.len; i++) all += hn_context_captured(hn_api_context(s->size.ptr[i].context));
  return all;
}

uint32_t hn_slots_context(const hn_slots *s) { return s->context; }
int64_t hn_slots_vocabulary(const hn_slots *s) { return s->vocabulary; }
const float *hn_slots_logits(const hn_slots *s, uint32_t i) { return s->logits + i * (size_t)s->row; }

bool hn_slots_share(const hn_slots *s, const char **why) {
  *why = s->share ? "" : s->alone.text;
  return s->share;
}

/* ------------------------------------------------------------------ slots */

bool hn_slots_take(hn_slots *s, hn_sequence *q) {
  for (uint32_t i = 0; i < s->n; i++) {
    const bool early = HN_FAULT("generate_slot_taken_early") && s->at[i] && s->at[i]->fed > s->at[i]->prompt;
    if (s->at[i] && !early) continue;
    s->at[i] = q;
    q->slot = (int32_t)i;
    return true;
  }
  return false;
}

void hn_slots_give_back(hn_slots *s, hn_sequence *q) {
  if (q->slot >= 0 && s->at[q->slot] == q) s->at[q->slot] = NULL;
  q->slot = -1;
}

/* The sequence in slot `from` goes to slot `to`, which is free. */
static hone_status move(hn_slots *s, uint32_t from, uint32_t to, hone_error *error) {
  hn_sequence *q = s->at[from];
  const hone_status status = hn_caches_move(s, from, to, q->fed, error);
  if (status != HONE_OK) return status;
  s->at[to] = q;
  s->at[from] = NULL;
  q->slot = (int32_t)to;
  s->moved++;
  return HONE_OK;
}

/* Brings the parts together at the front, where that makes a smaller run. */
static hone_status gather(hn_slots *s, const hn_part *part, uint32_t n, uint32_t *batch, hone_error *error) {
  hone_status status = HONE_OK;
  uint32_t used = 0;
  for (uint32_t i = 0; i < s->n; i++) used += s->at[i] != NULL;
  while (status == HONE_OK) {
    uint32_t last = 0, hole = 0;
    for (uint32_t i = 0; i < n; i++)
      if ((uint32_t)part[i].of->slot > last) last = (uint32_t)part[i].of->slot;
    *batch = hn_sizes_batch(s, last + 1);
    if (*batch <= hn_sizes_batch(s, used) || HN_FAULT("generate_slot_taken_early")) break;
    while (hole < last && s->at[hole]) hole++;
    if (hole == last) break;
    status = move(s, last, hole, error);
  }
  return status;
}

/* Rows of the caches that a run needs. */
static uint32_t rows_needed(const hn_slots *s) {
  uint32_t most = 0;
  if (s->d->form != HN_DECODER_JOINED) return s->context;
  for (uint32_t i = 0; i < s->n; i++)
    if (s->at[i] && s->at[i]->fed > most) most = s->at[i]->fed;
  return most;
}

/* Tokens of nobody have a place, too, where runs write caches as they lie. */
static uint32_t rows_that_fit(const hn_slots *s) {
  return s->apart && s->room < s->context ? s->room : s->context;
}

/* What nearly fills a size goes in a run of it, whose last tokens are nobody's: they lie behind what is read,
 * and what comes next is written over them. On a device a run of nearly any number takes as long. */
uint32_t hn_slots_chunk(const hn_slots *s, const hn_sequence *q, uint32_t tokens) {
  const uint32_t rows = rows_needed(s);
  uint32_t chunk = 1, next = hn_sizes_next_chunk(s, 1);
  while (chunk < s->chunk && next <= tokens && hn_sizes_find(s, 1, next, rows))
    chunk = next, next = hn_sizes_next_chunk(s, chunk);
  const bool fills = s->pads && chunk < s->chunk && tokens > chunk && tokens < next &&
                     (s->apart || tokens >= chunk + chunk / 2) && q->fed + next <= rows_that_fit(s) &&
                     hn_sizes_find(s, 1, next, rows);
  return fills ? tokens : chunk;
}

static uint32_t size_of(const hn_slots *s, uint32_t tokens) {
  uint32_t size = 1;
  while (size < tokens && size < s->chunk) size = hn_sizes_next_chunk(s, size);
  return size;
}

/* ------------------------------------------------------------------ a run */

static void set_mask(hn_slots *s, uint32_t slot, uint32_t ones) {
  int64_t *row = s->mask + (size_t)slot * s->context;
  int32_t *also = (int32_t *)s->typed[HN_DECODER_MASK] + (size_t)slot * s->context;
  const uint32_t from = ones < s->masked[slot] ? ones : s->masked[slot],
                 to = ones < s->masked[slot] ? s->masked[slot] : ones;
  for (uint32_t i = from; i < to; i++) row[i] = also[i] = i < ones;
  s->masked[slot] = ones;
}

/* Joined: what the sequence has, a hole, and what is new. */
static void set_keys(hn_slots *s, const hn_run_size *z, uint32_t b, uint32_t fed, uint32_t tokens) {
  const size_t width = (size_t)z->past + z->tokens;
  int64_t *row = s->mask + b * width;
  int32_t *also = (int32_t *)s->typed[HN_DECODER_MASK] + b * width;
  if (HN_FAULT("generate_hole_is_seen")) fed = z->past;
  for (uint32_t i = 0; i < width; i++) row[i] = also[i] = i < fed || (i >= z->past && i < z->past + tokens);
}

/* Row b of the run, which is slot `slot`. */
static void set_row(hn_slots *s, const hn_run_size *z, uint32_t b, uint32_t slot, const hn_part *part) {
  const uint32_t tokens = z->tokens;
  const hn_sequence *q = part ? part->of : s->at[slot];
  uint32_t fed = q ? q->fed : 0;
  if (HN_FAULT("generate_nobody_writes_early") && !part && fed) fed--;
  for (uint32_t t = 0; t < tokens; t++) {
    s->tokens[b * tokens + t] = part && t < part->tokens ? q->ids[fed + t] : 0;
    s->positions[b * tokens + t] = fed + t;
    s->real[b * tokens + t] = part && t < part->tokens;
  }
  uint32_t length = fed + tokens;
  if (HN_FAULT("generate_slot_length") && part && tokens == 1 && length < s->context) length++;
  s->lengths[b] = length - 1;
  s->fed[b] = fed;
  s->ends[b] = length;
  if (s->d->form == HN_DECODER_JOINED)
    set_keys(s, z, b, fed, part ? part->tokens : tokens);
  else
    set_mask(s, slot, length);
}

static void *data_for(hn_slots *s, const hn_decoder_input *in, uint32_t first, int64_t count) {
  const size_t mask = s->d->form == HN_DECODER_JOINED ? 0 : (size_t)first * s->context;
  int64_t *wide[HN_DECODER_ROLES] = {s->tokens, s->mask + mask, s->positions, s->lengths, NULL,
                                     s->fed,    s->ends,        s->real,      NULL};
  if (in->dtype != HONE_DTYPE_I32) return wide[in->role];
  if (in->role == HN_DECODER_MASK) return (int32_t *)s->typed[in->role] + mask;
  int32_t *to = s->typed[in->role];
  for (int64_t i = 0; i < count; i++) to[i] = (int32_t)wide[in->role][i];
  return to;
}

static void set_inputs(hn_slots *s, const hn_run_size *z, uint32_t first) {
  const hn_decoder *d = s->d;
  for (uint32_t i = 0; i < d->n_in; i++) {
    s->in[i] = (hone_tensor){.desc = *hone_plan_input_desc(z->plan, i)};
    s->given[i] = &s->in[i];
    if (d->in[i].role != HN_DECODER_CACHE)
      s->in[i].data = data_for(s, &d->in[i], first, hone_desc_count(&s->in[i].desc));
  }
}

/* Of token `last` of row b. */
static void take_logits(hn_slots *s, const hn_run_size *z, uint32_t b, uint32_t last, float *to) {
  const hone_tensor *l = hone_context_output(z->context, s->d->logits);
  const int64_t rows = l->desc.rank == 3 ? l->desc.dim[1] : 1,
                from = (b * rows + (last < rows ? last : rows - 1)) * s->row;
  hn_load_f32(to, l, from, s->row);
}

static hone_status run(hn_slots *s, const hn_part *part, uint32_t n, uint32_t first, uint32_t batch,
                       uint32_t at, const hone_run_options *options, hone_error *error) {
  const uint32_t tokens = size_of(s, part[0].tokens);
  hn_run_size *z = hn_sizes_find(s, batch, tokens, rows_needed(s));
  if (!z) return hn_fail(error, HONE_ERROR_INTERNAL, "no plan for %u sequences and %u tokens", batch, tokens);
  for (uint32_t b = 0; b < batch; b++) {
    const hn_part *mine = NULL;
    for (uint32_t i = 0; i < n && !mine; i++)
      if ((uint32_t)part[i].of->slot == first + b) mine = &part[i];
    set_row(s, z, b, first + b, mine);
  }
  hone_status status = HONE_OK;
  if (s->d->form == HN_DECODER_JOINED) {
    hn_caches_stretch(s, z->past);
    status = hn_caches_clear(s, first, batch, error);
  }
  set_inputs(s, z, first);
  if (status == HONE_OK) status = hn_caches_give(s, z, first, error);
  if (status == HONE_OK) status = hone_context_run(z->context, s->given, options, error);
  if (status != HONE_OK) {
    hn_caches_doubt(s, part, n);
    return status;
  }
  hn_caches_keep(s, z, first, part, n);
  for (uint32_t i = 0; i < n; i++)
    take_logits(s, z, (uint32_t)part[i].of->slot - first, part[i].tokens - 1,
                s->logits + (at + i) * (size_t)s->row);
  return HONE_OK;
}

hone_status hn_slots_run(hn_slots *s, const hn_part *part, uint32_t n, const hone_run_options *options,
                         hone_error *error) {
  hone_status status = HONE_OK;
  if (n > 1 && s->share) {
    uint32_t batch = 0;
    status = gather(s, part, n, &batch, error);
    return status == HONE_OK ? run(s, part, n, 0, batch, 0, options, error) : status;
  }
  for (uint32_t i = 0; i < n && status == HONE_OK; i++)
    status = run(s, &part[i], 1, (uint32_t)part[i].of->slot, 1, i, options, error);
  return status;
}
