/* MatMulNBits with what nbits_mma does not take: codes that are no constants, rows in groups, exact f32,
 * chips without tensor cores for the type. */
#include "backends/cuda/step/direct.h"
#include "base/integers.h"
#include "model/ops/microsoft/codes/nbits.h"

#include <string.h>

enum { A, CODES, SCALES, ZEROS, GROUPS, BIAS };
enum { ROWS = 8, COLUMNS = 4 }; /* of a block */

/* Constants may lie at any address. */
static bool groups_fit(const hn_nbits *w, const void *groups) {
  for (int64_t k = 0; k < w->rows; k++) {
    int32_t g;
    memcpy(&g, (const char *)groups + k * 4, sizeof g);
    if (g < 0 || g >= w->blocks) return false;
  }
  return true;
}

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  hn_nbits w;
  if (!s->node || hn_nbits_of(s->node, &w, NULL)) return hn_refuse(why, "its attributes");
  if (hn_cuda_has(s, GROUPS)) {
    if (!s->input[GROUPS].constant || !groups_fit(&w, s->input[GROUPS].constant))
      return hn_refuse(why, "the rows' groups are computed, or name blocks that are not there");
    hn_cuda_direct_define(p, "HN_GROUPED", 1);
  }
  if (hn_cuda_has(s, ZEROS))
    hn_cuda_direct_define(p, "HN_ZEROS", s->input[ZEROS].desc.dtype == HONE_DTYPE_U8 ? 1 : 2);
  if (hn_cuda_has(s, BIAS)) hn_cuda_direct_define(p, "HN_BIAS", 1);
  const int64_t m = hone_desc_count(&s->input[A].desc) / w.rows;
  if (m >= INT32_MAX) return hn_refuse(why, "more than 2^31 rows");
  const int64_t numbers[] = {m,
                             w.columns,
                             w.rows,
                             w.blocks * w.block * w.bits / 8,
                             w.blocks,
                             w.block,
                             (w.blocks * w.bits + 7) / 8,
                             w.bits};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) p->args.p[i] = numbers[i];
  p->text = "nbits_direct";
  hn_cuda_direct_add(p, "nbits_direct", hn_div_up(m, ROWS) * hn_div_up(w.columns, COLUMNS), 32 * COLUMNS);
  return true;
}

hn_cuda_direct_tactic(nbits_direct, "com.microsoft.MatMulNBits", plan);
