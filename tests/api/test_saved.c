/* Saved plans: the same answers bit for bit, and one clear error for every file that is not what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "temporary.h"
#include "net.h"
#include "api/objects.h"
#include "base/checksum.h"
#include "optimize/plan/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHANNELS = 32, SIDE = 10, VALUES = CHANNELS * SIDE * SIDE, OUT = 40, TABLE = 600 };

/* Packed weights (scaled and plain), a kept table, an If, a reference step and views. */
static hn_model *mixed_net(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, SIDE, SIDE});
  hn_value *ids = net_input(m, "ids", HONE_DTYPE_I64, 1, (const int64_t[]){3});
  int64_t n = CHANNELS;
  hn_value *y = net_op(
      m, "Conv", (hn_value *[]){x, net_weights(m, 4, (const int64_t[]){CHANNELS, CHANNELS, 3, 3}, 1)}, 2);
  float one[CHANNELS];
  for (int i = 0; i < CHANNELS; i++) one[i] = 1 + (float)i / 8;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  hn_value *g = hn_value_constant(m->graph, NULL, &d, one, true), *b = net_weights(m, 1, &n, 7);
  y = net_op(m, "BatchNormalization", (hn_value *[]){y, g, b, b, g}, 5);
  y = net_op(m, "Relu", &y, 1);
  y = net_op(m, "GlobalAveragePool", &y, 1);
  y = net_op(m, "Flatten", &y, 1);
  y = net_op(m, "MatMul", (hn_value *[]){y, net_weights(m, 2, (const int64_t[]){CHANNELS, OUT}, 3)}, 2);
  hn_value *rows =
      net_op(m, "Gather", (hn_value *[]){net_weights(m, 2, (const int64_t[]){TABLE, OUT}, 4), ids}, 2);
  rows = net_op(m, "Trilu", &rows, 1);
  y = net_op(m, "Add", (hn_value *[]){rows, y}, 2);
  net_finish(m, net_op(m, "Tanh", &y, 1));
  return m;
}

static hone_engine *engine_of(uint32_t threads) {
  hone_engine *e;
  hone_error error = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = threads, .tuning = ""}, &e, &error),
                   HONE_OK);
  return e;
}

static void run(hone_plan *plan, float out[3 * OUT]) {
  static float x[VALUES];
  int64_t ids[3] = {5, TABLE - 1, 0};
  for (int i = 0; i < VALUES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1;
  hone_tensor a = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, SIDE, SIDE}), x},
              b = {hone_desc(HONE_DTYPE_I64, 1, (const int64_t[]){3}), ids};
  const hone_tensor *in[] = {&a, &b};
  hone_context *context = NULL;
  hone_error e = {0};
  assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
  if (hone_context_run(context, in, NULL, &e) == HONE_OK)
    memcpy(out, hone_context_output(context, 0)->data, 3 * OUT * sizeof *out);
  hone_context_destroy(context);
}

typedef struct saved_file {
  char path[128];
  unsigned char *data;
  size_t size;
  float want[3 * OUT];
} saved_file;

