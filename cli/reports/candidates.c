/* What hone op why found, as text and as JSON. */
#include "cli/reports/candidates.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the command to start with */

/* "a,b" as --nodes wants it; free() it. */
static char *listed(const hone_candidate_place *p) {
  size_t size = 1;
  for (uint32_t i = 0; i < p->n_nodes; i++) size += 2 * strlen(p->node[i]) + 1;
  char *text = malloc(size), *end = text;
  for (uint32_t i = 0; text && i < p->n_nodes; i++) {
    if (i) *end++ = ',';
    for (const char *c = p->node[i]; *c; c++) {
      if (*c == ',' || *c == '\\') *end++ = '\\';
      *end++ = *c;
    }
  }
  if (text) *end = 0;
  return text;
}

/* "hone op new OwnSin --from m.onnx --nodes a,b": a line for a shell. start: the place whose nodes are
 * written down; NULL: "hone op new OwnSort --general". NULL: no memory. free() it. */
static char *command_of(const hone_candidate *c, const hone_candidate_place *start, const char *model) {
  char *nodes = start ? listed(start) : NULL;
  if (start && !nodes) return NULL;
  const char *const word[] = {"hone", "op",      "new", c->name, nodes ? "--from" : "--general",
                              model,  "--nodes", nodes};
  const size_t words = nodes ? 8 : 5;
  size_t size = 1, n = 0;
  for (size_t i = 0; i < words; i++) size += hone_text_shell(word[i], NULL, 0) + 1;
  char *line = malloc(size);
  for (size_t i = 0; line && i < words; i++) {
    if (i) line[n++] = ' ';
    n = cli_quote(word[i], line, size, n);
  }
  free(nodes);
  return line;
}

/* ---- text */

/* Percent with two digits, and large ones without a power of ten. */
static const char *percent(double v, char buf[32]) {
  snprintf(buf, 32, v < 9.95 ? "%.2g" : "%.0f", v);
  return buf;
}

static void print_place(const hone_candidate_place *p) {
  cli_print("     slowest  ");
  for (uint32_t i = 0; i < p->n_nodes; i++) cli_print("%s%s", i ? ", " : "", p->node[i]);
  cli_print(" (%.3g ms)\n", p->ms);
}

static void print_saving(const hone_candidate *c) {
  char gain[32];
  cli_print("     saves    %.3g ms", c->saved_ms);
  switch (c->kind) {
  case HONE_CANDIDATE_COMPOUND:
    cli_print(": %.3g MB would not travel (%.3g ms), fewer starts of steps (%.3g ms)", c->bytes / 1e6,
              c->traffic_ms, c->starts_ms);
    if (c->saved_ms < 0.99 * (c->traffic_ms + c->starts_ms)) cli_print("; the roof allows no more");
    break;
  case HONE_CANDIDATE_FALLBACK:
    cli_print(" with a plain vectorised kernel");
    if (c->copies_ms > 0) cli_print(", %.3g ms of it copies to and from the host", c->copies_ms);
    break;
  case HONE_CANDIDATE_MISFIT: cli_print(" with a kernel as good as those for other sizes"); break;
  }
  cli_print("\n     gain     the whole is %s %% faster (predicted)\n", percent(c->gain_pct, gain));
}

