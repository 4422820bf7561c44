#include "backends/cuda/driver/modules.h"

#include "backends/cuda/driver/cubins.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function {
  char entry[80];
  CUfunction handle;
  uint32_t shared; /* dynamic shared memory that was asked for so far */
  size_t args;     /* bytes of its parameter; 0: not known */
} function;

typedef enum state { BUILDING, READY, FAILED } state;

struct hn_cuda_module {
  const char *text; /* stem: a literal of the tactic's */
  char *prefix;
  state state;
  CUmodule handle;
  hone_error failure;
  HN_VEC(function) functions;
};

/* ------------------------------------------------------------------ embedded texts */

static const hn_cuda_file *file_named(const char *name, size_t len) {
  for (size_t i = 0; i < hn_cuda_file_count; i++)
    if (strlen(hn_cuda_files[i].name) == len && memcmp(hn_cuda_files[i].name, name, len) == 0)
      return &hn_cuda_files[i];
  return NULL;
}

static const hn_cuda_file *file_of_stem(const char *stem) {
  static const char *const endings[] = {".cu", ".cuh", ".h"};
  char name[128];
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const int n = snprintf(name, sizeof name, "%s%s", stem, endings[i]);
    const hn_cuda_file *f = n > 0 && n < (int)sizeof name ? file_named(name, (size_t)n) : NULL;
    if (f) return f;
  }
  return NULL;
}

const char *hn_cuda_text(const char *stem) {
  const hn_cuda_file *f = file_of_stem(stem);
  return f ? f->text : NULL;
}

enum { HEADERS = 64 };

typedef struct headers {
  int n;
  const char *name[HEADERS], *text[HEADERS];
} headers;

/* Every embedded file that the text includes, directly or not. What is not embedded is left to the compiler
 * to complain about, if it ever comes to that line. */
static void add_headers(headers *h, const char *text) {
  static const char word[] = "#include \"";
  for (const char *p = text; (p = strstr(p, word));) {
    p += sizeof word - 1;
    const hn_cuda_file *f = file_named(p, strcspn(p, "\"\n"));
    bool there = !f || h->n == HEADERS;
    for (int i = 0; f && i < h->n; i++) there |= h->text[i] == f->text;
    if (there) continue;
    h->name[h->n] = f->name;
    h->text[h->n++] = f->text;
    add_headers(h, f->text);
  }
}

/* ------------------------------------------------------------------ NVRTC */

static hone_status rtc_fail(hn_device *d, nvrtcResult r, const char *call, hone_error *error) {
  return hn_fail(error, r == NVRTC_ERROR_OUT_OF_MEMORY ? HONE_ERROR_MEMORY : HONE_ERROR_INTERNAL, "%s: %s",
                 call, d->rtc.nvrtcGetErrorString(r));
}

/* The first line of the compiler's log that tells of an error. */
static hone_status log_error(hn_device *d, nvrtcProgram program, nvrtcResult r, const char *name,
                             hone_error *error) {
  size_t size = 0;
  char *log = NULL;
  if (d->rtc.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1)
    log = hn_calloc(size + 1, 1);
  if (!log || d->rtc.nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) {
    hn_free(log);
    rtc_fail(d, r, "nvrtcCompileProgram", error);
    hn_error_where(error, "kernel text %s", name);
    return error ? error->status : HONE_ERROR_INTERNAL;
  }
  const char *at = strstr(log, "error");
  while (at && at > log && at[-1] != '\n') at--;
  if (!at) at = log;
  const size_t len = strcspn(at, "\n");
  hn_fail(error, HONE_ERROR_INTERNAL, "NVRTC: %.*s", (int)(len > 300 ? 300 : len), at);
  hn_error_where(error, "kernel text %s", name);
  if (at[len]) hn_error_got(error, "%.*s", (int)strcspn(at + len + 1, "\n"), at + len + 1);
  hn_free(log);
  return HONE_ERROR_INTERNAL;
}

