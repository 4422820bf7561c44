/* Making pipelines, and what is asked of them. */
#include "api/pipeline/pipe.h"
#include "base/error.h"
#include "base/os.h"

#include <string.h>

enum { MOST_RUNNERS = 64 };

const char *hone_stage_name(hone_stage stage) {
  static const char *const names[] = {"pre", "infer", "post"};
  return (unsigned)stage < HONE_STAGES ? names[stage] : "";
}

/* ---- what there is to be made */

/* What an item becomes, and how many of them a run takes: the input's first dimension counts them where it
 * has all that a picture or a row has behind it. */
static hone_status find_input(hone_pipeline *p, const hone_pipeline_options *o, hone_error *error) {
  const hone_tensor_desc *d = hone_plan_input_desc(p->plan, o->input);
  if (!d) return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_create: the plan has no input %u", o->input);
  p->input = o->input;
  p->n_in = hone_plan_inputs(p->plan);
  p->member = hone_plan_input_name(p->plan, o->input);
  p->others = o->others;
  p->one = *d;
  p->batch = 1;
  if (d->rank >= 2 && d->rank != 3 && d->dim[0] > 1 && d->dim[0] <= HN_FLOW_BATCH) {
    p->batch = (uint32_t)d->dim[0];
    p->one.dim[0] = 1;
  }
  if (d->dtype == HONE_DTYPE_STRING || !hone_dtype_is_tensor(d->dtype) || hone_desc_bytes(d) <= 0)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "items become numbers, and input '%.100s' takes none",
                   p->member);
  for (uint32_t i = 0; i < p->n_in; i++)
    if (i != p->input && (!o->others || !o->others[i]))
      return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_create: input '%.100s' is given no value",
                     hone_plan_input_name(p->plan, i));
  return HONE_OK;
}

static hone_status find_outputs(hone_pipeline *p, hone_error *error) {
  const uint32_t n = hone_plan_outputs(p->plan);
  p->port = hn_calloc(n + 1, sizeof *p->port);
  p->names = hn_calloc(n + 1, sizeof *p->names);
  if (!p->port || !p->names) return hn_fail_memory(error, n * sizeof *p->port, "outputs");
  for (uint32_t i = 0; i < n; i++) {
    const hone_dtype type = hone_plan_output_desc(p->plan, i)->dtype;
    if (type == HONE_DTYPE_STRING || !hone_dtype_is_tensor(type)) continue;
    p->names[p->n_out] = hone_plan_output_name(p->plan, i);
    p->port[p->n_out++] = i;
  }
  return HONE_OK;
}

