#include "cli/reports/inspect.h"
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/options/roofs.h"
#include "cli/options/session.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 8 };
#define ROOF_SECONDS 1.0 /* who inspects does not wait for a busy machine to come to rest */

/* ---- the machine */

static hone_status peaks_of(const cli_args *args, cli_roof_peaks *p, hone_error *error) {
  const char *device = cli_device_name(args);
  hone_error why = {0};
  if (strcmp(device, "cpu") == 0) {
    hone_roofs r;
    const hone_status status = cli_roofs((uint32_t)args->threads, false, ROOF_SECONDS, &r, &why);
    if (status == HONE_OK) {
      snprintf(p->name, sizeof p->name, "%.100s, %u thread%s", r.cpu, r.threads, r.threads == 1 ? "" : "s");
      p->low = r.windows && !r.quiet;
      p->f32 = r.f32_gflops;
      p->half = r.bf16_gflops > 0 ? r.bf16_gflops : r.f32_gflops; /* widened */
      p->int8 = r.int8_gops > 0 ? r.int8_gops : r.f32_gflops;
      p->gbs = r.dram_gbs;
    }
  } else {
    hone_device_roofs r;
    const hone_status status = cli_device_roofs(device, false, 0, &r, &why);
    for (uint32_t i = 0; status == HONE_OK && i < r.count; i++) {
      const hone_device_roof *roof = &r.roof[i];
      if (strcmp(roof->name, "f32") == 0) p->f32 = roof->gflops;
      if (strcmp(roof->name, "f16") == 0) p->half = roof->gflops;
      if (strcmp(roof->name, "int8") == 0) p->int8 = roof->gflops;
      if (strcmp(roof->name, "DRAM") == 0) p->gbs = roof->gbs;
    }
    if (status == HONE_OK) snprintf(p->name, sizeof p->name, "%s", r.device);
  }
  if (why.status == HONE_ERROR_CANCELLED) {
    *error = why;
    return why.status;
  }
  if (!(p->f32 > 0) || !(p->gbs > 0)) {
    snprintf(p->why, sizeof p->why, "%s", why.what[0] ? why.what : "time was up");
    p->f32 = p->half = p->int8 = p->gbs = 0;
  }
  return HONE_OK;
}

static double peak_of(const cli_roof_peaks *p, hone_dtype dtype) {
  const double peak = dtype == HONE_DTYPE_F16 || dtype == HONE_DTYPE_BF16 ? p->half
                      : dtype == HONE_DTYPE_U8 || dtype == HONE_DTYPE_I8  ? p->int8
                      : dtype == HONE_DTYPE_F64                           ? p->f32 / 2
                                                                          : p->f32;
  return peak > 0 ? peak : p->f32;
}

double cli_roof_ms(const cli_roof_peaks *p, hone_dtype dtype, double flops, double bytes) {
  if (!(p->gbs > 0)) return 0;
  const double compute = flops / peak_of(p, dtype) * 1e-6, memory = bytes / p->gbs * 1e-6;
  return compute > memory ? compute : memory;
}

cli_bound cli_bound_of(const cli_roof_peaks *p, const hone_node_info *n) {
  if (!(p->gbs > 0)) return CLI_BOUND_UNKNOWN;
  if (!(n->flops > 0) && !(n->bytes_read + n->bytes_written > 0)) return CLI_BOUND_NONE;
  return n->intensity >= peak_of(p, n->dtype) / p->gbs ? CLI_BOUND_COMPUTE : CLI_BOUND_MEMORY;
}

const char *cli_bound_name(cli_bound bound) {
  static const char *const names[] = {"", "-", "compute", "memory"};
  return names[bound];
}

/* ---- the plan */

static hone_status plan_it(const cli_args *args, hone_model *model, const hone_plan_options *o,
                           cli_analysis *a, hone_error *error) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_status status = hone_engine_create(
      &(hone_engine_options){.device = cli_device_name(args), .threads = (uint32_t)args->threads}, &engine,
      error);
  if (status == HONE_OK) status = hone_plan_create(engine, model, o, &plan, error);
  for (uint32_t i = 0; status == HONE_OK && i < hone_plan_steps(plan); i++) {
    hone_step_info s;
    if (!hone_plan_step(plan, i, &s)) continue;
    a->roof_ms += cli_roof_ms(&a->peaks, HONE_DTYPE_F32, s.flops, s.bytes > 0 ? s.bytes : 0);
    a->predicted_ms += s.predicted_s * 1e3;
  }
  if (status == HONE_OK) status = hone_fusions_find(engine, model, o, &a->fusions, error);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return status;
}

