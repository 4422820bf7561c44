/* oneDNN's verbose mode (ONEDNN_VERBOSE, DNNL_VERBOSE, MKLDNN_VERBOSE): lines between whatever else a program
 * prints. Which field is which says a template line; each generation has a default. */
#include "insight/import/common/totals.h"
#include "insight/import/common/optype.h"
#include "insight/import/common/timeline.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 1 << 16, EXECUTIONS_MOST = 1 << 20 };

#define FIELDS(X)                                                                                            \
  X(operation)                                                                                               \
  X(engine)                                                                                                  \
  X(primitive)                                                                                               \
  X(implementation) X(prop_kind) X(memory_descriptors) X(attributes) X(auxiliary) X(problem_desc) X(exec_time)
typedef enum field {
#define X(name) F_##name,
  FIELDS(X)
#undef X
      FIELD_COUNT
} field;
static const char *const field_names[] = {
#define X(name) #name,
    FIELDS(X)
#undef X
};

enum { PLACES_MOST = 24 };
#define NO_STAMP INT64_MIN

typedef struct execution {
  int64_t start_ns; /* since 1970; NO_STAMP: not stamped */
  uint32_t layer;   /* index into the totals */
  float ms;
} execution;

typedef struct state {
  hn_import *in;
  hn_totals totals;
  hn_map names;            /* of steps: -> how many have it */
  int places[PLACES_MOST]; /* field at each place from the operation on, -1: another */
  size_t place_count;
  HN_VEC(execution) executions;
  hn_str line;
  uint64_t broken, dropped, graph;
  double sum_ms;
} state;

static int sniff(const hn_sniff *s) {
  if (!hn_sniff_has(s, "onednn_verbose,") && !hn_sniff_has(s, "dnnl_verbose,") &&
      !hn_sniff_has(s, "mkldnn_verbose,"))
    return 0;
  return hn_sniff_first(s) == '{' || hn_sniff_first(s) == '[' ? 30 : 90;
}

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a oneDNN log"); }

/* ---- one line ---- */

static void set_template(state *s, char *text) {
  s->place_count = 0;
  for (char *at = text, *next; at && s->place_count < PLACES_MOST; at = next) {
    if ((next = strchr(at, ','))) *next++ = 0;
    if (strcmp(at, "timestamp") == 0 && s->place_count == 0)
      continue; /* stands before, and is found by its look */
    int found = -1;
    for (int i = 0; i < FIELD_COUNT; i++)
      if (strcmp(at, field_names[i]) == 0 || (i == F_auxiliary && strcmp(at, "aux") == 0)) found = i;
    s->places[s->place_count++] = found;
  }
}

static void default_template(state *s, bool mkldnn) {
  char old[] =
      "operation,primitive,implementation,prop_kind,memory_descriptors,auxiliary,problem_desc,exec_time";
  char now[] = "operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,"
               "problem_desc,exec_time";
  set_template(s, mkldnn ? old : now);
}

static bool is_number(const char *text) {
  double value;
  const char *end;
  return hn_text_number(text, &value, &end) && !*end;
}

/* Data type of the first memory that the descriptors speak of: "src_f32::blocked:...",
 * "src:f32::blocked:...". */
static const char *dtype_of(const char *descriptors) {
  for (const char *at = descriptors; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
    size_t n = strcspn(at, " ");
    char word[16];
    const char *start = memchr(at, '_', n);
    const char *colon = memchr(at, ':', n);
    if (!start || (colon && colon < start)) start = colon;
    if (!start) continue;
    size_t length = strcspn(start + 1, ": ");
    if (!length || length >= sizeof word) continue;
    memcpy(word, start + 1, length);
    word[length] = 0;
    const char *dtype = hn_text_dtype(word);
    if (dtype) return dtype;
  }
  return NULL;
}

/* "ic64" in "g1mb1_ic3oc64_ih224oh112kh7..."; 0: not there. */
static double dimension(const char *problem, const char *letters) {
  size_t n = strlen(letters);
  for (const char *at = problem; (at = strstr(at, letters)); at++)
    if ((at == problem || !isalpha((unsigned char)at[-1])) && isdigit((unsigned char)at[n]))
      return strtod(at + n, NULL);
  return 0;
}

