#include "base/os.h"

#include "base/cgroup.h"
#include "base/error.h"
#include "base/mem.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t hn_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t hn_now_raw_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void hn_sleep_ms(unsigned ms) {
  struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
  nanosleep(&t, NULL);
}

bool hn_path_exists(const char *path) { return access(path, F_OK) == 0; }

hone_status hn_mkdirs(const char *path, hone_error *error) {
  char buf[4096];
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof buf) return hn_fail(error, HONE_ERROR_USAGE, "bad folder name '%.64s'", path);
  memcpy(buf, path, n + 1);
  for (char *p = buf + 1;; p++) {
    if (*p != '/' && *p) continue;
    char c = *p;
    *p = 0;
    struct stat st;
    if (mkdir(buf, 0777) != 0 && !(errno == EEXIST && stat(buf, &st) == 0 && S_ISDIR(st.st_mode))) {
      hone_status status = hn_fail(error, HONE_ERROR_IO, "cannot create folder: %s", strerror(errno));
      hn_error_where(error, "%s", buf);
      return status;
    }
    if (!c) return HONE_OK;
    *p = c;
  }
}

bool hn_cache_dir(char *buf, size_t size) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = xdg && *xdg     ? snprintf(buf, size, "%s/hone", xdg)
          : home && *home ? snprintf(buf, size, "%s/.cache/hone", home)
                          : -1;
  return n > 0 && (size_t)n < size;
}

uint32_t hn_cpu_count(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return (uint32_t)CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

/* Less than the quota rather than more: who has used it up stands still until the next period begins. */
uint32_t hn_thread_count(void) {
  const uint32_t n = hn_cpu_count();
  const double granted = hn_cgroup_processors("");
  return granted <= 0 || granted >= n ? n : granted < 1 ? 1 : (uint32_t)granted;
}

double hn_cpu_busy_seconds(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  FILE *f = fopen("/proc/stat", "re");
  double ticks = 0;
  bool found = false;
  char line[512];
  while (f && fgets(line, sizeof line, f) && strncmp(line, "cpu", 3) == 0) {
    int cpu;
    double v[8] = {0}; /* user nice system idle iowait irq softirq steal */
    if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, v, v + 1, v + 2, v + 3, v + 4, v + 5,
               v + 6, v + 7) < 5)
      continue; /* the sum of all, "cpu  " */
    if (cpu < 0 || cpu >= CPU_SETSIZE || (CPU_COUNT(&set) && !CPU_ISSET((size_t)cpu, &set))) continue;
    ticks += v[0] + v[1] + v[2] + v[5] + v[6] + v[7];
    found = true;
  }
  if (f) fclose(f);
  return found ? ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

double hn_cpu_own_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t hn_involuntary_switches(void) {
  struct rusage use;
  return getrusage(RUSAGE_SELF, &use) == 0 && use.ru_nivcsw > 0 ? (uint64_t)use.ru_nivcsw : 0;
}

double hn_run_delay_seconds(void) {
  DIR *tasks = opendir("/proc/self/task");
  double ns = -1e9;
  for (const struct dirent *e; tasks && (e = readdir(tasks));) {
    char path[64];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", e->d_name);
    FILE *f = fopen(path, "re"); /* on the processor, waiting for one, times that it got one */
    double ran, waited;
    if (!f) continue;
    if (fscanf(f, "%lf %lf", &ran, &waited) == 2) ns = (ns < 0 ? 0 : ns) + waited;
    fclose(f);
  }
  if (tasks) closedir(tasks);
  return ns / 1e9;
}

static bool read_text(const char *path, char *buf, size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return false;
  size_t n = fread(buf, 1, size - 1, f);
  buf[n] = 0;
  fclose(f);
  return n > 0;
}

/* The data cache of a level of one processor: its bytes, and a number that processors which share it have in
 * common (-1: not told). 0: the system does not say. */
static size_t cache_of(int cpu, int level, int *id) {
  for (int i = 0; i < 8; i++) {
    char path[96], text[64];
    const int n = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu, i);
    snprintf(path + n, sizeof path - (size_t)n, "level");
    if (!read_text(path, text, sizeof text)) break;
    if (atoi(text) != level) continue;
    snprintf(path + n, sizeof path - (size_t)n, "type");
    if (!read_text(path, text, sizeof text) || text[0] == 'I') continue;
    snprintf(path + n, sizeof path - (size_t)n, "id");
    *id = read_text(path, text, sizeof text) ? atoi(text) : -1;
    snprintf(path + n, sizeof path - (size_t)n, "size");
    if (!read_text(path, text, sizeof text)) continue;
    char *end;
    size_t bytes = strtoul(text, &end, 10);
    return *end == 'K' ? bytes << 10 : *end == 'M' ? bytes << 20 : bytes;
  }
  return 0;
}

