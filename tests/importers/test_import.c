/* The tools that importers share: bytes, JSON beyond the standard, tables, numbers, and the one entry. */
#include <hone/hone.h>

#include "temporary.h"
#include "insight/import/read/csv.h"
#include "insight/import/read/json_stream.h"
#include "insight/import/read/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

/* ---- JSON ---- */

/* What was read, written back in a canonical way. */
static void put(hn_str *out, const hn_jvalue *v) {
  if (v->key) hn_str_printf(out, "%s:", v->key);
  if (v->kind == HN_JTEXT) hn_str_printf(out, "<%s>", v->text);
  if (v->kind == HN_JNUMBER) hn_str_printf(out, "%g", v->number);
  if (v->kind == HN_JBOOL) hn_str_puts(out, v->number > 0 ? "yes" : "no");
  if (v->kind == HN_JNULL) hn_str_puts(out, "null");
  if (v->kind < HN_JARRAY) return;
  hn_str_putc(out, v->kind == HN_JARRAY ? '[' : '{');
  for (const hn_jvalue *c = v->first; c; c = c->next) {
    put(out, c);
    if (c->next) hn_str_putc(out, ' ');
  }
  hn_str_putc(out, v->kind == HN_JARRAY ? ']' : '}');
}

static hone_status collect(void *user, const char *member, bool in_array, const hn_jvalue *v,
                           hone_error *error) {
  (void)error;
  hn_str *out = user;
  if (member) hn_str_printf(out, "%s%s=", member, in_array ? "[]" : "");
  put(out, v);
  hn_str_putc(out, ';');
  return HONE_OK;
}

static hone_status read_json(const char *text, size_t size, hn_str *out, hone_error *error) {
  hn_source source;
  assert_int_equal(hn_source_open(&source, "t.json", text, size, 0, error), HONE_OK);
  hone_status status = hn_jread(&source, &(hn_jreader){collect, out, NULL}, error);
  hn_source_close(&source);
  return status;
}

