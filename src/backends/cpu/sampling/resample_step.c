#include "backends/cpu/sampling/resample_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/resize/resize.h"
#include "backends/cpu/kernels/taps/taps.h"
#include "backends/cpu/sampling/resize_read.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

enum { SMALL_SLAB = 1 << 16, UNIT = 4096 }; /* elements of a slab that is one task; of a task of a pass */

/* One axis: [outer, in, inner] to [outer, out, inner]. */
typedef struct pass {
  int32_t axis;
  bool skip; /* every element is its own source */
  int64_t outer, in, out, inner, taps;
  int64_t at, weight, outside; /* tables, bytes from the blob's begin; outside: a byte an element */
  bool any_outside;
  int64_t final_outer, final_inner; /* of the axis in the result */
} pass;

/* A slab is all of x from the first axis on that is resized: slabs are independent. */
typedef struct blob_head {
  hn_isa isa;
  bool slab_tasks; /* a slab is a task; else passes are divided */
  bool nearest;
  float extrapolation;
  int64_t slabs, slab_in, slab_out, between; /* between: elements of the largest intermediate result */
  int64_t zeros, scratch, bytes;             /* bytes from the blob's begin; of the blob */
  int32_t n;
  pass pass[HONE_MAX_RANK];
} blob_head;

/* Axes that are no pass. Of long ones the tables know. */
static bool is_still(const hn_resize *r, int32_t d) { return r->in[d] < 4096 && hn_resample_is_still(r, d); }

/* The axes that shrink most come first, then the inner ones, whose passes are the dearest. */
static void order_passes(blob_head *h, const hn_resize *r) {
  for (int32_t d = r->rank - 1; d >= 0; d--) {
    if (is_still(r, d)) continue;
    int32_t at = h->n++;
    const double ratio = (double)r->out[d] / (double)r->in[d];
    for (; at > 0 && (double)h->pass[at - 1].out / (double)h->pass[at - 1].in > ratio; at--)
      h->pass[at] = h->pass[at - 1];
    h->pass[at] = (pass){.axis = d, .in = r->in[d], .out = r->out[d], .taps = hn_resample_taps(r, d)};
  }
}

/* Sizes before and behind each axis when its pass comes, and in the result. */
static void place_passes(blob_head *h, const hn_resize *r) {
  int64_t dim[HONE_MAX_RANK];
  int32_t first = r->rank;
  for (int32_t k = 0; k < h->n; k++) first = h->pass[k].axis < first ? h->pass[k].axis : first;
  h->slabs = h->slab_in = h->slab_out = 1;
  for (int32_t i = 0; i < r->rank; i++) {
    dim[i] = r->in[i];
    if (i < first)
      h->slabs *= r->in[i];
    else
      h->slab_in *= r->in[i], h->slab_out *= r->out[i];
  }
  for (int32_t k = 0; k < h->n; k++) {
    pass *p = &h->pass[k];
    p->outer = p->inner = p->final_outer = p->final_inner = 1;
    for (int32_t i = first; i < p->axis; i++) p->outer *= dim[i], p->final_outer *= r->out[i];
    for (int32_t i = p->axis + 1; i < r->rank; i++) p->inner *= dim[i], p->final_inner *= r->out[i];
    dim[p->axis] = p->out;
    const int64_t result = p->outer * p->out * p->inner;
    if (k + 1 < h->n && result > h->between) h->between = result;
  }
}

static int64_t take(int64_t *end, int64_t bytes) {
  const int64_t at = *end;
  *end = (int64_t)hn_round_up((size_t)(at + bytes), 64);
  return at;
}

