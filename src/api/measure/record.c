/* Recording runs as facts, and making a profile of them. */
#include "api/measure/watch.h"
#include "backends/cpu/kernels/features.h"
#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define INTERRUPTED "interrupted"
enum { RUNS = 30 };

/* Blocks of about this long: short enough to share a machine's moods, and for small networks long enough that
 * the first run of a block, which finds the other plan's data in the caches, stays an exception. */
#define BLOCK_MS 50.0
enum { FEWEST = 5, LONGEST_BLOCK = 10 };

/* One call of hone_subjects_record. */
typedef struct recorder {
  const hone_subject *subject;
  uint32_t n, runs, done, total;
  const hone_recording_options *o;
  hone_peaks *peaks;
  double start_ms;
  hone_counts counted;
  double celsius[2]; /* before and after */
} recorder;

static bool on_cpu(const hone_subject *s) { return !s->device || strcmp(s->device, "cpu") == 0; }

double hone_temperature(const char *device) {
  hone_sensors s;
  hone_error none = {0};
  hone_system_sample now;
  if (!device || strcmp(device, "cpu") == 0) {
    hone_system_read(&now);
    return now.temperature_c;
  }
  if (hone_device_sensors(device, &s, &none) != HONE_OK) return (double)NAN;
  for (uint32_t i = 0; i < s.count; i++)
    if (strcmp(s.sensor[i].name, "temperature") == 0) return s.sensor[i].value;
  return (double)NAN;
}

/* Keeps what the runtime wrote; what only the caller knows comes after it. */
static void add_meta(const recorder *r, const hone_subject *s, hone_facts *facts) {
  hone_facts_meta m = *hone_facts_get_meta(facts);
  char date[32], os[200], flags[120];
  time_t now = time(NULL);
  struct tm t;
  struct utsname u;
  const hone_machine *machine = hone_engine_machine(s->engine);
  const uint32_t threads = machine ? machine->threads : 0;
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  gmtime_r(&now, &t);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &t);
  uname(&u);
  snprintf(os, sizeof os, "%.64s %.64s", u.sysname, u.release);
  snprintf(flags, sizeof flags, "--level %d --threads %u", s->level, threads);
  m.tool = "hone";
  m.tool_version = hone_version();
  m.backend = s->device ? s->device : "cpu";
  if (machine && !m.isa) m.isa = hn_isa_name(hn_isa_of(machine->isa));
  m.os = os;
  if (!m.compiler) m.compiler = __VERSION__;
  m.date = date;
  m.flags = flags;
  m.batch = d && d->rank > 0 ? (double)d->dim[0] : 1;
  m.threads = threads;
  m.opt_level = s->level;
  m.warmups = r->o->warmups;
  m.runs = r->runs;
  if (m.streams == 0) m.streams = 1;
  hone_facts_set_meta(facts, &m);
  if (s->describe) s->describe(s->arg, facts);
}

static hone_status run_times(recorder *r, const hone_subject *s, uint32_t times, double *slowest,
                             hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < times && status == HONE_OK; i++) {
    double t = hn_watch_ms();
    if (s->before) status = s->before(s->arg, error);
    if (status == HONE_OK) status = hn_watch_run(r->o->watch, s->context, s->in, r->o->max_seconds, error);
    t = hn_watch_ms() - t;
    if (i && slowest && t > *slowest) *slowest = t;
    if (status == HONE_OK && !hn_watch_tell(r->o->watch, "profile", ++r->done, r->total))
      status = hn_watch_stopped(error);
  }
  return status;
}

/* ---- hardware counters */

