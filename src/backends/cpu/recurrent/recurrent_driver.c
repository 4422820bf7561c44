#include "backends/cpu/recurrent/recurrent_driver.h"

#include <string.h>

#include "backends/cpu/recurrent/team.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "base/wide.h"

/* ------------------------------------------------------------------ packing */

void hn_recurrent_pack(const struct hn_recurrent_ops *o, hn_recurrent_pass p, const void *r, size_t hidden,
                       float *dst) {
  const size_t gates = hn_recurrent_gates(p), vw = o->vw, most = hn_recurrent_blocks(p);
  const size_t blocks = hn_div_up(hidden, vw);
  for (size_t b0 = 0; b0 < blocks; b0 += most) {
    const size_t side = blocks - b0 < most ? blocks - b0 : most, width = side * gates * vw;
    for (size_t b = 0; b < side; b++)
      for (size_t g = 0; g < gates; g++)
        for (size_t lane = 0; lane < vw; lane++) {
          const size_t unit = (b0 + b) * vw + lane;
          const char *from = (const char *)r + (g * hidden + unit) * hidden * sizeof(float);
          float *to = dst + (b * gates + g) * vw + lane;
          for (size_t k = 0; k < hidden; k++, to += width) {
            *to = 0;
            if (unit < hidden) memcpy(to, from + k * sizeof *to, sizeof *to);
          }
        }
    dst += width * hidden;
  }
}

/* ------------------------------------------------------------------ plan and cost */

/* Of the cost model, in cycles of a core: what one activation of a vector takes where several overlap, what
 * comes with a panel (call, first and last sums), and a meeting of a team in seconds, with the lines of the
 * state that then cross. */
#define ACTIVATION_CYCLES 22.0
#define PANEL_CYCLES 40.0
#define MEETING_SECONDS 6e-7
/* Bytes a cycle that a core reads over and over: from L2, and from what lies behind it. */
#define L2_BYTES_PER_CYCLE 45.0
#define FAR_BYTES_PER_CYCLE 12.5

/* Bytes of R of a direction. */
static double r_bytes(const hn_recurrent *p) {
  return 4 * (double)p->gates * (double)p->padded * (double)p->hidden;
}

/* How much of `bytes`, read step by step to and fro, does not stay in L2. */
static double beyond(double bytes, const hone_machine *m) {
  const double room = 0.6 * (double)m->l2;
  return bytes > room ? 1 - room / bytes : 0;
}

/* One step of `samples` samples and `share` of the units of one direction, by a core that needs `resident`
 * bytes of R before it comes back to the same. */
static double step_cycles(const hn_recurrent *p, const struct hn_recurrent_ops *o, const hone_machine *m,
                          int64_t samples, double share, double resident) {
  const int64_t all = p->padded / o->vw;
  const double vectors = (double)all * share, rows = (double)samples;
  const double far = beyond(resident, m), functions = p->gates == 4 ? 5 : p->gates == 3 ? 3 : 1;
  double panels = 0;
  for (int64_t i = 0; i < p->passes; i++)
    panels += vectors / hn_recurrent_blocks(p->pass[i]) * (double)hn_div_up(samples, (int64_t)o->rows);
  const double reads = share * r_bytes(p) * (far / FAR_BYTES_PER_CYCLE + (1 - far) / L2_BYTES_PER_CYCLE);
  const double products = vectors * (double)p->gates * (double)p->hidden * rows / 2 / 0.85;
  return hn_overlapped_cycles(products, reads) + panels * PANEL_CYCLES +
         vectors * rows * functions * ACTIVATION_CYCLES;
}

/* The same by codes: a product of bytes for four values of k. */
static double coded_cycles(const hn_recurrent *p, const struct hn_recurrent_ops *o, const hone_machine *m,
                           int64_t k, int64_t rows, double share) {
  const double columns = (double)(p->gates * p->hidden) * share, quads = columns / 16 * (double)k / 4;
  const double products = quads * (double)rows * 1.1;
  const int64_t blocks = p->padded / o->vw;
  const double reads =
      columns * (double)k / (beyond(columns * (double)k, m) > 0 ? FAR_BYTES_PER_CYCLE : L2_BYTES_PER_CYCLE);
  return hn_overlapped_cycles(products, reads) + (double)rows * (double)k * 0.5 +
         (double)blocks * (double)rows * share * 5 * ACTIVATION_CYCLES + 200;
}

