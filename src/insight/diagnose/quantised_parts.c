/* The causes of quantised.c in words: what each one costs, why, and what to do about it. */
#include "insight/diagnose/quantised.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(id, name) [HN_INT8_##id] = name,
    HN_INT8_CAUSES(X)
#undef X
};

static const hn_text labels[] = {
    [HN_INT8_CONVERSIONS] = HN_T("Q/DQ that are steps of their own", "单独成步的 Q/DQ"),
    [HN_INT8_REFORMATS] = HN_T("changes of layout", "布局转换"),
    [HN_INT8_UNFUSED] = HN_T("products that stayed float with Q/DQ around them", "带 Q/DQ 却仍为浮点的乘加"),
    [HN_INT8_ISLANDS] = HN_T("float layers between integer ones", "整数层之间的浮点层"),
    [HN_INT8_ENDS] = HN_T("float layers before and behind the integer ones", "整数层首尾以外的浮点层"),
    [HN_INT8_UNITS] = HN_T("int8 beside the units made for it", "没有用上整数单元的 int8"),
    [HN_INT8_MEMORY] = HN_T("int8 limited by memory", "受内存限制的 int8"),
    [HN_INT8_CHANNELS] = HN_T("int8 with channel counts that leave units empty", "通道数填不满单元的 int8"),
    [HN_INT8_SMALL] = HN_T("int8 with too little work a layer", "每层工作量过小的 int8"),
    [HN_INT8_KERNELS] = HN_T("int8 kernels far from their roof", "远低于上限的 int8 内核"),
};

typedef struct member {
  const hone_layer *layer;
  double ms;
} member;

static int by_time(const void *pa, const void *pb) {
  const member *a = pa, *b = pb;
  if (a->ms != b->ms) return a->ms > b->ms ? -1 : 1;
  return (a->layer > b->layer) - (a->layer < b->layer);
}

static member *members(hn_diagnosis *d, const hn_int8_account *a, hn_int8_cause cause) {
  member *list = HN_NEW_ARRAY(d->arena, member, a->layers[cause] + 1);
  size_t n = 0;
  if (!list) {
    d->failed = true;
    return NULL;
  }
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (a->layer[i].cause == cause) list[n++] = (member){&d->p->layers[i], hn_typical_ms(&d->p->layers[i])};
  qsort(list, n, sizeof *list, by_time);
  return list;
}

static const char *const *layer_names(hn_diagnosis *d, const member *list, size_t n) {
  const char **out = HN_NEW_ARRAY(d->arena, const char *, n + 1);
  if (!out) {
    d->failed = true;
    return NULL;
  }
  for (size_t i = 0; i < n; i++) out[i] = list[i].layer->name;
  return out;
}

static const hn_int8_layer *entry(const hn_diagnosis *d, const hn_int8_account *a, const hone_layer *l) {
  return &a->layer[l - d->p->layers];
}

/* What the optimiser recorded of them, the slowest that it speaks of; otherwise: of those of which it says
 * nothing.
 */
static const char *recorded(hn_diagnosis *d, const hn_int8_account *a, const member *list, size_t n,
                            const char *otherwise) {
  enum { TOLD = 3 };
  const char *out = "";
  size_t told = 0;
  for (size_t i = 0; i < n && told < TOLD; i++) {
    const char *reason = entry(d, a, list[i].layer)->reason;
    if (!reason) reason = otherwise;
    if (!reason) continue;
    out = HN_SAY(d, "%s%s'%s': %s", "%s%s'%s'：%s", out,
                 told++ ? HN_WORDS(d, "; ", "；") : HN_WORDS(d, " ", ""), list[i].layer->name, reason);
  }
  return told ? HN_SAY(d, "%s.", "%s。", out) : "";
}

/* "Add + Relu" of what plans call Pointwise. */
static const char *type_of(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return strcmp(l->type, "Pointwise") == 0 && step && step->epilogue && *step->epilogue ? step->epilogue
                                                                                        : l->type;
}

