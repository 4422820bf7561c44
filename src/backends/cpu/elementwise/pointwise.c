/* Pointwise programs, run over tiles that stay in L1.
 *
 * Dimensions are coalesced over all tensors first. With a long innermost dimension a tile is a piece of one
 * row; with a short one it is several whole rows. Operands that lie as the output does are read in place;
 * scalars stay scalars (vector-scalar instructions); what is the same in every tile of whole rows is expanded
 * once a task, anything else into a tile of its own (expand.h). The last result is written straight to the
 * output. Working in place on an input of equal layout is safe for programs with one output, because its last
 * instruction reads each element before writing it. */
#include <math.h>
#include <string.h>

#include "base/integers.h"
#include "base/nest.h"
#include "backends/cpu/elementwise/expand.h"
#include "backends/cpu/step/step.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/halves/halves.h"
#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "backends/cpu/kernels/quantize/quantize.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/half.h"

enum { TILE = 2048, MAX_OPERANDS = HN_NEST_OPERANDS, MAX_GRIDS = 8 };

/* REPEATED: every tile has the same elements; CONVERTED: bool, codes or floats of 16 bits that lie as the
 * tile does. */
typedef enum access { DIRECT, SCALAR, REPEATED, GATHERED, CONVERTED } access;

typedef struct operand {
  int32_t access;
  int32_t slot;     /* tile buffer of its own, or -1 */
  uint32_t element; /* 4, 2 for floats of 16 bits, 1 for bool and codes */
  int32_t code;     /* what becomes f32 on the way: codes of 8 bits (U8 or I8), F16, BF16; else 0 */
  int64_t inner;    /* stride of the innermost dimension */
  /* of codes: they become (code - zero) * scale, which so many instructions behind the LOAD would do */
  float scale, zero;
  uint32_t spared;
} operand;

/* Instructions from a division on that leave multiples of a scale: one function (quantize.h). */
typedef struct grid {
  uint32_t first, last; /* of the program */
  hn_quantize_grid to;
} grid;

typedef struct blob_head {
  hn_nest nest; /* operands: outputs, then inputs */
  operand operand[MAX_OPERANDS];
  hn_isa isa;
  uint32_t n_out, n_slots;
  int32_t direct_instr; /* the instruction that writes to output direct_out itself; -1: none */
  uint32_t direct_out;
  int32_t codes_instr; /* the division of what the last instructions quantise, all at once; -1: none */
  float codes_scale, codes_zero;
  uint32_t n_grids;
  grid grid[MAX_GRIDS];
  int64_t row;       /* length of the innermost dimension */
  int64_t rows;      /* number of rows */
  int64_t tile_rows; /* rows in a tile; 0: a tile is a piece of a row */
  int32_t block;     /* tiles are whole numbers of the dimensions from this on */
  int64_t tiles, per_row;
} blob_head;

/* ---------------------------------------------------------------- planning */

static bool check_program(const hone_step *s, hone_reason *why) {
  const hone_pw_program *p = s->program;
  if (!p || p->n_instr == 0) return hn_refuse(why, "the step has no program");
  for (uint32_t i = 0; i < p->n_instr; i++) {
    const hone_pw_instr *t = &p->instr[i];
    const unsigned arity = hn_pw_arity(t->op);
    const bool load = t->op == HONE_PW_LOAD, store = t->op == HONE_PW_STORE;
    if (t->op == HONE_PW_NONE || t->op >= HONE_PW_COUNT)
      return hn_refuse(why, "instruction %u is unknown", i);
    if (t->dst >= (store ? s->n_outputs : HONE_PW_REGISTERS))
      return hn_refuse(why, "instruction %u: bad destination", i);
    if (load && t->a >= s->n_inputs) return hn_refuse(why, "instruction %u: bad input", i);
    if ((arity > 0 && t->a >= HONE_PW_REGISTERS) || (arity > 1 && t->b >= HONE_PW_REGISTERS) ||
        (arity > 2 && t->c >= HONE_PW_REGISTERS))
      return hn_refuse(why, "instruction %u: bad register", i);
  }
  return true;
}

