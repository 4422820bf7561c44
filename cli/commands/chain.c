/* hone chain: several models, one after the other, and what lies between them. */
#include "cli/options/files.h"
#include "cli/options/options.h"
#include "cli/reports/chain.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* What is run: a path for each input of the chain. */
typedef struct job {
  const char **path; /* [inputs] */
} job;

typedef struct work {
  const cli_args *args;
  hone_engine *engine;
  hone_chain *chain;
  uint32_t inputs;
  char **own; /* paths that were put together */
  size_t n_own;
  job *job;
  size_t n;
  cli_file lines; /* --output */
  bool to_file;
  cli_chain_sums sums;
  json_t *results; /* of --json */
  size_t failed;
  hone_error first; /* of the failures */
} work;

static hone_status fail(hone_error *error, hone_status status, const char *what) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  return status;
}

/* ---------------------------------------------------------------- what is run */

static hone_status add_job(work *w, const char *path, hone_error *error) {
  job *more = realloc(w->job, (w->n + 1) * sizeof *more);
  if (!more) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  w->job = more;
  w->job[w->n].path = calloc(w->inputs + 1, sizeof *w->job->path);
  if (!w->job[w->n].path) return fail(error, HONE_ERROR_MEMORY, "out of memory");
  w->job[w->n++].path[0] = path;
  return HONE_OK;
}

