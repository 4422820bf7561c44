#include "backends/cuda/step/step.h"

#include "backends/cuda/step/functions.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/map.h"
#include "optimize/step/shared.h"

#include <string.h>

bool hn_cuda_has(const hone_step *s, uint32_t i) {
  return i < s->n_anchor_inputs && s->input[i].desc.dtype != HONE_DTYPE_NONE;
}

bool hn_cuda_gives(const hone_step *s, uint32_t i) {
  return i < s->n_outputs && s->output[i].desc.dtype != HONE_DTYPE_NONE;
}

bool hn_cuda_known(const hone_step *s, hone_reason *why) {
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (hn_cuda_has(s, i) && !hone_desc_known(&s->input[i].desc))
      return hn_refuse(why, "dimensions of input %u are not known", i);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (hn_cuda_gives(s, i) && !hone_desc_known(&s->output[i].desc))
      return hn_refuse(why, "dimensions of output %u are not known", i);
  return true;
}

bool hn_cuda_tensor_cores(const hone_machine *m, hone_dtype type, hone_reason *why) {
  const uint32_t arch = type == HONE_DTYPE_F32 || type == HONE_DTYPE_BF16 ? 80 : 75;
  if (m->arch >= arch) return true;
  return hn_refuse(why, "tensor cores take %s from architecture %u on, this is %u",
                   type == HONE_DTYPE_F32 ? "tf32" : hone_dtype_name(type), arch, m->arch);
}

bool hn_cuda_stored(const hone_step *s, hone_reason *why) {
  const hone_dtype x = s->input[0].desc.dtype, y = s->output[0].desc.dtype;
  if (!hn_cuda_known(s, why)) return false;
  if (!hn_cuda_type(x)) return hn_refuse(why, "the input is %s, not f32, f16 or bf16", hone_dtype_name(x));
  if (x != y)
    return hn_refuse(why, "the input is %s and the output %s", hone_dtype_name(x), hone_dtype_name(y));
  return true;
}

bool hn_cuda_indices(const hone_step *s, uint32_t i, hone_dtype *type, hone_reason *why) {
  if (!hn_cuda_has(s, i)) return hn_refuse(why, "input %u is not there", i);
  *type = s->input[i].desc.dtype;
  if (*type != HONE_DTYPE_I32 && *type != HONE_DTYPE_I64)
    return hn_refuse(why, "indices are %s", hone_dtype_name(*type));
  return true;
}

size_t hn_cuda_shared_blob(const char *way, const int64_t *number, size_t n, uint64_t *key) {
  *key = HN_FAULT("cuda_shared_way") ? 0 : hn_hash(number, n * sizeof *number, hn_hash(way, strlen(way), 0));
  return HN_SHARED_WHOLE | HN_SHARED_PACKED;
}

double hn_cuda_clock(const hone_machine *m) {
  const double sms = m->processors ? m->processors : 132, flops = m->arch < 86 ? 128 : 256;
  return m->peak_flops > 0 ? m->peak_flops / (flops * sms) : 1.7e9;
}

double hn_cuda_seconds(const hone_machine *m, double flops, double rate, double bytes, double efficiency) {
  const double dram = m->dram_bytes > 0 ? m->dram_bytes : 1e12;
  const double compute = rate > 0 ? flops / rate : 0, memory = bytes / dram;
  return (compute > memory ? compute : memory) / efficiency + m->launch_s;
}

double hn_cuda_bytes(const hone_step *s) {
  double bytes = 0;
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++)
    if (hn_cuda_has(s, i)) bytes += (double)hone_desc_bytes(&s->input[i].desc);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (hn_cuda_gives(s, i)) bytes += (double)hone_desc_bytes(&s->output[i].desc);
  return bytes;
}

void hn_cuda_tf32_work(const hone_step *s, hone_work *work) {
  if (s->input[0].desc.dtype != HONE_DTYPE_F32) return;
  work->arithmetic = HONE_ARITHMETIC_TF32;
  work->split = s->math < HONE_MATH_TF32;
  if (work->split) work->flops += 2 * 2 * s->cost.macs;
}

void hn_cuda_define_type(hn_str *text, hone_dtype dtype) {
  hn_str_printf(text, "#define HN_T %s\n#define HN_SIZE %zu\n", hn_cuda_type(dtype), hone_dtype_size(dtype));
}

hone_status hn_cuda_launch_line(hn_cuda_queue *q, const char *text, const hn_str *prefix, const char *entry,
                                int64_t count, uint32_t threads, const void *args, size_t size,
                                hone_error *error) {
  if (prefix && prefix->failed) return hn_fail_memory(error, prefix->cap, "device text");
  if (count <= 0) return HONE_OK;
  const int64_t blocks = hn_div_up(count, threads);
  if (blocks > INT32_MAX) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s: too many elements", entry);
  const hn_cuda_kernel kernel = {text, prefix ? prefix->ptr : NULL, entry};
  const hn_cuda_shape shape = {.grid = {(uint32_t)blocks, 1, 1}, .threads = threads, .overlap = true};
  return hn_cuda_launch(q, &kernel, &shape, args, size, error);
}

void hn_cuda_part_run(const hone_step_run *whole, uint32_t k, hn_cuda_part *out) {
  const hone_step_part *p = &whole->step->part[k];
  out->run = *whole;
  out->run.step = p->step, out->run.in = out->in;
  for (uint32_t i = 0; i < p->step->n_inputs; i++)
    out->in[i] = p->input[i] == HONE_PART_CHAINED ? NULL : whole->in[p->input[i]];
}
