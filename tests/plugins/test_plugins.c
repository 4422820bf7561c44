/* Plugins: a sound one is found, used, switched off and taken away; each broken one is one clear error, and
 * everything else works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/process.h"
#include "plugins/untrusted.h"
#include "net.h"
#include "temporary.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[300];

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...) {
  char line[2000];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (system(line) != 0) fail_msg("%s", line);
}

/* The plugin of this kind in a folder of its own. */
static void bring(const char *kind) {
  shell("mkdir -p '%s/%s' && cp '%s/%s.so' '%s/%s/%s.so' && chmod 755 '%s/%s/%s.so'", folder, kind, PLUGINS,
        kind, folder, kind, kind, folder, kind, kind);
}

#define OF_SWELL                                                                                             \
  "opset 17\nopset \"test\" 1\ngraph g(%x: f32[6]) -> (%y) {\n  %y = test::Swell(%x) {scale=1.0}\n}\n"
#define SPELLED_OUT "opset 17\ngraph g(%x: f32[6]) -> (%y) {\n  %s = Sin(%x)\n  %y = Add(%x, %s)\n}\n"

static int begin(void **state) {
  (void)state;
  hone_error e = {0};
  hone_plugin_info info;
  char path[600];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "plugins")));
  skip_where_untrusted(folder);
  bring("sound");
  snprintf(path, sizeof path, "%s/sound", folder);
  if (hone_plugins_load(&(hone_plugins_options){.path = path}, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(hone_plugins(), 1);
  assert_true(hone_plugin_at(0, &info));
  if (info.error) fail_msg("%s: %s", info.error->where, info.error->what);
  assert_string_equal(info.name, "swell");
  assert_int_equal(info.plugin->n_ops, 1);
  assert_false(hone_plugin_at(1, &info));
  net_save(folder, "swell.onnx", OF_SWELL);
  net_save(folder, "spelled.onnx", SPELLED_OUT);
  /* A second time is no second plugin. */
  assert_int_equal(hone_plugins_load(&(hone_plugins_options){.path = path}, &e), HONE_OK);
  assert_int_equal(hone_plugins(), 1);
  hone_plugins_unload();
  assert_true(hone_plugin_at(0, &info));
  assert_int_equal(info.state, HONE_PLUGIN_DISABLED);
  snprintf(path, sizeof path, "%s/swell.onnx", folder);
  hone_model *m = NULL;
  assert_int_equal(hone_model_load(path, &m, &e), HONE_ERROR_UNSUPPORTED);
  return 0;
}

static int end(void **state) {
  (void)state;
  return temporary_remove(folder);
}

static process hone_(const char *const *argv) { return process_run(folder, 0, argv); }
#define HONE(...) hone_((const char *const[]){__VA_ARGS__, NULL})

/* Step by step, what does the work. */
static void step_of(const char *const *argv, const char *want) {
  process p = hone_(argv);
  if (p.code || !strstr(p.out, want)) fail_msg("exit %d, no '%s' in %s%s", p.code, want, p.out, p.err);
  process_free(&p);
}

static void used(void **state) {
  (void)state;
  process p = HONE("op", "list", "--op-path", "sound");
  assert_int_equal(p.code, 0);
  assert_string_equal(p.err, "");
  assert_non_null(strstr(p.out, "operator test.Swell"));
  assert_non_null(strstr(p.out, "tactic   swell_plain"));
  process_free(&p);
  static const char *const models[] = {"swell.onnx", "spelled.onnx"};
  for (int i = 0; i < 2; i++)
    step_of((const char *const[]){"profile", models[i], "-n", "1", "--json", "--op-path", "sound", NULL},
            "swell_plain");
  /* Its answer is the same as that of what it replaces. */
  p = HONE("verify", "spelled.onnx", "-n", "3", "--op-path", "sound");
  if (p.code) fail_msg("%s%s", p.out, p.err);
  process_free(&p);
  setenv("HONE_OP_PATH", "sound", 1);
  step_of((const char *const[]){"profile", "spelled.onnx", "-n", "1", "--json", NULL}, "swell_plain");
  unsetenv("HONE_OP_PATH");
}

static void without(void **state) {
  (void)state;
  static const char *const names[] = {"swell", "Swell", "test.Swell"};
  process p = HONE("run", "spelled.onnx", "--output-dir", "plain"), q;
  assert_int_equal(p.code, 0);
  process_free(&p);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    q = HONE("profile", "spelled.onnx", "-n", "1", "--json", "--op-path", "sound", "--op-disable", names[i]);
    if (q.code || strstr(q.out, "swell_plain")) fail_msg("%s: %s%s", names[i], q.out, q.err);
    process_free(&q);
    /* bit for bit */
    q = HONE("run", "spelled.onnx", "--output-dir", "off", "--op-path", "sound", "--op-disable", names[i]);
    if (q.code) fail_msg("%s", q.err);
    process_free(&q);
    shell("cmp '%s/plain/y.npy' '%s/off/y.npy'", folder, folder);
  }
  /* A model that needs the operator has its reference. */
  q = HONE("run", "swell.onnx", "--output-dir", "off", "--op-path", "sound", "--op-disable", "test.Swell");
  if (q.code) fail_msg("%s", q.err);
  process_free(&q);
  q = HONE("run", "swell.onnx", "--op-path", "sound", "--op-disable", "swell");
  assert_int_not_equal(q.code, 0);
  assert_non_null(strstr(q.err, "Swell"));
  process_free(&q);
  q = HONE("run", "spelled.onnx", "--op-path", "sound", "--op-disable", "swill");
  assert_int_equal(q.code, 2);
  assert_non_null(strstr(q.err, "'swill'"));
  process_free(&q);
}