/* Of the processor for the whole run. */
static void add_run_counters(const recorder *r, uint32_t runs, hone_facts *facts) {
  if (!r->o->counting) return;
#define X(name)                                                                                              \
  if (isfinite(r->counted.name) && runs)                                                                     \
    hone_facts_add_counter(facts, &(hone_counter){#name, "a run", -1, r->counted.name / runs});
  HONE_COUNTS(X)
#undef X
}

static int by_number(const void *pa, const void *pb) {
  const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
  return a < b ? -1 : a > b;
}

/* Numbers of the steps behind the layers that the filter leaves, each once; to be freed. */
static hone_status chosen_steps(const hone_facts *facts, const char *filter, uint32_t **out, uint32_t *n,
                                hone_error *error) {
  hone_profile *narrow = NULL;
  *n = 0;
  const hone_status status =
      hone_profile_create(facts, &(hone_profile_options){.filter = filter}, &narrow, error);
  if (status != HONE_OK) return status;
  uint32_t *steps = *out = hn_malloc((narrow->layer_count + 1) * sizeof *steps), count = 0;
  for (size_t i = 0; steps && i < narrow->layer_count; i++)
    if (narrow->layers[i].step >= 0) steps[count++] = (uint32_t)narrow->layers[i].step;
  hone_profile_destroy(narrow);
  if (!steps) return hn_fail_memory(error, sizeof *steps, "steps");
  qsort(steps, count, sizeof *steps, by_number);
  for (uint32_t i = 0; i < count; i++)
    if (!*n || steps[*n - 1] != steps[i]) steps[(*n)++] = steps[i];
  return HONE_OK;
}

/* Runs once more with the processor's counters read around these steps. */
static hone_status count_on_cpu(const recorder *r, const hone_subject *s, const uint32_t *steps, uint32_t n,
                                hone_facts *facts, hone_error *error) {
  enum { MOST = 10 };
  const double start = hn_watch_ms(), most = r->o->max_seconds;
  hone_status status = hone_context_count(s->context, r->o->counting, steps, n, error);
  for (uint32_t i = 0; i < r->runs && i < MOST && status == HONE_OK; i++) {
    if (i && most > 0 && hn_watch_ms() - start >= most * 1e3) break;
    status = hn_watch_run(r->o->watch, s->context, s->in, most, error);
  }
  hone_error other = {0};
  const hone_status ended = hone_context_count_end(s->context, facts, status == HONE_OK ? error : &other);
  return status == HONE_OK ? ended : status;
}

/* The narrow second pass: hardware counters of the chosen steps (of all without a filter, on an accelerator),
 * or a note that says why there are none. The times stay those of the first pass. */
static hone_status second_pass(const recorder *r, const hone_subject *s, hone_facts *facts,
                               hone_error *error) {
  hone_status status = HONE_OK;
  hone_error none = {0};
  uint32_t *steps = NULL, n = 0;
  if (on_cpu(s) && !r->o->counting) {
    hone_facts_add_unmeasured(facts, "hardware counters",
                              r->o->uncounted ? r->o->uncounted : "not asked for");
    return HONE_OK;
  }
  if (on_cpu(s) && !r->o->filter) return HONE_OK;
  if (r->o->filter) status = chosen_steps(facts, r->o->filter, &steps, &n, error);
  if (status != HONE_OK || (r->o->filter && !n)) { /* no such layer, or none with a step: nothing to count */
  } else if (on_cpu(s))
    status = count_on_cpu(r, s, steps, n, facts, error);
  else if (hone_context_counters(s->context, steps, n, facts, &none) != HONE_OK)
    hone_facts_add_unmeasured(facts, "hardware counters", none.what);
  hn_free(steps);
  return status;
}

/* ---- what follows the runs */

/* Of the limit what is left; 0: no limit. */
static double seconds_left(const recorder *r) {
  const double left = r->o->max_seconds - (hn_watch_ms() - r->start_ms) / 1e3;
  return r->o->max_seconds <= 0 ? 0 : left > 1e-3 ? left : 1e-3;
}

/* What of it measuring peaks may take. */
static double peaks_seconds(const recorder *r) {
  const double left = seconds_left(r), most = r->o->peaks_seconds;
  return most > 0 && (left <= 0 || most < left) ? most : left;
}

/* Who stops the runs stops what follows, too; they are kept where that is wanted. */
static bool goes_on(const recorder *r, hone_status status, hone_error *error) {
  if (status != HONE_ERROR_CANCELLED || !r->o->keep) return false;
  if (error) *error = (hone_error){0};
  return true;
}

static hone_status add_roofs(const recorder *r, const hone_subject *s, hone_facts *facts, hone_error *error) {
  const hone_machine *machine = hone_engine_machine(s->engine);
  const hone_status status = hone_peaks_add(r->peaks, s->device, machine ? machine->threads : 0,
                                            peaks_seconds(r), r->o->watch, facts, error);
  if (!goes_on(r, status, error)) return status;
  hone_facts_add_unmeasured(facts, "machine roofs", INTERRUPTED);
  return HONE_OK;
}

static hone_status add_counters(const recorder *r, const hone_subject *s, bool stopped, hone_facts *facts,
                                hone_error *error) {
  if (!r->o->counters && !r->o->filter) return HONE_OK;
  const hone_status status = stopped ? HONE_ERROR_CANCELLED : second_pass(r, s, facts, error);
  if (!goes_on(r, status, error)) return status;
  hone_facts_add_unmeasured(facts, "hardware counters", INTERRUPTED);
  return HONE_OK;
}

static void mark_interrupted(hone_facts *facts) {
  hone_facts_meta meta = *hone_facts_get_meta(facts);
  meta.interrupted = 1;
  hone_facts_set_meta(facts, &meta);
}

static void add_temperatures(const recorder *r, hone_facts *facts) {
  const double low = fmin(r->celsius[0], r->celsius[1]), high = fmax(r->celsius[0], r->celsius[1]);
  if (!isfinite(low) || !isfinite(high)) return; /* fmin takes the one that was read */
  hone_facts_add_counter(facts, &(hone_counter){"temperature_c_min", "C", -1, low});
  hone_facts_add_counter(facts, &(hone_counter){"temperature_c_max", "C", -1, high});
}

static hone_status make_profile(const recorder *r, const hone_subject *s, hone_recording *out,
                                hone_error *error) {
  const hone_profile_options o = {.filter = r->o->filter};
  bool raised = false;
  hone_status status = hone_profile_create(out->facts, &o, &out->profile, error);
  if (status == HONE_OK)
    status = hone_peaks_raise(r->peaks, out->profile, s->device, peaks_seconds(r), r->o->watch, out->facts,
                              &raised, error);
  if (goes_on(r, status, error)) return HONE_OK;
  if (status != HONE_OK || !raised) return status;
  hone_profile_destroy(out->profile);
  out->profile = NULL;
  return hone_profile_create(out->facts, &o, &out->profile, error);
}

/* Facts of one subject's recorded runs -> profile. */
static hone_status finish(const recorder *r, const hone_subject *s, uint32_t complete, hone_recording *out,
                          hone_error *error) {
  hone_status status = hone_context_record_end(s->context, error);
  if (status != HONE_OK) return status;
  add_temperatures(r, out->facts);
  if (r->o->counters && on_cpu(s)) add_run_counters(r, complete, out->facts);
  status = add_counters(r, s, complete < r->runs, out->facts, error);
  if (status == HONE_OK) status = add_roofs(r, s, out->facts, error);
  if (status != HONE_OK) return status;
  add_meta(r, s, out->facts);
  if (complete < r->runs) mark_interrupted(out->facts);
  if (s->rss_peak > 0) {
    hone_memory_facts m = *hone_facts_get_memory(out->facts);
    m.rss_peak = (uint64_t)s->rss_peak;
    hone_facts_set_memory(out->facts, &m);
  }
  return make_profile(r, s, out, error);
}

/* ---- the runs */

/* *per_run: the slowest of each subject's, together. */
static hone_status warm_up(recorder *r, double *together, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t k = 0; k < r->n && status == HONE_OK; k++) {
    double one = 0;
    status = run_times(r, &r->subject[k], r->o->warmups, &one, error);
    *together += one;
  }
  if (status != HONE_OK || *together <= 0 || r->o->seconds <= 0) return status;
  const double fit = (r->o->seconds * 1e3 - (hn_watch_ms() - r->start_ms)) / *together;
  if (fit < r->runs) r->runs = fit < FEWEST ? FEWEST : (uint32_t)fit;
  r->total = r->n * (r->o->warmups + r->runs);
  return HONE_OK;
}

static hone_status begin(const recorder *r, hone_recording *out, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t k = 0; k < r->n && status == HONE_OK; k++) {
    out[k].facts = hone_facts_create();
    status = out[k].facts ? hone_context_record(r->subject[k].context, out[k].facts, r->runs, error)
                          : hn_fail(error, HONE_ERROR_MEMORY, "out of memory for facts");
  }
  return status;
}

