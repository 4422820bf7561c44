#include "backends/cuda/movement/indexed.h"

#include <string.h>

#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/strided.h"
#include "optimize/step/axes.h"

enum { THREADS = 256 };

bool hn_cuda_combine(const hone_step *s, const char **text, hone_reason *why) {
  const char *how = hone_node_string(s->node, "reduction", "none");
  const bool truth = s->input[0].desc.dtype == HONE_DTYPE_BOOL;
  if (!strcmp(how, "none"))
    *text = "(b)";
  else if (!strcmp(how, "add"))
    *text = truth ? "((a) | (b))" : "((a) + (b))";
  else if (!strcmp(how, "mul"))
    *text = truth ? "((a) & (b))" : "((a) * (b))";
  else if (!strcmp(how, "max"))
    *text = "((a) > (b) || (a) != (a) ? (a) : (b))";
  else if (!strcmp(how, "min"))
    *text = "((a) < (b) || (a) != (a) ? (a) : (b))";
  else
    return hn_refuse(why, "reduction '%s'", how);
  return true;
}

static bool describe(hn_cuda_indexed_plan plan, const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  p->in[0] = p->in[1] = p->in[2] = -1;
  if (s->n_epilogue) return hn_refuse(why, "a move has no epilogue");
  if (!hn_cuda_known(s, why)) return false;
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (hn_cuda_has(s, i) && !hn_strided_dense(&s->input[i].desc))
      return hn_refuse(why, "input %u is not row-major", i);
  if (!hn_strided_dense(&s->output[0].desc)) return hn_refuse(why, "the output is not row-major");
  p->element = hn_box_element(s->output[0].desc.dtype);
  if (!p->element) return hn_refuse(why, "%s is not moved", hone_dtype_name(s->output[0].desc.dtype));
  if (!plan(s, p, why)) return false;
  return p->args.count < 0x7fffffff ? true : hn_refuse(why, "more than 2^31 elements");
}

bool hn_cuda_indexed_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_indexed_config *config,
                             hone_reason *why) {
  (void)m;
  hn_cuda_indexed p;
  return describe(config->plan, s, &p, why);
}

double hn_cuda_indexed_cost(const hone_step *s, const hone_machine *m, const hn_cuda_indexed_config *config) {
  hn_cuda_indexed p;
  if (!describe(config->plan, s, &p, NULL)) return HN_REFUSED_SECONDS;
  return hn_cuda_seconds(m, 0, 0, 2.0 * (double)hone_desc_bytes(&s->output[0].desc), 0.5) +
         (p.copied ? m->launch_s : 0);
}

/* Units of a run: p[0] and the count are in elements until here. */
static int cut(hn_cuda_indexed *p, const hone_step_run *run) {
  int unit = p->element;
  for (int u = 16; u > unit && p->run; u /= 2)
    if (p->run % u == 0 && (uintptr_t)run->out[0] % (uintptr_t)u == 0 &&
        (uintptr_t)run->in[p->in[0]] % (uintptr_t)u == 0)
      unit = u;
  const int64_t by = unit / p->element;
  if (by > 1) {
    p->args.p[0] /= by, p->args.count /= by;
    if (!strcmp(p->body, "hn_gather_nd")) {
      p->args.p[3] /= by;
      for (int k = 12; k < 20; k++) p->args.p[k] /= by;
    }
  }
  return unit;
}

/* Elements of two types that a thread moves: as many as 16 bytes of the wider one hold, or one. */
static void convert(hn_cuda_indexed *p, const hone_step_run *run, hn_str *prefix) {
  const int64_t from = (int64_t)hone_dtype_size(p->type), to = (int64_t)hone_dtype_size(p->result);
  int64_t each = 16 / (from > to ? from : to);
  if (p->args.p[0] % each || ((uintptr_t)run->in[p->in[0]] | (uintptr_t)run->out[0]) % 16) each = 1;
  p->args.p[0] /= each, p->args.count /= each;
  hn_str_printf(prefix, "#define HN_EACH %lld\n#define HN_READ %lld\n#define HN_WRITE %lld\n",
                (long long)each, (long long)(each * from), (long long)(each * to));
}

