/* Made from yolo_nms.json by `hone op build`: what is changed here is lost. */
#include "yolo_nms_op.h"
#include <hone/cuda.h>

static const hone_attr_desc attrs[] = {
    {"most", HONE_ATTR_INT, false, 0, 0},
    {"iou", HONE_ATTR_FLOAT, false, 0, 0},
    {"score", HONE_ATTR_FLOAT, false, 0, 0},
    {NULL, HONE_ATTR_NONE, false, 0, 0}};

yolo_nms_attrs yolo_nms_attrs_of(const hone_node *node) {
  yolo_nms_attrs a;
  memset(&a, 0, sizeof a);
  (void)node;
  a.most = hone_node_int(node, "most", 100);
  a.iou = hone_node_float(node, "iou", 0.45f);
  a.score = hone_node_float(node, "score", 0.25f);
  return a;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  if (io->n_outputs > 0 && io->output[0] && io->n_inputs > 0 && io->input[0]) *io->output[0] = *io->input[0];
  if (io->n_outputs > 0 && io->output[0]) io->output[0]->dtype = (hone_dtype)7; /* i64 */
  if (io->n_outputs > 1 && io->output[1] && io->n_inputs > 0 && io->input[0]) *io->output[1] = *io->input[0];
  if (io->n_outputs > 1 && io->output[1]) io->output[1]->dtype = (hone_dtype)7; /* i64 */
  const yolo_nms_attrs a = yolo_nms_attrs_of(io->node);
  return yolo_nms_shape(&a, io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_array in[1], result[2];
  const yolo_nms_attrs a = yolo_nms_attrs_of(call->node);
  hone_status status = hone_widen(call, in, 1, error);
  if (status == HONE_OK) status = hone_room(call, result, 2, error);
  if (status != HONE_OK) return status;
  yolo_nms_ref(&a, in, result);
  hone_narrow(call, result, 2);
  return HONE_OK;
}

bool yolo_nms_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double yolo_nms_cost(const hone_step *s, const hone_machine *m);
static double cost(const hone_step *s, const hone_machine *m) { return yolo_nms_cost(s, m); }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *need, hone_error *error) {
  const yolo_nms_attrs a = yolo_nms_attrs_of(s->node);
  return yolo_nms_need(&a, s, m, need, error);
}

hone_status yolo_nms_avx512(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error);

static bool accepts_avx512(const hone_step *s, const hone_machine *m, hone_reason *why) {
  if ((m->isa & HONE_ISA_AVX512) != HONE_ISA_AVX512) return hone_refuse(why, "the processor has no avx512");
  return yolo_nms_accepts(s, m, why);
}

static hone_status run_avx512(const hone_step_run *r, hone_error *error) {
  const yolo_nms_attrs a = yolo_nms_attrs_of(r->step->node);
  return yolo_nms_avx512(&a, r, error);
}

static const hone_tactic_desc tactic_avx512 = {HONE_DESC_HEAD(hone_tactic_desc), .name = "yolo_nms_avx512", .device = "cpu", .anchor = "custom.YoloNms", .version = 1, .accepts = accepts_avx512, .cost = cost, .run = run_avx512, .need = need};

hone_status yolo_nms_avx2(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error);

static bool accepts_avx2(const hone_step *s, const hone_machine *m, hone_reason *why) {
  if ((m->isa & HONE_ISA_AVX2) != HONE_ISA_AVX2) return hone_refuse(why, "the processor has no avx2");
  return yolo_nms_accepts(s, m, why);
}

static hone_status run_avx2(const hone_step_run *r, hone_error *error) {
  const yolo_nms_attrs a = yolo_nms_attrs_of(r->step->node);
  return yolo_nms_avx2(&a, r, error);
}

static const hone_tactic_desc tactic_avx2 = {HONE_DESC_HEAD(hone_tactic_desc), .name = "yolo_nms_avx2", .device = "cpu", .anchor = "custom.YoloNms", .version = 1, .accepts = accepts_avx2, .cost = cost, .run = run_avx2, .need = need};

