/* How long sequences may be, how many there are, and the plans for all sizes of a run. */
#include "api/api.h"
#include "api/serve/slots.h"
#include "api/shapes/proofs.h"
#include "base/error.h"
#include "model/bind.h"
#include "model/operators.h"
#include "runtime/context.h"

#include <hone/device_memory.h>
#include <string.h>

enum {
  SEQUENCES = 8,
  MOST_SEQUENCES = 4096,
  CONTEXT = 2048,
  MOST_CONTEXT = 1 << 24,
  CHUNK = 128,
  FEWEST = 4,         /* rows */
  MOST_CAPTURES = 64, /* of a size: each takes some memory of the device */
  PAGE = 4096
};

/* ------------------------------------------------------------------ sizes */

static const hn_decoder_input *input_for(const hn_decoder *d, hn_decoder_role role) {
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].role == role) return &d->in[i];
  return NULL;
}

static bool joined(const hn_slots *s) { return s->d->form == HN_DECODER_JOINED; }

hone_tensor_desc hn_sizes_shape(const hn_slots *s, const hn_decoder_input *in, int64_t batch, int64_t tokens,
                                int64_t past) {
  const int64_t by_tokens[2] = {batch, tokens}, keys[2] = {batch, joined(s) ? past + tokens : past},
                rows[4] = {batch, in->dim[1], past, in->dim[3]};
  int64_t few[HONE_MAX_RANK];
  for (int32_t k = 0; k < HONE_MAX_RANK; k++) few[k] = 1;
  if (in->role != HN_DECODER_TOTAL) few[0] = batch;
  if (in->role == HN_DECODER_REAL) few[2] = tokens;
  const int64_t *dim = in->role == HN_DECODER_CACHE                                        ? rows
                       : in->role == HN_DECODER_MASK                                       ? keys
                       : in->role == HN_DECODER_TOKENS || in->role == HN_DECODER_POSITIONS ? by_tokens
                                                                                           : few;
  return hone_desc(in->dtype, in->rank, dim);
}

static bool fixed(const hn_decoder_input *in, int32_t k) { return in && k < in->rank && in->dim[k] >= 0; }

/* Where each slot begins as a device wants it. */
static bool aligned(const hn_slots *s, uint32_t rows) {
  for (uint32_t i = 0; i < s->d->n_in; i++)
    if (s->d->in[i].role == HN_DECODER_CACHE) {
      const hone_tensor_desc one = hn_sizes_shape(s, &s->d->in[i], 1, 1, rows);
      if (hone_desc_bytes(&one) % 256 != 0) return false;
    }
  return true;
}

/* Joined caches cost what the room does, and not what sequences have: they may have less. What is generated
 * last is never read. In a device's memory they stay where they are. */
static void choose_pasts(hn_slots *s) {
  if (!joined(s)) s->past[s->n_pasts++] = s->context;
  if (joined(s) && s->apart) {
    uint32_t rows = s->context - 1;
    while (rows < s->context + 256 && !aligned(s, rows)) rows++;
    s->past[s->n_pasts++] = rows;
  }
  for (uint32_t i = 0; i < HN_MOST_PASTS && joined(s) && !s->apart; i++) {
    const uint32_t less = 2 * (HN_MOST_PASTS - 1 - i), rows = less ? s->context >> less : s->context - 1;
    if (rows >= FEWEST || !less) s->past[s->n_pasts++] = rows;
  }
  s->room = s->past[0];
}

uint32_t hn_sizes_past(const hn_slots *s, uint32_t rows) {
  uint32_t i = 0;
  while (i + 1 < s->n_pasts && s->past[i] < rows) i++;
  return s->past[i];
}

