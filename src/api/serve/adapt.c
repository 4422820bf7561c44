/* Decoders as a device runs them, whose caches lie in its memory and stay there: one node for each cache
 * writes the new tokens where the cache lies.
 *
 * GroupQueryAttention does so by itself. TensorScatter and Attention of so many keys are what it computes, in
 * two steps: it takes their place. Joined caches come in and are handed on as they are, and what the model
 * joins to them is written into them, too, behind what the sequence has; tokens of nobody are written as
 * zeros, so that holes stay empty. */
#include "api/serve/slots.h"
#include "base/error.h"
#include "base/fault.h"
#include "model/operators.h"
#include "model/ops/common/op.h"

#include <string.h>

/* Inputs of ONNX's own Attention, and of TensorScatter. */
enum { Q, K, V, LENGTHS = 6 };
enum { PAST, UPDATE };
enum { PRESENT_KEY = 1 }; /* outputs of attention */

typedef struct adapter {
  hn_slots *s;
  hn_decoder *d;
  hn_graph *g;
  hn_value *fed, *real; /* joined: [batch], and [batch, 1, tokens, 1] as bool */
  hone_error *error;
} adapter;

static hone_status no_memory(const adapter *a) { return hn_fail_memory(a->error, 0, "a decoder"); }

/* ------------------------------------------------------------------ nodes: NULL without memory */

/* Before `before` (NULL: at the end), for what `of` did. */
static hone_node *node(const adapter *a, hone_node *before, const hone_node *of, const char *op,
                       const char *domain, hn_value *const *in, uint32_t n_in, uint32_t n_out) {
  hn_value *out[3] = {NULL, NULL, NULL};
  int64_t opset;
  for (uint32_t i = 0; i < n_out; i++)
    if (!(out[i] = hn_value_create(a->g, NULL))) return NULL;
  for (uint32_t i = 0; i < n_in; i++)
    if (!in[i]) return NULL;
  hone_node *n = hn_node_create(a->g, before, op, domain, NULL, in, n_in, out, n_out);
  if (!n || !hn_node_inherit(n, of)) return NULL;
  /* Whatever the model imports: these are known. */
  n->op = hn_op_find(a->s->model->operators, domain, op, hn_model_opset(a->s->model, domain), NULL);
  if (!n->op) n->op = hn_op_newest(a->s->model->operators, domain, op, &opset);
  return n;
}

static hn_value *op(const adapter *a, hone_node *before, const hone_node *of, const char *type, hn_value *x,
                    hn_value *y, hn_value *z) {
  hn_value *const in[3] = {x, y, z};
  const uint32_t n_in = z ? 3 : y ? 2 : 1;
  const hone_node *n = x ? node(a, before, of, type, "", in, n_in, 1) : NULL;
  return n ? n->out[0] : NULL;
}

static hn_value *numbers(const adapter *a, hone_dtype type, int32_t rank, int64_t n, const void *of) {
  const hone_tensor_desc d = hone_desc(type, rank, &n);
  return hn_value_constant(a->g, NULL, &d, of, true);
}

static hn_value *turned(const adapter *a, hone_node *before, const hone_node *of, hn_value *x) {
  static const int64_t order[4] = {0, 2, 1, 3};
  hn_value *y = op(a, before, of, "Transpose", x, NULL, NULL);
  return y && hn_node_set_ints(y->producer, "perm", order, 4) ? y : NULL;
}

/* [batch, heads, tokens, size] -> [batch, tokens, heads * size] */
static hn_value *flat(const adapter *a, hone_node *before, const hone_node *of, hn_value *x, int64_t heads,
                      int64_t size) {
  const int64_t shape[3] = {0, 0, heads * size};
  hn_value *y = turned(a, before, of, x);
  return y ? op(a, before, of, "Reshape", y, numbers(a, HONE_DTYPE_I64, 1, 3, shape), NULL) : NULL;
}

/* The way back. */
static hn_value *apart(const adapter *a, hone_node *before, const hone_node *of, hn_value *x, int64_t heads,
                       int64_t size) {
  const int64_t shape[4] = {0, 0, heads, size};
  hn_value *y = op(a, before, of, "Reshape", x, numbers(a, HONE_DTYPE_I64, 1, 4, shape), NULL);
  return y ? turned(a, before, of, y) : NULL;
}

static hn_value *cast(const adapter *a, hone_node *before, const hone_node *of, hn_value *x,
                      hone_dtype type) {
  hn_value *y = op(a, before, of, "Cast", x, NULL, NULL);
  return y && hn_node_set_int(y->producer, "to", type) ? y : NULL;
}

/* ------------------------------------------------------------------ inputs and outputs */