static bool add_operand(blob_head *h, const hone_tensor_desc *d, const char *what, uint32_t i,
                        hone_reason *why) {
  const bool code = d->dtype == HONE_DTYPE_U8 || d->dtype == HONE_DTYPE_I8 || d->dtype == HONE_DTYPE_F16 ||
                    d->dtype == HONE_DTYPE_BF16;
  if (d->dtype != HONE_DTYPE_F32 && d->dtype != HONE_DTYPE_BOOL && !code)
    return hn_refuse(why, "%s %u is %s, not f32, f16, bf16, bool or codes of 8 bits", what, i,
                     hone_dtype_name(d->dtype));
  if (!hone_desc_known(d)) return hn_refuse(why, "dimensions of %s %u are not known", what, i);
  if (h->nest.n >= MAX_OPERANDS) return hn_refuse(why, "more than %d tensors", (int)MAX_OPERANDS);
  h->operand[h->nest.n].element = (uint32_t)hone_dtype_size(d->dtype);
  h->operand[h->nest.n].code = code ? (int32_t)d->dtype : 0;
  if (!hn_nest_add_broadcast(&h->nest, d))
    return hn_refuse(why, "%s %u does not broadcast to the output", what, i);
  return true;
}

/* True when operand k steps through the elements of all rows one by one. */
static bool is_dense(const hn_nest *n, int32_t k) {
  int64_t expected = 1;
  for (int32_t i = n->rank - 1; i >= 0; i--) {
    if (n->stride[k][i] != expected) return false;
    expected *= n->dim[i];
  }
  return true;
}

/* Tiles of whole rows, and of as many inner dimensions as fit: operands that do not move along the others are
 * then the same in every tile. */
static void find_tiles(blob_head *h) {
  const hn_nest *n = &h->nest;
  const int64_t most = TILE / h->row;
  int64_t rows = 1;
  h->block = n->rank - 1;
  while (h->block > 0 && rows * n->dim[h->block - 1] <= most) rows *= n->dim[--h->block];
  h->tile_rows = most / rows * rows;
}

static void classify(blob_head *h, int32_t k) {
  const hn_nest *n = &h->nest;
  operand *o = &h->operand[k];
  bool outer_still = true, repeated = h->tile_rows > 0 && k >= (int32_t)h->n_out;
  o->inner = n->stride[k][n->rank - 1];
  o->scale = 1, o->zero = 0, o->spared = 0;
  o->slot = -1;
  for (int32_t i = 0; i + 1 < n->rank; i++) outer_still = outer_still && n->stride[k][i] == 0;
  for (int32_t i = 0; i < h->block; i++) repeated = repeated && n->stride[k][i] == 0;
  if (o->inner == 0 && (outer_still || h->tile_rows == 0))
    o->access = SCALAR; /* one value a tile */
  else if (h->tile_rows == 0 ? o->inner == 1 : is_dense(n, k))
    o->access = o->element == 4 ? DIRECT : CONVERTED;
  else if (repeated)
    o->access = REPEATED;
  else
    o->access = GATHERED;
  if (o->access == REPEATED || o->access == GATHERED || o->access == CONVERTED)
    o->slot = (int32_t)h->n_slots++;
}

/* The last computing instruction may write to the output itself when nothing but its STORE follows. */
static void find_direct(blob_head *h, const hone_pw_program *p) {
  h->direct_instr = -1;
  if (p->n_instr < 2) return;
  const hone_pw_instr *store = &p->instr[p->n_instr - 1], *last = store - 1;
  if (store->op != HONE_PW_STORE || last->dst != store->a || hn_pw_arity(last->op) == 0 ||
      last->op == HONE_PW_STORE)
    return;
  if (h->operand[store->dst].access != DIRECT) return;
  h->direct_instr = (int32_t)p->n_instr - 2;
  h->direct_out = store->dst;
}

/* The instruction before `at` that makes register `reg`, or -1. */
static int32_t maker(const hone_pw_program *p, int32_t at, uint8_t reg) {
  while (--at >= 0 && (p->instr[at].op == HONE_PW_STORE || p->instr[at].dst != reg)) {
  }
  return at;
}

static bool made_by(const hone_pw_program *p, int32_t at, uint8_t reg, hone_pw_op op, int32_t *by) {
  *by = maker(p, at, reg);
  return *by >= 0 && p->instr[*by].op == op;
}

/* Whether register `reg` is read from instruction `at` on, before it is made anew. */
static bool is_read(const hone_pw_program *p, uint32_t at, uint8_t reg) {
  for (; at < p->n_instr; at++) {
    const hone_pw_instr *t = &p->instr[at];
    const unsigned arity = t->op == HONE_PW_STORE ? 1 : t->op == HONE_PW_LOAD ? 0 : hn_pw_arity(t->op);
    if ((arity > 0 && t->a == reg) || (arity > 1 && t->b == reg) || (arity > 2 && t->c == reg)) return true;
    if (t->op != HONE_PW_STORE && t->dst == reg) return false;
  }
  return false;
}

