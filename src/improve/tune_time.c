#include "improve/tune.h"
#include "improve/tune_answers.h"

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/quantile.h"
#include "base/rng.h"
#include "base/strided.h"
#include "optimize/plan/plan.h"
#include "optimize/step/denormals.h"
#include "optimize/step/tactics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_ROUNDS = 5, MOST_ROUNDS = HONE_TUNE_ROUNDS, WARM_RUNS = 2, HOPELESS_ROUNDS = 2 };
#define HOPELESS 3.0      /* this much slower than the best after two rounds: measured enough */
#define SHORTEST_NS 20000 /* a sample of warm runs takes at least this long */
/* On accelerators runs are launched together, captured: one by one the host would be measured. */
#define SHORTEST_SEGMENT 200e-6 /* seconds */
enum { MOST_REPEATS = 50 };
/* Bytes that copies of the weights of all trials of a step may take together. */
#define MOST_COPIED (4ull << 30)

/* Memory of one trial. */
typedef struct rig_trial {
  hone_tactic_need need;
  char *blob;
  size_t copy;         /* bytes from one copy of the weights to the next, and */
  uint32_t copies;     /* how many of them runs in a row go through */
  uint32_t repeats;    /* runs in one sample */
  hn_segment *segment; /* of accelerators: all of them */
  double sample[MOST_ROUNDS];
  double reading[MOST_ROUNDS]; /* of the output afterwards; only where the trials' threads differ */
} rig_trial;

/* A step with memory of its own: inputs with random values, outputs, workspace. */
typedef struct rig {
  const hn_plan *plan;
  hone_step step;          /* with constants that are here: the plan may have let go of what it packed */
  hone_step_tensor *input; /* of step */
  const void **in;
  void **out, **master, **owned; /* by input: what in[] is filled from, and the device memory behind it */
  void *workspace;
  hn_queue *queue; /* of accelerators */
  hn_event *begin, *end;
  uint64_t other_bytes;
  uint64_t weights;  /* of accelerators: bytes of them that pass between two runs of the step; 0: they stay */
  bool threads_vary; /* between trials: where the output lies then matters */
  rig_trial *trial;
  uint32_t n;
} rig;

/* ------------------------------------------------------------------ values */

static float value(hn_rng *rng) { return (float)(2 * hn_rng_unit(rng) - 1); }

static void fill(void *data, const hone_tensor_desc *d, int64_t bytes, uint64_t below, hn_rng *rng) {
  const size_t size = hone_dtype_size(d->dtype);
  const int64_t n = size ? bytes / (int64_t)size : 0;
  for (int64_t i = 0; i < n; i++) {
    switch (d->dtype) {
    case HONE_DTYPE_F32: ((float *)data)[i] = value(rng); break;
    case HONE_DTYPE_F64: ((double *)data)[i] = (double)value(rng); break;
    case HONE_DTYPE_F16: ((uint16_t *)data)[i] = hn_f32_to_f16(value(rng)); break;
    case HONE_DTYPE_BF16: ((uint16_t *)data)[i] = hn_f32_to_bf16(value(rng)); break;
    case HONE_DTYPE_I64: ((int64_t *)data)[i] = (int64_t)hn_rng_below(rng, below); break;
    case HONE_DTYPE_I32: ((int32_t *)data)[i] = (int32_t)hn_rng_below(rng, below); break;
    case HONE_DTYPE_BOOL: ((uint8_t *)data)[i] = hn_rng_u64(rng) & 1; break;
    case HONE_DTYPE_U8:
    case HONE_DTYPE_I8: ((uint8_t *)data)[i] = (uint8_t)hn_rng_u64(rng); break;
    default: memset((char *)data + (size_t)i * size, 0, size);
    }
  }
}

/* Integers may be indices into the first input: below its smallest dimension they are always valid. */
static uint64_t index_bound(const hone_step *s) {
  int64_t least = 100;
  const hone_tensor_desc *d = &s->input[0].desc;
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] < least) least = d->dim[i];
  return least > 0 ? (uint64_t)least : 1;
}

