/* Made from yolo_nms.json by `hone op build`: what is changed here is lost. */
#include "yolo_nms_op.h"

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

static const hone_op_desc op = {HONE_DESC_HEAD(hone_op_desc), .domain = "custom", .op_type = "YoloNms", .since = 1,
    .min_inputs = 1, .max_inputs = 1, .min_outputs = 2, .max_outputs = 2, .types = 0x402u, .attrs = attrs,
    .infer = infer, .reference = reference};
static const hone_op_desc *const ops[] = {&op};
static const hone_tactic_desc *const tactics[] = {&tactic_avx512, &tactic_avx2, &tactic_scalar};

static const hone_plugin plugin = {HONE_DESC_HEAD(hone_plugin), .name = "yolo_nms", .version = "1.0.0", .about = "boxes of a YOLO head that NonMaxSuppression keeps",
    .n_ops = 1, .op = ops, .n_tactics = 3, .tactic = tactics};

const hone_plugin *hone_plugin_entry(uint32_t abi) { return abi == HONE_PLUGIN_ABI ? &plugin : NULL; }
