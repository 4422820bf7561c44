#include "advice/live.h"

#include "api/api.h"
#include "base/os.h"
#include "runtime/context.h"

#include <hone/data.h>
#include <hone/improve.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARMUPS = 3, FEWEST = 24, MOST = 600 };

typedef struct session {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_data *data;
  const hone_tensor **feeds;
} session;

static double seconds(void) { return (double)hn_now_ns() * 1e-9; }

static void die(const char *what, const hone_error *error) {
  printf("%s: %s: %s\n", what, error->where, error->what);
  fflush(stdout);
  abort();
}

/* ---- neighbours */

static pid_t burn(size_t processes) {
  pid_t group = 0;
  for (size_t i = 0; i < processes; i++) {
    pid_t child = fork();
    if (child == 0) {
      setpgid(0, group);
      for (volatile unsigned n = 0;; n++) {
      }
    }
    if (child > 0) {
      setpgid(child, group);
      if (!group) group = child;
    }
  }
  return group;
}

static void stop(pid_t group) {
  if (group <= 0) return;
  kill(-group, SIGKILL);
  while (waitpid(-group, NULL, 0) > 0) {
  }
}

double live_wait(double most) {
  const double start = seconds();
  while (seconds() - start < most) {
    const double t = seconds(), busy = hn_cpu_busy_seconds();
    hn_sleep_ms(250);
    if (busy < 0 || (hn_cpu_busy_seconds() - busy) / (seconds() - t) < 0.15) break;
  }
  return seconds() - start;
}

/* ---- habits */

/* Of the kernel that has one; one network is under the knife at a time. */
static struct {
  hone_tactic_desc slow;
  const hone_tactic_desc *usual;
  const hone_step *step;
  double hesitates_s, times;
  unsigned runs;
} kernel;

static void spin(double for_seconds) {
  const double end = seconds() + for_seconds;
  while (seconds() < end) {
  }
}

static hone_status run_slowly(const hone_step_run *run, hone_error *error) {
  const double start = seconds();
  hone_status status = kernel.usual->run(run, error);
  if (run->step != kernel.step) return status;
  const double took = seconds() - start;
  kernel.runs++;
  if (kernel.hesitates_s > 0 && kernel.runs % 4 == 0) spin(kernel.hesitates_s);
  if (kernel.times > 1) spin((kernel.times - 1) * took);
  return status;
}

typedef struct nap {
  const hn_step *after;
  double seconds;
} nap;

static void sleep_after(void *arg, const hn_step *step, hone_tensor *const *out) {
  const nap *n = arg;
  (void)out;
  if (step == n->after) usleep((useconds_t)(1e6 * n->seconds));
}

/* A step that a tactic does, of those that take some time by the cost model. */
static hn_step *any_kernel(hn_plan *plan, lab *chance) {
  double all = 0;
  for (size_t i = 0; i < plan->steps.len; i++) all += plan->steps.ptr[i].predicted_s;
  for (int tries = 0; tries < 500; tries++) {
    hn_step *s = &plan->steps.ptr[lab_pick(chance, 0, plan->steps.len)];
    if (s->tactic && s->predicted_s >= 0.02 * all) return s;
  }
  for (size_t i = 0; i < plan->steps.len; i++)
    if (plan->steps.ptr[i].tactic) return &plan->steps.ptr[i];
  return NULL;
}

static void plant_kernel(const live *how, lab *chance, hn_plan *plan, double run_s) {
  if (how->hesitates <= 0 && how->slow <= 1) return;
  hn_step *s = any_kernel(plan, chance);
  if (!s) abort();
  memset(&kernel, 0, sizeof kernel);
  kernel.usual = s->tactic;
  kernel.slow = *s->tactic;
  kernel.slow.run = run_slowly;
  kernel.step = &s->desc;
  kernel.hesitates_s = how->hesitates * run_s;
  kernel.times = how->slow;
  s->tactic = &kernel.slow;
}

/* ---- the application's stages */

static volatile float sink;

/* Normalises a picture, over and over. */
static void stage(session *s, hone_span_kind kind, double for_seconds) {
  enum { PIXELS = 3 * 128 * 128 };
  static unsigned char picture[PIXELS];
  static float out[PIXELS];
  hone_error error = {0};
  if (for_seconds <= 0) return;
  if (hone_context_stage_begin(s->context, kind, &error) != HONE_OK) die("stage", &error);
  for (const double end = seconds() + for_seconds; seconds() < end;) {
    for (int i = 0; i < PIXELS; i++) out[i] = ((float)picture[i] / 255 - 0.45f) / 0.225f;
    sink = out[PIXELS / 2];
  }
  hone_context_stage_end(s->context, &error);
}