static void write_bytes(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

static saved_file make(hone_engine *engine, const hone_plan_options *o) {
  saved_file s = {0};
  int fd = mkstemp(temporary(s.path, sizeof s.path, "hone-saved"));
  assert_true(fd >= 0);
  close(fd);
  hn_model *m = mixed_net();
  hone_plan *plan;
  hone_error e = {0};
  if (hone_plan_create(engine, m, o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  run(plan, s.want);
  if (hone_plan_save(plan, s.path, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  hone_plan_destroy(plan);
  hone_model_release(m);
  FILE *f = fopen(s.path, "rb");
  assert_non_null(f);
  s.data = malloc(4 << 20);
  s.size = fread(s.data, 1, 4 << 20, f);
  assert_true(s.size > 10000 && s.size < 4 << 20);
  fclose(f);
  return s;
}

static void done(saved_file *s) {
  unlink(s->path);
  free(s->data);
}

/* Opens what lies at the path; runs it when it opens. */
static hone_status open_it(hone_engine *engine, const saved_file *s, float *got, hone_error *e) {
  hone_plan *plan = NULL;
  *e = (hone_error){0};
  hone_status status = hone_plan_open(engine, s->path, &plan, e);
  if (status == HONE_OK) run(plan, got);
  hone_plan_destroy(plan);
  return status;
}

static void a_saved_plan_gives_the_same_bits(void **state) {
  (void)state;
  const hone_plan_options options[] = {{.level = 2},
                                       {.level = 0},
                                       {.level = 2, .prefer = HONE_PREFER_MEMORY},
                                       {.level = 2, .precision = "bf16"},
                                       {.level = 3}};
  hone_engine *engine = engine_of(2);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    saved_file s = make(engine, &options[i]);
    float got[3 * OUT] = {0};
    hone_error e;
    assert_true(hone_plan_is_saved(s.path));
    if (open_it(engine, &s, got, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
    assert_memory_equal(got, s.want, sizeof got);
    done(&s);
  }
  hone_engine_destroy(engine);
}

static void a_saved_plan_knows_its_steps(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  hn_model *m = mixed_net();
  hone_plan *a, *b;
  hone_error e = {0};
  saved_file s = make(engine, NULL);
  assert_int_equal(hone_plan_create(engine, m, NULL, &a, &e), HONE_OK);
  assert_int_equal(hone_plan_open(engine, s.path, &b, &e), HONE_OK);
  assert_int_equal(hone_plan_steps(a), hone_plan_steps(b));
  assert_int_equal(hone_plan_source_nodes(a), hone_plan_source_nodes(b));
  for (uint32_t i = 0; i < hone_plan_steps(a); i++) {
    hone_step_info x, y;
    assert_true(hone_plan_step(a, i, &x) && hone_plan_step(b, i, &y));
    assert_string_equal(x.tactic, y.tactic);
    assert_string_equal(x.what, y.what);
    assert_string_equal(x.shape, y.shape);
    assert_int_equal(x.n_nodes, y.n_nodes);
    assert_memory_equal(x.nodes, y.nodes, x.n_nodes * sizeof *x.nodes);
  }
  for (uint32_t i = 0; i < hone_plan_source_nodes(a); i++) {
    const char *n1 = "", *n2 = "", *t1 = "", *t2 = "", *f1 = "", *f2 = "";
    int32_t s1 = 0, s2 = 0;
    assert_true(hone_plan_source_node(a, i, &n1, &t1, &s1, &f1) &&
                hone_plan_source_node(b, i, &n2, &t2, &s2, &f2));
    assert_string_equal(n1, n2);
    assert_string_equal(t1, t2);
    assert_string_equal(f1, f2);
    assert_int_equal(s1, s2);
  }
  assert_int_equal(hone_plan_save(b, s.path, &e), HONE_ERROR_USAGE);
  hone_plan_destroy(a);
  hone_plan_destroy(b);
  hone_model_release(m);
  done(&s);
  hone_engine_destroy(engine);
}

static void truncated_and_longer_files_are_refused(void **state) {
  (void)state;
  hone_engine *engine = engine_of(2);
  saved_file s = make(engine, NULL);
  float got[3 * OUT];
  hone_error e;
  for (size_t n = 0; n < s.size; n += n < 300 ? 7 : 997) {
    write_bytes(s.path, s.data, n);
    assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
    assert_true(e.what[0] && strstr(e.where, s.path) && !strchr(e.what, '\n'));
    if (n >= 8) assert_non_null(strstr(e.hint, "hone optimize"));
  }
  unsigned char *more = malloc(s.size + 1);
  memcpy(more, s.data, s.size);
  more[s.size] = 0;
  write_bytes(s.path, more, s.size + 1);
  assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "follows its end"));
  free(more);
  done(&s);
  hone_engine_destroy(engine);
}

static void sign(unsigned char *data) {
  hn_saved_head h;
  memcpy(&h, data, sizeof h);
  h.meta_sum = hn_checksum(data + h.meta_at, (size_t)h.meta_bytes);
  h.graph_sum = hn_checksum(data + h.graph_at, (size_t)h.graph_bytes);
  h.head_sum = hn_checksum(&h, offsetof(hn_saved_head, head_sum));
  memcpy(data, &h, sizeof h);
}

/* Workspaces follow from what cost models take the machine for: packed for another, a plan is refused. */
static void another_memory_is_refused(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  saved_file s = make(engine, NULL);
  hn_saved_head h;
  float got[3 * OUT];
  hone_error e;
  memcpy(&h, s.data, sizeof h);
  h.dram *= 2;
  memcpy(s.data, &h, sizeof h);
  sign(s.data);
  write_bytes(s.path, s.data, s.size);
  assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.expected, "GB/s from memory"));
  done(&s);
  hone_engine_destroy(engine);
}

/* What a step was packed for may use all of the workspace that it had then. */
static void less_workspace_is_refused(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  saved_file s = make(engine, NULL);
  hn_saved_head h;
  hone_plan *plan = NULL;
  float got[3 * OUT];
  hone_error e = {0};
  memcpy(&h, s.data, sizeof h);
  assert_int_equal(hone_plan_open(engine, s.path, &plan, &e), HONE_OK);
  const hn_step *k = plan->plan->steps.ptr;
  while (!k->need.blob_bytes) k++;
  const uint64_t record[] = {hn_saved_hash(k->signature), k->blob_offset, k->need.blob_bytes,
                             k->need.workspace_bytes},
                 more = k->need.workspace_bytes + 64;
  hone_plan_destroy(plan);
  unsigned char *at = memmem(s.data + h.meta_at, (size_t)h.meta_bytes, record, sizeof record);
  assert_non_null(at);
  memcpy(at + 3 * sizeof *record, &more, sizeof more);
  sign(s.data);
  write_bytes(s.path, s.data, s.size);
  assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "scratch"));
  done(&s);
  hone_engine_destroy(engine);
}

