/* Reports: fields that others rely on, escaping in every format, and a terminal that cannot be driven by
 * names. */
#include "base/str.h"
#include "insight/sample.h"

#include <hone/insight.h>
#include <jansson.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct pair {
  hone_facts *before, *after;
  hone_profile *a, *b;
  hone_findings *findings;
  hone_report_verdict verdict;
  hone_report_input input;
} pair;

static int setup(void **state) {
  static pair p;
  hone_error error = {0};
  p.before = sample_facts(0);
  p.after = sample_facts(2);
  assert_int_equal(hone_profile_create(p.before, NULL, &p.a, &error), HONE_OK);
  assert_int_equal(hone_profile_create(p.after, NULL, &p.b, &error), HONE_OK);
  assert_int_equal(hone_diagnose(p.a, NULL, &p.findings, &error), HONE_OK);
  assert_int_equal(hone_findings_measure(p.findings, p.a, p.b, &error), HONE_OK);
  p.verdict = (hone_report_verdict){.verdict = "same", .inputs = 100, .tolerance = 1e-4};
  p.input = (hone_report_input){
      .baseline = p.a, .optimized = p.b, .findings = p.findings, .verification = &p.verdict};
  p.input.has_prediction = true;
  p.input.predicted_gain_pct = 10;
  *state = &p;
  return 0;
}

static int teardown(void **state) {
  pair *p = *state;
  hone_findings_destroy(p->findings);
  hone_profile_destroy(p->a);
  hone_profile_destroy(p->b);
  hone_facts_destroy(p->before);
  hone_facts_destroy(p->after);
  return 0;
}

static hone_status collect(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  hn_str_append(user, data, length);
  return HONE_OK;
}

static hn_str write(const hone_report_input *input, hone_report_format format) {
  hn_str out = {0};
  hone_error error = {0};
  assert_int_equal(hone_report_write(input, format, collect, &out, &error), HONE_OK);
  assert_true(out.len > 0);
  return out;
}

/* A command of any length is printed whole: half of one would be another command. */
static void long_commands_stay_whole(void **state) {
  pair *p = *state;
  char command[3000];
  memset(command, 'x', sizeof command);
  memcpy(command + sizeof command - 5, " end", 5);
  const char *commands[] = {command};
  hone_finding finding = p->findings->items[0];
  finding.commands = commands;
  finding.command_count = 1;
  const hone_findings findings = {&finding, 1, HONE_LANGUAGE_EN};
  hone_report_input in = {.baseline = p->a, .findings = &findings, .sections = HONE_SECTION_FINDINGS};
  hn_str out = write(&in, HONE_REPORT_TEXT);
  assert_non_null(strstr(out.ptr, "xxxx end\n"));
  hn_str_free(&out);
}

/* A change that cannot be told is not told in percent. */
static void predictions_below_what_can_be_told(void **state) {
  pair *p = *state;
  hone_report_input in = p->input;
  hn_str out = write(&in, HONE_REPORT_TEXT);
  assert_non_null(strstr(out.ptr, "predicted +10.0 %"));
  hn_str_free(&out);
  in.predicted_gain_pct = 0, in.predicted_unsure_ms = 0.005;
  out = write(&in, HONE_REPORT_TEXT);
  assert_non_null(strstr(out.ptr, "predicted no change that can be told (less than 0.005 ms), measured "));
  assert_null(strstr(out.ptr, "predicted +0.0 %, "));
  hn_str_free(&out);
}

static json_t *parsed(const hone_report_input *input, hone_report_format format) {
  hn_str out = write(input, format);
  json_error_t where;
  json_t *root = json_loadb(out.ptr, out.len, JSON_REJECT_DUPLICATES, &where);
  if (!root) fail_msg("format %d is no JSON: %s at line %d", format, where.text, where.line);
  hn_str_free(&out);
  return root;
}

static double number(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  if (!json_is_number(v)) fail_msg("%s is no number", key);
  return json_number_value(v);
}

