/* Broken and hostile models: each gives exactly the golden line and status, in under a second and 64 MiB, and no crash.
 * HONE_GOLDEN_WRITE=1 writes the golden file anew (look at the difference before committing it). */
#include "proto.h"

#include "base/mem.h"
#include "base/os.h"

#include <hone/model.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIMS(...) (const int64_t[]){__VA_ARGS__}
enum { F32 = 1, I64 = 7 };

#ifdef __SANITIZE_ADDRESS__
enum { SLOW = 8 }; /* instrumented code is slower and larger */
#else
enum { SLOW = 1 };
#endif

static char folder[64];

typedef struct sample {
  const char *name;
  void (*make)(proto *file);
} sample;

/* A graph x[2,3] -> Relu -> y, which is good; cases spoil it. */
static void good_graph(proto *g) {
  p_node(g, "Relu", "x", "y", "relu", NULL);
  p_text(g, 2, "main");
  p_value(g, 11, "x", F32, 2, DIMS(2, 3));
  p_value(g, 12, "y", F32, 2, DIMS(2, 3));
}

static void wrap(proto *file, proto *g) {
  p_model(file, 8, 17, g);
  p_free(g);
}

#define CASE(name) static void name(proto *f)
#define GRAPH proto g = {0}, t = {0}, a = {0}; (void)t; (void)a
#define DONE wrap(f, &g); p_free(&t); p_free(&a)

static void attr_int(proto *attrs, const char *name, int64_t v) {
  proto one = {0};
  p_text(&one, 1, name);
  p_int(&one, 3, v);
  p_int(&one, 20, 2);
  p_message(attrs, 5, &one);
  p_free(&one);
}

static void attr_graph(proto *attrs, const char *name, proto *graph) {
  proto one = {0};
  p_text(&one, 1, name);
  p_message(&one, 6, graph);
  p_int(&one, 20, 5);
  p_message(attrs, 5, &one);
  p_free(&one);
}

