/* hone op bench: tactics of custom operators against each other, and against what they replace. */
#include "cli/options/options.h"
#include "cli/op/dispatch.h"
#include "cli/op/race.h"
#include "cli/op/race_report.h"
#include "cli/op/step.h"
#include "cli/options/files.h"
#include "cli/options/roofs.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 50, WARMUPS = 3 };

typedef struct bench {
  const cli_args *args;
  op_subjects subjects;
  op_race **race; /* [n] */
  uint32_t n;
  op_roofs roofs;
  hone_machine machine;
  double dispatch_us;
} bench;

/* ------------------------------------------------------------------ shapes */

/* Does a tactic of this device take it? */
static bool taken(const bench *b, const op_subject *s, const op_sample *x) {
  hone_reason why;
  bool good = false;
  op_step step;
  for (uint32_t i = 0; i < s->of->n_tactics && !good; i++) {
    const hone_tactic_desc *t = s->of->tactic[i];
    if (!op_has_tactic(s, t) || strcmp(t->device, b->machine.device) != 0) continue;
    good = op_step_make(&step, x, HONE_LAYOUT_ROW_MAJOR, HONE_MATH_F32) &&
           t->accepts(&step.step, &b->machine, &why);
    op_step_free(&step);
  }
  return good;
}

static uint32_t inputs_of(const op_subject *s) {
  uint32_t n = 0;
  for (const char *p = s->pattern ? s->pattern->inputs : ""; *p; p++) n += *p == '%';
  return n ? n : s->op->max_inputs < OP_MOST ? s->op->max_inputs : s->op->min_inputs;
}

static hone_dtype first_type(const hone_op_desc *op) {
  for (int d = HONE_DTYPE_F32; d < HONE_DTYPE_COUNT; d++)
    if (!op->types || op->types & HONE_TYPES(d)) return (hone_dtype)d;
  return HONE_DTYPE_F32;
}

static bool draw(const bench *b, const op_subject *s, const op_shape *shape, uint32_t n, op_sample *out,
                 hone_error *error) {
  op_random r = op_stream(1, "bench");
  const op_wish w = {.op = s->op,
                     .dtype = first_type(s->op),
                     .given = shape,
                     .n_given = n,
                     .n_inputs = n,
                     .exact = true,
                     .most = 1e13};
  if (op_sample_draw(&r, &w, out, error) && taken(b, s, out)) return true;
  return false;
}

static hone_status add_race(bench *b, const op_subject *s, op_sample *x, hone_error *error) {
  op_race **more = realloc(b->race, (b->n + 1) * sizeof(op_race *)), *r = calloc(1, sizeof *r);
  char one[100];
  if (more) b->race = more;
  if (!more || !r) {
    free(r);
    op_sample_free(x);
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    return HONE_ERROR_MEMORY;
  }
  b->race[b->n++] = r;
  r->subject = s;
  r->sample = *x;
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i].desc.dtype)
      snprintf(r->shape + strlen(r->shape), sizeof r->shape - strlen(r->shape), "%s%s", i ? ", " : "",
               hone_desc_format(&x->in[i].desc, one, sizeof one));
  const uint32_t threads = b->args->threads > 0 ? (uint32_t)b->args->threads : 0;
  return op_race_tactics(r, b->args->device, threads, error);
}

/* The given shape, or the two most usual ones that it takes. */
static hone_status add_races(bench *b, const op_subject *s, hone_error *error) {
  op_shape shape[OP_MOST];
  op_sample x = {0};
  hone_error e = {0};
  uint32_t n = 0;
  hone_status status = op_shapes_given(b->args, s, shape, &n, error);
  if (status != HONE_OK) return status;
  if (n) {
    if (draw(b, s, shape, n, &x, &e)) return add_race(b, s, &x, error);
    op_sample_free(&x);
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what,
             "%.100s does not take these shapes, or no tactic on %s does%s%.120s", s->name, b->machine.device,
             *e.what ? ": " : "", e.what);
    return HONE_ERROR_USAGE;
  }
  const uint32_t inputs = inputs_of(s);
  bool found = false;
  for (uint32_t k = 0; k < op_schemes() && !found && status == HONE_OK; k++)
    for (int large = 0; large < 2 && status == HONE_OK; large++) {
      op_shapes_typical(op_scheme_usual(k), inputs, large, shape);
      if (draw(b, s, shape, inputs, &x, &e)) {
        found = true;
        status = add_race(b, s, &x, error);
      } else
        op_sample_free(&x);
      if (!found) break;
    }
  if (!found)
    cli_note("%s: no shapes were found that a tactic on %s takes; give them: --shape NAME=DIMS", s->name,
             b->machine.device);
  return status;
}

/* ------------------------------------------------------------------ roofs */

static void find_roofs(bench *b) {
  hone_error e = {0};
  hone_roofs r;
  hone_device_roofs d;
  const char *device = cli_device_name(b->args);
  const double seconds = b->args->max_seconds > 0 ? b->args->max_seconds : 0;
  if (strcmp(device, "cpu") == 0) {
    if (cli_roofs(b->args->threads > 0 ? (uint32_t)b->args->threads : 0, false, seconds, &r, &e) != HONE_OK)
      return;
    b->roofs = (op_roofs){.flops = r.f32_gflops * 1e9,
                          .bytes = {r.l2_gbs * 1e9, r.l3_gbs * 1e9, r.dram_gbs * 1e9},
                          .l2_bytes = (double)r.l2_bytes * r.threads,
                          .l3_bytes = (double)r.l3_bytes,
                          .allocates = true};
    return;
  }
  if (cli_device_roofs(device, false, seconds, &d, &e) != HONE_OK) return;
  for (uint32_t i = 0; i < d.count; i++) {
    if (strcmp(d.roof[i].name, "DRAM") == 0) b->roofs.bytes[2] = d.roof[i].gbs * 1e9;
    if (strcmp(d.roof[i].name, "f32") == 0) b->roofs.flops = d.roof[i].gflops * 1e9;
  }
}

