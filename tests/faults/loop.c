/* See loop.h. */
#include "faults/loop.h"

#include "faults/interpose.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ftw.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  ROOM = 256 << 10,
  EVENTS = 4 << 20,
  MOST_SHOWN = 12,
  MOST_FILES = 64,
  MOST_CACHED = 4096,
  SECONDS = 100
};

struct fault_answer {
  size_t len;
  char text[ROOM];
};

/* What a child says to its parent: shared memory. */
typedef struct told {
  fault_answer answer;
  hone_status status;
  hone_error error;
  bool finished, reached, stale; /* stale: a second try without a fault gave something else */
  fault_kind kind;
  uint64_t calls;
  int depth;
  void *frame[48];
  size_t n_left; /* blocks that were not freed */
  fault_block left[64];
  int more_files, more_threads;
} told;

typedef struct written {
  char name[256];
  uint64_t hash;
  size_t size;
} written;

typedef struct state {
  const scenario *s;
  char folder[256], out[280], again[280]; /* where it writes, and where a second try does */
  told *told;
  fault_answer *right; /* the answer without a fault */
  fault_event *events;
  uint32_t cached[MOST_CACHED]; /* stacks of what stays allocated on purpose (once a process) */
  size_t n_cached;
  written file[MOST_FILES];
  size_t n_files;
  FILE *words; /* what children say on standard error */
  unsigned tried, errors, without, wrong;
} state;

/* ---- answers */

static uint64_t hash(uint64_t h, const void *bytes, size_t n) {
  for (const unsigned char *p = bytes; n; n--) h = (h ^ *p++) * 0x100000001b3u;
  return h;
}

void answer_line(fault_answer *a, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(a->text + a->len, ROOM - a->len, format, ap);
  va_end(ap);
  if (n > 0 && a->len + (size_t)n + 2 < ROOM) {
    a->len += (size_t)n;
    a->text[a->len++] = '\n';
    a->text[a->len] = 0;
  }
}

void answer_bytes(fault_answer *a, const char *what, const void *bytes, size_t size) {
  answer_line(a, "%s: %zu bytes, %016llx", what, size,
              (unsigned long long)hash(0xcbf29ce484222325u, bytes, size));
}

/* ---- files */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
  (void)st, (void)flag, (void)ftw;
  return remove(path);
}
static void clean(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* SQLite's own files beside a database: how the next one to open it undoes, or takes over, what was not
 * finished. They come and go with it. */
static bool beside_database(const char *name) {
  static const char *const ends[] = {".db-journal", ".db-wal", ".db-shm"};
  const size_t n = strlen(name);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0) return true;
  return false;
}

static state *walking;
static int note_file(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
  (void)ftw;
  if (flag != FTW_F || walking->n_files == MOST_FILES || beside_database(path)) return 0;
  written *w = &walking->file[walking->n_files++];
  *w = (written){.size = (size_t)st->st_size, .hash = 0xcbf29ce484222325u};
  snprintf(w->name, sizeof w->name, "%s", path + strlen(walking->out) + 1);
  FILE *f = fopen(path, "rb");
  char piece[4096];
  for (size_t n; f && (n = fread(piece, 1, sizeof piece, f));) w->hash = hash(w->hash, piece, n);
  if (f) fclose(f);
  return 0;
}
static void note_files(state *t) {
  walking = t;
  t->n_files = 0;
  nftw(t->out, note_file, 8, FTW_PHYS);
}

