/* Copies from the device hold up the next inference. */
#include "insight/diagnose/stage.h"

static void run(hn_diagnosis *d) {
  hn_stage_check(
      d, &(hn_stage){
             .ms = d->p->stages.d2h_ms,
             .limit_pct = d->t->d2h_share,
             .quantity = HONE_QUANTITY_D2H,
             .subject = HN_T("Copying from the device", "从设备拷回（D2H）"),
             .cause = HN_T("Outputs are copied back before the next inference begins. What the host "
                           "needs is mostly less than what is copied: top-k or decoding on the device, "
                           "narrower outputs, and copying during the next inference.",
                           "下一次推理开始之前要先拷回输出。主机真正需要的通常远少于拷回的数据：在设备上做 "
                           "Top-K 或解码、输出更窄的类型，并在下一次推理期间拷贝。"),
             .actions = {HN_DO_RESIDENT, HN_DO_TIMELINE}});
}

const struct hn_rule hn_rule_slow_d2h = {"slow_d2h", run};
