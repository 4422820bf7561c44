/* What is done with an item in each stage. */
#include "api/pipeline/pipe.h"
#include "base/error.h"
#include "base/os.h"
#include "runtime/data/data.h"

#include <string.h>

/* ---- pre */

static hone_status check_tensor(const hone_pipeline *p, const hone_tensor *t, hone_error *error) {
  char want[128], got[128];
  if (t->data && t->desc.device == 0 && t->desc.layout == HONE_LAYOUT_ROW_MAJOR &&
      t->desc.dtype == p->one.dtype && hone_desc_bytes(&t->desc) == hone_desc_bytes(&p->one))
    return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "the tensor is not what input '%.100s' takes", p->member);
  hn_error_expected(error, "%s, row-major on the host", hone_desc_format(&p->one, want, sizeof want));
  hn_error_got(error, "%s", hone_desc_format(&t->desc, got, sizeof got));
  return HONE_ERROR_INPUT;
}

static hone_status parse(const hone_pipeline *p, hn_pipe_slot *s, hn_bytes bytes, hone_error *error) {
  return hn_data_parse(s->path.len ? s->path.ptr : s->name.ptr, bytes, p->member, &p->one, &p->preprocess,
                       &s->arena, &s->input, &s->picture, error);
}

static hone_status pre(const hone_pipeline *p, hn_pipe_slot *s, hone_error *error) {
  const uint64_t lost = hn_mem_lost();
  if (s->name.failed || s->path.failed) return hn_fail_memory(error, 256, "an item's name");
  if (s->tensor) {
    s->input = *s->tensor;
    return check_tensor(p, s->tensor, error);
  }
  hone_status status;
  if (s->bytes) {
    status = parse(p, s, (hn_bytes){s->bytes, s->size}, error);
  } else if (s->path.len) {
    hn_file file = {0};
    status = hn_file_map(s->path.ptr, NULL, HN_FILE_DATA, &file, error);
    if (status == HONE_OK) status = parse(p, s, (hn_bytes){file.data, file.size}, error);
    hn_file_unmap(&file);
  } else {
    status = hn_fail(error, HONE_ERROR_USAGE, "the item has neither tensor nor bytes nor path");
  }
  return hn_settle(status, lost, error);
}

/* ---- infer */

void *hn_pipe_allocate(void *arg, uint32_t output, const hone_tensor_desc *desc) {
  const hn_pipe_runner *r = arg;
  const hone_pipeline *p = r->of;
  const size_t bytes = (size_t)hone_desc_bytes(desc);
  uint32_t i = 0;
  while (i < p->n_out && p->port[i] != output) i++;
  if (i == p->n_out) return NULL;
  if (!r->set->data[i] || r->set->room[i] < bytes) { /* once, unless the shape is the run's */
    hn_free(r->set->data[i]);
    r->set->data[i] = hn_aligned(HN_MEM_ALIGN, bytes ? bytes : 1);
    r->set->room[i] = r->set->data[i] ? bytes : 0;
  }
  return r->set->data[i];
}

/* One that no item needs. There is one: each set has an item or more, and these items have none yet. */
static hn_pipe_set *take_set(hone_pipeline *p, uint32_t users) {
  hn_pipe_set *set = NULL;
  pthread_mutex_lock(&p->lock);
  for (uint32_t i = 0; i < p->in_flight && !set; i++)
    if (!p->set[i].users) set = &p->set[i];
  set->users = users;
  pthread_mutex_unlock(&p->lock);
  return set;
}

/* The rows of a batch; those that nobody asked for repeat the last one. */
static const hone_tensor *stage_rows(const hone_pipeline *p, hn_pipe_runner *r, const hn_flow_item *item,
                                     uint32_t n) {
  const size_t bytes = (size_t)hone_desc_bytes(&p->one);
  if (p->batch == 1) return &p->slot[item[0].slot].input;
  for (uint32_t i = 0; i < p->batch; i++)
    memcpy((char *)r->staged.data + i * bytes, p->slot[item[i < n ? i : n - 1].slot].input.data, bytes);
  return &r->staged;
}

