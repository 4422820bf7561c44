/* hone_quantize: from a float model and samples to a model with QuantizeLinear and DequantizeLinear. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "model/bind.h"
#include "model/ir/bytes.h"
#include "model/operators.h"
#include "optimize/passes/optimize.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define PERCENTILE 99.99

hone_status hn_quantize_warn(hn_quantizing *q, hone_error *error, const char *format, ...) {
  char text[400];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  const char *copy = hn_arena_strdup(&q->arena, text);
  return copy && hn_vec_push(&q->warnings, copy) ? HONE_OK : hn_fail_memory(error, sizeof text, "a warning");
}

/* ---- the report */

static const char *copied(hn_quantizing *q, const char *s, bool *whole) {
  const char *c = hn_arena_strdup(&q->arena, s ? s : "");
  *whole &= c != NULL;
  return c;
}

static hone_status fill_report(hn_quantizing *q, hone_quantize_report *out, hone_error *error) {
  bool whole = true;
  out->layer = HN_NEW_ARRAY(&q->arena, hone_quantize_layer, q->layers.len + 1);
  out->output = HN_NEW_ARRAY(&q->arena, hone_quantize_output, q->outputs.len + 1);
  out->warning = HN_NEW_ARRAY(&q->arena, const char *, q->warnings.len + 1);
  if (!out->layer || !out->output || !out->warning) return hn_fail_memory(error, q->layers.len, "a report");
  for (size_t i = 0; i < q->layers.len; i++) {
    const hn_quantize_layer *l = &q->layers.ptr[i];
    const hn_quantize_range *r = l->chosen && l->input ? q->of[l->input->id] : NULL;
    hone_quantize_layer *to = &out->layer[out->n_layers++];
    *to = (hone_quantize_layer){.name = copied(q, l->node->name, &whole),
                                .op_type = copied(q, l->node->op_type, &whole),
                                .quantized = l->chosen,
                                .reason = copied(q, l->reason, &whole),
                                .input = copied(q, r ? r->name : "", &whole),
                                .nodes = q->layers.ptr[i].node->origin,
                                .n_nodes = q->layers.ptr[i].node->n_origin,
                                .channels = l->channels,
                                .scale_low = l->scale_low,
                                .scale_high = l->scale_high};
    out->quantized += l->chosen;
    if (!r) continue;
    to->least = r->seen->least, to->most = r->seen->most;
    to->low = r->low, to->high = r->high;
    to->scale = (double)r->scale;
    to->zero_point = r->zero_point;
    to->clipped = hn_quantize_outside(r->seen, r->low - to->scale / 2, r->high + to->scale / 2);
  }
  for (size_t i = 0; i < q->outputs.len; i++) out->output[out->n_outputs++] = q->outputs.ptr[i];
  out->coverage = q->cover.told;
  if (q->o->to != HONE_QUANTIZE_INT8) /* nothing was calibrated */
    out->coverage.most_grown = out->coverage.rarest = out->coverage.commonest = out->coverage.absent = "";
  for (size_t i = 0; i < q->warnings.len; i++) out->warning[out->n_warnings++] = q->warnings.ptr[i];
  out->to = q->o->to;
  out->method = q->o->method;
  out->target = q->o->target;
  out->samples = q->samples;
  out->samples_wanted = q->samples_wanted;
  out->checks = q->checks;
  out->equalized = q->equalised;
  out->ranges_read = q->ranges_read;
  out->stopped = q->stopped;
  return whole ? HONE_OK : hn_fail_memory(error, 0, "a report");
}

/* ---- the way through */

static hone_status nothing_chosen(const hn_quantizing *q, hone_error *error) {
  for (size_t i = 0; i < q->layers.len; i++)
    if (q->layers.ptr[i].chosen) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "no operator of the model can be quantised");
  if (q->layers.len)
    hn_error_got(error, "'%.60s' (%s): %s", q->layers.ptr[0].node->name, q->layers.ptr[0].node->op_type,
                 q->layers.ptr[0].reason);
  hn_error_expected(error, "Conv, Gemm or MatMul with constant f32 weights");
  return HONE_ERROR_INPUT;
}

hone_status hn_quantize_refuse_quantised(const hn_model *model, hone_error *error) {
  for (const hone_node *n = model->graph->first; n; n = n->next) {
    if (!n->op || !(n->op->flags & HONE_OP_CODES)) continue;
    hn_fail(error, HONE_ERROR_INPUT, "the model is already quantised");
    hn_error_where(error, "%s", model->path);
    hn_error_got(error, "'%.60s' (%s)", n->name, n->op_type);
    hn_error_hint(error, "give the float model that it was made from");
    return HONE_ERROR_INPUT;
  }
  return HONE_OK;
}

