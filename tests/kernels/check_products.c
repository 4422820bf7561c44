/* check_products: random Conv, ConvTranspose, Gemm and MatMul steps through every CPU tactic that accepts
 * them, for every instruction tier of this machine and several thread counts, against the operators' scalar
 * references.
 *
 * usage: check_products [CASES]      exit 0: all agree; 1: a tactic is wrong, or never accepted anything */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/tactics.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "model/ir/eval.h"
#include "model/ir/graph.h"
#include "model/operators.h"

enum { MAX_IN = 5 };
static const double eps = 0x1p-24;

static hn_rng rng = {7};
static int64_t upto(int64_t n) { return (int64_t)hn_rng_below(&rng, (uint64_t)n + 1); } /* 0..n */
static int64_t between(int64_t a, int64_t b) { return a + upto(b - a); }

typedef struct test {
  hn_model *model;
  hone_node *node;
  hone_step step;
  hone_step_tensor in[MAX_IN], out;
  hone_tensor row_major[MAX_IN]; /* the operands as the reference wants them; dtype NONE: left out */
  hone_tensor want;
  bool channels_last;
  double k; /* products in one sum */
  char label[200];
} test;

static const hn_listing *tactics;
static uint64_t *accepted, wrong; /* accepted: of each tactic */

static void die(const char *what, const hone_error *e) {
  printf("FAIL %s: %s\n", what, e ? e->what : "");
  exit(1);
}

static float *random_floats(int64_t n) {
  float *x = hn_malloc((size_t)n * sizeof *x);
  if (!x) die("memory", NULL);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(hn_rng_unit(&rng) * 2 - 1);
  return x;
}

static void operand(test *t, int i, int32_t rank, const int64_t *dims) {
  hone_tensor *x = &t->row_major[i];
  x->desc = hone_desc(HONE_DTYPE_F32, rank, dims);
  x->data = random_floats(hone_desc_count(&x->desc));
}

/* Copies between row-major and channels-last with a channel pitch. */
static void to_channels_last(const hone_tensor *x, const hone_tensor_desc *d, float *y, bool back) {
  int64_t inner = 1, c = x->desc.dim[1], pitch = d->channel_pitch;
  for (int32_t i = 2; i < x->desc.rank; i++) inner *= x->desc.dim[i];
  for (int64_t n = 0; n < x->desc.dim[0]; n++)
    for (int64_t q = 0; q < c; q++)
      for (int64_t p = 0; p < inner; p++) {
        float *a = (float *)x->data + (n * c + q) * inner + p, *b = y + (n * inner + p) * pitch + q;
        if (back)
          *a = *b;
        else
          *b = *a;
      }
}

