/* Gather of blocks along one axis of a row-major tensor (embeddings, picked channels, single elements):
 * copies by index, in runs where indices follow each other. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/lookup/lookup.h"
#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/movement/indices.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "optimize/step/axes.h"
#include "optimize/step/boxes.h"

enum { TASK_BYTES = 32 * 1024, LONG_RUN = 64 /* bytes */ };

typedef struct blob_head {
  hn_isa isa;
  int64_t outer, axis, indices, bytes; /* bytes of one gathered block */
  bool wide;                           /* indices are i64 */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int32_t element;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_lookup_find(h->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->isa));
  if (!hn_boxes_check(s, &element, why) || !hn_indices_accept(s, &h->wide, why)) return false;
  if (!hn_step_plain(x) || !hn_step_plain(&s->output[0].desc))
    return hn_refuse(why, "a tensor is not row-major");
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
  h->outer = hn_dims(x, 0, axis), h->bytes = element * hn_dims(x, axis + 1, x->rank);
  h->axis = x->dim[axis], h->indices = hone_desc_count(&s->input[1].desc);
  return h->axis <= UINT32_MAX ? true : hn_refuse(why, "the axis is too long");
}

/* Blocks of the sizes that have a loop of their own: a load and a store each. */
static bool has_loop(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const double blocks = (double)(h->outer * h->indices);
  (void)s;
  return hn_step_seconds(m, 0, 2 * blocks * (double)h->bytes, 1) + (double)h->indices * 0.7e-9 +
         blocks *
             (has_loop(h->bytes) ? 0.2e-9
              : h->bytes <= 64   ? 1e-9
                                 : 2e-9) /
             (m->threads > 0 ? m->threads : 1);
}

/* Neighbours in the data that are neighbours in the result. */
typedef struct run_of_blocks {
  int64_t from, to, bytes; /* from the beginning of a row of the data and of the result */
} run_of_blocks;

/* There are runs where they are a third of the blocks at most. */
static int64_t most_runs(const blob_head *h) {
  return hn_min(h->indices / 3, h->indices * h->bytes / LONG_RUN);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s, (void)m;
  n->blob_bytes = sizeof *h;
  n->workspace_bytes = (size_t)most_runs(h) * sizeof(run_of_blocks) + (size_t)h->indices * sizeof(uint32_t);
  n->bytewise = 1u << 0;
}

static hone_status fill(const blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)s, (void)error;
  memcpy(blob, h, sizeof *h);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head, fill)

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const uint32_t *place;   /* of each block along the axis */
  const run_of_blocks *of; /* of a row */
  int64_t runs;            /* 0: block by block */
  int64_t units, per_task; /* blocks or runs of all rows */
} job;

/* The runs of a row into of[most], no longer than a task each; their number, or 0 where there are more. */
static int64_t find_runs(const blob_head *h, const uint32_t *place, run_of_blocks *of, int64_t most) {
  int64_t runs = 0;
  for (int64_t i = 0; i < h->indices; i++) {
    if (i > 0 && place[i] == place[i - 1] + 1 && of[runs - 1].bytes < TASK_BYTES) {
      of[runs - 1].bytes += h->bytes;
      continue;
    }
    if (runs == most) return 0;
    of[runs++] = (run_of_blocks){place[i] * h->bytes, i * h->bytes, h->bytes};
  }
  return runs;
}

static void copy_runs(unsigned char *y, const unsigned char *x, const run_of_blocks *of, int64_t n) {
  for (int64_t i = 0; i < n; i++) hn_copy_block(y + of[i].to, x + of[i].from, of[i].bytes);
}

static void copy_blocks(unsigned char *y, const unsigned char *x, const uint32_t *place, int64_t n,
                        int64_t bytes) {
#define BLOCKS(SIZE)                                                                                         \
  _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                                                    \
      memcpy(y + i * (SIZE), x + (int64_t)place[i] * (SIZE), SIZE);                                          \
  break
  switch (bytes) {
  case 1: BLOCKS(1);
  case 2: BLOCKS(2);
  case 4: BLOCKS(4);
  case 8: BLOCKS(8);
  case 16: BLOCKS(16);
  default:
    for (int64_t i = 0; i < n; i++) hn_copy_block(y + i * bytes, x + place[i] * bytes, bytes);
  }
#undef BLOCKS
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t per_row = j->runs ? j->runs : h->indices;
  const int64_t end = hn_min(j->units, (index + 1) * j->per_task);
  (void)thread;
  for (int64_t i = index * j->per_task, n; i < end; i += n) {
    const int64_t outer = i / per_row, first = i % per_row;
    const unsigned char *x = (const unsigned char *)j->run->in[0] + outer * h->axis * h->bytes;
    unsigned char *y = (unsigned char *)j->run->out[0] + outer * h->indices * h->bytes;
    n = hn_min(per_row - first, end - i);
    if (j->runs)
      copy_runs(y, x, j->of + first, n);
    else
      copy_blocks(y + first * h->bytes, x, j->place + first, n, h->bytes);
  }
}

/* Whether an index is outside of the axis. */
static bool find_places(const hone_step_run *r, const blob_head *h, uint32_t *place) {
  const struct hn_lookup_ops *ops = hn_lookup_find(h->isa);
  const uint32_t axis = (uint32_t)h->axis - (HN_FAULT("gather_negative_index") ? 1 : 0);
  if (h->axis == 0) return h->indices > 0;
  return h->wide ? ops->places_i64(place, r->in[1], (size_t)h->indices, axis)
                 : ops->places_i32(place, r->in[1], (size_t)h->indices, axis);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const int64_t most = most_runs(h);
  run_of_blocks *of = r->workspace;
  uint32_t *place = (uint32_t *)(void *)(of + most);
  if (find_places(r, h, place))
    return hn_indices_check(r->step, r->in[1], h->wide, h->indices, h->axis, error);
  if (h->outer * h->indices * h->bytes == 0) return HONE_OK;
  job j = {.run = r, .h = h, .place = place, .of = of, .runs = find_runs(h, place, of, most)};
  const int64_t per_row = j.runs ? j.runs : h->indices;
  j.units = h->outer * per_row;
  j.per_task = TASK_BYTES / (h->indices * h->bytes / per_row + 16) + 1;
  const int64_t tasks = hn_div_up(j.units, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, gather, "Gather", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
