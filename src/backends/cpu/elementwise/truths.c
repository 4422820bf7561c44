/* Pointwise programs on bool alone, as masks are put together: by bytes, where the tactic `pointwise` makes
 * f32 of every one and bytes again. The loops are bound by memory with vectors of 16 bytes already, which
 * compilers make of them on every processor.
 *
 * Dimensions are coalesced over all tensors. A tile is a piece of a row, or several whole rows; operands that
 * lie as the tile does are read in place, others are spread over a buffer that stays in L1. The last result
 * is written straight to the output, of which each element is read before: working in place is safe where
 * there is one output. */
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"

enum { TILE = 4096, TASK_TILES = 4, OPERANDS = 8, BUFFERS = HONE_PW_REGISTERS + OPERANDS };

typedef struct head {
  hn_nest nest; /* operands: outputs, then inputs */
  int64_t row, rows;
  int64_t tile_rows; /* rows in a tile; 0: a tile is a piece of a row */
  int64_t tiles, per_row;
  uint32_t n_out;
  uint32_t dense; /* operands whose rows follow each other without gaps, as bits */
} head;

static bool is_logic(const hone_pw_instr *t) {
  switch (t->op) {
  case HONE_PW_LOAD:
  case HONE_PW_STORE:
  case HONE_PW_AND:
  case HONE_PW_OR:
  case HONE_PW_XOR:
  case HONE_PW_EQ:
  case HONE_PW_NOT:
  case HONE_PW_WHERE: return true;
  case HONE_PW_CONST: return t->alpha == 0 || t->alpha == 1;
  default: return false;
  }
}

static bool add_operand(head *h, const hone_tensor_desc *d, hone_reason *why) {
  if (d->dtype != HONE_DTYPE_BOOL)
    return hn_refuse(why, "a tensor is %s, not bool", hone_dtype_name(d->dtype));
  if (!hone_desc_known(d)) return hn_refuse(why, "dimensions are not known");
  return hn_nest_add_broadcast(&h->nest, d) || hn_refuse(why, "a tensor does not broadcast to the output");
}

static bool is_dense(const hn_nest *n, int32_t k) {
  int64_t expected = 1;
  for (int32_t i = n->rank - 1; i >= 0; i--) {
    if (n->stride[k][i] != expected) return false;
    expected *= n->dim[i];
  }
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_pw_program *p = s->program;
  const hone_tensor_desc *y = &s->output[0].desc;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!p || p->n_instr == 0 || s->n_epilogue)
    return hn_refuse(why, "the step has no program, or more than it");
  for (uint32_t i = 0; i < p->n_instr; i++)
    if (!is_logic(&p->instr[i])) return hn_refuse(why, "instruction %u is not of bool", i);
  if (s->n_inputs + s->n_outputs > OPERANDS) return hn_refuse(why, "more than %d tensors", (int)OPERANDS);
  if (!hone_desc_known(y)) return hn_refuse(why, "dimensions are not known");
  h->n_out = s->n_outputs;
  hn_nest_begin(&h->nest, y->rank, y->dim);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (!hone_desc_same_dims(&s->output[i].desc, y))
      return hn_refuse(why, "outputs have several sizes");
    else if (!add_operand(h, &s->output[i].desc, why))
      return false;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!add_operand(h, &s->input[i].desc, why)) return false;
  hn_nest_finish(&h->nest);
  h->row = h->nest.dim[h->nest.rank - 1];
  h->rows = h->row ? hn_nest_count(&h->nest) / h->row : 0;
  h->tile_rows = h->row > 0 && h->row <= TILE / 2 && h->rows > 1 ? TILE / h->row : 0;
  h->per_row = h->tile_rows ? 1 : hn_div_up(h->row, TILE);
  h->tiles = h->tile_rows ? hn_div_up(h->rows, h->tile_rows) : h->rows * h->per_row;
  for (int32_t k = 0; k < h->nest.n; k++)
    if (is_dense(&h->nest, k)) h->dense |= 1u << k;
  return true;
}

