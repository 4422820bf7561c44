/* Inputs and outputs in memory of the caller: what is written where, what is refused. Memory comes from
 * malloc and has the size that was promised, so that sanitizers see what goes beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/operators.h"
#include "net.h"
#include "temporary.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One step of its own memory, one in place behind it, a view, an input handed through and a constant. */
#define PORTS                                                                                                \
  "graph g(%x: f32[1x3x5x7]) -> (%y, %relu, %flat, %same, %c) {\n"                                           \
  "  const %w: f32[4x3x3x3] = rand(1)\n"                                                                     \
  "  const %k: f32[6] = rand(2)\n"                                                                           \
  "  %y = Conv(%x, %w) {pads=[1,1,1,1]}\n"                                                                   \
  "  %relu = Tanh(%x)\n"                                                                                     \
  "  %e = Exp(%x)\n"                                                                                         \
  "  %flat = Reshape(%e, i64[2]{3, 35})\n"                                                                   \
  "  %same = Identity(%x)\n"                                                                                 \
  "  %c = Identity(%k)\n"                                                                                    \
  "}\n"
enum { N_PORTS = 5, N_X = 105 };

static void fill(float *x, int64_t n, unsigned seed) {
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
}

static hone_tensor tensor_of(const hone_tensor_desc *d, void *data) { return (hone_tensor){*d, data}; }

static hone_tensor like(const hone_tensor_desc *d) {
  const size_t bytes = (size_t)hone_desc_bytes(d);
  void *data = malloc(bytes);
  memset(data, 0xee, bytes);
  return tensor_of(d, data);
}

static void same(const hone_tensor *a, const void *b) {
  assert_memory_equal(a->data, b, (size_t)hone_desc_bytes(&a->desc));
}

/* What the runs of another context say is what must lie in the caller's memory. */
typedef struct pair {
  net_session s;
  hone_context *plain; /* nothing is bound */
  float x[N_X];
  hone_tensor in;
  const hone_tensor *given[1];
} pair;

static void open_on(pair *p, net_session s) {
  *p = (pair){.s = s};
  assert_int_equal(hone_context_create(s.plan, &p->plain, NULL), HONE_OK);
  p->in = tensor_of(hone_plan_input_desc(s.plan, 0), p->x);
  p->given[0] = &p->in;
  fill(p->x, N_X, 1);
}

static void open_pair(pair *p, const char *text, int level) {
  open_on(p, net_open(net_parse("bound", text), level, false, 2));
}

static void close_pair(pair *p) {
  hone_context_destroy(p->plain);
  net_close(&p->s);
}

static void run(hone_context *c, const hone_tensor *const *in) {
  hone_error e = {0};
  char line[400] = "";
  const hone_status status = hone_context_run(c, in, NULL, &e);
  if (status == HONE_OK) return;
  hone_error_format(&e, line, sizeof line);
  fail_msg("%s", line);
}

static hone_status bind_out(hone_context *c, uint32_t i, const hone_tensor *t, hone_error *e) {
  return hone_context_bind_output(c, i, t, e);
}

static void every_output(pair *p) {
  hone_context *c = p->s.context;
  hone_tensor out[N_PORTS];
  const uint32_t n = hone_plan_outputs(p->s.plan);
  for (uint32_t i = 0; i < n; i++) {
    out[i] = like(hone_plan_output_desc(p->s.plan, i));
    assert_int_equal(bind_out(c, i, &out[i], NULL), HONE_OK);
  }
  for (unsigned round = 2; round < 5; round++) {
    fill(p->x, N_X, round);
    run(p->plain, p->given);
    run(c, p->given);
    for (uint32_t i = 0; i < n; i++) {
      assert_ptr_equal(hone_context_output(c, i)->data, out[i].data);
      same(hone_context_output(p->plain, i), out[i].data);
    }
  }
  /* Nothing is bound any more: what is in the memory stays. */
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(bind_out(c, i, NULL, NULL), HONE_OK);
    memset(out[i].data, 0xee, (size_t)hone_desc_bytes(&out[i].desc));
  }
  run(c, p->given);
  for (uint32_t i = 0; i < n; i++) {
    assert_ptr_not_equal(hone_context_output(c, i)->data, out[i].data);
    same(hone_context_output(p->plain, i), hone_context_output(c, i)->data);
    for (int64_t b = 0; b < hone_desc_bytes(&out[i].desc); b++)
      assert_int_equal(((unsigned char *)out[i].data)[b], 0xee);
    free(out[i].data);
  }
}

