/* hone history: runs that were kept by hone bench --save. */
#include "cli/options/files.h"
#include "cli/options/options.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"
#include "cli/terminal/plot.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 200 };

/* [54, 58] of "54-58", as reports have it. */
static json_t *range_json(const char *text) {
  double low, high;
  if (!text || sscanf(text, "%lf-%lf", &low, &high) != 2) return json_null();
  return json_pack("[o, o]", cli_real(low), cli_real(high));
}

static json_t *record_json(const hone_record *r) {
  json_t *o = json_object();
  json_object_set_new(o, "id", json_integer(r->id));
#define X(field) json_object_set_new(o, #field, cli_text(r->field));
  HONE_RECORD_TEXTS(X)
#undef X
  json_object_set_new(o, "temperature_c_range", range_json(r->temperature_c_range));
#define X(field) json_object_set_new(o, #field, cli_real(r->field));
  HONE_RECORD_NUMBERS(X)
#undef X
  return o;
}

/* With the whole reports where they were read. */
static json_t *runs_json(const hone_records *runs) {
  json_t *list = json_array();
  for (size_t i = 0; i < runs->count; i++) {
    json_t *o = record_json(&runs->items[i]);
    if (runs->items[i].report) {
      json_t *report = json_loads(runs->items[i].report, 0, NULL);
      json_object_set_new(o, "report", report ? report : json_null());
    }
    json_array_append_new(list, o);
  }
  return json_pack("{s:o}", "runs", list);
}

static const char *number(double v, int digits, char buf[32]) {
  if (isfinite(v))
    snprintf(buf, 32, "%.*f", digits, v);
  else
    snprintf(buf, 32, "-");
  return buf;
}

static int list(const cli_args *args, const hone_records *runs) {
  char n[4][32];
  if (!runs->count) {
    if (args->filter || args->commit || args->tag)
      cli_print("no runs of that %s (hone history lists all)\n", args->tag      ? "tag"
                                                                 : args->commit ? "revision"
                                                                                : "model");
    else
      cli_print("no runs (hone bench MODEL --save keeps one)\n");
    return cli_flush();
  }
  cli_print("%6s  %-20s  %-12s  %10s  %10s  %10s  %6s  %-24s %s\n", "run", "date", "commit", "median ms",
            "p95 ms", "a second", "CV", "model", "tag");
  for (size_t i = 0; i < runs->count; i++) {
    const hone_record *r = &runs->items[i];
    cli_print("%6lld  %-20.20s  %-12.12s  %10s  %10s  %10s  %6s  %-24s %s\n", (long long)r->id,
              r->profiling_date ? r->profiling_date : "-", r->commit ? r->commit : "-",
              number(r->median_latency_ms, 3, n[0]), number(r->p95_latency_ms, 3, n[1]),
              number(r->throughput_fps, 1, n[2]), number(r->cv, 3, n[3]), r->model ? r->model : "-",
              r->tag ? r->tag : "-");
  }
  return cli_flush();
}

static void line(const char *name, const char *text) {
  if (text) cli_print("%-22s%s\n", name, text);
}

static int show(const hone_record *r) {
  cli_print("%-22s%lld\n", "run", (long long)r->id);
#define X(field) line(#field, r->field);
  HONE_RECORD_TEXTS(X)
#undef X
#define X(field)                                                                                             \
  if (isfinite(r->field)) cli_print("%-22s%.6g\n", #field, r->field);
  HONE_RECORD_NUMBERS(X)
#undef X
  return cli_flush();
}

/* Medians of each model in the order of the runs. */
static int plot(const hone_records *runs) {
  char *done = calloc(runs->count + 1, 1);
  double *y = calloc(runs->count + 1, sizeof *y);
  char low[WORD], high[WORD];
  if (!done || !y) {
    free(done);
    free(y);
    return cli_error(HONE_ERROR_MEMORY, "out of memory");
  }
  for (size_t i = 0; i < runs->count; i++) {
    const hone_record *first = &runs->items[i], *last = first;
    size_t n = 0;
    const char *model = first->model ? first->model : "-";
    if (done[i]) continue;
    for (size_t k = i; k < runs->count; k++) {
      const char *other = runs->items[k].model ? runs->items[k].model : "-";
      if (strcmp(model, other) != 0) continue;
      done[k] = 1;
      last = &runs->items[k];
      y[n++] = last->median_latency_ms;
    }
    if (i) cli_print("\n");
    cli_print("%s, median latency in ms, %zu run%s\n", model, n, n == 1 ? "" : "s");
    snprintf(low, sizeof low, "run %lld %.10s", (long long)first->id, first->commit ? first->commit : "");
    snprintf(high, sizeof high, "run %lld %.10s", (long long)last->id, last->commit ? last->commit : "");
    cli_plot(y, n, low, high);
  }
  free(done);
  free(y);
  return cli_flush();
}

static int html(const hone_records *runs, const char *path) {
  cli_file file;
  hone_error error = {0};
  hone_status status = cli_file_open(&file, path, &error);
  if (status == HONE_OK) {
    status = hone_history_html(runs, cli_file_sink, &file, &error);
    if (status == HONE_OK) status = cli_file_commit(&file, &error);
    if (status != HONE_OK) cli_file_abort(&file);
  }
  return status == HONE_OK ? 0 : cli_report(&error);
}

/* On standard error: the file may be standard output. */
static void note_written(const char *path, const hone_records *runs) {
  if (path) cli_note("%s: %zu run%s", path, runs->count, runs->count == 1 ? "" : "s");
}

static hone_status check_known(hone_history *history, const int64_t *ids, size_t n, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    hone_records found = {0};
    status = hone_history_find(history, &(hone_history_query){.id = ids[i]}, &found, error);
    if (status == HONE_OK && !found.count) {
      *error = (hone_error){.status = status = HONE_ERROR_USAGE, .hint = "nothing was deleted"};
      snprintf(error->what, sizeof error->what, "the history has no run %lld", (long long)ids[i]);
    }
    hone_records_free(&found);
  }
  return status;
}

