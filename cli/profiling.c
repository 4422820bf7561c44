/* Recording runs as facts and making a profile of them. */
#include "cli/cli.h"
#include "cli/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* Keeps what the runtime wrote and fills in what only the command knows. */
static void add_meta(hone_facts *facts, const cli_session *s, const cli_args *args, const char *path,
                     int level, uint32_t warmups, uint32_t runs) {
  hone_facts_meta m = *hone_facts_get_meta(facts);
  char date[32], os[200], flags[120], revision[128];
  time_t now = time(NULL);
  struct tm t;
  struct utsname u;
  gmtime_r(&now, &t);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &t);
  uname(&u);
  snprintf(os, sizeof os, "%.64s %.64s", u.sysname, u.release);
  snprintf(flags, sizeof flags, "--level %d --threads %u", level, cli_threads(s, args));
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  const hone_machine *machine = hone_engine_machine(s->engine);
  m.tool = "hone";
  m.tool_version = hone_version();
  m.hone_version = cli_hone_version();
  m.commit = cli_revision(args, path, revision, sizeof revision) ? revision : NULL;
  m.model = path;
  m.backend = cli_device_name(args);
  if (machine && !m.isa)
    m.isa = machine->isa & HONE_ISA_AMX          ? "amx"
            : machine->isa & HONE_ISA_AVX512BF16 ? "avx512bf16"
            : machine->isa & HONE_ISA_AVX512VNNI ? "avx512vnni"
            : machine->isa & HONE_ISA_AVX512     ? "avx512"
            : machine->isa & HONE_ISA_AVX2       ? "avx2"
                                                 : "scalar";
  m.os = os;
  if (!m.compiler) m.compiler = __VERSION__;
  if (!m.precision) m.precision = cli_precision_name(args);
  m.date = date;
  m.flags = flags;
  m.batch = d && d->rank > 0 ? (double)d->dim[0] : 1;
  m.threads = cli_threads(s, args);
  m.opt_level = level;
  m.seed = args->seed ? (double)args->seed : 1;
  m.warmups = warmups;
  m.runs = runs;
  m.load_ms = s->load_ms;
  if (m.streams == 0) m.streams = 1;
  hone_facts_set_meta(facts, &m);
  cli_record_options(args, s, facts);
  if (strncmp(path, "zoo:", 4) != 0 && !cli_open_batch(s->model))
    hone_facts_add_counter(facts,
                           &(hone_counter){"batch_fixed", "", -1, 1}); /* by the model: -b changes nothing */
}

/* Blocks of about this long: short enough to share a machine's moods, and for small networks long enough that
 * the first run of a block, which finds the other plan's data in the caches, stays an exception. */
#define BLOCK_MS 50.0
#define RECORD_MS 260.0 /* a shorter record has no share of other processes */
enum { FEWEST = 5, LONGEST_BLOCK = 10 };

static hone_status run_times(const cli_profile_plan *p, const cli_args *args, uint32_t times, uint32_t *done,
                             uint32_t total, double *slowest, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < times && status == HONE_OK; i++) {
    double t = cli_now_ms();
    if (args->reload) status = cli_session_reload(p->session, args, error);
    if (status == HONE_OK) status = cli_session_run(p->session, args, error);
    t = cli_now_ms() - t;
    if (i && slowest && t > *slowest) *slowest = t;
    cli_progress("profile", ++*done, total);
  }
  return status;
}

static bool on_cpu(const cli_args *args) { return strcmp(cli_device_name(args), "cpu") == 0; }

