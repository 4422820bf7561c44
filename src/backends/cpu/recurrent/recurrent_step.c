#include "backends/cpu/recurrent/recurrent_step.h"

#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/product/coded_step.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "model/ops/microsoft/codes/lstm_codes.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, INPUTS };
enum { MOST_BYTES = 32768 }; /* products of bytes whose sum fits into i32 */

/* The blob: this, then the constants (in bytes from its begin; 0: none). */
typedef struct plan {
  hn_recurrent p;
  size_t w, w_scale, bias, rec[2], peepholes, later, bytes;
  hn_coded_step form[2]; /* codes of W and of R, those of a direction */
  size_t codes[2];       /* of the first direction; the second's lie behind */
  size_t sums[2];        /* the same of columns' sums */
} plan;

static bool has(const hone_step *s, uint32_t i) { return i < s->n_anchor_inputs && hn_step_has(s, i); }

/* The type that input i has. */
static hone_dtype wanted(const hone_step *s, uint32_t i, bool coded) {
  const bool codes =
      coded && (i == W || i == R || i == HN_DQ_LSTM_W_SCALE + 1 || i == HN_DQ_LSTM_R_SCALE + 1);
  if (i == LENGTHS) return HONE_DTYPE_I32;
  return !codes ? HONE_DTYPE_F32 : s->input[i].desc.dtype == HONE_DTYPE_I8 ? HONE_DTYPE_I8 : HONE_DTYPE_U8;
}

/* Dtypes, layouts and what must be known when the plan is made. */
static bool readable(const hone_step *s, bool coded, hone_reason *why) {
  if (s->n_epilogue) return hn_refuse(why, "recurrent steps have no epilogue");
  if (coded && s->n_anchor_inputs < HN_DQ_LSTM_R_SCALE + 2) return hn_refuse(why, "scales are missing");
  for (uint32_t i = 0; i < s->n_anchor_inputs && i < (coded ? HN_DQ_LSTM_R_SCALE + 2 : INPUTS); i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    if (!has(s, i)) continue;
    if (d->dtype != wanted(s, i, coded))
      return hn_refuse(why, "input %u is %s", i, hone_dtype_name(d->dtype));
    if (!hone_desc_known(d)) return hn_refuse(why, "dimensions of input %u are not known", i);
    if (d->layout != HONE_LAYOUT_ROW_MAJOR) return hn_refuse(why, "input %u is not row-major", i);
    if ((i == W || i == R || i == B || i >= PEEPHOLES) && !s->input[i].constant)
      return hn_refuse(why, "input %u (weights) is no constant", i);
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    const hone_tensor_desc *d = &s->output[i].desc;
    if (d->dtype == HONE_DTYPE_NONE) continue;
    if (d->dtype != HONE_DTYPE_F32 || d->layout != HONE_LAYOUT_ROW_MAJOR)
      return hn_refuse(why, "output %u is not row-major f32", i);
  }
  return true;
}

static void set_passes(hn_recurrent *p, const hn_rnn_kind *kind, bool later) {
  p->passes = 1;
  p->pass[0] = kind->gates == 1   ? HN_RECURRENT_RNN
               : kind->gates == 4 ? HN_RECURRENT_LSTM
               : later            ? HN_RECURRENT_GRU
                                  : HN_RECURRENT_GRU_GATES;
  if (p->pass[0] == HN_RECURRENT_GRU_GATES) p->pass[p->passes++] = HN_RECURRENT_GRU_HIDDEN;
}

/* A code, less the middle of its type's range. */
static int32_t code_of(const hone_step *s, uint32_t input, size_t i) {
  const unsigned char byte = ((const unsigned char *)s->input[input].constant)[i];
  return s->input[input].desc.dtype == HONE_DTYPE_I8 ? (int8_t)byte : byte - 128;
}

/* The codes of W or R of a direction. */
static hn_coded_step form_of(const hn_recurrent *p, const hone_step *s, uint32_t zero, int64_t k) {
  enum { GROUP = 16 };
  bool zeros = false; /* symmetric weights have none */
  for (int64_t i = 0, n = hone_desc_count(&s->input[zero].desc); i < n; i++)
    zeros |= code_of(s, zero, (size_t)i) != 0;
  return (hn_coded_step){.isa = p->isa,
                         .n = p->gates * p->hidden,
                         .k = k,
                         .bits = 8,
                         .block = hn_fill_up(k, GROUP),
                         .blocks = 1,
                         .zeros = zeros};
}

static size_t codes_bytes(const hn_coded_step *form) { return hn_round_up(hn_coded_panels_bytes(form), 64); }
static size_t sums_count(const hn_coded_step *form) { return hn_round_up((size_t)form->n, 16); }