static double at_least_one(double value) { return value > 0 ? value : 1; }

static uint64_t whole(double value) { return value > 0 && value < 1e18 ? (uint64_t)value : 0; }

static double product(const int64_t *dims, size_t n) {
  double all = n ? 1 : 0;
  for (size_t i = 0; i < n; i++) all *= dims[i] > 0 ? (double)dims[i] : 0;
  return all;
}

static void size_conv(hone_step_fact *step, const char *p, bool transposed, unsigned bytes) {
  double ic = dimension(p, "ic"), oc = dimension(p, "oc"), g = at_least_one(dimension(p, "g")),
         mb = at_least_one(dimension(p, "mb"));
  double in = 1, out = 1, kernel = 1;
  static const char *const sides[][3] = {{"id", "od", "kd"}, {"ih", "oh", "kh"}, {"iw", "ow", "kw"}};
  for (size_t i = 0; i < 3; i++) {
    in *= at_least_one(dimension(p, sides[i][0]));
    out *= at_least_one(dimension(p, sides[i][1]));
    kernel *= at_least_one(dimension(p, sides[i][2]));
  }
  if (ic <= 0 || oc <= 0) return;
  step->channels_in = ic < INT32_MAX ? (int32_t)ic : 0;
  step->channels_out = oc < INT32_MAX ? (int32_t)oc : 0;
  double weights = ic / g * oc * kernel;
  step->flops = whole(2 * mb * weights * (transposed ? in : out));
  step->weight_bytes = whole(weights * bytes);
  step->bytes = whole((mb * (ic * in + oc * out) + weights) * bytes);
}

/* The dimensions before the next ':'. */
static size_t dims_of(const char *text, int64_t *dims, size_t most) {
  char one[256];
  snprintf(one, sizeof one, "%.*s", (int)strcspn(text, ":"), text);
  return hn_text_dims(one, dims, most);
}

/* "64x32:32x16" or "64x32:32x16:64x16" */
static void size_matmul(hone_step_fact *step, const char *p, unsigned bytes) {
  int64_t a[12], b[12];
  const char *second = strchr(p, ':');
  size_t na = dims_of(p, a, 12), nb = second ? dims_of(second + 1, b, 12) : 0;
  if (na < 2 || nb < 2) return;
  double batch_a = product(a, na - 2), batch_b = product(b, nb - 2);
  double batch = at_least_one(batch_a > batch_b ? batch_a : batch_b), m = (double)a[na - 2],
         k = (double)a[na - 1], n = (double)b[nb - 1];
  if (m <= 0 || k <= 0 || n <= 0) return;
  step->flops = whole(2 * batch * m * n * k);
  step->weight_bytes = whole(product(b, nb) * bytes);
  step->bytes = whole((product(a, na) + product(b, nb) + batch * m * n) * bytes);
  step->channels_in = k < INT32_MAX ? (int32_t)k : 0;
  step->channels_out = n < INT32_MAX ? (int32_t)n : 0;
}

static const char *eltwise_type(const char *auxiliary) {
  const char *alg = auxiliary ? strstr(auxiliary, "alg:") : NULL;
  if (!alg) return NULL;
  char word[48];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(alg + 4, " :"), alg + 4);
  static const char *const prefixes[] = {"eltwise_", "binary_", "pooling_", "reduction_"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (hn_text_starts(word, prefixes[i])) {
      if (i == 2) return strstr(word, "max") ? "MaxPool" : "AveragePool";
      return hn_optype_of_operator(word + strlen(prefixes[i]));
    }
  return NULL;
}

