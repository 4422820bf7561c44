/* What HyperConnectionPreMix and HyperConnectionPostMix share: streams of features, [..., C, H] or, with
 * num_branches, [..., C x H], and gates of them. */
#ifndef HN_MODEL_OPS_MICROSOFT_STREAMS_H
#define HN_MODEL_OPS_MICROSOFT_STREAMS_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

typedef struct hn_streams {
  int32_t lead;         /* dimensions before them */
  int64_t tokens, c, h; /* < 0: not known */
} hn_streams;

/* HONE_ERROR_INPUT when x has no such form; rank -1 leaves all unknown. */
static inline hone_status hn_streams_of(const hone_node *node, const hone_tensor_desc *x, hn_streams *out,
                                        hone_error *error) {
  const int64_t branches = hone_node_int(node, "num_branches", 0);
  const int32_t own = branches > 0 ? 1 : 2;
  *out = (hn_streams){x->rank - own, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if (x->rank < 0) return HONE_OK;
  if (branches < 0 || x->rank < own)
    return hn_op_bad(node, error, "the streams have rank %d and num_branches is %lld", (int)x->rank,
                     (long long)branches);
  const int64_t last = x->dim[x->rank - 1];
  out->tokens = hn_dims(x, 0, out->lead);
  out->c = branches > 0 ? branches : x->dim[x->rank - 2];
  if (branches > 0 && last >= 0 && last % branches)
    return hn_op_bad(node, error, "%lld values are not %lld streams", (long long)last, (long long)branches);
  out->h = last < 0 ? last : branches > 0 ? last / branches : last;
  return HONE_OK;
}

/* How many numbers each stream of a token has in gates: 1 or H; 0: *error says that they have another form.
 */
static inline int64_t hn_streams_gates(const hone_node *node, const hn_streams *s, const hone_tensor_desc *g,
                                       const char *name, hone_error *error) {
  if (s->h == 0) return 1; /* nothing is read of them */
  const int64_t n = hone_desc_count(g), all = s->tokens * s->c;
  if (n == all * s->h && (s->h != 1 || n == all)) return s->h;
  if (n == all) return 1;
  char text[96];
  hn_op_bad(node, error, "%s is %s for %lld tokens of %lld streams of %lld", name,
            hone_desc_format(g, text, sizeof text), (long long)s->tokens, (long long)s->c, (long long)s->h);
  return 0;
}

#endif
