/* Programs x k + d, a function and QuantizeLinear, k and d one number a channel, in one pass over rows of
 * channels (kernels act_codes): what is left of a normalisation between what a Concat gathers in f32 and the
 * codes of a convolution. The same codes as the program's (kernels/act_codes says which function differs). */
#include <string.h>

#include "backends/cpu/kernels/act_codes/act_codes.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"

enum { TASK = 16384, NOTHING = -1 };

typedef struct affine {
  int64_t rows, n, x_pitch, y_pitch, per_task;
  int32_t x, factor, sum; /* inputs; NOTHING: it is not there */
  int32_t act;
  hn_isa isa;
  float p[2], scale, over, zero;
  int64_t is_signed;
} affine;

/* What a register holds: an operand, a number, or the row's value so far. */
typedef enum holds { UNKNOWN, OPERAND, NUMBER, VALUE } holds;
typedef struct state {
  holds what;
  int32_t input;
  float number;
} state;

/* The parts of the program in their order. */
typedef enum stage { LOADED, SCALED, SHIFTED, DONE, DIVIDED, ROUNDED, MOVED } stage;

typedef struct reader {
  const hone_step *s;
  affine *a;
  state reg[HONE_PW_REGISTERS];
  stage at;
} reader;

static bool is_vector(const hone_step *s, int32_t input, int64_t n) {
  const hone_tensor_desc *d = &s->input[input].desc;
  return d->dtype == HONE_DTYPE_F32 && hone_desc_known(d) && hone_desc_count(d) == n;
}

/* The full operand becomes the value by its first use. */
static bool is_value(reader *r, const state *v) {
  if (v->what == VALUE || (v->what == OPERAND && v->input == r->a->x)) return true;
  if (v->what != OPERAND || r->a->x != NOTHING || is_vector(r->s, v->input, r->a->n) ||
      !hone_desc_same_dims(&r->s->input[v->input].desc, &r->s->output[0].desc))
    return false;
  r->a->x = v->input;
  return true;
}

static bool binary(reader *r, hone_pw_op op, const state *u, const state *v) {
  affine *a = r->a;
  const bool turned = op != HONE_PW_DIV && !is_value(r, u);
  const state *value = turned ? v : u, *other = turned ? u : v;
  if (!is_value(r, value)) return false;
  const bool vector = other->what == OPERAND && is_vector(r->s, other->input, a->n);
  if (op == HONE_PW_MUL && vector && r->at < SCALED) {
    a->factor = other->input, r->at = SCALED;
  } else if (op == HONE_PW_ADD && vector && r->at < SHIFTED) {
    a->sum = other->input, r->at = SHIFTED;
  } else if (op == HONE_PW_DIV && other->what == NUMBER && r->at < DIVIDED) {
    a->scale = other->number, r->at = DIVIDED;
  } else if (op == HONE_PW_ADD && other->what == NUMBER && r->at == ROUNDED) {
    a->zero = other->number, r->at = MOVED;
  } else {
    return false;
  }
  return true;
}

static bool unary(reader *r, const hone_pw_instr *t) {
  const float p[2] = {t->alpha, t->beta};
  if (!is_value(r, &r->reg[t->a])) return false;
  if (t->op == HONE_PW_ROUND && r->at == DIVIDED) {
    r->at = ROUNDED;
    return true;
  }
  if (r->at >= DONE || !hn_act_codes_takes(t->op, p)) return false;
  r->a->act = t->op, r->at = DONE;
  memcpy(r->a->p, p, sizeof p);
  return true;
}

/* A program that is nothing else. */
static bool read_program(const hone_step *s, affine *a) {
  reader r = {.s = s, .a = a};
  const hone_pw_program *p = s->program;
  a->x = a->factor = a->sum = NOTHING, a->act = HONE_PW_NONE;
  for (uint32_t i = 0; p && i < p->n_instr; i++) {
    const hone_pw_instr *t = &p->instr[i];
    state made = {VALUE, 0, 0};
    if (t->op >= HONE_PW_COUNT || t->a >= HONE_PW_REGISTERS || t->b >= HONE_PW_REGISTERS ||
        t->dst >= HONE_PW_REGISTERS)
      return false;
    if (t->op == HONE_PW_STORE) return i + 1 == p->n_instr && r.reg[t->a].what == VALUE && r.at >= ROUNDED;
    if (t->op == HONE_PW_LOAD) {
      if (t->a >= s->n_inputs) return false;
      made = (state){OPERAND, t->a, 0};
    } else if (t->op == HONE_PW_CONST) {
      made = (state){NUMBER, 0, t->alpha};
    } else if (hn_pw_arity(t->op) == 2) {
      if (!binary(&r, t->op, &r.reg[t->a], &r.reg[t->b])) return false;
    } else if (hn_pw_arity(t->op) != 1 || !unary(&r, t)) {
      return false;
    }
    /* There is one value: what it was before is gone. */
    for (int k = 0; made.what == VALUE && k < HONE_PW_REGISTERS; k++)
      if (r.reg[k].what == VALUE || (r.reg[k].what == OPERAND && r.reg[k].input == a->x))
        r.reg[k].what = UNKNOWN;
    r.reg[t->dst] = made;
  }
  return false;
}

