/* A model that was exported for one batch size takes any.
 *
 * Exporters write the batch into the inputs' shapes, and into the constant shapes of Reshape, where 0 ("as in
 * the input") says the same for every batch. What else depends on the batch is then for shape inference to
 * say: the result counts only when every output follows the batch and another batch than the old one infers,
 * too. */
#include "model/open_batch.h"

#include "base/error.h"
#include "model/bind.h"

#include <stdio.h>
#include <string.h>

/* Dimension 0 of an input that may be a batch: of something with more dimensions than that one. */
static int64_t *batch_of(hn_value *v) {
  return v->is_input && !v->constant && v->kind == HN_TENSOR && v->desc.rank >= 2 ? &v->desc.dim[0] : NULL;
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
  if (v->constant || !v->producer || strcmp(v->producer->op_type, "Constant") != 0) return v->constant;
  const hn_attr *a = hn_node_attr(v->producer, "value");
  return a && a->type == HONE_ATTR_TENSOR ? a->t : NULL;
}

/* A Reshape whose constant shape begins with the batch takes dimension 0 from its input. */
static hone_status open_reshape(hone_node *n, int64_t batch, hone_error *error) {
  if (strcmp(n->op_type, "Reshape") != 0 || n->domain[0] || n->n_in < 2 || !n->in[0] || !n->in[1] ||
      known(n->in[0]))
    return HONE_OK;
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

/* With one more sample than before everything still fits. */
static hone_status prove(hn_model *m, int64_t batch, hone_error *error) {
  hn_model *bound = NULL;
  hone_status status = hn_model_bind(m, NULL, 0, batch + 1, &bound, NULL, error);
  for (size_t i = 0; status == HONE_OK && i < bound->graph->outputs.len; i++) {
    const hn_value *v = bound->graph->outputs.ptr[i];
    if (v->kind != HN_TENSOR || v->constant || v->desc.rank < 1 || v->desc.dim[0] < 0 ||
        v->desc.dim[0] % (batch + 1) == 0)
      continue;
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "output '%s' does not follow the batch", v->name);
    hn_error_expected(error, "a first dimension of %lld for a batch of %lld", (long long)batch + 1,
                      (long long)batch + 1);
    hn_error_got(error, "%lld", (long long)v->desc.dim[0]);
  }
  if (status != HONE_OK)
    hn_error_hint(error, "a node has the batch of %lld written into it; export the model with an open batch",
                  (long long)batch);
  hn_model_destroy(bound);
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
  if (status == HONE_OK) status = prove(m, batch, error);
  if (status == HONE_OK)
    *out = m;
  else
    hn_model_destroy(m);
  return status;
}
