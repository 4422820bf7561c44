/* Convolutions decide the run, and they are far from their roofline. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  double conv_ms = 0, reachable_ms = 0, flops = 0;
  size_t count = 0;
  const hone_layer *worst = NULL;
  double worst_loss = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_conv(l)) continue;
    double reachable = hn_roof_time(d, l, d->t->reachable_roof);
    count++;
    conv_ms += hn_typical_ms(l);
    reachable_ms += reachable;
    flops += l->flops;
    if (hn_typical_ms(l) - reachable > worst_loss) {
      worst_loss = hn_typical_ms(l) - reachable;
      worst = l;
    }
  }
  double share = hn_share(d, conv_ms);
  if (share < d->t->conv_share || !worst) return;
  /* Share of what good kernels would reach: it is the same measure for compute- and memory-bound
   * convolutions. */
  double efficiency = d->t->reachable_roof * reachable_ms / conv_ms;
  if (efficiency >= d->t->conv_efficiency) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "Convolutions take %.0f %% of the time at %.0f %% of the roofline", share, efficiency);
  f->subject = hn_say(d, "%zu convolutions, most of it lost in '%s'", count, worst->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = "The convolutions run well below what this machine's measured roofs allow for their FLOPs and "
             "bytes: the "
             "kernels chosen for these shapes do not keep the vector units busy.";
  hn_finding_evidence(d, "convolution share", share, "%", "exclusive wall time of the spans");
  hn_finding_evidence(d, "achieved", flops / conv_ms / 1e6, "GFLOP/s", "FLOPs of the steps over their time");
  hn_finding_evidence(d, "share of the roofline", efficiency, "%", "measured roofs of this machine");
  hn_finding_evidence(d, "lost in the worst one", worst_loss, "ms", worst->name);
  hn_finding_command(d, "hone profile %s --filter Conv", d->model);
  hn_finding_command(d, "hone bench %s", d->model);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_conv(&d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, hn_share(d, conv_ms) / 100, conv_ms / reachable_ms,
      hn_say(d, "roofline: every convolution at %.0f %% of its measured roof", d->t->reachable_roof), 0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_conv_dominated = {"conv_dominated", run};
