/* The one way in: every file that hone reads is opened here. Only regular files, never waiting for anybody,
 * and never more of them than a file of its kind can have. */
#include "base/os.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

/* Far above what anybody has, far below what a sparse file can pretend. What is mapped costs memory only
 * where it is read; what is read whole has the narrow bounds. */
static const struct {
  const char *name;
  uint64_t most;
  const char *pipe; /* what to do with a pipe instead */
} kinds[] = {
    [HN_FILE_MODEL] = {"a model", 64 * GIB, NULL},
    [HN_FILE_WEIGHTS] = {"external data", 4 * TIB, NULL},
    [HN_FILE_PLAN] = {"a saved plan", 4 * TIB, NULL},
    [HN_FILE_DATA] = {"an input", 256 * GIB, NULL},
    [HN_FILE_PROFILE] = {"a profile", 256 * GIB, "- reads standard input"},
    [HN_FILE_DATABASE] = {"a database", 256 * GIB, NULL},
    [HN_FILE_CACHE] = {"a cache", 256 * MIB, NULL},
    [HN_FILE_TEXT] = {"a text", 64 * MIB, NULL},
};

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
                            : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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

static hone_status cannot_open(const char *path, const char *beneath, int e, hone_error *error) {
  if (beneath && (e == ELOOP || e == EXDEV || e == ENOTDIR)) {
    hn_fail(error, HONE_ERROR_INPUT, "external data may only be a regular file below the model's folder");
    hn_error_got(error, "'%s' (%s)", path,
                 e == EXDEV ? "a path that leaves the folder" : "a link or no folder");
    return HONE_ERROR_INPUT;
  }
  const bool theirs =
      e == ENOENT || e == EACCES || e == EPERM || e == ENOTDIR || e == ELOOP || e == ENAMETOOLONG;
  const hone_status status =
      hn_fail(error, theirs ? HONE_ERROR_INPUT : HONE_ERROR_IO, "cannot open: %s", strerror(e));
  if (e == ENOENT || e == ENOTDIR)
    hn_error_hint(error, beneath ? "put the file that came with the model beside it" : "check the path");
  if (e == EACCES || e == EPERM) hn_error_hint(error, "you may not read this file: check its permissions");
  return status;
}

static const char *name_of_type(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static hone_status not_regular(mode_t mode, hn_file_kind kind, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "not a regular file");
  hn_error_got(error, "%s", name_of_type(mode));
  if (S_ISFIFO(mode) && kinds[kind].pipe) hn_error_hint(error, "%s", kinds[kind].pipe);
  return HONE_ERROR_INPUT;
}

static hone_status check(int fd, const char *path, const char *beneath, hn_file_kind kind, uint64_t *size,
                         hone_error *error) {
  struct stat st;
  if (fstat(fd, &st) != 0) return hn_fail(error, HONE_ERROR_IO, "cannot stat: %s", strerror(errno));
  if (!S_ISREG(st.st_mode)) return not_regular(st.st_mode, kind, error);
  if (beneath && st.st_nlink > 1) {
    hn_fail(error, HONE_ERROR_INPUT, "external data may not be a hard link");
    hn_error_got(error, "'%s' with %lu links", path, (unsigned long)st.st_nlink);
    return HONE_ERROR_INPUT;
  }
  if ((uint64_t)st.st_size > kinds[kind].most) {
    hn_fail(error, HONE_ERROR_INPUT, "too large for %s", kinds[kind].name);
    hn_error_expected(error, "at most %llu bytes", (unsigned long long)kinds[kind].most);
    hn_error_got(error, "%llu bytes", (unsigned long long)st.st_size);
    return HONE_ERROR_INPUT;
  }
  *size = (uint64_t)st.st_size;
  return HONE_OK;
}

/* Opening a device can do something by itself (rewind a tape, raise a line): those are not even opened. */
static bool is_special(const char *path, mode_t *mode) {
  struct stat st;
  *mode = stat(path, &st) == 0 ? st.st_mode : 0;
  return *mode && !S_ISREG(*mode);
}

hone_status hn_file_open(const char *path, const char *beneath, hn_file_kind kind, int *out, uint64_t *size,
                         hone_error *error) {
  hone_status status = HONE_OK;
  mode_t mode;
  int fd = -1;
  *size = 0;
  if (!beneath && is_special(path, &mode)) {
    status = not_regular(mode, kind, error);
  } else {
    fd = beneath ? open_beneath(beneath, path) : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    status = fd < 0 ? cannot_open(path, beneath, errno, error) : check(fd, path, beneath, kind, size, error);
  }
  if (status != HONE_OK) {
    if (fd >= 0) close(fd);
    fd = -1;
    if (!beneath) hn_error_where(error, "%s", path);
  }
  *out = fd;
  return status;
}

hone_status hn_file_map(const char *path, const char *beneath, hn_file_kind kind, hn_file *out,
                        hone_error *error) {
  int fd;
  uint64_t size;
  *out = (hn_file){0};
  hone_status status = hn_file_open(path, beneath, kind, &fd, &size, error);
  if (status != HONE_OK) return status;
  void *p = size ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : (void *)(uintptr_t) "";
  if (p == MAP_FAILED) {
    status = hn_fail(error, HONE_ERROR_MEMORY, "cannot map %llu bytes: %s", (unsigned long long)size,
                     strerror(errno));
    if (!beneath) hn_error_where(error, "%s", path);
  } else {
    *out = (hn_file){.data = p, .size = (size_t)size};
  }
  close(fd);
  return status;
}

void hn_file_unmap(hn_file *file) {
  if (file->data && file->size) munmap((void *)(uintptr_t)file->data, file->size);
  *file = (hn_file){0};
}

void hn_file_drop(const hn_file *file, size_t at, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), from = at / page * page;
  if (at >= file->size || !size) return;
  if (size > file->size - at) size = file->size - at;
  madvise((char *)(uintptr_t)file->data + from, at + size - from, MADV_DONTNEED);
}

hone_status hn_file_pull(int fd, void *to, size_t room, size_t *got, hone_error *error) {
  *got = 0;
  while (*got < room) {
    const ssize_t n = read(fd, (char *)to + *got, room - *got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return hn_fail(error, HONE_ERROR_IO, "cannot read: %s", strerror(errno));
    if (n == 0) break;
    *got += (size_t)n;
  }
  return HONE_OK;
}

size_t hn_file_begin(const char *path, void *to, size_t room) {
  int fd;
  uint64_t size;
  size_t n = 0;
  if (hn_file_open(path, NULL, HN_FILE_PLAN, &fd, &size, NULL) != HONE_OK) return 0;
  if (hn_file_pull(fd, to, room, &n, NULL) != HONE_OK) n = 0;
  close(fd);
  return n;
}
