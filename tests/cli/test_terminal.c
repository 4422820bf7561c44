/* Every command on a terminal, with a model, profiles, labels and file names that somebody hostile wrote:
 * what arrives holds no control byte but line ends, the tool's own colours and the codes of its progress
 * line. And with harmless ones nothing is escaped, so that no text of the tool's own is taken for a name. */
#include "temporary.h"
#include "net.h"
#include "model/onnx/onnx.h"

#include <hone/version.h>

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A colour that the tool does not have, a link, the clipboard, a forged line, C1, directions, and length. */
#define HOSTILE                                                                                              \
  "a\033[35mb\033]8;;http://x\033\\c\033]52;c;aGk=\a\nhone: error: forged\r\td\x7f"                          \
  "e\xc2\x9b"                                                                                                \
  "35mf\u202eg\u2066h\u2028i"
#define LONG                                                                                                 \
  "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuv" \
  "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuv"
/* The same for JSON. */
#define HOSTILE_JSON                                                                                         \
  "a\\u001b[35mb\\u001b]8;;http://x\\u0007c\\nhone: error: forged\\rd\\u007fe\\u009b35mf\\u202eg\\u2028h"
#define HOSTILE_FILE "m\033[35m\xc2\x9b" /* names of files may hold anything but a slash */

/* ---- what is run */

#define MOST 14
typedef struct command {
  int code; /* the exit code; -1: any */
  const char *argv[MOST];
} command;