/* "Sigmoid, Mul and others": the types, the slowest first. */
static const char *types_of(hn_diagnosis *d, const member *list, size_t n) {
  enum { NAMED = 3 };
  const char *named[NAMED], *out = "";
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    bool known = false;
    for (size_t j = 0; j < k; j++) known = known || strcmp(named[j], type_of(d, list[i].layer)) == 0;
    if (known) continue;
    if (k == NAMED) return HN_SAY(d, "%s and others", "%s 等", out);
    named[k] = type_of(d, list[i].layer);
    out = k ? HN_SAY(d, "%s, %s", "%s、%s", out, named[k]) : named[k];
    k++;
  }
  return out;
}

/* The last refusal: tactics stand from the most demanding to the least. */
static const char *why_no_tensor_units(hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = step ? step->alternative_count : 0; i-- > 0;) {
    const hone_alternative *a = &step->alternatives[i];
    if (a->reason)
      return HN_SAY(d, "'%s' does not run on the tensor units; %s says: %s.",
                    "'%s' 没有用上张量单元；%s 的说法是：%s。", l->name,
                    a->tactic ? a->tactic : HN_WORDS(d, "a tactic", "某个实现"), a->reason);
  }
  return HN_SAY(d, "'%s' does not run on the tensor units.", "'%s' 没有用上张量单元。", l->name);
}

static const char *why_units(hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  if (step && step->is_reference)
    return HN_SAY(d, "No fast kernel takes '%s': it runs the scalar reference.",
                  "没有快速内核接受 '%s'：它运行的是标量参考实现。", l->name);
  if (hn_on_accelerator(d)) return why_no_tensor_units(d, l);
  return HN_SAY(
      d,
      "This processor (%s) has no instructions for products of bytes (VNNI, AMX): they are computed as "
      "wider integers, which floats nearly keep up with.",
      "该处理器（%s）没有字节乘加指令（VNNI、AMX）：只能按更宽的整数计算，浮点几乎同样快。",
      hone_facts_get_meta(d->facts)->isa);
}

static const char *why_channels(hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return HN_SAY(
      d,
      "Units for bytes take groups of channels; '%s' has %d in and %d out, and what is missing is padding.",
      "字节单元成组处理通道；'%s' 输入 %d 个、输出 %d 个通道，缺的部分只是填充。", l->name,
      step ? (int)step->channels_in : 0, step ? (int)step->channels_out : 0);
}

static const char *why_unfused(hn_diagnosis *d, const hn_int8_account *a, const member *list, size_t n) {
  const char *reason = recorded(
      d, a, list, n,
      HN_WORDS(d, "what it reads comes from no DequantizeLinear", "它的输入不来自 DequantizeLinear"));
  return HN_SAY(
      d,
      "Only a product between DequantizeLinear and QuantizeLinear, each with one reader and constant "
      "parameters, becomes one of integers.%s",
      "只有夹在 DequantizeLinear 与 QuantizeLinear "
      "之间、各只有一个读者且参数为常量的乘加才能变成整数乘加。%s",
      reason);
}