/* ------------------------------------------------------------------ memory */

/* Constants are whole; others may be parts of what a Concat gathers (elide.c). */
static int64_t memory_of(const hone_step_tensor *t) {
  return t->constant ? hone_desc_bytes(&t->desc) : hn_strided_memory(&t->desc);
}

static void rig_free(rig *r) {
  const hn_backend *b = r->plan->backend;
  const hone_step *s = &r->step;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if (r->owned && r->owned[i]) b->free(r->plan->device, r->owned[i]);
    if (r->master) hn_free(r->master[i]);
  }
  for (uint32_t i = 0; r->out && i < s->n_outputs; i++)
    if (r->out[i]) b->free(r->plan->device, r->out[i]);
  for (uint32_t i = 0; r->trial && i < r->n; i++) {
    if (r->trial[i].blob) b->free(r->plan->device, r->trial[i].blob);
    if (r->trial[i].segment) b->segment_free(r->plan->device, r->trial[i].segment);
  }
  if (r->begin) b->event_close(r->plan->device, r->begin);
  if (r->end) b->event_close(r->plan->device, r->end);
  if (r->queue) b->queue_close(r->plan->device, r->queue);
  if (r->workspace) b->free(r->plan->device, r->workspace);
  hn_free((void *)r->in);
  hn_free(r->input);
  hn_free(r->out);
  hn_free(r->master);
  hn_free(r->owned);
  hn_free(r->trial);
}

static hone_status copy_inputs(const rig *r, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  const hone_step *s = &r->step;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < s->n_inputs && status == HONE_OK; i++) {
    if (!r->owned[i]) continue;
    const size_t bytes = (size_t)memory_of(&s->input[i]);
    if (b->stage)
      b->stage(r->plan->device, r->owned[i], r->master[i], bytes);
    else
      status = b->copy(r->plan->device, r->queue, r->owned[i], r->master[i], bytes, error);
  }
  return status == HONE_OK && r->queue ? b->sync(r->plan->device, r->queue, error) : status;
}

/* What a step leaves in one processor's cache costs the next step: reading it counts. */
static void consume(const rig *r) {
  const hn_backend *b = r->plan->backend;
  const hone_step *s = &r->step;
  for (uint32_t i = 0; b->consume && i < s->n_outputs; i++)
    if (r->out[i]) b->consume(r->plan->device, r->out[i], (size_t)hone_desc_bytes(&s->output[i].desc));
}

/* Memory for input i, filled at random. What a run reads only once, when it is packed, needs no device
 * memory. */
static hone_status make_input(rig *r, uint32_t i, bool constant, uint64_t below, hn_rng *rng,
                              hone_error *error) {
  const hone_tensor_desc *d = &r->step.input[i].desc;
  const int64_t bytes = memory_of(&r->step.input[i]);
  r->master[i] = bytes >= 0 ? hn_aligned(HN_MEM_ALIGN, (size_t)bytes + 1) : NULL;
  const bool device = !constant || r->queue;
  if (device && bytes >= 0) r->owned[i] = r->plan->backend->alloc(r->plan->device, (size_t)bytes + 1);
  if (!r->master[i] || (device && !r->owned[i]))
    return hn_fail_memory(error, (unsigned long long)bytes, "tuning");
  if (constant && bytes <= HN_SMALL_CONSTANT)
    memcpy(r->master[i], r->step.input[i].constant, (size_t)bytes); /* what the step is */
  else
    fill(r->master[i], d, bytes, below, rng);
  if (constant) r->input[i].constant = r->master[i];
  r->in[i] = device ? r->owned[i] : r->master[i];
  return HONE_OK;
}

/* What lies between the elements of a part is read when answers are compared: it must say nothing. */
static hone_status clear(const rig *r, void *at, size_t bytes, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  void *zeros = hn_calloc(bytes, 1);
  if (!zeros) return hn_fail_memory(error, bytes, "tuning");
  hone_status status = b->copy(r->plan->device, r->queue, at, zeros, bytes, error);
  if (status == HONE_OK) status = b->sync(r->plan->device, r->queue, error);
  hn_free(zeros);
  return status;
}

