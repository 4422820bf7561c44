#include "backends/cuda/elementwise/elementwise.h"

#include <string.h>

#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"

enum { THREADS = 256 };

/* ---------------------------------------------------------------- planning */

/* Dimension 1 counts up to the pitch where the outputs have channel padding. */
static bool add_operand(hn_cuda_elementwise *p, const hone_tensor_desc *y, const hone_tensor_desc *d) {
  int64_t stride[HN_NEST_RANK] = {0};
  const int32_t lead = y->rank - d->rank;
  if (lead < 0) return false;
  for (int32_t i = 0; i < d->rank; i++) {
    if (d->dim[i] != y->dim[lead + i] && d->dim[i] != 1) return false;
    stride[lead + i] = d->dim[i] == 1 ? 0 : d->stride[i];
  }
  /* The only channel of a padded output: step into the padding, which equal layouts have, too. */
  if (p->padded && y->dim[1] == 1 && lead == 0 && d->layout == HONE_LAYOUT_CHANNELS_LAST &&
      d->channel_pitch == y->channel_pitch)
    stride[1] = 1;
  hn_nest_add(&p->nest, stride);
  return true;
}

static int64_t size_of(const hn_cuda_operand *o) { return (int64_t)hone_dtype_size(o->dtype); }

/* Whether operand k can be read and written in vectors of `width`. */
static bool in_vectors(const hn_cuda_elementwise *p, uint32_t k, int width, const void *at) {
  const hn_nest *n = &p->nest;
  const int64_t bytes = width * size_of(&p->operand[k]);
  if (n->stride[k][n->rank - 1] != 1) return false;
  for (int32_t i = 0; i + 1 < n->rank; i++)
    if (n->stride[k][i] % width) return false;
  return (uintptr_t)at % (uintptr_t)(bytes < 16 ? bytes : 16) == 0;
}

static void classify(hn_cuda_elementwise *p, uint32_t k, const void *at, const hone_tensor_desc *d) {
  const hn_nest *n = &p->nest;
  hn_cuda_operand *o = &p->operand[k];
  const int64_t inner = n->stride[k][n->rank - 1];
  o->access = inner == 0 ? HN_CUDA_ROW : in_vectors(p, k, p->width, at) ? HN_CUDA_VECTOR : HN_CUDA_SINGLE;
  o->whole = !p->partial && !p->padded;
  if (p->padded && d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch % p->width == 0 &&
      d->channel_pitch >= p->per_row * p->width && n->stride[k][n->rank - 1] == 1)
    o->whole = true;
  for (o->group = 0; o->group < p->n_groups; o->group++)
    if (!memcmp(n->stride[p->leader[o->group]], n->stride[k], (size_t)n->rank * sizeof(int64_t))) return;
  p->leader[p->n_groups++] = k;
}