hone_status yolo_nms_scalar(const yolo_nms_attrs *attrs, const hone_step_run *run, hone_error *error);

static bool accepts_scalar(const hone_step *s, const hone_machine *m, hone_reason *why) {
  if ((m->isa & 0) != 0) return hone_refuse(why, "the processor has no scalar");
  return yolo_nms_accepts(s, m, why);
}

static hone_status run_scalar(const hone_step_run *r, hone_error *error) {
  const yolo_nms_attrs a = yolo_nms_attrs_of(r->step->node);
  return yolo_nms_scalar(&a, r, error);
}

static const hone_tactic_desc tactic_scalar = {HONE_DESC_HEAD(hone_tactic_desc), .name = "yolo_nms_scalar", .device = "cpu", .anchor = "custom.YoloNms", .version = 1, .accepts = accepts_scalar, .cost = cost, .run = run_scalar, .need = need};

/* The text of the kernels, and what stands before it. */
static const char text_cuda[] =
    "#include \"hone.cuh\"\n"
    "#line 1 \"yolo_nms_cuda.cu\"\n"
    "/* YoloNms on a GPU: yolo_clear, yolo_sweep (a warp a box), yolo_suppress and yolo_write (a block a class of an image).\n"
    " * LOAD says the type of the head; everything is f32 and rounded after every operation, as on the processor. */\n"
    "#include \"hone.cuh\"\n"
    "\n"
    "typedef unsigned long long yolo_key; /* the better the score the smaller, then by the box; ~0: taken */\n"
    "\n"
    "typedef struct yolo_args { /* the same as in yolo_nms_cuda.c */\n"
    "  const void *head;\n"
    "  i64 *rows, *count;\n"
    "  u32 *found, *chosen, *kept; /* [lines] candidates, [lines] kept ones, [lines][most] the kept ones */\n"
    "  yolo_key *list;             /* [lines][boxes] */\n"
    "  i64 images, boxes, wide, classes, most, filled;\n"
    "  float least, iou;\n"
    "} yolo_args;\n"
    "\n"
    "enum { THREADS = 256, WARPS = THREADS / 32, NEAR = 1024 };\n"
    "\n"
    "typedef struct yolo_box {\n"
    "  float y0, x0, y1, x1;\n"
    "} yolo_box;\n"
    "\n"
    "HN_FN yolo_box box_of(const yolo_args *a, i64 at) {\n"
    "  const float x = LOAD(a->head, at), y = LOAD(a->head, at + 1), w = __fmul_rn(LOAD(a->head, at + 2), 0.5f),\n"
    "              h = __fmul_rn(LOAD(a->head, at + 3), 0.5f);\n"
    "  const float y0 = __fadd_rn(y, -h), y1 = __fadd_rn(y, h), x0 = __fadd_rn(x, -w), x1 = __fadd_rn(x, w);\n"
    "  yolo_box b;\n"
    "  b.y0 = fminf(y0, y1), b.x0 = fminf(x0, x1), b.y1 = fmaxf(y0, y1), b.x1 = fmaxf(x0, x1);\n"
    "  return b;\n"
    "}\n"
    "\n"
    "HN_FN float area_of(yolo_box b) { return __fmul_rn(b.y1 - b.y0, b.x1 - b.x0); }\n"
    "\n"
    "HN_FN int overlap(yolo_box a, yolo_box b, float iou) {\n"
    "  const float high = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0), wide = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0);\n"
    "  if (!(high > 0 && wide > 0)) return 0;\n"
    "  const float one = area_of(a), other = area_of(b), both = __fmul_rn(high, wide),\n"
    "              either = __fadd_rn(__fadd_rn(one, other), -both);\n"
    "  return one > 0 && other > 0 && either > 0 && both / either > iou;\n"
    "}\n"
    "\n"
    "HN_KERNEL(yolo_clear, yolo_args, a) {\n"
    "  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;\n"
    "  if (i < a.images * a.classes) a.found[i] = 0;\n"
    "  if (i < a.filled) a.rows[i] = -1;\n"
    "}\n"
    "\n"
    "HN_KERNEL(yolo_sweep, yolo_args, a) {\n"
    "  const i64 box = (i64)blockIdx.x * WARPS + threadIdx.x / 32, image = box / a.boxes, at = box * a.wide;\n"
    "  if (image >= a.images) return;\n"
    "  const float object = LOAD(a.head, at + 4);\n"
    "  for (i64 k = threadIdx.x % 32; k < a.classes; k += 32) {\n"
    "    const float score = __fmul_rn(LOAD(a.head, at + 5 + k), object);\n"
    "    if (!(score > a.least)) continue;\n"
    "    const i64 line = image * a.classes + k;\n"
    "    const u32 bits = hn_bits(__fadd_rn(score, 0.0f)), rising = bits >> 31 \? ~bits : bits | 0x80000000u;\n"
    "    a.list[line * a.boxes + hn_atomic_add_u32(a.found + line, 1)] =\n"
    "        (yolo_key)~rising << 32 | (u32)(box - image * a.boxes);\n"
    "  }\n"
    "}\n"
    "\n"
    "/* The least key of all threads. */\n"
    "HN_FN yolo_key least_of(yolo_key key, yolo_key *shared) {\n"
    "  HN_SYNC();\n"
    "  shared[threadIdx.x] = key;\n"
    "  for (u32 half = THREADS / 2; half; half /= 2) {\n"
    "    HN_SYNC();\n"
    "    if (threadIdx.x < half && shared[threadIdx.x + half] < shared[threadIdx.x])\n"
    "      shared[threadIdx.x] = shared[threadIdx.x + half];\n"
    "  }\n"
    "  HN_SYNC();\n"
    "  return shared[0];\n"
    "}\n"
    "\n"
    "/* More candidates than a block can hold: the best one that is left, again and again. */\n"
    "HN_FN u32 suppress_many(const yolo_args *a, i64 line, u32 n, i64 image, yolo_key *shared) {\n"
    "  yolo_key *list = a->list + line * a->boxes;\n"
    "  u32 chosen = 0;\n"
    "  yolo_box last;\n"
    "  last.y0 = last.x0 = last.y1 = last.x1 = 0;\n"
    "  while (chosen < a->most) {\n"
    "    yolo_key least = ~0ull;\n"
    "    for (u32 e = threadIdx.x; e < n; e += THREADS) {\n"
    "      const yolo_key key = list[e];\n"
    "      if (key == ~0ull) continue;\n"
    "      if (chosen && (overlap(box_of(a, (image * a->boxes + (u32)key) * a->wide), last, a->iou) ||\n"
    "                     (u32)key == a->kept[line * a->most + chosen - 1]))\n"
    "        list[e] = ~0ull;\n"
    "      else if (key < least)\n"
    "        least = key;\n"
    "    }\n"
    "    least = least_of(least, shared);\n"
    "    if (least == ~0ull) break;\n"
    "    last = box_of(a, (image * a->boxes + (u32)least) * a->wide);\n"
    "    if (threadIdx.x == 0) a->kept[line * a->most + chosen] = (u32)least;\n"
    "    chosen++;\n"
    "    HN_SYNC();\n"
    "  }\n"
    "  return chosen;\n"
    "}\n"
    "\n"
    "HN_KERNEL(yolo_suppress, yolo_args, a) {\n"
    "  HN_SHARED yolo_key key[NEAR];\n"
    "  HN_SHARED yolo_box box[NEAR];\n"
    "  HN_SHARED u32 index[NEAR], is_taken[NEAR];\n"
    "  const i64 line = blockIdx.x, image = line / a.classes;\n"
    "  const u32 n = a.found[line], t = threadIdx.x;\n"
    "  u32 chosen = 0;\n"
    "  if (n > NEAR) {\n"
    "    chosen = suppress_many(&a, line, n, image, key);\n"
    "    if (t == 0) a.chosen[line] = chosen;\n"
    "    return;\n"
    "  }\n"
    "  for (u32 e = t; e < n; e += THREADS) key[e] = a.list[line * a.boxes + e];\n"
    "  HN_SYNC();\n"
    "  for (u32 e = t; e < n; e += THREADS) {\n"
    "    const yolo_key mine = key[e];\n"
    "    u32 rank = 0;\n"
    "    for (u32 i = 0; i < n; i++) rank += key[i] < mine;\n"
    "    index[rank] = (u32)mine;\n"
    "    box[rank] = box_of(&a, (image * a.boxes + (u32)mine) * a.wide);\n"
    "    is_taken[rank] = 0;\n"
    "  }\n"
    "  HN_SYNC();\n"
    "  for (u32 now = 0; now < n && chosen < a.most; now++) {\n"
    "    if (is_taken[now]) continue;\n"
    "    const yolo_box b = box[now];\n"
    "    if (t == 0) a.kept[line * a.most + chosen] = index[now];\n"
    "    chosen++;\n"
    "    for (u32 e = now + 1 + t; e < n; e += THREADS)\n"
    "      if (overlap(box[e], b, a.iou)) is_taken[e] = 1;\n"
    "    HN_SYNC();\n"
    "  }\n"
    "  if (t == 0) a.chosen[line] = chosen;\n"
    "}\n"
    "\n"
    "HN_KERNEL(yolo_write, yolo_args, a) {\n"
    "  HN_SHARED u32 part[THREADS];\n"
    "  const i64 line = blockIdx.x, image = line / a.classes;\n"
    "  const u32 t = threadIdx.x, n = a.chosen[line];\n"
    "  u32 before = 0;\n"
    "  for (i64 i = t; i < line; i += THREADS) before += a.chosen[i];\n"
    "  part[t] = before;\n"
    "  for (u32 half = THREADS / 2; half; half /= 2) {\n"
    "    HN_SYNC();\n"
    "    if (t < half) part[t] += part[t + half];\n"
    "  }\n"
    "  HN_SYNC();\n"
    "  for (u32 e = t; e < n; e += THREADS) {\n"
    "    i64 *to = a.rows + 3 * (i64)(part[0] + e);\n"
    "    to[0] = image, to[1] = line - image * a.classes, to[2] = a.kept[line * a.most + e];\n"
    "  }\n"
    "  if (t == 0 && line == a.images * a.classes - 1) a.count[0] = (i64)part[0] + n;\n"
    "}\n";

