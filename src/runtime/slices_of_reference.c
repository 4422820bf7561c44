/* References of elementwise operators in slices of their outermost dimension, on all threads: those of types
 * that have no kernels. */
#include "runtime/slices_of_reference.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/dims.h"
#include "base/fault.h"
#include "base/integers.h"

enum { PER_SLICE = 1 << 15 /* elements at least */, MOST_SLICES = 64, MOST_INPUTS = 8 };

typedef struct slices {
  const hone_call *call;
  hone_status (*reference)(hone_call *call, hone_error *error);
  int32_t axis; /* of the result */
  int64_t n, each;
  pthread_mutex_t lock; /* of the call's memory */
  atomic_int status;
} slices;

/* The axis from the end of a tensor that has it; -1: it has not, or one element for all slices. */
static int32_t own_axis(const hone_tensor_desc *d, const hone_tensor_desc *y, int32_t axis) {
  const int32_t own = axis - (y->rank - d->rank);
  return own < 0 || d->dim[own] == 1 ? -1 : own;
}

static bool cut(const hone_call *call, slices *s) {
  const hone_tensor *y = call->output[0];
  if (call->n_outputs != 1 || !y || call->n_inputs > MOST_INPUTS) return false;
  if (y->desc.dtype == HONE_DTYPE_STRING || hone_desc_count(&y->desc) < 2 * PER_SLICE) return false;
  s->axis = 0;
  while (y->desc.dim[s->axis] == 1) s->axis++;
  s->n = y->desc.dim[s->axis];
  for (uint32_t i = 0; i < call->n_inputs; i++) {
    const hone_tensor *x = call->input[i];
    if (!x) continue;
    if (x->desc.dtype == HONE_DTYPE_STRING || x->desc.rank > y->desc.rank) return false;
    const int32_t own = own_axis(&x->desc, &y->desc, s->axis);
    /* In front of it only ones, so that a slice is one piece; it has what the result has. */
    if (own >= 0 && (x->desc.dim[own] != s->n || hn_dims(&x->desc, 0, own) != 1)) return false;
  }
  const int64_t row = hone_desc_count(&y->desc) / s->n;
  s->each = hn_max(hn_div_up(PER_SLICE, row), hn_div_up(s->n, MOST_SLICES));
  return s->n > s->each;
}

static hone_tensor slice_of(const hone_tensor *t, const hone_tensor_desc *y, const slices *s, int64_t from,
                            int64_t n) {
  hone_tensor part = *t;
  const int32_t own = own_axis(&t->desc, y, s->axis);
  if (own < 0) return part;
  const size_t bytes = (size_t)hn_dims(&t->desc, own + 1, t->desc.rank) * hone_dtype_size(t->desc.dtype);
  part.desc.dim[own] = n;
  part.data = (char *)t->data + (size_t)from * bytes;
  return part;
}

static void *locked(slices *s, void *(*take)(hone_call *call, size_t bytes), size_t bytes) {
  hone_call whole = *s->call;
  pthread_mutex_lock(&s->lock);
  void *p = take(&whole, bytes);
  pthread_mutex_unlock(&s->lock);
  return p;
}

static void *locked_scratch(hone_call *call, size_t bytes) {
  slices *s = call->impl;
  return locked(s, s->call->scratch, bytes);
}

static void *locked_scratch_keep(hone_call *call, size_t bytes) {
  slices *s = call->impl;
  return locked(s, s->call->scratch_keep, bytes);
}

static bool is_stopped(hone_call *call) {
  slices *s = call->impl;
  hone_call whole = *s->call;
  return atomic_load_explicit(&s->status, memory_order_relaxed) != HONE_OK || whole.stopped(&whole);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  slices *s = arg;
  const hone_call *whole = s->call;
  const int64_t from = index * s->each, n = hn_min(s->each, s->n - from);
  hone_tensor in[MOST_INPUTS], out = slice_of(whole->output[0], &whole->output[0]->desc, s, from, n);
  const hone_tensor *input[MOST_INPUTS] = {0};
  hone_tensor *output[1] = {&out};
  hone_call call = *whole;
  (void)thread;
  for (uint32_t i = 0; i < whole->n_inputs; i++) {
    if (!whole->input[i]) continue;
    in[i] =
        slice_of(whole->input[i], &whole->output[0]->desc, s, HN_FAULT("slices_of_reference") ? 0 : from, n);
    input[i] = &in[i];
  }
  call.input = input, call.output = output;
  call.scratch = locked_scratch, call.scratch_keep = locked_scratch_keep;
  call.stopped = is_stopped, call.impl = s;
  hone_error unread = {0}; /* who fails is asked again, as a whole */
  const hone_status status = s->reference(&call, &unread);
  if (status) atomic_store(&s->status, status);
}

bool hn_reference_in_slices(const hn_plan *p, hone_call *call, const hone_op_desc *op, hone_status *status) {
  slices s = {.call = call, .reference = op->reference};
  /* Before opset 7 operands may lie elsewhere than at the end. */
  if (!(op->flags & HONE_OP_POINTWISE) || hone_node_has(call->node, "axis") || !cut(call, &s)) return false;
  atomic_init(&s.status, HONE_OK);
  if (pthread_mutex_init(&s.lock, NULL)) return false;
  p->backend->parallel(p->device, hn_div_up(s.n, s.each), task, &s);
  pthread_mutex_destroy(&s.lock);
  *status = (hone_status)atomic_load(&s.status);
  return true;
}
