#include "backends/cpu/movement/moves.h"

#include <string.h>

#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/step/step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { TASK_BYTES = 64 * 1024 };

/* Puts dimension i at place `to`, keeping the order of the others. */
static void place_dim(hn_nest *nest, int32_t i, int32_t to) {
  const int64_t dim = nest->dim[i], d = nest->stride[0][i], s = nest->stride[1][i];
  const int32_t step = i < to ? 1 : -1;
  for (; i != to; i += step) {
    nest->dim[i] = nest->dim[i + step];
    for (int32_t k = 0; k < 2; k++) nest->stride[k][i] = nest->stride[k][i + step];
  }
  nest->dim[to] = dim, nest->stride[0][to] = d, nest->stride[1][to] = s;
}

/* Plans a move over `dim` with strides in elements. */
static void plan_move(hn_move *move, int32_t element, int32_t rank, const int64_t *dim,
                      const int64_t *dst_stride, const int64_t *src_stride) {
  hn_nest *n = &move->nest;
  memset(move, 0, sizeof *move);
  move->element = element;
  hn_nest_begin(n, rank, dim);
  hn_nest_add(n, dst_stride);
  hn_nest_add(n, src_stride);
  hn_nest_finish(n);
  int32_t last = n->rank - 1, source = -1;
  for (int32_t i = 0; i < last; i++)
    if (n->stride[1][i] == 1 && n->dim[i] > 1) source = i;
  int64_t inner = n->dim[last];
  if (n->stride[0][last] == 1 && n->stride[1][last] == 1) {
    move->kind = HN_MOVE_BLOCKS;
  } else if (n->stride[0][last] == 1 && n->stride[1][last] == 0) {
    move->kind = HN_MOVE_FILL;
  } else if (n->stride[0][last] == 1 && source >= 0) {
    place_dim(n, source, last - 1);
    const int64_t rows = n->dim[last], cols = n->dim[last - 1];
    move->kind = HN_MOVE_MATRIX;
    if (element == 4 && rows == 3 && n->stride[0][last - 1] == 3) move->kind = HN_MOVE_INTERLEAVE;
    if (element == 4 && cols == 3 && n->stride[1][last] == 3) move->kind = HN_MOVE_DEINTERLEAVE;
    inner = rows * cols;
  } else {
    move->kind = HN_MOVE_ELEMENTS;
  }
  /* Tasks: rows of the outer dimensions, each cut in chunks along the dimension that the kernel walks. */
  const int64_t outer = inner > 0 ? hn_nest_count(n) / inner : 0;
  int64_t split = n->dim[last], per_unit = element;
  if (move->kind == HN_MOVE_MATRIX || move->kind == HN_MOVE_INTERLEAVE) {
    split = n->dim[last - 1], per_unit = element * n->dim[last];
  } else if (move->kind == HN_MOVE_DEINTERLEAVE) {
    per_unit = element * 3;
  }
  move->chunk = per_unit > 0 && TASK_BYTES / per_unit > 16 ? TASK_BYTES / per_unit / 16 * 16 : 16;
  move->chunks = hn_div_up(split, move->chunk);
  move->tasks = outer * move->chunks;
}

/* Counts moves, and writes them when there is a blob. */
typedef struct builder {
  hn_boxes boxes;
  hn_moves *out; /* NULL: count only */
  uint32_t n;
  double seconds; /* what short contiguous runs and single elements take beyond their bytes */
} builder;

/* Runs of two to eight bytes are elements of that size, where that makes the move a matrix transpose: without
 * it each run is a copy of its own. */
static void widen_elements(hn_move *m) {
  const hn_nest *n = &m->nest;
  const int32_t last = n->rank - 1;
  const int64_t run = n->dim[last], bytes = run * m->element;
  int64_t dst[HN_NEST_RANK], src[HN_NEST_RANK];
  if (m->kind != HN_MOVE_BLOCKS || last < 1 || run < 2 || (bytes != 2 && bytes != 4 && bytes != 8)) return;
  if (m->in == HN_BOX_FILL || m->in_at % run || m->out_at % run) return;
  for (int32_t i = 0; i < last; i++) {
    if (n->stride[0][i] % run || n->stride[1][i] % run) return;
    dst[i] = n->stride[0][i] / run, src[i] = n->stride[1][i] / run;
  }
  hn_move wide;
  plan_move(&wide, (int32_t)bytes, last, n->dim, dst, src);
  if (wide.kind != HN_MOVE_MATRIX) return;
  wide.in = m->in, wide.in_at = m->in_at / run, wide.out = m->out, wide.out_at = m->out_at / run;
  *m = wide;
}

static void count_move(hn_boxes *self, const hn_box *box) {
  (void)box;
  ((builder *)self)->n++;
}

