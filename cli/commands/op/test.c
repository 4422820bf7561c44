/* hone op test: every tactic of custom operators on random inputs, against the reference. */
#include "cli/options/options.h"
#include "cli/op/subject.h"
#include "cli/op/pattern.h"
#include "cli/op/ward.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECONDS 20
enum { CASES = 100, SEED = 1 };

static const hone_dtype dtypes[] = {HONE_DTYPE_F32, HONE_DTYPE_F64, HONE_DTYPE_F16, HONE_DTYPE_BF16,
                                    HONE_DTYPE_I8,  HONE_DTYPE_U8,  HONE_DTYPE_I16, HONE_DTYPE_U16,
                                    HONE_DTYPE_I32, HONE_DTYPE_U32, HONE_DTYPE_I64, HONE_DTYPE_U64,
                                    HONE_DTYPE_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* The report that is being made: text as it goes, or a document at the end. */
typedef struct report {
  const cli_args *args;
  json_t *tactics; /* NULL: text */
  json_t *patterns;
  hone_machine machine;
  uint32_t tested, failed, cases;
} report;

static uint64_t seed_of(const cli_args *a) { return a->seed > 0 ? (uint64_t)a->seed : SEED; }

static void repeat_command(const cli_args *a, const op_job *j, const op_subject *s, uint32_t at, char *buf,
                           size_t size) {
  char number[24];
  size_t n = 0;
  const char *const words[] = {"hone", "op", "test", s->name, "--filter", j->tactic->name, "--seed"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) n = op_word(words[i], buf, size, n);
  snprintf(number, sizeof number, "%llu", (unsigned long long)seed_of(a));
  n = op_word(number, buf, size, n);
  n = op_word("--case", buf, size, n);
  snprintf(number, sizeof number, "%u", at);
  n = op_word(number, buf, size, n);
  if (j->device) n = op_word("--device", buf, size, n);
  if (j->device) n = op_word(j->device, buf, size, n);
  for (size_t i = 0; i < a->shapes.n; i++) {
    n = op_word("--shape", buf, size, n);
    n = op_word(a->shapes.item[i], buf, size, n);
  }
  (void)op_path_flags(a, buf, size, n);
}

/* Words of inference are of interest where there is nothing else. */
static bool shown(const op_row *row, uint32_t i) {
  bool tactic = row->cases > 0;
  for (uint32_t k = 0; k < row->n_refusals; k++) tactic |= strncmp(row->refusal[k].why, "infer: ", 7) != 0;
  return !tactic || strncmp(row->refusal[i].why, "infer: ", 7) != 0;
}

static const char *layout_name(hone_layout l) {
  return l == HONE_LAYOUT_CHANNELS_LAST ? "channels-last" : "row-major";
}

static void say_row(const report *r, const op_subject *s, const op_job *j, const op_row *row) {
  char repeat[1200], worst[32] = "-";
  if (row->cases && isfinite(row->worst)) snprintf(worst, sizeof worst, "%.2f", row->worst);
  cli_print("  %-5s %-14s %5u %7u  %s\n", hone_dtype_name(j->dtype), layout_name(j->layout), row->cases,
            row->n_failed, worst);
  for (uint32_t i = 0; i < row->n_refusals; i++)
    if (shown(row, i)) cli_print("        not taken: %s\n", row->refusal[i].why);
  for (uint32_t i = 0; i < op_row_failures(row); i++) {
    const op_failure *f = &row->failure[i];
    repeat_command(r->args, j, s, f->at, repeat, sizeof repeat);
    cli_print("    case %u: %s\n      with %s\n      again: %s\n", f->at, f->what, f->text, repeat);
  }
}

static json_t *row_json(const report *r, const op_subject *s, const op_job *j, const op_row *row) {
  char repeat[1200];
  json_t *failures = json_array(), *refusals = json_array();
  for (uint32_t i = 0; i < op_row_failures(row); i++) {
    const op_failure *f = &row->failure[i];
    repeat_command(r->args, j, s, f->at, repeat, sizeof repeat);
    json_array_append_new(failures,
                          json_pack("{s:i, s:o, s:o, s:o}", "case", (int)f->at, "what", cli_text(f->what),
                                    "input", cli_text(f->text), "again", cli_text(repeat)));
  }
  for (uint32_t i = 0; i < row->n_refusals; i++)
    if (shown(row, i)) json_array_append_new(refusals, cli_text(row->refusal[i].why));
  return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o}", "type", hone_dtype_name(j->dtype), "layout",
                   layout_name(j->layout), "cases", (int)row->cases, "failed", (int)row->n_failed,
                   "worst_of_bound", cli_real(row->cases ? row->worst : (double)NAN), "failures", failures,
                   "not_taken", refusals);
}

/* ------------------------------------------------------------------ one tactic */

static bool may(const hone_op_desc *op, hone_dtype d) { return !op->types || op->types & HONE_TYPES(d); }