static hone_status rig_tensors(rig *r, const hn_step *step, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  const hone_step *s = &r->step;
  hn_rng rng = {.state = 1};
  uint64_t below = step->desc.n_inputs ? index_bound(&step->desc) : 1;
  hone_status status = HONE_OK;
  r->step = step->desc;
  r->input = hn_calloc(s->n_inputs + 1, sizeof *r->input);
  r->in = hn_calloc(s->n_inputs + 1, sizeof *r->in);
  r->master = hn_calloc(s->n_inputs + 1, sizeof *r->master);
  r->owned = hn_calloc(s->n_inputs + 1, sizeof *r->owned);
  r->out = hn_calloc(s->n_outputs + 1, sizeof *r->out);
  if (!r->input || !r->in || !r->master || !r->owned || !r->out)
    return hn_fail_memory(error, s->n_inputs, "tuning");
  if (s->n_inputs) memcpy(r->input, step->desc.input, s->n_inputs * sizeof *r->input);
  r->step.input = r->input;
  for (uint32_t i = 0; i < s->n_inputs && status == HONE_OK; i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    if (d->dtype == HONE_DTYPE_NONE) continue;
    if (!r->queue && s->input[i].constant && hone_desc_bytes(d) <= HN_SMALL_CONSTANT)
      r->in[i] = s->input[i].constant;
    else
      status = make_input(r, i, s->input[i].constant != NULL, below, &rng, error);
  }
  for (uint32_t i = 0; i < s->n_outputs && status == HONE_OK; i++) {
    const hone_tensor_desc *d = &s->output[i].desc;
    if (d->dtype == HONE_DTYPE_NONE) continue;
    const int64_t bytes = memory_of(&s->output[i]);
    r->out[i] = bytes >= 0 ? b->alloc(r->plan->device, (size_t)bytes + 1) : NULL;
    if (!r->out[i])
      status = hn_fail_memory(error, (unsigned long long)bytes, "tuning");
    else if (bytes != hone_desc_bytes(d))
      status = clear(r, r->out[i], (size_t)bytes, error);
  }
  return status == HONE_OK ? copy_inputs(r, error) : status;
}

typedef struct packing {
  const rig *r;
  const hn_trial *trial;
  pthread_mutex_t lock; /* of the queue, and of what is below */
  hone_status status;
  hone_error error;
} packing;

/* Fills a trial's blob by way of the host's memory. */
static hone_status pack_away(packing *p, const hone_tactic_desc *t, const rig_trial *m, hone_error *error) {
  const rig *r = p->r;
  const hn_backend *b = r->plan->backend;
  void *here = hn_aligned(HN_MEM_ALIGN, m->need.blob_bytes);
  if (!here) return hn_fail_memory(error, m->need.blob_bytes, "tuning");
  hone_status status = hn_tactic_pack(t, &r->step, &r->plan->machine, here, m->need.blob_bytes, error);
  pthread_mutex_lock(&p->lock);
  if (status == HONE_OK)
    status = b->copy(r->plan->device, r->queue, m->blob, here, m->need.blob_bytes, error);
  for (uint32_t i = 1; i < m->copies && status == HONE_OK; i++)
    status = b->copy(r->plan->device, r->queue, m->blob + i * m->copy, m->blob, m->need.blob_bytes, error);
  if (status == HONE_OK) status = b->sync(r->plan->device, r->queue, error);
  pthread_mutex_unlock(&p->lock);
  hn_free(here);
  return status;
}

static void pack_one(void *arg, int64_t task, uint32_t thread) {
  packing *p = arg;
  const rig *r = p->r;
  const hone_tactic_desc *t = p->trial[task].tactic;
  const rig_trial *m = &r->trial[task];
  hone_error error = {.status = HONE_OK};
  (void)thread;
  if (!m->need.blob_bytes || !t->prepack) return;
  const hone_status status =
      r->queue ? pack_away(p, t, m, &error)
               : hn_tactic_pack(t, &r->step, &r->plan->machine, m->blob, m->need.blob_bytes, &error);
  if (status == HONE_OK) return;
  pthread_mutex_lock(&p->lock);
  if (p->status == HONE_OK) p->status = status, p->error = error;
  pthread_mutex_unlock(&p->lock);
}