static const char *why(hn_diagnosis *d, const hn_int8_account *a, hn_int8_cause cause, const member *list,
                       size_t n) {
  const hone_layer *slowest = list[0].layer;
  switch (cause) {
  case HN_INT8_CONVERSIONS:
    return HN_WORDS(
        d,
        "They turn floats into codes and back, and compute nothing; between integer layers they show "
        "where the network leaves 8 bits.",
        "它们只在浮点与量化码之间转换，不做计算；出现在整数层之间，说明网络在那里离开了 8 位。");
  case HN_INT8_REFORMATS:
    return HN_WORDS(d, "Values are copied into another order, mostly where integer and float layers meet.",
                    "数值被复制成另一种排列，多在整数层与浮点层交界处。");
  case HN_INT8_UNFUSED: return why_unfused(d, a, list, n);
  case HN_INT8_ISLANDS:
    return HN_SAY(
        d,
        "%s: the file leaves them in float, or nothing runs them on codes; each costs its conversions, "
        "too.%s",
        "%s：文件让它们保持浮点，或没有可在量化码上运行的实现；每一处还要付出转换的代价。%s",
        types_of(d, list, n), recorded(d, a, list, n, NULL));
  case HN_INT8_ENDS:
    return HN_SAY(d, "%s: 8 bits do not touch them.%s", "%s：8 位量化没有触及它们。%s", types_of(d, list, n),
                  recorded(d, a, list, n, NULL));
  case HN_INT8_UNITS: return why_units(d, slowest);
  case HN_INT8_MEMORY:
    return HN_SAY(
        d,
        "They wait for memory, '%s' most: codes are a quarter of f32's bytes, and no arithmetic makes "
        "them come faster.",
        "它们在等内存，'%s' 最甚：量化码只有 f32 字节数的四分之一，算得再快也不会更早到达。", slowest->name);
  case HN_INT8_CHANNELS: return why_channels(d, slowest);
  case HN_INT8_SMALL:
    return HN_SAY(
        d,
        "At the reachable roof each would be done in under %.0f us; starting it and waking threads take "
        "as long, in 8 bits as in float.",
        "按可达上限每层不到 %.0f 微秒即可完成；启动与唤醒线程同样费时，8 位与浮点并无区别。", d->t->tiny_us);
  default:
    return HN_SAY(d, "Enough work, whole units, no waiting for memory: the kernel itself is slow, '%s' most.",
                  "工作量足够、单元填满、也不等内存：是内核本身慢，'%s' 最甚。", slowest->name);
  }
}

static const char *advice(hn_diagnosis *d, hn_int8_cause cause) {
  const bool batch_1 = hone_facts_get_meta(d->facts)->batch == 1;
  switch (cause) {
  case HN_INT8_CONVERSIONS:
    return HN_WORDS(d,
                    "They go when the float layers between them do: quantise those, too, or leave the whole "
                    "stretch in float.",
                    "其间的浮点层消失，它们便随之消失：把那些层也量化，或让整段保持浮点。");
  case HN_INT8_REFORMATS:
    return HN_WORDS(d, "Fewer changes between float and integer layers, and one layout from edge to edge.",
                    "减少浮点层与整数层的交替，首尾使用同一布局。");
  case HN_INT8_UNFUSED:
    return HN_WORDS(d, "Quantise the float model again with a tool that places Q and DQ for this engine.",
                    "用会为该引擎放置 Q 与 DQ 的工具重新量化浮点模型。");
  case HN_INT8_ISLANDS:
    return HN_WORDS(
        d,
        "Quantise them, too, where an integer form exists; replace functions that have none (HardSwish "
        "for Swish, Relu for Gelu); or run what stays float in 16 bits.",
        "有整数形式的也量化；没有的换成有的函数（Swish 换 HardSwish，Gelu 换 Relu）；或让剩下的浮点层用 16 "
        "位。");
  case HN_INT8_ENDS:
    return HN_WORDS(d, "Run them in 16 bits beside the integer layers, or move them out of the model.",
                    "让它们与整数层并用 16 位，或移出模型。");
  case HN_INT8_UNITS:
    if (hn_on_accelerator(d))
      return HN_WORDS(
          d,
          "Channels in and out that are multiples of 16, dense rather than depthwise convolutions, or these "
          "layers in 16 bits.",
          "输入、输出通道取 16 的倍数，用普通卷积代替逐通道卷积，或让这些层用 16 位。");
    return HN_WORDS(
        d,
        "Expect a quarter of the memory rather than speed here; a processor with VNNI or AMX, or a GPU, "
        "brings the speed.",
        "在这里只能指望内存降为四分之一；要速度，请用带 VNNI 或 AMX 的处理器，或 GPU。");
  case HN_INT8_MEMORY:
    return batch_1 ? HN_WORDS(d, "A larger batch reads the weights once for more samples.",
                              "更大的 batch 让一次读取的权重供更多样本使用。")
                   : HN_WORDS(d, "Fewer bytes: fuse with the neighbours, smaller activations.",
                              "减少字节：与相邻层融合，缩小激活。");
  case HN_INT8_CHANNELS:
    return HN_SAY(d, "Channels that are multiples of %.0f, at least %.0f.",
                  "通道数取 %.0f 的倍数，且不少于 %.0f。",
                  d->t->channel_multiple > 16 ? d->t->channel_multiple : 16, d->t->small_channels);
  case HN_INT8_SMALL:
    return batch_1 ? HN_WORDS(d, "A larger batch; at batch 1 fewer threads, or a smaller model in float.",
                              "更大的 batch；batch 为 1 时减少线程，或用更小的浮点模型。")
                   : HN_WORDS(d, "A still larger batch, or fewer threads.", "更大的 batch，或更少的线程。");
  default: return HN_WORDS(d, "Measure which kernels are fastest here.", "实测哪个内核在此最快。");
  }
}

