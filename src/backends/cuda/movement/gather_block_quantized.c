/* GatherBlockQuantized. */
#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/functions.h"
#include "base/dims.h"

enum { DATA, INDICES, SCALES, ZEROS };

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  hone_tensor_desc x = s->input[DATA].desc;
  const hone_tensor_desc *scales = &s->input[SCALES].desc;
  const bool packed = x.dtype == HONE_DTYPE_U8;
  const int64_t bits = packed ? hone_node_int(s->node, "bits", 4) : 4;
  hone_dtype index;
  int64_t gather = hone_node_int(s->node, "gather_axis", 0),
          axis = hone_node_int(s->node, "quantize_axis", 1),
          block = hone_node_int(s->node, "block_size", 128);
  if (!hn_cuda_indices(s, INDICES, &index, why)) return false;
  if (!hn_cuda_type(scales->dtype) || !hn_cuda_type(s->output[0].desc.dtype))
    return hn_refuse(why, "scales are %s", hone_dtype_name(scales->dtype));
  if (x.rank < 1 || scales->rank != x.rank || x.rank > 8)
    return hn_refuse(why, "a table of %d dimensions", (int)x.rank);
  if (gather < 0) gather += x.rank;
  if (axis < 0) axis += x.rank;
  if (packed) x.dim[x.rank - 1] *= 8 / bits;
  if (!block) block = INT64_MAX; /* one */
  const int64_t numbers[] = {hn_dims(&x, (int32_t)gather + 1, x.rank),
                             x.dim[gather],
                             hone_desc_count(&s->input[INDICES].desc),
                             x.rank,
                             axis,
                             block,
                             bits};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) p->args.p[i] = numbers[i];
  for (int32_t d = 0; d < x.rank; d++) p->args.p[8 + d] = x.dim[d], p->args.p[16 + d] = scales->dim[d];
  if (packed) hn_cuda_direct_define(p, "HN_PACKED", 1);
  if (hn_cuda_has(s, ZEROS)) hn_cuda_direct_define(p, "HN_ZEROS", 1);
  hn_cuda_direct_define(p, "HN_MIDDLE", packed ? 1 << (bits - 1) : 0);
  const double table = (double)hone_desc_bytes(&s->input[DATA].desc) + (double)hone_desc_bytes(scales),
               read = (double)hone_desc_bytes(&s->output[0].desc);
  p->unread = table > read ? table - read : 0;
  p->text = "gather_block_quantized";
  hn_cuda_direct_add(p, "gather_block_quantized", hone_desc_count(&s->output[0].desc), 0);
  return true;
}

hn_cuda_direct_tactic(gather_block_quantized, "com.microsoft.GatherBlockQuantized", plan);
