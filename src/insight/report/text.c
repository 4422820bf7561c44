/* The report for a terminal: summary, layer table, Top-5, shares, closure, findings, before and after. */
#include "insight/report/report.h"

#include "insight/profile/bound.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

/* CV above which a time is flagged (SPEC 2). */
#define NOISY 0.15

static const char *or_unknown(const char *s) { return s ? s : "?"; }

/* Other tools also describe a network that they have not run. */
static bool is_timed(const hone_profile *p) { return p->closure.wall_ms > 0; }

/* One figure is no distribution: other tools may tell no more than the mean of their runs. */
static void latency(hn_str *o, const hn_look *look, const hone_profile *p, const hone_facts_meta *m) {
  hn_paint(o, look, HN_BOLD, "%.3f ms", p->wall.p50);
  if (p->wall.count == 1 && m->runs > 1)
    hn_show(o, HN_IN(look, "   mean of %.0f runs\n  ", "   %.0f 次运行的平均\n  "), m->runs);
  else if (p->wall.count == 1)
    hn_str_puts(o, HN_IN(look, "   1 run\n  ", "   1 次运行\n  "));
  else {
    hn_show(o,
            HN_IN(look, " median   %.3f mean   %.3f p95   %.3f min   CV ",
                  " 中位数   %.3f 平均   %.3f p95   %.3f 最小   CV "),
            p->wall.mean, p->wall.p95, p->wall.min);
    hn_paint(o, look, p->wall.cv > NOISY ? HN_YELLOW : HN_PLAIN, "%.3f", p->wall.cv);
    hn_show(o, HN_IN(look, "   %zu runs\n  ", "   %zu 次运行\n  "), p->wall.count);
  }
}

/* One more item of a list. */
static void item(hn_str *o, const hn_look *look, bool *first, const char *text) {
  hn_paint(o, look, HN_DIM, "%s%s", *first ? "  " : HN_IN(look, ", ", "，"), text);
  *first = false;
}

/* How it was run; a foreign profile does not tell everything. */
static void summary_items(hn_str *o, const hn_look *look, const hone_facts_meta *m) {
  char text[64];
  bool first = true;
  if (m->batch >= 1) {
    snprintf(text, sizeof text, HN_IN(look, "batch %.0f", "批量 %.0f"), m->batch);
    item(o, look, &first, text);
  }
  if (m->precision || m->opt_level >= 0) item(o, look, &first, m->precision ? m->precision : "f32");
  if (m->opt_level >= 0) {
    snprintf(text, sizeof text, HN_IN(look, "level %.0f", "级别 %.0f"), m->opt_level);
    item(o, look, &first, text);
  }
  if (m->device) item(o, look, &first, m->device);
  if (m->threads > 0) {
    snprintf(text, sizeof text, HN_IN(look, "%.0f thread%s", "%.0f 个线程%s"), m->threads,
             m->threads == 1 || look->zh ? "" : "s");
    item(o, look, &first, text);
  }
  if (m->tool && strcmp(m->tool, "hone") != 0) {
    item(o, look, &first, HN_IN(look, "measured by ", "测量工具 "));
    hn_paint(o, look, HN_DIM, "%s%s%s", m->tool, m->tool_version ? " " : "",
             m->tool_version ? m->tool_version : "");
  }
}

/* Without a batch size nobody knows how many samples a run is. */
static const char *per_second(const hn_look *look, const hone_facts_meta *m) {
  return m->batch >= 1 ? HN_IN(look, "%.1f samples/s", "每秒 %.1f 个样本")
                       : HN_IN(look, "%.1f runs/s", "每秒 %.1f 次运行");
}

