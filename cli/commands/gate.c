/* hone gate: has it become slower? Finds out what the two sides are; the library measures and
 * decides. */
#include "cli/reports/gate.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/revision.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  PAIRS = 60,
  MAX_SECONDS = 3600, /* a command that never ends must not hold a CI for ever */
  RUNS_A_PROCESS = 20,
  BENCH_RUNS = 50 /* what bench makes unless told */,
  LOOK_ONLY = 5,
  ENOUGH = 10,
  MOST_NEW = 40
};
#define SAME_DAY_HOURS 24
#define REPORT_MOST ((size_t)64 << 20) /* bytes; a report of a large network has some thousand times less */

static hone_status fail(hone_error *error, hone_status status, const char *what, const char *where,
                        const char *hint) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  snprintf(error->where, sizeof error->where, "%.250s", where);
  snprintf(error->hint, sizeof error->hint, "%s", hint);
  return status;
}

/* `hone bench MODEL --json` with the gate's options, by this program or another build of it. */
static hone_status bench_command(const cli_args *args, const char *program, const char *model,
                                 hone_gate_side *side, hone_error *error) {
  cli_args child = *args;
  char flags[3000], own[4096];
  child.max_seconds = 0; /* that of the gate is for all processes together */
  if (child.runs < 0) child.runs = RUNS_A_PROCESS;
  if (!program) {
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    if (n <= 0) return fail(error, HONE_ERROR_IO, "cannot find this program's file", "/proc/self/exe", "");
    own[n] = 0;
    program = own;
  }
  bool fits = cli_flags(&child, flags, sizeof flags);
  size_t size = sizeof side->command, n = 0;
  n = cli_quote(program, side->command, size, n);
  n += (size_t)snprintf(n < size ? side->command + n : NULL, n < size ? size - n : 0, " bench ");
  n = cli_quote(model, side->command, size, n);
  n += (size_t)snprintf(n < size ? side->command + n : NULL, n < size ? size - n : 0, " %s --json", flags);
  return fits && n < size ? HONE_OK
                          : fail(error, HONE_ERROR_USAGE, "too many options for a command", model, "");
}

/* The options without how many runs a process makes: its median hardly depends on that. Those two stand first
 * (cli_flags); what they say goes into args unless the user says otherwise. */
static const char *without_runs(const char *flags, cli_args *args) {
  long long runs = -1, warmups = -1;
  int at = 0;
  const char *p = flags ? flags : "";
  if (sscanf(p, "--runs %lld%n", &runs, &at) == 1) p += at, p += *p == ' ';
  if (sscanf(p, "--warmup %lld%n", &warmups, &at) == 1) p += at, p += *p == ' ';
  if (args->runs < 0) args->runs = runs;
  if (args->warmup < 0) args->warmup = warmups;
  return p;
}

static hone_status own_command(const char *text, hone_gate_side *side, hone_error *error) {
  int n = snprintf(side->command, sizeof side->command, "%s", text);
  if (n <= 0 || (size_t)n >= sizeof side->command)
    return fail(error, HONE_ERROR_USAGE, n ? "the command is too long" : "the command is empty", "",
                "put it into a script");
  return HONE_OK;
}

/* ---- earlier runs */

static double hours_since(const char *date) {
  struct tm t = {0};
  const char *end = date ? strptime(date, "%Y-%m-%dT%H:%M:%S", &t) : NULL;
  return end ? difftime(time(NULL), timegm(&t)) / 3600 : NAN;
}