static void print_pattern(const char *pattern) {
  for (const char *line = pattern; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
    cli_print("     %-8s %.*s\n", line == pattern ? "pattern" : "", (int)strcspn(line, "\n"), line);
}

static void print_one(const hone_candidate *c, const hone_candidate_place *start, size_t number,
                      const char *model) {
  char share[32];
  cli_print("%2zu. %s, %u place%s: %.3g ms, %s %% of the run\n", number, c->operators, c->n_places,
            c->n_places == 1 ? "" : "s", c->ms, percent(c->share_pct, share));
  if (c->verdict != HONE_CANDIDATE_IS_WORTH) {
    cli_print("     %s\n", c->why);
    return;
  }
  cli_print("     why      %s\n", c->why);
  print_saving(c);
  print_place(&c->place[0]);
  print_pattern(c->pattern);
  char *command = command_of(c, start, model);
  if (command) cli_print("     $ %s\n", command);
  free(command);
}

void cli_candidates_print(const hone_candidates *found, const hone_candidate_place *const *start,
                          const hone_profile *profile, const char *model, size_t rows) {
  size_t i = 0;
  cli_print("%s: %.4g ms in a typical run (%zu run%s, level %.0f)\n\n", model, found->wall_ms,
            profile->iterations, cli_s(profile->iterations), hone_facts_get_meta(profile->facts)->opt_level);
  if (found->n_worth) cli_print("worth a custom operator\n");
  for (; i < found->n_worth; i++) print_one(&found->candidate[i], start[i], i + 1, model);
  if (found->n_worth && i < found->n) cli_print("\n");
  if (i < found->n) cli_print("not worth it\n");
  for (; i < found->n && i < found->n_worth + rows; i++)
    print_one(&found->candidate[i], start[i], i + 1, model);
  if (i < found->n) cli_print("    and %zu more\n", found->n - i);
  if (!found->n)
    cli_print(
        "A custom operator is not worth it here: no operators follow each other again and again as steps\n"
        "of their own, none lacks a fast kernel, and none is far slower than others of its kind.\n");
  else if (!found->n_worth)
    cli_print("\nA custom operator is not worth it here.\n");
}

/* ---- JSON */

static json_t *texts(const char *const *text, uint32_t n) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) json_array_append_new(list, cli_text(text[i]));
  return list;
}

static json_t *places(const hone_candidate *c) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < c->n_places; i++) {
    const hone_candidate_place *p = &c->place[i];
    json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "nodes", texts(p->node, p->n_nodes),
                                          "steps", texts(p->step, p->n_steps), "ms", cli_real(p->ms),
                                          "saved_ms", cli_real(p->saved_ms)));
  }
  return list;
}

static json_t *candidate(const hone_candidate *c, const hone_candidate_place *start, const char *model) {
  char *command = command_of(c, start, model);
  const bool worth = c->verdict == HONE_CANDIDATE_IS_WORTH;
  json_t *o = json_pack("{s:s, s:b, s:s, s:o, s:o, s:o, s:o}", "kind", hone_candidate_kind_name(c->kind),
                        "worth_it", worth, "verdict", hone_candidate_verdict_name(c->verdict), "why",
                        cli_text(c->why), "name", cli_text(c->name), "operators", cli_text(c->operators),
                        "pattern", c->pattern ? cli_text(c->pattern) : json_null());
  json_object_set_new(o, "times", json_integer(c->n_places));
  json_object_set_new(o, "ms", cli_real(c->ms));
  json_object_set_new(o, "share_pct", cli_real(c->share_pct));
  json_object_set_new(o, "copies_ms", cli_real(c->copies_ms));
  json_object_set_new(o, "bytes_saved", cli_real(c->bytes));
  json_object_set_new(o, "traffic_ms", cli_real(c->traffic_ms));
  json_object_set_new(o, "starts_ms", cli_real(c->starts_ms));
  json_object_set_new(o, "saved_ms", cli_real(c->saved_ms));
  json_object_set_new(o, "predicted_gain_pct", cli_real(c->gain_pct));
  json_object_set_new(o, "roof_pct", c->roof_pct > 0 ? cli_real(c->roof_pct) : json_null());
  json_object_set_new(o, "usual_roof_pct", c->usual_pct > 0 ? cli_real(c->usual_pct) : json_null());
  json_object_set_new(o, "elementwise", json_boolean(c->elementwise));
  json_object_set_new(o, "level", c->level >= 0 ? json_integer(c->level) : json_null());
  json_object_set_new(o, "places", places(c));
  json_object_set_new(o, "command", worth && command ? cli_text(command) : json_null());
  free(command);
  return o;
}

json_t *cli_candidates_json(const hone_candidates *found, const hone_candidate_place *const *start,
                            const hone_profile *profile, const char *model) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < found->n; i++)
    json_array_append_new(list, candidate(&found->candidate[i], start[i], model));
  return json_pack("{s:o, s:f, s:I, s:I, s:o, s:I, s:o}", "model", cli_text(model), "typical_ms",
                   found->wall_ms, "runs", (json_int_t)profile->iterations, "level",
                   (json_int_t)hone_facts_get_meta(profile->facts)->opt_level, "device",
                   cli_text(hone_facts_get_meta(profile->facts)->device), "worth_it",
                   (json_int_t)found->n_worth, "candidates", list);
}
