/* Operators that could ride along in another one's loop run on their own: each reads and writes a whole
 * tensor. Near misses of the optimiser name the patterns. A profile without them (level 0, another tool) is
 * searched for elementwise operators that directly follow a convolution or matrix product. */
#include "insight/diagnose/fusions.h"

#include "insight/profile/bound.h"

#include <string.h>

typedef struct group {
  double whole_ms, extra_ms; /* all layers of the patterns; all but the heaviest of each */
  double bytes_saved;
  size_t patterns;
  const char *reason;
} group;

/* The layer that executes a node; NULL: none does. */
static const hone_layer *layer_of_node(const hn_diagnosis *d, int32_t node) {
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(d->facts, &n);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (nodes[node].step >= 0 && d->p->layers[i].step == nodes[node].step) return &d->p->layers[i];
  return NULL;
}

/* Adds the layers of one near miss to the group, each once, and to the finding under way. The heaviest layer
 * and every product stay whatever is fused into them; nodes that share a layer are fused already. */
static void add_miss(hn_diagnosis *d, const hone_near_miss *miss, bool *taken, group *g) {
  const hone_layer *heaviest = NULL;
  for (size_t i = 0; i < miss->node_count; i++) {
    const hone_layer *l = layer_of_node(d, miss->nodes[i]);
    if (l && (!heaviest || hn_typical_ms(l) > hn_typical_ms(heaviest))) heaviest = l;
  }
  bool any = false;
  for (size_t i = 0; i < miss->node_count; i++) {
    const hone_layer *l = layer_of_node(d, miss->nodes[i]);
    if (!l || taken[l - d->p->layers]) continue;
    bool stays = l == heaviest || hn_is_matrix(l);
    taken[l - d->p->layers] = true;
    g->whole_ms += hn_typical_ms(l);
    hn_finding_layer(d, l, stays ? 0 : hn_typical_ms(l));
    if (stays) continue;
    g->extra_ms += hn_typical_ms(l);
    any = true;
  }
  if (!any) return;
  g->bytes_saved += (double)miss->bytes_saved;
  g->patterns++;
  if (!g->reason) g->reason = miss->reason;
}

/* Milliseconds that fusing keeps from the extra operators: what they still read (a residual's other input).
 */
static double remaining_ms(const hn_diagnosis *d, const group *g, double extra_bytes) {
  const hone_roof *dram = hn_roof_dram(d->facts);
  if (!dram || g->bytes_saved <= 0 || extra_bytes <= g->bytes_saved) return g->extra_ms / 20;
  double ms = (extra_bytes - g->bytes_saved) / dram->gbs / 1e6;
  return ms < g->extra_ms / 2 ? ms : g->extra_ms / 2;
}

static void finish(hn_diagnosis *d, hone_finding *f, const group *g, double extra_bytes, double confidence) {
  double left = remaining_ms(d, g, extra_bytes);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->quantity = HONE_QUANTITY_NODES;
  hn_finding_evidence(
      d, HN_T("patterns", "模式数"), (double)g->patterns, "",
      HN_T("near misses of the optimiser, or order of the layers", "优化器的近似匹配，或各层的先后顺序"));
  hn_finding_evidence(d, HN_T("time of their operators", "其中算子的时间"), g->whole_ms, "ms",
                      HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("time that fusion removes", "融合能消除的时间"), g->extra_ms - left, "ms",
                      HN_T("all but the heaviest operator of each", "每个模式中除最重算子以外的部分"));
  if (g->bytes_saved > 0)
    hn_finding_evidence(d, HN_T("bytes saved", "节省的访存"), g->bytes_saved / 1e6, "MB",
                        HN_T("shapes of the tensors", "张量的形状"));
  hn_finding_gain(
      d, hn_share(d, g->whole_ms) / 100, g->whole_ms / (g->whole_ms - g->extra_ms + left),
      HONE_BASIS_MEASURED,
      hn_roof_dram(d->facts)
          ? HN_WORDS(d, "times of the operators that disappear; what they still read priced at the DRAM roof",
                     "消失的算子的时间；它们仍需读取的部分按 DRAM 上限计")
          : HN_WORDS(d, "times of the operators that disappear", "消失的算子的时间"),
      confidence);
  hn_finding_end(d);
}

static bool can_be_enabled(const hn_diagnosis *d, const hone_near_miss *miss) {
  return miss->enable_level > hone_facts_get_meta(d->facts)->opt_level;
}

