/* check_tactics: every case of a folder (cases/) through every CPU tactic of its operator, in several layouts
 * and instruction tiers, against the operator's scalar reference.
 *
 * usage: check_tactics CASES... [--device cuda [--tactic NAME] [--shard I/N] [--once | --thin | --coverage]
 *                      [--unjudged]] [--filter TEXT] [--expect-failure] [-v]
 *        check_tactics CASES --blobs FILE [--update-blobs]   what is packed, against the file's sums
 * (blobs.h) With --device through that device's tactics, in every storage type (on_device.c); convolutions
 * and products with epilogues, too (with_epilogue.c): with --tactic (a name, or a beginning and a star) with
 * all of them.
 * --expect-failure, for faults on purpose, ends at the first failure, with exit code 0.
 * --thin runs a part of the variants (is_new in on_device.c).
 * --coverage runs nothing and names the tactics that no case reaches. --unjudged runs and compares nothing:
 * for devices that only record what they are asked for. CASES are files, or folders of them: a file for each
 * family of operators. A case is one line:
 *   Op[@opset] [attribute=value ...] : input ... [-> outputs] [@ layouts]
 *   attribute   7 int | 0.5f float | 1,2 or 1, ints | 0.5f,2f or 2f, floats | a|b or a| strings |
 *               u8{0,6} a tensor | else a string
 *   input       f32[2,3] random, i64[4]%9 whole and below 9, - left out; = in front: a constant:
 *               =f32[8] random, =p32[8] random positive, =i64{1,-2} these values, =i64[2,2]{1,2,3,4} of
 *               these dimensions, =f32<0.5> a scalar
 *   layouts     that some tactic must accept: r row-major, c channels-last, p channels-last with a wider
 *               pitch, m row-major in, channels-last out, n the reverse
 * or several, for every choice of sizes: for M=1,65 K=64 : Gemm : f32[M,K] =f32[K,8]
 * Values between steps are also stored in bf16 and f16, with inputs that are exact in it: all that is no
 * constant, or the output alone, or all but the output (mixes); products then have epilogues, too. A layout
 * that is accepted without being required is checked all the same. Buffers have canaries on both sides, gaps
 * of wide pitches too. Movement operators must agree bit for bit; others within 3e-5 of the output's range
 * (2e-2 for tactics that round operands to bf16, 4e-3 to f16), which only has to tell wrong elements from
 * right ones: the rounding bounds are proven by check_kernels. */
#include "expect_failure.h"
#include "tactic_case.h"
#include "watches.h"

#include "base/half.h"
#include "base/mem.h"
#include "base/pool.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/tactics.h"
#include "tactics/blobs.h"
#include "tactics/with_epilogue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 64, THREADS = 3, LARGE = 200000 };
static const unsigned char canary = 0xc5;

static int failures;
static bool verbose, expect_failure;
static const char *blobs;
static hn_pool *pool;

/* Memory for a tensor, canaries before and behind, all of it filled with the canary. */
static unsigned char *guarded(size_t bytes) {
  unsigned char *p = hn_aligned(64, bytes + 2 * CANARY);
  memset(p, canary, bytes + 2 * CANARY);
  return p + CANARY;
}

static bool intact(const unsigned char *p, size_t bytes) {
  for (size_t i = 0; i < CANARY; i++)
    if (p[-1 - (ptrdiff_t)i] != canary || p[bytes + i] != canary) return false;
  return true;
}

/* ---------------------------------------------------------------- running */

static void fail(const one_case *c, const struct hone_tactic_desc *t, char layout, uint32_t isa,
                 const char *what) {
  printf("FAIL %s [%s, layout %c, isa %x]: %s\n", c->line, t->name, layout, isa, what);
  failures++;
}

enum { WEIGHTS = 3 };

/* How the case's values lie. */
typedef struct variant {
  hone_dtype storage; /* F32, or what values between steps are stored in */
  int mix; /* which of them: 0 all, 1 the output, 2 all but the output; WEIGHTS: none, but the weights of
            * products
            */
  with_epilogue epilogue;
} variant;

/* Of the output's range: the arithmetic's, and that of rounding the result once. */
static double bound_of(hone_math math, hone_dtype stored) {
  const double bound = math == HONE_MATH_BF16 ? 2e-2 : math == HONE_MATH_TF32 ? 4e-3 : 3e-5;
  return bound + (stored == HONE_DTYPE_BF16 ? 0x1p-8 : stored == HONE_DTYPE_F16 ? 0x1p-11 : 0);
}

