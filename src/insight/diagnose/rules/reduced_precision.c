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

/* What the products are computed in now. */
typedef enum numbers { IN_F32, IN_HALF, UNTOLD, OTHER } numbers;

static bool one_of(const char *dtype, const char *const *words) {
  for (; *words; words++)
    if (strcasecmp(dtype, *words) == 0) return true;
  return false;
}

static numbers numbers_of(const hn_diagnosis *d, const hone_layer *l) {
  static const char *const single[] = {"f32", "fp32", "float", "float32", NULL};
  static const char *const half[] = {"f16", "fp16", "half", "float16", "bf16", "bfloat16", NULL};
  const hone_step_fact *step = hn_step(d, l);
  const char *dtype =
      step && step->dtype && *step->dtype ? step->dtype : hone_facts_get_meta(d->facts)->precision;
  if (!dtype) return UNTOLD;
  /* What multiplies in TF32 has f32 tensors: who speaks of FP32 on an accelerator means this, too. */
  if (one_of(dtype, single) || (hn_on_accelerator(d) && strcasecmp(dtype, "tf32") == 0)) return IN_F32;
  return one_of(dtype, half) ? IN_HALF : OTHER;
}

static bool is_product_in(const hn_diagnosis *d, const hone_layer *l, numbers in) {
  return hn_is_matrix(l) && numbers_of(d, l) == in;
}

/* The products that are computed in some numbers. */
typedef struct products {
  numbers in;
  double ms;
  size_t count;
} products;

static products products_in(const hn_diagnosis *d, numbers in) {
  products all = {.in = in};
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_product_in(d, &d->p->layers[i], in)) {
      all.ms += hn_typical_ms(&d->p->layers[i]);
      all.count++;
    }
  return all;
}

typedef struct choice {
  const char *dtype; /* as roofs call it */
  double s, low, high;
  hone_basis basis;
  const char *words;
  double confidence;
  hn_action action;
  bool second; /* something easier is proposed beside it */
} choice;

static const char *title_of(hn_diagnosis *d, const products *all, double share, const char *dtype) {
  if (all->in == UNTOLD)
    return HN_SAY(d, "%.0f %% of the time are products, in numbers that the record does not tell: try %s",
                  "%.0f %% 的时间是乘加，记录没有说明其数值类型：可以试用 %s", share, dtype);
  return all->in == IN_F32 ? HN_SAY(d, "%.0f %% of the time are products in f32; %s is available",
                                    "%.0f %% 的时间是 f32 的乘加；可以改用 %s", share, dtype)
                           : HN_SAY(d, "%.0f %% of the time are products in 16 bits; %s is available",
                                    "%.0f %% 的时间是 16 位的乘加；可以改用 %s", share, dtype);
}

static void emit(hn_diagnosis *d, const products *all, const choice *c) {
  double share = hn_share(d, all->ms);
  if (100 * (hone_amdahl(share / 100, c->s) - 1) < d->t->precision_gain) return;
  hone_finding *f = hn_finding_begin(d, c->dtype);
  f->title = title_of(d, all, share, c->dtype);
  if (c->second) d->worst = HONE_SEVERITY_LOW;
  f->category = HONE_CATEGORY_TRADE;
  f->subject = all->count == 1
                   ? HN_WORDS(d, "1 convolution or matrix product", "1 个卷积或矩阵乘")
                   : HN_SAY(d, "%zu convolutions and matrix products", "%zu 个卷积与矩阵乘", all->count);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = all->in == UNTOLD
                 ? HN_WORDS(d,
                            "If they are f32: narrower numbers move fewer bytes and have faster units. The "
                            "answers change: measure the accuracy on your own data before relying on it.",
                            "如果是 f32：更窄的数值搬运更少的字节，也有更快的运算单元。结果会有变化：请先用"
                            "自己的数据测量精度。")
                 : HN_WORDS(d,
                            "Narrower numbers move fewer bytes and have faster units. The answers change: "
                            "measure the accuracy on your own data before relying on it.",
                            "更窄的数值搬运更少的字节，也有更快的运算单元。结果会有变化：请先用自己的数据测"
                            "量精度。");
  hn_finding_evidence(d,
                      all->in == IN_F32    ? HN_T("products in f32", "f32 乘加占比")
                      : all->in == IN_HALF ? HN_T("products in 16 bits", "16 位乘加占比")
                                           : HN_T("products", "乘加占比"),
                      share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("layers", "层数"), (double)all->count, "", HN_SOURCE_LAYERS);
  for (size_t i = 0; c->basis == HONE_BASIS_TABLE && i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].dtype, c->dtype) == 0) {
      hn_finding_evidence(d, HN_T("speed-up, from", "加速比，从"), table[i].low, "x", table[i].source);
      hn_finding_evidence(d, HN_T("speed-up, to", "加速比，到"), table[i].high, "x", table[i].source);
    }
  hn_finding_do(d, c->action, NULL, 0);
  if (all->in == UNTOLD) hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_product_in(d, &d->p->layers[i], all->in))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, share / 100, c->s, c->basis, c->words, c->confidence);
  if (c->basis == HONE_BASIS_TABLE) hn_finding_range(d, c->low, c->high);
  hn_finding_end(d);
}

