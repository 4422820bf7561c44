/* Cases of one tactic: drawn, run as hone would run them, and compared with the reference. */
#ifndef HONE_CLI_OP_TRIAL_H
#define HONE_CLI_OP_TRIAL_H

#include "cli/op/row.h"

typedef struct op_job {
  const hone_op_desc *op;
  const hone_tactic_desc *tactic;
  const hone_machine *machine;
  hone_dtype dtype;
  hone_layout layout;
  uint64_t seed;
  const op_shape *given; /* [n_given], or NULL */
  uint32_t n_given;
  const char *device;  /* of the tactic, when it is an accelerator's ("cuda:1"); NULL: the processor */
  hone_engine *engine; /* on it; the process that runs the cases makes it */
} op_job;

/* Where it is, for who watches from outside. */
typedef struct op_board {
  volatile uint64_t beats; /* goes on while something happens */
  uint32_t next;           /* case that has begun */
  double elements;         /* of its inputs */
  char stage[200], text[OP_TEXT], fault[200];
  op_row row;
} op_board;

/* Which schemes of shapes the operator and the tactic take. */
typedef struct op_known {
  uint32_t n;
  uint32_t scheme[64];
  double most; /* work of a case (op_wish); 0: the usual */
} op_known;
void op_trial_probe(const op_job *job, op_known *known, op_board *board);
/* Case number `at`. False: nothing was found that is taken. */
bool op_trial_case(const op_job *job, const op_known *known, uint32_t at, op_board *board);

#endif