static uint32_t more(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t less(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Workers, queues and what is in flight. A queue has room for what its stages have in hand, twice what a
 * run takes, so that its fill says something. */
static void find_shape(hone_pipeline *p, const hone_pipeline_options *o) {
  hn_flow_options *f = &p->shape;
  for (int i = 0; i < HONE_STAGES; i++) {
    const uint32_t most = o->most_workers[i] ? o->most_workers[i] : less(hn_thread_count(), 64);
    f->workers[i] = o->workers[i] ? o->workers[i] : i == HONE_STAGE_INFER ? 1 : most;
    f->batch[i] = i == HONE_STAGE_INFER ? p->batch : 1;
  }
  const uint32_t runs = f->workers[HONE_STAGE_INFER] * p->batch;
  f->queue[HONE_STAGE_INFER] = more(2 * runs, 4) + f->workers[HONE_STAGE_PRE];
  f->queue[HONE_STAGE_POST] = more(2 * runs, 4) + f->workers[HONE_STAGE_POST];
  const uint32_t all = f->workers[HONE_STAGE_PRE] + runs + f->workers[HONE_STAGE_POST] +
                       f->queue[HONE_STAGE_INFER] + f->queue[HONE_STAGE_POST];
  f->in_flight = o->in_flight ? o->in_flight : less(all, HN_FLOW_IN_FLIGHT);
  p->in_flight = f->in_flight;
}

static hone_status make_sets(hone_pipeline *p, hone_error *error) {
  for (uint32_t k = 0; k < p->in_flight; k++) {
    hn_pipe_set *s = &p->set[k];
    s->data = hn_calloc(p->n_out + 1, sizeof *s->data);
    s->room = hn_calloc(p->n_out + 1, sizeof *s->room);
    s->out = hn_calloc(p->n_out + 1, sizeof *s->out);
    s->view = hn_calloc(p->n_out + 1, sizeof *s->view);
    if (!s->data || !s->room || !s->out || !s->view)
      return hn_fail_memory(error, p->n_out * sizeof *s->out, "outputs");
    for (uint32_t i = 0; i < p->n_out; i++) s->view[i] = &s->out[i];
  }
  return HONE_OK;
}

static hone_status make_runner(hone_pipeline *p, hn_pipe_runner *r, uint32_t threads, hone_error *error) {
  r->of = p;
  r->in = hn_calloc(p->n_in + 1, sizeof *r->in);
  if (!r->in) return hn_fail_memory(error, p->n_in * sizeof *r->in, "inputs");
  for (uint32_t i = 0; i < p->n_in; i++) r->in[i] = p->others ? p->others[i] : NULL;
  if (p->batch > 1) {
    r->staged.desc = *hone_plan_input_desc(p->plan, p->input);
    const size_t bytes = (size_t)hone_desc_bytes(&r->staged.desc);
    if (!(r->staged.data = hn_aligned(HN_MEM_ALIGN, bytes))) return hn_fail_memory(error, bytes, "a batch");
  }
  hone_status status = hone_context_create(p->plan, &r->context, error);
  /* The copies' share of the total; only devices with a clock of their own copy. */
  if (status == HONE_OK) hone_context_clock(r->context, true, NULL);
  if (status == HONE_OK && threads) status = hone_context_set_threads(r->context, threads, error);
  for (uint32_t i = 0; status == HONE_OK && i < p->n_out; i++)
    status = hone_context_bind_allocator(r->context, p->port[i], hn_pipe_allocate, r, error);
  return status;
}

static hone_status make(hone_pipeline *p, const hone_pipeline_options *o, hone_error *error) {
  if (o->preprocess) p->preprocess = *o->preprocess;
  if (o->post) p->post = *o->post;
  if (p->post.output) {
    hn_str_puts(&p->output, p->post.output);
    p->post.output = p->output.ptr;
    if (p->output.failed) return hn_fail_memory(error, 64, "a name");
  }
  hone_status status = find_input(p, o, error);
  if (status == HONE_OK) status = find_outputs(p, error);
  if (status != HONE_OK) return status;
  find_shape(p, o);
  const uint32_t runners = p->shape.workers[HONE_STAGE_INFER];
  if (runners > MOST_RUNNERS)
    return hn_fail(error, HONE_ERROR_USAGE, "a pipeline has 1 to %d contexts, not %u", MOST_RUNNERS, runners);
  if (p->in_flight > HN_FLOW_IN_FLIGHT)
    return hn_fail(error, HONE_ERROR_USAGE, "in flight: 1 to %d items, not %u", HN_FLOW_IN_FLIGHT,
                   p->in_flight);
  p->slot = hn_calloc(p->in_flight, sizeof *p->slot);
  p->set = hn_calloc(p->in_flight, sizeof *p->set);
  p->runner = hn_calloc(runners, sizeof *p->runner);
  if (!p->slot || !p->set || !p->runner)
    return hn_fail_memory(error, p->in_flight * sizeof *p->slot, "a pipeline's items");
  status = make_sets(p, error);
  while (status == HONE_OK && p->n_runners < runners) {
    hn_pipe_runner *r = &p->runner[p->n_runners++];
    status = make_runner(p, r, o->threads, error);
  }
  hn_control_open(&p->control, &o->gains, o->workers, p->shape.workers, p->shape.queue);
  p->control.room[HONE_STAGE_PRE] = p->in_flight;
  p->control.each[HONE_STAGE_INFER] = p->batch;
  if (!o->workers[HONE_STAGE_INFER]) p->control.workers[HONE_STAGE_INFER] = runners;
  if (status == HONE_OK)
    status = hn_flow_create(&p->shape, &(hn_flow_work){p, hn_pipe_run, hn_pipe_tell}, &p->flow, error);
  return status == HONE_OK ? hn_pipe_control_start(p, error) : status;
}

hone_status hone_pipeline_create(hone_plan *plan, const hone_pipeline_options *options,
                                 hone_pipeline_told told, void *arg, hone_pipeline **out, hone_error *error) {
  static const hone_pipeline_options usual = {0};
  if (!plan || !told || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_create: plan, told and out may not be NULL");
  const uint64_t lost = hn_mem_lost();
  *out = NULL;
  hone_pipeline *p = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "a pipeline");
  p->plan = plan;
  p->told = told;
  p->arg = arg;
  p->made_ns = hn_now_ns();
  pthread_mutex_init(&p->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&p->wake, &clock);
  pthread_condattr_destroy(&clock);
  const hone_status status = hn_settle(make(p, options ? options : &usual, error), lost, error);
  if (status == HONE_OK)
    *out = p;
  else
    hone_pipeline_destroy(p);
  return status;
}

/* ---- items */

static void put_item(hone_pipeline *p, const hone_pipeline_item *item, uint32_t place) {
  hn_pipe_slot *s = &p->slot[place];
  hn_str_clear(&s->name);
  hn_str_clear(&s->path);
  s->name.failed = s->path.failed = false;
  hn_str_puts(&s->name, item->name ? item->name : item->path ? item->path : "");
  if (item->path) hn_str_puts(&s->path, item->path);
  s->tensor = item->tensor;
  s->bytes = item->bytes;
  s->size = item->size;
  s->user = item->user;
  s->input = (hone_tensor){0};
  s->picture = (hone_picture_map){0};
  s->row = 0;
  memset(s->seconds, 0, sizeof s->seconds);
}

typedef struct given {
  hone_pipeline *pipeline;
  const hone_pipeline_item *item;
} given;

static void fill(void *arg, uint32_t place) {
  const given *g = arg;
  put_item(g->pipeline, g->item, place);
}

hone_status hone_pipeline_submit(hone_pipeline *p, const hone_pipeline_item *item, hone_error *error) {
  if (!p || !item || !p->flow)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_pipeline_submit: pipeline and item may not be NULL");
  given g = {p, item};
  pthread_mutex_lock(&p->lock);
  if (!p->first_ns) p->first_ns = hn_now_ns();
  pthread_mutex_unlock(&p->lock);
  return hn_flow_submit(p->flow, fill, &g, error);
}

void hone_pipeline_close(hone_pipeline *p) {
  if (p && p->flow) hn_flow_close(p->flow);
}

void hone_pipeline_cancel(hone_pipeline *p) {
  if (!p || !p->flow) return;
  for (uint32_t i = 0; i < p->n_runners; i++) hone_context_cancel(p->runner[i].context);
  hn_flow_cancel(p->flow);
}

void hone_pipeline_drain(hone_pipeline *p) {
  if (p && p->flow) hn_flow_drain(p->flow);
}

static void free_set(const hone_pipeline *p, hn_pipe_set *s) {
  for (uint32_t i = 0; s->data && i < p->n_out; i++) hn_free(s->data[i]);
  hn_free(s->data);
  hn_free(s->room);
  hn_free(s->out);
  hn_free(s->view);
}

void hone_pipeline_destroy(hone_pipeline *p) {
  if (!p) return;
  hone_pipeline_drain(p);
  hn_pipe_control_end(p);
  hn_flow_destroy(p->flow);
  for (uint32_t i = 0; i < p->n_runners; i++) {
    hone_context_destroy(p->runner[i].context);
    hn_free(p->runner[i].staged.data);
    hn_free(p->runner[i].in);
  }
  for (uint32_t i = 0; i < p->in_flight; i++) {
    if (p->set) free_set(p, &p->set[i]);
    if (!p->slot) continue;
    hn_str_free(&p->slot[i].name);
    hn_str_free(&p->slot[i].path);
  }
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->lock);
  hn_str_free(&p->output);
  hn_free(p->moment);
  hn_free(p->runner);
  hn_free(p->set);
  hn_free(p->slot);
  hn_free(p->names);
  hn_free(p->port);
  hn_free(p);
}