hone_status hn_cuda_indexed_run(const hone_step_run *run, const hn_cuda_indexed_config *config,
                                hone_error *error) {
  const hone_step *s = run->step;
  hn_cuda_indexed p;
  hone_reason why = {""};
  hn_str prefix = {0};
  hone_status status = HONE_OK;
  if (!describe(config->plan, s, &p, &why)) return hn_not_described(s, &why, error);
  p.args.out = run->out[0];
  p.args.refused = hn_cuda_refusal(hn_cuda_queue_of(run)), p.args.node = (uintptr_t)s->node;
  for (int i = 0; i < 3; i++) p.args.in[i] = p.in[i] >= 0 ? run->in[p.in[i]] : NULL;
  if (p.copied && run->out[0] != run->in[0])
    status = hn_cuda_moves_whole(hn_cuda_queue_of(run), run->out[0], run->in[0],
                                 hone_desc_bytes(&s->output[0].desc), error);
  if (status != HONE_OK || p.args.count == 0) return status;
  hn_str_printf(&prefix, "#define HN_BODY %s\n#define HN_UNIT %d\n", p.body, cut(&p, run));
  if (p.result) convert(&p, run, &prefix);
  if (p.index) hn_str_printf(&prefix, "#define HN_INDEX %s\n", hone_dtype_name(p.index));
  /* bool's name is a macro of C: its elements are bytes */
  if (p.type)
    hn_str_printf(&prefix, "#define HN_TYPE %s\n",
                  p.type == HONE_DTYPE_BOOL ? "u8" : hone_dtype_name(p.type));
  if (p.result) hn_str_printf(&prefix, "#define HN_RESULT %s\n", hone_dtype_name(p.result));
  if (p.combine) hn_str_printf(&prefix, "#define HN_COMBINE(a, b) %s\n", p.combine);
  if (p.sum) hn_str_printf(&prefix, "#define HN_SUM %s\n", p.sum);
  if (prefix.failed) {
    status = hn_fail_memory(error, prefix.cap, "device text");
  } else {
    const hn_cuda_kernel kernel = {"indexed", prefix.ptr, "indexed"};
    const hn_cuda_shape shape = {
        .grid = {hn_cuda_blocks(p.args.count, THREADS), 1, 1}, .threads = THREADS, .overlap = true};
    status = hn_cuda_launch(hn_cuda_queue_of(run), &kernel, &shape, &p.args, sizeof p.args, error);
  }
  hn_str_free(&prefix);
  return status;
}

bool hn_cuda_scatter_elements(const hone_step *s, hn_cuda_indexed *p, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  int32_t axis;
  if (!hn_cuda_indices(s, 1, &p->index, why) || !hn_cuda_combine(s, &p->combine, why) ||
      !hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why))
    return false;
  if (s->input[2].desc.dtype != x->dtype || s->output[0].desc.dtype != x->dtype)
    return hn_refuse(why, "updates are %s", hone_dtype_name(s->input[2].desc.dtype));
  p->body = "hn_scatter_elements", p->type = x->dtype, p->copied = true;
  p->in[0] = 0, p->in[1] = 1, p->in[2] = 2;
  p->args.p[0] = x->rank, p->args.p[1] = axis, p->args.p[2] = x->dim[axis], p->args.p[3] = i->dim[axis];
  p->args.count = i->dim[axis] ? hone_desc_count(i) / i->dim[axis] : 0;
  int64_t x_step = 1, i_step = 1;
  for (int32_t k = x->rank - 1; k >= 0; k--) {
    p->args.p[4 + k] = k == axis ? 1 : i->dim[k];
    p->args.p[12 + k] = x_step, p->args.p[20 + k] = i_step;
    x_step *= x->dim[k], i_step *= i->dim[k];
  }
  return true;
}
