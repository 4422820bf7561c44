/* hone serve: models over HTTP, until Ctrl-C or SIGTERM. */
#include "cli/options/arriving.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/options/preprocess.h"
#include "cli/options/profiles.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/options/times.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { NAME = 256, ANY_PORT = 8000, DEVICES = 16 };

/* What one model borrows from. */
typedef struct served {
  cli_session session; /* of it: model, bindings and precision */
  hone_plan_options plan;
  char name[NAME];
} served;

typedef struct work {
  const cli_args *args;
  hone_engine *engine[DEVICES];
  uint32_t n_engines;
  char devices[512]; /* of --device, cut at the commas */
  hone_server *server;
  served *model; /* [args->rest.n] */
  char **texts;
  hone_size_profile profile[HONE_PROFILES];
  bool known[HONE_PROFILES]; /* by a model */
  uint32_t n_profiles;
  uint64_t delay_ns;
  uint16_t port;
  double start_ms;
} work;

static hone_status usage(hone_error *error, const char *what, const char *got) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "%s", what);
  if (got) snprintf(error->got, sizeof error->got, "%.100s", got);
  return HONE_ERROR_USAGE;
}

static hone_status no_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
  return HONE_ERROR_MEMORY;
}

/* ------------------------------------------------------------------ models */

/* NAME=MODEL, or MODEL, which is then called as its file without .onnx. */
static const char *split(const char *argument, char name[NAME]) {
  const char *equals = strchr(argument, '='), *path = argument;
  struct stat st;
  if (equals && equals > argument && equals - argument < NAME && stat(argument, &st) != 0) {
    snprintf(name, NAME, "%.*s", (int)(equals - argument), argument);
    return equals + 1;
  }
  if (strncmp(path, "zoo:", 4) == 0) {
    snprintf(name, NAME, "%s", path + 4);
    return path;
  }
  const char *slash = strrchr(path, '/');
  snprintf(name, NAME, "%s", slash ? slash + 1 : path);
  const size_t n = strlen(name);
  if (n > 5 && strcmp(name + n - 5, ".onnx") == 0) name[n - 5] = 0;
  return path;
}

/* Of several models each has its own dimensions: those of the profiles that this one knows. */
static uint32_t choose_profiles(work *w, const hone_model *model, hone_size_profile *out) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < w->n_profiles; p++) {
    bool known = w->args->rest.n == 1; /* then an unknown one is a mistake, and told */
    hone_port port;
    for (uint32_t i = 0; !known && hone_model_input(model, i, &port); i++)
      for (int32_t k = 0; k < port.desc.rank; k++)
        known |= port.symbol[k] && strcmp(port.symbol[k], w->profile[p].symbol) == 0;
    if (!known) continue;
    out[n++] = w->profile[p];
    w->known[p] = true;
  }
  return n;
}

/* One that none of the models knows is a mistake, too. */
static hone_status check_profiles(const work *w, hone_error *error) {
  for (uint32_t p = 0; p < w->n_profiles; p++)
    if (!w->known[p])
      return usage(error, "--profile: no input of these models has a symbolic dimension of that name",
                   w->profile[p].symbol);
  return HONE_OK;
}

/* What the model leaves open and requests may not choose. */
static void note_fixed(const work *w, const served *m, const hone_size_profile *profile, uint32_t n) {
  hone_model *bound = NULL;
  hone_error error = {0};
  hone_port open, fixed;
  if (w->args->shapes.n || hone_model_bind(m->session.model, NULL, 0, 0, &bound, NULL, &error) != HONE_OK)
    return;
  for (uint32_t i = 0; hone_model_input(m->session.model, i, &open) && hone_model_input(bound, i, &fixed);
       i++)
    for (int32_t k = 1; k < open.desc.rank && !open.optional; k++) {
      bool chosen = open.desc.dim[k] < 0; /* by nobody but hone */
      for (uint32_t q = 0; q < n && open.symbol[k]; q++)
        chosen &= strcmp(profile[q].symbol, open.symbol[k]) != 0;
      if (!chosen) continue;
      if (open.symbol[k])
        cli_note("%s: dimension %d of input '%s' is %lld; --profile %s=MIN:OPT:MAX lets requests differ",
                 m->name, (int)k, open.name, (long long)fixed.desc.dim[k], open.symbol[k]);
      else
        cli_note("%s: dimension %d of input '%s' is %lld; --shape sets it", m->name, (int)k, open.name,
                 (long long)fixed.desc.dim[k]);
    }
  hone_model_release(bound);
}

