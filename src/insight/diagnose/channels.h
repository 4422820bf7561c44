/* Shared by the rules about unlucky channel counts: they differ only in which convolutions they mean. */
#ifndef HN_INSIGHT_CHANNELS_H
#define HN_INSIGHT_CHANNELS_H

#include "insight/diagnose/rule.h"

typedef bool hn_channel_test(const hn_diagnosis *d, const hone_step_fact *step);

typedef struct hn_channels {
  size_t count;
  double ms;              /* of the convolutions that the test picks */
  double roof_pct;        /* their mean share of the roofline, by time */
  double others_roof_pct; /* that of the other convolutions; 0: there are none */
  const hone_layer *worst;
} hn_channels;

hn_channels hn_channels_gather(hn_diagnosis *d, hn_channel_test *test);
/* They take enough time, and they are slower than the convolutions beside them. */
bool hn_channels_matter(const hn_diagnosis *d, const hn_channels *c);
void hn_channels_finish(hn_diagnosis *d, hone_finding *f, const hn_channels *c, hn_channel_test *test);

#endif