/* M: the model, M2: another one, P: a profile, Q: another, L: labels. */
static const command commands[] = {
    {0, {"loop", "M", "--output-dir", "report"}},
    {0, {"inspect", "M"}},
    {0, {"inspect", "M", "--json"}},
    {3, {"inspect", "BAD"}},
    {3, {"inspect", "NOPE"}},
    {0, {"run", "M"}},
    {0, {"run", "M", "--labels", "L"}},
    {0, {"run", "M", "--json"}},
    {0, {"run", "M", "--output-dir", "outputs"}},
    {2, {"run", "M", "--input", "WORD=P"}},
    {2, {"run", "M", "--shape", "WORD=3"}},
    {2, {"run", "M", "--WORD"}},
    {2, {"chain"}},
    {3, {"chain", "NOPE", "--input", "L"}},
    {3, {"chain", "P", "--input", "L"}},
    {2, {"serve"}},
    {3, {"serve", "NOPE"}},
    {3, {"serve", "P"}},
    {2, {"serve", "M", "--listen", "WORD"}},
    {2, {"serve", "M", "--WORD"}},
    {2, {"pipeline", "M"}},
    {3, {"pipeline", "M", "--input", "NOPE"}},
    {2, {"pipeline", "M", "--input", "L", "--post", "WORD"}},
    {2, {"pipeline", "M", "--input", "L", "--workers", "WORD"}},
    {3, {"pipeline", "M", "--input", "L", "--pipeline", "NOPE"}},
    {-1, {"pipeline", "M", "--input", "L", "--labels", "L"}},
    {0, {"profile", "M", "-n", "5", "--lang", "zh", "--csv", "/dev/stdout"}},
    {0, {"profile", "M", "-n", "5", "--json"}},
    {-1, {"profile", "M", "-n", "5", "--filter", "WORD"}},
    {0, {"bench", "M", "-n", "5", "--save", "--tag", "WORD", "--commit", "WORD"}},
    {0, {"bench", "M", "-n", "5", "--json"}},
    {0, {"bench", "M", "--scenario", "single", "--min-duration", "0s"}},
    {2, {"bench", "M", "--scenario", "WORD"}},
    {-1, {"bench", "M", "--curve", "2", "--min-duration", "0s", "--html", "curve.html"}},
    {0, {"diagnose", "P"}},
    {0, {"diagnose", "P", "--lang", "zh"}},
    {0, {"diagnose", "P", "--json"}},
    {3, {"diagnose", "BAD"}},
    {2, {"diagnose", "P", "--threshold", "WORD=1"}},
    {0, {"diagnose", "P", "--model", "WORD"}},
    {0, {"report", "P"}},
    {0, {"report", "P", "--json"}},
    {0, {"compare", "P", "Q"}},
    {3, {"compare", "P", "BAD"}},
    {0, {"tune", "M"}},
    {0, {"history"}},
    {0, {"history", "1"}},
    {0, {"history", "--json"}},
    {0, {"history", "--plot"}},
    {-1, {"history", "--tag", "WORD"}},
    {-1, {"gate", "M", "--baseline", "WORD"}},
    {-1,
     {"gate", "M", "--baseline", "M2", "--pairs", "5", "--max-seconds", "5", "--markdown", "/dev/stdout",
      "--junit", "/dev/stdout"}},
    {-1, {"gate", "--baseline-cmd", "echo WORD >&2; exit 1", "--candidate-cmd", "true"}},
    {-1, {"verify", "M", "M2", "-n", "2"}},
    {0, {"verify", "M", "-n", "2"}},
    {3, {"eval", "M", "--data", "NOPE"}},
    {2, {"eval", "M", "--data", "WORD", "--mean", "WORD"}},
    {3, {"eval", "M", "--data", "BAD"}},
    {0, {"op"}},
    {0, {"op", "list"}},
    {0, {"op", "bench", "--help"}},
    {2, {"op", "list", "--tolerance", "1"}},
    {0, {"op", "list", "--json"}},
    {0, {"op", "why", "M"}},
    {2, {"op", "new", "a b"}},
    {4, {"op", "build", "NOPE"}},
    {4, {"op", "list", "--op-path", "NOPE"}},
    {2, {"op", "WORD"}},
    {0, {"quantize", "M", "-o", "OUT", "--calib", "random"}},
    {0, {"quantize", "M", "-o", "OUT", "--calib", "random", "--json"}},
    {3, {"quantize", "M", "-o", "OUT", "--calib", "NOPE"}},
    {3, {"quantize", "BAD", "-o", "OUT", "--calib", "random"}},
    {-1, {"quantize", "M", "-o", "OUT", "--calib", "random", "--only", "WORD"}},
    {2, {"quantize", "M", "-o", "OUT", "--calib", "random", "--method", "WORD"}},
    {0, {"optimize", "M", "-o", "OUT", "--explain"}},
    {0, {"plan", "M"}},
    {-1, {"plan", "M", "--shapes", "--profile", "WORD"}},
    {0, {"optimize", "M", "-o", "PLAN"}},
    {0, {"run", "PLAN"}},
    {-1, {"amdahl", "P", "--speedup", "2"}},
    {-1, {"amdahl", "WORD"}},
    {-1, {"device", "--device", "WORD"}},
    {0, {"doctor"}},
    {0, {"doctor", "--json"}},
    {2, {"doctor", "--lang", "WORD"}},
    {2, {"demo", "WORD"}},
    {-1, {"zoo", "WORD", "-o", "OUT"}},
    {2, {"help", "WORD"}},
    {0, {"help"}},
    {2, {"help", "--format", "WORD"}},
    {0, {"version"}},
    {2, {"WORD"}},
};

static const char *const names[] = {
#define COMMAND(name) #name,
#include "cli/commands.def"
#undef COMMAND
};

/* ---- the files, hostile and harmless */

typedef struct files {
  char folder[128];
  const char *word;
  bool hostile;
} files;

static const struct {
  const char *shorthand, *file;
} stands_for[] = {{"M", ".onnx"},      {"M2", "2.onnx"},    {"P", "p.json"},  {"Q", "q.json"},
                  {"L", "labels.txt"}, {"BAD", "bad.onnx"}, {"NOPE", "nope"}, {"OUT", "o.onnx"},
                  {"FIFO", ".fifo"},   {"PLAN", "o.hone"}};

static char *place(const files *f, const char *file, char *buf, size_t size) {
  snprintf(buf, size, "%s/%s%s", f->folder, f->hostile ? HOSTILE_FILE : "m", file);
  return buf;
}

