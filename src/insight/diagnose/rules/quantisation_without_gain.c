/* Eight bits, and hardly faster: what stands in the way? Every layer has one cause (quantised.h); the
 * heaviest one is told first, all of them with their milliseconds. */
#include "insight/diagnose/quantised.h"

#include <math.h>
#include <string.h>

typedef struct quantised {
  hn_int8_account by;
  double convert_ms, reformat_ms, stuck_ms, work_ms;
  double left_ms;            /* of what is stuck in float, in 8 bits; NaN: not known */
  double float_ms;           /* what the int8 products would take in f32 at the reachable roof; 0: no roof */
  bool typed;                /* the record says of some operator what numbers it computes in */
  const hone_layer *slowest; /* of what is in the way */
} quantised;

/* Conversions, and what stayed float for want of better ones. */
static bool in_the_way(hn_int8_cause c) {
  return c == HN_INT8_CONVERSIONS || c == HN_INT8_REFORMATS || c == HN_INT8_UNFUSED || c == HN_INT8_ISLANDS;
}

/* Time of the product in f32 at the reachable roof; 0: no roof. */
static double float_time(const hn_diagnosis *d, const hone_layer *l) {
  const hone_roof *compute = hn_roof_compute(d->facts, "f32");
  return compute && l->flops > 0 ? l->flops / compute->gflops / 1e6 * 100 / d->t->reachable_roof : 0;
}

static quantised look(hn_diagnosis *d) {
  quantised q = {0};
  bool roofs = true;
  hn_int8_account_make(d, &q.by);
  for (size_t i = 0; i < d->p->layer_count && !d->failed; i++) {
    const hone_layer *l = &d->p->layers[i];
    const hn_int8_cause cause = q.by.layer[i].cause;
    if (!hn_is_work(l)) continue;
    q.work_ms += hn_typical_ms(l);
    q.typed = q.typed || (hn_step(d, l) && hn_step(d, l)->dtype);
    if (in_the_way(cause)) {
      if (!q.slowest || hn_typical_ms(l) > hn_typical_ms(q.slowest)) q.slowest = l;
    } else if (hn_is_int8(d, l) && hn_is_matrix(l)) {
      q.float_ms += float_time(d, l);
      roofs = roofs && float_time(d, l) > 0;
    }
  }
  if (!roofs) q.float_ms = 0;
  q.convert_ms = q.by.ms[HN_INT8_CONVERSIONS];
  q.reformat_ms = q.by.ms[HN_INT8_REFORMATS];
  q.stuck_ms = q.by.ms[HN_INT8_UNFUSED] + q.by.ms[HN_INT8_ISLANDS];
  q.left_ms = q.stuck_ms - q.by.saved_ms[HN_INT8_UNFUSED] - q.by.saved_ms[HN_INT8_ISLANDS];
  return q;
}

/* Of the whole over float, in percent; NaN: not known. Two ways to know it: the network in float, or the roof
 * of float arithmetic where products of 8 bits take part of the time. */
static double gain_of(const hn_diagnosis *d, const quantised *q) {
  if (d->float_profile && d->p->wall.p50 > 0)
    return 100 * (hn_typical_wall_ms(d->float_profile) / d->typical_wall_ms - 1);
  if (q->float_ms > 0 && q->by.int8_ms > 0.2 * q->work_ms)
    return 100 * (q->float_ms / (q->by.int8_ms + q->convert_ms + q->reformat_ms) - 1);
  return NAN;
}

