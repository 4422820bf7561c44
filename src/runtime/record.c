#include "runtime/record.h"
#include "runtime/late.h"
#include "runtime/pools.h"
#include "runtime/provenance.h"

#include "base/error.h"
#include "optimize/step/work.h"
#include "optimize/step/anchor.h"

#include <stdio.h>
#include <string.h>

hone_status hn_recorder_init(hn_recorder *r, hone_facts *facts, const hn_plan *p, hn_queue *queue,
                             uint32_t max_runs, hone_error *error) {
  *r = (hn_recorder){.max_runs = max_runs ? max_runs : 1};
  hone_status status = hone_span_buffer_init(
      &r->spans, (size_t)r->max_runs * ((queue ? 2 : 1) * p->steps.len * p->slices + 8), error);
  if (status != HONE_OK) return status;
  r->wall = hn_calloc(r->max_runs, sizeof *r->wall);
  if (!r->wall) {
    hn_recorder_free(r);
    return hn_fail_memory(error, r->max_runs * sizeof *r->wall, "recording");
  }
  if (queue && p->backend->tracing) {
    r->tracing = p->backend->tracing;
    status = r->tracing->open(p->device, queue, &r->trace, error);
    if (status != HONE_OK) {
      hn_recorder_free(r);
      return status;
    }
  }
  r->facts = facts;
  r->started_ns = hn_now_ns();
  r->busy_seconds = hn_cpu_busy_seconds();
  r->own_seconds = hn_cpu_own_seconds();
  r->delay_seconds = hn_run_delay_seconds();
  r->interrupted = hn_involuntary_switches();
  return HONE_OK;
}

void hn_recorder_free(hn_recorder *r) {
  if (r->trace) r->tracing->close(r->trace);
  hone_span_buffer_free(&r->spans);
  hn_free(r->wall);
  *r = (hn_recorder){0};
}

static const char *layout_word(const hone_tensor_desc *d) {
  return d->layout == HONE_LAYOUT_CHANNELS_LAST ? "channels-last" : "row-major";
}

static const char *shape_text(hn_arena *a, const hone_step_tensor *t, uint32_t n) {
  hn_str s = {0};
  for (uint32_t i = 0; i < n; i++) {
    if (t[i].desc.dtype == HONE_DTYPE_NONE) continue;
    if (s.len) hn_str_putc(&s, ' ');
    for (int32_t k = 0; k < t[i].desc.rank; k++) {
      if (t[i].desc.dim[k] < 0)
        hn_str_printf(&s, "%s?", k ? "x" : "");
      else
        hn_str_printf(&s, "%s%lld", k ? "x" : "", (long long)t[i].desc.dim[k]);
    }
    if (t[i].desc.rank == 0) hn_str_puts(&s, "scalar");
  }
  const char *text = hn_arena_strdup(a, s.ptr ? s.ptr : "");
  hn_str_free(&s);
  return text;
}

/* What the codes among the tensors mean; NULL: there are none. */
static const char *codes_text(hn_arena *a, const hone_step_tensor *t, uint32_t n) {
  hn_str s = {0};
  char shape[128], quant[64];
  for (uint32_t i = 0; i < n; i++)
    if (t[i].desc.quant.count)
      hn_str_printf(&s, "%s%s %s", s.len ? "; " : "", hone_desc_format(&t[i].desc, shape, sizeof shape),
                    hone_quant_format(&t[i].desc.quant, quant, sizeof quant));
  const char *text = s.ptr ? hn_arena_strdup(a, s.ptr) : NULL;
  hn_str_free(&s);
  return text;
}

static size_t alternatives(hn_arena *a, const hn_step *s, const hone_alternative **out) {
  hone_alternative *list = HN_NEW_ARRAY(a, hone_alternative, s->n_refused);
  for (uint32_t i = 0; list && i < s->n_refused; i++)
    list[i] = (hone_alternative){s->refused[i].by, s->refused[i].text, -1};
  *out = list;
  return list ? s->n_refused : 0;
}

