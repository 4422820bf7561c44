/* Products in f32 although narrower numbers would be faster here. Nothing is wrong: it is speed for accuracy.
 */
#include "insight/diagnose/rule.h"

#include <string.h>
#include <strings.h>

static const struct {
  const char *dtype;
  double low, high;
  hn_text source;
} table[] = {
#define PRECISION(dtype, low, high, en, zh) {#dtype, low, high, {en, zh}},
#include "insight/diagnose/precisions.def"
#undef PRECISION
};

static bool in_f32(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  const char *dtype =
      step && step->dtype && *step->dtype ? step->dtype : hone_facts_get_meta(d->facts)->precision;
  return hn_is_matrix(l) && dtype &&
         (strcasecmp(dtype, "f32") == 0 || strcasecmp(dtype, "fp32") == 0 ||
          strcasecmp(dtype, "float") == 0 || strcasecmp(dtype, "float32") == 0);
}

typedef struct choice {
  const char *dtype; /* as roofs call it */
  double s, low, high;
  hone_basis basis;
  const char *words;
  hn_action action;
} choice;

static void emit(hn_diagnosis *d, double ms, size_t count, const choice *c) {
  double share = hn_share(d, ms);
  if (100 * (hone_amdahl(share / 100, c->s) - 1) < d->t->precision_gain) return;
  hone_finding *f = hn_finding_begin(d, c->dtype);
  f->title = HN_SAY(d, "%.0f %% of the time are products in f32; %s is available",
                    "%.0f %% 的时间是 f32 的乘加；可以改用 %s", share, c->dtype);
  f->category = HONE_CATEGORY_TRADE;
  f->subject = HN_SAY(d, "%zu convolutions and matrix products", "%zu 个卷积与矩阵乘", count);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_WORDS(
      d,
      "Narrower numbers move fewer bytes and have faster units. The answers change: measure the accuracy on "
      "your own data before relying on it.",
      "更窄的数值搬运更少的字节，也有更快的运算单元。结果会有变化：请先用自己的数据测量精度。");
  hn_finding_evidence(d, HN_T("products in f32", "f32 乘加占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("layers", "层数"), (double)count, "", HN_SOURCE_LAYERS);
  for (size_t i = 0; c->basis == HONE_BASIS_TABLE && i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].dtype, c->dtype) == 0) {
      hn_finding_evidence(d, HN_T("speed-up, from", "加速比，从"), table[i].low, "x", table[i].source);
      hn_finding_evidence(d, HN_T("speed-up, to", "加速比，到"), table[i].high, "x", table[i].source);
    }
  hn_finding_do(d, c->action, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (in_f32(d, &d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, share / 100, c->s, c->basis, c->words, c->basis == HONE_BASIS_TABLE ? 0.3 : 0.4);
  if (c->basis == HONE_BASIS_TABLE) hn_finding_range(d, c->low, c->high);
  hn_finding_end(d);
}

static void from_table(hn_diagnosis *d, double ms, size_t count, const char *dtype, hn_action action) {
  choice c = {.dtype = dtype, .low = 1e9, .basis = HONE_BASIS_TABLE, .action = action};
  double sum = 0;
  int rows = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(table[i].dtype, dtype) != 0) continue;
    if (table[i].low < c.low) c.low = table[i].low;
    if (table[i].high > c.high) c.high = table[i].high;
    sum += (table[i].low + table[i].high) / 2;
    const char *source = HN_WORDS(d, table[i].source.en, table[i].source.zh);
    c.words = rows++ ? hn_say(d, "%s; %s", c.words, source) : source;
  }
  if (!rows) return;
  c.s = sum / rows;
  emit(d, ms, count, &c);
}

/* What the roofs of this machine say: the same work at the same share of the narrower type's roof. */
static void from_roofs(hn_diagnosis *d, double ms, size_t count, const char *dtype, double width,
                       hn_action action) {
  const hone_roof *narrow = hn_roof_compute(d->facts, dtype);
  double better = 0;
  if (!narrow) return;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!in_f32(d, l)) continue;
    const hone_step_fact *step = hn_step(d, l);
    const hone_roof *memory = hn_roof_memory(d->facts, step, l->calls > 0 ? l->bytes / l->calls : l->bytes);
    double t = l->flops / narrow->gflops / 1e6;
    if (memory && l->bytes > 0 && l->bytes * width / memory->gbs / 1e6 > t)
      t = l->bytes * width / memory->gbs / 1e6;
    t = t * 100 / (d->t->reachable_roof / 2) + l->calls * d->t->step_overhead / 1e3;
    better += t < hn_typical_ms(l) && l->flops > 0 ? t : hn_typical_ms(l);
  }
  if (better <= 0) return;
  emit(d, ms, count,
       &(choice){.dtype = dtype,
                 .s = ms / better,
                 .basis = HONE_BASIS_ROOFLINE,
                 .words =
                     HN_SAY(d, "products at %.0f %% of the measured %s roof, half the bytes",
                            "乘加达到实测 %2$s 上限的 %1$.0f %%，字节减半", d->t->reachable_roof / 2, dtype),
                 .action = action});
}

/* The run was asked for narrower numbers already: what is still in f32 here was left so on purpose, or is the
 * plan before the rewrite. */
static bool is_asked_for(const hn_diagnosis *d) {
  size_t n;
  const hone_note *o = hone_facts_options(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (o[i].what && o[i].text && strcmp(o[i].what, "precision") == 0 && strcmp(o[i].text, "f32") != 0)
      return true;
  return false;
}

static void run(hn_diagnosis *d) {
  double ms = 0;
  size_t count = 0, quantises = 0;
  if (is_asked_for(d)) return;
  for (size_t i = 0; i < d->p->layer_count; i++) quantises += hn_is_quantise(&d->p->layers[i]);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (in_f32(d, &d->p->layers[i])) {
      ms += hn_typical_ms(&d->p->layers[i]);
      count++;
    }
  /* As many Q/DQ as products: a quantised network whose Q/DQ are not fused yet; they are int8 once they are.
   */
  if (!count || quantises >= count) return;
  if (!hn_on_accelerator(d)) {
    from_roofs(d, ms, count, "bf16", 0.5, HN_DO_BF16);
    return;
  }
  if (hn_roof_compute(d->facts, "fp16"))
    from_roofs(d, ms, count, "fp16", 0.5, HN_DO_FP16);
  else
    from_table(d, ms, count, "fp16", HN_DO_FP16);
  from_table(d, ms, count, "int8", HN_DO_INT8);
}

const struct hn_rule hn_rule_reduced_precision = {"reduced_precision", run};