/* What the plan predicted beside what the runs used. */
static void activations(hn_str *o, const hn_look *look, const hone_memory_facts *m) {
  const double mib = 1024 * 1024;
  if (!m->predicted_peak) return;
  hn_show(o, HN_IN(look, "  activations at peak: %.2f MiB predicted, ", "  激活值峰值：预计 %.2f MiB，"),
          (double)m->predicted_peak / mib);
  if (m->actual_peak)
    hn_show(o, HN_IN(look, "%.2f MiB used", "实际 %.2f MiB"), (double)m->actual_peak / mib);
  else
    hn_str_puts(o, HN_IN(look, "use not measured", "实际未测量"));
  if (m->weights) hn_show(o, HN_IN(look, "; weights %.2f MiB", "；权重 %.2f MiB"), (double)m->weights / mib);
  hn_str_putc(o, '\n');
}

/* How much of a quantised model's products are integers'. */
static void integers(hn_str *o, const hn_look *look, const hone_profile *p) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(p->facts, &n);
  bool quantised = p->integer_macs > 0;
  for (size_t i = 0; i < n && !quantised; i++)
    quantised = steps[i].op_type && (!strcmp(steps[i].op_type, "QuantizeLinear") ||
                                     !strcmp(steps[i].op_type, "DequantizeLinear") ||
                                     !strcmp(steps[i].op_type, "DynamicQuantizeLinear"));
  if (!quantised || p->macs <= 0) return;
  hn_show(o,
          HN_IN(look, "  %.0f million multiply-adds, %.1f %% of them on integers of 8 bits\n",
                "  乘加 %.0f 百万次，其中 %.1f %% 由 8 位整数完成\n"),
          p->macs / 1e6, 100 * p->integer_macs / p->macs);
}

static void summary(hn_str *o, const hn_look *look, const hone_report_input *in) {
  const hone_profile *p = hn_report_current(in);
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  hn_paint(o, look, HN_BOLD, "%s", hn_report_title(in));
  summary_items(o, look, m);
  hn_str_puts(o, "\n\n  ");
  if (!is_timed(p)) {
    hn_paint(o, look, HN_YELLOW, "%s", HN_IN(look, "nothing was timed", "没有计时"));
    hn_show(o, HN_IN(look, "   %zu layer%s", "   %zu 层%s"), p->layer_count,
            p->layer_count == 1 || look->zh ? "" : "s");
    if (p->flops > 0)
      hn_show(o, HN_IN(look, "   %.2f GFLOP   %.1f MB moved", "   %.2f GFLOP   搬运 %.1f MB"), p->flops / 1e9,
              p->bytes / 1e6);
    hn_str_putc(o, '\n');
    return;
  }
  latency(o, look, p, m);
  hn_paint(o, look, HN_BOLD, per_second(look, m), p->throughput.measured_fps);
  if (p->gflops > 0) hn_show(o, "   %.1f GFLOP/s   %.1f GB/s", p->gflops, p->gbs);
  const char *source;
  uint64_t peak = hn_report_memory_peak(p, &source);
  if (peak)
    hn_show(o,
            hone_facts_get_memory(p->facts)->device_peak
                ? HN_IN(look, "   device memory %.1f MiB", "   设备内存 %.1f MiB")
                : HN_IN(look, "   peak memory %.1f MiB", "   内存峰值 %.1f MiB"),
            (double)peak / (1024 * 1024));
  hn_str_putc(o, '\n');
  activations(o, look, hone_facts_get_memory(p->facts));
  integers(o, look, p);
  if (m->interrupted != 0)
    hn_paint(o, look, HN_YELLOW,
             HN_IN(look, "  interrupted: %zu of %.0f runs are complete\n",
                   "  被中断：%zu 次（共 %.0f 次）运行完整\n"),
             p->iterations, m->runs);
}

static hn_color heat(double pct) { return pct >= 10 ? HN_RED : pct >= 4 ? HN_YELLOW : HN_PLAIN; }

const char *hn_limit_words(const hn_look *look, hone_limit bound) {
  static const char *const chinese[] = {"未知", "计算", "内存", "延迟"};
  return look->zh ? chinese[bound] : hone_limit_name(bound);
}

/* Percent of the wall; of a window of a program's life, of what was computed in it (NAN: it is no
 * computation).
 */