/* It takes a share of the run, and something would go or cannot be told. */
static bool counts(const hn_diagnosis *d, const hn_int8_account *a, hn_int8_cause cause) {
  return cause != HN_INT8_FINE && a->layers[cause] && hn_share(d, a->ms[cause]) >= d->t->min_gain;
}

static double weight(const hn_int8_account *a, hn_int8_cause cause) {
  return isnan(a->saved_ms[cause]) ? a->ms[cause] / 2 : a->saved_ms[cause];
}

/* Causes that count, the heaviest first. */
static size_t ranked(const hn_diagnosis *d, const hn_int8_account *a,
                     hn_int8_cause out[HN_INT8_CAUSE_COUNT]) {
  size_t n = 0;
  for (int c = 0; c < HN_INT8_CAUSE_COUNT; c++) {
    if (!counts(d, a, (hn_int8_cause)c)) continue;
    size_t at = n++;
    for (; at && weight(a, out[at - 1]) < weight(a, (hn_int8_cause)c); at--) out[at] = out[at - 1];
    out[at] = (hn_int8_cause)c;
  }
  return n;
}

void hn_int8_parts(hn_diagnosis *d, const hn_int8_account *a) {
  hn_int8_cause cause[HN_INT8_CAUSE_COUNT];
  const size_t n = ranked(d, a, cause);
  for (size_t i = 0; i < n && !d->failed; i++) {
    const hn_int8_cause c = cause[i];
    const member *list = members(d, a, c);
    if (!list) return;
    const hone_part part = {.name = names[c],
                            .label = HN_WORDS(d, labels[c].en, labels[c].zh),
                            .ms = a->ms[c],
                            .saved_ms = a->saved_ms[c],
                            .why = why(d, a, c, list, a->layers[c]),
                            .advice = advice(d, c),
                            .layers = layer_names(d, list, a->layers[c]),
                            .layer_count = a->layers[c]};
    hn_finding_part(d, &part);
  }
}

void hn_int8_do(hn_diagnosis *d, const hn_int8_account *a) {
  hn_int8_cause cause[HN_INT8_CAUSE_COUNT];
  const size_t n = ranked(d, a, cause);
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  hn_finding_do(d, HN_DO_CALIBRATE, NULL, 0);
  for (size_t i = 0; i < n; i++) switch (cause[i]) {
    case HN_INT8_UNFUSED: hn_finding_do(d, HN_DO_QUANTISE, NULL, 0); break;
    case HN_INT8_ISLANDS:
    case HN_INT8_ENDS: hn_finding_do(d, hn_on_accelerator(d) ? HN_DO_FP16 : HN_DO_BF16, NULL, 0); break;
    case HN_INT8_UNITS: hn_finding_do(d, hn_on_accelerator(d) ? HN_DO_EXPLAIN : HN_DO_DEVICE, NULL, 0); break;
    case HN_INT8_MEMORY:
    case HN_INT8_SMALL:
      if (meta->batch == 1) hn_finding_do(d, HN_DO_BATCH, NULL, 8);
      break;
    case HN_INT8_CHANNELS: {
      const member *list = members(d, a, HN_INT8_CHANNELS);
      if (list) hn_finding_do(d, HN_DO_CHANNELS, list[0].layer->name, 0);
      break;
    }
    case HN_INT8_KERNELS: hn_finding_do(d, HN_DO_TUNE, NULL, 0); break;
    default: break;
    }
}
