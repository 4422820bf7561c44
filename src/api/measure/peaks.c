/* The machine's roofs for the records of one process. */
#include "api/measure/watch.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* What is left of a limit may be nothing; peaks of one short window are better than none. */
#define LEAST_SECONDS 1.0

static bool go_on(void *watch, uint32_t done, uint32_t total) {
  return hn_watch_tell(watch, "peaks", done, total);
}

static hone_roofs_options options_of(bool again, double max_seconds, const hone_watch *watch) {
  return (hone_roofs_options){.again = again,
                              .max_seconds = max_seconds > 0 && max_seconds < LEAST_SECONDS ? LEAST_SECONDS
                                                                                            : max_seconds,
                              .progress = go_on,
                              .progress_arg = (void *)(uintptr_t)watch};
}

static bool is_cpu(const char *device) { return !device || strcmp(device, "cpu") == 0; }

static hone_status find_device(hone_peaks *p, const char *device, const hone_roofs_options *o,
                               hone_error *error) {
  hone_device_roofs found;
  if (!o->again && p->device.count && strcmp(device, p->name) == 0) return HONE_OK;
  const hone_status status = hone_device_roofs_measure(device, o, &found, error);
  if (status != HONE_OK) return status;
  p->device = found;
  snprintf(p->name, sizeof p->name, "%s", device);
  return HONE_OK;
}

hone_status hone_peaks_find(hone_peaks *p, const char *device, uint32_t threads, bool again,
                            double max_seconds, const hone_watch *watch, hone_error *error) {
  const hone_roofs_options o = options_of(again, max_seconds, watch);
  hone_roofs found;
  if (!p) return hn_fail(error, HONE_ERROR_USAGE, "hone_peaks_find needs a place for the peaks");
  if (!is_cpu(device)) return find_device(p, device, &o, error);
  if (!again && p->cpu.threads && p->threads == threads) return HONE_OK;
  const hone_status status = hone_roofs_measure(threads, &o, &found, error);
  if (status != HONE_OK) return status;
  p->cpu = found;
  p->threads = threads;
  return HONE_OK;
}