void hn_adapt_drop(hn_slots *s, hn_decoder *d, uint32_t at) {
  hn_graph *g = s->model->graph;
  hn_value *v = hn_value_find(g, d->in[at].name);
  for (size_t i = 0; i < g->inputs.len; i++)
    if (g->inputs.ptr[i] == v) {
      g->inputs.len--;
      memmove(&g->inputs.ptr[i], &g->inputs.ptr[i + 1], (g->inputs.len - i) * sizeof *g->inputs.ptr);
      break;
    }
  v->is_input = false;
  d->n_in--;
  memmove(&d->in[at], &d->in[at + 1], (d->n_in - at) * sizeof *d->in);
}

static hn_value *add_input(const adapter *a, hn_decoder_role role, int32_t rank, const int64_t *dim) {
  hn_decoder_input *more = hn_realloc(a->d->in, (a->d->n_in + 2) * sizeof *more);
  if (!more) return NULL;
  a->d->in = more;
  hn_value *v = hn_value_create(a->g, NULL);
  if (!v) return NULL;
  v->desc = hone_desc(HONE_DTYPE_I64, rank, dim);
  if (!hn_graph_add_input(a->g, v)) return NULL;
  hn_decoder_input *in = &more[a->d->n_in++];
  *in = (hn_decoder_input){.name = v->name, .role = role, .dtype = HONE_DTYPE_I64, .rank = rank};
  memcpy(in->dim, dim, (size_t)rank * sizeof *dim);
  return v;
}

/* Output number i is that value from now on. */
static void hand_on(const adapter *a, uint32_t i, hn_value *v) {
  hn_value *old = a->g->outputs.ptr[i];
  a->g->outputs.ptr[i] = v;
  v->is_output = true;
  old->is_output = false;
  for (size_t k = 0; k < a->g->outputs.len; k++) old->is_output |= a->g->outputs.ptr[k] == old;
}

static uint32_t output_of(const adapter *a, const hn_value *past) {
  for (uint32_t i = 0; i < a->d->n_in; i++)
    if (strcmp(a->d->in[i].name, past->name) == 0) return a->d->in[i].output;
  return 0;
}

static const hn_decoder_input *input_for(const hn_decoder *d, hn_decoder_role role) {
  for (uint32_t i = 0; i < d->n_in; i++)
    if (d->in[i].role == role) return &d->in[i];
  return NULL;
}

/* ------------------------------------------------------------------ caches written at an index */

static const hone_node *scatter_of(const hone_node *n, uint32_t i) {
  const hone_node *p = i < n->n_in && n->in[i] ? n->in[i]->producer : NULL;
  return hn_is_op(p, "TensorScatter") ? p : NULL;
}

static bool takes_its_place(const hone_node *n, const hone_node *const from[2], hone_error *error) {
  const hone_tensor_desc *k = &from[0]->in[PAST]->desc, *v = &from[1]->in[PAST]->desc,
                         *q = n->in[Q] ? &n->in[Q]->desc : NULL;
  const char *why =
      q && q->rank == 4 && q->dim[1] < 1                                 ? "an open number of heads"
      : !q || (q->rank != 3 && q->rank != 4)                             ? "queries of unknown form"
      : from[0]->in[UPDATE]->desc.rank != 4                              ? "new keys of unknown form"
      : from[1]->in[UPDATE]->desc.rank != 4                              ? "new values of unknown form"
      : k->dim[1] != v->dim[1] || k->dim[3] != v->dim[3]                 ? "values of another size than keys"
      : from[0]->out[0]->users.len > 1 || from[1]->out[0]->users.len > 1 ? "keys that others read"
      : hone_node_int(n, "left_window_size", -1) >= 0 || hone_node_int(n, "right_window_size", -1) >= 0
          ? "a window"
          : NULL;
  if (!why) return true;
  hn_fail(error, HONE_ERROR_UNSUPPORTED,
          "node '%.60s' (Attention) has %s, and is generated with on the processor alone", n->name, why);
  return false;
}

