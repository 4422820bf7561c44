#include "backends/cpu/movement/scatter.h"

#include <string.h>

#include "backends/cpu/step/step.h"
#include "base/error.h"
#include "base/integers.h"
#include "optimize/step/boxes.h"

enum { TASK_BYTES = 64 * 1024 };

bool hn_scatter_accept(const hone_step *s, int32_t *element, hn_combine *how, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *u = &s->input[2].desc;
  if (!hn_boxes_check(s, element, why)) return false;
  if (hn_combine_of(s->node, how, NULL)) return hn_refuse(why, "the reduction is not known");
  if (u->dtype != x->dtype || (*how != HN_COMBINE_NONE && x->dtype != HONE_DTYPE_F32))
    return hn_refuse(why, "updates are %s", hone_dtype_name(u->dtype));
  return hn_step_plain(x) && hn_step_plain(u) && hn_step_plain(&s->output[0].desc)
             ? true
             : hn_refuse(why, "a tensor is not row-major");
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const int64_t bytes = hone_desc_bytes(&r->step->output[0].desc), at = index * TASK_BYTES;
  (void)thread;
  memcpy((char *)r->out[0] + at, (const char *)r->in[0] + at, (size_t)hn_min(TASK_BYTES, bytes - at));
}

void hn_scatter_begin(const hone_step_run *r) {
  const int64_t tasks = hn_div_up(hone_desc_bytes(&r->step->output[0].desc), TASK_BYTES);
  hone_step_run copy = *r;
  if (tasks == 1)
    task(&copy, 0, 0);
  else if (tasks > 1)
    r->parallel(r->pool, tasks, task, &copy);
}