static float as_f32(const void *p, hone_dtype type) {
  uint16_t half;
  float f;
  if (type == HONE_DTYPE_F32) {
    memcpy(&f, p, 4);
    return f;
  }
  memcpy(&half, p, 2);
  return type == HONE_DTYPE_F16 ? hn_f16_to_f32(half) : hn_bf16_to_f32(half);
}

static uint16_t narrowed(float x, hone_dtype type) {
  return type == HONE_DTYPE_F16 ? hn_f32_to_f16(x) : hn_f32_to_bf16(x);
}

static bool is_value(const one_case *c, uint32_t i) {
  return c->present[i] && !c->constant[i] && c->in[i].desc.dtype == HONE_DTYPE_F32;
}

static bool is_weight(const one_case *c, uint32_t i) {
  const char *anchor = anchor_of(c);
  return i == 1 && c->present[i] && c->constant[i] && c->in[i].desc.dtype == HONE_DTYPE_F32 &&
         (!strcmp(anchor, "MatMul") || !strcmp(anchor, "Gemm"));
}

/* Inputs that the storage type holds. */
static void round_inputs(one_case *c, hone_dtype storage) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    const int64_t n = is_value(c, i) || is_weight(c, i) ? hone_desc_count(&c->in[i].desc) : 0;
    float *x = c->in[i].data;
    for (int64_t k = 0; k < n; k++) {
      const uint16_t half = narrowed(x[k], storage);
      x[k] = as_f32(&half, storage);
    }
  }
}

/* An f32 tensor into one of the storage type. */
static void copy_narrow(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data) {
  const int64_t n = hone_desc_count(to);
  walk w = {{0}, 0};
  for (int64_t i = 0; i < n; i++) {
    const uint16_t half = narrowed(((const float *)from->data)[i], to->dtype);
    memcpy(data + (size_t)next_offset(&w, to) * sizeof half, &half, sizeof half);
  }
}

static void compare(const one_case *c, const struct hone_tactic_desc *t, char layout, uint32_t isa,
                    uint32_t k, const hone_tensor_desc *d, const unsigned char *data, hone_math math,
                    double range) {
  const hone_tensor *w = &c->want[k];
  const size_t size = hone_dtype_size(d->dtype), wanted = hone_dtype_size(w->desc.dtype);
  const int64_t n = hone_desc_count(d);
  const bool is_float = w->desc.dtype == HONE_DTYPE_F32, is_double = w->desc.dtype == HONE_DTYPE_F64;
  for (int64_t i = 0; is_float && i < n; i++)
    if (isfinite(((float *)w->data)[i])) range = fmax(range, fabs((double)((float *)w->data)[i]));
  for (int64_t i = 0; is_double && i < n; i++)
    if (isfinite(((double *)w->data)[i])) range = fmax(range, fabs(((double *)w->data)[i]));
  walk place = {{0}, 0};
  for (int64_t i = 0; i < n; i++) {
    const unsigned char *g = data + (size_t)next_offset(&place, d) * size,
                        *e = (unsigned char *)w->data + (size_t)i * wanted;
    if (size == wanted && !memcmp(g, e, size)) continue;
    char text[128];
    if (is_float) {
      const float gf = as_f32(g, d->dtype), ef = as_f32(e, HONE_DTYPE_F32);
      if ((isnan(gf) && isnan(ef)) || gf == ef) continue;
      if (d->dtype != HONE_DTYPE_F32 && isinf(gf) && narrowed(ef, d->dtype) == narrowed(gf, d->dtype))
        continue;
      if (!c->moves && fabs((double)gf - (double)ef) <= bound_of(math, d->dtype) * range) continue;
      snprintf(text, sizeof text, "output %u, element %lld: got %.9g, want %.9g", k, (long long)i, (double)gf,
               (double)ef);
    } else if (is_double) {
      double gd, ed;
      memcpy(&gd, g, sizeof gd);
      memcpy(&ed, e, sizeof ed);
      if ((isnan(gd) && isnan(ed)) || gd == ed) continue;
      /* As of f32, with a mantissa of 29 bits more. */
      if (!c->moves && fabs(gd - ed) <= 0x1p-29 * bound_of(HONE_MATH_STRICT, HONE_DTYPE_F32) * range)
        continue;
      snprintf(text, sizeof text, "output %u, element %lld: got %.17g, want %.17g", k, (long long)i, gd, ed);
    } else {
      snprintf(text, sizeof text, "output %u, element %lld differs", k, (long long)i);
    }
    fail(c, t, layout, isa, text);
    return;
  }
}

/* Enough was seen of a fault on purpose. */
static bool noticed(void) { return expect_failure && failures; }

