/* check_pointwise: random pointwise programs over random broadcasts and layouts through the pointwise tactic,
 * against an interpreter that walks the output element by element. Only exactly rounded instructions are
 * used, so results must be equal bit for bit; the functions themselves are proven by check_kernels.
 *
 * usage: check_pointwise [--expect-failure]
 *        check_pointwise --device cuda [--programs N]
 * The second runs N (150) of the programs on a device, in f32. A compiler may fuse a product and a sum there:
 * only elements whose every value is exact count. */
#include "skipped.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/nest.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/tactics.h"

#include "expect_failure.h"
#include "tactics/device_step.h"

#include <hone/plugin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IN = 4, MAX_OUT = 2, MAX_INSTR = 64, THREADS = 3, CANARY = 64 };

typedef struct program_case {
  hone_step_tensor in[MAX_IN], out[MAX_OUT];
  void *data[MAX_IN];
  unsigned char *result[MAX_OUT]; /* CANARY bytes in */
  uint32_t n_in, n_out;
  hone_pw_instr instr[MAX_INSTR];
  hone_pw_program program;
  bool in_place; /* output 0 is input 0 */
} program_case;

static hn_rng rng;
static hn_pool *pool;
static int failures;
static device_place gpu;
static const hone_tactic_desc *on_gpu; /* the device's tactic; NULL: on the CPU */

static uint64_t below(uint64_t n) { return hn_rng_below(&rng, n); }

static void set_layout(hone_tensor_desc *d, int layout) {
  const int64_t vector = 16 / (int64_t)hone_dtype_size(d->dtype);
  d->device = on_gpu != NULL;
  if (layout && d->rank >= 3)
    hone_desc_set_layout(d, HONE_LAYOUT_CHANNELS_LAST,
                         on_gpu        ? (d->dim[1] + vector - 1) / vector * vector
                         : layout == 2 ? d->dim[1] + 1
                                       : 0);
  else
    hone_desc_set_layout(d, HONE_LAYOUT_ROW_MAJOR, 0);
}

static bool is_codes(const hone_tensor_desc *d) {
  return d->dtype == HONE_DTYPE_U8 || d->dtype == HONE_DTYPE_I8;
}

static hone_dtype random_codes(void) { return below(2) ? HONE_DTYPE_U8 : HONE_DTYPE_I8; }

static void random_tensor(hone_step_tensor *t, void **data, const hone_tensor_desc *y, int layout, bool full,
                          bool codes) {
  static const uint8_t drop[] = {0, 0, 0, 1, 2, 3};
  int64_t dim[HONE_MAX_RANK];
  int32_t lead = full ? 0 : drop[below(6)];
  if (lead > y->rank) lead = y->rank;
  for (int32_t i = lead; i < y->rank; i++) dim[i - lead] = !full && below(3) == 0 ? 1 : y->dim[i];
  t->desc = hone_desc(!full && below(5) == 0 ? HONE_DTYPE_BOOL : HONE_DTYPE_F32, y->rank - lead, dim);
  if (codes && below(2)) t->desc.dtype = random_codes();
  set_layout(&t->desc, t->desc.rank == y->rank ? layout : 0);
  const size_t bytes = (size_t)hone_desc_bytes(&t->desc);
  *data = hn_aligned(64, bytes + 1);
  if (is_codes(&t->desc))
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)*data)[i] = (uint8_t)below(256);
  else if (t->desc.dtype == HONE_DTYPE_BOOL)
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)*data)[i] = (uint8_t)below(2);
  else
    for (size_t i = 0; i < bytes / 4; i++) ((float *)*data)[i] = (float)((double)below(2001) - 1000) / 64.0f;
  if (!on_gpu || t->desc.layout != HONE_LAYOUT_CHANNELS_LAST) return;
  const size_t size = hone_dtype_size(t->desc.dtype), pitch = (size_t)t->desc.channel_pitch * size,
               used = (size_t)t->desc.dim[1] * size;
  for (size_t at = used; pitch > used && at + pitch - used <= bytes; at += pitch)
    memset((char *)*data + at, 0, pitch - used); /* devices have zeros behind the channels */
}

/* What DequantizeLinear does, as lowering writes it: register `reg` becomes (reg - zero) * scale, or another
 * one beside it. */
