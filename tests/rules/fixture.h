/* Small profiles for rules: a healthy network to start from, a few strokes to make it ill. */
#ifndef TESTS_RULES_FIXTURE_H
#define TESTS_RULES_FIXTURE_H

#include <hone/insight.h>

enum { FIXTURE_LAYERS = 40 };

typedef struct fixture_layer {
  const char *name, *type;
  double ms;
  double gflop, mb; /* of one execution */
  hone_span_kind kind;
  bool reference, reformat;
  int cin, cout;
  double weights_mb;
  double jitter;      /* every 5th run takes this much longer, as a factor; 0: steady */
  const char *shape;  /* of the output; NULL: not recorded */
  const char *reason; /* why a fast tactic refused */
  const char *dtype;  /* NULL: f32 */
  const char *does;   /* a conversion of the tensor `name`, which no node asked for; NULL: a node */
  bool on_host;
  double preview_ms; /* what a tactic of a plan that was not built would take; 0: no preview step */
  double timed_ms;   /* of the preview step, timed on its own; 0: it was not */
  double scaled_ms;  /* of the preview step, as its kernel is known to take; 0: not known */
  double model_ms;   /* of the measured step; 0: half of what it took */
  const char *preview_tactic;
} fixture_layer;

typedef struct fixture {
  fixture_layer layers[FIXTURE_LAYERS];
  int count;
  hone_facts_meta meta;
  int runs;
  double gap_ms;                          /* between any two steps */
  double one_gap_ms;                      /* before the third step */
  double outside_ms;                      /* seen by the outer clock only */
  double pre_ms, post_ms, h2d_ms, d2h_ms; /* outside the run */
  double sync_ms;                         /* inside the run, after the last step */
  int small_copies;                       /* to the device, in place of h2d_ms as one copy */
  bool pageable;                          /* the copies to the device */
  double drift;    /* each run takes this much longer than the one before, as a share */
  double leak_mib; /* resident memory grows by this much a second, sampled once a second for a minute */
  hone_counter counters[8];
  int counter_count;
  hone_note options[8]; /* of the command line that was profiled */
  int option_count;
  hone_slow_run slow_runs[4];
  int slow_run_count;
  bool no_roofs;
  double int8_gflops;  /* a roof of that arithmetic; 0: none */
  int near_miss_level; /* > -2: one near miss over the first and the last layer, enabled at this level */
  hone_facts *facts;
  hone_profile *profile;
  hone_findings *findings;
  hone_language language;
  const hone_profile *float_profile;
} fixture;

/* Five convolutions near their roof, a pooling and a product, two threads of two; nothing to say about it. */
fixture fixture_healthy(void);
fixture_layer *fixture_add(fixture *f, const char *name, const char *type, double ms);
void fixture_counter(fixture *f, const char *name, int step, double value);
/* Builds the facts, profiles and diagnoses them. Fails the test on any error. */
void fixture_diagnose(fixture *f);
void fixture_free(fixture *f);
/* The first finding of a rule (id is "rule" or "rule:..."); NULL: it kept quiet. */
const hone_finding *fixture_finding(const fixture *f, const char *rule);
double fixture_evidence(const hone_finding *finding, const char *name); /* NAN: none of that name */
/* Asserts what every finding owes its reader. */
void fixture_complete(const hone_finding *finding);

#endif
