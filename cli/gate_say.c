/* A gate's verdict for terminals, GitHub, Markdown and JUnit. Commands, names and tags are other people's
 * text. */
#include "cli/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int gate_exit(const gate_run *g) {
  return g->result.verdict == HONE_GATE_WORSE ? 1 : g->result.verdict == HONE_GATE_NONE ? 5 : 0;
}

static const char *reason(const gate_run *g, char *buf, size_t size) {
  snprintf(buf, size, "%s%s%s%s", g->doubt, g->doubt[0] ? "; what was seen: " : "",
           g->timeout && !g->doubt[0] ? "--max-seconds was over; " : "", g->result.reason);
  return buf;
}

static json_t *times(const gate_side *s) {
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
  const hone_gate_result *r = &g->result;
  cli_machine(machine, sizeof machine);
  cli_date(date, sizeof date);
  return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:s, s:b, s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                   "s:o, s:o, s:o, s:s}",
                   "verdict", hone_gate_verdict_name(r->verdict), "exit_code", gate_exit(g), "reason",
                   cli_text(reason(g, why, sizeof why)), "model", cli_text(g->model), "baseline",
                   times(&g->old), "candidate", times(&g->new), "metric", g->wall ? "wall" : "latency",
                   "interleaved", r->paired, "threshold_pct", 100 * g->threshold, "pairs", (int)r->pairs,
                   "baseline_ms", figure(r, r->baseline_ms), "candidate_ms", figure(r, r->candidate_ms),
                   "change_pct", figure(r, 100 * r->change), "low_pct", figure(r, 100 * r->low), "high_pct",
                   figure(r, 100 * r->high), "p_slower", cli_real(r->p_slower), "p_threshold",
                   cli_real(r->p_threshold), "noise_pct", figure(r, 100 * r->noise), "commit",
                   cli_revision(&none, NULL, revision, sizeof revision) ? cli_text(revision) : json_null(),
                   "machine", cli_text(machine), "date", date);
}

void gate_text(const gate_run *g) {
  char why[900], clean[900], label[300];
  const hone_gate_result *r = &g->result;
  const bool color = cli_colors(stdout);
  const char *paint = r->verdict == HONE_GATE_WORSE  ? "\033[1;31m"
                      : r->verdict == HONE_GATE_NONE ? "\033[33m"
                                                     : "\033[32m";
  if (!r->pairs) { /* no figures: none are shown */
    printf("measured    no pair of processes, %.0f s\n", g->seconds);
    printf("verdict     %s%s%s: %s\n", color ? paint : "", hone_gate_verdict_name(r->verdict),
           color ? "\033[0m" : "", cli_printable(reason(g, why, sizeof why), clean, sizeof clean));
    return;
  }
  printf("baseline    %.3f ms  %s\n", r->baseline_ms, cli_printable(g->old.label, label, sizeof label));
  printf("candidate   %.3f ms  %s\n", r->candidate_ms, cli_printable(g->new.label, label, sizeof label));
  /* Not the quotient of the two lines above: pairs are compared within themselves. */
  printf("change      %+.2f %% %s   95 %%: %+.2f to %+.2f   threshold %.3g %%\n", 100 * r->change,
         r->paired ? "in the pairs" : "between processes", 100 * r->low, 100 * r->high, 100 * g->threshold);
  if (r->paired)
    printf("measured    %u pairs of processes in turn, median %s of each, %.0f s\n", r->pairs,
           g->wall ? "time" : "latency", g->seconds);
  else
    printf("measured    %u new processes after %u earlier one%s, %.0f s\n", g->new.n, g->old.n,
           g->old.n == 1 ? "" : "s", g->seconds);
  printf("noise       %.2f %% between processes\n", 100 * r->noise);
  printf("verdict     %s%s%s: %s\n", color ? paint : "", hone_gate_verdict_name(r->verdict),
         color ? "\033[0m" : "", cli_printable(reason(g, why, sizeof why), clean, sizeof clean));
}