static uint32_t dequantise(hone_pw_instr *t, uint8_t reg, uint8_t *live) {
  const uint8_t number = *live, other = (uint8_t)(number + 1);
  const bool keep = below(4) == 0; /* the codes are read again */
  uint32_t n = 0;
  if (below(3)) {
    t[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = number, .alpha = (float)below(128)};
    t[n++] = (hone_pw_instr){.op = HONE_PW_SUB, .dst = keep ? other : reg, .a = reg, .b = number};
  }
  const uint8_t from = n && keep ? other : reg;
  t[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = number, .alpha = (float)(1 + below(99)) / 37.0f};
  t[n++] = (hone_pw_instr){.op = HONE_PW_MUL, .dst = keep ? other : reg, .a = from, .b = number};
  if (keep) *live = (uint8_t)(other + 1);
  return n;
}

/* And QuantizeLinear. */
static uint32_t quantise(hone_pw_instr *t, uint8_t reg, uint8_t live, bool is_signed) {
  uint32_t n = 0;
  t[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = live, .alpha = (float)(1 + below(99)) / 41.0f};
  t[n++] = (hone_pw_instr){.op = HONE_PW_DIV, .dst = live, .a = reg, .b = live};
  t[n++] = (hone_pw_instr){.op = HONE_PW_ROUND, .dst = live, .a = live};
  if (below(3)) {
    const float zero = (float)below(256) - (is_signed ? 128.0f : 0.0f) + (below(4) ? 0.0f : 0.5f);
    t[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = (uint8_t)(live + 1), .alpha = zero};
    t[n++] = (hone_pw_instr){.op = HONE_PW_ADD, .dst = live, .a = live, .b = (uint8_t)(live + 1)};
  }
  t[n++] = (hone_pw_instr){.op = HONE_PW_STORE, .dst = 0, .a = live};
  return n;
}

static void random_program(program_case *c) {
  static const uint8_t ops[] = {HONE_PW_ADD,  HONE_PW_SUB,   HONE_PW_MUL, HONE_PW_MIN,  HONE_PW_MAX,
                                HONE_PW_LT,   HONE_PW_WHERE, HONE_PW_NEG, HONE_PW_ABS,  HONE_PW_RELU,
                                HONE_PW_CLIP, HONE_PW_PRELU, HONE_PW_NOT, HONE_PW_FLOOR};
  uint32_t n = 0;
  uint8_t live = 0; /* registers 0..live-1 hold values */
  for (uint8_t i = 0; i < c->n_in; i++) {
    const uint8_t reg = live++;
    c->instr[n++] = (hone_pw_instr){.op = HONE_PW_LOAD, .dst = reg, .a = i};
    if (is_codes(&c->in[i].desc) && below(4)) n += dequantise(c->instr + n, reg, &live);
  }
  if (below(2)) c->instr[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = live++, .alpha = 1.5f};
  for (uint64_t k = 1 + below(8); k > 0; k--) {
    const uint8_t dst = live < HONE_PW_REGISTERS - 2 && below(3) ? live : (uint8_t)below(live);
    c->instr[n++] = (hone_pw_instr){.op = ops[below(sizeof ops)],
                                    .dst = dst,
                                    .a = (uint8_t)below(live),
                                    .b = (uint8_t)below(live),
                                    .c = (uint8_t)below(live),
                                    .alpha = -2.0f,
                                    .beta = 3.0f};
    if (dst == live) live++;
  }
  const uint8_t last = c->instr[n - 1].dst;
  if (c->n_out > 1) c->instr[n++] = (hone_pw_instr){.op = HONE_PW_STORE, .dst = 1, .a = (uint8_t)below(live)};
  const uint8_t result = below(4) ? last : (uint8_t)below(live);
  if (is_codes(&c->out[0].desc) && below(8))
    n += quantise(c->instr + n, result, live, c->out[0].desc.dtype == HONE_DTYPE_I8);
  else
    c->instr[n++] = (hone_pw_instr){.op = HONE_PW_STORE, .dst = 0, .a = result};
  c->program = (hone_pw_program){n, c->instr};
}

