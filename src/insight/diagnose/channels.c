#include "insight/diagnose/channels.h"

static bool picked(const hn_diagnosis *d, const hone_layer *l, hn_channel_test *test) {
  const hone_step_fact *step = hn_step(d, l);
  return hn_is_conv(l) && step && step->channels_in > 0 && step->channels_out > 0 && test(d, step);
}

hn_channels hn_channels_gather(hn_diagnosis *d, hn_channel_test *test) {
  hn_channels c = {0};
  double others_ms = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_conv(l) || l->roof_pct <= 0) continue;
    if (!picked(d, l, test)) {
      others_ms += hn_typical_ms(l);
      c.others_roof_pct += l->roof_pct * hn_typical_ms(l);
      continue;
    }
    c.count++;
    c.ms += hn_typical_ms(l);
    c.roof_pct += l->roof_pct * hn_typical_ms(l);
    if (!c.worst || hn_typical_ms(l) > hn_typical_ms(c.worst)) c.worst = l;
  }
  if (c.ms > 0) c.roof_pct /= c.ms;
  if (others_ms > 0) c.others_roof_pct /= others_ms;
  return c;
}

bool hn_channels_matter(const hn_diagnosis *d, const hn_channels *c) {
  return c->count && hn_share(d, c->ms) >= d->t->channel_share && c->roof_pct < c->others_roof_pct;
}

void hn_channels_finish(hn_diagnosis *d, hone_finding *f, const hn_channels *c, hn_channel_test *test) {
  const hone_step_fact *step = hn_step(d, c->worst);
  f->subject = c->worst->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  hn_finding_evidence(d, HN_T("share", "占比"), hn_share(d, c->ms), "%", HN_SOURCE_SPANS);
  hn_finding_evidence_at(d, HN_T("input channels of the slowest", "最慢者的输入通道数"), step->channels_in,
                         "", c->worst->name);
  hn_finding_evidence_at(d, HN_T("output channels of the slowest", "最慢者的输出通道数"), step->channels_out,
                         "", c->worst->name);
  hn_finding_evidence(d, HN_T("their share of the roofline", "它们达到屋顶线的比例"), c->roof_pct, "%",
                      HN_SOURCE_ROOFS);
  hn_finding_evidence(d, HN_T("other convolutions' share", "其他卷积达到的比例"), c->others_roof_pct, "%",
                      HN_SOURCE_ROOFS);
  hn_finding_do(d, HN_DO_CHANNELS, c->worst->name, 0);
  hn_finding_do(d, HN_DO_LAYER, c->worst->name, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (picked(d, &d->p->layers[i], test))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, hn_share(d, c->ms) / 100, c->others_roof_pct / c->roof_pct, HONE_BASIS_MEASURED,
      HN_WORDS(d, "they reach the share of the roofline that this network's other convolutions reach",
               "它们达到本网络其他卷积所达到的屋顶线比例"),
      0.35);
  hn_finding_end(d);
}