static hone_status test_rows(report *r, const op_subject *s, op_job *j, json_t *rows, uint32_t *cases,
                             hone_error *error) {
  const cli_args *a = r->args;
  const double seconds = a->max_seconds > 0 ? a->max_seconds : MAX_SECONDS;
  const uint32_t first = a->at_case >= 0 ? (uint32_t)a->at_case : 0;
  const uint32_t last = a->at_case >= 0 ? first + 1 : a->runs > 0 ? (uint32_t)a->runs : CASES;
  const int layouts = s->op->layouts & HONE_LAST_ALLOWED && !j->device ? 2 : 1; /* a plan chooses it */
  hone_status status = HONE_OK;
  for (int i = 0; i < DTYPES * layouts && status == HONE_OK; i++) {
    op_row row;
    j->dtype = dtypes[i / layouts];
    j->layout = i % layouts ? HONE_LAYOUT_CHANNELS_LAST : HONE_LAYOUT_ROW_MAJOR;
    if (!may(s->op, j->dtype)) continue;
    status = op_ward_run(j, first, last, seconds, &row, error);
    if (status != HONE_OK) break;
    *cases += row.cases;
    r->failed += row.n_failed;
    if (rows)
      json_array_append_new(rows, row_json(r, s, j, &row));
    else
      say_row(r, s, j, &row);
  }
  return status;
}

static hone_status test_tactic(report *r, const op_subject *s, const hone_tactic_desc *t, hone_error *error) {
  op_shape given[OP_MOST];
  op_job j = {.op = s->op, .tactic = t, .machine = &r->machine, .seed = seed_of(r->args)};
  const char *device = r->args->device ? r->args->device : "cpu";
  const size_t kind = strcspn(device, ":");
  const bool here = strlen(t->device) == kind && strncmp(t->device, device, kind) == 0;
  if (here && strcmp(t->device, "cpu") != 0) j.device = device;
  json_t *rows = r->tactics ? json_array() : NULL;
  uint32_t cases = 0;
  hone_status status = op_shapes_given(r->args, s, given, &j.n_given, error);
  if (j.n_given) j.given = given;
  if (status == HONE_OK && j.given && !r->args->shapes.n)
    op_sample_shrink(&(op_wish){.op = s->op, .dtype = HONE_DTYPE_F32, .given = given, .n_given = j.n_given},
                     given);
  if (!r->tactics) cli_print("%s of %s (%s, plugin %s)\n", t->name, s->name, t->device, s->plugin);
  if (!r->tactics && here) cli_print("  type  layout         cases  failed  worst error, 1 is the bound\n");
  if (status == HONE_OK && here) status = test_rows(r, s, &j, rows, &cases, error);
  const char *why = "";
  if (here && !cases) why = "not tested: it takes nothing of what was drawn (--shape NAME=DIMS gives sizes)";
  if (!here)
    why = strcmp(device, "cpu") == 0 ? "it is for an accelerator; --device tests it there"
                                     : "it is for another device than --device names";
  r->tested += here;
  r->cases += cases;
  if (r->tactics)
    json_array_append_new(r->tactics, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "tactic", cli_text(t->name),
                                                "operator", cli_text(s->name), "plugin", cli_text(s->plugin),
                                                "device", cli_text(t->device), "rows", rows, "note",
                                                *why ? cli_text(why) : json_null()));
  else if (*why)
    cli_print("  %s\n", why);
  return status;
}

/* ------------------------------------------------------------------ its patterns */

static void say_pattern(const report *r, const op_subject *s, const hone_pattern_desc *p,
                        const op_pattern_result *x) {
  if (r->patterns) {
    json_array_append_new(r->patterns,
                          json_pack("{s:o, s:o, s:o, s:i, s:b, s:o, s:o, s:o}", "operator", cli_text(s->name),
                                    "plugin", cli_text(s->plugin), "text", cli_text(p->text), "cases",
                                    (int)x->cases, "failed", x->failed, "worst_of_bound",
                                    cli_real(x->cases ? x->worst : (double)NAN), "what",
                                    *x->what ? cli_text(x->what) : json_null(), "input",
                                    *x->text ? cli_text(x->text) : json_null()));
    return;
  }
  cli_print("pattern of %s (plugin %s)\n", s->name, s->plugin);
  for (const char *line = p->text; *line; line += strspn(line, "\n")) {
    const size_t n = strcspn(line, "\n");
    cli_print("  %.*s\n", (int)n, line);
    line += n;
  }
  if (x->failed)
    cli_print("    failed: the nodes of this pattern are not the operator: %s%s%s\n", x->what,
              *x->text ? "\n      with " : "", x->text);
  else if (!x->cases)
    cli_print("    not tested: %s\n", x->what);
  else
    cli_print("    as the operator: %u case%s, worst error %.2f of the bound\n", x->cases, cli_s(x->cases),
              x->worst);
}

