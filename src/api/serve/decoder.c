/* Is the model a decoder whose sequences may go on together? It is found in the graph: caches are what
 * GroupQueryAttention reads and hands on; the lengths that it asks for are inputs, or follow from
 * attention_mask by the few nodes that exporters write. Or they are inputs to whose end a node joins what is
 * new, for an output. input_ids, attention_mask, position_ids and logits are called so by all of them. */
#include "api/serve/decoder.h"
#include "base/error.h"
#include "model/ops/common/op.h"

#include <string.h>

/* Inputs and outputs of com.microsoft.GroupQueryAttention. */
enum { PAST_KEY = 3, PAST_VALUE, LENGTHS, TOTAL, COS, QUERY_LENGTHS = 16 };
enum { PRESENT_KEY = 1 };
/* Inputs of ONNX's own Attention, and of TensorScatter. */
enum { OWN_MASK = 3, OWN_PAST_KEY, OWN_PAST_VALUE, OWN_LENGTHS };
enum { CACHE, UPDATE, INDICES };
enum { DEEPEST = 16 }; /* nodes from the mask to the lengths */

typedef struct finder {
  const hn_model *model;
  hn_decoder *d;
  const hn_value *mask;
  struct {
    const hone_node *node;
    bool room;            /* what it gives follows the mask's width, which is the server's, not the texts' */
  } of_mask[2 * DEEPEST]; /* nodes that make lengths of it */
  uint32_t n_of_mask;
  uint32_t slots, joined; /* nodes with caches of either form */
  hone_reason *why;
} finder;

static bool is_attention(const hone_node *n) {
  return strcmp(n->op_type, "GroupQueryAttention") == 0 && strcmp(n->domain, "com.microsoft") == 0;
}

static const hn_value *input_of(const hone_node *n, uint32_t i) { return i < n->n_in ? n->in[i] : NULL; }

/* The number of an input among those of a plan; -1: it is none. */
static int32_t place(const finder *f, const hn_value *v) {
  int32_t at = 0;
  for (size_t i = 0; i < f->model->graph->inputs.len; i++) {
    const hn_value *in = f->model->graph->inputs.ptr[i];
    if (in->constant) continue;
    if (in == v) return at;
    at++;
  }
  return -1;
}

static int32_t output_place(const finder *f, const hn_value *v) {
  for (size_t i = 0; i < f->model->graph->outputs.len; i++)
    if (f->model->graph->outputs.ptr[i] == v) return (int32_t)i;
  return -1;
}

static bool is_int(hone_dtype t) { return t == HONE_DTYPE_I32 || t == HONE_DTYPE_I64; }

static bool constant_int(const hn_value *v, int64_t wanted) {
  return v && v->constant && !v->is_input && v->constant->data && hone_desc_count(&v->desc) == 1 &&
         is_int(v->desc.dtype) && hn_get_i64(v->constant, 0) == wanted;
}

/* ------------------------------------------------------------------ lengths of a mask */

/* The same number in another type that holds all lengths. */
static bool keeps(const hone_node *n) {
  if (hn_is_op(n, "Identity")) return true;
  return hn_is_op(n, "Cast") && n->out[0] &&
         (is_int(n->out[0]->desc.dtype) || n->out[0]->desc.dtype == HONE_DTYPE_F32);
}

static bool passes_on(const hone_node *n) {
  return keeps(n) || hn_is_op(n, "Squeeze") || hn_is_op(n, "Unsqueeze") || hn_is_op(n, "Reshape") ||
         hn_is_op(n, "Flatten");
}

static bool is_noted(const finder *f, const hone_node *n) {
  for (uint32_t i = 0; i < f->n_of_mask; i++)
    if (f->of_mask[i].node == n) return true;
  return false;
}

static void note(finder *f, const hone_node *n, bool room) {
  for (uint32_t i = 0; i < f->n_of_mask; i++)
    if (f->of_mask[i].node == n) {
      f->of_mask[i].room |= room;
      return;
    }
  if (f->n_of_mask == 2 * DEEPEST) return;
  f->of_mask[f->n_of_mask].node = n;
  f->of_mask[f->n_of_mask++].room = room;
}

