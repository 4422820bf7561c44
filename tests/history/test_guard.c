/* bench --save, history and gate as their users see them. */
#include "temporary.h"
#include "cli/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char tiny[160];

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-guard"))) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("XDG_DATA_HOME", folder, 1);
  unsetenv("HONE_HISTORY");
  unsetenv("GITHUB_STEP_SUMMARY");
  unsetenv("GITHUB_ACTIONS");
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", tiny, "--width", "0.1", "--size", "32");
  int code = p.code;
  process_free(&p);
  return code;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static void expect(process p, int code, const char *out, const char *err) {
  if (p.code != code || (out && !strstr(p.out, out)) || (err && !strstr(p.err, err)))
    fail_msg("exit %d (wanted %d), '%s' (wanted '%s'), '%s' (wanted '%s')", p.code, code, p.out,
             out ? out : "", p.err, err ? err : "");
  process_free(&p);
}

static const char *text_of(const json_t *o, const char *key) {
  const char *t = json_string_value(json_object_get(o, key));
  return t ? t : "";
}

static void test_history_commands(void **state) {
  (void)state;
  expect(RUN("history"), 0, "no runs", NULL);
  expect(RUN("history", "--delete", "1"), 4, NULL, "no history");
  expect(RUN("bench", tiny, "-n", "5", "--save", "--tag", "n\x1b[31m", "--commit", "feed<b>"), 0,
         "saved       as run 1", NULL);
  expect(RUN("bench", tiny, "-n", "5", "-t", "1", "--save"), 0, "saved       as run 2", NULL);
  expect(RUN("bench", tiny, "-n", "5", "--tag", "x"), 2, NULL, "--tag and --commit belong to --save");
  process p = RUN("bench", tiny, "-n", "5", "--save", "--json");
  json_t *doc = process_json(&p);
  static const char *const numbers[] = {"batch",        "avg_latency_ms", "p95_latency_ms",  "throughput_fps",
                                        "h2d_ms_ratio", "memory_peak_mb", "host_rss_peak_mb"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    assert_true(json_is_number(json_object_get(doc, numbers[i])));
  static const char *const texts[] = {"model", "machine", "version", "flags", "profiling_date"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_true(text_of(doc, texts[i])[0]);
  assert_non_null(json_object_get(doc, "commit"));
  const json_t *range = json_object_get(doc, "temperature_c_range");
  assert_true(json_array_size(range) == 2 || json_is_null(range));
  assert_int_equal(json_is_null(range), text_of(doc, "temperature_c_range_reason")[0] != 0);
  assert_true(json_is_null(json_object_get(doc, "post_ms_ratio")));
  assert_non_null(strstr(text_of(doc, "post_ms_ratio_reason"), "alone"));
  assert_int_equal(json_array_size(json_object_get(doc, "samples_ms")), 5);
  assert_int_equal(json_integer_value(json_object_get(doc, "history_id")), 3);
  json_decref(doc);
  process_free(&p);

  p = RUN("history");
  assert_int_equal(count_lines(p.out), 4);
  assert_null(strchr(p.out, 0x1b)); /* what a tag says does not steer the terminal */
  assert_non_null(strstr(p.out, "n\\x1b[31m"));
  assert_null(strstr(p.out, "null")); /* run 2 has no tag */
  process_free(&p);
  expect(RUN("history", "--filter", "tiny*", "-n", "2"), 0, "tiny.onnx", NULL);
  expect(RUN("history", "--filter", "resnet*"), 0, "no runs", NULL);
  expect(RUN("history", "--commit", "feed"), 0, "feed<b>", NULL);
  expect(RUN("history", "--plot"), 0, "3 runs", NULL);
  expect(RUN("history", "2"), 0, "--runs 5 --threads 1", NULL);
  expect(RUN("history", "99"), 2, NULL, "no run 99");
  expect(RUN("history", "last"), 2, NULL, "wants the number of a run");
  p = RUN("history", "--json");
  doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "runs")), 3);
  json_decref(doc);
  process_free(&p);
  expect(RUN("history", "-o", "all.json", "--html", "trend.html"), 0, "",
         "hone: all.json: 3 runs\nhone: trend.html: 3 runs\n");
  char path[128];
  snprintf(path, sizeof path, "%s/all.json", folder);
  doc = json_load_file(path, 0, NULL);
  json_t *first = json_array_get(json_object_get(doc, "runs"), 0);
  assert_int_equal(json_array_size(json_object_get(json_object_get(first, "report"), "samples_ms")), 5);
  json_decref(doc);
  expect(RUN("history", "--delete", "99"), 2, "", "the history has no run 99");
  expect(RUN("history", "--delete", "1,7"), 2, "", "no run 7");
  expect(RUN("history", "1"), 0, "feed<b>", NULL); /* all or none */
  expect(RUN("history", "--delete", "1,1"), 0, "1 run deleted", NULL);
  expect(RUN("history", "--delete", "1;2"), 2, NULL, "wants numbers");
  expect(RUN("history", "1"), 2, NULL, "no run 1");
}