/* All at once: what is not among them is not bound any more, and after a mistake nothing is. */
static void test_all_at_once(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  hone_tensor out[N_PORTS];
  const hone_tensor *list[N_PORTS];
  open_pair(&p, PORTS, 2);
  hone_context *c = p.s.context;
  const uint32_t n = hone_plan_outputs(p.s.plan);
  for (uint32_t i = 0; i < n; i++) {
    out[i] = like(hone_plan_output_desc(p.s.plan, i));
    list[i] = &out[i];
  }
  for (uint32_t without = 0; without <= n; without++) {
    if (without < n) list[without] = NULL;
    assert_int_equal(hone_context_bind_outputs(c, list, &e), HONE_OK);
    run(p.plain, p.given);
    run(c, p.given);
    for (uint32_t i = 0; i < n; i++) {
      assert_true((hone_context_output(c, i)->data == out[i].data) == (i != without));
      same(hone_context_output(p.plain, i), hone_context_output(c, i)->data);
    }
    if (without < n) list[without] = &out[without];
  }
  hone_tensor wrong = out[1];
  wrong.desc.dim[0]++;
  list[1] = &wrong;
  assert_int_equal(hone_context_bind_outputs(c, list, &e), HONE_ERROR_USAGE);
  run(c, p.given);
  for (uint32_t i = 0; i < n; i++) assert_ptr_not_equal(hone_context_output(c, i)->data, out[i].data);
  list[1] = &out[1];
  assert_int_equal(hone_context_bind_outputs(c, list, &e), HONE_OK);
  assert_int_equal(hone_context_bind_outputs(c, NULL, &e), HONE_OK);
  run(c, p.given);
  for (uint32_t i = 0; i < n; i++) assert_ptr_not_equal(hone_context_output(c, i)->data, out[i].data);
  for (uint32_t i = 0; i < n; i++) free(out[i].data);
  close_pair(&p);
}

static void test_outputs(void **state) {
  (void)state;
  for (int level = 0; level < 4; level++) {
    pair p;
    open_pair(&p, PORTS, level);
    every_output(&p);
    close_pair(&p);
  }
}

/* What was made in the caller's memory is read there by other steps; two outputs of one memory are copied. */
static void test_shared(void **state) {
  (void)state;
  pair p;
  open_pair(&p,
            "graph g(%x: f32[1x3x5x7]) -> (%a, %b, %c, %d) {\n"
            "  const %w: f32[3x3x1x1] = rand(1)\n"
            "  %a = Conv(%x, %w)\n  %b = Reshape(%a, i64[2]{21, 5})\n"
            "  %c = Conv(%a, %w)\n  %d = MaxPool(%c) {kernel_shape=[2,2]}\n}\n",
            2);
  every_output(&p);
  close_pair(&p);
}

/* The step that makes an output writes into the caller's memory: there is no other place to copy from, as the
 * arena would have to change first. */
static void test_no_copy(void **state) {
  (void)state;
  pair p;
  open_pair(&p, "graph g(%x: f32[1x3x5x7]) -> (%y) {\n  %y = Tanh(%x)\n}\n",
            2); /* nothing else uses the arena */
  hone_context *c = p.s.context;
  run(c, p.given);
  hone_tensor before = like(hone_plan_output_desc(p.s.plan, 0)), out = like(&before.desc);
  const hone_tensor *arena = hone_context_output(c, 0);
  const void *at = arena->data;
  memcpy(before.data, at, (size_t)hone_desc_bytes(&before.desc));
  assert_int_equal(bind_out(c, 0, &out, NULL), HONE_OK);
  fill(p.x, N_X, 9);
  run(c, p.given);
  run(p.plain, p.given);
  same(hone_context_output(p.plain, 0), out.data);
  assert_memory_equal(at, before.data, (size_t)hone_desc_bytes(&before.desc)); /* the first run's */
  free(before.data);
  free(out.data);
  close_pair(&p);
}

