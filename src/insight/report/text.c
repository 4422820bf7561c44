/* The report for a terminal: summary, layer table, Top-5, shares, closure, findings, before and after. */
#include "insight/report/report.h"

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
    hn_str_printf(o, "   mean of %.0f runs\n  ", m->runs);
  else if (p->wall.count == 1)
    hn_str_puts(o, "   1 run\n  ");
  else {
    hn_str_printf(o, " median   %.3f mean   %.3f p95   %.3f min   CV ", p->wall.mean, p->wall.p95,
                  p->wall.min);
    hn_paint(o, look, p->wall.cv > NOISY ? HN_YELLOW : HN_PLAIN, "%.3f", p->wall.cv);
    hn_str_printf(o, "   %zu runs\n  ", p->wall.count);
  }
}

static void summary(hn_str *o, const hn_look *look, const hone_report_input *in) {
  const hone_profile *p = hn_report_current(in);
  const hone_facts_meta *m = hone_facts_get_meta(p->facts);
  hn_paint(o, look, HN_BOLD, "%s", hn_report_title(in));
  hn_paint(o, look, HN_DIM, "  batch %.0f", m->batch < 1 ? 1 : m->batch);
  /* A foreign profile does not tell everything. */
  if (m->precision || m->opt_level >= 0)
    hn_paint(o, look, HN_DIM, ", %s", m->precision ? m->precision : "f32");
  if (m->opt_level >= 0) hn_paint(o, look, HN_DIM, ", level %.0f", m->opt_level);
  hn_paint(o, look, HN_DIM, ", %s", m->device ? m->device : "unknown device");
  if (m->threads > 0) hn_paint(o, look, HN_DIM, ", %.0f thread%s", m->threads, m->threads == 1 ? "" : "s");
  if (m->tool && strcmp(m->tool, "hone") != 0)
    hn_paint(o, look, HN_DIM, ", measured by %s%s%s", m->tool, m->tool_version ? " " : "",
             m->tool_version ? m->tool_version : "");
  hn_str_puts(o, "\n\n  ");
  if (!is_timed(p)) {
    hn_paint(o, look, HN_YELLOW, "nothing was timed");
    hn_str_printf(o, "   %zu layers", p->layer_count);
    if (p->flops > 0) hn_str_printf(o, "   %.2f GFLOP   %.1f MB moved", p->flops / 1e9, p->bytes / 1e6);
    hn_str_putc(o, '\n');
    return;
  }
  latency(o, look, p, m);
  hn_paint(o, look, HN_BOLD, "%.1f samples/s", p->throughput.measured_fps);
  if (p->gflops > 0) hn_str_printf(o, "   %.1f GFLOP/s   %.1f GB/s", p->gflops, p->gbs);
  const char *source;
  uint64_t peak = hn_report_memory_peak(p, &source);
  if (peak) hn_str_printf(o, "   peak memory %.1f MiB", (double)peak / (1024 * 1024));
  hn_str_putc(o, '\n');
  if (m->interrupted != 0)
    hn_paint(o, look, HN_YELLOW, "  interrupted: %zu of %.0f runs are complete\n", p->iterations, m->runs);
}

static hn_color heat(double pct) { return pct >= 10 ? HN_RED : pct >= 4 ? HN_YELLOW : HN_PLAIN; }