/* ------------------------------------------------------------------ the report */

/* What dispatch_us is measured against. */
static const char *beside(const bench *b) {
  return strcmp(b->machine.device, "cpu") == 0 ? "the tactic's own function"
                                               : "the driver's launches, outside of captured work";
}

static hone_status write_markdown(const bench *b, hone_error *error) {
  cli_file file = {0};
  hone_status status = cli_file_open(&file, b->args->markdown, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < b->n; i++) {
    if (i) cli_put(file.stream, "\n");
    cli_print_to(file.stream, "### %s, %s\n\n", b->race[i]->subject->name, b->race[i]->shape);
    op_lines_markdown(file.stream, b->race[i], &b->roofs);
  }
  if (isfinite(b->dispatch_us))
    cli_print_to(file.stream, "\nA step in a plan costs %.2f us beside %s.\n", b->dispatch_us, beside(b));
  return cli_file_commit(&file, error);
}

static int report(const bench *b, uint32_t warmups, uint32_t runs) {
  hone_error e = {0};
  if (b->args->json) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < b->n; i++) json_array_append_new(list, op_lines_json(b->race[i], &b->roofs));
    json_t *doc = json_pack("{s:i, s:i, s:s, s:i, s:o, s:o}", "runs", (int)runs, "warmups", (int)warmups,
                            "device", cli_device_name(b->args), "threads", (int)b->machine.threads,
                            "dispatch_us", cli_real(b->dispatch_us), "races", list);
    cli_stamp(doc, b->args, "");
    const int code = cli_print_json(doc);
    if (code) return code;
  } else {
    for (uint32_t i = 0; i < b->n; i++) op_lines_print(b->race[i], &b->roofs);
    if (isfinite(b->dispatch_us))
      cli_print("a step in a plan costs %.2f us beside %s\n", b->dispatch_us, beside(b));
  }
  if (b->args->markdown && write_markdown(b, &e) != HONE_OK) return cli_report(&e);
  return cli_flush();
}

static hone_status measure(bench *b, uint32_t warmups, uint32_t runs, hone_error *error) {
  const uint32_t threads = b->args->threads > 0 ? (uint32_t)b->args->threads : 0;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < b->subjects.n && status == HONE_OK; i++)
    status = add_races(b, &b->subjects.list[i], error);
  for (uint32_t i = 0; i < b->n && !isfinite(b->dispatch_us) && status == HONE_OK; i++)
    b->dispatch_us = op_dispatch(b->race[i]->subject, &b->race[i]->sample, b->args->device);
  /* What they replace is what hone does where they are not there; plans that are made keep theirs. */
  hone_plugins_unload();
  for (uint32_t i = 0; i < b->n && status == HONE_OK; i++)
    status = op_race_nodes(b->race[i], b->args->device, threads, error);
  if (status == HONE_OK) find_roofs(b);
  for (uint32_t i = 0; i < b->n && status == HONE_OK && !cli_interrupted(); i++) {
    cli_progress("hone op bench", i, b->n);
    status = op_race_run(b->race[i], warmups, runs, error);
  }
  cli_progress_end();
  return status;
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  const size_t n = args->rest.n;
  hone_error e = {0};
  bench b = {.args = args, .dispatch_us = NAN};
  hone_engine *engine = NULL;
  const uint32_t runs = args->runs > 0 ? (uint32_t)args->runs : RUNS;
  const uint32_t warmups = args->warmup >= 0 ? (uint32_t)args->warmup : WARMUPS;
  const hone_engine_options eo = {.device = args->device,
                                  .threads = args->threads > 0 ? (uint32_t)args->threads : 0};
  int code = 0;
  hone_status status = op_subjects_find(rest, n, &b.subjects, &e);
  if (status == HONE_OK && args->shapes.n && b.subjects.n > 1)
    code = cli_error(HONE_ERROR_USAGE, "--shape belongs to one operator; hone op bench NAME --shape ...");
  if (status == HONE_OK && !code) status = hone_engine_create(&eo, &engine, &e);
  if (engine) b.machine = *hone_engine_machine(engine);
  if (status == HONE_OK && !code) status = measure(&b, warmups, runs, &e);
  if (status != HONE_OK)
    code = cli_report(&e);
  else if (!code)
    code = cli_interrupted() ? cli_end_interrupted(NULL) : report(&b, warmups, runs);
  for (uint32_t i = 0; i < b.n; i++) {
    op_race_free(b.race[i]);
    free(b.race[i]);
  }
  free(b.race);
  free(b.subjects.list);
  hone_engine_destroy(engine);
  return code;
}

static const cli_option options[] = {
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "measured runs (50)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (3)"},
    {0, "shape", CLI_LIST, CLI_FIELD(shapes), "NAME=DIMS", "shape of an input (x=1x64x56x56)"},
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},
    {0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "for measuring what the machine can do"},
    {0, "markdown", CLI_TEXT, CLI_FIELD(markdown), "FILE", "the table as Markdown"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_op_bench = {
    "op bench", "[NAME...]", "its tactics against each other, what they replace, and the machine",
    NULL,       options,     0,
    15,         run};