/* Codes whose LOAD is followed by (x - zero) * scale are dequantised as they are loaded, when nothing else
 * needs what lies between. */
static void find_loads(blob_head *h, const hone_pw_program *p) {
  uint32_t loads[MAX_OPERANDS] = {0};
  for (uint32_t i = 0; i < p->n_instr; i++)
    if (p->instr[i].op == HONE_PW_LOAD) loads[p->instr[i].a]++;
  for (uint32_t i = 0; i < p->n_instr; i++) {
    const hone_pw_instr *in = &p->instr[i];
    if (in->op != HONE_PW_LOAD || loads[in->a] != 1) continue;
    operand *o = &h->operand[h->n_out + in->a];
    if (o->element != 1 || !o->code) continue;
    uint32_t at = i + 1;
    uint8_t reg = in->dst, inner[4];
    uint32_t n = 0;
    float zero = 0;
    if (at + 1 < p->n_instr && in[1].op == HONE_PW_CONST && in[2].op == HONE_PW_SUB && in[2].a == reg &&
        in[2].b == in[1].dst && in[1].dst != reg) {
      inner[n++] = reg, inner[n++] = in[1].dst;
      zero = in[1].alpha, reg = in[2].dst, at += 2;
    }
    const hone_pw_instr *then = &p->instr[at];
    if (at + 1 >= p->n_instr || then[0].op != HONE_PW_CONST || then[1].op != HONE_PW_MUL ||
        then[1].a != reg || then[1].b != then[0].dst || then[0].dst == reg)
      continue;
    inner[n++] = reg, inner[n++] = then[0].dst;
    bool needed = false;
    for (uint32_t k = 0; k < n; k++) needed |= inner[k] != then[1].dst && is_read(p, at + 2, inner[k]);
    if (needed) continue;
    o->scale = then[0].alpha, o->zero = HN_FAULT("pointwise_zero") ? 0 : zero, o->spared = at + 1 - i;
  }
}

/* A program whose end is round(x / scale) + zero, stored as codes, leaves that to QuantizeLinear's kernel,
 * which knows when a division may be a product. */
static void find_codes(blob_head *h, const hone_pw_program *p) {
  const int32_t last = (int32_t)p->n_instr - 1;
  int32_t sum, whole, quotient, constant;
  h->codes_instr = -1;
  const hone_pw_instr *store = &p->instr[last];
  if (h->n_out != 1 || store->op != HONE_PW_STORE || h->operand[store->dst].element != 1 ||
      !h->operand[store->dst].code)
    return;
  float zero = 0;
  uint8_t rounded = store->a;
  int32_t from = last;
  if (made_by(p, last, rounded, HONE_PW_ADD, &sum)) {
    if (!made_by(p, sum, p->instr[sum].b, HONE_PW_CONST, &constant)) return;
    zero = p->instr[constant].alpha, rounded = p->instr[sum].a, from = sum;
  }
  if (!made_by(p, from, rounded, HONE_PW_ROUND, &whole) ||
      !made_by(p, whole, p->instr[whole].a, HONE_PW_DIV, &quotient) ||
      !made_by(p, quotient, p->instr[quotient].b, HONE_PW_CONST, &constant))
    return;
  const float scale = p->instr[constant].alpha;
  const float least = h->operand[store->dst].code == HONE_DTYPE_I8 ? -128 : 0;
  if (!(scale > 0) || !(zero >= least && zero <= least + 255) || zero != (float)(int32_t)zero) return;
  for (int32_t i = quotient + 1; i < last; i++) /* nothing else happens in between */
    if (i != whole && !(from == i && from != last) && p->instr[i].op != HONE_PW_CONST) return;
  h->codes_instr = HN_FAULT("pointwise_codes") ? whole : quotient, h->codes_scale = scale,
  h->codes_zero = zero;
}

/* The next instruction that is no constant, or n_instr. */
static uint32_t next_of(const hone_pw_program *p, uint32_t at) {
  do at++;
  while (at < p->n_instr && p->instr[at].op == HONE_PW_CONST);
  return at;
}

/* Whether register `reg` holds a constant at instruction `at`. */
static bool holds(const hone_pw_program *p, uint32_t at, uint8_t reg, float *number) {
  const int32_t by = maker(p, (int32_t)at, reg);
  if (by < 0 || p->instr[by].op != HONE_PW_CONST) return false;
  *number = p->instr[by].alpha;
  return true;
}