static void add_step(hone_facts *facts, hn_arena *a, const hn_plan *p, const hn_late *late, uint32_t k) {
  const hn_step *s = &p->steps.ptr[k];
  const hone_step *d = &s->desc;
  const hone_tactic_desc *chosen = NULL;
  if (late && s->kind == HN_STEP_LATE) d = hn_late_step(late, k, &chosen);
  const bool fell_back = late && late->fell_back[k];
  const hone_work work = hn_tactic_work(late && s->kind == HN_STEP_LATE ? chosen : s->tactic, d, &p->machine);
  double weights = 0;
  for (uint32_t i = 0; i < d->n_inputs; i++)
    if (d->input[i].constant) weights += (double)hone_desc_bytes(&d->input[i].desc);
  const hone_tensor_desc *in = d->n_inputs ? &d->input[0].desc : NULL,
                         *out = d->n_outputs ? &d->output[0].desc : NULL;
  const bool product =
      !d->n_parts && (hn_anchor_of_step(d).channels || strcmp(d->anchor, "QLinearConv") == 0 ||
                      strcmp(d->anchor, "ConvInteger") == 0);
  const hn_arithmetic_types types = hn_arithmetic_types_of(d, &work);
  hone_step_fact f = {
      .name = d->name,
      .op_type = d->anchor,
      .tactic = chosen      ? chosen->name
                : fell_back ? "ref"
                            : hn_step_doer(s),
      .epilogue = s->what,
      .dtype = types.operand == HONE_DTYPE_NONE ? "" : hone_dtype_name(types.operand),
      .shape_in = shape_text(a, d->input, d->n_inputs < 3 ? d->n_inputs : 3),
      .shape_out = shape_text(a, d->output, d->n_outputs < 3 ? d->n_outputs : 3),
      .codes_in = codes_text(a, d->input, d->n_inputs),
      .codes_out = codes_text(a, d->output, d->n_outputs),
      .layout = out ? layout_word(out) : "",
      .flops = (uint64_t)d->cost.flops,
      .executed_flops = work.flops > 0 ? (uint64_t)work.flops : 0,
      .macs = d->cost.macs > 0 ? (uint64_t)d->cost.macs : 0,
      .arithmetic = work.arithmetic == HONE_ARITHMETIC_OF_DTYPE ? NULL : hn_arithmetic_name(work.arithmetic),
      .bytes = (uint64_t)(d->cost.bytes > 0 ? d->cost.bytes : 0),
      .weight_bytes = (uint64_t)weights,
      .is_reference =
          s->kind == HN_STEP_LATE ? fell_back : !s->tactic && s->kind != HN_STEP_CONTROL && !s->shape_work,
      .predicted_ms = s->predicted_s * p->slices * 1e3,
      .is_reformat = s->role == HONE_STEP_REFORMAT || s->role == HONE_STEP_COPY,
      .channels_in = product && in && in->rank > 1 ? (int32_t)in->dim[1] : 0,
      .channels_out = product && out && out->rank > 1 ? (int32_t)out->dim[1] : 0,
      .anchor_node = s->n_origin ? (int32_t)s->origin[0] : -1,
  };
  int32_t *nodes = HN_NEW_ARRAY(a, int32_t, s->n_origin);
  for (uint32_t i = 0; nodes && i < s->n_origin; i++) nodes[i] = (int32_t)s->origin[i];
  f.nodes = nodes;
  f.node_count = nodes ? s->n_origin : 0;
  f.alternative_count = alternatives(a, s, &f.alternatives);
  hone_facts_add_step(facts, &f);
}