static float apply(const hone_pw_instr *t, float x, float y, float z) {
  switch (t->op) {
  case HONE_PW_ADD: return x + y;
  case HONE_PW_SUB: return x - y;
  case HONE_PW_MUL: return x * y;
  case HONE_PW_DIV: return x / y;
  case HONE_PW_ROUND: return rintf(x);
  case HONE_PW_MIN: return x < y ? x : y;
  case HONE_PW_MAX: return x > y ? x : y;
  case HONE_PW_AND: return x != 0 && y != 0;
  case HONE_PW_OR: return x != 0 || y != 0;
  case HONE_PW_XOR: return (x != 0) != (y != 0);
  case HONE_PW_EQ: return x == y;
  case HONE_PW_LT: return x < y ? 1.0f : 0.0f;
  case HONE_PW_WHERE: return x != 0 ? y : z;
  case HONE_PW_NEG: return -x;
  case HONE_PW_ABS: return fabsf(x);
  case HONE_PW_RELU: return x > 0 ? x : 0;
  case HONE_PW_CLIP: return fminf(fmaxf(x, t->alpha), t->beta);
  case HONE_PW_PRELU: return x < 0 ? x * y : x;
  case HONE_PW_NOT: return x == 0 ? 1.0f : 0.0f;
  default: return floorf(x);
  }
}

static float load_one(const hone_tensor_desc *d, const void *data, int64_t at) {
  switch (d->dtype) {
  case HONE_DTYPE_BOOL: return ((const uint8_t *)data)[at] != 0;
  case HONE_DTYPE_U8: return (float)((const uint8_t *)data)[at];
  case HONE_DTYPE_I8: return (float)((const int8_t *)data)[at];
  default: return ((const float *)data)[at];
  }
}

/* Whether element `at` is what storing `want` makes of it. */
static bool is_stored(const hone_tensor_desc *d, const void *data, int64_t at, float want) {
  if (d->dtype == HONE_DTYPE_BOOL) return ((const uint8_t *)data)[at] == (want != 0);
  const float low = d->dtype == HONE_DTYPE_I8 ? -128 : 0, got = load_one(d, data, at);
  if (!is_codes(d)) return got == want;
  want = rintf(want);
  return got == (!(want > low) ? low : want > low + 255 ? low + 255 : want);
}

/* Offset of the element of d that belongs to output element i (row-major count). */
static int64_t place(const hone_tensor_desc *d, const hone_tensor_desc *y, int64_t i) {
  int64_t at = 0;
  for (int32_t k = y->rank - 1; k >= 0; k--) {
    const int32_t own = k - (y->rank - d->rank);
    if (own >= 0 && d->dim[own] != 1) at += i % y->dim[k] * d->stride[own];
    i /= y->dim[k];
  }
  return at;
}

/* Whether the result is what real numbers give: then it is that on any machine. */
static bool is_exact(const hone_pw_instr *t, float x, float y, float result) {
  const double a = (double)x, b = (double)y, r = (double)result;
  switch (t->op) {
  case HONE_PW_ADD: return a + b == r;
  case HONE_PW_SUB: return a - b == r;
  case HONE_PW_MUL: return a * b == r;
  case HONE_PW_PRELU: return x >= 0 || a * b == r;
  default: return r == r;
  }
}

/* All outputs of element i; inputs from `data`. False: something was rounded. */
static bool interpret(const program_case *c, int64_t i, float out[MAX_OUT]) {
  const hone_tensor_desc *y = &c->out[0].desc;
  float r[HONE_PW_REGISTERS] = {0};
  bool exact = true;
  for (uint32_t k = 0; k < c->program.n_instr; k++) {
    const hone_pw_instr *t = &c->instr[k];
    if (t->op == HONE_PW_LOAD) {
      const hone_tensor_desc *d = &c->in[t->a].desc;
      const int64_t at = place(d, y, i);
      r[t->dst] = load_one(d, c->data[t->a], at);
    } else if (t->op == HONE_PW_CONST) {
      r[t->dst] = t->alpha;
    } else if (t->op == HONE_PW_STORE) {
      out[t->dst] = r[t->a];
    } else {
      const float x = r[t->a], y = r[t->b];
      r[t->dst] = apply(t, x, y, r[t->c]);
      exact = exact && is_exact(t, x, y, r[t->dst]);
    }
  }
  return exact;
}

static void describe(const program_case *c, char *text, size_t size) {
  char one[64];
  size_t n =
      (size_t)snprintf(text, size, "%u instructions%s:", c->program.n_instr, c->in_place ? ", in place" : "");
  for (uint32_t i = 0; i < c->n_in; i++)
    n += (size_t)snprintf(text + n, size - n, " %s", hone_desc_format(&c->in[i].desc, one, sizeof one));
  for (uint32_t i = 0; i < c->n_out; i++)
    snprintf(text + n, size - n, " -> %s", hone_desc_format(&c->out[i].desc, one, sizeof one));
}

