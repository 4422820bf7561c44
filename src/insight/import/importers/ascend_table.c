/* msprof's tables: op_summary, kernel_details, task_time, op_statistic, api_statistic, fusion_op. Products
 * and versions leave columns out, add some and order them differently: everything is found by name. */
#include "insight/import/importers/ascend.h"

#include "base/error.h"
#include "insight/import/common/ops.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { TENSORS = 16, DIMS = 8 };

typedef struct columns {
  int name, type, core, start, length, stop, run, device, stream, shapes[2], types[2], formats[2], model;
  int start_digits, length_digits;
} columns;

#define FIND(csv, ...) hn_csv_find_any(csv, (const char *const[]){__VA_ARGS__, NULL})

static hone_status out_of_memory(hone_error *error) {
  return hn_fail_memory(error, 0, "a profile of msprof");
}

/* Decimal exponent of a column's unit of time in nanoseconds; microseconds where the header has none. */
static int digits_of(const hn_csv *csv, int column) {
  double ns = hn_csv_unit_ns(csv, column, 1e3);
  return ns == 1 ? 0 : ns == 1e3 ? 3 : ns == 1e6 ? 6 : 9;
}

static columns find_columns(const hn_csv *csv) {
  columns c = {.name = FIND(csv, "Op Name", "kernel_name", "Name"),
               .type = FIND(csv, "OP Type", "Type", "kernel_type"),
               .core = FIND(csv, "Task Type", "Accelerator Core", "Core Type"),
               .start = FIND(csv, "Task Start Time", "task_start", "Start Time", "Start"),
               .length = FIND(csv, "Task Duration", "task_time", "Duration"),
               .stop = FIND(csv, "task_stop", "Task Stop"),
               .run = FIND(csv, "Step Id", "Infer ID", "Iteration ID"),
               .device = FIND(csv, "Device_id", "Device ID"),
               .stream = FIND(csv, "Stream ID"),
               .shapes = {FIND(csv, "Input Shapes"), FIND(csv, "Output Shapes")},
               .types = {FIND(csv, "Input Data Types"), FIND(csv, "Output Data Types")},
               .formats = {FIND(csv, "Input Formats"), FIND(csv, "Output Formats")},
               .model = FIND(csv, "Model Name")};
  c.start_digits = digits_of(csv, c.start);
  c.length_digits = digits_of(csv, c.length);
  return c;
}

/* ---- shapes ---- */

/* The tensors of one side: "8,512;512,64" with "DT_BF16;DT_BF16" and "ND;NZ". */
typedef struct side {
  int64_t dims[TENSORS][DIMS];
  size_t rank[TENSORS], count;
  const char *dtype; /* of the first */
  const char *shapes;
  double bytes;
  bool plain; /* every format is one of the usual orders of dimensions */
} side;

static const char *next_part(const char *p) {
  p = p ? strchr(p, ';') : NULL;
  return p ? p + 1 : NULL;
}

static const char *dtype_part(const char *p) {
  char word[32];
  size_t n = p ? strcspn(p, "; ") : 0;
  if (!n || n >= sizeof word) return NULL;
  memcpy(word, p, n);
  word[n] = 0;
  return hn_text_dtype(word);
}

static bool is_plain(const char *p) {
  static const char *const known[] = {"ND", "NCHW", "NCL", "NCDHW"};
  size_t n = p ? strcspn(p, ";") : 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (n == strlen(known[i]) && memcmp(p, known[i], n) == 0) return true;
  return !n;
}