/* Threads that share the units of each step, each with its part of R, of all directions at once or of one
 * after the other: taken when that is faster. */
static void plan_team(hn_recurrent *p, const struct hn_recurrent_ops *o, const hone_machine *m, int64_t turns,
                      double hertz) {
  const int64_t side = p->directions / turns, threads = m->threads;
  const int64_t panels = side * hn_div_up(p->padded / o->vw, hn_recurrent_blocks(p->pass[0]));
  const int64_t team = hn_min(hn_min(panels, threads), HN_TEAM_MOST);
  if (team < 2) return;
  const double part = (double)(side * hn_div_up(panels, team)) / (double)panels;
  const double cycles = p->coded ? coded_cycles(p, o, m, p->hidden, p->batch, part)
                                 : step_cycles(p, o, m, p->batch, part, part * r_bytes(p));
  const double seconds = (double)(turns * p->seq) * (cycles / hertz + (double)p->passes * MEETING_SECONDS);
  if (seconds >= p->step_seconds) return;
  p->row_tasks = 1, p->samples = p->batch;
  p->team = team, p->turns = turns;
  p->far = !p->coded && beyond(part * r_bytes(p), m) > 0;
  p->step_seconds = seconds;
}

void hn_recurrent_plan(hn_recurrent *p, const hone_machine *m) {
  const struct hn_recurrent_ops *o = hn_recurrent_find(p->isa);
  const int64_t threads = m->threads ? m->threads : 1;
  p->inputs = (hn_matmul){.isa = p->isa,
                          .m = p->seq * p->batch,
                          .n = p->directions * p->gates * p->hidden,
                          .k = p->input,
                          .a_row = p->input,
                          .a_col = 1,
                          .b_row = 1,
                          .b_col = p->input,
                          .alpha = 1,
                          .packed = 1};
  hn_matmul_plan(&p->inputs, m->threads, m->l1, m->l2);
  p->padded = (int64_t)hn_round_up((size_t)p->hidden, o->vw);
  const double hertz = hn_core_hertz(hn_gemm_find(p->isa), m);
  /* Samples shared: no thread waits for another, but each reads all of R. */
  p->row_tasks = hn_min(p->batch > 0 ? p->batch : 1, hn_div_up(threads, p->directions));
  p->samples = hn_div_up(p->batch, p->row_tasks);
  p->row_tasks = p->samples ? hn_div_up(p->batch, p->samples) : 1;
  p->team = 0, p->turns = 1;
  p->far = !p->coded && beyond(r_bytes(p), m) > 0;
  p->step_seconds = (double)p->seq * (double)hn_div_up(p->directions * p->row_tasks, threads) *
                    step_cycles(p, o, m, p->samples, 1, r_bytes(p)) / hertz;
  if (p->coded) {
    p->step_seconds = (double)p->seq * (double)hn_div_up(p->directions * p->row_tasks, threads) *
                      coded_cycles(p, o, m, p->hidden, p->samples, 1) / hertz;
    /* Members of a team have whole panels of codes. */
    if (p->hidden % HN_CODED_PANEL || o->vw % HN_CODED_PANEL) return;
  }
  plan_team(p, o, m, 1, hertz);
  if (p->directions > 1) plan_team(p, o, m, p->directions, hertz);
}

/* Floats of the parts of the workspace. */
static size_t states(const hn_recurrent *p) {
  return hn_round_up((size_t)(p->directions * p->batch * p->padded), 16);
}
static size_t products(const hn_recurrent *p) { return hn_round_up((size_t)(p->inputs.m * p->inputs.n), 16); }
static size_t tasks(const hn_recurrent *p) {
  return (size_t)(p->team ? p->team : p->directions * p->row_tasks);
}
static size_t row_floats(const hn_recurrent *p) {
  return hn_round_up((size_t)p->samples * sizeof(hn_recurrent_row), 64) / sizeof(float);
}
enum { STATES = 5 }; /* two of h, c, and a GRU's z and r * h */

/* Of a thread where 8 bits are rounded to: rows as bytes, or states as f32 and a row's bytes. */
static size_t own_scratch(const hn_recurrent *p) {
  const int64_t most = hn_max(p->input, p->padded);
  return p->coded     ? hn_byte_rows_scratch(most)
         : p->rounded ? hn_round_up((size_t)(p->samples * p->padded + most), 16)
                      : 0;
}