/* Rows of channels, without gaps between channels. */
static bool read_rows(const hone_step *s, affine *a, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  hn_nest n;
  hn_nest_begin(&n, y->rank, y->dim);
  if (!hn_nest_add_broadcast(&n, y)) return false;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!hone_desc_known(&s->input[i].desc) || !hn_nest_add_broadcast(&n, &s->input[i].desc))
      return hn_refuse(why, "an operand does not broadcast to the output");
  hn_nest_finish(&n);
  if (n.rank != 2) return hn_refuse(why, "the tensors are no rows of channels");
  a->rows = n.dim[0], a->n = n.dim[1], a->y_pitch = n.stride[0][0];
  for (int32_t k = 0; k < n.n; k++)
    if (n.stride[k][1] != 1) return hn_refuse(why, "an operand has gaps between channels");
  if (!read_program(s, a) || a->x == NOTHING || (a->factor == NOTHING && a->sum == NOTHING))
    return hn_refuse(why, "the program is not a scale and a shift a channel, a function and codes");
  for (int32_t k = 1; k < n.n; k++) {
    if (k - 1 == a->x)
      a->x_pitch = n.stride[k][0];
    else if (n.stride[k][0] != 0 || (k - 1 != a->factor && k - 1 != a->sum))
      return hn_refuse(why, "an operand is no vector of channels");
  }
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, affine *a, hone_reason *why) {
  memset(a, 0, sizeof *a);
  if (s->n_outputs != 1 || s->n_inputs < 2 || s->n_inputs > 3 || s->n_epilogue)
    return hn_refuse(why, "other tensors than one to one with its vectors");
  const hone_tensor_desc *y = &s->output[0].desc;
  a->is_signed = y->dtype == HONE_DTYPE_I8;
  if (!hone_desc_known(y) || (y->dtype != HONE_DTYPE_U8 && y->dtype != HONE_DTYPE_I8))
    return hn_refuse(why, "the output is no codes of 8 bits");
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (s->input[i].desc.dtype != HONE_DTYPE_F32) return hn_refuse(why, "an operand is not f32");
  a->isa = hn_isa_of(m->isa);
  if (!hn_act_codes_find(a->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(a->isa));
  if (!read_rows(s, a, why)) return false;
  const float least = a->is_signed ? -128 : 0;
  if (!(a->scale > 0x1p-100f && a->scale < 0x1p100f) || !(a->zero >= least && a->zero <= least + 255) ||
      a->zero != (float)(int32_t)a->zero)
    return hn_refuse(why, "the codes' scale or zero point is out of range");
  a->over = 1.0f / a->scale;
  a->per_task = hn_max(1, TASK / a->n);
  return true;
}

HN_DESCRIBED(affine)

static double cost(const hone_step *s, const hone_machine *m) {
  affine a;
  if (!describe(s, m, &a, NULL)) return HN_REFUSED_SECONDS;
  const double n = (double)(a.rows * a.n),
               function = a.act == HONE_PW_NONE ? 0 : hn_pw_cycles((hone_pw_op)a.act);
  return hn_step_seconds(m, 4 * (1 + function / 2) * n, 5 * n, 0.5);
}

static void task(void *arg, int64_t i, uint32_t thread) {
  const hone_step_run *r = arg;
  const affine *a = r->blob;
  const int64_t r0 = i * a->per_task, rows = hn_min(a->per_task, a->rows - r0);
  const hn_act_codes c = {.factor =
                              a->factor == NOTHING || HN_FAULT("affine_factor") ? NULL : r->in[a->factor],
                          .bias = a->sum == NOTHING ? NULL : r->in[a->sum],
                          .act = (hone_pw_op)a->act,
                          .p = {a->p[0], a->p[1]},
                          .scale = &a->scale,
                          .over = &a->over,
                          .zero = a->zero,
                          .is_signed = a->is_signed != 0};
  (void)thread;
  hn_act_codes_find(a->isa)->rows(&c, (uint8_t *)r->out[0] + r0 * a->y_pitch, a->y_pitch,
                                  (const float *)r->in[a->x] + r0 * a->x_pitch, a->x_pitch, (size_t)rows,
                                  (size_t)a->n);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const affine *a = r->blob;
  const int64_t tasks = hn_div_up(a->rows, a->per_task);
  (void)error;
  if (tasks == 1)
    task((void *)(uintptr_t)r, 0, 0);
  else
    r->parallel(r->pool, tasks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, affine_codes, "Pointwise", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
