/* A gate's verdict for terminals, GitHub, Markdown and JUnit. Commands, names and tags are other people's
 * text. */
#include "cli/reports/gate.h"
#include "cli/options/files.h"
#include "cli/options/options.h"
#include "cli/options/revision.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int gate_exit(const gate_run *g) {
  return g->run.result.verdict == HONE_GATE_WORSE ? 1 : g->run.result.verdict == HONE_GATE_NONE ? 5 : 0;
}

static const char *reason(const gate_run *g, char *buf, size_t size) {
  snprintf(buf, size, "%s%s%s%s", g->doubt, g->doubt[0] ? "; what was seen: " : "",
           g->run.timeout && !g->doubt[0] ? "--max-seconds was over; " : "", g->run.result.reason);
  return buf;
}

static json_t *times(const hone_gate_side *s) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < s->n; i++) json_array_append_new(list, cli_real(s->ms[i]));
  return json_pack("{s:o, s:o, s:o}", "label", cli_text(s->label), "command",
                   s->command[0] ? cli_text(s->command) : json_null(), "processes_ms", list);
}

/* null before there is anything to tell. */
static json_t *figure(const hone_gate_result *r, double value) {
  return r->pairs ? cli_real(value) : json_null();
}

json_t *gate_json(const gate_run *g) {
  char why[900], machine[300], date[32], revision[128];
  const cli_args none = CLI_UNSET;
  const hone_gate_result *r = &g->run.result;
  cli_machine(machine, sizeof machine);
  cli_date(date, sizeof date);
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:s, s:b, s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                   "s:o, s:o, s:o, s:s, s:b}",
                   "verdict", hone_gate_verdict_name(r->verdict), "exit_code", gate_exit(g), "reason",
                   cli_text(reason(g, why, sizeof why)), "model", cli_text(g->model), "baseline",
                   times(&g->run.old), "candidate", times(&g->run.now), "metric",
                   g->run.wall ? "wall" : "latency", "interleaved", r->paired, "threshold_pct",
                   100 * g->run.threshold, "pairs", (int)r->pairs, "baseline_ms", figure(r, r->baseline_ms),
                   "candidate_ms", figure(r, r->candidate_ms), "change_pct", figure(r, 100 * r->change),
                   "low_pct", figure(r, 100 * r->low), "high_pct", figure(r, 100 * r->high), "p_slower",
                   cli_real(r->p_slower), "p_threshold", cli_real(r->p_threshold), "noise_pct",
                   figure(r, 100 * r->noise), "commit",
                   cli_revision(&none, NULL, revision, sizeof revision) ? cli_text(revision) : json_null(),
                   "machine", cli_text(machine), "date", date, "answers_compared", 0);
}

static void verdict(const gate_run *g) {
  char why[900];
  const hone_gate_verdict v = g->run.result.verdict;
  cli_print("verdict     ");
  cli_color(stdout, v == HONE_GATE_WORSE ? CLI_BOLD_RED : v == HONE_GATE_NONE ? CLI_YELLOW : CLI_GREEN);
  cli_print("%s", hone_gate_verdict_name(v));
  cli_color(stdout, CLI_PLAIN);
  cli_print(": %s\n", reason(g, why, sizeof why));
}

void gate_text(const gate_run *g) {
  const hone_gate_result *r = &g->run.result;
  if (!r->pairs) { /* no figures: none are shown */
    cli_print("measured    no pair of processes, %.0f s\n", g->run.seconds);
    verdict(g);
    return;
  }
  cli_print("baseline    %.3f ms  %s\n", r->baseline_ms, g->run.old.label);
  cli_print("candidate   %.3f ms  %s\n", r->candidate_ms, g->run.now.label);
  /* Not the quotient of the two lines above: pairs are compared within themselves. */
  cli_print("change      %+.2f %% %s   95 %%: %+.2f to %+.2f   threshold %.3g %%\n", 100 * r->change,
            r->paired ? "in the pairs" : "between processes", 100 * r->low, 100 * r->high,
            100 * g->run.threshold);
  if (r->paired)
    cli_print("measured    %u pair%s of processes in turn, median %s of each, %.0f s\n", r->pairs,
              cli_s(r->pairs), g->run.wall ? "time" : "latency", g->run.seconds);
  else
    cli_print("measured    %u new process%s after %u earlier one%s, %.0f s\n", g->run.now.n,
              g->run.now.n == 1 ? "" : "es", g->run.old.n, g->run.old.n == 1 ? "" : "s", g->run.seconds);
  cli_print("noise       %.2f %% between processes\n", 100 * r->noise);
  cli_print("answers     not compared (hone verify does)\n");
  verdict(g);
}

/* A text that is escaped as every other, and then every byte of `special` as the format writes it. */
static void put_marked(FILE *out, const char *text, const char *special, const char *(*mark)(char, char *)) {
  char buf[8];
  while (*text) {
    const size_t n = strcspn(text, special);
    cli_print_to(out, "%.*s", (int)n, text);
    text += n;
    if (*text) cli_put(out, mark(*text++, buf));
  }
}