/* Clip, or Where(lo < r, r, lo) and Min, of register r from instruction `at` on. The last of them, or 0. */
static uint32_t read_ends(const hone_pw_program *p, uint32_t at, uint8_t r, hn_quantize_grid *g) {
  const hone_pw_instr *t = &p->instr[at];
  if (at >= p->n_instr) return 0;
  if (t->op == HONE_PW_CLIP && t->a == r) {
    g->lo = t->alpha, g->hi = t->beta;
    return at;
  }
  const uint32_t where = next_of(p, at), least = next_of(p, where);
  float lo;
  if (least >= p->n_instr || t->op != HONE_PW_LT || t->b != r || !holds(p, at, t->a, &g->lo)) return 0;
  const hone_pw_instr *w = &p->instr[where], *m = &p->instr[least];
  if (w->op != HONE_PW_WHERE || w->a != t->dst || w->b != r || !holds(p, where, w->c, &lo) || lo != g->lo ||
      m->op != HONE_PW_MIN || m->a != w->dst || !holds(p, least, m->b, &g->hi))
    return 0;
  g->least = true;
  return least;
}

/* Reads what begins with the division `at`. */
static bool read_grid(const hone_pw_program *p, uint32_t at, grid *g) {
  const hone_pw_instr *div = &p->instr[at];
  float scale;
  *g = (grid){.first = at};
  const uint32_t whole = next_of(p, at);
  if (div->op != HONE_PW_DIV || !holds(p, at, div->b, &g->to.scale) || whole >= p->n_instr ||
      p->instr[whole].op != HONE_PW_ROUND || p->instr[whole].a != div->dst)
    return false;
  const uint32_t ends = read_ends(p, next_of(p, whole), p->instr[whole].dst, &g->to);
  g->last = ends ? next_of(p, ends) : p->n_instr;
  if (g->last >= p->n_instr || !(g->to.scale > 0x1p-100f && g->to.scale < 0x1p100f) ||
      !(g->to.lo <= g->to.hi))
    return false;
  const hone_pw_instr *mul = &p->instr[g->last];
  if (mul->op != HONE_PW_MUL || mul->a != p->instr[ends].dst || !holds(p, g->last, mul->b, &scale) ||
      scale != g->to.scale)
    return false;
  for (uint32_t i = at; i < g->last; i++) { /* nobody needs what lies between */
    const hone_pw_instr *t = &p->instr[i];
    if (t->op != HONE_PW_CONST && t->dst != mul->dst && is_read(p, g->last + 1, t->dst)) return false;
  }
  return true;
}

static void find_grids(blob_head *h, const hone_pw_program *p) {
  for (uint32_t i = 0; i < p->n_instr && h->n_grids < MAX_GRIDS; i++)
    if (read_grid(p, i, &h->grid[h->n_grids])) i = h->grid[h->n_grids++].last;
}

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  if (!check_program(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "a pointwise step has no epilogue");
  const hone_tensor_desc *y = &s->output[0].desc;
  if (!hone_desc_known(y)) return hn_refuse(why, "dimensions of the output are not known");
  h->isa = hn_isa_of(m->isa);
  h->n_out = s->n_outputs;
  if (!hn_quantize_find(h->isa)) return hn_refuse(why, "no quantisation kernel for %s", hn_isa_name(h->isa));
  hn_nest_begin(&h->nest, y->rank, y->dim);
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    const hone_tensor_desc *d = &s->output[i].desc;
    if (!hone_desc_same_dims(d, y)) return hn_refuse(why, "output %u has other dimensions than output 0", i);
    if (!add_operand(h, d, "output", i, why)) return false;
  }
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!add_operand(h, &s->input[i].desc, "input", i, why)) return false;
  hn_nest_finish(&h->nest);
  const int64_t count = hn_nest_count(&h->nest);
  h->row = h->nest.dim[h->nest.rank - 1];
  h->rows = h->row ? count / h->row : 0;
  if (h->row > 0 && h->row < TILE / 2 && h->rows > 1) find_tiles(h);
  h->per_row = h->tile_rows ? 1 : hn_div_up(h->row, TILE);
  h->tiles = h->tile_rows ? hn_div_up(h->rows, h->tile_rows) : h->rows * h->per_row;
  for (int32_t k = 0; k < h->nest.n; k++) classify(h, k);
  find_direct(h, s->program);
  find_codes(h, s->program);
  find_loads(h, s->program);
  find_grids(h, s->program);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