/* Asks the reference, applies the step's epilogue to its answer, and describes the step to the tactics. */
static void prepare(test *t, const char *op, int32_t n_in, int64_t pitch_extra) {
  hone_error e = {0};
  const hone_tensor *in[MAX_IN];
  hone_tensor *out[1] = {&t->want};
  for (int i = 0; i < n_in; i++) in[i] = t->row_major[i].desc.dtype ? &t->row_major[i] : NULL;
  hn_arena keep = {0};
  if (hn_eval_node(t->node, in, out, &keep, NULL, &e)) die(op, &e);
  t->step = (hone_step){.struct_size = sizeof t->step,
                        .abi = HONE_PLUGIN_ABI,
                        .anchor = op,
                        .name = "t",
                        .node = t->node,
                        .n_inputs = (uint32_t)n_in,
                        .n_anchor_inputs = (uint32_t)n_in,
                        .input = t->in,
                        .n_outputs = 1,
                        .output = &t->out};
  t->out.desc = t->want.desc;
  int64_t channels = t->channels_last    ? t->want.desc.dim[1]
                     : t->want.desc.rank ? t->want.desc.dim[t->want.desc.rank - 1]
                                         : 1;
  if (t->channels_last) hone_desc_set_layout(&t->out.desc, HONE_LAYOUT_CHANNELS_LAST, channels + pitch_extra);
  float *y = t->want.data;
  int64_t count = hone_desc_count(&t->want.desc), inner = 1;
  for (int32_t i = 2; i < t->want.desc.rank; i++) inner *= t->want.desc.dim[i];
  bool vector = !t->channels_last && t->want.desc.rank < 2;
  /* residual, then an activation */
  if (!vector && upto(2) == 0) {
    operand(t, n_in, t->want.desc.rank, t->want.desc.dim);
    t->step.epilogue[t->step.n_epilogue++] = (hone_epilogue){.kind = HONE_EPI_ADD, .input = (uint32_t)n_in};
    for (int64_t i = 0; i < count; i++) y[i] += ((float *)t->row_major[n_in].data)[i];
    n_in++;
  }
  int64_t act = vector ? 0 : upto(3);
  if (act == 1) {
    t->step.epilogue[t->step.n_epilogue++] = (hone_epilogue){.kind = HONE_EPI_ACT, .act = HONE_PW_RELU};
    for (int64_t i = 0; i < count; i++) y[i] = y[i] > 0 ? y[i] : 0;
  } else if (act == 2) {
    t->step.epilogue[t->step.n_epilogue++] =
        (hone_epilogue){.kind = HONE_EPI_ACT, .act = HONE_PW_LEAKYRELU, .alpha = 0.125f};
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0 ? y[i] * 0.125f : y[i];
  } else if (act == 3) {
    t->step.epilogue[t->step.n_epilogue++] =
        (hone_epilogue){.kind = HONE_EPI_ACT, .act = HONE_PW_HARDSWISH, .alpha = 1 / 6.0f, .beta = 0.5f};
    for (int64_t i = 0; i < count; i++) y[i] *= fminf(fmaxf(y[i] / 6 + 0.5f, 0), 1);
  }
  if (!vector && upto(3) == 0) {
    operand(t, n_in, 1, &channels);
    t->step.epilogue[t->step.n_epilogue++] = (hone_epilogue){.kind = HONE_EPI_SCALE, .input = (uint32_t)n_in};
    for (int64_t i = 0; i < count; i++)
      y[i] *= ((float *)t->row_major[n_in].data)[t->channels_last ? i / inner % channels : i % channels];
    n_in++;
  }
  t->step.n_inputs = (uint32_t)n_in;
  for (int i = 0; i < n_in; i++) {
    t->in[i].desc = t->row_major[i].desc;
    bool activation =
        t->channels_last && (i == 0 || t->row_major[i].desc.rank == t->want.desc.rank) && i != 1;
    if (activation)
      hone_desc_set_layout(&t->in[i].desc, HONE_LAYOUT_CHANNELS_LAST,
                           t->in[i].desc.dim[1] + (i == 0 ? pitch_extra : 0));
  }
}

static hone_node *new_node(test *t, const char *op, int32_t n_in) {
  t->model = hn_model_create(NULL);
  hn_value *in[MAX_IN] = {0}, *out[1];
  if (!t->model) die("memory", NULL);
  t->model->operators = hn_registry_take(&hn_operators);
  for (int i = 0; i < n_in; i++)
    in[i] = t->row_major[i].desc.dtype ? hn_value_create(t->model->graph, NULL) : NULL;
  out[0] = hn_value_create(t->model->graph, NULL);
  t->node = hn_node_create(t->model->graph, NULL, op, "", "t", in, (uint32_t)n_in, out, 1);
  hone_reason why = {""};
  if (!t->node || !(t->node->op = hn_op_find(t->model->operators, "", op, 17, &why))) {
    printf("SKIP %s: %s\n", op, why.text);
    return NULL;
  }
  t->node->opset = 17;
  return t->node;
}