static void put_cpu(hone_facts *facts, const hone_roofs *r) {
  const struct {
    const char *name;
    double gflops, gbs;
    uint64_t capacity;
  } rows[] = {{"f32", r->f32_gflops, 0, 0},      {"bf16", r->bf16_gflops, 0, 0},
              {"int8", r->int8_gops, 0, 0},      {"int8 vectors", r->int8_vector_gops, 0, 0},
              {"L1", 0, r->l1_gbs, r->l1_bytes}, {"L2", 0, r->l2_gbs, r->l2_bytes},
              {"L3", 0, r->l3_gbs, r->l3_bytes}, {"DRAM", 0, r->dram_gbs, 0}};
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

static void add_cpu(hone_facts *facts, const hone_roofs *r) {
  if (!r->windows)
    hone_facts_add_unmeasured(facts, "machine roofs", "time was up");
  else if (!r->quiet)
    hone_facts_add_unmeasured(facts, "machine roofs at rest",
                              "others were busy in all windows: they may be too low");
  put_cpu(facts, r);
}

/* An accelerator's; steps that fell back to the host are few and have none. */
static void add_device(hone_facts *facts, const hone_device_roofs *r) {
  put_device(facts, r);
  for (uint32_t i = 0; i < r->count; i++)
    if (r->roof[i].gflops <= 0 && r->roof[i].gbs <= 0)
      hone_facts_add_unmeasured(facts, r->roof[i].name,
                                "no tactic of this device multiplies such matrices, or time was up");
}

hone_status hone_peaks_add(hone_peaks *p, const char *device, uint32_t threads, double max_seconds,
                           const hone_watch *watch, hone_facts *facts, hone_error *error) {
  hone_error why = {0};
  if (!p || !facts) return hn_fail(error, HONE_ERROR_USAGE, "hone_peaks_add needs peaks and facts");
  const hone_status status = hone_peaks_find(p, device, threads, false, max_seconds, watch, &why);
  if (status == HONE_ERROR_CANCELLED) {
    if (error) *error = why;
    return status;
  }
  if (status != HONE_OK)
    hone_facts_add_unmeasured(facts, is_cpu(device) ? "machine roofs" : "roofs of the device", why.what);
  else if (is_cpu(device))
    add_cpu(facts, &p->cpu);
  else
    add_device(facts, &p->device);
  return HONE_OK;
}

/* ---- a run was faster */

/* What is this many times as fast as a peak that was measured twice was counted wrong: not believed, and the
 * record says that it contradicts itself. */
#define BELIEVED 1.3

static bool believed(double reached, double peak) { return reached > peak && reached <= BELIEVED * peak; }

static hone_status raise_cpu(hone_peaks *peaks, const hone_profile *p, const hone_roofs_options *o,
                             hone_error *error) {
  hone_roofs seen, *known = &peaks->cpu;
  if (!peaks->again) {
    const hone_status status = hone_roofs_measure(peaks->threads, o, &seen, error);
    if (status != HONE_OK) return status;
    hone_roofs_raise(known, &seen);
  }
  seen = (hone_roofs){0};
  for (size_t i = 0; i < p->beaten_count; i++) {
    const hone_roof *b = &p->beaten[i];
    if (strcmp(b->name, "f32") == 0 && believed(b->gflops, known->f32_gflops)) seen.f32_gflops = b->gflops;
    if (strcmp(b->name, "bf16") == 0 && believed(b->gflops, known->bf16_gflops)) seen.bf16_gflops = b->gflops;
    if (strcmp(b->name, "int8") == 0 && believed(b->gflops, known->int8_gops)) seen.int8_gops = b->gflops;
    if (strcmp(b->name, "int8 vectors") == 0 && believed(b->gflops, known->int8_vector_gops))
      seen.int8_vector_gops = b->gflops;
  }
  hone_roofs_raise(known, &seen);
  return HONE_OK;
}

static hone_status raise_device(hone_peaks *peaks, const hone_profile *p, const hone_roofs_options *o,
                                hone_error *error) {
  hone_device_roofs seen;
  if (!peaks->again) {
    const hone_status status = hone_device_roofs_measure(peaks->name, o, &seen, error);
    if (status != HONE_OK) return status;
    hone_device_roofs_raise(peaks->name, &peaks->device, &seen);
  }
  seen = peaks->device;
  for (size_t i = 0; i < p->beaten_count; i++)
    for (uint32_t k = 0; k < seen.count; k++)
      if (strcmp(seen.roof[k].name, p->beaten[i].name) == 0 &&
          believed(p->beaten[i].gflops, seen.roof[k].gflops)) {
        seen.roof[k].gflops = p->beaten[i].gflops;
        snprintf(seen.roof[k].by, sizeof seen.roof[k].by, "a_run");
      }
  hone_device_roofs_raise(peaks->name, &peaks->device, &seen);
  return HONE_OK;
}

hone_status hone_peaks_raise(hone_peaks *peaks, const hone_profile *p, const char *device, double max_seconds,
                             const hone_watch *watch, hone_facts *facts, bool *raised, hone_error *error) {
  if (!peaks || !p || !facts || !raised)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_peaks_raise needs peaks, a profile, facts and a place for the answer");
  const hone_roofs_options o = options_of(true, max_seconds, watch);
  *raised = p->beaten_count && (is_cpu(device) ? peaks->cpu.threads > 0 : peaks->device.count > 0);
  if (!*raised) return HONE_OK;
  const hone_status status =
      is_cpu(device) ? raise_cpu(peaks, p, &o, error) : raise_device(peaks, p, &o, error);
  if (status != HONE_OK) return status;
  peaks->again = true;
  if (is_cpu(device))
    put_cpu(facts, &peaks->cpu);
  else
    put_device(facts, &peaks->device);
  return HONE_OK;
}
