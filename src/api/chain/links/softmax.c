/* softmax: along the last dimension (hone_post_softmax). */
#include "api/chain/chain.h"
#include "base/error.h"

#include <hone/post.h>

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const hn_passed *v = in[0];
  (void)s;
  hone_status status = hn_passed_batches(c, out, v->n, error);
  for (uint32_t b = 0; b < v->n && status == HONE_OK; b++) {
    const hone_tensor *from = &v->batch[b].tensor;
    hone_tensor *to = &out->batch[b].tensor;
    to->desc = hone_desc(HONE_DTYPE_F32, from->desc.rank, from->desc.dim);
    const size_t bytes = (size_t)hone_desc_bytes(&to->desc);
    to->data = hn_chain_take(c, out, bytes);
    if (!to->data) return hn_fail_memory(error, bytes, s->name);
    out->batch[b].item = v->batch[b].item;
    out->batch[b].n = v->batch[b].n;
    status = hone_post_softmax(from, -1, to->data, error);
  }
  out->items = v->items;
  out->map = v->map;
  return status;
}

const hn_link hn_link_softmax = {.name = "softmax",
                                 .makes = HONE_CHAIN_TENSORS,
                                 .n_reads = 1,
                                 .reads = {{"from", HONE_CHAIN_TENSORS}},
                                 .run = run};