static void test_inputs(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, PORTS, 2);
  hone_context *c = p.s.context;
  float *x = malloc(sizeof p.x);
  const hone_tensor bound = tensor_of(&p.in.desc, x);
  const hone_tensor *none[] = {NULL};
  assert_int_equal(hone_context_run(c, NULL, NULL, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "input 'x' was not given");
  assert_int_equal(hone_context_bind_input(c, 0, &bound, &e), HONE_OK);
  for (unsigned round = 1; round < 6; round++) {
    fill(x, N_X, round); /* it may change between runs */
    memcpy(p.x, x, sizeof p.x);
    run(p.plain, p.given);
    if (round < 4)
      run(c, round & 1 ? none : NULL);
    else { /* as may be done in the background */
      assert_int_equal(hone_context_submit(c, NULL, NULL, NULL, NULL, &e), HONE_OK);
      assert_int_equal(hone_context_wait(c, 0, &e), HONE_OK);
    }
    for (uint32_t i = 0; i < N_PORTS; i++)
      same(hone_context_output(p.plain, i), hone_context_output(c, i)->data);
  }
  /* What is given counts more than what is bound. */
  fill(p.x, N_X, 77);
  run(p.plain, p.given);
  run(c, p.given);
  same(hone_context_output(p.plain, 0), hone_context_output(c, 0)->data);
  assert_int_equal(hone_context_bind_input(c, 0, NULL, &e), HONE_OK);
  assert_int_equal(hone_context_run(c, none, NULL, &e), HONE_ERROR_USAGE);
  free(x);
  close_pair(&p);
}

/* Pixels beside each other, rows with a gap, a repeated row; outputs to such places. */
static void test_strides(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, PORTS, 2);
  hone_context *c = p.s.context;
  hone_tensor_desc last = p.in.desc, rows = p.in.desc, again = p.in.desc;
  hone_desc_set_layout(&last, HONE_LAYOUT_CHANNELS_LAST, 0);
  rows.layout = again.layout = HONE_LAYOUT_STRIDED;
  rows.stride[2] = 11, rows.stride[1] = 55, rows.stride[0] = 3 * 55;
  again.stride[2] = 0, again.stride[1] = 7;
  const hone_tensor_desc *const way[] = {&last, &rows, &again};
  for (int w = 0; w < 3; w++) {
    const hone_tensor_desc *d = way[w];
    int64_t end = 1;
    for (int k = 0; k < 4; k++) end += (d->dim[k] - 1) * d->stride[k];
    float *x = malloc((size_t)end * sizeof *x);
    fill(x, end, 5);
    const hone_tensor t = tensor_of(d, x);
    assert_int_equal(hone_context_bind_input(c, 0, &t, &e), HONE_OK);
    for (int64_t i = 0; i < N_X; i++)
      p.x[i] = x[i / 35 * d->stride[1] + i / 7 % 5 * d->stride[2] + i % 7 * d->stride[3]];
    run(p.plain, p.given);
    run(c, NULL);
    for (uint32_t i = 0; i < N_PORTS; i++)
      same(hone_context_output(p.plain, i), hone_context_output(c, i)->data);
    const hone_tensor *in[] = {&t}; /* the run itself takes rows without a gap, and says who takes others */
    if (w < 2) {
      assert_int_equal(hone_context_run(c, in, NULL, &e), HONE_ERROR_USAGE);
      assert_non_null(strstr(e.hint, "hone_context_bind_input"));
    }
    assert_int_equal(hone_context_bind_input(c, 0, NULL, &e), HONE_OK);
    free(x);
  }
  /* %relu has the shape of %x. */
  float *y = malloc(sizeof *y * N_X);
  const hone_tensor out = tensor_of(&last, y);
  assert_int_equal(bind_out(c, 1, &out, &e), HONE_OK);
  run(p.plain, p.given);
  run(c, p.given);
  const float *right = hone_context_output(p.plain, 1)->data;
  for (int64_t i = 0; i < N_X; i++) assert_true(y[i % 35 * 3 + i / 35] == right[i]);
  assert_int_equal(hone_context_output(c, 1)->desc.stride[1], 1);
  const hone_tensor heap = tensor_of(&again, y);
  assert_int_equal(bind_out(c, 1, &heap, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "output 'relu': elements of the tensor share their memory");
  free(y);
  close_pair(&p);
}

