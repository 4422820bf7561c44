/* trtexec (TensorRT): --exportProfile, --exportTimes, --exportLayerInfo, and the side files *.metadata.json
 * of trt-engine-explorer. All of one run are joined: layers by name; the profile gives totals of layers over
 * N runs, the times give when each run copied and computed.
 *
 * - Times: a run becomes its copy to the device, its computation and its copy back, one right after the
 * other, as trtexec defines latency (h2d + compute + d2h); waits between them, which come from queueing
 * several runs ahead, are no part of it. Starts have six digits only, so lengths come from computeMs and the
 * like.
 * - Old versions write the warm-up (200 ms unless the side file says otherwise) with the runs; it is kept
 *   outside of them. */
#include "insight/import/import.h"

#include "base/error.h"
#include "insight/import/common/ops.h"
#include "insight/import/importers/trtexec_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct profile_row {
  const char *name;
  hone_step_stats stats;
} profile_row;

typedef struct time_row {
  int64_t start; /* of the computation */
  int64_t h2d, compute, d2h;
  double enqueue_ms; /* negative: not known */
} time_row;

typedef struct state {
  hn_import *in;
  hn_source *source; /* of the file that is being read */
  uint64_t runs;     /* of the profile */
  bool has_profile, has_times, has_layers, some;
  HN_VEC(profile_row) profile;
  HN_VEC(time_row) times;
  HN_VEC(hn_trt_layer *) layers;
  hn_map by_name; /* name -> first layer that is not taken */
  time_row mean;  /* of all runs, from a side file; compute 0: not known */
  double warmup_ms, batch;
  size_t matched; /* rows of the profile that the layer information tells of */
  bool started;   /* the first element of the file was seen */
} state;

static int sniff(const hn_sniff *s) {
  char first = hn_sniff_first(s);
  if (first == '[') {
    if (hn_sniff_has(s, "\"timeMs\"") || hn_sniff_has(s, "\"averageMs\"")) return 95;
    if (hn_sniff_has(s, "\"computeMs\"") || hn_sniff_has(s, "\"startComputeMs\"")) return 95;
    if (hn_sniff_has(s, "\"count\"") && s->size < 64) return 60;
  }
  if (first != '{') return 0;
  if (hn_sniff_has(s, "\"Layers\"")) return hn_sniff_has(s, "\"LayerType\"") ? 95 : 70;
  if (hn_sniff_has(s, "\"performance_summary\"") || hn_sniff_has(s, "\"build_options\"")) return 90;
  return 0;
}

static hone_status out_of_memory(hone_error *error) {
  return hn_fail_memory(error, 0, "a profile of trtexec");
}

/* Milliseconds as nanoseconds; -1: absent, negative or no number. */
static int64_t ms_of(const hn_jvalue *v, const char *key) {
  int64_t ns;
  return hn_jtime(v, key, 6, &ns) && ns >= 0 ? ns : -1;
}

/* ---- the three arrays ---- */

static hone_status profile_element(state *s, const hn_jvalue *v, hone_error *error) {
  const char *name = hn_jtext(v, "name");
  const hn_jvalue *count = hn_jget(v, "count");
  if (!name && count && count->kind == HN_JNUMBER) {
    if (!(count->number >= 0 && count->number < 1e12))
      return hn_source_fail(s->source, error, v->offset, "a profile of %g runs", count->number);
    s->runs = (uint64_t)count->number;
    return HONE_OK;
  }
  const double total = hn_jnumber(v, "timeMs", NAN), average = hn_jnumber(v, "averageMs", NAN);
  const double median = hn_jnumber(v, "medianMs", 0);
  if (!name || (isnan(total) && isnan(average))) {
    hone_status status = hn_source_fail(s->source, error, v->offset, "an entry of the profile without %s",
                                        name ? "time" : "name");
    hn_error_expected(error, "{\"name\", \"timeMs\", \"averageMs\", ...}");
    return status;
  }
  if (!(total >= 0 || isnan(total)) || !(average >= 0 || isnan(average)) || !(median >= 0) || isinf(total) ||
      isinf(average) || isinf(median))
    return hn_source_fail(s->source, error, v->offset, "a time of '%.60s' is negative or not finite", name);
  if (!s->runs && average > 0 && total > 0) s->runs = (uint64_t)llround(fmin(total / average, 1e12));
  const uint64_t runs = s->runs ? s->runs : 1;
  profile_row row = {hn_trt_name(s->in, name),
                     {.count = runs,
                      .runs = runs,
                      .total_ms = isnan(total) ? average * (double)runs : total,
                      .median_ms = median}};
  return row.name && hn_vec_push(&s->profile, row) ? HONE_OK : out_of_memory(error);
}