/* Of x, rounded, as f32. */
static size_t rounded_inputs(const hn_recurrent *p) {
  return p->rounded && !p->coded ? hn_round_up((size_t)(p->inputs.m * p->input), 16) : 0;
}

size_t hn_recurrent_workspace(const hn_recurrent *p, uint32_t threads) {
  const size_t inputs = p->coded ? 0 : hn_round_up(hn_matmul_workspace(&p->inputs, threads), 16),
               own = threads * own_scratch(p); /* the product of all inputs is over when steps begin */
  return (inputs > own ? inputs : own) + rounded_inputs(p) + products(p) + STATES * states(p) +
         tasks(p) * row_floats(p);
}

/* ------------------------------------------------------------------ running */

typedef struct job {
  const hn_recurrent *p;
  const hn_recurrent_weights *w;
  const hn_recurrent_io *io;
  const struct hn_recurrent_ops *ops;
  float *products; /* [rows of x][directions][gates][hidden] */
  float *rounded;  /* x, as f32 */
  float *scratch;  /* of the threads, where 8 bits are rounded to */
  hn_byte_range x_range;
  hn_byte_ops bytes;
  float *h[2], *c, *update, *reset;
  hn_recurrent_row *rows;
  size_t row_floats;
} job;

static int64_t length_of(const job *j, int64_t n) { return j->io->lengths ? j->io->lengths[n] : j->p->seq; }

static int64_t state_at(const hn_recurrent *p, int64_t d, int64_t n) {
  return (p->batch_first ? n * p->directions + d : d * p->batch + n) * p->hidden;
}
static int64_t y_at(const hn_recurrent *p, int64_t t, int64_t d, int64_t n) {
  return (p->batch_first ? (n * p->seq + t) * p->directions + d : (t * p->directions + d) * p->batch + n) *
         p->hidden;
}

/* The samples of [n0, n1) that have a step number `step`. */
static uint32_t rows_of(const job *j, int64_t d, int64_t n0, int64_t n1, int64_t step,
                        hn_recurrent_row *row) {
  const hn_recurrent *p = j->p;
  const bool backwards = p->backwards || d == 1;
  uint32_t rows = 0;
  for (int64_t n = n0; n < n1; n++) {
    const int64_t steps = length_of(j, n);
    if (step >= steps) continue;
    const int64_t t = backwards && !HN_FAULT("recurrent_direction") ? steps - 1 - step : step;
    const int64_t x = p->batch_first ? n * p->seq + t : t * p->batch + n, at = (d * p->batch + n) * p->padded;
    row[rows++] = (hn_recurrent_row){.x = j->products + (x * p->directions + d) * p->gates * p->hidden,
                                     .h = j->h[step % 2] + at,
                                     .next = j->h[(step + 1) % 2] + at,
                                     .c = j->c + at,
                                     .update = j->update + at,
                                     .reset = j->reset + at,
                                     .y = j->io->y ? j->io->y + y_at(p, t, d, n) : NULL};
  }
  return rows;
}

static hn_recurrent_cell cell_of(const job *j, int64_t d, hn_recurrent_pass pass) {
  const hn_recurrent *p = j->p;
  return (hn_recurrent_cell){.pass = pass,
                             .hidden = (size_t)p->hidden,
                             .k = p->coded ? 0 : (size_t)p->hidden,
                             .padded = (size_t)p->padded,
                             .f = p->act[d],
                             .clip = p->clip,
                             .coupled = p->coupled != 0,
                             .peepholes = j->w->peepholes ? j->w->peepholes + d * 3 * p->padded : NULL,
                             .bias = j->w->later ? j->w->later + d * p->padded : NULL};
}

static int64_t panels_of(const job *j, hn_recurrent_pass pass) {
  return hn_div_up(j->p->padded / j->ops->vw, hn_recurrent_blocks(pass));
}

/* Panels [begin, end) of a pass. Every other time from the last to the first: what was read last is still
 * near. */
