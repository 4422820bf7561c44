#include "backends/cuda/step/epilogue.h"

#include <string.h>

#include "backends/cuda/step/functions.h"
#include "base/error.h"
#include "optimize/step/anchor.h"

static const int widths[] = {1, 2, 4, 8};

int64_t hn_cuda_epilogue_channels(const hone_step *s) {
  const hone_tensor_desc *y = &s->output[0].desc;
  if (y->rank == 0) return 1;
  return y->dim[hn_anchor_of_step(s).channels && y->rank > 1 ? 1 : y->rank - 1];
}

static bool same_strides(const hone_tensor_desc *a, const hone_tensor_desc *b) {
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dim[i] > 1 && a->stride[i] != b->stride[i]) return false;
  return true;
}

static bool is_vector(hone_epilogue_kind kind) { return kind == HONE_EPI_BIAS || kind == HONE_EPI_SCALE; }

static bool has_operand(hone_epilogue_kind kind) {
  return is_vector(kind) || kind == HONE_EPI_ADD || kind == HONE_EPI_MUL;
}

static bool operand_fits(const hone_step *s, uint32_t i, hone_reason *why) {
  const hone_epilogue *e = &s->epilogue[i];
  const hone_tensor_desc *y = &s->output[0].desc;
  const hone_tensor_desc *d = e->input < s->n_inputs ? &s->input[e->input].desc : NULL;
  if (!d || !hn_cuda_type(d->dtype) || !hone_desc_known(d))
    return hn_refuse(why, "epilogue %u has no floating-point operand of known size", i);
  if (is_vector(e->kind)) {
    if (hone_desc_count(d) != hn_cuda_epilogue_channels(s))
      return hn_refuse(why, "epilogue %u is no vector of %lld channels", i,
                       (long long)hn_cuda_epilogue_channels(s));
  } else if (!hone_desc_same_dims(d, y) || !same_strides(d, y)) {
    return hn_refuse(why, "epilogue %u: the tensor has not the output's dimensions and layout", i);
  }
  return true;
}

bool hn_cuda_epilogue_accepts(const hone_step *s, hone_reason *why) {
  if (!hone_desc_known(&s->output[0].desc)) return hn_refuse(why, "dimensions of the output are not known");
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    unsigned operands;
    switch (e->kind) {
    case HONE_EPI_BIAS:
    case HONE_EPI_SCALE:
    case HONE_EPI_ADD:
    case HONE_EPI_MUL:
      if (!operand_fits(s, i, why)) return false;
      break;
    case HONE_EPI_ACT:
      if (!hn_cuda_function(e->act, &operands) || operands != 1)
        return hn_refuse(why, "epilogue %u: function %d is no activation", i, (int)e->act);
      break;
    case HONE_EPI_CAST: break;
    default: return hn_refuse(why, "epilogue %u quantises, which is not generated", i);
    }
  }
  return true;
}

/* v[0..width) = the elements at `channel` (of a vector) or `at` (of a tensor) of operand `slot`. */
static void write_load(hn_str *t, int width, int slot, hone_dtype dtype, bool vector) {
  const char *type = hn_cuda_type(dtype), *at = vector ? "channel" : "at";
  /* A vector is exactly as long as there are channels; a tensor may lie at an odd address. */
  const char *whole = vector ? "channel + %d <= e->channels" : "e->aligned";
  if (width == 1) {
    hn_str_printf(t,
                  vector ? "    v[0] = channel < e->channels ? hn_load_%s(e->in[%d], %s) : 0.0f;\n"
                         : "    v[0] = hn_load_%s(e->in[%d], %s);\n",
                  type, slot, at);
  } else {
    hn_str_puts(t, "    if (");
    hn_str_printf(t, whole, width);
    hn_str_printf(t, ") hn_load%d_%s(e->in[%d], %s, v);\n", width, type, slot, at);
    hn_str_printf(
        t, "    else { HN_UNROLL for (int k = 0; k < %d; k++) v[k] = %shn_load_%s(e->in[%d], %s + k)%s; }\n",
        width, vector ? "channel + k < e->channels ? " : "", type, slot, at, vector ? " : 0.0f" : "");
  }
}