static void need_of(const head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)h, (void)s;
  n->blob_bytes = sizeof *h;
  n->workspace_bytes = (size_t)BUFFERS * TILE * m->threads;
}

static hone_status fill(const head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)s, (void)error;
  memcpy(blob, h, sizeof *h);
  return HONE_OK;
}

static double cost_of(const head *h, const hone_step *s, const hone_machine *m) {
  double bytes = 0;
  for (uint32_t i = 0; i < s->n_inputs; i++) bytes += (double)hone_desc_bytes(&s->input[i].desc);
  for (uint32_t i = 0; i < s->n_outputs; i++) bytes += (double)hone_desc_bytes(&s->output[i].desc);
  return hn_step_seconds(m, 0.5 * s->program->n_instr * (double)hn_nest_count(&h->nest), bytes, 0.5);
}

HN_DESCRIBED_SIZED(head, fill)

/* ---------------------------------------------------------------- running */

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t tiles; /* of a task */
} job;

typedef struct tile {
  int64_t row, at, n; /* its first row, where it begins in there; elements */
} tile;

/* A tile of operand k, which begins at x, to bytes that follow each other, or from them. */
static void spread(const head *h, int32_t k, const tile *t, uint8_t *x, uint8_t *buffer, bool out) {
  const hn_nest *nest = &h->nest;
  const int32_t last = nest->rank - 1;
  const int64_t step = nest->stride[k][last], next = last > 0 ? nest->stride[k][last - 1] : 0,
                n = h->tile_rows ? h->row : t->n;
  uint8_t *from = x;
  int64_t left = 0; /* rows until an outer dimension goes on */
  for (int64_t row = t->row, done = 0; done < t->n; row++, done += n, left--, from += next, buffer += n) {
    if (left == 0) {
      from = x + hn_nest_offset(nest, k, row, 1) + t->at * step;
      left = last > 0 ? nest->dim[last - 1] - row % nest->dim[last - 1] : 1;
    }
    if (out)
      for (int64_t i = 0; i < n; i++) from[i * step] = buffer[i];
    else if (step == 0)
      memset(buffer, *from, (size_t)n);
    else if (step == 1)
      memcpy(buffer, from, (size_t)n);
    else
      for (int64_t i = 0; i < n; i++) buffer[i] = from[i * step];
  }
}

typedef int8_t masks __attribute__((vector_size(16)));
enum { LANES = sizeof(masks) };

/* All bits of a byte that is not 0. */
static inline masks truth(const uint8_t *x) {
  masks v;
  memcpy(&v, x, sizeof v);
  return v != 0;
}

static inline masks some(const uint8_t *x, int64_t n) {
  uint8_t all[LANES] = {0};
  memcpy(all, x, (size_t)n);
  return truth(all);
}

/* y may be one of the others. */
#define LOOP(NAME, ARITY, expr)                                                                              \
  static inline masks NAME##_of(masks a, masks b, masks c) {                                                 \
    (void)b, (void)c;                                                                                        \
    return (expr)&1;                                                                                         \
  }                                                                                                          \
  static void NAME(uint8_t *y, const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n) {            \
    int64_t i = 0;                                                                                           \
    if (ARITY < 2) b = a;                                                                                    \
    if (ARITY < 3) c = a;                                                                                    \
    for (; i + LANES <= n; i += LANES) {                                                                     \
      const masks v = NAME##_of(truth(a + i), truth(b + i), truth(c + i));                                   \
      memcpy(y + i, &v, sizeof v);                                                                           \
    }                                                                                                        \
    const int64_t left = n - i;                                                                              \
    const masks v = NAME##_of(some(a + i, left), some(b + i, left), some(c + i, left));                      \
    memcpy(y + i, &v, (size_t)left);                                                                         \
  }
LOOP(both, 2, a &b)
LOOP(either, 2, a | b)
LOOP(other, 2, a ^ b)
LOOP(same, 2, ~(a ^ b))
LOOP(inverse, 1, ~a)
LOOP(choice, 3, (a & b) | (~a & c))
LOOP(itself, 1, a)
#undef LOOP