/* Over the second dimension? It is an attribute, or since opset 13 an input. */
static bool sums_rows(const hone_node *n) {
  size_t count = 0;
  const int64_t *axes = hone_node_ints(n, "axes", &count);
  if (axes) return count == 1 && (axes[0] == 1 || axes[0] == -1);
  return constant_int(input_of(n, 1), 1) || constant_int(input_of(n, 1), -1);
}

/* sum(mask) - minus, which is 0 or 1. */
static bool follows_sum(finder *f, const hn_value *v, int32_t minus) {
  int32_t sums = 0, less = 0;
  for (int i = 0; i < DEEPEST; i++) {
    if (v == f->mask) return sums == 1 && less == minus;
    const hone_node *n = v ? v->producer : NULL;
    if (!n) return false;
    const bool room = sums > 0;
    if (hn_is_op(n, "ReduceSum") && sums_rows(n))
      sums++;
    else if (!sums && hn_is_op(n, "Sub") && constant_int(input_of(n, 1), 1))
      less++;
    else if (!sums && hn_is_op(n, "Add") && constant_int(input_of(n, 1), -1))
      less++;
    else if (sums ? !keeps(n) : !passes_on(n))
      return false;
    note(f, n, room);
    v = input_of(n, 0);
  }
  return false;
}

/* The mask's width. */
static bool follows_width(finder *f, const hn_value *v) {
  bool taken = false, shape = false; /* seen from the end */
  for (int i = 0; i < DEEPEST; i++) {
    if (v == f->mask) return taken && shape;
    const hone_node *n = v ? v->producer : NULL;
    if (!n) return false;
    if (hn_is_op(n, "Shape") && !shape && !hn_node_attr(n, "start") && !hn_node_attr(n, "end"))
      shape = true;
    else if (hn_is_op(n, "Gather") && !shape && !taken &&
             (constant_int(input_of(n, 1), 1) || constant_int(input_of(n, 1), -1)))
      taken = true;
    else if (shape || !passes_on(n))
      return false;
    note(f, n, true);
    v = input_of(n, 0);
  }
  return false;
}

/* The batch's size, which is true of any mask. */
static bool takes_batch(const hone_node *n) {
  return hn_is_op(n, "Gather") && constant_int(input_of(n, 1), 0) && input_of(n, 0)->producer &&
         hn_is_op(input_of(n, 0)->producer, "Shape");
}

/* Whatever else the mask is for is not known: a mask that is as wide as the cache may mean something else
 * there. So may its width: tables that are chosen by it, positions that are made of it. */
static bool only_lengths(finder *f) {
  for (size_t i = 0; i < f->mask->users.len; i++) {
    const hone_node *n = f->mask->users.ptr[i].node;
    if (!is_noted(f, n))
      return hn_refuse(f->why,
                       "input 'attention_mask' is read by node '%.60s' (%.30s) for other things than lengths",
                       n->name, n->op_type);
  }
  for (uint32_t i = 0; i < f->n_of_mask; i++)
    for (uint32_t k = 0; f->of_mask[i].room && k < f->of_mask[i].node->n_out; k++) {
      const hn_value *v = f->of_mask[i].node->out[k];
      for (size_t u = 0; v && u < v->users.len; u++) {
        const hn_use *use = &v->users.ptr[u];
        if (!is_noted(f, use->node) && !(is_attention(use->node) && use->index == TOTAL) &&
            !takes_batch(use->node))
          return hn_refuse(f->why,
                           "the width of attention_mask is read by node '%.60s' (%.30s), for more than "
                           "total_sequence_length",
                           use->node->name, use->node->op_type);
      }
      if (v && v->is_output) return hn_refuse(f->why, "the width of attention_mask is an output");
    }
  return !f->mask->is_output || hn_refuse(f->why, "input 'attention_mask' is an output, too");
}

