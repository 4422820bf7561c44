/* Expand: the input broadcast to the output's dimensions, as a generated copy of bits. */
#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/movement/tile.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "optimize/step/boxes.h"

static bool describe(const hone_step *s, hn_cuda_elementwise *plan, void *const *at, hone_reason *why) {
  hone_tensor_desc x = s->input[0].desc, y = s->output[0].desc;
  const hone_tensor_desc *in = &x, *out = &y;
  if (s->n_epilogue) return hn_refuse(why, "a move has no epilogue");
  if (!s->input[1].constant) return hn_refuse(why, "the shape is known in the run only");
  if (x.dtype != y.dtype || !hn_box_element(x.dtype))
    return hn_refuse(why, "%s does not become %s", hone_dtype_name(x.dtype), hone_dtype_name(y.dtype));
  x.dtype = y.dtype = hn_cuda_bits_of(x.dtype);
  return hn_cuda_elementwise_plan(plan, &out, 1, &in, 1, at, 0, why);
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)s, (void)plan;
  hn_str_puts(text, "    o0 = i0;\n");
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hn_cuda_elementwise plan;
  (void)m;
  return describe(s, &plan, NULL, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hn_cuda_elementwise plan;
  return describe(s, &plan, NULL, NULL) ? hn_cuda_elementwise_seconds(&plan, m) : HN_REFUSED_SECONDS;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  void *at[2] = {r->out[0], (void *)(uintptr_t)r->in[0]};
  if (!describe(r->step, &plan, at, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "expand: %s", why.text);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(r), r->step, &plan, body, at, error);
}

HN_TACTIC(cuda, expand, "Expand", 1, .accepts = accepts, .cost = cost, .run = run);