bool hn_cuda_elementwise_plan(hn_cuda_elementwise *p, const hone_tensor_desc *const *out, uint32_t n_out,
                              const hone_tensor_desc *const *in, uint32_t n_in, void *const *at, int widest,
                              hone_reason *why) {
  memset(p, 0, sizeof *p);
  const hone_tensor_desc *y = out[0];
  const uint32_t n = n_out + n_in;
  if (n > HN_ELEMENTWISE_OPERANDS - 1)
    return hn_refuse(why, "more than %d tensors", HN_ELEMENTWISE_OPERANDS - 1);
  p->n_out = n_out, p->n_in = n_in;
  int64_t dim[HONE_MAX_RANK];
  int64_t largest = 1;
  for (uint32_t k = 0; k < n; k++) {
    const hone_tensor_desc *d = k < n_out ? out[k] : in[k - n_out];
    if (!hone_desc_known(d)) return hn_refuse(why, "dimensions of tensor %u are not known", k);
    if (!hn_cuda_value(d->dtype)) return hn_refuse(why, "tensor %u is %s", k, hone_dtype_name(d->dtype));
    if (k < n_out && !hone_desc_same_dims(d, y)) return hn_refuse(why, "output %u has other dimensions", k);
    if (k < n_out && (d->layout != y->layout || d->channel_pitch != y->channel_pitch))
      return hn_refuse(why, "output %u has another layout than output 0", k);
    p->operand[k].dtype = d->dtype;
    p->bytes += (double)hone_desc_bytes(d);
  }
  memcpy(dim, y->dim, sizeof dim);
  p->padded = y->layout == HONE_LAYOUT_CHANNELS_LAST && y->rank > 1 && y->channel_pitch > y->dim[1];
  if (p->padded) dim[1] = y->channel_pitch;
  hn_nest_begin(&p->nest, y->rank, dim);
  for (uint32_t k = 0; k < n; k++)
    if (!add_operand(p, y, k < n_out ? out[k] : in[k - n_out]))
      return hn_refuse(why, "tensor %u does not broadcast to the output", k);
  if (p->padded) { /* keeps the rows apart, so that a thread knows its channel */
    int64_t channel[HN_NEST_RANK] = {0};
    channel[1] = 1;
    hn_nest_add(&p->nest, channel);
  }
  hn_nest_finish(&p->nest);
  const int32_t last = p->nest.rank - 1;
  const int64_t length = p->nest.dim[last], count = hn_nest_count(&p->nest);
  if (p->nest.rank > HN_ELEMENTWISE_DIMS) return hn_refuse(why, "too many dimensions");
  p->row = p->padded ? y->dim[1] : length;
  for (uint32_t k = 0; k < n; k++)
    if (p->nest.stride[k][last] == 1 && size_of(&p->operand[k]) > largest) largest = size_of(&p->operand[k]);
  /* 16 bytes of the largest elements, 8 elements where some are short. */
  p->width = largest >= 8 ? 2 : largest == 4 ? 4 : 8;
  if (widest && widest < p->width) p->width = widest;
  for (; p->width > 1; p->width /= 2) {
    bool all = true;
    for (uint32_t k = 0; k < n_out && all; k++) all = in_vectors(p, k, p->width, at ? at[k] : NULL);
    if (p->padded) all = all && length % p->width == 0;
    if (all && (p->nest.rank == 1 || p->padded || length >= p->width)) break;
  }
  p->per_row = hn_div_up(length, p->width);
  p->partial = length % p->width != 0;
  p->vectors = length ? count / length * p->per_row : 0;
  if (p->vectors >= 0x7fffffff || p->per_row >= 0x7fffffff) return hn_refuse(why, "more than 2^31 vectors");
  for (uint32_t k = 0; k < n; k++) classify(p, k, at ? at[k] : NULL, k < n_out ? out[k] : in[k - n_out]);
  uint32_t streams = 0;
  for (uint32_t k = n_out; k < n; k++) streams += p->operand[k].access != HN_CUDA_ROW;
  p->unrolled = streams <= 1 ? 4 : streams <= 3 ? 2 : 1;
  while (p->unrolled > 1 && p->vectors < (int64_t)p->unrolled * THREADS * 264) p->unrolled /= 2;
  return true;
}

bool hn_cuda_elementwise_step(hn_cuda_elementwise *p, const hone_step *s, uint32_t n_in, void *const *at,
                              hone_reason *why) {
  const hone_tensor_desc *out[HN_ELEMENTWISE_OPERANDS], *in[HN_ELEMENTWISE_OPERANDS];
  uint32_t n = 0;
  if (s->n_outputs + n_in > HN_ELEMENTWISE_OPERANDS)
    return hn_refuse(why, "more than %d tensors", HN_ELEMENTWISE_OPERANDS);
  for (uint32_t i = 0; i < s->n_outputs; i++) out[i] = &s->output[i].desc;
  for (uint32_t i = 0; i < n_in; i++)
    if (s->input[i].desc.dtype != HONE_DTYPE_NONE) in[n++] = &s->input[i].desc;
  return hn_cuda_elementwise_plan(p, out, s->n_outputs, in, n, at, 0, why);
}

