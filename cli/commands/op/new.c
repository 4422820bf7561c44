/* hone op new NAME: a folder with everything that a custom operator needs, ready to build. */
#include "cli/commands/op/definition.h"
#include "cli/commands/op/part.h"
#include "cli/commands/op/templates.h"
#include "cli/commands/op/text.h"
#include "cli/options/options.h"
#include "cli/options/shapes.h"
#include "cli/terminal/term.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What templates leave open: name of files and functions, the operator, its inputs, and the README's row of
 * the file that only this kind of operator has. */
typedef struct words {
  const char *name, *op, *row;
  char inputs[12];
} words;

static op_text filled(const char *text, const words *w) {
  const struct {
    const char *mark, *word;
  } known[] = {{"@NAME@", w->name}, {"@OP@", w->op}, {"@INPUTS@", w->inputs}, {"@ROW@", w->row}};
  op_text out = {0};
  for (const char *p = text; *p;) {
    size_t i = 0;
    while (i < 4 && strncmp(p, known[i].mark, strlen(known[i].mark)) != 0) i++;
    if (i < 4)
      op_put(&out, "%s", known[i].word), p += strlen(known[i].mark);
    else
      op_put_char(&out, *p++);
  }
  return out;
}

static int write_file(const char *folder, const op_template *t, const words *w) {
  hone_error e = {0};
  char path[4200];
  op_text file = filled(t->file, w), text = filled(t->text, w);
  snprintf(path, sizeof path, "%s/%s", folder, file.ptr ? file.ptr : "");
  text.failed = text.failed || file.failed;
  const hone_status status = op_text_save(&text, path, &e);
  free(file.ptr);
  if (status == HONE_OK) cli_print("  %s\n", path);
  return status == HONE_OK ? 0 : cli_report(&e);
}

/* The names between commas; a backslash takes what follows as it is. Their memory is *copy. False: one is
 * empty, there are too many, or memory is short. */
static bool split_names(const char *text, char **copy, const char **names, size_t most, size_t *n) {
  char *to = *copy = strdup(text);
  bool good = to != NULL;
  *n = 0;
  while (good) {
    const char *name = to;
    for (; *text && *text != ','; text++) {
      if (*text == '\\' && text[1]) text++;
      *to++ = *text;
    }
    const bool more = *text++ == ',';
    *to++ = 0; /* never behind `text`: each name leaves its comma */
    good = *name && *n < most;
    if (good) names[(*n)++] = name;
    if (!more) break;
  }
  return good;
}

static int write_text(const char *folder, const char *name, const char *ending, op_text *text) {
  hone_error e = {0};
  char path[4200];
  snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
  if (op_text_save(text, path, &e) != HONE_OK) return cli_report(&e);
  cli_print("  %s\n", path);
  return 0;
}

/* What --from and --nodes name, before anything is written. */
static int read_part(const cli_args *args, const char *name, const char *op, op_from *out) {
  hone_error e = {0};
  hone_model *model = NULL;
  op_source source = {0};
  const char *names[32];
  char *copy = NULL;
  size_t n;
  if (!split_names(args->nodes, &copy, names, sizeof names / sizeof *names, &n)) {
    free(copy);
    return cli_error(HONE_ERROR_USAGE, "hone op new: --nodes wants at most 32 names between commas, got '%s'",
                     args->nodes);
  }
  hone_status status = cli_load(args, args->from, &model, &e);
  if (status == HONE_OK) status = op_source_open(model, &source, &e);
  if (status == HONE_OK) status = op_part_read(&source, names, (uint32_t)n, name, op, out, &e);
  op_source_close(&source);
  if (model) hone_model_release(model);
  free(copy);
  return status == HONE_OK ? 0 : cli_report(&e);
}