static void test_history_errors(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/bad.db", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("not a database at all\n", f);
  fclose(f);
  setenv("HONE_HISTORY", path, 1);
  expect(RUN("history"), 3, "", "no SQLite database");
  expect(RUN("bench", tiny, "-n", "2", "--save"), 3, "", "no SQLite database");
  setenv("HONE_HISTORY", "/proc/hone/history.db", 1);
  expect(RUN("bench", tiny, "-n", "2", "--save"), 6, "", "cannot create folder");
  expect(RUN("bench", tiny, "-n", "2"), 0, "latency", NULL); /* what is not kept does not care */
  unsetenv("HONE_HISTORY");
}

static void test_duration(void **state) {
  (void)state;
  expect(RUN("bench", tiny, "--duration", "soon"), 2, "", "--duration wants a time");
  expect(RUN("bench", tiny, "--duration", "0"), 2, "", "--duration wants a time");
  expect(RUN("bench", tiny, "--duration", "1s", "-n", "5"), 2, "", "exclude each other");
  expect(RUN("bench", tiny, "--duration", "0.3s", "-t", "1"), 0, "stability   ", NULL);
  process p = RUN("bench", tiny, "--duration", "0.5s", "-t", "1", "--counters", "--json");
  json_t *doc = process_json(&p), *stability = json_object_get(doc, "stability");
  size_t n = json_array_size(json_object_get(json_object_get(stability, "windows"), "time_s"));
  assert_in_range(n, 1, 120);
  assert_int_equal(json_array_size(json_object_get(json_object_get(stability, "windows"), "latency_ms")), n);
  assert_true(json_is_array(json_object_get(stability, "findings")));
  /* Every quantity is there, or the reason why it is not. */
  const char *const pairs[][2] = {{"temperature", "temperature_c"}, {"clock", "clock_mhz"}};
  for (size_t i = 0; i < 2; i++) {
    bool said = false;
    json_t *missing = json_object_get(stability, "not_measured");
    for (size_t k = 0; k < json_array_size(missing); k++)
      said |= strcmp(text_of(json_array_get(missing, k), "what"), pairs[i][0]) == 0;
    assert_int_equal(said, json_is_null(json_array_get(
                               json_object_get(json_object_get(stability, "windows"), pairs[i][1]), 0)));
  }
  json_t *counters = json_object_get(doc, "counters_per_run");
  assert_true(text_of(counters, "not_measured")[0] || json_object_get(counters, "instructions"));
  json_decref(doc);
  process_free(&p);
}

/* A command whose time is exactly known: it prints a report. The counter makes every call a little different.
 */
static void write_script(const char *name, double ms) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f,
          "n=$(cat $0.n 2>/dev/null || echo 0); echo $((n + 1)) >$0.n\n"
          "awk -v n=$n 'BEGIN { printf \"{\\\"median_latency_ms\\\": %%.4f}\\n\", %g * (1 + 0.004 * ((n * 7) "
          "%% 5 - 2)) }'\n",
          ms);
  fclose(f);
}

