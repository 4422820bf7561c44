/* hone op build: from a folder's definition and C files to build/NAME.so, by a C compiler alone. */
#include "cli/commands/op/generate.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_TEXT = 4 << 20, WORDS = 64, PATH = 4300 };

static bool there(const char *path) { return access(path, R_OK) == 0; }

/* Where hone's headers are: beside the command as it is installed, or in the sources that it was made of. */
static bool headers(char *buf, size_t size) {
  char exe[4000], file[PATH];
  const char *given = getenv("HONE_INCLUDE");
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (given) return (size_t)snprintf(buf, size, "%s", given) < size;
  if (n > 0) {
    exe[n] = 0;
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
    snprintf(buf, size, "%.3900s/../include", exe);
    snprintf(file, sizeof file, "%.4000s/hone/kernel.h", buf);
    if (there(file)) return true;
  }
  snprintf(buf, size, "%s", HONE_SOURCE_INCLUDE);
  snprintf(file, sizeof file, "%.4000s/hone/kernel.h", buf);
  return there(file);
}

typedef struct words {
  char *word[WORDS];
  int n;
} words;

static void add(words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(words *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (w->n < WORDS - 1 && vasprintf(&w->word[w->n], format, args) >= 0) w->n++;
  va_end(args);
  w->word[w->n] = NULL;
}

/* Words between blanks; the texts are hone's own, or of CC and CFLAGS. */
static void add_split(words *w, const char *text) {
  for (text += strspn(text, " "); *text;) {
    const int n = (int)strcspn(text, " ");
    add(w, "%.*s", n, text);
    text += n;
    text += strspn(text, " ");
  }
}

static void forget(words *w) {
  for (int i = 0; i < w->n; i++) free(w->word[i]);
  w->n = 0;
}

/* Runs it; its messages go where ours go. Returns the exit code of hone. */
static int execute(words *w, const char *what) {
  pid_t pid;
  int state = 0;
  (void)fflush(NULL);
  const int failed = posix_spawnp(&pid, w->word[0], NULL, NULL, w->word, environ);
  if (failed)
    return cli_error(HONE_ERROR_MISSING, "cannot start the C compiler '%s': %s (CC names another)",
                     w->word[0], strerror(failed));
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return 0;
  return cli_error(
      HONE_ERROR_INPUT,
      "%s does not compile (above: what the compiler says; build/*_op.h declares what it is to define)",
      what);
}

typedef struct job {
  const op_definition *d;
  char include[PATH], build[PATH];
  op_parts parts;
  const char *compiler;
} job;

static int compile(const job *j, const char *source, const char *object, const op_tier *tier, int tile) {
  words w = {0};
  const char *flags = getenv("CFLAGS");
  add_split(&w, j->compiler);
  add_split(&w, "-std=gnu11 -O3 -fPIC -fvisibility=hidden -ffp-contract=fast -fno-math-errno -Wall -Wextra");
  if (tier) {
    add_split(&w, tier->flags);
    add(&w, "-DHONE_TIER=%s", tier->name);
  }
  if (tile) add(&w, "-DHONE_TILE=%d", tile);
  if (flags) add_split(&w, flags);
  add(&w, "-I%s", j->include);
  add(&w, "-I%s", j->build);
  add_split(&w, "-c -o");
  add(&w, "%s/%s", j->build, object);
  add(&w, "%s", source);
  const char *slash = strrchr(source, '/');
  const int code = execute(&w, slash ? slash + 1 : source);
  forget(&w);
  return code;
}

static int generate(const job *j, const char *name, const char *cuda_text) {
  char path[PATH];
  op_text text = {0};
  hone_error e = {0};
  if (strcmp(name, "op.h") == 0)
    op_generate_header(j->d, &j->parts, &text);
  else
    op_generate_source(j->d, &j->parts, cuda_text, &text);
  snprintf(path, sizeof path, "%.4000s/%s_%s", j->build, j->d->stem, name);
  return op_text_save(&text, path, &e) == HONE_OK ? 0 : cli_report(&e);
}

static int generate_both(const job *j) {
  char path[PATH], *text = NULL;
  size_t size;
  hone_error e = {0};
  snprintf(path, sizeof path, "%.4000s/%s_cuda.cu", j->d->folder, j->d->stem);
  if (j->parts.cuda && hone_file_read(path, MOST_TEXT, &text, &size, &e) != HONE_OK) return cli_report(&e);
  int code = generate(j, "op.h", NULL);
  if (code == 0) code = generate(j, "op.c", text);
  hone_file_free(text);
  return code;
}

static int compile_all(const job *j, words *objects) {
  char source[PATH], object[200];
  const op_definition *d = j->d;
  snprintf(source, sizeof source, "%.4000s/%s_op.c", j->build, d->stem);
  int code = compile(j, source, "op.o", NULL, 0);
  add(objects, "%s/op.o", j->build);
  snprintf(source, sizeof source, "%.4000s/%s_ref.c", d->folder, d->stem);
  if (code == 0) code = compile(j, source, "ref.o", NULL, 0);
  add(objects, "%s/ref.o", j->build);
  if (j->parts.launch && code == 0) {
    snprintf(source, sizeof source, "%.4000s/%s_cuda.c", d->folder, d->stem);
    code = compile(j, source, "cuda.o", NULL, 0);
    add(objects, "%s/cuda.o", j->build);
  }
  snprintf(source, sizeof source, "%.4000s/%s_cpu.c", d->folder, d->stem);
  for (int t = 0; j->parts.cpu && t < OP_TIERS; t++)
    for (uint32_t k = 0; k < (d->n_tiles ? d->n_tiles : 1) && code == 0; k++) {
      const int tile = d->n_tiles ? d->tile[k] : 0;
      snprintf(object, sizeof object, "%s_%d.o", op_tiers[t].name, tile);
      code = compile(j, source, object, &op_tiers[t], tile);
      add(objects, "%s/%s", j->build, object);
    }
  return code;
}

/* All objects as NAME.so, which takes the place of an old one only when it is whole. */
static int link_all(const job *j, const words *objects, char *path, size_t size) {
  words w = {0};
  char temporary[PATH + 8];
  snprintf(path, size, "%.4000s/%s.so", j->build, j->d->stem);
  snprintf(temporary, sizeof temporary, "%s.new", path);
  add_split(&w, j->compiler);
  add_split(&w, "-shared -o");
  add(&w, "%s", temporary);
  for (int i = 0; i < objects->n; i++) add(&w, "%s", objects->word[i]);
  add(&w, "-lm");
  int code = execute(&w, "the plugin");
  forget(&w);
  if (code == 0 && rename(temporary, path) != 0)
    code = cli_error(HONE_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
  if (code) (void)unlink(temporary);
  return code;
}

/* Loads what was built as every run would. */
static int try_it(const char *path) {
  hone_error e = {0};
  hone_plugin_info p;
  char why[1200], whole[4200];
  if (!realpath(path, whole)) return cli_error(HONE_ERROR_IO, "%s has gone", path);
  if (hone_plugins_load(&(hone_plugins_options){.path = whole}, &e) != HONE_OK) return cli_report(&e);
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++) {
    if (strcmp(p.path, whole) != 0) continue;
    if (p.error) {
      (void)hone_error_format(p.error, why, sizeof why);
      return cli_error(HONE_ERROR_INPUT, "%s was built, but cannot be used: %s", path, why);
    }
    const uint32_t tactics = p.plugin ? p.plugin->n_tactics : 0,
                   patterns = p.plugin ? p.plugin->n_patterns : 0;
    cli_print("%s: operator %s, %u tactic%s, %u pattern%s\n", path, p.name, tactics, cli_s(tactics), patterns,
              cli_s(patterns));
  }
  return cli_flush();
}

static int build(const cli_args *args, job *j) {
  char path[PATH];
  const op_definition *d = j->d;
  words objects = {0};
  static const struct {
    const char *ending;
    size_t part;
  } parts[] = {{"cpu.c", offsetof(op_parts, cpu)},
               {"cuda.cu", offsetof(op_parts, cuda)},
               {"cuda.c", offsetof(op_parts, launch)}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    snprintf(path, sizeof path, "%.4000s/%s_%s", d->folder, d->stem, parts[i].ending);
    *(bool *)((char *)&j->parts + parts[i].part) = there(path);
  }
  snprintf(path, sizeof path, "%.4000s/%s_ref.c", d->folder, d->stem);
  if (!there(path))
    return cli_error(HONE_ERROR_INPUT,
                     "%s is missing: every operator needs a reference, which its kernels are tested "
                     "against",
                     path);
  if (args->output_dir)
    snprintf(j->build, sizeof j->build, "%.4000s", args->output_dir);
  else
    snprintf(j->build, sizeof j->build, "%.4000s/build", d->folder);
  if (mkdir(j->build, 0755) != 0 && errno != EEXIST)
    return cli_error(HONE_ERROR_IO, "cannot make folder %s: %s", j->build, strerror(errno));
  int code = generate_both(j);
  if (code || args->c_only) return code;
  if (!headers(j->include, sizeof j->include))
    return cli_error(HONE_ERROR_MISSING,
                     "hone's headers were not found; HONE_INCLUDE names the folder that hone/plugin.h "
                     "is in");
  code = compile_all(j, &objects);
  if (code == 0) code = link_all(j, &objects, path, sizeof path);
  for (int i = 0; i < objects.n; i++) (void)unlink(objects.word[i]);
  forget(&objects);
  return code ? code : try_it(path);
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  const size_t n = args->rest.n;
  op_definition d;
  hone_error e = {0};
  const char *cc = getenv("CC");
  if (op_definition_read(n ? rest[0] : ".", &d, &e) != HONE_OK) return cli_report(&e);
  job j = {.d = &d, .compiler = cc && *cc ? cc : "cc"};
  const int code = build(args, &j);
  op_definition_free(&d);
  return code;
}

static const cli_option options[] = {
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR",
     "where the plugin is made (its folder's build)"},
    {0, "c-only", CLI_FLAG, CLI_FIELD(c_only), NULL, "write NAME_op.c and NAME_op.h, and compile nothing"},
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_op_build = {
    "op build", "[DIR]", "the plugin DIR/build/NAME.so of a folder; needs a C compiler", NULL, options, 0,
    1,          run};
