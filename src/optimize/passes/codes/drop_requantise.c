/* DequantizeLinear(QuantizeLinear(M(... DequantizeLinear(x))))  ->  M(... DequantizeLinear(x))
 *
 * of the same scale and zero point, where each M moves elements: what was a code's number is the same code
 * again. Tools write such pairs around every Reshape and Transpose. Exact. */
#include "optimize/passes/common/codes.h"

enum { MAX_MOVES = 16 };

/* The DequantizeLinear above nodes that move elements. */
static const hone_node *source(const hn_value *v) {
  for (int depth = 0; v && depth < MAX_MOVES; depth++) {
    const hone_node *dq = hn_codes_behind(v, true);
    if (dq) return dq;
    const hn_code_move *m =
        v->producer && v->producer->graph == v->graph ? hn_code_move_of(v->producer) : NULL;
    if (!m || m->what & (HN_MOVE_PADS | HN_MOVE_RESIZES)) return NULL;
    v = v->producer->in[0];
  }
  return NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !hn_is_op(n, "DequantizeLinear") || !n->n_out || !n->out[0])
    return HN_PASS_NONE;
  const hone_node *dq = hn_codes_behind(n->out[0], true), *q = dq && dq->in[0] ? dq->in[0]->producer : NULL;
  if (!q || q->graph != n->graph || !hn_quantises(q)) return HN_PASS_NONE;
  const hone_node *from = source(q->in[0]);
  const hn_code_map codes = hn_code_map_of(q, q->out[0]);
  if (!from || !hn_code_map_same(codes, hn_code_map_of(dq, q->out[0])) ||
      !hn_code_map_same(codes, hn_code_map_of(from, from->in[0])) || !hn_can_replace(n->out[0], q->in[0]))
    return HN_PASS_NONE;
  hn_pass_hit(ctx, "the same codes");
  if (!hn_replace(ctx, n->out[0], q->in[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 2);
  return HN_PASS_HIT;
}

HN_PASS(drop_requantise) = {
    .name = "drop_requantise",
    .level = 2,
    .about = "DequantizeLinear(QuantizeLinear(y)) -> y where y has such codes already",
    .visit = visit,
    .roots = HN_ROOTS("DequantizeLinear")};
