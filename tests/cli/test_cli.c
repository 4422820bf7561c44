/* The command as its users see it: exit codes, one-line errors, files. */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hone/hone.h>

static void test_help(void **state) {
  (void)state;
  static const char *const commands[] = {"loop", "inspect", "run",      "profile", "bench",
                                         "tune", "verify",  "optimize", "device",  "zoo",
                                         "help", "version", "quantize"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    process a = RUN(commands[i], "--help"), b = RUN("help", commands[i]);
    assert_int_equal(a.code, 0);
    assert_non_null(strstr(a.out, "usage: hone "));
    assert_non_null(strstr(a.out, "--help"));
    assert_string_equal(a.out, b.out);
    process_free(&a);
    process_free(&b);
  }
  process p = RUN("help");
  assert_int_equal(p.code, 0);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) assert_non_null(strstr(p.out, commands[i]));
  process_free(&p);
}

static void test_one_is_no_plural(void **state) {
  (void)state;
  process p = RUN("bench", tiny, "-t", "1", "-n", "3");
  assert_int_equal(p.code, 0);
  assert_non_null(strstr(p.out, " on cpu, 1 thread, batch 1\n"));
  process_free(&p);
  p = RUN("bench", tiny, "-t", "2", "-n", "3");
  assert_non_null(strstr(p.out, " on cpu, 2 threads, batch 1\n"));
  process_free(&p);
}

static void test_usage_errors(void **state) {
  (void)state;
  expect_error(RUN("benhc", tiny), 2, "did you mean 'bench'?");
  expect_error(RUN("frobnicate"), 2, "unknown command 'frobnicate', and no file has that name");
  expect_error(RUN("mnist-cntk.onx"), 3, "mnist-cntk.onx");
  expect_error(RUN("models/mnist"), 3, "models/mnist");
  expect_error(RUN("--lang", "zh", "inspect", tiny), 2, "'inspect' is a command: options stand behind it");
  expect_error(RUN("--lang", "zh", "diagnose"), 2, "(hone diagnose FILE");
  expect_error(RUN("--max-seconds", "5"), 2, "'--max-seconds' is no command");
  expect_error(RUN("bench", tiny, "--thread", "2"), 2, "did you mean '--threads'?");
  expect_error(RUN("bench", tiny, "-t", "two"), 2, "--threads wants a whole number");
  expect_error(RUN("bench", tiny, "-t"), 2, "--threads wants a value");
  expect_error(RUN("bench", tiny, "-t", "1025"), 2,
               "--threads wants a whole number from 1 to 1024, got '1025'");
  expect_error(RUN("verify", tiny, "-t", "0"), 2, "--threads wants a whole number from 1 to 1024, got '0'");
  expect_error(RUN("bench", tiny, "--level", "4"), 2, "--level wants a whole number from 0 to 3");
  expect_error(RUN("bench", tiny, "-n", "0"), 2, "--runs wants a whole number from 1");
  expect_error(RUN("optimize", tiny, "-o", tiny), 2, "while it is the input");
  expect_error(RUN("diagnose", tiny), 3, "hone profile measures one");
  expect_error(RUN("bench", tiny, "--json=yes"), 2, "takes no value");
  expect_error(RUN("bench"), 2, "missing argument");
  expect_error(RUN("bench", tiny, "more"), 2, "unexpected argument 'more'");
  expect_error(RUN("run", tiny, "--precision", "f8"), 2,
               "--precision f8 is not available on device cpu; expected f32, bf16, fp16 or auto");
  expect_error(RUN("run", tiny, "--precision", "tf32"), 2, "not available on device cpu");
  expect_error(RUN("run", tiny, "--device", "tpu"), 2, "unknown device");
  expect_error(RUN("run", tiny, "--shape", "input"), 2, "--shape wants");
  expect_error(RUN("run", tiny, "--shape", "inputt=1x3x32x32"), 2, "did you mean 'input'?");
  expect_error(RUN("run", tiny, "--input", "x=a.npy"), 2, "no input 'x'");
  expect_error(RUN("zoo", "resnet5"), 2, "did you mean 'resnet50'?");
  expect_error(RUN("zoo", "resnet50"), 2, "-o");
  expect_error(RUN("zoo", "yolov3", "-o", "x.onnx", "--size", "33"), 2, "multiple of 32");
  expect_error(RUN("zoo", "resnet50", "-o", "x.onnx", "--boxes"), 2, "finds no boxes");
  expect_error(RUN("optimize", tiny), 2, "-o");
  expect_error(RUN("optimize", tiny, "--explain", "--passes", "fold_*,fuse_all"), 2,
               "no pass or fusion is called 'fuse_all'");
  expect_error(RUN("bench", tiny, "--level", "0", "--passes", "-epilog"), 2, "epilogue, chain, pointwise");
}

/* The file's bytes; the caller frees them. */
static char *slurp(const char *name, size_t *size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  char *data = malloc(*size);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, *size, f), *size);
  fclose(f);
  return data;
}