static double share_of(const hone_profile *p, const hone_layer *l, double ms, double pct) {
  if (!hn_profile_is_window(p, HN_WINDOW_IDLE)) return pct;
  const double work = hn_typical_work_ms(p);
  return (l->kind == HONE_SPAN_KERNEL || l->kind == HONE_SPAN_REFORMAT) && work > 0 ? 100 * ms / work : NAN;
}

static double type_share(const hone_profile *p, const hone_type_share *t) {
  size_t i = 0;
  while (i + 1 < p->layer_count && strcmp(p->layers[i].type, t->type) != 0) i++;
  return p->layer_count ? share_of(p, &p->layers[i], t->time_ms, t->pct) : t->pct;
}

static void window_line(hn_str *o, const hn_look *look, const hone_profile *p) {
  if (hn_profile_is_window(p, HN_WINDOW_IDLE))
    hn_paint(o, look, HN_DIM, "  %s\n",
             HN_IN(look, "shares of what was computed: most of the record is something else",
                   "占比只针对实际计算：记录的大部分是别的内容"));
}

/* The tactic computes more or less than the operator's formula counts. */
static bool differs(const hone_layer *l) {
  return l->executed_flops > 0 && fabs(l->executed_flops - l->flops) > 0.005 * l->flops;
}

static bool any_differs(const hone_profile *p) {
  bool any = false;
  for (size_t i = 0; i < p->layer_count; i++) any = any || differs(&p->layers[i]);
  return any;
}

static void layer_row(hn_table *t, const hn_look *look, const hone_profile *p, const hone_layer *l,
                      bool executed) {
  const size_t next = executed ? 11 : 10; /* behind the speeds */
  const double share = share_of(p, l, l->time_ms, l->pct);
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", l->name);
  hn_table_cell(t, 1, HN_PLAIN, "%s", l->type);
  hn_table_cell(t, 2, HN_BOLD, "%.3f", l->time_ms);
  if (!isnan(share)) hn_table_cell(t, 3, heat(share), "%.1f", share);
  hn_table_cell(t, 4, HN_PLAIN, "%g", l->calls);
  if (isfinite(l->stats.p50)) hn_table_cell(t, 5, HN_PLAIN, "%.3f", l->stats.p50);
  if (isfinite(l->stats.p95)) hn_table_cell(t, 6, HN_PLAIN, "%.3f", l->stats.p95);
  if (isfinite(l->stats.min)) hn_table_cell(t, 7, HN_PLAIN, "%.3f", l->stats.min);
  if (isfinite(l->stats.cv))
    hn_table_cell(t, 8, l->stats.cv > NOISY ? HN_YELLOW : HN_PLAIN, "%.2f%s", l->stats.cv,
                  l->stats.cv > NOISY ? "!" : "");
  if (l->flops > 0) hn_table_cell(t, 9, HN_PLAIN, "%.1f", l->gflops);
  if (executed && differs(l)) hn_table_cell(t, 10, HN_PLAIN, "%.1f", l->executed_gflops);
  if (l->bytes > 0) hn_table_cell(t, next, HN_PLAIN, "%.1f", l->gbs);
  if (l->roof_pct > 0) hn_table_cell(t, next + 1, HN_PLAIN, "%.0f", l->roof_pct);
  hn_table_cell(t, next + 2, HN_CYAN, "%s%s%s",
                l->bound == HONE_LIMIT_UNKNOWN ? "" : hn_limit_words(look, l->bound),
                l->bound == HONE_LIMIT_MEMORY && l->memory_level ? " " : "",
                l->bound == HONE_LIMIT_MEMORY && l->memory_level ? l->memory_level : "");
  hn_table_cell(t, next + 3, HN_DIM, "%s", l->tactic ? l->tactic : "");
}