/* Gaps between pixels of a wide pitch must not be written. */
static bool gaps_intact(const hone_tensor_desc *d, const unsigned char *data) {
  const size_t size = hone_dtype_size(d->dtype);
  if (d->layout != HONE_LAYOUT_CHANNELS_LAST || d->channel_pitch <= d->dim[1]) return true;
  const int64_t pixels = d->dim[1] ? hone_desc_count(d) / d->dim[1] : 0;
  for (int64_t p = 0; p + 1 < pixels; p++)
    for (size_t b = (size_t)(p * d->channel_pitch + d->dim[1]) * size;
         b < (size_t)((p + 1) * d->channel_pitch) * size; b++)
      if (data[b] != canary) return false;
  return true;
}

/* Floats that are multiplied as numbers of 8 bits, in blocks with a scale each: as coarse as bf16. */
static bool in_bytes(const struct hone_tactic_desc *t, const hone_step *step, const hone_machine *m) {
  hone_work work = {0};
  if (t->work) t->work(step, m, &work);
  return step->input[0].desc.dtype == HONE_DTYPE_F32 &&
         (work.arithmetic == HONE_ARITHMETIC_INT8 || work.arithmetic == HONE_ARITHMETIC_INT8_VECTORS);
}

static void run_tactic(const one_case *c, const struct hone_tactic_desc *t, const hone_step *step,
                       const hone_machine *m, char layout, double range) {
  hone_error error = {0};
  hone_tactic_need need = {0};
  const void *in[MAX_TENSORS] = {NULL};
  void *out[MAX_TENSORS];
  unsigned char *buffer[2 * MAX_TENSORS] = {NULL}, *blob, *workspace;
  if (blobs) {
    blobs_note(t, step, m, (int)hn_isa_of(m->isa));
    return;
  }
  const double seconds = t->cost(step, m);
  if (!(seconds > 0 && seconds < 10))
    fail(c, t, layout, m->isa, "the predicted time is not between 0 and 10 s");
  if (t->need && t->need(step, m, &need, &error)) die(error.what, c->line);
  blob = guarded(hn_round_up(need.blob_bytes, 64)),
  workspace = guarded(hn_round_up(need.workspace_bytes, 64));
  if (t->prepack && t->prepack(step, m, blob, &error)) die(error.what, c->line);
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i]) continue;
    in[i] = step->input[i].constant;
    if (in[i]) continue;
    buffer[i] = guarded((size_t)hone_desc_bytes(&step->input[i].desc));
    if (step->input[i].desc.dtype == c->in[i].desc.dtype)
      copy_in(&c->in[i], &step->input[i].desc, buffer[i]);
    else
      copy_narrow(&c->in[i], &step->input[i].desc, buffer[i]);
    in[i] = buffer[i];
  }
  for (uint32_t i = 0; i < c->n_out; i++)
    out[i] = buffer[MAX_TENSORS + i] = guarded((size_t)hone_desc_bytes(&step->output[i].desc));
  const hone_step_run run = {.step = step,
                             .in = in,
                             .out = out,
                             .blob = blob,
                             .workspace = workspace,
                             .threads = THREADS,
                             .parallel = hn_pool_parallel,
                             .pool = pool};
  if (t->run(&run, &error)) fail(c, t, layout, m->isa, error.what);
  for (uint32_t i = 0; i < c->n_out; i++) {
    const hone_tensor_desc *d = &step->output[i].desc;
    compare(c, t, layout, m->isa, i, d, out[i], in_bytes(t, step, m) ? HONE_MATH_BF16 : step->math, range);
    if (!intact(out[i], (size_t)hone_desc_bytes(d)) || !gaps_intact(d, out[i]))
      fail(c, t, layout, m->isa, "wrote outside its output");
  }
  for (uint32_t i = 0; i < c->n_in; i++)
    if (buffer[i] && !intact(buffer[i], (size_t)hone_desc_bytes(&step->input[i].desc)))
      fail(c, t, layout, m->isa, "wrote around an input");
  if (!intact(blob, hn_round_up(need.blob_bytes, 64))) fail(c, t, layout, m->isa, "wrote around its blob");
  if (!intact(workspace, hn_round_up(need.workspace_bytes, 64)))
    fail(c, t, layout, m->isa, "wrote around its workspace");
  for (uint32_t i = 0; i < 2 * MAX_TENSORS; i++)
    if (buffer[i]) hn_free(buffer[i] - CANARY);
  hn_free(blob - CANARY), hn_free(workspace - CANARY);
}