static hone_status add(work *w, served *m, const char *argument, hone_error *error) {
  const cli_args *args = w->args;
  const char *path = split(argument, m->name);
  const double start = cli_now_ms();
  cli_session *s = &m->session;
  hone_size_profile profile[HONE_PROFILES];
  uint32_t n = 0;
  hone_served info;
  if (hone_plan_is_saved(path))
    return usage(error, "a saved plan has one shape: hone serve wants the model", path);
  hone_status status = cli_load(args, path, &s->model, error);
  if (status == HONE_OK) status = cli_bindings(args, s->model, &s->bindings, &s->n_bindings, error);
  cli_args one = *args;
  one.device = w->devices; /* the first: what strtok has left of them */
  if (status == HONE_OK)
    status = cli_precision_make(&one, s->model, s->bindings, s->n_bindings, &s->precision, error);
  if (status != HONE_OK) return status;
  n = choose_profiles(w, s->model, profile);
  m->plan = cli_session_options(s, args, (int)args->level);
  const hone_served_options o = {.name = m->name,
                                 .plan = &m->plan,
                                 .profiles = profile,
                                 .n_profiles = n,
                                 .max_batch = (uint32_t)args->max_batch,
                                 .batch_delay = 1e-9 * (double)w->delay_ns,
                                 .streams = (uint32_t)(args->streams < 64 ? args->streams : 64),
                                 .engines = w->engine,
                                 .n_engines = w->n_engines,
                                 .runs = args->no_generate,
                                 .sequences = (uint32_t)args->sequences,
                                 .context = (uint32_t)args->context,
                                 .cache_bytes = (uint64_t)ceil(args->cache_size * 1048576)};
  status = hone_server_add(w->server, s->model, &o, error);
  if (status != HONE_OK) {
    if (!error->where[0]) snprintf(error->where, sizeof error->where, "%.250s", path);
    return status;
  }
  for (uint32_t i = 0; hone_server_model(w->server, i, &info); i++) {
    if (strcmp(info.name, m->name) != 0) continue;
    if (info.sequences) {
      cli_note("%s: ready in %.0f ms; generates %u sequence%s of up to %u tokens, cache of %.1f MiB%s%s",
               info.name, cli_now_ms() - start, info.sequences, cli_s(info.sequences), info.context,
               (double)info.cache_bytes / 1048576, *info.alone ? "; one after the other: " : "", info.alone);
      return HONE_OK;
    }
    cli_note("%s: ready in %.0f ms; %s%u sample%s a run%s%s", info.name, cli_now_ms() - start,
             info.max_batch > 1 ? "up to " : "", info.max_batch, cli_s(info.max_batch),
             *info.alone ? ": " : "", info.alone);
  }
  note_fixed(w, m, profile, n);
  return HONE_OK;
}

/* ------------------------------------------------------------------ serving */