double hn_cuda_elementwise_seconds(const hn_cuda_elementwise *p, const hone_machine *m) {
  double slow = 1;
  for (uint32_t k = 0; k < p->n_out + p->n_in; k++)
    if (p->operand[k].access == HN_CUDA_SINGLE) slow = 3;
  return hn_cuda_seconds(m, 0, 0, p->bytes * slow, 0.88);
}

/* ---------------------------------------------------------------- text */

static const char *type_name(const hn_cuda_operand *o) { return hone_dtype_name(o->dtype); }

static void write_place(const hn_cuda_elementwise *p, hn_str *t) {
  const int32_t rank = p->nest.rank;
  hn_str_puts(t, "typedef struct hn_place {\n  i64 col;\n");
  for (uint32_t g = 0; g < p->n_groups; g++) hn_str_printf(t, "  i64 g%u;\n", g);
  hn_str_puts(t, "} hn_place;\n"
                 "HN_FN void hn_place_of(const hn_elementwise_args *a, u32 v, hn_place *p) {\n");
  if (rank > 1)
    hn_str_puts(t, "  u32 row = hn_quotient(v, &a->per_row), next = 0, at = 0;\n"
                   "  p->col = (i64)(v - row * a->per_row.by) * HN_W;\n");
  else
    hn_str_puts(t, "  p->col = (i64)v * HN_W;\n");
  for (uint32_t g = 0; g < p->n_groups; g++) {
    const int64_t inner = p->nest.stride[p->leader[g]][rank - 1];
    if (inner == 0)
      hn_str_printf(t, "  p->g%u = 0;\n", g);
    else if (inner == 1)
      hn_str_printf(t, "  p->g%u = p->col;\n", g);
    else
      hn_str_printf(t, "  p->g%u = p->col * a->stride[%u][%d];\n", g, g, rank - 1);
  }
  for (int32_t i = rank - 2; i >= 0; i--) {
    if (i > 0)
      hn_str_printf(
          t, "  next = hn_quotient(row, &a->dim[%d]);\n  at = row - next * a->dim[%d].by;\n  row = next;\n",
          i, i);
    else
      hn_str_puts(t, "  at = row;\n");
    for (uint32_t g = 0; g < p->n_groups; g++)
      hn_str_printf(t, "  p->g%u += at * a->stride[%u][%d];\n", g, g, i);
  }
  if (rank == 2) hn_str_puts(t, "  (void)next;\n");
  hn_str_puts(t, "}\n");
}

static void write_fetch(const hn_cuda_elementwise *p, hn_str *t) {
  hn_str_puts(t, "typedef struct hn_raw {\n  int none;\n");
  for (uint32_t i = 0; i < p->n_in; i++) {
    const hn_cuda_operand *o = &p->operand[p->n_out + i];
    if (o->access == HN_CUDA_VECTOR)
      hn_str_printf(t, "  u32 r%u[(HN_W * %d + 3) / 4];\n", i, (int)size_of(o));
    else
      hn_str_printf(t, "  %s r%u[%s];\n", hn_cuda_value(o->dtype), i,
                    o->access == HN_CUDA_ROW ? "1" : "HN_W");
  }
  hn_str_puts(t,
              "} hn_raw;\nHN_FN void hn_fetch(const hn_elementwise_args *a, const hn_place *p, hn_raw *r) {\n"
              "  r->none = 0;\n");
  for (uint32_t i = 0; i < p->n_in; i++) {
    const uint32_t k = p->n_out + i;
    const hn_cuda_operand *o = &p->operand[k];
    const int size = (int)size_of(o);
    if (o->access == HN_CUDA_ROW) {
      hn_str_printf(t, "  r->r%u[0] = hn_get_%s(a->at[%u], p->g%u);\n", i, type_name(o), k, o->group);
    } else if (o->access == HN_CUDA_SINGLE) {
      hn_str_printf(t,
                    "  HN_UNROLL for (int k = 0; k < HN_W; k++)\n"
                    "    r->r%u[k] = %shn_get_%s(a->at[%u], p->g%u + k * a->stride[%u][%d])%s;\n",
                    i, p->partial || p->padded ? "p->col + k < a->row ? " : "", type_name(o), k, o->group,
                    o->group, p->nest.rank - 1, p->partial || p->padded ? " : 0" : "");
    } else {
      if (!o->whole) hn_str_puts(t, "  if (p->col + HN_W <= a->row)\n  ");
      hn_str_printf(t, "  hn_ld_words(r->r%u, (const char *)a->at[%u] + p->g%u * %d, HN_W * %d);\n", i, k,
                    o->group, size, size);
      if (!o->whole)
        hn_str_printf(t,
                      "  else\n    hn_ld_some(r->r%u, (const char *)a->at[%u] + p->g%u * %d, %d, HN_W, "
                      "(int)(a->row - p->col));\n",
                      i, k, o->group, size, size);
    }
  }
  hn_str_puts(t, "}\n");
}

