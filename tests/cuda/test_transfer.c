/* Inputs and outputs in pinned memory, in the device's, and in ordinary memory that is larger than what
 * crosses at a time: the same answers, in all mixtures, from several threads, and whatever the driver
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "base/half.h"
#include "net.h"
#include "runtime/context.h"
#include "skipped.h"

#include <hone/hone.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_engine *engine;
static bool emulated; /* a driver that fails when it is told to */

/* A large and a small input, both read by the device. */
#define TWO                                                                                                  \
  "graph g(%x: f32[2x40x128], %b: f32[128]) -> (%y, %z) {\n"                                                 \
  "  const %w: f32[128x16] = rand(1)\n"                                                                      \
  "  %s = Add(%x, %b)\n  %y = MatMul(%s, %w)\n  %z = Relu(%s)\n}\n"
enum { X = 2 * 40 * 128, B = 128, Y = 2 * 40 * 16, Z = X };

/* More than the ring of pieces holds, of which little is read. */
#define LARGE                                                                                                \
  "graph g(%a: f32[33], %x: f32[2600x4096], %c: f32[4x4096]) -> (%y) {\n"                                    \
  "  %r = Gather(%x, i64[4]{0, 700, 1301, 2599})\n  %s = Add(%r, %c)\n"                                      \
  "  %m = ReduceMax(%a) {keepdims=0}\n  %y = Mul(%s, %m)\n}\n"
enum { ROWS = 2600, WIDE = 4096 };

static void fill(float *x, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
}

static hone_plan *plan_of(const char *text, const char *precision) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  hn_model *m = net_parse("transfer", text);
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &plan, &e))
    fail_msg("%s", e.what);
  hone_model_release(m);
  return plan;
}

static hone_context *context_of(hone_plan *plan) {
  hone_context *c = NULL;
  assert_int_equal(hone_context_create(plan, &c, NULL), HONE_OK);
  return c;
}