/* Every spelling of every pattern by itself. */
static hone_status test_patterns(report *r, const op_subject *s, hone_error *error) {
  op_shape given[OP_MOST];
  uint32_t n_given = 0;
  const double seconds = r->args->max_seconds > 0 ? r->args->max_seconds : MAX_SECONDS;
  hone_status status = op_shapes_given(r->args, s, given, &n_given, error);
  for (uint32_t i = 0; i < s->of->n_patterns && status == HONE_OK; i++) {
    if (strcmp(s->of->pattern[i]->name, s->name) != 0) continue;
    for (const char *text = s->of->pattern[i]->text, *cut; text && status == HONE_OK;
         text = cut ? cut + 4 : NULL) {
      cut = strstr(text, "\nor\n");
      char *one = strndup(text, cut ? (size_t)(cut - text) : strlen(text));
      hone_pattern_desc p = *s->of->pattern[i];
      op_pattern_result x;
      p.text = one ? one : "";
      if (one)
        status = op_pattern_try(s, &p, given, n_given, seed_of(r->args), seconds, &x, error);
      else
        *error = (hone_error){.status = status = HONE_ERROR_MEMORY, .what = "out of memory"};
      if (status == HONE_OK) {
        say_pattern(r, s, &p, &x);
        r->failed += x.failed;
      }
      free(one);
    }
  }
  return status;
}

static hone_status test_operator(report *r, const op_subject *s, hone_error *error) {
  hone_status status = HONE_OK;
  uint32_t n = 0;
  const uint32_t before = r->tested, cases = r->cases;
  const bool late = s->op->flags & (HONE_OP_DATA_DEPENDENT | HONE_OP_RANDOM | HONE_OP_CONTROL);
  for (uint32_t i = 0; i < s->of->n_tactics && status == HONE_OK && !late; i++) {
    const hone_tactic_desc *t = s->of->tactic[i];
    if (!op_has_tactic(s, t) || (r->args->filter && strcmp(r->args->filter, t->name) != 0)) continue;
    status = test_tactic(r, s, t, error);
    n++;
  }
  const bool whole = !r->args->filter && r->args->at_case < 0 && !r->args->device;
  if (status == HONE_OK && whole && !late) status = test_patterns(r, s, error);
  /* A tactic for another processor is no fault; an operator of which nothing was tested is. */
  if (status == HONE_OK && r->tested > before && r->cases == cases) r->failed++;
  if (n || r->tactics || r->args->filter) return status;
  cli_print("%s (plugin %s): %s\n", s->name, s->plugin,
            late ? "its results do not follow from shapes and values alone; not tested"
                 : "it has no tactic: its reference is what runs");
  return status;
}

/* ------------------------------------------------------------------ the command */

static int end(report *r) {
  const int code = r->failed ? 1 : 0;
  if (r->tactics) {
    const int printed = cli_print_json(json_pack("{s:i, s:i, s:i, s:o, s:o}", "seed", (int)seed_of(r->args),
                                                 "cases", (int)r->cases, "failed", (int)r->failed, "tactics",
                                                 r->tactics, "patterns", r->patterns));
    r->tactics = r->patterns = NULL;
    return printed ? printed : code;
  }
  cli_print("%u tactic%s, %u case%s, %u failed\n", r->tested, cli_s(r->tested), r->cases, cli_s(r->cases),
            r->failed);
  const int printed = cli_flush();
  return printed ? printed : code;
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  const size_t n = args->rest.n;
  hone_error e = {0};
  op_subjects list = {0};
  report r = {.args = args};
  hone_status status = op_subjects_find(rest, n, &list, &e);
  if (status == HONE_OK) status = op_machine(&r.machine, &e);
  if (status == HONE_OK && args->device && strcmp(args->device, "cpu") != 0)
    status = op_ward_device(args->device, &e);
  if (status == HONE_OK && args->shapes.n && list.n > 1) {
    free(list.list);
    return cli_error(HONE_ERROR_USAGE, "--shape belongs to one operator; hone op test NAME --shape ...");
  }
  if (status == HONE_OK && args->json) r.tactics = json_array(), r.patterns = json_array();
  for (uint32_t i = 0; i < list.n && status == HONE_OK; i++) status = test_operator(&r, &list.list[i], &e);
  free(list.list);
  if (status == HONE_OK) return end(&r);
  json_decref(r.tactics);
  json_decref(r.patterns);
  (void)cli_flush();
  return cli_report(&e);
}

static const cli_option options[] = {
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "cases of each tactic, type and layout (100)"},
    {0, "filter", CLI_TEXT, CLI_FIELD(filter), "TACTIC", "this tactic alone"},
    {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of the inputs (1)"},
    {0, "case", CLI_COUNT, CLI_FIELD(at_case), "N", "this case alone"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "what one case may take (20)"},
    {0, "shape", CLI_LIST, CLI_FIELD(shapes), "NAME=DIMS",
     "begin with this shape of an input (x=1x64x56x56)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "whose tactics: cpu, cuda or cuda:N (cpu)"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_op_test = {
    "op test", "[NAME...]", "random inputs against the reference, in a process of its own", NULL, options, 0,
    15,        run};
