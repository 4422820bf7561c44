/* libfakenvrtc: NVRTC's interface over the C compiler. A device text becomes a shared object for this
 * machine's processor, which libfakecuda loads as a module. Objects are kept by the hash of all that they are
 * made of.
 *
 * HONE_FAKE_CC compiler (cc)   HONE_FAKE_CACHE folder   HONE_FAKE_INCLUDE folder of emulated.cuh
 * HONE_FAKE_FLAGS more flags ("-g": a debugger shows lines of the text)
 * HONE_FAKE_RECORD folder: nothing is compiled, but texts are kept there with their headers, for check_texts;
 * their kernels do nothing, so that also texts that only a GPU can run are seen. Kept is a text that shows
 * something new of its file: a definition or a function that no text kept before has given it */
#include "emulator.h"
#include "fake_fail.h"

#include <nvrtc.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) nvrtcResult
enum { PATH = 1024, DEFINES = 32, FILES = 64 };

extern char **environ;

typedef struct text_file {
  char *name, *text;
} text_file;

struct _nvrtcProgram {
  text_file file[FILES]; /* the first is the program */
  int files;
  char *log, *object;
  size_t object_bytes;
  bool virtual; /* compiled for compute_NN */
};

__attribute__((constructor)) static void start(void) { fake_hide_missing(); }

static const char *setting(const char *name, const char *usual) {
  const char *text = getenv(name);
  return text && *text ? text : usual;
}

static const char *include_folder(void) { return setting("HONE_FAKE_INCLUDE", HN_EMULATED_FOLDER); }

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n) {
  const unsigned char *b = p;
  for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
  return h;
}

static uint64_t hash_text(uint64_t h, const char *text) { return hash_bytes(h, text, strlen(text) + 1); }

static char *read_whole(const char *path, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  struct stat info;
  if (!f || fstat(fileno(f), &info)) {
    if (f) fclose(f);
    return NULL;
  }
  char *p = malloc((size_t)info.st_size + 1);
  *bytes = p ? fread(p, 1, (size_t)info.st_size, f) : 0;
  if (p) p[*bytes] = 0;
  fclose(f);
  return p;
}

/* Everything that objects depend on but the text: the emulator's headers and the compiler's flags. */
static uint64_t hash_emulator(void) {
  uint64_t h = 0xcbf29ce484222325u;
  for (int i = 0; i < 2; i++) {
    char path[PATH];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", include_folder(), i ? "emulator.h" : "emulated.cuh");
    char *text = read_whole(path, &n);
    h = hash_bytes(h, text, n);
    free(text);
  }
  h = hash_text(h, setting("HONE_FAKE_CC", "cc"));
  return hash_text(h, setting("HONE_FAKE_FLAGS", ""));
}

/* What hone caches of this compiler must not outlive a change of the emulator. */
API nvrtcVersion(int *major, int *minor) {
  *major = 99, *minor = (int)(hash_emulator() & 0x7fffffff);
  return NVRTC_SUCCESS;
}

__attribute__((visibility("default"))) const char *nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
  case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
  case NVRTC_ERROR_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
  case NVRTC_ERROR_INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
  case NVRTC_ERROR_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
  case NVRTC_ERROR_INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
  case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
  default: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

static const int known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

API nvrtcGetNumSupportedArchs(int *n) {
  *n = (int)(sizeof known / sizeof *known);
  return NVRTC_SUCCESS;
}

API nvrtcGetSupportedArchs(int *arch) {
  memcpy(arch, known, sizeof known);
  return NVRTC_SUCCESS;
}

static void add_file(nvrtcProgram p, const char *name, const char *text) {
  if (p->files < FILES) p->file[p->files++] = (text_file){strdup(name), strdup(text)};
}

API nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n,
                       const char *const *headers, const char *const *names) {
  int code = NVRTC_ERROR_OUT_OF_MEMORY;
  (void)name;
  if (fake_fails("nvrtcCreateProgram", &code, NULL, 0)) return (nvrtcResult)code;
  if (n >= FILES) return NVRTC_ERROR_INVALID_INPUT;
  nvrtcProgram p = calloc(1, sizeof *p);
  if (!p) return NVRTC_ERROR_OUT_OF_MEMORY;
  add_file(p, "text.c", text);
  for (int i = 0; i < n; i++) add_file(p, names[i], headers[i]);
  p->log = strdup("");
  *out = p;
  return NVRTC_SUCCESS;
}

API nvrtcDestroyProgram(nvrtcProgram *program) {
  nvrtcProgram p = *program;
  for (int i = 0; i < p->files; i++) free(p->file[i].name), free(p->file[i].text);
  free(p->log);
  free(p->object);
  free(p);
  *program = NULL;
  return NVRTC_SUCCESS;
}

static bool write_whole(const char *path, const void *p, size_t n) {
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  const bool ok = fwrite(p, 1, n, f) == n;
  return !fclose(f) && ok;
}