static void layer_columns(hn_table *t, const hn_look *look, bool executed) {
  hn_table_column(t, HN_IN(look, "layer", "层"), true, 28, 0);
  hn_table_column(t, HN_IN(look, "type", "类型"), true, 6, 0);
  hn_table_column(t, HN_IN(look, "ms", "毫秒"), false, 0, 0);
  hn_table_column(t, "%", false, 0, 0);
  hn_table_column(t, HN_IN(look, "calls", "次数"), false, 0, 8);
  hn_table_column(t, "p50", false, 0, 4);
  hn_table_column(t, "p95", false, 0, 4);
  hn_table_column(t, HN_IN(look, "min", "最小"), false, 0, 6);
  hn_table_column(t, "CV", false, 0, 3);
  hn_table_column(t, "GFLOP/s", false, 0, 2);
  if (executed) hn_table_column(t, HN_IN(look, "executed", "实际执行"), false, 0, 7);
  hn_table_column(t, "GB/s", false, 0, 5);
  hn_table_column(t, HN_IN(look, "roof %", "屋顶 %"), false, 0, 1);
  hn_table_column(t, HN_IN(look, "bound", "受限于"), true, 7, 1);
  hn_table_column(t, HN_IN(look, "tactic", "战术"), true, 8, 9);
}

static void layers(hn_str *o, const hn_look *look, const hone_profile *p, size_t most) {
  size_t n = most && most < p->layer_count ? most : p->layer_count;
  hn_heading(o, look, HN_IN(look, "Layers (%zu)", "层（%zu）"), p->layer_count);
  hn_table t = {0};
  const bool executed = any_differs(p);
  layer_columns(&t, look, executed);
  for (size_t i = 0; i < n; i++)
    layer_row(&t, look, p, n < p->layer_count ? &p->layers[p->by_time[i]] : &p->layers[i], executed);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  if (n < p->layer_count)
    hn_paint(o, look, HN_DIM, HN_IN(look, "  the %zu slowest; %zu more\n", "  最慢的 %zu 个；还有 %zu 个\n"),
             n, p->layer_count - n);
}

static void top5(hn_str *o, const hn_look *look, const hone_profile *p) {
  hn_heading(o, look, "%s", HN_IN(look, "Top-5", "最慢的五层"));
  for (size_t i = 0; i < 5 && i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[p->by_time[i]];
    hn_show(o, "  %zu. ", i + 1);
    /* Names of compiled kernels run to hundreds of characters. */
    const int room = look->width - 55 - (int)strlen(l->type);
    hn_cut(o, look, HN_BOLD, l->name, room < 24 ? 24 : room);
    hn_paint(o, look, HN_DIM, " (%s)", l->type);
    /* As findings have it: a mean that a few runs made is no place to start. */
    const double ms = hn_typical_ms(l), wall = hn_typical_wall_ms(p);
    const double share = share_of(p, l, ms, wall > 0 ? 100 * ms / wall : 0);
    hn_show(o, "  %.3f ms", ms);
    if (!isnan(share)) hn_show(o, ", %.1f %%", share);
    if (l->stats.count > 1 && l->stats.p50 > 0 && l->stats.mean >= 2 * l->stats.p50)
      hn_paint(o, look, HN_YELLOW,
               HN_IN(look, " usually, %.3f ms on average (%zu runs)", "（通常），平均 %.3f ms（%zu 次运行）"),
               l->stats.mean, l->stats.count);
    if (l->roof_pct > 0)
      hn_show(o, HN_IN(look, ", %.0f %% of the roof", "，达到屋顶线的 %.0f %%"), l->roof_pct);
    if (l->roof_pct > 0 && l->bound != HONE_LIMIT_UNKNOWN)
      hn_show(o, HN_IN(look, ", %s-bound", "，受 %s 限制"), hn_limit_words(look, l->bound));
    hn_str_putc(o, '\n');
  }
}