static void run(hone_context *c, const hone_tensor *const *in) {
  hone_error e = {0};
  if (hone_context_run(c, in, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
}

static void *new_memory(hone_memory_kind kind, size_t bytes) {
  void *p = NULL;
  assert_int_equal(hone_memory_alloc(engine, kind, bytes, &p, NULL), HONE_OK);
  assert_true((uintptr_t)p % 256 == 0);
  assert_int_equal(hone_memory_where(engine, p, bytes), kind);
  return p;
}

static void copy(void *to, const void *from, size_t bytes) {
  assert_int_equal(hone_memory_copy(engine, to, from, bytes, NULL), HONE_OK);
}

/* ------------------------------------------------------------------ kinds */

static void test_kinds(void **state) {
  (void)state;
  char *page = NULL;
  hone_error e = {0};
  void *out = NULL;
  assert_int_equal(posix_memalign((void **)&page, 4096, 8192), 0);
  assert_int_equal(hone_memory_where(engine, page, 8192), HONE_MEMORY_PAGEABLE);
  assert_int_equal(hone_memory_pin(engine, page, 4096, &e), HONE_OK);
  assert_int_equal(hone_memory_where(engine, page, 4096), HONE_MEMORY_PINNED);
  assert_int_equal(hone_memory_where(engine, page + 100, 1), HONE_MEMORY_PINNED);
  assert_int_equal(hone_memory_where(engine, page, 8192), HONE_MEMORY_PAGEABLE); /* not all of it */
  assert_int_equal(hone_memory_pin(engine, page, 4096, &e), HONE_ERROR_DEVICE);
  assert_int_equal(hone_memory_unpin(engine, page, &e), HONE_OK);
  assert_int_equal(hone_memory_where(engine, page, 4096), HONE_MEMORY_PAGEABLE);
  assert_int_equal(hone_memory_unpin(engine, page, &e), HONE_ERROR_DEVICE);
  free(page);
  assert_int_equal(hone_memory_alloc(engine, HONE_MEMORY_MANAGED, 8, &out, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_memory_alloc(engine, HONE_MEMORY_DEVICE, (size_t)1 << 60, &out, &e),
                   HONE_ERROR_MEMORY);
  assert_true(e.what[0]);
  hone_memory_free(engine, new_memory(HONE_MEMORY_PINNED, 0 + 1));
  hone_memory_free(engine, NULL);
}

/* ------------------------------------------------------------------ mixtures */

typedef struct two {
  hone_plan *plan;
  hone_context *plain, *c; /* plain: nothing is bound */
  float *host[2], *pinned[2], *device[2];
  hone_tensor in[3][2]; /* by kind: host, pinned, device */
} two;

static void open_two(two *t, const char *precision) {
  *t = (two){.plan = plan_of(TWO, precision)};
  t->plain = context_of(t->plan);
  t->c = context_of(t->plan);
  for (int i = 0; i < 2; i++) {
    const size_t bytes = (i ? B : X) * sizeof(float);
    t->host[i] = malloc(bytes);
    t->pinned[i] = new_memory(HONE_MEMORY_PINNED, bytes);
    t->device[i] = new_memory(HONE_MEMORY_DEVICE, bytes);
    void *const at[] = {t->host[i], t->pinned[i], t->device[i]};
    for (int k = 0; k < 3; k++) {
      t->in[k][i] = (hone_tensor){*hone_plan_input_desc(t->plan, (uint32_t)i), at[k]};
      t->in[k][i].desc.device = k == 2;
    }
  }
}

static void fill_two(two *t, unsigned seed) {
  for (int i = 0; i < 2; i++) {
    const size_t n = i ? B : X;
    fill(t->host[i], n, seed + (unsigned)i);
    copy(t->pinned[i], t->host[i], n * sizeof(float));
    copy(t->device[i], t->host[i], n * sizeof(float));
  }
}

static void close_two(two *t) {
  hone_context_destroy(t->plain);
  hone_context_destroy(t->c);
  hone_plan_destroy(t->plan);
  for (int i = 0; i < 2; i++) {
    free(t->host[i]);
    hone_memory_free(engine, t->pinned[i]);
    hone_memory_free(engine, t->device[i]);
  }
}

static void same_two(const two *t) {
  for (uint32_t i = 0; i < 2; i++)
    assert_memory_equal(hone_context_output(t->c, i)->data, hone_context_output(t->plain, i)->data,
                        (i ? Z : Y) * sizeof(float));
}

static void plain_run(two *t, unsigned seed) {
  fill_two(t, seed);
  run(t->plain, (const hone_tensor *[]){&t->in[0][0], &t->in[0][1]});
}

static void test_inputs(void **state) {
  (void)state;
  static const char *const precision[] = {"f32", "fp16"};
  for (int p = 0; p < 2; p++) {
    two t;
    open_two(&t, precision[p]);
    unsigned seed = 1;
    for (int a = 0; a < 3; a++)
      for (int b = 0; b < 3; b++) {
        plain_run(&t, seed++);
        run(t.c, (const hone_tensor *[]){&t.in[a][0], &t.in[b][1]});
        same_two(&t);
        /* Bound: what lies in the device's memory is read there. */
        assert_int_equal(hone_context_bind_input(t.c, 0, &t.in[a][0], NULL), HONE_OK);
        assert_int_equal(hone_context_bind_input(t.c, 1, &t.in[b][1], NULL), HONE_OK);
        for (int again = 0; again < 2; again++) {
          plain_run(&t, seed++);
          run(t.c, NULL);
          same_two(&t);
        }
        /* What is given goes before what is bound. */
        float *other = calloc(B, sizeof *other);
        const hone_tensor zero = {t.in[0][1].desc, other};
        run(t.plain, (const hone_tensor *[]){&t.in[0][0], &zero});
        run(t.c, (const hone_tensor *[]){NULL, &zero});
        same_two(&t);
        free(other);
      }
    /* An address that no kernel can take as it is: copied by the device. */
    hone_tensor odd = t.in[2][1];
    float *room = new_memory(HONE_MEMORY_DEVICE, (B + 1) * sizeof(float));
    odd.data = room + 1;
    plain_run(&t, seed++);
    copy(room + 1, t.host[1], B * sizeof(float));
    odd.desc.device = 0; /* its address says it all the same */
    assert_int_equal(hone_context_bind_input(t.c, 0, &t.in[0][0], NULL), HONE_OK);
    assert_int_equal(hone_context_bind_input(t.c, 1, &odd, NULL), HONE_OK);
    run(t.c, NULL);
    same_two(&t);
    hone_context_bind_input(t.c, 1, NULL, NULL);
    hone_memory_free(engine, room);
    close_two(&t);
  }
}

static void test_outputs(void **state) {
  (void)state;
  two t;
  open_two(&t, "f32");
  for (int kind = 0; kind < 3; kind++) {
    static const hone_memory_kind kinds[] = {HONE_MEMORY_PINNED, HONE_MEMORY_DEVICE};
    hone_tensor out[2];
    float *back = malloc(Z * sizeof *back);
    for (uint32_t i = 0; i < 2; i++) {
      const size_t bytes = (i ? Z : Y) * sizeof(float);
      out[i] = (hone_tensor){*hone_plan_output_desc(t.plan, i),
                             kind < 2 ? new_memory(kinds[kind], bytes) : malloc(bytes)};
      assert_int_equal(hone_context_bind_output(t.c, i, &out[i], NULL), HONE_OK);
    }
    for (unsigned seed = 1; seed < 4; seed++) {
      plain_run(&t, seed);
      run(t.c, (const hone_tensor *[]){&t.in[1][0], &t.in[2][1]});
      for (uint32_t i = 0; i < 2; i++) {
        assert_ptr_equal(hone_context_output(t.c, i)->data, out[i].data);
        copy(back, out[i].data, (i ? Z : Y) * sizeof(float));
        assert_memory_equal(back, hone_context_output(t.plain, i)->data, (i ? Z : Y) * sizeof(float));
      }
    }
    for (uint32_t i = 0; i < 2; i++) {
      assert_int_equal(hone_context_bind_output(t.c, i, NULL, NULL), HONE_OK);
      kind < 2 ? hone_memory_free(engine, out[i].data) : free(out[i].data);
    }
    free(back);
  }
  plain_run(&t, 9);
  run(t.c, (const hone_tensor *[]){&t.in[0][0], &t.in[0][1]});
  same_two(&t);
  close_two(&t);
}

/* A run is timed when asked for, and says so when it was not. */
static void test_clock(void **state) {
  (void)state;
  two t;
  hone_error e = {0};
  double h2d = -1, steps = -1, d2h = -1;
  open_two(&t, "f32");
  fill_two(&t, 1);
  const hone_tensor *in[] = {&t.in[0][0], &t.in[0][1]};
  run(t.c, in);
  assert_int_equal(hone_context_times(t.c, &h2d, &steps, &d2h, &e), HONE_ERROR_USAGE);
  if (!strstr(e.what, "hone_context_clock")) fail_msg("%s", e.what);
  assert_int_equal(hone_context_clock(t.c, true, &e), HONE_OK);
  assert_int_equal(hone_context_times(t.c, &h2d, &steps, &d2h, &e), HONE_ERROR_USAGE); /* that run was not */
  run(t.c, in);
  assert_int_equal(hone_context_times(t.c, &h2d, &steps, &d2h, &e), HONE_OK);
  assert_true(h2d >= 0 && steps >= 0 && d2h >= 0);
  assert_int_equal(hone_context_clock(t.c, false, &e), HONE_OK);
  assert_int_equal(hone_context_times(t.c, NULL, &steps, NULL, &e), HONE_OK); /* of the last run */
  run(t.c, in);
  assert_int_equal(hone_context_times(t.c, NULL, &steps, NULL, &e), HONE_ERROR_USAGE);
  plain_run(&t, 1);
  same_two(&t);
  close_two(&t);
}

static void refuse_input(hone_context *c, const hone_tensor *t, hone_status status, const char *word) {
  hone_error e = {0};
  assert_int_equal(hone_context_bind_input(c, 0, t, &e), status);
  if (!strstr(e.what, word)) fail_msg("%s", e.what);
}

static void test_refused(void **state) {
  (void)state;
  two t;
  hone_error e = {0};
  open_two(&t, "f32");
  fill_two(&t, 1);
  hone_tensor liar = t.in[0][0]; /* says that the host's memory is the device's */
  liar.desc.device = 1;
  refuse_input(t.c, &liar, HONE_ERROR_USAGE, "does not lie in the memory");
  assert_int_equal(hone_context_run(t.c, (const hone_tensor *[]){&liar, &t.in[0][1]}, NULL, &e),
                   HONE_ERROR_USAGE);
  hone_tensor turned = t.in[2][0];
  turned.desc.layout = HONE_LAYOUT_STRIDED;
  turned.desc.stride[1] = 0;
  refuse_input(t.c, &turned, HONE_ERROR_UNSUPPORTED, "row-major");
  /* What the host reads or makes cannot lie there. */
  hone_plan *p = plan_of("graph g(%s: i64[2], %x: f32[6x8]) -> (%n, %y) {\n"
                         "  %n = Shape(%x)\n  %r = Reshape(%x, %s)\n  %y = Relu(%r)\n}\n",
                         "f32");
  hone_context *c = context_of(p);
  hone_tensor s = {*hone_plan_input_desc(p, 0), new_memory(HONE_MEMORY_DEVICE, 256)};
  const hone_tensor x = {*hone_plan_input_desc(p, 1), t.host[0]};
  s.desc.device = 1;
  refuse_input(c, &s, HONE_ERROR_UNSUPPORTED, "host");
  assert_int_equal(hone_context_run(c, (const hone_tensor *[]){&s, &x}, NULL, &e), HONE_ERROR_UNSUPPORTED);
  hone_tensor out = {*hone_plan_output_desc(p, 0), s.data};
  assert_int_equal(hone_context_bind_output(c, 0, &out, &e), HONE_ERROR_UNSUPPORTED);
  out.desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){4, 12}); /* a shape of the run */
  assert_int_equal(hone_context_bind_output(c, 1, &out, &e), HONE_ERROR_UNSUPPORTED);
  hone_context_destroy(c);
  hone_plan_destroy(p);
  hone_memory_free(engine, s.data);
  close_two(&t);
}

/* ------------------------------------------------------------------ more than the ring holds */

typedef struct large {
  hone_plan *plan;
  float *a, *x, *c;
  hone_tensor in[3];
  float want[4 * WIDE];
} large;

static void open_large(large *l) {
  const size_t n[] = {33, (size_t)ROWS * WIDE, (size_t)4 * WIDE};
  float **at[] = {&l->a, &l->x, &l->c};
  l->plan = plan_of(LARGE, "f32");
  for (uint32_t i = 0; i < 3; i++) {
    *at[i] = malloc(n[i] * sizeof(float));
    fill(*at[i], n[i], i + 1);
    l->in[i] = (hone_tensor){*hone_plan_input_desc(l->plan, i), *at[i]};
  }
  l->a[7] = 2;
  static const int row[] = {0, 700, 1301, 2599};
  for (int i = 0; i < 4 * WIDE; i++)
    l->want[i] = (l->x[(size_t)row[i / WIDE] * WIDE + (size_t)(i % WIDE)] + l->c[i]) * 2;
}

static void close_large(large *l) {
  hone_plan_destroy(l->plan);
  free(l->a);
  free(l->x);
  free(l->c);
}

static void *run_large(void *arg) {
  const large *l = arg;
  hone_context *c = NULL;
  hone_error e = {0};
  const hone_tensor *in[] = {&l->in[0], &l->in[1], &l->in[2]};
  bool good = hone_context_create(l->plan, &c, &e) == HONE_OK;
  for (int k = 0; k < 3 && good; k++)
    good = hone_context_run(c, in, NULL, &e) == HONE_OK &&
           memcmp(hone_context_output(c, 0)->data, l->want, sizeof l->want) == 0;
  hone_context_destroy(c);
  return good ? arg : NULL;
}

static void test_large(void **state) {
  (void)state;
  large *l = calloc(1, sizeof *l);
  open_large(l);
  pthread_t thread[2];
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_large, l), 0);
  for (int i = 0; i < 2; i++) {
    void *good;
    pthread_join(thread[i], &good);
    assert_non_null(good);
  }
  /* The middle one by itself: two parts are gathered around it. */
  hone_context *c = context_of(l->plan);
  const size_t bytes = (size_t)ROWS * WIDE * sizeof(float);
  hone_tensor pinned = l->in[1];
  pinned.data = new_memory(HONE_MEMORY_PINNED, bytes);
  memcpy(pinned.data, l->x, bytes);
  run(c, (const hone_tensor *[]){&l->in[0], &pinned, &l->in[2]});
  assert_memory_equal(hone_context_output(c, 0)->data, l->want, sizeof l->want);
  /* A run that the driver does not let finish leaves the context as it was. */
  for (int k = 1; emulated && k < 30; k += 7) {
    static const char *const calls[] = {"cuMemcpyAsync:%d:1", "cuEventRecordWithFlags:%d:1",
                                        "cuEventSynchronize:%d:1"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
      char text[64];
      hone_error e = {0};
      snprintf(text, sizeof text, calls[i], k);
      setenv("HONE_FAKE_FAIL", text, 1);
      const hone_status status =
          hone_context_run(c, (const hone_tensor *[]){&l->in[0], &l->in[1], &l->in[2]}, NULL, &e);
      setenv("HONE_FAKE_FAIL", "", 1);
      if (status != HONE_OK && (status != HONE_ERROR_DEVICE || !e.what[0]))
        fail_msg("%d: %s", status, e.what);
    }
  }
  run(c, (const hone_tensor *[]){&l->in[0], &l->in[1], &l->in[2]});
  assert_memory_equal(hone_context_output(c, 0)->data, l->want, sizeof l->want);
  hone_context_destroy(c);
  hone_memory_free(engine, pinned.data);
  close_large(l);
  free(l);
}

