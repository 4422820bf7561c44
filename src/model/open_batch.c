/* A model that was exported for one batch size takes any.
 *
 * Exporters write the batch into the inputs' shapes, and into the constant shapes of Reshape, where 0 ("as in
 * the input") says the same for every batch. What else depends on the batch is then for shape inference to
 * say: the result counts only when with the old batch nothing has another shape than before, another batch
 * infers, too, and every output follows it. */
#include "model/open_batch.h"

#include "base/error.h"
#include "model/bind.h"

#include <stdio.h>
#include <string.h>

/* Dimension 0 of an input that may be a batch: of something with more dimensions than that one. */
static int64_t *batch_of(hn_value *v) {
  return v->is_input && !v->constant && !v->foreign && v->desc.rank >= 2 ? &v->desc.dim[0] : NULL;
}

/* The batch that all inputs agree on. */
static hone_status find_batch(const hn_model *m, int64_t *batch, hone_error *error) {
  const char *from = NULL;
  for (size_t i = 0; i < m->graph->inputs.len; i++) {
    hn_value *v = m->graph->inputs.ptr[i];
    const int64_t *d = batch_of(v);
    if (!d) continue;
    if (*d < 0)
      return hn_fail(error, HONE_ERROR_USAGE,
                     "the batch is open already: dimension 0 of input '%s' is not fixed", v->name);
    if (from && *d != *batch) {
      hn_fail(error, HONE_ERROR_USAGE, "inputs '%s' and '%s' begin with different sizes: which is the batch?",
              from, v->name);
      hn_error_got(error, "%lld and %lld", (long long)*batch, (long long)*d);
      return HONE_ERROR_USAGE;
    }
    *batch = *d, from = v->name;
  }
  return from ? HONE_OK
              : hn_fail(error, HONE_ERROR_USAGE,
                        "no input has two or more dimensions, of which the first could be a batch");
}

/* A symbol that no dimension has yet: N, N1... */
static int64_t new_symbol(hn_model *m) {
  int64_t symbol = HONE_DIM_UNKNOWN;
  const size_t before = m->symbols.len;
  char name[24] = "N";
  for (int k = 1; m->symbols.len == before; k++) {
    symbol = hn_model_symbol(m, name);
    if (symbol == HONE_DIM_UNKNOWN) break;
    snprintf(name, sizeof name, "N%d", k);
  }
  return symbol;
}

static const hone_tensor *known(const hn_value *v) {
  if (v->constant || !hn_is_op(v->producer, "Constant")) return v->constant;
  const hn_attr *a = hn_node_attr(v->producer, "value");
  return a && a->type == HONE_ATTR_TENSOR ? a->t : NULL;
}

/* A Reshape whose constant shape begins with the batch takes dimension 0 from its input. */
static hone_status open_reshape(hone_node *n, int64_t batch, hone_error *error) {
  if (!hn_is_op(n, "Reshape") || n->n_in < 2 || !n->in[0] || !n->in[1] || known(n->in[0])) return HONE_OK;
  const hone_tensor *shape = known(n->in[1]);
  if (!shape || !shape->data || shape->desc.dtype != HONE_DTYPE_I64 || shape->desc.rank != 1 ||
      shape->desc.dim[0] < 2)
    return HONE_OK;
  if (hone_node_int(n, "allowzero", 0) || ((const int64_t *)shape->data)[0] != batch) return HONE_OK;
  int64_t dim[HONE_MAX_RANK];
  const size_t rank = (size_t)shape->desc.dim[0];
  if (rank > HONE_MAX_RANK) return HONE_OK; /* inference says so */
  memcpy(dim, shape->data, rank * sizeof *dim);
  dim[0] = 0;
  hn_value *as_in_input = hn_value_constant(n->graph, NULL, &shape->desc, dim, true);
  return as_in_input && hn_node_set_input(n, 1, as_in_input)
             ? HONE_OK
             : hn_fail_memory(error, sizeof dim, "opening the batch");
}

/* The first output of a node that has another shape in the one model than in the other, where inference knows
 * both; both models have the same nodes. */