CASE(empty_file) { (void)f; }
CASE(garbage) { for (int i = 0; i < 1000; i++) p_raw(f, &(uint8_t){(uint8_t)(i * 7919 >> 3)}, 1); }
CASE(zeros) { for (int i = 0; i < 1000; i++) p_raw(f, "", 1); }
CASE(html_page) { const char *s = "<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"; p_raw(f, s, strlen(s)); }
CASE(lfs_pointer) { const char *s = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"; p_raw(f, s, strlen(s)); }
CASE(json_text) { const char *s = "{\"model\": 1}"; p_raw(f, s, strlen(s)); }
CASE(truncated_half) { GRAPH; good_graph(&g); DONE; f->len /= 2; }
CASE(truncated_last_byte) { GRAPH; good_graph(&g); DONE; f->len--; }
CASE(length_past_the_end) { p_varint(f, 7 << 3 | 2); p_varint(f, 1u << 30); p_raw(f, "abc", 3); }
CASE(length_overflows) { p_varint(f, 7 << 3 | 2); p_varint(f, UINT64_MAX); }
CASE(varint_too_long) { for (int i = 0; i < 12; i++) p_raw(f, "\xff", 1); }
CASE(no_graph) { p_int(f, 1, 8); p_text(f, 2, "test"); }
CASE(no_opset) { GRAPH; good_graph(&g); p_int(f, 1, 8); p_message(f, 7, &g); p_free(&g); }
CASE(future_ir) { GRAPH; good_graph(&g); p_model(f, 9999, 17, &g); p_free(&g); }
CASE(future_opset) { GRAPH; good_graph(&g); p_model(f, 8, 9999, &g); p_free(&g); }
CASE(old_opset) { GRAPH; good_graph(&g); p_model(f, 3, 1, &g); p_free(&g); }
CASE(unknown_operators) {
  GRAPH;
  p_node(&g, "Relu", "x", "a", "ok", NULL);
  p_node(&g, "FancyAttention", "a", "b", "n1", NULL);
  p_node(&g, "NoSuchThing", "b", "c", "n2", NULL);
  p_node(&g, "FancyAttention", "c", "y", "n3", NULL);
  p_value(&g, 11, "x", F32, 2, DIMS(2, 3));
  p_value(&g, 12, "y", F32, 2, DIMS(2, 3));
  DONE;
}
CASE(cycle) {
  GRAPH;
  p_node(&g, "Add", "x b", "a", "first", NULL);
  p_node(&g, "Relu", "a", "b", "second", NULL);
  p_value(&g, 11, "x", F32, 2, DIMS(2, 3));
  p_value(&g, 12, "b", F32, 2, DIMS(2, 3));
  DONE;
}
CASE(self_cycle) { GRAPH; p_node(&g, "Relu", "y", "y", "me", NULL); p_value(&g, 12, "y", F32, 1, DIMS(1)); DONE; }
CASE(missing_tensor) { GRAPH; p_node(&g, "Add", "x nowhere", "y", "add", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(missing_output) { GRAPH; p_node(&g, "Relu", "x", "z", "relu", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(duplicate_output) { GRAPH; p_node(&g, "Relu", "x", "y", "r1", NULL); p_node(&g, "Abs", "x", "y", "r2", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(duplicate_input) { GRAPH; good_graph(&g); p_value(&g, 11, "x", F32, 2, DIMS(2, 3)); DONE; }
CASE(duplicate_initializer) {
  GRAPH;
  good_graph(&g);
  for (int i = 0; i < 2; i++) { p_tensor(&t, "w", F32, 1, DIMS(1), "abcd", 4); p_message(&g, 5, &t); }
  DONE;
}
CASE(output_overwrites_input) { GRAPH; p_node(&g, "Relu", "x", "x", "relu", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "x", F32, 1, DIMS(4)); DONE; }
CASE(negative_dim) { GRAPH; p_tensor(&t, "w", F32, 2, DIMS(-5, 3), "abcd", 4); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(huge_dims) { GRAPH; p_tensor(&t, "w", F32, 3, DIMS(INT64_MAX, INT64_MAX, 4), "abcd", 4); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(claims_a_terabyte) { GRAPH; p_tensor(&t, "w", F32, 2, DIMS(1 << 19, 1 << 19), "abcd", 4); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(too_little_data) { GRAPH; p_tensor(&t, "w", F32, 1, DIMS(4), "abcdefgh", 8); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(too_much_data) { GRAPH; p_tensor(&t, "w", F32, 1, DIMS(1), "abcdefgh", 8); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(unknown_dtype) { GRAPH; p_tensor(&t, "w", 77, 1, DIMS(1), "abcd", 4); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(rank_nine) { GRAPH; p_node(&g, "Relu", "x", "y", "relu", NULL); p_value(&g, 11, "x", F32, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)); p_value(&g, 12, "y", F32, 1, DIMS(1)); DONE; }
CASE(dtype_clash) {
  GRAPH;
  p_tensor(&t, "w", I64, 1, DIMS(1), "abcdefgh", 8);
  p_message(&g, 5, &t);
  p_value(&g, 11, "w", F32, 1, DIMS(1));
  good_graph(&g);
  DONE;
}
CASE(output_dtype_clash) { GRAPH; p_node(&g, "Relu", "x", "y", "relu", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", I64, 1, DIMS(4)); DONE; }
CASE(operand_dtype_clash) { GRAPH; p_node(&g, "Add", "x z", "y", "add", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 11, "z", I64, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(shapes_do_not_broadcast) { GRAPH; p_node(&g, "Add", "x z", "y", "add", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 11, "z", F32, 1, DIMS(5)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(matmul_mismatch) { GRAPH; p_node(&g, "MatMul", "x z", "y", "mm", NULL); p_value(&g, 11, "x", F32, 2, DIMS(4, 5)); p_value(&g, 11, "z", F32, 2, DIMS(6, 7)); p_value(&g, 12, "y", F32, 2, DIMS(4, 7)); DONE; }
CASE(conv_channels_mismatch) { GRAPH; p_node(&g, "Conv", "x z", "y", "conv", NULL); p_value(&g, 11, "x", F32, 4, DIMS(1, 4, 8, 8)); p_value(&g, 11, "z", F32, 4, DIMS(8, 3, 3, 3)); p_value(&g, 12, "y", F32, 4, DIMS(1, 8, 6, 6)); DONE; }
CASE(conv_kernel_larger_than_input) { GRAPH; p_node(&g, "Conv", "x z", "y", "conv", NULL); p_value(&g, 11, "x", F32, 4, DIMS(1, 3, 2, 2)); p_value(&g, 11, "z", F32, 4, DIMS(8, 3, 5, 5)); p_value(&g, 12, "y", F32, 4, DIMS(1, 8, 1, 1)); DONE; }
CASE(group_does_not_divide) { GRAPH; attr_int(&a, "group", 3); p_node(&g, "Conv", "x z", "y", "conv", &a); p_value(&g, 11, "x", F32, 4, DIMS(1, 4, 8, 8)); p_value(&g, 11, "z", F32, 4, DIMS(8, 1, 3, 3)); p_value(&g, 12, "y", F32, 4, DIMS(1, 8, 6, 6)); DONE; }
CASE(zero_group) { GRAPH; attr_int(&a, "group", 0); p_node(&g, "Conv", "x z", "y", "conv", &a); p_value(&g, 11, "x", F32, 4, DIMS(1, 4, 8, 8)); p_value(&g, 11, "z", F32, 4, DIMS(8, 1, 3, 3)); p_value(&g, 12, "y", F32, 4, DIMS(1, 8, 6, 6)); DONE; }
CASE(axis_out_of_range) { GRAPH; attr_int(&a, "axis", 7); p_node(&g, "Softmax", "x", "y", "soft", &a); p_value(&g, 11, "x", F32, 2, DIMS(2, 3)); p_value(&g, 12, "y", F32, 2, DIMS(2, 3)); DONE; }
CASE(unknown_attribute) { GRAPH; attr_int(&a, "sparkle", 7); p_node(&g, "Relu", "x", "y", "relu", &a); p_value(&g, 11, "x", F32, 2, DIMS(2, 3)); p_value(&g, 12, "y", F32, 2, DIMS(2, 3)); DONE; }
CASE(attribute_of_wrong_type) {
  GRAPH;
  proto one = {0};
  p_text(&one, 1, "axis");
  p_text(&one, 4, "last");
  p_int(&one, 20, 3);
  p_message(&a, 5, &one);
  p_free(&one);
  p_node(&g, "Softmax", "x", "y", "soft", &a);
  p_value(&g, 11, "x", F32, 2, DIMS(2, 3));
  p_value(&g, 12, "y", F32, 2, DIMS(2, 3));
  DONE;
}
CASE(too_few_inputs) { GRAPH; p_node(&g, "Add", "x", "y", "add", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(too_many_inputs) { GRAPH; p_node(&g, "Relu", "x x x", "y", "relu", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(nested_1000_deep) {
  GRAPH;
  proto body = {0};
  p_node(&body, "Identity", "c", "o", "leaf", NULL);
  p_value(&body, 12, "o", 9, 0, NULL);
  for (int i = 0; i < 1000; i++) {
    proto attrs = {0}, other = {0}, outer = {0};
    p_raw(&other, body.ptr, body.len);
    attr_graph(&attrs, "then_branch", &body);
    other.len = 0;
    p_node(&other, "Identity", "c", "o", "leaf", NULL);
    p_value(&other, 12, "o", 9, 0, NULL);
    attr_graph(&attrs, "else_branch", &other);
    p_node(&outer, "If", "c", "o", "if", &attrs);
    p_value(&outer, 12, "o", 9, 0, NULL);
    p_free(&attrs), p_free(&other), p_free(&body);
    body = outer;
  }
  p_raw(&g, body.ptr, body.len);
  p_value(&g, 11, "c", 9, 0, NULL);
  p_free(&body);
  DONE;
}
CASE(four_megabytes_of_empty_nodes) { GRAPH; for (int i = 0; i < 2 << 20; i++) p_raw(&g, "\x0a\x00", 2); DONE; }
CASE(four_megabytes_of_empty_inputs) { GRAPH; for (int i = 0; i < 2 << 20; i++) p_raw(&g, "\x5a\x00", 2); DONE; }
CASE(many_dims) { GRAPH; for (int i = 0; i < 1 << 20; i++) p_int(&t, 1, 1); p_int(&t, 2, F32); p_text(&t, 8, "w"); p_message(&g, 5, &t); good_graph(&g); DONE; }
CASE(loop_without_body) { GRAPH; p_node(&g, "Loop", "  x", "y", "loop", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(unnamed_control_characters) { GRAPH; p_node(&g, "Bad\n\x1b[31mOp", "x", "y", "no\rde", NULL); p_value(&g, 11, "x", F32, 1, DIMS(4)); p_value(&g, 12, "y", F32, 1, DIMS(4)); DONE; }
CASE(sequence_input) {
  GRAPH;
  proto tensor = {0}, type = {0}, seq = {0}, outer = {0}, value = {0};
  p_int(&tensor, 1, F32);
  p_message(&type, 1, &tensor);
  p_message(&seq, 1, &type);
  p_message(&outer, 4, &seq);
  p_text(&value, 1, "x");
  p_message(&value, 2, &outer);
  p_message(&g, 11, &value);
  p_node(&g, "Identity", "x", "y", "id", NULL);
  p_value(&g, 12, "y", F32, 1, DIMS(4));
  p_free(&tensor), p_free(&type), p_free(&seq), p_free(&outer), p_free(&value);
  DONE;
}

static void external(proto *f, const char *location, const char *offset, const char *length) {
  GRAPH;
  const char *const keys[] = {"location", location, "offset", offset, "length", length};
  p_int(&t, 1, 4);
  p_int(&t, 2, F32);
  p_text(&t, 8, "w");
  for (int i = 0; i < 3; i++) {
    proto e = {0};
    if (!keys[2 * i + 1]) continue;
    p_text(&e, 1, keys[2 * i]);
    p_text(&e, 2, keys[2 * i + 1]);
    p_message(&t, 13, &e);
    p_free(&e);
  }
  p_int(&t, 14, 1);
  p_message(&g, 5, &t);
  p_node(&g, "Add", "x w", "y", "add", NULL);
  p_value(&g, 11, "x", F32, 1, DIMS(4));
  p_value(&g, 12, "y", F32, 1, DIMS(4));
  DONE;
}
CASE(external_missing) { external(f, "absent.bin", NULL, NULL); }
CASE(external_absolute) { external(f, "/etc/passwd", NULL, NULL); }
CASE(external_outside) { external(f, "../../etc/passwd", NULL, NULL); }
CASE(external_symlink) { external(f, "symlink.bin", NULL, NULL); }
CASE(external_hard_link) { external(f, "hardlink.bin", NULL, NULL); }
CASE(external_fifo) { external(f, "fifo.bin", NULL, NULL); }
CASE(external_past_the_end) { external(f, "data.bin", "8", "16"); }
CASE(external_offset_overflows) { external(f, "data.bin", "18446744073709551615", "16"); }
CASE(external_wrong_length) { external(f, "data.bin", "0", "12"); }
CASE(external_bad_number) { external(f, "data.bin", "four", "16"); }
CASE(external_without_location) { external(f, NULL, "0", "16"); }

#define S(name) {#name, name}
static const sample samples[] = {
    S(empty_file), S(garbage), S(zeros), S(html_page), S(lfs_pointer), S(json_text), S(truncated_half), S(truncated_last_byte),
    S(length_past_the_end), S(length_overflows), S(varint_too_long), S(no_graph), S(no_opset), S(future_ir), S(future_opset),
    S(old_opset), S(unknown_operators), S(cycle), S(self_cycle), S(missing_tensor), S(missing_output), S(duplicate_output),
    S(duplicate_input), S(duplicate_initializer), S(output_overwrites_input), S(negative_dim), S(huge_dims), S(claims_a_terabyte),
    S(too_little_data), S(too_much_data), S(unknown_dtype), S(rank_nine), S(dtype_clash), S(output_dtype_clash),
    S(operand_dtype_clash), S(shapes_do_not_broadcast), S(matmul_mismatch), S(conv_channels_mismatch),
    S(conv_kernel_larger_than_input), S(group_does_not_divide), S(zero_group), S(axis_out_of_range), S(unknown_attribute),
    S(attribute_of_wrong_type), S(too_few_inputs), S(too_many_inputs), S(nested_1000_deep), S(four_megabytes_of_empty_nodes),
    S(four_megabytes_of_empty_inputs), S(many_dims), S(loop_without_body), S(unnamed_control_characters), S(sequence_input),
    S(external_missing), S(external_absolute), S(external_outside), S(external_symlink), S(external_hard_link), S(external_fifo),
    S(external_past_the_end), S(external_offset_overflows), S(external_wrong_length), S(external_bad_number),
    S(external_without_location),
};

/* Loads and binds as every command does; the child's answer is "status: line". */
static int load(const char *path, char *line, size_t size) {
  hone_error e = {0};
  hone_model *m = NULL, *bound = NULL;
  hone_status status = hone_model_load(path, &m, &e);
  if (status == HONE_OK) status = hone_model_bind(m, NULL, 0, 1, &bound, NULL, &e);
  hone_model_release(bound);
  hone_model_release(m);
  char text[1200];
  if (status == HONE_OK) return snprintf(line, size, "accepted");
  hone_error_format(&e, text, sizeof text);
  return snprintf(line, size, "%s: %s", hone_status_name(status), text);
}

static bool in_child(const char *path, char *line, size_t size, double *seconds, long *kib, bool nothing) {
  int fd[2], status = 0;
  struct rusage use;
  if (pipe(fd) != 0) return false;
  uint64_t start = hn_now_ns();
  pid_t child = fork();
  if (child == 0) {
    char text[1400] = "";
    int n = nothing ? 1 : load(path, text, sizeof text);
    _exit(write(fd[1], text, (size_t)n) == n ? 0 : 9);
  }
  close(fd[1]);
  ssize_t n = read(fd[0], line, size - 1);
  close(fd[0]);
  line[n > 0 ? n : 0] = 0;
  if (wait4(child, &status, 0, &use) != child) return false;
  *seconds = (double)(hn_now_ns() - start) * 1e-9;
  *kib = use.ru_maxrss;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Paths of the temporary folder do not belong into a golden file. */
static void neutral(char *line) {
  size_t n = strlen(folder);
  for (char *p; (p = strstr(line, folder));) memmove(p, p + n + (p[n] == '/'), strlen(p + n + (p[n] == '/')) + 1);
}

static void prepare(void) {
  char path[128], other[128];
  snprintf(path, sizeof path, "%s/data.bin", folder);
  hn_file_write(path, "0123456789abcdef", 16, NULL);
  snprintf(other, sizeof other, "%s/target.bin", folder);
  hn_file_write(other, "0123456789abcdef", 16, NULL);
  snprintf(path, sizeof path, "%s/symlink.bin", folder);
  if (symlink("data.bin", path) != 0) perror("symlink");
  snprintf(path, sizeof path, "%s/hardlink.bin", folder);
  if (link(other, path) != 0) perror("link");
  snprintf(path, sizeof path, "%s/fifo.bin", folder);
  if (mkfifo(path, 0600) != 0) perror("mkfifo");
}

int main(void) {
  const char *golden_path = "tests/golden/bad_models.txt";
  bool write_golden = getenv("HONE_GOLDEN_WRITE") != NULL;
  snprintf(folder, sizeof folder, "/tmp/hone-bad-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  prepare();
  FILE *golden = fopen(golden_path, write_golden ? "w" : "r");
  if (!golden) return fprintf(stderr, "cannot open %s\n", golden_path), 1;
  int failed = 0, passed = 0;
  char path[128], line[1500], want[1600], got[1600];
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  double seconds;
  long base, kib;
  in_child(path, line, sizeof line, &seconds, &base, true);
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    proto f = {0};
    samples[i].make(&f);
    if (hn_file_write(path, f.ptr, f.len, NULL) != HONE_OK) return 1;
    p_free(&f);
    bool lived = in_child(path, line, sizeof line, &seconds, &kib, false);
    neutral(line);
    snprintf(got, sizeof got, "%s: %s\n", samples[i].name, lived ? line : "CRASH");
    if (write_golden) {
      fputs(got, golden);
      continue;
    }
    bool same = fgets(want, sizeof want, golden) && strcmp(got, want) == 0;
    bool quick = seconds < 1.0 * SLOW, small = kib - base < (64 << 10) * SLOW;
    if (same && quick && small && lived) {
      passed++;
      continue;
    }
    failed++;
    printf("FAILED %s%s%s%s", samples[i].name, quick ? "" : " (slow)", small ? "" : " (large)", same ? "\n" : ":\n");
    if (!same) printf("  got  %s  want %s", got, want);
    if (!quick || !small) printf("  %.2f s, %ld KiB more than before\n", seconds, kib - base);
  }
  fclose(golden);
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) failed++;
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