static void write_finish(const hone_step *s, const hn_cuda_elementwise *p, hn_cuda_body body, hn_str *t) {
  hn_str_puts(t,
              "HN_FN void hn_finish(const hn_elementwise_args *a, const hn_place *p, const hn_raw *r) {\n");
  for (uint32_t i = 0; i < p->n_out; i++)
    hn_str_printf(t, "  %s y%u[HN_W];\n", hn_cuda_value(p->operand[i].dtype), i);
  hn_str_puts(t, "  HN_UNROLL for (int k = 0; k < HN_W; k++) {\n");
  for (uint32_t i = 0; i < p->n_in; i++) {
    const hn_cuda_operand *o = &p->operand[p->n_out + i];
    hn_str_printf(t, "    const %s i%u = ", hn_cuda_value(o->dtype), i);
    if (o->access == HN_CUDA_VECTOR)
      hn_str_printf(t, "hn_word_%s(r->r%u, k);\n", type_name(o), i);
    else
      hn_str_printf(t, "r->r%u[%s];\n", i, o->access == HN_CUDA_ROW ? "0" : "k");
  }
  for (uint32_t i = 0; i < p->n_out; i++)
    hn_str_printf(t, "    %s o%u = 0;\n", hn_cuda_value(p->operand[i].dtype), i);
  body(s, p, t);
  for (uint32_t i = 0; i < p->n_out; i++)
    hn_str_printf(t, p->padded ? "    y%u[k] = p->col + k < a->row ? o%u : 0;\n" : "    y%u[k] = o%u;\n", i,
                  i);
  hn_str_puts(t, "  }\n");
  for (uint32_t i = 0; i < p->n_out; i++) {
    const hn_cuda_operand *o = &p->operand[i];
    const int size = (int)size_of(o);
    if (o->access == HN_CUDA_SINGLE) {
      hn_str_printf(t,
                    "  HN_UNROLL for (int k = 0; k < HN_W; k++)\n"
                    "    hn_put_%s(a->at[%u], p->g%u + k * a->stride[%u][%d], y%u[k]);\n",
                    type_name(o), i, o->group, o->group, p->nest.rank - 1, i);
      continue;
    }
    hn_str_printf(t,
                  "  {\n    u32 w[(HN_W * %d + 3) / 4];\n    char *to = (char *)a->at[%u] + p->g%u * %d;\n"
                  "    hn_pack_%s(w, y%u, HN_W);\n",
                  size, i, o->group, size, type_name(o), i);
    if (p->partial)
      hn_str_printf(t,
                    "    if (p->col + HN_W <= a->row) hn_st_words(to, w, HN_W * %d);\n"
                    "    else hn_st_some(to, w, %d, HN_W, (int)(a->row - p->col));\n  }\n",
                    size, size);
    else
      hn_str_printf(t, "    hn_st_words(to, w, HN_W * %d);\n  }\n", size);
  }
  hn_str_puts(t, "}\n");
}