/* Nothing but attention may read what is as long as the server's room. */
static bool for_attention_alone(finder *f, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *n = v->users.ptr[i].node;
    if (!is_attention(n))
      return hn_refuse(f->why,
                       "'%.60s' is read by node '%.60s' (%.30s), too, which would see the server's room",
                       v->name, n->name, n->op_type);
  }
  return true;
}

/* ------------------------------------------------------------------ inputs */

static bool take(finder *f, const hn_value *v, hn_decoder_role role, const char *what) {
  const int32_t at = place(f, v);
  if (at < 0) return hn_refuse(f->why, "%s is no input of the model", what);
  hn_decoder_input *in = &f->d->in[at];
  if (in->role != HN_DECODER_ROLES && in->role != role)
    return hn_refuse(f->why, "input '%.60s' is for two things", in->name);
  in->role = role;
  return true;
}

/* Nobody else reads the cache. The length of one that grows from run to run may be read: hole.c finds out
 * what becomes of it. */
static bool read_by(finder *f, const hn_value *v, const hone_node *reader, bool grows) {
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *n = v->users.ptr[i].node;
    if (n == reader || (grows && hn_is_op(n, "Shape"))) continue;
    return hn_refuse(f->why, "'%.60s' is read by node '%.60s' (%.30s), too%s", v->name, n->name, n->op_type,
                     grows ? "" : ", which would see the server's room");
  }
  return true;
}

/* past is an input, present the output that hands it on. */
static bool take_cache(finder *f, const hone_node *n, const hn_value *past, const hn_value *present,
                       const char *what, bool grows) {
  if (!past || place(f, past) < 0)
    return hn_refuse(f->why, "past_%s of node '%.60s' (%.30s) is no input of the model", what, n->name,
                     n->op_type);
  const int32_t out = present ? output_place(f, present) : -1;
  if (out < 0)
    return hn_refuse(f->why, "present_%s of node '%.60s' (%.30s) is no output of the model", what, n->name,
                     n->op_type);
  hn_decoder_input *in = &f->d->in[place(f, past)];
  if (in->role == HN_DECODER_CACHE)
    return hn_refuse(f->why, "input '%.60s' is the cache of two nodes", in->name);
  if (in->rank != 4 || in->dim[1] < 1 || in->dim[3] < 1 ||
      (in->dtype != HONE_DTYPE_F32 && in->dtype != HONE_DTYPE_F16 && in->dtype != HONE_DTYPE_BF16))
    return hn_refuse(
        f->why, "input '%.60s' is no cache of floats [batch, heads, room, size] with known heads and size",
        in->name);
  if (past->is_output) return hn_refuse(f->why, "input '%.60s' is an output, too", in->name);
  if (!read_by(f, past, n, grows)) return false;
  in->output = (uint32_t)out;
  return take(f, past, HN_DECODER_CACHE, in->name);
}

/* What GroupQueryAttention hands on is read by nobody. */
static bool take_grouped_cache(finder *f, const hone_node *n, uint32_t i) {
  const hn_value *past = input_of(n, PAST_KEY + i),
                 *present = PRESENT_KEY + i < n->n_out ? n->out[PRESENT_KEY + i] : NULL;
  if (!take_cache(f, n, past, present, i ? "value" : "key", false)) return false;
  return !present->users.len ||
         hn_refuse(f->why,
                   "output '%.60s' is read by node '%.60s' (%.30s), too, which would see the server's room",
                   present->name, present->users.ptr[0].node->name, present->users.ptr[0].node->op_type);
}

/* ------------------------------------------------------------------ caches to which what is new is joined */

/* Concat(past, new) along the tokens, for an output. */
static bool joins(const finder *f, const hone_node *n) {
  if (!hn_is_op(n, "Concat") || n->n_in != 2 || !n->in[0] || place(f, n->in[0]) < 0) return false;
  const int64_t axis = hone_node_int(n, "axis", 0);
  return n->in[0]->desc.rank == 4 && (axis == 2 || axis == -2) && output_place(f, n->out[0]) >= 0;
}

static bool is_own(const hone_node *n) { return hn_is_op(n, "Attention"); }

