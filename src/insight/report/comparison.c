/* A comparison as a table for the terminal and as JSON. */
#include "insight/report/report.h"

#include "insight/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static hn_color color_of(hone_change change) {
  switch (change) {
  case HONE_CHANGE_SLOWER: return HN_RED;
  case HONE_CHANGE_FASTER: return HN_GREEN;
  case HONE_CHANGE_UNCLEAR: return HN_YELLOW;
  default: return HN_PLAIN;
  }
}

static const char *change_word(const hn_look *look, hone_change change) {
  static const char *const chinese[] = {"相同", "变慢", "变快", "不明"};
  return look->zh ? chinese[change] : hone_change_name(change);
}

static const char *alignment_word(const hn_look *look, hone_alignment alignment) {
  static const char *const chinese[] = {"一对一", "融合", "拆分", "重组", "新增", "消失"};
  return look->zh ? chinese[alignment] : hone_alignment_name(alignment);
}

/* Samples that would differ as much by chance in one of so many comparisons: the difference is noise. */
#define BY_CHANCE 0.05

/* A difference that would be large if it were one. */
static bool is_maybe_chance(const hone_difference *d) {
  return d->change == HONE_CHANGE_SAME && d->p_value >= BY_CHANCE && fabs(d->delta_pct) >= 5;
}

/* A ratio beside a bare "same" would read like a result. */
const char *hn_change_words(const hn_look *look, const hone_difference *d) {
  if (d->change != HONE_CHANGE_SAME) return change_word(look, d->change);
  if (!(d->p_value >= BY_CHANCE)) return HN_IN(look, "same: too small to count", "相同：差异太小，不计");
  return is_maybe_chance(d) ? HN_IN(look, "may be chance: inside the noise", "可能是偶然：在噪声之内")
                            : HN_IN(look, "same: inside the noise", "相同：在噪声之内");
}

/* What a reader wants to hear first: how the layers correspond where that changed, else what became of the
 * time. */
static void verdict(char *out, size_t size, const hn_look *look, const hone_compare_row *r) {
  const char *word = alignment_word(look, r->alignment);
  if (r->alignment == HONE_ALIGNMENT_ONE && is_maybe_chance(&r->time))
    snprintf(out, size, "%s", HN_IN(look, "by chance?", "偶然？"));
  else if (r->alignment == HONE_ALIGNMENT_ONE)
    snprintf(out, size, "%s", change_word(look, r->time.change));
  else if (!r->before_count || !r->after_count)
    snprintf(out, size, "%s", word);
  else
    snprintf(out, size, HN_IN(look, "%s %zu to %zu", "%s %zu 变 %zu"), word, r->before_count, r->after_count);
}

/* The tool told the mean of its runs and no single one. */
static bool is_mean(const hone_profile *p) {
  return p->wall.count == 1 && hone_facts_get_meta(p->facts)->runs > 1;
}

/* What is known of one side; a foreign profile does not tell everything. */
static void side(hn_str *o, const hn_look *look, const char *what, const hone_profile *p) {
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  const char *known[] = {m->model, m->tool, m->device, m->precision};
  const char *comma = "";
  hn_paint(o, look, HN_PLAIN, "  %s  ", what);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!known[i]) continue;
    hn_paint(o, look, HN_PLAIN, "%s%s", comma, known[i]);
    if (known[i] == m->tool && m->tool_version) hn_paint(o, look, HN_PLAIN, " %s", m->tool_version);
    comma = ", ";
  }
  if (m->threads > 0)
    hn_paint(o, look, HN_PLAIN, HN_IN(look, "%s%.0f thread%s", "%s%.0f 个线程%s"), comma, m->threads,
             m->threads == 1 || look->zh ? "" : "s");
  if (m->date) hn_paint(o, look, HN_DIM, ", %s", m->date);
  if (is_mean(p))
    hn_paint(o, look, HN_DIM,
             HN_IN(look, "   mean of %.0f runs, %zu layers\n", "   %.0f 次运行的平均，%zu 层\n"), m->runs,
             p->layer_count);
  else if (look->zh)
    hn_paint(o, look, HN_DIM, "   %zu 次迭代，%zu 层\n", p->iterations, p->layer_count);
  else
    hn_paint(o, look, HN_DIM, "   %zu iteration%s, %zu layer%s\n", p->iterations,
             p->iterations == 1 ? "" : "s", p->layer_count, p->layer_count == 1 ? "" : "s");
}

static void p_value(char *out, size_t size, double p) {
  if (p < 0)
    snprintf(out, size, "-");
  else if (p < 0.0005)
    snprintf(out, size, "<0.001");
  else
    snprintf(out, size, "%.3f", p);
}