static hone_status pack_all(const rig *r, const hn_trial *trial, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  packing p = {.r = r, .trial = trial};
  pthread_mutex_init(&p.lock, NULL);
  b->parallel(r->plan->device, r->n, pack_one, &p);
  pthread_mutex_destroy(&p.lock);
  if (p.status != HONE_OK && error) *error = p.error;
  return p.status;
}

/* Copies of weights that are read one after the other, so that each has left the last cache when its turn
 * comes again. */
static uint32_t copies_of(const rig *r, size_t bytes) {
  const uint64_t n = r->weights / bytes + 1, room = MOST_COPIED / ((uint64_t)bytes * r->n) + 1;
  const uint64_t most = room < MOST_REPEATS / 2 ? room : MOST_REPEATS / 2;
  return (uint32_t)(n < most ? n : most);
}

static hone_status rig_trials(rig *r, const hn_trial *trial, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  const hone_step *s = &r->step;
  size_t workspace = 0;
  r->trial = hn_calloc(r->n, sizeof *r->trial);
  if (!r->trial) return hn_fail_memory(error, r->n, "tuning");
  for (uint32_t i = 0; i < r->n; i++) {
    const hone_tactic_desc *t = trial[i].tactic;
    rig_trial *m = &r->trial[i];
    hone_status status = t->need ? t->need(s, &r->plan->machine, &m->need, error) : HONE_OK;
    if (status != HONE_OK) return status;
    if (m->need.workspace_bytes > workspace) workspace = m->need.workspace_bytes;
    if (!m->need.blob_bytes) continue;
    m->copy = hn_round_up(m->need.blob_bytes, HN_MEM_ALIGN * 4);
    m->copies = copies_of(r, m->copy);
    m->blob = b->alloc(r->plan->device, m->copy * m->copies);
    if (!m->blob && m->copies > 1) { /* there is little memory: they stay in the last cache */
      m->copies = 1;
      m->blob = b->alloc(r->plan->device, m->copy);
    }
    if (!m->blob) return hn_fail_memory(error, m->copy * m->copies, "tuning");
  }
  const hone_status status = pack_all(r, trial, error);
  if (status != HONE_OK || !workspace) return status;
  r->workspace = b->alloc(r->plan->device, workspace);
  return r->workspace ? HONE_OK : hn_fail_memory(error, workspace, "tuning");
}

/* ------------------------------------------------------------------ timing */

/* A kernel that fails takes the device's context with it: the error says which it was. */
static void blame(const rig *r, const hn_trial *t, hone_status status, hone_error *error) {
  if (status == HONE_OK || status == HONE_ERROR_CANCELLED) return;
  hn_error_where(error, "step '%s' by %s", r->step.name ? r->step.name : "", t->tactic->name);
  if (status == HONE_ERROR_DEVICE)
    hn_error_hint(error, "leave that kernel out with HONE_TACTICS=-%s; what was measured before is kept",
                  t->tactic->name);
}

/* number: of the runs in a row. Each copy of the weights is read twice: in a network some are still in the
 * last cache, which forgets the oldest first only roughly. */
static hone_step_run run_of(const rig *r, const hn_trial *t, const rig_trial *m, uint32_t number) {
  return (hone_step_run){.step = &r->step,
                         .in = r->in,
                         .out = r->out,
                         .blob = m->blob ? m->blob + number / 2 % m->copies * m->copy : NULL,
                         .workspace = r->workspace,
                         .threads = t->threads,
                         .flush = hn_step_flushes(&r->step)};
}

