#include "backends/cuda/normalize/likelihood.h"

#include "backends/cuda/normalize/likelihood_args.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"

#include <string.h>

enum { THREADS = 128 };

static bool make(const hone_step *s, hn_likelihood_args *a, int *group, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc;
  hone_dtype label;
  *a = (hn_likelihood_args){0};
  if (!hn_cuda_known(s, why) || !hn_cuda_indices(s, 1, &label, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "a loss has no epilogue");
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (hn_cuda_has(s, i) && s->input[i].desc.layout != HONE_LAYOUT_ROW_MAJOR)
      return hn_refuse(why, "input %u is not row-major", i);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (hn_cuda_gives(s, i) && s->output[i].desc.layout != HONE_LAYOUT_ROW_MAJOR)
      return hn_refuse(why, "output %u is not row-major", i);
  if (!hone_dtype_is_float(x->dtype) || !hn_cuda_value(x->dtype))
    return hn_refuse(why, "the scores are %s", hone_dtype_name(x->dtype));
  if (x->rank < 2 || x->dim[1] < 1) return hn_refuse(why, "there are no classes");
  const int64_t lines = hone_desc_count(&s->input[1].desc), classes = x->dim[1];
  if (lines < 1 || lines > INT32_MAX || classes > INT32_MAX / 2)
    return hn_refuse(why, "%lld labels", (long long)lines);
  a->inner = hn_dims(x, 2, x->rank);
  a->lines = (u32)lines, a->classes = (u32)classes;
  a->ignores = hone_node_has(s->node, "ignore_index");
  a->ignored = hone_node_int(s->node, "ignore_index", 0);
  a->mean = strcmp(hone_node_string(s->node, "reduction", "mean"), "mean") == 0;
  *group = 1; /* one thread where neighbours read neighbours, else up to a warp */
  if (a->inner == 1 || lines < 4096)
    while (*group < 32 && (u32)*group * 4 < a->classes) *group *= 2;
  a->parts = hn_cuda_blocks(lines, THREADS / *group);
  return true;
}

static bool each(const hone_step *s) {
  return strcmp(hone_node_string(s->node, "reduction", "mean"), "none") == 0;
}

bool hn_cuda_likelihood_accepts(const hone_step *s, const hone_machine *m,
                                const hn_cuda_likelihood_config *config, hone_reason *why) {
  hn_likelihood_args a;
  int group;
  (void)m, (void)config;
  return make(s, &a, &group, why);
}

double hn_cuda_likelihood_cost(const hone_step *s, const hone_machine *m,
                               const hn_cuda_likelihood_config *config) {
  (void)config;
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops / 8, hn_cuda_bytes(s), 0.5) +
         (each(s) ? 0 : m->launch_s);
}

hone_status hn_cuda_likelihood_need(const hone_step *s, const hone_machine *m,
                                    const hn_cuda_likelihood_config *config, hone_tactic_need *n,
                                    hone_error *error) {
  hn_likelihood_args a;
  int group;
  hone_reason why = {""};
  (void)m, (void)config;
  if (!make(s, &a, &group, &why)) return hn_not_described(s, &why, error);
  n->workspace_bytes = each(s) ? 0 : a.parts * 2 * sizeof(double);
  return HONE_OK;
}

static const char *type_of(const hone_step *s, bool input, uint32_t i) {
  if (input ? !hn_cuda_has(s, i) : !hn_cuda_gives(s, i)) return "f32";
  return hone_dtype_name(input ? s->input[i].desc.dtype : s->output[i].desc.dtype);
}

hone_status hn_cuda_likelihood_run(const hone_step_run *r, const hn_cuda_likelihood_config *config,
                                   hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hn_likelihood_args a;
  int group;
  hone_reason why = {""};
  if (!make(s, &a, &group, &why)) return hn_not_described(s, &why, error);
  a.x = r->in[0], a.label = r->in[1], a.weight = hn_cuda_has(s, 2) ? r->in[2] : NULL;
  a.y = r->out[0], a.log_prob = hn_cuda_gives(s, 1) ? r->out[1] : NULL;
  a.part = each(s) ? NULL : r->workspace;
  hn_str text = {0};
  hn_str_printf(&text, "#define HN_TYPE %s\n#define HN_OUT %s\n#define HN_LOG %s\n", type_of(s, true, 0),
                type_of(s, false, 0), type_of(s, false, 1));
  hn_str_printf(&text, "#define HN_WEIGHT %s\n#define HN_LABEL %s\n", type_of(s, true, 2),
                type_of(s, true, 1));
  hn_str_printf(&text, "#define HN_REAL %s\n#define HN_GROUP %d\n#define HN_SOFTMAX %d\n",
                s->input[0].desc.dtype == HONE_DTYPE_F64 ? "double" : "float", group, config->softmax);
  hone_status status = hn_cuda_launch_line(q, "likelihood", &text, "hn_likelihood", (int64_t)a.lines * group,
                                           THREADS, &a, sizeof a, error);
  if (status == HONE_OK && a.part)
    status = hn_cuda_launch_line(q, "likelihood", &text, "hn_likelihood_finish", THREADS, THREADS, &a,
                                 sizeof a, error);
  hn_str_free(&text);
  return status;
}
