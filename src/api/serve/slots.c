/* Caches whose rows are slots: each holds the keys and values of one sequence, of any length up to the
 * context. A run of one sequence reads some tokens of its prompt; a run of several reads one token of each,
 * for which they stand side by side from slot 0 on: the run's caches are then the beginning of the whole
 * ones, written where they lie. Rows between them that are free, or belong to a sequence that is not in this
 * run, get a token that nobody reads, behind all that counts. */
#include "api/api.h"
#include "api/serve/generate.h"
#include "api/shapes/proofs.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/half.h"
#include "base/vec.h"
#include "model/bind.h"
#include "model/operators.h"
#include "model/ops/common/op.h"
#include "runtime/context.h"

#include <string.h>

enum {
  SEQUENCES = 8,
  MOST_SEQUENCES = 4096,
  CONTEXT = 2048,
  MOST_CONTEXT = 1 << 24,
  CHUNK = 128,
  PAGE = 4096
};

typedef struct cache {
  uint32_t in, out; /* of the plan */
  hone_dtype dtype;
  int64_t heads, size;
  size_t row, slot; /* bytes of a token in a head, and of a slot */
  char *data;
  size_t bytes;
} cache;

/* A plan for a number of sequences and of tokens of each. */
typedef struct sized {
  uint32_t batch, tokens;
  hone_plan *plan;
  hone_context *context;
} sized;

struct hn_slots {
  const hn_served *m;
  hn_model *model; /* that is planned */
  const hn_decoder *d;
  hone_plan_options options;
  hone_weights *weights;
  uint32_t n, context, chunk;
  bool share, each_row; /* logits are those of each token, not of the last alone */
  hone_reason alone;
  cache *cache;
  uint32_t n_caches;
  hn_sequence **at; /* [n] NULL: free */
  HN_VEC(sized) size;
  void *block; /* that all runs compute in */
  size_t block_bytes;
  int64_t vocabulary; /* ids that may come */
  int64_t row;        /* logits of a token */

  hone_tensor *in, *out; /* [inputs], [outputs] of a run */
  const hone_tensor **given, **bound;
  int64_t *tokens, *positions;   /* [max(n, chunk)] */
  int64_t *mask, *lengths;       /* [n][context], [n] */
  uint32_t *masked;              /* [n] ones in that row */
  uint64_t moved;                /* sequences, from slot to slot */
  void *typed[HN_DECODER_ROLES]; /* what of those the plan reads as i32 */
  float *logits;                 /* [n][row] */
};

/* ------------------------------------------------------------------ sizes */

static const hn_decoder_input *input_for(const hn_decoder *d, hn_decoder_role role) {
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].role == role) return &d->in[i];
  return NULL;
}

/* The dimensions of an input for so many sequences and tokens. */
static hone_tensor_desc shape_of(const hn_slots *s, const hn_decoder_input *in, int64_t batch,
                                 int64_t tokens) {
  const int64_t by_tokens[2] = {batch, tokens}, by_room[2] = {batch, s->context},
                rows[4] = {batch, in->dim[1], s->context, in->dim[3]};
  int64_t few[HONE_MAX_RANK];
  for (int32_t k = 0; k < HONE_MAX_RANK; k++) few[k] = 1;
  if (in->role == HN_DECODER_LENGTHS) few[0] = batch;
  const int64_t *dim = in->role == HN_DECODER_CACHE                                        ? rows
                       : in->role == HN_DECODER_MASK                                       ? by_room
                       : in->role == HN_DECODER_TOKENS || in->role == HN_DECODER_POSITIONS ? by_tokens
                                                                                           : few;
  return hone_desc(in->dtype, in->rank, dim);
}

static bool fixed(const hn_decoder_input *in, int32_t k) { return in && k < in->rank && in->dim[k] >= 0; }