static char *read_text(const char *name) {
  char path[128];
  static char text[8192];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

static void test_gate_verdicts(void **state) {
  (void)state;
  write_script("old.sh", 10);
  write_script("same.sh", 10);
  write_script("slow.sh", 10.6);
  write_script("fast.sh", 9);
  char summary[128];
  snprintf(summary, sizeof summary, "%s/summary.md", folder);
  setenv("GITHUB_STEP_SUMMARY", summary, 1);
  expect(RUN("gate", "--baseline-cmd", "sh old.sh", "--candidate-cmd", "sh same.sh", "--junit", "same.xml"),
         0, "verdict     same", NULL);
  assert_non_null(strstr(read_text("same.xml"), "failures=\"0\" errors=\"0\" skipped=\"0\""));
  expect(RUN("gate", "--baseline-cmd", "sh old.sh", "--candidate-cmd", "sh fast.sh"), 0, "verdict     better",
         NULL);
  expect(RUN("gate", "--baseline-cmd", "sh old.sh", "--candidate-cmd", "sh slow.sh # <&> \x1b[31m, 5%",
             "--junit", "worse.xml", "--markdown", "worse.md"),
         1, "\n::error title=hone gate%3A sh slow.sh # <&> \\x1b[31m%2C 5%25%3A worse::slower by", NULL);
  assert_non_null(strstr(read_text("worse.xml"), "<failure type=\"slower\" message=\"slower by"));
  assert_non_null(strstr(read_text("worse.xml"), "name=\"sh slow.sh # &#60;&#38;&#62; \\x1b[31m, 5%\""));
  assert_non_null(strstr(read_text("worse.md"), "**worse**"));
  assert_non_null(strstr(read_text("worse.md"), "&#60;&#38;&#62; \\x1b\\[31m"));
  unsetenv("GITHUB_STEP_SUMMARY");
  char *all = read_text("summary.md"); /* each gate added its own */
  assert_non_null(strstr(all, "**same**"));
  assert_non_null(strstr(all, "**better**"));
  assert_non_null(strstr(all, "**worse**"));
  /* 6 % is no slowdown that matters when 20 % is asked for. */
  expect(RUN("gate", "--baseline-cmd", "sh old.sh", "--candidate-cmd", "sh slow.sh", "--threshold", "20"), 0,
         "verdict     same", NULL);
  process p = RUN("gate", "--baseline-cmd", "sh old.sh", "--candidate-cmd", "sh slow.sh", "--json");
  assert_int_equal(p.code, 1);
  assert_non_null(strstr(p.err, "::error "));
  json_t *doc = process_json(&p);
  assert_string_equal(text_of(doc, "verdict"), "worse");
  assert_int_equal(json_integer_value(json_object_get(doc, "exit_code")), 1);
  assert_true(json_is_true(json_object_get(doc, "interleaved")));
  json_t *times = json_object_get(json_object_get(doc, "candidate"), "processes_ms");
  assert_int_equal(json_array_size(times), json_integer_value(json_object_get(doc, "pairs")));
  json_decref(doc);
  process_free(&p);
}

/* Real processes of hone on both sides: models, and another build (here the same one). */
static void test_gate_models(void **state) {
  (void)state;
  char copy[96];
  snprintf(copy, sizeof copy, "%s/with 'quote.onnx", folder);
  process p = RUN("zoo", "mobilenetv2", "-o", copy, "--width", "0.1", "--size", "32");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("gate", copy, "--baseline", tiny, "-t", "1", "-n", "3", "-w", "1", "--pairs", "12", "--threshold",
          "900", "--json");
  json_t *doc = process_json(&p);
  assert_string_equal(text_of(doc, "metric"), "latency");
  assert_true(json_is_false(json_object_get(doc, "answers_compared")));
  assert_int_equal(json_integer_value(json_object_get(doc, "pairs")), 12);
  assert_non_null(strstr(text_of(json_object_get(doc, "baseline"), "command"),
                         " --runs 3 --warmup 1 --threads 1 --json"));
  assert_true(p.code == 0 || p.code == 5); /* how busy this machine is, is not what is tested */
  json_decref(doc);
  process_free(&p);
  p = RUN("gate", tiny, "--baseline", HONE_BINARY, "-n", "2", "-w", "0", "--pairs", "12", "--threshold",
          "900", "--json");
  doc = process_json(&p);
  assert_non_null(strstr(text_of(json_object_get(doc, "baseline"), "command"), "/hone bench "));
  json_decref(doc);
  process_free(&p);
  p = RUN("gate", "--baseline-cmd", "true", "--candidate-cmd", "true", "--pairs", "12", "--threshold", "1000",
          "--json");
  doc = process_json(&p); /* prints no report: the whole process counts */
  assert_string_equal(text_of(doc, "metric"), "wall");
  json_decref(doc);
  process_free(&p);
}

/* Measured, whatever the machine's mood says of it. */
static void expect_measured(process p) {
  if ((p.code != 0 && p.code != 5) || !strstr(p.out, "\nanswers     not compared"))
    fail_msg("exit %d, '%s', '%s'", p.code, p.out, p.err);
  process_free(&p);
}

/* Two networks that take or give something else are not compared. */
static void test_gate_networks(void **state) {
  (void)state;
  expect(RUN("zoo", "mobilenetv2", "-o", "large.onnx", "--width", "0.1", "--size", "64"), 0, NULL, NULL);
  expect(RUN("zoo", "many_inputs", "-o", "other.onnx"), 0, NULL, NULL);
  expect(RUN("zoo", "mobilenetv2", "-o", "four.onnx", "--width", "0.1", "--size", "32", "-b", "4"), 0, NULL,
         NULL);
  expect(RUN("gate", tiny, "--baseline", "large.onnx"), 3, "",
         "large.onnx: these are two different networks: input 'input' is f32[1x3x64x64] in the baseline and "
         "f32[1x3x32x32] in the candidate");
  expect(RUN("gate", tiny, "--baseline", "four.onnx"), 3, "", "is f32[4x3x32x32] in the baseline");
  expect(RUN("gate", "other.onnx", "--baseline", tiny), 3, "",
         "input 'input' is f32[1x3x32x32] in the baseline "
         "and missing in the candidate");
  expect_measured(RUN("gate", tiny, "--baseline", "four.onnx", "-b", "4", "-n", "1", "-w", "0", "--pairs",
                      "12", "--threshold", "900"));
  expect(RUN("optimize", tiny, "-o", "plan.hone", "-t", "1"), 0, NULL, NULL);
  expect(RUN("gate", "plan.hone", "--baseline", "large.onnx"), 3, "", "two different networks");
  expect_measured(RUN("gate", "plan.hone", "--baseline", tiny, "-n", "1", "-w", "0", "--pairs", "12", "-t",
                      "1", "--threshold", "900"));
  process p = RUN("bench", "large.onnx", "-n", "2", "--json");
  char path[128];
  snprintf(path, sizeof path, "%s/large.json", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(p.out, f);
  fclose(f);
  process_free(&p);
  expect(RUN("gate", tiny, "--baseline", "large.json", "-n", "2"), 5,
         "the baseline is of another model (large.onnx; this is tiny.onnx)", NULL);
}

/* Times that were kept: of this day and machine they can give a verdict, others cannot, and it says why. */
static void test_gate_earlier(void **state) {
  (void)state;
  expect(RUN("gate", tiny, "--baseline", "no-such-tag"), 4, "", "neither a file nor a tag or revision");
  for (int i = 0; i < 10; i++)
    expect(
        RUN("bench", tiny, "-t", "1", "-n", "2", "-w", "0", "--save", "--tag", "base", "--commit", "c0ffee"),
        0, NULL, NULL);
  process p = RUN("gate", tiny, "--baseline", "base", "-t", "1", "-n", "2", "-w", "0", "--threshold", "900",
                  "--json");
  json_t *doc = process_json(&p);
  assert_true(json_is_false(json_object_get(doc, "interleaved")));
  assert_int_equal(json_array_size(json_object_get(json_object_get(doc, "baseline"), "processes_ms")), 10);
  assert_null(strstr(text_of(doc, "reason"), "the baseline"));
  json_decref(doc);
  process_free(&p);
  /* Kept with -n 2 -w 0: the new processes do the same without being told. */
  p = RUN("gate", tiny, "--baseline", "base", "-t", "1", "--threshold", "900", "--json");
  doc = process_json(&p);
  assert_non_null(strstr(text_of(json_object_get(doc, "candidate"), "command"),
                         " --runs 2 --warmup 0 --threads 1 --json"));
  assert_null(strstr(text_of(doc, "reason"), "the baseline"));
  json_decref(doc);
  process_free(&p);
  expect(RUN("gate", tiny, "--baseline", "c0ff", "-n", "2"), 5, "::warning ", NULL);
  expect(RUN("gate", tiny, "--baseline", "c0ff", "-n", "2"), 5, "measured with other options", NULL);
  /* What git calls so in the working directory. */
  char revision[64] = "";
  char command[400];
  snprintf(command, sizeof command,
           "cd '%s' && git init -q . && git -c user.name=t -c user.email=t commit -q --allow-empty -m t && "
           "git tag here && git rev-parse HEAD",
           folder);
  FILE *git = popen(command, "r");
  assert_non_null(git);
  assert_non_null(fgets(revision, sizeof revision, git));
  assert_int_equal(pclose(git), 0);
  revision[strcspn(revision, "\n")] = 0;
  expect(RUN("bench", tiny, "-t", "1", "-n", "2", "--save", "--commit", revision), 0, "saved", NULL);
  expect(RUN("gate", tiny, "--baseline", "here", "-t", "1", "-n", "2"), 5, "the baseline is 1 earlier", NULL);
  expect(RUN("gate", tiny, "--baseline", "HEAD~1"), 4, "", "neither a file nor a tag or revision");
  p = RUN("bench", tiny, "-t", "1", "-n", "20", "--json");
  doc = process_json(&p);
  char path[128];
  snprintf(path, sizeof path, "%s/one.json", folder);
  json_dump_file(doc, path, 0);
  process_free(&p);
  expect(RUN("gate", tiny, "--baseline", "one.json", "-t", "1", "-n", "20"), 5,
         "the baseline is 1 earlier process: at least 10", NULL);
  json_object_set_new(doc, "machine", json_string("another one"));
  json_dump_file(doc, path, 0);
  expect(RUN("gate", tiny, "--baseline", "one.json", "-t", "1", "--junit", "none.xml"), 5,
         "another machine (another one", NULL);
  assert_non_null(strstr(read_text("none.xml"),
                         "<skipped message=\"no verdict: the baseline was measured on another machine"));
  json_object_del(doc, "machine");
  json_dump_file(doc, path, 0);
  expect(RUN("gate", tiny, "--baseline", "one.json", "-t", "1"), 5, "does not say on which machine", NULL);
  json_decref(doc);
  /* A file's name is no pattern. */
  expect(RUN("zoo", "many_inputs", "-o", "a[1]?.onnx"), 0, NULL, NULL);
  expect(RUN("bench", "a[1]?.onnx", "-n", "2", "--save", "--tag", "named"), 0, NULL, NULL);
  expect(RUN("gate", "a[1]?.onnx", "--baseline", "named", "-n", "2"), 5, "the baseline is 1 earlier process",
         NULL);
}

static void test_gate_errors(void **state) {
  (void)state;
  expect(RUN("gate", tiny), 2, "", "wants --baseline");
  expect(RUN("gate", "--baseline-cmd", "true"), 2, "", "wants a MODEL");
  expect(RUN("gate", tiny, "--baseline-cmd", ""), 2, "", "empty");
  expect(RUN("gate", tiny, "--baseline", tiny, "--metric", "speed"), 2, "", "--metric is latency or wall");
  expect(RUN("gate", tiny, "--baseline", tiny, "--pairs", "3"), 2, "", "12 to 500");
  expect(RUN("gate", tiny, "--baseline-cmd", "echo trouble >&2; exit 7"), 3, "", "exit code 7: trouble");
  /* hone's own exit codes keep their meaning: what is missing here is no bad input. */
  expect(RUN("gate", tiny, "--baseline", tiny, "--device", "cuda:99"), 4, "", "exit code 4: ");
  expect(RUN("gate", tiny, "--baseline-cmd", "kill -9 $$"), 3, "", "signal 9");
  expect(RUN("gate", "missing.onnx", "--baseline", tiny), 3, "", "missing.onnx");
  expect(RUN("gate", tiny, "--baseline", "summary.md"), 3, "", "no report");
  expect(RUN("gate", tiny, "--baseline-cmd", "echo {}", "--metric", "latency"), 3, "",
         "no report with a latency");
  expect(RUN("gate", "--baseline-cmd", "sleep 9", "--candidate-cmd", "true", "--max-seconds", "0.3"), 5,
         "measured    no pair of processes", NULL); /* and no figures */
  expect(RUN("gate", "--baseline-cmd", "exec 3>&- >&- 2>&-; sleep 9", "--candidate-cmd", "true",
             "--max-seconds", "0.2", "--json"),
         5, "\"change_pct\": null", NULL);
  /* What a command leaves running keeps its output open; the gate does not wait for it. */
  expect(RUN("gate", "--baseline-cmd", "sleep 60 & echo '{\"median_latency_ms\": 1}'", "--candidate-cmd",
             "echo '{\"median_latency_ms\": 1}'", "--pairs", "12", "--max-seconds", "40"),
         0, "verdict     same", NULL);
  char path[128];
  snprintf(path, sizeof path, "%s/latency.json", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("{\"median_latency_ms\": 1}", f);
  fclose(f);
  static const char *const outside[][2] = {{"--threshold", "0"},
                                           {"--threshold", "1001"},
                                           {"--threshold", "nan"},
                                           {"--pairs", "0"},
                                           {"--pairs", "501"}};
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
    expect(RUN("gate", tiny, "--baseline", tiny, outside[i][0], outside[i][1]), 2, "", outside[i][0]);
  expect(RUN("gate", tiny, "--baseline", "latency.json", "--metric", "wall"), 2, "",
         "a report tells a latency");
  process p = process_run(
      folder, 400,
      (const char *const[]){"gate", "--baseline-cmd", "sleep 9", "--candidate-cmd", "true", NULL});
  assert_int_equal(p.code, 130);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_history_commands), cmocka_unit_test(test_history_errors),
      cmocka_unit_test(test_duration),         cmocka_unit_test(test_gate_verdicts),
      cmocka_unit_test(test_gate_models),      cmocka_unit_test(test_gate_earlier),
      cmocka_unit_test(test_gate_errors),      cmocka_unit_test(test_gate_networks),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
