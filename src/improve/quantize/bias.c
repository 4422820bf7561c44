/* Bias correction: rounding the weights moves each output channel by the sum of their errors times what they
 * are multiplied with, and on average that is a constant, which the bias can take. It needs the mean of each
 * input channel on the samples, and no further run. */
#include "improve/quantize/quantize.h"

#include "base/error.h"

#include <string.h>

void hn_quantize_means_add(hn_quantize_means *m, const hone_tensor *t) {
  const float *v = t->data;
  const int64_t n = hone_desc_count(&t->desc), k = m->channels;
  if (n <= 0 || k <= 0 || n % k) return;
  if (m->last) { /* whatever shape the value has before it is seen as rows of k */
    for (int64_t i = 0; i < n; i += k)
      for (int64_t c = 0; c < k; c++) m->sums[c] += (double)v[i + c];
  } else {
    if (t->desc.rank < 2 || t->desc.dim[1] != k) return;
    const int64_t inner = n / k / t->desc.dim[0];
    for (int64_t o = 0; o < t->desc.dim[0]; o++)
      for (int64_t c = 0; c < k; c++) {
        double sum = 0;
        for (int64_t i = 0; i < inner; i++) sum += (double)*v++;
        m->sums[c] += sum;
      }
  }
  m->count += (uint64_t)(n / k);
}

/* Views have no step of their own. */
static const hn_value *observed(const hn_value *v) {
  while (v->producer && v->producer->op && v->producer->op->flags & HONE_OP_VIEW && v->producer_index == 0 &&
         v->producer->in[0] && v->producer->in[0]->graph == v->graph)
    v = v->producer->in[0];
  return v;
}

hone_status hn_quantize_want_means(hn_quantizing *q, hn_quantize_layer *l, hone_error *error) {
  hn_quantize_weights w;
  const hn_value *x = l->node->in[0], *from = observed(x);
  const bool last = !hn_is_op(l->node, "Conv") && !hn_is_op(l->node, "ConvTranspose");
  if (!hn_quantize_weights_of(l->node, &w) || (!last && from != x)) return HONE_OK;
  hn_quantize_means *first = hn_map_get(&q->means_by_name, from->name), *m = first;
  while (m && (m->last != last || m->channels != w.inputs)) m = m->next;
  if (!m) {
    m = HN_NEW(&q->arena, hn_quantize_means);
    if (!m || !(m->sums = HN_NEW_ARRAY(&q->arena, double, w.inputs)) || !hn_vec_push(&q->means, m))
      return hn_fail_memory(error, (size_t)w.inputs * sizeof(double), "means of channels");
    m->name = from->name;
    m->last = last;
    m->channels = w.inputs;
    m->next = first;
    if (!hn_map_set(&q->means_by_name, from->name, m))
      return hn_fail_memory(error, sizeof *m, "means of channels");
  }
  l->means = m;
  return HONE_OK;
}

const float *hn_quantize_corrected_bias(hn_quantizing *q, const hn_quantize_layer *l,
                                        const hn_quantize_weights *w, const float *rounded,
                                        const float *bias) {
  double *sum = HN_NEW_ARRAY(&q->arena, double, w->outputs);
  float *out = HN_NEW_ARRAY(&q->arena, float, w->outputs);
  if (!sum || !out) return NULL;
  for (int64_t i = 0; i < w->n && l->means->count; i++)
    sum[hn_quantize_output_of(w, i)] +=
        ((double)rounded[i] - (double)hn_quantize_f32(w->v, i)) * l->means->sums[hn_quantize_input_of(w, i)];
  for (int64_t o = 0; o < w->outputs; o++)
    out[o] = (float)((bias ? (double)bias[o] : 0) - (l->means->count ? sum[o] / (double)l->means->count : 0));
  return out;
}