static hone_status run_once(const rig *r, const hn_trial *t, const rig_trial *m, uint32_t number,
                            hone_error *error) {
  hone_step_run run = run_of(r, t, m, number);
  return r->plan->backend->launch(r->plan->device, r->queue, t->tactic, &run, error);
}

/* ---- accelerators */

static hone_status sample_segment(const rig *r, rig_trial *m, double *seconds, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  hn_device *d = r->plan->device;
  hone_status status = b->event_record(d, r->queue, r->begin, error);
  if (status == HONE_OK) status = b->segment_launch(d, r->queue, m->segment, error);
  if (status == HONE_OK) status = b->event_record(d, r->queue, r->end, error);
  if (status == HONE_OK) status = b->sync(d, r->queue, error);
  if (status == HONE_OK) status = b->event_seconds(d, r->begin, r->end, seconds, error);
  return status;
}

static hone_status capture(const rig *r, const hn_trial *t, rig_trial *m, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  hone_error other = {0};
  if (m->segment) b->segment_free(r->plan->device, m->segment);
  m->segment = NULL;
  hone_status status = b->capture_begin(r->plan->device, r->queue, error);
  if (status != HONE_OK) return status;
  for (uint32_t i = 0; i < m->repeats && status == HONE_OK; i++) status = run_once(r, t, m, i, error);
  hone_status ended =
      b->capture_end(r->plan->device, r->queue, &m->segment, status == HONE_OK ? error : &other);
  return status == HONE_OK ? ended : status;
}

typedef struct preparing {
  const hn_plan *plan;
  const hn_ready *list;
  uint32_t n, at, trial; /* the next trial: of list[at] */
  bool (*stop)(void *arg);
  void *arg;
  bool stopped;
  pthread_mutex_t lock;
  hone_status status;
  hone_error error;
} preparing;

/* The next step and trial; false: none, one has failed, or it is to stop, which the calling thread asks. */
static bool take_trial(preparing *j, uint32_t thread, const hn_ready **step, const hn_trial **trial) {
  const bool stops = thread == 0 && j->stop && j->stop(j->arg);
  pthread_mutex_lock(&j->lock);
  j->stopped = j->stopped || stops;
  while (j->at < j->n && j->trial >= j->list[j->at].n) j->at++, j->trial = 0;
  const bool there = j->at < j->n && j->status == HONE_OK && !j->stopped;
  if (there) *step = &j->list[j->at], *trial = &(*step)->trial[j->trial++];
  pthread_mutex_unlock(&j->lock);
  return there;
}

static void prepare_some(void *arg, int64_t task, uint32_t thread) {
  preparing *j = arg;
  const hn_ready *ready;
  const hn_trial *trial;
  (void)task;
  while (take_trial(j, thread, &ready, &trial)) {
    hone_error error = {.status = HONE_OK};
    const hone_status status = hn_step_prepare(j->plan, ready->step, trial->tactic, &error);
    if (status == HONE_OK) continue;
    pthread_mutex_lock(&j->lock);
    if (j->status == HONE_OK) j->status = status, j->error = error;
    pthread_mutex_unlock(&j->lock);
  }
}

hone_status hn_make_ready(const hn_plan *plan, const hn_ready *list, uint32_t n, bool (*stop)(void *arg),
                          void *arg, hone_error *error) {
  preparing j = {.plan = plan, .list = list, .n = n, .stop = stop, .arg = arg};
  int64_t trials = 0;
  for (uint32_t i = 0; i < n; i++) trials += list[i].n;
  if (!plan->backend->asynchronous || !trials) return HONE_OK;
  pthread_mutex_init(&j.lock, NULL);
  plan->backend->parallel(plan->device, trials, prepare_some, &j);
  pthread_mutex_destroy(&j.lock);
  if (j.status != HONE_OK && error) *error = j.error;
  return j.status;
}

/* Captures as many runs as a sample needs, and runs them. What time was up for before it was made ready (a
 * library's plans take long, and cannot be built within a capture) is made ready first. */