/* ------------------------------------------------------------------ made over its input */

#define DECODER                                                                                              \
  "opset 21\nopset \"com.microsoft\" 1\n"                                                                    \
  "graph g(%q: f32[3x1x128], %k: f32[3x1x64], %v: f32[3x1x64], %pk: f32[3x2x64x32], %pv: f32[3x2x64x32], "   \
  "%n: i32[3]) -> (%y, %ok, %ov) {\n"                                                                        \
  "  %y, %ok, %ov = com.microsoft::GroupQueryAttention(%q, %k, %v, %pk, %pv, %n, i32[1]{64}) "               \
  "{num_heads=4, kv_num_heads=2}\n}\n"
enum { CACHE = 3 * 2 * 64 * 32 };

/* The caches of a decoder that lie in the device's memory are written there, and never cross. */
static void test_over(void **state) {
  (void)state;
  hone_plan *p = plan_of(DECODER, "f32");
  hone_context *plain = context_of(p), *c = context_of(p);
  float q[3 * 128], k[3 * 64], v[3 * 64], *cache[2], *back = malloc(CACHE * sizeof *back);
  int32_t n[3] = {0, 9, 40};
  void *data[] = {q, k, v, NULL, NULL, n};
  hone_tensor in[6], there[2];
  const hone_tensor *given[6], *own[6], *out[3] = {NULL, &there[0], &there[1]};
  for (uint32_t i = 0; i < 6; i++) {
    if (i == 3 || i == 4) fill(data[i] = cache[i - 3] = malloc(CACHE * sizeof(float)), CACHE, i);
    in[i] = (hone_tensor){*hone_plan_input_desc(p, i), data[i]};
    given[i] = own[i] = &in[i];
  }
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(hone_plan_output_over(p, 1 + i), 3 + i);
    there[i] = (hone_tensor){in[3 + i].desc, new_memory(HONE_MEMORY_DEVICE, CACHE * sizeof(float))};
    there[i].desc.device = 1;
    copy(there[i].data, cache[i], CACHE * sizeof(float));
    assert_int_equal(hone_context_bind_input(c, 3 + i, &there[i], NULL), HONE_OK);
    own[3 + i] = NULL;
  }
  assert_int_equal(hone_context_bind_outputs(c, out, NULL), HONE_OK);
  for (unsigned token = 0; token < 4; token++) {
    fill(q, 3 * 128, token), fill(k, 3 * 64, token + 1), fill(v, 3 * 64, token + 2);
    run(plain, given);
    run(c, own);
    assert_memory_equal(hone_context_output(c, 0)->data, hone_context_output(plain, 0)->data, sizeof q);
    for (uint32_t i = 0; i < 2; i++) {
      assert_ptr_equal(hone_context_output(c, 1 + i)->data, there[i].data);
      copy(back, there[i].data, CACHE * sizeof(float));
      memcpy(cache[i], hone_context_output(plain, 1 + i)->data, CACHE * sizeof(float));
      assert_memory_equal(back, cache[i], CACHE * sizeof(float));
    }
    for (int b = 0; b < 3; b++) n[b]++;
  }
  /* Not bound any more: back in the context's own memory. */
  for (uint32_t i = 0; i < 2; i++) hone_context_bind_input(c, 3 + i, NULL, NULL);
  assert_int_equal(hone_context_bind_outputs(c, NULL, NULL), HONE_OK);
  run(plain, given);
  run(c, given);
  for (uint32_t i = 0; i < 3; i++)
    assert_memory_equal(hone_context_output(c, i)->data, hone_context_output(plain, i)->data,
                        i ? CACHE * sizeof(float) : sizeof q);
  /* A length that the cache has no room for ends the run. */
  hone_error e = {0};
  n[1] = 64;
  assert_int_equal(hone_context_run(c, given, NULL, &e), HONE_ERROR_INPUT);
  hone_context_destroy(plain);
  hone_context_destroy(c);
  hone_plan_destroy(p);
  for (uint32_t i = 0; i < 2; i++) free(cache[i]), hone_memory_free(engine, there[i].data);
  free(back);
}