static const hn_value *differs(const hn_model *was, const hn_model *is, const hn_value **instead) {
  const hone_node *a = was->graph->first, *b = is->graph->first;
  for (; a && b; a = a->next, b = b->next)
    for (uint32_t i = 0; i < a->n_out && i < b->n_out; i++) {
      *instead = b->out[i];
      if (a->out[i] && b->out[i] && hone_desc_known(&a->out[i]->desc) && hone_desc_known(&b->out[i]->desc) &&
          !hone_desc_same_dims(&a->out[i]->desc, &b->out[i]->desc))
        return a->out[i];
    }
  return NULL;
}

/* A Reshape that took its batch from the file may take something else from its input: with the old batch
 * nothing may change. */
static hone_status prove_old(const hn_model *was, const hn_model *is, hone_error *error) {
  char text[128];
  const hn_value *instead, *v = differs(was, is, &instead);
  if (!v) return HONE_OK;
  hn_fail(error, HONE_ERROR_UNSUPPORTED,
          "'%s' does not begin with the batch, but with the file's word for it", v->name);
  hn_error_expected(error, "%s", hone_desc_format(&v->desc, text, sizeof text));
  hn_error_got(error, "%s", hone_desc_format(&instead->desc, text, sizeof text));
  return HONE_ERROR_UNSUPPORTED;
}

/* With one more sample than before everything still fits, and every output grows as the batch does. */
static hone_status prove_next(const hn_model *was, const hn_model *is, int64_t batch, hone_error *error) {
  for (size_t i = 0; i < is->graph->outputs.len; i++) {
    const hn_value *v = is->graph->outputs.ptr[i], *old = was->graph->outputs.ptr[i];
    if (v->foreign || v->constant || v->desc.rank < 1 || v->desc.dim[0] < 0 || old->desc.rank < 1 ||
        old->desc.dim[0] < 0)
      continue;
    const int64_t each = batch > 0 && old->desc.dim[0] % batch == 0 ? old->desc.dim[0] / batch : -1;
    if (each >= 0 && v->desc.dim[0] == each * (batch + 1)) continue;
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%s' does not follow the batch", v->name);
    hn_error_expected(error, "a first dimension of %lld for a batch of %lld",
                      (long long)(each >= 0 ? each : 1) * (batch + 1), (long long)batch + 1);
    hn_error_got(error, "%lld", (long long)v->desc.dim[0]);
    return HONE_ERROR_UNSUPPORTED;
  }
  return HONE_OK;
}

static hone_status prove(hn_model *model, hn_model *opened, int64_t batch, hone_error *error) {
  hn_model *was = NULL, *same = NULL, *next = NULL;
  hone_status status = hn_model_bind(model, NULL, 0, batch, &was, NULL, error);
  if (status == HONE_OK) status = hn_model_bind(opened, NULL, 0, batch, &same, NULL, error);
  if (status == HONE_OK) status = prove_old(was, same, error);
  if (status == HONE_OK) status = hn_model_bind(opened, NULL, 0, batch + 1, &next, NULL, error);
  if (status == HONE_OK) status = prove_next(was, next, batch, error);
  if (status != HONE_OK)
    hn_error_hint(error, "a node has the batch of %lld written into it; export the model with an open batch",
                  (long long)batch);
  hn_model_destroy(was);
  hn_model_destroy(same);
  hn_model_destroy(next);
  return status;
}

hone_status hn_model_open_batch(hn_model *model, hn_model **out, hone_error *error) {
  hn_model *m = NULL;
  int64_t batch = 0;
  hone_status status = find_batch(model, &batch, error);
  if (status == HONE_OK) status = hn_model_clone(model, &m, error);
  if (status != HONE_OK) return status;
  const int64_t symbol = new_symbol(m);
  if (symbol == HONE_DIM_UNKNOWN) status = hn_fail_memory(error, sizeof(char *), "opening the batch");
  for (size_t i = 0; status == HONE_OK && i < m->graph->inputs.len; i++) {
    int64_t *d = batch_of(m->graph->inputs.ptr[i]);
    if (d) *d = symbol;
  }
  for (hone_node *n = m->graph->first; status == HONE_OK && n; n = n->next)
    status = open_reshape(n, batch, error);
  for (size_t i = 0; i < m->graph->outputs.len; i++)
    m->graph->outputs.ptr[i]->declared = NULL; /* the file's word is the old batch */
  if (status == HONE_OK) status = hn_model_infer(m, error);
  if (status == HONE_OK) status = prove(model, m, batch, error);
  if (status == HONE_OK)
    *out = m;
  else
    hn_model_destroy(m);
  return status;
}