static void types(hn_str *o, const hn_look *look, const hone_profile *p) {
  hn_heading(o, look, "%s", HN_IN(look, "Share by operator type", "各算子类型的占比"));
  window_line(o, look, p);
  size_t widest = 0;
  for (size_t i = 0; i < p->type_count && i < 12; i++)
    if (strlen(p->types[i].type) > widest) widest = strlen(p->types[i].type);
  enum {
    SHARE = 11,
    TIME = 14,
    LAYERS = 6,
    GAP = 2,
    LEAST_BAR = 4,
    MOST_BAR = 30
  }; /* columns, with margins */
  if (widest > 28) widest = 28;
  if ((int)widest > look->width - SHARE - TIME) widest = (size_t)(look->width - SHARE - TIME);
  /* What the name, its share and its time leave is for the number of layers, and then for the bar. */
  int room = look->width - (int)widest - SHARE - TIME;
  const bool counted = room >= LAYERS;
  room -= LAYERS + GAP + 1;
  const int bar = room < LEAST_BAR ? 0 : room > MOST_BAR ? MOST_BAR : room;
  for (size_t i = 0; i < p->type_count && i < 12; i++) {
    const hone_type_share *t = &p->types[i];
    hn_str_puts(o, "  ");
    hn_paint(o, look, HN_PLAIN, "%-*.*s", (int)widest, (int)widest, t->type);
    const double share = type_share(p, t);
    if (isnan(share))
      hn_str_puts(o, "      -  ");
    else
      hn_show(o, "  %5.1f %%", share);
    hn_show(o, "  %9.3f ms", t->time_ms);
    if (counted) hn_show(o, "  %4zu", t->layers);
    hn_str cells = {0};
    if (bar && share > 0) hn_bar(&cells, look, share / 100, bar);
    if (cells.len) hn_str_puts(o, "  "), hn_str_append(o, cells.ptr, cells.len);
    if (cells.failed) o->failed = true;
    hn_str_free(&cells);
    hn_str_putc(o, '\n');
  }
}

static void term(hn_str *o, const char *name, double ms, bool always, bool *first) {
  if (!always && ms == 0) return;
  hn_show(o, "%s%s %.3f", *first ? "" : " + ", name, ms);
  *first = false;
}

static void not_measured(hn_str *o, const hn_look *look, const hone_profile *p) {
  size_t n;
  const hone_note *missing = hone_facts_unmeasured(p->facts, &n);
  for (size_t i = 0; i < n; i++)
    hn_paint(o, look, HN_DIM, HN_IN(look, "  not measured: %s (%s)\n", "  未测量：%s（%s）\n"),
             or_unknown(missing[i].what), or_unknown(missing[i].text));
}

