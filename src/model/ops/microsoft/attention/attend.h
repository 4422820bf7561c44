/* What the attention operators of com.microsoft share: operands brought into ONNX's form (Attention of opset
 * 23, heads as a dimension of their own), and masks of integers into what is added to the scores. */
#ifndef HN_MODEL_OPS_MICROSOFT_ATTEND_H
#define HN_MODEL_OPS_MICROSOFT_ATTEND_H

#include "model/ops/microsoft/common/inner.h"

/* Tokens in a tensor, each with heads x size values in a row; distances in elements. */
typedef struct hn_tokens {
  const hone_tensor *from;
  int64_t at, batch, token, head; /* of the first value; from one batch, token, head to the next */
} hn_tokens;
/* [batch, tokens, heads x size], or a part of wider rows: `row` values a token, from the one at `at` on. */
hn_tokens hn_tokens_packed(const hone_tensor *t, int64_t tokens, int64_t row, int64_t at, int64_t size);
/* [batch, heads, tokens, size] */
hn_tokens hn_tokens_apart(const hone_tensor *t);

/* As [batch, heads, tokens, size]; bias (may be NULL): a number for each head's value, from bias_at on. */
bool hn_tokens_gather(hone_call *call, const hn_tokens *from, const hone_tensor *bias, int64_t bias_at,
                      const int64_t dim[4], hone_tensor *out, hone_error *error);

typedef struct hn_attend {
  const hone_tensor *q, *k, *v, *past_k, *past_v; /* [batch, heads, tokens, size]; the past may be NULL */
  const hone_tensor *added;                       /* to the scores, f32, broadcasts to them; or NULL */
  bool causal;
  int64_t window;                            /* keys before its own that a query sees; < 0: all */
  float scale, cap;                          /* scale 0: 1 / sqrt(size) */
  hone_tensor *y;                            /* [batch, tokens, heads x size] */
  hone_tensor *present_k, *present_v, *seen; /* or NULL; seen: the scores, with what is added to them */
  bool weights;                              /* seen: behind Softmax */
} hn_attend;
hone_status hn_attend_run(hone_call *call, const hn_attend *a, hone_error *error);

/* Which keys count. */
typedef struct hn_key_mask {
  const hone_tensor *keep; /* i32: [batch] ends, [2 batch] ends and starts, [batch, keys], [batch, queries,
                              keys], [batch or 1, 1, most, most] with 1 where a key counts; or NULL */
  const hone_tensor *bias; /* added as it is: [batch or 1, heads or 1, queries, keys]; or NULL */
  float filter;            /* what is added where a key does not count */
  int64_t batch, queries, before, keys;
} hn_key_mask;
/* The sum of both as f32; *out stays NULL where there is neither. */
hone_status hn_key_mask_sum(hone_call *call, const hn_key_mask *m, hone_tensor *room, const hone_tensor **out,
                            hone_error *error);
/* Whether such a mask has a form that is known; batch may be unknown. */
hone_status hn_key_mask_check(const hone_infer *io, uint32_t keep, uint32_t bias, int64_t batch,
                              hone_error *error);

#endif