static void run_pass(const job *j, int64_t d, int64_t pass, const hn_recurrent_row *row, uint32_t rows,
                     int64_t begin, int64_t end, bool turned) {
  const hn_recurrent *p = j->p;
  hn_recurrent_cell cell = cell_of(j, d, p->pass[pass]);
  const int64_t vw = j->ops->vw, blocks = p->padded / vw, most = hn_recurrent_blocks(cell.pass);
  const size_t packed = hn_recurrent_packed(j->ops, cell.pass, cell.hidden);
  const float *r = p->coded ? j->products : j->w->rec[pass] + (size_t)d * packed; /* not read by codes */
  const uint32_t groups = hn_div_up(rows, j->ops->rows);
  const ptrdiff_t whole = (ptrdiff_t)(most * vw * (int64_t)cell.k) * hn_recurrent_gates(cell.pass);
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = turned ? begin + end - 1 - i : i;
    const uint32_t side = (uint32_t)hn_min(blocks - at * most, most);
    for (uint32_t g = 0; g < groups; g++) {
      const uint32_t from = rows * g / groups, to = rows * (g + 1) / groups;
      /* The groups share the asking for the next panel. */
      const ptrdiff_t ask = (ptrdiff_t)g * HN_RECURRENT_AHEAD * p->hidden;
      cell.far = p->far && i + 1 < end && ask < whole ? r + (turned ? at - 1 : at + 1) * whole + ask : NULL;
      j->ops->panel(&cell, r + at * whole, (size_t)(at * most * vw), side, row + from, to - from);
    }
  }
}

static hn_recurrent_row *rows_at(const job *j, int64_t task) {
  return (hn_recurrent_row *)(void *)((float *)(void *)j->rows + (size_t)task * j->row_floats);
}

/* R h of coded weights comes to what W x is, and cells find no product left. Units [u0, u1) of each gate. */
static void coded_product(const job *j, int64_t d, const hn_recurrent_row *row, uint32_t rows, int64_t u0,
                          int64_t u1, uint32_t thread) {
  const hn_recurrent *p = j->p;
  const hn_byte_weights *r = &j->w->codes[d][1];
  const bool all = u0 == 0 && u1 == p->hidden;
  float *scratch = j->scratch + thread * own_scratch(p), *to[HN_BYTE_ROWS];
  const float *from[HN_BYTE_ROWS];
  hn_byte_range range[HN_BYTE_ROWS];
  for (uint32_t i = 0, n; i < rows; i += n) {
    n = rows - i < HN_BYTE_ROWS ? rows - i : HN_BYTE_ROWS;
    for (uint32_t k = 0; k < n; k++) {
      from[k] = row[i + k].h, to[k] = j->products + (row[i + k].x - j->products);
      range[k] = hn_byte_range_of(&j->bytes, from[k], p->hidden);
    }
    hn_byte_rows_bring(&j->bytes, r, from, range, p->hidden, n, scratch);
    for (int64_t g = 0; g < (all ? 1 : p->gates); g++)
      hn_byte_rows_add(&j->bytes, r, n, g * p->hidden + u0, all ? p->gates * p->hidden : g * p->hidden + u1,
                       (const float *const *)to, to, scratch);
  }
}

/* W x and the biases of some rows of x, by codes. */
static void coded_inputs(void *arg, int64_t task, uint32_t thread) {
  const job *j = arg;
  const hn_recurrent *p = j->p;
  const int64_t columns = p->gates * p->hidden, first = task * HN_BYTE_ROWS;
  const uint32_t n = (uint32_t)hn_min(HN_BYTE_ROWS, p->inputs.m - first);
  const float *from[HN_BYTE_ROWS], *base[HN_BYTE_ROWS];
  float *to[HN_BYTE_ROWS];
  hn_byte_range range[HN_BYTE_ROWS];
  for (int64_t d = 0; d < p->directions; d++) {
    for (uint32_t i = 0; i < n; i++) {
      from[i] = j->io->x + (first + i) * p->input;
      to[i] = j->products + ((first + i) * p->directions + d) * columns;
      range[i] = j->x_range;
      base[i] = j->w->bias ? j->w->bias + d * columns : NULL;
    }
    float *scratch = j->scratch + thread * own_scratch(p);
    hn_byte_rows_bring(&j->bytes, &j->w->codes[d][0], from, range, p->input, n, scratch);
    hn_byte_rows_add(&j->bytes, &j->w->codes[d][0], n, 0, columns, base, to, scratch);
  }
}

/* Where a thread rounds to bytes on the way, behind its states. */
static uint8_t *bytes_of(const job *j, uint32_t thread) {
  const hn_recurrent *p = j->p;
  return (uint8_t *)(void *)(j->scratch + thread * own_scratch(p) + p->samples * p->padded);
}