static void closure(hn_str *o, const hn_look *look, const hone_profile *p) {
  const hone_closure *c = &p->closure;
  const hone_stages *s = &p->stages;
  hn_heading(o, look, "%s", HN_IN(look, "Where the time goes", "时间花在哪里"));
  hn_show(
      o,
      "  T_pre %.3f + T_h2d %.3f + T_infer %.3f + T_d2h %.3f + T_post %.3f + T_idle %.3f = T_total %.3f ms\n",
      s->pre_ms, s->h2d_ms, s->infer_ms, s->d2h_ms, s->post_ms, s->idle_ms, s->total_ms);
  bool first = true;
  hn_str_puts(o, "  ");
  term(o, HN_IN(look, "layers", "层"), c->layers_ms, true, &first);
  term(o, HN_IN(look, "reformats", "布局转换"), c->reformats_ms, false, &first);
  term(o, HN_IN(look, "host", "主机"), c->host_ms, false, &first);
  term(o, HN_IN(look, "pre", "前处理"), c->pre_ms, false, &first);
  term(o, HN_IN(look, "post", "后处理"), c->post_ms, false, &first);
  term(o, HN_IN(look, "gaps", "空隙"), c->gaps_ms, true, &first);
  term(o, HN_IN(look, "copies", "拷贝"), c->copies_ms, true, &first);
  term(o, HN_IN(look, "sync", "同步"), c->sync_ms, true, &first);
  hn_show(o, HN_IN(look, " = wall %.3f ms, ", " = 墙钟 %.3f 毫秒，"), c->wall_ms);
  if (c->has_outer_clock) {
    bool bad = c->residual_pct > 2 || c->residual_pct < -2;
    hn_paint(o, look, bad ? HN_RED : HN_GREEN, HN_IN(look, "residual %.2f %%", "残差 %.2f %%"),
             c->residual_pct);
    hn_str_putc(o, '\n');
  } else
    hn_paint(o, look, HN_DIM,
             HN_IN(look, "residual not measured (no outer clock)\n", "残差未测量（没有外部时钟）\n"));
  if (p->note) hn_paint(o, look, HN_DIM, "  %s\n", p->note);
  if (p->doubt)
    hn_paint(o, look, HN_RED, HN_IN(look, "  the record contradicts itself: %s\n", "  记录自相矛盾：%s\n"),
             p->doubt);
  if (c->longest_gap_ms > 0.01 * c->wall_ms)
    hn_paint(o, look, HN_DIM,
             HN_IN(look, "  longest gap %.3f ms, before %s\n", "  最长的空隙 %.3f 毫秒，在 %s 之前\n"),
             c->longest_gap_ms,
             c->longest_gap_before ? c->longest_gap_before : HN_IN(look, "the end of the run", "运行结束"));
  if (!p->throughput.slowest_stage) return; /* none of the stages took time */
  hn_str_puts(o, HN_IN(look, "  ceiling ", "  上限："));
  hn_show(o, per_second(look, hone_facts_get_meta(p->facts)), p->throughput.serial_fps);
  hn_show(o,
          HN_IN(look, " one stage after another, %.1f with overlap (slowest: %s)\n",
                "（各阶段依次执行），重叠时 %.1f（最慢：%s）\n"),
          p->throughput.overlapped_fps, p->throughput.slowest_stage);
}

/* One row: what runs today (NAN: not given or not told), before, after, and the change between the last two.
 */
static void change_row(hn_table *t, const char *what, double today, double before, double after,
                       const char *format, bool less_is_better) {
  char a[32], b[32], c[32];
  const int first = t->column_count > 4; /* today has a column */
  snprintf(a, sizeof a, format, before);
  snprintf(b, sizeof b, format, after);
  snprintf(c, sizeof c, format, today);
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", what);
  if (first && !isnan(today)) hn_table_cell(t, 1, HN_PLAIN, "%s", c);
  hn_table_cell(t, 1 + (size_t)first, HN_PLAIN, "%s", isnan(before) ? "-" : a);
  hn_table_cell(t, 2 + (size_t)first, HN_BOLD, "%s", isnan(after) ? "-" : b);
  if (before > 0 && after > 0) {
    double change = 100 * (after / before - 1);
    bool good = less_is_better ? change < 0 : change > 0;
    hn_table_cell(t, 3 + (size_t)first,
                  change > -0.5 && change < 0.5 ? HN_PLAIN
                  : good                        ? HN_GREEN
                                                : HN_RED,
                  "%+.1f %%", change);
  }
}

/* "before: level 0", for a reader who runs something else today. */
static void side_head(char head[64], const hn_look *look, const char *en, const char *zh,
                      const hone_profile *p) {
  const double level = hone_facts_get_meta(p->facts)->opt_level;
  if (level >= 0)
    snprintf(head, 64, HN_IN(look, "%s (hone, level %.0f)", "%s（hone，级别 %.0f）"), HN_IN(look, en, zh),
             level);
  else
    snprintf(head, 64, "%s", HN_IN(look, en, zh));
}

static void today_head(char head[64], const hone_profile *today) {
  const hone_facts_meta *m = hone_facts_get_meta(today->facts);
  snprintf(head, 64, "%.40s%s%.20s", or_unknown(m->tool), m->tool_version ? " " : "",
           m->tool_version ? m->tool_version : "");
}

static double told(double value) { return value > 0 ? value : NAN; }

