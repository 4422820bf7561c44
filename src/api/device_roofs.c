/* Measured peaks of an accelerator: what matrix products and copies reach through plans of hone's own,
 * whatever library or kernel does them. So a roof is a speed that was seen, and needs no code of its own per
 * device. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/quantile.h"
#include "base/rng.h"
#include "base/str.h"
#include "improve/roof_cache.h"
#include "model/ir/text.h"
#include "model/operators.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WARM = 3, RUNS = 12, LEAST_SIZE = 4096 /* of matrices that are beyond caches and launches */ };
#define USUAL_SECONDS 120.0 /* texts are compiled on the way */
#define PRODUCTS                                                                                             \
  4 /* one behind the other, so that narrowing the input and widening the output count little */

typedef struct probe {
  const char *roof;      /* its name in facts: of a dtype, or of a memory */
  const char *precision; /* of the plan */
  bool product;          /* n x n matrices; otherwise n floats are read and written */
  bool codes;            /* of 8 bits, with sums in i32 */
} probe;

static const probe probes[] = {{"f16", "fp16", true, false},  {"bf16", "bf16", true, false},
                               {"tf32", "tf32", true, false}, {"int8", "f32", true, true},
                               {"f32", "f32", true, false},   {"DRAM", "f32", false, false}};
static const char *const ways[] = {NULL, "cublaslt_matmul_1*,reformat", "cublaslt_matmul_2*,reformat",
                                   "-cublaslt*,-cudnn*"}; /* tactics to choose from */
enum { PROBES = sizeof probes / sizeof *probes, WAYS = sizeof ways / sizeof *ways };

/* Products of codes by constant codes, rounded to codes again; the weights' scale keeps the results' size. */
static void codes_text(long long n, char *text, size_t size) {
  const double deviation = 254 / sqrt(12); /* of the weights' codes */
  size_t at = (size_t)snprintf(
      text, size,
      "graph g(%%q0: u8[%lldx%lld]) -> (%%q%d) {\n  const %%w: i8[%lldx%lld] = rand(1, -127, 127)\n"
      "  %%d = DequantizeLinear(%%w, %.9g)\n",
      n, n, PRODUCTS, n, n, 1 / (deviation * sqrt((double)n)));
  for (int i = 0; i < PRODUCTS && at < size; i++)
    at += (size_t)snprintf(text + at, size - at,
                           "  %%x%d = DequantizeLinear(%%q%d, 1, u8 128)\n  %%y%d = MatMul(%%x%d, %%d)\n"
                           "  %%q%d = QuantizeLinear(%%y%d, 1, u8 128)\n",
                           i, i, i, i, i + 1, i);
  if (at < size) snprintf(text + at, size - at, "}\n");
}

static hone_status model_of(const probe *p, int64_t n, hn_model **out, hone_error *error) {
  char text[1024];
  const long long d = n;
  if (p->codes)
    codes_text(d, text, sizeof text);
  else if (p->product)
    snprintf(text, sizeof text,
             "graph g(%%a: f32[%lldx%lld], %%b: f32[%lldx%lld]) -> (%%y) {\n  %%t = MatMul(%%a, %%b)\n"
             "  %%u = MatMul(%%t, %%b)\n  %%v = MatMul(%%u, %%b)\n  %%y = MatMul(%%v, %%b)\n}\n",
             d, d, d, d);
  else
    snprintf(text, sizeof text, "graph g(%%a: f32[%lldx1024]) -> (%%y) {\n  %%y = Neg(%%a)\n}\n", d / 1024);
  hone_status status = hn_model_parse("roof", text, strlen(text), out, error);
  return status == HONE_OK ? hn_model_ready(*out, error) : status;
}

/* Whether all of the plan is the device's: a product on the host would take minutes. */
static bool all_on_device(const hn_plan *p) {
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].kind == HN_STEP_REF || p->steps.ptr[i].kind == HN_STEP_CONTROL) return false;
  return true;
}

