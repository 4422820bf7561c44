/* Nsight Compute: ncu --csv, --page raw (a row a kernel launch, a column a metric) or --page details (a row a
 * metric). Each kernel name with its launch shape is a layer; utilisation becomes counters of it. */
#include "insight/import/common/totals.h"
#include "insight/import/common/optype.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Counters that are kept, by both pages' names. The first two are what kernels are classed by. */
static const struct {
  const char *counter, *unit, *raw, *details;
} wanted[] = {
    {"compute_pct_of_peak", "%", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
     "Compute (SM) Throughput"},
    {"memory_pct_of_peak", "%", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
     "Memory Throughput"},
    {"dram_pct_of_peak", "%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput"},
    {"dram_pct_of_peak", "%", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput"},
    {"l2_pct_of_peak", "%", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput"},
    {"l2_pct_of_peak", "%", "lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput"},
    {"l1_pct_of_peak", "%", "l1tex__throughput.avg.pct_of_peak_sustained_active", "L1/TEX Cache Throughput"},
    {"l2_hit_pct", "%", "lts__t_sector_hit_rate.pct", "L2 Hit Rate"},
    {"l1_hit_pct", "%", "l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"},
    {"occupancy_pct", "%", "sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"},
    {"tensor_pipe_pct", "%", "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", NULL},
    {"tensor_pipe_pct", "%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", NULL},
    {"tensor_pipe_pct", "%", "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active", NULL},
    {"instructions_per_cycle", "", "sm__inst_executed.avg.per_cycle_elapsed", "Executed Ipc Elapsed"},
    {"instructions_per_cycle", "", "sm__inst_executed.avg.per_cycle_active", "Executed Ipc Active"},
    {"issue_slots_pct", "%", "sm__inst_issued.avg.pct_of_peak_sustained_active", "Issue Slots Busy"},
    {"issue_slots_pct", "%", "smsp__issue_active.avg.pct_of_peak_sustained_active", NULL},
    {"threads_per_instruction", "", "smsp__thread_inst_executed_per_inst_executed.ratio",
     "Avg. Active Threads Per Warp"},
    {"branch_uniform_pct", "%", "smsp__sass_average_branch_targets_threads_uniform.pct", "Branch Efficiency"},
    {"registers_per_thread", "", "launch__registers_per_thread", "Registers Per Thread"},
};
enum { COUNTERS = sizeof wanted / sizeof *wanted };
static const char *const durations[] = {"gpu__time_duration.sum", "gpu__time_duration.avg",
                                        "gpu__time_duration.max", "gpu__time_active.sum", NULL};
static const char *const dram_bytes[] = {"dram__bytes.sum", NULL};

/* One launch while its rows are read. */
typedef struct launch {
  char *kernel; /* owned */
  char shape[96];
  double ms; /* negative: not reported */
  double bytes;
  double value[COUNTERS]; /* NAN: not reported */
  bool open;
} launch;

/* Beside each total: what its launches' counters add up to, weighted with their time. */
typedef struct sums {
  double value[COUNTERS], weight[COUNTERS];
  double bytes;
} sums;

typedef struct state {
  hn_import *in;
  hn_totals totals;
  HN_VEC(sums) sums;
  hn_map names; /* of kernels -> how many shapes */
  uint64_t launches, untimed;
} state;

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a table of kernels"); }

static int sniff(const hn_sniff *s) {
  if (!hn_sniff_has(s, "Kernel Name")) return 0;
  if (hn_sniff_has(s, "\"ID\"") && (hn_sniff_has(s, "Process ID") || hn_sniff_has(s, "__"))) return 90;
  return hn_sniff_has(s, "Metric Name") || hn_sniff_has(s, "pct_of_peak") ||
                 hn_sniff_has(s, "gpu__time_duration")
             ? 80
             : 0;
}

/* ---- launches ---- */

static void begin(launch *l) {
  hn_free(l->kernel);
  *l = (launch){.ms = -1, .open = true};
  for (size_t i = 0; i < COUNTERS; i++) l->value[i] = NAN;
}

static bool name_layer(state *s, hn_total *total, const launch *l) {
  hn_import *in = s->in;
  const char *kernel = hn_import_text(in, l->kernel);
  if (!kernel) return false;
  intptr_t shapes = (intptr_t)hn_map_get(&s->names, kernel) + 1;
  total->step.name = shapes > 1 ? hn_import_text(in, total->key) : kernel;
  total->step.op_type = hn_optype_of_kernel(kernel);
  total->step.dtype = hn_optype_dtype_of_kernel(kernel);
  total->step.is_reformat = hn_optype_is_reformat(total->step.op_type);
  if (total->step.is_reformat) total->kind = HONE_SPAN_REFORMAT;
  return total->step.name && hn_map_set(&s->names, kernel, (void *)shapes);
}

static hone_status end(state *s, launch *l, hone_error *error) {
  if (!l->open) return HONE_OK;
  l->open = false;
  s->launches++;
  if (l->ms < 0) {
    s->untimed++;
    return HONE_OK;
  }
  hn_str key = {0};
  hn_str_printf(&key, "%s %s", l->kernel, l->shape);
  hn_total *total = key.failed ? NULL : hn_totals_get(&s->totals, s->in, key.ptr);
  hn_str_free(&key);
  if (!total || (!total->step.name && !name_layer(s, total, l))) return no_memory(error);
  if (s->sums.len <= total->index && !hn_vec_push(&s->sums, (sums){.bytes = 0})) return no_memory(error);
  sums *sum = &s->sums.ptr[total->index];
  double weight = l->ms > 0 ? l->ms : 1e-9;
  for (size_t i = 0; i < COUNTERS; i++) {
    if (!isfinite(l->value[i])) continue;
    sum->value[i] += l->value[i] * weight;
    sum->weight[i] += weight;
  }
  if (l->bytes > 0 && l->bytes < 1e18) sum->bytes += l->bytes;
  return hn_totals_add(&s->totals, total, l->ms) ? HONE_OK : no_memory(error);
}

static bool describe(launch *l, const hn_csv *csv, int kernel, int grid, int block) {
  const char *name = hn_csv_text(csv, kernel);
  if (!(l->kernel = hn_strdup(name ? name : "(kernel without a name)"))) return false;
  const char *g = hn_csv_text(csv, grid), *b = hn_csv_text(csv, block);
  if (g || b) snprintf(l->shape, sizeof l->shape, "%.40s x %.40s", g ? g : "?", b ? b : "?");
  return true;
}

static double unit_ms(const char *unit, double absent_ns) {
  double ns = unit ? hn_text_unit_ns(unit) : 0;
  return (ns > 0 ? ns : absent_ns) / 1e6;
}

/* "Mbyte" -> 1e6 */
static double unit_bytes(const char *unit) {
  static const struct {
    const char *word;
    double bytes;
  } words[] = {{"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  for (size_t i = 0; unit && i < sizeof words / sizeof *words; i++)
    if (strcasecmp(unit, words[i].word) == 0) return words[i].bytes;
  return 1;
}

/* ---- pages ---- */

/* What the columns of a raw page mean; the row of units follows the header. */
typedef struct raw {
  int kernel, grid, block, id, time, bytes, column[COUNTERS];
  double ms, byte;
} raw;

static void read_units(raw *r, const hn_csv *csv) {
  r->ms = unit_ms(hn_csv_text(csv, r->time), 1);
  r->byte = unit_bytes(hn_csv_text(csv, r->bytes));
}

static hone_status read_raw(state *s, hn_csv *csv, hone_error *error) {
  raw r = {.kernel = hn_csv_find(csv, "Kernel Name"),
           .grid = hn_csv_find(csv, "Grid Size"),
           .block = hn_csv_find(csv, "Block Size"),
           .id = hn_csv_find(csv, "ID"),
           .time = hn_csv_find_any(csv, durations),
           .bytes = hn_csv_find_any(csv, dram_bytes)};
  for (size_t i = 0; i < COUNTERS; i++) r.column[i] = hn_csv_find(csv, wanted[i].raw);
  r.ms = 1e-6; /* until the row of units: nanoseconds and bytes */
  r.byte = 1;
  if (r.time < 0) {
    hone_status status = hn_csv_fail(csv, error, "the table has no durations of kernels");
    hn_error_expected(error, "a column gpu__time_duration.sum");
    hn_error_hint(error, "ncu --set basic (or --metrics gpu__time_duration.sum,...) --csv --page raw");
    return status;
  }
  launch l = {0};
  hone_status status = HONE_OK;
  for (bool more = true; !status;) {
    status = hn_csv_next(csv, &more, error);
    if (status || !more) break;
    const char *name = hn_csv_text(csv, r.kernel);
    if (!name) {
      if (!hn_csv_text(csv, r.id)) read_units(&r, csv);
      continue;
    }
    if (strcmp(name, "Kernel Name") == 0) continue; /* several reports in one file */
    begin(&l);
    if (!describe(&l, csv, r.kernel, r.grid, r.block)) status = no_memory(error);
    l.ms = hn_csv_number(csv, r.time, -1) * r.ms;
    l.bytes = hn_csv_number(csv, r.bytes, 0) * r.byte;
    for (size_t i = 0; i < COUNTERS; i++) l.value[i] = hn_csv_number(csv, r.column[i], NAN);
    if (!status) status = end(s, &l, error);
  }
  hn_free(l.kernel);
  return status;
}

static void read_metric(launch *l, const char *name, const char *unit, double value) {
  for (size_t i = 0; durations[i]; i++)
    if (strcmp(name, durations[i]) == 0) l->ms = value * unit_ms(unit, 1);
  if (strcmp(name, "Duration") == 0) l->ms = value * unit_ms(unit, 1);
  if (strcmp(name, dram_bytes[0]) == 0) l->bytes = value * unit_bytes(unit);
  for (size_t i = 0; i < COUNTERS; i++) {
    bool same =
        strcmp(name, wanted[i].raw) == 0 || (wanted[i].details && strcmp(name, wanted[i].details) == 0);
    /* "Memory Throughput" is a share in one section and a speed in another. */
    bool share = strcmp(wanted[i].unit, "%") != 0 || !unit || strcmp(unit, "%") == 0;
    if (same && share) l->value[i] = value;
  }
}

static hone_status read_details(state *s, hn_csv *csv, hone_error *error) {
  int kernel = hn_csv_find(csv, "Kernel Name"), id = hn_csv_find(csv, "ID"),
      grid = hn_csv_find(csv, "Grid Size"), block = hn_csv_find(csv, "Block Size"),
      metric = hn_csv_find(csv, "Metric Name"), unit = hn_csv_find(csv, "Metric Unit"),
      value = hn_csv_find(csv, "Metric Value");
  launch l = {0};
  char current[64] = "";
  hone_status status = HONE_OK;
  for (bool more = true; !status;) {
    status = hn_csv_next(csv, &more, error);
    if (status || !more) break;
    const char *this_id = hn_csv_text(csv, id), *name = hn_csv_text(csv, metric);
    if (!this_id || strcmp(this_id, "ID") == 0) continue;
    if (!l.open || strncmp(this_id, current, sizeof current - 1) != 0) {
      status = end(s, &l, error);
      if (status) break;
      begin(&l);
      snprintf(current, sizeof current, "%s", this_id);
      if (!describe(&l, csv, kernel, grid, block)) status = no_memory(error);
    }
    double number = hn_csv_number(csv, value, NAN);
    if (name && isfinite(number)) read_metric(&l, name, hn_csv_text(csv, unit), number);
  }
  if (!status) status = end(s, &l, error);
  hn_free(l.kernel);
  return status;
}

/* ncu's own lines and whatever the program printed stand before the table. */
static hone_status skip_to_table(hn_source *source, hone_error *error) {
  for (;;) {
    size_t n = hn_source_ahead(source, 65536);
    if (source->status) return source->status;
    if (!n) break;
    const uint8_t *line = source->at, *end_of_line = memchr(line, '\n', n);
    size_t length = end_of_line ? (size_t)(end_of_line - line) : n;
    if (memmem(line, length, "Kernel Name", 11) && memmem(line, length, "ID", 2) && memchr(line, ',', length))
      return HONE_OK;
    source->at += end_of_line ? length + 1 : length;
    if (end_of_line) source->line++;
  }
  return hn_source_fail_line(source, error, source->line,
                             "no table of kernels (a header with ID and Kernel Name) was found");
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  s->in = in;
  hone_status status = skip_to_table(source, error);
  if (status) return status;
  hn_csv csv;
  status = hn_csv_open(&csv, source, error);
  bool details = !status && hn_csv_find(&csv, "Metric Name") >= 0 && hn_csv_find(&csv, "Metric Value") >= 0;
  if (!status) status = details ? read_details(s, &csv, error) : read_raw(s, &csv, error);
  if (!status && !s->launches) status = hn_csv_fail(&csv, error, "the table holds no kernels");
  hn_csv_close(&csv);
  return status;
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  if (!s->totals.list.len) {
    hone_status status = hn_fail(error, HONE_ERROR_INPUT, "none of %llu kernels has a duration",
                                 (unsigned long long)s->launches);
    hn_error_expected(error, "gpu__time_duration.sum or Duration");
    return status;
  }
  for (size_t i = 0; i < s->totals.list.len; i++) {
    hn_total *total = s->totals.list.ptr[i];
    total->step.bytes = (uint64_t)(s->sums.ptr[i].bytes / (double)total->count);
  }
  int32_t *steps = hn_malloc((s->totals.list.len + 1) * sizeof *steps);
  hone_status status = steps ? hn_totals_write(&s->totals, in, 1, steps, error) : no_memory(error);
  for (size_t i = 0; i < s->totals.list.len && !status; i++) {
    const sums *sum = &s->sums.ptr[i];
    for (size_t k = 0; k < COUNTERS; k++) {
      bool again = false; /* two metrics may stand for one counter */
      for (size_t j = 0; j < k; j++)
        again = again || (sum->weight[j] > 0 && strcmp(wanted[j].counter, wanted[k].counter) == 0);
      if (sum->weight[k] > 0 && !again)
        hone_facts_add_counter(in->facts, &(hone_counter){wanted[k].counter, wanted[k].unit, steps[i],
                                                          sum->value[k] / sum->weight[k]});
    }
  }
  hn_free(steps);
  in->meta.tool = "Nsight Compute";
  in->meta.backend = "cuda";
  in->meta.inner_clock =
      "Nsight Compute, each kernel alone and repeated, clocks locked unless --clock-control none";
  hone_facts_add_unmeasured(in->facts, "time between kernels",
                            "Nsight Compute runs kernels one by one; Nsight Systems shows when they run");
  if (s->untimed)
    hone_facts_add_unmeasured(in->facts, "kernels without a duration",
                              hn_import_say(in, "%llu launches", (unsigned long long)s->untimed));
  return status;
}

static void destroy(void *p) {
  state *s = p;
  hn_totals_free(&s->totals);
  hn_vec_free(&s->sums);
  hn_map_free(&s->names);
}

const struct hn_importer hn_importer_ncu = {
    .format = {"ncu", "Nsight Compute: ncu --csv --page raw or details"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