/* The operand that says which power: one float known now, or NaN. */
static float exponent(const hone_step *s, uint32_t at) {
  const hone_pw_program *p = s->program;
  for (uint32_t i = at; i-- > 0;) {
    const hone_pw_instr *t = &p->instr[i];
    if (t->op == HONE_PW_STORE || t->dst != p->instr[at].b) continue;
    if (t->op == HONE_PW_CONST) return t->alpha;
    const hone_step_tensor *x = t->op == HONE_PW_LOAD ? &s->input[t->a] : NULL;
    const bool known = x && x->constant && x->desc.dtype == HONE_DTYPE_F32 && hone_desc_count(&x->desc) == 1;
    return known ? *(const float *)x->constant : NAN;
  }
  return NAN;
}

/* These exponents are not computed by powf. */
static double cycles(const hone_step *s, uint32_t at) {
  const hone_pw_op op = s->program->instr[at].op;
  const float e = op == HONE_PW_POW ? exponent(s, at) : 0;
  if (e == 3) return 2 * hn_pw_cycles(HONE_PW_MUL);
  if (e == -0.5f) return hn_pw_cycles(HONE_PW_SQRT) + hn_pw_cycles(HONE_PW_DIV);
  return hn_pw_cycles(e == 2 ? HONE_PW_MUL : e == -1 ? HONE_PW_RECIPROCAL : e == 0.5f ? HONE_PW_SQRT : op);
}

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  double per_element = 0, bytes = 0;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const uint32_t n = h.codes_instr < 0 ? s->program->n_instr : (uint32_t)h.codes_instr;
  for (uint32_t i = 0; i < n; i++) {
    const hone_pw_instr *t = &s->program->instr[i];
    if (t->op == HONE_PW_LOAD) i += h.operand[h.n_out + t->a].spared;
    per_element += cycles(s, i);
  }
  for (int32_t k = 0; k < h.nest.n; k++) {
    const hone_tensor_desc *d =
        k < (int32_t)s->n_outputs ? &s->output[k].desc : &s->input[k - (int32_t)s->n_outputs].desc;
    bytes += (double)hone_desc_bytes(d);
    const operand *o = &h.operand[k];
    const bool expanded = o->element == 4 && (o->inner == 0 || o->inner == 1);
    if (o->access == GATHERED) per_element += expanded ? 1 + 4.0 / (double)h.row : 4;
    if (o->access == CONVERTED) per_element += 1;
  }
  /* A cycle of one vector is as long as two fused multiply-adds of it: 4 FLOP a lane. */
  return hn_step_seconds(m, 2 * per_element * (double)hn_nest_count(&h.nest), bytes, 0.5);
}

/* ---------------------------------------------------------------- running */

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const struct hn_pw_ops *ops;
  const struct hn_halves_ops *halves;
  const struct hn_quantize_ops *codes;
  int64_t tiles_per_task;
} job;

/* One thread's scratch: a tile for each register and each operand that needs one, and scalars. */
static size_t scratch_floats(const blob_head *h) {
  return (size_t)(HONE_PW_REGISTERS + h->n_slots) * TILE + 64;
}

typedef struct state {
  const job *j;
  float *registers, *slots, *scalars;
  const float *value[HONE_PW_REGISTERS]; /* where a register's value lies */
  bool uniform[HONE_PW_REGISTERS];       /* it is one float */
  int64_t first_row, at, n;              /* the tile: first row, start within the row, elements */
} state;

static const void *operand_base(const state *t, int32_t k) {
  const blob_head *h = t->j->h;
  return k < (int32_t)h->n_out ? t->j->run->out[k] : t->j->run->in[k - (int32_t)h->n_out];
}

/* Where operand k lies at the tile's first element. */
static const void *operand_at(const state *t, int32_t k) {
  const blob_head *h = t->j->h;
  const int64_t offset = hn_nest_offset(&h->nest, k, t->first_row, 1) + t->at * h->operand[k].inner;
  return (const char *)operand_base(t, k) + offset * h->operand[k].element;
}

static bool is_half(const operand *o) { return o->element == 2; }

static void widen(const job *j, float *dst, const void *src, size_t n, const operand *o) {
  (o->code == HONE_DTYPE_F16 ? j->halves->from_f16 : j->halves->from_bf16)(dst, src, n);
}

static float load_one(const void *p, const operand *o) {
  if (o->code == HONE_DTYPE_F16) return hn_f16_to_f32(*(const uint16_t *)p);
  if (o->code == HONE_DTYPE_BF16) return hn_bf16_to_f32(*(const uint16_t *)p);
  if (o->code == HONE_DTYPE_U8) return ((float)*(const uint8_t *)p - o->zero) * o->scale;
  if (o->code == HONE_DTYPE_I8) return ((float)*(const int8_t *)p - o->zero) * o->scale;
  if (o->element == 1) return *(const uint8_t *)p ? 1.0f : 0.0f;
  return *(const float *)p;
}