static hone_step step_of(const program_case *c) {
  return (hone_step){.struct_size = sizeof(hone_step),
                     .abi = HONE_PLUGIN_ABI,
                     .anchor = "Pointwise",
                     .name = "program",
                     .n_inputs = c->n_in,
                     .n_anchor_inputs = c->n_in,
                     .input = c->in,
                     .n_outputs = c->n_out,
                     .output = c->out,
                     .program = &c->program};
}

static void check(const program_case *c, const struct hone_tactic_desc *t, uint32_t isa) {
  const hone_step step = step_of(c);
  const hone_machine m = {
      .device = "cpu", .isa = isa, .threads = THREADS, .peak_flops = 1e11, .cache_bytes = 1e11};
  hone_reason why = {""};
  hone_error error = {0};
  hone_tactic_need need = {0};
  char text[600];
  describe(c, text, sizeof text);
  if (!t->accepts(&step, &m, &why) || t->need(&step, &m, &need, &error)) {
    printf("FAIL %s: %s%s\n", text, why.text, error.what);
    failures++;
    return;
  }
  void *blob = hn_aligned(64, need.blob_bytes + 64), *workspace = hn_aligned(64, need.workspace_bytes + 64),
       *out[MAX_OUT], *copy = NULL;
  const void *in[MAX_IN];
  for (uint32_t i = 0; i < c->n_in; i++) in[i] = c->data[i];
  for (uint32_t i = 0; i < c->n_out; i++) {
    memset(c->result[i], 0xc5, (size_t)hone_desc_bytes(&c->out[i].desc) + 2 * CANARY);
    out[i] = c->result[i] + CANARY;
  }
  if (c->in_place) {
    copy = hn_aligned(64, (size_t)hone_desc_bytes(&c->in[0].desc) + 1);
    memcpy(copy, c->data[0], (size_t)hone_desc_bytes(&c->in[0].desc));
    in[0] = copy, out[0] = copy;
  }
  if (t->prepack(&step, &m, blob, &error)) printf("FAIL %s: %s\n", text, error.what), failures++;
  const hone_step_run run = {.step = &step,
                             .in = in,
                             .out = out,
                             .blob = blob,
                             .workspace = workspace,
                             .threads = THREADS,
                             .parallel = hn_pool_parallel,
                             .pool = pool};
  t->run(&run, &error);
  const int64_t count = hone_desc_count(&c->out[0].desc);
  bool wrong = false;
  for (int64_t i = 0; i < count && !wrong; i++) {
    float want[MAX_OUT];
    interpret(c, i, want);
    for (uint32_t k = 0; k < c->n_out && !wrong; k++) {
      const hone_tensor_desc *d = &c->out[k].desc;
      if (!is_stored(d, out[k], place(d, d, i), want[k]))
        printf("FAIL %s (isa %x): output %u, element %lld\n", text, isa, k, (long long)i), wrong = true;
    }
  }
  for (uint32_t k = 0; k < c->n_out; k++) {
    const size_t bytes = (size_t)hone_desc_bytes(&c->out[k].desc);
    for (size_t b = 0; b < CANARY; b++)
      if (c->result[k][b] != 0xc5 || c->result[k][CANARY + bytes + b] != 0xc5) {
        printf("FAIL %s: wrote outside output %u\n", text, k), wrong = true;
        break;
      }
  }
  failures += wrong;
  hn_free(blob), hn_free(workspace), hn_free(copy);
}

static int64_t compared, all;

/* Outputs of two types have two pitches there, which the tactic refuses: make_case makes none. */
static void check_on_gpu(const program_case *c) {
  const hone_step step = step_of(c);
  const hone_machine *m = gpu.backend->machine(gpu.device);
  hone_reason why = {""};
  hone_error error = {0};
  char text[600];
  void *out[MAX_OUT];
  const void *in[MAX_IN];
  describe(c, text, sizeof text);
  for (uint32_t i = 0; i < c->n_in; i++) in[i] = c->data[i];
  for (uint32_t i = 0; i < c->n_out; i++) out[i] = c->result[i] + CANARY;
  if (!on_gpu->accepts(&step, m, &why) ||
      device_run_step(&gpu, on_gpu, &step, in, out, c->in_place, &error)) {
    printf("FAIL %s: %s%s\n", text, why.text, error.what);
    failures++;
    return;
  }
  const int64_t count = hone_desc_count(&c->out[0].desc);
  for (int64_t i = 0; i < count; i++) {
    float want[MAX_OUT];
    all++;
    if (!interpret(c, i, want)) continue;
    compared++;
    for (uint32_t k = 0; k < c->n_out; k++) {
      const hone_tensor_desc *d = &c->out[k].desc;
      if (is_stored(d, out[k], place(d, d, i), want[k])) continue;
      printf("FAIL %s: output %u, element %lld\n", text, k, (long long)i);
      failures++;
      return;
    }
  }
}

