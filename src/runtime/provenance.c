#include "runtime/provenance.h"

#include "backends/cpu/kernels/features.h"
#include "base/os.h"

#include <hone/version.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ machine and options */

static double timer_overhead(void) {
  enum { N = 1000 };
  uint64_t t = hn_now_ns();
  for (int i = 0; i < N; i++) (void)hn_now_ns();
  return (double)(hn_now_ns() - t) / N;
}

static void add_sensors(hone_facts *facts, const hn_plan *p) {
  hn_sensor s[16];
  size_t n = 0;
  hone_error error = {0};
  if (!p->backend->sensors) return;
  if (p->backend->sensors(p->device, s, sizeof s / sizeof *s, &n, &error) != HONE_OK)
    hone_facts_add_unmeasured(facts, "clocks, temperature and power", error.what);
  for (size_t i = 0; i < n; i++)
    hone_facts_add_counter(facts, &(hone_counter){s[i].name, s[i].unit, -1, s[i].value});
}

/* What the facts say of a device that is not the host; false when it is the host. */
static bool add_device(hone_facts *facts, const hn_plan *p, const hn_tracing *tracing, hn_trace *trace,
                       hone_facts_meta *meta, char *isa, size_t size) {
  if (!p->backend->asynchronous) return false;
  const char *why = NULL;
  char text[320];
  if (p->backend->label) meta->device = p->backend->label(p->device);
  snprintf(isa, size, "sm_%u", p->machine.arch);
  meta->isa = isa;
  meta->streams = p->lanes ? p->lanes : 1;
  if (trace) meta->inner_clock = tracing->source(trace, &why);
  if (why) hone_facts_add_unmeasured(facts, "activity records of the device", why);
  p->backend->fingerprint(p->device, text, sizeof text);
  hone_facts_add_version(facts, "device", text);
  return true;
}

void hn_provenance_run(hone_facts *facts, const hn_plan *p, uint32_t runs, const hn_tracing *tracing,
                       hn_trace *trace) {
  hone_facts_meta meta = *hone_facts_get_meta(facts);
  meta.tool = "hone";
  meta.tool_version = HONE_VERSION_STRING;
  meta.backend = p->backend->name;
  char cpu[128];
  hn_cpu_name(cpu, sizeof cpu);
  if (!meta.device) meta.device = cpu;
  meta.isa = hn_isa_name(hn_isa_of(p->machine.isa));
  if (!meta.model) meta.model = p->model->path;
  if (!meta.precision) meta.precision = hn_precision_name(p->precision);
  meta.outer_clock = "CLOCK_MONOTONIC_RAW around the whole call";
  meta.inner_clock = "CLOCK_MONOTONIC at the edges of each step";
  meta.streams = 1;
  char arch[16];
  if (add_device(facts, p, tracing, trace, &meta, arch, sizeof arch)) add_sensors(facts, p);
  meta.threads = p->machine.threads;
  meta.cores = hn_cpu_count();
  meta.opt_level = p->reference ? 0 : p->level;
  meta.runs = runs;
  meta.timer_overhead_ns = timer_overhead();
  if (p->n_inputs && p->inputs[0]->desc.rank > 0) meta.batch = (double)hn_plan_given(p, 0)->dim[0];
  hone_facts_set_meta(facts, &meta);
}

/* ------------------------------------------------------------------ the network's nodes */

static hone_node_fate fate_of(const char *word) {
  for (int i = 0; i < HONE_NODE_FATE_COUNT; i++)
    if (strcmp(hone_node_fate_name((hone_node_fate)i), word) == 0) return (hone_node_fate)i;
  return HONE_NODE_UNKNOWN;
}

void hn_provenance_nodes(hone_facts *facts, const hn_plan *p) {
  for (size_t i = 0; i < p->model->source.len; i++) {
    hone_node_fact n = {p->model->source.ptr[i].name, p->model->source.ptr[i].op_type,
                        fate_of(p->node_fate[i]), p->node_step[i], NULL};
    hone_facts_add_node(facts, &n);
  }
}

/* Indices of the nodes in a list of names "a, b", at most `most`. */
static uint32_t find_nodes(const hone_facts *facts, const char *names, int32_t *out, uint32_t most) {
  size_t count;
  const hone_node_fact *nodes = hone_facts_nodes(facts, &count);
  uint32_t n = 0;
  for (size_t len; *names && n < most; names += len + strspn(names + len, ", ")) {
    len = strcspn(names, ",");
    for (size_t i = 0; i < count; i++)
      if (nodes[i].name && strlen(nodes[i].name) == len && strncmp(nodes[i].name, names, len) == 0) {
        out[n++] = (int32_t)i;
        break;
      }
  }
  return n;
}

/* Lowering may have put together what a pass left apart. */
static bool one_step(const hn_plan *p, const int32_t *nodes, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (p->node_step[nodes[i]] != p->node_step[nodes[0]]) return false;
  return n > 1;
}

void hn_provenance_rewrites(hone_facts *facts, const hn_plan *p, const hone_rewrites *rewrites) {
  for (uint32_t i = 0; i < rewrites->n; i++) {
    const hone_rewrite *w = &rewrites->record[i];
    uint64_t hits = 0;
    bool first = true;
    for (uint32_t k = 0; k < rewrites->n; k++) {
      bool same = rewrites->record[k].hit && strcmp(rewrites->record[k].pass, w->pass) == 0;
      if (same && k < i) first = false;
      hits += same;
    }
    if (w->hit && first) hone_facts_add_pass(facts, &(hone_pass_fact){.name = w->pass, .hits = hits});
    /* What is slower is no fault of the network; what another level does is told by previews. */
    if (w->hit || w->by == HONE_REWRITE_SLOWER || (w->by == HONE_REWRITE_FUSION && w->enable_level > 0))
      continue;
    int32_t nodes[16];
    uint32_t n = find_nodes(facts, w->nodes, nodes, 16);
    hone_facts_add_near_miss(
        facts, &(hone_near_miss){.pass = w->pass,
                                 .reason = w->reason,
                                 .nodes = nodes,
                                 .node_count = n,
                                 .bytes_saved = one_step(p, nodes, n) ? 0 : (uint64_t)w->bytes_saved,
                                 .enable_level = w->enable_level});
  }
}