typedef void loop(uint8_t *y, const uint8_t *a, const uint8_t *b, const uint8_t *c, int64_t n);

static loop *loop_of(uint8_t op) {
  switch (op) {
  case HONE_PW_AND: return both;
  case HONE_PW_OR: return either;
  case HONE_PW_XOR: return other;
  case HONE_PW_EQ: return same;
  case HONE_PW_NOT: return inverse;
  default: return choice;
  }
}

/* Where a tile of operand k lies in one piece; NULL: it does not. */
static uint8_t *piece(const head *h, int32_t k, const tile *t, const void *x) {
  if (h->tile_rows ? !(h->dense >> k & 1) : h->nest.stride[k][h->nest.rank - 1] != 1) return NULL;
  return (uint8_t *)(uintptr_t)x + hn_nest_offset(&h->nest, k, t->row, 1) + t->at;
}

static void run_tile(const job *j, const tile *t, uint8_t *buffers) {
  const head *h = j->h;
  const hone_pw_program *p = j->run->step->program;
  const uint8_t *value[HONE_PW_REGISTERS] = {NULL};
  uint8_t *const slots = buffers + HONE_PW_REGISTERS * TILE;
  for (uint32_t i = 0; i < p->n_instr; i++) {
    const hone_pw_instr *in = &p->instr[i];
    uint8_t *const own = buffers + in->dst * TILE;
    if (in->op == HONE_PW_LOAD) {
      const int32_t k = (int32_t)(h->n_out + in->a);
      value[in->dst] = piece(h, k, t, j->run->in[in->a]);
      if (value[in->dst]) continue;
      value[in->dst] = slots + in->a * TILE;
      spread(h, k, t, (uint8_t *)(uintptr_t)j->run->in[in->a], slots + in->a * TILE, false);
    } else if (in->op == HONE_PW_CONST) {
      memset(own, in->alpha != 0, (size_t)t->n);
      value[in->dst] = own;
    } else if (in->op == HONE_PW_STORE) {
      uint8_t *const to = piece(h, in->dst, t, j->run->out[in->dst]), *const bytes =
                                                                          slots +
                                                                          j->run->step->n_inputs * TILE;
      if (to && to == value[in->a]) continue; /* just computed there */
      itself(to ? to : bytes, value[in->a], NULL, NULL, t->n);
      if (!to) spread(h, in->dst, t, j->run->out[in->dst], bytes, true);
    } else {
      const bool last = i + 2 == p->n_instr && in[1].op == HONE_PW_STORE && in[1].a == in->dst;
      uint8_t *const to = last ? piece(h, in[1].dst, t, j->run->out[in[1].dst]) : NULL;
      loop_of(in->op)(to ? to : own, value[in->a], value[in->b], value[in->c],
                      HN_FAULT("truths_end") ? t->n - 1 : t->n);
      value[in->dst] = to ? to : own;
    }
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  uint8_t *buffers = (uint8_t *)j->run->workspace + (size_t)thread * BUFFERS * TILE;
  const int64_t end = hn_min(h->tiles, (index + 1) * j->tiles);
  for (int64_t i = index * j->tiles; i < end; i++) {
    tile t = {.row = h->tile_rows ? i * h->tile_rows : i / h->per_row};
    if (h->tile_rows)
      t.n = hn_min(h->rows - t.row, h->tile_rows) * h->row;
    else
      t.at = i % h->per_row * TILE, t.n = hn_min(h->row - t.at, TILE);
    run_tile(j, &t, buffers);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  (void)error;
  const job j = {r, h, hn_max(h->tiles / ((int64_t)r->threads * 4), TASK_TILES)};
  const int64_t tasks = hn_div_up(h->tiles, j.tiles);
  if (tasks == 1)
    task((void *)(uintptr_t)&j, 0, 0);
  else if (tasks > 1)
    r->parallel(r->pool, tasks, task, (void *)(uintptr_t)&j);
  return HONE_OK;
}

HN_TACTIC(cpu, truths, "Pointwise", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