static void make_case(program_case *c, int round) {
  static const int64_t sizes[] = {1, 2, 3, 7, 16, 24, 33, 64, 100};
  int64_t dim[HONE_MAX_RANK];
  memset(c, 0, sizeof *c);
  const int32_t rank = (int32_t)below(6);
  for (int32_t i = 0; i < rank; i++) dim[i] = sizes[below(rank > 3 ? 6 : 9)];
  if (round % 17 == 0 && rank > 0) dim[below((uint64_t)rank)] = 0;
  if (round % 11 == 0 && rank > 0) dim[rank - 1] = 1500 + (int64_t)below(4000);
  int64_t count = 1;
  for (int32_t i = 0; i < rank; i++) count *= dim[i];
  for (int32_t i = 0; i < rank && count > 40000; i++) /* the interpreter is slow */
    if (dim[i] < 1000) count /= dim[i], dim[i] = 2, count *= 2;
  const int layout = (int)below(3);
  const bool codes = !on_gpu && round % 3 == 0;
  c->n_in = 1 + (uint32_t)below(MAX_IN), c->n_out = 1 + (uint32_t)(below(4) == 0);
  const hone_tensor_desc y = hone_desc(HONE_DTYPE_F32, rank, dim);
  for (uint32_t i = 0; i < c->n_out; i++) {
    c->out[i].desc = hone_desc(
        i == 0 && below(6) == 0 && !(on_gpu && c->n_out > 1) ? HONE_DTYPE_BOOL : HONE_DTYPE_F32, rank, dim);
    if (codes && i == 0 && below(2)) c->out[i].desc.dtype = random_codes();
    set_layout(&c->out[i].desc, layout);
    c->result[i] = hn_aligned(64, (size_t)hone_desc_bytes(&c->out[i].desc) + 2 * CANARY);
  }
  for (uint32_t i = 0; i < c->n_in; i++)
    random_tensor(&c->in[i], &c->data[i], &y, below(4) ? layout : (int)below(3), i == 0 && below(2), codes);
  random_program(c);
  c->in_place = c->n_out == 1 && c->out[0].desc.dtype == HONE_DTYPE_F32 &&
                c->in[0].desc.dtype == HONE_DTYPE_F32 && hone_desc_same_dims(&c->in[0].desc, &y) &&
                c->in[0].desc.layout == c->out[0].desc.layout &&
                c->in[0].desc.channel_pitch == c->out[0].desc.channel_pitch;
}

/* Another program of the same shapes, on bool alone: bytes that are not 0 are true. */
static void make_truths(program_case *c) {
  static const uint8_t ops[] = {HONE_PW_AND, HONE_PW_OR, HONE_PW_XOR, HONE_PW_EQ, HONE_PW_NOT, HONE_PW_WHERE};
  uint32_t n = 0;
  uint8_t live = 0;
  for (uint32_t i = 0; i < c->n_out; i++) {
    c->out[i].desc.dtype = HONE_DTYPE_BOOL;
    set_layout(&c->out[i].desc, (int)below(3));
    hn_free(c->result[i]);
    c->result[i] = hn_aligned(64, (size_t)hone_desc_bytes(&c->out[i].desc) + 2 * CANARY);
  }
  for (uint8_t i = 0; i < c->n_in; i++) {
    c->in[i].desc.dtype = HONE_DTYPE_BOOL;
    if (c->in[i].desc.layout == HONE_LAYOUT_ROW_MAJOR) set_layout(&c->in[i].desc, 0);
    const size_t bytes = (size_t)hone_desc_bytes(&c->in[i].desc);
    hn_free(c->data[i]);
    c->data[i] = hn_aligned(64, bytes + 1);
    for (size_t b = 0; b < bytes; b++) ((uint8_t *)c->data[i])[b] = (uint8_t)(below(2) << below(8));
    c->instr[n++] = (hone_pw_instr){.op = HONE_PW_LOAD, .dst = live++, .a = i};
  }
  if (below(3) == 0)
    c->instr[n++] = (hone_pw_instr){.op = HONE_PW_CONST, .dst = live++, .alpha = (float)below(2)};
  for (uint64_t k = below(6); k > 0; k--) {
    const uint8_t dst = live < HONE_PW_REGISTERS - 1 && below(3) ? live : (uint8_t)below(live);
    c->instr[n++] = (hone_pw_instr){.op = ops[below(sizeof ops)],
                                    .dst = dst,
                                    .a = (uint8_t)below(live),
                                    .b = (uint8_t)below(live),
                                    .c = (uint8_t)below(live)};
    if (dst == live) live++;
  }
  for (uint8_t i = 0; i < c->n_out; i++)
    c->instr[n++] = (hone_pw_instr){.op = HONE_PW_STORE, .dst = i, .a = (uint8_t)below(live)};
  if (c->n_out == 1) c->instr[n - 1].a = c->instr[n - 2].dst;
  c->program.n_instr = n;
  c->in_place = c->n_out == 1 && hone_desc_same_dims(&c->in[0].desc, &c->out[0].desc) &&
                c->in[0].desc.layout == c->out[0].desc.layout &&
                c->in[0].desc.channel_pitch == c->out[0].desc.channel_pitch;
}