static void test_json(void **unused) {
  (void)unused;
  static const struct {
    const char *text, *read; /* read NULL: refused, `where` then is in the error */
    const char *where;
  } cases[] = {
      {"[]", "", NULL},
      {"[1, -2.5e3, true, null, \"a\\n\\u00e9\\ud83d\\ude00\"]",
       "1;-2500;yes;null;<a\n\xc3\xa9\xf0\x9f\x98\x80>;", NULL},
      {"{\"a\": {\"b\": [1, {\"c\": 2}]}, \"list\": [1, 2], \"e\": []}", "a={b:[1 {c:2}]};list[]=1;list[]=2;",
       NULL},
      /* what profilers write */
      {"[{\"name\" : \"a \"b\" c\", \"t\" : 1}]", "{name:<a \"b\" c> t:1};", NULL},
      {"[{\"name\" : \"x\", y\", \"t\" : 1}]", "{name:<x\", y> t:1};", NULL},
      {"[{\"name\" : \"x\", \"y\" z\", \"t\" : 1}]", "{name:<x\", \"y\" z> t:1};", NULL},
      {"[{\"name\" : \"q\"\", \"t\" : 1}]", "{name:<q\"> t:1};", NULL},
      {"[{\"path\" : \"C:\\dir\\x\", \"t\" : 1}]", "{path:<C:\\dir\\x> t:1};", NULL},
      {"[{\"a\" : 1,}, , {,\"b\" : 2},]", "{a:1};{b:2};", NULL},
      {"[NaN, -inf, Infinity]", "nan;-inf;inf;", NULL},
      {"[\"a\x01\x1e\"]", "<a\x01\x1e>;", NULL},
      {"\xef\xbb\xbf[1]", "1;", NULL},
      {"[{\"k\\\"ey\" : \"v\", \"l\" : \"w\"}]", "{k\"ey:<v> l:<w>};", NULL},
      /* what is wrong */
      {"", NULL, "offset 0"},
      {"[1", NULL, "offset 2"},
      {"[1 2]", NULL, "offset 3"},
      {"[{\"a\" 1}]", NULL, "offset"},
      {"[{\"a\" : }]", NULL, "offset 8"},
      {"[{\"a\" : \"b]", NULL, "offset 8"},
      {"[truth]", NULL, "offset 1"},
      {"[1] 2", NULL, "offset 4"},
      {"<html>", NULL, "offset 0"},
      {"{\"a\" : 1", NULL, "offset 8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hn_str out = {0};
    hone_error error = {0};
    hone_status status = read_json(cases[i].text, strlen(cases[i].text), &out, &error);
    if (cases[i].read) {
      if (status) print_message("%s: %s\n", cases[i].text, error.what);
      assert_int_equal(status, HONE_OK);
      assert_string_equal(out.ptr ? out.ptr : "", cases[i].read);
    } else {
      if (!status) print_message("%s was taken\n", cases[i].text);
      assert_int_equal(status, HONE_ERROR_INPUT);
      assert_non_null(strstr(error.where, "t.json"));
      assert_non_null(strstr(error.where, cases[i].where));
    }
    hn_str_free(&out);
  }
}

static void test_json_bounds(void **unused) {
  (void)unused;
  hone_error error = {0};
  hn_str out = {0}, text = {0};
  for (int i = 0; i < 100000; i++) hn_str_putc(&text, '[');
  assert_int_equal(read_json(text.ptr, text.len, &out, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.what, "deep"));
  /* A text that crosses the window many times, with a mark at every place. */
  hn_str_clear(&text);
  hn_str_puts(&text, "[\"");
  for (int i = 0; i < 700000; i++) hn_str_puts(&text, i % 7 ? "a" : "\" ");
  hn_str_puts(&text, "\", 5]");
  hn_str_clear(&out);
  assert_int_equal(read_json(text.ptr, text.len, &out, &error), HONE_OK);
  assert_true(hn_text_ends(out.ptr, ">;5;"));
  assert_int_equal(out.len, text.len - strlen("[\"\", 5]") + strlen("<>;5;"));
  /* One element beyond the bound, from little input: refused, not swallowed. */
  hn_str_clear(&text);
  hn_str_puts(&text, "[[");
  for (int i = 0; i < 2000000; i++) hn_str_puts(&text, "0,");
  hn_str_puts(&text, "0]]");
  assert_int_equal(read_json(text.ptr, text.len, &out, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.what, "larger"));
  hn_str_free(&text);
  hn_str_free(&out);
}

/* ---- tables ---- */

static void test_csv(void **unused) {
  (void)unused;
  static const char text[] =
      "\xef\xbb\xbf\r\nOp Name;Task Duration(us);Ratio(%);note\r\n"
      "\"a;b\";1,234.5;N/A;\"x \"\"y\"\"\r\nz\"\r\n\r\n  c ; 2 \t;7;\"\"\"8,9\"\"\"\r\nshort\r\n";
  hn_source source;
  hn_csv csv;
  hone_error error = {0};
  bool more;
  assert_int_equal(hn_source_open(&source, "t.csv", text, sizeof text - 1, 0, &error), HONE_OK);
  assert_int_equal(hn_csv_open(&csv, &source, &error), HONE_OK);
  int name = hn_csv_find(&csv, "OP_NAME"), time = hn_csv_find(&csv, "task duration"),
      ratio = hn_csv_find(&csv, "Ratio"), note = hn_csv_find(&csv, "note");
  assert_true(name == 0 && time == 1 && ratio == 2 && note == 3);
  assert_int_equal(hn_csv_find(&csv, "missing"), -1);
  assert_true(hn_csv_unit_ns(&csv, time, 0) == 1e3 && hn_csv_unit_ns(&csv, name, 5) == 5);
  assert_int_equal(hn_csv_next(&csv, &more, &error), HONE_OK);
  assert_string_equal(hn_csv_text(&csv, name), "a;b");
  assert_true(hn_csv_number(&csv, time, 0) == 1234.5);
  assert_null(hn_csv_text(&csv, ratio));
  assert_string_equal(hn_csv_text(&csv, note), "x \"y\"\r\nz");
  assert_int_equal(hn_csv_next(&csv, &more, &error), HONE_OK);
  assert_string_equal(hn_csv_text(&csv, name), "c");
  assert_true(hn_csv_number(&csv, time, 0) == 2);
  assert_string_equal(hn_csv_text(&csv, note), "8,9");
  assert_int_equal(csv.line, 6); /* the blank line and the break inside of a field count */
  assert_int_equal(hn_csv_next(&csv, &more, &error), HONE_OK);
  assert_true(more && !hn_csv_text(&csv, time));
  assert_int_equal(hn_csv_next(&csv, &more, &error), HONE_OK);
  assert_false(more);
  hn_csv_close(&csv);
  hn_source_close(&source);
  static const char open[] = "a,b\n1,\"2\n3";
  assert_int_equal(hn_source_open(&source, "t.csv", open, sizeof open - 1, 0, &error), HONE_OK);
  assert_int_equal(hn_csv_open(&csv, &source, &error), HONE_OK);
  assert_int_equal(hn_csv_next(&csv, &more, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.where, "line 2"));
  hn_csv_close(&csv);
  hn_source_close(&source);
}

/* ---- numbers ---- */

static void test_numbers(void **unused) {
  (void)unused;
  int64_t ns;
  double v;
  const char *end;
  assert_true(hn_text_ns("1736413971558972.912", 3, &ns) && ns == INT64_C(1736413971558972912));
  assert_true(hn_text_ns(" 0.0005", 6, &ns) && ns == 500);
  assert_true(hn_text_ns("1.9999", 3, &ns) && ns == 2000);
  assert_true(hn_text_ns("1e-3", 6, &ns) && ns == 1000);
  assert_true(hn_text_ns("-2", 0, &ns) && ns == -2);
  assert_false(hn_text_ns("", 3, &ns) || hn_text_ns("abc", 3, &ns) ||
               hn_text_ns("99999999999999999999", 3, &ns));
  static const char *const same[] = {"0",        "1",      "0.1",        "123456.789", "1e10",
                                     "-3.25e-7", "2.5E+3", "179769e303", "17",         "0.000001"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    assert_true(hn_text_number(same[i], &v, &end) && !*end);
    double want = strtod(same[i], NULL);
    assert_true(fabs(v - want) <= 4e-16 * fabs(want));
  }
  assert_true(hn_text_number("nan", &v, &end) && isnan(v));
  assert_false(hn_text_number("-", &v, &end) || hn_text_number("", &v, &end) ||
               hn_text_number("e5", &v, &end));
  assert_true(hn_text_count("12,345,678", &v) && v == 12345678);
  assert_true(hn_text_count("85.5 %", &v) && v == 85.5);
  assert_false(hn_text_count("1,2", &v));
  assert_string_equal(hn_text_dtype("DT_BF16"), "bf16");
  assert_string_equal(hn_text_dtype("tensor(float16)"), "f16");
  assert_null(hn_text_dtype("flat"));
}

/* ---- the entry ---- */

static const char profile[] =
    "[{\"count\":2},{\"name\":\"Conv_1\",\"timeMs\":2,\"averageMs\":1,\"percentage\":100}]";

static void refuse(const char *const *paths, size_t n, const hone_import_options *options, hone_status want,
                   const char *hint) {
  hone_facts *facts = NULL;
  hone_error error = {0};
  assert_int_equal(hone_import_files(paths, n, options, &facts, &error), want);
  assert_null(facts);
  assert_int_equal(error.status, want);
  assert_true(error.what[0]);
  char line[2048];
  hone_error_format(&error, line, sizeof line);
  if (!strstr(line, hint)) print_message("%s\n", line);
  assert_non_null(strstr(line, hint));
  assert_null(strchr(line, '\n'));
}

static void test_entry(void **unused) {
  (void)unused;
  char folder[64], packed[160], plain[160], other[160];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-import")));
  snprintf(packed, sizeof packed, "%s/p.json.gz", folder);
  snprintf(plain, sizeof plain, "%s/p.json", folder);
  snprintf(other, sizeof other, "%s/o.csv", folder);
  /* Two members of gzip, as concatenation makes them. */
  for (size_t half = sizeof profile / 2, part = 0; part < 2; part++) {
    gzFile gz = gzopen(packed, part ? "ab" : "wb");
    assert_true(gzwrite(gz, profile + part * half, (unsigned)(part ? sizeof profile - 1 - half : half)) > 0);
    gzclose(gz);
  }
  FILE *f = fopen(other, "w");
  fputs("Device_id,OP Type,Core Type,Count,Total Time(us)\n0,Conv2D,AI_CORE,1,5\n", f);
  fclose(f);
  f = fopen(plain, "w");
  fputs(profile, f);
  fclose(f);
  hone_facts *facts;
  hone_error error = {0};
  const char *paths[] = {packed, other};
  assert_int_equal(hone_import_files(paths, 1, NULL, &facts, &error), HONE_OK);
  size_t n;
  assert_true(hone_facts_step_stats(facts, &n)->total_ms == 2 && n == 1);
  assert_string_equal(hone_facts_get_meta(facts)->tool, "trtexec");
  hone_facts_destroy(facts);
  refuse(paths, 2, NULL, HONE_ERROR_USAGE, "hone compare");
  refuse(paths, 1, &(hone_import_options){.format = "nonsense"}, HONE_ERROR_USAGE, "trtexec");
  refuse(paths, 1, &(hone_import_options){.max_bytes = 20}, HONE_ERROR_INPUT, "20 bytes");
  refuse(paths, 1, &(hone_import_options){.format = "ascend"}, HONE_ERROR_INPUT, "offset");
  refuse((const char *const[]){folder}, 1, NULL, HONE_ERROR_INPUT, folder);
  refuse((const char *const[]){"/nonexistent/x.json"}, 1, NULL, HONE_ERROR_INPUT, "/nonexistent/x.json");
  refuse((const char *const[]){"/dev/null"}, 1, NULL, HONE_ERROR_INPUT, "regular file");
  refuse((const char *const[]){plain, plain}, 2, NULL, HONE_ERROR_INPUT, "second profile");
  assert_int_equal(truncate(packed, 40), 0);
  refuse(paths, 1, NULL, HONE_ERROR_INPUT, "too early");
  assert_int_equal(unlink(packed) | unlink(plain) | unlink(other) | rmdir(folder), 0);
}

/* Every allocation of an import fails once: an error, never a crash, never a half-made record. */
static void test_no_memory(void **unused) {
  (void)unused;
  bool reached = true;
  for (uint64_t k = 1; reached && k < 10000; k++) {
    hone_facts *facts = NULL;
    hone_error error = {0};
    hn_mem_fail_after(k);
    hone_status status = hone_import_memory("p.json", profile, sizeof profile - 1, NULL, &facts, &error);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_int_equal(status == HONE_OK, facts != NULL);
    if (status) assert_int_equal(status, HONE_ERROR_MEMORY);
    hone_facts_destroy(facts);
  }
  assert_false(reached);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_json),  cmocka_unit_test(test_json_bounds),
                                     cmocka_unit_test(test_csv),   cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_entry), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