void hn_recorder_preview(const hn_plan *p, const double *seconds, const double *scaled, hone_facts *facts) {
  hn_arena a = {0};
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    int32_t *nodes = HN_NEW_ARRAY(&a, int32_t, s->n_origin);
    for (uint32_t k = 0; nodes && k < s->n_origin; k++) nodes[k] = (int32_t)s->origin[k];
    hone_facts_add_preview_step(
        facts, &(hone_preview_step){.level = p->level,
                                    .name = s->desc.name,
                                    .op_type = s->desc.anchor,
                                    .tactic = s->tactic ? s->tactic->name : "ref",
                                    .epilogue = s->what,
                                    .predicted_ms = s->predicted_s * p->slices * 1e3,
                                    .timed_ms = seconds && seconds[i] > 0 ? seconds[i] * p->slices * 1e3 : 0,
                                    .scaled_ms = scaled ? scaled[i] * p->slices * 1e3 : 0,
                                    .anchor_node = s->n_origin ? (int32_t)s->origin[0] : -1,
                                    .nodes = nodes,
                                    .node_count = nodes ? s->n_origin : 0});
  }
  hn_arena_free(&a);
}

/* Planned bytes alive during each step of the first recorded run, beside its time stamps. */
static void memory_over_time(hn_recorder *r, const hn_plan *p) {
  const uint64_t rss = hn_rss_bytes();
  hone_memory_pool pool;
  hn_mempool_totals(p->backend->pool(p->device, false), &pool);
  for (size_t i = 0; i < r->spans.count && r->spans.records[i].iteration == 0; i++) {
    const hone_span_record *span = &r->spans.records[i];
    if (span->step < 0) continue;
    uint64_t live = 0;
    for (size_t s = 0; s < p->slots.len; s++) {
      const hn_slot *slot = &p->slots.ptr[s];
      if (slot->alias == HN_NO_SLOT && slot->place == HN_PLACE_ARENA && slot->first <= (uint32_t)span->step &&
          (uint32_t)span->step <= slot->last)
        live += slot->bytes;
    }
    hone_facts_add_memory_sample(r->facts,
                                 &(hone_memory_sample){span->start_ns, live, rss, pool.used, pool.reserved});
  }
}

/* ------------------------------------------------------------------ devices */

static int64_t between(int64_t t, int64_t low, int64_t high) { return t < low ? low : t > high ? high : t; }

/* Kernels of one step that follow each other on a lane are one execution of it, with one count of its work;
 * the longest gives the name. False: s begins something new. first: of this run's records. */
static bool join(hone_span_buffer *all, size_t first, const hone_span_record *s) {
  for (size_t i = all->count; s->step >= 0 && i-- > first;) {
    hone_span_record *last = &all->records[i];
    if (last->lane != s->lane) continue;
    if (last->step != s->step || last->kind != s->kind || s->start_ns < last->end_ns) return false;
    if (s->end_ns - s->start_ns > last->end_ns - last->start_ns) last->name = s->name;
    last->end_ns = s->end_ns;
    return true;
  }
  return false;
}

/* The device's spans beside the host's. What a run gave to the device happened within the run, whatever the
 * last microsecond of its clock says. */
static hone_status merge_trace(hn_recorder *r, hone_error *error) {
  const hone_span_record *device;
  size_t n;
  uint64_t lost;
  hone_status status = r->tracing->take(r->trace, &device, &n, &lost, error);
  if (status != HONE_OK) return status;
  hone_span_buffer all;
  status = hone_span_buffer_init(&all, r->spans.count + n + 1, error);
  if (status != HONE_OK) return status;
  /* Both are in order of runs, and a RUN span stands behind what belongs to it. */
  for (size_t i = 0, k = 0, first = 0; i < r->spans.count; i++) {
    const hone_span_record *host = &r->spans.records[i];
    for (; host->kind == HONE_SPAN_RUN && k < n && device[k].iteration <= host->iteration; k++) {
      hone_span_record s = device[k];
      if (s.iteration != host->iteration) continue; /* outside of the runs, or of one that was cut off */
      s.start_ns = between(s.start_ns, host->start_ns, host->end_ns);
      s.end_ns = between(s.end_ns, host->start_ns, host->end_ns);
      if (!join(&all, first, &s)) all.records[all.count++] = s;
    }
    all.records[all.count++] = *host;
    if (host->kind == HONE_SPAN_RUN) first = all.count;
  }
  all.dropped = r->spans.dropped + lost;
  hone_span_buffer_free(&r->spans);
  r->spans = all;
  return HONE_OK;
}

/* What other processes did meanwhile. The system counts in hundredths of a second, so short records say
 * nothing. */
