/* The machine's measured peaks: how many windows, which of them count, and what is kept. */
#include "improve/roofs.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "improve/roof_cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A window takes about a third of a second. */
enum { FEWEST_WINDOWS = 3, QUIET_WINDOWS = 2, MOST_WINDOWS = 32 };
#define USUAL_SECONDS 6.0

static double *figure_of(hone_roofs *roofs, hn_roof_figure figure) {
  switch (figure) {
#define X(name)                                                                                              \
  case HN_ROOF_##name: return &roofs->name;
    HN_ROOFS(X)
#undef X
  case HN_ROOF_COUNT: break;
  }
  return NULL;
}

/* ---- windows */

typedef struct windows {
  hn_roof_meter *meter;
  const hone_roofs_options *options;
  hone_roofs *out; /* figures so far, the best of each */
  double worst[HN_ROOF_COUNT];
  uint32_t quiet;  /* windows */
  double loudness; /* of the quietest */
  double start;
} windows;

/* HONE_ROOF_SECONDS bounds it from outside, for whoever starts many commands on a busy machine, where peaks
 * are not kept. */
static double limit_of(const hone_roofs_options *o) {
  const double seconds = o->max_seconds > 0 ? o->max_seconds : USUAL_SECONDS;
  const char *text = getenv("HONE_ROOF_SECONDS");
  const double most = text ? strtod(text, NULL) : 0;
  return most > 0 && most < seconds ? most : seconds;
}

static double share(double part, double whole) {
  return part <= 0 || whole <= 0 ? 0 : part < whole ? part / whole : 1;
}

/* Every figure once. False: time was up before the last. */
static bool run_window(windows *w, hn_load *before, hone_status *status, hone_error *error) {
  const hone_roofs_options *o = w->options;
  /* How many windows come after the fewest nobody knows: it is others' load that decides. */
  const uint32_t windows = hn_roof_quick() ? 1 : FEWEST_WINDOWS,
                 total = w->out->windows < windows ? windows * HN_ROOF_COUNT : 0;
  hn_load after = *before;
  double rate[HN_ROOF_COUNT];
  for (int i = 0; i < HN_ROOF_COUNT; i++) {
    if (o->progress && !o->progress(o->progress_arg, w->out->windows * HN_ROOF_COUNT + (uint32_t)i, total)) {
      *status = hn_fail(error, HONE_ERROR_CANCELLED, "measuring the machine's peaks was interrupted");
      return false;
    }
    if (after.time - w->start >= limit_of(o)) return false;
    rate[i] = w->meter->rate(w->meter, (hn_roof_figure)i);
    double *best = figure_of(w->out, (hn_roof_figure)i);
    if (rate[i] > *best) *best = rate[i];
    w->meter->load(w->meter, &after);
  }
  const double seconds = after.time - before->time;
  const bool counted = before->busy >= 0 && after.busy >= 0;
  const double others = counted ? after.busy - before->busy - (after.own - before->own) : 0;
  const double delay = before->delay >= 0 && after.delay >= 0 ? after.delay - before->delay : 0;
  const double taken = share(others, seconds * w->meter->processors),
               waited = share(delay, seconds * w->out->threads), loudness = fmax(taken, waited);
  for (int i = 0; i < HN_ROOF_COUNT; i++)
    if (!w->out->windows || rate[i] < w->worst[i]) w->worst[i] = rate[i];
  if (!w->out->windows || loudness < w->loudness) {
    w->loudness = loudness;
    w->out->others = taken;
    w->out->delay = waited;
  }
  w->out->windows++;
  w->quiet += loudness <= HONE_ROOFS_QUIET;
  *before = after;
  return true;
}

bool hn_roof_quick(void) {
  const char *text = getenv("HONE_ROOF_QUICK");
  return text && strcmp(text, "1") == 0;
}

static bool is_enough(const windows *w) {
  const uint32_t n = w->out->windows;
  return n >= MOST_WINDOWS || (n >= FEWEST_WINDOWS && w->quiet >= QUIET_WINDOWS) || (n && hn_roof_quick());
}

