/* Which cause keeps each layer of a quantised network from being faster, and how much that costs. */
#include "insight/diagnose/quantised.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Products of bytes with instructions for them are four times as fast as of floats. */
#define INTEGER_OVER_FLOAT 4

bool hn_no_integer_units(const hn_diagnosis *d) {
  const char *isa = hone_facts_get_meta(d->facts)->isa;
  return !hn_on_accelerator(d) && isa && *isa && !strstr(isa, "vnni") && !strstr(isa, "amx") &&
         !strstr(isa, "bf16");
}

/* A product on an accelerator's plain units: counters of the device say so, or the plan's own kernel. */
static bool off_tensor_units(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  double busy;
  if (!hn_on_accelerator(d) || !step) return false;
  if (l->step >= 0 && hn_counter(d, "tensor_pipe_pct", l->step, &busy)) return busy < 1;
  return d->tool == HN_TOOL_HONE && !(step->arithmetic && strncmp(step->arithmetic, "int8", 4) == 0);
}

static bool converts(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_quantise(l) || hn_is_reformat(d->facts, l);
}

/* The record says that it computes in floats. */
static bool is_float(const hn_diagnosis *d, const hone_layer *l) {
  static const char *const names[] = {"f32", "f16", "bf16", "tf32", "f64", "fp32", "fp16", "float", "half"};
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = 0; step && step->dtype && i < sizeof names / sizeof *names; i++)
    if (strcasecmp(step->dtype, names[i]) == 0) return true;
  return false;
}

/* ---- Q/DQ around a layer that stayed float */

static bool executes(const hone_step_fact *step, int32_t node) {
  for (size_t i = 0; step && i < step->node_count; i++)
    if (step->nodes[i] == node) return true;
  return false;
}

/* Why its Q/DQ were not taken in; NULL: nothing is recorded. */
static const char *near_miss(const hn_diagnosis *d, const hone_layer *l) {
  size_t n;
  const hone_near_miss *misses = hone_facts_near_misses(d->facts, &n);
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = 0; i < n; i++)
    if (misses[i].pass && strcmp(misses[i].pass, "qdq") == 0 && misses[i].node_count &&
        executes(step, misses[i].nodes[0]))
      return misses[i].reason;
  return NULL;
}

/* Its weights or inputs were codes in the file. */
static bool has_codes(const hn_diagnosis *d, const hone_layer *l) {
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(d->facts, &n);
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = 0; step && i < step->node_count; i++) {
    const int32_t k = step->nodes[i];
    if (k >= 0 && (size_t)k < n && nodes[k].op_type && strcmp(nodes[k].op_type, "DequantizeLinear") == 0)
      return true;
  }
  return false;
}

/* Between two conversions, in order of execution: what records of other tools tell. */
static bool is_between_conversions(const hn_diagnosis *d, size_t i) {
  const hone_layer *l = d->p->layers;
  return i && i + 1 < d->p->layer_count && hn_is_quantise(&l[i - 1]) && hn_is_quantise(&l[i + 1]);
}

/* In float, and meant to be a product of integers. */
static bool is_unfused(const hn_diagnosis *d, size_t i) {
  const hone_layer *l = &d->p->layers[i];
  return hn_is_matrix(l) && is_float(d, l) &&
         (near_miss(d, l) || has_codes(d, l) || is_between_conversions(d, i));
}

/* ---- what would be possible */

/* Of a layer in floats, with operands of a byte at the reachable roofs of 8 bits; NaN: not known. */
static double ms_in_int8(const hn_diagnosis *d, const hone_layer *l) {
  const hone_roof *compute = hn_roof_compute(d->facts, "int8");
  const double bytes = l->bytes / 4;
  const hone_roof *memory = hn_roof_memory(d->facts, hn_step(d, l), l->calls > 0 ? bytes / l->calls : bytes);
  if (!memory || (hn_is_matrix(l) && (!compute || l->flops <= 0)) || (l->flops <= 0 && l->bytes <= 0))
    return NAN;
  double ms = bytes / memory->gbs / 1e6;
  if (hn_is_matrix(l) && l->flops / compute->gflops / 1e6 > ms) ms = l->flops / compute->gflops / 1e6;
  return ms * 100 / d->t->reachable_roof + l->calls * d->t->step_overhead / 1e3;
}

static double saved_to(const hone_layer *l, double ms) {
  const double typical = hn_typical_ms(l);
  return isnan(ms) ? NAN : ms < typical ? typical - ms : 0;
}

static bool is_product_known(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_matrix(l) && l->executed_flops > 0 && hn_roof_known(d, l);
}