/* n elements with a stride other than 0 into consecutive floats. */
static void gather(const job *j, float *dst, const void *src, int64_t stride, int64_t n, const operand *o) {
  if (is_half(o) && stride == 1) {
    widen(j, dst, src, (size_t)n, o);
  } else if (is_half(o)) {
    const uint16_t *p = src;
    for (int64_t i = 0; i < n; i++) dst[i] = load_one(p + i * stride, o);
  } else if (o->code) {
    const uint8_t *p = src;
    if (stride == 1)
      j->codes->dequantize(dst, src, (size_t)n, &o->scale, &o->zero, false, o->code == HONE_DTYPE_I8);
    else
      for (int64_t i = 0; i < n; i++) dst[i] = load_one(p + i * stride, o);
  } else if (o->element == 1 && stride == 1) {
    j->ops->from_bool(dst, src, (size_t)n);
  } else if (o->element == 1) {
    const uint8_t *p = src;
    for (int64_t i = 0; i < n; i++) dst[i] = p[i * stride] ? 1.0f : 0.0f;
  } else if (stride == 1) {
    memcpy(dst, src, (size_t)n * sizeof *dst);
  } else {
    const float *p = src;
    for (int64_t i = 0; i < n; i++) dst[i] = p[i * stride];
  }
}

/* The codes saturate. */
static void scatter_codes(const job *j, const float *src, bool uniform, uint8_t *dst, int64_t stride,
                          int64_t n, const operand *o) {
  const blob_head *h = j->h;
  const bool is_signed = o->code == HONE_DTYPE_I8, whole = h->codes_instr < 0;
  const float scale = whole ? 1 : h->codes_scale, zero = whole ? 0 : h->codes_zero;
  void (*quantize)(void *, const float *, size_t, const float *, const float *, bool, bool) =
      whole ? j->codes->requantize : j->codes->quantize;
  if (stride == 1 && !uniform) {
    quantize(dst, src, (size_t)n, &scale, &zero, false, is_signed);
    return;
  }
  uint8_t one[TILE];
  quantize(one, src, uniform ? 1 : (size_t)n, &scale, &zero, false, is_signed);
  for (int64_t i = 0; i < n; i++) dst[i * stride] = one[uniform ? 0 : i];
}

static void scatter_halves(const job *j, const float *src, bool uniform, uint16_t *dst, int64_t stride,
                           int64_t n, const operand *o) {
  const struct hn_halves_ops *ops = j->halves;
  void (*narrow)(void *, const float *, size_t) = o->code == HONE_DTYPE_F16 ? ops->to_f16 : ops->to_bf16;
  if (stride == 1 && !uniform) {
    narrow(dst, src, (size_t)n);
    return;
  }
  uint16_t one[TILE];
  narrow(one, src, uniform ? 1 : (size_t)n);
  for (int64_t i = 0; i < n; i++) dst[i * stride] = one[uniform ? 0 : i];
}

static void scatter(const job *j, const float *src, bool uniform, void *dst, int64_t stride, int64_t n,
                    const operand *o) {
  if (is_half(o)) {
    scatter_halves(j, src, uniform, dst, stride, n, o);
  } else if (o->code) {
    scatter_codes(j, src, uniform, dst, stride, n, o);
  } else if (o->element == 1 && stride == 1 && !uniform) {
    j->ops->to_bool(dst, src, (size_t)n);
  } else if (o->element == 1) {
    uint8_t *p = dst;
    for (int64_t i = 0; i < n; i++) p[i * stride] = src[uniform ? 0 : i] != 0.0f;
  } else if (stride == 1 && !uniform) {
    memmove(dst, src, (size_t)n * sizeof *src);
  } else {
    float *p = dst;
    for (int64_t i = 0; i < n; i++) p[i * stride] = src[uniform ? 0 : i];
  }
}

/* Where a row of operand k begins; how many rows follow each other at one distance from there; and that, in
 * bytes. */
static char *row_at(const state *t, int32_t k, int64_t row) {
  const blob_head *h = t->j->h;
  return (char *)(uintptr_t)operand_base(t, k) + hn_nest_offset(&h->nest, k, row, 1) * h->operand[k].element;
}
static int64_t rows_alike(const state *t, int64_t row, int64_t most) {
  const hn_nest *n = &t->j->h->nest;
  const int64_t dim = n->rank > 1 ? n->dim[n->rank - 2] : 1, left = dim - row % dim;
  return left < most ? left : most;
}
static int64_t row_step(const state *t, int32_t k) {
  const hn_nest *n = &t->j->h->nest;
  return n->rank > 1 ? n->stride[k][n->rank - 2] * t->j->h->operand[k].element : 0;
}