/* GroupQueryAttention in place of both TensorScatters and their Attention. */
static hone_status group(const adapter *a, hone_node *n, const hone_node *const from[2]) {
  const hone_tensor_desc *k = &from[0]->in[PAST]->desc, *q = &n->in[Q]->desc;
  const int64_t heads = q->rank == 4 ? q->dim[1] : hone_node_int(n, "q_num_heads", 1), kv_heads = k->dim[1],
                size = k->dim[3], one = 1;
  const int32_t room = (int32_t)a->s->context;
  const float scale = hone_node_float(n, "scale", 0), cap = hone_node_float(n, "softcap", 0);
  hn_value *less = op(a, n, n, "Sub", n->in[LENGTHS], numbers(a, HONE_DTYPE_I64, 0, 1, &one), NULL),
           *in[7] = {q->rank == 4 ? flat(a, n, n, n->in[Q], heads, size) : n->in[Q],
                     flat(a, n, n, from[0]->in[UPDATE], kv_heads, size),
                     flat(a, n, n, from[1]->in[UPDATE], kv_heads, size),
                     from[0]->in[PAST],
                     from[1]->in[PAST],
                     less ? cast(a, n, n, less, HONE_DTYPE_I32) : NULL,
                     numbers(a, HONE_DTYPE_I32, 1, 1, &room)};
  hone_node *made = node(a, n, n, "GroupQueryAttention", "com.microsoft", in, 7, 3);
  if (!made || !hn_node_inherit(made, from[0]) || !hn_node_inherit(made, from[1]) ||
      !hn_node_set_int(made, "num_heads", heads) || !hn_node_set_int(made, "kv_num_heads", kv_heads) ||
      (scale != 0 && !hn_node_set_float(made, "scale", scale)) ||
      (cap > 0 && !hn_node_set_float(made, "softcap", cap)))
    return no_memory(a);
  hn_value *y = q->rank == 4 ? apart(a, n, n, made->out[0], heads, size) : made->out[0];
  if (!y || !hn_value_replace(n->out[0], y)) return no_memory(a);
  for (uint32_t i = 0; i < 2; i++) hand_on(a, output_of(a, from[i]->in[PAST]), made->out[PRESENT_KEY + i]);
  hn_node_remove(n);
  for (uint32_t i = 0; i < 2; i++) hn_node_remove((hone_node *)(uintptr_t)from[i]);
  return HONE_OK;
}

static hone_status group_all(const adapter *a) {
  hone_status status = HONE_OK;
  bool any = false;
  for (hone_node *n = a->g->first, *next; n && status == HONE_OK; n = next) {
    next = n->next;
    const hone_node *const from[2] = {scatter_of(n, K), scatter_of(n, V)};
    if (!hn_is_op(n, "Attention") || !from[0] || !from[1]) continue;
    if (!takes_its_place(n, from, a->error)) return HONE_ERROR_UNSUPPORTED;
    status = group(a, n, from);
    any = true;
  }
  if (status != HONE_OK || !any) return status;
  for (uint32_t i = 0; i < a->d->n_in; i++) { /* it follows from the lengths */
    const hn_value *v = hn_value_find(a->g, a->d->in[i].name);
    if (a->d->in[i].role == HN_DECODER_FED && !v->users.len) hn_adapt_drop(a->s, a->d, i--);
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ joined caches */

/* Once for all: where tokens go, and which are somebody's. */
static hone_status ask(adapter *a, const hone_node *of) {
  const hn_decoder_input *ids = input_for(a->d, HN_DECODER_TOKENS);
  const int64_t dim[4] = {ids->dim[0], 1, ids->dim[1], 1};
  a->fed = add_input(a, HN_DECODER_FED, 1, dim);
  hn_value *real = a->fed ? add_input(a, HN_DECODER_REAL, 4, dim) : NULL;
  a->real = real ? cast(a, a->g->first, of, real, HONE_DTYPE_BOOL) : NULL;
  return a->real ? HONE_OK : no_memory(a);
}

/* What is joined to the cache, as it is. NULL: no memory. */
static hn_value *joined_to(const adapter *a, hone_node *n, const hn_value *present, int64_t heads,
                           int64_t size) {
  hn_value *v = hn_is_op(n, "Concat") ? n->in[1] : n->in[present->producer_index == PRESENT_KEY ? K : V];
  return v->desc.rank == 4 ? v : apart(a, NULL, n, v, heads, size);
}

static hone_status write_in(adapter *a, const hn_decoder_input *in) {
  static const uint32_t zero = 0; /* of any type of floats */
  hn_value *past = hn_value_find(a->g, in->name), *present = a->g->outputs.ptr[in->output];
  hone_node *n = present->producer;
  const hone_tensor_desc d = hone_desc(in->dtype, 0, NULL);
  hn_value *fresh = joined_to(a, n, present, in->dim[1], in->dim[3]),
           *none = hn_value_constant(a->g, NULL, &d, &zero, true);
  fresh = fresh && none ? op(a, NULL, n, "Where", a->real, fresh, none) : NULL;
  hn_value *at = HN_FAULT("generate_written_in_front") ? NULL : a->fed,
           *to = fresh ? op(a, NULL, n, "TensorScatter", past, fresh, at) : NULL;
  if (!to) return no_memory(a);
  hand_on(a, in->output, to);
  return HONE_OK;
}

static hone_status write_all(adapter *a) {
  hone_status status = HONE_OK;
  const uint32_t n = a->d->n_in;
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    if (a->d->in[i].role != HN_DECODER_CACHE) continue;
    if (!a->fed) status = ask(a, a->g->outputs.ptr[a->d->in[i].output]->producer);
    const hn_decoder_input in = a->d->in[i];
    if (status == HONE_OK) status = write_in(a, &in);
  }
  return status;
}

hone_status hn_adapt(hn_slots *s, hn_decoder *d, hone_error *error) {
  adapter a = {.s = s, .d = d, .g = s->model->graph, .error = error};
  return d->form == HN_DECODER_JOINED ? write_all(&a) : group_all(&a);
}