static bool is_picture(const struct dirent *e) {
  static const char *const ends[] = {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm"};
  const char *dot = strrchr(e->d_name, '.');
  for (size_t i = 0; dot && e->d_name[0] != '.' && i < sizeof ends / sizeof *ends; i++)
    if (strcasecmp(dot, ends[i]) == 0) return true;
  return false;
}

static int picture(const struct dirent *e) { return is_picture(e); }

static int by_bytes(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* The pictures in a folder, by name. */
static hone_status add_folder(work *w, const char *folder, hone_error *error) {
  struct dirent **list = NULL;
  const int n = scandir(folder, &list, picture, by_bytes);
  hone_status status = HONE_OK;
  if (n < 1) {
    fail(error, HONE_ERROR_MISSING, n ? "the folder cannot be read" : "the folder holds no pictures");
    snprintf(error->where, sizeof error->where, "%.200s", folder);
    status = HONE_ERROR_MISSING;
  }
  for (int i = 0; i < n; i++) {
    char *path = NULL;
    if (status == HONE_OK && asprintf(&path, "%s/%s", folder, list[i]->d_name) >= 0) {
      char **more = realloc(w->own, (w->n_own + 1) * sizeof *more);
      if (more) {
        w->own = more;
        w->own[w->n_own++] = path;
        status = add_job(w, path, error);
      } else {
        free(path);
        status = fail(error, HONE_ERROR_MEMORY, "out of memory");
      }
    }
    free(list[i]);
  }
  free(list);
  return status;
}

/* NAME=FILE for each of several inputs: one run. */
static hone_status named_inputs(work *w, hone_error *error) {
  hone_status status = add_job(w, NULL, error);
  for (size_t k = 0; status == HONE_OK && k < w->args->inputs.n; k++) {
    const char *text = w->args->inputs.item[k], *equals = strchr(text, '=');
    uint32_t i = 0;
    while (equals && i < w->inputs &&
           (strlen(hone_chain_input_name(w->chain, i)) != (size_t)(equals - text) ||
            strncmp(hone_chain_input_name(w->chain, i), text, (size_t)(equals - text)) != 0))
      i++;
    if (!equals || i == w->inputs) {
      status = fail(error, HONE_ERROR_USAGE, "--input wants NAME=FILE, with an input of the chain");
      snprintf(error->got, sizeof error->got, "%.100s", text);
    } else
      w->job[0].path[i] = equals + 1;
  }
  for (uint32_t i = 0; status == HONE_OK && i < w->inputs; i++)
    if (!w->job[0].path[i]) {
      status = fail(error, HONE_ERROR_USAGE, "");
      snprintf(error->what, sizeof error->what, "--input %.100s=FILE is missing",
               hone_chain_input_name(w->chain, i));
    }
  return status;
}

static hone_status find_jobs(work *w, hone_error *error) {
  if (!w->args->inputs.n) return fail(error, HONE_ERROR_USAGE, "hone chain needs --input FILE or a folder");
  if (w->inputs > 1) return named_inputs(w, error);
  hone_status status = HONE_OK;
  for (size_t k = 0; status == HONE_OK && k < w->args->inputs.n; k++) {
    const char *path = w->args->inputs.item[k], *name = hone_chain_input_name(w->chain, 0);
    struct stat s;
    const size_t n = strlen(name);
    if (strncmp(path, name, n) == 0 && path[n] == '=') path += n + 1;
    status = stat(path, &s) == 0 && S_ISDIR(s.st_mode) ? add_folder(w, path, error) : add_job(w, path, error);
  }
  return status;
}

/* ---------------------------------------------------------------- running */

static hone_status tell(work *w, const job *j, hone_error *error) {
  if (!w->args->json && !(w->to_file && strcmp(w->args->output, "-") == 0)) {
    cli_print("%s\n", j->path[0]);
    cli_chain_outputs_print(w->chain);
  }
  if (!w->to_file && !w->results) return HONE_OK;
  json_t *o = json_pack("{s:s, s:o}", "input", j->path[0], "outputs", cli_chain_outputs_json(w->chain));
  if (!o) return fail(error, HONE_ERROR_INPUT, "a text or name is no UTF-8");
  hone_status status = HONE_OK;
  if (w->results) json_array_append(w->results, o);
  if (w->to_file) {
    char *line = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!line) status = fail(error, HONE_ERROR_MEMORY, "out of memory");
    if (line && strcmp(w->args->output, "-") == 0)
      cli_print("%s\n", line);
    else if (line) {
      status = cli_file_sink(&w->lines, line, strlen(line), error);
      if (status == HONE_OK) status = cli_file_sink(&w->lines, "\n", 1, error);
    }
    free(line);
  }
  json_decref(o);
  return status;
}

/* One file, as often as it is asked for: the first of several runs plans, and is not counted. */
static hone_status run_job(work *w, const job *j, hone_error *error) {
  const int64_t repeat = w->args->count ? w->args->count : 1;
  for (int64_t i = 0; i < repeat; i++) {
    if (cli_interrupted()) return fail(error, HONE_ERROR_CANCELLED, "");
    const hone_status status = hone_chain_run_files(w->chain, j->path, w->inputs, error);
    if (status != HONE_OK) return status;
    if (i || repeat == 1) cli_chain_sums_add(&w->sums, w->chain);
  }
  return HONE_OK;
}

/* What is wrong with one file is one line; the others go on. */
static hone_status run_jobs(work *w, hone_error *error) {
  for (size_t i = 0; i < w->n; i++) {
    hone_error here = {0};
    hone_status status = run_job(w, &w->job[i], &here);
    if (status == HONE_OK) {
      status = tell(w, &w->job[i], error);
      if (status != HONE_OK) return status;
      continue;
    }
    if (w->n == 1 ||
        (status != HONE_ERROR_INPUT && status != HONE_ERROR_MISSING && status != HONE_ERROR_UNSUPPORTED)) {
      *error = here;
      return status;
    }
    if (!w->failed++) w->first = here;
    cli_report(&here);
  }
  return HONE_OK;
}

static int finish(work *w) {
  const int code = w->failed ? hone_status_exit_code(w->first.status) : 0;
  if (w->args->json) {
    json_t *doc =
        json_pack("{s:s, s:O, s:I, s:o, s:o}", "chain", w->args->rest.item[0], "results", w->results,
                  "failed", (json_int_t)w->failed, "time", cli_chain_time_json(&w->sums, w->chain), "memory",
                  cli_chain_memory_json(w->chain));
    const int printed = cli_print_json(doc);
    return printed ? printed : code;
  }
  if (!w->to_file || strcmp(w->args->output, "-") != 0) {
    cli_chain_time_print(&w->sums, w->chain);
    if (w->args->show_memory) cli_chain_memory_print(w->chain);
  }
  if (w->failed) cli_note("%zu of %zu file%s failed", w->failed, w->n, cli_s(w->n));
  const int flushed = cli_flush();
  return flushed ? flushed : code;
}

static hone_status open_work(work *w, hone_error *error) {
  const cli_args *args = w->args;
  hone_status status = cli_keep_inputs(args, args->output, error);
  if (status == HONE_OK && args->output && strcmp(args->output, "-") != 0)
    status = cli_output_ready(args->output, error);
  if (status == HONE_OK && args->json && args->output && strcmp(args->output, "-") == 0)
    status = fail(error, HONE_ERROR_USAGE, "--json and --output - both want standard output");
  if (status != HONE_OK) return status;
  const hone_engine_options o = {
      .device = cli_device_name(args), .threads = (uint32_t)args->threads, .tuning = args->cache};
  status = hone_engine_create(&o, &w->engine, error);
  const hone_chain_options how = {.precision = args->precision, .untuned = args->no_cache};
  if (status == HONE_OK) status = hone_chain_open(w->engine, args->rest.item[0], &how, &w->chain, error);
  w->inputs = hone_chain_inputs(w->chain);
  if (status == HONE_OK) status = find_jobs(w, error);
  if (status == HONE_OK) status = cli_chain_sums_open(&w->sums, w->chain, error);
  if (status == HONE_OK && args->output) {
    w->to_file = true;
    if (strcmp(args->output, "-") != 0) status = cli_file_open(&w->lines, args->output, error);
  }
  if (args->json) w->results = json_array();
  return status;
}

static void close_work(work *w) {
  cli_file_abort(&w->lines);
  cli_chain_sums_free(&w->sums);
  json_decref(w->results);
  for (size_t i = 0; i < w->n; i++) free(w->job[i].path);
  free(w->job);
  for (size_t i = 0; i < w->n_own; i++) free(w->own[i]);
  free(w->own);
  hone_chain_destroy(w->chain);
  hone_engine_destroy(w->engine);
}

static int run(const cli_args *args) {
  work w = {.args = args};
  hone_error error = {0};
  hone_status status = open_work(&w, &error);
  if (status == HONE_OK) status = run_jobs(&w, &error);
  if (status == HONE_OK && w.lines.stream) status = cli_file_commit(&w.lines, &error);
  const int code = status == HONE_OK ? finish(&w) : cli_report(&error);
  close_work(&w);
  return code;
}

static const cli_option options[] = {
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE|DIR",
     "a picture or array, or a folder of pictures"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE|-", "write a JSON line for each input there"},
    {0, "repeat", CLI_SOME, CLI_FIELD(count), "N",
     "run each input N times; the first of several is not timed (1)"},
    {0, "memory", CLI_FLAG, CLI_FIELD(show_memory), NULL, "print where the memory is and what is shared"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},
    {0, "precision", CLI_TEXT, CLI_FIELD(precision), "f32|bf16|fp16|tf32|fp8",
     "arithmetic of matrix products, where the chain does not say it (f32)"},
    {0, "no-cache", CLI_FLAG, CLI_FIELD(no_cache), NULL, "ignore what hone tune has measured"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_chain = {
    "chain",
    "CHAIN.json --input FILE|DIR...",
    "run several models in a row, with what lies between them",
    "A chain names models and links (boxes, crops, decoders): docs/guide/chains.md. Every input is a run of "
    "all stages. With several inputs each is NAME=FILE, and there is one run. A file that cannot be read is "
    "one line on standard error; the others go on, and the exit code tells.",
    options,
    1,
    1,
    run};