static bool differs(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") != 0; }

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Why one earlier run cannot be compared with runs of today; "" when it can. */
static void find_doubt(const cli_args *args, const hone_record *r, char *buf, size_t size) {
  char machine[300], now[1000];
  cli_args child = *args, ignored = *args;
  double hours = hours_since(r->profiling_date);
  const char *then = without_runs(r->flags, &ignored);
  cli_machine(machine, sizeof machine);
  child.max_seconds = 0;
  child.runs = child.warmup = -1;
  cli_flags(&child, now, sizeof now);
  const char *model = args->rest.n ? file_name(args->rest.item[0]) : NULL;
  buf[0] = 0;
  if (model && r->model && strcmp(file_name(r->model), model) != 0)
    snprintf(buf, size, "the baseline is of another model (%.100s; this is %.100s)", file_name(r->model),
             model);
  else if (!r->machine)
    snprintf(buf, size, "the baseline does not say on which machine it was measured");
  else if (differs(r->machine, machine))
    snprintf(buf, size, "the baseline was measured on another machine (%.100s; this is %.100s)", r->machine,
             machine);
  else if (!(hours >= -1 && hours < SAME_DAY_HOURS))
    snprintf(buf, size, "the baseline is from another day (%.40s)",
             r->profiling_date ? r->profiling_date : "it does not say when");
  else if (differs(then, now))
    snprintf(buf, size, "the baseline was measured with other options (%.120s; now %.120s)",
             *then      ? then
             : r->flags ? "none"
                        : "unknown",
             *now ? now : "none");
  else if (differs(r->version, hone_version()))
    snprintf(buf, size, "the baseline was measured by hone %.40s, this is %s",
             r->version ? r->version : "unknown", hone_version());
}

static void take_records(cli_args *args, const hone_records *records, gate_run *g) {
  char doubt[600] = "";
  uint32_t good = 0;
  for (size_t pass = 0; pass < 2 && !good;
       pass++) /* runs that can be compared; if there are none, all of them */
    for (size_t i = 0; i < records->count && g->run.old.n < HONE_GATE_MOST; i++) {
      find_doubt(args, &records->items[i], doubt, sizeof doubt);
      if (pass == 0 && doubt[0]) continue;
      without_runs(records->items[i].flags, args); /* the new processes do as the first of these did */
      g->run.old.ms[g->run.old.n++] = records->items[i].median_latency_ms;
      good += pass == 0;
      if (pass == 1) memcpy(g->doubt, doubt, sizeof doubt);
    }
  if (args->runs < 0) args->runs = BENCH_RUNS;
  if (good && good < ENOUGH)
    snprintf(g->doubt, sizeof g->doubt,
             "the baseline is %u earlier process%s: at least %u that were kept the same day are needed", good,
             good == 1 ? "" : "es", (unsigned)ENOUGH);
}

static hone_status read_file(const char *path, hone_records *out, hone_error *error) {
  char *text;
  size_t n;
  hone_status status = hone_file_read(path, REPORT_MOST, &text, &n, error);
  if (status != HONE_OK) return status;
  status = hone_record_parse(text, n, out, error);
  if (status != HONE_OK) {
    char where[256];
    snprintf(where, sizeof where, "%.150s%s%.80s", path, error->where[0] ? ": " : "", error->where);
    memcpy(error->where, where, sizeof where);
  }
  hone_file_free(text);
  return status;
}

/* A file's name as a glob that matches nothing else. */
static void literal(const char *name, char *buf, size_t size) {
  size_t n = 0;
  for (; *name && n + 4 < size; name++)
    n += (size_t)snprintf(buf + n, size - n, strchr("*?[", *name) ? "[%c]" : "%c", *name);
}

/* Runs of the history by tag or revision. */
static hone_status read_history(const char *name, const char *model, hone_records *out, hone_error *error) {
  hone_history *h = NULL;
  char file[900];
  if (model) literal(file_name(model), file, sizeof file);
  hone_history_query q = {.tag = name, .model = model ? file : NULL};
  hone_status status = hone_history_open(NULL, false, &h, error);
  if (status == HONE_ERROR_MISSING)
    return fail(error, status, "--baseline is neither a file nor in the history: there is none yet", name,
                "hone bench MODEL --save --tag WORD begins one");
  if (status != HONE_OK) return status;
  status = hone_history_find(h, &q, out, error);
  if (status == HONE_OK && !out->count) {
    hone_records_free(out);
    q.tag = NULL;
    q.commit = name;
    status = hone_history_find(h, &q, out, error);
  }
  char revision[64];
  if (status == HONE_OK && !out->count && cli_resolve_revision(name, revision, sizeof revision)) {
    hone_records_free(out); /* "HEAD~1", a branch: what the repository here calls so */
    q.commit = revision;
    status = hone_history_find(h, &q, out, error);
  }
  hone_history_close(h);
  if (status == HONE_OK && !out->count)
    status = fail(error, HONE_ERROR_MISSING,
                  "--baseline is neither a file nor a tag or revision of this model in the history", name,
                  "hone history lists them");
  return status;
}

/* ---- the two sides */

/* By its first bytes: on some file systems everything is executable. */
static bool is_program(const char *path) {
  char begin[4] = "";
  return hone_file_begin(path, begin, sizeof begin) == 4 &&
         (memcmp(begin, "\177ELF", 4) == 0 || memcmp(begin, "#!", 2) == 0);
}

static hone_status find_old(cli_args *args, const char *model, gate_run *g, hone_error *error) {
  struct stat st;
  hone_records records = {0};
  const char *name = args->baseline;
  snprintf(g->run.old.label, sizeof g->run.old.label, "%.280s", name ? name : args->baseline_cmd);
  if (args->baseline_cmd) return own_command(args->baseline_cmd, &g->run.old, error);
  if (cli_is_model(name)) {
    const bool both = model && !args->candidate_cmd;
    hone_status same = both ? gate_same_network(args, name, model, error) : HONE_OK;
    return same == HONE_OK ? bench_command(args, NULL, name, &g->run.old, error) : same;
  }
  /* A folder may be called like a tag; a pipe or device is meant as a file, and refused as one. */
  bool file = stat(name, &st) == 0 && !S_ISDIR(st.st_mode);
  if (file && access(name, X_OK) == 0 && is_program(name)) {
    char full[4096];
    if (!model)
      return fail(error, HONE_ERROR_USAGE, "another build of hone as baseline needs a MODEL to measure", name,
                  "");
    if (!realpath(name, full)) return fail(error, HONE_ERROR_IO, "cannot find the baseline", name, "");
    return bench_command(args, full, model, &g->run.old, error);
  }
  hone_status status = file ? read_file(name, &records, error) : read_history(name, model, &records, error);
  if (status == HONE_OK) take_records(args, &records, g);
  hone_records_free(&records);
  return status;
}

static hone_status find_sides(const cli_args *args, gate_run *g, hone_error *error) {
  const char *model = args->rest.n ? args->rest.item[0] : NULL;
  if (!args->baseline && !args->baseline_cmd)
    return fail(error, HONE_ERROR_USAGE, "hone gate wants --baseline or --baseline-cmd", "",
                "a model, another build of hone, a report, a tag or a revision");
  if (!model && !args->candidate_cmd)
    return fail(error, HONE_ERROR_USAGE, "hone gate wants a MODEL or --candidate-cmd", "", "");
  snprintf(g->model, sizeof g->model, "%.280s", model ? model : args->candidate_cmd);
  snprintf(g->run.now.label, sizeof g->run.now.label, "%.280s",
           args->candidate_cmd ? args->candidate_cmd : model);
  cli_args both = *args; /* with the runs of the baseline where it is a record */
  hone_status status = find_old(&both, model, g, error);
  if (status != HONE_OK) return status;
  return args->candidate_cmd ? own_command(args->candidate_cmd, &g->run.now, error)
                             : bench_command(&both, NULL, model, &g->run.now, error);
}

static hone_status check_options(const cli_args *args, gate_run *g, hone_error *error) {
  if (args->worse_pct == 0 || args->worse_pct > 1000)
    return fail(error, HONE_ERROR_USAGE, "--threshold lies above 0 and is at most 1000 (percent)", "", "");
  g->run.threshold = args->worse_pct > 0 ? args->worse_pct / 100 : 0.05;
  g->run.given = args->metric != NULL;
  g->run.wall = args->metric && strcmp(args->metric, "wall") == 0;
  if (args->metric && !g->run.wall && strcmp(args->metric, "latency") != 0)
    return fail(error, HONE_ERROR_USAGE, "--metric is latency or wall", args->metric, "");
  if (args->pairs == 0 || args->pairs > HONE_GATE_MOST)
    return fail(error, HONE_ERROR_USAGE, "--pairs is 12 to 500", "", "");
  return HONE_OK;
}

static void hint_of_silence(const gate_run *g, hone_error *error) {
  if (g->run.silent)
    snprintf(error->hint, sizeof error->hint,
             "let it print what hone bench --json prints, or take --metric wall");
}

static hone_status measure_pairs(const cli_args *args, gate_run *g, double seconds, hone_error *error) {
  const uint32_t most = args->pairs > 0 ? (uint32_t)args->pairs : PAIRS;
  const hone_status status = hone_gate_run_pairs(&g->run, most, seconds, cli_watch(), error);
  hint_of_silence(g, error);
  return status;
}

static hone_status measure_new(gate_run *g, double seconds, hone_error *error) {
  const uint32_t n = g->doubt[0] ? LOOK_ONLY : g->run.old.n < MOST_NEW ? g->run.old.n : MOST_NEW;
  const hone_status status = hone_gate_run_new(&g->run, n, seconds, cli_watch(), error);
  hint_of_silence(g, error);
  if (status == HONE_ERROR_BUDGET)
    snprintf(error->what, sizeof error->what, "--max-seconds was over before one process had ended");
  if (status == HONE_OK && g->doubt[0]) g->run.result.verdict = HONE_GATE_NONE;
  return status;
}

static hone_status measure(const cli_args *args, gate_run *g, hone_error *error) {
  const double seconds = args->max_seconds > 0 ? args->max_seconds : MAX_SECONDS;
  const bool pairs = g->run.old.command[0];
  if (!pairs && g->run.wall)
    return fail(error, HONE_ERROR_USAGE,
                "--metric wall needs a baseline that can be run: a report tells a latency", g->run.old.label,
                "");
  cli_hold(true);
  const hone_status status = pairs ? measure_pairs(args, g, seconds, error) : measure_new(g, seconds, error);
  cli_progress_end();
  cli_hold(false);
  return status;
}

static int answer(const cli_args *args, const gate_run *g) {
  const char *summary = getenv("GITHUB_STEP_SUMMARY"), *github = getenv("GITHUB_ACTIONS");
  hone_error error = {0};
  hone_status status = HONE_OK;
  if (args->markdown) status = gate_markdown(g, args->markdown, false, &error);
  if (status == HONE_OK && summary && *summary) status = gate_markdown(g, summary, true, &error);
  if (status == HONE_OK && args->junit) status = gate_junit(g, args->junit, &error);
  if (!args->json) gate_text(g);
  /* On a terminal colour says it; everything else may be a log that understands annotations. */
  if ((github && *github) || !isatty(STDOUT_FILENO)) gate_annotate(g, args->json ? stderr : stdout);
  int code = args->json ? cli_print_json(gate_json(g)) : cli_flush();
  if (status != HONE_OK) return cli_report(&error);
  return code ? code : gate_exit(g);
}

static int run(const cli_args *args) {
  hone_error error = {0};
  gate_run *g = calloc(1, sizeof *g);
  if (!g) return cli_error(HONE_ERROR_MEMORY, "out of memory");
  hone_status status = check_options(args, g, &error);
  if (status == HONE_OK) status = find_sides(args, g, &error);
  if (status == HONE_OK) status = measure(args, g, &error);
  int code = status == HONE_OK ? answer(args, g) : cli_report(&error);
  free(g);
  return code;
}

static const cli_option options[] = {
    {0, "baseline", CLI_TEXT, CLI_FIELD(baseline), "B",
     "a model, another build of hone, a report file, or a tag or revision of the history"},
    {0, "baseline-cmd", CLI_TEXT, CLI_FIELD(baseline_cmd), "CMD",
     "a shell command that measures the old one"},
    {0, "candidate-cmd", CLI_TEXT, CLI_FIELD(candidate_cmd), "CMD",
     "one that measures the new one (hone bench MODEL)"},
    {0, "threshold", CLI_NUMBER, CLI_FIELD(worse_pct), "PCT", "slowdown that matters, in percent (5)"},
    {0, "metric", CLI_TEXT, CLI_FIELD(metric), "latency|wall",
     "what counts of a command (latency where both report one)"},
    {0, "pairs", CLI_SOME, CLI_FIELD(pairs), "N", "pairs of processes at most (60)"},
    {0, "markdown", CLI_TEXT, CLI_FIELD(markdown), "FILE",
     "write a summary (GITHUB_STEP_SUMMARY gets one anyway)"},
    {0, "junit", CLI_TEXT, CLI_FIELD(junit), "FILE", "write the verdict as JUnit XML"},
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "runs in each process (20)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (5)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    CLI_OPT_RUN,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_gate = {
    "gate",
    "[MODEL]",
    "fail when a model, a build or any command has become slower",
    "Old and new run in turn, a process each, until a rank test and half the threshold agree: worse (exit "
    "1), same or better (0), no verdict (5). Only earlier reports at hand: a verdict needs 10 of the same "
    "day, machine and options (hone bench --save --tag). --max-seconds (3600) ends measuring; what is "
    "undecided then is no verdict. Answers are not compared: hone verify does that.",
    options,
    0,
    1,
    run};
