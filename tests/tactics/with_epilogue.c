#include "tactics/with_epilogue.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define ACT(f, a, b)                                                                                         \
  { .kind = HONE_EPI_ACT, .act = f, .alpha = a, .beta = b }
#define OPERAND(k)                                                                                           \
  { .kind = k }

static const hone_epilogue variants[EPILOGUES][HONE_MAX_EPILOGUE] = {
    {{0}},
    {OPERAND(HONE_EPI_BIAS), OPERAND(HONE_EPI_ADD), ACT(HONE_PW_RELU, 0, 0)},
    {OPERAND(HONE_EPI_SCALE), ACT(HONE_PW_HARDSWISH, 1.0f / 6, 0.5f), OPERAND(HONE_EPI_MUL)},
    {OPERAND(HONE_EPI_BIAS), ACT(HONE_PW_CLIP, 0, 0.7f)},
    {OPERAND(HONE_EPI_ADD), ACT(HONE_PW_GELU_ERF, 0, 0)},
    {OPERAND(HONE_EPI_BIAS), ACT(HONE_PW_GELU_TANH, 0, 0)},
    {OPERAND(HONE_EPI_BIAS), ACT(HONE_PW_SILU, 1, 0), OPERAND(HONE_EPI_ADD)},
    {OPERAND(HONE_EPI_BIAS), ACT(HONE_PW_SIGMOID, 0, 0)},
};

static double act(const hone_epilogue *e, double x) {
  const double a = (double)e->alpha, b = (double)e->beta;
  switch (e->act) {
  case HONE_PW_RELU: return x > 0 ? x : 0;
  case HONE_PW_CLIP: return fmin(fmax(x, a), b);
  case HONE_PW_HARDSWISH: return x * fmin(fmax(a * x + b, 0), 1);
  case HONE_PW_GELU_ERF: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
  case HONE_PW_GELU_TANH: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case HONE_PW_SILU: return x / (1 + exp(-a * x));
  case HONE_PW_SIGMOID: return 1 / (1 + exp(-x));
  default: return NAN;
  }
}

/* Channels as epilogues count them, and the elements from one channel to the next. */
static int64_t channels_of(const one_case *c, int64_t *inner) {
  const hone_tensor_desc *d = &c->want[0].desc;
  const int32_t axis = strcmp(c->op, "Conv") ? d->rank - 1 : 1;
  *inner = 1;
  if (axis >= d->rank || axis < 0) return 1; /* a scalar, or a convolution of nothing */
  for (int32_t i = axis + 1; i < d->rank; i++) *inner *= d->dim[i];
  return d->dim[axis];
}

bool takes_epilogues(const char *op) {
  static const char *const ops[] = {"Conv", "Gemm", "MatMul", "com.microsoft.MatMulNBits"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!strcmp(op, ops[i])) return true;
  return false;
}

bool append_epilogue(one_case *c, int variant, with_epilogue *out) {
  int64_t inner;
  hn_rng rng = {.state = 70u + (uint64_t)variant};
  memset(out, 0, sizeof *out);
  out->n_anchor_inputs = c->n_in;
  if (!variant) return true;
  if (!takes_epilogues(c->op) || c->n_out != 1 || c->want[0].desc.rank < 2 ||
      c->want[0].desc.dtype != HONE_DTYPE_F32)
    return false;
  for (uint32_t i = 0; i < c->n_in; i++) /* the output of a product with a vector lacks a dimension */
    if (c->present[i] && i < 2 && c->in[i].desc.rank < 2) return false;
  const int64_t channels = channels_of(c, &inner), count = hone_desc_count(&c->want[0].desc);
  if (count > 6000) return false; /* the small cases say as much */
  for (int64_t i = 0; i < count; i++)
    out->range = fmax(out->range, fabs((double)((float *)c->want[0].data)[i]));
  for (; out->n < HONE_MAX_EPILOGUE && variants[variant][out->n].kind; out->n++) {
    hone_epilogue *e = &out->list[out->n];
    *e = variants[variant][out->n];
    if (e->kind == HONE_EPI_ACT) continue;
    const bool vector = e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_SCALE;
    hone_tensor *t = &c->in[c->n_in];
    if (c->n_in >= MAX_TENSORS) return false;
    e->input = c->n_in;
    t->desc = vector ? hone_desc(HONE_DTYPE_F32, 1, &channels) : c->want[0].desc;
    const int64_t n = hone_desc_count(&t->desc);
    t->data = hn_malloc((size_t)n * sizeof(float) + 1);
    if (!t->data) die("no memory", c->line);
    /* Sixteenths from -1 to 1, which every storage type has. */
    for (int64_t i = 0; i < n; i++) ((float *)t->data)[i] = ((float)hn_rng_below(&rng, 33) - 16) / 16;
    c->constant[c->n_in] = vector, c->present[c->n_in] = true;
    c->n_in++;
  }
  return true;
}

void apply_epilogue(one_case *c, const with_epilogue *e) {
  int64_t inner;
  float *y = c->want[0].data;
  const int64_t n = hone_desc_count(&c->want[0].desc), channels = channels_of(c, &inner);
  for (int64_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < e->n; k++) {
      const hone_epilogue *o = &e->list[k];
      const float *v = o->kind == HONE_EPI_ACT ? NULL : c->in[o->input].data;
      switch (o->kind) {
      case HONE_EPI_BIAS: y[i] += v[i / inner % channels]; break;
      case HONE_EPI_SCALE: y[i] *= v[i / inner % channels]; break;
      case HONE_EPI_ADD: y[i] += v[i]; break;
      case HONE_EPI_MUL: y[i] *= v[i]; break;
      default: y[i] = (float)act(o, (double)y[i]);
      }
    }
}