static hone_status prepare(hn_quantizing *q, hone_model *model, hone_error *error) {
  hone_status status = hn_model_clone(model, &q->model, error);
  /* What folds into weights goes; operators stay those of the file's opset. */
  if (status == HONE_OK)
    status =
        hn_optimize(q->model, &(hn_optimize_options){.level = 2, .passes = "-use_operators"}, NULL, error);
  if (status == HONE_OK) hn_model_drop_all_pages(q->model); /* what was folded is not read again */
  if (status == HONE_OK) status = hn_quantize_raise_opset(q->model, error);
  if (status == HONE_OK) status = hn_model_ready(q->model, error);
  if (status == HONE_OK && q->o->equalize) status = hn_quantize_equalise(q, &q->equalised, error);
  if (status == HONE_OK) status = hn_quantize_select(q, error);
  return status == HONE_OK ? nothing_chosen(q, error) : status;
}

static void choose_ranges(hn_quantizing *q) {
  const double percentile = q->o->percentile > 0 ? q->o->percentile : PERCENTILE;
  for (size_t i = 0; i < q->ranges.len; i++)
    hn_quantize_choose(q->ranges.ptr[i], q->o->method, percentile, q->symmetric);
}

/* From the file, or by running the model. A run that was stopped is not kept. */
static hone_status find_ranges(hn_quantizing *q, hn_side *exact, hn_quantize_samples *samples,
                               hone_error *error) {
  const char *path = q->o->ranges;
  const uint64_t model = path ? hn_quantize_model_mark(q->model) : 0,
                 set = samples ? hn_quantize_samples_mark(samples) : 0;
  hn_model_drop_all_pages(q->model);
  hone_status status = HONE_OK;
  if (path && !(q->o->again && samples))
    status = hn_quantize_ranges_read(q, path, model, set, &q->ranges_read, error);
  if (status != HONE_OK) return status;
  if (q->ranges_read) return status;
  if (!samples) {
    hn_fail(error, HONE_ERROR_USAGE,
            "there are no samples, and the file of ranges is of another model or lacks some");
    hn_error_where(error, "%s", path);
    return HONE_ERROR_USAGE;
  }
  status = hn_quantize_calibrate(q, exact, samples, error);
  if (status == HONE_OK && path && !q->stopped) status = hn_quantize_ranges_write(q, path, model, set, error);
  return status;
}

/* The float model, without fusions: every value is a step's output. */
static hone_status open_exact(const hn_quantizing *q, hn_side *exact, hn_model **bound,
                              hn_quantize_samples **samples, hone_error *error) {
  const hone_quantize_options *o = q->o;
  const hn_side_options side = {.level = 0,
                                .threads = o->threads,
                                .bindings = o->bindings,
                                .n_bindings = o->n_bindings,
                                .batch = o->batch};
  hone_status status = hn_side_open(q->model, &side, exact, error);
  if (status == HONE_OK)
    status = hn_model_bind(q->model, o->bindings, o->n_bindings, o->batch, bound, NULL, error);
  /* Weights are folded and packed: the file's are wanted again to be rounded. */
  hn_model_drop_all_pages(q->model);
  return status == HONE_OK && (o->calib || o->set)
             ? hn_quantize_samples_open(o, *bound, exact->plan, samples, error)
             : status;
}

static hone_status quantise(hn_quantizing *q, hone_model *model, hone_error *error) {
  hn_side exact = {0};
  hn_quantize_samples *samples = NULL;
  hn_model *bound = NULL;
  hone_status status = prepare(q, model, error);
  if (status == HONE_OK) status = open_exact(q, &exact, &bound, &samples, error);
  if (status == HONE_OK) status = find_ranges(q, &exact, samples, error);
  if (status == HONE_OK) status = hn_quantize_cover_judge(q, error);
  if (status == HONE_OK) {
    choose_ranges(q);
    status = hn_quantize_rewrite(q, error);
    hn_model_drop_all_pages(q->model);
  }
  if (status == HONE_OK) status = hn_model_ready(q->model, error);
  if (status == HONE_OK && !q->stopped && samples) status = hn_quantize_check(q, &exact, samples, error);
  hn_quantize_samples_close(samples);
  hn_model_destroy(bound);
  hn_side_close(&exact);
  return status;
}