static void layer_row(hn_table *t, const hone_layer *l) {
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", l->name);
  hn_table_cell(t, 1, HN_PLAIN, "%s", l->type);
  hn_table_cell(t, 2, HN_BOLD, "%.3f", l->time_ms);
  hn_table_cell(t, 3, heat(l->pct), "%.1f", l->pct);
  hn_table_cell(t, 4, HN_PLAIN, "%g", l->calls);
  if (isfinite(l->stats.p50)) hn_table_cell(t, 5, HN_PLAIN, "%.3f", l->stats.p50);
  if (isfinite(l->stats.p95)) hn_table_cell(t, 6, HN_PLAIN, "%.3f", l->stats.p95);
  if (isfinite(l->stats.min)) hn_table_cell(t, 7, HN_PLAIN, "%.3f", l->stats.min);
  if (isfinite(l->stats.cv))
    hn_table_cell(t, 8, l->stats.cv > NOISY ? HN_YELLOW : HN_PLAIN, "%.2f%s", l->stats.cv,
                  l->stats.cv > NOISY ? "!" : "");
  if (l->flops > 0) hn_table_cell(t, 9, HN_PLAIN, "%.1f", l->gflops);
  if (l->bytes > 0) hn_table_cell(t, 10, HN_PLAIN, "%.1f", l->gbs);
  if (l->roof_pct > 0) hn_table_cell(t, 11, HN_PLAIN, "%.0f", l->roof_pct);
  hn_table_cell(t, 12, HN_CYAN, "%s%s%s", l->bound == HONE_LIMIT_UNKNOWN ? "" : hone_limit_name(l->bound),
                l->bound == HONE_LIMIT_MEMORY && l->memory_level ? " " : "",
                l->bound == HONE_LIMIT_MEMORY && l->memory_level ? l->memory_level : "");
  hn_table_cell(t, 13, HN_DIM, "%s", l->tactic ? l->tactic : "");
}

static void layer_columns(hn_table *t) {
  hn_table_column(t, "layer", true, 28, 0);
  hn_table_column(t, "type", true, 6, 0);
  hn_table_column(t, "ms", false, 0, 0);
  hn_table_column(t, "%", false, 0, 0);
  hn_table_column(t, "calls", false, 0, 8);
  hn_table_column(t, "p50", false, 0, 4);
  hn_table_column(t, "p95", false, 0, 4);
  hn_table_column(t, "min", false, 0, 6);
  hn_table_column(t, "CV", false, 0, 3);
  hn_table_column(t, "GFLOP/s", false, 0, 2);
  hn_table_column(t, "GB/s", false, 0, 5);
  hn_table_column(t, "roof %", false, 0, 1);
  hn_table_column(t, "bound", true, 7, 1);
  hn_table_column(t, "tactic", true, 8, 9);
}

static void layers(hn_str *o, const hn_look *look, const hone_profile *p, size_t most) {
  size_t n = most && most < p->layer_count ? most : p->layer_count;
  hn_heading(o, look, "Layers (%zu)", p->layer_count);
  hn_table t = {0};
  layer_columns(&t);
  for (size_t i = 0; i < n; i++)
    layer_row(&t, n < p->layer_count ? &p->layers[p->by_time[i]] : &p->layers[i]);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  if (n < p->layer_count) hn_paint(o, look, HN_DIM, "  the %zu slowest; %zu more\n", n, p->layer_count - n);
}

static void top5(hn_str *o, const hn_look *look, const hone_profile *p) {
  hn_heading(o, look, "Top-5");
  for (size_t i = 0; i < 5 && i < p->layer_count; i++) {
    const hone_layer *l = &p->layers[p->by_time[i]];
    hn_str_printf(o, "  %zu. ", i + 1);
    /* Names of compiled kernels run to hundreds of characters. */
    const int room = look->width - 55 - (int)strlen(l->type);
    hn_cut(o, look, HN_BOLD, l->name, room < 24 ? 24 : room);
    hn_paint(o, look, HN_DIM, " (%s)", l->type);
    hn_str_printf(o, "  %.3f ms, %.1f %%", l->time_ms, l->pct);
    if (l->roof_pct > 0) hn_str_printf(o, ", %.0f %% of the roof", l->roof_pct);
    if (l->roof_pct > 0 && l->bound != HONE_LIMIT_UNKNOWN)
      hn_str_printf(o, ", %s-bound", hone_limit_name(l->bound));
    hn_str_putc(o, '\n');
  }
}