static const char *cause_of(hn_diagnosis *d, const quantised *q, bool conversions, bool stuck) {
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  if (stuck && q->stuck_ms > q->convert_ms + q->reformat_ms)
    return HN_WORDS(
        d,
        "Part of the network still computes in float, and pays for the way there and back. What was to "
        "be int8 and is not is listed below with what was in the way.",
        "网络的一部分仍以浮点计算，还要付出往返转换的代价。下面列出本应为 int8 而不是的层，以及原因。");
  if (conversions)
    return HN_WORDS(d,
                    "Steps that only change the numbers' format (Q/DQ that were not fused "
                    "into the products, reformats "
                    "between int8 and float layers) eat what the integer products save.",
                    "只改变数值格式的步骤（未融入乘加的 Q/DQ、int8 "
                    "与浮点层之间的重排）吃掉了整数乘加省下的时间。");
  if (hn_no_integer_units(d))
    return HN_SAY(d,
                  "This processor (%s) has no instructions for products of bytes (VNNI, "
                  "AMX): int8 is computed as wider integers.",
                  "该处理器（%s）没有字节乘加指令（VNNI、AMX）：int8 只能用更宽的整数计算。", meta->isa);
  if (meta->batch == 1)
    return HN_WORDS(d,
                    "With batch 1 the products are too small to be limited by arithmetic, which is "
                    "what int8 speeds up.",
                    "batch 为 1 时乘加规模太小，瓶颈不在算力，而 int8 加速的正是算力。");
  return HN_WORDS(d,
                  "Neither conversions nor batch size explain it: too few operators are quantised, "
                  "or their kernels are slow. "
                  "Quantise again with mixed precision where it hurts.",
                  "转换与 batch "
                  "都不能解释：量化的算子太少，或其内核太慢。请重新校准，并在受损处使用混合精度。");
}

/* Time of the network's layers in float that execute this ONNX node; 0: none. */
static double float_ms(const hn_diagnosis *d, const char *node) {
  for (size_t i = 0; i < d->float_profile->layer_count; i++) {
    const hone_layer *l = &d->float_profile->layers[i];
    for (size_t k = 0; k < l->onnx_node_count; k++)
      if (strcmp(l->onnx_nodes[k], node) == 0) return hn_typical_ms(l);
  }
  return 0;
}

/* Products that take longer in 8 bits than their float layer did, by the names of their nodes. */
static void slower_layers(hn_diagnosis *d) {
  const hone_layer *worst = NULL;
  double lost_ms = 0, worst_ms = 0;
  size_t n = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    double before_ms = 0;
    if (!hn_is_work(l) || !hn_is_matrix(l)) continue;
    for (size_t k = 0; k < l->onnx_node_count && before_ms <= 0; k++)
      before_ms = float_ms(d, l->onnx_nodes[k]);
    const double more_ms = hn_typical_ms(l) - before_ms;
    if (before_ms <= 0 || more_ms <= 0) continue;
    n++;
    lost_ms += more_ms;
    if (more_ms > worst_ms) worst = l, worst_ms = more_ms;
  }
  if (!worst) return;
  hn_finding_evidence(d, HN_T("products slower than in float", "比浮点更慢的乘加"), (double)n, "",
                      HN_T("both layer tables", "两份层表"));
  hn_finding_evidence(d, HN_T("what they lose", "它们多花的时间"), lost_ms, "ms",
                      HN_T("both layer tables", "两份层表"));
  hn_finding_evidence_at(d, HN_T("the worst of them", "其中最差者"), worst_ms, "ms", worst->name);
}

static void evidence(hn_diagnosis *d, hone_finding *f, const quantised *q, double gain) {
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  if (!isnan(gain))
    hn_finding_evidence(d, HN_T("gain over float", "相对浮点的收益"), gain, "%",
                        d->float_profile ? HN_T("the float profile's wall", "浮点记录的墙钟时间")
                                         : HN_T("f32 at its reachable roof", "f32 达到其可达上限"));
  if (q->by.int8 || q->typed) { /* else nothing says what the operators compute in */
    hn_finding_evidence(d, HN_T("int8 operators", "int8 算子数"), (double)q->by.int8, "", HN_SOURCE_LAYERS);
    hn_finding_evidence(d, HN_T("their share", "它们的占比"), hn_share(d, q->by.int8_ms), "%",
                        HN_SOURCE_SPANS);
  } else
    f->cause =
        HN_SAY(d, "%s Which operators are int8 is not recorded.", "%s哪些算子是 int8 没有记录。", f->cause);
  hn_finding_evidence(d, HN_T("quantise and dequantise", "量化与反量化"), q->convert_ms, "ms",
                      HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("reformats", "重排"), q->reformat_ms, "ms", HN_SOURCE_SPANS);
  if (q->stuck_ms > 0)
    hn_finding_evidence(d, HN_T("float layers among them", "其间的浮点层"), q->stuck_ms, "ms",
                        HN_SOURCE_SPANS);
  if (d->float_profile) slower_layers(d);
  if (meta->batch > 0) hn_finding_evidence(d, HN_T("batch", "batch"), meta->batch, "", HN_SOURCE_RECORD);
}