/* How long sequences may be, as the model and the caller want it. */
static hone_status choose_context(hn_slots *s, const hone_served_options *o, hone_error *error) {
  const hn_decoder *d = s->d;
  int64_t most = d->positions > 0 && d->positions < MOST_CONTEXT ? d->positions : MOST_CONTEXT, must = -1;
  for (uint32_t i = 0; i < d->n_in; i++) {
    const int32_t axis = d->in[i].role == HN_DECODER_CACHE ? 2 : d->in[i].role == HN_DECODER_MASK ? 1 : -1;
    if (axis < 0 || !fixed(&d->in[i], axis)) continue;
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
  return s->context >= 2 ? HONE_OK
                         : hn_fail(error, HONE_ERROR_USAGE,
                                   "sequences of %u tokens have no room for an answer", s->context);
}

static hone_status choose_sequences(hn_slots *s, const hone_served_options *o, hone_error *error) {
  uint64_t each = 0;
  for (uint32_t i = 0; i < s->n_caches; i++) each += s->cache[i].slot;
  s->n = o->sequences ? o->sequences : SEQUENCES;
  if (s->n > MOST_SEQUENCES) s->n = MOST_SEQUENCES;
  if (o->cache_bytes && o->cache_bytes / each < s->n) s->n = (uint32_t)(o->cache_bytes / each);
  if (s->n) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "the cache has no room for one sequence of %u tokens", s->context);
  hn_error_expected(error, "at least %.1f MiB", (double)each / 1048576);
  hn_error_got(error, "%.1f MiB", (double)o->cache_bytes / 1048576);
  return HONE_ERROR_USAGE;
}

static hone_status find_caches(hn_slots *s, hone_error *error) {
  const hn_decoder *d = s->d;
  s->cache = hn_calloc(d->n_in + 1, sizeof *s->cache);
  if (!s->cache) return hn_fail_memory(error, d->n_in * sizeof *s->cache, "a decoder's caches");
  for (uint32_t i = 0; i < d->n_in; i++) {
    const hn_decoder_input *in = &d->in[i];
    if (in->role != HN_DECODER_CACHE) continue;
    cache *c = &s->cache[s->n_caches++];
    *c = (cache){.in = i, .out = in->output, .dtype = in->dtype, .heads = in->dim[1], .size = in->dim[3]};
    const hone_tensor_desc one = shape_of(s, in, 1, 1);
    const int64_t bytes = hone_desc_bytes(&one);
    if (bytes < 1 || bytes > (int64_t)1 << 40)
      return hn_fail(error, HONE_ERROR_USAGE, "a sequence's cache '%.80s' would be too large", in->name);
    c->slot = (size_t)bytes;
    c->row = (size_t)c->size * hone_dtype_size(c->dtype);
  }
  return HONE_OK;
}

/* The room is one number as long as the server lives: where it is an input, it becomes a constant of the
 * model, so that shapes are known beforehand and caches can be written where they lie. */
static hone_status fix_total(hn_slots *s, hn_decoder *d, hone_error *error) {
  uint32_t at = 0;
  while (at < d->n_in && d->in[at].role != HN_DECODER_TOTAL) at++;
  if (at == d->n_in) {
    s->model = hn_model_retain(s->m->model);
    return HONE_OK;
  }
  hone_status status = hn_model_clone(s->m->model, &s->model, error);
  if (status != HONE_OK) return status;
  const int32_t room = (int32_t)s->context;
  hn_graph *g = s->model->graph;
  hone_tensor *t = HN_NEW(&s->model->arena, hone_tensor);
  if (!t || !(t->data = hn_arena_memdup(&s->model->arena, &room, sizeof room)))
    return hn_fail_memory(error, sizeof *t, "a decoder");
  t->desc = shape_of(s, &d->in[at], 1, 1);
  hn_value *v = hn_value_find(g, d->in[at].name);
  for (size_t i = 0; i < g->inputs.len; i++)
    if (g->inputs.ptr[i] == v) {
      g->inputs.len--;
      memmove(&g->inputs.ptr[i], &g->inputs.ptr[i + 1], (g->inputs.len - i) * sizeof *g->inputs.ptr);
      break;
    }
  v->is_input = false;
  hn_value_set_constant(v, t);
  d->n_in--;
  memmove(&d->in[at], &d->in[at + 1], (d->n_in - at) * sizeof *d->in);
  return hn_model_ready(s->model, error);
}

/* ------------------------------------------------------------------ may sequences share a run? */

static hone_status bind(const hn_slots *s, int64_t batch, int64_t tokens, hone_binding *room, hn_model **out,
                        hone_error *error);

/* Is a run of so many what runs of one are? What holds of two need not hold of four: a graph may have sizes
 * of its own. */
