#include "backends/cuda/step/direct.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/device/counted_args.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/strided.h"

enum { THREADS = 128 };

bool hn_cuda_constant_int(const hone_step *s, uint32_t input, int64_t otherwise, int64_t *value,
                          hone_reason *why) {
  *value = otherwise;
  if (!hn_cuda_has(s, input)) return true;
  const hone_step_tensor *t = &s->input[input];
  if (!t->constant || hone_desc_count(&t->desc) != 1)
    return hn_refuse(why, "input %u is not one constant", input);
  if (t->desc.dtype == HONE_DTYPE_I64)
    memcpy(value, t->constant, sizeof *value);
  else if (t->desc.dtype == HONE_DTYPE_I32)
    *value = *(const int32_t *)t->constant;
  else
    return hn_refuse(why, "input %u is %s", input, hone_dtype_name(t->desc.dtype));
  return true;
}

void hn_cuda_direct_add(hn_cuda_direct *p, const char *entry, int64_t count, uint32_t threads) {
  p->launch[p->launches++] = (hn_cuda_direct_launch){.entry = entry, .count = count, .threads = threads};
}

void hn_cuda_direct_define(hn_cuda_direct *p, const char *name, int64_t value) {
  const size_t n = strlen(p->defines);
  snprintf(p->defines + n, sizeof p->defines - n, "#define %s %lld\n", name, (long long)value);
}

/* Elements of 4 bits have a byte each in memory, signed ones with their sign in all of it. */
static hone_dtype in_memory(hone_dtype t) {
  return t == HONE_DTYPE_U4 ? HONE_DTYPE_U8 : t == HONE_DTYPE_I4 ? HONE_DTYPE_I8 : t;
}

static bool tensor_fits(const hone_tensor_desc *d, bool read, uint32_t i, hone_reason *why) {
  const char *what = read ? "input" : "output";
  /* What is written would have to be cut to 4 bits. */
  if (!hn_cuda_value(read ? in_memory(d->dtype) : d->dtype))
    return hn_refuse(why, "%s %u is %s", what, i, hone_dtype_name(d->dtype));
  return hn_strided_dense(d) ? true : hn_refuse(why, "%s %u is not row-major", what, i);
}

static bool describe(hn_cuda_direct_plan plan, const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  if (s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (s->n_anchor_inputs > HN_DIRECT_INPUTS || s->n_outputs > HN_DIRECT_OUTPUTS)
    return hn_refuse(why, "%u inputs and %u outputs", s->n_anchor_inputs, s->n_outputs);
  if (!hn_cuda_known(s, why)) return false;
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (hn_cuda_has(s, i) && !tensor_fits(&s->input[i].desc, true, i, why)) return false;
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (hn_cuda_gives(s, i) && !tensor_fits(&s->output[i].desc, false, i, why)) return false;
  if (!plan(s, p, why)) return false;
  for (uint32_t i = 0; p->counted && i < s->n_outputs; i++)
    if (hn_cuda_gives(s, i) && s->output[i].desc.rank > HN_COUNTED_RANK)
      return hn_refuse(why, "more than %d dimensions", HN_COUNTED_RANK);
  for (uint32_t i = 0; i < p->launches; i++)
    if (p->launch[i].count >= INT32_MAX) return hn_refuse(why, "more than 2^31 elements");
  return true;
}

bool hn_cuda_direct_accepts(const hone_step *s, const hone_machine *m, const hn_cuda_direct_config *config,
                            hone_reason *why) {
  (void)m;
  hn_cuda_direct p;
  return describe(config->plan, s, &p, why);
}

double hn_cuda_direct_cost(const hone_step *s, const hone_machine *m, const hn_cuda_direct_config *config) {
  hn_cuda_direct p;
  if (!describe(config->plan, s, &p, NULL)) return HN_REFUSED_SECONDS;
  double extra = p.zeroed ? 0 : -1;
  for (uint32_t i = 0; i < p.launches; i++) extra += p.launch[i].times ? p.launch[i].times : 1;
  return hn_cuda_seconds(m, s->cost.flops, m->peak_flops,
                         hn_cuda_bytes(s) - p.unread + 2.0 * (double)p.workspace, 0.1) +
         extra * m->launch_s + p.seconds;
}

hone_status hn_cuda_direct_need(const hone_step *s, const hone_machine *m,
                                const hn_cuda_direct_config *config, hone_tactic_need *n, hone_error *error) {
  (void)m;
  hn_cuda_direct p;
  hone_reason why = {""};
  if (!describe(config->plan, s, &p, &why)) return hn_not_described(s, &why, error);
  *n = (hone_tactic_need){.blob_bytes = p.blob, .workspace_bytes = p.workspace};
  return HONE_OK;
}

/* bool's name is a macro of C: its elements are bytes. */
static void define_type(hn_str *text, char side, uint32_t i, hone_dtype t) {
  t = in_memory(t);
  hn_str_printf(text, "#define HN_%c%u %s\n", side, i, t == HONE_DTYPE_BOOL ? "u8" : hone_dtype_name(t));
}

static void write_prefix(const hone_step *s, const hn_cuda_direct *p, hn_str *text) {
  bool wide = false;
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++) {
    if (!hn_cuda_has(s, i)) continue;
    wide = wide || s->input[i].desc.dtype == HONE_DTYPE_F64;
    define_type(text, 'I', i, s->input[i].desc.dtype);
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (!hn_cuda_gives(s, i)) continue;
    wide = wide || s->output[i].desc.dtype == HONE_DTYPE_F64;
    define_type(text, 'O', i, s->output[i].desc.dtype);
  }
  hn_str_printf(text, "#define HN_REAL %s\n%s", wide ? "double" : "float", p->defines);
}

