/* Man pages of section 1 in man(7)'s macros. */
#include "cli/manual/manual.h"
#include "cli/options/files.h"
#include "cli/options/version.h"
#include "cli/terminal/term.h"

#include <string.h>

/* Text of a page: nothing in it is a macro, and a dash is one that can be copied. */
static void put_text(FILE *out, const char *text) {
  for (bool first = true; *text; text++) {
    if (first && (*text == '.' || *text == '\'')) cli_put(out, "\\&");
    if (*text == '\\')
      cli_put(out, "\\e");
    else if (*text == '-')
      cli_put(out, "\\-");
    else if (!(first && *text == '\n')) /* no empty line */
      cli_put(out, (char[]){*text, 0});
    first = *text == '\n';
  }
}

/* "hone-op-new" */
static const char *page_name(const cli_command *c, char buf[64]) {
  snprintf(buf, 64, "hone%s%s", c ? "-" : "", c ? c->name : "");
  for (char *p = buf; *p; p++)
    if (*p == ' ') *p = '-';
  return buf;
}

static void put_heading(FILE *out, const cli_command *c) {
  char name[64], upper[64];
  snprintf(upper, sizeof upper, "%s", page_name(c, name));
  for (char *p = upper; *p; p++)
    if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
  cli_print_to(out, ".TH %s 1 \"%s\" \"hone %s\" \"User Commands\"\n.SH NAME\n", upper, cli_commit_date(),
               hone_version());
  put_text(out, name);
  cli_put(out, " \\- ");
  put_text(out, c ? c->summary : "make neural-network inference fast and explain how");
  cli_put(out, "\n.SH SYNOPSIS\n");
}

static void put_options(FILE *out, const cli_option *o) {
  for (; o->name; o++) {
    cli_put(out, ".TP\n");
    if (o->letter)
      cli_put(out, (const char[]){'\\', 'f', 'B', '\\', '-', o->letter, '\\', 'f', 'R', ',', ' ', 0});
    cli_put(out, "\\fB\\-\\-");
    put_text(out, o->name);
    cli_put(out, "\\fR");
    if (o->value) {
      cli_put(out, " \\fI");
      put_text(out, o->value);
      cli_put(out, "\\fR");
    }
    cli_put(out, "\n");
    put_text(out, o->help);
    cli_put(out, o->kind == CLI_LIST ? "; may be repeated\n" : "\n");
  }
}

static void put_codes(FILE *out) {
  static const char *const rows[][2] = {{"0", "good"},
                                        {"1", "a negative verdict: different, worse, wrong"},
                                        {"2", "wrong usage"},
                                        {"3", "bad input"},
                                        {"4", "missing on this machine"},
                                        {"5", "no verdict, or mistrusted"},
                                        {"6", "resources exhausted, a disk full, a device fault"},
                                        {"130", "interrupted"}};
  cli_put(out, ".SH \"EXIT STATUS\"\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    cli_print_to(out, ".TP\n.B %s\n%s\n", rows[i][0], rows[i][1]);
}

static void put_reference(FILE *out, const cli_command *c) {
  char name[64];
  put_text(out, page_name(c, name));
  cli_put(out, " (1)");
}

static void put_commands(FILE *out, const cli_command *const *c, size_t skip) {
  for (; *c; c++) {
    cli_put(out, ".TP\n.B ");
    put_text(out, (*c)->name + skip);
    cli_put(out, "\n");
    put_text(out, (*c)->summary);
    cli_put(out, "\n");
  }
}

static void put_overview(FILE *out) {
  cli_put(
      out,
      ".B hone\n.I MODEL.onnx\n.br\n.B hone\n.I COMMAND\n.RI [ OPTION ...]\n.SH DESCRIPTION\n"
      "Finds where the time of a neural network goes, says why, removes the cause, and proves that the\n"
      "answers are right.\n.PP\n.B hone\n.I MODEL.onnx\ndoes all of it: measure, explain, change, prove, "
      "report. Commands do one step of it.\n"
      "A model is an ONNX file, or\n.BI zoo: NAME\n.RB ( \"hone zoo\" \" lists those).\"\n.SH COMMANDS\n");
  put_commands(out, cli_commands, 0);
  put_codes(out);
  static const char *const rows[][2] = {
      {"HONE_OP_PATH", "folders of custom operators, with colons between them"},
      {"HONE_HISTORY", "the file of kept runs ($XDG_DATA_HOME/hone/history.db)"},
      {"HONE_CPU", "scalar, avx2 and so on: the instruction sets to use at most"},
      {"HONE_TUNE_CACHE", "the file of measured kernels; off: none"},
      {"XDG_CACHE_HOME", "where measurements are kept (~/.cache)"},
      {"NO_COLOR", "no colours"}};
  cli_put(out, ".SH ENVIRONMENT\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    cli_print_to(out, ".TP\n.B %s\n", rows[i][0]);
    put_text(out, rows[i][1]);
    cli_put(out, "\n");
  }
  cli_put(out, ".SH \"SEE ALSO\"\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    cli_put(out, ".BR ");
    put_reference(out, *c);
    cli_put(out, c[1] ? ",\n" : "\n");
  }
}

void cli_man_page(FILE *out, const cli_command *c) {
  put_heading(out, c);
  if (!c) {
    put_overview(out);
    return;
  }
  cli_put(out, ".B hone ");
  put_text(out, c->name);
  if (*c->arguments) {
    cli_put(out, "\n.I \"");
    put_text(out, c->arguments);
    cli_put(out, "\"");
  }
  cli_put(out, "\n.RI [ OPTION ...]\n.SH DESCRIPTION\n");
  put_text(out, c->details ? c->details : c->summary);
  cli_put(out, "\n");
  if (c == &cli_cmd_op) {
    cli_put(out, ".SH COMMANDS\n");
    put_commands(out, cli_op_verbs, strlen("op "));
  }
  cli_put(out, ".SH OPTIONS\n");
  put_options(out, c->options);
  put_options(out, cli_everywhere);
  put_codes(out);
  cli_put(out, ".SH \"SEE ALSO\"\n.BR ");
  put_reference(out, NULL);
  cli_put(out, "\n");
}

static hone_status write_page(const char *folder, const cli_command *c, hone_error *error) {
  char name[64], path[4096];
  cli_file file;
  snprintf(path, sizeof path, "%s/%s.1", folder, page_name(c, name));
  hone_status status = cli_file_open(&file, path, error);
  if (status != HONE_OK) return status;
  cli_man_page(file.stream, c);
  return cli_file_commit(&file, error);
}

hone_status cli_man_folder(const char *folder, hone_error *error) {
  size_t made;
  hone_status status = cli_make_folder(folder, &made, error);
  if (status == HONE_OK) status = write_page(folder, NULL, error);
  for (const cli_command *const *c = cli_commands; *c && status == HONE_OK; c++)
    status = write_page(folder, *c, error);
  for (const cli_command *const *c = cli_op_verbs; *c && status == HONE_OK; c++)
    status = write_page(folder, *c, error);
  return status;
}