static side read_side(hn_ascend *a, const hn_csv *csv, const columns *c, int which) {
  side s = {.plain = true};
  const char *shapes = hn_csv_text(csv, c->shapes[which]), *types = hn_csv_text(csv, c->types[which]);
  const char *formats = hn_csv_text(csv, c->formats[which]);
  hn_str text = {0};
  s.dtype = dtype_part(types);
  for (; shapes && s.count < TENSORS;
       shapes = next_part(shapes), types = next_part(types), formats = next_part(formats)) {
    size_t n = s.rank[s.count] = hn_text_dims(shapes, s.dims[s.count], DIMS);
    double elements = n ? 1 : 0;
    for (size_t i = 0; i < n; i++) elements *= (double)s.dims[s.count][i];
    s.bytes += elements * hn_text_dtype_bytes(dtype_part(types));
    s.plain = s.plain && is_plain(formats);
    if (n) {
      if (text.len) hn_str_putc(&text, ' ');
      hn_text_put_shape(&text, s.dims[s.count], n);
    }
    s.count++;
  }
  s.shapes = hn_import_text(a->in, text.ptr);
  hn_str_free(&text);
  return s;
}

static uint64_t counted(double v) { return v > 0 && v < 1e18 ? (uint64_t)v : 0; }

/* FLOPs of a product when the common dimension can be told from the shapes, transposed or not. */
static void product(const side *in, const side *out, hone_step_fact *step) {
  if (in->count < 2 || !out->count || in->rank[0] < 2 || in->rank[1] < 2 || out->rank[0] < 2) return;
  const int64_t *x = in->dims[0] + in->rank[0] - 2, *w = in->dims[1] + in->rank[1] - 2,
                *y = out->dims[0] + out->rank[0] - 2;
  int64_t k = x[0] == y[0] ? x[1] : x[1] == y[0] ? x[0] : 0;
  if (k <= 0 || y[1] <= 0 || !((w[0] == k && w[1] == y[1]) || (w[1] == k && w[0] == y[1]))) return;
  double flops = 2 * (double)k;
  for (size_t i = 0; i < out->rank[0]; i++) flops *= (double)out->dims[0][i];
  step->flops = counted(flops);
  if (k <= INT32_MAX) step->channels_in = (int32_t)k;
  if (y[1] <= INT32_MAX) step->channels_out = (int32_t)y[1];
}

/* ---- operators ---- */

static hone_span_kind kind_of(const char *core, const char *type, const char *name) {
  static const struct {
    const char *word;
    hone_span_kind kind;
  } words[] = {{"WAIT", HONE_SPAN_SYNC},          {"EVENT_RECORD", HONE_SPAN_SYNC},
               {"NOTIFY", HONE_SPAN_SYNC},        {"MEMCPY", HONE_SPAN_COPY},
               {"SDMA", HONE_SPAN_COPY},          {"HCCL", HONE_SPAN_COPY},
               {"COMMUNICATION", HONE_SPAN_COPY}, {"PCIE", HONE_SPAN_COPY}};
  for (size_t i = 0; core && i < sizeof words / sizeof *words; i++)
    if (strcasestr(core, words[i].word)) return words[i].kind;
  if (type && strcasestr(type, "memcpy")) return HONE_SPAN_COPY;
  if (name && (hn_text_starts(name, "hcom_") || hn_text_starts(name, "Memcpy"))) return HONE_SPAN_COPY;
  return type && strcmp(type, "TransData") == 0 ? HONE_SPAN_REFORMAT : HONE_SPAN_KERNEL;
}