/* How long sequences may be, as the model and the caller want it. */
hone_status hn_sizes_context(hn_slots *s, const hone_served_options *o, hone_error *error) {
  const hn_decoder *d = s->d;
  int64_t most = d->positions > 0 && d->positions < MOST_CONTEXT ? d->positions : MOST_CONTEXT, must = -1;
  for (uint32_t i = 0; i < d->n_in; i++) {
    const int32_t axis = d->in[i].role == HN_DECODER_CACHE ? 2 : d->in[i].role == HN_DECODER_MASK ? 1 : -1;
    if (axis < 0 || !fixed(&d->in[i], axis)) continue;
    if (joined(s))
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model fixes the length of '%.80s'", d->in[i].name);
    if (must >= 0 && must != d->in[i].dim[axis])
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model has caches for %lld and for %lld tokens",
                     (long long)must, (long long)d->in[i].dim[axis]);
    must = d->in[i].dim[axis];
  }
  if (must == 0 || must == 1 || must > MOST_CONTEXT || most < 2)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model's sequences are of %lld tokens",
                   (long long)(must >= 0 ? must : most));
  if (must > 0 && must < most) most = must;
  if (o->context > most || (must > 0 && o->context && o->context != must)) {
    hn_fail(error, HONE_ERROR_USAGE, "the model takes no sequences of %u tokens", o->context);
    hn_error_expected(error, must > 0 ? "%lld" : "at most %lld", (long long)most);
    return HONE_ERROR_USAGE;
  }
  s->context = must > 0         ? (uint32_t)must
               : o->context     ? o->context
               : most < CONTEXT ? (uint32_t)most
                                : CONTEXT;
  if (s->context < 2)
    return hn_fail(error, HONE_ERROR_USAGE, "sequences of %u tokens have no room for an answer", s->context);
  choose_pasts(s);
  return HONE_OK;
}

hone_status hn_sizes_sequences(hn_slots *s, const hone_served_options *o, hone_error *error) {
  const uint64_t each = hn_caches_slot_bytes(s);
  s->n = o->sequences ? o->sequences : SEQUENCES;
  if (s->n > MOST_SEQUENCES) s->n = MOST_SEQUENCES;
  if (o->cache_bytes && o->cache_bytes / each < s->n) s->n = (uint32_t)(o->cache_bytes / each);
  if (s->n) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "the cache has no room for one sequence of %u tokens", s->context);
  hn_error_expected(error, "at least %.1f MiB", (double)each / 1048576);
  hn_error_got(error, "%.1f MiB", (double)o->cache_bytes / 1048576);
  return HONE_ERROR_USAGE;
}

/* The room is one number as long as the server lives: where it is an input, it becomes a constant of the
 * model, so that shapes are known beforehand and caches can be written where they lie. */
static hone_status fix_room(hn_slots *s, hn_decoder *d, uint32_t at, hone_error *error) {
  const int32_t room = (int32_t)s->context;
  hone_tensor *t = HN_NEW(&s->model->arena, hone_tensor);
  if (!t || !(t->data = hn_arena_memdup(&s->model->arena, &room, sizeof room)))
    return hn_fail_memory(error, sizeof *t, "a decoder");
  t->desc = hn_sizes_shape(s, &d->in[at], 1, 1, s->context);
  hn_value *v = hn_value_find(s->model->graph, d->in[at].name);
  hn_adapt_drop(s, d, at);
  hn_value_set_constant(v, t);
  return HONE_OK;
}

hone_status hn_sizes_model(hn_slots *s, hn_decoder *d, hone_error *error) {
  uint32_t at = 0;
  while (at < d->n_in && d->in[at].role != HN_DECODER_TOTAL) at++;
  if (at == d->n_in && !s->apart) {
    s->model = hn_model_retain(s->m->model);
    return HONE_OK;
  }
  hone_status status = hn_model_clone(s->m->model, &s->model, error);
  if (status == HONE_OK && at < d->n_in) status = fix_room(s, d, at, error);
  if (status == HONE_OK && s->apart) status = hn_adapt(s, d, error);
  return status == HONE_OK ? hn_model_ready(s->model, error) : status;
}

/* ------------------------------------------------------------------ may sequences share a run? */