/* Some rows of x, rounded, as whole numbers in f32. */
static void round_inputs(void *arg, int64_t task, uint32_t thread) {
  const job *j = arg;
  const hn_recurrent *p = j->p;
  const int64_t first = task * HN_BYTE_ROWS, end = hn_min(first + HN_BYTE_ROWS, p->inputs.m);
  for (int64_t i = first; i < end; i++)
    hn_byte_round(&j->bytes, &j->x_range, 1, j->io->x + i * p->input, p->input, bytes_of(j, thread),
                  j->rounded + i * p->input);
}

/* Sums of whole numbers become what they stand for, and get their biases. */
HN_WIDE_BODY void scale_body(float *sums, const float *scale, const float *bias, float by, int64_t n) {
  if (bias)
    for (int64_t i = 0; i < n; i++) sums[i] = sums[i] * (scale[i] * by) + bias[i];
  else
    for (int64_t i = 0; i < n; i++) sums[i] = sums[i] * (scale[i] * by);
}
HN_WIDE(void, scale_sums, scale_body,
        (float *sums, const float *scale, const float *bias, float by, int64_t n), (sums, scale, bias, by, n))

static void scale_inputs(void *arg, int64_t task, uint32_t thread) {
  const job *j = arg;
  const hn_matmul *m = &j->p->inputs;
  (void)thread;
  for (int64_t i = task * HN_BYTE_ROWS; i < hn_min((task + 1) * HN_BYTE_ROWS, m->m); i++)
    scale_sums(j->products + i * m->n, j->w->w_scale, j->w->bias, j->x_range.scale, m->n);
}

/* The rows' states before the step become rounded ones, which only their product reads. */
static void round_states(const job *j, hn_recurrent_row *row, uint32_t rows, uint32_t thread) {
  const hn_recurrent *p = j->p;
  float *to = j->scratch + thread * own_scratch(p);
  for (uint32_t i = 0; i < rows; i++, to += p->padded) {
    const hn_byte_range r = hn_byte_range_of(&j->bytes, row[i].h, p->hidden);
    hn_byte_round(&j->bytes, &r, r.scale, row[i].h, p->hidden, bytes_of(j, thread), to);
    row[i].h = to;
  }
}

/* All inputs that are read lie in one range. */
static hn_byte_range range_of_inputs(const job *j) {
  const hn_recurrent *p = j->p;
  int64_t longest = 0;
  for (int64_t n = 0; n < p->batch; n++) longest = hn_max(longest, length_of(j, n));
  return hn_byte_range_of(&j->bytes, j->io->x, (p->batch_first ? p->seq : longest) * p->batch * p->input);
}

/* All steps of some samples of a direction. */
static void whole(void *arg, int64_t task, uint32_t thread) {
  const job *j = arg;
  const hn_recurrent *p = j->p;
  const int64_t d = task / p->row_tasks, n0 = task % p->row_tasks * p->samples,
                n1 = hn_min(n0 + p->samples, p->batch);
  hn_recurrent_row *row = rows_at(j, task);
  for (int64_t step = 0; step < p->seq; step++) {
    const uint32_t rows = rows_of(j, d, n0, n1, step, row);
    if (!rows) break;
    if (p->coded)
      coded_product(j, d, row, rows, 0, p->hidden, thread);
    else if (p->rounded)
      round_states(j, row, rows, thread);
    for (int64_t i = 0; i < p->passes; i++)
      run_pass(j, d, i, row, rows, 0, panels_of(j, p->pass[i]), step % 2);
  }
}

/* Half of a state has just been written by other members: all of its lines at once, not one by one. */
static void ask_for_states(const job *j, int64_t pass, const hn_recurrent_row *row, uint32_t rows) {
  const bool of_reset = j->p->pass[pass] == HN_RECURRENT_GRU_HIDDEN;
  for (uint32_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < j->p->hidden; k += 16)
      __builtin_prefetch((of_reset ? row[i].reset : row[i].h) + k, 0, 3);
}