static bool fill_step(state *s, hn_total *total, char **f) {
  hn_import *in = s->in;
  hone_step_fact *step = &total->step;
  const char *primitive = f[F_primitive], *problem = f[F_problem_desc] ? f[F_problem_desc] : "";
  const char *type = eltwise_type(f[F_auxiliary]);
  if (!type) type = hn_optype_of_operator(primitive);
  step->op_type = type ? type : hn_import_text(in, primitive);
  step->tactic = hn_import_text(in, f[F_implementation]);
  step->epilogue =
      f[F_attributes] && strstr(f[F_attributes], "post") ? hn_import_text(in, f[F_attributes]) : NULL;
  step->dtype = dtype_of(f[F_memory_descriptors]);
  step->shape_in = hn_import_text(in, problem);
  step->is_reference = f[F_implementation] && hn_text_starts(f[F_implementation], "ref");
  step->is_reformat = strcmp(primitive, "reorder") == 0;
  if (step->is_reformat) total->kind = HONE_SPAN_REFORMAT;
  unsigned bytes = hn_text_dtype_bytes(step->dtype ? step->dtype : "f32");
  if (strstr(primitive, "convolution") || strcmp(primitive, "inner_product") == 0)
    size_conv(step, problem, strcmp(primitive, "deconvolution") == 0, bytes);
  else if (strcmp(primitive, "matmul") == 0)
    size_matmul(step, problem, bytes);
  else if (step->is_reformat) {
    int64_t dims[12];
    step->bytes = whole(2 * product(dims, dims_of(problem, dims, 12)) * bytes);
  }
  /* Names are unique; the same problem solved otherwise has a number. */
  char name[512];
  snprintf(name, sizeof name, "%s %.400s", primitive, problem);
  intptr_t uses = (intptr_t)hn_map_get(&s->names, name) + 1;
  if (uses > 1) {
    const char *key = hn_import_text(in, name);
    if (!key || !hn_map_set(&s->names, key, (void *)uses)) return false;
    step->name = hn_import_say(in, "%s #%d", name, (int)uses);
    return step->name != NULL;
  }
  step->name = hn_import_text(in, name);
  return step->name && hn_map_set(&s->names, step->name, (void *)uses);
}

static hone_status add_execution(state *s, char **f, int64_t stamp, hone_error *error) {
  double ms;
  const char *end;
  if (!f[F_primitive] || !f[F_exec_time] || !hn_text_number(f[F_exec_time], &ms, &end) ||
      !(ms >= 0 && ms < 1e12)) {
    s->broken++;
    return HONE_OK;
  }
  hn_str key = {0};
  for (int i = F_engine; i < F_exec_time; i++) hn_str_printf(&key, "%s,", f[i] ? f[i] : "");
  hn_total *total = key.failed ? NULL : hn_totals_get(&s->totals, s->in, key.ptr);
  hn_str_free(&key);
  if (!total || (!total->step.name && !fill_step(s, total, f))) return no_memory(error);
  s->sum_ms += ms;
  if (s->executions.len >= EXECUTIONS_MOST) {
    s->dropped++;
    return HONE_OK;
  }
  execution e = {stamp, total->index, (float)ms};
  return hn_vec_push(&s->executions, e) ? HONE_OK : no_memory(error);
}

/* Everything behind "onednn_verbose,". */
static hone_status read_record(state *s, char *at, bool mkldnn, hone_error *error) {
  int64_t stamp = NO_STAMP;
  bool graph = false;
  for (bool again = true; again;) {
    char *comma = strchr(at, ',');
    size_t n = comma ? (size_t)(comma - at) : 0;
    again = false;
    if (!n) break;
    *comma = 0;
    if ((at[0] == 'v' && isdigit((unsigned char)at[1]) && !at[2]) || strcmp(at, "primitive") == 0 ||
        strcmp(at, "graph") == 0) {
      graph = graph || at[0] == 'g';
      again = true;
    } else if (is_number(at) && hn_text_ns(at, 6, &stamp))
      again = true;
    if (again)
      at = comma + 1;
    else
      *comma = ',';
  }
  if (hn_text_starts(at, "info,")) {
    hone_facts *facts = s->in->facts;
    char *template = strstr(at, "template:");
    if (template && !graph && !strstr(at, "partition")) set_template(s, template + 9);
    if (hn_text_starts(at, "info,oneDNN v") || hn_text_starts(at, "info,DNNL v"))
      s->in->meta.tool_version = hn_import_text(s->in, strchr(at, 'v') + 1);
    if (hn_text_starts(at, "info,cpu,isa:")) hone_facts_add_version(facts, "instructions", at + 13);
    char *threads = strstr(at, "nthr:");
    if (threads && hn_text_starts(at, "info,cpu")) s->in->meta.threads = strtod(threads + 5, NULL);
    return HONE_OK;
  }
  if (!hn_text_starts(at, "exec,")) return HONE_OK;
  if (graph) {
    s->graph++;
    return HONE_OK;
  }
  if (!s->place_count) default_template(s, mkldnn);
  char *f[FIELD_COUNT] = {0};
  size_t place = 0;
  char *last = NULL;
  for (char *next; at; at = next, place++) {
    if ((next = strchr(at, ','))) *next++ = 0;
    last = at;
    if (place < s->place_count && s->places[place] >= 0 && *at) f[s->places[place]] = at;
  }
  /* Some primitives leave fields out or write commas of their own: the time is what stands last. */
  if (place != s->place_count && last && is_number(last)) f[F_exec_time] = last;
  return add_execution(s, f, stamp, error);
}