static hone_status prove(hn_slots *s, uint32_t batch, hone_binding *room, bool *out, hone_error *error) {
  hn_model *one = NULL, *two = NULL;
  hone_error own = {0};
  bool holds = false;
  hone_status status = bind(s, 1, 1, room, &one, &own);
  if (status == HONE_OK) status = bind(s, batch, 1, room, &two, &own);
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

static uint32_t bindings_of(const hn_slots *s, int64_t batch, int64_t tokens, hone_binding *out) {
  for (uint32_t i = 0; i < s->d->n_in; i++) {
    const hone_tensor_desc d = shape_of(s, &s->d->in[i], batch, tokens);
    out[i] = (hone_binding){.input = s->d->in[i].name, .rank = d.rank};
    memcpy(out[i].dim, d.dim, sizeof d.dim);
  }
  return s->d->n_in;
}

static hone_status bind(const hn_slots *s, int64_t batch, int64_t tokens, hone_binding *room, hn_model **out,
                        hone_error *error) {
  const uint32_t n = bindings_of(s, batch, tokens, room);
  return hn_model_bind(s->model, room, n, 0, out, NULL, error);
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
  s->row = row;
  if (tokens > 1) s->each_row = l->rank == 3 && l->dim[1] == tokens;
  s->vocabulary = d->vocabulary > 0 && d->vocabulary < row ? d->vocabulary : row;
  return HONE_OK;
}

static hone_status add_size(hn_slots *s, uint32_t batch, uint32_t tokens, hone_binding *room,
                            hone_error *error) {
  for (size_t i = 0; i < s->size.len; i++)
    if (s->size.ptr[i].batch == batch && s->size.ptr[i].tokens == tokens) return HONE_OK;
  sized z = {batch, tokens, NULL, NULL};
  hone_plan_options o = s->options;
  o.bindings = room;
  o.n_bindings = bindings_of(s, batch, tokens, room);
  o.batch = 0;
  o.weights = s->weights;
  hone_status status = hone_plan_create(s->m->replica[0].engine, s->model, &o, &z.plan, error);
  if (status == HONE_OK) status = check(s, z.plan, batch, tokens, error);
  if (status == HONE_OK && !hn_vec_push(&s->size, z))
    status = hn_fail_memory(error, sizeof z, "a decoder's plans");
  if (status != HONE_OK) hone_plan_destroy(z.plan);
  return status;
}

/* One thread runs them, one after the other: all compute in the same memory. What a run leaves there is taken
 * before the next. */
static hone_status make_contexts(hn_slots *s, hone_error *error) {
  hone_status status = HONE_OK;
  uint64_t most = PAGE;
  for (size_t i = 0; i < s->size.len; i++) {
    const uint64_t needs = hn_context_needs(hn_api_plan(s->size.ptr[i].plan));
    if (needs > most) most = needs;
  }
  s->block_bytes = hn_round_up((size_t)most, PAGE);
  s->block = hn_pages(PAGE, s->block_bytes);
  if (!s->block) return hn_fail_memory(error, s->block_bytes, "a decoder's runs");
  for (size_t i = 0; i < s->size.len && status == HONE_OK; i++)
    status = hn_api_context_in(s->size.ptr[i].plan, s->block, &s->size.ptr[i].context, error);
  return status;
}

/* 1, 2, 3, 4, 6, 8, 12, 16... : at most a third of a run's rows are nobody's. */
static uint32_t next_batch(uint32_t b) { return b < 2 ? b + 1 : (b & (b - 1)) == 0 ? b + b / 2 : b / 3 * 4; }

static uint32_t batch_for(const hn_slots *s, uint32_t rows) {
  uint32_t b = 1;
  while (b < rows) b = next_batch(b);
  return b < s->n ? b : s->n;
}

/* For several sequences: as many as it is proved for. Where it holds of some sizes alone there are no more
 * sequences than that. */
static hone_status make_shared(hn_slots *s, hone_binding *room, hone_error *error) {
  hone_status status = HONE_OK;
  uint32_t most = 1;
  bool holds = s->n > 1;
  if (fixed(input_for(s->d, HN_DECODER_TOKENS), 0)) holds = hn_refuse(&s->alone, "the model fixes its batch");
  holds = holds && hn_proofs_precision(hone_plan_precision(s->size.ptr[0].plan), &s->alone);
  for (uint32_t b = 2; b <= s->n && status == HONE_OK && holds; b++) {
    if (batch_for(s, b) != b) continue;
    status = prove(s, b, room, &holds, error);
    if (status == HONE_OK && holds) status = add_size(s, b, 1, room, error);
    if (holds) most = b;
  }
  s->share = most > 1;
  if (s->share) s->n = most;
  return status;
}

/* The first, for one token, says what is wrong with the model. */
static hone_status make_plans(hn_slots *s, hone_binding *room, hone_error *error) {
  const hn_decoder_input *ids = input_for(s->d, HN_DECODER_TOKENS);
  if (fixed(ids, 0) && ids->dim[0] != 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model fixes its batch at %lld",
                   (long long)ids->dim[0]);
  if (fixed(ids, 1) && ids->dim[1] != 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model fixes the tokens of a run at %lld",
                   (long long)ids->dim[1]);
  s->chunk = fixed(ids, 1) ? 1 : CHUNK;
  while (s->chunk > s->context) s->chunk /= 2;
  hone_status status = add_size(s, 1, 1, room, error);
  if (status == HONE_OK) status = make_shared(s, room, error);
  for (uint32_t t = 2; t <= s->chunk && status == HONE_OK; t *= 2) status = add_size(s, 1, t, room, error);
  return status;
}

/* ------------------------------------------------------------------ the beginning, and the end */

static hone_status make_room(hn_slots *s, hone_error *error) {
  const size_t ids = s->n > s->chunk ? s->n : s->chunk, n = s->n;
  uint64_t all = 0;
  s->at = hn_calloc(n, sizeof *s->at);
  s->tokens = hn_calloc(ids, sizeof *s->tokens);
  s->positions = hn_calloc(ids, sizeof *s->positions);
  s->mask = hn_calloc(n * s->context, sizeof *s->mask);
  s->lengths = hn_calloc(n, sizeof *s->lengths);
  s->masked = hn_calloc(n, sizeof *s->masked);
  s->logits = hn_calloc(n * (size_t)s->row, sizeof *s->logits);
  s->in = hn_calloc(s->d->n_in + 1, sizeof *s->in);
  s->given = hn_calloc(s->d->n_in + 1, sizeof *s->given);
  s->out = hn_calloc(s->d->n_out + 1, sizeof *s->out);
  s->bound = hn_calloc(s->d->n_out + 1, sizeof *s->bound);
  bool good = s->at && s->tokens && s->positions && s->mask && s->lengths && s->masked && s->logits &&
              s->in && s->given && s->out && s->bound;
  const size_t counts[HN_DECODER_ROLES] = {ids, n * s->context, ids, n, 0, 0};
  for (int r = 0; r < HN_DECODER_ROLES; r++) {
    s->typed[r] = hn_calloc(counts[r] + 1, sizeof(int32_t));
    good = good && s->typed[r];
  }
  for (uint32_t i = 0; i < s->n_caches && good; i++) {
    cache *c = &s->cache[i];
    const size_t bytes = hn_round_up(c->slot * n, PAGE);
    all += bytes;
    c->data = hn_pages(PAGE, bytes);
    c->bytes = c->data ? bytes : 0;
    good = c->data != NULL;
  }
  return good ? HONE_OK : hn_fail_memory(error, all, "a decoder's caches");
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
  hone_binding *room = hn_calloc(d->n_in + 1, sizeof *room);
  hone_status status = s && room ? HONE_OK : hn_fail_memory(error, d->n_in * sizeof *room, "a decoder");
  if (status == HONE_OK) {
    s->m = m, s->d = d;
    s->options = m->plan_options;
    s->options.slices = 1; /* caches are written where they lie, of the whole batch */
    status = choose_context(s, o, error);
  }
  if (status == HONE_OK) status = fix_total(s, d, error);
  if (status == HONE_OK) status = find_caches(s, error);
  if (status == HONE_OK) status = choose_sequences(s, o, error);
  if (status == HONE_OK) status = hone_weights_create(m->replica[0].engine, s->model, &s->weights, error);
  if (status == HONE_OK) status = unfit(make_plans(s, room, error), error);
  if (status == HONE_OK) status = make_contexts(s, error);
  if (status == HONE_OK) status = make_room(s, error);
  hn_free(room);
  if (status == HONE_OK)
    *out = s;
  else
    hn_slots_destroy(s);
  return status;
}

void hn_slots_destroy(hn_slots *s) {
  if (!s) return;
  for (size_t i = 0; i < s->size.len; i++) {
    hone_context_destroy(s->size.ptr[i].context);
    hone_plan_destroy(s->size.ptr[i].plan);
  }
  hn_vec_free(&s->size);
  if (s->block) hn_pages_free(s->block, s->block_bytes);
  hone_weights_destroy(s->weights);
  hn_model_destroy(s->model);
  for (uint32_t i = 0; i < s->n_caches; i++)
    if (s->cache[i].data) hn_pages_free(s->cache[i].data, s->cache[i].bytes);
  for (int r = 0; r < HN_DECODER_ROLES; r++) hn_free(s->typed[r]);
  hn_free(s->cache);
  hn_free(s->at);
  hn_free(s->tokens);
  hn_free(s->positions);
  hn_free(s->mask);
  hn_free(s->lengths);
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
uint32_t hn_slots_context(const hn_slots *s) { return s->context; }
int64_t hn_slots_vocabulary(const hn_slots *s) { return s->vocabulary; }
const float *hn_slots_logits(const hn_slots *s, uint32_t i) { return s->logits + i * (size_t)s->row; }

uint64_t hn_slots_bytes(const hn_slots *s) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < s->n_caches; i++) all += s->cache[i].bytes;
  return all;
}

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