/* x[0..width) op= operand `slot`. */
static void write_operand(hn_str *t, int width, int slot, hone_dtype dtype, bool vector, char op) {
  hn_str_printf(t, "  { float v[%d];\n", width);
  write_load(t, width, slot, dtype, vector);
  hn_str_printf(t, "    HN_UNROLL for (int k = 0; k < %d; k++) x[k] %c= v[k]; }\n", width, op);
}

static void write_act(hn_str *t, int width, const hone_epilogue *e) {
  unsigned operands;
  hn_str_printf(t, "  HN_UNROLL for (int k = 0; k < %d; k++) x[k] = hn_fn_%s(x[k], ", width,
                hn_cuda_function(e->act, &operands));
  hn_cuda_literal(t, e->alpha);
  hn_str_puts(t, ", ");
  hn_cuda_literal(t, e->beta);
  hn_str_puts(t, ");\n");
}

static char operation(hone_epilogue_kind kind) {
  return kind == HONE_EPI_BIAS || kind == HONE_EPI_ADD ? '+' : '*';
}

/* The list on `width` consecutive channels; padding: some of them may be none, and come back as zeros. */
static void write_list(const hone_step *s, int bias, const char *name, int width, bool padding, hn_str *t) {
  hn_str_printf(t,
                "HN_FN void %s%d(float *x, int channel, i64 at, const hn_epilogue_args *e) {\n"
                "  (void)x, (void)channel, (void)at, (void)e;\n",
                name, width);
  if (bias >= 0) write_operand(t, width, HONE_MAX_EPILOGUE, s->input[bias].desc.dtype, true, '+');
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if (has_operand(e->kind))
      write_operand(t, width, (int)i, s->input[e->input].desc.dtype, is_vector(e->kind), operation(e->kind));
    else if (e->kind == HONE_EPI_ACT)
      write_act(t, width, e);
  }
  if (padding)
    hn_str_printf(
        t, "  HN_UNROLL for (int k = 0; k < %d; k++) if (channel + k >= e->channels) x[k] = 0.0f;\n", width);
  hn_str_puts(t, "}\n");
}

/* The list for fragments of tensor cores, in two functions: the vectors, and the rest. */
static void write_fragments(const hone_step *s, int bias, int staged, const char *name, const char *macro,
                            hn_str *t) {
  int vectors = 0;
  const int first = bias >= 0 ? -1 : 0;
  hn_str_printf(t,
                "HN_FN void %s_fragment_vectors(float (*u)[4], int channel, const hn_epilogue_args *e) {\n"
                "  (void)u, (void)channel, (void)e;\n",
                name);
  for (int i = first; i < (int)s->n_epilogue; i++) {
    if (i >= 0 && !is_vector(s->epilogue[i].kind)) continue;
    const hone_dtype type = s->input[i < 0 ? (uint32_t)bias : s->epilogue[i].input].desc.dtype;
    for (int pair = 0; pair < 2; pair++) {
      hn_str_printf(t, "  { float *v = u[%d] + %d;\n", vectors, 2 * pair);
      if (pair) hn_str_puts(t, "    channel += 8;\n");
      write_load(t, 2, i < 0 ? HONE_MAX_EPILOGUE : i, type, true);
      if (pair) hn_str_puts(t, "    channel -= 8;\n");
      hn_str_puts(t, "  }\n");
    }
    vectors++;
  }
  hn_str_printf(
      t,
      "}\nHN_FN void %s_fragment(float x[8], float (*u)[4], const float *staged, int channel, i64 at, "
      "i64 down, int rows, const hn_epilogue_args *e) {\n"
      "  (void)u, (void)staged, (void)channel, (void)at, (void)down, (void)rows, (void)e;\n",
      name);
  vectors = 0;
  for (int i = first; i < (int)s->n_epilogue; i++) {
    const hone_epilogue *e = i < 0 ? NULL : &s->epilogue[i];
    const char op = e ? operation(e->kind) : '+';
    if (!e || is_vector(e->kind)) {
      hn_str_printf(t, "  HN_UNROLL for (int k = 0; k < 8; k++) x[k] %c= u[%d][(k >> 2) * 2 + (k & 1)];\n",
                    op, vectors++);
    } else if (i == staged) {
      hn_str_printf(t, "  HN_UNROLL for (int k = 0; k < 8; k++) x[k] %c= staged[k];\n", op);
    } else if (has_operand(e->kind)) {
      hn_str_printf(t,
                    "  HN_UNROLL for (int k = 0; k < 8; k++) {\n    int c = (k >> 2) * 8 + (k & 1);\n"
                    "    if ((k >> 1 & 1) < rows && channel + c < e->channels)\n"
                    "      x[k] %c= hn_load_%s(e->in[%d], at + c + (k & 2 ? down : 0));\n  }\n",
                    op, hn_cuda_type(s->input[e->input].desc.dtype), i);
    } else if (e->kind == HONE_EPI_ACT) {
      write_act(t, 8, e);
    }
  }
  /* What is beyond the last eight channels is never stored. */
  if (hn_cuda_epilogue_channels(s) % 8)
    hn_str_puts(t, "  HN_UNROLL for (int k = 0; k < 8; k++)\n"
                   "    if (channel + (k >> 2) * 8 + (k & 1) >= e->channels) x[k] = 0.0f;\n");
  hn_str_printf(t, "}\n#define %s_VECTORS %d\n", macro, vectors);
}

