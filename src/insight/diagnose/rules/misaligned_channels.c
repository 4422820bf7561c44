/* Convolutions whose channel counts are no multiple of the vector: every row ends in a remainder. */
#include "insight/diagnose/channels.h"

static bool is_misaligned(const hn_diagnosis *d, const hone_step_fact *step) {
  int32_t multiple = d->t->channel_multiple >= 1 ? (int32_t)d->t->channel_multiple : 1;
  return step->channels_in >= d->t->small_channels &&
         (step->channels_in % multiple != 0 || step->channels_out % multiple != 0);
}

static void run(hn_diagnosis *d) {
  hn_channels c = hn_channels_gather(d, is_misaligned);
  if (!hn_channels_matter(d, &c)) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title =
      HN_SAY(d, "Convolutions with channels that are no multiple of %.0f (%zu) take %.0f %% of the time",
             "通道数不是 %.0f 的倍数的卷积（%zu 个）占时间的 %.0f %%", d->t->channel_multiple, c.count,
             hn_share(d, c.ms));
  f->cause =
      HN_WORDS(d,
               "Each row of channels ends in a partly filled vector. A multiple of the vector width in "
               "the model (58 -> 64, 255 -> 256) costs a few weights and saves the remainders.",
               "每一行通道都以未填满的向量结尾。把模型的通道数取为向量宽度的倍数（58 -> 64，255 -> 256）"
               "只多一点权重，却省去了余数处理。");
  hn_channels_finish(d, f, &c, is_misaligned);
}

const struct hn_rule hn_rule_misaligned_channels = {"misaligned_channels", run};