/* Keys and values of the sequence in slot `from` go to slot `to`, which is free. */
static void move(hn_slots *s, uint32_t from, uint32_t to) {
  hn_sequence *q = s->at[from];
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const cache *c = &s->cache[i];
    const size_t head = c->row * s->context;
    for (int64_t h = 0; h < c->heads; h++)
      memcpy(c->data + to * c->slot + (size_t)h * head, c->data + from * c->slot + (size_t)h * head,
             q->fed * c->row);
  }
  s->at[to] = q;
  s->at[from] = NULL;
  q->slot = (int32_t)to;
  s->moved++;
}

/* Brings the parts together at the front, where that makes a smaller run. */
static uint32_t gather(hn_slots *s, const hn_part *part, uint32_t n) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < s->n; i++) used += s->at[i] != NULL;
  for (;;) {
    uint32_t last = 0, hole = 0;
    for (uint32_t i = 0; i < n; i++)
      if ((uint32_t)part[i].of->slot > last) last = (uint32_t)part[i].of->slot;
    const uint32_t batch = batch_for(s, last + 1);
    if (batch <= batch_for(s, used) || HN_FAULT("generate_slot_taken_early")) return batch;
    while (hole < last && s->at[hole]) hole++;
    if (hole == last) return batch;
    move(s, last, hole);
  }
}