static void drop(test *t) {
  for (int i = 0; i < MAX_IN; i++)
    if (t->row_major[i].desc.dtype) hn_free(t->row_major[i].data);
  hn_free(t->want.data);
  if (t->model) hn_model_destroy(t->model);
}

static void run_one(test *t, const struct hone_tactic_desc *d, size_t which, const hone_machine *m,
                    hn_pool *pool) {
  hone_error e = {0};
  hone_reason why = {""};
  if (strcmp(d->anchor, t->step.anchor) || !d->accepts(&t->step, m, &why)) return;
  accepted[which]++;
  hone_tactic_need need = {0};
  if (d->need(&t->step, m, &need, &e)) die(d->name, &e);
  void *blob = hn_aligned(4096, need.blob_bytes + 64), *ws = hn_aligned(64, need.workspace_bytes + 64);
  const void *in[MAX_IN] = {0};
  int64_t bytes = hone_desc_bytes(&t->out.desc);
  float *out = hn_aligned(64, (size_t)bytes + 64), *got = hn_malloc((size_t)bytes + 64);
  if (!blob || !ws || !out || !got) die("memory", NULL);
  memset(out, 0xff, (size_t)bytes);
  memset(ws, 0xff, need.workspace_bytes);
  if (d->prepack && d->prepack(&t->step, m, blob, &e)) die(d->name, &e);
  void *own[MAX_IN] = {0};
  for (uint32_t i = 0; i < t->step.n_inputs; i++) {
    in[i] = t->row_major[i].data;
    if (t->in[i].desc.layout != HONE_LAYOUT_CHANNELS_LAST) continue;
    in[i] = own[i] = hn_malloc((size_t)hone_desc_bytes(&t->in[i].desc) + 64);
    if (!own[i]) die("memory", NULL);
    to_channels_last(&t->row_major[i], &t->in[i].desc, own[i], false);
  }
  void *outs[1] = {out};
  hone_step_run r = {.step = &t->step,
                     .in = in,
                     .out = outs,
                     .blob = blob,
                     .workspace = ws,
                     .threads = m->threads,
                     .parallel = hn_pool_parallel,
                     .pool = pool};
  if (d->run(&r, &e)) die(d->name, &e);
  hone_tensor result = {t->want.desc, got};
  if (t->channels_last)
    to_channels_last(&result, &t->out.desc, out, true);
  else
    memcpy(got, out, (size_t)bytes);
  /* Every operand is in [-1, 1]: a sum of k products errs by (k + 2) eps k at most on either side; the
   * epilogue's few operations keep magnitudes below k + 3 and their derivative below 2. */
  double bound = 4 * (t->k + 8) * eps * (t->k + 4);
  int64_t count = hone_desc_count(&t->want.desc);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs((double)got[i] - ((float *)t->want.data)[i]) <= bound)) {
      if (wrong++ < 10)
        printf("FAIL %s (isa %x, %u threads) %s epilogue of %u: element %lld is %g, want %g\n", d->name,
               m->isa, m->threads, t->label, t->step.n_epilogue, (long long)i, (double)got[i],
               (double)((float *)t->want.data)[i]);
      break;
    }
  for (int i = 0; i < MAX_IN; i++) hn_free(own[i]);
  hn_free(blob);
  hn_free(ws);
  hn_free(out);
  hn_free(got);
}

static hn_pool *pools[4];

static void run_all(test *t) {
  static const uint32_t bits[] = {0, HONE_ISA_AVX2, HONE_ISA_AVX2 | HONE_ISA_AVX512};
  const hn_cpu_info *cpu = hn_cpu();
  for (int tier = 0; tier <= 2; tier++) {
    if (hn_isa_of(bits[tier]) > cpu->isa) continue;
    for (uint32_t threads = 1; threads <= 3; threads++) {
      hone_machine m = {.device = "cpu",
                        .isa = bits[tier],
                        .threads = threads,
                        .peak_flops = 1e11,
                        .dram_bytes = 1e10,
                        .cache_bytes = 1e11,
                        .l1 = threads == 3 ? 4096 : cpu->l1d,
                        .l2 = threads == 3 ? 32768 : cpu->l2,
                        .l3 = cpu->l3};
      for (uint32_t i = 0; i < tactics->n; i++) run_one(t, tactics->unit[i], i, &m, pools[threads]);
    }
  }
}