/* A member's panels, of those of all directions at hand, in one pass of one step of all samples. */
static void shared(void *arg, int64_t phase, uint32_t member, uint32_t members) {
  const job *j = arg;
  const hn_recurrent *p = j->p;
  const int64_t pass = phase % p->passes, step = phase / p->passes % p->seq,
                turn = phase / p->passes / p->seq;
  const int64_t panels = panels_of(j, p->pass[pass]), side = p->directions / p->turns;
  const int64_t begin = side * panels * member / members, end = side * panels * (member + 1) / members;
  hn_recurrent_row *row = rows_at(j, member);
  for (int64_t i = begin / panels; i * panels < end; i++) {
    const int64_t d = turn * side + i, first = begin > i * panels ? begin - i * panels : 0;
    const uint32_t rows = rows_of(j, d, 0, p->batch, step, row);
    ask_for_states(j, pass, row, rows);
    const int64_t last = hn_min(end - i * panels, panels), vw = j->ops->vw;
    if (rows && p->coded)
      coded_product(j, d, row, rows, first * vw, hn_min(last * vw, p->hidden), member);
    else if (p->rounded)
      round_states(j, row, rows, member);
    if (rows) run_pass(j, d, pass, row, rows, first, last, step % 2);
  }
}

static void begin_states(const job *j) {
  const hn_recurrent *p = j->p;
  const size_t bytes = (size_t)p->hidden * sizeof(float);
  memset(j->c, 0, states(p) * sizeof(float));
  memset(j->h[0], 0, states(p) * sizeof(float));
  for (int64_t d = 0; d < p->directions; d++)
    for (int64_t n = 0; n < p->batch; n++) {
      const int64_t at = (d * p->batch + n) * p->padded;
      if (j->io->h) memcpy(j->h[0] + at, j->io->h + state_at(p, d, n), bytes);
      if (j->io->c) memcpy(j->c + at, j->io->c + state_at(p, d, n), bytes);
    }
}

/* The last states, and zero in Y behind the end of a sequence. */
static void end_states(const job *j) {
  const hn_recurrent *p = j->p;
  const size_t bytes = (size_t)p->hidden * sizeof(float);
  for (int64_t d = 0; d < p->directions; d++)
    for (int64_t n = 0; n < p->batch; n++) {
      const int64_t at = (d * p->batch + n) * p->padded, steps = length_of(j, n);
      if (j->io->y_h) memcpy(j->io->y_h + state_at(p, d, n), j->h[steps % 2] + at, bytes);
      if (j->io->y_c) memcpy(j->io->y_c + state_at(p, d, n), j->c + at, bytes);
      if (j->io->y && !HN_FAULT("recurrent_behind_end"))
        for (int64_t t = steps; t < p->seq; t++) memset(j->io->y + y_at(p, t, d, n), 0, bytes);
    }
}

void hn_recurrent_exec(const hn_recurrent *p, const hn_recurrent_weights *w, const hn_recurrent_io *io,
                       float *workspace, hn_parallel_fn parallel, void *pool) {
  const hn_epilogue e = {.flags = w->bias ? HN_EPI_BIAS : 0, .bias = w->bias}, none = {0};
  float *at = workspace;
  job j = {.p = p, .w = w, .io = io, .ops = hn_recurrent_find(p->isa), .row_floats = row_floats(p)};
  float **const state[STATES] = {&j.h[0], &j.h[1], &j.c, &j.update, &j.reset};
  for (size_t i = 0; i < STATES; i++, at += states(p)) *state[i] = at;
  j.rows = (hn_recurrent_row *)(void *)at;
  at += tasks(p) * row_floats(p);
  j.products = at;
  begin_states(&j);
  if (p->seq && p->batch) {
    j.rounded = at + products(p);
    j.scratch = j.rounded + rounded_inputs(p);
    const int64_t blocks = hn_div_up(p->inputs.m, HN_BYTE_ROWS);
    if (p->rounded) j.bytes = hn_byte_ops_of(p->isa), j.x_range = range_of_inputs(&j);
    if (p->coded) {
      parallel(pool, blocks, coded_inputs, &j);
    } else if (p->rounded) {
      parallel(pool, blocks, round_inputs, &j);
      hn_matmul_exec(&p->inputs, j.rounded, w->w, at, &none, j.scratch, parallel, pool);
      parallel(pool, blocks, scale_inputs, &j);
    } else {
      hn_matmul_exec(&p->inputs, io->x, w->w, at, &e, j.scratch, parallel, pool);
    }
    if (p->team)
      hn_team_run(p->turns * p->seq * p->passes, (uint32_t)p->team, shared, &j, parallel, pool);
    else
      parallel(pool, p->directions * p->row_tasks, whole, &j);
  }
  end_states(&j);
}