/* P is what stands in the way, S what is left of it when conversions go but for a tenth and float layers are
 * of 8 bits. */
static void gain_of_way(hn_diagnosis *d, const quantised *q, bool stuck) {
  const double convert_ms = q->convert_ms + q->reformat_ms;
  if (stuck) {
    const double ms = convert_ms + q->stuck_ms, left = convert_ms / 10 + q->left_ms;
    hn_finding_gain(
        d, hn_share(d, ms) / 100, ms / (left > 0.02 * ms ? left : 0.02 * ms), HONE_BASIS_ROOFLINE,
        HN_WORDS(d, "conversions go but for those at the edges (a tenth), float layers at the roof of int8",
                 "除首尾（十分之一）以外的转换消失，浮点层达到 int8 的上限"),
        0.4);
    return;
  }
  hn_finding_gain(d, hn_share(d, convert_ms) / 100, 10, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "the conversions go but for those at the edges (a tenth)",
                           "除首尾（十分之一）以外的转换消失"),
                  0.5);
}

/* Nothing is in the way, and it is slow all the same: the least of what the table promises, over what float
 * takes. */
static void gain_of_table(hn_diagnosis *d, const quantised *q, double gain) {
  const double s = 1.5 / (1 + gain / 100), int8_ms = q->by.int8_ms;
  hn_finding_gain(
      d, int8_ms > 0 ? hn_share(d, int8_ms) / 100 : 1, s, HONE_BASIS_TABLE,
      HN_WORDS(d,
               "INT8 at least 1.5x over float: course notes on operators, 5.5 (Ascend NPU, model not "
               "named)",
               "INT8 至少为浮点的 1.5 倍：算子优化讲义 5.5（昇腾 NPU，未注明模型）"),
      0.3);
}

/* Nothing is in the way, and float is faster: it is what can be had at once. */
static void gain_of_float(hn_diagnosis *d, double gain) {
  const bool measured = d->float_profile != NULL;
  hn_finding_gain(d, 1, 100 / (100 + gain), measured ? HONE_BASIS_MEASURED : HONE_BASIS_ROOFLINE,
                  measured
                      ? HN_WORDS(d, "the network in float, as measured beside it", "浮点网络，与其一同测得")
                      : HN_WORDS(d, "the network in float at its reachable roof", "浮点网络达到其可达上限"),
                  measured ? 0.8 : 0.3);
}

/* What follows from the figures. */
typedef struct verdict {
  double gain;
  bool is_int8, no_gain;
  bool conversions, stuck; /* in the way: steps that convert, layers that stayed float */
  bool pays;               /* measured against float: nothing is wrong, and the reader asked */
  bool speaks;
} verdict;

static verdict judge(const hn_diagnosis *d, const quantised *q) {
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  const double extra = hn_share(d, q->convert_ms + q->reformat_ms);
  verdict v = {.gain = gain_of(d, q),
               .is_int8 = q->by.int8 || (meta->precision && strstr(meta->precision, "int8")),
               .conversions = extra >= d->t->quant_extra / 2};
  v.no_gain = v.gain < d->t->quant_gain && (d->float_profile || v.is_int8);
  /* What int8 would bring there, only roofs tell. */
  v.stuck = v.is_int8 && hn_share(d, q->stuck_ms - q->left_ms) >= d->t->quant_extra;
  const bool wrong = v.no_gain || v.stuck || (q->convert_ms > 0 && extra >= d->t->quant_extra);
  v.pays = !wrong && d->float_profile && v.gain >= d->t->quant_gain;
  v.speaks = (v.is_int8 || q->convert_ms > 0) && (wrong || v.pays);
  return v;
}