static void seed_fields(void **state) {
  pair *p = *state;
  json_t *root = parsed(&p->input, HONE_REPORT_JSON);
  static const char *const numbers[] = {"batch",          "avg_latency_ms", "p95_latency_ms",
                                        "throughput_fps", "h2d_ms_ratio",   "memory_peak_mb"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) number(root, numbers[i]);
  assert_true(json_is_null(json_object_get(root, "post_ms_ratio"))); /* nobody measured a stage behind it */
  static const char *const texts[] = {"commit", "model",        "profiling_date",
                                      "flags",  "hone_version", "post_ms_ratio_reason"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_true(json_is_string(json_object_get(root, texts[i])));
  assert_true(json_is_null(json_object_get(root, "temperature_c_range")));
  assert_true(json_is_string(json_object_get(root, "temperature_c_range_reason")));
  assert_true(json_array_size(json_object_get(json_object_get(root, "optimized"), "samples_ms")) ==
              p->b->wall.count);
  assert_true(json_array_size(json_object_get(root, "findings")) == p->findings->count);
  const json_t *change = json_object_get(root, "before_after");
  assert_true(fabs(number(change, "speedup") - p->a->wall.p50 / p->b->wall.p50) < 1e-9);
  assert_true(number(change, "predicted_gain_pct") == 10);
  assert_string_equal(json_string_value(json_object_get(json_object_get(root, "verification"), "verdict")),
                      "same");
  assert_true(json_is_array(json_object_get(json_object_get(root, "machine"), "roofs")));
  json_decref(root);
}

/* A ratio is measured or null with its reason; a device's memory is the device's, the host's beside it. */
static void measured_or_why(void **state) {
  (void)state;
  for (int kind = 0; kind < 3;
       kind++) { /* nothing beside the network; with stages; another tool's on a GPU */
    hone_error error = {0};
    hone_facts *f = hone_facts_create();
    hone_facts_meta m = {.tool = kind == 2 ? "trtexec" : "hone",
                         .backend = "cuda",
                         .hone_version = "0.1.0 (abc)",
                         .commit = "feed",
                         .opt_level = -1};
    hone_facts_set_meta(f, &m);
    hone_facts_set_memory(f, &(hone_memory_facts){.predicted_peak = 3 << 20,
                                                  .actual_peak = 2 << 20,
                                                  .rss_peak = 80 << 20,
                                                  .device_peak = 16 << 20});
    hone_facts_add_span(f, &(hone_span){.start_ns = 0, .end_ns = 1000000, .kind = HONE_SPAN_RUN, .step = -1});
    hone_facts_add_span(f, &(hone_span){.start_ns = 200000,
                                        .end_ns = 700000,
                                        .kind = HONE_SPAN_KERNEL,
                                        .step = -1,
                                        .parent = 1,
                                        .name = "k",
                                        .op_type = "Conv"});
    if (kind == 1) {
      hone_facts_add_span(
          f,
          &(hone_span){.start_ns = 0, .end_ns = 200000, .kind = HONE_SPAN_COPY_H2D, .step = -1, .parent = 1});
      hone_facts_add_span(
          f, &(hone_span){
                 .start_ns = 700000, .end_ns = 800000, .kind = HONE_SPAN_POST, .step = -1, .parent = 1});
    }
    hone_profile *p;
    if (hone_profile_create(f, NULL, &p, &error) != HONE_OK) fail_msg("%s", error.what);
    json_t *root = parsed(&(hone_report_input){.baseline = p}, HONE_REPORT_JSON);
    const json_t *h2d = json_object_get(root, "h2d_ms_ratio"), *post = json_object_get(root, "post_ms_ratio");
    if (kind == 1) {
      assert_true(fabs(json_number_value(h2d) - 0.2) < 1e-9);
      assert_true(fabs(json_number_value(post) - 0.1) < 1e-9);
      assert_null(json_object_get(root, "post_ms_ratio_reason"));
    } else {
      assert_true(json_is_null(post));
      assert_true(json_is_string(json_object_get(root, "post_ms_ratio_reason")));
      assert_true(kind == 2 ? json_is_null(h2d) : json_number_value(h2d) == 0 && json_is_number(h2d));
      assert_int_equal(json_is_string(json_object_get(root, "h2d_ms_ratio_reason")), kind == 2);
    }
    assert_true(number(root, "memory_peak_mb") == 16 && number(root, "host_rss_peak_mb") == 80);
    assert_string_equal(json_string_value(json_object_get(root, "memory_peak_source")),
                        "memory of the device");
    assert_string_equal(json_string_value(json_object_get(root, "hone_version")), "0.1.0 (abc)");
    assert_string_equal(json_string_value(json_object_get(root, "commit")), "feed");
    json_decref(root);
    hn_str out = write(&(hone_report_input){.baseline = p}, HONE_REPORT_TEXT);
    assert_non_null(strstr(out.ptr, "device memory 16.0 MiB"));
    assert_non_null(strstr(out.ptr, "activations at peak: 3.00 MiB predicted, 2.00 MiB used"));
    hn_str_free(&out);
    hone_profile_destroy(p);
    hone_facts_destroy(f);
  }
}

static void temperature_when_measured(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = sample_facts(2);
  hone_facts_add_counter(facts, &(hone_counter){"temperature_c_min", "C", -1, 41});
  hone_facts_add_counter(facts, &(hone_counter){"temperature_c_max", "C", -1, 55});
  hone_profile *profile;
  assert_int_equal(hone_profile_create(facts, NULL, &profile, &error), HONE_OK);
  json_t *root = parsed(&(hone_report_input){.baseline = profile}, HONE_REPORT_JSON);
  const json_t *range = json_object_get(root, "temperature_c_range");
  assert_int_equal(json_array_size(range), 2);
  assert_true(json_number_value(json_array_get(range, 1)) == 55);
  assert_true(json_is_null(json_object_get(root, "before_after")));
  json_decref(root);
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
}

/* profile --json is facts v1 (another hone reads it) with derived tables beside it. */
static void profile_json_is_facts(void **state) {
  pair *p = *state;
  hone_report_input input = {.baseline = p->b};
  hn_str out = write(&input, HONE_REPORT_PROFILE_JSON);
  hone_error error = {0};
  hone_facts *facts = NULL;
  hone_profile *again = NULL;
  assert_int_equal(hone_facts_from_json(out.ptr, out.len, &facts, &error), HONE_OK);
  assert_int_equal(hone_profile_create(facts, NULL, &again, &error), HONE_OK);
  assert_true(again->closure.wall_ms == p->b->closure.wall_ms);
  assert_true(again->layer_count == p->b->layer_count);
  hone_profile_destroy(again);
  hone_facts_destroy(facts);
  json_t *root = json_loadb(out.ptr, out.len, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(root);
  number(root, "wall_ms");
  number(json_object_get(root, "closure"), "residual_pct");
  const json_t *layer = json_array_get(json_object_get(root, "layers"), 1);
  static const char *const fields[] = {"time_ms", "pct",    "calls", "p50_ms",  "p95_ms",
                                       "cv",      "gflops", "gbs",   "roof_pct"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) number(layer, fields[i]);
  assert_true(json_is_string(json_object_get(layer, "bound")));
  assert_true(json_array_size(json_object_get(layer, "onnx_nodes")) > 1);
  json_decref(root);
  hn_str_free(&out);
}

/* What is left in the new plan, and what runs today beside both; a purpose before what is no remedy. */
static void left_and_today(void **state) {
  pair *p = *state;
  hone_report_input input = p->input;
  json_t *root = parsed(&input, HONE_REPORT_JSON);
  assert_true(json_is_null(json_object_get(root, "left")));
  assert_true(json_is_null(json_object_get(json_object_get(root, "before_after"), "today")));
  json_decref(root);
  hone_error error = {0};
  hone_findings *left = NULL;
  hone_facts *facts = sample_facts(2);
  hone_facts_meta meta = *hone_facts_get_meta(facts);
  hone_profile *today = NULL;
  meta.tool = "othertool";
  meta.tool_version = "7.1";
  hone_facts_set_meta(facts, &meta);
  assert_int_equal(hone_profile_create(facts, NULL, &today, &error), HONE_OK);
  assert_int_equal(hone_diagnose(p->b, NULL, &left, &error), HONE_OK);
  input.left = left;
  input.today = today;
  root = parsed(&input, HONE_REPORT_JSON);
  assert_int_equal(json_array_size(json_object_get(root, "left")), left->count);
  const json_t *row = json_object_get(json_object_get(root, "before_after"), "today");
  assert_string_equal(json_string_value(json_object_get(row, "tool")), "othertool");
  assert_true(fabs(number(row, "speedup") - today->wall.p50 / p->b->wall.p50) < 1e-9);
  json_decref(root);
  hn_str out = write(&input, HONE_REPORT_TEXT);
  assert_non_null(strstr(out.ptr, "What is left"));
  assert_non_null(strstr(out.ptr, "othertool 7.1"));
  assert_non_null(strstr(out.ptr, "which runs today: x"));
  assert_non_null(strstr(out.ptr, "(hone, level"));
  assert_null(strstr(out.ptr, ":?"));
  hn_str_free(&out);
  hone_findings_destroy(left);
  hone_profile_destroy(today);
  hone_facts_destroy(facts);
}

static void findings_schema(void **state) {
  pair *p = *state;
  json_t *root = parsed(&p->input, HONE_REPORT_FINDINGS_JSON);
  const json_t *list = json_object_get(root, "findings"), *f;
  size_t i;
  assert_true(json_array_size(list) > 0);
  json_array_foreach(list, i, f) {
    static const char *const texts[] = {"id", "title", "severity", "subject", "cause", "s_basis"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
      assert_true(json_is_string(json_object_get(f, texts[k])));
    static const char *const numbers[] = {"p", "s", "predicted_gain_pct", "confidence"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) number(f, numbers[k]);
    const bool done = strcmp(json_string_value(json_object_get(f, "remedy")), "optimizer") == 0;
    assert_true(json_is_number(json_object_get(f, "measured_gain_pct")) == done); /* else: null */
    const json_t *evidence = json_array_get(json_object_get(f, "evidence"), 0);
    assert_true(json_is_string(json_object_get(evidence, "name")));
    assert_true(json_is_string(json_object_get(evidence, "unit")));
    assert_true(json_is_string(json_object_get(evidence, "source")));
    number(evidence, "value");
    assert_true(json_array_size(json_object_get(f, "commands")) > 0);
  }
  json_decref(root);
}

static void trace_events(void **state) {
  pair *p = *state;
  json_t *root = parsed(&p->input, HONE_REPORT_TRACE);
  const json_t *events = json_object_get(root, "traceEvents"), *e;
  size_t i, complete = 0, counters = 0, names = 0, spans, n;
  hone_facts_spans(p->before, &spans);
  hone_facts_spans(p->after, &n);
  json_array_foreach(events, i, e) {
    const char *ph = json_string_value(json_object_get(e, "ph"));
    assert_non_null(ph);
    assert_true(json_is_string(json_object_get(e, "name")));
    if (*ph == 'X') {
      complete++;
      assert_true(number(e, "ts") >= 0);
      assert_true(number(e, "dur") >= 0);
    } else if (*ph == 'C')
      counters++;
    else if (*ph == 'M')
      names++;
    else
      fail_msg("unexpected phase %s", ph);
  }
  assert_int_equal(complete, spans + n);
  assert_true(counters > 0);
  assert_true(names >= 4);
  json_decref(root);
}

static void csv_quotes(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = hone_facts_create();
  hone_facts_add_span(
      facts,
      &(hone_span){.kind = HONE_SPAN_KERNEL, .name = "=cmd|'x'!A1, \"q\"\nz", .step = -1, .end_ns = 1000});
  hone_profile *profile;
  assert_int_equal(hone_profile_create(facts, NULL, &profile, &error), HONE_OK);
  hn_str out = write(&(hone_report_input){.baseline = profile}, HONE_REPORT_CSV);
  assert_non_null(strstr(out.ptr, "\r\n\"'=cmd|'x'!A1, \"\"q\"\"\\x0az\",kernel,kernel,"));
  assert_memory_equal(out.ptr, "name,type,", 10);
  hn_str_free(&out);
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
}

/* Between the script element's tags there is no '<' at all, so nothing can close it or open another. */
static void html_data_is_inert(void **state) {
  pair *p = *state;
  p->input.title = "</script><script>alert(2)</script><!--";
  hn_str out = write(&p->input, HONE_REPORT_HTML);
  p->input.title = NULL;
  char *data = strstr(out.ptr, "id=\"report-data\">");
  assert_non_null(data);
  data += strlen("id=\"report-data\">");
  char *end = strchr(data, '<');
  assert_non_null(end);
  assert_memory_equal(end, "</script>", 9);
  *end = 0;
  json_t *root = json_loads(data, 0, NULL);
  assert_non_null(root);
  assert_string_equal(json_string_value(json_object_get(root, "title")),
                      "</script><script>alert(2)</script><!--");
  json_decref(root);
  /* Self-contained: no address to load anything from. The SVG namespace is a name, not an address. */
  *end = '<';
  for (char *at = out.ptr; (at = strstr(at, "http")); at++)
    if (strncmp(at, "http://www.w3.org/2000/svg", 26) != 0 && strncmp(at, "http-equiv", 10) != 0)
      fail_msg("an address: %.60s", at);
  assert_null(strstr(out.ptr, "innerHTML"));
  assert_null(strstr(out.ptr, "@@"));
  assert_non_null(strstr(out.ptr, "Content-Security-Policy"));
  hn_str_free(&out);
}

static void terminal_is_safe(void **state) {
  (void)state;
  hone_error error = {0};
  hone_facts *facts = hone_facts_create();
  hone_facts_set_meta(facts, &(hone_facts_meta){.model = "m\033]0;owned\007\n.onnx"});
  hone_facts_add_span(facts, &(hone_span){.kind = HONE_SPAN_KERNEL,
                                          .name = "\033[2Jclear\r\xc2\x9b"
                                                  "31m\xff",
                                          .step = -1,
                                          .end_ns = 1000});
  hone_profile *profile;
  assert_int_equal(hone_profile_create(facts, NULL, &profile, &error), HONE_OK);
  hn_str out = write(&(hone_report_input){.baseline = profile}, HONE_REPORT_TEXT);
  for (size_t i = 0; i < out.len; i++) {
    unsigned char c = (unsigned char)out.ptr[i];
    if (c != '\n' && (c < 0x20 || c >= 0x7f)) fail_msg("byte %02x at %zu reaches the terminal", c, i);
  }
  hn_str_free(&out);
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
}

static size_t columns(const char *line, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += (line[i] & 0xc0) != 0x80;
  return count;
}

static void text_keeps_the_width(void **state) {
  pair *p = *state;
  for (int width = 60; width <= 200; width += 35) {
    hone_report_input input = p->input;
    input.width = width;
    input.unicode = width % 2;
    input.sections = HONE_SECTION_LAYERS | HONE_SECTION_TYPES;
    hn_str out = write(&input, HONE_REPORT_TEXT);
    for (const char *line = out.ptr; *line;) {
      size_t n = strcspn(line, "\n");
      if (columns(line, n) > (size_t)width) fail_msg("width %d: %.*s", width, (int)n, line);
      line += n + (line[n] == '\n');
    }
    hn_str_free(&out);
  }
}

/* Narrow terminals get no bar, then no number of layers, then shorter names. */
static void shares_keep_the_width(void **state) {
  pair *p = *state;
  for (int width = 40; width <= 100; width++) {
    hone_report_input input = {
        .baseline = p->a, .width = width, .sections = HONE_SECTION_TYPES}; /* with BatchNormalization */
    hn_str out = write(&input, HONE_REPORT_TEXT);
    for (const char *line = out.ptr; *line;) {
      size_t n = strcspn(line, "\n");
      if (columns(line, n) > (size_t)width || (n && line[n - 1] == ' '))
        fail_msg("width %d: %.*s|", width, (int)n, line);
      line += n + (line[n] == '\n');
    }
    assert_non_null(strstr(out.ptr, "\n  BatchNormal"));
    if (width < 50) assert_null(strchr(out.ptr, '#'));
    if (width >= 60) assert_non_null(strchr(out.ptr, '#'));
    hn_str_free(&out);
  }
}

/* Its titles are wider than its numbers: they break before names are cut. */
static void before_and_after_keeps_the_width(void **state) {
  pair *p = *state;
  for (int width = 40; width <= 100; width += 20) {
    hone_report_input input = p->input;
    input.width = width;
    hn_str out = write(&input, HONE_REPORT_TEXT);
    const char *line = strstr(out.ptr, "Before and after");
    assert_non_null(line);
    assert_non_null(strstr(line, "\n\n"));
    for (const char *end = strstr(line, "\n\n"); line < end; line += strcspn(line, "\n") + 1)
      if (columns(line, strcspn(line, "\n")) > (size_t)width)
        fail_msg("width %d: %.*s", width, (int)strcspn(line, "\n"), line);
    if (width >= 60) assert_non_null(strstr(out.ptr, "median latency, ms "));
    hn_str_free(&out);
  }
}

static void text_says_it_all(void **state) {
  pair *p = *state;
  hn_str out = write(&p->input, HONE_REPORT_TEXT);
  static const char *const parts[] = {
      "Layers",           "Top-5",         "Share by operator type",        "residual", "Findings",
      "Before and after", "answers: same", "$ hone optimize resnet50.onnx", "T_pre",    "predicted +10.0 %"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(out.ptr, parts[i])) fail_msg("'%s' is missing", parts[i]);
  assert_null(strchr(out.ptr, '\033'));
  hn_str_free(&out);
  hone_report_input input = p->input;
  input.colors = true;
  out = write(&input, HONE_REPORT_TEXT);
  assert_non_null(strchr(out.ptr, '\033'));
  hn_str_free(&out);
}

static hone_status full(void *user, const char *data, size_t length, hone_error *error) {
  (void)user, (void)data, (void)length, (void)error;
  return HONE_ERROR_IO;
}

static void misuse_and_failing_sink(void **state) {
  pair *p = *state;
  hone_error error = {0};
  assert_int_equal(hone_report_write(&p->input, HONE_REPORT_JSON, full, NULL, &error), HONE_ERROR_IO);
  assert_int_equal(hone_report_write(&p->input, (hone_report_format)99, full, NULL, &error),
                   HONE_ERROR_USAGE);
  assert_int_equal(hone_report_write(&(hone_report_input){0}, HONE_REPORT_JSON, full, NULL, &error),
                   HONE_ERROR_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_commands_stay_whole),
      cmocka_unit_test(predictions_below_what_can_be_told),
      cmocka_unit_test(seed_fields),
      cmocka_unit_test(measured_or_why),
      cmocka_unit_test(temperature_when_measured),
      cmocka_unit_test(profile_json_is_facts),
      cmocka_unit_test(findings_schema),
      cmocka_unit_test(left_and_today),
      cmocka_unit_test(trace_events),
      cmocka_unit_test(csv_quotes),
      cmocka_unit_test(html_data_is_inert),
      cmocka_unit_test(terminal_is_safe),
      cmocka_unit_test(text_keeps_the_width),
      cmocka_unit_test(shares_keep_the_width),
      cmocka_unit_test(before_and_after_keeps_the_width),
      cmocka_unit_test(text_says_it_all),
      cmocka_unit_test(misuse_and_failing_sink),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
