/* If, Loop and Scan: graphs within a graph. */
#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ir/eval_frame.h"
#include "model/ir/items.h"

#include <string.h>

static const hn_graph *body_of(const hone_node *n, const char *attr) {
  const hn_attr *a = hn_node_attr(n, attr);
  return a && a->type == HONE_ATTR_GRAPH ? a->g : NULL;
}

static bool truth(const hone_tensor *t) {
  return t->data && hone_desc_count(&t->desc) > 0 && *(const uint8_t *)t->data;
}

static hone_status eval_if(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                           hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  if (hone_desc_count(&in[0]->desc) != 1 || in[0]->desc.dtype != HONE_DTYPE_BOOL)
    return hn_fail(error, HONE_ERROR_INPUT, "the condition of If must be one bool");
  const hn_graph *g = body_of(n, truth(in[0]) ? "then_branch" : "else_branch");
  if (!g || g->outputs.len != n->n_out || g->inputs.len)
    return hn_fail(error, HONE_ERROR_INPUT,
                   "the branch of If has %zu outputs and %zu inputs, expected %u and 0",
                   g ? g->outputs.len : 0, g ? g->inputs.len : 0, n->n_out);
  hone_tensor *result = hn_calloc(n->n_out, sizeof *result);
  if (!result) return hn_fail_memory(error, n->n_out, "If");
  hone_status status = hn_eval_graph(g, NULL, result, scope, keep, budget, NULL, NULL, error);
  for (uint32_t i = 0; status == HONE_OK && i < n->n_out; i++) {
    if (out[i])
      *out[i] = result[i];
    else
      hn_budget_release(budget, &result[i]);
  }
  hn_free(result);
  return status;
}

/* Per-trip results of one output, to be stacked at the end. */
typedef HN_VEC(hone_tensor) pile;

static void pile_free(pile *p, hn_budget *budget) {
  for (size_t i = 0; i < p->len; i++) hn_budget_release(budget, &p->ptr[i]);
  hn_vec_free(p);
}

/* Stacks equal shapes along a new dimension `axis`; `like` gives dtype and shape when there is nothing to
 * stack. */
static hone_status stack(const pile *p, int64_t axis, bool backwards, const hone_tensor_desc *like,
                         hone_tensor *out, hn_budget *budget, hone_error *error) {
  hone_tensor_desc e = p->len ? p->ptr[0].desc : *like;
  if (!hone_dtype_is_tensor(e.dtype))
    return hn_fail(error, HONE_ERROR_INPUT, "a scan output is %s", hone_dtype_name(e.dtype));
  if (e.rank < 0) e.rank = 0;
  for (int32_t i = 0; i < e.rank; i++)
    if (e.dim[i] < 0) e.dim[i] = 0;
  if (e.rank + 1 > HONE_MAX_RANK)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the result has more than %d dimensions", HONE_MAX_RANK);
  if (axis < 0) axis += e.rank + 1;
  if (axis < 0 || axis > e.rank) return hn_fail(error, HONE_ERROR_INPUT, "scan output axis is out of range");
  for (size_t i = 1; i < p->len; i++)
    if (!hone_desc_same_dims(&p->ptr[i].desc, &e))
      return hn_fail(error, HONE_ERROR_INPUT, "a scan output changes its shape from trip to trip");
  int64_t dims[HONE_MAX_RANK], outer = 1, inner = 1;
  for (int32_t i = 0, o = 0; i <= e.rank; i++) dims[i] = i == axis ? (int64_t)p->len : e.dim[o++];
  for (int32_t i = 0; i < axis; i++) outer *= dims[i];
  for (int32_t i = (int32_t)axis + 1; i <= e.rank; i++) inner *= dims[i];
  out->desc = hone_desc(e.dtype, e.rank + 1, dims);
  int64_t bytes = hone_desc_bytes(&out->desc);
  if (bytes < 0) return hn_fail(error, HONE_ERROR_INPUT, "a scan output would be too large");
  hone_status status = hn_budget_alloc(budget, bytes, &out->data, error);
  if (status != HONE_OK) return status;
  size_t run = (size_t)inner * hone_dtype_size(e.dtype);
  for (size_t k = 0; k < p->len; k++) {
    size_t to = backwards ? p->len - 1 - k : k;
    for (int64_t o = 0; o < outer && run; o++)
      memcpy((char *)out->data + ((size_t)o * p->len + to) * run,
             (const char *)p->ptr[k].data + (size_t)o * run, run);
  }
  return HONE_OK;
}

