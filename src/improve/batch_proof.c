#include "improve/batch_proof.h"

#include "base/error.h"
#include "base/mem.h"
#include "improve/compare.h"
#include "improve/side.h"

#include <string.h>

enum { HALVES = 2 };

typedef struct proof {
  hn_side one, both; /* the model as it was; with twice the batch */
  uint32_t n_in, n_out;
  hn_feed *half[HALVES]; /* [n_in], owned */
  hn_feed *whole; /* [n_in]; data of those that follow the batch is owned here, of others it is half[0]'s */
  hone_tensor *want[HALVES]; /* [n_out], data owned */
} proof;

static bool follows(const hone_tensor_desc *whole, const hone_tensor_desc *half) {
  return hone_desc_bytes(whole) == HALVES * hone_desc_bytes(half) && hone_desc_bytes(half) > 0;
}

static hone_status make_feeds(proof *p, const hn_model *fixed, hone_error *error) {
  for (uint32_t i = 0; i < p->n_in; i++) {
    const hn_value *in = p->one.plan->inputs[i];
    const bool stacked = follows(&p->both.plan->inputs[i]->desc, &in->desc);
    for (uint32_t k = 0; k < HALVES; k++) {
      p->half[k][i].name = in->name;
      const hone_status status = hone_data_random(in->name, &in->desc, hone_model_input_bound(fixed, i),
                                                  1 + (stacked ? k : 0), &p->half[k][i].data, error);
      if (status != HONE_OK) return status;
    }
    p->whole[i] = p->half[0][i];
    if (!stacked) continue;
    const size_t bytes = (size_t)hone_desc_bytes(&in->desc);
    char *data = hn_malloc(HALVES * bytes);
    p->whole[i].data.tensor = (hone_tensor){p->both.plan->inputs[i]->desc, data};
    if (!data) return hn_fail_memory(error, HALVES * bytes, "a batch to try");
    for (uint32_t k = 0; k < HALVES; k++) memcpy(data + k * bytes, p->half[k][i].data.tensor.data, bytes);
  }
  return HONE_OK;
}

static hone_status run_halves(proof *p, hone_error *error) {
  for (uint32_t k = 0; k < HALVES; k++) {
    hone_status status = hn_side_run(&p->one, p->half[k], p->n_in, error);
    if (status != HONE_OK) return status;
    for (uint32_t i = 0; i < p->n_out; i++) {
      const hone_tensor *t = hn_context_output(p->one.context, i);
      const int64_t bytes = hn_dtype_points(t->desc.dtype) ? 0 : hone_desc_bytes(&t->desc);
      p->want[k][i].desc = t->desc;
      if (bytes <= 0) continue;
      p->want[k][i].data = hn_malloc((size_t)bytes);
      if (!p->want[k][i].data)
        return hn_fail_memory(error, (unsigned long long)bytes, "an answer to compare with");
      memcpy(p->want[k][i].data, t->data, (size_t)bytes);
    }
  }
  return HONE_OK;
}

static hone_status compare_halves(proof *p, hone_error *error) {
  for (uint32_t i = 0; i < p->n_out; i++) {
    const hone_tensor *whole = hn_context_output(p->both.context, i);
    const char *name = p->one.plan->outputs[i]->name;
    for (uint32_t k = 0; k < HALVES; k++) {
      const hone_tensor *want = &p->want[k][i];
      if (!want->data) continue;
      if (!follows(&whole->desc, &want->desc))
        return hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%s' does not follow the batch", name);
      const hone_tensor part = {want->desc, (char *)whole->data + k * (size_t)hone_desc_bytes(&want->desc)};
      hn_difference d;
      hn_compare(&part, want, &d);
      const double scale = d.range > 0 ? d.range : d.magnitude;
      if (!d.unlike && d.max_abs <= hn_verify_tolerance(want->desc.dtype, false) * scale) continue;
      hn_fail(error, HONE_ERROR_UNSUPPORTED,
              "output '%s' of a sample changes with the other samples of its batch", name);
      hn_error_hint(
          error,
          "a node works across the first dimension (its axis 0, or all axes): this model has one batch");
      return HONE_ERROR_UNSUPPORTED;
    }
  }
  return HONE_OK;
}

static void release(proof *p) {
  for (uint32_t i = 0; p->whole && i < p->n_in; i++)
    if (p->whole[i].data.tensor.data != p->half[0][i].data.tensor.data) hn_free(p->whole[i].data.tensor.data);
  for (uint32_t k = 0; k < HALVES; k++) {
    for (uint32_t i = 0; p->half[k] && i < p->n_in; i++) hone_data_free(&p->half[k][i].data);
    for (uint32_t i = 0; p->want[k] && i < p->n_out; i++) hn_free(p->want[k][i].data);
    hn_free(p->half[k]), hn_free(p->want[k]);
  }
  hn_free(p->whole);
  hn_side_close(&p->one);
  hn_side_close(&p->both);
}

static bool reserve(proof *p) {
  p->n_in = p->one.plan->n_inputs, p->n_out = p->one.plan->n_outputs;
  p->whole = hn_calloc(p->n_in + 1, sizeof *p->whole);
  bool ok = p->whole != NULL;
  for (uint32_t k = 0; k < HALVES; k++) {
    p->half[k] = hn_calloc(p->n_in + 1, sizeof *p->half[k]);
    p->want[k] = hn_calloc(p->n_out + 1, sizeof *p->want[k]);
    ok = ok && p->half[k] && p->want[k];
  }
  return ok;
}

hone_status hn_prove_batch(hn_model *fixed, hn_model *open, hone_error *error) {
  proof p = {0};
  int64_t batch = 1;
  for (size_t i = 0; i < fixed->graph->inputs.len; i++) {
    const hn_value *v = fixed->graph->inputs.ptr[i], *o = open->graph->inputs.ptr[i];
    if (v->desc.rank > 0 && o->desc.rank > 0 && o->desc.dim[0] < 0) batch = v->desc.dim[0];
  }
  hn_side_options options = {.level = 1, .threads = 1};
  hone_status status = hn_side_open(fixed, &options, &p.one, error);
  options.batch = HALVES * batch;
  if (status == HONE_OK) status = hn_side_open(open, &options, &p.both, error);
  if (status == HONE_OK && !reserve(&p)) status = hn_fail_memory(error, sizeof p, "a batch to try");
  if (status == HONE_OK) status = make_feeds(&p, fixed, error);
  if (status == HONE_OK) status = run_halves(&p, error);
  if (status == HONE_OK) status = hn_side_run(&p.both, p.whole, p.n_in, error);
  if (status == HONE_OK) status = compare_halves(&p, error);
  release(&p);
  return status;
}
