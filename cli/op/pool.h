/* hone_step_run.parallel, in orders that a pool of threads may have. */
#ifndef HONE_CLI_OP_POOL_H
#define HONE_CLI_OP_POOL_H

#include "cli/op/buffer.h"
#include "cli/op/random.h"

typedef enum op_order {
  OP_FORWARD,  /* on thread 0 */
  OP_BACKWARD, /* on the last thread */
  OP_SHUFFLED, /* each as any thread */
  OP_THREADS   /* on real threads */
} op_order;

typedef struct op_pool {
  op_order order;
  uint32_t threads;
  op_random random;
  const op_buffer *workspace; /* SHUFFLED: who writes what of it is watched; NULL: nothing is */
  bool shared;                /* tasks as different threads wrote the same bytes of it */
} op_pool;

void op_pool_parallel(void *pool, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                      void *arg);

#endif
