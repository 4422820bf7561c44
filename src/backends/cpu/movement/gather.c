/* Gather of blocks along one axis of a row-major tensor (embeddings, picked channels, single elements):
 * copies by index, in runs where indices follow each other. */
#include <string.h>

#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/movement/indices.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "optimize/step/boxes.h"

enum { TASK_BYTES = 32 * 1024, LONG_RUN = 64 /* bytes */ };

typedef struct shape {
  int64_t outer, axis, indices, bytes; /* bytes of one gathered block */
  bool wide;                           /* indices are i64 */
} shape;

static bool describe(const hone_step *s, shape *g, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  int32_t element;
  memset(g, 0, sizeof *g);
  if (!hn_boxes_check(s, &element, why) || !hn_indices_accept(s, &g->wide, why)) return false;
  if (!hn_step_plain(x) || !hn_step_plain(&s->output[0].desc))
    return hn_refuse(why, "a tensor is not row-major");
  int64_t axis = hone_node_int(s->node, "axis", 0);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
  g->outer = 1, g->bytes = element;
  for (int32_t d = 0; d < axis; d++) g->outer *= x->dim[d];
  for (int32_t d = (int32_t)axis + 1; d < x->rank; d++) g->bytes *= x->dim[d];
  g->axis = x->dim[axis], g->indices = hone_desc_count(&s->input[1].desc);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  shape g;
  (void)m;
  return describe(s, &g, why);
}

/* Blocks of the sizes that have a loop of their own: a load and a store each. */
static bool has_loop(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static double cost(const hone_step *s, const hone_machine *m) {
  shape g;
  if (!describe(s, &g, NULL)) return HN_REFUSED_SECONDS;
  const double blocks = (double)(g.outer * g.indices);
  return hn_step_seconds(m, 0, 2 * blocks * (double)g.bytes, 1) + (double)g.indices * 0.7e-9 +
         blocks *
             (has_loop(g.bytes) ? 0.2e-9
              : g.bytes <= 64   ? 1e-9
                                : 2e-9) /
             (m->threads > 0 ? m->threads : 1);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  shape g;
  hone_reason why = {""};
  (void)m;
  if (!describe(s, &g, &why)) return hn_not_described(s, &why, error);
  n->workspace_bytes = (size_t)g.indices * sizeof(int64_t);
  n->bytewise = 1u << 0;
  return HONE_OK;
}

/* Neighbours in the data that are neighbours in the result. */
typedef struct run_of_blocks {
  int64_t from, to, bytes; /* from the beginning of a row of the data and of the result */
} run_of_blocks;

typedef struct job {
  const hone_step_run *run;
  shape g;
  int64_t runs;            /* of a row; 0: block by block */
  const run_of_blocks *of; /* in the workspace, either these */
  const int64_t *at;       /* or where in a row of the data each block lies, in bytes */
  int64_t units, per_task; /* blocks or runs of all rows */
} job;

static int64_t place(const job *j, int64_t i) {
  const int64_t v = hn_index_at(j->run->in[1], j->g.wide, i);
  return hn_index_place(v, j->g.axis) - (v < 0 && HN_FAULT("gather_negative_index") ? 1 : 0);
}

/* Whether run `run_from` goes on with block i: runs are no longer than a task. */
static bool goes_on(const job *j, int64_t run_from, int64_t i) {
  return i > run_from && place(j, i) == place(j, i - 1) + 1 && (i - run_from) * j->g.bytes < TASK_BYTES;
}

static int64_t count_runs(const job *j) {
  int64_t runs = 0, from = 0;
  for (int64_t i = 0; i < j->g.indices; i++)
    if (!goes_on(j, from, i)) runs++, from = i;
  return runs;
}

static void write_runs(const job *j, run_of_blocks *of) {
  int64_t runs = 0, from = 0;
  for (int64_t i = 0; i < j->g.indices; i++) {
    if (goes_on(j, from, i)) {
      of[runs - 1].bytes += j->g.bytes;
    } else {
      of[runs++] = (run_of_blocks){place(j, i) * j->g.bytes, i * j->g.bytes, j->g.bytes};
      from = i;
    }
  }
}

static void copy_runs(unsigned char *y, const unsigned char *x, const run_of_blocks *of, int64_t n) {
  for (int64_t i = 0; i < n; i++) hn_copy_block(y + of[i].to, x + of[i].from, of[i].bytes);
}

static void copy_blocks(unsigned char *y, const unsigned char *x, const int64_t *at, int64_t n,
                        int64_t bytes) {
#define BLOCKS(SIZE)                                                                                         \
  _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++) memcpy(y + i * (SIZE), x + at[i], SIZE);           \
  break
  switch (bytes) {
  case 1: BLOCKS(1);
  case 2: BLOCKS(2);
  case 4: BLOCKS(4);
  case 8: BLOCKS(8);
  case 16: BLOCKS(16);
  default:
    for (int64_t i = 0; i < n; i++) hn_copy_block(y + i * bytes, x + at[i], bytes);
  }
#undef BLOCKS
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const shape *g = &j->g;
  const int64_t per_row = j->runs ? j->runs : g->indices;
  const int64_t end = hn_min(j->units, (index + 1) * j->per_task);
  (void)thread;
  for (int64_t i = index * j->per_task, n; i < end; i += n) {
    const int64_t outer = i / per_row, first = i % per_row;
    const unsigned char *x = (const unsigned char *)j->run->in[0] + outer * g->axis * g->bytes;
    unsigned char *y = (unsigned char *)j->run->out[0] + outer * g->indices * g->bytes;
    n = hn_min(per_row - first, end - i);
    if (j->runs)
      copy_runs(y, x, j->of + first, n);
    else
      copy_blocks(y + first * g->bytes, x, j->at + first, n, g->bytes);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  job j = {.run = r};
  hone_reason why = {""};
  if (!describe(r->step, &j.g, &why)) return hn_not_described(r->step, &why, error);
  const shape *g = &j.g;
  const hone_status status = hn_indices_check(r->step, r->in[1], g->wide, g->indices, g->axis, error);
  if (status || g->outer * g->indices * g->bytes == 0) return status;
  const int64_t runs = count_runs(&j);
  int64_t *at = r->workspace;
  if (runs * 3 <= g->indices && runs * LONG_RUN <= g->indices * g->bytes) { /* they fit where blocks would */
    write_runs(&j, r->workspace);
    j.of = r->workspace, j.runs = runs;
  } else {
    for (int64_t i = 0; i < g->indices; i++) at[i] = place(&j, i) * g->bytes;
    j.at = at;
  }
  const int64_t per_row = j.runs ? j.runs : g->indices;
  j.units = g->outer * per_row;
  j.per_task = TASK_BYTES / (g->indices * g->bytes / per_row + 16) + 1;
  const int64_t tasks = hn_div_up(j.units, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, gather, "Gather", 2, .accepts = accepts, .cost = cost, .need = need, .run = run);