static void add_copies(hone_pipeline *p, const hn_pipe_runner *r, uint32_t n) {
  double h2d = 0, d2h = 0;
  if (hone_context_times(r->context, &h2d, NULL, &d2h, NULL) != HONE_OK) return;
  pthread_mutex_lock(&p->lock);
  p->h2d_ns += (uint64_t)(h2d * 1e9) * n;
  p->d2h_ns += (uint64_t)(d2h * 1e9) * n;
  pthread_mutex_unlock(&p->lock);
}

static void infer(hone_pipeline *p, hn_pipe_runner *r, hn_flow_item *item, uint32_t n) {
  r->set = take_set(p, n);
  for (uint32_t i = 0; i < n; i++) {
    p->slot[item[i].slot].set = r->set;
    p->slot[item[i].slot].row = i;
  }
  r->in[p->input] = stage_rows(p, r, item, n);
  hone_error *error = item[0].error;
  const hone_status status = hone_context_run(r->context, r->in, NULL, error);
  for (uint32_t i = 0; i < n; i++) {
    item[i].status = status;
    if (status != HONE_OK && i) *item[i].error = *error;
  }
  if (status != HONE_OK) return;
  for (uint32_t i = 0; i < p->n_out; i++) r->set->out[i] = *hone_context_output(r->context, p->port[i]);
  add_copies(p, r, n);
}

/* ---- all of them */

static void each(const hone_pipeline *p, uint32_t stage, hn_flow_item *item) {
  hn_pipe_slot *s = &p->slot[item->slot];
  if (stage == HONE_STAGE_PRE)
    item->status = pre(p, s, item->error);
  else
    item->status = hone_post_run(&p->post, s->set->view, p->names, p->n_out, p->batch, s->row,
                                 s->picture.width ? &s->picture : NULL, &s->answer, item->error);
  if (item->status != HONE_OK && !strstr(item->error->where, s->name.ptr ? s->name.ptr : ""))
    hn_error_where(item->error, "%s", s->name.ptr);
}

void hn_pipe_run(void *arg, uint32_t stage, uint32_t worker, hn_flow_item *item, uint32_t n) {
  hone_pipeline *p = arg;
  const uint64_t begin = hn_now_ns();
  if (stage == HONE_STAGE_INFER)
    infer(p, &p->runner[worker], item, n);
  else
    each(p, stage, item);
  const double seconds = (double)(hn_now_ns() - begin) * 1e-9;
  for (uint32_t i = 0; i < n; i++) p->slot[item[i].slot].seconds[stage] = seconds;
}

/* ---- the end of an item */

static void release(hone_pipeline *p, hn_pipe_slot *s) {
  hone_answer_free(&s->answer);
  hn_arena_free(&s->arena);
  pthread_mutex_lock(&p->lock);
  if (s->set) s->set->users--;
  s->set = NULL;
  p->last_ns = hn_now_ns();
  pthread_mutex_unlock(&p->lock);
}

void hn_pipe_tell(void *arg, uint64_t number, uint32_t slot, hone_status status, const hone_error *error) {
  hone_pipeline *p = arg;
  hn_pipe_slot *s = &p->slot[slot];
  hone_pipeline_result r = {.number = number,
                            .name = s->name.ptr ? s->name.ptr : "",
                            .user = s->user,
                            .status = status,
                            .error = status == HONE_OK ? NULL : error,
                            .rows = p->batch,
                            .row = s->row};
  memcpy(r.seconds, s->seconds, sizeof r.seconds);
  if (status == HONE_OK) {
    r.answer = &s->answer;
    r.picture = s->picture;
    r.out = s->set->view;
    r.names = p->names;
    r.n_out = p->n_out;
  }
  p->told(p->arg, &r);
  release(p, s);
}
