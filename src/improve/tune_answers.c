#include "improve/tune_answers.h"

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/strided.h"

#include <math.h>
#include <string.h>

/* An output is read in so many pieces of so many elements: copying all of a large one for every trial would
 * take longer than the trials. */
enum { PIECES = 16, PIECE = 256 };
/* Distance of two right answers, relative to their length: tactics round in different places, down to 8 bits.
 * A wrong answer is far beyond it: a forgotten column of a hundred is 0.14. */
#define APART 0.1

static double number(hone_dtype dtype, const unsigned char *at) {
  uint16_t half;
  float f;
  double d;
  int32_t i;
  int64_t l;
  switch (dtype) {
  case HONE_DTYPE_F32: return memcpy(&f, at, sizeof f), (double)f;
  case HONE_DTYPE_F64: return memcpy(&d, at, sizeof d), d;
  case HONE_DTYPE_F16: return memcpy(&half, at, sizeof half), (double)hn_f16_to_f32(half);
  case HONE_DTYPE_BF16: return memcpy(&half, at, sizeof half), (double)hn_bf16_to_f32(half);
  case HONE_DTYPE_I32: return memcpy(&i, at, sizeof i), (double)i;
  case HONE_DTYPE_I64: return memcpy(&l, at, sizeof l), (double)l;
  case HONE_DTYPE_I8: return (double)(int8_t)*at;
  default: return (double)*at;
  }
}

/* Element of an output where piece `i` of `n` starts: the first one at its begin, the last one at its end. */
static size_t piece_start(size_t count, size_t i, size_t n) {
  return n > 1 ? (size_t)((double)(count - PIECE) * (double)i / (double)(n - 1)) : 0;
}

static hone_status take_output(const hn_plan *plan, hn_queue *queue, const hone_tensor_desc *d,
                               const void *from, hn_answer *a, hone_error *error) {
  const hn_backend *b = plan->backend;
  const size_t size = hone_dtype_size(d->dtype) ? hone_dtype_size(d->dtype) : 1;
  const int64_t bytes = hn_strided_memory(d);
  const size_t count = bytes > 0 ? (size_t)bytes / size : 0, most = (size_t)PIECES * PIECE;
  const size_t pieces = count > most ? PIECES : 1, each = count > most ? PIECE : count;
  unsigned char *here = hn_malloc(each * size + 1);
  hone_status status = here ? HONE_OK : hn_fail_memory(error, each * size, "tuning");
  for (size_t i = 0; i < pieces && each && status == HONE_OK; i++) {
    const unsigned char *at = (const unsigned char *)from + piece_start(count, i, pieces) * size;
    status = b->copy(plan->device, queue, here, at, each * size, error);
    if (status == HONE_OK) status = b->sync(plan->device, queue, error);
    for (size_t k = 0; k < each && status == HONE_OK; k++)
      a->value[a->n++] = number(d->dtype, here + k * size);
  }
  hn_free(here);
  return status;
}

hone_status hn_answer_take(const hn_plan *plan, hn_queue *queue, const hone_step *step, void *const *out,
                           hn_answer *answer, hone_error *error) {
  hone_status status = HONE_OK;
  hn_answer_free(answer);
  answer->value = hn_calloc((size_t)step->n_outputs * PIECES * PIECE + 1, sizeof *answer->value);
  if (!answer->value) return hn_fail_memory(error, step->n_outputs, "tuning");
  for (uint32_t i = 0; i < step->n_outputs && status == HONE_OK; i++)
    if (out[i]) status = take_output(plan, queue, &step->output[i].desc, out[i], answer, error);
  return status;
}

void hn_answer_free(hn_answer *answer) {
  hn_free(answer->value);
  *answer = (hn_answer){0};
}

/* Length of a - b over b's; NaN and infinities are as they are, or all that there is apart. */
static double distance(const hn_answer *a, const hn_answer *b) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < a->n && i < b->n; i++) {
    const double x = a->value[i], y = b->value[i];
    if (x == y || (isnan(x) && isnan(y))) {
      length += isfinite(y) ? y * y : 0;
      continue;
    }
    if (!isfinite(x) || !isfinite(y)) return INFINITY;
    apart += (x - y) * (x - y);
    length += y * y;
  }
  return apart == 0 ? 0 : length > 0 ? sqrt(apart / length) : INFINITY;
}

void hn_answers_judge(const hn_answer *answer, hn_trial *trial, uint32_t n) {
  uint32_t right = 0, most = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t like = 0;
    for (uint32_t k = 0; k < n; k++) like += distance(&answer[k], &answer[i]) <= APART;
    if (like > most || (like == most && trial[i].predicted < trial[right].predicted)) most = like, right = i;
  }
  for (uint32_t i = 0; i < n; i++) {
    trial[i].difference = distance(&answer[i], &answer[right]);
    trial[i].differs = !(trial[i].difference <= APART);
  }
}
