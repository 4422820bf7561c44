/* Chrome trace events: opens in Perfetto and chrome://tracing. Each profile is a process, each lane a thread;
 * memory is a counter track. */
#include "insight/report/report.h"

#include "insight/json.h"

#include <stdio.h>

static void name_event(hn_str *o, const char *what, int pid, int64_t tid, const char *name) {
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "ph", "M");
  hn_json_text(o, "name", what);
  hn_json_int(o, "pid", pid);
  hn_json_int(o, "tid", tid);
  hn_json_open(o, "args", '{');
  hn_json_text(o, "name", name);
  hn_json_close(o, '}');
  hn_json_close(o, '}');
}

static void span_event(hn_str *o, const hone_profile *p, int pid, const hone_span *s, int64_t origin) {
  size_t n;
  const hone_step_fact *steps = hone_facts_steps(p->facts, &n);
  const hone_step_fact *step = s->step >= 0 ? &steps[s->step] : NULL;
  const char *type = s->op_type ? s->op_type : step ? step->op_type : NULL;
  const char *name = s->name ? s->name : step ? step->name : type;
  const char *tactic = s->tactic ? s->tactic : step ? step->tactic : NULL;
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "ph", "X");
  hn_json_text(o, "name", name ? name : hone_span_kind_name(s->kind));
  hn_json_text(o, "cat", hone_span_kind_name(s->kind));
  hn_json_int(o, "pid", pid);
  hn_json_int(o, "tid", s->lane);
  hn_json_num(o, "ts", (double)(s->start_ns - origin) / 1e3);
  hn_json_num(o, "dur", (double)(s->end_ns - s->start_ns) / 1e3);
  hn_json_open(o, "args", '{');
  if (type) hn_json_text(o, "op_type", type);
  if (tactic) hn_json_text(o, "tactic", tactic);
  if (s->iteration >= 0) hn_json_int(o, "iteration", s->iteration);
  uint64_t flops = s->flops ? s->flops
                   : step   ? step->flops
                            : 0,
           bytes = s->bytes ? s->bytes
                   : step   ? step->bytes
                            : 0;
  if (flops) hn_json_uint(o, "flops", flops);
  if (bytes) hn_json_uint(o, "bytes", bytes);
  if (step && step->shape_out) hn_json_text(o, "shape", step->shape_out);
  if (step && step->node_count) {
    const hone_node_fact *nodes = hone_facts_nodes(p->facts, &n);
    hn_json_open(o, "onnx_nodes", '[');
    for (size_t i = 0; i < step->node_count; i++) hn_json_text(o, NULL, nodes[step->nodes[i]].name);
    hn_json_close(o, ']');
  }
  hn_json_close(o, '}');
  hn_json_close(o, '}');
}

static void memory_event(hn_str *o, int pid, const hone_memory_sample *s, int64_t origin) {
  hn_json_line(o);
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "ph", "C");
  hn_json_text(o, "name", "memory");
  hn_json_int(o, "pid", pid);
  hn_json_num(o, "ts", (double)(s->time_ns - origin) / 1e3);
  hn_json_open(o, "args", '{');
  hn_json_num(o, "planned MB", (double)s->planned_bytes / 1e6);
  if (s->rss_bytes) hn_json_num(o, "resident MB", (double)s->rss_bytes / 1e6);
  hn_json_close(o, '}');
  hn_json_close(o, '}');
}

static void write_process(hn_str *o, const hone_profile *p, int pid, const char *name) {
  size_t n, samples, lanes;
  const hone_span *spans = hone_facts_spans(p->facts, &n);
  const hone_memory_sample *memory = hone_facts_memory_samples(p->facts, &samples);
  const hone_lane *lane = hone_facts_lanes(p->facts, &lanes);
  /* Every process starts at 0: the two profiles were taken one after the other and are to be compared. */
  int64_t origin = n ? INT64_MAX : 0;
  for (size_t i = 0; i < n; i++)
    if (spans[i].start_ns < origin) origin = spans[i].start_ns;
  name_event(o, "process_name", pid, 0, name);
  for (size_t i = 0; i < lanes; i++) name_event(o, "thread_name", pid, lane[i].lane, lane[i].name);
  for (size_t i = 0; i < n; i++) span_event(o, p, pid, &spans[i], origin);
  for (size_t i = 0; i < samples; i++) memory_event(o, pid, &memory[i], origin);
}

hone_status hn_report_trace(const hone_report_input *in, hn_str *o, hone_error *error) {
  (void)error;
  hn_json_open(o, NULL, '{');
  hn_json_text(o, "displayTimeUnit", "ms");
  hn_json_open(o, "otherData", '{');
  hn_json_text(o, "schema", "hone trace");
  const hone_facts_meta *m = hone_facts_get_meta(hn_report_current(in)->facts);
  hn_json_text(o, "model", m->model);
  hn_json_text(o, "device", m->device);
  hn_json_text(o, "commit", m->commit);
  hn_json_text(o, "date", m->date);
  hn_json_close(o, '}');
  hn_json_open(o, "traceEvents", '[');
  write_process(o, in->baseline, 1, in->optimized ? "baseline" : "run");
  if (in->optimized) write_process(o, in->optimized, 2, "optimized");
  hn_json_close(o, ']');
  hn_json_close(o, '}');
  hn_json_line(o);
  return HONE_OK;
}