/* How large a picture is does not decide how long a plan takes: nothing counts its rows (10^13 here). */
static void test_tall_picture(void **state) {
  (void)state;
  static const char text[] = "opset 17\ngraph g(%x: f32[1x1x100000000000x1]) -> (%y) {\n"
                             "  const %w: f32[1x1x99x1] = rand(1)\n"
                             "  %y = Conv(%x, %w) {pads=[49, 0, 49, 0]}\n}\n";
  char path[200];
  hone_error e = {0};
  hone_model *m = NULL;
  snprintf(path, sizeof path, "%s/tall.onnx", folder);
  assert_int_equal(hone_model_parse(text, sizeof text - 1, &m, &e), HONE_OK);
  assert_int_equal(hone_model_save(m, path, &e), HONE_OK);
  hone_model_release(m);
  process p = RUN("inspect", path);
  assert_int_equal(p.code, 0);
  process_free(&p);
}

/* Shape of a model's first node of this type, "1x29x17x17". */
static void assert_first_shape(const char *model, const char *type, const char *shape) {
  process p = RUN("inspect", model, "--json");
  json_t *doc = process_json(&p), *node;
  size_t i;
  json_array_foreach(json_object_get(doc, "nodes"), i, node) {
    if (strcmp(json_string_value(json_object_get(node, "type")), type) != 0) continue;
    assert_string_equal(json_string_value(json_object_get(node, "shape")), shape);
    break;
  }
  assert_true(i < json_array_size(json_object_get(doc, "nodes")));
  json_decref(doc);
  process_free(&p);
}

/* Widths and sizes that the papers do not have: odd channel counts, odd maps, and still right answers. */
static void test_zoo_variants(void **state) {
  (void)state;
  static const struct {
    const char *name, *width, *size, *round, *type, *shape;
  } variants[] = {
      {"mobilenetv2", "0.9", "33", "1", "Conv", "1x29x17x17"},
      {"mobilenetv2", "0.9", "33", "8", "Conv", "1x32x17x17"},
      {"resnet50", "0.11", "49", "1", "Conv", "1x7x25x25"},
      {"yolov3", "0.09", "64", "1", "Conv", "1x3x64x64"},
      {"bert_base", "0.1", "7", "8", "MatMul", "1x7x64"},
  };
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    process p = RUN("zoo", variants[i].name, "-b", "1", "--width", variants[i].width, "--size",
                    variants[i].size, "--round", variants[i].round, "-o", "variant.onnx");
    if (p.code) fail_msg("%s: %s", variants[i].name, p.err);
    process_free(&p);
    assert_first_shape("variant.onnx", variants[i].type, variants[i].shape);
    p = RUN("verify", "variant.onnx", "-n", "1");
    if (p.code) fail_msg("%s: %s%s", variants[i].name, p.out, p.err);
    process_free(&p);
  }
  size_t size, again;
  char *first = slurp("variant.onnx", &size);
  process p = RUN("zoo", "bert_base", "-b", "1", "--width", "0.1", "--size", "7", "-o", "variant.onnx");
  process_free(&p);
  char *second = slurp("variant.onnx", &again);
  assert_int_equal(size, again);
  assert_memory_equal(first, second, size);
  free(first);
  free(second);
}

static void test_bad_input(void **state) {
  (void)state;
  write_text("page.onnx", "<!DOCTYPE html><html></html>");
  write_text("bad.npy", "\x93NUMPY garbage");
  write_text("bad.jpg", "\xff\xd8\xff\xe0 garbage");
  expect_error(RUN("inspect", "page.onnx"), 3, "page.onnx");
  expect_error(RUN("inspect", "missing.onnx"), 3, "missing.onnx");
  expect_error(RUN("missing.onnx"), 3, "missing.onnx");
  expect_error(RUN("run", tiny, "--input", "input=missing.npy"), 3, "missing.npy");
  expect_error(RUN("run", tiny, "--input", "input=bad.npy"), 3, "bad.npy");
  expect_error(RUN("run", tiny, "--input", "input=bad.jpg"), 3, "bad.jpg");
  expect_error(RUN("run", tiny, "--input", "input=page.onnx"), 3, "page.onnx");
  expect_error(RUN("run", tiny, "--labels", "missing.txt"), 3, "missing.txt");
}

static void test_other_exit_codes(void **state) {
  (void)state;
  expect_error(RUN("run", tiny, "--device", "cuda"), 4, "cuda");
  expect_error(RUN("demo", "merged-copies"), 4, "needs a GPU");
  expect_error(RUN("zoo", "mobilenetv2", "--width", "0.1", "-o", "/dev/full"), 6, "No space left");
  expect_error(RUN("zoo", "mobilenetv2", "--width", "0.1", "-o", "no/such/folder/m.onnx"), 6,
               "no/such/folder");
  expect_error(RUN("run", tiny, "--shape", "N=1", "--max-seconds", "0.0000001"), 6, "time budget");
  expect_error(RUN("run", tiny, "--shape", "N=1", "--max-seconds", "0.0000001"), 6, tiny);
  expect_error(RUN("profile", tiny, "-n", "2", "--shape", "N=1", "--csv", "/dev/full"), 6, "No space left");
  struct stat st;
  assert_int_equal(stat("/dev/full", &st), 0);
  assert_true(S_ISCHR(st.st_mode)); /* still the device */
  assert_no_leftovers();
}

