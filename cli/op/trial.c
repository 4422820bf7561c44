/* See trial.h. */
#include "cli/op/trial.h"

#include "cli/op/answer.h"
#include "cli/op/buffer.h"
#include "cli/op/device.h"
#include "cli/op/pool.h"
#include "cli/op/step.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 60, PROBES = 8, ALIGN = 64 };

/* How a step is run. */
typedef struct manner {
  op_place in, out;
  op_order order;
  bool alone; /* on one thread, whatever the machine has */
  bool other; /* the second data */
  const char *what;
} manner;

static const manner manners[] = {
    {OP_AT_END, OP_AT_END, OP_FORWARD, true, false, "run 1, one thread, tensors end before a guard page"},
    {OP_ODD, OP_AT_START, OP_BACKWARD, false, false,
     "run 2, tasks from last to first, inputs aligned to their elements"},
    {OP_AT_START, OP_AT_END, OP_SHUFFLED, false, true, "run 3, other values, tasks in any order"},
    {OP_AT_END, OP_AT_START, OP_THREADS, false, true, "run 4, on threads"},
};
enum { MANNERS = sizeof manners / sizeof *manners };

/* One case. */
typedef struct trial {
  const op_job *job;
  op_board *board;
  uint32_t at;
  op_random random;
  op_sample sample;
  op_step step;
  hone_machine machine;
  op_answer answer[2];
  hone_tactic_need need;
  op_buffer blob;
} trial;