static hone_status bind(const hn_slots *s, int64_t batch, int64_t past, hone_binding *room, hn_model **out,
                        hone_error *error) {
  const uint32_t n = hn_sizes_bindings(s, batch, 1, past, room);
  return hn_model_bind(s->model, room, n, 0, out, NULL, error);
}

/* Is a run of so many what runs of one are? What holds of two need not hold of four: a graph may have sizes
 * of its own. */
static hone_status prove(hn_slots *s, uint32_t batch, uint32_t past, hone_binding *room, bool *out,
                         hone_error *error) {
  hn_model *one = NULL, *two = NULL;
  hone_error own = {0};
  bool holds = false;
  hone_status status = bind(s, 1, past, room, &one, &own);
  if (status == HONE_OK) status = bind(s, batch, past, room, &two, &own);
  const size_t n_in = one ? one->graph->inputs.len : 0, n_out = one ? one->graph->outputs.len : 0;
  hn_pad *rows = hn_calloc(n_in + n_out + 1, sizeof *rows);
  if (!rows) status = hn_fail_memory(&own, n_in * sizeof *rows, "a decoder");
  if (status == HONE_OK)
    status = hn_prove_parts(one, two, 1, batch, rows, rows + n_in, &holds, &s->alone, &own);
  for (size_t i = 0; i < n_out && status == HONE_OK && holds; i++)
    if (rows[n_in + i].kind != HN_PAD_ROWS || rows[n_in + i].axis != 0)
      holds = hn_refuse(&s->alone, "output '%.80s' has no batch in front", one->graph->outputs.ptr[i]->name);
  hn_free(rows);
  hn_model_destroy(one);
  hn_model_destroy(two);
  if (status != HONE_OK && status != HONE_ERROR_MEMORY) { /* the model does not take that size */
    hn_refuse(&s->alone, "%.150s", own.what);
    status = HONE_OK, holds = false;
  }
  if (status != HONE_OK && error) *error = own;
  *out = holds;
  return status;
}

/* ------------------------------------------------------------------ plans */

uint32_t hn_sizes_bindings(const hn_slots *s, int64_t batch, int64_t tokens, int64_t past,
                           hone_binding *room) {
  for (uint32_t i = 0; i < s->d->n_in; i++) {
    const hone_tensor_desc d = hn_sizes_shape(s, &s->d->in[i], batch, tokens, past);
    room[i] = (hone_binding){.input = s->d->in[i].name, .rank = d.rank};
    memcpy(room[i].dim, d.dim, sizeof d.dim);
  }
  return s->d->n_in;
}

/* What plan and model call alike has to be alike, too. */
static hone_status check(hn_slots *s, const hone_plan *plan, int64_t batch, int64_t tokens,
                         hone_error *error) {
  const hn_decoder *d = s->d;
  bool good = hone_plan_inputs(plan) == d->n_in && hone_plan_outputs(plan) == d->n_out;
  for (uint32_t i = 0; i < d->n_in && good; i++)
    good = strcmp(hone_plan_input_name(plan, i), d->in[i].name) == 0;
  if (!good) return hn_fail(error, HONE_ERROR_INTERNAL, "the plan has other inputs than the model");
  const hone_tensor_desc *l = hone_plan_output_desc(plan, d->logits);
  const int64_t row = l->rank > 0 ? l->dim[l->rank - 1] : -1;
  if (!hone_desc_known(l) || row < 1 || row > INT32_MAX || l->dim[0] != batch || (s->row && row != s->row))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%.80s' does not follow the batch and the tokens",
                   hone_plan_output_name(plan, d->logits));
  for (uint32_t i = 0; i < s->n_caches && s->apart; i++)
    if (hone_plan_output_over(plan, s->cache[i].out) != (int32_t)s->cache[i].in)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the device cannot write cache '%.80s' where it lies",
                     hone_plan_input_name(plan, s->cache[i].in));
  s->row = row;
  if (tokens > 1) s->each_row = l->rank == 3 && l->dim[1] == tokens;
  s->vocabulary = d->vocabulary > 0 && d->vocabulary < row ? d->vocabulary : row;
  return HONE_OK;
}