hone_status cli_analyse(const cli_args *args, hone_model *model, const hone_binding *bindings, uint32_t n,
                        cli_analysis *a, hone_error *error) {
  hone_error why = {0};
  *a = (cli_analysis){0};
  const hone_plan_options o = {
      .level = 2, .bindings = bindings, .n_bindings = n, .batch = args->batch, .preview = true};
  hone_status status = cli_check_device(args, error);
  if (status == HONE_OK && args->profile) status = cli_import(args, &args->profile, 1, &a->profile, error);
  if (status == HONE_OK) status = peaks_of(args, &a->peaks, error);
  if (status != HONE_OK) return status;
  /* What cannot be planned can be counted all the same. */
  status = plan_it(args, model, &o, a, &why);
  if (status != HONE_OK) snprintf(a->no_fusions, sizeof a->no_fusions, "%s", why.what);
  a->planned = status == HONE_OK;
  return HONE_OK;
}

void cli_analysis_free(cli_analysis *a) {
  hone_fusions_free(&a->fusions);
  hone_recording_free(&a->profile);
}

/* ---- 8 bits */

typedef struct friendly {
  double flops;
  uint32_t nodes;
  char types[160];
} friendly;

/* Adds a type to "Conv, MatMul" once. */
static void add_type(char *types, size_t size, const char *type) {
  const size_t len = strlen(type), at = strlen(types);
  for (const char *t = types; (t = strstr(t, type)) != NULL; t += len)
    if ((t == types || t[-1] == ' ') && (t[len] == ',' || !t[len])) return;
  if (at + len + 8 < size) snprintf(types + at, size - at, "%s%s", at ? ", " : "", type);
}

static void friendliness(const hone_inspection *in, friendly f[HONE_QUANTISATIONS]) {
  memset(f, 0, HONE_QUANTISATIONS * sizeof *f);
  for (uint32_t i = 0; i < in->n_nodes; i++) {
    friendly *to = &f[hone_quantisation_of(in->nodes[i].op_type)];
    to->nodes++;
    to->flops += in->nodes[i].flops;
    add_type(to->types, sizeof to->types, in->nodes[i].op_type);
  }
}

static const char *const gains[HONE_QUANTISATIONS] = {"high: products of codes, sums in i32",
                                                      "high: work on codes, requantised", "by look-up table",
                                                      "kept in float", "nothing to compute"};

/* ---- text */

static void bounds_text(const cli_analysis *a, const hone_inspection *in) {
  const cli_roof_peaks *p = &a->peaks;
  char x[24];
  double flops[4] = {0}, ms[4] = {0}, all = 0;
  uint32_t nodes[4] = {0};
  if (p->why[0]) {
    cli_print("%-22s not known: %s (hone device measures the roofs)\n", "bound", p->why);
    return;
  }
  for (uint32_t i = 0; i < in->n_nodes; i++) {
    const hone_node_info *n = &in->nodes[i];
    const cli_bound b = cli_bound_of(p, n);
    nodes[b]++;
    flops[b] += n->flops;
    ms[b] += cli_roof_ms(p, n->dtype, n->flops, n->bytes_read + n->bytes_written);
  }
  all = ms[CLI_BOUND_COMPUTE] + ms[CLI_BOUND_MEMORY];
  cli_print("%-22s %s: %sFLOP/s in f32, %.1f GB/s from memory, ridge %.1f FLOP/byte%s\n", "roofs (measured)",
            p->name, cli_si(p->f32 * 1e9, x), p->gbs, p->f32 / p->gbs,
            p->low ? "; others were busy: may be too low, hone device measures longer" : "");
  for (int b = CLI_BOUND_COMPUTE; b <= CLI_BOUND_MEMORY; b++)
    cli_print("%-22s %u node%s, %.1f %% of the FLOPs, %.1f %% of the time at the roofs\n",
              b == CLI_BOUND_COMPUTE ? "compute-bound" : "memory-bound", nodes[b], cli_s(nodes[b]),
              in->flops > 0 ? 100 * flops[b] / in->flops : 0.0, all > 0 ? 100 * ms[b] / all : 0.0);
}

