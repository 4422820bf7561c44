#include "backends/cpu/step/step.h"
#include "optimize/step/anchor.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/halves/halves.h"
#include "backends/cpu/kernels/pointwise/pointwise.h"

bool hn_step_is_float(const hone_step *s, hone_dtype narrow, hone_reason *why) {
  for (uint32_t i = 0; i < s->n_anchor_inputs; i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    if (d->dtype == HONE_DTYPE_NONE) continue;
    if (d->dtype != HONE_DTYPE_F32 && d->dtype != narrow)
      return hn_refuse(why, "input %u is %s, not f32", i, hone_dtype_name(d->dtype));
    if (!hone_desc_known(d)) return hn_refuse(why, "dimensions of input %u are not known", i);
  }
  const hone_tensor_desc *y = &s->output[0].desc;
  if (y->dtype != HONE_DTYPE_F32 && y->dtype != narrow)
    return hn_refuse(why, "the output is %s, not f32", hone_dtype_name(y->dtype));
  if (!hone_desc_known(y)) return hn_refuse(why, "dimensions of the output are not known");
  return true;
}

/* Rows of a row-major matrix with any leading dimensions. */
static bool matrix_view(const hone_tensor_desc *d, hn_view *v) {
  if (d->rank < 1 || d->layout != HONE_LAYOUT_ROW_MAJOR) return false;
  int64_t n = d->dim[d->rank - 1];
  *v = (hn_view){0, 0, 0, n};
  return true;
}

static bool view_of(const hone_tensor_desc *d, bool matrix, hn_view *v) {
  hn_pixels p;
  if (matrix) return matrix_view(d, v);
  if (!hn_pixels_of(d, &p)) return false;
  *v = p.view;
  return true;
}

bool hn_epilogue_accepts(const hone_step *s, hn_isa isa, bool matrix, hone_reason *why) {
  return hn_epilogue_takes(s, isa, matrix, HONE_DTYPE_F32, why);
}

bool hn_epilogue_takes(const hone_step *s, hn_isa isa, bool matrix, hone_dtype narrow, hone_reason *why) {
  const hone_tensor_desc *y = &s->output[0].desc;
  uint32_t n_narrow = 0;
  int64_t columns = matrix ? (y->rank ? y->dim[y->rank - 1] : 1) : y->dim[1];
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    const hone_tensor_desc *d = e->input < s->n_inputs ? &s->input[e->input].desc : NULL;
    hn_view v;
    switch (e->kind) {
    case HONE_EPI_BIAS:
    case HONE_EPI_SCALE:
      if (!d || d->dtype != HONE_DTYPE_F32 || hone_desc_count(d) != columns)
        return hn_refuse(why, "epilogue %u is no f32 vector of %lld channels", i, (long long)columns);
      break;
    case HONE_EPI_ADD:
    case HONE_EPI_MUL:
      if (!d || (d->dtype != HONE_DTYPE_F32 && d->dtype != narrow) || !hone_desc_same_dims(d, y) ||
          !view_of(d, matrix, &v))
        return hn_refuse(why, "epilogue %u: the tensor has not the output's type, dimensions and layout", i);
      n_narrow += d->dtype != HONE_DTYPE_F32;
      if (n_narrow > 1) return hn_refuse(why, "epilogue %u: a second tensor of 16 bits", i);
      break;
    case HONE_EPI_ACT:
      if (e->act != HONE_PW_RELU && e->act != HONE_PW_CLIP && e->act != HONE_PW_LEAKYRELU &&
          !hn_act_find(e->act, isa))
        return hn_refuse(why, "epilogue %u: activation %d has no kernel", i, (int)e->act);
      break;
    default: return hn_refuse(why, "epilogue %u changes the data type", i);
    }
  }
  return true;
}

/* Places one operation: in registers as long as the kernels' fixed order (bias, residual, activation, late
 * residual) allows, else in the list of row operations, and everything after it, too. */
typedef struct binder {
  hn_epilogue *e;
  int stage; /* 0: nothing yet, 1: bias, 2: residual, 3: activation, 4: late residual, 5: the list */
} binder;

