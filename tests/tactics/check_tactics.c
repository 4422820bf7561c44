/* check_tactics: every case of cases.txt through every CPU tactic of its operator, in several layouts and
 * instruction tiers, against the operator's scalar reference.
 *
 * usage: check_tactics CASES [--filter TEXT] [--expect-failure] [-v]
 * A case is one line:   Op[@opset] [attribute=value ...] : input ... [-> outputs] [@ layouts]
 *   attribute   7 int | 0.5f float | 1,2 or 1, ints | else a string
 *   input       f32[2,3] random, i64[4]%9 random below 9, - left out; with = in front it is a constant:
 *               =f32[8] random, =p32[8] random positive, =i64{1,-2} these values, =f32<0.5> a scalar
 *   layouts     that some tactic must accept: r row-major, c channels-last, p channels-last with a wider
 * pitch, m row-major in, channels-last out, n the reverse A layout that is accepted without being required is
 * checked all the same. Buffers have canaries on both sides, gaps of wide pitches too. Movement operators
 * must agree bit for bit; others within 3e-5 of the output's range (2e-2 for tactics that round operands to
 * bf16), which only has to tell wrong elements from right ones: the rounding bounds are proven by
 * check_kernels. */
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "backends/cpu/features.h"
#include "model/ir/eval.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TACTIC(name) extern const struct hone_tactic_desc hn_tactic_##name;
#include "backends/cpu/tactics.def"
#undef TACTIC
static const struct hone_tactic_desc *const tactics[] = {
#define TACTIC(name) &hn_tactic_##name,
#include "backends/cpu/tactics.def"
#undef TACTIC
};

enum { MAX_TENSORS = 10, CANARY = 64, THREADS = 3 };
static const unsigned char canary = 0xc5;

typedef struct one_case {
  char line[1024], op[64], required[8];
  hn_model *model;
  hone_node *node;
  uint32_t n_in, n_out;
  bool constant[MAX_TENSORS], present[MAX_TENSORS];
  hone_tensor in[MAX_TENSORS], want[MAX_TENSORS]; /* row-major */
  bool moves;
} one_case;

static int failures;
static bool verbose;
static hn_pool *pool;
static hn_rng rng;

static void die(const char *what, const char *line) {
  printf("FAIL %s: %s\n", line, what);
  exit(1);
}

/* ---------------------------------------------------------------- reading a case */

static void fill_random(hone_tensor *t, int64_t below, bool positive) {
  const int64_t n = hone_desc_count(&t->desc);
  for (int64_t i = 0; i < n; i++) {
    const double u = hn_rng_unit(&rng);
    const int64_t v = (int64_t)hn_rng_below(&rng, (uint64_t)below);
    switch (t->desc.dtype) {
    case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)(positive ? 0.2 + u : 2 * u - 1); break;
    case HONE_DTYPE_F64: ((double *)t->data)[i] = 2 * u - 1; break;
    case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = v; break;
    case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
    case HONE_DTYPE_BOOL: ((uint8_t *)t->data)[i] = v & 1; break;
    default: /* any other element is moved as bits */
      for (size_t b = 0; b < hone_dtype_size(t->desc.dtype); b++)
        ((uint8_t *)t->data)[(size_t)i * hone_dtype_size(t->desc.dtype) + b] = (uint8_t)hn_rng_u64(&rng);
    }
  }
}

static void put_value(hone_tensor *t, int64_t i, double v) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)v; break;
  case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = (int64_t)v; break;
  case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)v; break;
  default: ((uint8_t *)t->data)[i] = (uint8_t)(int64_t)v; break;
  }
}

/* "[2,3]%9", "{1,2}" or "<0.5>" behind the dtype. */
static void read_input(one_case *c, const char *word) {
  const uint32_t k = c->n_in++;
  if (k >= MAX_TENSORS) die("too many inputs", c->line);
  if (!strcmp(word, "-")) return;
  c->present[k] = true;
  if (*word == '=') c->constant[k] = true, word++;
  char name[8] = "";
  size_t n = strcspn(word, "[{<");
  if (n >= sizeof name) die("bad dtype", c->line);
  memcpy(name, word, n);
  const bool positive = !strcmp(name, "p32");
  const hone_dtype dtype = positive ? HONE_DTYPE_F32 : hone_dtype_from_name(name);
  int64_t dim[HONE_MAX_RANK], count = 0;
  double value[64];
  const char kind = word[n];
  const char *p = word + n + 1;
  while (*p && !strchr("]}>", *p)) {
    char *end;
    const double v = strtod(p, &end);
    if (end == p || count >= 64) die("bad input", c->line);
    value[count++] = v;
    p = *end == ',' ? end + 1 : end;
  }
  int32_t rank = kind == '[' ? (int32_t)count : kind == '{' ? 1 : 0;
  for (int32_t i = 0; i < rank; i++) dim[i] = kind == '[' ? (int64_t)value[i] : count;
  hone_tensor *t = &c->in[k];
  t->desc = hone_desc(dtype, rank, dim);
  t->data = hn_aligned(64, (size_t)hone_desc_bytes(&t->desc) + 1);
  if (kind == '[')
    fill_random(t, p[0] && p[1] == '%' ? strtoll(p + 2, NULL, 10) : 100, positive);
  else
    for (int64_t i = 0; i < count; i++) put_value(t, i, value[i]);
}