static int own_bias(const hone_step *s, int bias) {
  return bias >= 0 && (uint32_t)bias < s->n_anchor_inputs && s->input[bias].desc.dtype != HONE_DTYPE_NONE
             ? bias
             : HN_CUDA_NO_BIAS;
}

hone_status hn_cuda_epilogue(const hone_step *s, int bias, hn_str *text, hone_error *error) {
  hone_reason why = {""};
  bias = own_bias(s, bias);
  if (!hn_cuda_epilogue_accepts(s, &why))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s: %s", s->anchor, why.text);
  if (bias >= 0 && !hn_cuda_type(s->input[bias].desc.dtype))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s: the bias is %s", s->anchor,
                   hone_dtype_name(s->input[bias].desc.dtype));
  const hone_dtype y = s->output[0].desc.dtype;
  if (y == HONE_DTYPE_F16 || y == HONE_DTYPE_BF16)
    hn_str_puts(text, "#ifndef HN_FAST_MATH\n#define HN_FAST_MATH 1\n#endif\n");
  hn_str_puts(text, "#include \"epilogue.cuh\"\n");
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    write_list(s, bias, "hn_epilogue_list", widths[i], true, text);
  hn_str_puts(text, "HN_FN float hn_epilogue1(float x, int channel, i64 at, const hn_epilogue_args *e) {\n"
                    "  hn_epilogue_list1(&x, channel, at, e);\n  return x;\n}\n");
  for (size_t i = 1; i < sizeof widths / sizeof *widths; i++)
    hn_str_printf(text,
                  "HN_FN void hn_epilogue%d(float x[%d], int channel, i64 at, const hn_epilogue_args *e) {\n"
                  "  hn_epilogue_list%d(x, channel, at, e);\n}\n",
                  widths[i], widths[i], widths[i]);
  return text->failed ? hn_fail_memory(error, text->cap, "device text") : HONE_OK;
}

hone_status hn_cuda_epilogue_fragments(const hone_step *s, int bias, int staged, hn_str *text,
                                       hone_error *error) {
  hone_status status = hn_cuda_epilogue(s, bias, text, error);
  if (status == HONE_OK) write_fragments(s, own_bias(s, bias), staged, "hn_epilogue", "HN_EPILOGUE", text);
  if (status != HONE_OK) return status;
  return text->failed ? hn_fail_memory(error, text->cap, "device text") : HONE_OK;
}

