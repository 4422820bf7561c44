/* hone op new NAME: a folder with everything that a custom operator needs, ready to build. */
#include "cli/commands/op/definition.h"
#include "cli/commands/op/templates.h"
#include "cli/commands/op/text.h"
#include "cli/commands/op/verb.h"
#include "cli/terminal/term.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The template with @NAME@ (of files and functions) and @OP@ (the operator) put in. */
static op_text filled(const char *text, const char *name, const char *op) {
  op_text out = {0};
  for (const char *p = text; *p;) {
    const char *word = strncmp(p, "@NAME@", 6) == 0 ? name : strncmp(p, "@OP@", 4) == 0 ? op : NULL;
    if (word)
      op_put(&out, "%s", word), p += word == name ? 6 : 4;
    else
      op_put_char(&out, *p++);
  }
  return out;
}

static int write_file(const char *folder, const op_template *t, const char *name, const char *op) {
  hone_error e = {0};
  char path[4200];
  op_text file = filled(t->file, name, op), text = filled(t->text, name, op);
  snprintf(path, sizeof path, "%s/%s", folder, file.ptr ? file.ptr : "");
  text.failed = text.failed || file.failed;
  const hone_status status = op_text_save(&text, path, &e);
  free(file.ptr);
  if (status == HONE_OK) cli_print("  %s\n", path);
  return status == HONE_OK ? 0 : cli_report(&e);
}

static int run(const cli_args *args, const char *const *rest, size_t n) {
  (void)n;
  char name[64], op[64], folder[4000];
  if (!op_is_name(rest[0]))
    return cli_error(HONE_ERROR_USAGE, "'%s' is no name; expected letters, digits and '_', at most 60",
                     rest[0]);
  snprintf(op, sizeof op, "%s", rest[0]);
  op[0] = (char)toupper((unsigned char)op[0]);
  for (size_t i = 0; i <= strlen(rest[0]); i++) name[i] = (char)tolower((unsigned char)rest[0][i]);
  snprintf(folder, sizeof folder, "%s%s%s", args->output_dir ? args->output_dir : "",
           args->output_dir ? "/" : "", name);
  if (mkdir(folder, 0755) != 0)
    return cli_error(errno == EEXIST ? HONE_ERROR_USAGE : HONE_ERROR_IO, "cannot make folder %s: %s", folder,
                     strerror(errno));
  for (const op_template *t = args->general ? op_templates_general : op_templates_elementwise; t->file; t++) {
    const int code = write_file(folder, t, name, op);
    if (code) return code;
  }
  cli_print("\nnext: %s_ref.c says what %s computes, %s.json its operands; then\n  $ hone op build %s\n  $ "
            "hone op test %s "
            "--op-path %s\n",
            name, op, name, folder, name, folder);
  return cli_flush();
}

const op_verb cli_op_new = {
    "new", "NAME", "a folder with a definition, a reference, kernels for CPU and GPU, CMakeLists.txt",
    1,     1,      run};
