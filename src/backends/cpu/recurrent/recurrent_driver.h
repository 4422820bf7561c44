/* RNN, GRU and LSTM: the inputs of all steps and directions meet W in one product, then step follows step
 * with the kernels of family "recurrent". */
#ifndef HN_CPU_RECURRENT_RECURRENT_DRIVER_H
#define HN_CPU_RECURRENT_RECURRENT_DRIVER_H

#include "backends/cpu/product/matmul_driver.h"
#include "backends/cpu/recurrent/byte_rows.h"
#include "backends/cpu/kernels/recurrent/recurrent.h"

typedef struct hn_recurrent {
  /* the problem, set by the caller */
  hn_isa isa;
  int64_t seq, batch, input, hidden, directions, gates;
  hn_recurrent_pass pass[2]; /* of a step, in order */
  int64_t passes;
  int64_t backwards, batch_first, coupled; /* backwards: the first direction */
  int64_t rounded; /* what meets W and R is rounded to 8 bits: all of x in one range, h of each sample in its
                      own */
  int64_t coded;   /* and multiplied as bytes, by W and R as codes; one pass */
  float clip;
  hn_activation act[2][HN_RNN_MAX_ACTIVATIONS]; /* of the directions */
  /* the plan, set by hn_recurrent_plan */
  hn_matmul inputs;
  int64_t padded;      /* hidden, rounded up to vectors */
  int64_t samples;     /* of a task */
  int64_t row_tasks;   /* that share the samples and meet only at the end */
  int64_t team;        /* threads that share the units of each step; 0: none does */
  int64_t turns;       /* of a team: 1, or all directions one after the other */
  int64_t far;         /* a core's part of R is more than its L2 holds */
  double step_seconds; /* that all steps are expected to take */
} hn_recurrent;

/* Constants, as the kernels want them. */
typedef struct hn_recurrent_weights {
  const float *w;                 /* packed for `inputs` */
  const float *bias;              /* [directions][gates][hidden], what is added to W x; NULL: zero */
  const float *rec[2];            /* packed R of the passes, one direction after the other */
  const float *peepholes, *later; /* [directions][3][padded]; [directions][padded]; NULL: none */
  hn_byte_weights codes[2][2];    /* of the directions, W and R, in place of w and rec */
  const float *w_scale;           /* rounded, not coded: w are whole numbers, and these their sums' scales */
} hn_recurrent_weights;

typedef struct hn_recurrent_io {
  const float *x, *h, *c; /* initial states; NULL: zero */
  const int32_t *lengths; /* in 0..seq; NULL: all seq */
  float *y, *y_h, *y_c;   /* NULL: not wanted */
} hn_recurrent_io;

void hn_recurrent_plan(hn_recurrent *p, const hone_machine *m);
size_t hn_recurrent_workspace(const hn_recurrent *p, uint32_t threads); /* floats */
void hn_recurrent_exec(const hn_recurrent *p, const hn_recurrent_weights *w, const hn_recurrent_io *io,
                       float *workspace, hn_parallel_fn parallel, void *pool);

#endif