/* Sizes are powers of two. What nearly fills one goes in a run of it, whose last tokens are nobody's: they
 * lie behind what is read, and what comes next is written over them. */
uint32_t hn_slots_chunk(const hn_slots *s, const hn_sequence *q, uint32_t tokens) {
  uint32_t chunk = 1;
  while (chunk < s->chunk && chunk * 2 <= tokens) chunk *= 2;
  const bool fills = s->share && s->each_row && chunk < s->chunk && tokens >= chunk + chunk / 2 &&
                     q->fed + 2 * chunk <= s->context;
  return fills ? tokens : chunk;
}

static uint32_t size_of(const hn_slots *s, uint32_t tokens) {
  uint32_t size = 1;
  while (size < tokens && size < s->chunk) size *= 2;
  return size;
}

/* ------------------------------------------------------------------ a run */

static sized *size_for(hn_slots *s, uint32_t batch, uint32_t tokens) {
  for (size_t i = 0; i < s->size.len; i++)
    if (s->size.ptr[i].batch == batch && s->size.ptr[i].tokens == tokens) return &s->size.ptr[i];
  return NULL;
}

static void set_mask(hn_slots *s, uint32_t slot, uint32_t ones) {
  int64_t *row = s->mask + (size_t)slot * s->context;
  int32_t *also = (int32_t *)s->typed[HN_DECODER_MASK] + (size_t)slot * s->context;
  const uint32_t from = ones < s->masked[slot] ? ones : s->masked[slot],
                 to = ones < s->masked[slot] ? s->masked[slot] : ones;
  for (uint32_t i = from; i < to; i++) row[i] = also[i] = i < ones;
  s->masked[slot] = ones;
}

/* Row b of the run, which is slot `slot`. */
static void set_row(hn_slots *s, uint32_t b, uint32_t slot, const hn_part *part, uint32_t tokens) {
  const hn_sequence *q = part ? part->of : s->at[slot];
  uint32_t fed = q ? q->fed : 0;
  if (HN_FAULT("generate_nobody_writes_early") && !part && fed) fed--;
  for (uint32_t t = 0; t < tokens; t++) {
    s->tokens[b * tokens + t] = part && t < part->tokens ? q->ids[fed + t] : 0;
    s->positions[b * tokens + t] = fed + t;
  }
  uint32_t length = fed + tokens;
  if (HN_FAULT("generate_slot_length") && part && tokens == 1 && length < s->context) length++;
  s->lengths[b] = length - 1;
  set_mask(s, slot, length);
}

