/* The C that a definition stands for: NAME_op.h, which kernels and the reference include, and NAME_op.c with
 * the descriptors and hone_plugin_entry. */
#ifndef HONE_CLI_OP_GENERATE_H
#define HONE_CLI_OP_GENERATE_H

#include "cli/commands/op/definition.h"
#include "cli/commands/op/text.h"

typedef struct op_parts { /* which files the folder has beside the definition and the reference */
  bool cpu;               /* NAME_cpu.c */
  bool cuda;              /* NAME_cuda.cu */
  bool launch;            /* NAME_cuda.c: how a general operator's kernels are launched */
} op_parts;

void op_generate_header(const op_definition *d, const op_parts *parts, op_text *out);
/* cuda_text: what NAME_cuda.cu says, or NULL. */
void op_generate_source(const op_definition *d, const op_parts *parts, const char *cuda_text, op_text *out);

/* Tiers in which NAME_cpu.c is compiled. */
typedef struct op_tier {
  const char *name, *isa; /* isa: HONE_ISA_... bits in C; "0": every processor */
  const char *flags;      /* of the compiler */
} op_tier;
extern const op_tier op_tiers[];
enum { OP_TIERS = 3 };

#endif