static hone_status times_element(state *s, const hn_jvalue *v, hone_error *error) {
  time_row row = {.start = ms_of(v, "startComputeMs"),
                  .h2d = ms_of(v, "h2dMs"),
                  .compute = ms_of(v, "computeMs"),
                  .d2h = ms_of(v, "d2hMs"),
                  .enqueue_ms = -1};
  const int64_t end = ms_of(v, "endComputeMs");
  if (row.compute < 0 && row.start >= 0 && end >= row.start) row.compute = end - row.start;
  if (row.start < 0 || row.compute < 0) {
    hone_status status = hn_source_fail(s->source, error, v->offset, "an entry of the times without %s",
                                        row.start < 0 ? "startComputeMs" : "computeMs");
    hn_error_expected(error, "times of 0 or more in milliseconds");
    return status;
  }
  if (row.h2d < 0) row.h2d = 0;
  if (row.d2h < 0) row.d2h = 0;
  const int64_t enqueue = ms_of(v, "startEnqMs"), enqueued = ms_of(v, "endEnqMs");
  if (enqueue >= 0 && enqueued >= enqueue) row.enqueue_ms = (double)(enqueued - enqueue) / 1e6;
  return hn_vec_push(&s->times, row) ? HONE_OK : out_of_memory(error);
}

static hone_status add_layer(state *s, const hn_jvalue *v, hone_error *error) {
  if (v->kind != HN_JTEXT && !(v->kind == HN_JOBJECT && hn_jtext(v, "Name")))
    return hn_source_fail(s->source, error, v->offset, "a layer without a name");
  hn_trt_layer *l = hn_trt_layer_make(s->in, NULL, v);
  if (!l || !hn_vec_push(&s->layers, l)) return out_of_memory(error);
  /* The network's batch size is the first dimension of what the first layer reads. */
  const hn_jvalue *inputs = hn_jget(v, "Inputs");
  int64_t dims[16];
  if (!s->batch && inputs && inputs->first && hn_trt_dims(inputs->first, dims) > 1 && dims[0] > 0)
    s->batch = (double)dims[0];
  hn_trt_layer *first = hn_map_get(&s->by_name, l->name);
  l->last = l;
  if (!first) return hn_map_set(&s->by_name, l->name, l) ? HONE_OK : out_of_memory(error);
  first->last->next = l;
  first->last = l;
  return HONE_OK;
}

/* ---- the side files ---- */

static const char *kept(state *s, const hn_jvalue *o, const char *key) {
  return hn_import_text(s->in, hn_jtext(o, key));
}

/* min, max, mean, median ... */
static int64_t mean_of(const hn_jvalue *summary, const char *key) {
  const hn_jvalue *list = hn_jget(summary, key);
  const hn_jvalue *at = list && list->kind == HN_JARRAY ? list->first : NULL;
  for (int i = 0; at && i < 2; i++) at = at->next;
  return at && at->kind == HN_JNUMBER && at->number > 0 && at->number < 1e9 ? (int64_t)(at->number * 1e6) : 0;
}

static void metadata(state *s, const char *member, const hn_jvalue *v) {
  hone_facts_meta *m = &s->in->meta;
  if (strcmp(member, "device_information") == 0) {
    m->device = kept(s, v, "Selected Device");
  } else if (strcmp(member, "model_options") == 0) {
    m->model = kept(s, v, "Model");
  } else if (strcmp(member, "build_options") == 0) {
    m->flags = kept(s, v, "Precision");
  } else if (strcmp(member, "inference_options") == 0) {
    double streams = hn_jnumber(v, "Streams", 0), batch = hn_jnumber(v, "Batch", 0);
    if (streams >= 1) m->streams = streams;
    if (batch > 1) s->batch = batch;
    const char *duration = hn_jtext(v, "Duration"), *warm = duration ? strstr(duration, "(+ ") : NULL, *end;
    double ms;
    if (warm && hn_text_number(warm + 3, &ms, &end) && hn_text_starts(end, "ms")) s->warmup_ms = ms;
  } else if (strcmp(member, "performance_summary") == 0) {
    s->mean = (time_row){.h2d = mean_of(v, "H2D Latency"),
                         .compute = mean_of(v, "GPU Compute Time"),
                         .d2h = mean_of(v, "D2H Latency"),
                         .enqueue_ms = (double)mean_of(v, "Enqueue Time") / 1e6};
  }
}

/* ---- reading a file ---- */

