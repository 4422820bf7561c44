/* See interpose.h. */
#include "faults/interpose.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { NEAR = 6, DEEPEST = 48, SKIPPED = 2, BLOCKS = 1 << 18 };

/* jansson ends the process, or goes on with half a text, where its memory is refused. The library looks
 * before it calls it (src/base/json_read.c), the command ends at once (cli/terminal/memory.c): only there are
 * its own calls counted. */
static bool spare_jansson;
static uintptr_t jansson_from, jansson_to;

static atomic_bool armed;
static atomic_uint_fast64_t calls;
static uint64_t fail_at;
static fault_mode how;
static fault_event *notes;
static size_t note_room;
static atomic_bool reached, after;
static fault_kind failed_kind;
static void *failed_frame[DEEPEST];
static int failed_depth;
static _Thread_local int inside; /* the interposer's own calls */
static _Thread_local bool
    started; /* what a thread does before and after its function is the system's or a sanitizer's */

const char *fault_kind_name(fault_kind kind) {
  static const char *const words[] = {
#define X(id, word, error) word,
      FAULT_KINDS(X)
#undef X
  };
  return words[kind];
}

static int kind_errno(fault_kind kind) {
  static const int errors[] = {
#define X(id, word, error) error,
      FAULT_KINDS(X)
#undef X
  };
  return errors[kind];
}

/* ---- who is called: the next definition of each name, whatever library it is in */

static void *next(const char *name) {
  void *p = dlsym(RTLD_NEXT, name);
  if (!p) abort();
  return p;
}

#define REAL(result, name, ...)                                                                              \
  static result (*real_##name)(__VA_ARGS__);                                                                 \
  if (!real_##name) {                                                                                        \
    inside++;                                                                                                \
    real_##name = (result(*)(__VA_ARGS__))next(#name);                                                       \
    inside--;                                                                                                \
  }

/* ---- what is there: a table of places by address, and blocks side by side: a child of a thousand begins
 * with none of these pages and pays for each that it touches */

static fault_block *blocks;
static uint32_t *places;               /* of a block, counted from 1; 0: free, GONE: was one */
static uint32_t n_blocks, spare_block; /* spare: the first of those that are gone, linked by `event` */
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
#define GONE UINT32_MAX

static uint32_t *place_of(const void *p, bool to_add) {
  size_t i = ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 46;
  uint32_t *free_place = NULL;
  for (size_t n = 0; n < BLOCKS; n++, i = (i + 1) % BLOCKS) {
    uint32_t *k = &places[i];
    if (*k && *k != GONE && blocks[*k - 1].at == p) return k;
    if (*k == GONE && !free_place) free_place = k;
    if (!*k) return to_add ? (free_place ? free_place : k) : NULL;
  }
  return to_add ? free_place : NULL;
}

static fault_block *new_block(uint32_t *place) {
  if (spare_block)
    *place = spare_block, spare_block = (uint32_t)blocks[*place - 1].event;
  else
    *place = ++n_blocks; /* never more than there are places */
  return &blocks[*place - 1];
}

/* The block, which is none any more; {0}: there was none. */
static fault_block take_block(const void *p) {
  fault_block was = {0};
  pthread_mutex_lock(&blocks_lock);
  uint32_t *place = place_of(p, false);
  if (place) {
    fault_block *b = &blocks[*place - 1];
    was = *b;
    *b = (fault_block){.event = spare_block};
    spare_block = *place;
    *place = GONE;
  }
  pthread_mutex_unlock(&blocks_lock);
  return was;
}

static uint32_t hash_frames(void *const *frame, int n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int i = 0; i < n; i++) h = (h ^ (uintptr_t)frame[i]) * 0x100000001b3u;
  h ^= h >> 31;
  return (uint32_t)(h * 0xd6e8feb86659fd93u >> 32) | 1;
}

__attribute__((noinline)) static int stack(void **frame) {
  void *all[DEEPEST + SKIPPED];
  inside++;
  int n = backtrace(all, DEEPEST + SKIPPED) - SKIPPED;
  inside--;
  if (n < 0) n = 0;
  memcpy(frame, all + SKIPPED, (size_t)n * sizeof *frame);
  return n;
}

static void add_block(const void *p, size_t size, uint64_t event, void *const *frame, int depth) {
  if (!p || !blocks) return;
  pthread_mutex_lock(&blocks_lock);
  uint32_t *place = place_of(p, true);
  if (place) {
    fault_block *b = *place && *place != GONE ? &blocks[*place - 1] : new_block(place);
    *b = (fault_block){.at = p, .size = size, .event = event, .whole = depth ? hash_frames(frame, depth) : 0};
    for (int i = 0; i < depth && i < 12; i++) b->frame[i] = frame[i];
  }
  pthread_mutex_unlock(&blocks_lock);
}