static void conv_case(bool transpose) {
  test t = {.channels_last = true};
  int32_t spatial = (int32_t)between(1, 3);
  int64_t groups = upto(2) ? 1 : between(1, 4), cin = between(1, upto(3) ? 6 : 40),
          cout = between(1, upto(3) ? 9 : 70);
  if (upto(3) == 0) groups = between(2, 40), cin = cout = 1;
  int64_t x[5] = {between(1, 2), groups * cin},
          w[5] = {transpose ? groups * cin : groups * cout, transpose ? cout : cin};
  int64_t stride[3], dilation[3], pads[6], k = cin;
  for (int i = 0; i < spatial; i++) {
    w[2 + i] = between(1, 4), stride[i] = between(1, 3), dilation[i] = upto(2) ? 1 : 2;
    int64_t reach = (w[2 + i] - 1) * dilation[i];
    pads[i] = upto(reach < 3 ? reach : 3), pads[spatial + i] = upto(reach < 3 ? reach : 3);
    x[2 + i] = between(transpose ? 1 : reach + 1, reach + (spatial == 1 ? 40 : 9));
    if (transpose && (x[2 + i] - 1) * stride[i] + reach + 1 <= pads[i] + pads[spatial + i])
      pads[i] = pads[spatial + i] = 0;
    k *= w[2 + i];
  }
  operand(&t, 0, spatial + 2, x);
  operand(&t, 1, spatial + 2, w);
  int64_t channels = groups * cout;
  if (upto(1)) operand(&t, 2, 1, &channels);
  if (new_node(&t, transpose ? "ConvTranspose" : "Conv", 3)) {
    hn_node_set_int(t.node, "group", groups);
    hn_node_set_ints(t.node, "kernel_shape", w + 2, (size_t)spatial);
    hn_node_set_ints(t.node, "strides", stride, (size_t)spatial);
    hn_node_set_ints(t.node, "dilations", dilation, (size_t)spatial);
    int64_t pad_mode = upto(5);
    if (pad_mode == 0 && !transpose)
      hn_node_set_string(t.node, "auto_pad", "SAME_UPPER", 10);
    else if (pad_mode == 1 && !transpose)
      hn_node_set_string(t.node, "auto_pad", "SAME_LOWER", 10);
    else
      hn_node_set_ints(t.node, "pads", pads, (size_t)spatial * 2);
    t.k = (double)k + 1;
    snprintf(t.label, sizeof t.label,
             "%s g%lld %lld->%lld rank %d kernel %lldx%lldx%lld stride %lld x %lldx%lld pads %lld,%lld "
             "dilation %lld",
             t.node->op_type, (long long)groups, (long long)cin, (long long)cout, spatial, (long long)w[2],
             (long long)(spatial > 1 ? w[3] : 1), (long long)(spatial > 2 ? w[4] : 1), (long long)stride[0],
             (long long)x[2], (long long)(spatial > 1 ? x[3] : 1), (long long)pads[0],
             (long long)pads[spatial], (long long)dilation[0]);
    prepare(&t, transpose ? "ConvTranspose" : "Conv", 3, upto(2) ? 0 : between(1, 5));
    if (transpose || upto(3)) t.in[1].constant = t.row_major[1].data;
    run_all(&t);
  }
  drop(&t);
}

