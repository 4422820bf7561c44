/* Fork-join thread pool: the caller works too; workers spin briefly for the next job, then sleep. */
#ifndef HN_BASE_POOL_H
#define HN_BASE_POOL_H

#include <hone/status.h>
#include <stdint.h>

typedef struct hn_pool hn_pool;

/* threads counts the caller (>= 1): threads - 1 workers are started. */
hone_status hn_pool_create(uint32_t threads, hn_pool **out, hone_error *error);
void hn_pool_destroy(hn_pool *pool);
uint32_t hn_pool_threads(const hn_pool *pool);

/* Calls fn(arg, task, thread) for every task in [0, tasks), each once, on up to hn_pool_threads threads, and
 * returns when all are done. Takes no lock. When the pool already serves another caller (or itself: nesting),
 * all tasks run on the calling thread with thread 0. The signature is that of hone_step_run.parallel; pool
 * NULL means one thread. */
void hn_pool_parallel(void *pool, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                      void *arg);

/* What a caller does between the two, it does on a thread of its own, whether it has the pool or not. While
 * several are there, a job takes so many threads less, so that all of them together are not more than the
 * pool has. Any number of callers; pool NULL: nothing. */
void hn_pool_enter(hn_pool *pool);
void hn_pool_leave(hn_pool *pool);

#endif