/* A flipped bit anywhere is found, save in the padding between the parts. */
static void flipped_bits_are_found(void **state) {
  (void)state;
  hone_engine *engine = engine_of(2);
  saved_file s = make(engine, NULL);
  hn_saved_head h;
  memcpy(&h, s.data, sizeof h);
  float got[3 * OUT];
  hone_error e;
  unsigned seed = 1;
  for (size_t at = 0, i = 0; at < s.size; at += at < sizeof h ? 3 : 1 + (seed >> 8) % 700, i++) {
    seed = seed * 1664525u + 1013904223u;
    bool part = at < sizeof h || (at >= h.meta_at && at < h.meta_at + h.meta_bytes) ||
                (at >= h.graph_at && at < h.graph_at + h.graph_bytes) || at >= h.blob_at;
    if (!part) continue;
    s.data[at] ^= (unsigned char)(1u << i % 8);
    write_bytes(s.path, s.data, s.size);
    assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
    s.data[at] ^= (unsigned char)(1u << i % 8);
  }
  done(&s);
  hone_engine_destroy(engine);
}

/* The same with checksums made right again, in the parts that are parsed: any answer but a crash (the
 * sanitizers watch); what opens has the steps that it had. */
static void forged_structure_is_no_crash(void **state) {
  (void)state;
  hone_engine *engine = engine_of(1);
  saved_file s = make(engine, NULL);
  hn_saved_head h;
  memcpy(&h, s.data, sizeof h);
  unsigned char *copy = malloc(s.size);
  float got[3 * OUT];
  hone_error e;
  unsigned seed = 7, opened = 0, refused = 0;
  for (int i = 0; i < 1500; i++) {
    memcpy(copy, s.data, s.size);
    seed = seed * 1664525u + 1013904223u;
    /* Most of the graph's bytes are the table: its structure lies at both ends. */
    uint64_t span = i % 2 ? h.meta_bytes : h.graph_bytes < 6000 ? h.graph_bytes : 6000;
    uint64_t at = (seed >> 4) % span;
    if (!(i % 2) && i % 4) at = h.graph_bytes - 1 - at;
    copy[(i % 2 ? h.meta_at : h.graph_at) + at] = (unsigned char)(seed >> 16);
    sign(copy);
    write_bytes(s.path, copy, s.size);
    if (open_it(engine, &s, got, &e) == HONE_OK)
      opened++;
    else
      refused++;
  }
  assert_true(refused > 100);
  (void)opened;
  free(copy);
  done(&s);
  hone_engine_destroy(engine);
}

static void other_machines_and_versions_are_named(void **state) {
  (void)state;
  hone_engine *engine = engine_of(2), *alone = engine_of(1);
  saved_file s = make(engine, NULL);
  float got[3 * OUT];
  hone_error e;
  assert_int_equal(open_it(alone, &s, got, &e), HONE_ERROR_INPUT);
  assert_non_null(strstr(e.what, "threads"));
  assert_string_equal(e.got, "2");
  hn_saved_head h;
  for (int k = 0; k < 4; k++) {
    memcpy(&h, s.data, sizeof h);
    if (k == 0) h.format++;
    if (k == 1) snprintf(h.version, sizeof h.version, "0.0.9");
    if (k == 2) h.isa ^= 1u << 9;
    if (k == 3) h.l2 += 1;
    unsigned char *copy = malloc(s.size);
    memcpy(copy, s.data, s.size);
    memcpy(copy, &h, sizeof h);
    sign(copy);
    write_bytes(s.path, copy, s.size);
    free(copy);
    assert_int_equal(open_it(engine, &s, got, &e), HONE_ERROR_INPUT);
    assert_non_null(strstr(e.what, k == 0 ? "format" : k == 1 ? "version of hone" : "processor"));
    assert_non_null(strstr(e.hint, "hone optimize"));
  }
  done(&s);
  hone_engine_destroy(engine);
  hone_engine_destroy(alone);
}

static void checksums_see_every_byte(void **state) {
  (void)state;
  enum { SIZE = 3000 };
  unsigned char data[SIZE];
  for (int i = 0; i < SIZE; i++) data[i] = (unsigned char)(i * 7);
  for (int n = 1; n < SIZE; n += 331) {
    uint64_t want = hn_checksum(data, (size_t)n);
    for (int i = 0; i < n; i++) {
      data[i] ^= 16;
      assert_true(hn_checksum(data, (size_t)n) != want);
      data[i] ^= 16;
    }
    assert_true(hn_checksum(data, (size_t)n - 1) != want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_saved_plan_gives_the_same_bits),
      cmocka_unit_test(a_saved_plan_knows_its_steps),
      cmocka_unit_test(truncated_and_longer_files_are_refused),
      cmocka_unit_test(another_memory_is_refused),
      cmocka_unit_test(flipped_bits_are_found),
      cmocka_unit_test(forged_structure_is_no_crash),
      cmocka_unit_test(other_machines_and_versions_are_named),
      cmocka_unit_test(less_workspace_is_refused),
      cmocka_unit_test(checksums_see_every_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
