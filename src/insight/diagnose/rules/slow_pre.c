/* Pre-processing holds up the inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d, &(hn_stage){
             .ms = d->p->stages.pre_ms,
             .limit_pct = d->t->pre_share,
             .quantity = HONE_QUANTITY_PRE,
             .subject = HN_T("Pre-processing", "前处理"),
             .cause = HN_T("Decoding, resizing and normalising run before each inference instead of "
                           "beside it. A pipeline prepares the next input while this one is computed; "
                           "normalisation can move into the first layer.",
                           "解码、缩放与归一化在每次推理之前执行，而不是与之并行。流水线可以在计算当前输入时"
                           "准备下一个输入；归一化可以并入第一层（AIPP）。"),
             .actions = {HN_DO_PREPROCESS, HN_DO_TIMELINE}});
}

const struct hn_rule hn_rule_slow_pre = {"slow_pre", run};