static hone_status compile(hn_device *d, const char *source, const char *name, const headers *h, void **cubin,
                           size_t *size, hone_error *error) {
  nvrtcProgram program = NULL;
  /* Not the file's own name: NVRTC takes a header of the program's name to be the program. */
  nvrtcResult r = d->rtc.nvrtcCreateProgram(&program, source, "hone.cu", h->n, h->text, h->name);
  if (r != NVRTC_SUCCESS) return rtc_fail(d, r, "nvrtcCreateProgram", error);
  char arch[64];
  snprintf(arch, sizeof arch, "--gpu-architecture=%s", d->target);
  const char *const options[] = {arch, "--std=c++17", "-default-device"};
  hone_status status = HONE_OK;
  r = d->rtc.nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
  if (r != NVRTC_SUCCESS) status = log_error(d, program, r, name, error);
  if (status == HONE_OK) {
    r = d->ptx ? d->rtc.nvrtcGetPTXSize(program, size) : d->rtc.nvrtcGetCUBINSize(program, size);
    if (r != NVRTC_SUCCESS) status = rtc_fail(d, r, d->ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", error);
  }
  if (status == HONE_OK && !(*cubin = hn_malloc(*size))) status = hn_fail_memory(error, *size, "a kernel");
  if (status == HONE_OK) {
    r = d->ptx ? d->rtc.nvrtcGetPTX(program, *cubin) : d->rtc.nvrtcGetCUBIN(program, *cubin);
    if (r != NVRTC_SUCCESS) status = rtc_fail(d, r, d->ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", error);
  }
  d->rtc.nvrtcDestroyProgram(&program);
  return status;
}

/* ------------------------------------------------------------------ modules */

hn_cuda_modules *hn_cuda_modules_create(hn_device *d) {
  const char *given = getenv("HONE_KERNEL_CACHE");
  char base[900];
  hn_cuda_modules *m = hn_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->device = d;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->built, NULL);
  if (given && *given && strcmp(given, "off") != 0)
    snprintf(m->folder, sizeof m->folder, "%s", given);
  else if ((!given || !*given) && hn_cache_dir(base, sizeof base))
    snprintf(m->folder, sizeof m->folder, "%s/cuda", base);
  return m;
}

static void free_module(hn_device *d, hn_cuda_module *m) {
  if (m->handle) d->cu.cuModuleUnload(m->handle);
  hn_vec_free(&m->functions);
  hn_free(m->prefix);
  hn_free(m);
}

void hn_cuda_modules_destroy(hn_cuda_modules *m) {
  if (!m) return;
  for (size_t i = 0; i < m->all.len; i++) free_module(m->device, m->all.ptr[i]);
  hn_vec_free(&m->all);
  pthread_cond_destroy(&m->built);
  pthread_mutex_destroy(&m->lock);
  hn_free(m);
}

/* A thread that captures may want a kernel for the first time: loading it is nothing that could be recorded,
 * so the capture, which would be broken by it, does not look. */
static hone_status load(hn_device *d, hn_cuda_module *m, const void *cubin, hone_error *error) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  hone_status status = HN_CU(d, error, cuThreadExchangeStreamCaptureMode, &mode);
  if (status != HONE_OK) return status;
  status = HN_CU(d, error, cuModuleLoadData, &m->handle, cubin);
  d->cu.cuThreadExchangeStreamCaptureMode(&mode);
  if (status != HONE_OK) hn_error_where(error, "kernel text %s", m->text);
  return status;
}

/* Through the folder of cubins where it has this one, else through the compiler. */
static hone_status build(hn_cuda_modules *all, hn_cuda_module *m, hone_error *error) {
  hn_device *d = all->device;
  const hn_cuda_file *file = file_of_stem(m->text);
  if (!file) return hn_fail(error, HONE_ERROR_INTERNAL, "there is no kernel text '%s'", m->text);
  headers h = {0};
  hn_str source = {0};
  void *cubin = NULL;
  size_t size = 0;
  uint64_t key[2] = {0};
  hone_status status = HONE_OK;
  if (*m->prefix) hn_str_printf(&source, "#line 1 \"prefix\"\n%s\n", m->prefix);
  hn_str_printf(&source, "#line 1 \"%s\"\n", file->name);
  hn_str_puts(&source, file->text);
  if (source.failed) {
    status = hn_fail_memory(error, strlen(file->text), "a kernel's text");
    goto done;
  }
  add_headers(&h, source.ptr);
  hn_cubin_hash(key, source.ptr);
  for (int i = 0; i < h.n; i++) hn_cubin_hash(key, h.name[i]), hn_cubin_hash(key, h.text[i]);
  char tool[64];
  snprintf(tool, sizeof tool, "%s NVRTC %d.%d", d->target, d->rtc_major, d->rtc_minor);
  hn_cubin_hash(key, tool);
  if (hn_cubin_read(d, all->folder, key, &cubin, &size)) {
    hone_error why = {0};
    if (load(d, m, cubin, &why) == HONE_OK) {
      all->loaded++;
      goto done;
    }
    if (d->lost) { /* not the file's fault */
      if (error) *error = why;
      status = why.status;
      goto done;
    }
    hn_cuda_warn(d, "kernel cache: the driver refuses the kept %s (%.150s): compiled again", file->name,
                 why.what);
    hn_free(cubin);
    cubin = NULL;
  }
  status = compile(d, source.ptr, file->name, &h, &cubin, &size, error);
  if (status == HONE_OK) all->compiled++;
  if (status == HONE_OK) status = load(d, m, cubin, error);
  if (status == HONE_OK) hn_cubin_write(d, all->folder, key, cubin, size);
done:
  hn_free(cubin);
  hn_str_free(&source);
  return status;
}