static void test_refused(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  char mess[1024];
  open_pair(&p, PORTS, 2);
  hone_context *c = p.s.context;
  hone_tensor t = p.in;
#define REFUSED(call, text)                                                                                  \
  do {                                                                                                       \
    e = (hone_error){0};                                                                                     \
    assert_int_equal(call, HONE_ERROR_USAGE);                                                                \
    hone_error_format(&e, mess, sizeof mess);                                                                \
    if (!strstr(mess, text)) fail_msg("'%s' lacks '%s'", mess, text);                                        \
  } while (0)
  REFUSED(hone_context_bind_input(c, 1, &t, &e), "the plan has 1 inputs, there is no number 1");
  REFUSED(bind_out(c, N_PORTS, &t, &e), "the plan has 5 outputs, there is no number 5");
  REFUSED(hone_context_bind_allocator(c, N_PORTS, NULL, NULL, &e), "there is no number 5");
  t.desc.dtype = HONE_DTYPE_F64;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "f64[1x3x5x7]");
  REFUSED(bind_out(c, 1, &t, &e), "output 'relu' does not fit the plan");
  t = p.in, t.desc.dim[3] = 6;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "f32[1x3x5x6]");
  t = p.in, t.desc.dim[3] = -1;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "f32[1x3x5x?]");
  t = p.in, t.desc.rank = HONE_MAX_RANK + 1;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "at most 8 dimensions, got 9");
  t = p.in, t.data = NULL;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "input 'x': data is NULL");
  t = p.in, t.data = (char *)p.x + 1;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "not aligned to its elements of 4 bytes");
  t = p.in, t.desc.stride[3] = -1;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "a stride is negative or too large");
  t = p.in, t.desc.stride[3] = INT64_MAX;
  REFUSED(hone_context_bind_input(c, 0, &t, &e), "a stride is negative or too large");
  t = p.in, t.desc.device = 1;
  assert_int_equal(hone_context_bind_input(c, 0, &t, &e), HONE_ERROR_UNSUPPORTED);
  /* Outputs beside each other are fine, and on each other they are not; nor on an input. */
  float *two = malloc(sizeof(float) * (N_X * 2));
  hone_tensor a = tensor_of(&p.in.desc, two), b = tensor_of(hone_plan_output_desc(p.s.plan, 2), two + N_X);
  assert_int_equal(bind_out(c, 1, &a, &e), HONE_OK);
  assert_int_equal(bind_out(c, 2, &b, &e), HONE_OK);
  run(c, p.given);
  b.data = two + N_X - 1;
  REFUSED(bind_out(c, 2, &b, &e), "the memory for output 'flat' overlaps that of output 'relu'");
  b.data = two;
  REFUSED(bind_out(c, 2, &b, &e), "the memory for output 'flat' overlaps that of output 'relu'");
  const hone_tensor *in[] = {&a};
  REFUSED(hone_context_run(c, in, NULL, &e), "input 'x' overlaps the memory bound to output 'relu'");
  REFUSED(hone_context_submit(c, in, NULL, NULL, NULL, &e), "input 'x' overlaps");
  assert_int_equal(hone_context_bind_input(c, 0, &a, &e), HONE_OK); /* which may be moved away first */
  REFUSED(hone_context_run(c, NULL, NULL, &e), "input 'x' overlaps");
  assert_int_equal(bind_out(c, 1, NULL, &e), HONE_OK);
  run(c, NULL);
  free(two);
  close_pair(&p);
}

