#include "base/os.h"

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

/* Opens `path` below `folder` without following links; walks component by component, so that it works on
 * every kernel. */
static int open_beneath(const char *folder, const char *path) {
  if (path[0] == '/' || !path[0]) return errno = EXDEV, -1;
  int dir = open(*folder ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  char part[256];
  while (dir >= 0) {
    size_t n = strcspn(path, "/");
    const char *rest = path + n + strspn(path + n, "/");
    int next = -1;
    if (n >= sizeof part)
      errno = ENAMETOOLONG;
    else {
      memcpy(part, path, n);
      part[n] = 0;
      if (strcmp(part, "..") == 0)
        errno = EXDEV;
      else
        next = openat(dir, part,
                      *rest ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
                            : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    }
    int keep = errno;
    close(dir);
    errno = keep;
    if (next < 0 || !*rest) return next;
    dir = next;
    path = rest;
  }
  return -1;
}

hone_status hn_file_map(const char *path, const char *beneath, hn_file *out, hone_error *error) {
  *out = (hn_file){0};
  hone_status status = HONE_OK;
  int fd = beneath ? open_beneath(beneath, path) : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat st;
  if (fd < 0) {
    int e = errno;
    if (beneath && (e == ELOOP || e == EXDEV || e == ENOTDIR)) {
      status = hn_fail(error, HONE_ERROR_INPUT,
                       "external data may only be a regular file below the model's folder");
      hn_error_got(error, "'%s' (%s)", path,
                   e == EXDEV ? "a path that leaves the folder" : "a link or no folder");
    } else {
      bool theirs =
          e == ENOENT || e == EACCES || e == EPERM || e == ENOTDIR || e == ELOOP || e == ENAMETOOLONG;
      status = hn_fail(error, theirs ? HONE_ERROR_INPUT : HONE_ERROR_IO, "cannot open: %s", strerror(e));
      if (e == ENOENT || e == ENOTDIR) hn_error_hint(error, "check the path");
      if (e == EACCES || e == EPERM)
        hn_error_hint(error, "you may not read this file: check its permissions");
    }
    goto done;
  }
  if (fstat(fd, &st) != 0) {
    status = hn_fail(error, HONE_ERROR_IO, "cannot stat: %s", strerror(errno));
    goto done;
  }
  if (!S_ISREG(st.st_mode)) {
    status = hn_fail(error, HONE_ERROR_INPUT, "not a regular file");
    hn_error_got(error, "%s", S_ISDIR(st.st_mode) ? "a folder" : "a device, pipe or socket");
    goto done;
  }
  if (beneath && st.st_nlink > 1) {
    status = hn_fail(error, HONE_ERROR_INPUT, "external data may not be a hard link");
    hn_error_got(error, "'%s' with %lu links", path, (unsigned long)st.st_nlink);
    goto done;
  }
  out->size = (size_t)st.st_size;
  if (out->size == 0) {
    out->data = (const uint8_t *)"";
    goto done;
  }
  void *p = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED)
    status = hn_fail(error, HONE_ERROR_MEMORY, "cannot map %zu bytes: %s", out->size, strerror(errno));
  else
    out->data = p;
done:
  if (fd >= 0) close(fd);
  if (status != HONE_OK) {
    *out = (hn_file){0};
    if (!beneath) hn_error_where(error, "%s", path);
  }
  return status;
}

void hn_file_unmap(hn_file *file) {
  if (file->data && file->size) munmap((void *)file->data, file->size);
  *file = (hn_file){0};
}

void hn_file_drop(const hn_file *file, size_t at, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), from = at / page * page;
  if (at >= file->size || !size) return;
  if (size > file->size - at) size = file->size - at;
  madvise((char *)(uintptr_t)file->data + from, at + size - from, MADV_DONTNEED);
}

static hone_status writer_failed(const hn_writer *w, const char *doing, int e, hone_error *error) {
  hone_status status = hn_fail(error, HONE_ERROR_IO, "cannot %s: %s", doing, strerror(e));
  hn_error_where(error, "%s", w->path);
  if (e == ENOENT) hn_error_hint(error, "the folder does not exist");
  if (e == ENOSPC) hn_error_hint(error, "free some disk space; nothing was left behind");
  return status;
}