hone_status hn_cuda_direct_run(const hone_step_run *r, const hn_cuda_direct_config *config,
                               hone_error *error) {
  const hone_step *s = r->step;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  hn_cuda_direct p;
  hone_reason why = {""};
  hn_str prefix = {0};
  hone_status status = HONE_OK;
  if (!describe(config->plan, s, &p, &why)) return hn_not_described(s, &why, error);
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++) p.args.in[i] = hn_cuda_has(s, i) ? r->in[i] : NULL;
  for (uint32_t i = 0; i < s->n_outputs; i++) p.args.out[i] = hn_cuda_gives(s, i) ? r->out[i] : NULL;
  p.args.work = r->workspace, p.args.blob = r->blob;
  p.args.refused = hn_cuda_refusal(q), p.args.node = (uintptr_t)s->node;
  for (uint32_t i = 0; i < s->n_outputs && status == HONE_OK; i++)
    if (p.zeroed >> i & 1 && p.args.out[i])
      status = hn_cuda_zero(q, r->out[i], (size_t)hone_desc_bytes(&s->output[i].desc), error);
  if (p.counted && status == HONE_OK) status = hn_cuda_zero(q, r->workspace, HN_COUNTED_BYTES, error);
  write_prefix(s, &p, &prefix);
  if (prefix.failed) status = hn_fail_memory(error, prefix.cap, "device text");
  for (uint32_t i = 0; i < p.launches && status == HONE_OK; i++) {
    const hn_cuda_direct_launch *l = &p.launch[i];
    if (l->count <= 0) continue;
    p.args.count = l->count;
    const hn_cuda_kernel kernel = {p.text, prefix.ptr, l->entry};
    const hn_cuda_shape shape = {
        .grid = {l->threads ? (uint32_t)l->count : hn_cuda_blocks(l->count, THREADS), 1, 1},
        .threads = l->threads ? l->threads : THREADS,
        .overlap = true};
    for (p.args.turn = 0; p.args.turn < (l->times ? l->times : 1) && status == HONE_OK; p.args.turn++)
      status = hn_cuda_launch(q, &kernel, &shape, &p.args, sizeof p.args, error);
  }
  hn_str_free(&prefix);
  return status;
}