/* The weights as a file may have them, at any alignment. */
static void *narrow_weights(const hone_tensor *from, hone_dtype storage) {
  const int64_t n = hone_desc_count(&from->desc);
  unsigned char *data = hn_malloc((size_t)n * sizeof(uint16_t) + 1);
  for (int64_t i = 0; data && i < n; i++) {
    const uint16_t half = narrowed(((const float *)from->data)[i], storage);
    memcpy(data + n % 2 + i * (int64_t)sizeof half, &half, sizeof half);
  }
  return data;
}

static bool has_codes(const one_case *c) {
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->present[i] && (c->in[i].desc.dtype == HONE_DTYPE_U8 || c->in[i].desc.dtype == HONE_DTYPE_I8))
      return true;
  return false;
}

static int check_case(one_case *c, const variant *v) {
  static const char layouts[] = "rcpmn";
  enum { BF16 = HONE_ISA_AVX2 | HONE_ISA_AVX512 | HONE_ISA_AVX512VNNI | HONE_ISA_AVX512BF16 };
  static const uint32_t tiers[] = {
      0,    HONE_ISA_AVX2,      HONE_ISA_AVX2 | HONE_ISA_AVXVNNI, HONE_ISA_AVX2 | HONE_ISA_AVX512,
      BF16, BF16 | HONE_ISA_AMX};
  const char *anchor = anchor_of(c);
  int runs = 0;
  static unsigned cases;
  const size_t other = 1 + cases++ % (sizeof layouts - 2);
  for (const char *l = layouts; *l && !noticed(); l++) {
    if (!EVERY_LAYOUT && l > layouts && l != layouts + other) continue;
    hone_step_tensor in[MAX_TENSORS] = {0}, out[MAX_TENSORS] = {0};
    hone_reason why = {"no tactic has this operator"};
    int accepted = 0;
    unsigned char *weights = v->mix == WEIGHTS ? narrow_weights(&c->in[1], v->storage) : NULL;
    const hone_dtype stored = weights ? HONE_DTYPE_F32 : v->storage;
    for (uint32_t i = 0; i < c->n_in; i++) {
      if (!c->present[i]) continue;
      in[i] = (hone_step_tensor){c->in[i].desc, c->constant[i] ? c->in[i].data : NULL};
      const bool tensor = i >= v->epilogue.n_anchor_inputs; /* of the epilogue: lies as it would anyhow */
      if (is_value(c, i) && (v->mix != 1 || tensor)) in[i].desc.dtype = stored;
      if (!c->constant[i]) set_layout(&in[i].desc, *l, tensor);
    }
    if (weights) {
      in[1].desc.dtype = v->storage;
      in[1].constant = weights + hone_desc_count(&in[1].desc) % 2;
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
      out[i].desc = c->want[i].desc;
      if (out[i].desc.dtype == HONE_DTYPE_F32 && v->mix != 2) out[i].desc.dtype = stored;
      set_layout(&out[i].desc, *l, true);
    }
    hone_step step = {.struct_size = sizeof step,
                      .abi = HONE_PLUGIN_ABI,
                      .anchor = anchor,
                      .name = "it",
                      .node = c->node,
                      .n_inputs = c->n_in,
                      .n_anchor_inputs = v->epilogue.n_anchor_inputs,
                      .n_epilogue = v->epilogue.n,
                      .math = HONE_MATH_FAST,
                      .input = in,
                      .n_outputs = c->n_out,
                      .output = out};
    memcpy(step.epilogue, v->epilogue.list, sizeof step.epilogue);
    const hn_listing *const all = hn_registry_take(&hn_cpu_tactics);
    for (uint32_t k = hn_listing_first(all, anchor); k != HN_NO_UNIT; k = all->next[k]) {
      const hone_tactic_desc *const tactic = all->unit[k];
      bool taken = false;
      for (size_t tier = sizeof tiers / sizeof *tiers; tier-- > 0 && (EVERY_TIER || !taken);) {
        const hone_machine m = {.device = "cpu",
                                .isa = tiers[tier],
                                .threads = THREADS,
                                .peak_flops = 1e11,
                                .dram_bytes = 1e10,
                                .cache_bytes = 1e11,
                                .l1 = 32768,
                                .l2 = 1 << 20,
                                .l3 = 1 << 24};
        if (!hn_cpu_runs(hn_isa_of(tiers[tier]))) continue;
        if (tiers[tier] & HONE_ISA_AVXVNNI && !has_codes(c)) continue; /* else it is AVX2's */
        /* f32 with every formula it may use; operands of 16 bits where a tactic needs that. */
        step.math = HONE_MATH_FAST;
        if (!tactic->accepts(&step, &m, &why)) {
          step.math = HONE_MATH_TF32;
          if (!tactic->accepts(&step, &m, &why)) step.math = HONE_MATH_BF16;
          if (!tactic->accepts(&step, &m, &why)) continue;
        }
        accepted++, taken = true;
        run_tactic(c, tactic, &step, &m, *l, v->epilogue.range);
      }
    }
    hn_listing_drop(all);
    hn_free(weights);
    runs += accepted;
    if (verbose)
      printf("%s  %c: %d runs%s%s\n", c->line, *l, accepted, accepted ? "" : ", ", accepted ? "" : why.text);
    if (!accepted && v->storage == HONE_DTYPE_F32 && strchr(c->required, *l)) {
      printf("FAIL %s: layout %c is refused: %s\n", c->line, *l, why.text);
      failures++;
    }
  }
  return runs;
}