/* Results that are rounded to 16 bits anyhow. */
static bool short_results(const hn_cuda_elementwise *p) {
  for (uint32_t i = 0; i < p->n_out; i++)
    if (p->operand[i].dtype == HONE_DTYPE_F32 || p->operand[i].dtype == HONE_DTYPE_F64) return false;
  return true;
}

/* The kernel's prefix: the text but for device/elementwise.cuh. */
static void write_text(const hone_step *s, const hn_cuda_elementwise *p, hn_cuda_body body, hn_str *t) {
  if (short_results(p)) hn_str_puts(t, "#define HN_FAST_MATH 1\n");
  hn_str_printf(t,
                "#define HN_W %d\n#define HN_UNROLLED %d\n"
                "#include \"elements.cuh\"\n#include \"divide.cuh\"\n#include \"elementwise_args.h\"\n",
                p->width, p->unrolled);
  write_place(p, t);
  write_fetch(p, t);
  write_finish(s, p, body, t);
}

/* ---------------------------------------------------------------- launching */

hone_status hn_cuda_elementwise_launch(hn_cuda_queue *q, const hone_step *s, const hn_cuda_elementwise *p,
                                       hn_cuda_body body, void *const *at, hone_error *error) {
  hn_elementwise_args a;
  hn_str text = {0};
  if (p->vectors == 0) return HONE_OK;
  memset(&a, 0, sizeof a);
  for (uint32_t k = 0; k < p->n_out + p->n_in; k++) a.at[k] = at[k];
  for (uint32_t g = 0; g < p->n_groups; g++)
    for (int32_t i = 0; i < p->nest.rank; i++) a.stride[g][i] = p->nest.stride[p->leader[g]][i];
  for (int32_t i = 0; i < p->nest.rank; i++)
    a.dim[i] = hn_cuda_divisor((uint32_t)(p->nest.dim[i] < 0x7fffffff ? p->nest.dim[i] : 1));
  a.per_row = hn_cuda_divisor((uint32_t)p->per_row);
  a.vectors = (uint32_t)p->vectors;
  a.row = p->row;
  a.refused = hn_cuda_refusal(q), a.node = (uintptr_t)s->node;
  write_text(s, p, body, &text);
  hone_status status = HONE_OK;
  if (text.failed) {
    status = hn_fail_memory(error, text.cap, "device text");
  } else {
    const hn_cuda_kernel kernel = {"elementwise", text.ptr, "elementwise"};
    const hn_cuda_shape shape = {.grid = {hn_cuda_blocks(p->vectors, (int64_t)THREADS * p->unrolled), 1, 1},
                                 .threads = THREADS,
                                 .overlap = true};
    status = hn_cuda_launch(q, &kernel, &shape, &a, sizeof a, error);
  }
  hn_str_free(&text);
  return status;
}

hone_status hn_cuda_elementwise_run(const hone_step_run *run, uint32_t n_in, hn_cuda_body body,
                                    hone_error *error) {
  const hone_step *s = run->step;
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  void *at[HN_ELEMENTWISE_OPERANDS];
  if (s->n_outputs + n_in <= HN_ELEMENTWISE_OPERANDS) {
    for (uint32_t i = 0; i < s->n_outputs; i++) at[i] = run->out[i];
    uint32_t n = s->n_outputs;
    for (uint32_t i = 0; i < n_in; i++)
      if (s->input[i].desc.dtype != HONE_DTYPE_NONE) at[n++] = (void *)(uintptr_t)run->in[i];
  }
  if (!hn_cuda_elementwise_step(&plan, s, n_in, at, &why)) return hn_not_described(s, &why, error);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(run), s, &plan, body, at, error);
}