static bool take_joined(finder *f, const hone_node *n) {
  if (!is_own(n)) return take_cache(f, n, n->in[0], n->out[0], "cache", true);
  for (uint32_t i = 0; i < 2; i++)
    if (!take_cache(f, n, input_of(n, OWN_PAST_KEY + i),
                    PRESENT_KEY + i < n->n_out ? n->out[PRESENT_KEY + i] : NULL, i ? "value" : "key", true))
      return false;
  return true;
}

/* ------------------------------------------------------------------ caches that are written at an index */

static bool scatters(const finder *f, const hone_node *n) {
  return hn_is_op(n, "TensorScatter") && place(f, n->in[CACHE]) >= 0;
}

/* A number for each sequence: an input, or the sum of the mask. */
static bool take_length(finder *f, const hone_node *n, const hn_value *v, hn_decoder_role role,
                        const char *what) {
  if (v && place(f, v) >= 0)
    return take(f, v, role, what) &&
           (!v->is_output || hn_refuse(f->why, "input '%.60s' is an output, too", v->name));
  if (role == HN_DECODER_ENDS && f->mask && v && follows_sum(f, v, 0)) return true;
  return hn_refuse(f->why, "%s of node '%.60s' (%.30s) is no input%s", what, n->name, n->op_type,
                   role == HN_DECODER_ENDS ? " and not the sum of attention_mask" : "");
}

/* Attention reads the cache behind the scatter: as many keys as there are, none that come later. */
static bool take_reader(finder *f, const hn_use *use, const hn_value *present) {
  const hone_node *n = use->node;
  if (!is_own(n) || (use->index != 1 && use->index != 2))
    return hn_refuse(f->why,
                     "output '%.60s' is read by node '%.60s' (%.30s), which would see the server's room",
                     present->name, n->name, n->op_type);
  if (!hone_node_int(n, "is_causal", 0))
    return hn_refuse(f->why, "node '%.60s' (Attention) sees tokens that come later", n->name);
  if (input_of(n, OWN_MASK))
    return hn_refuse(f->why, "node '%.60s' (Attention) has a mask as wide as the server's room", n->name);
  if (n->n_out > 3 && n->out[3])
    return hn_refuse(f->why, "node '%.60s' (Attention) gives its scores, as wide as the server's room",
                     n->name);
  for (uint32_t i = PRESENT_KEY; i < n->n_out && i < PRESENT_KEY + 2; i++)
    if (n->out[i] && (n->out[i]->is_output || n->out[i]->users.len))
      return hn_refuse(f->why,
                       "node '%.60s' (Attention) gives keys and values that are read, as wide as the "
                       "server's room",
                       n->name);
  return take_length(f, n, input_of(n, OWN_LENGTHS), HN_DECODER_ENDS, "nonpad_kv_seqlen");
}

static bool take_scattered(finder *f, const hone_node *n) {
  const hn_value *present = n->out[0];
  const int64_t axis = hone_node_int(n, "axis", -2);
  if (axis != 2 && axis != -2)
    return hn_refuse(f->why, "node '%.60s' (TensorScatter) writes along dimension %lld", n->name,
                     (long long)axis);
  if (strcmp(hone_node_string(n, "mode", "linear"), "linear") != 0)
    return hn_refuse(f->why, "node '%.60s' (TensorScatter) has a cache that drops tokens", n->name);
  if (!take_cache(f, n, n->in[CACHE], present, "cache", false)) return false;
  if (!take_length(f, n, input_of(n, INDICES), HN_DECODER_FED, "write_indices")) return false;
  for (size_t i = 0; i < present->users.len; i++)
    if (!take_reader(f, &present->users.ptr[i], present)) return false;
  return true;
}

/* ------------------------------------------------------------------ names */

static const hn_value *named(const finder *f, const char *name) {
  const hn_value *v = hn_value_find(f->model->graph, name);
  return v && v->is_input && !v->constant ? v : NULL;
}