static hone_status warm_segment(const rig *r, const hn_trial *t, rig_trial *m, hone_error *error) {
  hone_step_run run = run_of(r, t, m, 0);
  hone_status status = r->plan->backend->prepare(r->plan->device, t->tactic, &run, error);
  double seconds = 0;
  const uint32_t least = m->copies > 1 ? 2 * m->copies : 0; /* all copies have their turn */
  for (m->repeats = 4; status == HONE_OK; m->repeats *= 4) {
    if (m->repeats < least) m->repeats = least;
    status = capture(r, t, m, error);
    for (int k = 0; k < WARM_RUNS && status == HONE_OK; k++) status = sample_segment(r, m, &seconds, error);
    if (seconds >= SHORTEST_SEGMENT || m->repeats * 4 > MOST_REPEATS) break;
  }
  return status;
}

/* Seconds of one run: with cooled caches a single one, else the mean of several. */
static hone_status sample(const rig *r, const hn_trial *t, rig_trial *m, uint32_t at, hone_error *error) {
  const hn_backend *b = r->plan->backend;
  hone_status status = HONE_OK;
  if (r->queue) {
    double seconds = 0;
    status = sample_segment(r, m, &seconds, error);
    m->sample[at] = seconds / m->repeats;
    m->reading[at] = 0;
    return status;
  }
  if (r->other_bytes) {
    b->cool(r->plan->device, r->other_bytes);
    if (b->consume && r->workspace) /* all steps share it: it stays in the caches */
      b->consume(r->plan->device, r->workspace, m->need.workspace_bytes);
    status = copy_inputs(r, error); /* the step before has just written them */
    if (status != HONE_OK) return status;
  }
  uint64_t start = hn_now_ns();
  for (uint32_t i = 0; i < m->repeats && status == HONE_OK; i++) status = run_once(r, t, m, i, error);
  if (status == HONE_OK) status = b->sync(r->plan->device, NULL, error);
  uint64_t end = hn_now_ns();
  m->sample[at] = (double)(end - start) * 1e-9 / m->repeats;
  if (r->threads_vary) consume(r);
  m->reading[at] = (double)(hn_now_ns() - end) * 1e-9;
  return status;
}

static hone_status warm_runs(const rig *r, const hn_trial *t, rig_trial *m, hone_error *error) {
  hone_status status = HONE_OK;
  uint64_t took = 0;
  m->repeats = 1;
  for (int k = 0; k < WARM_RUNS && status == HONE_OK; k++) {
    uint64_t start = hn_now_ns();
    status = run_once(r, t, m, 0, error);
    if (status == HONE_OK) status = r->plan->backend->sync(r->plan->device, NULL, error);
    took = hn_now_ns() - start;
  }
  if (!r->other_bytes && took < SHORTEST_NS) m->repeats = (uint32_t)(SHORTEST_NS / (took + 100)) + 1;
  return status;
}

/* And looks whether all give the same answer. */
static hone_status warm_up(const rig *r, hn_trial *trial, hone_error *error) {
  hone_status status = HONE_OK;
  hn_answer *answer = hn_calloc(r->n + 1, sizeof *answer);
  if (!answer) return hn_fail_memory(error, r->n, "tuning");
  for (uint32_t i = 0; i < r->n && status == HONE_OK; i++) {
    rig_trial *m = &r->trial[i];
    status = r->queue ? warm_segment(r, &trial[i], m, error) : warm_runs(r, &trial[i], m, error);
    if (status == HONE_OK && r->n > 1)
      status = hn_answer_take(r->plan, r->queue, &r->step, r->out, &answer[i], error);
    blame(r, &trial[i], status, error);
  }
  if (status == HONE_OK) hn_answers_judge(answer, trial, r->n);
  for (uint32_t i = 0; i < r->n; i++) hn_answer_free(&answer[i]);
  hn_free(answer);
  return status;
}

uint32_t hn_trial_fastest(const hn_trial *trial, uint32_t n) {
  uint32_t best = n;
  for (uint32_t i = 0; i < n; i++)
    if (!trial[i].differs && (best == n || trial[i].median < trial[best].median)) best = i;
  return best < n ? best : 0;
}