static hone_status read_line(state *s, hone_error *error) {
  static const char *const markers[] = {"onednn_verbose,", "mkldnn_verbose,", "dnnl_verbose,"};
  for (size_t i = 0; s->line.ptr && i < sizeof markers / sizeof *markers; i++) {
    char *at = strstr(s->line.ptr, markers[i]);
    if (at) return read_record(s, at + strlen(markers[i]), i == 1, error);
  }
  return HONE_OK;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  s->in = in;
  s->place_count = 0;
  hone_status status = HONE_OK;
  size_t before = s->executions.len;
  for (bool more = true; more && !status;) {
    int c = hn_source_peek(source);
    more = c != HN_SOURCE_EOF;
    if (more) source->at++;
    if (more && c != '\n') {
      if (c && c != '\r' && s->line.len < LINE_MOST) hn_str_putc(&s->line, (char)c);
      continue;
    }
    status = s->line.failed ? no_memory(error) : read_line(s, error);
    hn_str_clear(&s->line);
    source->line++;
  }
  if (!status) status = source->status;
  if (status || s->executions.len > before) return status;
  status = hn_source_fail_line(source, error, source->line, "the log holds no execution of a primitive");
  hn_error_expected(error, "lines onednn_verbose,...,exec,...");
  hn_error_hint(error,
                "run the program with ONEDNN_VERBOSE=1 (or profile_exec) and keep its standard output");
  return status;
}

/* ---- runs ---- */

/* A network that is run again and again executes the same sequence. Finds the shortest period of the longest
 * end of the log that is at least two such sequences and half of all; 0: there is none. *first is where the
 * first whole sequence starts. */
static size_t find_period(const execution *e, size_t n, size_t *first, bool *ok) {
  size_t *border = hn_malloc((n + 1) * sizeof *border), period = 0;
  *ok = border != NULL;
  *first = 0;
  if (!border || !n) {
    hn_free(border);
    return 0;
  }
  /* The prefix function of the reversed log. */
#define AT(i) e[n - 1 - (i)].layer
  border[0] = 0;
  size_t best = 0;
  for (size_t i = 1, k = 0; i < n; i++) {
    while (k && AT(i) != AT(k)) k = border[k - 1];
    if (AT(i) == AT(k)) k++;
    border[i] = k;
    size_t length = i + 1, p = length - k;
    if (length >= 2 * p && 2 * length >= n && length > best) {
      best = length;
      period = p;
    }
  }
#undef AT
  hn_free(border);
  if (period) *first = n - best / period * period;
  return period;
}

static int64_t end_of(const execution *e) { return e->start_ns + (int64_t)((double)e->ms * 1e6 + 0.5); }