static const char *name(const files *f, const char *letter, char *buf, size_t size) {
  snprintf(buf, size, "%s%s", letter, f->hostile ? HOSTILE LONG : "");
  return buf;
}

static void make_model(const files *f, const char *file, const char *op) {
  char path[300], x_name[600], y_name[600], n_name[600];
  hn_model *m = net_begin();
  hn_value *x =
      net_input(m, name(f, "x", x_name, sizeof x_name), HONE_DTYPE_F32, 2, (const int64_t[]){4, 32});
  hn_value *product =
      net_op(m, "MatMul", (hn_value *[]){x, net_weights(m, 2, (const int64_t[]){32, 10}, 1)}, 2);
  hn_value *y = hn_value_create(m->graph, name(f, "y", y_name, sizeof y_name));
  assert_non_null(
      hn_node_create(m->graph, NULL, op, NULL, name(f, "node", n_name, sizeof n_name), &product, 1, &y, 1));
  if (strcmp(op, "Nope") == 0)
    hn_graph_add_output(m->graph, y);
  else
    net_finish(m, y);
  m->producer = f->hostile ? HOSTILE : "test";
  assert_int_equal(hn_onnx_save(m, place(f, file, path, sizeof path), NULL), HONE_OK);
  hn_model_destroy(m);
}

static void make_text(const files *f, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void make_text(const files *f, const char *file, const char *format, ...) {
  char path[300];
  FILE *out = fopen(place(f, file, path, sizeof path), "w");
  assert_non_null(out);
  va_list ap;
  va_start(ap, format);
  vfprintf(out, format, ap);
  va_end(ap);
  assert_int_equal(fclose(out), 0);
}

static void make_files(files *f) {
  const char *word = f->hostile ? HOSTILE_JSON : "conv1";
  assert_non_null(mkdtemp(temporary(f->folder, sizeof f->folder, "hone-terminal")));
  f->word = f->hostile ? "w\033[35m\xc2\x9b\u202e\nhone: error: forged" : "word";
  make_model(f, ".onnx", "Relu");
  make_model(f, "2.onnx", "Tanh");
  make_model(f, "bad.onnx", "Nope");
  for (int i = 0; i < 2; i++)
    make_text(f, i ? "q.json" : "p.json",
              "[{\"count\":100},\n"
              "{\"name\":\"%s Conv\",\"timeMs\":300,\"averageMs\":3,\"medianMs\":3,\"percentage\":60},\n"
              "{\"name\":\"Reformatting CopyNode for Input Tensor 0 to %s\",\"timeMs\":%d,\"averageMs\":2,"
              "\"medianMs\":2,\"percentage\":40}]\n",
              word, word, 200 + 50 * i);
  make_text(f, "labels.txt", "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", "cat", "dog",
            f->hostile ? "\033[35mlabel\xc2\x9b\u202e\x80" : "cow", "1", "2", "3", "4",
            f->hostile ? "\033]0;t\a" : "5", "6", "7");
}

static void remove_files(const files *f) { assert_int_equal(temporary_remove(f->folder), 0); }

/* ---- running on a terminal */

static void fill(const files *f, const char *argument, char *buf, size_t size) {
  for (size_t i = 0; i < sizeof stands_for / sizeof *stands_for; i++)
    if (strcmp(argument, stands_for[i].shorthand) == 0) {
      place(f, stands_for[i].file, buf, size);
      return;
    }
  const char *at = strstr(argument, "WORD");
  if (at)
    snprintf(buf, size, "%.*s%s%s", (int)(at - argument), argument, f->word, at + 4);
  else
    snprintf(buf, size, "%s", argument);
}

/* What arrives at the terminal; free() it. */
static char *show(const files *f, const command *c, int *code) {
  char words[MOST][800];
  char *argv[MOST + 2] = {(char *)HONE_BINARY};
  int terminal, status;
  size_t n = 0, room = 1 << 16;
  char *text = malloc(room);
  assert_non_null(text);
  for (int i = 0; i < MOST && c->argv[i]; i++) {
    fill(f, c->argv[i], words[i], sizeof words[i]);
    argv[i + 1] = words[i];
  }
  const pid_t child = forkpty(&terminal, NULL, NULL, &(struct winsize){.ws_row = 40, .ws_col = 100});
  assert_true(child >= 0);
  if (child == 0) {
    /* HOME is the test's, so that the machine's peaks are measured once. */
    setenv("HONE_HISTORY", "history.db", 1);
    setenv("TERM", "xterm", 1);
    setenv("LANG", "C.UTF-8", 1);
    setenv("GITHUB_ACTIONS", "true", 1); /* annotations, too */
    unsetenv("NO_COLOR");
    if (chdir(f->folder) == 0) execv(HONE_BINARY, argv);
    _exit(127);
  }
  for (;;) {
    if (n + 4096 > room) assert_non_null(text = realloc(text, room *= 2));
    const ssize_t got = read(terminal, text + n, 4096);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break; /* EIO: nobody holds the other end */
    n += (size_t)got;
  }
  text[n] = 0;
  close(terminal);
  assert_int_equal(waitpid(child, &status, 0), child);
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return text;
}

/* ---- judging */

/* Length of one of the tool's own codes here, 0: none. */
static size_t own_code(const char *p) {
  static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m",
                                      "\033[32m", "\033[33m", "\033[36m", "\033[1;31m",
                                      "\r\033[K", "\r\r\n",   "\r\n"};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (strncmp(p, codes[i], strlen(codes[i])) == 0) return strlen(codes[i]);
  return 0;
}