/* Of the processor for the whole run, or why there are none. */
static void add_run_counters(const cli_profile_plan *p, const hone_counts *counted, uint32_t runs,
                             hone_facts *facts) {
  if (!p->counting) return;
#define X(name)                                                                                              \
  if (isfinite(counted->name) && runs)                                                                       \
    hone_facts_add_counter(facts, &(hone_counter){#name, "a run", -1, counted->name / runs});
  HONE_COUNTS(X)
#undef X
}

static int by_number(const void *pa, const void *pb) {
  const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
  return a < b ? -1 : a > b;
}

/* Numbers of the steps behind the layers that the filter leaves, each once; to be freed. */
static uint32_t *chosen_steps(const hone_facts *facts, const char *filter, uint32_t *n, hone_error *error) {
  hone_profile *narrow = NULL;
  *n = 0;
  if (hone_profile_create(facts, &(hone_profile_options){.filter = filter}, &narrow, error) != HONE_OK)
    return NULL;
  uint32_t *steps = malloc((narrow->layer_count + 1) * sizeof *steps), count = 0;
  for (size_t i = 0; steps && i < narrow->layer_count; i++)
    if (narrow->layers[i].step >= 0) steps[count++] = (uint32_t)narrow->layers[i].step;
  hone_profile_destroy(narrow);
  if (!steps) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for steps"};
    return NULL;
  }
  qsort(steps, count, sizeof *steps, by_number);
  for (uint32_t i = 0; i < count; i++)
    if (!*n || steps[*n - 1] != steps[i]) steps[(*n)++] = steps[i];
  return steps;
}

/* Runs once more with the processor's counters read around these steps. */
static hone_status count_on_cpu(const cli_profile_plan *p, const cli_args *args, const uint32_t *steps,
                                uint32_t n, uint32_t runs, hone_facts *facts, hone_error *error) {
  enum { MOST = 10 };
  hone_context *context = p->session->context;
  const double start = cli_now_ms();
  hone_status status = hone_context_count(context, p->counting, steps, n, error);
  for (uint32_t i = 0; i < runs && i < MOST && status == HONE_OK; i++) {
    if (i && cli_remaining(start, args->max_seconds) <= 0) break;
    status = cli_session_run(p->session, args, error);
  }
  hone_error other = {0};
  hone_status ended = hone_context_count_end(context, facts, status == HONE_OK ? error : &other);
  return status == HONE_OK ? ended : status;
}

/* The narrow second pass: hardware counters of the chosen steps (of all without --filter, on an accelerator),
 * or a note that says why there are none. The times stay those of the first pass. */
static hone_status second_pass(const cli_profile_plan *p, const cli_args *args, uint32_t runs,
                               hone_facts *facts, hone_error *error) {
  hone_status status = HONE_OK;
  hone_error none = {0};
  uint32_t *steps = NULL, n = 0;
  if (on_cpu(args) && !p->counting) {
    hone_facts_add_unmeasured(facts, "hardware counters", p->uncounted ? p->uncounted : "not asked for");
    return HONE_OK;
  }
  if (on_cpu(args) && !args->filter) return HONE_OK;
  if (args->filter && !(steps = chosen_steps(facts, args->filter, &n, error))) return error->status;
  if (args->filter && !n)
    status = HONE_OK; /* no such layer, or none with a step: cli_check_filter tells */
  else if (on_cpu(args))
    status = count_on_cpu(p, args, steps, n, runs, facts, error);
  else if (hone_context_counters(p->session->context, steps, n, facts, &none) != HONE_OK)
    hone_facts_add_unmeasured(facts, "hardware counters", none.what);
  free(steps);
  return status;
}

/* Of --max-seconds what is left; 0: no limit. */
static double seconds_for_roofs(const cli_args *args, double start_ms) {
  const double left = cli_remaining(start_ms, args->max_seconds);
  return args->max_seconds <= 0 ? 0 : left > 1e-3 ? left : 1e-3;
}

/* Facts of one session's recorded runs -> profile. */
static hone_status finish(const cli_profile_plan *p, const cli_args *args, const char *path, uint32_t warmups,
                          uint32_t runs, const hone_counts *counted, const double celsius[2], double start_ms,
                          cli_profile *out, hone_error *error) {
  double low, high;
  uint32_t threads = cli_threads(p->session, args);
  hone_status status = hone_context_record_end(p->session->context, error);
  if (status != HONE_OK) return status;
  if (steady_range(celsius, 2, &low, &high)) {
    hone_facts_add_counter(out->facts, &(hone_counter){"temperature_c_min", "C", -1, low});
    hone_facts_add_counter(out->facts, &(hone_counter){"temperature_c_max", "C", -1, high});
  }
  if (args->counters && on_cpu(args)) add_run_counters(p, counted, runs, out->facts);
  if (args->counters || args->filter) status = second_pass(p, args, runs, out->facts, error);
  if (status != HONE_OK) return status;
  const char *device = cli_device_name(args);
  status = cli_add_roofs(out->facts, device, threads, seconds_for_roofs(args, start_ms), error);
  if (status != HONE_OK) return status;
  add_meta(out->facts, p->session, args, path, p->level, warmups, runs);
  if (p->rss_peak > 0) {
    hone_memory_facts m = *hone_facts_get_memory(out->facts);
    m.rss_peak = (uint64_t)p->rss_peak;
    hone_facts_set_memory(out->facts, &m);
  }
  const hone_profile_options o = {.filter = args->filter};
  bool raised = false;
  status = hone_profile_create(out->facts, &o, &out->profile, error);
  if (status == HONE_OK)
    status =
        cli_raise_roofs(out->facts, out->profile, device, seconds_for_roofs(args, start_ms), &raised, error);
  if (status != HONE_OK || !raised) return status;
  hone_profile_destroy(out->profile);
  out->profile = NULL;
  return hone_profile_create(out->facts, &o, &out->profile, error);
}

/* The system counts what others take in hundredths of a second: a record of short runs is kept open until
 * they say something. Nothing of hone runs meanwhile. */
static void wait_for_neighbours(double since_ms) {
  const double left = RECORD_MS - (cli_now_ms() - since_ms);
  if (left > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(left * 1e6)}, NULL);
}

