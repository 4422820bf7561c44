/* Measured peaks of an accelerator: what matrix products and copies reach through plans of hone's own,
 * whatever library or kernel does them. So a roof is a speed that was seen, and needs no code of its own per
 * device. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/ir/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WARM = 3, RUNS = 12 };
#define PRODUCTS                                                                                             \
  4 /* one behind the other, so that narrowing the input and widening the output count little */

typedef struct probe {
  const char *roof;      /* its name in facts: of a dtype, or of a memory */
  const char *precision; /* of the plan */
  bool product;          /* n x n matrices; otherwise n floats are read and written */
  bool half;             /* stored in two bytes */
} probe;

static const probe probes[] = {{"f16", "fp16", true, true},
                               {"bf16", "bf16", true, true},
                               {"tf32", "tf32", true, false},
                               {"f32", "f32", true, false},
                               {"DRAM", "f32", false, false}};
static const char *const ways[] = {NULL, "cublaslt_matmul_1*,reformat", "cublaslt_matmul_2*,reformat",
                                   "-cublaslt*,-cudnn*"}; /* tactics to choose from */

static hone_status model_of(const probe *p, int64_t n, hn_model **out, hone_error *error) {
  char text[320];
  const long long d = n;
  if (p->product)
    snprintf(text, sizeof text,
             "graph g(%%a: f32[%lldx%lld], %%b: f32[%lldx%lld]) -> (%%y) {\n  %%t = MatMul(%%a, %%b)\n"
             "  %%u = MatMul(%%t, %%b)\n  %%v = MatMul(%%u, %%b)\n  %%y = MatMul(%%v, %%b)\n}\n",
             d, d, d, d);
  else
    snprintf(text, sizeof text, "graph g(%%a: f32[%lldx1024]) -> (%%y) {\n  %%y = Neg(%%a)\n}\n", d / 1024);
  hone_status status = hn_model_parse("roof", text, strlen(text), out, error);
  if (status == HONE_OK) status = hn_model_resolve(*out, error);
  return status == HONE_OK ? hn_model_infer(*out, error) : status;
}

/* Whether all of the plan is the device's: a product on the host would take minutes. */
static bool all_on_device(const hn_plan *p) {
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].kind == HN_STEP_REF || p->steps.ptr[i].kind == HN_STEP_CONTROL) return false;
  return true;
}

/* The best of some runs in seconds; 0: this way does not exist on this device. */
static hone_status best_of(hone_plan *plan, const hone_tensor *a, double *best, const char **tactic,
                           hone_error *error) {
  hone_context *c = NULL;
  const hone_tensor *in[2] = {a, a};
  const hn_plan *p = hn_api_plan(plan);
  *best = 0;
  if (!all_on_device(p)) return HONE_OK;
  double most = -1;
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].tactic && p->steps.ptr[i].desc.cost.flops > most) {
      most = p->steps.ptr[i].desc.cost.flops;
      *tactic = p->steps.ptr[i].tactic->name;
    }
  hone_status status = hone_context_create(plan, &c, error);
  if (status == HONE_OK) status = hone_context_run(c, in, NULL, error);
  for (int i = 0; i < WARM + RUNS && status == HONE_OK; i++) {
    double s = 0;
    status = hone_context_repeat(c, &s, error);
    if (status == HONE_OK && i >= WARM && s > 0 && (*best == 0 || s < *best)) *best = s;
  }
  hone_context_destroy(c);
  return status;
}

static hone_status measure(const char *device, const probe *p, const hone_tensor *a, int64_t n,
                           hone_device_roof *out, hone_error *error) {
  *out = (hone_device_roof){0};
  snprintf(out->name, sizeof out->name, "%s", p->roof);
  const double work = p->product ? PRODUCTS * 2e-9 * (double)n * (double)n * (double)n : 8e-9 * (double)n;
  hone_status status = HONE_OK;
  for (size_t w = 0; w < sizeof ways / sizeof *ways && status == HONE_OK; w++) {
    hone_engine *engine = NULL;
    hone_plan *plan = NULL;
    hn_model *model = NULL;
    const char *tactic = "";
    double seconds = 0;
    hone_error none = {0};
    const hone_engine_options options = {.device = device, .tactics = ways[w]};
    if (w && !p->product) break;
    status = hone_engine_create(&options, &engine, error);
    if (status == HONE_OK) status = model_of(p, n, &model, error);
    /* A way that this device has not is no failure. */
    if (status == HONE_OK &&
        hone_plan_create(engine, model, &(hone_plan_options){.level = -1, .precision = p->precision}, &plan,
                         &none) == HONE_OK)
      status = best_of(plan, a, &seconds, &tactic, error);
    const double rate = seconds > 0 ? work / seconds : 0;
    double *best = p->product ? &out->gflops : &out->gbs;
    if (rate > *best) {
      *best = rate;
      snprintf(out->by, sizeof out->by, "%.47s", tactic);
    }
    hone_plan_destroy(plan);
    hn_model_destroy(model);
    hone_engine_destroy(engine);
  }
  return status;
}

/* ---- cache: one small text file per device and versions */

static bool cache_path(const char *key, char *folder, char *path, size_t size) {
  if (!hn_cache_dir(folder, size)) return false;
  const int n =
      snprintf(path, size, "%s/roofs-%016llx.txt", folder, (unsigned long long)hn_hash(key, strlen(key), 0));
  return n > 0 && (size_t)n < size;
}

