/* Nsight Systems' export to SQLite (nsys export --type sqlite), and nvprof's, which has the same roots.
 * Tables are created when there is something in them, and columns come and go: everything is asked for first.
 */
#include "insight/import/read/database.h"
#include "insight/import/import.h"
#include "insight/import/common/timeline.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SLOTS = 1 << 14, DEVICES_MOST = 256, NOTES_MOST = 8 };

typedef struct state {
  hn_timeline *timeline;
} state;

/* One file while it is read. */
typedef struct reading {
  hn_import *in;
  hn_timeline *t;
  hn_database db;
  hone_error *error;
  bool by_process;       /* correlation numbers are told apart by process */
  sqlite3_stmt *strings; /* text by number */
  struct name_slot {
    int64_t id;
    char *text;
  } * names; /* those asked for last */
  /* Which device a process calls by which number. */
  struct {
    int64_t pid, number, device;
  } devices[DEVICES_MOST];
  size_t device_count;
  uint64_t kernels, graphs, broken;
  hone_status unnamed; /* a name could not be read */
} reading;

static int sniff(const hn_sniff *s) {
  bool sqlite = s->size >= 16 && memcmp(s->data, "SQLite format 3", 16) == 0;
  if (hn_text_ends(s->file, ".nsys-rep") || hn_text_ends(s->file, ".qdrep")) return 20;
  if (!sqlite) return 0;
  return hn_sniff_has(s, "StringIds") || hn_sniff_has(s, "CUPTI_ACTIVITY") || hn_sniff_has(s, "NVTX_EVENTS")
             ? 100
             : 30;
}

/* ---- names ---- */

static hone_status open_strings(reading *r) {
  const char *table = hn_database_has(&r->db, "StringIds") ? "StringIds" : "StringTable";
  const char *id = strcmp(table, "StringIds") == 0 ? "id" : "_id_";
  if (!hn_database_has(&r->db, table) || !hn_database_has_column(&r->db, table, id) ||
      !hn_database_has_column(&r->db, table, "value"))
    return HONE_OK;
  char sql[128];
  snprintf(sql, sizeof sql, "SELECT value FROM \"%s\" WHERE \"%s\"=?1", table, id);
  r->names = hn_calloc(NAME_SLOTS, sizeof *r->names);
  if (!r->names) return hn_fail_memory(r->error, NAME_SLOTS * sizeof *r->names, "the names of a trace");
  const int code = sqlite3_prepare_v2(r->db.db, sql, -1, &r->strings, NULL);
  return code == SQLITE_OK ? HONE_OK : hn_database_fail(&r->db, r->error, table);
}

/* The text of a number; valid until the slot is needed again. */
static const char *string_of(reading *r, int64_t id) {
  if (!r->strings) return NULL;
  struct name_slot *slot = &r->names[(uint64_t)id % NAME_SLOTS];
  if (slot->text && slot->id == id) return slot->text;
  hn_free(slot->text);
  *slot = (struct name_slot){id, NULL};
  sqlite3_bind_int64(r->strings, 1, id);
  hn_mem_foreign_begin();
  const int code = sqlite3_step(r->strings);
  const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(r->strings, 0) : NULL;
  hn_mem_foreign_end();
  if (text) slot->text = hn_strdup(text);
  if (code != SQLITE_ROW && code != SQLITE_DONE && !r->unnamed)
    r->unnamed = hn_database_fail(&r->db, r->error, "of names");
  sqlite3_reset(r->strings);
  return slot->text;
}

/* A name that a column holds as text or by its number. */
static const char *name_in(reading *r, sqlite3_stmt *row, int column) {
  switch (sqlite3_column_type(row, column)) {
  case SQLITE_TEXT: return (const char *)sqlite3_column_text(row, column);
  case SQLITE_INTEGER: return string_of(r, sqlite3_column_int64(row, column));
  default: return NULL;
  }
}

/* ---- rows ---- */

/* Columns that all tables of device work share come first. */
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, OWN };
#define DEVICE_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

static bool read_times(reading *r, sqlite3_stmt *row, hn_event *e) {
  if (sqlite3_column_type(row, START) == SQLITE_NULL || sqlite3_column_type(row, END) == SQLITE_NULL) {
    r->broken++;
    return false;
  }
  e->start_ns = sqlite3_column_int64(row, START);
  e->end_ns = sqlite3_column_int64(row, END);
  if (e->start_ns < -(INT64_MAX / 4) || e->end_ns > INT64_MAX / 4 || e->end_ns < e->start_ns) {
    r->broken++;
    return false;
  }
  return true;
}

