/* Tensors of layers that are asked for by name, of the first sample. */
#include "improve/layers/layers.h"

#include "base/error.h"
#include "improve/values.h"
#include "model/ops/common/op.h"

static bool is(const hone_node *n, const char *name) { return n && strcmp(n->name, name) == 0; }

/* A value or its node before a layer of which it is a part. */
static hn_layers_pair *find(const hn_ly *q, const char *name) {
  for (size_t i = 0; i < q->pairs.len; i++) {
    hn_layers_pair *p = q->pairs.ptr[i];
    if (strcmp(p->name, name) == 0 || strcmp(p->quantized->name, name) == 0 || is(p->exact->producer, name))
      return p;
  }
  for (size_t i = 0; i < q->pairs.len; i++)
    if (is(hn_layers_layer_of(q->pairs.ptr[i]->exact), name)) return q->pairs.ptr[i];
  return NULL;
}

hone_status hn_layers_choose_dumps(hn_ly *q, hone_error *error) {
  const hone_dump *dump = q->o->dump;
  if (!dump) return HONE_OK;
  q->dumped = HN_NEW_ARRAY(&q->arena, hn_layers_pair *, dump->n + 1);
  if (!q->dumped) return hn_fail_memory(error, 0, "a dump");
  for (uint32_t k = 0; k < dump->n; k++) {
    if ((q->dumped[k] = find(q, dump->names[k]))) continue;
    hn_fail(error, HONE_ERROR_USAGE, "'%s' has no value that both models hold", dump->names[k]);
    hn_error_expected(error, "a layer, node or value of those that --layers --all lists");
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

/* What codes say. */
static hone_tensor *decoded(const hn_layers_pair *p, const hone_tensor *codes) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, codes->desc.rank, codes->desc.dim);
  hone_tensor *out = hn_calloc(1, sizeof *out);
  if (!out) return NULL;
  *out = (hone_tensor){d, hn_malloc((size_t)hone_desc_bytes(&d))};
  for (int64_t i = 0, n = out->data ? hone_desc_count(&d) : 0; i < n; i++)
    ((float *)out->data)[i] = (float)hn_layers_decoded(&p->scale, hn_get_f64(codes, i));
  if (out->data) return out;
  hn_free(out);
  return NULL;
}

static hone_status put(const hone_dump *d, uint32_t k, const hn_layers_pair *p, const hone_tensor *got,
                       hone_error *error) {
  hone_status status = d->put(d->arg, k, 0, "float", p->truth, error);
  if (status != HONE_OK || hone_dtype_is_float(got->desc.dtype))
    return status == HONE_OK ? d->put(d->arg, k, 0, "quantized", got, error) : status;
  hone_tensor *values = decoded(p, got);
  if (!values) return hn_fail_memory(error, 0, "a dump");
  status = d->put(d->arg, k, 0, "quantized", values, error);
  hn_rows_free(values);
  return status == HONE_OK ? d->put(d->arg, k, 0, "codes", got, error) : status;
}

hone_status hn_layers_dump(const hn_ly *q, const hn_layers_pair *p, const hone_tensor *got,
                           hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t k = 0; q->dumped && q->sample == 0 && k < q->o->dump->n && status == HONE_OK; k++)
    if (q->dumped[k] == p) status = put(q->o->dump, k, p, got, error);
  return status;
}