static void gemm_case(void) {
  test t = {0};
  int64_t m = between(1, 50), n = between(1, 90), k = between(1, 120), ta = upto(1), tb = upto(1);
  operand(&t, 0, 2, ta ? (int64_t[]){k, m} : (int64_t[]){m, k});
  operand(&t, 1, 2, tb ? (int64_t[]){n, k} : (int64_t[]){k, n});
  int64_t c = upto(4);
  if (c == 1) operand(&t, 2, 1, &n);
  if (c == 2) operand(&t, 2, 2, (int64_t[]){m, n});
  if (c == 3) operand(&t, 2, 2, (int64_t[]){1, 1});
  if (c == 4) operand(&t, 2, 2, (int64_t[]){m, 1});
  if (new_node(&t, "Gemm", 3)) {
    hn_node_set_int(t.node, "transA", ta);
    hn_node_set_int(t.node, "transB", tb);
    if (upto(1)) hn_node_set_float(t.node, "alpha", 0.5f);
    if (upto(1)) hn_node_set_float(t.node, "beta", 0.75f);
    t.k = (double)k + 1;
    snprintf(t.label, sizeof t.label, "Gemm %lldx%lldx%lld trans %lld%lld C %lld", (long long)m, (long long)n,
             (long long)k, (long long)ta, (long long)tb, (long long)c);
    prepare(&t, "Gemm", 3, 0);
    if (upto(1)) t.in[1].constant = t.row_major[1].data;
    if (upto(1) && t.row_major[2].desc.dtype) t.in[2].constant = t.row_major[2].data;
    run_all(&t);
  }
  drop(&t);
}

static void matmul_case(void) {
  test t = {0};
  int64_t m = between(1, 40), n = between(1, 90), k = between(1, 120), b0 = between(1, 3), b1 = between(1, 4);
  int32_t ra = (int32_t)between(1, 4), rb = (int32_t)between(1, 4);
  int64_t a[4] = {upto(2) ? b0 : 1, upto(2) ? b1 : 1, m, k},
          b[4] = {upto(2) ? b0 : 1, upto(2) ? b1 : 1, k, n};
  operand(&t, 0, ra, a + 4 - ra);
  if (rb == 1)
    operand(&t, 1, 1, &k);
  else
    operand(&t, 1, rb, b + 4 - rb);
  if (new_node(&t, "MatMul", 2)) {
    t.k = (double)k;
    snprintf(t.label, sizeof t.label, "MatMul %lldx%lldx%lld ranks %d %d", (long long)m, (long long)n,
             (long long)k, ra, rb);
    prepare(&t, "MatMul", 2, 0);
    if (upto(1)) t.in[1].constant = t.row_major[1].data;
    run_all(&t);
  }
  drop(&t);
}

int main(int argc, char **argv) {
  int cases = argc > 1 ? atoi(argv[1]) : 150;
  hone_error e = {0};
  tactics = hn_registry_take(&hn_cpu_tactics);
  accepted = hn_calloc(tactics->n, sizeof *accepted);
  if (!accepted) die("memory", NULL);
  for (uint32_t i = 1; i <= 3; i++)
    if (hn_pool_create(i, &pools[i], &e)) die("pool", &e);
  for (int i = 0; i < cases; i++) {
    conv_case(false);
    conv_case(true);
    gemm_case();
    matmul_case();
  }
  static const char *const mine[] = {"conv_gemm", "depthwise_rows", "conv_transpose_phases", "gemm_tiles",
                                     "matmul_tiles"};
  for (uint32_t i = 0; i < tactics->n; i++)
    for (size_t j = 0; j < sizeof mine / sizeof *mine; j++)
      if (!strcmp(((const hone_tactic_desc *)tactics->unit[i])->name, mine[j]))
        printf("%-24s %llu runs\n", mine[j], (unsigned long long)accepted[i]);
  for (uint32_t i = 1; i <= 3; i++) hn_pool_destroy(pools[i]);
  hn_free(accepted);
  printf("%llu wrong\n", (unsigned long long)wrong);
  return wrong ? 1 : 0;
}