static void add_bias(binder *b, hn_post_kind kind, const float *v) {
  if (b->stage < 1 && kind == HN_POST_BIAS) {
    b->stage = 1, b->e->flags |= HN_EPI_BIAS, b->e->bias = v;
    return;
  }
  b->stage = 5;
  b->e->post[b->e->n_post++] = (hn_post){.kind = kind, .v = v};
}

static void add_tensor(binder *b, hn_post_kind kind, const void *t, bool narrow, const hn_view *v) {
  bool free_slot = !(b->e->flags & HN_EPI_RESIDUAL);
  const float *wide = narrow ? NULL : t;
  const uint16_t *half = narrow ? t : NULL;
  if (kind == HN_POST_ADD && free_slot && b->stage < 4) {
    b->e->flags |= HN_EPI_RESIDUAL | (b->stage == 3 ? HN_EPI_RESIDUAL_AFTER : 0);
    b->stage = b->stage == 3 ? 4 : 2;
    b->e->residual = wide, b->e->narrow_residual = half, b->e->residual_view = *v;
    return;
  }
  b->stage = 5;
  b->e->post[b->e->n_post++] = (hn_post){.kind = kind, .v = wide, .narrow = half, .view = *v};
}

static void add_act(binder *b, const hone_epilogue *a, hn_isa isa) {
  hn_epilogue *e = b->e;
  bool clamp = a->act == HONE_PW_RELU || a->act == HONE_PW_CLIP, leaky = a->act == HONE_PW_LEAKYRELU;
  if ((clamp || leaky) && b->stage < 3) {
    b->stage = 3;
    e->flags |= clamp ? HN_EPI_CLAMP : HN_EPI_LEAKY;
    e->lo = a->act == HONE_PW_RELU ? 0 : a->alpha;
    e->hi = a->act == HONE_PW_RELU ? INFINITY : a->beta;
    e->slope = a->alpha;
    return;
  }
  b->stage = 5;
  e->post[e->n_post++] =
      (hn_post){.kind = HN_POST_ACT, .op = a->act, .act = hn_act_find(a->act, isa), .p = {a->alpha, a->beta}};
}

static void (*widen_of(hn_isa isa, hone_dtype type))(float *, const void *, size_t) {
  const struct hn_halves_ops *o = hn_halves_find(isa);
  return type == HONE_DTYPE_F16 ? o->from_f16 : o->from_bf16;
}

static void bind(const hone_step *s, hn_isa isa, bool matrix, int stage, const float *bias,
                 const void *const *in, hn_epilogue *out) {
  memset(out, 0, sizeof *out);
  out->rows = hn_post_find(isa);
  binder b = {out, stage};
  if (bias) add_bias(&b, HN_POST_BIAS, bias);
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    hn_view v = {0};
    switch (e->kind) {
    case HONE_EPI_BIAS: add_bias(&b, HN_POST_BIAS, in[e->input]); break;
    case HONE_EPI_SCALE: add_bias(&b, HN_POST_SCALE, in[e->input]); break;
    case HONE_EPI_ADD:
    case HONE_EPI_MUL:
      view_of(&s->input[e->input].desc, matrix, &v);
      add_tensor(&b, e->kind == HONE_EPI_ADD ? HN_POST_ADD : HN_POST_MUL, in[e->input],
                 s->input[e->input].desc.dtype != HONE_DTYPE_F32, &v);
      if (s->input[e->input].desc.dtype != HONE_DTYPE_F32)
        out->widen = widen_of(isa, s->input[e->input].desc.dtype);
      break;
    case HONE_EPI_ACT: add_act(&b, e, isa); break;
    default: break; /* refused by hn_epilogue_accepts */
    }
  }
}

void hn_epilogue_bind(const hone_step *s, hn_isa isa, bool matrix, const float *bias, const void *const *in,
                      hn_epilogue *out) {
  bind(s, isa, matrix, 0, bias, in, out);
}

void hn_epilogue_bind_rows(const hone_step *s, hn_isa isa, bool matrix, const float *bias,
                           const void *const *in, hn_epilogue *out) {
  bind(s, isa, matrix, 5, bias, in, out);
}