/* Time that is left, and whether anybody still wants an answer. */
typedef struct limits {
  const hone_roofs_options *options;
  uint64_t end_ns;
  uint32_t done, total; /* roofs */
} limits;

static double seconds_left(const limits *l) { return ((double)l->end_ns - (double)hn_now_ns()) * 1e-9; }

static hone_status go_on(const limits *l, hone_error *error) {
  const hone_roofs_options *o = l->options;
  if (!o->progress || o->progress(o->progress_arg, l->done, l->total)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_CANCELLED, "measuring the device's peaks was interrupted");
}

/* Some runs of a plan: the best in seconds, and how much longer the median took, as a share of the best. */
typedef struct timing {
  double best, spread; /* best 0: this way does not exist on this device */
  const char *tactic;  /* of the step with most work */
} timing;

static hone_status time_plan(hone_plan *plan, const hone_tensor *a, const limits *l, timing *out,
                             hone_error *error) {
  hone_context *c = NULL;
  const hone_tensor *in[2] = {a, a};
  const hn_plan *p = hn_api_plan(plan);
  double ran[RUNS];
  uint32_t n = 0;
  *out = (timing){.tactic = ""};
  if (!all_on_device(p)) return HONE_OK;
  double most = -1;
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].tactic && p->steps.ptr[i].desc.cost.flops > most) {
      most = p->steps.ptr[i].desc.cost.flops;
      out->tactic = p->steps.ptr[i].tactic->name;
    }
  hone_status status = hone_context_create(plan, &c, error);
  if (status == HONE_OK) status = hone_context_run(c, in, NULL, error);
  for (int i = 0; i < WARM + RUNS && status == HONE_OK && (i <= WARM || seconds_left(l) > 0); i++) {
    double s = 0;
    status = go_on(l, error);
    if (status == HONE_OK) status = hone_context_repeat(c, &s, error);
    if (status == HONE_OK && i >= WARM && s > 0) ran[n++] = s;
  }
  hone_context_destroy(c);
  if (status != HONE_OK || !n) return status;
  hn_ascend(ran, n);
  out->best = ran[0];
  out->spread = (hn_median(ran, n) - ran[0]) / ran[0];
  return HONE_OK;
}

/* One way of computing a probe. That a device has not got it is no failure. */
static hone_status time_way(const char *device, const probe *p, const char *way, const hone_tensor *a,
                            int64_t n, const limits *l, timing *out, hone_error *error) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hn_model *model = NULL;
  hone_error none = {0};
  const hone_engine_options options = {.device = device, .tactics = way};
  *out = (timing){.tactic = ""};
  hone_status status = hone_engine_create(&options, &engine, error);
  if (status == HONE_OK) status = model_of(p, n, &model, error);
  if (status == HONE_OK &&
      hone_plan_create(engine, model, &(hone_plan_options){.level = -1, .precision = p->precision}, &plan,
                       &none) == HONE_OK)
    status = time_plan(plan, a, l, out, error);
  hone_plan_destroy(plan);
  hn_model_destroy(model);
  hone_engine_destroy(engine);
  return status;
}

static hone_status measure(const char *device, const probe *p, const hone_tensor *a, int64_t n,
                           const limits *l, hone_device_roof *out, hone_error *error) {
  *out = (hone_device_roof){0};
  snprintf(out->name, sizeof out->name, "%s", p->roof);
  const double work = p->product ? PRODUCTS * 2e-9 * (double)n * (double)n * (double)n : 8e-9 * (double)n;
  double *best = p->product ? &out->gflops : &out->gbs;
  hone_status status = HONE_OK;
  for (size_t w = 0; w < WAYS && status == HONE_OK && seconds_left(l) > 0; w++) {
    timing t;
    if (w && (!p->product || p->codes)) break; /* no library has these */
    status = go_on(l, error);
    if (status == HONE_OK) status = time_way(device, p, ways[w], a, n, l, &t, error);
    if (status != HONE_OK || t.best <= 0 || work / t.best <= *best) continue;
    *best = work / t.best;
    out->spread = t.spread;
    snprintf(out->by, sizeof out->by, "%.47s", t.tactic);
  }
  return status;
}