static void read_attribute(one_case *c, char *word) {
  char *value = strchr(word, '=');
  if (!value) die("bad attribute", c->line);
  *value++ = 0;
  const char *ints = value + strspn(value, "-0123456789,");
  if (*ints == 0 && strchr(value, ',')) {
    int64_t list[32];
    size_t n = 0;
    for (char *p = strtok(value, ","); p && n < 32; p = strtok(NULL, ",")) list[n++] = strtoll(p, NULL, 10);
    hn_node_set_ints(c->node, word, list, n);
  } else if (*ints == 0) {
    hn_node_set_int(c->node, word, strtoll(value, NULL, 10));
  } else if (value[strlen(value) - 1] == 'f' && (isdigit((unsigned char)*value) || *value == '-')) {
    hn_node_set_float(c->node, word, strtof(value, NULL));
  } else {
    hn_node_set_string(c->node, word, value, strlen(value));
  }
}

static bool is_skip(const one_case *c) { return !strcmp(c->op, "SkipLayerNormalization"); }

static void read_case(one_case *c, const char *line) {
  char text[1024], *words[64] = {""}, *attributes[32], *save = NULL;
  uint32_t n = 0, n_attributes = 0, at = 1;
  memset(c, 0, sizeof *c);
  snprintf(c->line, sizeof c->line, "%s", line);
  snprintf(text, sizeof text, "%s", line);
  for (char *w = strtok_r(text, " \t\n", &save); w && n < 64; w = strtok_r(NULL, " \t\n", &save))
    words[n++] = w;
  long opset = 17;
  char *mark = strchr(words[0], '@');
  if (mark) *mark = 0, opset = strtol(mark + 1, NULL, 10);
  snprintf(c->op, sizeof c->op, "%s", words[0]);
  for (; at < n && strcmp(words[at], ":"); at++) attributes[n_attributes++] = words[at];
  for (at++; at < n && strcmp(words[at], "->") && strcmp(words[at], "@"); at++) read_input(c, words[at]);
  c->n_out = 1;
  if (at + 1 < n && !strcmp(words[at], "->")) c->n_out = (uint32_t)strtoul(words[at + 1], NULL, 10), at += 2;
  if (at + 1 < n && !strcmp(words[at], "@")) snprintf(c->required, sizeof c->required, "%s", words[at + 1]);
  c->model = hn_model_create("case");
  hn_vec_push(&c->model->opsets, (hn_opset){"", opset});
  hn_value *in[MAX_TENSORS] = {NULL}, *out[MAX_TENSORS];
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (!c->present[i]) continue;
    in[i] = c->constant[i] ? hn_value_constant(c->model->graph, NULL, &c->in[i].desc, c->in[i].data, true)
                           : hn_value_create(c->model->graph, NULL);
    if (c->constant[i]) continue;
    in[i]->desc = c->in[i].desc;
    hn_graph_add_input(c->model->graph, in[i]);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    out[i] = hn_value_create(c->model->graph, NULL);
    hn_graph_add_output(c->model->graph, out[i]);
  }
  if (is_skip(
          c)) { /* an anchor of lowering, no ONNX operator: its node is the LayerNormalization it ends in */
    hn_value *norm[3] = {in[0], in[2], in[3]};
    c->node = hn_node_create(c->model->graph, NULL, "LayerNormalization", NULL, "it", norm, 3, out, c->n_out);
  } else {
    c->node = hn_node_create(c->model->graph, NULL, c->op, NULL, "it", in, c->n_in, out, c->n_out);
  }
  for (uint32_t i = 0; i < n_attributes; i++) read_attribute(c, attributes[i]);
}

