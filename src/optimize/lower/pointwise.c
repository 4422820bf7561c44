/* From a group of pointwise units to a register program.
 *
 * Values get virtual registers in order of production; a linear scan then maps them onto HONE_PW_REGISTERS,
 * freeing a register after its last reader. Operands are loaded just before their first use, so that they
 * live briefly. */
#include "optimize/lower/codes.h"

#include <string.h>

enum { MAX_INSTR = 192 };

typedef struct builder {
  hone_pw_instr instr[MAX_INSTR]; /* with virtual registers in wide[] */
  uint32_t wide[MAX_INSTR][4];    /* dst, a, b, c */
  uint32_t n, next;
  bool full;
} builder;

static uint32_t emit(builder *b, hone_pw_op op, uint32_t a, uint32_t x, uint32_t y, float alpha, float beta) {
  if (b->n == MAX_INSTR) {
    b->full = true;
    return 0;
  }
  b->instr[b->n] = (hone_pw_instr){.op = (uint8_t)op, .alpha = alpha, .beta = beta};
  uint32_t dst = b->next++;
  b->wide[b->n][0] = dst;
  b->wide[b->n][1] = a;
  b->wide[b->n][2] = x;
  b->wide[b->n][3] = y;
  b->n++;
  return dst;
}

/* Registers that an instruction reads. */
static uint32_t arity(uint8_t op) {
  if (op == HONE_PW_LOAD || op == HONE_PW_CONST) return 0;
  if (op == HONE_PW_WHERE) return 3;
  if (op >= HONE_PW_ADD && op <= HONE_PW_XOR) return 2;
  return 1;
}

typedef struct operand_regs {
  const hn_value *value;
  uint32_t reg;
} operand_regs;

static uint32_t with_number(builder *b, hone_pw_op op, uint32_t x, float number) {
  const uint32_t c = emit(b, HONE_PW_CONST, 0, 0, 0, number, 0);
  return emit(b, op, x, c, 0, 0, 0);
}

/* What codes mean: (x - zero) * scale, as DequantizeLinear computes it. */
static uint32_t from_codes(builder *b, uint32_t x, const hone_node *dequantise) {
  float scale, zero;
  hn_codes_of(dequantise, dequantise->in[0]->desc.dtype, &scale, &zero);
  if (zero != 0) x = with_number(b, HONE_PW_SUB, x, zero);
  return with_number(b, HONE_PW_MUL, x, scale);
}

/* round(x / scale) + zero, as QuantizeLinear computes it; the STORE saturates. */
static uint32_t to_codes(builder *b, uint32_t x, const hone_node *quantise) {
  float scale, zero;
  hn_codes_of(quantise, quantise->out[0]->desc.dtype, &scale, &zero);
  x = emit(b, HONE_PW_ROUND, with_number(b, HONE_PW_DIV, x, scale), 0, 0, 0, 0);
  return zero != 0 ? with_number(b, HONE_PW_ADD, x, zero) : x;
}

bool hn_pointwise_program(hn_lowering *l, hn_unit *const *group, uint32_t n, hn_value **in, uint32_t *n_in,
                          uint32_t max_in, hone_pw_program *program) {
  builder *b = HN_NEW(l->temp, builder);
  operand_regs *known = HN_NEW_ARRAY(l->temp, operand_regs, n + max_in + 64);
  if (!b || !known) return false;
  uint32_t n_known = 0;
  *n_in = 0;
  for (uint32_t k = 0; k < n; k++) {
    const hn_unit *u = group[k];
    uint32_t reg[HN_UNIT_OPERANDS] = {0};
    for (uint32_t i = 0; i < u->n_in; i++) {
      uint32_t j = 0;
      while (j < n_known && known[j].value != u->in[i]) j++;
      if (j == n_known) {
        float scalar;
        uint32_t r;
        if (hn_scalar_constant(u->in[i], &scalar))
          r = emit(b, HONE_PW_CONST, 0, 0, 0, scalar, 0);
        else {
          if (*n_in == max_in) return false;
          const hone_node *codes = group[n - 1]->kind == HN_UNIT_CODES ? hn_of_any_codes(u->in[i]) : NULL;
          in[*n_in] = codes ? codes->in[0] : u->in[i];
          r = emit(b, HONE_PW_LOAD, *n_in, 0, 0, 0, 0);
          if (codes) r = from_codes(b, r, codes);
          ++*n_in;
        }
        if (n_known == n + max_in + 64) return false;
        known[n_known++] = (operand_regs){u->in[i], r};
      }
      reg[i] = known[j].reg;
    }
    uint32_t result;
    if (u->kind == HN_UNIT_CODES)
      result = to_codes(b, reg[0], u->node);
    else if (u->chain) {
      result = reg[0];
      for (uint32_t i = 1; i < u->n_in; i++) result = emit(b, u->op, result, reg[i], 0, 0, 0);
    } else
      result = emit(b, u->op, reg[0], reg[1], reg[2], u->alpha, u->beta);
    if (n_known == n + max_in + 64) return false;
    known[n_known++] = (operand_regs){u->out, result};
  }
  uint32_t root = known[n_known - 1].reg;
  emit(b, HONE_PW_STORE, root, 0, 0, 0, 0);
  if (b->full) return false;

  /* Linear scan. */
  uint32_t last[MAX_INSTR + 1] = {0}, phys[MAX_INSTR + 1];
  for (uint32_t i = 0; i < b->n; i++)
    for (uint32_t k = 0; k < arity(b->instr[i].op); k++) last[b->wide[i][1 + k]] = i;
  bool busy[HONE_PW_REGISTERS] = {false};
  hone_pw_instr *out = HN_NEW_ARRAY(&l->plan->arena, hone_pw_instr, b->n);
  if (!out) return false;
  for (uint32_t i = 0; i < b->n; i++) {
    out[i] = b->instr[i];
    uint8_t op = out[i].op;
    uint32_t reads = arity(op);
    uint8_t r[3] = {0, 0, 0};
    for (uint32_t k = 0; k < reads; k++) r[k] = (uint8_t)phys[b->wide[i][1 + k]];
    for (uint32_t k = 0; k < reads; k++)
      if (last[b->wide[i][1 + k]] == i) busy[r[k]] = false;
    out[i].a = op == HONE_PW_LOAD ? (uint8_t)b->wide[i][1] : r[0];
    out[i].b = r[1];
    out[i].c = r[2];
    if (op == HONE_PW_STORE) {
      out[i].dst = 0;
      continue;
    }
    uint32_t p = 0;
    while (p < HONE_PW_REGISTERS && busy[p]) p++;
    if (p == HONE_PW_REGISTERS) return false;
    busy[p] = true;
    phys[b->wide[i][0]] = p;
    out[i].dst = (uint8_t)p;
  }
  program->n_instr = b->n;
  program->instr = out;
  return true;
}