/* The operator of a row; NULL when out of memory. */
static hn_ascend_op *operator_of(hn_ascend *a, const hn_csv *csv, const columns *c, const char *name,
                                 const char *type, const char *core, uint32_t *index) {
  const char *in_shapes = hn_csv_text(csv, c->shapes[0]), *out_shapes = hn_csv_text(csv, c->shapes[1]);
  const char *signature = hn_arena_printf(&a->in->arena, "%s\n%s\n%s\n%s", name, type ? type : "",
                                          in_shapes ? in_shapes : "", out_shapes ? out_shapes : "");
  if (!signature) return NULL;
  uintptr_t known = (uintptr_t)hn_map_get(&a->by_signature, signature);
  if (known) {
    *index = (uint32_t)known - 1;
    return a->ops.ptr[*index];
  }
  hn_ascend_op *op = HN_NEW(&a->in->arena, hn_ascend_op);
  if (!op) return NULL;
  side in = read_side(a, csv, c, 0), out = read_side(a, csv, c, 1);
  const char *mapped = type ? hn_op_of_word(type) : NULL;
  *op = (hn_ascend_op){.signature = signature, .name = hn_import_text(a->in, name), .number = -1};
  op->step = (hone_step_fact){.op_type = mapped ? mapped : hn_import_text(a->in, type ? type : core),
                              .tactic = hn_import_text(a->in, core),
                              .dtype = in.dtype ? in.dtype : out.dtype,
                              .shape_in = in.shapes,
                              .shape_out = out.shapes,
                              .bytes = counted(in.bytes + out.bytes),
                              .is_reformat = type && strcmp(type, "TransData") == 0,
                              /* The small processors on the chip take what no vector or cube kernel does. */
                              .is_reference = core && (strcmp(core, "AI_CPU") == 0 || strstr(core, "AICPU")),
                              .on_host = core && strcasestr(core, "HOST_CPU"),
                              .anchor_node = -1};
  if (in.plain && out.plain && mapped && strcmp(mapped, "Conv") == 0 && in.count >= 2 && out.count)
    hn_import_conv(&(hn_conv_shape){in.dims[0], in.dims[1], out.dims[0], in.rank[0], in.rank[1], out.rank[0]},
                   &op->step);
  else if (in.plain && out.plain && mapped && strcmp(mapped, "MatMul") == 0)
    product(&in, &out, &op->step);
  if (!op->name || !hn_vec_push(&a->ops, op)) return NULL;
  *index = (uint32_t)a->ops.len - 1;
  return hn_map_set(&a->by_signature, signature, (void *)(uintptr_t)a->ops.len) ? op : NULL;
}

/* The largest of the columns that end so (aic_mac_ratio, mac_ratio ...); negative: none has a number. */
static double largest(const hn_csv *csv, const char *suffix) {
  double most = -1;
  for (size_t i = 0; i < csv->column_count; i++) {
    const char *name = csv->columns[i].name;
    if (!hn_text_ends(name, suffix)) continue;
    double v = hn_csv_number(csv, (int)i, -1);
    if (v > most && isfinite(v)) most = v;
  }
  return most;
}

static void add_share(hn_ascend_share *s, double share, double us) {
  if (share < 0) return;
  s->sum += us * share;
  s->us += us;
}

static void add_ratios(hn_ascend_op *op, const hn_csv *csv, double us) {
  static const char *const columns[] = {
#define X(id, counter, column, unit) column,
      HN_ASCEND_PIPES(X)
#undef X
  };
  for (int i = 0; i < HN_ASCEND_PIPE_COUNT; i++) add_share(&op->pipe[i], largest(csv, columns[i]), us);
  add_share(&op->cube_use, largest(csv, "cube_utilization"), us);
  add_share(&op->bound, largest(csv, "memory_bound"), us);
}

static uint32_t small(const hn_csv *csv, int column) {
  double v = hn_csv_number(csv, column, 0);
  return v > 0 && v < 2147483648.0 ? (uint32_t)v : 0;
}

static uint32_t lane_of(hn_ascend *a, const hn_csv *csv, const columns *c) {
  const int64_t id = (int64_t)small(csv, c->device) << 32 | small(csv, c->stream);
  for (size_t i = 0; i < a->lanes.len; i++)
    if (a->lanes.ptr[i] == id) return (uint32_t)i;
  return a->lanes.len < 4096 && hn_vec_push(&a->lanes, id) ? (uint32_t)a->lanes.len - 1 : 0;
}

/* A time of the current row: false when there is none; *wrong when there is text that is no time. */
static bool time_in(const hn_csv *csv, int column, int digits, int64_t *ns, bool *wrong) {
  char buffer[64];
  const char *text = hn_csv_digits(csv, column, buffer);
  if (!text) return false;
  if (hn_text_ns(text, digits, ns) && (text[strspn(text, "0123456789.+-eE")] == 0)) return true;
  *wrong = true;
  return false;
}