static void check_all(program_case *c, const struct hone_tactic_desc *t, int *places) {
  static const uint32_t tiers[] = {0, HONE_ISA_AVX2, HONE_ISA_AVX2 | HONE_ISA_AVX512};
  const bool in_place = c->in_place;
  for (size_t k = 0; k < sizeof tiers / sizeof *tiers; k++)
    for (int p = 0; p <= in_place; p++) {
      c->in_place = p;
      *places += p;
      if (hn_isa_of(tiers[k]) <= hn_cpu()->isa) check(c, t, tiers[k]);
    }
  c->in_place = in_place;
}

static int check_device(const char *name, int programs) {
  static program_case c;
  hone_error error = {0};
  const hone_status s = device_open(&gpu, name, &error);
  if (s)
    return printf("%s: %s\n", s == HONE_ERROR_MISSING ? "SKIP" : "FAIL", error.what),
           s == HONE_ERROR_MISSING ? SKIPPED : 1;
  const hn_listing *tactics = hn_registry_take(gpu.backend->tactics);
  for (uint32_t i = hn_listing_first(tactics, "Pointwise"); i != HN_NO_UNIT; i = tactics->next[i])
    on_gpu = tactics->unit[i];
  if (!on_gpu) return printf("FAIL %s has no pointwise tactic\n", name), 1;
  rng.state = 11;
  for (int round = 0; round < programs; round++) { /* each is a text to compile */
    make_case(&c, round);
    check_on_gpu(&c);
    for (uint32_t i = 0; i < c.n_in; i++) hn_free(c.data[i]);
    for (uint32_t i = 0; i < c.n_out; i++) hn_free(c.result[i]);
  }
  hn_listing_drop(tactics);
  device_close(&gpu);
  printf("%d programs, %lld of %lld elements exact and compared, %d failures\n", programs,
         (long long)compared, (long long)all, failures);
  return failures > 0 || !compared || compared < all / 2;
}

int main(int argc, char **argv) {
  const bool expect_failure = argc > 1 && !strcmp(argv[1], "--expect-failure");
  if (argc > 2 && !strcmp(argv[1], "--device"))
    return check_device(argv[2], argc > 4 && !strcmp(argv[3], "--programs") ? atoi(argv[4]) : 150);
  static program_case c;
  int places = 0;
  rng.state = 11;
  if (hn_pool_create(THREADS, &pool, NULL)) return 6;
  for (int round = 0; round < 600 && !(expect_failure && failures); round++) {
    make_case(&c, round);
    check_all(&c, &hn_cpu_tactic_pointwise, &places);
    if (round % 3 == 0) {
      make_truths(&c);
      check_all(&c, &hn_cpu_tactic_pointwise, &places);
      check_all(&c, &hn_cpu_tactic_truths, &places);
    }
    for (uint32_t i = 0; i < c.n_in; i++) hn_free(c.data[i]);
    for (uint32_t i = 0; i < c.n_out; i++) hn_free(c.result[i]);
  }
  hn_pool_destroy(pool);
  printf("600 programs, and 200 of bool, %d runs in place, %d failures\n", places, failures);
  return expect_failure ? expected_failure(failures) : failures > 0;
}