static double median_of(const double *sample, uint32_t n) {
  double sorted[MOST_ROUNDS];
  memcpy(sorted, sample, n * sizeof *sorted);
  hn_ascend(sorted, n);
  return hn_median(sorted, n);
}

/* A step on one thread also pays for what reading its output from one cache costs beyond `reading`, the usual
 * time. */
static void summarise(const rig_trial *m, hn_trial *t, double reading) {
  double paid[MOST_ROUNDS];
  for (uint32_t i = 0; i < t->samples; i++)
    paid[i] = m->sample[i] + (t->threads && m->reading[i] > reading ? m->reading[i] - reading : 0);
  hn_trial_summarise(t, paid);
}

/* Nothing more to learn: one trial beats all others, or all medians are known to the margin. */
static bool settled(const hn_trial *trial, uint32_t n) {
  const uint32_t best = hn_trial_fastest(trial, n);
  bool fine = true, clear = true;
  for (uint32_t i = 0; i < n; i++) {
    if (trial[i].differs || i == best) continue;
    fine = fine && trial[i].spread < HN_TUNE_MARGIN / 2 * trial[i].median;
    clear = clear && hn_trial_beats(&trial[best], &trial[i]);
  }
  return (fine && trial[best].spread < HN_TUNE_MARGIN / 2 * trial[best].median) || clear;
}

/* Measured enough: too slow, or no choice. */
static bool hopeless(const hn_trial *trial, uint32_t n, uint32_t i) {
  for (uint32_t k = 0; k < n; k++)
    if (!trial[k].differs && trial[i].median > HOPELESS * trial[k].median) return true;
  return trial[i].differs;
}

hone_status hn_time_step(const hn_plan *plan, const hn_step *step, hn_trial *trial, uint32_t n,
                         uint64_t other_bytes, bool (*stop)(void *arg), void *arg, hone_error *error) {
  rig r = {.plan = plan, .n = n, .other_bytes = plan->backend->cool ? other_bytes : 0};
  for (uint32_t i = 0; i < n; i++) {
    r.threads_vary |= trial[i].threads != trial[0].threads;
    trial[i].samples = 0;
    trial[i].differs = false;
  }
  const hn_backend *b = plan->backend;
  hone_status status = HONE_OK;
  if (b->asynchronous) {
    /* Repeated runs find their data where the last one left it; weights, where the plan's fit into the last
     * cache. */
    r.other_bytes = 0;
    r.weights = plan->blob_bytes > plan->machine.l2 ? 3 * (uint64_t)plan->machine.l2 / 2 : 0;
    status = b->queue_open(plan->device, &r.queue, error);
    if (status == HONE_OK) status = b->event_open(plan->device, &r.begin, error);
    if (status == HONE_OK) status = b->event_open(plan->device, &r.end, error);
  }
  if (status == HONE_OK) status = rig_tensors(&r, step, error);
  if (status == HONE_OK) status = rig_trials(&r, trial, error);
  if (status == HONE_OK) status = warm_up(&r, trial, error);
  for (uint32_t round = 0; round < MOST_ROUNDS && status == HONE_OK; round++) {
    if (stop && stop(arg)) {
      status = hn_fail(error, HONE_ERROR_CANCELLED, "stopped");
      break;
    }
    for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
      const uint32_t i = round % 2 ? n - 1 - k : k; /* forth and back: drift hits all alike */
      if (round >= HOPELESS_ROUNDS && hopeless(trial, n, i)) continue;
      status = sample(&r, &trial[i], &r.trial[i], trial[i].samples, error);
      blame(&r, &trial[i], status, error);
      trial[i].samples++;
    }
    if (status != HONE_OK) break;
    const double reading = median_of(r.trial[0].reading, trial[0].samples);
    for (uint32_t i = 0; i < n; i++) summarise(&r.trial[i], &trial[i], reading);
    if (round + 1 >= FEWEST_ROUNDS && status == HONE_OK && settled(trial, n)) break;
  }
  rig_free(&r);
  return status;
}
