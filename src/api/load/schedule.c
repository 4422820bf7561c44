#include "api/load/schedule.h"

#include "base/error.h"

/* LoadGen asks offline for a tenth more than it expects to need. */
static const double slack = 1.1;

static uint64_t samples_of_query(const hone_load_settings *s) {
  if (s->scenario == HONE_SCENARIO_MULTI) return s->query_samples;
  if (s->scenario != HONE_SCENARIO_OFFLINE) return 1;
  const uint64_t wanted = (uint64_t)(slack * ((double)s->min_duration_ns / 1e9) * s->qps);
  return wanted > s->min_queries ? wanted : s->min_queries;
}

static void count_up(uint32_t *items, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) items[i] = i;
}

/* What LoadGen's generator of samples does before the first query. The items do not matter, the draws do. */
static void draw_unused(hn_schedule *d, uint32_t *items) {
  const hone_load_settings *s = d->s;
  const uint32_t stride = s->scenario == HONE_SCENARIO_MULTI ? s->query_samples : 1;
  const uint32_t all = s->samples + stride - 1;
  const uint64_t queries = s->scenario == HONE_SCENARIO_OFFLINE ? 1 : s->min_queries;
  count_up(items, all);
  hn_mt_shuffle(&d->samples, items, (s->samples + stride - 1) / stride);
  for (uint64_t i = 0; i < queries; i += all) hn_mt_shuffle(&d->samples, items, all);
}

hone_status hn_schedule_open(const hone_load_settings *s, hn_schedule *out, hone_error *error) {
  const size_t most = (size_t)s->samples + s->query_samples;
  *out = (hn_schedule){.s = s, .set = hn_malloc(s->samples * sizeof *out->set), .size = samples_of_query(s)};
  uint32_t *items = hn_malloc(most * sizeof *items);
  if (!out->set || !items) {
    hn_free(items);
    hn_schedule_close(out);
    return hn_fail_memory(error, most * sizeof *items, "the schedule");
  }
  hn_mt set;
  hn_mt_seed(&set, s->set_seed);
  hn_mt_seed(&out->samples, s->sample_seed);
  hn_mt_seed(&out->arrivals, s->schedule_seed);
  count_up(out->set, s->samples);
  hn_mt_shuffle(&set, out->set, s->samples);
  draw_unused(out, items);
  hn_free(items);
  return HONE_OK;
}

void hn_schedule_close(hn_schedule *d) {
  hn_free(d->set);
  d->set = NULL;
}

bool hn_schedule_more(const hn_schedule *d) {
  if (d->s->scenario == HONE_SCENARIO_OFFLINE) return d->made == 0;
  return d->s->scenario != HONE_SCENARIO_SERVER || d->before < d->s->min_duration_ns ||
         d->made < d->s->min_queries;
}

uint64_t hn_schedule_next(hn_schedule *d) {
  if (d->s->scenario != HONE_SCENARIO_OFFLINE) d->first = hn_mt_below(&d->samples, d->s->samples);
  d->before = d->at;
  d->made++;
  if (d->s->scenario == HONE_SCENARIO_SERVER)
    d->at += (uint64_t)(hn_mt_exponential(&d->arrivals, d->s->qps) * 1e9);
  return d->before;
}

uint32_t hn_schedule_sample(const hn_schedule *d, uint64_t k) {
  return d->set[(d->first + k) % d->s->samples];
}

hone_status hn_schedule_count(const hone_load_settings *s, uint64_t *count, hone_error *error) {
  hn_schedule d;
  const hone_status status = hn_schedule_open(s, &d, error);
  if (status != HONE_OK) return status;
  while (hn_schedule_more(&d)) hn_schedule_next(&d);
  *count = d.made;
  hn_schedule_close(&d);
  return HONE_OK;
}
