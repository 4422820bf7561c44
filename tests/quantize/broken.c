#include "broken.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { C = BROKEN_CHANNELS };

static hn_value *conv(hn_model *m, hn_value *x, int64_t cin, unsigned seed, float first) {
  const int64_t dims[] = {C, cin, 3, 3}, n = C;
  float b[C];
  hn_value *w = net_weights(m, 4, dims, seed);
  for (int64_t i = 0; i < cin * 9; i++) ((float *)w->constant->data)[i] *= first;
  for (int i = 0; i < C; i++) b[i] = 0.05f * (float)i;
  hn_value *y = net_op(m, "Conv", (hn_value *[]){x, w, net_constant(m, HONE_DTYPE_F32, 1, &n, b)}, 3);
  assert_true(hn_node_set_ints(y->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  return y;
}

hn_model *chain_network(int convolutions, int wide, float factor) {
  const float ends[] = {0, 6};
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 12, 12});
  for (int k = 0; k < convolutions; k++) {
    x = conv(m, x, k ? C : 3, (unsigned)k + 1, k == wide ? factor : 1);
    if (k == wide)
      x = net_op(m, "Clip",
                 (hn_value *[]){x, net_constant(m, HONE_DTYPE_F32, 0, NULL, &ends[0]),
                                net_constant(m, HONE_DTYPE_F32, 0, NULL, &ends[1])},
                 3);
    else
      x = net_op(m, "Relu", &x, 1);
  }
  x = net_op(m, "Flatten", (hn_value *[]){net_op(m, "GlobalAveragePool", &x, 1)}, 1);
  hn_value *w = net_weights(m, 2, (const int64_t[]){C, 5}, (unsigned)convolutions + 1);
  net_finish(m, net_op(m, "Gemm", (hn_value *[]){x, w}, 2));
  return m;
}

hone_node *nth(const hn_model *m, const char *op, int k) {
  for (hone_node *n = m->graph->first; n; n = n->next)
    if (strcmp(n->op_type, op) == 0 && k-- == 0) return n;
  fail_msg("no %s", op);
  return NULL;
}

hone_node *rounding_of(const hn_model *m, int k) {
  const hn_value *v = nth(m, "Conv", k)->out[0];
  while (v->users.len && strcmp(v->users.ptr[0].node->op_type, "QuantizeLinear") != 0)
    v = v->users.ptr[0].node->out[0];
  assert_true(v->users.len > 0);
  return v->users.ptr[0].node;
}

void scale_by(const hn_model *m, int k, float factor) {
  *(float *)rounding_of(m, k)->in[1]->constant->data *= factor;
}

void share_scale(const hn_model *m, int k) {
  const hone_node *dq = nth(m, "Conv", k)->in[1]->producer;
  int8_t *code = dq->in[0]->constant->data;
  float *scale = dq->in[1]->constant->data, most = 0;
  const int64_t n = hone_desc_count(&dq->in[0]->desc), each = n / C;
  for (int c = 0; c < C; c++) most = fmaxf(most, scale[c]);
  for (int64_t i = 0; i < n; i++) code[i] = (int8_t)nearbyintf((float)code[i] * scale[i / each] / most);
  for (int c = 0; c < C; c++) scale[c] = most;
}