static void types(hn_str *o, const hn_look *look, const hone_profile *p) {
  hn_heading(o, look, "Share by operator type");
  size_t widest = 0;
  for (size_t i = 0; i < p->type_count && i < 12; i++)
    if (strlen(p->types[i].type) > widest) widest = strlen(p->types[i].type);
  if (widest > 28) widest = 28;
  int room = look->width - (int)widest - 34; /* what the figures before the bar leave */
  room = room < 0 ? 0 : room > 30 ? 30 : room;
  for (size_t i = 0; i < p->type_count && i < 12; i++) {
    const hone_type_share *t = &p->types[i];
    hn_str_puts(o, "  ");
    hn_paint(o, look, HN_PLAIN, "%-*.28s", (int)widest, t->type);
    hn_str_printf(o, "  %5.1f %%  %9.3f ms  %4zu  ", t->pct, t->time_ms, t->layers);
    hn_bar(o, look, t->pct / 100, room);
    hn_str_putc(o, '\n');
  }
}

static void term(hn_str *o, const char *name, double ms, bool always, bool *first) {
  if (!always && ms == 0) return;
  hn_str_printf(o, "%s%s %.3f", *first ? "" : " + ", name, ms);
  *first = false;
}

static void not_measured(hn_str *o, const hn_look *look, const hone_profile *p) {
  size_t n;
  const hone_note *missing = hone_facts_unmeasured(p->facts, &n);
  for (size_t i = 0; i < n; i++)
    hn_paint(o, look, HN_DIM, "  not measured: %s (%s)\n", or_unknown(missing[i].what),
             or_unknown(missing[i].text));
}

static void closure(hn_str *o, const hn_look *look, const hone_profile *p) {
  const hone_closure *c = &p->closure;
  const hone_stages *s = &p->stages;
  hn_heading(o, look, "Where the time goes");
  hn_str_printf(
      o,
      "  T_pre %.3f + T_h2d %.3f + T_infer %.3f + T_d2h %.3f + T_post %.3f + T_idle %.3f = T_total %.3f ms\n",
      s->pre_ms, s->h2d_ms, s->infer_ms, s->d2h_ms, s->post_ms, s->idle_ms, s->total_ms);
  bool first = true;
  hn_str_puts(o, "  ");
  term(o, "layers", c->layers_ms, true, &first);
  term(o, "reformats", c->reformats_ms, false, &first);
  term(o, "host", c->host_ms, false, &first);
  term(o, "pre", c->pre_ms, false, &first);
  term(o, "post", c->post_ms, false, &first);
  term(o, "gaps", c->gaps_ms, true, &first);
  term(o, "copies", c->copies_ms, true, &first);
  term(o, "sync", c->sync_ms, true, &first);
  hn_str_printf(o, " = wall %.3f ms, ", c->wall_ms);
  if (c->has_outer_clock) {
    bool bad = c->residual_pct > 2 || c->residual_pct < -2;
    hn_paint(o, look, bad ? HN_RED : HN_GREEN, "residual %.2f %%", c->residual_pct);
    hn_str_putc(o, '\n');
  } else
    hn_paint(o, look, HN_DIM, "residual not measured (no outer clock)\n");
  if (p->note) hn_paint(o, look, HN_DIM, "  %s\n", p->note);
  if (p->doubt) hn_paint(o, look, HN_RED, "  the record contradicts itself: %s\n", p->doubt);
  if (c->longest_gap_ms > 0.01 * c->wall_ms)
    hn_paint(o, look, HN_DIM, "  longest gap %.3f ms, before %s\n", c->longest_gap_ms,
             c->longest_gap_before ? c->longest_gap_before : "the end of the run");
  hn_str_printf(o, "  ceiling %.1f samples/s one stage after another, %.1f with overlap (slowest: %s)\n",
                p->throughput.serial_fps, p->throughput.overlapped_fps,
                or_unknown(p->throughput.slowest_stage));
}