typedef struct shelf {
  void *at;
  unsigned calls;
  uint32_t output;
  hone_tensor_desc desc;
  bool empty;
} shelf;

static void *from_shelf(void *arg, uint32_t output, const hone_tensor_desc *desc) {
  shelf *s = arg;
  s->calls++;
  s->output = output;
  s->desc = *desc;
  free(s->at);
  s->at = s->empty ? NULL : malloc((size_t)hone_desc_bytes(desc));
  return s->at;
}

/* The number of results is known when they are there. */
#define OPEN                                                                                                 \
  "graph g(%x: f32[1x3x5x7]) -> (%at, %y) {\n"                                                               \
  "  %flat = Reshape(%x, i64[1]{-1})\n  %up = Relu(%flat)\n"                                                 \
  "  %at = NonZero(%up)\n  %y = Add(%up, %flat)\n}\n"

static int64_t positive(const float *x) {
  int64_t n = 0;
  for (int i = 0; i < N_X; i++) n += x[i] > 0;
  return n;
}

static void test_open_shapes(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, OPEN, 2);
  hone_context *c = p.s.context;
  for (unsigned round = 1; round < 4; round++) {
    fill(p.x, N_X, round);
    const int64_t n = positive(p.x), room[] = {n}, little[] = {n - 1};
    hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, room), few = hone_desc(HONE_DTYPE_I64, 1, little);
    hone_tensor enough = like(&d), too_few = like(&few);
    assert_int_equal(bind_out(c, 0, &enough, &e), HONE_OK);
    run(p.plain, p.given);
    run(c, p.given);
    const hone_tensor *y = hone_context_output(c, 0);
    assert_ptr_equal(y->data, enough.data);
    assert_true(hone_context_peak(c) + (uint64_t)n * 8 <=
                hone_context_peak(p.plain)); /* made there, not copied */
    assert_int_equal(y->desc.rank, 2);
    assert_int_equal(y->desc.dim[1], n);
    same(hone_context_output(p.plain, 0), y->data);
    assert_int_equal(bind_out(c, 0, &too_few, &e), HONE_OK);
    assert_int_equal(hone_context_run(c, p.given, NULL, &e), HONE_ERROR_USAGE);
    assert_string_equal(e.what, "the memory bound to output 'at' is too small");
    assert_non_null(strstr(e.hint, "hone_context_bind_allocator"));
    assert_int_equal(bind_out(c, 0, NULL, &e), HONE_OK);
    run(c, p.given);
    same(hone_context_output(p.plain, 0), hone_context_output(c, 0)->data);
    free(enough.data);
    free(too_few.data);
  }
  hone_tensor_desc strided = hone_desc(HONE_DTYPE_I64, 1, (const int64_t[]){50});
  strided.stride[0] = 2;
  hone_tensor t = like(&strided);
  assert_int_equal(bind_out(c, 0, &t, &e), HONE_ERROR_USAGE);
  free(t.data);
  close_pair(&p);
}

static void test_allocators(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, OPEN, 2);
  hone_context *c = p.s.context;
  shelf s[2] = {{0}};
  for (uint32_t i = 0; i < 2; i++)
    assert_int_equal(hone_context_bind_allocator(c, i, from_shelf, &s[i], &e), HONE_OK);
  for (unsigned round = 1; round < 5; round++) {
    fill(p.x, N_X, round);
    run(p.plain, p.given);
    run(c, p.given);
    for (uint32_t i = 0; i < 2; i++) {
      const hone_tensor *y = hone_context_output(c, i);
      assert_int_equal(s[i].calls, round);
      assert_int_equal(s[i].output, i);
      assert_ptr_equal(y->data, s[i].at);
      assert_true(hone_desc_same_dims(&y->desc, &s[i].desc));
      same(hone_context_output(p.plain, i), y->data);
    }
  }
  for (uint32_t i = 0; i < 2; i++) {
    s[i].empty = true;
    assert_int_equal(hone_context_run(c, p.given, NULL, &e), HONE_ERROR_MEMORY);
    assert_non_null(strstr(e.what, i ? "for output 'y'" : "for output 'at'"));
    assert_int_equal(hone_context_bind_allocator(c, i, NULL, NULL, &e), HONE_OK);
  }
  run(c, p.given);
  assert_int_equal(hone_context_bind_output(c, 1, NULL, &e), HONE_OK);
  for (uint32_t i = 0; i < 2; i++) same(hone_context_output(p.plain, i), hone_context_output(c, i)->data);
  close_pair(&p);
}