/* Loop and Scan share the machinery: state that goes round, and outputs that pile up. */
typedef struct rounds {
  uint32_t n_state, n_scan;
  hn_frame frame;
  bool *given;         /* by input of the body: this trip's frame takes it over */
  hone_tensor *state;  /* [n_state] */
  bool *owned;         /* [n_state], in `given` */
  pile *piles;         /* [n_scan] */
  hone_tensor *result; /* scratch for a body's outputs */
} rounds;

/* The states are the body's inputs from `first` on. */
static hone_status rounds_begin(rounds *r, const hn_graph *body, hn_scope *scope, uint32_t first,
                                uint32_t n_state, uint32_t n_scan, hone_error *error) {
  const size_t n_results = body->outputs.len;
  *r = (rounds){.n_state = n_state, .n_scan = n_scan};
  r->state = hn_calloc(n_state, sizeof *r->state);
  r->given = hn_calloc(body->inputs.len, sizeof *r->given);
  r->piles = hn_calloc(n_scan, sizeof *r->piles);
  r->result = hn_calloc(n_results, sizeof *r->result);
  if (!r->state || !r->given || !r->piles || !r->result) return hn_fail_memory(error, n_results, "a loop");
  r->owned = r->given + first;
  return hn_frame_open(&r->frame, body, scope, error);
}

/* One trip. What it was given is gone afterwards, however it ends. */
static hone_status rounds_trip(rounds *r, const hone_tensor *const *args, hn_arena *keep, hn_budget *budget,
                               hone_error *error) {
  const hone_status status =
      hn_eval_frame(&r->frame, args, r->given, r->result, keep, budget, NULL, NULL, error);
  memset(r->given, 0, r->frame.graph->inputs.len * sizeof *r->given);
  return status;
}

static void rounds_end(rounds *r, hn_budget *budget) {
  for (uint32_t i = 0; r->owned && i < r->n_state; i++)
    if (r->owned[i]) hn_budget_release(budget, &r->state[i]);
  hn_frame_close(&r->frame);
  for (uint32_t i = 0; r->piles && i < r->n_scan; i++) pile_free(&r->piles[i], budget);
  hn_free(r->state);
  hn_free(r->given);
  hn_free(r->piles);
  hn_free(r->result);
}

/* A state that no trip has changed is the initial one; where the body makes what an optional holds, that. */
static hone_status untouched(const hone_tensor *state, const hone_tensor_desc *made, hone_tensor *out,
                             hn_budget *budget, hone_error *error) {
  const hone_dtype d = state->desc.dtype;
  if (d != HONE_OPTIONAL_OF(made->dtype) || d == made->dtype)
    return hn_copy_tensor(state, out, budget, error);
  const hone_items *held = hn_items(state);
  return held->count ? hn_copy_tensor(held->item[0], out, budget, error)
                     : hn_fail(error, HONE_ERROR_INPUT, "no trip was made, and a state is an empty optional");
}

/* Takes over a body's outputs: result[first...] are the new states, then the scan outputs. */
static hone_status rounds_take(rounds *r, uint32_t first, hn_budget *budget, hone_error *error) {
  for (uint32_t i = 0; i < r->n_state; i++) {
    r->state[i] = r->result[first + i];
    r->owned[i] = true;
    r->result[first + i].data = NULL;
  }
  for (uint32_t i = 0; i < r->n_scan; i++) {
    hone_tensor *t = &r->result[first + r->n_state + i];
    if (!hn_vec_push(&r->piles[i], *t)) {
      for (; i < r->n_scan; i++) hn_budget_release(budget, &r->result[first + r->n_state + i]);
      return hn_fail_memory(error, sizeof *t, "a loop's outputs");
    }
    t->data = NULL;
  }
  return HONE_OK;
}