static void compute_reference(one_case *c, hn_arena *keep) {
  hone_error error = {0};
  const hone_tensor *in[MAX_TENSORS] = {NULL};
  hone_tensor *out[MAX_TENSORS];
  hn_budget budget = {0};
  hone_status s = hn_model_resolve(c->model, &error);
  if (!s) s = hn_model_infer(c->model, &error);
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->present[i]) in[i] = &c->in[i];
  hone_tensor sum = c->in[0];
  if (is_skip(c)) {
    const int64_t n = hone_desc_count(&sum.desc), row = hone_desc_count(&c->in[2].desc);
    float *h = sum.data = hn_arena_alloc(keep, (size_t)n * sizeof *h);
    for (int64_t i = 0; i < n; i++)
      h[i] = ((float *)c->in[0].data)[i] + ((float *)c->in[1].data)[i] +
             (c->present[4] ? ((float *)c->in[4].data)[i % row] : 0);
    in[0] = &sum, in[1] = &c->in[2], in[2] = &c->in[3];
  }
  for (uint32_t i = 0; i < c->n_out; i++) out[i] = &c->want[i];
  if (!s) s = hn_eval_node(c->node, in, out, keep, &budget, &error);
  if (s) die(error.what, c->line);
  c->moves = c->node->op->flags & HONE_OP_MOVE;
}

/* ---------------------------------------------------------------- layouts */

static void set_layout(hone_tensor_desc *d, char layout, bool output) {
  const bool last = layout == 'c' || layout == 'p' || layout == (output ? 'm' : 'n');
  if (last && d->rank >= 3)
    hone_desc_set_layout(d, HONE_LAYOUT_CHANNELS_LAST, layout == 'p' ? d->dim[1] + 3 : 0);
  else
    hone_desc_set_layout(d, HONE_LAYOUT_ROW_MAJOR, 0);
}

/* Offset of the i-th element in row-major order. */
static int64_t offset_of(const hone_tensor_desc *d, int64_t i) {
  int64_t at = 0;
  for (int32_t k = d->rank - 1; k >= 0; k--) {
    at += i % d->dim[k] * d->stride[k];
    i /= d->dim[k];
  }
  return at;
}

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

static void copy_in(const hone_tensor *from, const hone_tensor_desc *to, unsigned char *data) {
  const size_t size = hone_dtype_size(to->dtype);
  const int64_t n = hone_desc_count(to);
  for (int64_t i = 0; i < n; i++)
    memcpy(data + (size_t)offset_of(to, i) * size, (const char *)from->data + (size_t)i * size, size);
}

/* ---------------------------------------------------------------- running */

static void fail(const one_case *c, const struct hone_tactic_desc *t, char layout, uint32_t isa,
                 const char *what) {
  printf("FAIL %s [%s, layout %c, isa %x]: %s\n", c->line, t->name, layout, isa, what);
  failures++;
}

static void compare(const one_case *c, const struct hone_tactic_desc *t, char layout, uint32_t isa,
                    uint32_t k, const hone_tensor_desc *d, const unsigned char *data, hone_math math) {
  const hone_tensor *w = &c->want[k];
  const size_t size = hone_dtype_size(d->dtype);
  const int64_t n = hone_desc_count(d);
  double range = 0;
  for (int64_t i = 0; d->dtype == HONE_DTYPE_F32 && i < n; i++)
    if (isfinite(((float *)w->data)[i])) range = fmax(range, fabs((double)((float *)w->data)[i]));
  for (int64_t i = 0; i < n; i++) {
    const unsigned char *g = data + (size_t)offset_of(d, i) * size,
                        *e = (unsigned char *)w->data + (size_t)i * size;
    if (!memcmp(g, e, size)) continue;
    char text[128];
    if (d->dtype == HONE_DTYPE_F32) {
      float gf, ef;
      memcpy(&gf, g, 4), memcpy(&ef, e, 4);
      if ((isnan(gf) && isnan(ef)) || gf == ef) continue;
      if (!c->moves && fabs((double)gf - (double)ef) <= (math == HONE_MATH_BF16 ? 2e-2 : 3e-5) * range)
        continue;
      snprintf(text, sizeof text, "output %u, element %lld: got %.9g, want %.9g", k, (long long)i, (double)gf,
               (double)ef);
    } else {
      snprintf(text, sizeof text, "output %u, element %lld differs", k, (long long)i);
    }
    fail(c, t, layout, isa, text);
    return;
  }
}

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