/* The positive elements, by an operator that first asks for memory for all of them: no shape is allowed to
 * shrink but by asking again. */
static hone_status infer_twice(const hone_infer *io, hone_error *error) {
  (void)error;
  *io->output[0] = *io->input[0];
  io->output[0]->dim[0] = HONE_DIM_UNKNOWN;
  return HONE_OK;
}

static hone_status positive_twice(hone_call *call, hone_error *error) {
  const hone_tensor *in = call->input[0];
  const float *x = in->data;
  int64_t n = 0;
  hone_status s = call->alloc_output(call, 0, &in->desc, error);
  for (int64_t i = 0; i < in->desc.dim[0]; i++) n += x[i] > 0;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  if (!s) s = call->alloc_output(call, 0, &d, error);
  float *y = call->output[0]->data;
  for (int64_t i = 0; !s && i < in->desc.dim[0]; i++)
    if (x[i] > 0) *y++ = x[i];
  return s;
}

static const hone_op_desc twice = {HONE_DESC_HEAD(hone_op_desc),
                                   .domain = "test",
                                   .op_type = "Twice",
                                   .since = 1,
                                   .flags = HONE_OP_DATA_DEPENDENT,
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .types = HONE_TYPES(HONE_DTYPE_F32),
                                   .infer = infer_twice,
                                   .reference = positive_twice};

static void test_asked_once(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  assert_int_equal(hn_registry_add(&hn_operators, (const void *[]){&twice}, 1, &e), HONE_OK);
  open_pair(&p, "opset 17\nopset \"test\" 1\ngraph g(%x: f32[105]) -> (%y) {\n  %y = test::Twice(%x)\n}\n",
            2);
  shelf s = {0};
  assert_int_equal(hone_context_bind_allocator(p.s.context, 0, from_shelf, &s, &e), HONE_OK);
  for (unsigned round = 1; round < 4; round++) {
    fill(p.x, N_X, round);
    run(p.plain, p.given);
    run(p.s.context, p.given);
    assert_int_equal(s.calls, round);
    assert_int_equal(hone_context_output(p.s.context, 0)->desc.dim[0], positive(p.x));
    assert_ptr_equal(hone_context_output(p.s.context, 0)->data, s.at);
    same(hone_context_output(p.plain, 0), s.at);
  }
  free(s.at);
  close_pair(&p);
}

static void test_no_elements(void **state) {
  (void)state;
  pair p;
  open_pair(&p, "graph g(%x: f32[0x7]) -> (%y) {\n  %y = Relu(%x)\n}\n", 2);
  hone_tensor none = tensor_of(hone_plan_output_desc(p.s.plan, 0), NULL), in = none;
  assert_int_equal(hone_context_bind_input(p.s.context, 0, &in, NULL), HONE_OK);
  assert_int_equal(bind_out(p.s.context, 0, &none, NULL), HONE_OK);
  run(p.s.context, NULL);
  assert_int_equal(hone_context_output(p.s.context, 0)->desc.dim[1], 7);
  close_pair(&p);
}

static void test_not_memory(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, "graph g(%x: f32[1x3x5x7]) -> (%y) {\n  %y = SequenceConstruct(%x)\n}\n", 2);
  const hone_tensor t = tensor_of(hone_plan_output_desc(p.s.plan, 0), p.x);
  shelf s = {0};
  assert_int_equal(bind_out(p.s.context, 0, &t, &e), HONE_ERROR_UNSUPPORTED);
  assert_int_equal(hone_context_bind_allocator(p.s.context, 0, from_shelf, &s, &e), HONE_ERROR_UNSUPPORTED);
  assert_string_equal(e.what, "output 'y' (seq f32) cannot be bound: it points to other memory");
  close_pair(&p);
}