hone_status hn_sizes_plan(const hn_slots *s, int64_t batch, int64_t tokens, int64_t past, hone_plan **out,
                          hone_error *error) {
  hone_plan_options o = s->options;
  hone_binding *room = hn_calloc(s->d->n_in + 1, sizeof *room);
  if (!room) return hn_fail_memory(error, s->d->n_in * sizeof *room, "a decoder's plans");
  o.bindings = room;
  o.n_bindings = hn_sizes_bindings(s, batch, tokens, past, room);
  o.batch = 0;
  o.weights = s->weights;
  o.over_bound = s->apart || s->d->form != HN_DECODER_JOINED;
  const hone_status status = hone_plan_create(s->engine, s->model, &o, out, error);
  hn_free(room);
  return status;
}

static hone_status add_size(hn_slots *s, uint32_t batch, uint32_t tokens, uint32_t past, hone_error *error) {
  for (size_t i = 0; i < s->size.len; i++)
    if (s->size.ptr[i].batch == batch && s->size.ptr[i].tokens == tokens && s->size.ptr[i].past == past)
      return HONE_OK;
  hn_run_size z = {batch, tokens, past, NULL, NULL, -1};
  hone_status status = hn_sizes_plan(s, batch, tokens, past, &z.plan, error);
  if (status == HONE_OK) status = check(s, z.plan, batch, tokens, error);
  if (status == HONE_OK && !hn_vec_push(&s->size, z))
    status = hn_fail_memory(error, sizeof z, "a decoder's plans");
  if (status != HONE_OK) hone_plan_destroy(z.plan);
  return status;
}

/* One thread runs them, one after the other: all compute in the same memory. What a run leaves there is taken
 * before the next. */
hone_status hn_sizes_contexts(hn_slots *s, hone_error *error) {
  hone_status status = HONE_OK;
  uint64_t most = PAGE;
  for (size_t i = 0; i < s->size.len; i++) {
    const uint64_t needs = hn_context_needs(hn_api_plan(s->size.ptr[i].plan));
    if (needs > most) most = needs;
  }
  s->block_bytes = hn_round_up((size_t)most, PAGE);
  if (s->apart)
    status = hone_memory_alloc(s->engine, HONE_MEMORY_DEVICE, s->block_bytes, &s->block, error);
  else if (!(s->block = hn_pages(PAGE, s->block_bytes)))
    status = hn_fail_memory(error, s->block_bytes, "a decoder's runs");
  for (size_t i = 0; i < s->size.len && status == HONE_OK; i++) {
    hn_run_size *z = &s->size.ptr[i];
    status = hn_api_context_in(z->plan, s->block, &z->context, error);
    if (status == HONE_OK && z->batch == 1) /* it begins at any slot */
      status = hn_context_keep_captures(hn_api_context_inside(z->context),
                                        s->n < MOST_CAPTURES ? s->n : MOST_CAPTURES, error);
  }
  return status;
}

/* 1, 2, 3, 4, 6, 8, 12, 16... : at most a third of a run's rows are nobody's. */
static uint32_t next_batch(const hn_slots *s, uint32_t b) {
  if (s->apart) return 2 * b; /* a device takes about as long for any few */
  return b < 2 ? b + 1 : (b & (b - 1)) == 0 ? b + b / 2 : b / 3 * 4;
}

uint32_t hn_sizes_next_chunk(const hn_slots *s, uint32_t tokens) {
  return s->apart ? (tokens < 2 ? 8 : 4 * tokens) : 2 * tokens;
}

uint32_t hn_sizes_batch(const hn_slots *s, uint32_t rows) {
  uint32_t b = 1;
  while (b < rows) b = next_batch(s, b);
  return b < s->n ? b : s->n;
}

/* For several sequences: as many as it is proved for, with caches of any length. Where it holds of some sizes
 * alone there are no more sequences than that. */