size_t hn_cache_size(int level) {
  int id;
  return cache_of(0, level, &id);
}

size_t hn_cache_total(int level) {
  enum { MOST = 1024 };
  static const cpu_set_t none;
  cpu_set_t set = none;
  int seen[MOST], n = 0;
  size_t total = 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return hn_cache_size(level);
  for (int cpu = 0; cpu < CPU_SETSIZE && n < MOST; cpu++) {
    int id = -1, k = 0;
    const size_t bytes = CPU_ISSET(cpu, &set) ? cache_of(cpu, level, &id) : 0;
    while (k < n && seen[k] != id) k++;
    if (!bytes || k < n) continue; /* without numbers, all are one */
    seen[n++] = id;
    total += bytes;
  }
  return total ? total : hn_cache_size(level);
}

void hn_cpu_name(char *buf, size_t size) {
  char text[4096];
  snprintf(buf, size, "unknown CPU");
  if (!read_text("/proc/cpuinfo", text, sizeof text)) return;
  char *p = strstr(text, "model name");
  if (!p || !(p = strchr(p, ':'))) return;
  p += strspn(p, ": \t");
  p[strcspn(p, "\n")] = 0;
  snprintf(buf, size, "%s", p);
}

static uint64_t proc_field(const char *path, const char *field) {
  char text[8192];
  if (!read_text(path, text, sizeof text)) return 0;
  char *p = strstr(text, field);
  return p ? strtoull(p + strlen(field), NULL, 10) << 10 : 0;
}

/* Where whole pages lie in [p, p + size): false when there is none. */
static bool pages_in(void *p, size_t size, void **from, size_t *bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = ((uintptr_t)p + page - 1) / page * page,
                  to = ((uintptr_t)p + size) / page * page;
  *from = (void *)at;
  *bytes = at < to ? to - at : 0;
  return at < to;
}

void hn_advise_huge(void *p, size_t size) {
  void *from;
  size_t bytes;
  if (pages_in(p, size, &from, &bytes)) madvise(from, bytes, MADV_HUGEPAGE);
}

void hn_bring_pages(void *p, size_t size) {
#ifdef MADV_POPULATE_WRITE
  void *from;
  size_t bytes;
  if (pages_in(p, size, &from, &bytes)) madvise(from, bytes, MADV_POPULATE_WRITE);
#else
  (void)p, (void)size;
#endif
}

void *hn_map_pages(size_t align, size_t size) {
  if (size > SIZE_MAX - align) return NULL;
  char *p = mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  const size_t before = (align - (uintptr_t)p % align) % align;
  if (before) munmap(p, before);
  if (before < align) munmap(p + before + size, align - before);
  return p + before;
}

void hn_unmap_pages(void *p, size_t size) { munmap(p, size); }

const void *hn_zeros(size_t size) {
  void *p = mmap(NULL, size ? size : 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void hn_zeros_free(const void *p, size_t size) {
  if (p) munmap((void *)(uintptr_t)p, size ? size : 1);
}

void hn_release_pages(void *p, size_t size) {
  void *from;
  size_t bytes;
  if (pages_in(p, size, &from, &bytes)) madvise(from, bytes, MADV_DONTNEED);
}

uint64_t hn_rss_bytes(void) { return proc_field("/proc/self/status", "VmRSS:"); }
uint64_t hn_memory_available(void) { return proc_field("/proc/meminfo", "MemAvailable:"); }

uint64_t hn_memory_limit(void) { return hn_cgroup_memory(""); }

/* Not ru_maxrss: that survives exec, and then holds the peak of whoever started the process. */
uint64_t hn_rss_peak_bytes(void) { return proc_field("/proc/self/status", "VmHWM:"); }

void *hn_library_open(const char *name, hone_error *error) {
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) hn_fail(error, HONE_ERROR_MISSING, "cannot load library %s: %s", name, dlerror());
  return lib;
}

void *hn_library_symbol(void *lib, const char *symbol) { return lib ? dlsym(lib, symbol) : NULL; }

void *hn_loaded_symbol(const char *symbol) { return dlsym(RTLD_DEFAULT, symbol); }

void hn_library_close(void *lib) {
  if (lib) dlclose(lib);
}

bool hn_own_folder(char *buf, size_t size) {
  Dl_info in;
  char path[4096];
  /* For an executable the loader has argv[0], which need not be a path; the link is right for those. */
  if (!dladdr((void *)(uintptr_t)hn_own_folder, &in) || !in.dli_fname || in.dli_fname[0] != '/' ||
      !strstr(in.dli_fname, ".so")) {
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return false;
    path[n] = 0;
  } else {
    snprintf(path, sizeof path, "%s", in.dli_fname);
  }
  char *slash = strrchr(path, '/');
  if (!slash) return false;
  *slash = 0;
  return (size_t)snprintf(buf, size, "%s", path) < size;
}
