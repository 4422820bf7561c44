/* See reference.h. */
#include "cli/op/reference.h"

#include "cli/op/numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory that a call has asked for. */
typedef struct block {
  struct block *next;
} block;

typedef struct memory {
  block *first;
} memory;

enum { ALIGN = 64 };

static void *take(memory *m, size_t bytes) {
  const size_t size = (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN;
  block *b = aligned_alloc(ALIGN, size);
  if (!b) return NULL;
  b->next = m->first;
  m->first = b;
  return (char *)b + ALIGN;
}

static void give_back(memory *m) {
  for (block *b = m->first, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  m->first = NULL;
}

static void *scratch(hone_call *c, size_t bytes) { return take(c->impl, bytes); }
static bool stopped(hone_call *c) {
  (void)c;
  return false;
}

static void *dense(const hone_tensor_desc *d) {
  const int64_t bytes = hone_desc_bytes(d);
  return bytes < 0 ? NULL : aligned_alloc(ALIGN, ((size_t)bytes + ALIGN) / ALIGN * ALIGN);
}

static hone_status out_of_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for a reference's results"};
  return HONE_ERROR_MEMORY;
}

static hone_status alloc_output(hone_call *c, uint32_t i, const hone_tensor_desc *desc, hone_error *error) {
  if (i >= c->n_outputs || !c->output[i]) return HONE_OK;
  hone_tensor *t = c->output[i];
  free(t->data);
  t->desc = *desc;
  hone_desc_set_layout(&t->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  return (t->data = dense(&t->desc)) ? HONE_OK : out_of_memory(error);
}

/* The inputs as they are, or in f64, or moved a little. */
static bool convert(const op_sample *s, hone_dtype dtype, double nudge, op_random *r, memory *m,
                    hone_tensor *in) {
  for (uint32_t i = 0; i < s->n_in; i++) {
    in[i] = s->in[i];
    const hone_dtype from = in[i].desc.dtype;
    if (!hone_dtype_is_float(from) || (dtype == HONE_DTYPE_NONE && nudge == 0)) continue;
    in[i].desc.dtype = dtype ? dtype : from;
    const int64_t n = hone_desc_count(&in[i].desc);
    in[i].data = take(m, (size_t)n * hone_dtype_size(in[i].desc.dtype));
    if (!in[i].data) return false;
    for (int64_t k = 0; k < n; k++) {
      const double v = op_element(from, s->in[i].data, k);
      /* By different amounts: terms that cancel must not move together. */
      const double by = nudge != 0 ? nudge * (0.5 + op_unit(r)) * (op_below(r, 2) ? 1 : -1) : 0;
      op_set_element(in[i].desc.dtype, in[i].data, k, v * (1 + by));
    }
  }
  return true;
}

hone_status op_reference(const op_sample *s, hone_dtype dtype, double nudge, op_random *r, hone_tensor *out,
                         hone_error *error) {
  memory m = {0};
  hone_tensor in[OP_MOST];
  const hone_tensor *pin[OP_MOST];
  const hone_tensor_desc *din[OP_MOST];
  hone_tensor *pout[OP_MOST];
  hone_tensor_desc *dout[OP_MOST];
  hone_status status = HONE_OK;
  memset(out, 0, s->n_out * sizeof *out);
  if (!convert(s, dtype, nudge, r, &m, in)) status = out_of_memory(error);
  for (uint32_t i = 0; i < s->n_in; i++) {
    pin[i] = in[i].desc.dtype ? &in[i] : NULL;
    din[i] = pin[i] ? &in[i].desc : NULL;
  }
  for (uint32_t i = 0; i < s->n_out; i++) {
    pout[i] = s->out[i].dtype ? &out[i] : NULL;
    out[i].desc.rank = -1;
    dout[i] = pout[i] ? &out[i].desc : NULL;
  }
  hone_call call = {.node = s->node,
                    .n_inputs = s->n_in,
                    .n_outputs = s->n_out,
                    .input = pin,
                    .output = pout,
                    .alloc_output = alloc_output,
                    .scratch = scratch,
                    .scratch_keep = scratch,
                    .stopped = stopped,
                    .impl = &m};
  if (status == HONE_OK)
    status = s->op->infer(&(hone_infer){s->node, s->n_in, s->n_out, din, pin, dout}, error);
  for (uint32_t i = 0; i < s->n_out && status == HONE_OK; i++) {
    if (!pout[i] || !hone_desc_known(&out[i].desc)) continue;
    const hone_tensor_desc d = out[i].desc;
    status = alloc_output(&call, i, &d, error);
  }
  if (status == HONE_OK) status = s->op->reference(&call, error);
  for (uint32_t i = 0; i < s->n_out && status == HONE_OK; i++)
    if (pout[i] && (!out[i].data || !hone_desc_same_dims(&out[i].desc, &s->out[i]))) {
      *error = (hone_error){.status = status = HONE_ERROR_INTERNAL};
      snprintf(error->what, sizeof error->what, "output %u has not the shape that inference told", i);
    }
  give_back(&m);
  if (status != HONE_OK) op_outputs_free(out, s->n_out);
  return status;
}

void op_outputs_free(hone_tensor *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    free(out[i].data);
    out[i].data = NULL;
  }
}