static void *data_for(hn_slots *s, const hn_decoder_input *in, uint32_t first, int64_t count) {
  int64_t *wide[HN_DECODER_ROLES] = {
      s->tokens, s->mask + (size_t)first * s->context, s->positions, s->lengths, NULL, NULL};
  if (in->dtype != HONE_DTYPE_I32) return wide[in->role];
  if (in->role == HN_DECODER_MASK) return (int32_t *)s->typed[in->role] + (size_t)first * s->context;
  int32_t *to = s->typed[in->role];
  for (int64_t i = 0; i < count; i++) to[i] = (int32_t)wide[in->role][i];
  return to;
}

static void set_inputs(hn_slots *s, const sized *z, uint32_t first) {
  const hn_decoder *d = s->d;
  memset((void *)s->bound, 0, d->n_out * sizeof *s->bound);
  for (uint32_t i = 0; i < d->n_in; i++) {
    s->in[i] = (hone_tensor){.desc = *hone_plan_input_desc(z->plan, i)};
    s->given[i] = &s->in[i];
    if (d->in[i].role != HN_DECODER_CACHE)
      s->in[i].data = data_for(s, &d->in[i], first, hone_desc_count(&s->in[i].desc));
  }
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const cache *c = &s->cache[i];
    s->in[c->in].data = c->data + first * c->slot;
    s->out[c->out] = s->in[c->in];
    if (hone_plan_output_over(z->plan, c->out) == (int32_t)c->in) s->bound[c->out] = &s->out[c->out];
  }
}

/* What of the caches was made elsewhere goes where it belongs: the new tokens of each part. */
static void keep(hn_slots *s, const sized *z, uint32_t first, const hn_part *part, uint32_t n) {
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const cache *c = &s->cache[i];
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

/* Of token `last` of row b. */
static void take_logits(hn_slots *s, const sized *z, uint32_t b, uint32_t last, float *to) {
  const hone_tensor *l = hone_context_output(z->context, s->d->logits);
  const int64_t rows = l->desc.rank == 3 ? l->desc.dim[1] : 1,
                from = (b * rows + (last < rows ? last : rows - 1)) * s->row;
  if (l->desc.dtype == HONE_DTYPE_F32)
    memcpy(to, (const float *)l->data + from, (size_t)s->row * sizeof *to);
  else
    for (int64_t i = 0; i < s->row; i++) to[i] = (float)hn_get_f64(l, from + i);
}

static hone_status run(hn_slots *s, const hn_part *part, uint32_t n, uint32_t first, uint32_t batch,
                       uint32_t at, const hone_run_options *options, hone_error *error) {
  const uint32_t tokens = size_of(s, part[0].tokens);
  const sized *z = size_for(s, batch, tokens);
  if (!z) return hn_fail(error, HONE_ERROR_INTERNAL, "no plan for %u sequences and %u tokens", batch, tokens);
  for (uint32_t b = 0; b < batch; b++) {
    const hn_part *mine = NULL;
    for (uint32_t i = 0; i < n && !mine; i++)
      if ((uint32_t)part[i].of->slot == first + b) mine = &part[i];
    set_row(s, b, first + b, mine, tokens);
  }
  set_inputs(s, z, first);
  hone_status status = hone_context_bind_outputs(z->context, s->bound, error);
  if (status == HONE_OK) status = hone_context_run(z->context, s->given, options, error);
  if (status != HONE_OK) return status;
  keep(s, z, first, part, n);
  for (uint32_t i = 0; i < n; i++)
    take_logits(s, z, (uint32_t)part[i].of->slot - first, part[i].tokens - 1,
                s->logits + (at + i) * (size_t)s->row);
  return HONE_OK;
}

hone_status hn_slots_run(hn_slots *s, const hn_part *part, uint32_t n, const hone_run_options *options,
                         hone_error *error) {
  hone_status status = HONE_OK;
  if (n > 1 && s->share) return run(s, part, n, 0, gather(s, part, n), 0, options, error);
  for (uint32_t i = 0; i < n && status == HONE_OK; i++)
    status = run(s, &part[i], 1, (uint32_t)part[i].of->slot, 1, i, options, error);
  return status;
}