/* The value of each of `rows` rows, which is all that they hold, and then the rows. */
static void fill_rows(const state *t, const operand *o, const char *x, int64_t step, int64_t rows,
                      float *dst) {
  float one[TILE];
  if (step == 0)
    one[0] = load_one(x, o);
  else
    gather(t->j, one, x, step / o->element, rows, o);
  t->j->ops->rows(dst, one, (size_t)rows, (size_t)t->j->h->row, step != 0, false);
}

/* Rows of an operand into its slot. */
static void expand(const state *t, int32_t k, int64_t first_row, int64_t rows) {
  const blob_head *h = t->j->h;
  const operand *o = &h->operand[k];
  float *slot = t->slots + (int64_t)o->slot * TILE;
  if (o->element == 4) {
    hn_expand_rows(h->isa, &h->nest, k, operand_base(t, k), first_row, rows, slot);
    return;
  }
  for (int64_t r = 0, run; r < rows; r += run) {
    const char *x = row_at(t, k, first_row + r);
    run = rows_alike(t, first_row + r, rows - r);
    if (o->inner == 0) {
      fill_rows(t, o, x, row_step(t, k), run, slot + r * h->row);
      continue;
    }
    for (int64_t i = 0; i < run; i++, x += row_step(t, k))
      gather(t->j, slot + (r + i) * h->row, x, o->inner, h->row, o);
  }
}

/* Into register dst. */
static void load(state *t, int32_t k, uint8_t dst) {
  const blob_head *h = t->j->h;
  const operand *o = &h->operand[k];
  float *slot = t->slots + (int64_t)(o->slot < 0 ? 0 : o->slot) * TILE;
  t->uniform[dst] = o->access == SCALAR;
  switch (o->access) {
  case SCALAR:
    t->scalars[dst] = load_one(operand_at(t, k), o);
    t->value[dst] = &t->scalars[dst];
    return;
  case DIRECT: t->value[dst] = operand_at(t, k); return;
  case REPEATED: break; /* expanded at the task's start */
  case CONVERTED: gather(t->j, slot, operand_at(t, k), 1, t->n, o); break;
  default:
    if (h->tile_rows == 0)
      gather(t->j, slot, operand_at(t, k), o->inner, t->n, o);
    else
      expand(t, k, t->first_row, t->n / h->row);
  }
  t->value[dst] = slot;
}

/* Register `from` to output k. */
static void store(state *t, int32_t k, uint8_t from) {
  const blob_head *h = t->j->h;
  const operand *o = &h->operand[k];
  const float *src = t->value[from];
  const bool uniform = t->uniform[from];
  const bool dense = o->access == DIRECT || o->access == CONVERTED;
  if (dense || h->tile_rows == 0) {
    scatter(t->j, src, uniform, (void *)(uintptr_t)operand_at(t, k), dense ? 1 : o->inner, t->n, o);
    return;
  }
  const int64_t rows = t->n / h->row;
  for (int64_t r = 0, run; r < rows; r += run) {
    char *y = row_at(t, k, t->first_row + r);
    run = rows_alike(t, t->first_row + r, rows - r);
    for (int64_t i = 0; i < run; i++, y += row_step(t, k))
      scatter(t->j, uniform ? src : src + (r + i) * h->row, uniform, y, o->inner, h->row, o);
  }
}

static void compute(state *t, const hone_pw_instr *ins, bool direct) {
  const blob_head *h = t->j->h;
  const unsigned arity = hn_pw_arity(ins->op);
  const uint8_t source[3] = {ins->a, ins->b, ins->c};
  const float *x[3] = {NULL, NULL, NULL}, p[2] = {ins->alpha, ins->beta};
  unsigned uniform = 0;
  for (unsigned k = 0; k < arity; k++) {
    x[k] = t->value[source[k]];
    uniform |= (unsigned)t->uniform[source[k]] << k;
  }
  const bool one = uniform == (1u << arity) - 1u && (!direct || HN_FAULT("pointwise_uniform_result"));
  float *dst = one ? &t->scalars[ins->dst] : t->registers + (int64_t)ins->dst * TILE;
  if (direct) dst = (float *)(uintptr_t)operand_at(t, (int32_t)h->direct_out);
  t->j->ops->fn[ins->op](dst, x[0], x[1], x[2], one ? 1 : (size_t)t->n, uniform, p);
  t->value[ins->dst] = dst;
  t->uniform[ins->dst] = one;
}