static bool take_attention(finder *f, const hone_node *n) {
  const hn_value *lengths = input_of(n, LENGTHS), *total = input_of(n, TOTAL), *cos = input_of(n, COS);
  if (hone_node_int(n, "causal", 1) == 0)
    return hn_refuse(f->why, "node '%.60s' (GroupQueryAttention) sees tokens that come later", n->name);
  if (hone_node_int(n, "sliding_window_cache", 0) > 0 || input_of(n, QUERY_LENGTHS))
    return hn_refuse(f->why,
                     "node '%.60s' (GroupQueryAttention) has a cache that drops tokens, or query_seqlens",
                     n->name);
  if (!take_grouped_cache(f, n, 0) || !take_grouped_cache(f, n, 1)) return false;
  if (lengths && place(f, lengths) >= 0) {
    if (!take(f, lengths, HN_DECODER_LENGTHS, "seqlens_k")) return false;
  } else if (!f->mask) {
    return hn_refuse(f->why, "it has no input 'attention_mask', and seqlens_k of node '%.60s' is none",
                     n->name);
  } else if (!follows_sum(f, lengths, 1)) {
    return hn_refuse(f->why, "seqlens_k of node '%.60s' is not the sum of attention_mask less one", n->name);
  }
  if (total && place(f, total) >= 0) {
    if (total->is_output) return hn_refuse(f->why, "input '%.60s' is an output, too", total->name);
    if (!take(f, total, HN_DECODER_TOTAL, "total_sequence_length") || !for_attention_alone(f, total))
      return false;
  } else if (!f->mask || !follows_width(f, total)) {
    return hn_refuse(f->why, "total_sequence_length of node '%.60s' is not the width of attention_mask",
                     n->name);
  }
  if (cos && cos->desc.rank == 2 && cos->desc.dim[0] > 0 &&
      (f->d->positions < 0 || cos->desc.dim[0] < f->d->positions))
    f->d->positions = cos->desc.dim[0];
  return true;
}

/* The tables that ids and positions are looked up in say how many there may be. */
static int64_t rows_of(const hn_value *ids) {
  int64_t least = -1;
  for (size_t i = 0; ids && i < ids->users.len; i++) {
    const hn_use *u = &ids->users.ptr[i];
    const hn_value *table = input_of(u->node, 0);
    if (u->index != 1 ||
        (!hn_is_op(u->node, "Gather") && strcmp(u->node->op_type, "GatherBlockQuantized") != 0))
      continue;
    if (table && table->desc.rank >= 1 && table->desc.dim[0] > 0 && (least < 0 || table->desc.dim[0] < least))
      least = table->desc.dim[0];
  }
  return least;
}

static bool take_ids(finder *f) {
  const hn_value *ids = named(f, "input_ids"), *positions = named(f, "position_ids");
  if (!ids) return hn_refuse(f->why, "it has no input 'input_ids'");
  if (!is_int(ids->desc.dtype) || ids->desc.rank != 2)
    return hn_refuse(f->why, "input 'input_ids' is not of integers [batch, tokens]");
  if (!take(f, ids, HN_DECODER_TOKENS, "input_ids")) return false;
  f->d->vocabulary = rows_of(ids);
  if (!positions) return true;
  if (!is_int(positions->desc.dtype) || positions->desc.rank != 2)
    return hn_refuse(f->why, "input 'position_ids' is not of integers [batch, tokens]");
  const int64_t most = rows_of(positions);
  if (most > 0 && (f->d->positions < 0 || most < f->d->positions)) f->d->positions = most;
  return take(f, positions, HN_DECODER_POSITIONS, "position_ids");
}

static bool take_mask(finder *f) {
  f->mask = named(f, "attention_mask");
  if (!f->mask) return true;
  if (!is_int(f->mask->desc.dtype) || f->mask->desc.rank != 2)
    return hn_refuse(f->why, "input 'attention_mask' is not of integers [batch, tokens]");
  return take(f, f->mask, HN_DECODER_MASK, "attention_mask");
}

/* ------------------------------------------------------------------ outputs */