hone_status cli_profile_make(const cli_profile_plan *plan, uint32_t n, const cli_args *args, const char *path,
                             uint32_t warmups, uint32_t runs, double seconds, cli_profile *out,
                             hone_error *error) {
  hone_status status = cli_quiet_wait(args, error);
  double start = cli_now_ms(), slowest = 0;
  uint32_t done = 0, total = n * (warmups + runs);
  for (uint32_t k = 0; k < n; k++) out[k] = (cli_profile){0};
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    double one = 0;
    status = run_times(&plan[k], args, warmups, &done, total, &one, error);
    slowest += one;
  }
  if (status == HONE_OK && slowest > 0 && seconds > 0) {
    double fit = (seconds * 1e3 - (cli_now_ms() - start)) / slowest;
    if (fit < runs) runs = fit < FEWEST ? FEWEST : (uint32_t)fit;
    total = n * (warmups + runs);
  }
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    out[k].facts = hone_facts_create();
    if (!out[k].facts) {
      *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for facts"};
      status = HONE_ERROR_MEMORY;
    }
    if (status == HONE_OK) status = hone_context_record(plan[k].session->context, out[k].facts, runs, error);
  }
  const double recorded = cli_now_ms();
  double per_run = n ? slowest / n : 0;
  uint32_t block = n < 2 ? runs : per_run > 0 && per_run < BLOCK_MS ? (uint32_t)(BLOCK_MS / per_run) : 1;
  if (n > 1 && block > LONGEST_BLOCK) block = LONGEST_BLOCK;
  hone_counts counted = {0}, before = {0};
  double celsius[2] = {steady_temperature(args), (double)NAN};
  if (plan->counting) hone_counting_read(plan->counting, &before);
  for (uint32_t i = 0; i < runs && status == HONE_OK; i += block)
    for (uint32_t k = 0; k < n && status == HONE_OK; k++)
      status = run_times(&plan[k], args, runs - i < block ? runs - i : block, &done, total, NULL, error);
  if (plan->counting) hone_counting_read(plan->counting, &counted);
#define X(name) counted.name -= before.name;
  HONE_COUNTS(X)
#undef X
  cli_progress_end();
  if (status == HONE_OK) wait_for_neighbours(recorded);
  celsius[1] = steady_temperature(args);
  for (uint32_t k = 0; k < n && status == HONE_OK; k++)
    status = finish(&plan[k], args, path, warmups, runs, &counted, celsius, start, &out[k], error);
  for (uint32_t k = 0; k < n && status != HONE_OK; k++) cli_profile_free(&out[k]);
  return status;
}

hone_status cli_check_filter(const cli_args *args, const hone_profile *profile, hone_error *error) {
  if (!args->filter || profile->layer_count || !profile->type_count) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "no layer matches --filter");
  snprintf(error->expected, sizeof error->expected, "a type, or a name or ONNX node ('Conv_*')");
  snprintf(error->got, sizeof error->got, "%.60s", args->filter);
  snprintf(error->hint, sizeof error->hint, "without --filter all layers are listed");
  return HONE_ERROR_USAGE;
}

void cli_profile_free(cli_profile *p) {
  hone_profile_destroy(p->profile);
  hone_facts_destroy(p->facts);
  *p = (cli_profile){0};
}