hone_status hn_writer_open(const char *path, hn_writer *w, hone_error *error) {
  *w = (hn_writer){.fd = -1};
  size_t n = strlen(path) + 32;
  w->path = hn_strdup(path);
  w->temp = hn_malloc(n);
  hone_status status = HONE_OK;
  if (!w->path || !w->temp) {
    status = hn_fail_memory(error, n, "a file name");
  } else {
    /* A device or pipe is written to, never replaced by a file: then temp stays "". */
    struct stat st;
    bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    w->temp[0] = 0;
    if (!in_place) snprintf(w->temp, n, "%s.tmp%ld", path, (long)getpid());
    w->fd = in_place ? open(path, O_WRONLY | O_CLOEXEC)
                     : open(w->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) status = writer_failed(w, "create", errno, error);
  }
  if (status != HONE_OK) hn_writer_abandon(w);
  return status;
}

hone_status hn_writer_write(hn_writer *w, const void *data, size_t size, hone_error *error) {
  for (const char *p = data; size;) {
    ssize_t n = write(w->fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return writer_failed(w, "write", n == 0 ? ENOSPC : errno, error);
    p += n;
    size -= (size_t)n;
  }
  return HONE_OK;
}

void hn_writer_abandon(hn_writer *w) {
  if (w->fd >= 0) {
    close(w->fd);
    if (w->temp[0]) unlink(w->temp);
  }
  hn_free(w->path);
  hn_free(w->temp);
  *w = (hn_writer){.fd = -1};
}

hone_status hn_writer_commit(hn_writer *w, hone_error *error) {
  hone_status status = HONE_OK;
  if (close(w->fd) != 0)
    status = writer_failed(w, "write", errno, error);
  else if (w->temp[0] && rename(w->temp, w->path) != 0)
    status = writer_failed(w, "rename", errno, error);
  if (status != HONE_OK && w->temp[0]) unlink(w->temp);
  w->fd = -1;
  hn_writer_abandon(w);
  return status;
}

hone_status hn_file_write(const char *path, const void *data, size_t size, hone_error *error) {
  hn_writer w;
  hone_status status = hn_writer_open(path, &w, error);
  if (status != HONE_OK) return status;
  status = hn_writer_write(&w, data, size, error);
  if (status == HONE_OK) return hn_writer_commit(&w, error);
  hn_writer_abandon(&w);
  return status;
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

size_t hn_cache_size(int level) {
  for (int i = 0; i < 8; i++) {
    char path[96], text[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
    if (!read_text(path, text, sizeof text)) break;
    if (atoi(text) != level) continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
    if (!read_text(path, text, sizeof text) || text[0] == 'I') continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    if (!read_text(path, text, sizeof text)) continue;
    char *end;
    size_t n = strtoul(text, &end, 10);
    return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
  }
  return 0;
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

void hn_advise_huge(void *p, size_t size) { madvise(p, size, MADV_HUGEPAGE); }

const void *hn_zeros(size_t size) {
  void *p = mmap(NULL, size ? size : 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void hn_zeros_free(const void *p, size_t size) {
  if (p) munmap((void *)(uintptr_t)p, size ? size : 1);
}

void hn_release_pages(void *p, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)p + page - 1) / page * page,
            to = ((uintptr_t)p + size) / page * page;
  if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

uint64_t hn_rss_bytes(void) { return proc_field("/proc/self/status", "VmRSS:"); }
uint64_t hn_memory_available(void) { return proc_field("/proc/meminfo", "MemAvailable:"); }

/* Not ru_maxrss: that survives exec, and then holds the peak of whoever started the process. */
uint64_t hn_rss_peak_bytes(void) { return proc_field("/proc/self/status", "VmHWM:"); }

void *hn_library_open(const char *name, hone_error *error) {
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) hn_fail(error, HONE_ERROR_MISSING, "cannot load library %s: %s", name, dlerror());
  return lib;
}

void *hn_library_symbol(void *lib, const char *symbol) { return lib ? dlsym(lib, symbol) : NULL; }

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