/* "3,5,9" and more of them: all or none. */
static int delete_runs(const cli_args *args) {
  hone_history *history = NULL;
  hone_error error = {0};
  int64_t ids[256];
  size_t n = 0, removed = 0;
  for (const char *p = args->remove; *p;) {
    char *end;
    long long id = strtoll(p, &end, 10);
    if (end == p || id <= 0 || (*end && *end != ',') || n == 256)
      return cli_error(HONE_ERROR_USAGE, "--delete wants numbers of runs with commas (at most 256), got '%s'",
                       args->remove);
    ids[n++] = id;
    p = *end ? end + 1 : end;
  }
  hone_status status = hone_history_open(NULL, false, &history, &error); /* nothing is created for this */
  if (status == HONE_OK) status = check_known(history, ids, n, &error);
  hone_history_close(history);
  if (status == HONE_OK) status = hone_history_open(NULL, true, &history, &error);
  if (status == HONE_OK) {
    status = hone_history_remove(history, ids, n, &removed, &error);
    hone_history_close(history);
  }
  if (status != HONE_OK) return cli_report(&error);
  if (args->json) return cli_print_json(json_pack("{s:I}", "deleted", (json_int_t)removed));
  cli_print("%zu run%s deleted\n", removed, removed == 1 ? "" : "s");
  return cli_flush();
}

/* Without a history there is nothing to list, which is no error. */
static hone_status find(const cli_args *args, int64_t id, hone_records *runs, hone_error *error) {
  hone_history *history = NULL;
  hone_history_query q = {.id = id,
                          .model = args->filter,
                          .commit = args->commit,
                          .tag = args->tag,
                          .newest = (size_t)args->count,
                          .reports = args->output != NULL || (id && args->json)};
  *runs = (hone_records){0};
  hone_status status = hone_history_open(NULL, false, &history, error);
  if (status == HONE_ERROR_MISSING) return HONE_OK;
  if (status == HONE_OK) status = hone_history_find(history, &q, runs, error);
  hone_history_close(history);
  return status;
}

static int run(const cli_args *args) {
  hone_records runs;
  hone_error error = {0};
  int64_t id = 0;
  int code = 0;
  if (args->remove) return delete_runs(args);
  if (args->rest.n) {
    char *end;
    id = strtoll(args->rest.item[0], &end, 10);
    if (*end || id <= 0)
      return cli_error(HONE_ERROR_USAGE, "hone history wants the number of a run, got '%s'",
                       args->rest.item[0]);
  }
  if (find(args, id, &runs, &error) != HONE_OK) return cli_report(&error);
  if (id && !runs.count)
    code = cli_error(HONE_ERROR_USAGE, "the history has no run %lld", (long long)id);
  else if (args->output || args->html) {
    if (args->output && cli_file_json(args->output, runs_json(&runs), &error) != HONE_OK)
      code = cli_report(&error);
    else
      note_written(args->output, &runs);
    if (code == 0 && args->html && (code = html(&runs, args->html)) == 0) note_written(args->html, &runs);
  } else if (args->json)
    code = cli_print_json(runs_json(&runs));
  else if (id)
    code = show(&runs.items[0]);
  else
    code = args->plot && runs.count ? plot(&runs) : list(args, &runs);
  hone_records_free(&runs);
  return code;
}

static const cli_option options[] = {
    {0, "filter", CLI_TEXT, CLI_FIELD(filter), "GLOB", "runs of these models (path or file name: 'resnet*')"},
    {0, "commit", CLI_TEXT, CLI_FIELD(commit), "REV", "runs of this revision (its beginning will do)"},
    {0, "tag", CLI_TEXT, CLI_FIELD(tag), "WORD", "runs with this tag"},
    {'n', "newest", CLI_SOME, CLI_FIELD(count), "N", "only the newest N (all)"},
    {0, "plot", CLI_FLAG, CLI_FIELD(plot), NULL, "draw the latency of each model over its runs"},
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "write the same as a page, with commits"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "export the runs with their whole reports as JSON"},
    {0, "delete", CLI_TEXT, CLI_FIELD(remove), "ID,...", "delete these runs"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_history = {"history",
                                     "[RUN]",
                                     "list, plot, export and delete the runs that bench --save kept",
                                     "The history is $XDG_DATA_HOME/hone/history.db "
                                     "(~/.local/share/hone/history.db); HONE_HISTORY names another file.",
                                     options,
                                     0,
                                     1,
                                     run};