static const char *title_of(hn_diagnosis *d, const quantised *q, const verdict *v) {
  const double extra = hn_share(d, q->convert_ms + q->reformat_ms), stuck = hn_share(d, q->stuck_ms);
  if (v->pays)
    return HN_SAY(d, "INT8 is %.2f times as fast as float: %.3f ms, %.3f ms in float",
                  "INT8 是浮点的 %.2f 倍速：%.3f 毫秒，浮点为 %.3f 毫秒", 1 + v->gain / 100,
                  d->typical_wall_ms, hn_typical_wall_ms(d->float_profile));
  if (v->no_gain && v->gain < 0 && d->float_profile)
    return HN_SAY(d, "INT8 is slower than float: %.3f ms, %.3f ms in float",
                  "INT8 比浮点更慢：%.3f 毫秒，浮点为 %.3f 毫秒", d->typical_wall_ms,
                  hn_typical_wall_ms(d->float_profile));
  if (v->no_gain && v->gain < 0)
    return HN_SAY(d, "INT8 takes %.2f times as long as float at its reachable roof would",
                  "INT8 耗时是浮点达到其可达上限时的 %.2f 倍", 100 / (100 + v->gain));
  if (v->no_gain) return HN_SAY(d, "INT8 brings only %+.0f %%", "INT8 只带来 %+.0f %% 的收益", v->gain);
  if (v->stuck && stuck > extra)
    return HN_SAY(d, "Layers that stayed float take %.0f %% of an INT8 network's time",
                  "仍为浮点的层占 INT8 网络时间的 %.0f %%", stuck);
  return HN_SAY(d, "Quantising and dequantising take %.0f %% of the time", "量化与反量化占时间的 %.0f %%",
                extra);
}

/* Those of which the finding speaks, and what each of them saves. */
static void layers(hn_diagnosis *d, const quantised *q, const verdict *v) {
  const bool way = v->conversions || v->stuck;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    const hn_int8_layer *is = &q->by.layer[i];
    const bool stays = is->cause == HN_INT8_UNFUSED || is->cause == HN_INT8_ISLANDS;
    if (!hn_is_work(l)) continue;
    if (way && in_the_way(is->cause) && (v->stuck || !stays))
      hn_finding_layer(d, l, stays && !isnan(is->saved_ms) ? is->saved_ms : hn_typical_ms(l));
    else if (!way && hn_is_int8(d, l))
      hn_finding_layer(d, l, hn_typical_ms(l));
  }
}

static void run(hn_diagnosis *d) {
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  const quantised q = look(d);
  if (d->failed) return;
  const verdict v = judge(d, &q);
  if (!v.speaks) return;
  const bool way = v.conversions || v.stuck;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = title_of(d, &q, &v);
  f->category = v.pays ? HONE_CATEGORY_NOTE : HONE_CATEGORY_STRUCTURAL;
  f->subject = q.slowest && way ? q.slowest->name : HN_WORDS(d, "quantised operators", "量化算子");
  f->quantity = HONE_QUANTITY_NODES;
  /* Of a plan that was not rewritten, hone itself fuses the Q/DQ. */
  f->remedy =
      v.conversions && !q.by.int8 && d->tool == HN_TOOL_HONE && meta->opt_level >= 0 && meta->opt_level < 2
          ? HONE_REMEDY_OPTIMIZER
          : HONE_REMEDY_USER;
  f->cause = v.pays ? HN_WORDS(d, "Eight bits pay here. What keeps them from bringing more is listed below.",
                               "8 位在此值得。下面列出还有什么妨碍它更快。")
                    : cause_of(d, &q, v.conversions, v.stuck);
  evidence(d, f, &q, v.gain);
  hn_int8_parts(d, &q.by);
  hn_int8_do(d, &q.by);
  if (!way && meta->batch == 1) hn_finding_do(d, HN_DO_BATCH, NULL, 8);
  layers(d, &q, &v);
  if (!v.pays && way) gain_of_way(d, &q, v.stuck); /* a note promises nothing */
  if (!v.pays && !way && v.gain < 0) gain_of_float(d, v.gain);
  if (!v.pays && !way && !(v.gain < 0)) gain_of_table(d, &q, v.gain);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_quantisation_without_gain = {"quantisation_without_gain", run};