static int64_t device_of(const reading *r, int64_t pid, int64_t number) {
  for (size_t i = 0; i < r->device_count; i++)
    if (r->devices[i].pid == pid && r->devices[i].number == number) return r->devices[i].device;
  return number;
}

static bool read_device(reading *r, sqlite3_stmt *row, hn_event *e) {
  if (!read_times(r, row, e)) return false;
  int64_t process = sqlite3_column_int64(row, PROCESS), stream = sqlite3_column_int64(row, STREAM);
  int64_t pid = process >> 24 & 0xffffff, device = device_of(r, pid, sqlite3_column_int64(row, DEVICE));
  e->class = HN_EVENT_DEVICE;
  e->process = r->by_process ? (uint64_t)process : 0;
  e->correlation = (uint32_t)sqlite3_column_int64(row, CORRELATION);
  uint64_t key[3] = {(uint64_t)process, (uint64_t)sqlite3_column_int64(row, CONTEXT), (uint64_t)stream};
  char name[96];
  int n = snprintf(name, sizeof name, "GPU %lld stream %lld", (long long)device, (long long)stream);
  if (pid && r->device_count > 1)
    snprintf(name + n, sizeof name - (size_t)n, " of process %lld", (long long)pid);
  e->lane = hn_timeline_lane(r->t, true, (uint64_t)device, hn_hash(key, sizeof key, 0), name);
  return true;
}

typedef bool add_row(reading *r, sqlite3_stmt *row);

static hone_status read_table(reading *r, const char *table, const char *const *columns, add_row *add) {
  sqlite3_stmt *rows;
  hone_status status = hn_database_select(&r->db, table, columns, &rows, r->error);
  bool more = rows != NULL;
  while (!status && more) {
    status = hn_database_next(&r->db, table, rows, &more, r->error);
    if (!status && more) more = add(r, rows);
  }
  sqlite3_finalize(rows);
  return status;
}

static uint32_t launch_of(reading *r, sqlite3_stmt *row, int first) {
  hone_launch l;
  memset(&l, 0, sizeof l);
  uint32_t *to[] = {&l.grid_x, &l.grid_y, &l.grid_z, &l.block_x, &l.block_y, &l.block_z, &l.registers};
  for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
    int64_t value = sqlite3_column_int64(row, first + (int)i);
    *to[i] = value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
  }
  int64_t fixed = sqlite3_column_int64(row, first + 7), dynamic = sqlite3_column_int64(row, first + 8);
  l.static_shared = fixed > 0 ? (uint64_t)fixed : 0;
  l.dynamic_shared = dynamic > 0 ? (uint64_t)dynamic : 0;
  return l.grid_x ? hn_timeline_launch(r->t, r->in->facts, &l) : 0;
}

static const char *const kernel_columns[] = {DEVICE_COLUMNS,
                                             "demangledName",
                                             "shortName",
                                             "mangledName",
                                             "name",
                                             "gridX",
                                             "gridY",
                                             "gridZ",
                                             "blockX",
                                             "blockY",
                                             "blockZ",
                                             "registersPerThread",
                                             "staticSharedMemory",
                                             "dynamicSharedMemory",
                                             NULL};

static bool add_kernel(reading *r, sqlite3_stmt *row) {
  hn_event e = {.kind = HONE_SPAN_KERNEL};
  if (!read_device(r, row, &e)) return true;
  for (int i = OWN; i < OWN + 4 && !e.name; i++) e.name = name_in(r, row, i);
  if (!e.name) e.name = "(kernel without a name)";
  e.launch = launch_of(r, row, OWN + 4);
  r->kernels++;
  hn_timeline_add(r->t, &e);
  return true;
}

static const char *const graph_columns[] = {DEVICE_COLUMNS, "graphId", NULL};

static bool add_graph(reading *r, sqlite3_stmt *row) {
  hn_event e = {.kind = HONE_SPAN_KERNEL};
  if (!read_device(r, row, &e)) return true;
  char name[64];
  snprintf(name, sizeof name, "CUDA graph %lld", (long long)sqlite3_column_int64(row, OWN));
  e.name = name;
  r->graphs++;
  hn_timeline_add(r->t, &e);
  return true;
}