/* ---- cache: one small text file per device and versions */

static bool cache_read(const char *key, hone_device_roofs *r) {
  hn_str lines = {0};
  uint32_t n = 0;
  bool ok = hn_roof_cache_read(key, &lines);
  for (const char *line = lines.ptr; ok && line && *line && n < HONE_MOST_ROOFS; n++) {
    hone_device_roof *roof = &r->roof[n];
    *roof = (hone_device_roof){0};
    ok = sscanf(line, "%7s %lf %lf %lf %47s", roof->name, &roof->gflops, &roof->gbs, &roof->spread,
                roof->by) == 5;
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  hn_str_free(&lines);
  r->count = ok && n == PROBES ? n : 0;
  return r->count > 0;
}

static void cache_write(const char *key, const hone_device_roofs *r) {
  hn_str s = {0};
  for (uint32_t i = 0; i < r->count; i++)
    hn_str_printf(&s, "%s %.6g %.6g %.3g %s\n", r->roof[i].name, r->roof[i].gflops, r->roof[i].gbs,
                  r->roof[i].spread, r->roof[i].by[0] ? r->roof[i].by : "-");
  hn_roof_cache_write(key, &s);
  hn_str_free(&s);
}

/* ---- size */

static hone_tensor operand(hone_dtype type, void *data, int64_t rows, int64_t columns) {
  hone_tensor t = {.data = data};
  t.desc = hone_desc(type, 2, (const int64_t[]){rows, columns});
  return t;
}

static uint8_t *random_codes(int64_t n, hone_error *error) {
  uint8_t *data = hn_malloc((size_t)(n * n));
  hn_rng rng = {2};
  if (!data) hn_fail_memory(error, (unsigned long long)(n * n), "measuring the device");
  for (int64_t i = 0; data && i < n * n; i++) data[i] = (uint8_t)(1 + 255 * hn_rng_unit(&rng));
  return data;
}

static float *random_matrices(int64_t n, uint32_t count, hone_error *error) {
  const int64_t all = n * n * count;
  float *data = hn_aligned(HN_MEM_ALIGN, (size_t)all * sizeof *data);
  if (!data) {
    hn_fail_memory(error, (unsigned long long)all * sizeof *data, "measuring the device");
    return NULL;
  }
  hn_rng rng = {1};
  const float scale = sqrtf(12.0f / (float)n); /* products keep their operands' size */
  for (int64_t i = 0; i < all; i++) data[i] = scale * (float)(hn_rng_unit(&rng) - 0.5);
  return data;
}

/* Far beyond the caches and long beside a launch, but no larger than memory and time allow: a size is tried
 * when what a smaller one took says that all probes of it fit into the time. An emulator would take hours for
 * what a GPU does in a millisecond, and its speed means nothing anyhow. */
static hone_status fitting_size(const char *device, const hone_device_info *info, const limits *l, int64_t *n,
                                hone_error *error) {
  static const int64_t sizes[] = {64, 512, 4096, 8192};
  static const probe f32 = {"f32", "f32", true, false};
  const size_t most = info->machine.emulated ? 1 : sizeof sizes / sizeof *sizes;
  hone_status status = HONE_OK;
  *n = sizes[0];
  for (size_t i = 0; i + 1 < most && status == HONE_OK; i++) {
    const double growth = (double)sizes[i + 1] / (double)sizes[i], next = (double)sizes[i + 1];
    timing t;
    if (next * next * 4 * 5 > (double)info->memory_free) break;
    float *data = random_matrices(sizes[i], 1, error);
    if (!data) return HONE_ERROR_MEMORY;
    const hone_tensor a = operand(HONE_DTYPE_F32, data, sizes[i], sizes[i]);
    status = time_way(device, &f32, NULL, &a, sizes[i], l, &t, error);
    hn_free(data);
    const double all = t.best * growth * growth * growth * (WARM + RUNS) * PROBES * WAYS;
    if (status != HONE_OK || t.best <= 0 || all > seconds_left(l)) break;
    *n = sizes[i + 1];
  }
  return status;
}

/* ---- */

static void key_of(const hone_device_info *info, char *buf, size_t size) {
  snprintf(buf, size, "hone-device-roofs 3 | %s | %s | sm_%u | %s | %s", hone_version(), info->name,
           info->machine.arch, info->driver, info->compiler);
}

/* What could not be measured is tried again the next time. */
static bool is_whole(const hone_device_roofs *r) {
  bool whole = r->count == PROBES;
  for (uint32_t i = 0; i < r->count; i++) whole &= r->roof[i].gflops > 0 || r->roof[i].gbs > 0;
  return whole;
}

hone_status hone_device_roofs_measure(const char *device, const hone_roofs_options *options,
                                      hone_device_roofs *out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_device_roofs_measure: out is NULL");
  static const hone_roofs_options usual = {0};
  const hone_roofs_options *o = options ? options : &usual;
  *out = (hone_device_roofs){0};
  hone_device_info info;
  hone_status status = hone_device_about(device, &info, error);
  if (status != HONE_OK) return status;
  snprintf(out->device, sizeof out->device, "%s", info.name);
  if (!info.machine.arch)
    return hn_fail(error, HONE_ERROR_USAGE, "device %s has no roofs of its own", device ? device : "cpu");
  char key[512];
  key_of(&info, key, sizeof key);
  if (!o->again && cache_read(key, out)) return HONE_OK;
  const double seconds = o->max_seconds > 0 ? o->max_seconds : USUAL_SECONDS;
  limits l = {o, hn_now_ns() + (uint64_t)(seconds * 1e9), 0, PROBES};
  int64_t n;
  status = fitting_size(device, &info, &l, &n, error);
  if (status == HONE_OK && n < LEAST_SIZE && !info.machine.emulated) { /* a launch's speed is no roof */
    for (; out->count < PROBES; out->count++)
      snprintf(out->roof[out->count].name, sizeof out->roof->name, "%s", probes[out->count].roof);
    return HONE_OK;
  }
  float *data = status == HONE_OK ? random_matrices(n, 2, error) : NULL;
  uint8_t *codes = data ? random_codes(n, error) : NULL;
  if (status == HONE_OK && !codes) status = HONE_ERROR_MEMORY;
  for (; l.done < PROBES && status == HONE_OK; l.done++) {
    const probe *p = &probes[l.done];
    const hone_tensor a = p->codes     ? operand(HONE_DTYPE_U8, codes, n, n)
                          : p->product ? operand(HONE_DTYPE_F32, data, n, n)
                                       : operand(HONE_DTYPE_F32, data, 2 * n * n / 1024, 1024);
    status = measure(device, p, &a, p->product ? n : 2 * n * n, &l, &out->roof[out->count++], error);
  }
  hn_free(codes);
  hn_free(data);
  if (status == HONE_OK && is_whole(out)) cache_write(key, out);
  return status;
}

void hone_device_roofs_raise(const char *device, hone_device_roofs *roofs, const hone_device_roofs *seen) {
  hone_device_info info;
  hone_error none = {0};
  bool more = false;
  char key[512];
  if (!roofs || !seen) return;
  for (uint32_t i = 0; i < roofs->count && i < HONE_MOST_ROOFS; i++)
    for (uint32_t k = 0; k < seen->count && k < HONE_MOST_ROOFS; k++) {
      const hone_device_roof *s = &seen->roof[k];
      hone_device_roof *known = &roofs->roof[i];
      if (strcmp(known->name, s->name) != 0 || (s->gflops <= known->gflops && s->gbs <= known->gbs)) continue;
      *known = *s;
      more = true;
    }
  if (!more || !is_whole(roofs) || hone_device_about(device, &info, &none) != HONE_OK) return;
  key_of(&info, key, sizeof key);
  cache_write(key, roofs);
}