static void drop_block(const void *p) {
  if (p && blocks) take_block(p);
}

size_t fault_blocks(fault_block *out, size_t room) {
  size_t n = 0;
  for (size_t i = 0; blocks && i < n_blocks; i++)
    if (blocks[i].at && n++ < room) out[n - 1] = blocks[i];
  return n;
}

/* ---- counting and failing */

typedef struct call {
  bool counted, fails, partly;
  uint64_t event;
  void *frame[DEEPEST];
  int depth;
} call;

__attribute__((noinline)) static void meet(call *c, fault_kind kind) {
  c->counted = c->fails = c->partly = false;
  c->event = 0;
  c->depth = 0;
  if (inside || !started || !atomic_load_explicit(&armed, memory_order_relaxed)) return;
  c->counted = true;
  c->event = atomic_fetch_add(&calls, 1) + 1;
  const bool hit = how != FAULT_RECORD && c->event == fail_at;
  if (how == FAULT_RECORD || hit || atomic_load_explicit(&after, memory_order_relaxed))
    c->depth = stack(c->frame);
  if (how == FAULT_RECORD && notes && c->event <= note_room)
    notes[c->event - 1] = (fault_event){hash_frames(c->frame, c->depth < NEAR ? c->depth : NEAR),
                                        hash_frames(c->frame, c->depth), (uint8_t)kind};
  if (hit) {
    failed_kind = kind;
    failed_depth = c->depth;
    memcpy(failed_frame, c->frame, sizeof failed_frame);
    atomic_store(&reached, true);
    atomic_store(&after, true);
  }
  c->partly = hit && how == FAULT_PARTLY;
  c->fails = (hit && how != FAULT_PARTLY) ||
             (how == FAULT_STAYS && atomic_load(&reached) && kind == failed_kind && kind != FAULT_CLOSE);
  if (c->fails) errno = kind_errno(kind);
}

static int find_jansson(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size, (void)arg;
  if (!strstr(info->dlpi_name, "libjansson")) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    jansson_from = info->dlpi_addr + p->p_vaddr;
    jansson_to = jansson_from + p->p_memsz;
  }
  return 1;
}

void fault_spare_jansson(void) {
  dl_iterate_phdr(find_jansson, NULL);
  spare_jansson = true;
}

static bool from_jansson(const void *caller) {
  return spare_jansson && (uintptr_t)caller >= jansson_from && (uintptr_t)caller < jansson_to;
}

void fault_arm(uint64_t n, fault_mode mode, fault_event *events, size_t room) {
  if (!blocks) {
    inside++;
    void *first[4];
    backtrace(first, 4); /* loads what it needs */
    void *p = mmap(NULL, BLOCKS * (sizeof *blocks + sizeof *places), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) abort();
    inside--;
    places = (uint32_t *)((fault_block *)p + BLOCKS);
    blocks = p;
  }
  started = true;
  fail_at = n;
  how = mode;
  notes = events;
  note_room = room;
  atomic_store(&calls, 0);
  atomic_store(&reached, false);
  atomic_store(&after, false);
  atomic_store(&armed, true);
}

uint64_t fault_disarm(void) {
  atomic_store(&armed, false);
  return atomic_load(&calls);
}

bool fault_reached(fault_kind *kind) {
  if (kind) *kind = failed_kind;
  return atomic_load(&reached);
}

int fault_stack(void *const **frames) {
  *frames = failed_frame;
  return failed_depth;
}

/* ---- memory */

#define KEEP(c, p, size)                                                                                     \
  if ((c).counted) add_block(p, size, (c).event, (c).frame, (c).depth)

/* The sanitizer's functions where there is one (both libraries export these names), the C library's
 * elsewhere: they work before the dynamic linker can be asked. */
#define MEMORY(result, name, libc, ...)                                                                      \
  extern result __interceptor_##name(__VA_ARGS__) __attribute__((weak));                                     \
  extern result libc(__VA_ARGS__);
MEMORY(void *, malloc, __libc_malloc, size_t)
MEMORY(void *, calloc, __libc_calloc, size_t, size_t)
MEMORY(void *, realloc, __libc_realloc, void *, size_t)
MEMORY(void, free, __libc_free, void *)
MEMORY(void *, memalign, __libc_memalign, size_t, size_t)

static void *aligned(call *c, size_t alignment, size_t size) {
  meet(c, FAULT_MEMORY);
  if (c->fails) return NULL;
  void *p =
      __interceptor_memalign ? __interceptor_memalign(alignment, size) : __libc_memalign(alignment, size);
  KEEP(*c, p, size);
  return p;
}

EXPORT void *malloc(size_t size) {
  call c = {.counted = false};
  if (!from_jansson(__builtin_return_address(0))) meet(&c, FAULT_MEMORY);
  if (c.fails) return NULL;
  void *p = __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
  KEEP(c, p, size);
  return p;
}

