/* check_texts: device texts through the real NVRTC, which needs no GPU.
 *
 * usage: check_texts FOLDER ARCH [--most N] [--jobs N] [-v]
 * FOLDER is what the emulated compiler recorded (HONE_FAKE_RECORD): one folder for each text as tactics gave
 * it, with prefix and headers. ARCH is "sm_80" or "sm_90a". At most N (6) variants of each text are compiled,
 * chosen evenly. Prints SKIP where there is no NVRTC. */
#include "skipped.h"
#include "backends/cuda/driver/dl_nvrtc.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 1024, MOST_HEADERS = 64, MOST_TEXTS = 8192 };

typedef struct text {
  char folder[300], stem[64];
} text;

static text texts[MOST_TEXTS];
static size_t count;
static hn_dl_nvrtc rtc;

static char *read_whole(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *p = NULL;
  size_t n = 0, room = 0;
  do {
    if (room - n < 4096) p = realloc(p, room = 2 * room + 65536);
    if (!p) exit(6);
    n += fread(p + n, 1, room - n - 1, f);
  } while (!feof(f) && !ferror(f));
  p[n] = 0;
  fclose(f);
  return p;
}

/* The file that the text is from stands in the last #line of the program. */
static void stem_of(const char *program, char stem[64]) {
  static const char word[] = "#line 1 \"";
  const char *at = NULL;
  for (const char *p = program; (p = strstr(p, word)); p++) at = p + sizeof word - 1;
  snprintf(stem, 64, "%.*s", at ? (int)strcspn(at, "\"") : 1, at ? at : "?");
}

static int by_stem(const void *a, const void *b) {
  const text *x = a, *y = b;
  const int c = strcmp(x->stem, y->stem);
  return c ? c : strcmp(x->folder, y->folder);
}

static void find_texts(const char *folder) {
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d)) && count < MOST_TEXTS;) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s/text.c", folder, e->d_name);
    char *program = *e->d_name == '.' ? NULL : read_whole(path);
    if (!program) continue;
    snprintf(texts[count].folder, sizeof texts[count].folder, "%s/%s", folder, e->d_name);
    stem_of(program, texts[count++].stem);
    free(program);
  }
  if (d) closedir(d);
  qsort(texts, count, sizeof *texts, by_stem);
}

/* Leaves at most `most` of every stem. */
static void choose(size_t most) {
  size_t kept = 0;
  for (size_t first = 0, end; first < count; first = end) {
    for (end = first; end < count && !strcmp(texts[end].stem, texts[first].stem);) end++;
    const size_t n = end - first, take = n < most ? n : most;
    for (size_t i = 0; i < take; i++) texts[kept++] = texts[first + i * n / take];
  }
  count = kept;
}

static bool compile(const text *t, const char *arch) {
  char path[PATH], option[64];
  const char *names[MOST_HEADERS];
  char *headers[MOST_HEADERS];
  int n = 0;
  snprintf(path, sizeof path, "%s/text.c", t->folder);
  char *program = read_whole(path);
  DIR *d = opendir(t->folder);
  for (struct dirent *e; d && (e = readdir(d)) && n < MOST_HEADERS;) {
    if (*e->d_name == '.' || !strcmp(e->d_name, "text.c")) continue;
    snprintf(path, sizeof path, "%s/%s", t->folder, e->d_name);
    names[n] = strdup(e->d_name);
    headers[n++] = read_whole(path);
  }
  nvrtcProgram p;
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  const char *const options[] = {option, "--std=c++17", "-default-device"};
  nvrtcResult r =
      rtc.nvrtcCreateProgram(&p, program, t->stem, n, (const char *const *)(void *)headers, names);
  if (r == NVRTC_SUCCESS) {
    r = rtc.nvrtcCompileProgram(p, 3, options);
    size_t size = 0;
    if (r != NVRTC_SUCCESS && rtc.nvrtcGetProgramLogSize(p, &size) == NVRTC_SUCCESS && size) {
      char *log = malloc(size);
      if (log && rtc.nvrtcGetProgramLog(p, log) == NVRTC_SUCCESS)
        printf("FAIL %s for %s (%s)\n%.2000s\n", t->stem, arch, t->folder, log);
      free(log);
    }
    rtc.nvrtcDestroyProgram(&p);
  }
  return r == NVRTC_SUCCESS;
}

int main(int argc, char **argv) {
  size_t most = 6, jobs = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
  bool verbose = false;
  for (int i = 3; i < argc; i++) {
    if (!strcmp(argv[i], "--most") && i + 1 < argc)
      most = strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--jobs") && i + 1 < argc)
      jobs = strtoul(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "-v"))
      verbose = true;
  }
  if (argc < 3 || !most || !jobs) {
    fprintf(stderr, "usage: check_texts FOLDER ARCH [--most N] [--jobs N] [-v]\n");
    return 2;
  }
  hone_error error = {0};
  unsetenv("HONE_LIBNVRTC"); /* the real one */
  if (hn_dl_nvrtc_load(&rtc, NULL, 0, &error)) {
    printf("SKIP: %s\n", error.what);
    return SKIPPED;
  }
  find_texts(argv[1]);
  const size_t all = count;
  choose(most);
  fflush(stdout);
  for (size_t job = 0; job < jobs; job++) {
    if (fork()) continue;
    bool good = true;
    for (size_t i = job; i < count; i += jobs) {
      if (verbose) printf("%s %s\n", texts[i].stem, texts[i].folder);
      good &= compile(&texts[i], argv[2]);
    }
    fflush(stdout);
    _exit(good ? 0 : 1);
  }
  bool good = count > 0;
  for (int status; wait(&status) > 0;) good &= WIFEXITED(status) && !WEXITSTATUS(status);
  printf("%zu of %zu recorded texts compiled for %s%s\n", count, all, argv[2],
         good ? "" : ": not all of them do");
  return good ? 0 : 1;
}