static hone_status visit(void *user, const char *member, bool in_array, const hn_jvalue *v,
                         hone_error *error) {
  state *s = user;
  if (member && strcmp(member, "Layers") == 0 && in_array) return add_layer(s, v, error);
  if (member) {
    if (!in_array) metadata(s, member, v);
    s->some = s->some || strcmp(member, "performance_summary") == 0 || strcmp(member, "build_options") == 0 ||
              strcmp(member, "model_options") == 0;
    return HONE_OK;
  }
  if (v->kind != HN_JOBJECT) return hn_source_fail(s->source, error, v->offset, "an entry that is no object");
  const bool times = hn_jget(v, "computeMs") || hn_jget(v, "startComputeMs") || hn_jget(v, "latencyMs");
  bool *seen = times ? &s->has_times : &s->has_profile;
  if (!s->started && *seen) {
    hone_status status =
        hn_source_fail(s->source, error, v->offset, "a second %s", times ? "list of times" : "profile");
    hn_error_hint(error, "give the files of one run: one profile, one list of times, one layer information");
    return status;
  }
  s->started = *seen = s->some = true;
  return times ? times_element(s, v, error) : profile_element(s, v, error);
}

static hone_status begin_array(void *user, const char *member, hone_error *error) {
  state *s = user;
  if (strcmp(member, "Layers") != 0) return HONE_OK;
  if (s->has_layers) {
    hone_status status =
        hn_source_fail(s->source, error, hn_source_offset(s->source), "a second list of layers");
    hn_error_hint(error, "give the files of one run: one profile, one list of times, one layer information");
    return status;
  }
  s->has_layers = s->some = true;
  return HONE_OK;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  s->in = in;
  s->source = source;
  s->started = s->some = false;
  const hn_jreader reader = {visit, s, begin_array};
  hone_status status = hn_jread(source, &reader, error);
  if (!status && !s->some) {
    status = hn_source_fail(source, error, 0, "nothing in this file is trtexec's");
    hn_error_expected(error, "a file of --exportProfile, --exportTimes or --exportLayerInfo");
  }
  return status;
}

/* ---- joining ---- */

static hone_status add_nodes(state *s, const hn_trt_layer *l, int32_t step, int32_t **nodes,
                             hone_error *error) {
  *nodes = HN_NEW_ARRAY(&s->in->arena, int32_t, l->node_count + 1);
  if (!*nodes) return out_of_memory(error);
  for (size_t i = 0; i < l->node_count; i++) {
    hone_node_fact node = {.name = l->nodes[i],
                           .op_type = hn_op_of_name(l->nodes[i], strlen(l->nodes[i])),
                           .fate = i == l->anchor ? HONE_NODE_EXECUTED : HONE_NODE_FUSED,
                           .step = step};
    (*nodes)[i] = hone_facts_add_node(s->in->facts, &node);
    if ((*nodes)[i] < 0) return out_of_memory(error);
  }
  return HONE_OK;
}

/* The layer of a profile's row: the first of that name that no row has found yet. */
static const hn_trt_layer *find_layer(state *s, const char *name) {
  hn_trt_layer *l = hn_map_get(&s->by_name, name);
  if (!l) return hn_trt_layer_make(s->in, name, NULL);
  s->matched++;
  return hn_map_set(&s->by_name, l->name, l->next) ? l : NULL;
}

static hone_status add_row(state *s, const profile_row *row, size_t index, hone_error *error) {
  hone_facts *facts = s->in->facts;
  const hn_trt_layer *l = find_layer(s, row->name);
  int32_t *nodes;
  if (!l) return out_of_memory(error);
  hone_status status = add_nodes(s, l, (int32_t)index, &nodes, error);
  if (status) return status;
  hone_step_fact step = l->step;
  if (!(step.name = hn_import_label(s->in, row->name))) return out_of_memory(error);
  step.nodes = nodes;
  step.node_count = l->node_count;
  step.anchor_node = l->node_count ? nodes[l->anchor] : -1;
  hone_step_stats stats = row->stats;
  stats.step = hn_import_step(s->in, step.name, &step);
  if (stats.step < 0) return out_of_memory(error);
  if (step.shape_in && strchr(step.shape_in, '?')) s->in->meta.dynamic_shapes = 1;
  hone_facts_add_step_stats(facts, &stats);
  return HONE_OK;
}

static void add_span(state *s, hone_span_kind kind, const char *name, int32_t iteration, int64_t start,
                     int64_t length) {
  if (length <= 0 && kind != HONE_SPAN_RUN) return;
  hone_span span = {.kind = kind,
                    .start_ns = start,
                    .end_ns = start + length,
                    .iteration = iteration,
                    .step = -1,
                    .name = name};
  if (kind == HONE_SPAN_KERNEL) span.op_type = "Engine";
  hone_facts_add_span(s->in->facts, &span);
}