/* One finding for all near misses of a pass that a higher level applies, one for those that no level does. */
static void from_pass(hn_diagnosis *d, const hone_near_miss *misses, size_t n, const char *pass,
                      bool enable) {
  bool *taken = HN_NEW_ARRAY(d->arena, bool, d->p->layer_count + 1);
  if (!taken) {
    d->failed = true;
    return;
  }
  group g = {0};
  int32_t level = 0;
  hone_finding *f = hn_finding_begin(d, hn_say(d, "%s%s", pass, enable ? "" : ":refused"));
  for (size_t i = 0; i < n; i++) {
    if (strcmp(misses[i].pass ? misses[i].pass : "", pass) != 0 || can_be_enabled(d, &misses[i]) != enable)
      continue;
    if (misses[i].enable_level > level) level = misses[i].enable_level;
    add_miss(d, &misses[i], taken, &g);
  }
  if (hn_share(d, g.extra_ms) < d->t->unfused_share) return;
  f->title = enable ? HN_SAY(d, "'%s' is not applied in %zu place%s", "'%s' 有 %zu 处没有应用%s", pass,
                             g.patterns, HN_WORDS(d, g.patterns == 1 ? "" : "s", ""))
                    : HN_SAY(d, "'%s' is refused in %zu place%s", "'%s' 有 %zu 处被拒绝%s", pass, g.patterns,
                             HN_WORDS(d, g.patterns == 1 ? "" : "s", ""));
  f->subject = pass;
  f->remedy = enable ? HONE_REMEDY_OPTIMIZER : HONE_REMEDY_USER;
  f->cause =
      enable
          ? HN_SAY(
                d,
                "This plan was built at a level that does not apply '%s' (level %d does), so its operators "
                "each pass over memory.",
                "该计划所用的级别不应用 '%s'（级别 %d 才会），因此其中每个算子都要各自读写一遍内存。", pass,
                level)
          : HN_SAY(d, "The pattern almost matches, but: %s.", "模式几乎匹配，但是：%s。",
                   g.reason ? g.reason : HN_WORDS(d, "no reason was recorded", "没有记录原因"));
  if (enable) hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  finish(d, f, &g, 0, enable ? 0.8 : 0.3);
}

static void from_near_misses(hn_diagnosis *d, const hone_near_miss *misses, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const char *pass = misses[i].pass ? misses[i].pass : "";
    bool seen = false;
    for (size_t k = 0; k < i && !seen; k++)
      seen = strcmp(misses[k].pass ? misses[k].pass : "", pass) == 0 &&
             can_be_enabled(d, &misses[k]) == can_be_enabled(d, &misses[i]);
    if (!seen) from_pass(d, misses, n, pass, can_be_enabled(d, &misses[i]));
  }
}

/* Adds layer i, which fusion removes, to the group of chains; `kept` of its bytes are still moved afterwards.
 */
static void add_extra(hn_diagnosis *d, group *g, double *extra_bytes, size_t i, double kept) {
  const hone_layer *l = &d->p->layers[i];
  double ms = hn_typical_ms(l);
  g->whole_ms += ms;
  g->extra_ms += ms;
  *extra_bytes += l->bytes;
  g->bytes_saved += l->bytes * (1 - kept);
  hn_finding_layer(d, l, ms);
}

/* What others saved by the same, where this machine's own figures are few: convolutions of another tool's
 * record. */
static void quote_fusions(hn_diagnosis *d) {
  hn_finding_quote(d, HN_T("saved elsewhere by conv + BN", "别处卷积 + BN 节省"), HN_FUSION_conv_bn);
  hn_finding_quote(d, HN_T("saved elsewhere by conv + activation", "别处卷积 + 激活节省"),
                   HN_FUSION_conv_act);
}

enum { CHAINS_SHOWN = 3 };

/* "conv1 + bn1 + relu1, conv2 + bn2 and 4 more": what stands beside each other, in the layers' names. */
typedef struct chains {
  const char *text;
  size_t shown, all;
} chains;

/* Compiled kernels' names run to hundreds of characters: the operator behind one, else its function. */
static const char *short_name(hn_diagnosis *d, const hone_layer *l) {
  return !strpbrk(l->name, "<(")   ? l->name
         : l->onnx_node_count == 1 ? l->onnx_nodes[0]
                                   : hn_function_of(d, l->name);
}

static void name_chain(hn_diagnosis *d, chains *c, const hone_layer *anchor) {
  c->all++;
  if (c->shown >= CHAINS_SHOWN) return;
  c->text = hn_say(d, "%s%s%s", c->text, c->shown++ ? HN_WORDS(d, ", ", "，") : "", short_name(d, anchor));
}

static void name_link(hn_diagnosis *d, chains *c, const hone_layer *l) {
  if (c->all <= CHAINS_SHOWN) c->text = hn_say(d, "%s + %s", c->text, short_name(d, l));
}