static void set_constant(state *t, const hone_pw_instr *ins) {
  t->scalars[ins->dst] = ins->alpha;
  t->value[ins->dst] = &t->scalars[ins->dst];
  t->uniform[ins->dst] = true;
}

/* Of a tile, unless it is one number: then its instructions are run. */
static bool run_grid(state *t, const grid *g) {
  const blob_head *h = t->j->h;
  const hone_pw_instr *ins = t->j->run->step->program->instr, *last = &ins[g->last];
  const float *x = t->value[ins[g->first].a];
  const bool direct = (int32_t)g->last == h->direct_instr;
  if (t->uniform[ins[g->first].a]) return false;
  for (uint32_t i = g->first; i < g->last; i++)
    if (ins[i].op == HONE_PW_CONST) set_constant(t, &ins[i]);
  float *dst = direct ? (float *)(uintptr_t)operand_at(t, (int32_t)h->direct_out)
                      : t->registers + (int64_t)last->dst * TILE;
  t->j->codes->grid(dst, x, (size_t)t->n, &g->to);
  t->value[last->dst] = dst;
  t->uniform[last->dst] = false;
  return true;
}

static void run_tile(state *t) {
  const hone_pw_program *p = t->j->run->step->program;
  const grid *grid = t->j->h->grid, *end = grid + t->j->h->n_grids;
  for (uint32_t i = 0; i < p->n_instr; i++) {
    if (grid < end && grid->first == i) {
      const struct grid *g = grid++;
      if (run_grid(t, g)) {
        i = g->last;
        if ((int32_t)i == t->j->h->direct_instr) break;
        continue;
      }
    }
    const hone_pw_instr *ins = &p->instr[i];
    const bool direct = (int32_t)i == t->j->h->direct_instr;
    if ((int32_t)i == t->j->h->codes_instr) {
      store(t, p->instr[p->n_instr - 1].dst, ins->a);
      break;
    }
    switch (ins->op) {
    case HONE_PW_LOAD: {
      const int32_t k = (int32_t)(t->j->h->n_out + ins->a);
      i += t->j->h->operand[k].spared;
      load(t, k, p->instr[i].dst);
      break;
    }
    case HONE_PW_CONST: set_constant(t, ins); break;
    case HONE_PW_STORE: store(t, ins->dst, ins->a); break;
    default: compute(t, ins, direct); break;
    }
    if (direct) break; /* its STORE is done */
  }
}

static void expand_repeated(const state *t) {
  const blob_head *h = t->j->h;
  for (int32_t k = (int32_t)h->n_out; k < h->nest.n; k++) {
    const operand *o = &h->operand[k];
    if (o->access != REPEATED || (HN_FAULT("pointwise_repeated") && o->slot > 0)) continue;
    expand(t, k, 0, h->rows < h->tile_rows ? h->rows : h->tile_rows);
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  state t = {.j = j};
  t.registers = (float *)j->run->workspace + (size_t)thread * scratch_floats(h);
  t.slots = t.registers + HONE_PW_REGISTERS * TILE;
  t.scalars = t.slots + (size_t)h->n_slots * TILE;
  expand_repeated(&t);
  int64_t tile = index * j->tiles_per_task, end = tile + j->tiles_per_task;
  for (end = end < h->tiles ? end : h->tiles; tile < end; tile++) {
    if (h->tile_rows) {
      t.first_row = tile * h->tile_rows;
      t.n = (h->rows - t.first_row < h->tile_rows ? h->rows - t.first_row : h->tile_rows) * h->row;
    } else {
      t.first_row = tile / h->per_row;
      t.at = tile % h->per_row * TILE;
      t.n = h->row - t.at < TILE ? h->row - t.at : TILE;
      if (HN_FAULT("pointwise_last_tile") && t.at > 0) t.n = TILE / 2 < t.n ? TILE / 2 : t.n;
    }
    run_tile(&t);
  }
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "pointwise: %s", why.text);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = scratch_floats(&h) * sizeof(float) * m->threads;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (!describe(s, m, blob, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "pointwise: %s", why.text);
  return HONE_OK;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  if (h->tiles == 0) return HONE_OK;
  /* A handful of tasks a thread, of at least four tiles, so that handing out costs little. */
  int64_t per_task = h->tiles / ((int64_t)r->threads * 4);
  job j = {r,
           h,
           hn_pw_find(h->isa),
           hn_halves_find(h->isa),
           hn_quantize_find(h->isa),
           per_task < 4 ? 4 : per_task};
  const int64_t tasks = hn_div_up(h->tiles, j.tiles_per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, pointwise, "Pointwise", 6, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