/* Files of the operator itself come from the nodes, the others from the templates. */
static int write_all(const cli_args *args, const char *folder, const char *name, const char *op,
                     op_from *from) {
  int code = 0;
  const bool nodes = from->nodes.ptr != NULL;
  char row[200];
  words w = {name, op, row, ""};
  snprintf(w.inputs, sizeof w.inputs, "%u", from->inputs);
  if (nodes)
    snprintf(row, sizeof row, "| %s_nodes.h | the nodes, one after the other |\n", name);
  else
    snprintf(row, sizeof row, "| %s_cuda.cu | the kernel for the GPU |\n", name);
  if (args->general) row[0] = 0;
  for (const op_template *t = nodes           ? op_templates_nodes
                              : args->general ? op_templates_general
                                              : op_templates_elementwise;
       t->file && !code; t++)
    if (!args->from || nodes || strncmp(t->file, "@NAME@", 6) != 0) code = write_file(folder, t, &w);
  if (!args->from) return code;
  if (!code) code = write_text(folder, name, ".json", &from->json);
  if (!code && !nodes) code = write_text(folder, name, "_ref.c", &from->reference);
  if (!code && !nodes) code = write_text(folder, name, "_cpu.c", &from->cpu);
  if (!code && nodes) code = write_text(folder, name, "_nodes.h", &from->nodes);
  if (!code && !nodes) code = write_text(folder, name, "_cuda.cu", &from->cuda);
  return code;
}

/* The folder, which was made here, with what is in it: after a failure nothing partial stays. */
static void take_away(const char *folder) {
  DIR *d = opendir(folder);
  const struct dirent *e;
  while (d && (e = readdir(d)))
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(d), e->d_name, 0);
  if (d) closedir(d);
  (void)rmdir(folder);
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  char name[64], op[64], folder[4000];
  if (!op_is_name(rest[0])) return cli_error(HONE_ERROR_USAGE, "'%s' is no name; expected " OP_NAME, rest[0]);
  snprintf(op, sizeof op, "%s", rest[0]);
  op[0] = (char)toupper((unsigned char)op[0]);
  for (size_t i = 0; i <= strlen(rest[0]); i++) name[i] = (char)tolower((unsigned char)rest[0][i]);
  snprintf(folder, sizeof folder, "%s%s%s", args->output_dir ? args->output_dir : "",
           args->output_dir ? "/" : "", name);
  op_from from = {0};
  if (!args->from != !args->nodes || (args->from && args->general))
    return cli_error(HONE_ERROR_USAGE, "hone op new: --from and --nodes go together, and without --general");
  int code = args->from ? read_part(args, name, op, &from) : 0;
  if (code) return code;
  if (mkdir(folder, 0755) != 0)
    code = errno == EEXIST
               ? cli_error(HONE_ERROR_USAGE,
                           "%s is there already (another name, another --output-dir, or remove it)", folder)
               : cli_error(HONE_ERROR_IO, "cannot make folder %s: %s", folder, strerror(errno));
  else if ((code = write_all(args, folder, name, op, &from)) != 0)
    take_away(folder);
  op_from_drop(&from);
  if (code) return code;
  /* Of nodes everything is written already: what is left is to build it, and perhaps faster kernels. */
  if (args->from)
    cli_print(
        "\nnext: %s_ref.c computes what the nodes compute, %s.json has them as its pattern; nothing is left "
        "to write. %s_cpu.c is where to make it faster\n",
        name, name, name);
  else
    cli_print("\nnext: write in %s.json the operands, attributes and pattern of %s, in %s_ref.c what it "
              "computes, in "
              "%s_cpu.c its kernel%s; until then it is an example that works\n",
              name, op, name, name, args->general ? "" : ", in the .cu that of the GPU (or delete it)");
  cli_print("  $ hone op build %s\n  $ hone op test %s --op-path %s\n", folder, name, folder);
  return cli_flush();
}

static const cli_option options[] = {
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR", "where the folder is made (.)"},
    {0, "from", CLI_TEXT, CLI_FIELD(from), "MODEL", "the operator computes what nodes of this model compute"},
    {0, "nodes", CLI_TEXT, CLI_FIELD(nodes), "A,B,...",
     "their names, between commas (\\, in a name is a comma)"},
    {0, "general", CLI_FLAG, CLI_FIELD(general), NULL, "an operator that is not elementwise"},
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_op_new = {
    "op new",
    "NAME [--from MODEL --nodes A,B...]",
    "a folder with a definition, a reference, kernels for CPU and GPU, CMakeLists.txt",
    NULL,
    options,
    1,
    1,
    run};
