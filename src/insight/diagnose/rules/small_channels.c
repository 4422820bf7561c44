/* Convolutions with so few input channels that vectors and tiles stay half empty. */
#include "insight/diagnose/channels.h"

static bool is_small(const hn_diagnosis *d, const hone_step_fact *step) {
  return step->channels_in < d->t->small_channels;
}

/* The network's first convolution: it has the channels of the image, whatever the model's author does. */
static bool is_first(const hn_diagnosis *d, const hone_layer *l) {
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_conv(&d->p->layers[i])) return &d->p->layers[i] == l;
  return false;
}

static void run(hn_diagnosis *d) {
  hn_channels c = hn_channels_gather(d, is_small);
  if (!hn_channels_matter(d, &c)) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  if (c.count == 1 && is_first(d, c.worst)) d->worst = HONE_SEVERITY_LOW;
  f->title = HN_SAY(d, "Convolutions with under %.0f input channels (%zu) take %.0f %% of the time",
                    "输入通道少于 %.0f 的卷积（%zu 个）占时间的 %.0f %%", d->t->small_channels, c.count,
                    hn_share(d, c.ms));
  f->cause =
      HN_WORDS(d,
               "So few channels do not fill a vector or a tile, so the same arithmetic takes more "
               "instructions. Padding the input once, a kernel for few channels, or (for the first "
               "layer) space-to-depth fills them.",
               "通道太少，填不满一个向量或分块，同样的运算要用更多指令。把输入一次性补齐、使用小通道内核，"
               "或（对第一层）做 space-to-depth 即可填满。");
  hn_channels_finish(d, f, &c, is_small);
}

const struct hn_rule hn_rule_small_channels = {"small_channels", run};