static void quantisation_text(const hone_inspection *in) {
  friendly f[HONE_QUANTISATIONS];
  friendliness(in, f);
  cli_print("\nin 8 bits%31s %6s %6s  operators\n", "", "nodes", "FLOPs");
  for (int q = 0; q < HONE_QUANTISATIONS; q++)
    if (f[q].nodes)
      cli_print("  %-38s %6u %5.1f %%  %s\n", gains[q], f[q].nodes,
                in->flops > 0 ? 100 * f[q].flops / in->flops : 0.0, f[q].types);
}

/* Fusions of one pattern, or refusals for one reason, together. */
static bool alike(const hone_fusion *a, const hone_fusion *b) {
  return a->done == b->done && a->level == b->level && strcmp(a->what, b->what) == 0 &&
         strcmp(a->reason, b->reason) == 0;
}

typedef struct sum {
  const hone_fusion *first;
  uint32_t count;
  double bytes;
} sum;

static void fusions_rows(const hone_fusions *f, bool done, uint32_t rows) {
  char x[24];
  uint32_t shown = 0, more = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    sum s = {.first = &f->fusion[i]};
    bool seen = false;
    if (s.first->done != done) continue;
    for (uint32_t k = 0; k < i && !seen; k++) seen = alike(&f->fusion[k], s.first);
    if (seen) continue;
    if (shown++ >= rows) {
      more++;
      continue;
    }
    for (uint32_t k = i; k < f->n; k++)
      if (alike(&f->fusion[k], s.first)) {
        s.count++;
        s.bytes += f->fusion[k].bytes_saved;
      }
    cli_print("  %4u x %8sB  ", s.count, cli_si(s.bytes, x));
    if (done)
      cli_print("level %d  %s\n", s.first->level, s.first->what);
    else
      cli_print("%s (%s%s): %s%s\n", s.first->what, s.first->nodes, s.count > 1 ? ", ..." : "",
                s.first->reason, s.first->level > 0 ? " (--level changes that)" : "");
  }
  if (more) cli_print("  ... and %u more kind%s (--json lists all)\n", more, cli_s(more));
}

static void fusions_text(const cli_analysis *a, const hone_inspection *in, uint32_t rows) {
  const hone_fusions *f = &a->fusions;
  double saved[2] = {0};
  uint32_t count[2] = {0};
  char x[24];
  if (!a->planned) {
    cli_print("\nfusions: not known: %s\n", a->no_fusions);
    return;
  }
  for (uint32_t i = 0; i < f->n; i++) {
    saved[f->fusion[i].done] += f->fusion[i].bytes_saved;
    count[f->fusion[i].done]++;
  }
  cli_print("\nfusions: %u, which save %sB of the %.3g MB\n", count[1], cli_si(saved[1], x),
            in->bytes * 1e-6);
  fusions_rows(f, true, rows);
  if (!count[0]) return;
  cli_print("refused: %u, which would save %sB\n", count[0], cli_si(saved[0], x));
  fusions_rows(f, false, rows);
}

static void throughput_text(const cli_analysis *a, int64_t batch) {
  const hone_profile *p = a->profile.profile;
  cli_print("\n");
  if (p) {
    const hone_stages *s = &p->stages;
    cli_print("throughput (measured): T_pre %.3f, T_h2d %.3f, T_infer %.3f, T_d2h %.3f, T_post %.3f ms\n",
              s->pre_ms, s->h2d_ms, s->infer_ms, s->d2h_ms, s->post_ms);
    cli_print("  one after the other %.1f/s; ceiling when they overlap %.1f/s, 1 / T_%s\n",
              p->throughput.serial_fps, p->throughput.overlapped_fps,
              p->throughput.slowest_stage ? p->throughput.slowest_stage : "?");
    return;
  }
  if (!a->planned || !(a->roof_ms > 0)) {
    cli_print("throughput: not known without %s\n", a->planned ? "roofs" : "a plan");
    return;
  }
  cli_print(
      "throughput (estimate): T_infer %.3f ms at the roofs: at most %.0f/s; %.3f ms, %.0f/s by the cost "
      "models\n",
      a->roof_ms, 1e3 * (double)batch / a->roof_ms, a->predicted_ms,
      a->predicted_ms > 0 ? 1e3 * (double)batch / a->predicted_ms : 0.0);
  cli_print("  T_pre, T_h2d, T_d2h, T_post: nothing was run; hone profile MODEL -o p.json measures them, "
            "--profile p.json "
            "shows both figures\n");
}