static void make_folders(char *path) {
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = 0;
      mkdir(path, 0777);
      *p = '/';
    }
  mkdir(path, 0777);
}

static bool write_files(nvrtcProgram p, const char *folder) {
  char path[2 * PATH];
  bool ok = true;
  for (int i = 0; i < p->files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, p->file[i].name);
    char *slash = strrchr(path, '/');
    *slash = 0;
    make_folders(path);
    *slash = '/';
    ok = ok && write_whole(path, p->file[i].text, strlen(p->file[i].text));
  }
  return ok;
}

static void remove_files(nvrtcProgram p, const char *folder) {
  char path[2 * PATH];
  for (int i = 0; i < p->files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, p->file[i].name);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/log", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/text.so", folder);
  unlink(path);
  rmdir(folder);
}

/* Runs the compiler; its messages go to LOG. */
static bool run(char *const *argv, const char *log) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status = -1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  const bool started = !posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (!started) return false;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool compile(nvrtcProgram p, char **defines, int n_defines, const char *object) {
  char folder[PATH], source[2 * PATH], built[2 * PATH], log[2 * PATH], own[PATH + 8], include[2 * PATH];
  snprintf(folder, sizeof folder, "%s/hone-text-XXXXXX", setting("TMPDIR", "/tmp"));
  if (!mkdtemp(folder)) return false;
  snprintf(source, sizeof source, "%s/text.c", folder);
  snprintf(built, sizeof built, "%s/text.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  snprintf(own, sizeof own, "-I%s", folder);
  snprintf(include, sizeof include, "-I%s", include_folder());
  char flags[512], *argv[DEFINES + 64], *save = NULL;
  int n = 0;
  argv[n++] = (char *)(uintptr_t)setting("HONE_FAKE_CC", "cc");
  /* Signed overflow and type punning mean on a GPU what they mean here with these flags. */
  static const char *const always[] = {"-std=gnu17",
                                       "-Og",
                                       "-fPIC",
                                       "-shared",
                                       "-nostdlib",
                                       "-fno-use-linker-plugin",
                                       "-march=native",
                                       "-fno-math-errno",
                                       "-ffp-contract=off",
                                       "-fwrapv",
                                       "-fno-strict-aliasing",
                                       "-fvisibility=default",
                                       "-Wl,-Bsymbolic",
                                       "-Werror=implicit-function-declaration",
                                       "-Werror=incompatible-pointer-types",
                                       "-Werror=int-conversion",
                                       "-DHN_EMULATED"};
  for (size_t i = 0; i < sizeof always / sizeof *always; i++) argv[n++] = (char *)(uintptr_t)always[i];
  for (int i = 0; i < n_defines; i++) argv[n++] = defines[i];
  snprintf(flags, sizeof flags, "%s", setting("HONE_FAKE_FLAGS", ""));
  for (char *w = strtok_r(flags, " ", &save); w && n < DEFINES + 48; w = strtok_r(NULL, " ", &save))
    argv[n++] = w;
  argv[n++] = own, argv[n++] = include;
  argv[n++] = "-o", argv[n++] = built, argv[n++] = source;
  /* All that a text needs: the linker looks no further. */
  argv[n++] = "-l:libm.so.6", argv[n++] = "-lgcc", argv[n] = NULL;
  bool ok = write_files(p, folder) && run(argv, log);
  if (ok) {
    p->object = read_whole(built, &p->object_bytes);
    ok = p->object && p->object_bytes;
    char partial[2 * PATH];
    snprintf(partial, sizeof partial, "%s.%d-%p", object, (int)getpid(), (void *)p);
    if (ok && write_whole(partial, p->object, p->object_bytes)) rename(partial, object);
  } else {
    size_t bytes = 0;
    char *text = read_whole(log, &bytes);
    free(p->log);
    p->log = text ? text : strdup("the C compiler could not be started");
  }
  remove_files(p, folder);
  return ok;
}

/* ---------------------------------------------------------------- recording */

enum { SEEN = 1 << 16, FEW = 4 };
static struct {
  uint64_t kind[SEEN]; /* hash table; 0: free */
  FILE *file;          /* the same for the processes that come after */
} seen;

/* Whether the kind is new; it is not, afterwards. */
static bool add_seen(uint64_t kind) {
  kind += !kind;
  size_t at = kind % SEEN;
  for (size_t left = SEEN; left; left--, at = (at + 1) % SEEN) {
    if (seen.kind[at] == kind) return false;
    if (seen.kind[at]) continue;
    seen.kind[at] = kind;
    return true;
  }
  return true;
}

static bool is_new(uint64_t kind) {
  if (!add_seen(kind)) return false;
  fwrite(&kind, sizeof kind, 1, seen.file);
  return true;
}

static void open_seen(const char *folder) {
  char path[PATH];
  uint64_t kind;
  snprintf(path, sizeof path, "%s", folder);
  make_folders(path);
  snprintf(path, sizeof path, "%s/.seen", folder);
  seen.file = fopen(path, "a+b");
  if (!seen.file) abort();
  while (fread(&kind, sizeof kind, 1, seen.file) == 1) add_seen(kind);
}

static bool starts(const char *p, const char *word) { return !strncmp(p, word, strlen(word)); }

/* What tactics write stands in front of the file's own text, whose name the last #line gives. */
static bool shows_something(const char *text) {
  static const char line[] = "#line 1 \"", define[] = "#define ", function[] = "hn_fn_";
  const char *file = text;
  bool new = false;
  for (const char *p = text; (p = strstr(p, line)); p++) file = p;
  const uint64_t h = hash_bytes(0xcbf29ce484222325u, file, strcspn(file, "\n"));
  for (const char *p = text; p < file; p++) {
    const bool is_define = starts(p, define);
    if (!is_define && !starts(p, function)) continue;
    const size_t n = is_define ? strcspn(p, "\n") : strcspn(p, "(");
    new |= is_new(hash_bytes(h, p, n));
    p += n - 1;
  }
  for (uint64_t i = 0; i < FEW && !new; i++) new = is_new(hash_bytes(h, &i, sizeof i));
  return new;
}

/* HONE_FAKE_RECORD/HASH/ gets the text and its headers. */
static bool record(nvrtcProgram p, uint64_t h) {
  static const char stub[] = HN_EMU_STUB;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char *folder = getenv("HONE_FAKE_RECORD");
  char path[PATH];
  if (!folder || !*folder) return false;
  pthread_mutex_lock(&lock);
  if (!seen.file) open_seen(folder);
  snprintf(path, sizeof path, "%s/%016llx", folder, (unsigned long long)h);
  if (access(path, F_OK) && shows_something(p->file[0].text)) write_files(p, path);
  fflush(seen.file);
  pthread_mutex_unlock(&lock);
  p->object_bytes = sizeof stub;
  p->object = malloc(sizeof stub);
  if (p->object) memcpy(p->object, stub, sizeof stub);
  return true;
}

API nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options) {
  int code = NVRTC_ERROR_COMPILATION;
  char text[256] = "a failure on purpose";
  if (fake_fails("nvrtcCompileProgram", &code, text, sizeof text)) {
    free(p->log);
    p->log = strdup(text);
    return (nvrtcResult)code;
  }
  char *defines[DEFINES];
  int n_defines = 0;
  uint64_t h = hash_emulator();
  for (int i = 0; i < p->files; i++) h = hash_text(hash_text(h, p->file[i].name), p->file[i].text);
  for (int i = 0; i < n; i++)
    if (!strncmp(options[i], "--gpu-architecture=", 19)) {
      p->virtual = !strncmp(options[i] + 19, "compute_", 8);
    } else if (!strncmp(options[i], "-D", 2) && n_defines < DEFINES) {
      defines[n_defines++] = (char *)(uintptr_t)options[i];
      h = hash_text(h, options[i]);
    }
  if (record(p, h)) return NVRTC_SUCCESS;
  char folder[PATH], path[PATH + 32];
  snprintf(folder, sizeof folder, "%s", setting("HONE_FAKE_CACHE", HN_EMULATED_CACHE));
  make_folders(folder);
  snprintf(path, sizeof path, "%s/%016llx.so", folder, (unsigned long long)h);
  p->object = read_whole(path, &p->object_bytes);
  if (p->object) return NVRTC_SUCCESS;
  return compile(p, defines, n_defines, path) ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

API nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes) {
  *bytes = strlen(p->log) + 1;
  return NVRTC_SUCCESS;
}

API nvrtcGetProgramLog(nvrtcProgram p, char *log) {
  strcpy(log, p->log);
  return NVRTC_SUCCESS;
}

API nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes) {
  *bytes = p->object_bytes;
  return p->object ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

API nvrtcGetCUBIN(nvrtcProgram p, char *cubin) {
  int code = NVRTC_ERROR_INVALID_PROGRAM;
  if (fake_fails("nvrtcGetCUBIN", &code, NULL, 0)) return (nvrtcResult)code;
  if (!p->object || p->virtual) return NVRTC_ERROR_INVALID_PROGRAM;
  memcpy(cubin, p->object, p->object_bytes);
  return NVRTC_SUCCESS;
}

/* Of a virtual architecture there is PTX alone; what stands for it is the same object. */
API nvrtcGetPTXSize(nvrtcProgram p, size_t *bytes) { return nvrtcGetCUBINSize(p, bytes); }
API nvrtcGetPTX(nvrtcProgram p, char *ptx) {
  if (!p->object || !p->virtual) return NVRTC_ERROR_INVALID_PROGRAM;
  memcpy(ptx, p->object, p->object_bytes);
  return NVRTC_SUCCESS;
}