static void stage(op_board *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void stage(op_board *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(b->stage, sizeof b->stage, format, args);
  va_end(args);
  b->beats++;
}

static void failed(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void failed(trial *t, const char *format, ...) {
  char what[300];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  op_row_failed(&t->board->row, t->at, t->board->elements, t->sample.text, "%s: %s", t->board->stage, what);
}

static void said(trial *t, const hone_error *e) {
  char text[600];
  (void)hone_error_format(e, text, sizeof text);
  failed(t, "it says \"%.240s\"", text);
}

/* ------------------------------------------------------------------ drawing */

/* Fills sample and step; false: not taken, and why is noted. */
static bool draw(trial *t, op_wish *w) {
  hone_error e;
  hone_reason why = {""};
  const hone_math math = op_below(&t->random, 2) ? HONE_MATH_F32 : HONE_MATH_STRICT;
  stage(t->board, "infer");
  if (!op_sample_draw(&t->random, w, &t->sample, &e)) {
    char text[160];
    snprintf(text, sizeof text, "infer: %.150s", e.what);
    op_row_refused(&t->board->row, text);
    return false;
  }
  memcpy(t->board->text, t->sample.text, sizeof t->board->text);
  t->board->elements = t->sample.elements;
  if (t->job->layout == HONE_LAYOUT_CHANNELS_LAST && t->sample.in[0].desc.rank < 3) return false;
  if (!op_step_make(&t->step, &t->sample, t->job->layout, math)) return false;
  stage(t->board, "accepts");
  if (t->job->tactic->accepts(&t->step.step, &t->machine, &why)) return true;
  op_row_refused(&t->board->row, *why.text ? why.text : "it does not say why");
  return false;
}

static void let_go(trial *t) {
  op_step_free(&t->step);
  op_sample_free(&t->sample);
}

static op_wish wish_of(const op_job *j) {
  return (op_wish){.op = j->op, .dtype = j->dtype, .given = j->given, .n_given = j->n_given};
}

/* Given shapes that cannot be varied to small ones may be this much work. */
#define WORK_OF_GIVEN 5e7

static void probe(const op_job *j, op_known *known, op_board *board) {
  const uint32_t n = j->given ? 1 : op_schemes();
  for (uint32_t k = 0; k < n && known->n < sizeof known->scheme / sizeof *known->scheme; k++) {
    bool taken = false;
    for (int i = 0; i < PROBES && !taken; i++) {
      trial t = {.job = j,
                 .board = board,
                 .machine = *j->machine,
                 .random = op_stream(k * PROBES + (uint64_t)i, "probe")};
      op_wish w = wish_of(j);
      w.scheme = k;
      w.most = known->most;
      w.exact = i < 2 && j->given;
      taken = draw(&t, &w);
      let_go(&t);
    }
    if (taken) known->scheme[known->n++] = k;
  }
}

void op_trial_probe(const op_job *j, op_known *known, op_board *board) {
  *known = (op_known){0};
  probe(j, known, board);
  if (known->n || !j->given) return;
  known->most = WORK_OF_GIVEN;
  probe(j, known, board);
}

static op_values values_of(uint32_t at) {
  static const op_values turn[] = {OP_NORMAL,  OP_SPECIAL, OP_NORMAL,  OP_DENORMAL, OP_WIDE,
                                   OP_EXTREME, OP_SMALL,   OP_SPECIAL, OP_NORMAL,   OP_WIDE};
  return turn[at % (sizeof turn / sizeof *turn)];
}

static bool draw_any(trial *t, const op_known *known) {
  static const uint32_t threads[] = {1, 2, 3, 4, 8};
  for (int i = 0; i < DRAWS; i++) {
    op_wish w = wish_of(t->job);
    w.scheme = known->scheme[op_below(&t->random, known->n)];
    w.most = known->most;
    w.values = values_of(t->at);
    t->machine = *t->job->machine;
    t->machine.threads = threads[op_below(&t->random, sizeof threads / sizeof *threads)];
    if (draw(t, &w)) return true;
    let_go(t);
  }
  return false;
}

/* ------------------------------------------------------------------ running */

static bool memory_short(trial *t) {
  failed(t, "there is no memory for the test");
  return false;
}

static bool prepare(trial *t) {
  const hone_tactic_desc *d = t->job->tactic;
  hone_error e = {0};
  stage(t->board, "cost");
  const double seconds = d->cost ? d->cost(&t->step.step, &t->machine) : 0;
  if (!(seconds >= 0)) return failed(t, "it predicts %g seconds", seconds), false;
  stage(t->board, "need");
  if (d->need && d->need(&t->step.step, &t->machine, &t->need, &e) != HONE_OK) return said(t, &e), false;
  if (!t->need.blob_bytes) return true;
  if (!op_buffer_make(&t->blob, "the blob", t->need.blob_bytes, ALIGN, OP_AT_END, 77)) return memory_short(t);
  memset(t->blob.data, 0, t->need.blob_bytes); /* as plans hand it out */
  stage(t->board, "prepack");
  if (d->prepack && d->prepack(&t->step.step, &t->machine, t->blob.data, &e) != HONE_OK)
    return said(t, &e), false;
  char why[200];
  if (!op_buffer_sound(&t->blob, why, sizeof why)) return failed(t, "%s", why), false;
  op_buffer_lock(&t->blob);
  for (uint32_t i = 0; i < t->sample.n_in; i++)
    if (t->need.packed >> i & 1 && t->step.constant[i].map) op_buffer_forbid(&t->step.constant[i]);
  return true;
}

/* The memory of one run. */
typedef struct memory {
  op_buffer in[OP_MOST], out[OP_MOST], workspace;
  const void *pin[OP_MOST];
  void *pout[OP_MOST];
} memory;

static bool lay_memory(const trial *t, const manner *m, uint8_t garbage, memory *x) {
  char name[40];
  const op_sample *s = &t->sample;
  for (uint32_t i = 0; i < s->n_in; i++) {
    const hone_tensor_desc *d = &t->step.in[i].desc;
    x->pin[i] = t->step.in[i].constant;
    if (!d->dtype || x->pin[i]) continue;
    if (s->twins && i == 1) {
      x->pin[i] = x->pin[0];
      continue;
    }
    snprintf(name, sizeof name, "input %u", i);
    if (!op_buffer_make(&x->in[i], name, (size_t)hone_desc_bytes(d), hone_dtype_size(d->dtype), m->in,
                        garbage))
      return false;
    op_lay_out(d, s->in[i].data, x->in[i].data);
    op_buffer_lock(&x->in[i]);
    x->pin[i] = x->in[i].data;
  }
  for (uint32_t i = 0; i < s->n_out; i++) {
    const hone_tensor_desc *d = &t->step.out[i].desc;
    if (!d->dtype) continue;
    snprintf(name, sizeof name, "output %u", i);
    if (!op_buffer_make(&x->out[i], name, (size_t)hone_desc_bytes(d), ALIGN, m->out, garbage)) return false;
    x->pout[i] = x->out[i].data;
  }
  return !t->need.workspace_bytes ||
         op_buffer_make(&x->workspace, "the workspace", t->need.workspace_bytes, ALIGN, m->out, garbage);
}

static void free_memory(memory *x) {
  for (int i = 0; i < OP_MOST; i++) {
    if (x->in[i].map) op_buffer_free(&x->in[i]);
    if (x->out[i].map) op_buffer_free(&x->out[i]);
  }
  if (x->workspace.map) op_buffer_free(&x->workspace);
}

static bool sound(trial *t, const memory *x) {
  char why[200];
  for (int i = 0; i < OP_MOST; i++)
    if (x->out[i].map && !op_buffer_sound(&x->out[i], why, sizeof why)) return failed(t, "%s", why), false;
  if (x->workspace.map && !op_buffer_sound(&x->workspace, why, sizeof why))
    return failed(t, "%s", why), false;
  return true;
}

static bool right(trial *t, const memory *x, bool other) {
  char why[280];
  for (uint32_t i = 0; i < t->sample.n_out; i++) {
    const hone_tensor_desc *d = &t->step.out[i].desc;
    if (!d->dtype) continue;
    void *got = malloc((size_t)hone_desc_count(d) * hone_dtype_size(d->dtype) + 1);
    if (!got) return memory_short(t);
    op_take_out(d, x->out[i].data, got);
    const bool good =
        op_answer_right(&t->sample, &t->answer[other], i, got, &t->board->row.worst, why, sizeof why);
    free(got);
    if (!good) return failed(t, "%s", why), false;
  }
  return true;
}

static bool run(trial *t, const manner *m, uint8_t garbage) {
  memory x = {0};
  hone_error e = {0};
  op_pool pool = {.order = m->order,
                  .threads = m->alone ? 1 : t->machine.threads,
                  .random = t->random,
                  .workspace = t->need.workspace_bytes ? &x.workspace : NULL};
  stage(t->board, "%s", m->what);
  bool good = lay_memory(t, m, garbage, &x) || memory_short(t);
  const hone_step_run r = {.step = &t->step.step,
                           .in = x.pin,
                           .out = x.pout,
                           .blob = t->blob.data,
                           .workspace = x.workspace.data,
                           .threads = pool.threads,
                           .parallel = op_pool_parallel,
                           .pool = &pool};
  if (good && t->job->tactic->run(&r, &e) != HONE_OK) said(t, &e), good = false;
  t->board->beats++;
  good = good && sound(t, &x);
  if (good && pool.shared)
    failed(t, "tasks on different threads write the same bytes of the workspace"), good = false;
  good = good && right(t, &x, m->other);
  free_memory(&x);
  return good;
}

/* ------------------------------------------------------------------ on an accelerator */

static bool right_there(trial *t, const op_device_run *r, bool other) {
  char why[280];
  for (uint32_t i = 0; i < t->sample.n_out; i++) {
    if (!t->sample.out[i].dtype) continue;
    const hone_tensor *y = hone_context_output(r->context, i);
    if (!y || y->desc.dtype != t->sample.out[i].dtype || !hone_desc_same_dims(&y->desc, &t->sample.out[i]))
      return failed(t, "output %u has another type or shape than inference told", i), false;
    void *got = malloc((size_t)hone_desc_count(&y->desc) * hone_dtype_size(y->desc.dtype) + 1);
    if (!got) return memory_short(t);
    op_take_out(&y->desc, y->data, got);
    const bool good =
        op_answer_right(&t->sample, &t->answer[other], i, got, &t->board->row.worst, why, sizeof why);
    free(got);
    if (!good) return failed(t, "%s", why), false;
  }
  return true;
}

static bool answer(trial *t, bool other);

/* False: the plan does not take the tactic, and why is noted. */
static bool run_there(trial *t) {
  static const char *const what[] = {"run 1", "run 2, other values", "run 3, as run 2"};
  op_device_run r;
  hone_error e = {0};
  stage(t->board, "the plan");
  const hone_status status = op_device_make(t->job->engine, &t->sample, t->job->tactic->name, &r, &e);
  if (status == HONE_ERROR_UNSUPPORTED) op_row_refused(&t->board->row, e.what);
  if (status != HONE_OK && status != HONE_ERROR_UNSUPPORTED) said(t, &e);
  bool good = status == HONE_OK;
  for (int i = 0; i < 3 && good; i++) {
    if (i == 1) op_sample_refill(&t->random, &t->sample);
    good = i == 2 || answer(t, i > 0);
    stage(t->board, "%s", what[i]);
    if (good && hone_context_run(r.context, r.in, NULL, &e) != HONE_OK) said(t, &e), good = false;
    good = good && right_there(t, &r, i > 0);
  }
  op_device_free(&r);
  return status != HONE_ERROR_UNSUPPORTED;
}

static bool answer(trial *t, bool other) {
  hone_error e = {0};
  stage(t->board, "the reference");
  if (op_answer_make(&t->sample, &t->random, &t->answer[other], &e) == HONE_OK) return true;
  said(t, &e);
  return false;
}

bool op_trial_case(const op_job *j, const op_known *known, uint32_t at, op_board *board) {
  char name[400];
  op_row kept = board->row; /* what was not taken on the way to a case is none of its business */
  snprintf(name, sizeof name, "%s/%s/%s/%d/%u", j->op->op_type, j->tactic->name, hone_dtype_name(j->dtype),
           (int)j->layout, at);
  trial *t = calloc(1, sizeof *t);
  if (!t) return false;
  *t = (trial){.job = j, .board = board, .at = at, .random = op_stream(j->seed, name)};
  bool found = known->n && draw_any(t, known), drawn = found;
  if (found) board->row = kept;
  if (found && j->engine) {
    for (int i = 0; i < PROBES && drawn && !(found = run_there(t)); i++) {
      let_go(t);
      drawn = draw_any(t, known);
    }
  } else if (found && prepare(t) && answer(t, false)) {
    bool good = true;
    for (int i = 0; i < MANNERS && good; i++) {
      if (manners[i].other && !manners[i - 1].other) {
        op_sample_refill(&t->random, &t->sample);
        good = answer(t, true);
      }
      good = good && run(t, &manners[i], (uint8_t)(op_next(&t->random) | 1));
    }
  }
  board->row.cases += found;
  op_answer_free(&t->answer[0]);
  op_answer_free(&t->answer[1]);
  if (t->blob.map) op_buffer_free(&t->blob);
  if (drawn) let_go(t);
  free(t);
  return found;
}