void cli_analysis_text(const cli_analysis *a, const hone_inspection *in, int64_t batch, uint32_t rows) {
  bounds_text(a, in);
  fusions_text(a, in, rows ? rows : SHOWN);
  quantisation_text(in);
  throughput_text(a, batch);
}

/* ---- JSON */

static json_t *fusion_json(const hone_fusion *f) {
  return json_pack("{s:b, s:s, s:s, s:s, s:s, s:o, s:o}", "done", f->done, "what", f->what, "pass", f->pass,
                   "nodes", f->nodes, "reason", f->reason, "level",
                   f->level > 0 ? json_integer(f->level) : json_null(), "bytes_saved",
                   cli_real(f->bytes_saved));
}

static json_t *throughput_json(const cli_analysis *a, int64_t batch) {
  const hone_profile *p = a->profile.profile;
  if (p) {
    const hone_stages *s = &p->stages;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "basis", "measured", "t_pre_ms",
                     cli_real(s->pre_ms), "t_h2d_ms", cli_real(s->h2d_ms), "t_infer_ms",
                     cli_real(s->infer_ms), "t_d2h_ms", cli_real(s->d2h_ms), "t_post_ms",
                     cli_real(s->post_ms), "serial_fps", cli_real(p->throughput.serial_fps), "ceiling_fps",
                     cli_real(p->throughput.overlapped_fps), "slowest",
                     p->throughput.slowest_stage ? p->throughput.slowest_stage : "");
  }
  if (!a->planned || !(a->roof_ms > 0)) return json_null();
  return json_pack("{s:s, s:o, s:o, s:o, s:o}", "basis", "estimate", "t_infer_ms", cli_real(a->roof_ms),
                   "ceiling_fps", cli_real(1e3 * (double)batch / a->roof_ms), "predicted_infer_ms",
                   cli_real(a->predicted_ms), "predicted_fps",
                   a->predicted_ms > 0 ? cli_real(1e3 * (double)batch / a->predicted_ms) : json_null());
}

void cli_analysis_json(const cli_analysis *a, const hone_inspection *in, int64_t batch, json_t *doc) {
  const cli_roof_peaks *p = &a->peaks;
  friendly f[HONE_QUANTISATIONS];
  json_t *fusions = json_array(), *classes = json_array();
  friendliness(in, f);
  for (uint32_t i = 0; i < a->fusions.n; i++)
    json_array_append_new(fusions, fusion_json(&a->fusions.fusion[i]));
  for (int q = 0; q < HONE_QUANTISATIONS; q++)
    json_array_append_new(
        classes,
        json_pack("{s:s, s:s, s:i, s:o, s:o, s:s}", "class", hone_quantisation_name((hone_quantisation)q),
                  "gain", gains[q], "nodes", (int)f[q].nodes, "flops", cli_real(f[q].flops), "flops_pct",
                  cli_real(in->flops > 0 ? 100 * f[q].flops / in->flops : 0), "types", f[q].types));
  json_object_set_new(doc, "roofs",
                      p->why[0]
                          ? json_pack("{s:s}", "not_measured", p->why)
                          : json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "name", p->name, "quiet",
                                      !p->low, "f32_gflops", cli_real(p->f32), "half_gflops",
                                      cli_real(p->half), "int8_gops", cli_real(p->int8), "dram_gbs",
                                      cli_real(p->gbs), "ridge_flop_per_byte", cli_real(p->f32 / p->gbs)));
  json_object_set_new(doc, "fusions", fusions);
  if (!a->planned) json_object_set_new(doc, "fusions_not_known", json_string(a->no_fusions));
  json_object_set_new(doc, "quantisation", classes);
  json_object_set_new(doc, "throughput", throughput_json(a, batch));
}
