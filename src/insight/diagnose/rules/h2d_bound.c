/* Copies to the device hold up the inference. */
#include "insight/diagnose/stage.h"

#include <string.h>

/* Do the inputs arrive as something else than the network's own type? */
static bool narrowed(const hn_diagnosis *d) {
  size_t n;
  const hone_note *o = hone_facts_options(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(o[i].what, "input-type") == 0) return true;
  return false;
}

static void run(hn_diagnosis *d) {
  const bool narrow = narrowed(d);
  hn_stage_check(
      d,
      &(hn_stage){
          .ms = d->p->stages.h2d_ms,
          .limit_pct = d->t->h2d_share,
          .quantity = HONE_QUANTITY_H2D,
          .subject = HN_T("Copying to the device", "拷贝到设备（H2D）"),
          .cause = HN_T("Inputs are copied while the device waits. Pinned memory, one merged copy and "
                        "copying the next input during this inference hide it; 8-bit inputs with "
                        "normalisation on the device make it four times smaller.",
                        "拷贝输入时设备在等待。锁页内存、合并为一次拷贝、在本次推理期间拷贝下一个输入"
                        "都能把它隐藏；以 8 位输入并在设备上归一化（AIPP 下沉），数据量只有四分之一。"),
          .actions = {HN_DO_OVERLAP, narrow ? HN_DO_TIMELINE : HN_DO_NARROW, narrow ? 0 : HN_DO_TIMELINE}});
}

const struct hn_rule hn_rule_h2d_bound = {"h2d_bound", run};