static bool describe(const hone_step *s, const hone_machine *m, const hn_recurrent_config *config, plan *d,
                     hone_reason *why) {
  const hn_rnn_kind *kind = config->kind;
  const hone_tensor_desc *desc[INPUTS] = {NULL};
  hone_error error = {0};
  hone_tensor_desc decoded[2];
  hn_rnn r;
  memset(d, 0, sizeof *d);
  if (!readable(s, config->coded, why)) return false;
  for (uint32_t i = 0; i < INPUTS; i++)
    if (has(s, i)) desc[i] = &s->input[i].desc;
  for (uint32_t i = W; i <= R && config->coded; i++) {
    decoded[i - W] = hn_lstm_codes_desc(desc[i]);
    desc[i] = &decoded[i - W];
  }
  if (hn_rnn_init(&r, s->node, kind, desc, hn_min(s->n_anchor_inputs, INPUTS), &error) != HONE_OK)
    return hn_refuse(why, "%.140s", error.what);
  if (r.input < 1 || r.hidden < 1)
    return hn_refuse(why, "the %s size is 0", r.input < 1 ? "input" : "hidden");
  hn_recurrent *p = &d->p;
  p->isa = hn_isa_of(m->isa);
  const struct hn_recurrent_ops *o = hn_recurrent_find(p->isa);
  if (!o || !hn_gemm_find(p->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(p->isa));
  p->seq = r.seq, p->batch = r.batch, p->input = r.input, p->hidden = r.hidden;
  p->directions = r.directions, p->gates = kind->gates;
  p->backwards = r.reverse_only, p->batch_first = r.batch_first, p->clip = (float)r.clip;
  p->coupled = kind->gates == 4 && hone_node_int(s->node, "input_forget", 0) != 0;
  for (int64_t i = 0; i < r.directions; i++)
    memcpy(p->act[i], r.act + i * kind->activations, (size_t)kind->activations * sizeof *r.act);
  p->rounded = config->coded;
  p->coded = p->rounded && hn_coded_int8_find(p->isa) && r.input <= MOST_BYTES && r.hidden <= MOST_BYTES;
  const bool later = kind->gates == 3 && hone_node_int(s->node, "linear_before_reset", 0) != 0;
  set_passes(p, kind, later);
  hn_recurrent_plan(p, m);
  size_t at = hn_round_up(sizeof *d, 64);
  const size_t directions = (size_t)p->directions, units = directions * (size_t)p->padded;
#define PLACE(field, floats) d->field = at, at = hn_round_up(at + (floats) * sizeof(float), 64)
  for (int i = 0; i < 2 && p->coded; i++) {
    d->form[i] = form_of(p, s, i ? HN_DQ_LSTM_R_SCALE + 1 : HN_DQ_LSTM_W_SCALE + 1, i ? p->hidden : p->input);
    PLACE(codes[i], directions * codes_bytes(&d->form[i]) / sizeof(float));
    PLACE(sums[i], directions * sums_count(&d->form[i]));
  }
  if (!p->coded) PLACE(w, hn_matmul_packed(&p->inputs));
  if (p->rounded && !p->coded) PLACE(w_scale, (size_t)p->inputs.n);
  for (int64_t i = 0; i < p->passes && !p->coded; i++)
    PLACE(rec[i], directions * hn_recurrent_packed(o, p->pass[i], (size_t)p->hidden));
  if (has(s, B)) PLACE(bias, (size_t)p->inputs.n);
  if (has(s, B) && later) PLACE(later, units);
  if (kind->has_cell && has(s, PEEPHOLES)) PLACE(peepholes, 3 * units);
#undef PLACE
  d->bytes = at;
  return true;
}

static double cost_of(const plan *d, const hone_step *s, const hone_machine *m) {
  (void)s;
  const double inputs = d->p.inputs.m > 0 ? hn_conv_seconds(&d->p.inputs.conv, hn_gemm_find(d->p.isa), m) : 0;
  return inputs + d->p.step_seconds + 1e-6;
}

static void need_of(const plan *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  n->blob_bytes = d->bytes;
  n->packed = 1u << W | 1u << R;
  if (d->p.rounded) n->packed |= 15u << HN_DQ_LSTM_W_SCALE;
  if (has(s, B)) n->packed |= 1u << B;
  if (has(s, PEEPHOLES)) n->packed |= 1u << PEEPHOLES;
  n->bytewise = n->packed;
  n->workspace_bytes = hn_recurrent_workspace(&d->p, m->threads) * sizeof(float);
}

static float *floats_at(void *blob, size_t offset) {
  return offset ? (float *)(void *)((unsigned char *)blob + offset) : NULL;
}

/* A float of a constant, which may lie at any address. */
static float value(const hone_step *s, uint32_t input, size_t i) {
  float x;
  memcpy(&x, (const char *)s->input[input].constant + i * sizeof x, sizeof x);
  return x;
}

/* B: [directions][W's gates, R's gates]. What may be added before the step's product is; a GRU that resets
 * after it keeps the hidden gate's recurrent one apart. */
static void pack_bias(const hone_step *s, const plan *d, float *bias, float *later) {
  const hn_recurrent *p = &d->p;
  const size_t hidden = (size_t)p->hidden, all = (size_t)p->gates * hidden;
  for (size_t dir = 0; dir < (size_t)p->directions; dir++)
    for (size_t i = 0; i < all; i++) {
      const float of_w = value(s, B, dir * 2 * all + i), of_r = value(s, B, dir * 2 * all + all + i);
      const bool apart = later && i >= 2 * hidden;
      bias[dir * all + i] = apart ? of_w : of_w + of_r;
      if (apart) later[dir * (size_t)p->padded + i - 2 * hidden] = of_r;
    }
}

/* The codes of direction `way`, which the file has row by row of [k][columns], and the columns' sums. */
static hone_status put_codes(const hone_step *s, const hn_coded_step *form, uint32_t input, uint32_t scale,
                             size_t way, void *to, int32_t *sums, hone_error *error) {
  const size_t n = (size_t)form->n, k = (size_t)form->k, block = (size_t)form->block;
  const bool columns = s->input[scale].desc.rank == 2, zeros = s->input[scale + 1].desc.rank == 2;
  const size_t bytes = n * (sizeof(float) + block + 1);
  float *scales = hn_malloc(bytes);
  if (!scales) return hn_fail_memory(error, bytes, "packing codes");
  uint8_t *codes = (uint8_t *)(scales + n), *zero = codes + n * block;
  memset(codes, 0, n * block);
  for (size_t c = 0; c < n; c++) {
    const int32_t none = code_of(s, scale + 1, zeros ? way * n + c : way);
    int32_t sum = 0;
    for (size_t i = 0; i < k; i++) {
      const int32_t code = code_of(s, input, (way * k + i) * n + c);
      codes[c * block + i] = (uint8_t)(code + 128);
      sum += code - none;
    }
    scales[c] = value(s, scale, columns ? way * n + c : way);
    zero[c] = (uint8_t)(none + 128);
    sums[c] = sum;
  }
  hn_coded_put(form, codes, scales, zero, to);
  hn_free(scales);
  return HONE_OK;
}

/* W or R as LSTM has it, which the step has as codes, without scales or with them; hn_free. */
static float *decoded(const hone_step *s, uint32_t input, uint32_t scale, bool scaled, hone_error *error) {
  hone_tensor t[3];
  const uint32_t of[3] = {input, scale, scale + 1};
  for (int i = 0; i < 3; i++)
    t[i] = (hone_tensor){.desc = s->input[of[i]].desc, .data = (void *)(uintptr_t)s->input[of[i]].constant};
  const size_t bytes = (size_t)hone_desc_count(&t[0].desc) * sizeof(float);
  float *out = hn_malloc(bytes);
  if (out)
    hn_lstm_decode(&t[0], scaled ? &t[1] : NULL, &t[2], out);
  else
    hn_fail_memory(error, bytes, "packing codes");
  return out;
}

/* W and R, [directions][gates][hidden][...] of f32 at any address. */
static void pack_floats(const plan *d, const void *w, const void *r, void *blob) {
  const hn_recurrent *p = &d->p;
  const struct hn_recurrent_ops *o = hn_recurrent_find(p->isa);
  const size_t hidden = (size_t)p->hidden;
  hn_matmul_pack(&p->inputs, w, floats_at(blob, d->w));
  for (size_t dir = 0; dir < (size_t)p->directions; dir++) {
    const char *at = (const char *)r + dir * (size_t)p->gates * hidden * hidden * sizeof(float);
    for (int64_t i = 0; i < p->passes; i++) {
      hn_recurrent_pack(o, p->pass[i], at, hidden,
                        floats_at(blob, d->rec[i]) + dir * hn_recurrent_packed(o, p->pass[i], hidden));
      at += hn_recurrent_gates(p->pass[i]) * hidden * hidden * sizeof(float);
    }
  }
}

static hone_status pack_decoded(const plan *d, const hone_step *s, void *blob, hone_error *error) {
  const bool columns = s->input[HN_DQ_LSTM_W_SCALE].desc.rank == 2;
  const size_t gates = (size_t)(d->p.gates * d->p.hidden);
  float *scale = floats_at(blob, d->w_scale), *w = decoded(s, W, HN_DQ_LSTM_W_SCALE, false, error),
        *r = w ? decoded(s, R, HN_DQ_LSTM_R_SCALE, true, error) : NULL;
  for (size_t i = 0; i < (size_t)d->p.inputs.n; i++)
    scale[i] = value(s, HN_DQ_LSTM_W_SCALE, columns ? i : i / gates);
  if (r) pack_floats(d, w, r, blob);
  const hone_status status = r ? HONE_OK : HONE_ERROR_MEMORY;
  hn_free(w), hn_free(r);
  return status;
}

static hone_status fill(plan *d, const hone_step *s, void *blob, hone_error *error) {
  const hn_recurrent *p = &d->p;
  const size_t hidden = (size_t)p->hidden, padded = (size_t)p->padded, directions = (size_t)p->directions;
  memset(blob, 0, d->bytes);
  memcpy(blob, d, sizeof *d);
  for (size_t i = 0; i < 2 * directions && p->coded; i++) {
    const uint32_t of = i % 2 ? R : W, scale = i % 2 ? HN_DQ_LSTM_R_SCALE : HN_DQ_LSTM_W_SCALE;
    const hn_coded_step *form = &d->form[i % 2];
    const hone_status status =
        put_codes(s, form, of, scale, i / 2, (char *)blob + d->codes[i % 2] + i / 2 * codes_bytes(form),
                  (int32_t *)(void *)floats_at(blob, d->sums[i % 2]) + i / 2 * sums_count(form), error);
    if (status) return status;
  }
  const hone_status status = p->rounded && !p->coded ? pack_decoded(d, s, blob, error) : HONE_OK;
  if (status) return status;
  if (!p->rounded) pack_floats(d, s->input[W].constant, s->input[R].constant, blob);
  if (d->bias) pack_bias(s, d, floats_at(blob, d->bias), floats_at(blob, d->later));
  if (d->peepholes)
    for (size_t i = 0; i < 3 * directions; i++)
      for (size_t k = 0; k < hidden; k++)
        floats_at(blob, d->peepholes)[i * padded + k] = value(s, PEEPHOLES, i * hidden + k);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_recurrent, plan, fill)

static float *output(const hone_step_run *r, uint32_t i) {
  return hn_step_gives(r->step, i) ? r->out[i] : NULL;
}

hone_status hn_recurrent_run(const hone_step_run *r, const hn_recurrent_config *config, hone_error *error) {
  (void)config;
  const plan *d = r->blob;
  const hone_step *s = r->step;
  const unsigned char *blob = r->blob;
#define AT(field) (d->field ? (const float *)(const void *)(blob + d->field) : NULL)
  hn_recurrent_weights w = {.w = AT(w),
                            .w_scale = AT(w_scale),
                            .bias = AT(bias),
                            .rec = {AT(rec[0]), AT(rec[1])},
                            .peepholes = AT(peepholes),
                            .later = AT(later)};
#undef AT
  for (int64_t i = 0; i < 2 * d->p.directions && d->p.coded; i++)
    w.codes[i / 2][i % 2] = (hn_byte_weights){
        hn_coded_at(&d->form[i % 2], blob + d->codes[i % 2] + (size_t)(i / 2) * codes_bytes(&d->form[i % 2])),
        (const int32_t *)(const void *)(blob + d->sums[i % 2]) +
            (size_t)(i / 2) * sums_count(&d->form[i % 2])};
  const hn_recurrent_io io = {.x = r->in[X],
                              .lengths = has(s, LENGTHS) ? r->in[LENGTHS] : NULL,
                              .h = has(s, INITIAL_H) ? r->in[INITIAL_H] : NULL,
                              .c = has(s, INITIAL_C) ? r->in[INITIAL_C] : NULL,
                              .y = output(r, 0),
                              .y_h = output(r, 1),
                              .y_c = output(r, 2)};
  for (int64_t n = 0; io.lengths && n < d->p.batch; n++)
    if (io.lengths[n] < 0 || io.lengths[n] > d->p.seq)
      return hn_fail(error, HONE_ERROR_INPUT, "%s: sequence_lens holds %d for a length of %lld", s->name,
                     (int)io.lengths[n], (long long)d->p.seq);
  hn_recurrent_exec(&d->p, &w, &io, r->workspace, r->parallel, r->pool);
  return HONE_OK;
}