EXPORT void *calloc(size_t n, size_t size) {
  call c;
  meet(&c, FAULT_MEMORY);
  if (c.fails) return NULL;
  void *p = __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
  KEEP(c, p, n * size);
  return p;
}

EXPORT void *realloc(void *old, size_t size) {
  call c;
  meet(&c, FAULT_MEMORY);
  if (c.fails) return NULL;
  /* Taken out before the memory can be somebody else's. */
  const fault_block was = blocks && old ? take_block(old) : (fault_block){0};
  void *p = __interceptor_realloc ? __interceptor_realloc(old, size) : __libc_realloc(old, size);
  if (c.counted)
    add_block(p, size, c.event, c.frame, c.depth);
  else if (was.at)
    add_block(p, size, was.event, was.frame, 0);
  return p;
}

EXPORT void free(void *p) {
  drop_block(p);
  if (__interceptor_free)
    __interceptor_free(p);
  else
    __libc_free(p);
}

EXPORT void *memalign(size_t alignment, size_t size) {
  call c;
  return aligned(&c, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  call c;
  return aligned(&c, alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  call c;
  void *p = aligned(&c, alignment, size);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  REAL(void *, mmap, void *, size_t, int, int, int, off_t)
  call c;
  meet(&c, FAULT_MAP);
  if (c.fails) return MAP_FAILED;
  void *p = real_mmap(at, size, protection, flags, fd, offset);
  if (p != MAP_FAILED) KEEP(c, p, size);
  return p;
}
EXPORT void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
  return mmap(at, size, protection, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t size) {
  REAL(int, munmap, void *, size_t)
  drop_block(at);
  return real_munmap(at, size);
}

typedef struct thread_start {
  void *(*function)(void *);
  void *arg;
} thread_start;

static void *start_thread(void *arg) {
  const thread_start s = *(thread_start *)arg;
  free(arg);
  started = true;
  void *result = s.function(s.arg);
  started = false;
  return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *arg) {
  REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
  call c;
  meet(&c, FAULT_THREAD);
  if (c.fails) return EAGAIN;
  inside++; /* its stack is not ours */
  thread_start *s = malloc(sizeof *s);
  if (s) *s = (thread_start){function, arg};
  int rc = s ? real_pthread_create(thread, attributes, start_thread, s) : EAGAIN;
  if (rc != 0) free(s);
  inside--;
  return rc;
}

/* ---- files. Opening, and what takes no bytes, fails or not. */

#define SIMPLE(result, name, kind, failure, parameters, types, arguments)                                    \
  EXPORT result name parameters {                                                                            \
    static result(*real) types;                                                                              \
    if (!real) {                                                                                             \
      inside++;                                                                                              \
      real = (result(*) types)next(#name);                                                                   \
      inside--;                                                                                              \
    }                                                                                                        \
    call c;                                                                                                  \
    meet(&c, kind);                                                                                          \
    return c.fails ? failure : real arguments;                                                               \
  }

static mode_t mode_of(int flags, va_list ap) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(ap, int) : 0;
}

#define OPEN(name)                                                                                           \
  EXPORT int name(const char *path, int flags, ...) {                                                        \
    REAL(int, name, const char *, int, ...)                                                                  \
    va_list ap;                                                                                              \
    va_start(ap, flags);                                                                                     \
    mode_t mode = mode_of(flags, ap);                                                                        \
    va_end(ap);                                                                                              \
    call c;                                                                                                  \
    meet(&c, FAULT_OPEN);                                                                                    \
    return c.fails ? -1 : real_##name(path, flags, mode);                                                    \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                         \
  EXPORT int name(int folder, const char *path, int flags, ...) {                                            \
    REAL(int, name, int, const char *, int, ...)                                                             \
    va_list ap;                                                                                              \
    va_start(ap, flags);                                                                                     \
    mode_t mode = mode_of(flags, ap);                                                                        \
    va_end(ap);                                                                                              \
    call c;                                                                                                  \
    meet(&c, FAULT_OPEN);                                                                                    \
    return c.fails ? -1 : real_##name(folder, path, flags, mode);                                            \
  }
OPENAT(openat)
OPENAT(openat64)

/* A library that is loaded stays, and what describes it is the loader's. That loading fails is planted by
 * name. */
EXPORT void *dlopen(const char *file, int mode) {
  REAL(void *, dlopen, const char *, int)
  inside++;
  void *library = real_dlopen(file, mode);
  inside--;
  return library;
}

SIMPLE(FILE *, fopen, FAULT_OPEN, NULL, (const char *path, const char *mode), (const char *, const char *),
       (path, mode))
SIMPLE(FILE *, fopen64, FAULT_OPEN, NULL, (const char *path, const char *mode), (const char *, const char *),
       (path, mode))
SIMPLE(FILE *, fdopen, FAULT_OPEN, NULL, (int fd, const char *mode), (int, const char *), (fd, mode))
SIMPLE(DIR *, opendir, FAULT_OPEN, NULL, (const char *path), (const char *), (path))
SIMPLE(int, fstat, FAULT_STAT, -1, (int fd, struct stat *out), (int, struct stat *), (fd, out))
/* That a sync fails is what is tried here. Whether the disk has everything only a power cut could tell, and
 * thousands of times nobody waits for it. */
#define SYNC(name)                                                                                           \
  EXPORT int name(int fd) {                                                                                  \
    call c;                                                                                                  \
    meet(&c, FAULT_SYNC);                                                                                    \
    return c.fails || fcntl(fd, F_GETFD) < 0 ? -1 : 0;                                                       \
  }
SYNC(fsync)
SYNC(fdatasync)
SIMPLE(int, fflush, FAULT_WRITE, -1, (FILE * f), (FILE *), (f))
SIMPLE(int, ftruncate, FAULT_WRITE, -1, (int fd, off_t size), (int, off_t), (fd, size))
SIMPLE(int, ftruncate64, FAULT_WRITE, -1, (int fd, off_t size), (int, off_t), (fd, size))
SIMPLE(int, rename, FAULT_NAME, -1, (const char *from, const char *to), (const char *, const char *),
       (from, to))
SIMPLE(int, renameat, FAULT_NAME, -1, (int a, const char *from, int b, const char *to),
       (int, const char *, int, const char *), (a, from, b, to))
SIMPLE(int, link, FAULT_NAME, -1, (const char *from, const char *to), (const char *, const char *),
       (from, to))
SIMPLE(int, linkat, FAULT_NAME, -1, (int a, const char *from, int b, const char *to, int flags),
       (int, const char *, int, const char *, int), (a, from, b, to, flags))
SIMPLE(int, mkdir, FAULT_NAME, -1, (const char *path, mode_t mode), (const char *, mode_t), (path, mode))
SIMPLE(int, mkdirat, FAULT_NAME, -1, (int folder, const char *path, mode_t mode), (int, const char *, mode_t),
       (folder, path, mode))

/* The file is closed all the same, as Linux does. */
EXPORT int close(int fd) {
  REAL(int, close, int)
  call c;
  meet(&c, FAULT_CLOSE);
  int rc = real_close(fd);
  if (c.fails) errno = EIO;
  return c.fails ? -1 : rc;
}
EXPORT int fclose(FILE *f) {
  REAL(int, fclose, FILE *)
  call c;
  meet(&c, FAULT_CLOSE);
  int rc = real_fclose(f);
  if (c.fails) errno = EIO;
  return c.fails ? EOF : rc;
}

/* Reading and writing may also do less than they are asked for. */
#define MOVES(name, kind, pointer, more_parameters, more_types, more)                                        \
  EXPORT ssize_t name(int fd, pointer p, size_t n more_parameters) {                                         \
    REAL(ssize_t, name, int, pointer, size_t more_types)                                                     \
    call c;                                                                                                  \
    meet(&c, kind);                                                                                          \
    return c.fails ? -1 : real_##name(fd, p, c.partly && n > 1 ? n / 2 : n more);                            \
  }
#define COMMA ,
MOVES(read, FAULT_READ, void *, , , )
MOVES(write, FAULT_WRITE, const void *, , , )
MOVES(pread, FAULT_READ, void *, COMMA off_t at, COMMA off_t, COMMA at)
MOVES(pread64, FAULT_READ, void *, COMMA off_t at, COMMA off_t, COMMA at)
MOVES(pwrite, FAULT_WRITE, const void *, COMMA off_t at, COMMA off_t, COMMA at)
MOVES(pwrite64, FAULT_WRITE, const void *, COMMA off_t at, COMMA off_t, COMMA at)

EXPORT size_t fwrite(const void *p, size_t size, size_t n, FILE *f) {
  REAL(size_t, fwrite, const void *, size_t, size_t, FILE *)
  call c;
  meet(&c, FAULT_WRITE);
  return c.fails ? 0 : real_fwrite(p, size, n, f);
}

/* A stream that fails to read says so (ferror), which only a descriptor that is gone brings about: another
 * one takes its place. */
EXPORT size_t fread(void *p, size_t size, size_t n, FILE *f) {
  REAL(size_t, fread, void *, size_t, size_t, FILE *)
  call c;
  meet(&c, FAULT_READ);
  if (c.fails) {
    inside++;
    int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* reading it is EISDIR */
    if (folder >= 0) {
      dup2(folder, fileno(f));
      close(folder);
    }
    inside--;
  }
  return real_fread(p, size, n, f);
}