/* An engine for each of --device cuda:0,cuda:1. */
static hone_status open_engines(work *w, hone_error *error) {
  char *rest = NULL;
  if ((size_t)snprintf(w->devices, sizeof w->devices, "%s", cli_device_name(w->args)) >= sizeof w->devices)
    return usage(error, "--device names too many devices", NULL);
  for (char *name = strtok_r(w->devices, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    cli_args one = *w->args;
    one.device = name;
    const hone_engine_options o = {
        .device = name, .threads = (uint32_t)one.threads, .tuning = one.no_cache ? "off" : NULL};
    if (w->n_engines == DEVICES) return usage(error, "--device names more than 16 devices", NULL);
    hone_status status = cli_check_device(&one, error);
    if (status == HONE_OK) status = hone_engine_create(&o, &w->engine[w->n_engines], error);
    if (status != HONE_OK) return status;
    w->n_engines++;
  }
  return w->n_engines ? HONE_OK : usage(error, "--device names no device", NULL);
}

static hone_status open_server(work *w, hone_error *error) {
  const cli_args *args = w->args;
  const hone_server_options o = {.max_body = (uint64_t)(args->max_body * 1048576),
                                 .max_bodies = (uint64_t)(args->max_body * 8 * 1048576),
                                 .max_waiting = (uint32_t)args->waiting,
                                 .connections = (uint32_t)args->connections,
                                 .max_seconds = args->max_seconds};
  hone_status status = HONE_OK;
  if (args->batch_delay && !cli_nanoseconds(args->batch_delay, &w->delay_ns))
    return usage(error, "--batch-delay wants a time, such as 2ms or 500us", args->batch_delay);
  if (args->max_batch > 4096 || args->waiting > 1000000 || args->connections > 10000 ||
      args->max_body > 65536)
    return usage(
        error,
        "at most 4096 samples a run, 1000000 requests that wait, 10000 connections and bodies of 65536 MiB",
        NULL);
  if (args->sequences > 4096 || args->context > 1 << 24 || args->cache_size > 1 << 24)
    return usage(error, "at most 4096 sequences of 16777216 tokens, and 16777216 MiB of cache", NULL);
  w->model = calloc(args->rest.n, sizeof *w->model);
  w->texts = calloc(args->profiles.n + 1, sizeof *w->texts);
  if (!w->model || !w->texts) return no_memory(error);
  if (status == HONE_OK) status = cli_profiles(args, w->texts, w->profile, &w->n_profiles, error);
  if (status == HONE_OK) status = open_engines(w, error);
  if (status == HONE_OK) status = hone_server_create(w->engine[0], &o, &w->server, error);
  for (size_t i = 0; i < args->rest.n && status == HONE_OK && !cli_interrupted(); i++)
    status = add(w, &w->model[i], args->rest.item[i], error);
  if (status == HONE_OK && !cli_interrupted()) status = check_profiles(w, error);
  return status;
}

static hone_status listen_and_wait(work *w, hone_error *error) {
  char fallback[32];
  const char *address = w->args->listen;
  const struct timespec moment = {.tv_nsec = 100000000};
  snprintf(fallback, sizeof fallback, "127.0.0.1:%d", ANY_PORT);
  if (!address) address = fallback;
  const hone_status status = hone_server_listen(w->server, address, &w->port, error);
  if (status != HONE_OK) return status;
  const int host = (int)(strrchr(address, ':') - address);
  cli_note("listening at http://%.*s:%u (Ctrl-C ends)", host ? host : 7, host ? address : "0.0.0.0", w->port);
  w->start_ms = cli_now_ms();
  while (!cli_interrupted()) nanosleep(&moment, NULL);
  hone_server_stop(w->server);
  return HONE_OK;
}

/* ------------------------------------------------------------------ the answer */

static json_t *json_of(const work *w) {
  json_t *list = json_array();
  hone_served m;
  bool whole = true;
  for (uint32_t i = 0; hone_server_model(w->server, i, &m); i++)
    whole = whole &&
            0 == json_array_append_new(
                     list, json_pack("{s:s, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:i, s:I}",
                                     "name", m.name, "version", m.version, "max_batch", (int)m.max_batch,
                                     "alone", *m.alone ? json_string(m.alone) : json_null(), "answered",
                                     (json_int_t)m.answered, "failed", (json_int_t)m.failed, "runs",
                                     (json_int_t)m.runs, "samples", (json_int_t)m.samples, "mean_ms",
                                     cli_real(m.mean_ms), "p50_ms", cli_real(m.p50_ms), "p95_ms",
                                     cli_real(m.p95_ms), "p99_ms", cli_real(m.p99_ms), "sequences",
                                     (int)m.sequences, "tokens", (json_int_t)m.tokens));
  if (!whole) {
    json_decref(list);
    return NULL;
  }
  return json_pack("{s:o, s:i, s:o}", "seconds", cli_real((cli_now_ms() - w->start_ms) / 1e3), "port",
                   (int)w->port, "models", list);
}

static int summary(const work *w) {
  hone_served m;
  if (w->args->json) {
    json_t *doc = json_of(w);
    return doc ? cli_print_json(doc) : cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  }
  cli_print("%-24s %10s %8s %8s %9s %9s %9s %9s\n", "model", "answered", "failed", "runs", "batch", "p50 ms",
            "p95 ms", "p99 ms");
  for (uint32_t i = 0; hone_server_model(w->server, i, &m); i++) {
    cli_print("%-24.24s %10llu %8llu %8llu", m.name, (unsigned long long)m.answered,
              (unsigned long long)m.failed, (unsigned long long)m.runs);
    if (m.answered)
      cli_print(" %9.2f %9.3f %9.3f %9.3f\n", (double)m.samples / (double)m.runs, m.p50_ms, m.p95_ms,
                m.p99_ms);
    else
      cli_print(" %9s %9s %9s %9s\n", "-", "-", "-", "-");
  }
  return cli_flush();
}

static void close_work(work *w) {
  hone_server_destroy(w->server);
  for (size_t i = 0; w->model && i < w->args->rest.n; i++) cli_session_close(&w->model[i].session);
  for (uint32_t i = 0; i < w->n_engines; i++) hone_engine_destroy(w->engine[i]);
  for (size_t i = 0; w->texts && i < w->args->profiles.n; i++) free(w->texts[i]);
  free(w->texts);
  free(w->model);
}

static int run(const cli_args *args) {
  work w = {.args = args};
  hone_error error = {0};
  cli_hold(true);
  hone_status status = open_server(&w, &error);
  const bool early = cli_interrupted();
  if (status == HONE_OK && !early) status = listen_and_wait(&w, &error);
  int code = status != HONE_OK ? cli_report(&error) : early ? cli_end_interrupted(NULL) : summary(&w);
  close_work(&w);
  cli_hold(false);
  return code;
}

static const cli_option options[] = {
    {0, "listen", CLI_TEXT, CLI_FIELD(listen), "ADDRESS:PORT",
     "where: 127.0.0.1:8000, :8000 (all addresses), [::1]:8000; port 0: a free one (127.0.0.1:8000)"},
    {'b', "max-batch", CLI_SOME, CLI_FIELD(max_batch), "N",
     "samples of a run, of one request or several (8); 1: requests never share a run"},
    {0, "batch-delay", CLI_TEXT, CLI_FIELD(batch_delay), "TIME",
     "how long the first request of a run waits for more, such as 2ms (0: only what waits already)"},
    {0, "profile", CLI_LIST, CLI_FIELD(profiles), "N=MIN:OPT:MAX",
     "sizes that a symbolic dimension may have; powers of two, or multiples of a fourth number"},
    {0, "streams", CLI_SOME, CLI_FIELD(streams), "N", "runs at the same time (1)"},
    {0, "waiting", CLI_SOME, CLI_FIELD(waiting), "N",
     "requests of a model that may wait; what comes then is refused with 503 (256)"},
    {0, "connections", CLI_SOME, CLI_FIELD(connections), "N", "at the same time (128)"},
    {0, "max-body", CLI_NUMBER, CLI_FIELD(max_body), "MIB",
     "largest request; all together: 8 times as much (64)"},
    {0, "sequences", CLI_SOME, CLI_FIELD(sequences), "N",
     "decoders: sequences that are generated at the same time (8)"},
    {0, "context", CLI_SOME, CLI_FIELD(context), "N",
     "decoders: tokens of a sequence, prompt and answer (2048, or what the model knows)"},
    {0, "cache-size", CLI_NUMBER, CLI_FIELD(cache_size), "MIB",
     "decoders: of keys and values at most; fewer sequences where that is too little"},
    {0, "no-generate", CLI_FLAG, CLI_FIELD(no_generate), NULL,
     "serve the runs of decoders (/infer), as those of other models"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    {0, "shape", CLI_LIST, CLI_FIELD(shapes), "NAME=DIMS",
     "fixed shape of an input (x=1x3x224x224) or value of a symbol (N=4)"},
    {0, "level", CLI_LEVEL, CLI_FIELD(level), "0..3", "optimisation level (2)"},
    CLI_OPT_PRECISION,
    CLI_OPT_PREFER,
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda",
     "where to run: cpu, cuda, or several such as cuda:0,cuda:1, each with the model (cpu)"},
    {0, "no-cache", CLI_FLAG, CLI_FIELD(no_cache), NULL, "ignore what hone tune has measured"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "of a run; then its requests get 503"},
    CLI_OPT_ARRIVING,
    {0, "scale", CLI_TEXT, CLI_FIELD(scale), "X",
     "--input-type u8: every byte times X, such as 1/255 (1/255)"},
    {0, "mean", CLI_TEXT, CLI_FIELD(mean), "M|R,G,B", "less this, then (ImageNet's; 0 with --scale)"},
    {0, "std", CLI_TEXT, CLI_FIELD(deviation), "S|R,G,B",
     "divided by this (ImageNet's; 1 with --scale or --mean)"},
    {0, "bgr", CLI_FLAG, CLI_FIELD(bgr), NULL, "channels blue, green, red"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_serve = {
    "serve",
    "[NAME=]MODEL...",
    "serve models over HTTP (Open Inference Protocol)",
    "KServe's version 2: GET /v2/health/ready, GET /v2/models/NAME, POST /v2/models/NAME/infer with tensors "
    "as "
    "JSON or as bytes behind it, GET /metrics for Prometheus. Requests that wait share a run where it is "
    "proved "
    "that samples of a batch do not meet; a batch that the file fixes at one is opened. A decoder with a "
    "cache is "
    "served for generation: POST /v2/models/NAME/generate and generate_stream take ids of tokens, and "
    "sequences share "
    "runs from one token to the next. Nothing is encrypted and "
    "nobody is asked who he is: for others than this machine put a proxy before it. Ctrl-C and SIGTERM take "
    "no "
    "more requests, answer those that are there, print what was done and end with 0.",
    options,
    1,
    64,
    run};