static void refuse_run(hone_context *c, const hone_tensor *const *in, const char *word) {
  hone_error e = {0};
  assert_int_equal(hone_context_run(c, in, NULL, &e), HONE_ERROR_USAGE);
  if (!strstr(e.what, word)) fail_msg("%s", e.what);
}

/* Contexts have no room for what is always bound: a run without ends, and the next one is as if it had not
 * been. */
static void test_lent(void **state) {
  (void)state;
  hn_model *m = net_parse("transfer", DECODER);
  hone_plan *p = NULL, *whole = plan_of(DECODER, "f32");
  hone_error e = {0};
  double seconds;
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = "f32", .over_bound = true},
                       &p, &e))
    fail_msg("%s", e.what);
  hone_model_release(m);
  hone_context *plain = context_of(whole), *c = context_of(p);
  float q[3 * 128], k[3 * 64], v[3 * 64], *cache[2], *back = malloc(CACHE * sizeof *back);
  int32_t n[3] = {0, 9, 40};
  void *data[] = {q, k, v, NULL, NULL, n};
  hone_tensor in[6], there[2][2];
  const hone_tensor *given[6], *own[6], *half[6];
  fill(q, 3 * 128, 1), fill(k, 3 * 64, 2), fill(v, 3 * 64, 3);
  for (uint32_t i = 0; i < 6; i++) {
    if (i == 3 || i == 4) fill(data[i] = cache[i - 3] = malloc(CACHE * sizeof(float)), CACHE, i);
    in[i] = (hone_tensor){*hone_plan_input_desc(p, i), data[i]};
    given[i] = own[i] = &in[i];
  }
  own[3] = own[4] = NULL;
  memcpy(half, given, sizeof half);
  half[3] = NULL; /* the second one alone comes from the host */
  run(plain, given);
  refuse_run(c, given, "output 'ok'");
  assert_int_not_equal(hone_context_repeat(c, &seconds, &e), HONE_OK);
  for (int set = 0; set < 2; set++) {
    const hone_tensor *const out[3] = {NULL, &there[set][0], &there[set][1]};
    for (uint32_t i = 0; i < 2; i++) {
      there[set][i] = (hone_tensor){in[3 + i].desc, new_memory(HONE_MEMORY_DEVICE, CACHE * sizeof(float))};
      there[set][i].desc.device = 1;
      copy(there[set][i].data, cache[i], CACHE * sizeof(float));
    }
    assert_int_equal(hone_context_bind_outputs(c, out, NULL), HONE_OK);
    for (uint32_t i = 0; i < 2; i++) {
      hone_context_bind_input(c, 3 + i, NULL, NULL);
      refuse_run(c, i ? half : given, i ? "input 'pv'" : "input 'pk'");
      assert_int_equal(hone_context_bind_input(c, 3 + i, &there[set][i], NULL), HONE_OK);
    }
    run(c, own);
    assert_memory_equal(hone_context_output(c, 0)->data, hone_context_output(plain, 0)->data, sizeof q);
    for (uint32_t i = 0; i < 2; i++) {
      copy(back, there[set][i].data, CACHE * sizeof(float));
      assert_memory_equal(back, hone_context_output(plain, 1 + i)->data, CACHE * sizeof(float));
    }
  }
  /* What was bound may go: nothing is repeated into it. */
  assert_int_equal(hone_context_bind_outputs(c, NULL, NULL), HONE_OK);
  assert_int_equal(hone_context_repeat(c, &seconds, &e), HONE_ERROR_USAGE);
  hone_context_destroy(plain);
  hone_context_destroy(c);
  hone_plan_destroy(p);
  hone_plan_destroy(whole);
  for (uint32_t i = 0; i < 2; i++) {
    free(cache[i]);
    for (int set = 0; set < 2; set++) hone_memory_free(engine, there[set][i].data);
  }
  free(back);
}