static hone_status rounds_finish(rounds *r, hone_tensor *const *out, const hn_graph *body, uint32_t first,
                                 const int64_t *axes, const int64_t *directions, hn_budget *budget,
                                 hone_error *error) {
  for (uint32_t i = 0; i < r->n_state; i++) {
    if (!out[i]) continue;
    if (r->owned[i])
      *out[i] = r->state[i];
    else {
      hone_status status =
          untouched(&r->state[i], &body->outputs.ptr[first + i]->desc, out[i], budget, error);
      if (status != HONE_OK) return status;
    }
    r->owned[i] = false;
  }
  for (uint32_t i = 0; i < r->n_scan; i++) {
    if (!out[r->n_state + i]) continue;
    hone_status status =
        stack(&r->piles[i], axes ? axes[i] : 0, directions && directions[i],
              &body->outputs.ptr[first + r->n_state + i]->desc, out[r->n_state + i], budget, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

static hone_status eval_loop(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  const hn_graph *g = body_of(n, "body");
  uint32_t n_state = n->n_in >= 2 ? n->n_in - 2 : 0;
  if (!g || g->inputs.len != n_state + 2 || g->outputs.len != (size_t)n->n_out + 1 || n->n_out < n_state)
    return hn_fail(
        error, HONE_ERROR_INPUT,
        "the body of Loop does not fit: %zu inputs and %zu outputs for %u inputs and %u outputs of the node",
        g ? g->inputs.len : 0, g ? g->outputs.len : 0, n->n_in, n->n_out);
  int64_t trips = INT64_MAX;
  if (n->n_in > 0 && in[0]) {
    if (in[0]->desc.dtype != HONE_DTYPE_I64 || hone_desc_count(&in[0]->desc) != 1)
      return hn_fail(error, HONE_ERROR_INPUT, "the trip count of Loop must be one i64");
    trips = *(const int64_t *)in[0]->data;
  }
  uint8_t go = n->n_in > 1 && in[1] ? truth(in[1]) : 1;
  rounds r;
  const hone_tensor **args = hn_calloc(n_state + 2, sizeof *args);
  hone_status status = rounds_begin(&r, g, scope, 2, n_state, n->n_out - n_state, error);
  if (!args && status == HONE_OK) status = hn_fail_memory(error, n_state, "a loop");
  for (uint32_t i = 0; status == HONE_OK && i < n_state; i++) {
    if (!in[i + 2])
      status = hn_fail(error, HONE_ERROR_INPUT, "Loop lacks the initial value of state %u", i);
    else
      r.state[i] = *in[i + 2];
  }
  for (int64_t trip = 0; status == HONE_OK && go && trip < trips; trip++) {
    hone_tensor count = {hone_desc(HONE_DTYPE_I64, 0, NULL), &trip},
                cond = {hone_desc(HONE_DTYPE_BOOL, 0, NULL), &go};
    args[0] = &count;
    args[1] = &cond;
    for (uint32_t i = 0; i < n_state; i++) args[i + 2] = &r.state[i];
    status = hn_budget_check(budget, error);
    if (status == HONE_OK) status = rounds_trip(&r, args, keep, budget, error);
    if (status != HONE_OK) break;
    go = truth(&r.result[0]);
    hn_budget_release(budget, &r.result[0]);
    status = rounds_take(&r, 1, budget, error);
  }
  if (status == HONE_OK) status = rounds_finish(&r, out, g, 1, NULL, NULL, budget, error);
  rounds_end(&r, budget);
  hn_free(args);
  return status;
}

/* Element `at` of t along `axis`, copied. */
static hone_status slice_of(const hone_tensor *t, int64_t axis, int64_t at, hone_tensor *out,
                            hn_budget *budget, hone_error *error) {
  int64_t dims[HONE_MAX_RANK], outer = 1, inner = 1;
  for (int32_t i = 0, o = 0; i < t->desc.rank; i++) {
    if (i == axis) continue;
    dims[o++] = t->desc.dim[i];
    *(i < axis ? &outer : &inner) *= t->desc.dim[i];
  }
  out->desc = hone_desc(t->desc.dtype, t->desc.rank - 1, dims);
  hone_status status = hn_budget_alloc(budget, hone_desc_bytes(&out->desc), &out->data, error);
  size_t run = (size_t)inner * hone_dtype_size(t->desc.dtype);
  for (int64_t o = 0; status == HONE_OK && o < outer && run; o++)
    memcpy((char *)out->data + (size_t)o * run,
           (const char *)t->data + (size_t)(o * t->desc.dim[axis] + at) * run, run);
  return status;
}

/* How a Scan walks: lists may be NULL (axis 0, forwards). */
typedef struct walk {
  const hn_graph *body;
  uint32_t n_state, n_in, n_out;
  const int64_t *axes, *directions, *out_axes, *out_directions;
} walk;

/* One Scan without batch: in[0..n_state) are initial states, the rest is walked along its axis. */
static hone_status walk_scan(const walk *w, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  uint32_t n_state = w->n_state, n_scan_in = w->n_in - w->n_state;
  int64_t trips = -1;
  for (uint32_t i = n_state; i < w->n_in; i++) {
    int64_t axis = w->axes ? w->axes[i - n_state] : 0;
    if (!in[i] || in[i]->desc.rank < 1 || axis < -in[i]->desc.rank || axis >= in[i]->desc.rank)
      return hn_fail(error, HONE_ERROR_INPUT, "Scan input %u cannot be walked along axis %lld", i,
                     (long long)axis);
    if (axis < 0) axis += in[i]->desc.rank;
    if (trips >= 0 && trips != in[i]->desc.dim[axis])
      return hn_fail(error, HONE_ERROR_INPUT, "Scan inputs differ in length");
    trips = in[i]->desc.dim[axis];
  }
  rounds r;
  hone_status status = rounds_begin(&r, w->body, scope, 0, n_state, w->n_out - n_state, error);
  const hone_tensor **args = hn_calloc(w->n_in, sizeof *args);
  hone_tensor *slices = hn_calloc(n_scan_in, sizeof *slices);
  if ((!args || !slices) && status == HONE_OK) status = hn_fail_memory(error, w->n_in, "a scan");
  for (uint32_t i = 0; status == HONE_OK && i < n_state; i++) {
    if (!in[i])
      status = hn_fail(error, HONE_ERROR_INPUT, "Scan lacks the initial value of state %u", i);
    else
      r.state[i] = *in[i];
  }
  for (int64_t trip = 0; status == HONE_OK && trip < trips; trip++) {
    for (uint32_t i = 0; i < n_state; i++) args[i] = &r.state[i];
    for (uint32_t i = 0; status == HONE_OK && i < n_scan_in; i++) {
      const hone_tensor *t = in[n_state + i];
      int64_t axis = w->axes ? w->axes[i] : 0,
              at = w->directions && w->directions[i] ? trips - 1 - trip : trip;
      status = slice_of(t, axis < 0 ? axis + t->desc.rank : axis, at, &slices[i], budget, error);
      args[n_state + i] = &slices[i];
    }
    if (status != HONE_OK) break;
    for (uint32_t i = 0; i < n_scan_in; i++) r.given[n_state + i] = true;
    status = rounds_trip(&r, args, keep, budget, error);
    for (uint32_t i = 0; i < n_scan_in; i++) slices[i].data = NULL;
    if (status == HONE_OK) status = rounds_take(&r, 0, budget, error);
  }
  if (status == HONE_OK)
    status = rounds_finish(&r, out, w->body, 0, w->out_axes, w->out_directions, budget, error);
  for (uint32_t i = 0; slices && i < n_scan_in; i++) hn_budget_release(budget, &slices[i]);
  rounds_end(&r, budget);
  hn_free(args);
  hn_free(slices);
  return status;
}

/* Opset 8: in[0] may give lengths, and everything has a batch dimension in front, over which the scan is
 * repeated. */
static hone_status eval_scan_batch(const walk *w, const hone_tensor *const *in, hone_tensor *const *out,
                                   hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  hone_status status = HONE_OK;
  int64_t batch = in[1] && in[1]->desc.rank > 0 ? in[1]->desc.dim[0] : -1;
  hone_tensor *slices = hn_calloc(w->n_in, sizeof *slices), *made = hn_calloc(w->n_out, sizeof *made);
  const hone_tensor **args = hn_calloc(w->n_in, sizeof *args);
  hone_tensor **wanted = hn_calloc(w->n_out, sizeof *wanted);
  pile *piles = hn_calloc(w->n_out, sizeof *piles);
  if (!slices || !made || !args || !wanted || !piles) status = hn_fail_memory(error, w->n_in, "a scan");
  for (uint32_t i = 1; status == HONE_OK && i <= w->n_in; i++)
    if (!in[i] || in[i]->desc.rank < (i <= w->n_state ? 1 : 2) || in[i]->desc.dim[0] != batch)
      status = hn_fail(error, HONE_ERROR_INPUT,
                       "Scan input %u does not have the batch dimension of the others", i);
  for (int64_t b = 0; status == HONE_OK && in[0] && b < hone_desc_count(&in[0]->desc); b++)
    if (in[0]->desc.dtype != HONE_DTYPE_I64 || ((const int64_t *)in[0]->data)[b] != in[w->n_in]->desc.dim[1])
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED,
                       "Scan (opset 8) with sequences of different lengths is not implemented");
  for (int64_t b = 0; status == HONE_OK && b < batch; b++) {
    for (uint32_t i = 0; status == HONE_OK && i < w->n_in; i++) {
      status = slice_of(in[i + 1], 0, b, &slices[i], budget, error);
      args[i] = &slices[i];
    }
    for (uint32_t i = 0; i < w->n_out; i++) wanted[i] = &made[i];
    if (status == HONE_OK) status = walk_scan(w, args, wanted, scope, keep, budget, error);
    for (uint32_t i = 0; i < w->n_in; i++) hn_budget_release(budget, &slices[i]);
    for (uint32_t i = 0; i < w->n_out; i++) {
      if (status == HONE_OK && !hn_vec_push(&piles[i], made[i]))
        status = hn_fail_memory(error, sizeof *made, "a scan's outputs");
      if (status != HONE_OK) hn_budget_release(budget, &made[i]);
      made[i].data = NULL;
    }
  }
  for (uint32_t i = 0; status == HONE_OK && i < w->n_out; i++)
    if (out[i]) status = stack(&piles[i], 0, false, &w->body->outputs.ptr[i]->desc, out[i], budget, error);
  for (uint32_t i = 0; piles && i < w->n_out; i++) pile_free(&piles[i], budget);
  hn_free(slices);
  hn_free(made);
  hn_free((void *)args);
  hn_free(wanted);
  hn_free(piles);
  return status;
}

static hone_status eval_scan(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                             hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  bool batched = n->opset < 9;
  int64_t n_scan_in = hone_node_int(n, "num_scan_inputs", 0);
  uint32_t lead = batched ? 1 : 0, n_in = n->n_in >= lead ? n->n_in - lead : 0;
  walk w = {.body = body_of(n, "body"), .n_in = n_in, .n_out = n->n_out};
  if (!w.body || n_scan_in < 1 || n_scan_in > n_in || w.body->inputs.len != n_in ||
      w.body->outputs.len != n->n_out || n->n_out < n_in - n_scan_in)
    return hn_fail(error, HONE_ERROR_INPUT, "the body of Scan does not fit its inputs and outputs");
  w.n_state = n_in - (uint32_t)n_scan_in;
  size_t n_axes, n_dirs, n_oaxes, n_odirs;
  w.axes = hone_node_ints(n, "scan_input_axes", &n_axes);
  w.directions = hone_node_ints(n, batched ? "directions" : "scan_input_directions", &n_dirs);
  w.out_axes = hone_node_ints(n, "scan_output_axes", &n_oaxes);
  w.out_directions = hone_node_ints(n, "scan_output_directions", &n_odirs);
  if ((w.axes && n_axes != (size_t)n_scan_in) || (w.directions && n_dirs != (size_t)n_scan_in) ||
      (w.out_axes && n_oaxes != n->n_out - w.n_state) ||
      (w.out_directions && n_odirs != n->n_out - w.n_state))
    return hn_fail(error, HONE_ERROR_INPUT, "Scan's axes or directions have the wrong length");
  return batched ? eval_scan_batch(&w, in, out, scope, keep, budget, error)
                 : walk_scan(&w, in, out, scope, keep, budget, error);
}

hone_status hn_eval_control(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                            hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  for (uint32_t i = 0; i < n->n_out; i++)
    if (out[i]) *out[i] = (hone_tensor){.desc = {.rank = -1}};
  hone_status status = hn_budget_check(budget, error);
  if (status == HONE_OK)
    status = strcmp(n->op_type, "If") == 0            ? eval_if(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "Loop") == 0        ? eval_loop(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "Scan") == 0        ? eval_scan(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "SequenceMap") == 0 ? hn_eval_map(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "BeamSearch") == 0 || strcmp(n->op_type, "WhisperBeamSearch") == 0
                 ? hn_eval_beams(n, in, out, scope, keep, budget, error)
             : strcmp(n->op_type, "GreedySearch") == 0 || strcmp(n->op_type, "Sampling") == 0
                 ? hn_eval_search(n, in, out, scope, keep, budget, error)
                 : hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s is not a known control operator", n->op_type);
  if (status != HONE_OK) {
    for (uint32_t i = 0; i < n->n_out; i++)
      if (out[i]) hn_budget_release(budget, out[i]);
    if (error && !error->where[0]) hn_error_where(error, "node '%s' (%s)", n->name, n->op_type);
  }
  return status;
}
