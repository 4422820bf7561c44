/* Parsing by table, and the help text that the same tables give. */
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option cli_everywhere[] = {
    {0, "op-path", CLI_LIST, CLI_FIELD(op_path), "DIR",
     "custom operators in this folder, or this plugin, too (HONE_OP_PATH, ~/.local/share/hone/ops)"},
    {0, "op-disable", CLI_LIST, CLI_FIELD(op_disable), "NAME",
     "without this plugin, or this custom operator's patterns and tactics"},
    CLI_END};

static const cli_option *find_in(const cli_option *o, const char *name, size_t len) {
  for (; o->name; o++)
    if (strlen(o->name) == len && strncmp(o->name, name, len) == 0) return o;
  return NULL;
}

static const cli_option *find_long(const cli_command *c, const char *name, size_t len) {
  const cli_option *o = find_in(c->options, name, len);
  return o ? o : find_in(cli_everywhere, name, len);
}

static const cli_option *find_letter(const cli_command *c, char letter) {
  for (const cli_option *o = c->options; o->name; o++)
    if (o->letter && o->letter == letter) return o;
  return NULL;
}

static int unknown_option(const cli_command *c, const char *word) {
  const char *names[64];
  size_t n = 0, len = strcspn(word + 2, "=");
  char name[64] = "";
  if (len < sizeof name) memcpy(name, word + 2, len);
  for (const cli_option *o = c->options; o->name && n < 60; o++) names[n++] = o->name;
  for (const cli_option *o = cli_everywhere; o->name && n < 64; o++) names[n++] = o->name;
  const char *near = cli_nearest(name, names, n);
  return near ? cli_error(HONE_ERROR_USAGE, "hone %s: unknown option '%s'; did you mean '--%s'?", c->name,
                          word, near)
              : cli_error(HONE_ERROR_USAGE, "hone %s: unknown option '%s' (hone %s --help lists them)",
                          c->name, word, c->name);
}

bool cli_list_add(cli_list *list, const char *text) {
  const char **p = realloc(list->item, (list->n + 1) * sizeof *p);
  if (!p) return false;
  list->item = p;
  p[list->n++] = text;
  return true;
}

static int set_value(const cli_command *c, const cli_option *o, const char *text, cli_args *args) {
  void *field = (char *)args + o->field;
  char *end = NULL;
  errno = 0;
  switch (o->kind) {
  case CLI_FLAG: *(bool *)field = true; return 0;
  case CLI_TEXT: *(const char **)field = text; return 0;
  case CLI_LIST: return cli_list_add(field, text) ? 0 : cli_error(HONE_ERROR_MEMORY, "out of memory");
  case CLI_COUNT:
  case CLI_SOME:
  case CLI_THREADS:
  case CLI_LEVEL: {
    const long long v = strtoll(text, &end, 10), most = o->kind == CLI_LEVEL     ? 3
                                                        : o->kind == CLI_THREADS ? HONE_MAX_THREADS
                                                                                 : 1000000000;
    const int least = o->kind == CLI_SOME || o->kind == CLI_THREADS;
    if (end == text || *end || errno || v < least || v > most)
      return cli_error(HONE_ERROR_USAGE, "hone %s: --%s wants a whole number from %d to %lld, got '%s'",
                       c->name, o->name, least, most, text);
    *(int64_t *)field = v;
    return 0;
  }
  case CLI_NUMBER: {
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0)
      return cli_error(HONE_ERROR_USAGE, "hone %s: --%s wants a number of 0 or more, got '%s'", c->name,
                       o->name, text);
    *(double *)field = v;
    return 0;
  }
  }
  return 0;
}

int cli_options_first(const cli_command *meant) {
  return cli_error(HONE_ERROR_USAGE, "'%s' is a command: options stand behind it (hone %s%s%s [OPTION...])",
                   meant->name, meant->name, *meant->arguments ? " " : "", meant->arguments);
}

int cli_parse(const cli_command *c, int argc, char **argv, cli_args *args) {
  *args = (cli_args)CLI_UNSET;
  bool only_rest = false;
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    const cli_option *o = NULL;
    const char *value = NULL;
    if (only_rest || word[0] != '-' || !word[1]) {
      if (!cli_list_add(&args->rest, word)) return cli_error(HONE_ERROR_MEMORY, "out of memory");
      continue;
    }
    if (strcmp(word, "--") == 0) {
      only_rest = true;
      continue;
    }
    if (word[1] == '-') {
      size_t len = strcspn(word + 2, "=");
      o = find_long(c, word + 2, len);
      if (!o) return unknown_option(c, word);
      if (word[2 + len]) value = word + 3 + len;
      if (value && o->kind == CLI_FLAG)
        return cli_error(HONE_ERROR_USAGE, "hone %s: --%s takes no value", c->name, o->name);
    } else {
      o = find_letter(c, word[1]);
      if (!o)
        return cli_error(HONE_ERROR_USAGE, "hone %s: unknown option '%s' (hone %s --help lists them)",
                         c->name, word, c->name);
      if (word[2] && o->kind == CLI_FLAG)
        return cli_error(HONE_ERROR_USAGE, "hone %s: unknown option '%s' (give letters one by one)", c->name,
                         word);
      if (word[2]) value = word + 2;
    }
    if (!value && o->kind != CLI_FLAG) {
      if (++i >= argc)
        return cli_error(HONE_ERROR_USAGE, "hone %s: --%s wants a value (%s)", c->name, o->name, o->value);
      value = argv[i];
    }
    int code = set_value(c, o, value, args);
    if (code) return code;
  }
  if (args->help) return 0;
  if (args->rest.n < c->min_rest)
    return cli_error(HONE_ERROR_USAGE, "hone %s: missing argument; usage: hone %s %s", c->name, c->name,
                     c->arguments);
  /* `hone --lang zh inspect MODEL`: what begins with an option is taken for the loop. */
  const cli_command *meant =
      args->rest.n > c->max_rest && strcmp(c->name, "loop") == 0 ? cli_find(args->rest.item[0]) : NULL;
  if (meant) return cli_options_first(meant);
  if (args->rest.n > c->max_rest)
    return cli_error(HONE_ERROR_USAGE, "hone %s: unexpected argument '%s'; usage: hone %s %s", c->name,
                     args->rest.item[c->max_rest], c->name, c->arguments);
  return 0;
}

