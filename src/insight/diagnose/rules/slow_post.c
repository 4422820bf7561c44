/* Post-processing holds up the next inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d, &(hn_stage){
             .ms = d->p->stages.post_ms,
             .limit_pct = d->t->post_share,
             .quantity = HONE_QUANTITY_POST,
             .subject = HN_T("Post-processing", "后处理"),
             .cause = HN_T("Decoding and filtering of the outputs (NMS, top-k) run after each inference, "
                           "often on one thread. Running them beside the next inference, in parallel or "
                           "on the device takes them off the path.",
                           "输出的解码与筛选（NMS、Top-K）在每次推理之后执行，往往只用一个线程。与下一次推理"
                           "并行、多线程执行或移到设备上，就能离开关键路径。"),
             .actions = {HN_DO_POSTPROCESS, HN_DO_TIMELINE}});
}

const struct hn_rule hn_rule_slow_post = {"slow_post", run};
