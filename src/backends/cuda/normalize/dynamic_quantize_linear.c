/* DynamicQuantizeLinear: extremes of blocks, then scale, zero point and codes. */
#include "backends/cuda/step/direct.h"
#include "backends/cuda/step/functions.h"
#include "base/error.h"
#include "base/integers.h"

enum { THREADS = 256, EACH = 4096 };

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  const int64_t n = hone_desc_count(&s->input[0].desc);
  int64_t blocks = hn_div_up(n, EACH);
  if (!hn_cuda_type(s->input[0].desc.dtype)) return hn_refuse(why, "the input is no f32");
  blocks = blocks < 1 ? 1 : blocks > THREADS ? THREADS : blocks;
  p->text = "statistics";
  hn_cuda_direct_define(p, "HN_DYNAMIC_QUANTIZE", 1);
  p->args.p[0] = n, p->args.p[1] = blocks;
  p->workspace = (size_t)blocks * 2 * sizeof(float);
  hn_cuda_direct_add(p, "hn_extremes", blocks, THREADS);
  hn_cuda_direct_add(p, "hn_quantize", blocks, THREADS);
  return true;
}

hn_cuda_direct_tactic(dynamic_quantize_linear, "DynamicQuantizeLinear", plan);