/* A context that forgets what was bound writes there no more. */
static void test_forgotten(void **state) {
  (void)state;
  two t;
  bool done = true;
  open_two(&t, "f32");
  hone_tensor out = {*hone_plan_output_desc(t.plan, 0), new_memory(HONE_MEMORY_DEVICE, Y * sizeof(float))};
  assert_int_equal(hone_context_bind_output(t.c, 0, &out, NULL), HONE_OK);
  plain_run(&t, 1);
  run(t.c, (const hone_tensor *[]){&t.in[0][0], &t.in[0][1]});
  hone_context_destroy(t.plain); /* who is rebound is alone */
  assert_int_equal(hone_context_rebind(t.c, NULL, 0, &done, NULL), HONE_OK);
  assert_false(done);
  hone_memory_free(engine, out.data);
  t.plain = context_of(t.plan);
  plain_run(&t, 2);
  run(t.c, (const hone_tensor *[]){&t.in[0][0], &t.in[0][1]});
  same_two(&t);
  close_two(&t);
}

/* ------------------------------------------------------------------ captured work */

static void run_at(two *t, float *const place[6], int at, unsigned seed) {
  float got[Y];
  const hone_tensor out = {*hone_plan_output_desc(t->plan, 0), place[at]};
  assert_int_equal(hone_context_bind_output(t->c, 0, &out, NULL), HONE_OK);
  plain_run(t, seed);
  run(t->c, (const hone_tensor *[]){&t->in[0][0], &t->in[0][1]});
  copy(got, place[at], sizeof got);
  assert_memory_equal(got, hone_context_output(t->plain, 0)->data, sizeof got);
}