static bool describe(const hone_step *step, const hone_machine *machine, blob_head *h, hn_resize *r,
                     hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  memset(h, 0, sizeof *h);
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(y))
    return hn_refuse(why, "not row-major f32 of a known shape");
  if (!hn_resize_read(step, r, why)) return false;
  if (hone_desc_count(y) == 0) return hn_refuse(why, "an empty output");
  h->isa = hn_isa_of(machine->isa);
  if (!hn_resize_find(h->isa) || !hn_taps_find(h->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  for (int32_t i = 0; i < r->rank; i++)
    if (r->in[i] > INT32_MAX || r->out[i] > INT32_MAX) return hn_refuse(why, "an axis beyond 2^31");
  h->nearest = r->mode == HN_RESIZE_NEAREST;
  h->extrapolation = r->extrapolation;
  order_passes(h, r);
  place_passes(h, r);
  h->slab_tasks = h->slabs >= machine->threads || h->slab_out < SMALL_SLAB;
  int64_t end = (int64_t)hn_round_up(sizeof *h, 64), longest = 0, scratch = 0;
  for (int32_t k = 0; k < h->n; k++) {
    pass *p = &h->pass[k];
    const int64_t entries = p->out * p->taps;
    p->at = take(&end, entries * 4), p->weight = take(&end, entries * 4);
    p->outside = take(&end, p->out);
    if (p->inner == 1 && p->out > longest) longest = p->out;
    const int64_t wide = (int64_t)hn_round_up((size_t)(entries * 12 + p->out), 64);
    if (wide > scratch) scratch = wide;
  }
  h->zeros = take(&end, longest * 4);
  h->scratch = take(&end, scratch);
  h->bytes = end;
  return true;
}

bool hn_resample_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {
  blob_head h;
  hn_resize r;
  return describe(step, machine, &h, &r, why);
}

double hn_resample_step_cost(const hone_step *step, const hone_machine *machine) {
  blob_head h;
  hn_resize r;
  hone_reason why = {""};
  double work = 0, bytes = 0;
  if (!describe(step, machine, &h, &r, &why)) return HN_REFUSED_SECONDS;
  for (int32_t k = 0; k < h.n; k++) {
    const pass *p = &h.pass[k];
    const double rows = (double)(h.slabs * p->outer), out = (double)(p->out * p->inner), n = (double)p->inner;
    /* A gathered element takes the time of 10 that lie in a row; a row that of 16 elements more. */
    work += rows * (double)p->taps * 2 * (p->inner == 1 ? 10 * out : out * (1 + 16 / n));
    bytes += 4 * rows * (out + (double)(p->in * p->inner));
  }
  return hn_step_seconds(machine, work, bytes, 0.5);
}

static size_t own_bytes(const blob_head *h) {
  return 2 * hn_round_up((size_t)h->between * sizeof(float), 64);
}

hone_status hn_resample_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                  hone_error *error) {
  blob_head h;
  hn_resize r;
  hone_reason why = {""};
  if (!describe(step, machine, &h, &r, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "resample: %s", why.text);
  need->blob_bytes = (size_t)h.bytes;
  need->workspace_bytes = own_bytes(&h) * (h.slab_tasks ? machine->threads : 1);
  return HONE_OK;
}

/* A pass's tables from the operator's. Of lines the taps lie apart and the elements together. */
static void fill(const hn_resize *r, unsigned char *blob, unsigned char *scratch, pass *p) {
  hn_resample_axis a = {.taps = p->taps};
  const int64_t entries = p->out * p->taps;
  int32_t *at = (int32_t *)(void *)(blob + p->at);
  float *weight = (float *)(void *)(blob + p->weight);
  a.index = (int64_t *)(void *)scratch;
  a.weight = (float *)(void *)(a.index + entries);
  a.outside = (bool *)(void *)(a.weight + entries);
  hn_resample_fill(r, p->axis, &a);
  p->skip = a.identity;
  for (int64_t o = 0; o < p->out; o++) {
    for (int64_t t = 0; t < p->taps; t++) {
      const int64_t to = p->inner == 1 ? t * p->out + o : o * p->taps + t;
      at[to] = (int32_t)a.index[o * p->taps + t];
      weight[to] = a.weight[o * p->taps + t];
    }
    blob[p->outside + o] = a.outside[o];
    p->any_outside = p->any_outside || a.outside[o];
  }
}

hone_status hn_resample_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                     hone_error *error) {
  blob_head *h = blob;
  hn_resize r;
  hone_reason why = {""};
  unsigned char *base = blob;
  if (!describe(step, machine, h, &r, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "resample: %s", why.text);
  for (int32_t k = 0; k < h->n; k++) fill(&r, base, base + h->scratch, &h->pass[k]);
  memset(base + h->zeros, 0, (size_t)(h->bytes - h->zeros)); /* saved plans are the same in every run */
  return HONE_OK;
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const struct hn_resize_ops *ops;
  const struct hn_taps_ops *taps;
  /* Of a pass that is divided: */
  const pass *p;
  const float *x;
  float *y;
  int64_t per_task;
} job;

static const void *table(const job *j, int64_t at) { return (const unsigned char *)j->run->blob + at; }

/* Lines from to end of a pass along the innermost axis. */
static void run_lines(const job *j, const pass *p, const float *x, float *y, int64_t from, int64_t end) {
  const hn_taps taps = {table(j, p->at), table(j, p->weight), table(j, j->h->zeros),
                        (size_t)p->out,  (size_t)p->taps,     (size_t)p->out};
  for (int64_t o = from; o < end; o++) {
    if (j->h->nearest)
      j->ops->pick_row(y + o * p->out, 1, x + o * p->in, 1, 1, (size_t)p->out, taps.at);
    else
      j->taps->plane(y + o * p->out, x + o * p->in, (size_t)p->in, &taps);
  }
}

/* Rows from to end, of `inner` elements each, of a pass along another axis. */
static void run_rows(const job *j, const pass *p, const float *x, float *y, int64_t from, int64_t end) {
  const int32_t *at = table(j, p->at);
  const float *weight = table(j, p->weight);
  for (int64_t row = from; row < end; row++) {
    const int64_t o = row % p->out, to = HN_FAULT("resample_row") && o > 0 ? o - 1 : o;
    j->ops->sum_rows(y + row * p->inner, x + row / p->out * p->in * p->inner, (ptrdiff_t)p->inner,
                     (size_t)p->inner, (size_t)p->taps, at + to * p->taps, weight + to * p->taps);
  }
}

/* How many lines or rows a pass has. */
static int64_t units(const pass *p) { return p->inner == 1 ? p->outer : p->outer * p->out; }

static void pass_task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t from = index * j->per_task, all = units(j->p),
                end = from + j->per_task < all ? from + j->per_task : all;
  (void)thread;
  (j->p->inner == 1 ? run_lines : run_rows)(j, j->p, j->x, j->y, from, end);
}