/* Where a byte stands that a terminal may obey; NULL: nowhere. */
static const char *obeyed(const char *text) {
  for (const char *p = text; *p;) {
    const size_t own = own_code(p);
    const unsigned char c = (unsigned char)*p, d = c ? (unsigned char)p[1] : 0;
    if (own) {
      p += own;
      continue;
    }
    const unsigned char e = d ? (unsigned char)p[2] : 0;
    if (c < 0x20 && c != '\n') return p;
    if (c == 0x7f || (c == 0xc2 && d < 0xa0)) return p;
    if (c == 0xe2 && ((d == 0x80 && e >= 0xa8 && e <= 0xae) || (d == 0x81 && e >= 0xa6 && e <= 0xa9)))
      return p;
    if (strncmp(p, "\nhone: error: forged", 20) == 0) return p;
    p++;
  }
  return NULL;
}

static void explain(const command *c, const char *what, const char *text, const char *at) {
  print_message("hone");
  for (int i = 0; i < MOST && c->argv[i]; i++) print_message(" %s", c->argv[i]);
  const char *from = at - text > 60 ? at - 60 : text;
  print_message(": %s:", what);
  for (const char *p = from; *p && p < at + 60; p++)
    print_message((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e ? "<%02x>" : "%c", (unsigned char)*p);
  print_message("\n");
}

static bool is_signal(int code) { return code > 128 && code < 128 + 64 && code != 130; }

static bool says_json(const command *c) {
  for (int i = 0; i < MOST && c->argv[i]; i++)
    if (!strcmp(c->argv[i], "--json")) return true;
  return false;
}

/* The first escape of a character; JSON's of &, < and > are so that it may stand in a page. */
static const char *first_escape(const char *text, bool json) {
  const char *p = strstr(text, "\\x");
  if (p) return p;
  for (p = text; (p = strstr(p, "\\u")); p += 2)
    if (!json || (strncmp(p + 2, "0026", 4) && strncmp(p + 2, "003c", 4) && strncmp(p + 2, "003e", 4)))
      return p;
  return NULL;
}

/* Commands on the files; returns how many were wrong. */
static int try_all(const files *f) {
  int wrong = 0;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    const command *c = &commands[i];
    int code;
    char *text = show(f, c, &code);
    const char *at = obeyed(text);
    if (at) explain(c, "a terminal obeys this", text, at);
    /* The tool's own text through %s, where a name belongs. */
    const char *escaped = f->hostile ? NULL : first_escape(text, says_json(c));
    if (escaped) explain(c, "own text was escaped", text, escaped);
    const bool other = is_signal(code) || (c->code >= 0 && code != c->code);
    if (other) explain(c, "another exit code", text, text);
    if (other) print_message("got %d, wanted %d\n", code, c->code);
    wrong += at || escaped || other;
    free(text);
  }
  return wrong;
}