/* What is bound goes to and fro: the same work is not captured twice, as long as there is room for it. */
static void test_kept(void **state) {
  (void)state;
  two t;
  float *place[6];
  open_two(&t, "f32");
  const hn_context *inside = hn_api_context(t.c);
  for (int i = 0; i < 6; i++) place[i] = new_memory(HONE_MEMORY_DEVICE, Y * sizeof(float));
  uint64_t before = hn_context_captured(inside);
  for (unsigned k = 0; k < 8; k++) run_at(&t, place, k % 2, k);
  assert_int_equal(hn_context_captured(inside) - before, 2);
  for (unsigned k = 0; k < 12; k++) run_at(&t, place, k % 6, k); /* more than are kept */
  assert_int_equal(hn_context_keep_captures(hn_api_context_inside(t.c), 6, NULL), HONE_OK);
  for (unsigned k = 0; k < 6; k++) run_at(&t, place, k % 6, k);
  before = hn_context_captured(inside);
  for (unsigned k = 0; k < 12; k++) run_at(&t, place, k % 6, k);
  assert_int_equal(hn_context_captured(inside), before);
  /* Memory that was given back and is another one's now is no place of old. */
  hone_memory_free(engine, place[0]);
  place[0] = new_memory(HONE_MEMORY_DEVICE, Y * sizeof(float));
  for (unsigned k = 0; k < 6; k++) run_at(&t, place, k % 6, k);
  for (int i = 0; i < 6; i++) hone_memory_free(engine, place[i]);
  close_two(&t);
}