static hone_status run_blocks(recorder *r, double together, hone_error *error) {
  const double per_run = together / r->n;
  uint32_t block = r->n < 2                            ? r->runs
                   : per_run > 0 && per_run < BLOCK_MS ? (uint32_t)(BLOCK_MS / per_run)
                                                       : 1;
  if (r->n > 1 && block > LONGEST_BLOCK) block = LONGEST_BLOCK;
  hone_counts before = {0};
  hone_status status = HONE_OK;
  r->celsius[0] = hone_temperature(r->subject->device);
  if (r->o->counting) hone_counting_read(r->o->counting, &before);
  for (uint32_t i = 0; i < r->runs && status == HONE_OK; i += block)
    for (uint32_t k = 0; k < r->n && status == HONE_OK; k++)
      status = run_times(r, &r->subject[k], r->runs - i < block ? r->runs - i : block, NULL, error);
  if (r->o->counting) hone_counting_read(r->o->counting, &r->counted);
#define X(name) r->counted.name -= before.name;
  HONE_COUNTS(X)
#undef X
  return status;
}

/* A facts object that goes away is no context's any more. */
static void drop(const recorder *r, hone_recording *out) {
  hone_error none = {0};
  for (uint32_t k = 0; k < r->n; k++) {
    if (out[k].facts) hone_context_record(r->subject[k].context, NULL, 0, &none);
    hone_recording_free(&out[k]);
  }
}

