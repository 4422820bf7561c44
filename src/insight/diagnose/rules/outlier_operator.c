/* An operator whose time scatters: its mean is well above what it usually takes. */
#include "insight/diagnose/rule.h"

static bool scatters(const hn_diagnosis *d, const hone_layer *l) {
  return l->stats.cv > d->t->outlier_cv && l->pct >= d->t->outlier_share;
}

static void gain(hn_diagnosis *d, double mean_ms, double usual_ms) {
  hn_finding_gain(d, mean_ms / d->p->wall.mean, usual_ms > 0 ? mean_ms / usual_ms : 1,
                  "measured: every run takes as long as the median run", 0.5);
}

/* Most operators scatter together: then it is the machine, not an operator. */
static void noisy_run(hn_diagnosis *d, size_t noisy) {
  const hone_sample_stats *w = &d->p->wall;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "The whole run scatters (CV %.2f): something else uses this machine", w->cv);
  d->worst = HONE_SEVERITY_LOW; /* about the measurement, not about the network */
  f->subject = "whole run";
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = "Most operators vary at once, which no single operator explains: other processes, frequency "
             "changes or a "
             "shared host. Figures of such a run should not be compared.";
  hn_finding_evidence(d, "CV of the wall", w->cv, "", "outer clock");
  hn_finding_evidence(d, "p95 over p50", w->p50 > 0 ? w->p95 / w->p50 : 0, "x", "outer clock");
  hn_finding_evidence(d, "operators with CV above the limit", (double)noisy, "", "layer table");
  hn_finding_command(d, "hone bench %s", d->model);
  gain(d, w->mean, w->p50);
  hn_finding_end(d);
}

static void one_operator(hn_diagnosis *d, const hone_layer *l) {
  hone_finding *f = hn_finding_begin(d, l->name);
  f->title =
      hn_say(d, "'%s' takes %.2f ms on average but %.2f ms usually", l->name, l->stats.mean, l->stats.p50);
  f->subject = l->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = "Some of its runs take much longer than the others: page faults in freshly mapped memory, an "
             "allocation, "
             "a lock, or data-dependent work.";
  hn_finding_evidence(d, "CV", l->stats.cv, "", "exclusive time an iteration");
  hn_finding_evidence(d, "median", l->stats.p50, "ms", "exclusive time an iteration");
  hn_finding_evidence(d, "p95", l->stats.p95, "ms", "exclusive time an iteration");
  hn_finding_evidence(d, "worst", l->stats.max, "ms", "exclusive time an iteration");
  hn_finding_command(d, "hone profile %s --filter '%s'", d->model, l->name);
  hn_finding_layer(d, l, l->time_ms);
  gain(d, l->stats.mean, l->stats.p50);
  hn_finding_end(d);
}

static void run(hn_diagnosis *d) {
  if ((double)d->p->iterations < d->t->outlier_runs) return;
  size_t noisy = 0, relevant = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    relevant += d->p->layers[i].pct >= d->t->outlier_share;
    noisy += scatters(d, &d->p->layers[i]);
  }
  if (relevant > 2 && noisy * 2 > relevant) {
    if (d->p->wall.cv > d->t->outlier_cv) noisy_run(d, noisy);
    return;
  }
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (scatters(d, &d->p->layers[i])) one_operator(d, &d->p->layers[i]);
}

const struct hn_rule hn_rule_outlier_operator = {"outlier_operator", run};