/* ------------------------------------------------------------------ inputs as they come */

#define PICTURE                                                                                              \
  "graph g(%x: f32[2x3x9x11]) -> (%y) {\n"                                                                   \
  "  const %w: f32[16x3x3x3] = rand(1)\n"                                                                    \
  "  %c = Conv(%x, %w) {pads=[1,1,1,1]}\n  %r = Relu(%c)\n  %y = GlobalAveragePool(%r)\n}\n"
enum { PIXELS = 2 * 9 * 11, ANSWERS = 2 * 16 };

static void answers(hone_model *m, const char *precision, const void *x, float *y) {
  hone_plan *p = NULL;
  hone_error e = {0};
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &p, &e))
    fail_msg("%s: %s", e.where, e.what);
  hone_context *c = context_of(p);
  const hone_tensor in = {*hone_plan_input_desc(p, 0), (void *)(uintptr_t)x};
  run(c, (const hone_tensor *[]){&in});
  memcpy(y, hone_context_output(c, 0)->data, ANSWERS * sizeof *y);
  for (uint32_t i = 0; i < hone_plan_steps(p); i++) {
    hone_step_info s;
    assert_true(hone_plan_step(p, i, &s));
    if (strcmp(s.tactic, "ref") == 0) fail_msg("%s (%s) is left to the host", s.name, s.what);
  }
  hone_context_destroy(c);
  hone_plan_destroy(p);
}