void cli_args_free(cli_args *args) {
  cli_list *const lists[] = {&args->skip,    &args->only,       &args->dump,       &args->data,
                             &args->shapes,  &args->inputs,     &args->thresholds, &args->float_files,
                             &args->op_path, &args->op_disable, &args->profiles,   &args->rest};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) free(lists[k]->item);
}

const cli_command *cli_op_verb(int argc, char **argv, int *at) {
  *at = -1;
  for (int i = 0; i < argc; i++) {
    if (argv[i][0] == '-') { /* these may stand before it */
      const cli_option *o =
          strncmp(argv[i], "--", 2) == 0 ? find_in(cli_everywhere, argv[i] + 2, strlen(argv[i] + 2)) : NULL;
      i += o && o->kind != CLI_FLAG;
      continue;
    }
    *at = i;
    for (const cli_command *const *v = cli_op_verbs; *v; v++)
      if (strcmp((*v)->name + strlen("op "), argv[i]) == 0) return *v;
    return NULL;
  }
  return NULL;
}

static int help_width(void) {
  enum { WIDEST = 100 };
  const int columns = cli_columns();
  return columns > WIDEST ? WIDEST : columns;
}

/* Words of `text` from column `at` on; lines go on in column `left`. A newline counts as a space. */
static void fill(const char *text, int at, int left) {
  const int width = help_width();
  for (const char *word = text; *word;) {
    const int length = (int)strcspn(word, " \n");
    if (at > left && at + 1 + length > width) cli_print("\n"), at = 0;
    at += at < left ? cli_print("%*s", left - at, "") : at > left ? cli_print(" ") : 0;
    at += cli_print("%.*s", length, word);
    word += length + (word[length] != 0);
  }
  cli_print("\n");
}

/* The option and what it does, in a column of its own. */
static void print_option(const char *name, const char *help, const char *more) {
  const int left = help_width() < 60 ? 8 : 29;
  char text[400];
  snprintf(text, sizeof text, "%s%s", help, more);
  int at = cli_print("  %s", name);
  if (at >= left) cli_print("\n"), at = 0;
  fill(text, at, left);
}

static void print_options(const cli_option *o) {
  for (; o->name; o++) {
    char left[64];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", o->letter ? "-" : " ", o->letter ? o->letter : ' ',
             o->letter ? ", " : "  ", o->name, o->value ? " " : "", o->value ? o->value : "");
    print_option(left, o->help, o->kind == CLI_LIST ? "; may be repeated" : "");
  }
}

void cli_print_help(const cli_command *c) {
  cli_print("%s\n\nusage: hone %s%s%s\n", c->summary, c->name, *c->arguments ? " " : "", c->arguments);
  if (c->details) {
    cli_print("\n");
    fill(c->details, 0, 0);
  }
  cli_print("\noptions:\n");
  print_options(c->options);
  print_options(cli_everywhere);
}

void cli_print_overview(FILE *out) {
  cli_print_to(out,
               "hone makes neural-network inference fast and explains how.\n\n"
               "usage: hone MODEL.onnx            the whole loop: measure, explain, change, prove, report\n"
               "       hone COMMAND [OPTION...]   one step of it\n\ncommands:\n");
  for (const cli_command *const *c = cli_commands; *c; c++)
    cli_print_to(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
  cli_print_to(
      out, "\nhone COMMAND --help tells more. A model is an ONNX file or zoo:NAME (hone zoo lists those).\n");
}

/* Levenshtein distance, with words cut at 40 characters. */
static size_t distance(const char *a, const char *b) {
  size_t n = strnlen(a, 40), m = strnlen(b, 40), row[41];
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = diagonal + (a[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[m];
}

const char *cli_nearest(const char *word, const char *const *candidates, size_t n) {
  const char *best = NULL;
  size_t least = 3; /* at most two typing errors, and fewer than the word has letters */
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(word, candidates[i]);
    if (d < least && d < strlen(word)) least = d, best = candidates[i];
  }
  return best;
}

const cli_command *cli_find(const char *name) {
  for (const cli_command *const *c = cli_commands; *c; c++)
    if (strcmp((*c)->name, name) == 0) return *c;
  return NULL;
}

const char *cli_nearest_command(const char *word) {
  const char *names[64];
  size_t n = 0;
  for (const cli_command *const *c = cli_commands; *c && n < 64; c++) names[n++] = (*c)->name;
  return cli_nearest(word, names, n);
}

const char *cli_device_name(const cli_args *args) { return args->device ? args->device : "cpu"; }