/* With values in one type; how many epilogues there are to try is known when the case is. */
static int check_stored(const char *line, hone_dtype storage) {
  static one_case c;
  int runs = 0;
  for (int e = 0; e < (storage == HONE_DTYPE_F32 ? 1 : EPILOGUES) && !noticed(); e++) {
    hn_arena keep = {0};
    hn_rng rng = {.state = 7};
    variant v = {.storage = storage};
    read_case(&c, line, &rng);
    const bool large = hone_desc_count(&c.in[0].desc) > LARGE;
    if (storage != HONE_DTYPE_F32 && large) { /* smaller ones say as much */
      free_case(&c);
      break;
    }
    if (storage != HONE_DTYPE_F32) round_inputs(&c, storage);
    compute_reference(&c, storage, &keep);
    const bool has = append_epilogue(&c, e, &v.epilogue);
    if (has) {
      apply_epilogue(&c, &v.epilogue);
      const int first = e % 3,
                n = storage == HONE_DTYPE_F32 || e ? 1 : 3; /* with an epilogue: one mix each */
      for (v.mix = first; v.mix < first + n; v.mix++) runs += check_case(&c, &v);
      v.mix = WEIGHTS;
      if (storage != HONE_DTYPE_F32 && is_weight(&c, 1)) runs += check_case(&c, &v);
    }
    free_case(&c);
    hn_arena_free(&keep);
    if (!has) break; /* no operator with epilogues, or too large a case for them */
  }
  return runs;
}

static int check_line(const char *line) {
  if (blobs) return check_stored(line, HONE_DTYPE_F32);
  return check_stored(line, HONE_DTYPE_F32) + check_stored(line, HONE_DTYPE_BF16) +
         check_stored(line, HONE_DTYPE_F16);
}

int main(int argc, char **argv) {
  device_check o = {.filter = "", .shards = 1};
  case_file files[MOST_CASE_FILES] = {{0}};
  size_t n_files = 0;
  bool usage = false, update = false;
  for (int i = 1; i < argc && !usage; i++) {
    const int words = read_device_option(&o, argv + i, argc - i);
    if (words)
      usage = words < 0, i += words - 1;
    else if (!strcmp(argv[i], "--expect-failure"))
      expect_failure = true;
    else if (!strcmp(argv[i], "--blobs") && i + 1 < argc)
      blobs = argv[++i];
    else if (!strcmp(argv[i], "--update-blobs"))
      update = true;
    else
      usage = !open_cases(argv[i], files, &n_files);
  }
  if (usage || !n_files) {
    fprintf(stderr,
            "usage: check_tactics CASES... [" DEVICE_USAGE "] [--filter TEXT] [--expect-failure] [-v]\n");
    return 2;
  }
  if (o.device) {
    const int status = check_on_device(&o, files, n_files);
    return status == SKIPPED ? status : (status != 0) != expect_failure;
  }
  verbose = o.verbose;
  if (hn_pool_create(THREADS, &pool, NULL)) return 6;
  if (blobs) { /* which the tiers do not tell: as on Intel's */
    hn_cpu_info *cpu = (hn_cpu_info *)hn_cpu();
    cpu->bf16_rate = 0.5, cpu->dram_bytes_per_cycle = 3.6;
  }
  char line[1024];
  int cases = 0, runs = 0;
  for (size_t i = 0; i < n_files; fclose(files[i++].file))
    while (!noticed() && next_case(&files[i], o.filter, line)) {
      runs += check_line(line);
      cases++;
    }
  hn_pool_destroy(pool);
  if (blobs) return (failures += blobs_judge(blobs, update)) > 0;
  printf("%d cases, %d runs of tactics, %d failures\n", cases, runs, failures);
  return expect_failure ? expected_failure(failures) : failures > 0;
}