static void change_rows(hn_table *t, const hn_look *look, const hone_report_input *in) {
  const hone_profile *a = in->baseline, *b = in->optimized, *c = in->today;
  /* A single sum of layers is no distribution. */
  const bool spread = c && c->wall.count > 1;
  change_row(t, HN_IN(look, "median latency, ms", "延迟中位数，毫秒"), c ? told(c->wall.p50) : NAN,
             a->wall.p50, b->wall.p50, "%.3f", true);
  change_row(t, HN_IN(look, "best latency, ms", "最短延迟，毫秒"), spread ? told(c->wall.min) : NAN,
             a->wall.min, b->wall.min, "%.3f", true);
  change_row(t, HN_IN(look, "p95 latency, ms", "p95 延迟，毫秒"), spread ? told(c->wall.p95) : NAN,
             a->wall.p95, b->wall.p95, "%.3f", true);
  change_row(t, HN_IN(look, "samples/s", "样本每秒"),
             c && hone_facts_get_meta(c->facts)->batch >= 1 ? told(c->throughput.measured_fps) : NAN,
             a->throughput.measured_fps, b->throughput.measured_fps, "%.1f", false);
  change_row(t, "GFLOP/s", c ? told(c->gflops) : NAN, told(a->gflops), told(b->gflops), "%.1f", false);
  change_row(t, HN_IN(look, "steps", "步骤"), c ? (double)c->layer_count : NAN, (double)a->layer_count,
             (double)b->layer_count, "%.0f", true);
  change_row(t, HN_IN(look, "bytes moved, MB", "搬运的字节，MB"), c ? told(c->bytes / 1e6) : NAN,
             a->bytes / 1e6, b->bytes / 1e6, "%.1f", true);
  change_row(t, HN_IN(look, "activations at peak, MiB", "激活值峰值，MiB"), NAN,
             (double)hone_facts_get_memory(a->facts)->actual_peak / 1048576,
             (double)hone_facts_get_memory(b->facts)->actual_peak / 1048576, "%.1f", true);
}

static void before_after(hn_str *o, const hn_look *look, const hone_report_input *in) {
  const hone_profile *a = in->baseline, *b = in->optimized;
  char before[64], after[64], today[64];
  hn_heading(o, look, "%s", HN_IN(look, "Before and after", "前后对比"));
  hn_table t = {0};
  side_head(before, look, "before", "之前", a);
  side_head(after, look, "after", "之后", b);
  hn_table_column(&t, "", true, 12, 0);
  if (in->today) {
    today_head(today, in->today);
    hn_table_column(&t, today, false, 0, 0);
  }
  hn_table_column(&t, before, false, 0, 0);
  hn_table_column(&t, after, false, 0, 0);
  hn_table_column(&t, HN_IN(look, "change", "变化"), false, 0, 0);
  change_rows(&t, look, in);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  double speedup = hn_report_speedup(in);
  if (in->has_prediction && in->predicted_unsure_ms > 0)
    hn_show(o,
            HN_IN(look,
                  "\n  predicted no change that can be told (less than %.3f ms), measured %+.1f %% (x%.2f)",
                  "\n  预计没有能测出的变化（小于 %.3f 毫秒），实测 %+.1f %%（x%.2f）"),
            in->predicted_unsure_ms, 100 * (speedup - 1), speedup);
  else if (in->has_prediction)
    hn_show(o,
            HN_IN(look, "\n  predicted %+.1f %%, measured %+.1f %% (x%.2f)",
                  "\n  预计 %+.1f %%，实测 %+.1f %%（x%.2f）"),
            in->predicted_gain_pct, 100 * (speedup - 1), speedup);
  else
    hn_show(o, HN_IN(look, "\n  measured %+.1f %% (x%.2f)", "\n  实测 %+.1f %%（x%.2f）"),
            100 * (speedup - 1), speedup);
  const hone_comparison *c = in->comparison;
  hn_show(o, "%s%s\n", c && c->wall.change == HONE_CHANGE_SAME ? HN_IN(look, ", ", "，") : "",
          c && c->wall.change == HONE_CHANGE_SAME ? hn_change_words(look, &c->wall) : "");
  if (in->today && in->today->wall.p50 > 0 && b->wall.p50 > 0) {
    hn_str_puts(o, "  ");
    hn_paint(o, look, HN_BOLD, HN_IN(look, "against %s, which runs today: x%.2f", "相对目前运行的 %s：x%.2f"),
             today, in->today->wall.p50 / b->wall.p50);
    hn_str_puts(o, HN_IN(look, " (its figures are from its own profile)\n", "（其数字来自它自己的记录）\n"));
  }
}

