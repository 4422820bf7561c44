/* The one way out: every file that hone writes is written here. Beside its place, under a name that nobody
 * can foresee and that did not exist; its bytes reach the disk before its name does. */
#include "base/os.h"

#include "base/error.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- unfinished files, for whoever ends the process in their midst. Static, because a signal handler looks
 * at them. More writers at once than there are slots are not listed. */

enum { SLOTS = 64, FREE = 0, TAKEN, LISTED };

static struct slot {
  _Atomic int state;
  int dir;
  char name[sizeof((hn_writer *)0)->temp];
} slots[SLOTS];

static int list(const hn_writer *w) {
  for (int i = 0; i < SLOTS; i++) {
    int state = FREE;
    if (!atomic_compare_exchange_strong(&slots[i].state, &state, TAKEN)) continue;
    slots[i].dir = w->dir;
    memcpy(slots[i].name, w->temp, sizeof w->temp);
    atomic_store(&slots[i].state, LISTED);
    return i;
  }
  return -1;
}

void hn_writer_abandon_all(void) {
  for (int i = 0; i < SLOTS; i++)
    if (atomic_load(&slots[i].state) == LISTED) unlinkat(slots[i].dir, slots[i].name, 0);
}

/* ---- where it goes */

static hone_status writer_failed(const hn_writer *w, const char *doing, int e, hone_error *error) {
  hone_status status = hn_fail(error, HONE_ERROR_IO, "cannot %s: %s", doing, strerror(e));
  hn_error_where(error, "%s", w->path);
  if (e == ENOENT) hn_error_hint(error, "the folder does not exist");
  if (e == ENOSPC) hn_error_hint(error, "free some disk space; nothing was left behind");
  return status;
}

int hn_own_descriptor(const char *path) {
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const size_t n = strlen(folders[i]), digits = strncmp(path, folders[i], n) ? 0 : strlen(path + n);
    if (digits && digits < 8 && strspn(path + n, "0123456789") == digits) return atoi(path + n);
  }
  return -1;
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The folder stays open, so that the file ends where it began, whatever is renamed meanwhile. */
static int open_folder(const char *path) {
  const size_t n = (size_t)(base_of(path) - path);
  char *folder = n ? hn_malloc(n + 1) : NULL;
  if (n && !folder) return errno = ENOMEM, -1;
  if (n) memcpy(folder, path, n), folder[n] = 0;
  const char *name = n ? folder : ".";
  int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  /* A folder that may be written to, but not listed. */
  if (dir < 0 && errno == EACCES) dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int keep = errno;
  hn_free(folder);
  errno = keep;
  return dir;
}

/* Creates the temporary file; false with errno. */
static bool create(hn_writer *w, mode_t mode) {
  for (int i = 0; i < 100; i++) {
    uint64_t any;
    if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any) return false;
    snprintf(w->temp, sizeof w->temp, ".hone-%016llx.tmp", (unsigned long long)any);
    w->slot = list(w); /* first: an interrupt may come right behind the creation */
    w->fd = openat(w->dir, w->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (w->fd >= 0) return true;
    const int keep = errno;
    if (w->slot >= 0) atomic_store(&slots[w->slot].state, FREE);
    w->slot = -1;
    w->temp[0] = 0;
    errno = keep;
    if (keep != EEXIST) return false;
  }
  return false;
}

/* A device or pipe is written to, never replaced by a file. */
static hone_status open_in_place(hn_writer *w, int flags, hone_error *error) {
  struct stat st;
  const int own = hn_own_descriptor(w->path);
  w->fd = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 3) : open(w->path, flags | O_NOCTTY | O_CLOEXEC, 0666);
  if (w->fd < 0) return writer_failed(w, "create", errno, error);
  if (fstat(w->fd, &st) != 0) return writer_failed(w, "create", errno, error);
  /* What was a device a moment ago. */
  if (own < 0 && !(flags & O_APPEND) && S_ISREG(st.st_mode)) return writer_failed(w, "create", EAGAIN, error);
  return HONE_OK;
}

static hone_status open_beside(hn_writer *w, mode_t mode, hone_error *error) {
  const char *base = base_of(w->path);
  if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
    return writer_failed(w, "create", *w->path ? EISDIR : ENOENT, error);
  w->dir = open_folder(w->path);
  /* Who could not read the old file cannot read the new one, not even before it has its rights. */
  if (w->dir < 0 || !create(w, mode ? mode & 0600 : 0666)) return writer_failed(w, "create", errno, error);
  if (mode && fchmod(w->fd, mode & 0777) != 0 && errno != EPERM)
    return writer_failed(w, "create", errno, error);
  return HONE_OK;
}

static hone_status prepare(const char *path, hn_writer *w, hone_error *error) {
  *w = (hn_writer){.fd = -1, .dir = -1, .slot = -1};
  w->path = hn_strdup(path);
  return w->path ? HONE_OK : hn_fail_memory(error, strlen(path) + 1, "a file name");
}

hone_status hn_writer_open(const char *path, hn_writer *w, hone_error *error) {
  struct stat st = {0};
  hone_status status = prepare(path, w, error);
  if (status == HONE_OK) {
    const bool there = stat(path, &st) == 0;
    status = hn_own_descriptor(path) >= 0 || (there && !S_ISREG(st.st_mode))
                 ? open_in_place(w, O_WRONLY, error)
                 : open_beside(w, there ? st.st_mode : 0, error);
  }
  if (status != HONE_OK) hn_writer_abandon(w);
  return status;
}

hone_status hn_writer_append(const char *path, hn_writer *w, hone_error *error) {
  hone_status status = prepare(path, w, error);
  if (status == HONE_OK) status = open_in_place(w, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, error);
  if (status != HONE_OK) hn_writer_abandon(w);
  return status;
}

/* ---- what it says */

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

bool hn_writer_temporary(const hn_writer *w, char *buf, size_t size) {
  const int n = (int)(base_of(w->path) - w->path);
  return w->temp[0] && (size_t)snprintf(buf, size, "%.*s%s", n, w->path, w->temp) < size;
}

/* ---- how it ends */

/* Pipes, terminals and some file systems know nothing of it. */
static bool to_disk(int fd) {
  return fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS || errno == ENOTSUP ||
         errno == EBADF; /* a folder that was opened as a path only */
}

static void release(hn_writer *w) {
  if (w->slot >= 0) atomic_store(&slots[w->slot].state, FREE);
  if (w->fd >= 0) close(w->fd);
  if (w->dir >= 0) close(w->dir);
  hn_free(w->path);
  *w = (hn_writer){.fd = -1, .dir = -1, .slot = -1};
}

void hn_writer_abandon(hn_writer *w) {
  if (w->temp[0]) unlinkat(w->dir, w->temp, 0);
  release(w);
}

hone_status hn_writer_commit(hn_writer *w, hone_error *error) {
  hone_status status = HONE_OK;
  if (!to_disk(w->fd)) {
    status = writer_failed(w, "write", errno, error);
  } else if (w->temp[0]) {
    if (renameat(w->dir, w->temp, w->dir, base_of(w->path)) != 0) {
      status = writer_failed(w, "rename", errno, error);
    } else {
      w->temp[0] = 0;
      if (!to_disk(w->dir)) status = writer_failed(w, "write the folder", errno, error);
    }
  }
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