static const char *chain_names(hn_diagnosis *d, const chains *c) {
  return c->all > c->shown ? HN_SAY(d, "%s and %zu more", "%s，还有 %zu 条", c->text, c->all - c->shown)
                           : c->text;
}

static void describe_refused(hn_diagnosis *d, hone_finding *f, const group *g, const chains *named) {
  f->title = HN_SAY(d, "Elementwise operators behind %zu product%s could not be fused with %s",
                    "%zu 个乘加%s之后的逐元素算子无法与%s融合", g->patterns, HN_S(d, g->patterns),
                    HN_WORDS(d, g->patterns == 1 ? "it" : "them", "其"));
  f->subject = chain_names(d, named);
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "They pass over a product's whole result once more. This plan fuses what it can, so something in the "
      "network forbids it: the result is read elsewhere too, is an output, or waits for another branch.",
      "它们把乘加的整个结果又读写了一遍。该计划已融合所有可融合之处，因此是网络本身不允许："
      "该结果还被别处读取、本身是输出，或要等待另一分支。");
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
}

/* A host or a slower core cannot take part in the product's kernel; why it is there is another rule's. */
static bool is_elsewhere(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && (step->on_host || (step->is_reference && d->tool != HN_TOOL_HONE));
}

/* Without near misses: chains "product, elementwise, elementwise..." in the order of execution. Conversions
 * of layout between their links are there only because the links are separate, so they go with them. refused:
 * of a plan that fuses all it can, where such chains are what it could not. */
static void from_order(hn_diagnosis *d, bool refused) {
  group g = {0};
  double extra_bytes = 0;
  bool convolutions = false;
  const hone_layer *anchor = NULL;
  size_t linked = 0; /* layers up to here belong to the chain of the anchor */
  bool counted = false;
  chains named = {.text = ""};
  hone_finding *f = hn_finding_begin(d, refused ? "refused" : NULL);
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (hn_is_reformat(d->facts, l)) continue;
    if (hn_is_matrix(l)) {
      anchor = l;
      linked = i + 1;
      counted = false;
      continue;
    }
    if (!hn_is_elementwise(l) || is_elsewhere(d, l)) anchor = NULL;
    if (!anchor) continue;
    if (!counted) {
      counted = true;
      g.patterns++;
      g.whole_ms += hn_typical_ms(anchor);
      hn_finding_layer(d, anchor, 0);
      name_chain(d, &named, anchor);
      convolutions = convolutions || hn_is_conv(anchor);
    }
    name_link(d, &named, l);
    for (; linked < i && !refused; linked++) add_extra(d, &g, &extra_bytes, linked, 0);
    /* A unary operator's read and write both go; a binary one still reads its other input, a third of its
     * bytes. */
    add_extra(d, &g, &extra_bytes, i, hn_is_binary(l) ? 1.0 / 3 : 0);
    linked = i + 1;
  }
  if (hn_share(d, g.extra_ms) < (refused ? d->t->refused_share : d->t->unfused_share)) return;
  if (refused) {
    describe_refused(d, f, &g, &named);
    finish(d, f, &g, extra_bytes, 0.3);
    return;
  }
  f->title = HN_SAY(d, "Chains of elementwise operators (%zu) are not fused",
                    "逐元素算子链（%zu 条）没有融合", g.patterns);
  f->subject = chain_names(d, &named);
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause =
      HN_WORDS(d,
               "Each of these operators reads and writes a whole tensor to do almost no arithmetic; in the "
               "producer's loop the values are still in registers.",
               "这些算子各自读写整个张量，却几乎没有计算；放进前驱的循环里，数值还在寄存器中。");
  if (convolutions && d->tool != HN_TOOL_HONE) quote_fusions(d);
  hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  finish(d, f, &g, extra_bytes, 0.6);
}

static void run(hn_diagnosis *d) {
  size_t n;
  const hone_near_miss *misses = hone_facts_near_misses(d->facts, &n);
  bool enabled_by_a_level = false;
  for (size_t i = 0; i < n; i++) enabled_by_a_level = enabled_by_a_level || can_be_enabled(d, &misses[i]);
  double level = hone_facts_get_meta(d->facts)->opt_level;
  const size_t found = d->found.len;
  if (n) from_near_misses(d, misses, n);
  if (level < 2 ? !enabled_by_a_level : d->tool == HN_TOOL_HONE && d->found.len == found)
    from_order(d, level >= 2);
}

const struct hn_rule hn_rule_unfused_pattern = {"unfused_pattern", run};