static bool accepts_cuda(const hone_step *s, const hone_machine *m, hone_reason *why) {
  return yolo_nms_accepts(s, m, why);
}

static hone_status run_cuda(const hone_step_run *r, hone_error *error) {
  const yolo_nms_attrs a = yolo_nms_attrs_of(r->step->node);
  return yolo_nms_cuda(&a, r, text_cuda, error);
}

static const hone_tactic_desc tactic_cuda = {HONE_DESC_HEAD(hone_tactic_desc), .name = "yolo_nms_cuda", .device = "cuda", .anchor = "custom.YoloNms", .version = 1, .accepts = accepts_cuda, .cost = cost, .run = run_cuda, .need = need};

static const hone_op_desc op = {HONE_DESC_HEAD(hone_op_desc), .domain = "custom", .op_type = "YoloNms", .since = 1,
    .min_inputs = 1, .max_inputs = 1, .min_outputs = 2, .max_outputs = 2, .types = 0x402u, .attrs = attrs,
    .infer = infer, .reference = reference};
static const hone_op_desc *const ops[] = {&op};
static const hone_tactic_desc *const tactics[] = {&tactic_avx512, &tactic_avx2, &tactic_scalar, &tactic_cuda};

static const hone_plugin plugin = {HONE_DESC_HEAD(hone_plugin), .name = "yolo_nms", .version = "1.0.0", .about = "boxes of a YOLO head that NonMaxSuppression keeps",
    .n_ops = 1, .op = ops, .n_tactics = 4, .tactic = tactics};

const hone_plugin *hone_plugin_entry(uint32_t abi) { return abi == HONE_PLUGIN_ABI ? &plugin : NULL; }