static void nothing_hostile_reaches_the_terminal(void **state) {
  (void)state;
  files f = {.hostile = true};
  make_files(&f);
  const int wrong = try_all(&f);
  remove_files(&f);
  assert_int_equal(wrong, 0);
}

static void own_text_is_not_escaped(void **state) {
  (void)state;
  files f = {.hostile = false};
  make_files(&f);
  const int wrong = try_all(&f);
  remove_files(&f);
  assert_int_equal(wrong, 0);
}

/* Nothing waits for a pipe that nobody writes into, or reads a device until memory ends: one line, exit 3. */
static void nothing_waits_for_a_pipe(void **state) {
  (void)state;
  static const command refused[] = {
      {3, {"run", "FIFO"}},
      {3, {"inspect", "FIFO"}},
      {3, {"verify", "M", "FIFO"}},
      {3, {"diagnose", "FIFO"}},
      {3, {"report", "FIFO"}},
      {3, {"compare", "P", "FIFO"}},
      {3, {"profile", "FIFO"}},
      {3, {"bench", "FIFO"}},
      {3, {"serve", "FIFO"}},
      {3, {"loop", "FIFO"}},
      {3, {"loop", "M", "--baseline", "FIFO"}},
      {3, {"tune", "FIFO"}},
      {3, {"tune", "M", "--cache", "FIFO"}},
      {3, {"optimize", "FIFO", "-o", "OUT"}},
      {3, {"quantize", "FIFO", "-o", "OUT", "--calib", "random"}},
      {3, {"quantize", "M", "-o", "OUT", "--calib", "FIFO"}},
      {3, {"run", "M", "--labels", "FIFO"}},
      {3, {"run", "M", "--labels", "/dev/zero"}},
      {3, {"run", "M", "--input", "FIFO"}},
      {3, {"run", "M", "--input", "/dev/zero"}},
      {3, {"diagnose", "P", "--float", "FIFO"}},
      {3, {"gate", "M", "--baseline", "FIFO"}},
      {3, {"inspect", "/dev/zero"}},
  };
  files f = {.hostile = false};
  char path[300];
  int wrong = 0;
  make_files(&f);
  assert_int_equal(mkfifo(place(&f, ".fifo", path, sizeof path), 0600), 0);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    int code;
    alarm(120); /* far beyond what it takes */
    char *text = show(&f, &refused[i], &code);
    alarm(0);
    const bool other = code == 0 || is_signal(code) || (refused[i].code >= 0 && code != refused[i].code);
    if (other) explain(&refused[i], "another exit code", text, text);
    wrong += other;
    free(text);
  }
  remove_files(&f);
  assert_int_equal(wrong, 0);
}

/* Who adds a command adds it above. */
static void every_command_is_tried(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool tried = false;
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
      tried = tried || strcmp(commands[k].argv[0], names[i]) == 0;
    if (!tried) fail_msg("hone %s is not tried", names[i]);
  }
}

/* The judge itself. */
static void what_is_obeyed_is_found(void **state) {
  (void)state;
  assert_null(obeyed("plain\r\n\033[31mred\033[0m \r\033[Kprogress 中文 é\n"));
  assert_non_null(obeyed("\033[35m"));
  assert_non_null(obeyed("a\033]8;;x\a"));
  assert_non_null(obeyed("a\rb"));
  assert_non_null(obeyed("\xc2\x9b"));
  assert_non_null(obeyed("\u202e"));
  assert_non_null(obeyed("x\nhone: error: forged"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_obeyed_is_found),
      cmocka_unit_test(every_command_is_tried),
      cmocka_unit_test(nothing_hostile_reaches_the_terminal),
      cmocka_unit_test(own_text_is_not_escaped),
      cmocka_unit_test(nothing_waits_for_a_pipe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