static void row(hn_table *t, const hn_look *look, const hone_compare_row *r, double wall) {
  char text[64], p[16];
  hn_color color = color_of(r->time.change);
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", r->name);
  hn_table_cell(t, 1, HN_PLAIN, "%s", r->type);
  if (r->before_count) hn_table_cell(t, 2, HN_PLAIN, "%.3f", r->time.before_ms);
  if (r->after_count) hn_table_cell(t, 3, HN_BOLD, "%.3f", r->time.after_ms);
  hn_table_cell(t, 4, color, "%+.3f", r->time.delta_ms);
  if (r->time.before_ms > 0 && r->after_count) hn_table_cell(t, 5, color, "%+.1f", r->time.delta_pct);
  if (wall > 0) hn_table_cell(t, 6, HN_PLAIN, "%+.1f", 100 * r->time.delta_ms / wall);
  p_value(p, sizeof p, r->time.p_value);
  hn_table_cell(t, 7, HN_DIM, "%s", p);
  verdict(text, sizeof text, look, r);
  hn_table_cell(t, 8, color, "%s", text);
}

static void stage(hn_table *t, const char *name, double before, double after) {
  if (before == 0 && after == 0) return;
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", name);
  hn_table_cell(t, 1, HN_PLAIN, "%.3f", before);
  hn_table_cell(t, 2, HN_BOLD, "%.3f", after);
  hn_table_cell(t, 3, HN_PLAIN, "%+.3f", after - before);
  if (before > 0) hn_table_cell(t, 4, HN_PLAIN, "%+.1f", 100 * (after / before - 1));
}

static void stages(hn_str *o, const hn_look *look, const hone_comparison *c) {
  const hone_stages *a = &c->before->stages, *b = &c->after->stages;
  hn_table t = {0};
  hn_table_column(&t, HN_IN(look, "stage", "阶段"), true, 10, 0);
  hn_table_column(&t, HN_IN(look, "before ms", "之前 毫秒"), false, 0, 0);
  hn_table_column(&t, HN_IN(look, "after ms", "之后 毫秒"), false, 0, 0);
  hn_table_column(&t, HN_IN(look, "change ms", "变化 毫秒"), false, 0, 0);
  hn_table_column(&t, "%", false, 0, 0);
  stage(&t, HN_IN(look, "pre", "前处理"), a->pre_ms, b->pre_ms);
  stage(&t, "h2d", a->h2d_ms, b->h2d_ms);
  stage(&t, HN_IN(look, "infer", "推理"), a->infer_ms, b->infer_ms);
  stage(&t, "d2h", a->d2h_ms, b->d2h_ms);
  stage(&t, HN_IN(look, "post", "后处理"), a->post_ms, b->post_ms);
  stage(&t, HN_IN(look, "idle", "空闲"), a->idle_ms, b->idle_ms);
  stage(&t, HN_IN(look, "total", "总计"), a->total_ms, b->total_ms);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
}

void hn_comparison_text(hn_str *o, const hn_look *look, const hone_comparison *c, size_t most) {
  char p[16];
  hn_heading(o, look, "%s", HN_IN(look, "Comparison", "比较"));
  side(o, look, HN_IN(look, "before", "之前"), c->before);
  side(o, look, HN_IN(look, "after ", "之后"), c->after);
  for (size_t i = 0; i < c->warning_count; i++) hn_paint(o, look, HN_YELLOW, "  %s\n", c->warnings[i]);
  p_value(p, sizeof p, c->wall.p_value);
  if (is_mean(c->before) && is_mean(c->after))
    hn_str_puts(o, HN_IN(look, "\n  mean run ", "\n  平均运行 "));
  else
    hn_str_puts(o, HN_IN(look, "\n  median run ", "\n  中位数运行 "));
  hn_paint(o, look, HN_BOLD, "%.3f -> %.3f ms", c->wall.before_ms, c->wall.after_ms);
  if (c->wall.before_ms > 0) hn_paint(o, look, color_of(c->wall.change), "  %+.1f %%", c->wall.delta_pct);
  hn_paint(o, look, color_of(c->wall.change), ", %s", hn_change_words(look, &c->wall));
  hn_show(o, "  (p %s)\n\n", p);
  stages(o, look, c);
  hn_show(
      o,
      HN_IN(look,
            "\n  layers: %zu slower, %zu faster, %zu the same, %zu unclear; %zu new, %zu gone, %zu fused, "
            "split or regrouped\n\n",
            "\n  层：%zu 个变慢，%zu 个变快，%zu 个相同，%zu 个不明；%zu 个新增，%zu 个消失，%zu "
            "个融合、拆分或重组\n\n"),
      c->slower, c->faster, c->same, c->unclear, c->added, c->gone, c->fused);
  hn_table t = {0};
  hn_table_column(&t, HN_IN(look, "layer", "层"), true, 24, 0);
  hn_table_column(&t, HN_IN(look, "type", "类型"), true, 6, 3);
  hn_table_column(&t, HN_IN(look, "before ms", "之前 毫秒"), false, 0, 0);
  hn_table_column(&t, HN_IN(look, "after ms", "之后 毫秒"), false, 0, 0);
  hn_table_column(&t, HN_IN(look, "change ms", "变化 毫秒"), false, 0, 0);
  hn_table_column(&t, "%", false, 0, 0);
  hn_table_column(&t, HN_IN(look, "% of run", "占运行 %"), false, 0, 2);
  hn_table_column(&t, "p", false, 0, 1);
  hn_table_column(&t, "", true, 13, 0);
  size_t n = most && most < c->row_count ? most : c->row_count;
  for (size_t i = 0; i < n; i++) row(&t, look, &c->rows[i], c->wall.before_ms);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  if (n < c->row_count)
    hn_paint(o, look, HN_DIM,
             HN_IN(look, "  the %zu largest differences; %zu more (--rows N prints more)\n",
                   "  差异最大的 %zu 个；还有 %zu 个（--rows N 显示更多）\n"),
             n, c->row_count - n);
  hn_paragraph(o, look, 2, HN_DIM,
               "p: how often chance alone would differ as much, from the iterations of these two profiles. "
               "Two processes of one program differ by a little more than that: hone gate measures many.");
}

