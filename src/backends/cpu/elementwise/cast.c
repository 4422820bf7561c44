/* Cast to f32, f16 and bf16 from one another and from integers, in any dense layout. By way of f32, which
 * holds the 16-bit floats exactly; integers round once on the way into it, and only those beyond 2^24 that
 * become 16 bits wide could round twice: they are left to the reference. */
#include <string.h>

#include "backends/cpu/elementwise/cast.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/halves/halves.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"

enum { BLOCK = 1024, TASK = 16384 };

static bool is_half(hone_dtype d) { return d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16; }

/* Whether every number of the type is one of f32. */
static bool is_narrow(hone_dtype d) {
  return d == HONE_DTYPE_F32 || is_half(d) || d == HONE_DTYPE_BOOL || hone_dtype_size(d) == 1;
}

static bool is_source(hone_dtype d) {
  return d == HONE_DTYPE_F32 || is_half(d) || d == HONE_DTYPE_BOOL || d == HONE_DTYPE_U8 ||
         d == HONE_DTYPE_I8 || d == HONE_DTYPE_I32 || d == HONE_DTYPE_I64;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  (void)m;
  if (!is_source(x->dtype)) return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  if (y->dtype != HONE_DTYPE_F32 && !is_half(y->dtype))
    return hn_refuse(why, "the output is %s", hone_dtype_name(y->dtype));
  if (is_half(y->dtype) && !is_narrow(x->dtype))
    return hn_refuse(why, "%s to %s would round twice", hone_dtype_name(x->dtype), hone_dtype_name(y->dtype));
  return hn_cast_takes(s, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  const size_t bytes = hone_dtype_size(s->input[0].desc.dtype) + hone_dtype_size(s->output[0].desc.dtype);
  return hn_step_seconds(m, 4 * n, (double)bytes * n, 0.5);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  (void)s, (void)m, (void)error;
  n->blob_bytes = sizeof(hn_isa), n->workspace_bytes = 0;
  n->bytewise = 1u << 0;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  (void)s, (void)error;
  *(hn_isa *)blob = hn_isa_of(m->isa);
  return HONE_OK;
}

#define FROM(TYPE)                                                                                           \
  for (size_t i = 0; i < n; i++) {                                                                           \
    TYPE v;                                                                                                  \
    memcpy(&v, (const char *)x + i * sizeof v, sizeof v);                                                    \
    y[i] = (float)v;                                                                                         \
  }                                                                                                          \
  break

static void to_f32(const struct hn_halves_ops *ops, hone_dtype type, float *y, const void *x, size_t n) {
  switch (type) {
  case HONE_DTYPE_F16: ops->from_f16(y, x, n); break;
  case HONE_DTYPE_BF16: ops->from_bf16(y, x, n); break;
  case HONE_DTYPE_BOOL:
    for (size_t i = 0; i < n; i++) y[i] = (float)(((const unsigned char *)x)[i] != 0);
    break;
  case HONE_DTYPE_U8: FROM(uint8_t);
  case HONE_DTYPE_I8: FROM(int8_t);
  case HONE_DTYPE_I32: FROM(int32_t);
  case HONE_DTYPE_I64: FROM(int64_t);
  default: memcpy(y, x, n * sizeof *y); break;
  }
}

typedef struct job {
  const hone_step_run *run;
  const struct hn_halves_ops *ops;
  int64_t count;
} job;

static void block(const job *j, int64_t at, size_t n) {
  const hone_dtype from = j->run->step->input[0].desc.dtype, to = j->run->step->output[0].desc.dtype;
  const void *x = (const char *)j->run->in[0] + (size_t)at * hone_dtype_size(from);
  void *y = (char *)j->run->out[0] + (size_t)at * hone_dtype_size(to);
  float wide[BLOCK];
  if (to == HONE_DTYPE_F32) {
    to_f32(j->ops, from, y, x, n);
    return;
  }
  to_f32(j->ops, from, wide, x, n);
  if (to == HONE_DTYPE_F16)
    j->ops->to_f16(y, wide, n);
  else
    j->ops->to_bf16(y, wide, n);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const int64_t end = (index + 1) * TASK < j->count ? (index + 1) * TASK : j->count;
  (void)thread;
  for (int64_t i = index * TASK; i < end; i += BLOCK)
    block(j, i, (size_t)(end - i < BLOCK ? end - i - (HN_FAULT("cast_tail") && end - i > 1) : BLOCK));
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  job j = {r, hn_halves_find(*(const hn_isa *)r->blob), hone_desc_count(&r->step->input[0].desc)};
  (void)error;
  const int64_t tasks = (j.count + TASK - 1) / TASK;
  if (tasks == 1)
    task(&j, 0, 0);
  else if (tasks)
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, cast, "Cast", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);

/* The same between steps, where a plan stores some values in 16 bits. */
HN_TACTIC(cpu, restore, "Reformat", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