static void run_tactic(const one_case *c, const struct hone_tactic_desc *t, const hone_step *step,
                       const hone_machine *m, char layout) {
  hone_error error = {0};
  hone_tactic_need need = {0};
  const void *in[MAX_TENSORS] = {NULL};
  void *out[MAX_TENSORS];
  unsigned char *buffer[2 * MAX_TENSORS] = {NULL}, *blob, *workspace;
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
    copy_in(&c->in[i], &step->input[i].desc, buffer[i]);
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
    compare(c, t, layout, m->isa, i, d, out[i], step->math);
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

static int check_case(one_case *c) {
  static const char layouts[] = "rcpmn";
  enum { BF16 = HONE_ISA_AVX2 | HONE_ISA_AVX512 | HONE_ISA_AVX512VNNI | HONE_ISA_AVX512BF16 };
  static const uint32_t tiers[] = {0, HONE_ISA_AVX2, HONE_ISA_AVX2 | HONE_ISA_AVX512, BF16,
                                   BF16 | HONE_ISA_AMX};
  /* Identity's reference is also that of the step that changes layouts. */
  const char *anchor = strcmp(c->op, "Identity") ? c->op : "Reformat";
  int runs = 0;
  for (const char *l = layouts; *l; l++) {
    hone_step_tensor in[MAX_TENSORS] = {0}, out[MAX_TENSORS] = {0};
    hone_reason why = {"no tactic has this operator"};
    int accepted = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
      if (!c->present[i]) continue;
      in[i] = (hone_step_tensor){c->in[i].desc, c->constant[i] ? c->in[i].data : NULL};
      if (!c->constant[i]) set_layout(&in[i].desc, *l, false);
    }
    for (uint32_t i = 0; i < c->n_out; i++) {
      out[i].desc = c->want[i].desc;
      set_layout(&out[i].desc, *l, true);
    }
    hone_step step = {.struct_size = sizeof step,
                      .abi = HONE_PLUGIN_ABI,
                      .anchor = anchor,
                      .name = "it",
                      .node = c->node,
                      .n_inputs = c->n_in,
                      .n_anchor_inputs = c->n_in,
                      .math = HONE_MATH_FAST,
                      .input = in,
                      .n_outputs = c->n_out,
                      .output = out};
    for (size_t k = 0; k < sizeof tactics / sizeof *tactics; k++) {
      if (strcmp(tactics[k]->anchor, anchor)) continue;
      for (size_t tier = 0; tier < sizeof tiers / sizeof *tiers; tier++) {
        const hone_machine m = {.device = "cpu",
                                .isa = tiers[tier],
                                .threads = THREADS,
                                .peak_flops = 1e11,
                                .dram_bytes = 1e10,
                                .cache_bytes = 1e11,
                                .l1 = 32768,
                                .l2 = 1 << 20,
                                .l3 = 1 << 24};
        if (hn_isa_of(tiers[tier]) > hn_cpu()->isa) continue;
        /* f32 with every formula it may use; operands in bf16 where a tactic needs that. */
        step.math = HONE_MATH_FAST;
        if (!tactics[k]->accepts(&step, &m, &why)) {
          step.math = HONE_MATH_BF16;
          if (!tactics[k]->accepts(&step, &m, &why)) continue;
        }
        accepted++;
        run_tactic(c, tactics[k], &step, &m, *l);
      }
    }
    runs += accepted;
    if (verbose)
      printf("%s  %c: %d runs%s%s\n", c->line, *l, accepted, accepted ? "" : ", ", accepted ? "" : why.text);
    if (!accepted && strchr(c->required, *l)) {
      printf("FAIL %s: layout %c is refused: %s\n", c->line, *l, why.text);
      failures++;
    }
  }
  return runs;
}

int main(int argc, char **argv) {
  const char *path = NULL, *filter = "";
  bool expect_failure = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--filter") && i + 1 < argc)
      filter = argv[++i];
    else if (!strcmp(argv[i], "--expect-failure"))
      expect_failure = true;
    else if (!strcmp(argv[i], "-v"))
      verbose = true;
    else
      path = argv[i];
  }
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) {
    fprintf(stderr, "usage: check_tactics CASES [--filter TEXT] [--expect-failure] [-v]\n");
    return 2;
  }
  if (hn_pool_create(THREADS, &pool, NULL)) return 6;
  char line[1024];
  int cases = 0, runs = 0;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (!*line || *line == '#' || !strstr(line, filter)) continue;
    static one_case c;
    hn_arena keep = {0};
    rng.state = 7;
    read_case(&c, line);
    compute_reference(&c, &keep);
    runs += check_case(&c);
    cases++;
    for (uint32_t i = 0; i < MAX_TENSORS; i++) hn_free(c.in[i].data), hn_free(c.want[i].data);
    hn_model_destroy(c.model);
    hn_arena_free(&keep);
  }
  fclose(file);
  hn_pool_destroy(pool);
  printf("%d cases, %d runs of tactics, %d failures\n", cases, runs, failures);
  return expect_failure ? failures == 0 : failures > 0;
}