static void test_full_stdout(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "'%s' inspect '%s' --json >/dev/full 2>/dev/null", HONE_BINARY, tiny);
  assert_int_equal(WEXITSTATUS(system(command)), 6);
}

/* A reader that has had enough, as head has, is told of no error. */
static void test_closed_stdout(void **state) {
  (void)state;
  static const char *const words[] = {"profile", "inspect", "plan"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char command[600], errors[200];
    struct stat said;
    int ends[2], status = 0;
    snprintf(errors, sizeof errors, "%s/errors.txt", folder);
    snprintf(command, sizeof command, "'%s' %s '%s' --shape N=1 --json 2>'%s'", HONE_BINARY, words[i], tiny,
             errors);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", command, (char *)NULL);
      _exit(99);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 6) fail_msg("%s: %d", command, status);
    assert_int_equal(stat(errors, &said), 0);
    assert_int_equal(said.st_size, 0);
  }
}

static void test_run_files(void **state) {
  (void)state;
  process p = RUN("run", tiny, "--output-dir", "outs/a", "--seed", "5", "--level", "1");
  assert_int_equal(p.code, 0);
  process_free(&p);
  assert_true(exists("outs/a/output.npy") && exists("outs/a/outputs.json"));
  p = RUN("zoo", "yolov3", "-o", "yolo.onnx", "--width", "0.05", "--size", "32");
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = RUN("run", "yolo.onnx", "--output-dir", "outs/b", "--json");
  assert_int_equal(p.code, 0);
  assert_true(exists("outs/b/head0.npy") && exists("outs/b/head1.npy") && exists("outs/b/head2.npy"));
  json_t *doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "outputs")), 3);
  json_decref(doc);
  process_free(&p);
  /* the same seed gives the same answer, whatever the threads (from level 2 on they may choose other tactics)
   */
  p = RUN("run", tiny, "--output-dir", "outs/c", "--seed", "5", "-t", "1", "--level", "1");
  assert_int_equal(p.code, 0);
  process_free(&p);
  char command[200];
  snprintf(command, sizeof command, "cmp '%s/outs/a/output.npy' '%s/outs/c/output.npy'", folder, folder);
  assert_int_equal(system(command), 0);
  /* an output fed back as an input of the right shape */
  expect_error(RUN("run", tiny, "--input", "input=outs/a/output.npy"), 3, "shape");
}

static void test_symbols(void **state) {
  (void)state;
  process p = RUN("inspect", tiny, "--shape", "N=4", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  const json_t *input = json_array_get(json_object_get(doc, "inputs"), 0);
  assert_int_equal(json_integer_value(json_array_get(json_object_get(input, "shape"), 0)), 4);
  json_decref(doc);
  process_free(&p);
}

static void test_labels(void **state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s/labels.txt", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 1001; i++) fprintf(f, "class %d\n", i - 1); /* the first is the background */
  fclose(f);
  process p = RUN("run", tiny, "--labels", "labels.txt", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  const json_t *row = json_array_get(json_object_get(doc, "top5"), 0);
  assert_int_equal(json_array_size(row), 5);
  char want[32];
  snprintf(want, sizeof want, "class %lld",
           (long long)json_integer_value(json_object_get(json_array_get(row, 0), "class")));
  assert_string_equal(json_string_value(json_object_get(json_array_get(row, 0), "label")), want);
  json_decref(doc);
  process_free(&p);
}

static void test_device_and_version(void **state) {
  (void)state;
  process p = RUN("device", "--json");
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  assert_int_equal(json_array_size(json_object_get(doc, "roofs")), 8);
  json_decref(doc);
  process_free(&p);
  p = RUN("version", "--json");
  doc = process_json(&p);
  assert_string_equal(json_string_value(json_object_get(doc, "version")), HONE_VERSION_STRING);
  json_decref(doc);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_help),
      cmocka_unit_test(test_tall_picture),
      cmocka_unit_test(test_usage_errors),
      cmocka_unit_test(test_one_is_no_plural),
      cmocka_unit_test(test_zoo_variants),
      cmocka_unit_test(test_bad_input),
      cmocka_unit_test(test_other_exit_codes),
      cmocka_unit_test(test_full_stdout),
      cmocka_unit_test(test_closed_stdout),
      cmocka_unit_test(test_run_files),
      cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_labels),
      cmocka_unit_test(test_device_and_version),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
