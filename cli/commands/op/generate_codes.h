/* What operators on 8-bit codes need beside the rest of generate.c: nothing where a definition has none. */
#ifndef HONE_CLI_OP_GENERATE_CODES_H
#define HONE_CLI_OP_GENERATE_CODES_H

#include "cli/commands/op/definition.h"
#include "cli/commands/op/text.h"

/* Inputs with the scale and zero point of an operand, as C has them; -1: none. */
static inline int op_scale_of(const op_operand *x) { return (int)x->scale - 1; }
static inline int op_zero_of(const op_operand *x) { return (int)x->zero - 1; }

/* Of NAME_op.h: what the codes of a step mean. */
void op_codes_struct(const op_definition *d, op_text *out);
/* Of NAME_op.c: its function, and the ports of the operator. */
void op_codes_functions(const op_definition *d, op_text *out);
/* Within infer: what scales and zero points may be. */
void op_codes_infer(const op_definition *d, op_text *out);
/* Which steps elementwise kernels take. */
void op_codes_alike(const op_definition *d, op_text *out);
/* A task of an elementwise kernel: codes become floats, a piece at a time, and back. */
void op_codes_piece(const op_definition *d, const char *tier, op_text *out);

#endif