static bool complete_subjects(const hone_subject *s, uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    if (!s[k].engine || !s[k].plan || !s[k].context || (!s[k].in && hone_plan_inputs(s[k].plan)))
      return false;
  return true;
}

hone_status hone_subjects_record(const hone_subject *subjects, uint32_t n, const hone_recording_options *o,
                                 hone_recording *out, hone_error *error) {
  static const hone_recording_options usual = {0};
  hone_peaks own = {0};
  if (!subjects || !n || !out || !complete_subjects(subjects, n))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_subjects_record needs subjects with engine, plan, context and inputs, and a place "
                   "for the results");
  if (!o) o = &usual;
  recorder r = {.subject = subjects,
                .n = n,
                .runs = o->runs ? o->runs : RUNS,
                .o = o,
                .peaks = o->peaks ? o->peaks : &own,
                .start_ms = hn_watch_ms()};
  double together = 0;
  r.total = n * (o->warmups + r.runs);
  for (uint32_t k = 0; k < n; k++) out[k] = (hone_recording){0};
  hone_status status = warm_up(&r, &together, error);
  if (status == HONE_OK) status = begin(&r, out, error);
  if (status == HONE_OK) status = run_blocks(&r, together, error);
  const uint32_t complete = n == 1 ? r.done - o->warmups : r.runs;
  if (n == 1 && r.done > o->warmups && goes_on(&r, status, error)) status = HONE_OK;
  r.celsius[1] = hone_temperature(subjects->device);
  for (uint32_t k = 0; k < n && status == HONE_OK; k++)
    status = finish(&r, &subjects[k], complete, &out[k], error);
  if (status != HONE_OK) drop(&r, out);
  return status;
}

void hone_recording_free(hone_recording *r) {
  if (!r) return;
  hone_profile_destroy(r->profile);
  hone_facts_destroy(r->facts);
  *r = (hone_recording){0};
}