/* With time stamps each execution is a span, and each sequence a run: up to the start of the next. */
static hone_status write_spans(state *s, size_t first, size_t period, hone_error *error) {
  hn_timeline *t = hn_timeline_create();
  if (!t) return no_memory(error);
  const execution *all = s->executions.ptr;
  uint32_t lane = hn_timeline_lane(t, false, 0, 0, "oneDNN");
  for (size_t i = 0; i < s->executions.len; i++) {
    const hn_total *total = s->totals.list.ptr[all[i].layer];
    hn_event event = {.class = HN_EVENT_OP,
                      .kind = total->kind,
                      .lane = lane,
                      .name = total->step.name,
                      .start_ns = all[i].start_ns,
                      .end_ns = end_of(&all[i])};
    hn_timeline_add(t, &event);
    if (!period || i < first || (i - first) % period) continue;
    size_t next = i + period;
    event = (hn_event){.class = HN_EVENT_RANGE, .lane = lane, .name = "run", .start_ns = all[i].start_ns};
    event.end_ns = next < s->executions.len ? all[next].start_ns : end_of(&all[next - 1]);
    hn_timeline_add(t, &event);
  }
  /* The steps with all that is known of them come first, the time line finds them by their names. Those of
   * the first runs alone are no layers. */
  hone_status status = HONE_OK;
  for (size_t i = first; i < s->executions.len && !status; i++) {
    const hn_total *total = s->totals.list.ptr[all[i].layer];
    if (hn_import_step(s->in, total->step.name, &total->step) < 0) status = no_memory(error);
  }
  if (!status) status = hn_timeline_finish(t, s->in, error);
  hn_timeline_destroy(t);
  return status;
}

static hone_status write_totals(state *s, size_t first, size_t period, hone_error *error) {
  for (size_t i = 0; i < s->executions.len; i++) {
    const execution *e = &s->executions.ptr[i];
    if (i >= first && !hn_totals_add(&s->totals, s->totals.list.ptr[e->layer], (double)e->ms))
      return no_memory(error);
  }
  size_t kept = 0;
  for (size_t i = 0; i < s->totals.list.len; i++) /* what only the first runs executed is no layer of a run */
    if (s->totals.list.ptr[i]->count) s->totals.list.ptr[kept++] = s->totals.list.ptr[i];
  s->totals.list.len = kept;
  return hn_totals_write(&s->totals, s->in, period ? (s->executions.len - first) / period : 1, NULL, error);
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  bool ok, stamped = s->executions.len > 0;
  for (size_t i = 0; i < s->executions.len; i++)
    stamped = stamped && s->executions.ptr[i].start_ns != NO_STAMP;
  size_t first, period = find_period(s->executions.ptr, s->executions.len, &first, &ok);
  if (!ok) return no_memory(error);
  hone_status status = stamped ? write_spans(s, first, period, error) : write_totals(s, first, period, error);
  if (status) return status;
  in->meta.tool = "oneDNN";
  in->meta.backend = "cpu";
  in->meta.inner_clock = "oneDNN's";
  const size_t runs = period ? (s->executions.len - first) / period : 1;
  in->meta.runs = (double)runs;
  hone_facts_add_counter(in->facts, &(hone_counter){"primitives_in_log_ms", "ms", -1, s->sum_ms});
  hone_facts_add_counter(
      in->facts, &(hone_counter){"primitives_in_log", "", -1, (double)(s->executions.len + s->dropped)});
  if (first)
    hone_facts_add_unmeasured(in->facts, "first runs",
                              hn_import_say(in,
                                            "the first %zu executions are not part of the repeated "
                                            "sequence and count as warm-up",
                                            first));
  if (s->graph)
    hone_facts_add_unmeasured(in->facts, "graph partitions",
                              hn_import_say(in,
                                            "%llu executions of oneDNN Graph are left out: their "
                                            "primitives stand for them",
                                            (unsigned long long)s->graph));
  if (s->broken || s->dropped)
    hone_facts_add_unmeasured(in->facts, "lines of the log",
                              hn_import_say(in, "%llu lines are damaged and %llu more than can be kept",
                                            (unsigned long long)s->broken, (unsigned long long)s->dropped));
  hone_facts_add_unmeasured(in->facts, "time outside of oneDNN", "the log tells only of oneDNN's primitives");
  return HONE_OK;
}

static void destroy(void *p) {
  state *s = p;
  hn_totals_free(&s->totals);
  hn_map_free(&s->names);
  hn_vec_free(&s->executions);
  hn_str_free(&s->line);
}

const struct hn_importer hn_importer_onednn = {
    .format = {"onednn", "oneDNN: standard output of a program with ONEDNN_VERBOSE=1"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