static hone_status operators(hn_ascend *a, hn_csv *csv, bool tasks, hone_error *error) {
  columns c = find_columns(csv);
  bool more;
  hone_status status;
  while (!(status = hn_csv_next(csv, &more, error)) && more) {
    const char *core = hn_csv_text(csv, c.core), *type = hn_csv_text(csv, c.type);
    const char *name = hn_csv_text(csv, c.name);
    if (!name) name = type ? type : core ? core : "task";
    hn_ascend_row row = {.start = INT64_MIN, .run = -1};
    bool wrong = false;
    int64_t stop;
    const bool timed = time_in(csv, c.length, c.length_digits, &row.length, &wrong);
    if (time_in(csv, c.start, c.start_digits, &row.start, &wrong) && !timed &&
        time_in(csv, c.stop, c.start_digits, &stop, &wrong))
      row.length = stop - row.start;
    else if (!timed && !wrong)
      continue; /* N/A: this task was not timed */
    if (wrong || row.length < 0) {
      status = hn_csv_fail(csv, error, "a time of '%.60s' is negative or no number", name);
      hn_error_expected(error, "microseconds, or N/A");
      return status;
    }
    /* task_time has the kind of task in place of the operator's type. */
    hn_ascend_op *op = operator_of(a, csv, &c, name, tasks ? hn_op_of_name(name, strlen(name)) : type,
                                   tasks && !core ? type : core, &row.op);
    if (!op) return out_of_memory(error);
    if (!tasks) add_ratios(op, csv, (double)row.length / 1e3);
    row.lane = lane_of(a, csv, &c);
    row.kind = kind_of(core ? core : tasks ? type : NULL, type, name);
    double run = hn_csv_number(csv, c.run, -1);
    row.run = run >= 0 && run < 4294967295.0 ? (int64_t)run : -1;
    if (!a->meta.model) a->meta.model = hn_import_text(a->in, hn_csv_text(csv, c.model));
    if (!(tasks ? hn_vec_push(&a->tasks, row) : hn_vec_push(&a->rows, row))) return out_of_memory(error);
  }
  return status;
}

/* ---- totals ---- */

static double positive(const hn_csv *csv, int column) {
  double v = hn_csv_number(csv, column, 0);
  return v > 0 && v < 1e18 ? v : 0;
}

static hone_status totals(hn_ascend *a, hn_csv *csv, bool apis, hone_error *error) {
  const int name = apis ? FIND(csv, "API Name", "Name") : FIND(csv, "OP Type", "Type");
  const int type = FIND(csv, "Core Type", "Accelerator Core"), level = FIND(csv, "Level"),
            count = FIND(csv, "Count");
  const int time = FIND(csv, "Total Time", "Time"), least = FIND(csv, "Min Time", "Min"),
            most = FIND(csv, "Max Time", "Max");
  const double ms = hn_csv_unit_ns(csv, time, 1e3) / 1e6;
  bool more;
  hone_status status;
  while (!(status = hn_csv_next(csv, &more, error)) && more) {
    const char *text = hn_csv_text(csv, name);
    const double total = hn_csv_number(csv, time, NAN), n = hn_csv_number(csv, count, 1);
    if (!text || !(total >= 0 && total < 1e18) || !(n >= 0 && n < 1e15))
      return hn_csv_fail(csv, error, "a row without %s", text ? "a time and a count of 0 or more" : "a name");
    hn_ascend_total row = {.name = hn_import_text(a->in, text),
                           .type = hn_import_text(a->in, hn_csv_text(csv, type)),
                           .level = hn_import_text(a->in, hn_csv_text(csv, level)),
                           .stats = {.count = (uint64_t)n,
                                     .runs = 1,
                                     .total_ms = total * ms,
                                     .min_ms = positive(csv, least) * ms,
                                     .max_ms = positive(csv, most) * ms}};
    if (!row.name || !(apis ? hn_vec_push(&a->apis, row) : hn_vec_push(&a->types, row)))
      return out_of_memory(error);
  }
  return status;
}