static void add_move(hn_boxes *self, const hn_box *box) {
  builder *b = (builder *)self;
  hn_move m;
  plan_move(&m, box->element, box->rank, box->dim, box->dst.stride, box->src.stride);
  m.in = box->src.tensor, m.in_at = box->src.at, m.out = box->dst.tensor, m.out_at = box->dst.at;
  widen_elements(&m);
  if (b->out) b->out->move[b->n] = m;
  const int64_t run = m.nest.dim[m.nest.rank - 1] * box->element;
  if (m.kind == HN_MOVE_ELEMENTS)
    b->seconds += (double)hn_nest_count(&m.nest) * 1e-9;
  else if ((m.kind == HN_MOVE_BLOCKS || m.kind == HN_MOVE_FILL) && run < 256)
    b->seconds += (double)m.tasks * 1.5e-9;
  b->n++;
}

bool hn_moves_accepts(const hone_step *step, const hone_machine *machine, const hn_moves_config *config,
                      hone_reason *why) {
  (void)machine;
  builder b = {.boxes.add = count_move};
  return config->build(step, &b.boxes, why);
}

double hn_moves_cost(const hone_step *step, const hone_machine *machine, const hn_moves_config *config) {
  builder b = {.boxes.add = add_move};
  double bytes = 0;
  if (!config->build(step, &b.boxes, NULL)) return HN_REFUSED_SECONDS;
  for (uint32_t i = 0; i < step->n_outputs; i++)
    bytes += 2.0 * (double)hone_desc_bytes(&step->output[i].desc);
  return hn_step_seconds(machine, 0, bytes, 1) + b.seconds / (machine->threads > 0 ? machine->threads : 1);
}

hone_status hn_moves_need(const hone_step *step, const hone_machine *machine, const hn_moves_config *config,
                          hone_tactic_need *need, hone_error *error) {
  (void)machine;
  builder b = {.boxes.add = count_move};
  hone_reason why = {""};
  if (!config->build(step, &b.boxes, &why)) return hn_not_described(step, &why, error);
  need->blob_bytes = sizeof(hn_moves) + b.n * sizeof(hn_move);
  need->workspace_bytes = 0;
  return HONE_OK;
}

hone_status hn_moves_prepack(const hone_step *step, const hone_machine *machine,
                             const hn_moves_config *config, void *blob, hone_error *error) {
  builder b = {.boxes.add = add_move, .out = blob};
  hone_reason why = {""};
  b.out->isa = hn_isa_of(machine->isa);
  if (!config->build(step, &b.boxes, &why)) return hn_not_described(step, &why, error);
  b.out->n = b.n;
  b.out->fill = b.boxes.fill;
  return HONE_OK;
}

typedef struct job {
  const hn_move *m;
  const struct hn_transpose_ops *ops;
  const unsigned char *src;
  unsigned char *dst;
  int64_t per_task; /* rows x chunks that one pool task does */
} job;

static void elements(unsigned char *dst, int64_t dst_step, const unsigned char *src, int64_t src_step,
                     int64_t n, int32_t element) {
#define STEP(type)                                                                                           \
  for (int64_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, sizeof(type))
  switch (element) {
  case 1: STEP(uint8_t); break;
  case 2: STEP(uint16_t); break;
  case 4: STEP(uint32_t); break;
  default: STEP(uint64_t); break;
  }
}

/* Whole runs, `rows` of them. */
static void runs(const hn_move *m, unsigned char *dst, const unsigned char *src, int64_t dst_step,
                 int64_t src_step, int64_t rows) {
  const int64_t bytes = m->nest.dim[m->nest.rank - 1] * m->element;
  unsigned char pattern[HN_PATTERN_BYTES];
#define RUNS(SIZE)                                                                                           \
  for (int64_t r = 0; r < rows; r++) memcpy(dst + r * dst_step, src + r * src_step, SIZE);                   \
  break
  if (m->kind == HN_MOVE_FILL)
    for (int64_t r = 0; r < rows; r++) {
      hn_pattern(pattern, src + r * src_step, m->element);
      hn_fill_block(dst + r * dst_step, pattern, bytes);
    }
  else
    switch (bytes) {
    case 4: RUNS(4);
    case 8: RUNS(8);
    case 16: RUNS(16);
    case 32: RUNS(32);
    default:
      for (int64_t r = 0; r < rows; r++) hn_copy_block(dst + r * dst_step, src + r * src_step, bytes);
    }
#undef RUNS
}

