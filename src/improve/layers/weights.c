/* The weights behind a value: how much their channels' ranges differ, and whether they share a scale. */
#include "base/dims.h"
#include "improve/layers/layers.h"

#include "model/ops/common/op.h"

#include <math.h>

enum { FAR = 6 }; /* nodes between a product and the value that ends its layer */

/* The product that makes v, behind its Q, bias, activation and the like; not beyond the DQ of its inputs. */
static const hone_node *product_of(const hn_value *v) {
  for (int i = 0; v && i < FAR; i++) {
    const hone_node *n = v->producer;
    if (!n || strcmp(n->op_type, "DequantizeLinear") == 0) return NULL;
    if (n->op && n->op->product != HONE_PRODUCT_NONE) return n;
    if (strncmp(n->op_type, "QLinear", 7) == 0) return n;
    if (n->n_in > 1 && strcmp(n->op_type, "QuantizeLinear") != 0 && strcmp(n->op_type, "Add") != 0 &&
        strcmp(n->op_type, "Clip") != 0)
      return NULL;
    v = n->n_in ? n->in[0] : NULL;
  }
  return NULL;
}

const hone_node *hn_layers_layer_of(const hn_value *v) {
  for (int i = 0; v && i < FAR; i++) {
    const hone_node *n = v->producer;
    if (!n || (n->op && n->op->product != HONE_PRODUCT_NONE)) return n;
    const bool one = n->n_in == 1 || hn_is_op(n, "BatchNormalization") || hn_is_op(n, "Clip") ||
                     (hn_is_op(n, "Add") && n->in[1] && n->in[1]->constant);
    if (!one || !n->op || !(n->op->function || hn_is_op(n, "BatchNormalization") || hn_is_op(n, "Clip")))
      return NULL;
    v = n->in[0];
  }
  return NULL;
}

static int32_t axis_of(const hone_node *n, const hone_tensor_desc *d) {
  if (strstr(n->op_type, "Conv")) return strcmp(n->op_type, "ConvTranspose") == 0 ? 1 : 0;
  if (strcmp(n->op_type, "Gemm") == 0) return hone_node_int(n, "transB", 0) ? 0 : 1;
  return d->rank - 1;
}

/* Largest over smallest max |code| * scale of the channels; those of nothing but zeros do not count. */
static double imbalance_of(const hone_tensor *codes, const hone_tensor *scale, int32_t axis) {
  const int64_t channels = codes->desc.dim[axis], n = hone_desc_count(&codes->desc);
  const bool each = hone_desc_count(&scale->desc) == channels;
  const int64_t inner = hn_dims(&codes->desc, axis + 1, codes->desc.rank);
  double least = INFINITY, most = 0;
  double *range = hn_calloc((size_t)channels + 1, sizeof *range);
  if (!range) return 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t c = i / inner % channels;
    range[c] = fmax(range[c], fabs(hn_get_f64(codes, i) * hn_get_f64(scale, each ? c : 0)));
  }
  for (int64_t c = 0; c < channels; c++) {
    if (!(range[c] > 0)) continue;
    least = fmin(least, range[c]);
    most = fmax(most, range[c]);
  }
  hn_free(range);
  return most > 0 ? most / least : 0;
}

void hn_layers_weights_of(const hn_ly *q, const hn_layers_pair *p, hn_layers_weights *out) {
  const hn_value *v = hn_map_get(&q->file->graph->by_name, p->quantized->name);
  const hone_node *n = product_of(v);
  const hn_value *codes = NULL, *scale = NULL;
  *out = (hn_layers_weights){0};
  if (n && strncmp(n->op_type, "QLinear", 7) == 0 && n->n_in >= 8) {
    codes = n->in[3], scale = n->in[4];
  } else if (n && n->n_in > 1 && n->in[1] && n->in[1]->producer &&
             strcmp(n->in[1]->producer->op_type, "DequantizeLinear") == 0) {
    codes = n->in[1]->producer->in[0], scale = n->in[1]->producer->in[1];
  }
  if (!codes || !scale || !codes->constant || !codes->constant->data || !scale->constant ||
      !scale->constant->data)
    return;
  const int32_t axis = axis_of(n, &codes->constant->desc);
  if (axis < 0 || axis >= codes->constant->desc.rank || hone_dtype_size(codes->constant->desc.dtype) != 1)
    return;
  out->channels = (uint32_t)codes->constant->desc.dim[axis];
  out->one_scale = true;
  for (int64_t i = 1; i < hone_desc_count(&scale->constant->desc); i++)
    out->one_scale &= hn_get_f64(scale->constant, i) == hn_get_f64(scale->constant, 0);
  out->imbalance = imbalance_of(codes->constant, scale->constant, axis);
}