static bool cache_read(const char *key, hone_device_roofs *r) {
  char folder[4096], path[4096], text[2048];
  hn_file file;
  if (!cache_path(key, folder, path, sizeof path) || hn_file_map(path, NULL, &file, NULL) != HONE_OK)
    return false;
  const size_t size = file.size < sizeof text - 1 ? file.size : sizeof text - 1, len = strlen(key);
  memcpy(text, file.data, size);
  text[size] = 0;
  hn_file_unmap(&file);
  if (strncmp(text, key, len) != 0 || text[len] != '\n') return false;
  r->count = 0;
  for (const char *line = text + len + 1; *line && r->count < HONE_MOST_ROOFS; r->count++) {
    hone_device_roof *roof = &r->roof[r->count];
    *roof = (hone_device_roof){0};
    if (sscanf(line, "%7s %lf %lf %47s", roof->name, &roof->gflops, &roof->gbs, roof->by) != 4) return false;
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  return r->count == sizeof probes / sizeof *probes;
}

/* A cache that cannot be written costs some seconds next time and nothing else. */
static void cache_write(const char *key, const hone_device_roofs *r) {
  char folder[4096], path[4096];
  if (!cache_path(key, folder, path, sizeof path) || hn_mkdirs(folder, NULL) != HONE_OK) return;
  hn_str s = {0};
  hn_str_printf(&s, "%s\n", key);
  for (uint32_t i = 0; i < r->count; i++)
    hn_str_printf(&s, "%s %.6g %.6g %s\n", r->roof[i].name, r->roof[i].gflops, r->roof[i].gbs,
                  r->roof[i].by[0] ? r->roof[i].by : "-");
  if (!s.failed) hn_file_write(path, s.ptr, s.len, NULL);
  hn_str_free(&s);
}

/* ---- */

/* Far beyond the caches, and long beside a launch; less on a small device, and on one that is slow (an
 * emulator takes hours for what a GPU does in a millisecond). data: of the trial. */
static hone_status fitting_size(const char *device, const hone_tensor *data, uint64_t memory, int64_t *n,
                                hone_error *error) {
  enum { TRIAL = 64 };
  const probe f32 = {"f32", "f32", true, false};
  hone_device_roof trial;
  hone_tensor a = {.data = data->data};
  a.desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){TRIAL, TRIAL});
  while (*n > TRIAL && (double)*n * (double)*n * 4 * 5 > (double)memory) *n /= 2;
  hone_status status = measure(device, &f32, &a, TRIAL, &trial, error);
  if (trial.gflops < 1) *n = TRIAL; /* the slowest GPU does a hundred times that, launches included */
  return status;
}

hone_status hone_device_roofs_measure(const char *device, bool again, hone_device_roofs *out,
                                      hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_device_roofs_measure: out is NULL");
  *out = (hone_device_roofs){0};
  hone_device_info info;
  hone_status status = hone_device_about(device, &info, error);
  if (status != HONE_OK) return status;
  snprintf(out->device, sizeof out->device, "%s", info.name);
  if (!info.machine.arch)
    return hn_fail(error, HONE_ERROR_USAGE, "device %s has no roofs of its own", device ? device : "cpu");
  char key[512];
  snprintf(key, sizeof key, "hone-device-roofs 1 | %s | %s | sm_%u | %s | %s", hone_version(), info.name,
           info.machine.arch, info.driver, info.compiler);
  if (!again && cache_read(key, out)) return HONE_OK;
  int64_t n = 8192;
  hone_tensor few = {.data = hn_aligned(HN_MEM_ALIGN, 64 * 64 * sizeof(float))};
  if (!few.data) return hn_fail_memory(error, 64 * 64 * sizeof(float), "measuring the device");
  memset(few.data, 0, 64 * 64 * sizeof(float));
  status = fitting_size(device, &few, info.memory_free, &n, error);
  hn_free(few.data);
  if (status != HONE_OK) return status;
  const int64_t count = n * n;
  float *data = hn_aligned(HN_MEM_ALIGN, (size_t)count * 2 * sizeof *data);
  if (!data) return hn_fail_memory(error, (unsigned long long)count * 8, "measuring the device");
  hn_rng rng = {1};
  const float scale = sqrtf(12.0f / (float)n); /* products keep their operands' size */
  for (int64_t i = 0; i < 2 * count; i++) data[i] = scale * (float)(hn_rng_unit(&rng) - 0.5);
  for (size_t i = 0; i < sizeof probes / sizeof *probes && status == HONE_OK; i++) {
    const int64_t size = probes[i].product ? n : 2 * count;
    hone_tensor a = {.data = data};
    a.desc = probes[i].product ? hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){n, n})
                               : hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){size / 1024, 1024});
    status = measure(device, &probes[i], &a, size, &out->roof[out->count++], error);
  }
  hn_free(data);
  bool whole = status == HONE_OK; /* what could not be measured is tried again the next time */
  for (uint32_t i = 0; i < out->count; i++) whole &= out->roof[i].gflops > 0 || out->roof[i].gbs > 0;
  if (whole) cache_write(key, out);
  return status;
}