/* All rows of a type together: how much faster than f32, and who says so. rows: 0 where nobody does. */
typedef struct entry {
  double low, high, mean;
  const char *words;
  int rows;
} entry;

static entry look_up(hn_diagnosis *d, const char *dtype) {
  entry e = {.low = 1e9};
  double sum = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(table[i].dtype, dtype) != 0) continue;
    if (table[i].low < e.low) e.low = table[i].low;
    if (table[i].high > e.high) e.high = table[i].high;
    sum += (table[i].low + table[i].high) / 2;
    const char *source = HN_WORDS(d, table[i].source.en, table[i].source.zh);
    e.words = e.rows++ ? hn_say(d, "%s; %s", e.words, source) : source;
  }
  if (e.rows) e.mean = sum / e.rows;
  return e;
}

static void from_table(hn_diagnosis *d, const products *all, const char *dtype, hn_action action,
                       bool second) {
  const entry e = look_up(d, dtype), half = look_up(d, "fp16");
  choice c = {.dtype = dtype,
              .s = e.mean,
              .low = e.low,
              .high = e.high,
              .basis = HONE_BASIS_TABLE,
              .words = e.words,
              .confidence = all->in == IN_F32 ? 0.3 : 0.2,
              .action = action,
              .second = second};
  if (!e.rows) return;
  if (all->in == IN_HALF) { /* the tables compare with f32 */
    if (!half.rows) return;
    c.s = e.mean / half.mean;
    c.low = e.low / half.high;
    c.high = e.high / half.low;
    c.words = HN_SAY(d, "over f32, divided by what 16 bits bring: %s; %s",
                     "相对 f32 的加速比除以 16 位的加速比：%s；%s", e.words, half.words);
  }
  emit(d, all, &c);
}

/* What the roofs of this machine say: the same work at the same share of the narrower type's roof. */
static void from_roofs(hn_diagnosis *d, const products *all, const char *dtype, double width,
                       hn_action action) {
  const hone_roof *narrow = hn_roof_compute(d->facts, dtype);
  double better = 0;
  if (!narrow) return;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!is_product_in(d, l, IN_F32)) continue;
    const hone_step_fact *step = hn_step(d, l);
    const hone_roof *memory = hn_roof_memory(d->facts, step, l->calls > 0 ? l->bytes / l->calls : l->bytes);
    double t = l->flops / narrow->gflops / 1e6;
    if (memory && l->bytes > 0 && l->bytes * width / memory->gbs / 1e6 > t)
      t = l->bytes * width / memory->gbs / 1e6;
    t = t * 100 / (d->t->reachable_roof / 2) + l->calls * d->t->step_overhead / 1e3;
    better += t < hn_typical_ms(l) && l->flops > 0 ? t : hn_typical_ms(l);
  }
  if (better <= 0) return;
  emit(d, all,
       &(choice){.dtype = dtype,
                 .s = all->ms / better,
                 .basis = HONE_BASIS_ROOFLINE,
                 .words =
                     HN_SAY(d, "products at %.0f %% of the measured %s roof, half the bytes",
                            "乘加达到实测 %2$s 上限的 %1$.0f %%，字节减半", d->t->reachable_roof / 2, dtype),
                 .confidence = 0.4,
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

/* Names or types of a quantised network, whatever its record says of numbers. */
static bool looks_quantised(const hn_diagnosis *d) {
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (hn_is_quantise(l) || strcasestr(l->name, "quantize")) return true;
  }
  return false;
}

/* Of another tool's record without roofs: numbers that nobody told, or 16 bits that could be 8. */
static void not_in_f32(hn_diagnosis *d) {
  const products untold = products_in(d, UNTOLD), half = products_in(d, IN_HALF);
  if (d->tool == HN_TOOL_HONE || looks_quantised(d)) return;
  if (untold.count && !half.count) {
    from_table(d, &untold, "fp16", HN_DO_FP16, false);
    from_table(d, &untold, "int8", HN_DO_INT8, true);
  } else if (hn_share(d, half.ms) >= d->t->conv_share)
    from_table(d, &half, "int8", HN_DO_INT8, true);
}

static void run(hn_diagnosis *d) {
  size_t quantises = 0;
  if (is_asked_for(d)) return;
  for (size_t i = 0; i < d->p->layer_count; i++) quantises += hn_is_quantise(&d->p->layers[i]);
  const products all = products_in(d, IN_F32);
  if (!all.count && hn_on_accelerator(d)) not_in_f32(d);
  /* As many Q/DQ as products: a quantised network whose Q/DQ are not fused yet; they are int8 once they are.
   */
  if (!all.count || quantises >= all.count) return;
  if (!hn_on_accelerator(d)) {
    from_roofs(d, &all, "bf16", 0.5, HN_DO_BF16);
    return;
  }
  if (hn_roof_compute(d->facts, "fp16"))
    from_roofs(d, &all, "fp16", 0.5, HN_DO_FP16);
  else
    from_table(d, &all, "fp16", HN_DO_FP16, false);
  from_table(d, &all, "int8", HN_DO_INT8, true);
}

const struct hn_rule hn_rule_reduced_precision = {"reduced_precision", run};
