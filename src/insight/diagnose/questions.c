/* What several rules ask about a layer. */
#include "insight/diagnose/rule.h"

#include "base/quantile.h"
#include "insight/profile/bound.h"

#include <string.h>
#include <strings.h>

double hn_share(const hn_diagnosis *d, double ms) {
  return d->typical_wall_ms > 0 ? 100 * ms / d->typical_wall_ms : 0;
}

const hone_step_fact *hn_step(const hn_diagnosis *d, const hone_layer *layer) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(d->facts, &n);
  return layer->step >= 0 && (size_t)layer->step < n ? &steps[layer->step] : NULL;
}

static bool one_of(const char *type, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcasecmp(type, names[i]) == 0) return true;
  return false;
}
#define ONE_OF(type, ...)                                                                                    \
  one_of(type, (const char *const[]){__VA_ARGS__},                                                           \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

bool hn_is_conv(const hone_layer *l) {
  return ONE_OF(l->type, "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "QLinearConvAdd",
                "Convolution", "DepthwiseConv", "FusedConv", "CaskConvolution");
}

bool hn_is_matrix(const hone_layer *l) {
  return hn_is_conv(l) ||
         ONE_OF(l->type, "Gemm", "MatMul", "QLinearMatMul", "QLinearMatMulAdd", "QLinearMatMulTable",
                "QLinearGemm", "MatMulInteger", "FusedMatMul", "FusedGemm", "FullyConnected", "Attention");
}

bool hn_is_binary(const hone_layer *l) {
  return ONE_OF(l->type, "Add", "Mul", "Sub", "Div", "Max", "Min", "Sum", "Pow", "Where");
}

bool hn_is_elementwise(const hone_layer *l) {
  return hn_is_binary(l) ||
         ONE_OF(l->type, "BatchNormalization", "Relu", "Clip", "LeakyRelu", "PRelu", "Elu", "Selu",
                "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Gelu", "Erf", "Mish", "Softplus", "Swish",
                "Silu", "Neg", "Abs", "Sqrt", "Exp", "Identity", "Cast", "Pointwise");
}

bool hn_is_quantise(const hone_layer *l) {
  return ONE_OF(l->type, "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Quantize",
                "Dequantize", "AscendQuant", "AscendDequant", "FakeQuantize");
}

bool hn_has_unknown_shape(const hone_step_fact *step) {
  return (step->shape_out && strchr(step->shape_out, '?')) || (step->shape_in && strchr(step->shape_in, '?'));
}

bool hn_is_transpose(const hone_layer *l) { return ONE_OF(l->type, "Transpose", "Permute"); }

bool hn_is_reformat(const hone_facts *facts, const hone_layer *l) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(facts, &n);
  bool by_step = l->step >= 0 && (size_t)l->step < n && steps[l->step].is_reformat;
  return l->kind == HONE_SPAN_REFORMAT || by_step || ONE_OF(l->type, "Reformat", "Reorder");
}

bool hn_streams_memory(const hn_diagnosis *d, const hone_layer *l) {
  const hone_roof *dram = hn_roof_dram(d->facts);
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(d->facts, &n);
  if (!dram || l->calls <= 0 || !hn_is_work(l) || hn_is_matrix(l) || l->ridge != HONE_LIMIT_MEMORY ||
      l->gbs < 0.6 * dram->gbs)
    return false;
  for (size_t i = 0; i < n; i++) /* what a core has for itself is no memory */
    if (strcmp(roofs[i].name, "L2") == 0 && l->bytes / l->calls <= (double)roofs[i].capacity_bytes)
      return false;
  return true;
}

bool hn_is_copy(const hone_layer *l) {
  return l->kind == HONE_SPAN_COPY || l->kind == HONE_SPAN_COPY_H2D || l->kind == HONE_SPAN_COPY_D2H ||
         ONE_OF(l->type, "Copy", "Memcpy", "MemcpyToHost", "MemcpyFromHost");
}

