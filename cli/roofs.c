/* The machine's measured peaks: once a process, and for the records of runs. */
#include "cli/cli.h"

#include <string.h>

/* What is left of --max-seconds may be nothing; peaks of one short window are better than none. */
#define LEAST_SECONDS 1.0

static bool go_on(void *arg, uint32_t done, uint32_t total) {
  (void)arg;
  cli_progress("peaks", done, total);
  return !cli_interrupted();
}

static hone_roofs_options options_of(bool again, double max_seconds) {
  return (hone_roofs_options){.again = again,
                              .max_seconds = max_seconds > 0 && max_seconds < LEAST_SECONDS ? LEAST_SECONDS
                                                                                            : max_seconds,
                              .progress = go_on};
}

/* A busy machine's peaks are not cached. All records of one process shall speak of the same. */
static hone_roofs of_cpu;
static uint32_t cpu_threads; /* as asked for */
static hone_device_roofs of_device;
static char device_name[64];

hone_status cli_roofs(uint32_t threads, bool again, double max_seconds, hone_roofs *out, hone_error *error) {
  const hone_roofs_options o = options_of(again, max_seconds);
  if (!again && of_cpu.threads && cpu_threads == threads) {
    *out = of_cpu;
    return HONE_OK;
  }
  const hone_status status = hone_roofs_measure(threads, &o, out, error);
  cli_progress_end();
  if (status != HONE_OK) return status;
  of_cpu = *out;
  cpu_threads = threads;
  return HONE_OK;
}

hone_status cli_device_roofs(const char *device, bool again, double max_seconds, hone_device_roofs *out,
                             hone_error *error) {
  const hone_roofs_options o = options_of(again, max_seconds);
  if (!again && of_device.count && strcmp(device, device_name) == 0) {
    *out = of_device;
    return HONE_OK;
  }
  const hone_status status = hone_device_roofs_measure(device, &o, out, error);
  cli_progress_end();
  if (status != HONE_OK) return status;
  of_device = *out;
  snprintf(device_name, sizeof device_name, "%s", device);
  return HONE_OK;
}

bool cli_note_busy(const hone_roofs *r) {
  if (r->quiet || !r->windows) return false;
  cli_note(
      "others were busy in all windows in which the peaks were measured (%.0f %% of the processors in the "
      "quietest): they may be too low, and are not kept",
      100 * r->others);
  return true;
}

static void put_cpu(hone_facts *facts, const hone_roofs *r) {
  const struct {
    const char *name;
    double gflops, gbs;
    uint64_t capacity;
  } rows[] = {{"f32", r->f32_gflops, 0, 0},      {"bf16", r->bf16_gflops, 0, 0},
              {"int8", r->int8_gops, 0, 0},      {"L1", 0, r->l1_gbs, r->l1_bytes},
              {"L2", 0, r->l2_gbs, r->l2_bytes}, {"L3", 0, r->l3_gbs, r->l3_bytes},
              {"DRAM", 0, r->dram_gbs, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].gflops > 0 || rows[i].gbs > 0)
      hone_facts_raise_roof(facts, &(hone_roof){rows[i].name, (int32_t)r->threads, rows[i].gflops,
                                                rows[i].gbs, rows[i].capacity});
}

static void put_device(hone_facts *facts, const hone_device_roofs *r) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->roof[i].gflops > 0 || r->roof[i].gbs > 0)
      hone_facts_raise_roof(facts, &(hone_roof){r->roof[i].name, 1, r->roof[i].gflops, r->roof[i].gbs, 0});
}

/* An accelerator's roofs; steps that fell back to the host are few and have none. */
static hone_status add_of_device(hone_facts *facts, const char *device, double max_seconds,
                                 hone_error *error) {
  hone_error why = {0};
  hone_device_roofs r;
  const hone_status status = cli_device_roofs(device, false, max_seconds, &r, &why);
  if (status == HONE_ERROR_CANCELLED) {
    *error = why;
    return status;
  }
  if (status != HONE_OK) {
    hone_facts_add_unmeasured(facts, "roofs of the device", why.what);
    return HONE_OK;
  }
  put_device(facts, &r);
  for (uint32_t i = 0; i < r.count; i++)
    if (r.roof[i].gflops <= 0 && r.roof[i].gbs <= 0)
      hone_facts_add_unmeasured(facts, r.roof[i].name,
                                "no tactic of this device multiplies such matrices, or time was up");
  return HONE_OK;
}