static hone_status make_shared(hn_slots *s, hone_binding *room, hone_error *error) {
  hone_status status = HONE_OK;
  uint32_t most = 1;
  bool holds = s->n > 1;
  if (fixed(input_for(s->d, HN_DECODER_TOKENS), 0)) holds = hn_refuse(&s->alone, "the model fixes its batch");
  holds = holds && hn_proofs_precision(hone_plan_precision(s->size.ptr[0].plan), &s->alone);
  for (uint32_t b = 2; b <= s->n && status == HONE_OK && holds; b++) {
    if (hn_sizes_batch(s, b) != b) continue;
    for (uint32_t i = 0; i < s->n_pasts && status == HONE_OK && holds; i++)
      status = prove(s, b, s->past[i], room, &holds, error);
    for (uint32_t i = 0; i < s->n_pasts && status == HONE_OK && holds; i++)
      status = add_size(s, b, 1, s->past[i], error);
    if (holds) most = b;
  }
  s->share = most > 1;
  if (s->share) s->n = most;
  return status;
}

/* Prompts are read in runs of more tokens where the model takes them. */
static hone_status make_chunks(hn_slots *s, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t t = hn_sizes_next_chunk(s, 1); t <= s->chunk && status == HONE_OK;
       t = hn_sizes_next_chunk(s, t))
    for (uint32_t i = 0; i < s->n_pasts && status == HONE_OK; i++) {
      hone_error own = {0};
      status = add_size(s, 1, t, s->past[i], &own);
      if (joined(s) &&
          (status == HONE_ERROR_INPUT || status == HONE_ERROR_USAGE || status == HONE_ERROR_UNSUPPORTED))
        status = HONE_OK; /* tables of the model may be no longer than its sequences */
      if (status != HONE_OK && error) *error = own;
    }
  return status;
}

/* The first, for one token, says what is wrong with the model. */
hone_status hn_sizes_plans(hn_slots *s, hone_binding *room, hone_error *error) {
  const hn_decoder_input *ids = input_for(s->d, HN_DECODER_TOKENS);
  if (fixed(ids, 0) && ids->dim[0] != 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model fixes its batch at %lld",
                   (long long)ids->dim[0]);
  if (fixed(ids, 1) && ids->dim[1] != 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model fixes the tokens of a run at %lld",
                   (long long)ids->dim[1]);
  const uint32_t most = fixed(ids, 1) ? 1 : s->context < CHUNK ? s->context : CHUNK;
  for (s->chunk = 1; hn_sizes_next_chunk(s, s->chunk) <= most;) s->chunk = hn_sizes_next_chunk(s, s->chunk);
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_pasts && status == HONE_OK; i++)
    status = add_size(s, 1, 1, s->past[i], error);
  if (status == HONE_OK) status = make_shared(s, room, error);
  if (status == HONE_OK) status = make_chunks(s, error);
  s->pads = s->share && s->each_row;
  return status;
}

hn_run_size *hn_sizes_find(const hn_slots *s, uint32_t batch, uint32_t tokens, uint32_t past) {
  hn_run_size *found = NULL;
  for (size_t i = 0; i < s->size.len; i++) {
    hn_run_size *z = &s->size.ptr[i];
    if (z->batch == batch && z->tokens == tokens && z->past >= past && (!found || z->past < found->past))
      found = z;
  }
  return found;
}

void hn_sizes_drop(hn_slots *s, size_t i) {
  hone_context_destroy(s->size.ptr[i].context);
  hone_plan_destroy(s->size.ptr[i].plan);
  s->size.len--;
  memmove(&s->size.ptr[i], &s->size.ptr[i + 1], (s->size.len - i) * sizeof *s->size.ptr);
}

void hn_sizes_free(hn_slots *s) {
  while (s->size.len) hn_sizes_drop(s, s->size.len - 1);
  hn_vec_free(&s->size);
  if (s->block && s->apart)
    hone_memory_free(s->engine, s->block);
  else if (s->block)
    hn_pages_free(s->block, s->block_bytes);
  hone_weights_destroy(s->weights);
  hn_model_destroy(s->model);
}
