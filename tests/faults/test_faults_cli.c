/* test_faults_cli HONE_FAULTY [--command N --call M]
 *
 * The command while calls to the system fail, one in each run, one of each place in the sources over all of
 * the commands below: it ends by itself, well or with one line "hone: error: ..." and exit code 6 (3 or 4
 * where a file was concerned), and leaves no half file. Standard output on a full disk is such an error, too.
 */
#include "faults/from_environment.h"
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 100, MOST_SHOWN = 12 };

/* %: the folder. A file that appears must be one of `writes`, blank between them. */
static const struct {
  const char *line, *writes;
  bool same; /* its output and files are the same every time */
} commands[] = {
    {"zoo res3_block --batch 1 --width 0.1 -o %/out/m.onnx", "m.onnx", true},
    {"inspect %/m.onnx --json", "", false}, /* the peaks are measured in it */
    {"optimize %/m.onnx -o %/out/o.onnx", "o.onnx", true},
    {"optimize %/m.onnx -o %/out/p.hone -t 1", "p.hone", true},
    {"run %/m.onnx -t 1 --json", "", false},
    {"profile %/m.onnx -t 1 -n 2 -w 0 --json", "", false},
    {"profile %/m.onnx -t 1 -n 2 -w 0 --html %/out/p.html", "p.html", false},
    {"bench %/m.onnx -t 1 -n 2 -w 0 --json --save", "h.db h.db-wal h.db-shm h.db-journal", false},
    {"verify %/m.onnx -n 1 -t 1 --json", "", false},
    {"diagnose tests/importers/data/trtexec/profile.json tests/importers/data/trtexec/layers.json --json", "",
     true},
    {"report tests/importers/data/pytorch/gpu.json --json", "", false},
    {"compare tests/importers/data/trtexec/profile.json tests/importers/data/trtexec/profile_11.json --json",
     "", true},
    {"version --json", "", false},
    {"help", "", false}, /* without a locale it is plain ASCII */
};
enum { COMMANDS = sizeof commands / sizeof *commands };

typedef struct result {
  int status;
  char out[1 << 20], err[1 << 16];
} result;

static const char *program;
static char folder[256];
static unsigned runs, failures, wrong;

static void slurp(const char *name, char *to, size_t size) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(to, 1, size - 1, f) : 0;
  to[n] = 0;
  if (f) fclose(f);
}

static void empty_out(void) {
  char path[600];
  snprintf(path, sizeof path, "%s/out", folder);
  mkdir(path, 0777);
  DIR *d = opendir(path);
  for (const struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/out/%s", folder, e->d_name);
    unlink(path);
  }
  if (d) closedir(d);
}

static void redirect(int fd, const char *name) {
  char path[400];
  snprintf(path, sizeof path, name[0] == '/' ? "%s" : "%s/%s", name[0] == '/' ? name : folder, name);
  int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (to < 0 || dup2(to, fd) < 0) _exit(99);
  close(to);
}

static void execute(const char *line, const char *out, unsigned long long call, const char *events) {
  char text[1200], *argv[32] = {(char *)(uintptr_t)program}, number[32];
  size_t n = 0, k = 1;
  for (const char *p = line; *p && n < sizeof text - 300; p++)
    n += *p == '%' ? (size_t)sprintf(text + n, "%s", folder) : (text[n] = *p, 1u);
  text[n] = 0;
  char *save = NULL;
  for (char *word = strtok_r(text, " ", &save); word && k < 31; word = strtok_r(NULL, " ", &save))
    argv[k++] = word;
  argv[k] = NULL;
  snprintf(number, sizeof number, "%llu", call);
  char history[300];
  snprintf(history, sizeof history, "%s/out/h.db", folder);
  setenv("HONE_HISTORY", history, 1);
  if (call) setenv("HONE_FAIL_CALL", number, 1);
  if (events) setenv("HONE_FAIL_EVENTS", events, 1);
  redirect(1, out);
  redirect(2, "stderr");
  personality(ADDR_NO_RANDOMIZE); /* a place is the same address in every run */
  alarm(SECONDS);
  execv(program, argv);
  _exit(99);
}

static void run(const char *line, const char *out, unsigned long long call, const char *events, result *r) {
  empty_out();
  pid_t pid = fork();
  if (pid == 0) execute(line, out, call, events);
  while (waitpid(pid, &r->status, 0) < 0 && errno == EINTR) {
  }
  slurp("stdout", r->out, sizeof r->out);
  slurp("stderr", r->err, sizeof r->err);
}