/* ---- the run */

static void open_session(session *s, const live *how, lab *chance, hone_model *model) {
  hone_error error = {0};
  *s = (session){0};
  const hone_plan_options o = {.level = -1, .precision = how->precision, .batch = 1};
  if (hone_engine_create(&(hone_engine_options){.threads = how->threads, .tuning = "off"}, &s->engine,
                         &error) != HONE_OK ||
      hone_plan_create(s->engine, model, &o, &s->plan, &error) != HONE_OK)
    die("plan", &error);
  const uint32_t n = hone_plan_inputs(s->plan);
  s->data = calloc(n + 1, sizeof *s->data);
  s->feeds = calloc(n + 1, sizeof *s->feeds);
  if (!s->data || !s->feeds) abort();
  for (uint32_t i = 0; i < n; i++) {
    if (hone_data_random(hone_plan_input_name(s->plan, i), hone_plan_input_desc(s->plan, i), 0,
                         1 + lab_pick(chance, 0, 1000), &s->data[i], &error) != HONE_OK)
      die("inputs", &error);
    s->feeds[i] = &s->data[i].tensor;
  }
  if (hone_context_create(s->plan, &s->context, &error) != HONE_OK) die("context", &error);
}

static void close_session(session *s) {
  hone_context_destroy(s->context);
  for (uint32_t i = 0; i < hone_plan_inputs(s->plan); i++) hone_data_free(&s->data[i]);
  hone_plan_destroy(s->plan);
  hone_engine_destroy(s->engine);
  free(s->data);
  free(s->feeds);
}

static double run_once(session *s, const live *how, double usual) {
  hone_error error = {0};
  const double start = seconds();
  stage(s, HONE_SPAN_PRE, how->pre * usual);
  if (hone_context_run(s->context, s->feeds, NULL, &error) != HONE_OK) die("run", &error);
  stage(s, HONE_SPAN_POST, how->post * usual);
  return seconds() - start;
}

/* What cli/reports/profiling.c adds to a record: the machine's roofs. */
static void add_roofs(hone_facts *facts, uint32_t threads) {
  hone_roofs r;
  hone_error error = {0};
  if (hone_roofs_measure(threads, NULL, &r, &error) != HONE_OK) die("roofs", &error);
  const hone_roof rows[] = {{"f32", (int32_t)r.threads, r.f32_gflops, 0, 0},
                            {"bf16", (int32_t)r.threads, r.bf16_gflops, 0, 0},
                            {"int8", (int32_t)r.threads, r.int8_gops, 0, 0},
                            {"L1", (int32_t)r.threads, 0, r.l1_gbs, r.l1_bytes},
                            {"L2", (int32_t)r.threads, 0, r.l2_gbs, r.l2_bytes},
                            {"L3", (int32_t)r.threads, 0, r.l3_gbs, r.l3_bytes},
                            {"DRAM", (int32_t)r.threads, 0, r.dram_gbs, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].gflops > 0 || rows[i].gbs > 0) hone_facts_add_roof(facts, &rows[i]);
}

hone_facts *live_profile(const live *how, lab *chance, hone_model *model) {
  session s;
  hone_error error = {0};
  open_session(&s, how, chance, model);
  double usual = INFINITY;
  for (int i = 0; i < WARMUPS; i++) usual = fmin(usual, run_once(&s, &(live){0}, 0));
  hn_plan *plan = (hn_plan *)(uintptr_t)hn_api_plan(s.plan);
  hn_context *context = (hn_context *)(uintptr_t)hn_api_context(s.context);
  plant_kernel(how, chance, plan, usual);
  nap n = {&plan->steps.ptr[lab_pick(chance, 0, plan->steps.len > 1 ? plan->steps.len - 1 : 1)],
           how->sleep * usual};
  if (how->sleep > 0) hn_context_watch(context, sleep_after, &n, false);
  pid_t neighbours = burn(how->neighbours);
  run_once(&s, how, usual);
  hone_facts *facts = hone_facts_create();
  if (!facts || hone_context_record(s.context, facts, MOST, &error) != HONE_OK) die("record", &error);
  const double start = seconds(), enough = how->seconds > 0 ? how->seconds : 0.4;
  for (int i = 0; i < MOST && (i < FEWEST || seconds() - start < enough); i++) run_once(&s, how, usual);
  if (hone_context_record_end(s.context, &error) != HONE_OK) die("record", &error);
  stop(neighbours);
  const hone_machine *machine = hone_engine_machine(s.engine);
  add_roofs(facts, machine->threads);
  hn_context_watch(context, NULL, NULL, false);
  close_session(&s);
  hone_model_release(model);
  return facts;
}