/* GitHub reads %0A as a line break; in properties ',' and ':' as well end the value. */
static void put_github(FILE *out, const char *text, bool property) {
  char clean[900];
  for (const char *p = cli_printable(text, clean, sizeof clean); *p; p++)
    if (*p == '%' || (property && (*p == ',' || *p == ':')))
      fprintf(out, "%%%02X", *p);
    else
      fputc(*p, out);
}

void gate_annotate(const gate_run *g, FILE *out) {
  char why[900], title[400];
  hone_gate_verdict v = g->result.verdict;
  snprintf(title, sizeof title, "hone gate: %s: %s", g->model, hone_gate_verdict_name(v));
  fputs(v == HONE_GATE_WORSE  ? "::error title="
        : v == HONE_GATE_NONE ? "::warning title="
                              : "::notice title=",
        out);
  put_github(out, title, true);
  fputs("::", out);
  put_github(out, reason(g, why, sizeof why), false);
  fputc('\n', out);
}

/* Text inside of a Markdown table: no cell ends, no markup, no HTML. */
static void put_markdown(FILE *f, const char *text) {
  char clean[900];
  for (const char *p = cli_printable(text, clean, sizeof clean); *p; p++)
    if (*p == '<' || *p == '>' || *p == '&')
      fprintf(f, "&#%d;", *p);
    else if (strchr("\\`*_{}[]()#|~!", *p))
      fprintf(f, "\\%c", *p);
    else
      fputc(*p, f);
}

static void markdown(const gate_run *g, FILE *f) {
  char why[900];
  const hone_gate_result *r = &g->result;
  static const char *const marks[] = {"\xe2\x9c\x85", "\xe2\x9c\x85", "\xe2\x9d\x8c",
                                      "\xe2\x9a\xa0\xef\xb8\x8f"};
  fprintf(f, "### hone gate: ");
  put_markdown(f, g->model);
  fprintf(f, "\n\n%s **%s**: ", marks[r->verdict], hone_gate_verdict_name(r->verdict));
  put_markdown(f, reason(g, why, sizeof why));
  if (!r->pairs) {
    fputs("\n\n", f);
    return;
  }
  fprintf(f, "\n\n| | median ms | measured |\n|---|---:|---|\n| baseline | %.3f | ", r->baseline_ms);
  put_markdown(f, g->old.label);
  fprintf(f, " |\n| candidate | %.3f | ", r->candidate_ms);
  put_markdown(f, g->new.label);
  fprintf(f, " |\n| change | %+.2f %% | 95 %%: %+.2f to %+.2f %%; threshold %.3g %%; noise %.2f %% |\n\n",
          100 * r->change, 100 * r->low, 100 * r->high, 100 * g->threshold, 100 * r->noise);
}

static void put_xml(FILE *f, const char *text) {
  char clean[900];
  for (const char *p = cli_printable(text, clean, sizeof clean); *p; p++)
    if (strchr("<>&\"'", *p))
      fprintf(f, "&#%d;", *p);
    else
      fputc(*p, f);
}

static void junit(const gate_run *g, FILE *f) {
  char why[900];
  const hone_gate_result *r = &g->result;
  bool worse = r->verdict == HONE_GATE_WORSE, none = r->verdict == HONE_GATE_NONE;
  reason(g, why, sizeof why);
  fprintf(f,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite name=\"hone gate\" tests=\"1\" "
          "failures=\"%d\" "
          "errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n<testcase classname=\"hone.gate\" name=\"",
          worse, none, g->seconds);
  put_xml(f, g->model);
  fprintf(f, "\" time=\"%.3f\">", g->seconds);
  if (worse || none) {
    fprintf(f, worse ? "<failure type=\"slower\" message=\"" : "<skipped message=\"no verdict: ");
    put_xml(f, why);
    fprintf(f, "\"/>");
  }
  fprintf(f, "<system-out>");
  put_xml(f, why);
  fprintf(f, "</system-out></testcase>\n</testsuite></testsuites>\n");
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