static int errors_in(const char *err) {
  int n = 0;
  for (const char *p = err; (p = strstr(p, "hone: error: ")); p++) n++;
  return n;
}

static bool expected_file(const char *writes, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = writes; (p = strstr(p, name)); p++)
    if ((p == writes || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
  return false;
}

static const char *judge(int i, const result *r, const result *right) {
  static char buf[400];
  if (WIFSIGNALED(r->status)) {
    snprintf(buf, sizeof buf, "died of signal %d", WTERMSIG(r->status));
    return buf;
  }
  const int code = WEXITSTATUS(r->status);
  if (code != 0 && code != 6 && code != 3 && code != 4) {
    snprintf(buf, sizeof buf, "exit code %d", code);
    return buf;
  }
  if (errors_in(r->err) != (code != 0)) return code ? "not one error" : "an error and exit code 0";
  if (code == 0 && right && commands[i].same && strcmp(r->out, right->out) != 0) return "another output";
  char path[400];
  snprintf(path, sizeof path, "%s/out", folder);
  DIR *d = opendir(path);
  const char *bad = NULL;
  int files = 0;
  for (const struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.')) continue;
    files++;
    if (!expected_file(commands[i].writes, e->d_name))
      snprintf(buf, sizeof buf, "left %s", e->d_name), bad = buf;
  }
  if (d) closedir(d);
  return bad ? bad : code == 0 && commands[i].writes[0] && !files ? "no file" : NULL;
}

static void check(int i, const char *out, unsigned long long call, const result *right, bool must_fail) {
  static result r;
  run(commands[i].line, out, call, NULL, &r);
  const char *bad = judge(i, &r, right);
  if (!bad && must_fail && WEXITSTATUS(r.status) == 0) bad = "success";
  runs++;
  failures += WEXITSTATUS(r.status) != 0;
  if (!bad) return;
  if (wrong++ >= MOST_SHOWN) return;
  printf("WRONG hone %s, call %llu fails: %s\n%.600s", commands[i].line, call, bad, r.err);
  printf("    again: test_faults_cli %s --command %d --call %llu\n", program, i, call);
}

static bool is_new(uint32_t h) {
  static uint32_t slot[1 << 18];
  enum { CAP = sizeof slot / sizeof *slot };
  for (size_t k = h % CAP;; k = (k + 1) % CAP) {
    if (slot[k] == h) return false;
    if (!slot[k]) return slot[k] = h, true;
  }
}

static void walk(int i, const char *events, const fault_log *log) {
  static result right;
  run(commands[i].line, "stdout", 0, events, &right);
  const char *bad = judge(i, &right, NULL);
  if (bad || right.status != 0) {
    printf("WRONG hone %s without a fault: %s\n%.600s", commands[i].line, bad ? bad : "exit code", right.err);
    wrong++;
    return;
  }
  for (uint64_t k = 1; k <= log->calls && k <= FAULT_LOG_ROOM; k++) {
    const fault_event *e = &log->event[k - 1];
    if (is_new((e->near ^ e->kind) | 1)) check(i, "stdout", k, &right, false);
  }
  if (right.out[0]) check(i, "/dev/full", 0, NULL, true);
}

int main(int argc, char **argv) {
  const char *temporary = getenv("TMPDIR");
  char events[400];
  int command = -1;
  unsigned long long call = 0;
  program = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--command") == 0) command = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--call") == 0) call = strtoull(argv[i + 1], NULL, 10);
  }
  snprintf(folder, sizeof folder, "%s/hone_faults_XXXXXX", temporary ? temporary : "/tmp");
  if (!mkdtemp(folder)) return 99;
  snprintf(events, sizeof events, "%s/events", folder);
  int fd = open(events, O_RDWR | O_CREAT, 0666);
  if (fd < 0 || ftruncate(fd, sizeof(fault_log)) != 0) return 99;
  fault_log *log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  static result r;
  run("zoo res3_block --batch 1 --width 0.1 -o %/m.onnx", "stdout", 0, NULL, &r);
  for (int i = 0; i < COMMANDS && log != MAP_FAILED; i++) {
    if (command >= 0 && command != i) continue;
    if (call)
      check(i, "stdout", call, NULL, false);
    else
      walk(i, events, log);
  }
  printf("%u runs, %u with an error, %u wrong\n", runs, failures, wrong);
  if (temporary_remove(folder) != 0) printf("%s stays\n", folder);
  return wrong || (!call && failures < 50);
}