hone_status hn_cuda_epilogue_inner(const hone_step *s, int bias, hn_str *text, hone_error *error) {
  write_fragments(s, own_bias(s, bias), HN_CUDA_NO_BIAS, "hn_inner", "HN_INNER", text);
  return text->failed ? hn_fail_memory(error, text->cap, "device text") : HONE_OK;
}

hone_status hn_cuda_epilogue_inner4(const hone_step *s, int bias, bool padding, hn_str *text,
                                    hone_error *error) {
  write_list(s, own_bias(s, bias), "hn_inner", 4, padding, text);
  return text->failed ? hn_fail_memory(error, text->cap, "device text") : HONE_OK;
}

hone_status hn_cuda_epilogue_inner1(const hone_step *s, int bias, hn_str *text, hone_error *error) {
  write_list(s, own_bias(s, bias), "hn_inner", 1, false, text);
  return text->failed ? hn_fail_memory(error, text->cap, "device text") : HONE_OK;
}

void hn_cuda_epilogue_sizes(const hone_step *s, int bias, int32_t bytes[HN_EPILOGUE_INPUTS]) {
  memset(bytes, 0, HN_EPILOGUE_INPUTS * sizeof *bytes);
  bias = own_bias(s, bias);
  if (bias >= 0) bytes[HONE_MAX_EPILOGUE] = (int32_t)hone_desc_bytes(&s->input[bias].desc);
  for (uint32_t i = 0; i < s->n_epilogue; i++)
    if (is_vector(s->epilogue[i].kind))
      bytes[i] = (int32_t)hone_desc_bytes(&s->input[s->epilogue[i].input].desc);
}

uint32_t hn_cuda_epilogue_vectors(const hone_step *s, int bias) {
  uint32_t n = own_bias(s, bias) >= 0;
  for (uint32_t i = 0; i < s->n_epilogue; i++) n += is_vector(s->epilogue[i].kind);
  return n;
}

static bool reads_tensor(const hone_epilogue *e) { return has_operand(e->kind) && !is_vector(e->kind); }

uint32_t hn_cuda_epilogue_tensors(const hone_step *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_epilogue; i++) n += reads_tensor(&s->epilogue[i]);
  return n;
}

bool hn_cuda_epilogue_inside(const hone_step *s, hone_reason *why) {
  return !hn_cuda_epilogue_tensors(s) || hn_refuse(why, "the inner epilogue reads a tensor");
}

int hn_cuda_epilogue_staged(const hone_step *s) {
  for (uint32_t i = 0; i < s->n_epilogue; i++)
    if (reads_tensor(&s->epilogue[i]) && s->input[s->epilogue[i].input].desc.dtype == s->output[0].desc.dtype)
      return (int)i;
  return -1;
}

void hn_cuda_epilogue_bind(const hone_step_run *run, int bias, hn_epilogue_args *out) {
  const hone_step *s = run->step;
  memset(out, 0, sizeof *out);
  out->channels = (int32_t)hn_cuda_epilogue_channels(s);
  out->aligned = 1;
  bias = own_bias(s, bias);
  if (bias >= 0) out->in[HONE_MAX_EPILOGUE] = run->in[bias];
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if (!has_operand(e->kind)) continue;
    out->in[i] = run->in[e->input];
    if (!is_vector(e->kind) && (uintptr_t)out->in[i] % 16) out->aligned = 0;
  }
}

double hn_cuda_epilogue_bytes(const hone_step *s) {
  double bytes = 0;
  for (uint32_t i = 0; i < s->n_epilogue; i++)
    if (has_operand(s->epilogue[i].kind))
      bytes += (double)hone_desc_bytes(&s->input[s->epilogue[i].input].desc);
  return bytes;
}

double hn_cuda_epilogue_instructions(const hone_step *s) {
  double n = 0;
  for (uint32_t i = 0; i < s->n_epilogue; i++)
    if (s->epilogue[i].kind == HONE_EPI_ACT) n += hn_cuda_function_instructions(s->epilogue[i].act);
  return n;
}
