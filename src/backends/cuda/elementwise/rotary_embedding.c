/* RotaryEmbedding. */
#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/functions.h"

enum { X, COS, SIN, POSITIONS };

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc, *cos = &s->input[COS].desc;
  const bool picked = hn_cuda_has(s, POSITIONS), packed = x->rank == 3;
  if (x->rank != 3 && x->rank != 4) return hn_refuse(why, "an input of %d dimensions", (int)x->rank);
  for (uint32_t i = X; i <= SIN; i++)
    if (!hn_cuda_type(s->input[i].desc.dtype))
      return hn_refuse(why, "input %u is %s", i, hone_dtype_name(s->input[i].desc.dtype));
  const int64_t heads = packed ? hone_node_int(s->node, "num_heads", 0) : x->dim[1];
  if (heads < 1) return hn_refuse(why, "the number of heads is not known");
  const int64_t size = packed ? x->dim[2] / heads : x->dim[3], tokens = packed ? x->dim[1] : x->dim[2];
  const int64_t turned = hone_node_int(s->node, "rotary_embedding_dim", 0),
                half = (turned ? turned : size) / 2;
  if (cos->dim[cos->rank - 1] != half || hone_desc_count(cos) != hone_desc_count(&s->input[SIN].desc))
    return hn_refuse(why, "the caches have another width");
  const int64_t numbers[] = {size - half,
                             size,
                             half,
                             heads,
                             tokens,
                             packed,
                             hone_node_int(s->node, "interleaved", 0) != 0,
                             picked ? cos->dim[0] : 0};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) p->args.p[i] = numbers[i];
  if (picked) hn_cuda_direct_define(p, "HN_PICKED", 1);
  const int64_t cache = 2 * hone_desc_bytes(cos), read = 2 * hone_desc_bytes(x);
  p->unread = cache > read ? (double)(cache - read) : 0;
  p->text = "rotary_embedding";
  hn_cuda_direct_add(p, "rotary_embedding", size ? hone_desc_count(x) / size * (size - half) : 0, 0);
  return true;
}

hn_cuda_direct_tactic(rotary_embedding, "RotaryEmbedding", plan);