static bool odd_channels(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  const int32_t multiple = d->t->channel_multiple >= 1 ? (int32_t)d->t->channel_multiple : 1;
  if (!step || step->channels_in <= 0 || step->channels_out <= 0) return false;
  return step->channels_in < d->t->small_channels || step->channels_in % multiple != 0 ||
         step->channels_out % multiple != 0;
}

/* A product of 8 bits on units that are made for them; NaN: not known. Where a processor has none, its roof
 * of int8 does not tell. */
static double ms_on_units(const hn_diagnosis *d, const hone_layer *l) {
  const bool accelerator = hn_on_accelerator(d);
  const hone_roof *roof = hn_roof_compute(d->facts, accelerator ? "int8" : "f32");
  if (!roof || l->flops <= 0) return NAN;
  return l->flops / roof->gflops / 1e6 / (accelerator ? 1 : INTEGER_OVER_FLOAT) * 100 / d->t->reachable_roof +
         l->calls * d->t->step_overhead / 1e3;
}

/* ---- one layer */

static hn_int8_layer of_int8(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  const double ms = hn_typical_ms(l), roof_ms = hn_roof_time(d, l, d->t->reachable_roof);
  const bool known = is_product_known(d, l);
  const double saved_ms = known ? ms - roof_ms : NAN;
  if (!hn_is_matrix(l)) return (hn_int8_layer){.cause = HN_INT8_FINE};
  if ((step && step->is_reference) || hn_no_integer_units(d) || off_tensor_units(d, l)) {
    return (hn_int8_layer){.cause = HN_INT8_UNITS, .saved_ms = saved_to(l, ms_on_units(d, l))};
  }
  if (known && l->roof_pct >= d->t->roof_reached)
    return (hn_int8_layer){.cause = l->ridge == HONE_LIMIT_MEMORY ? HN_INT8_MEMORY : HN_INT8_FINE};
  if (l->bound == HONE_LIMIT_MEMORY) return (hn_int8_layer){HN_INT8_MEMORY, saved_ms, NULL};
  if (odd_channels(d, l)) return (hn_int8_layer){HN_INT8_CHANNELS, saved_ms, NULL};
  if ((known ? roof_ms : ms) * 1e3 < d->t->tiny_us * (l->calls > 1 ? l->calls : 1))
    return (hn_int8_layer){HN_INT8_SMALL, saved_ms, NULL};
  return (hn_int8_layer){known ? HN_INT8_KERNELS : HN_INT8_FINE, known ? saved_ms : 0, NULL};
}

static hn_int8_layer of_float(const hn_diagnosis *d, size_t i, bool between) {
  const hone_layer *l = &d->p->layers[i];
  const char *reason = near_miss(d, l);
  hn_int8_layer out = {.cause = between ? HN_INT8_ISLANDS : HN_INT8_ENDS, .reason = reason};
  if (is_unfused(d, i)) out.cause = HN_INT8_UNFUSED;
  /* What else may run on codes streams them: a quarter of the bytes. */
  out.saved_ms = hn_is_matrix(l) || hn_is_elementwise(l) ? saved_to(l, ms_in_int8(d, l)) : 0;
  return out;
}

/* From the first to the last layer that is one of integers, or was meant to be; false: there is none. */
static bool integer_stretch(const hn_diagnosis *d, size_t *first, size_t *last) {
  bool any = false;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_work(l) || converts(d, l) || (!hn_is_int8(d, l) && !is_unfused(d, i))) continue;
    if (!any) *first = i;
    *last = i;
    any = true;
  }
  return any;
}

void hn_int8_account_make(hn_diagnosis *d, hn_int8_account *a) {
  *a = (hn_int8_account){.layer = HN_NEW_ARRAY(d->arena, hn_int8_layer, d->p->layer_count + 1)};
  if (!a->layer) {
    d->failed = true;
    return;
  }
  size_t first = 0, last = 0;
  const bool any = integer_stretch(d, &first, &last);
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    hn_int8_layer *out = &a->layer[i];
    *out = (hn_int8_layer){0};
    if (!hn_is_work(l)) continue;
    const bool between = any && i > first && i < last;
    if (converts(d, l)) /* those at the edges of the integer layers stay, whatever becomes of the rest */
      *out = (hn_int8_layer){hn_is_quantise(l) ? HN_INT8_CONVERSIONS : HN_INT8_REFORMATS,
                             between || !any ? hn_typical_ms(l) : 0, NULL};
    else if (hn_is_int8(d, l)) {
      *out = of_int8(d, l);
      a->int8++;
      a->int8_ms += hn_typical_ms(l);
    } else if (is_float(d, l))
      *out = of_float(d, i, between);
    else
      continue;
    a->ms[out->cause] += hn_typical_ms(l);
    a->saved_ms[out->cause] += out->saved_ms;
    a->layers[out->cause]++;
  }
}