static void change_row(hn_table *t, const char *what, double before, double after, const char *format,
                       bool less_is_better) {
  char a[32], b[32];
  snprintf(a, sizeof a, format, before);
  snprintf(b, sizeof b, format, after);
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", what);
  hn_table_cell(t, 1, HN_PLAIN, "%s", a);
  hn_table_cell(t, 2, HN_BOLD, "%s", b);
  if (before > 0 && after > 0) {
    double change = 100 * (after / before - 1);
    bool good = less_is_better ? change < 0 : change > 0;
    hn_table_cell(t, 3,
                  change > -0.5 && change < 0.5 ? HN_PLAIN
                  : good                        ? HN_GREEN
                                                : HN_RED,
                  "%+.1f %%", change);
  }
}

static void before_after(hn_str *o, const hn_look *look, const hone_report_input *in) {
  const hone_profile *a = in->baseline, *b = in->optimized;
  hn_heading(o, look, "Before and after");
  hn_table t = {0};
  hn_table_column(&t, "", true, 12, 0);
  hn_table_column(&t, "before", false, 0, 0);
  hn_table_column(&t, "after", false, 0, 0);
  hn_table_column(&t, "change", false, 0, 0);
  change_row(&t, "median latency, ms", a->wall.p50, b->wall.p50, "%.3f", true);
  change_row(&t, "best latency, ms", a->wall.min, b->wall.min, "%.3f", true);
  change_row(&t, "p95 latency, ms", a->wall.p95, b->wall.p95, "%.3f", true);
  change_row(&t, "samples/s", a->throughput.measured_fps, b->throughput.measured_fps, "%.1f", false);
  change_row(&t, "GFLOP/s", a->gflops, b->gflops, "%.1f", false);
  change_row(&t, "steps", (double)a->layer_count, (double)b->layer_count, "%.0f", true);
  change_row(&t, "bytes moved, MB", a->bytes / 1e6, b->bytes / 1e6, "%.1f", true);
  change_row(&t, "activations at peak, MiB", (double)hone_facts_get_memory(a->facts)->actual_peak / 1048576,
             (double)hone_facts_get_memory(b->facts)->actual_peak / 1048576, "%.1f", true);
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  double speedup = hn_report_speedup(in);
  if (in->has_prediction)
    hn_str_printf(o, "\n  predicted %+.1f %%, measured %+.1f %% (x%.2f)\n", in->predicted_gain_pct,
                  100 * (speedup - 1), speedup);
  else
    hn_str_printf(o, "\n  measured %+.1f %% (x%.2f)\n", 100 * (speedup - 1), speedup);
}

static void verification(hn_str *o, const hn_look *look, const hone_report_verdict *v) {
  bool same = v->verdict && strcmp(v->verdict, "same") == 0;
  hn_str_puts(o, "  answers: ");
  hn_paint(o, look, same ? HN_GREEN : HN_RED, "%s", or_unknown(v->verdict));
  hn_str_printf(o, " on %lld inputs, largest difference %.3g (relative %.3g, allowed %.3g)\n",
                (long long)v->inputs, v->max_abs, v->max_rel, v->tolerance);
  if (v->first_different_node)
    hn_paint(o, look, HN_RED, "  first different node: %s\n", v->first_different_node);
  if (v->note) hn_paint(o, look, HN_DIM, "  %s\n", v->note);
}

hone_status hn_report_text(const hone_report_input *in, hn_str *o, hone_error *error) {
  (void)error;
  hn_look look = {in->width > 0 ? in->width : 100, in->colors, in->unicode};
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
  if ((parts & HONE_SECTION_FINDINGS) && in->findings) hn_report_findings_text(o, &look, in->findings, timed);
  if ((parts & HONE_SECTION_BEFORE_AFTER) && in->optimized) before_after(o, &look, in);
  if ((parts & HONE_SECTION_COMPARISON) && in->comparison)
    hn_comparison_text(o, &look, in->comparison, in->max_layers);
  if ((parts & HONE_SECTION_BEFORE_AFTER) && in->verification) verification(o, &look, in->verification);
  return HONE_OK;
}