void hn_epilogue_shift(hn_epilogue *e, int64_t floats) {
  if (e->residual) e->residual += floats;
  if (e->narrow_residual) e->narrow_residual += floats;
  for (uint32_t i = 0; i < e->n_post; i++) {
    hn_post *p = &e->post[i];
    if (p->kind != HN_POST_ADD && p->kind != HN_POST_MUL) continue;
    if (p->v) p->v += floats;
    if (p->narrow) p->narrow += floats;
  }
}

double hn_core_hertz(const hn_gemm_ops *o, const hone_machine *machine) {
  double hertz = machine->peak_flops / (machine->threads ? machine->threads : 1) / (4.0 * o->vw);
  return hertz > 0 ? hertz : 3e9;
}

/* Of a plan's layers some three dozen are like this one: what they need together is what competes for L3. */
#define LAYERS_LIKE_THIS 32

double hn_weights_cycles(double bytes, double layer_bytes, const hn_gemm_ops *o,
                         const hone_machine *machine) {
  double far = machine->l3 ? LAYERS_LIKE_THIS * layer_bytes / (double)machine->l3 : 1;
  double share = machine->dram_bytes / (machine->threads ? machine->threads : 1) / hn_core_hertz(o, machine);
  const double core = hn_cpu()->dram_bytes_per_cycle, dram = share > 0 && share < core ? share : core;
  if (far > 1) far = 1;
  return bytes * (far / dram + (1 - far) / HN_STREAM_BYTES_PER_CYCLE);
}

double hn_overlapped_cycles(double a, double b) { return a > b ? a + 0.33 * b : b + 0.33 * a; }

/* Bytes a cycle at which one core reads what left the cores' own caches, or what another core wrote. */
#define FAR_BYTES_PER_CYCLE 9
#define NARROW_CYCLES 300 /* of a tile whose pixels are brought together, worked on and put back */

double hn_handed_over_seconds(const hone_machine *m, double bytes) {
  const hn_gemm_ops *o = hn_gemm_find(hn_isa_of(m->isa));
  const double threads = m->threads ? m->threads : 1;
  return o ? bytes * (1 - 1 / threads) / threads / FAR_BYTES_PER_CYCLE / hn_core_hertz(o, m) : 0;
}

double hn_epilogue_seconds(const hone_step *s, const hone_machine *m, bool far) {
  const hn_gemm_ops *o = hn_gemm_find(hn_isa_of(m->isa));
  const double lanes = o ? o->vw : 1, threads = m->threads ? m->threads : 1;
  const double vectors = (double)hone_desc_count(&s->output[0].desc) / lanes / threads;
  double cycles = 0, narrow = 0;
  if (vectors <= 0) return 0;
  if (hn_anchor_of_step(s).channels && s->output[0].desc.dim[1] * 2 <= (int64_t)lanes && lanes > 1)
    narrow = NARROW_CYCLES * vectors * lanes / (double)(s->output[0].desc.dim[1] * o->mr);
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    switch (e->kind) {
    case HONE_EPI_ACT:
      if (e->act != HONE_PW_RELU && e->act != HONE_PW_CLIP && e->act != HONE_PW_LEAKYRELU)
        cycles += vectors * hn_pw_cycles(e->act) + narrow, narrow = 0;
      break;
    case HONE_EPI_ADD:
    case HONE_EPI_MUL:
      if (far) cycles += vectors * lanes * sizeof(float) / FAR_BYTES_PER_CYCLE;
      break;
    case HONE_EPI_SCALE: cycles += vectors * hn_pw_cycles(HONE_PW_MUL) + narrow, narrow = 0; break;
    default: break;
    }
  }
  return o ? cycles / hn_core_hertz(o, m) : 0;
}

double hn_step_seconds(const hone_machine *m, double flops, double bytes, double efficiency) {
  double peak = m->peak_flops > 0 ? m->peak_flops : 1e10, cache = m->cache_bytes > 0 ? m->cache_bytes : 1e10;
  double compute = flops / (peak * efficiency), memory = bytes / cache;
  return (compute > memory ? compute : memory) + 3e-6;
}
