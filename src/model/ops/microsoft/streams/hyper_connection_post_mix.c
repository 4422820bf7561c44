/* HyperConnectionPostMix: streams are mixed, and a block's output goes to each by its gate:
 * y[k, h] = sum over c of m[c, k] x[c, h], or x[k, h] without m, + g[k, h] b[h]. */
#include "model/ops/microsoft/streams/streams.h"

enum { X, BLOCK, GATES, MIX };

static hone_status check(const hone_node *n, const hn_streams *s, const hone_tensor_desc *block,
                         const hone_tensor_desc *gates, const hone_tensor_desc *mix, int64_t *each,
                         hone_error *error) {
  *each = 1;
  if (s->h == 0) return HONE_OK;
  if (hone_desc_count(block) != s->tokens * s->h)
    return hn_op_bad(n, error, "block_output is not %lld tokens of %lld", (long long)s->tokens,
                     (long long)s->h);
  if (mix && (mix->rank < 2 || mix->dim[mix->rank - 1] != s->c || mix->dim[mix->rank - 2] != s->c ||
              hn_dims(mix, 0, mix->rank - 2) != s->tokens))
    return hn_op_bad(n, error, "stream_mix is not %lld tokens of %lld x %lld", (long long)s->tokens,
                     (long long)s->c, (long long)s->c);
  *each = hn_streams_gates(n, s, gates, "post_mix", error);
  return *each ? HONE_OK : HONE_ERROR_INPUT;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *mix = hn_has_input(io, MIX) ? io->input[MIX] : NULL;
  hn_streams s;
  int64_t each = 1;
  hone_status status = hn_streams_of(io->node, x, &s, error);
  if (!status) status = hn_infer_same_dtype(io, X, BLOCK, error);
  for (uint32_t i = GATES; i <= MIX && !status; i++) status = hn_infer_dtype_in(io, i, HN_TYPES_FLOAT, error);
  if (status) return status;
  if (s.tokens >= 0 && s.c >= 0 && s.h >= 0 && hone_desc_known(io->input[BLOCK]) &&
      hone_desc_known(io->input[GATES]) && (!mix || hone_desc_known(mix)))
    status = check(io->node, &s, io->input[BLOCK], io->input[GATES], mix, &each, error);
  if (status) return status;
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *block = call->input[BLOCK], *g = call->input[GATES],
                    *mix = hn_call_has(call, MIX) ? call->input[MIX] : NULL;
  hn_streams s;
  int64_t each = 1;
  hone_status status = hn_streams_of(call->node, &x->desc, &s, error);
  if (!status) status = check(call->node, &s, &block->desc, &g->desc, mix ? &mix->desc : NULL, &each, error);
  if (status || s.h == 0) return status;
  double *all = hn_scratch(call, s.c * s.h + s.c * s.c + 3 * s.h, sizeof *all, error);
  if (!all) return HONE_ERROR_MEMORY;
  double *m = all + s.c * s.h, *b = m + s.c * s.c, *gate = b + s.h, *row = gate + s.h;
  for (int64_t t = 0; t < s.tokens; t++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(all, x, t * s.c * s.h, s.c * s.h);
    hn_load_f64(b, block, t * s.h, s.h);
    if (mix) hn_load_f64(m, mix, t * s.c * s.c, s.c * s.c);
    for (int64_t k = 0; k < s.c; k++) {
      hn_load_f64(gate, g, (t * s.c + k) * each, each);
      for (int64_t i = 0; i < s.h; i++) {
        row[i] = mix ? 0 : all[k * s.h + i];
        for (int64_t c = 0; c < s.c && mix; c++) row[i] += m[c * s.c + k] * all[c * s.h + i];
        row[i] += gate[each > 1 ? i : 0] * b[i];
      }
      hn_store_f64(call->output[0], (t * s.c + k) * s.h, row, s.h);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "num_branches", .type = HONE_ATTR_INT}, {0}};

HN_OP(hyper_connection_post_mix) = {HONE_DESC_HEAD(hone_op_desc),
                                    .domain = "com.microsoft",
                                    .op_type = "HyperConnectionPostMix",
                                    .since = 1,
                                    HN_INPUTS(3, 4),
                                    HN_OUTPUTS(1, 1),
                                    .types = HN_TYPES_FLOAT,
                                    .attrs = attrs,
                                    .infer = infer,
                                    .reference = reference};