/* Without calibration: the samples only say what the result is worth. */
static hone_status halve(hn_quantizing *q, hone_model *model, hone_error *error) {
  hn_side exact = {0};
  hn_quantize_samples *samples = NULL;
  hn_model *bound = NULL;
  hone_status status = hn_model_clone(model, &q->model, error);
  if (status == HONE_OK)
    status =
        hn_optimize(q->model, &(hn_optimize_options){.level = 2, .passes = "-use_operators"}, NULL, error);
  if (status == HONE_OK && q->o->to == HONE_QUANTIZE_BF16) status = hn_quantize_raise_opset(q->model, error);
  if (status == HONE_OK) status = hn_model_ready(q->model, error);
  if (status == HONE_OK) status = open_exact(q, &exact, &bound, &samples, error);
  if (status == HONE_OK) status = hn_quantize_halve(q, error);
  if (status == HONE_OK) status = hn_model_ready(q->model, error);
  if (status == HONE_OK && samples && !q->o->narrow_io) status = hn_quantize_check(q, &exact, samples, error);
  hn_quantize_samples_close(samples);
  hn_model_destroy(bound);
  hn_side_close(&exact);
  return status;
}

const char *hone_quantize_type_name(hone_quantize_type type) {
  static const char *const names[HONE_QUANTIZE_TYPES] = {"int8", "fp16", "bf16"};
  return (unsigned)type < HONE_QUANTIZE_TYPES ? names[type] : "";
}

static hone_status wrong_options(const hone_quantize_options *o, hone_error *error) {
  if ((unsigned)o->method >= HONE_CALIBRATIONS || (unsigned)o->target >= HONE_QUANTIZE_TARGETS ||
      (unsigned)o->zero > HONE_QUANTIZE_ASYMMETRIC || (unsigned)o->to >= HONE_QUANTIZE_TYPES)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_quantize: no such method, target or zero point");
  if (!(o->percentile == 0 || (o->percentile > 50 && o->percentile <= 100)))
    return hn_fail(error, HONE_ERROR_USAGE, "a percentile lies between 50 and 100, %g does not",
                   o->percentile);
  if (o->target == HONE_QUANTIZE_TENSORRT && o->zero == HONE_QUANTIZE_ASYMMETRIC)
    return hn_fail(error, HONE_ERROR_USAGE, "TensorRT takes symmetric activations only");
  if (o->to == HONE_QUANTIZE_INT8 && o->equalize && !o->calib && !o->set)
    return hn_fail(error, HONE_ERROR_USAGE, "equalisation needs samples");
  return HONE_OK;
}

hone_status hone_quantize(hone_model *model, const hone_quantize_options *o, hone_model **out,
                          hone_quantize_report *report, hone_error *error) {
  if (!model || !o || !out || !report || (!o->calib && !o->set && !o->ranges && o->to == HONE_QUANTIZE_INT8))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_quantize needs a model, samples and places for the results");
  const uint64_t lost = hn_mem_lost();
  *out = NULL;
  *report = (hone_quantize_report){0};
  hone_status status = wrong_options(o, error);
  if (status != HONE_OK) return status;
  hn_quantizing *q = hn_calloc(1, sizeof *q);
  if (!q) return hn_fail_memory(error, sizeof *q, "a quantised model");
  report->impl = q;
  q->o = o;
  q->calib = o->calib ? o->calib : o->set ? hone_dataset_kind(o->set) : NULL;
  q->symmetric = o->zero == HONE_QUANTIZE_SYMMETRIC || o->target == HONE_QUANTIZE_TENSORRT;
  if (o->to == HONE_QUANTIZE_INT8) {
    status = hn_quantize_refuse_quantised(model, error);
    if (status == HONE_OK) status = quantise(q, model, error);
  } else {
    status = halve(q, model, error);
  }
  if (status == HONE_OK) status = fill_report(q, report, error);
  if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", model->path);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK) {
    *out = q->model;
    q->model = NULL;
  }
  return status;
}

void hone_quantize_report_free(hone_quantize_report *report) {
  hn_quantizing *q = report ? report->impl : NULL;
  if (!q) return;
  hn_model_destroy(q->model);
  hn_vec_free(&q->layers);
  hn_vec_free(&q->ranges);
  hn_vec_free(&q->warnings);
  hn_vec_free(&q->outputs);
  hn_vec_free(&q->cover.sums);
  hn_map_free(&q->by_name);
  hn_vec_free(&q->means);
  hn_map_free(&q->means_by_name);
  hn_arena_free(&q->arena);
  hn_free(q);
  *report = (hone_quantize_report){0};
}