/* With the lock held. NULL: no memory. */
static hn_cuda_module *find(hn_cuda_modules *all, const hn_cuda_kernel *k, bool *found) {
  const char *prefix = k->prefix ? k->prefix : "";
  for (size_t i = 0; i < all->all.len; i++) {
    hn_cuda_module *m = all->all.ptr[i];
    if (strcmp(m->text, k->text) == 0 && strcmp(m->prefix, prefix) == 0) {
      *found = true;
      return m;
    }
  }
  *found = false;
  hn_cuda_module *m = hn_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->text = k->text;
  m->prefix = hn_strdup(prefix);
  if (m->prefix && hn_vec_push(&all->all, m)) return m;
  hn_free(m->prefix);
  hn_free(m);
  return NULL;
}

/* With the lock held; it is let go of while the module is built. */
static hone_status get_module(hn_cuda_modules *all, const hn_cuda_kernel *k, hn_cuda_module **out,
                              hone_error *error) {
  bool found;
  hn_cuda_module *m = find(all, k, &found);
  if (!m) return hn_fail_memory(error, sizeof *m, "a kernel");
  if (found) {
    while (m->state == BUILDING) pthread_cond_wait(&all->built, &all->lock);
    /* What does not compile never will; anything else (no memory) may go better now. */
    if (m->state == FAILED && m->failure.status == HONE_ERROR_INTERNAL) {
      if (error) *error = m->failure;
      return m->failure.status;
    }
  }
  if (m->state != READY) {
    hone_error why = {0};
    m->state = BUILDING;
    pthread_mutex_unlock(&all->lock);
    hone_status status = build(all, m, &why);
    pthread_mutex_lock(&all->lock);
    m->state = status == HONE_OK ? READY : FAILED;
    m->failure = why;
    pthread_cond_broadcast(&all->built);
    if (status != HONE_OK) {
      if (error) *error = why;
      return status;
    }
  }
  *out = m;
  return HONE_OK;
}

static hone_status get_function(hn_device *d, hn_cuda_module *m, const char *entry, function **out,
                                hone_error *error) {
  for (size_t i = 0; i < m->functions.len; i++)
    if (strcmp(m->functions.ptr[i].entry, entry) == 0) {
      *out = &m->functions.ptr[i];
      return HONE_OK;
    }
  function f = {0};
  if (snprintf(f.entry, sizeof f.entry, "%s", entry) >= (int)sizeof f.entry)
    return hn_fail(error, HONE_ERROR_INTERNAL, "kernel name '%.60s...' is too long", entry);
  hone_status status = HN_CU(d, error, cuModuleGetFunction, &f.handle, m->handle, entry);
  if (status != HONE_OK) {
    hn_error_where(error, "kernel %s of %s", entry, m->text);
    return status;
  }
  size_t offset = 0;
  if (!d->cu.cuFuncGetParamInfo || d->cu.cuFuncGetParamInfo(f.handle, 0, &offset, &f.args) != CUDA_SUCCESS)
    f.args = 0;
  if (!hn_vec_push(&m->functions, f)) return hn_fail_memory(error, sizeof f, "a kernel");
  *out = &m->functions.ptr[m->functions.len - 1];
  return HONE_OK;
}

hone_status hn_cuda_module_function(hn_cuda_modules *all, const hn_cuda_kernel *k, uint32_t shared,
                                    size_t args, CUfunction *out, hone_error *error) {
  hn_device *d = all->device;
  hn_cuda_module *m = NULL;
  function *f = NULL;
  hone_status status = hn_cuda_enter(d, error);
  if (status != HONE_OK) return status;
  pthread_mutex_lock(&all->lock);
  status = get_module(all, k, &m, error);
  if (status == HONE_OK) status = get_function(d, m, k->entry, &f, error);
  if (status == HONE_OK && f->args && f->args != args)
    status = hn_fail(error, HONE_ERROR_INTERNAL, "kernel %s of %s takes %zu bytes of arguments, not %zu",
                     k->entry, k->text, f->args, args);
  if (status == HONE_OK && shared > 48 << 10 && shared > f->shared) {
    status = HN_CU(d, error, cuFuncSetAttribute, f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   (int)shared);
    if (status == HONE_OK)
      f->shared = shared;
    else
      hn_error_where(error, "kernel %s of %s with %u bytes of shared memory", k->entry, k->text, shared);
  }
  if (status == HONE_OK) *out = f->handle;
  pthread_mutex_unlock(&all->lock);
  return status;
}