/* Chunk [at, at + n) of the split dimension, at one place of the outer dimensions. */
static void piece(const job *j, unsigned char *dst, const unsigned char *src, int64_t at, int64_t n) {
  const hn_move *m = j->m;
  const int64_t *ds = m->nest.stride[0], *ss = m->nest.stride[1], e = m->element;
  const int32_t last = m->nest.rank - 1;
  const unsigned log_size = e == 1 ? 0 : e == 2 ? 1 : e == 4 ? 2 : 3;
  unsigned char pattern[HN_PATTERN_BYTES];
  switch (m->kind) {
  case HN_MOVE_BLOCKS: hn_copy_block(dst + at * e, src + at * e, n * e); break;
  case HN_MOVE_FILL:
    hn_pattern(pattern, src, m->element);
    hn_fill_block(dst + at * e, pattern, n * e);
    break;
  case HN_MOVE_MATRIX:
    j->ops->matrix[log_size](dst + at * ds[last - 1] * e, ds[last - 1], src + at * e, ss[last],
                             (size_t)m->nest.dim[last], (size_t)n);
    break;
  case HN_MOVE_INTERLEAVE: {
    const uint32_t *p = (const uint32_t *)(const void *)src + at;
    j->ops->interleave3((uint32_t *)(void *)dst + 3 * at, p, p + ss[last], p + 2 * ss[last], (size_t)n);
    break;
  }
  case HN_MOVE_DEINTERLEAVE: {
    uint32_t *p = (uint32_t *)(void *)dst + at;
    j->ops->deinterleave3(p, p + ds[last - 1], p + 2 * ds[last - 1],
                          (const uint32_t *)(const void *)src + 3 * at, (size_t)n);
    break;
  }
  default:
    elements(dst + at * ds[last] * e, ds[last] * e, src + at * ss[last] * e, ss[last] * e, n, m->element);
    break;
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_move *m = j->m;
  const bool two =
      m->kind == HN_MOVE_MATRIX || m->kind == HN_MOVE_INTERLEAVE || m->kind == HN_MOVE_DEINTERLEAVE;
  const int32_t inner = two ? 2 : 1, last = m->nest.rank - 1;
  const int64_t split =
      m->nest.dim[m->kind == HN_MOVE_MATRIX || m->kind == HN_MOVE_INTERLEAVE ? last - 1 : last];
  const int32_t next = last - inner; /* the innermost of the outer dimensions */
  const bool whole = m->chunks == 1 && (m->kind == HN_MOVE_BLOCKS || m->kind == HN_MOVE_FILL);
  int64_t i = index * j->per_task, end = i + j->per_task, left = 0;
  unsigned char *dst = j->dst;
  const unsigned char *src = j->src;
  (void)thread;
  for (end = end < m->tasks ? end : m->tasks; i < end; i++) {
    const int64_t row = i / m->chunks, at = i % m->chunks * m->chunk;
    const int64_t n = split - at < m->chunk ? split - at : m->chunk;
    if (left == 0 || m->chunks > 1) { /* offsets by division once for each pass over the next dimension */
      dst = j->dst + hn_nest_offset(&m->nest, 0, row, inner) * m->element;
      src = j->src + hn_nest_offset(&m->nest, 1, row, inner) * m->element;
      left = next >= 0 ? m->nest.dim[next] - row % m->nest.dim[next] : 1;
    }
    if (whole) { /* all runs of this pass at once */
      const int64_t rows = hn_min(left, end - i), e = m->element;
      runs(m, dst, src, next >= 0 ? m->nest.stride[0][next] * e : 0,
           next >= 0 ? m->nest.stride[1][next] * e : 0, HN_FAULT("move_last_run") ? rows - 1 : rows);
      i += rows - 1, left = 0;
      continue;
    }
    if (!(m->chunks > 1 && at + n == split && HN_FAULT("move_last_chunk"))) piece(j, dst, src, at, n);
    left--;
    if (next >= 0) dst += m->nest.stride[0][next] * m->element, src += m->nest.stride[1][next] * m->element;
  }
}

hone_status hn_moves_run(const hone_step_run *run, const hn_moves_config *config, hone_error *error) {
  const hn_moves *list = run->blob;
  (void)config, (void)error;
  for (uint32_t i = 0; i < list->n; i++) {
    const hn_move *m = &list->move[i];
    const unsigned char *src = m->in == HN_BOX_FILL ? (const unsigned char *)&list->fill : run->in[m->in];
    job j = {m, hn_transpose_find(list->isa), src + m->in_at * m->element,
             (unsigned char *)run->out[m->out] + m->out_at * m->element, 1};
    if (m->tasks == 0) continue;
    /* Enough work in a task to pay for handing it out. */
    const int64_t bytes = hn_nest_count(&m->nest) * m->element, task_bytes = bytes / m->tasks;
    if (task_bytes < TASK_BYTES / 2) j.per_task = TASK_BYTES / (task_bytes > 0 ? task_bytes : 1);
    const int64_t tasks = hn_div_up(m->tasks, j.per_task);
    if (tasks == 1)
      task(&j, 0, 0);
    else
      run->parallel(run->pool, tasks, task, &j);
  }
  return HONE_OK;
}
