#include "backends/cuda/step/program.h"

#include "backends/cuda/step/functions.h"
#include "base/error.h"

bool hn_cuda_program_accepts(const hone_step *s, hone_reason *why) {
  const hone_pw_program *p = s->program;
  if (!p || p->n_instr == 0) return hn_refuse(why, "the step has no program");
  for (uint32_t i = 0; i < p->n_instr; i++) {
    const hone_pw_instr *t = &p->instr[i];
    const uint8_t source[3] = {t->a, t->b, t->c};
    const bool load = t->op == HONE_PW_LOAD, store = t->op == HONE_PW_STORE;
    unsigned operands;
    if (!hn_cuda_function(t->op, &operands) && !load && !store && t->op != HONE_PW_CONST)
      return hn_refuse(why, "instruction %u is unknown", i);
    if (t->dst >= (store ? s->n_outputs : HONE_PW_REGISTERS))
      return hn_refuse(why, "instruction %u: bad destination", i);
    if (load && t->a >= s->n_inputs) return hn_refuse(why, "instruction %u: bad input", i);
    for (unsigned k = 0; k < (store ? 1 : operands); k++)
      if (source[k] >= HONE_PW_REGISTERS) return hn_refuse(why, "instruction %u: bad register", i);
  }
  return true;
}

/* x^c for the exponents that models spell out as a power; false: as any other. */
static bool known_power(const hone_pw_instr *t, float exponent, hn_str *text) {
  if (exponent == 2.0f)
    hn_str_printf(text, "    r%u = r%u * r%u;\n", t->dst, t->a, t->a);
  else if (exponent == 3.0f)
    hn_str_printf(text, "    r%u = r%u * r%u * r%u;\n", t->dst, t->a, t->a, t->a);
  else if (exponent == -1.0f)
    hn_str_printf(text, "    r%u = 1.0f / r%u;\n", t->dst, t->a);
  else if (exponent == 0.5f) /* powf(-inf, 0.5) is inf, powf(-0, 0.5) is 0 */
    hn_str_printf(text, "    r%u = r%u == -hn_from_bits(0x7f800000u) ? -r%u : sqrtf(r%u) + 0.0f;\n", t->dst,
                  t->a, t->a, t->a);
  else
    return false;
  return true;
}

static void function(const hone_pw_instr *t, hn_str *text) {
  unsigned operands;
  const char *name = hn_cuda_function(t->op, &operands);
  if (operands == 1) {
    hn_str_printf(text, "    r%u = hn_fn_%s(r%u, ", t->dst, name, t->a);
    hn_cuda_literal(text, t->alpha);
    hn_str_puts(text, ", ");
    hn_cuda_literal(text, t->beta);
    hn_str_puts(text, ");\n");
  } else if (operands == 2) {
    hn_str_printf(text, "    r%u = hn_fn2_%s(r%u, r%u);\n", t->dst, name, t->a, t->b);
  } else {
    hn_str_printf(text, "    r%u = hn_fn3_%s(r%u, r%u, r%u);\n", t->dst, name, t->a, t->b, t->c);
  }
}

void hn_cuda_program(const hone_step *s, hn_str *text) {
  const hone_pw_program *p = s->program;
  bool known[HONE_PW_REGISTERS] = {false}; /* the register holds a constant */
  float value[HONE_PW_REGISTERS];
  uint32_t used = 0;
  for (uint32_t i = 0; i < p->n_instr; i++)
    if (p->instr[i].op != HONE_PW_STORE) used |= 1u << p->instr[i].dst;
  for (uint32_t r = 0; r < HONE_PW_REGISTERS; r++)
    if (used >> r & 1) hn_str_printf(text, "    float r%u;\n", r);
  for (uint32_t i = 0; i < p->n_instr; i++) {
    const hone_pw_instr *t = &p->instr[i];
    const hone_dtype made = t->op == HONE_PW_STORE ? s->output[t->dst].desc.dtype : HONE_DTYPE_NONE;
    if (t->op == HONE_PW_STORE && hone_dtype_size(made) == 1 &&
        made != HONE_DTYPE_BOOL) { /* codes saturate */
      const bool is_signed = made == HONE_DTYPE_I8;
      hn_str_printf(text, "    o%u = (%s)fminf(fmaxf(rintf(r%u), %s), %s);\n", t->dst, hn_cuda_value(made),
                    t->a, is_signed ? "-128.0f" : "0.0f", is_signed ? "127.0f" : "255.0f");
      continue;
    }
    if (t->op == HONE_PW_STORE) {
      hn_str_printf(text, "    o%u = hn_round_%s(r%u);\n", t->dst, hone_dtype_name(made), t->a);
      continue;
    }
    if (t->op == HONE_PW_LOAD) {
      const bool truth = s->input[t->a].desc.dtype == HONE_DTYPE_BOOL;
      hn_str_printf(text, truth ? "    r%u = i%u ? 1.0f : 0.0f;\n" : "    r%u = (float)i%u;\n", t->dst, t->a);
    } else if (t->op == HONE_PW_CONST) {
      hn_str_printf(text, "    r%u = ", t->dst);
      hn_cuda_literal(text, t->alpha);
      hn_str_puts(text, ";\n");
    } else if (t->op != HONE_PW_POW || !known[t->b] || !known_power(t, value[t->b], text)) {
      function(t, text);
    }
    known[t->dst] = t->op == HONE_PW_CONST;
    value[t->dst] = t->alpha;
  }
}