static bool is_present(const hn_decoder *d, uint32_t output) {
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].role == HN_DECODER_CACHE && d->in[i].output == output) return true;
  return false;
}

static bool take_logits(finder *f) {
  hn_decoder *d = f->d;
  uint32_t others = 0;
  for (uint32_t i = 0; i < d->n_out; i++) {
    const hn_value *v = f->model->graph->outputs.ptr[i];
    if (is_present(d, i)) continue;
    if (others++ == 0 || strcmp(v->name, "logits") == 0) d->logits = i;
  }
  const hn_value *v = others ? f->model->graph->outputs.ptr[d->logits] : NULL;
  if (!v || (others > 1 && strcmp(v->name, "logits") != 0))
    return hn_refuse(f->why, "it has no output 'logits'");
  const hone_dtype t = v->desc.dtype;
  return (t == HONE_DTYPE_F32 || t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16) && v->desc.rank >= 2 &&
                 v->desc.rank <= 3
             ? true
             : hn_refuse(f->why, "output '%.60s' is not of floats [batch, tokens, vocabulary]", v->name);
}

/* ------------------------------------------------------------------ all of it */

static bool take_node(finder *f, const hone_node *n) {
  if (is_attention(n)) {
    f->slots++;
    return take_attention(f, n);
  }
  if (strcmp(n->op_type, "PagedAttention") == 0 && strcmp(n->domain, "com.microsoft") == 0)
    return hn_refuse(f->why, "node '%.60s' (PagedAttention) has caches in pages, which the caller hands out",
                     n->name);
  if (scatters(f, n)) {
    f->slots++;
    return take_scattered(f, n);
  }
  if (joins(f, n) || (is_own(n) && (input_of(n, OWN_PAST_KEY) || input_of(n, OWN_PAST_VALUE)))) {
    f->joined++;
    return take_joined(f, n);
  }
  return true;
}

static bool find(finder *f) {
  hn_decoder *d = f->d;
  if (!take_ids(f) || !take_mask(f)) return false;
  for (const hone_node *n = f->model->graph->first; n; n = n->next)
    if (!take_node(f, n)) return false;
  if (!f->slots && !f->joined)
    return hn_refuse(f->why, "it has no cache as input and output: no node GroupQueryAttention, Attention, "
                             "TensorScatter or Concat of past and new tokens has one");
  if (f->slots && f->joined) return hn_refuse(f->why, "it has caches of several forms");
  if (f->joined && !f->mask)
    return hn_refuse(f->why, "it has no input 'attention_mask' that could tell which keys there are");
  if (f->slots && f->mask && !only_lengths(f)) return false;
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].role == HN_DECODER_ROLES)
      return hn_refuse(f->why, "input '%.60s' is none of input_ids, attention_mask, position_ids and caches",
                       d->in[i].name);
  return take_logits(f);
}

hone_status hn_decoder_find(const hn_model *model, hn_decoder *out, hone_reason *why, hone_error *error) {
  finder f = {.model = model, .d = out, .why = why};
  const hn_graph *g = model->graph;
  *out = (hn_decoder){.vocabulary = -1, .positions = -1, .n_out = (uint32_t)g->outputs.len};
  out->in = hn_calloc(g->inputs.len + 1, sizeof *out->in);
  if (!out->in) return hn_fail_memory(error, g->inputs.len * sizeof *out->in, "a decoder");
  for (size_t i = 0; i < g->inputs.len; i++) {
    const hn_value *v = g->inputs.ptr[i];
    if (v->constant) continue;
    hn_decoder_input *in = &out->in[out->n_in++];
    *in = (hn_decoder_input){
        .name = v->name, .role = HN_DECODER_ROLES, .dtype = v->desc.dtype, .rank = v->desc.rank};
    memcpy(in->dim, v->desc.dim, sizeof in->dim);
  }
  if (find(&f)) out->form = f.joined ? HN_DECODER_JOINED : HN_DECODER_SLOTS;
  return HONE_OK;
}

void hn_decoder_free(hn_decoder *d) {
  hn_free(d->in);
  *d = (hn_decoder){0};
}
