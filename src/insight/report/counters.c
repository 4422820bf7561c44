/* What hardware counters said of the layers: a table for a terminal, columns for a spreadsheet. */
#include "insight/report/report.h"

#include <math.h>
#include <string.h>

/* Counters that readers know, in the order of the table. Those of no name here stand in JSON and CSV only. */
static const struct {
  const char *name, *title, *zh;
  int decimals, priority;
} known[] = {
    {"compute_pct_of_peak", "compute %", "计算 %", 0, 1},
    {"memory_pct_of_peak", "memory %", "内存 %", 0, 1},
    {"tensor_pipe_pct", "tensor %", "张量 %", 0, 2},
    {"dram_pct_of_peak", "DRAM %", "DRAM %", 0, 2},
    {"l2_pct_of_peak", "L2 %", "L2 %", 0, 5},
    {"l1_pct_of_peak", "L1 %", "L1 %", 0, 6},
    {"l2_hit_pct", "L2 hit %", "L2 命中 %", 0, 3},
    {"l1_hit_pct", "L1 hit %", "L1 命中 %", 0, 3},
    {"occupancy_pct", "occupancy %", "占用率 %", 0, 2},
    {"instructions_per_cycle", "instr/cycle", "指令/周期", 2, 4},
    {"issue_slots_pct", "issue %", "发射 %", 0, 7},
    {"branch_uniform_pct", "branch eff. %", "分支效率 %", 0, 5},
    {"threads_per_instruction", "threads/instr", "线程/指令", 1, 8},
    {"cube_busy", "cube %", "矩阵单元 %", 0, 2},
    {"vector_busy", "vector %", "向量单元 %", 0, 2},
    {"mte1_busy", "MTE1 %", "MTE1 %", 0, 5},
    {"mte2_busy", "MTE2 %", "MTE2 %", 0, 3},
    {"mte3_busy", "MTE3 %", "MTE3 %", 0, 4},
    {"fixpipe_busy", "fixpipe %", "fixpipe %", 0, 5},
    {"cube_utilization", "cube use %", "矩阵利用率 %", 0, 4},
    {"llc_miss_pct", "LLC miss %", "LLC 缺失 %", 1, 3},
    {"llc_misses", "LLC misses", "LLC 缺失", 0, 4},
    {"branch_misses_per_1000", "br. miss/1000", "分支错/千条", 2, 4},
    {"dram_gbs_estimate", "DRAM GB/s ~", "DRAM GB/s ~", 1, 2},
};
enum { KNOWN = sizeof known / sizeof *known, MOST_COLUMNS = HN_TABLE_COLUMNS - 2, ROWS = 12 };

/* NaN: the layer has no such counter. */
static double value_of(const hone_layer *l, const char *name) {
  for (size_t i = 0; i < l->counter_count; i++)
    if (strcmp(l->counters[i].name, name) == 0) return l->counters[i].value;
  return (double)NAN;
}

static bool has_known(const hone_layer *l) {
  for (size_t k = 0; k < KNOWN; k++)
    if (isfinite(value_of(l, known[k].name))) return true;
  return false;
}

static void layer_row(hn_table *t, const hn_look *look, const hone_layer *l, const size_t *column, size_t n) {
  hn_table_row(t);
  hn_table_cell(t, 0, HN_PLAIN, "%s", l->name);
  for (size_t i = 0; i < n; i++) {
    const double v = value_of(l, known[column[i]].name);
    if (isfinite(v)) hn_table_cell(t, i + 1, HN_PLAIN, "%.*f", known[column[i]].decimals, v);
  }
  if (l->bound != HONE_LIMIT_UNKNOWN)
    hn_table_cell(t, n + 1, HN_CYAN, "%s%s", hn_limit_words(look, l->bound),
                  l->bound_confidence < 0.5 ? HN_IN(look, ", unsure", "，不确定") : "");
}

static void layer_table(hn_str *o, const hn_look *look, const hone_profile *p, size_t most) {
  size_t column[MOST_COLUMNS], n = 0, rows = 0, shown = 0;
  for (size_t k = 0; k < KNOWN && n < MOST_COLUMNS; k++)
    for (size_t i = 0; i < p->layer_count; i++)
      if (isfinite(value_of(&p->layers[i], known[k].name))) {
        column[n++] = k;
        break;
      }
  for (size_t i = 0; i < p->layer_count; i++) rows += has_known(&p->layers[i]);
  if (!rows) return;
  hn_heading(o, look, HN_IN(look, "Hardware counters (%zu)", "硬件计数器（%zu）"), rows);
  if (!most) most = p->filtered ? rows : ROWS;
  hn_table t = {0};
  hn_table_column(&t, HN_IN(look, "layer", "层"), true, 20, 0);
  for (size_t i = 0; i < n; i++)
    hn_table_column(&t, HN_IN(look, known[column[i]].title, known[column[i]].zh), false, 0,
                    known[column[i]].priority);
  hn_table_column(&t, HN_IN(look, "bound", "受限于"), true, 7, 0);
  for (size_t i = 0; i < p->layer_count && shown < most; i++) {
    const hone_layer *l = &p->layers[p->by_time[i]];
    if (!has_known(l)) continue;
    layer_row(&t, look, l, column, n);
    shown++;
  }
  hn_table_write(o, look, &t);
  hn_table_free(&t);
  if (shown < rows)
    hn_paint(o, look, HN_DIM, HN_IN(look, "  the %zu slowest; %zu more\n", "  最慢的 %zu 个；还有 %zu 个\n"),
             shown, rows - shown);
}

void hn_counters_text(hn_str *o, const hn_look *look, const hone_profile *p, size_t most) {
  size_t n;
  bool first = true;
  const hone_counter *c = hone_facts_counters(p->facts, &n);
  layer_table(o, look, p, most);
  for (size_t i = 0; i < n; i++) { /* of the processor, for the whole run */
    if (c[i].step >= 0 || !c[i].name || !c[i].unit || strcmp(c[i].unit, "a run") != 0) continue;
    if (first)
      hn_heading(o, look, "%s", HN_IN(look, "Hardware counters of the whole run", "整次运行的硬件计数器"));
    first = false;
    hn_paint(o, look, HN_PLAIN, HN_IN(look, "  %-16s %.4g a run\n", "  %-16s 每次运行 %.4g\n"), c[i].name,
             c[i].value);
  }
}

const char *const *hn_counter_names(const hone_profile *p, hn_arena *arena, size_t *count) {
  size_t most = 0;
  *count = 0;
  for (size_t i = 0; i < p->layer_count; i++) most += p->layers[i].counter_count;
  const char **names = HN_NEW_ARRAY(arena, const char *, most + 1);
  hn_map seen = {0};
  for (size_t i = 0; names && i < p->layer_count; i++)
    for (size_t k = 0; names && k < p->layers[i].counter_count; k++) {
      const char *name = p->layers[i].counters[k].name;
      if (hn_map_has(&seen, name)) continue;
      names[(*count)++] = name;
      if (!hn_map_set(&seen, name, (void *)name)) names = NULL;
    }
  hn_map_free(&seen);
  return names;
}

double hn_counter_of(const hone_layer *l, const char *name) { return value_of(l, name); }

const char *hn_bound_source(const hone_layer *l) {
  return l->bound == HONE_LIMIT_UNKNOWN            ? NULL
         : l->by_counters                          ? "counters"
         : l->compute_pct > 0 || l->memory_pct > 0 ? "roofs"
                                                   : "ridge";
}