static void difference(hn_str *o, const hone_difference *d) {
  hn_json_num(o, "before_ms", d->before_ms);
  hn_json_num(o, "after_ms", d->after_ms);
  hn_json_num(o, "delta_ms", d->delta_ms);
  hn_json_num(o, "delta_pct", d->before_ms > 0 ? d->delta_pct : NAN);
  hn_json_num(o, "p_value", d->p_value >= 0 ? d->p_value : NAN);
  hn_json_text(o, "change", hone_change_name(d->change));
}

static void layer_list(hn_str *o, const char *key, const hone_layer *const *layers, size_t n) {
  static const hn_json_member list[] = {HN_JSON(hone_layer, name),
                                        HN_JSON(hone_layer, type),
                                        HN_JSON(hone_layer, tactic),
                                        HN_JSON(hone_layer, time_ms),
                                        {0}};
  hn_json_open(o, key, '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(o, NULL, '{');
    hn_json_members(o, list, layers[i]);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
}

/* Every ONNX node of the row once: of the side that names them. */
static void nodes(hn_str *o, const hone_compare_row *r) {
  bool before = false;
  for (size_t i = 0; i < r->before_count; i++) before = before || r->before[i]->onnx_node_count;
  const hone_layer *const *layers = before ? r->before : r->after;
  size_t n = before ? r->before_count : r->after_count;
  hn_json_open(o, "nodes", '[');
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < layers[i]->onnx_node_count; k++) hn_json_text(o, NULL, layers[i]->onnx_nodes[k]);
  hn_json_close(o, ']');
}

static void side_members(hn_str *o, const char *key, const hone_profile *p) {
  static const hn_json_member list[] = {HN_JSON(hone_facts_meta, tool),
                                        HN_JSON(hone_facts_meta, tool_version),
                                        HN_JSON(hone_facts_meta, model),
                                        HN_JSON(hone_facts_meta, device),
                                        HN_JSON(hone_facts_meta, commit),
                                        HN_JSON(hone_facts_meta, date),
                                        {0}};
  hn_json_open(o, key, '{');
  hn_json_members(o, list, hone_facts_get_meta(p->facts));
  hn_json_uint(o, "iterations", p->iterations);
  hn_json_uint(o, "layers", p->layer_count);
  hn_json_close(o, '}');
  hn_json_line(o);
}

void hn_comparison_members(hn_str *o, const hone_comparison *c) {
  static const hn_json_member counts[] = {HN_JSON(hone_comparison, slower),
                                          HN_JSON(hone_comparison, faster),
                                          HN_JSON(hone_comparison, same),
                                          HN_JSON(hone_comparison, unclear),
                                          HN_JSON_AS(hone_comparison, "new", added, HN_JSON_ALWAYS),
                                          HN_JSON(hone_comparison, gone),
                                          HN_JSON(hone_comparison, fused),
                                          {0}};
  if (!c) {
    hn_json_null(o, "comparison");
    return;
  }
  hn_json_open(o, "comparison", '{');
  side_members(o, "before", c->before);
  side_members(o, "after", c->after);
  hn_json_texts(o, "warnings", c->warnings, c->warning_count);
  hn_json_open(o, "wall", '{');
  difference(o, &c->wall);
  hn_json_close(o, '}');
  hn_json_object(o, "counts", counts, c);
  hn_json_open(o, "rows", '[');
  for (size_t i = 0; i < c->row_count; i++) {
    const hone_compare_row *r = &c->rows[i];
    hn_json_line(o);
    hn_json_open(o, NULL, '{');
    hn_json_text(o, "name", r->name);
    hn_json_text(o, "type", r->type);
    hn_json_text(o, "alignment", hone_alignment_name(r->alignment));
    hn_json_text(o, "aligned_by", r->aligned_by);
    difference(o, &r->time);
    layer_list(o, "before", r->before, r->before_count);
    layer_list(o, "after", r->after, r->after_count);
    nodes(o, r);
    hn_json_close(o, '}');
  }
  hn_json_close(o, ']');
  hn_json_close(o, '}');
  hn_json_line(o);
}

hone_status hn_report_comparison_json(const hone_report_input *in, hn_str *o, hone_error *error) {
  (void)error;
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "schema", "hone comparison");
  hn_json_int(o, "version", 1);
  hn_json_line(o);
  hn_comparison_members(o, in->comparison);
  hn_json_close(o, '}');
  hn_json_line(o);
  return HONE_OK;
}