static void test_arriving(void **state) {
  (void)state;
  static const hone_preprocess by = {
      .normalise = true, .scale = 1.0f / 255, .mean = {0.5f, 0.4f, 0.3f}, .std = {0.2f, 0.3f, 0.25f}};
  static const char *const precision[] = {"f32", "fp16"};
  float x[3 * PIXELS], want[ANSWERS], got[ANSWERS];
  uint8_t last[3 * PIXELS], first[3 * PIXELS];
  uint16_t half[3 * PIXELS];
  for (int n = 0; n < 2; n++)
    for (int c = 0; c < 3; c++)
      for (int i = 0; i < 99; i++) {
        const uint8_t v = (uint8_t)((n * 83 + c * 57 + i * 29) % 256);
        const size_t at = (size_t)((n * 3 + c) * 99 + i);
        first[at] = last[(n * 99 + i) * 3 + c] = v;
        half[at] = hn_f32_to_f16(((float)v / 255 - by.mean[c]) / by.std[c]);
        x[at] = ((float)v / 255 - by.mean[c]) / by.std[c];
      }
  hn_model *m = net_parse("picture", PICTURE);
  answers(m, "f32", x, want);
  const struct {
    hone_arriving o;
    const void *given;
  } way[] = {{{.pixels = HONE_PIXELS_NHWC, .preprocess = &by}, last},
             {{.pixels = HONE_PIXELS_NCHW, .preprocess = &by}, first},
             {{.dtype = HONE_DTYPE_F16}, half}};
  for (size_t k = 0; k < sizeof way / sizeof *way; k++)
    for (int p = 0; p < 2; p++) {
      hone_model *taken = NULL;
      assert_int_equal(hone_model_take(m, "x", &way[k].o, &taken, NULL), HONE_OK);
      answers(taken, precision[p], way[k].given, got);
      const float bound = p || k == 2 ? 2e-3f : 2e-5f;
      float range = 0;
      for (int i = 0; i < ANSWERS; i++) range = want[i] > range ? want[i] : range;
      for (int i = 0; i < ANSWERS; i++)
        if (!(got[i] - want[i] <= bound * range && want[i] - got[i] <= bound * range))
          fail_msg("%zu, %s: %g for %g", k, precision[p], (double)got[i], (double)want[i]);
      hone_model_release(taken);
    }
  hone_model_release(m);
}

int main(void) {
  hone_error e = {0};
  const hone_status status =
      hone_engine_create(&(hone_engine_options){.device = "cuda", .threads = 3}, &engine, &e);
  if (status == HONE_ERROR_MISSING) return printf("SKIP: %s\n", e.what), SKIPPED;
  if (status != HONE_OK) return printf("FAIL %s\n", e.what), 1;
  emulated = getenv("HONE_LIBCUDA") != NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds), cmocka_unit_test(test_inputs),   cmocka_unit_test(test_outputs),
      cmocka_unit_test(test_clock), cmocka_unit_test(test_refused),  cmocka_unit_test(test_large),
      cmocka_unit_test(test_over),  cmocka_unit_test(test_lent),     cmocka_unit_test(test_forgotten),
      cmocka_unit_test(test_kept),  cmocka_unit_test(test_arriving),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  hone_engine_destroy(engine);
  return failed;
}