static hone_status measure(hn_roof_meter *meter, const hone_roofs_options *o, hone_roofs *out,
                           hone_error *error) {
  windows w = {.meter = meter, .options = o, .out = out};
  hn_load now;
  hone_status status = meter->open(meter, out, error);
  if (status == HONE_OK) {
    meter->load(meter, &now);
    w.start = now.time;
    meter->until = now.time + limit_of(o);
    while (!is_enough(&w))
      if (!run_window(&w, &now, &status, error)) break;
  }
  meter->close(meter);
  for (int i = 0; i < HN_ROOF_COUNT && out->windows; i++) {
    const double best = *figure_of(out, (hn_roof_figure)i);
    if (best > 0) out->spread = fmax(out->spread, (best - w.worst[i]) / best);
  }
  out->quiet = w.quiet >= QUIET_WINDOWS;
  return status;
}

/* ---- cache: one small text file per processor, tier, thread count and version */

static void cache_key(const hone_roofs *r, char *buf, size_t size) {
  snprintf(buf, size, "hone-roofs 3 | %s | %s | %s | %u threads", hone_version(), r->cpu,
           hn_isa_name(hn_cpu()->isa), r->threads);
}

static bool cache_read(hone_roofs *r) {
  char key[320];
  hn_str lines = {0};
  hone_roofs v = *r;
  double windows = 0;
  cache_key(r, key, sizeof key);
  bool ok = hn_roof_cache_read(key, &lines);
#define X(name) ok = ok && hn_roof_cache_number(&lines, #name, &v.name);
  HN_ROOFS(X)
  X(spread)
  X(others)
  X(delay)
#undef X
  ok = ok && hn_roof_cache_number(&lines, "windows", &windows) && v.f32_gflops > 0 && v.dram_gbs > 0;
  hn_str_free(&lines);
  if (!ok) return false;
  v.windows = (uint32_t)windows;
  v.quiet = true; /* others are not kept */
  *r = v;
  return true;
}

static void cache_write(const hone_roofs *r) {
  char key[320];
  hn_str lines = {0};
  cache_key(r, key, sizeof key);
#define X(name) hn_str_printf(&lines, #name " %.6g\n", r->name);
  HN_ROOFS(X)
  X(spread)
  X(others)
  X(delay)
#undef X
  hn_str_printf(&lines, "windows %u\n", r->windows);
  hn_roof_cache_write(key, &lines);
  hn_str_free(&lines);
}

hone_status hn_roofs_measure(hn_roof_meter *meter, uint32_t threads, const hone_roofs_options *options,
                             hone_roofs *out, hone_error *error) {
  static const hone_roofs_options usual = {0};
  const hone_roofs_options *o = options ? options : &usual;
  *out = (hone_roofs){.threads = threads && threads < meter->processors ? threads : meter->processors,
                      .l1_bytes = hn_cache_size(1),
                      .l2_bytes = hn_cache_size(2),
                      .l3_bytes = hn_cache_size(3)};
  snprintf(out->cpu, sizeof out->cpu, "%s", hn_cpu_brand());
  if (!o->again && cache_read(out)) return HONE_OK;
  const hone_status status = measure(meter, o, out, error);
  if (status == HONE_OK && out->quiet && out->dram_gbs > 0) cache_write(out); /* else it is not read */
  return status;
}

void hone_roofs_raise(hone_roofs *roofs, const hone_roofs *seen) {
  if (!roofs || !seen) return;
  hone_roofs other = *seen;
  bool more = seen->quiet && !roofs->quiet;
  for (int i = 0; i < HN_ROOF_COUNT; i++) {
    double *known = figure_of(roofs, (hn_roof_figure)i);
    const double now = *figure_of(&other, (hn_roof_figure)i);
    if (!(now > *known)) continue;
    *known = now;
    more = true;
  }
  roofs->quiet |= seen->quiet;
  if (more && roofs->quiet) cache_write(roofs);
}

hone_status hone_roofs_measure(uint32_t threads, const hone_roofs_options *options, hone_roofs *out,
                               hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_roofs_measure: out is NULL");
  hn_roof_meter *meter = hn_roof_meter_new();
  if (!meter) return hn_fail_memory(error, sizeof *meter, "measuring the machine's peaks");
  const hone_status status = hn_roofs_measure(meter, threads, options, out, error);
  hn_free(meter);
  return status;
}