static const char *const copy_columns[] = {DEVICE_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", NULL};

/* CUDA_MEMOPR_MEMORY_KIND */
static const struct {
  const char *word;
  hone_memory_kind kind;
} memory_kinds[] = {{"Pageable", HONE_MEMORY_PAGEABLE}, {"Pinned", HONE_MEMORY_PINNED},
                    {"Device", HONE_MEMORY_DEVICE},     {"Array", HONE_MEMORY_DEVICE},
                    {"Managed", HONE_MEMORY_MANAGED},   {"Device", HONE_MEMORY_DEVICE},
                    {"Managed", HONE_MEMORY_MANAGED},   {"?", HONE_MEMORY_UNKNOWN}};
/* CUPTI_ACTIVITY_MEMCPY_KIND */
static const struct {
  const char *word;
  hone_span_kind kind;
} copy_kinds[] = {{"", HONE_SPAN_COPY},
                  {" HtoD", HONE_SPAN_COPY_H2D},
                  {" DtoH", HONE_SPAN_COPY_D2H},
                  {" HtoA", HONE_SPAN_COPY_H2D},
                  {" AtoH", HONE_SPAN_COPY_D2H},
                  {" AtoA", HONE_SPAN_COPY},
                  {" AtoD", HONE_SPAN_COPY},
                  {" DtoA", HONE_SPAN_COPY},
                  {" DtoD", HONE_SPAN_COPY},
                  {" HtoH", HONE_SPAN_COPY},
                  {" PtoP", HONE_SPAN_COPY},
                  {" HtoD, unified", HONE_SPAN_COPY_H2D},
                  {" DtoH, unified", HONE_SPAN_COPY_D2H},
                  {" DtoD, unified", HONE_SPAN_COPY}};
#define AT(table, i) (&(table)[(i) >= 0 && (i) < (int64_t)(sizeof(table) / sizeof *(table)) ? (i) : 0])

static bool add_copy(reading *r, sqlite3_stmt *row) {
  hn_event e = {0};
  if (!read_device(r, row, &e)) return true;
  int64_t bytes = sqlite3_column_int64(row, OWN);
  e.bytes = bytes > 0 ? (uint64_t)bytes : 0;
  int64_t copy = sqlite3_column_int64(row, OWN + 1);
  bool kinds = sqlite3_column_type(row, OWN + 2) != SQLITE_NULL;
  int64_t from = kinds ? sqlite3_column_int64(row, OWN + 2) : 7,
          to = kinds ? sqlite3_column_int64(row, OWN + 3) : 7;
  e.kind = AT(copy_kinds, copy)->kind;
  e.source_memory = (uint8_t)AT(memory_kinds, from)->kind;
  e.target_memory = (uint8_t)AT(memory_kinds, to)->kind;
  char name[96];
  int n = snprintf(name, sizeof name, "Memcpy%s", AT(copy_kinds, copy)->word);
  if (kinds)
    snprintf(name + n, sizeof name - (size_t)n, " (%s -> %s)", AT(memory_kinds, from)->word,
             AT(memory_kinds, to)->word);
  e.name = name;
  hn_timeline_add(r->t, &e);
  return true;
}

static const char *const set_columns[] = {DEVICE_COLUMNS, "bytes", NULL};

static bool add_set(reading *r, sqlite3_stmt *row) {
  hn_event e = {.kind = HONE_SPAN_COPY, .name = "Memset"};
  if (!read_device(r, row, &e)) return true;
  int64_t bytes = sqlite3_column_int64(row, OWN);
  e.bytes = bytes > 0 ? (uint64_t)bytes : 0;
  hn_timeline_add(r->t, &e);
  return true;
}

static const char *const wait_columns[] = {DEVICE_COLUMNS, "syncType", NULL};

static bool add_wait(reading *r, sqlite3_stmt *row) {
  static const char *const names[] = {"Sync", "Event sync", "Stream wait event", "Stream sync",
                                      "Context sync"};
  hn_event e = {.kind = HONE_SPAN_SYNC};
  if (!read_device(r, row, &e)) return true;
  int64_t type = sqlite3_column_int64(row, OWN);
  e.name = *AT(names, type);
  hn_timeline_add(r->t, &e);
  return true;
}

/* ---- the host ---- */

static uint32_t host_lane(reading *r, int64_t thread, bool crossing) {
  char name[96];
  snprintf(name, sizeof name, "thread %lld%s", (long long)(thread & 0xffffff), crossing ? ", ranges" : "");
  return hn_timeline_lane(r->t, false, (uint64_t)thread, crossing, name);
}

static const char *const call_columns[] = {"start", "end", "globalTid", "correlationId", "nameId", NULL};

static bool add_call(reading *r, sqlite3_stmt *row) {
  hn_event e = {.class = HN_EVENT_CALL};
  if (!read_times(r, row, &e)) return true;
  int64_t thread = sqlite3_column_int64(row, 2);
  const char *full = name_in(r, row, 4);
  char name[128];
  snprintf(name, sizeof name, "%s", full ? full : "(call)");
  /* cudaLaunchKernel_v7000 */
  char *version = strrchr(name, '_');
  if (version && version[1] == 'v' && version[2] && version[2 + strspn(version + 2, "0123456789")] == 0)
    *version = 0;
  e.name = name;
  e.kind = hn_timeline_waits(name) ? HONE_SPAN_SYNC : HONE_SPAN_HOST;
  e.process = r->by_process ? (uint64_t)(thread & ~(int64_t)0xffffff) : 0;
  e.correlation = (uint32_t)sqlite3_column_int64(row, 3);
  e.lane = host_lane(r, thread, false);
  hn_timeline_add(r->t, &e);
  return true;
}

static const char *const range_columns[] = {"start", "end", "globalTid", "eventType", "text", "textId", NULL};

static bool add_range(reading *r, sqlite3_stmt *row) {
  hn_event e = {.class = HN_EVENT_RANGE};
  int64_t type = sqlite3_column_int64(row, 3);
  /* 59 push/pop, 60 start/end, 70 and 71 the same of extended payloads; marks and domains have no end. */
  bool typed = sqlite3_column_type(row, 3) != SQLITE_NULL;
  if (sqlite3_column_type(row, 1) == SQLITE_NULL ||
      (typed && type != 59 && type != 60 && type != 70 && type != 71))
    return true;
  if (!read_times(r, row, &e)) return true;
  e.name = name_in(r, row, 4);
  if (!e.name) e.name = name_in(r, row, 5);
  if (!e.name) return true;
  e.lane = host_lane(r, sqlite3_column_int64(row, 2), type == 60 || type == 71);
  hn_timeline_add(r->t, &e);
  return true;
}

/* ---- around it ---- */

static bool add_device_number(reading *r, sqlite3_stmt *row) {
  if (r->device_count >= DEVICES_MOST) return false;
  r->devices[r->device_count].device = sqlite3_column_int64(row, 0);
  r->devices[r->device_count].number = sqlite3_column_int64(row, 1);
  r->devices[r->device_count++].pid = sqlite3_column_int64(row, 2);
  return true;
}

static bool add_gpu(reading *r, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 0);
  if (name && !r->in->meta.device) r->in->meta.device = hn_import_text(r->in, name);
  return true;
}