static const char *verdict_word(const hn_look *look, const char *verdict) {
  static const char *const words[][2] = {{"same", "相同"}, {"different", "不同"}, {"mistrusted", "不可信"}};
  for (size_t i = 0; look->zh && verdict && i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i][0], verdict) == 0) return words[i][1];
  return or_unknown(verdict);
}

static void verification(hn_str *o, const hn_look *look, const hone_report_verdict *v) {
  bool same = v->verdict && strcmp(v->verdict, "same") == 0;
  hn_str_puts(o, HN_IN(look, "  answers: ", "  答案："));
  hn_paint(o, look, same ? HN_GREEN : HN_RED, "%s", verdict_word(look, v->verdict));
  hn_show(o,
          HN_IN(look, " on %lld inputs, largest difference %.3g (relative %.3g, allowed %.3g)\n",
                "，%lld 组输入，最大差异 %.3g（相对 %.3g，允许 %.3g）\n"),
          (long long)v->inputs, v->max_abs, v->max_rel, v->tolerance);
  if (v->first_different_node)
    hn_paint(o, look, HN_RED, HN_IN(look, "  first different node: %s\n", "  第一个不同的节点：%s\n"),
             v->first_different_node);
  if (v->note) hn_paint(o, look, HN_DIM, "  %s\n", v->note);
}

hone_status hn_report_text(const hone_report_input *in, hn_str *o, hone_error *error) {
  (void)error;
  hn_look look = {in->width > 0 ? in->width : 100, in->colors, in->unicode,
                  hn_report_language(in) == HONE_LANGUAGE_ZH};
  if (look.width < 40) look.width = 40;
  unsigned parts = in->sections ? in->sections : HONE_SECTION_ALL;
  const hone_profile *p = hn_report_current(in);
  if (parts & HONE_SECTION_SUMMARY) summary(o, &look, in);
  if (parts & HONE_SECTION_LAYERS) layers(o, &look, p, in->max_layers);
  const bool timed = is_timed(p);
  if (parts & HONE_SECTION_TOP5 && timed) top5(o, &look, p);
  if (parts & HONE_SECTION_TYPES && timed) types(o, &look, p);
  if (parts & HONE_SECTION_CLOSURE && timed) closure(o, &look, p);
  if (parts & HONE_SECTION_CLOSURE) not_measured(o, &look, p);
  if (parts & HONE_SECTION_COUNTERS) hn_counters_text(o, &look, p, in->max_layers);
  if ((parts & HONE_SECTION_FINDINGS) && in->findings) {
    const bool pair = in->baseline && in->optimized;
    hn_report_findings_text(o, &look, in->findings, timed, pair ? in->baseline->wall.p50 : 0,
                            pair ? in->optimized->wall.p50 : 0);
  }
  if ((parts & HONE_SECTION_BEFORE_AFTER) && in->optimized) before_after(o, &look, in);
  if ((parts & HONE_SECTION_COMPARISON) && in->comparison)
    hn_comparison_text(o, &look, in->comparison, in->max_layers);
  if ((parts & HONE_SECTION_BEFORE_AFTER) && in->verification) verification(o, &look, in->verification);
  if ((parts & HONE_SECTION_FINDINGS) && in->left) hn_report_left_text(o, &look, in->left, in->findings);
  return HONE_OK;
}