static void add_times(state *s) {
  double enqueue = 0;
  size_t warm = 0, enqueued = 0;
  const double warmup = s->warmup_ms > 0 ? s->warmup_ms : 200;
  /* A version that leaves the warm-up out starts behind it. */
  while (warm < s->times.len && (double)s->times.ptr[warm].start < warmup * 1e6) warm++;
  if (warm > s->times.len / 2) warm = 0;
  for (size_t i = 0; i < s->times.len; i++) {
    const time_row *t = &s->times.ptr[i];
    const int32_t iteration = i < warm ? -1 : (int32_t)(i - warm);
    add_span(s, HONE_SPAN_RUN, "run", iteration, t->start - t->h2d, t->h2d + t->compute + t->d2h);
    add_span(s, HONE_SPAN_COPY_H2D, "inputs to the device", iteration, t->start - t->h2d, t->h2d);
    add_span(s, HONE_SPAN_KERNEL, "engine", iteration, t->start, t->compute);
    add_span(s, HONE_SPAN_COPY_D2H, "outputs to the host", iteration, t->start + t->compute, t->d2h);
    if (i < warm || t->enqueue_ms < 0) continue;
    enqueue += t->enqueue_ms;
    enqueued++;
  }
  s->in->meta.warmups = (double)warm;
  s->in->meta.runs = (double)(s->times.len - warm);
  if (enqueued)
    hone_facts_add_counter(s->in->facts, &(hone_counter){"enqueue", "ms", -1, enqueue / (double)enqueued});
}

/* Files of two engines have hardly a layer in common. */
static hone_status check_match(state *s, hone_error *error) {
  const size_t rows = s->profile.len;
  if (!s->matched) {
    hone_status status = hn_fail(error, HONE_ERROR_INPUT,
                                 "none of the profile's %zu layers is in the layer information", rows);
    hn_error_hint(error, "give the files of one engine");
    return status;
  }
  if (s->matched < rows)
    hone_facts_add_unmeasured(
        s->in->facts, "shapes and types of some layers",
        hn_import_say(s->in, "%zu of %zu layers of the profile are not in the layer information",
                      rows - s->matched, rows));
  return HONE_OK;
}

/* The layer information alone: what would be run, not how long it takes. */
static hone_status add_untimed(state *s, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < s->layers.len && !status; i++) {
    const profile_row row = {s->layers.ptr[i]->name, {.count = 1, .runs = 1}};
    status = add_row(s, &row, i, error);
  }
  hone_facts_add_unmeasured(s->in->facts, "all times",
                            "the layer information says what is run, not how long it takes: add the file of "
                            "trtexec --exportProfile");
  return status;
}

/* "int8" when all layers that compute do so; "mixed" otherwise. */
static const char *precision(const state *s) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(s->in->facts, &n);
  const char *one = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!steps[i].dtype || !steps[i].channels_out) continue;
    if (one && strcmp(one, steps[i].dtype) != 0) return "mixed";
    one = steps[i].dtype;
  }
  return one;
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  s->in = in;
  const bool timed = s->profile.len || s->times.len || s->mean.compute > 0;
  if (!timed && !s->layers.len) {
    hone_status status = hn_fail(error, HONE_ERROR_INPUT, "no times: the files hold no layer and no run");
    hn_error_hint(error, "add the file of trtexec --exportProfile");
    return status;
  }
  hone_status status = HONE_OK;
  for (size_t i = 0; i < s->profile.len && !status; i++) status = add_row(s, &s->profile.ptr[i], i, error);
  if (!timed) status = add_untimed(s, error);
  if (!status && s->profile.len && s->layers.len) status = check_match(s, error);
  if (status) return status;
  /* Without the times, the side file's mean run stands for all of them. */
  const bool mean = !s->times.len && s->mean.compute > 0;
  if (mean && !hn_vec_push(&s->times, s->mean)) return out_of_memory(error);
  if (s->times.len) add_times(s);
  if (!s->has_times) in->meta.runs = !timed ? 0 : s->runs ? (double)s->runs : 1;
  in->meta.backend = "cuda";
  in->meta.batch = s->batch;
  in->meta.precision = precision(s);
  in->meta.inner_clock = "CUDA events, by trtexec";
  if (!s->has_profile && timed)
    hone_facts_add_unmeasured(in->facts, "layers", "the profile (trtexec --exportProfile) was not given");
  if (!s->has_layers)
    hone_facts_add_unmeasured(
        in->facts, "shapes and types of the layers",
        "the layer information (trtexec --exportLayerInfo --profilingVerbosity=detailed) was not given");
  if (!s->has_times && timed)
    hone_facts_add_unmeasured(in->facts, mean ? "latency of single runs" : "latency and copies",
                              "the times (trtexec --exportTimes) were not given");
  return HONE_OK;
}

static void destroy(void *user) {
  state *s = user;
  hn_vec_free(&s->profile);
  hn_vec_free(&s->times);
  hn_vec_free(&s->layers);
  hn_map_free(&s->by_name);
}

const struct hn_importer hn_importer_trtexec = {
    .format = {"trtexec", "TensorRT: --exportProfile, --exportTimes, --exportLayerInfo (joined)"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