static const char *percent(char c, char *buf) {
  snprintf(buf, 8, "%%%02X", (unsigned char)c);
  return buf;
}

static const char *entity(char c, char *buf) {
  snprintf(buf, 8, "&#%d;", c);
  return buf;
}

static const char *backslash(char c, char *buf) {
  if (strchr("<>&", c)) return entity(c, buf);
  snprintf(buf, 8, "\\%c", c);
  return buf;
}

/* GitHub reads %0A as a line break; in properties ',' and ':' as well end the value. */
static void put_github(FILE *out, const char *text, bool property) {
  put_marked(out, text, property ? "%,:" : "%", percent);
}

void gate_annotate(const gate_run *g, FILE *out) {
  char why[900], title[400];
  hone_gate_verdict v = g->run.result.verdict;
  snprintf(title, sizeof title, "hone gate: %s: %s", g->model, hone_gate_verdict_name(v));
  cli_print_to(out, v == HONE_GATE_WORSE  ? "::error title="
                    : v == HONE_GATE_NONE ? "::warning title="
                                          : "::notice title=");
  put_github(out, title, true);
  cli_print_to(out, "::");
  put_github(out, reason(g, why, sizeof why), false);
  cli_print_to(out, "\n");
}

/* Text inside of a Markdown table: no cell ends, no markup, no HTML. */
static void put_markdown(FILE *f, const char *text) { put_marked(f, text, "<>&\\`*_{}[]()#|~!", backslash); }

static void markdown(const gate_run *g, FILE *f) {
  char why[900];
  const hone_gate_result *r = &g->run.result;
  static const char *const marks[] = {"\xe2\x9c\x85", "\xe2\x9c\x85", "\xe2\x9d\x8c",
                                      "\xe2\x9a\xa0\xef\xb8\x8f"};
  cli_print_to(f, "### hone gate: ");
  put_markdown(f, g->model);
  cli_print_to(f, "\n\n%s **%s**: ", marks[r->verdict], hone_gate_verdict_name(r->verdict));
  put_markdown(f, reason(g, why, sizeof why));
  if (!r->pairs) {
    cli_print_to(f, "\n\n");
    return;
  }
  cli_print_to(f, "\n\n| | median ms | measured |\n|---|---:|---|\n| baseline | %.3f | ", r->baseline_ms);
  put_markdown(f, g->run.old.label);
  cli_print_to(f, " |\n| candidate | %.3f | ", r->candidate_ms);
  put_markdown(f, g->run.now.label);
  cli_print_to(f,
               " |\n| change | %+.2f %% | 95 %%: %+.2f to %+.2f %%; threshold %.3g %%; noise %.2f %% |\n\n"
               "Answers were not compared.\n\n",
               100 * r->change, 100 * r->low, 100 * r->high, 100 * g->run.threshold, 100 * r->noise);
}

static void put_xml(FILE *f, const char *text) { put_marked(f, text, "<>&\"'", entity); }

static void junit(const gate_run *g, FILE *f) {
  char why[900];
  const hone_gate_result *r = &g->run.result;
  bool worse = r->verdict == HONE_GATE_WORSE, none = r->verdict == HONE_GATE_NONE;
  reason(g, why, sizeof why);
  cli_print_to(
      f,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite name=\"hone gate\" tests=\"1\" "
      "failures=\"%d\" "
      "errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n<testcase classname=\"hone.gate\" name=\"",
      worse, none, g->run.seconds);
  put_xml(f, g->model);
  cli_print_to(f, "\" time=\"%.3f\">", g->run.seconds);
  if (worse || none) {
    cli_print_to(f, worse ? "<failure type=\"slower\" message=\"" : "<skipped message=\"no verdict: ");
    put_xml(f, why);
    cli_print_to(f, "\"/>");
  }
  cli_print_to(f, "<system-out>");
  put_xml(f, why);
  cli_print_to(f, "</system-out></testcase>\n</testsuite></testsuites>\n");
}

static hone_status write_file(const gate_run *g, const char *path, void (*fill)(const gate_run *, FILE *),
                              hone_error *error) {
  cli_file file;
  hone_status status = cli_file_open(&file, path, error);
  if (status != HONE_OK) return status;
  fill(g, file.stream);
  return cli_file_commit(&file, error);
}

hone_status gate_junit(const gate_run *g, const char *path, hone_error *error) {
  return write_file(g, path, junit, error);
}

hone_status gate_markdown(const gate_run *g, const char *path, bool append, hone_error *error) {
  if (!append) return write_file(g, path, markdown, error);
  cli_file file; /* a summary that other steps write, too */
  hone_status status = cli_file_append(&file, path, error);
  if (status != HONE_OK) return status;
  markdown(g, file.stream);
  return cli_file_commit(&file, error);
}