/* A plan from a file, and no allocation in runs whose shapes are known. */
static void test_saved_and_steady(void **state) {
  (void)state;
  pair p;
  char path[160];
  hone_error e = {0};
  open_pair(&p, PORTS, 2);
  const int fd = mkstemp(temporary(path, sizeof path, "hone-bound"));
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(hone_plan_save(p.s.plan, path, &e), HONE_OK);
  net_session saved = {.model = p.s.model, .engine = p.s.engine};
  assert_int_equal(hone_plan_open(saved.engine, path, &saved.plan, &e), HONE_OK);
  assert_int_equal(hone_context_create(saved.plan, &saved.context, &e), HONE_OK);
  pair q;
  open_on(&q, saved);
  every_output(&q);
  hone_tensor_desc last = p.in.desc;
  hone_desc_set_layout(&last, HONE_LAYOUT_CHANNELS_LAST, 0);
  const hone_tensor in = tensor_of(&last, q.x);
  hone_tensor out[2][N_PORTS];
  assert_int_equal(hone_context_bind_input(saved.context, 0, &in, &e), HONE_OK);
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0; i < N_PORTS; i++) out[k][i] = like(hone_plan_output_desc(saved.plan, i));
  uint64_t made = 0;
  for (int round = 0; round < 6; round++) {
    if (round == 2) made = hn_mem_count();
    for (uint32_t i = 0; i < N_PORTS; i++) /* two sets in turn */
      assert_int_equal(bind_out(saved.context, i, &out[round & 1][i], &e), HONE_OK);
    run(saved.context, NULL);
  }
  assert_int_equal(hn_mem_count(), made);
  for (uint32_t i = 0; i < N_PORTS; i++) {
    same(&out[0][i], out[1][i].data);
    free(out[0][i].data);
    free(out[1][i].data);
  }
  hone_context_destroy(q.plain);
  hone_context_destroy(saved.context);
  hone_plan_destroy(saved.plan);
  unlink(path);
  close_pair(&p);
}

/* Memory that cannot be had leaves the context as it was. */
static void test_memory(void **state) {
  (void)state;
  pair p;
  hone_error e = {0};
  open_pair(&p, PORTS, 2);
  hone_tensor_desc last = p.in.desc;
  hone_desc_set_layout(&last, HONE_LAYOUT_CHANNELS_LAST, 0);
  hone_tensor in = tensor_of(&last, p.x), out = like(hone_plan_output_desc(p.s.plan, 0));
  for (uint64_t n = 1; n < 3; n++) {
    hn_mem_fail_after(n);
    assert_int_equal(hone_context_bind_input(p.s.context, 0, &in, &e), HONE_ERROR_MEMORY);
    hn_mem_fail_after(0);
  }
  hn_mem_fail_after(1);
  assert_int_equal(bind_out(p.s.context, 0, &out, &e), HONE_ERROR_MEMORY);
  hn_mem_fail_after(0);
  run(p.s.context, p.given);
  run(p.plain, p.given);
  same(hone_context_output(p.plain, 0), hone_context_output(p.s.context, 0)->data);
  free(out.data);
  close_pair(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_outputs),    cmocka_unit_test(test_all_at_once),
      cmocka_unit_test(test_shared),     cmocka_unit_test(test_no_copy),
      cmocka_unit_test(test_inputs),     cmocka_unit_test(test_strides),
      cmocka_unit_test(test_refused),    cmocka_unit_test(test_open_shapes),
      cmocka_unit_test(test_allocators), cmocka_unit_test(test_no_elements),
      cmocka_unit_test(test_asked_once), cmocka_unit_test(test_not_memory),
      cmocka_unit_test(test_memory),     cmocka_unit_test(test_saved_and_steady),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