static bool add_export(reading *r, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 0),
             *value = (const char *)sqlite3_column_text(row, 1);
  if (!name || !value) return true;
  if (strcmp(name, "EXPORT_PRODUCT_VERSION") == 0) r->in->meta.tool_version = hn_import_text(r->in, value);
  if (strcmp(name, "EXPORT_SCHEMA_VERSION") == 0)
    hone_facts_add_version(r->in->facts, "export schema", value);
  return true;
}

static bool add_capture(reading *r, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 0),
             *value = (const char *)sqlite3_column_text(row, 1);
  if (!name || !value) return true;
  hn_import *in = r->in;
  if (strcmp(name, "PROCESS_0:COMMAND") == 0) in->meta.flags = hn_import_text(in, value);
  if (hn_text_starts(name, "PROCESS_0:ARGUMENT_") && in->meta.flags && strlen(in->meta.flags) < 800)
    in->meta.flags = hn_import_say(in, "%s %.200s", in->meta.flags, value);
  return true;
}

static bool add_date(reading *r, sqlite3_stmt *row) {
  const char *text = (const char *)sqlite3_column_text(row, 0);
  if (text) r->in->meta.date = hn_import_text(r->in, text);
  return false;
}

/* What the tool itself says is missing. */
static bool add_diagnostic(reading *r, sqlite3_stmt *row) {
  const char *text = (const char *)sqlite3_column_text(row, 1);
  if (sqlite3_column_int64(row, 0) < 2 || !text) return true;
  size_t n;
  hone_facts_unmeasured(r->in->facts, &n);
  if (n < NOTES_MOST)
    hone_facts_add_unmeasured(r->in->facts, "Nsight Systems says", hn_import_say(r->in, "%.400s", text));
  return true;
}