bool hn_is_communication(const hone_layer *l) {
  static const char *const beginnings[] = {"nccl", "rccl", "hccl", "hcom_", "gloo:", "mpi:", "oneccl"};
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    if (strncasecmp(l->name, beginnings[i], strlen(beginnings[i])) == 0 ||
        strncasecmp(l->type, beginnings[i], strlen(beginnings[i])) == 0)
      return true;
  return ONE_OF(l->type, "AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Communication");
}

bool hn_is_work(const hone_layer *l) {
  return (l->kind == HONE_SPAN_KERNEL || l->kind == HONE_SPAN_REFORMAT) && !hn_is_copy(l) &&
         !hn_is_communication(l);
}

bool hn_is_int8(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  if (ONE_OF(l->type, "QLinearConv", "QLinearConvAdd", "QLinearMatMul", "QLinearMatMulAdd",
             "QLinearMatMulTable", "QLinearGemm", "ConvInteger", "MatMulInteger", "QGemm", "QLinearAdd",
             "QAttention"))
    return true;
  /* A product that was fused with the quantisation of its weights: its name is all that a bare profile has.
   */
  if (!(step && step->dtype) && hn_is_matrix(l) && strstr(l->name, "QuantizeLinear")) return true;
  return step && step->dtype && ONE_OF(step->dtype, "int8", "uint8", "i8", "u8", "s8", "int4", "uint4");
}

bool hn_on_accelerator(const hn_diagnosis *d) {
  if (d->tool == HN_TOOL_TRTEXEC || d->tool == HN_TOOL_NSYS || d->tool == HN_TOOL_NCU ||
      d->tool == HN_TOOL_ASCEND)
    return true;
  const char *backend = hone_facts_get_meta(d->facts)->backend;
  return backend && *backend && strncasecmp(backend, "cpu", 3) != 0 && strcasecmp(backend, "host") != 0;
}

bool hn_has_timeline(const hn_diagnosis *d) {
  size_t n;
  const hone_span *spans = hone_facts_spans(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (spans[i].iteration >= 0 && spans[i].kind != HONE_SPAN_RUN) return true;
  return false;
}

double hn_streams(const hn_diagnosis *d) {
  double streams = hone_facts_get_meta(d->facts)->streams;
  return streams > 0 ? streams : 0;
}

bool hn_is_window(const hn_diagnosis *d) { return hn_profile_is_window(d->p, d->t->window_idle); }

bool hn_counter(const hn_diagnosis *d, const char *name, int32_t step, double *value) {
  size_t n;
  const hone_counter *c = hone_facts_counters(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (c[i].step == step && c[i].name && strcmp(c[i].name, name) == 0) {
      *value = c[i].value;
      return true;
    }
  return false;
}

double hn_roof_time(const hn_diagnosis *d, const hone_layer *l, double percent) {
  return hn_roof_ms(d->facts, l, percent, d->t->step_overhead);
}

bool hn_roof_known(const hn_diagnosis *d, const hone_layer *l) { return hn_has_roof(d->facts, l); }

double hn_over_model(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->predicted_ms > 0 && l->calls > 0 && l->stats.min > 0 && hn_is_work(l) &&
                 !step->is_reference && !hn_is_reformat(d->facts, l)
             ? l->stats.min / step->predicted_ms
             : 0;
}

double hn_usual_over_model(hn_diagnosis *d, bool products) {
  double *over = HN_NEW_ARRAY(d->arena, double, d->p->layer_count + 1);
  size_t n = 0;
  if (!over) {
    d->failed = true;
    return 0;
  }
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_over_model(d, &d->p->layers[i]) > 0 && (!products || hn_is_matrix(&d->p->layers[i])))
      over[n++] = hn_over_model(d, &d->p->layers[i]);
  if ((double)n < d->t->model_layers) return 0;
  hn_ascend(over, n);
  return over[(n - 1) / 2];
}