static int entries(const char *folder) {
  DIR *d = opendir(folder);
  int n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

/* ---- one child */

static bool is_cached(const state *t, uint32_t whole) {
  for (size_t i = 0; i < t->n_cached; i++)
    if (t->cached[i] == whole) return true;
  return false;
}

enum { WARM = 1, AGAIN = 2 }; /* does it once before, once afterwards, without a fault */

static void child(state *t, uint64_t at, fault_mode mode, int more) {
  told *out = t->told;
  static fault_answer other;
  dup2(fileno(t->words), 2);
  alarm(SECONDS);
  if (more & WARM) t->s->run(t->folder, t->out, &other, &out->error);
  const int files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  hone_error error = {0};
  fault_arm(at, mode, mode == FAULT_RECORD && !(more & WARM) ? t->events : NULL, EVENTS);
  hone_status status = t->s->run(t->folder, t->out, &out->answer, &error);
  out->calls = fault_disarm();
  out->status = status;
  out->error = error;
  out->reached = fault_reached(&out->kind);
  void *const *frame;
  out->depth = fault_stack(&frame);
  memcpy(out->frame, frame, (size_t)out->depth * sizeof *frame);
  static fault_block block[MOST_CACHED];
  size_t n = fault_blocks(block, MOST_CACHED);
  for (size_t i = 0; i < n && i < MOST_CACHED; i++) {
    fault_block *b = &block[i];
    if (mode != FAULT_RECORD && !(more & WARM) &&
        is_cached(t, b->whole ? b->whole : t->events[b->event - 1].whole))
      continue;
    if (mode == FAULT_RECORD && !(more & WARM) && t->n_cached < MOST_CACHED)
      t->cached[t->n_cached++] = b->whole;
    if (out->n_left < 64) out->left[out->n_left] = *b;
    out->n_left++;
  }
  out->more_files = entries("/proc/self/fd") - files;
  /* One that was joined is listed until the kernel has buried it. */
  out->more_threads = entries("/proc/self/task") - threads;
  for (int ms = 0; out->more_threads > 0 && ms < 500; ms++) {
    usleep(1000);
    out->more_threads = entries("/proc/self/task") - threads;
  }
  if (more & AGAIN) {
    other.len = 0;
    status = t->s->run(t->folder, t->again, &other, &error);
    out->stale = status != HONE_OK || strcmp(other.text, t->right->text) != 0;
    if (status != HONE_OK) out->error = error;
  }
  out->finished = true;
  _exit(0);
}

static int spawn(state *t, uint64_t at, fault_mode mode, int more) {
  clean(t->out);
  clean(t->again);
  if (mkdir(t->out, 0777) != 0 || mkdir(t->again, 0777) != 0) abort();
  memset(&t->told->status, 0, sizeof *t->told - offsetof(told, status));
  t->told->answer.len = 0;
  t->told->answer.text[0] = 0;
  rewind(t->words);
  if (ftruncate(fileno(t->words), 0) != 0) abort();
  pid_t pid = fork();
  if (pid == 0) child(t, at, mode, more);
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/* ---- saying what is wrong */

static const char *own_path(void) {
  static char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  return path;
}

static int base_of(struct dl_phdr_info *info, size_t size, void *out) {
  (void)size;
  *(uintptr_t *)out = info->dlpi_addr; /* the first one is the program */
  return 1;
}

static void print_frames(void *const *frame, int n) {
  char command[4096];
  uintptr_t base = 0;
  dl_iterate_phdr(base_of, &base);
  int len = snprintf(command, sizeof command, "addr2line -spfie %s", own_path());
  for (int i = 0; i < n && frame[i] && len < (int)sizeof command - 32; i++)
    len += snprintf(command + len, sizeof command - (size_t)len, " %lx",
                    (unsigned long)((uintptr_t)frame[i] - base - 1));
  snprintf(command + len, sizeof command - (size_t)len,
           " 2>/dev/null | sed 's/^/      /;/[?][?]/d' | head -24");
  fflush(stdout);
  if (system(command) != 0) printf("      (addr2line is not there)\n");
}

static void print_words(state *t) {
  char line[300];
  rewind(t->words);
  for (int i = 0; i < 30 && fgets(line, sizeof line, t->words); i++)
    printf("      | %s%s", line, strchr(line, '\n') ? "" : "\n");
}

static void first_difference(const char *want, const char *got) {
  while (*want && *want == *got) {
    const char *end = strchr(want, '\n');
    size_t n = end ? (size_t)(end - want) + 1 : strlen(want);
    if (strncmp(want, got, n) != 0) break;
    want += n;
    got += n;
  }
  printf("      without a fault: %.*s\n      with it:         %.*s\n", (int)strcspn(want, "\n"), want,
         (int)strcspn(got, "\n"), got);
}

/* NULL, or what is wrong with how the child ended. */
static const char *judge(state *t, int ended, char *buf, size_t size) {
  const told *o = t->told;
  if (WIFSIGNALED(ended)) {
    snprintf(buf, size, WTERMSIG(ended) == SIGALRM ? "it hangs" : "it died of signal %d (%s)",
             WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    return buf;
  }
  if (!WIFEXITED(ended) || WEXITSTATUS(ended) || !o->finished) {
    snprintf(buf, size, "it ended the process (exit code %d)", WEXITSTATUS(ended));
    return buf;
  }
  if (o->n_left) {
    snprintf(buf, size, "%zu blocks were not freed", o->n_left);
    return buf;
  }
  if (o->more_files) {
    snprintf(buf, size, "%d files stay open", o->more_files);
    return buf;
  }
  if (o->more_threads) {
    snprintf(buf, size, "%d threads stay", o->more_threads);
    return buf;
  }
  if (o->stale) return "afterwards, without a fault, something else comes out";
  if (o->status == HONE_OK && strcmp(o->answer.text, t->right->text) != 0)
    return "it succeeds with another answer";
  if (o->status != HONE_OK && (o->error.status != o->status || !o->error.what[0]))
    return "the error says nothing";
  if (o->status == HONE_ERROR_INTERNAL || o->status == HONE_ERROR_USAGE)
    return "the user or hone itself is blamed";
  if (o->kind <= FAULT_MAP && o->status != HONE_OK && o->status != HONE_ERROR_MEMORY &&
      o->status != HONE_ERROR_IO && o->status != HONE_ERROR_MISSING)
    return "lack of memory is not named";
  static written before[MOST_FILES];
  const size_t n = t->n_files;
  memcpy(before, t->file, sizeof before);
  note_files(t);
  const size_t now = t->n_files;
  const char *bad = NULL;
  for (size_t i = 0; i < now && !bad; i++) {
    bool known = false;
    for (size_t k = 0; k < n && !known; k++)
      known = strcmp(t->file[i].name, before[k].name) == 0 &&
              (t->s->any_bytes || (t->file[i].size == before[k].size && t->file[i].hash == before[k].hash));
    if (!known)
      snprintf(buf, size, "it leaves '%s' behind (%zu bytes)", t->file[i].name, t->file[i].size), bad = buf;
  }
  if (!bad && o->status == HONE_OK && now != n) bad = "it succeeds without its files";
  memcpy(t->file, before, sizeof before);
  t->n_files = n;
  return bad;
}

static void try(state *t, uint64_t at, fault_mode mode, int more, const loop_options *options) {
  static const char *const modes[] = {"", "once", "from then on", "partly"};
  char buf[300], text[900];
  const int ended = spawn(t, at, mode, more);
  const told *o = t->told;
  const char *bad = judge(t, ended, buf, sizeof buf);
  const bool show = options->list || options->only;
  if (options->planted) {
    t->wrong += bad && strstr(bad, options->planted);
    return;
  }
  if (!o->reached && o->finished && !bad) {
    if (show) printf("  call %llu was not reached\n", (unsigned long long)at);
    return;
  }
  t->tried++;
  if (!bad && o->status == HONE_OK) t->without++;
  if (!bad && o->status != HONE_OK) t->errors++;
  if (bad) t->wrong++;
  if (!(bad && t->wrong <= MOST_SHOWN) && !show) return;
  hone_error_format(&o->error, text, sizeof text);
  printf("%s call %llu (%s) fails %s: %s\n", bad ? "WRONG" : "ok   ", (unsigned long long)at,
         fault_kind_name((fault_kind)t->events[at - 1].kind), modes[mode],
         bad                    ? bad
         : o->status == HONE_OK ? "done without it"
                                : text);
  if (bad && o->finished && o->status != HONE_OK)
    printf("      the error: %s: %s\n", hone_status_name(o->status), text);
  if (bad && o->finished) print_frames(o->frame, o->depth);
  for (size_t i = 0; bad && i < o->n_left && i < 3; i++) {
    printf("    not freed: %zu bytes of\n", o->left[i].size);
    print_frames(o->left[i].frame, 12);
  }
  if (bad && o->status == HONE_OK && strstr(bad, "answer")) first_difference(t->right->text, o->answer.text);
  if (bad) print_words(t);
  if (bad)
    printf("    again: test_faults --scenario %s --call %llu%s\n", t->s->name, (unsigned long long)at,
           mode == FAULT_STAYS    ? " --stays"
           : mode == FAULT_PARTLY ? " --partly"
                                  : "");
  fflush(stdout);
}

/* ---- all of them */

typedef struct seen {
  uint32_t *slot;
  size_t cap;
} seen;

static bool is_new(seen *s, uint32_t h) {
  for (size_t i = h % s->cap;; i = (i + 1) % s->cap) {
    if (s->slot[i] == h) return false;
    if (!s->slot[i]) return s->slot[i] = h, true;
  }
}

static void *shared(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

static void walk(state *t, const loop_options *o, uint64_t calls) {
  seen places = {calloc(2 * calls + 16, sizeof(uint32_t)), 2 * calls + 16};
  unsigned chosen = 0;
  for (uint64_t at = 1; places.slot && at <= calls; at++) {
    const fault_event *e = &t->events[at - 1];
    const uint32_t h = (o->which == LOOP_PLACES ? e->near : e->whole) ^ e->kind;
    if (o->which != LOOP_EVERY && !is_new(&places, h ? h : 1)) continue;
    const bool file = e->kind == FAULT_WRITE || e->kind == FAULT_READ || e->kind == FAULT_SYNC;
    try(t, at, FAULT_ONCE, chosen % 8 == 0 || o->which == LOOP_EVERY ? AGAIN : 0, o);
    if (file || chosen % 8 == 4 || o->which == LOOP_EVERY) try(t, at, FAULT_STAYS, 0, o);
    if (e->kind == FAULT_WRITE || e->kind == FAULT_READ) try(t, at, FAULT_PARTLY, 0, o);
    chosen++;
  }
  free(places.slot);
}

/* In a child, too, so that hone has kept nothing yet when it is forked. */
static void prepare(state *t) {
  int status = 0;
  pid_t pid = t->s->prepare ? fork() : 0;
  if (pid == 0 && t->s->prepare) {
    t->s->prepare(t->folder);
    _exit(0);
  }
  if (pid && (waitpid(pid, &status, 0) < 0 || status != 0)) abort();
}

int fault_loop(const scenario *s, const loop_options *o) {
  state *t = shared(sizeof *t); /* children write what they keep on purpose */
  t->s = s;
  t->told = shared(sizeof *t->told);
  t->right = shared(sizeof *t->right);
  t->events = shared((size_t)EVENTS * sizeof *t->events);
  const char *temporary = getenv("TMPDIR");
  t->words = fdopen(memfd_create("words", 0), "w+");
  snprintf(t->folder, sizeof t->folder, "%s/hone_faults_XXXXXX", temporary ? temporary : "/tmp");
  if (!t->words || !mkdtemp(t->folder)) abort();
  snprintf(t->out, sizeof t->out, "%s/out", t->folder);
  snprintf(t->again, sizeof t->again, "%s/again", t->folder);
  prepare(t);

  int ended = spawn(t, 0, FAULT_RECORD, 0);
  const uint64_t calls = t->told->calls;
  *t->right = t->told->answer;
  t->told->n_left = 0; /* what a first run keeps is its cache */
  char buf[300], text[900];
  note_files(t);
  const char *bad = judge(t, ended, buf, sizeof buf);
  if (!bad && t->told->status != HONE_OK) {
    hone_error_format(&t->told->error, text, sizeof text);
    bad = text;
  }
  if (!bad && (ended = spawn(t, 0, FAULT_RECORD, WARM), t->told->n_left)) {
    bad = judge(t, ended, buf, sizeof buf);
    print_frames(t->told->left[0].frame, 12);
  }
  if (!bad && calls > EVENTS) bad = "too many calls";
  if (!bad && !t->right->len) bad = "it answers nothing";
  if (bad) {
    printf("WRONG %s without a fault: %s\n", s->name, bad);
    print_words(t);
    t->wrong++;
  } else if (o->only) {
    try(t, o->only, o->mode ? (fault_mode)o->mode : FAULT_ONCE, AGAIN, o);
  } else {
    walk(t, o, calls);
  }
  if (!o->planted)
    printf("%s: %llu calls; %u failures on purpose: %u errors, %u done without, %u wrong\n", s->name,
           (unsigned long long)calls, t->tried, t->errors, t->without, t->wrong);
  clean(t->folder);
  fclose(t->words);
  const int wrong = (int)t->wrong;
  munmap(t->events, (size_t)EVENTS * sizeof *t->events);
  munmap(t->right, sizeof *t->right);
  munmap(t->told, sizeof *t->told);
  munmap(t, sizeof *t);
  return wrong;
}