static void add_neighbours(const hn_recorder *r, uint32_t threads) {
  double seconds = (double)(hn_now_ns() - r->started_ns) * 1e-9, busy = hn_cpu_busy_seconds();
  if (r->busy_seconds < 0 || busy < 0 || seconds < 0.25) {
    hone_facts_add_unmeasured(r->facts, "other processes' share of the processors",
                              busy < 0 ? "the system does not tell"
                                       : "the runs together are shorter than a quarter of a second");
    return;
  }
  double others = busy - r->busy_seconds - (hn_cpu_own_seconds() - r->own_seconds);
  double share = 100 * others / (seconds * hn_cpu_count());
  hone_facts_add_counter(r->facts, &(hone_counter){"others_cpu", "%", -1, share < 0 ? 0 : share});
  const double delay = hn_run_delay_seconds() - r->delay_seconds;
  if (r->delay_seconds >= 0 && delay >= 0)
    hone_facts_add_counter(
        r->facts, &(hone_counter){"run_delay", "%", -1, 100 * delay / (seconds * (threads ? threads : 1))});
  uint64_t now = hn_involuntary_switches();
  hone_facts_add_counter(r->facts,
                         &(hone_counter){"involuntary_switches", "", -1, (double)(now - r->interrupted)});
}

static void name_lanes(hone_facts *facts, const hn_plan *p, const hone_span_buffer *spans) {
  int most = 0;
  hone_facts_name_lane(facts, 0, p->backend->asynchronous ? "host" : p->backend->name);
  for (size_t i = 0; i < spans->count; i++)
    if (spans->records[i].lane > most) most = spans->records[i].lane;
  for (int lane = 1; lane <= most; lane++) {
    char name[32];
    snprintf(name, sizeof name, "%s stream %d", p->backend->name, lane - 1);
    hone_facts_name_lane(facts, lane, name);
  }
}

hone_status hn_recorder_finish(hn_recorder *r, const hn_plan *p, uint64_t actual_peak, hone_error *error) {
  hn_arena temp = {0};
  hone_facts *facts = r->facts;
  if (r->trace) {
    hone_status status = merge_trace(r, error);
    if (status != HONE_OK) return status;
  }
  hn_provenance_run(facts, p, r->runs, r->tracing, r->trace);
  add_neighbours(r, p->machine.threads);
  for (size_t i = 0; i < p->steps.len; i++) {
    add_step(facts, &temp, p, r->late, (uint32_t)i);
    if (p->steps.ptr[i].denormal_pct > 0)
      hone_facts_add_counter(
          facts, &(hone_counter){"weights_denormal", "%", (int32_t)i, p->steps.ptr[i].denormal_pct});
    if (p->steps.ptr[i].sparse_pct >= 0)
      hone_facts_add_counter(facts,
                             &(hone_counter){"weights_2_4", "%", (int32_t)i, p->steps.ptr[i].sparse_pct});
  }
  hn_provenance_nodes(facts, p);
  memory_over_time(r, p);
  hone_facts_set_memory(facts,
                        &(hone_memory_facts){.predicted_peak = p->arena_bytes,
                                             .actual_peak = actual_peak,
                                             .naive_sum = p->naive_bytes,
                                             .weights = p->blob_bytes - p->twin_bytes + p->constant_bytes,
                                             .rss_peak = hn_rss_peak_bytes(),
                                             .device_peak = hn_device_peak(p->backend, p->device)});
  hone_memory_stats pools;
  if (!hn_pools_describe(p->backend, p->device, &pools)) {
    hn_arena_free(&temp);
    return hn_fail_memory(error, 0, "what the pools hold");
  }
  hn_pools_record(&pools, facts);
  hn_pools_free(&pools);
  name_lanes(facts, p, &r->spans);
  for (uint32_t i = 0; i < r->runs; i++) hone_facts_add_wall(facts, (int32_t)i, r->wall[i]);
  hone_facts_add_buffer(facts, &r->spans);
  hn_arena_free(&temp);
  return hone_facts_check(facts, error);
}