static const char *kernel_table(reading *r) {
  return hn_database_has(&r->db, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")
             ? "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
             : "CUPTI_ACTIVITY_KIND_KERNEL";
}

static hone_status read_all(reading *r) {
  static const char *const gpu[] = {"name", NULL}, *const pair[] = {"name", "value", NULL},
                           *const numbers[] = {"gpuId", "cudaId", "pid", NULL},
                           *const date[] = {"utcTime", NULL},
                           *const diagnostic[] = {"severity", "text", NULL};
  const char *kernels = kernel_table(r);
  const struct {
    const char *table;
    const char *const *columns;
    add_row *add;
  } tables[] = {{"TARGET_INFO_GPU", gpu, add_gpu},
                {"META_DATA_EXPORT", pair, add_export},
                {"META_DATA_CAPTURE", pair, add_capture},
                {"TARGET_INFO_SESSION_START_TIME", date, add_date},
                {"TARGET_INFO_CUDA_DEVICE", numbers, add_device_number},
                {kernels, kernel_columns, add_kernel},
                {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, add_graph},
                {"CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, add_copy},
                {"CUPTI_ACTIVITY_KIND_MEMSET", set_columns, add_set},
                {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", wait_columns, add_wait},
                {"CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, add_call},
                {"CUPTI_ACTIVITY_KIND_DRIVER", call_columns, add_call},
                {"NVTX_EVENTS", range_columns, add_range},
                {"DIAGNOSTIC_EVENT", diagnostic, add_diagnostic}};
  r->by_process = hn_database_has_column(&r->db, kernels, "globalPid");
  hone_status status = open_strings(r);
  for (size_t i = 0; i < sizeof tables / sizeof *tables && !status; i++)
    status = read_table(r, tables[i].table, tables[i].columns, tables[i].add);
  return status ? status : r->unnamed;
}

static hone_status check_tables(reading *r) {
  static const char *const any[] = {
      "CUPTI_ACTIVITY_KIND_RUNTIME",        "CUPTI_ACTIVITY_KIND_MEMCPY",      "NVTX_EVENTS",
      "CUPTI_ACTIVITY_KIND_MEMSET",         "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_DRIVER",
      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"};
  if (hn_database_has(&r->db, kernel_table(r))) return HONE_OK;
  for (size_t i = 0; i < sizeof any / sizeof *any; i++)
    if (hn_database_has(&r->db, any[i])) return HONE_OK;
  hone_status status = hn_fail(r->error, HONE_ERROR_INPUT, "the database holds no trace of CUDA or NVTX");
  hn_error_where(r->error, "%s", r->db.path);
  hn_error_expected(r->error, "tables CUPTI_ACTIVITY_KIND_* or NVTX_EVENTS");
  hn_error_hint(r->error, "nsys profile --trace=cuda,nvtx, then nsys export --type sqlite");
  return status;
}

static void say_what_is_missing(const reading *r) {
  hone_facts *facts = r->in->facts;
  if (!r->kernels && !r->graphs)
    hone_facts_add_unmeasured(
        facts, "kernels",
        "the export has no kernels: nothing was launched while it was recorded, or the trace of "
        "CUDA was off or cut short");
  if (r->graphs)
    hone_facts_add_unmeasured(facts, "kernels inside of CUDA graphs",
                              hn_import_say(r->in,
                                            "%llu launches of graphs were traced as a whole; nsys profile "
                                            "--cuda-graph-trace=node shows their kernels",
                                            (unsigned long long)r->graphs));
  if (r->broken)
    hone_facts_add_unmeasured(facts, "damaged rows",
                              hn_import_say(r->in, "%llu rows have no usable time and are left out",
                                            (unsigned long long)r->broken));
}

static hone_status open_file(hn_import *in, const char *path, hone_error *error) {
  state *s = in->state;
  if (!s->timeline && !(s->timeline = hn_timeline_create())) return hn_fail_memory(error, 0, "a trace");
  reading r = {.in = in, .t = s->timeline, .error = error};
  hone_status status = hn_database_open(&r.db, path, error);
  if (status && (hn_text_ends(path, ".nsys-rep") || hn_text_ends(path, ".qdrep")))
    hn_error_hint(error, "nsys export --type sqlite %s makes the file that hone reads", path);
  if (!status) status = check_tables(&r);
  if (!status) status = read_all(&r);
  if (!status) say_what_is_missing(&r);
  for (size_t i = 0; r.names && i < NAME_SLOTS; i++) hn_free(r.names[i].text);
  hn_free(r.names);
  if (r.strings) sqlite3_finalize(r.strings);
  hn_database_close(&r.db);
  return status;
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  in->meta.tool = "Nsight Systems";
  in->meta.backend = "cuda";
  in->meta.inner_clock = "CUPTI's";
  return hn_timeline_finish(s->timeline, in, error);
}

static void destroy(void *p) { hn_timeline_destroy(((state *)p)->timeline); }

const struct hn_importer hn_importer_nsys = {.format = {"nsys", "Nsight Systems: nsys export --type sqlite"},
                                             .state_size = sizeof(state),
                                             .sniff = sniff,
                                             .open = open_file,
                                             .finish = finish,
                                             .destroy = destroy};