hone_status cli_add_roofs(hone_facts *facts, const char *device, uint32_t threads, double max_seconds,
                          hone_error *error) {
  hone_error why = {0};
  hone_roofs r;
  if (strcmp(device, "cpu") != 0) return add_of_device(facts, device, max_seconds, error);
  const hone_status status = cli_roofs(threads, false, max_seconds, &r, &why);
  if (status == HONE_ERROR_CANCELLED) {
    *error = why;
    return status;
  }
  if (status != HONE_OK) {
    hone_facts_add_unmeasured(facts, "machine roofs", why.what);
    return HONE_OK;
  }
  if (!r.windows)
    hone_facts_add_unmeasured(facts, "machine roofs", "time was up");
  else if (!r.quiet)
    hone_facts_add_unmeasured(facts, "machine roofs at rest",
                              "others were busy in all windows: they may be too low");
  put_cpu(facts, &r);
  return HONE_OK;
}

/* ---- a run was faster */

/* What is this many times as fast as a peak that was measured twice was counted wrong: not believed, and the
 * record says that it contradicts itself. */
#define BELIEVED 1.3

static bool believed(double reached, double peak) { return reached > peak && reached <= BELIEVED * peak; }

static hone_status raise_cpu(const hone_profile *p, const hone_roofs_options *o, bool measure,
                             hone_error *error) {
  hone_roofs seen;
  if (measure) {
    const hone_status status = hone_roofs_measure(cpu_threads, o, &seen, error);
    if (status != HONE_OK) return status;
    hone_roofs_raise(&of_cpu, &seen);
  }
  seen = (hone_roofs){0};
  for (size_t i = 0; i < p->beaten_count; i++) {
    const hone_roof *b = &p->beaten[i];
    if (strcmp(b->name, "f32") == 0 && believed(b->gflops, of_cpu.f32_gflops)) seen.f32_gflops = b->gflops;
    if (strcmp(b->name, "bf16") == 0 && believed(b->gflops, of_cpu.bf16_gflops)) seen.bf16_gflops = b->gflops;
    if (strcmp(b->name, "int8") == 0 && believed(b->gflops, of_cpu.int8_gops)) seen.int8_gops = b->gflops;
  }
  hone_roofs_raise(&of_cpu, &seen);
  return HONE_OK;
}

static hone_status raise_device(const hone_profile *p, const hone_roofs_options *o, bool measure,
                                hone_error *error) {
  hone_device_roofs seen;
  if (measure) {
    const hone_status status = hone_device_roofs_measure(device_name, o, &seen, error);
    if (status != HONE_OK) return status;
    hone_device_roofs_raise(device_name, &of_device, &seen);
  }
  seen = of_device;
  for (size_t i = 0; i < p->beaten_count; i++)
    for (uint32_t k = 0; k < seen.count; k++)
      if (strcmp(seen.roof[k].name, p->beaten[i].name) == 0 &&
          believed(p->beaten[i].gflops, seen.roof[k].gflops)) {
        seen.roof[k].gflops = p->beaten[i].gflops;
        snprintf(seen.roof[k].by, sizeof seen.roof[k].by, "a_run");
      }
  hone_device_roofs_raise(device_name, &of_device, &seen);
  return HONE_OK;
}

hone_status cli_raise_roofs(hone_facts *facts, const hone_profile *p, const char *device, double max_seconds,
                            bool *raised, hone_error *error) {
  static bool measured; /* again, once a process */
  const bool cpu = strcmp(device, "cpu") == 0;
  const hone_roofs_options o = options_of(true, max_seconds);
  *raised = p->beaten_count && (cpu ? of_cpu.threads > 0 : of_device.count > 0);
  if (!*raised) return HONE_OK;
  const hone_status status = cpu ? raise_cpu(p, &o, !measured, error) : raise_device(p, &o, !measured, error);
  cli_progress_end();
  if (status != HONE_OK) return status;
  measured = true;
  if (cpu)
    put_cpu(facts, &of_cpu);
  else
    put_device(facts, &of_device);
  return HONE_OK;
}
