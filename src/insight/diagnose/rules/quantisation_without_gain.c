/* Eight bits, and hardly faster: what stands in the way? Batch size, conversions, Q/DQ that were not fused, a
 * path without integer units - in this order, before the numbers themselves are blamed. */
#include "insight/diagnose/rule.h"

#include <string.h>

typedef struct quantised {
  double int8_ms, convert_ms, reformat_ms, work_ms;
  double float_ms; /* what the int8 products would take in f32 at the reachable roof; 0: no roof */
  size_t int8, converts;
  bool typed;                /* the record says of some operator what numbers it computes in */
  const hone_layer *slowest; /* conversion */
} quantised;

static bool converts(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_quantise(l) || hn_is_reformat(d->facts, l);
}

/* Time of the product in f32 at the reachable roof; 0: no roof. */
static double float_time(const hn_diagnosis *d, const hone_layer *l) {
  const hone_roof *compute = hn_roof_compute(d->facts, "f32");
  return compute && l->flops > 0 ? l->flops / compute->gflops / 1e6 * 100 / d->t->reachable_roof : 0;
}

static quantised look(const hn_diagnosis *d) {
  quantised q = {0};
  bool roofs = true;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    double ms = hn_typical_ms(l);
    if (!hn_is_work(l)) continue;
    q.work_ms += ms;
    q.typed = q.typed || (hn_step(d, l) && hn_step(d, l)->dtype);
    if (hn_is_quantise(l))
      q.convert_ms += ms;
    else if (hn_is_reformat(d->facts, l))
      q.reformat_ms += ms;
    else if (hn_is_int8(d, l)) {
      q.int8++;
      q.int8_ms += ms;
      if (hn_is_matrix(l)) q.float_ms += float_time(d, l);
      roofs = roofs && (!hn_is_matrix(l) || float_time(d, l) > 0);
    }
    if (!converts(d, l)) continue;
    q.converts++;
    if (!q.slowest || ms > hn_typical_ms(q.slowest)) q.slowest = l;
  }
  if (!roofs) q.float_ms = 0;
  return q;
}

/* An x86 processor without instructions for products of bytes. */
static bool no_integer_units(const hn_diagnosis *d) {
  const char *isa = hone_facts_get_meta(d->facts)->isa;
  return !hn_on_accelerator(d) && isa && *isa && !strstr(isa, "vnni") && !strstr(isa, "amx") &&
         !strstr(isa, "bf16");
}