static hone_status fusions(hn_ascend *a, hn_csv *csv, hone_error *error) {
  const int op = FIND(csv, "Fusion Op"), originals = FIND(csv, "Original Ops");
  const int weights = FIND(csv, "Memory Weight"),
            parts[] = {FIND(csv, "Memory Input"), FIND(csv, "Memory Output"), weights};
  bool more;
  hone_status status;
  while (!(status = hn_csv_next(csv, &more, error)) && more) {
    const char *name = hn_csv_text(csv, op);
    if (!name) return hn_csv_fail(csv, error, "a row without the name of its fused operator");
    hn_ascend_fusion row = {.op = hn_import_text(a->in, name),
                            .originals = hn_import_text(a->in, hn_csv_text(csv, originals)),
                            .weight_bytes = 1024 * positive(csv, weights)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) row.bytes += 1024 * positive(csv, parts[i]);
    if (!row.op || !hn_vec_push(&a->fusions, row) ||
        !hn_map_set(&a->fusion_of, row.op, (void *)(uintptr_t)a->fusions.len))
      return out_of_memory(error);
  }
  return status;
}

/* ---- which table ---- */

static hone_status once(const hn_csv *csv, bool *seen, const char *what, hone_error *error) {
  if (!*seen) {
    *seen = true;
    return HONE_OK;
  }
  hone_status status = hn_csv_fail(csv, error, "a second table of %s", what);
  hn_error_hint(error, "give the files of one run on one device");
  return status;
}

hone_status hn_ascend_table(hn_ascend *a, hn_source *source, hone_error *error) {
  hn_csv csv;
  hone_status status = hn_csv_open(&csv, source, error);
  if (status) goto done;
  const columns c = find_columns(&csv);
  const bool timed = c.length >= 0 || (c.start >= 0 && c.stop >= 0);
  if (hn_csv_find(&csv, "Fusion Op") >= 0) {
    status = once(&csv, &a->has_fusions, "fused operators", error);
    if (!status) status = fusions(a, &csv, error);
  } else if (hn_csv_find(&csv, "API Name") >= 0) {
    status = once(&csv, &a->has_apis, "API calls", error);
    if (!status) status = totals(a, &csv, true, error);
  } else if (hn_csv_find(&csv, "Total Time") >= 0 && c.type >= 0) {
    status = once(&csv, &a->has_types, "operator types", error);
    if (!status) status = totals(a, &csv, false, error);
  } else if (timed && (hn_csv_find(&csv, "kernel_type") >= 0 || hn_csv_find(&csv, "task_time") >= 0)) {
    status = once(&csv, &a->has_tasks, "tasks", error);
    if (!status) status = operators(a, &csv, true, error);
  } else if (timed && c.name >= 0) {
    status = once(&csv, &a->has_ops, "operators", error);
    if (!status) status = operators(a, &csv, false, error);
  } else {
    status = hn_csv_fail(&csv, error, "this is none of msprof's tables that hone reads");
    hn_error_expected(error,
                      "op_summary, op_statistic, task_time, api_statistic, fusion_op or kernel_details");
  }
done:
  hn_csv_close(&csv);
  return status;
}

bool hn_ascend_is_table(const hn_sniff *s) {
  static const char *const heads[][2] = {{"Task Duration(", "OP Type"},
                                         {"Accelerator Core", "Duration("},
                                         {"task_time(", "kernel_type"},
                                         {"Total Time(", "OP Type"},
                                         {"API Name", "Time("},
                                         {"Fusion Op", "Original Ops"},
                                         {"Task Type", "Task Start Time"},
                                         {"Total Time(", "Core Type"}};
  size_t n = 0;
  while (n < s->size && s->data[n] != '\n') n++;
  hn_sniff line = {s->file, s->data, n < s->size ? n : s->size};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
    if (hn_sniff_has(&line, heads[i][0]) && hn_sniff_has(&line, heads[i][1])) return true;
  return false;
}