static void broken(void **state) {
  (void)state;
  static const struct {
    const char *kind, *says;
  } cases[] = {{"crash", "crashed"},
               {"leave", "ended the process"},
               {"undefined", "hone_function_of_a_later_version"},
               {"no_entry", "hone_plugin_entry"},
               {"other_abi", "another version"},
               {"declines", "does not work with ABI"},
               {"newer", "newer hone"},
               {"short", "another version"},
               {"no_reference", "no reference"},
               {"bad_pattern", "expected ','"},
               {"bad_name", "letters, digits"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bring(cases[i].kind);
    process p = HONE("run", "spelled.onnx", "--output-dir", "off", "--op-path", cases[i].kind);
    if (p.code || count_lines(p.err) != 1 || !strstr(p.err, "is not used") || !strstr(p.err, cases[i].says) ||
        !strstr(p.err, cases[i].kind))
      fail_msg("%s: exit %d, %s", cases[i].kind, p.code, p.err);
    process_free(&p);
    p = HONE("op", "list", "--json", "--op-path", cases[i].kind);
    json_t *doc = process_json(&p), *one = json_array_get(json_object_get(doc, "plugins"), 0);
    assert_string_equal(json_string_value(json_object_get(one, "state")), "refused");
    assert_non_null(strstr(json_string_value(json_object_get(one, "why")), cases[i].says));
    json_decref(doc);
    process_free(&p);
  }
  bring("longer"); /* a newer form that uses nothing new */
  process p = HONE("op", "list", "--op-path", "longer");
  assert_string_equal(p.err, "");
  process_free(&p);
}

static void hangs(void **state) {
  (void)state;
  char path[600];
  hone_error e = {0};
  hone_plugin_info info;
  bring("hang");
  snprintf(path, sizeof path, "%s/hang", folder);
  const uint32_t n = hone_plugins();
  assert_int_equal(hone_plugins_load(&(hone_plugins_options){.path = path, .max_seconds = 0.3}, &e), HONE_OK);
  assert_true(hone_plugin_at(n, &info));
  assert_int_equal(info.state, HONE_PLUGIN_REFUSED);
  assert_non_null(strstr(info.error->what, "did not come back"));
}

static void refused(const char *name, const char *says) {
  process p = HONE("op", "list", "--op-path", name);
  if (p.code || !strstr(p.err, says) || count_lines(p.err) != 1)
    fail_msg("%s: exit %d, %s", name, p.code, p.err);
  process_free(&p);
}

/* None of these files is run. */
static void untrusted(void **state) {
  (void)state;
  bring("crash");
  shell("chmod o+w '%s/crash/crash.so'", folder);
  refused("crash", "others can write");
  shell("chmod o-w '%s/crash/crash.so' && chmod o+w '%s/crash'", folder, folder);
  refused("crash", "others can write");
  shell("chmod o-w '%s/crash'", folder);
  if (geteuid() == 0) {
    shell("chown 12345 '%s/crash/crash.so'", folder);
    refused("crash", "another user");
    shell("chown 0 '%s/crash/crash.so'", folder);
  }
  /* e_machine of AArch64; a text; an object file; half a library */
  shell("mkdir '%s/arm' && cp '%s/sound.so' '%s/arm/arm.so' && printf '\\267' | dd of='%s/arm/arm.so' bs=1 "
        "seek=18 "
        "conv=notrunc 2>/dev/null",
        folder, PLUGINS, folder, folder);
  refused("arm", "AArch64");
  shell("mkdir '%s/text' && echo hello >'%s/text/text.so'", folder, folder);
  refused("text", "no shared library");
  shell("mkdir '%s/half' && head -c 3000 '%s/sound.so' >'%s/half/half.so'", folder, PLUGINS, folder);
  refused("half", "loaded"); /* or it crashes there */
}

static void paths(void **state) {
  (void)state;
  process p = HONE("op", "list", "--op-path", "nowhere");
  assert_int_equal(p.code, 4);
  assert_non_null(strstr(p.err, "nowhere"));
  process_free(&p);
  /* Two of one name: the first counts. Folders in folders, and their folder build. */
  shell(
      "mkdir -p '%s/two/a/build' '%s/two/b/c' && cp '%s/sound.so' '%s/two/a/build/a.so' && cp '%s/sound.so' "
      "'%s/two/b/b.so' && cp '%s/sound.so' '%s/two/b/c/c.so'",
      folder, folder, PLUGINS, folder, PLUGINS, folder, PLUGINS, folder);
  p = HONE("op", "list", "--op-path", "two", "--json");
  json_t *doc = process_json(&p), *list = json_object_get(doc, "plugins");
  assert_int_equal(json_array_size(list), 2);
  assert_non_null(strstr(p.err, "already a plugin swell"));
  json_decref(doc);
  process_free(&p);
  static const char *const wrong[] = {"hone", "run", "list", "swell"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    p = HONE("op", wrong[i], "--nothing");
    assert_int_equal(p.code, 2);
    process_free(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(used),      cmocka_unit_test(without),
                                     cmocka_unit_test(broken),    cmocka_unit_test(hangs),
                                     cmocka_unit_test(untrusted), cmocka_unit_test(paths)};
  return cmocka_run_group_tests(tests, begin, end);
}