static void run(hn_diagnosis *d) {
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  quantised q = look(d);
  bool is_int8 = q.int8 || (meta->precision && strstr(meta->precision, "int8"));
  if (!is_int8 && !q.convert_ms) return;
  double extra_ms = q.convert_ms + q.reformat_ms, extra = hn_share(d, extra_ms);
  /* Two ways to know that there is no gain: the network in float, or the roof of float arithmetic. */
  double gain = -1;
  if (d->float_profile && d->p->wall.p50 > 0)
    gain = 100 * (hn_typical_wall_ms(d->float_profile) / d->typical_wall_ms - 1);
  else if (is_int8 && q.float_ms > 0 && q.int8_ms > 0.2 * q.work_ms)
    gain = 100 * (q.float_ms / (q.int8_ms + extra_ms) - 1);
  bool no_gain = gain > -100 && gain < d->t->quant_gain &&
                 (d->float_profile || (q.float_ms > 0 && q.int8_ms > 0.2 * q.work_ms));
  bool in_the_way = q.convert_ms > 0 && extra >= d->t->quant_extra;
  if (!no_gain && !in_the_way) return;
  const bool conversions = extra >= d->t->quant_extra / 2, slow_path = no_integer_units(d);
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = no_gain ? HN_SAY(d, "INT8 brings %+.0f %% only", "INT8 只带来 %+.0f %% 的收益", gain)
                     : HN_SAY(d, "Quantising and dequantising take %.0f %% of the time",
                              "量化与反量化占时间的 %.0f %%", extra);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = q.slowest && conversions ? q.slowest->name : HN_WORDS(d, "quantised operators", "量化算子");
  f->quantity = HONE_QUANTITY_NODES;
  /* Of a plan that was not rewritten, hone itself fuses the Q/DQ. */
  f->remedy = conversions && !q.int8 && d->tool == HN_TOOL_HONE && meta->opt_level >= 0 && meta->opt_level < 2
                  ? HONE_REMEDY_OPTIMIZER
                  : HONE_REMEDY_USER;
  f->cause = conversions ? HN_WORDS(d,
                                    "Steps that only change the numbers' format (Q/DQ that were not fused "
                                    "into the products, reformats "
                                    "between int8 and float layers) eat what the integer products save.",
                                    "只改变数值格式的步骤（未融入乘加的 Q/DQ、int8 "
                                    "与浮点层之间的重排）吃掉了整数乘加省下的时间。")
             : slow_path ? HN_SAY(d,
                                  "This processor (%s) has no instructions for products of bytes (VNNI, "
                                  "AMX): int8 is computed as wider integers.",
                                  "该处理器（%s）没有字节乘加指令（VNNI、AMX）：int8 只能用更宽的整数计算。",
                                  meta->isa)
             : meta->batch == 1
                 ? HN_WORDS(d,
                            "With batch 1 the products are too small to be limited by arithmetic, which is "
                            "what int8 speeds up.",
                            "batch 为 1 时乘加规模太小，瓶颈不在算力，而 int8 加速的正是算力。")
                 : HN_WORDS(d,
                            "Neither conversions nor batch size explain it: too few operators are quantised, "
                            "or their kernels are slow. "
                            "Quantise again with mixed precision where it hurts.",
                            "转换与 batch "
                            "都不能解释：量化的算子太少，或其内核太慢。请重新校准，并在受损处使用混合精度。");
  if (gain > -100 && no_gain)
    hn_finding_evidence(d, HN_T("gain over float", "相对浮点的收益"), gain, "%",
                        d->float_profile ? HN_T("the float profile's wall", "浮点记录的墙钟时间")
                                         : HN_T("f32 at its reachable roof", "f32 达到其可达上限"));
  if (q.int8 || q.typed) { /* else nothing says what the operators compute in */
    hn_finding_evidence(d, HN_T("int8 operators", "int8 算子数"), (double)q.int8, "", HN_SOURCE_LAYERS);
    hn_finding_evidence(d, HN_T("their share", "它们的占比"), hn_share(d, q.int8_ms), "%", HN_SOURCE_SPANS);
  } else
    f->cause =
        HN_SAY(d, "%s Which operators are int8 is not recorded.", "%s哪些算子是 int8 没有记录。", f->cause);
  hn_finding_evidence(d, HN_T("quantise and dequantise", "量化与反量化"), q.convert_ms, "ms",
                      HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("reformats", "重排"), q.reformat_ms, "ms", HN_SOURCE_SPANS);
  if (meta->batch > 0) hn_finding_evidence(d, HN_T("batch", "batch"), meta->batch, "", HN_SOURCE_RECORD);
  hn_finding_do(d, HN_DO_CALIBRATE, NULL, 0);
  if (!conversions && meta->batch == 1) hn_finding_do(d, HN_DO_BATCH, NULL, 8);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (conversions ? converts(d, &d->p->layers[i]) : hn_is_int8(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  if (conversions) {
    hn_finding_gain(d, extra / 100, 10, HONE_BASIS_MEASURED,
                    HN_WORDS(d, "the conversions go but for those at the edges (a tenth)",
                             "除首尾（十分之一）以外的转换消失"),
                    0.5);
  } else {
    /* The least of what the table promises, over what float takes. */
    double s = 1.5 / (1 + gain / 100);
    hn_finding_gain(
        d, q.int8_ms > 0 ? hn_share(d, q.int8_ms) / 100 : 1, s, HONE_BASIS_TABLE,
        HN_WORDS(
            d, "INT8 at least 1.5x over float: course notes on operators, 5.5 (Ascend NPU, model not named)",
            "INT8 至少为浮点的 1.5 倍：算子优化讲义 5.5（昇腾 NPU，未注明模型）"),
        0.3);
  }
  hn_finding_end(d);
}

const struct hn_rule hn_rule_quantisation_without_gain = {"quantisation_without_gain", run};