static void run_pass(const job *j, const pass *p, const float *x, float *y) {
  job part = *j;
  part.p = p, part.x = x, part.y = y;
  part.per_task = units(p);
  if (!j->h->slab_tasks) part.per_task = UNIT / (p->inner == 1 ? p->out : p->inner) + 1;
  const int64_t tasks = hn_div_up(units(p), part.per_task);
  if (tasks == 1)
    pass_task(&part, 0, 0);
  else
    j->run->parallel(j->run->pool, tasks, pass_task, &part);
}

/* What lies outside of the region that is resized. */
static void extrapolate(const job *j, const pass *p, float *y) {
  const unsigned char *outside = table(j, p->outside);
  for (int64_t o = 0; o < p->final_outer; o++)
    for (int64_t k = 0; k < p->out; k++)
      for (int64_t i = 0; outside[k] && i < p->final_inner; i++)
        y[(o * p->out + k) * p->final_inner + i] = j->h->extrapolation;
}

static void slab(const job *j, int64_t index, uint32_t thread) {
  const blob_head *h = j->h;
  const float *x = (const float *)j->run->in[0] + index * h->slab_in;
  float *y = (float *)j->run->out[0] + index * h->slab_out,
        *between = (float *)(void *)((unsigned char *)j->run->workspace + own_bytes(h) * thread);
  int32_t left = 0, n = 0;
  for (int32_t k = 0; k < h->n; k++) left += !h->pass[k].skip;
  if (left == 0) memcpy(y, x, (size_t)h->slab_out * sizeof *y);
  for (int32_t k = 0; k < h->n; k++) {
    if (h->pass[k].skip) continue;
    float *to = --left == 0 ? y : between + (n++ & 1) * (int64_t)(own_bytes(h) / 2 / sizeof(float));
    run_pass(j, &h->pass[k], x, to);
    x = to;
  }
  for (int32_t k = 0; k < h->n; k++)
    if (h->pass[k].any_outside) extrapolate(j, &h->pass[k], y);
}

static void slab_task(void *arg, int64_t index, uint32_t thread) { slab(arg, index, thread); }

hone_status hn_resample_step_run(const hone_step_run *run, hone_error *error) {
  const blob_head *h = run->blob;
  job j = {run, h, hn_resize_find(h->isa), hn_taps_find(h->isa), NULL, NULL, NULL, 0};
  (void)error;
  if (h->slab_tasks && h->slabs > 1)
    run->parallel(run->pool, h->slabs, slab_task, &j);
  else
    for (int64_t i = 0; i < h->slabs; i++) slab(&j, i, 0);
  return HONE_OK;
}
