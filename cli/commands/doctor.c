/* hone doctor: what this machine has for hone. */
#include "cli/doctor/doctor.h"
#include "cli/options/options.h"
#include "cli/options/version.h"
#include "cli/reports/findings.h"
#include "cli/terminal/term.h"

#include <jansson.h>
#include <string.h>

static const char *const healths[] = {
    [CLI_GOOD] = "good", [CLI_NOTE] = "note", [CLI_LACKS] = "lacks", [CLI_BROKEN] = "broken"};

static json_t *text_or_null(const char *text) { return *text ? json_string(text) : json_null(); }

static json_t *document(const cli_patient *p, const cli_check *c, size_t n) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", c[i].name, "health",
                                          healths[c[i].health], "found", c[i].found, "cost",
                                          text_or_null(c[i].cost), "todo", text_or_null(c[i].todo)));
  return json_pack("{s:s, s:s?, s:b, s:o}", "version", hone_version(), "commit", cli_commit(), "works",
                   p->works == HONE_OK, "checks", list);
}

/* Columns of a title: a Chinese character takes two, and three bytes. */
static int columns(const char *title) {
  int n = 0;
  for (; *title; title++) n += (unsigned char)*title < 0x80 ? 1 : (unsigned char)*title >= 0xc0 ? 2 : 0;
  return n;
}

static void line(const char *mark, cli_paint paint, const char *title, const char *text) {
  enum { TITLE = 18 };
  const int gap = TITLE - columns(title);
  cli_color(stdout, paint);
  cli_print("%s", mark);
  cli_color(stdout, CLI_PLAIN);
  cli_print(" %s%*s  %s\n", title, gap > 0 ? gap : 0, "", text);
}

static void show(const cli_patient *p, const cli_check *c) {
  static const struct {
    const char *mark;
    cli_paint paint;
  } marks[] = {[CLI_GOOD] = {"ok", CLI_GREEN},
               [CLI_NOTE] = {" -", CLI_PLAIN},
               [CLI_LACKS] = {" !", CLI_YELLOW},
               [CLI_BROKEN] = {"!!", CLI_BOLD_RED}};
  const bool zh = p->language == HONE_LANGUAGE_ZH;
  line(marks[c->health].mark, marks[c->health].paint, c->title, c->found);
  if (*c->cost) line("  ", CLI_PLAIN, zh ? "    代价" : "    costs", c->cost);
  if (*c->todo) line("  ", CLI_PLAIN, zh ? "    做法" : "    to do", c->todo);
}

static int run(const cli_args *args) {
  cli_patient p = {.root = ""};
  hone_error error = {0};
  size_t n, lacks = 0;
  if (cli_language(args, &p.language, &error) != HONE_OK) return cli_report(&error);
  const cli_check *c = cli_examine(&p, &n);
  const int code = p.works == HONE_OK ? 0 : hone_status_exit_code(p.works);
  if (args->json) {
    const int printed = cli_print_json(document(&p, c, n));
    return printed ? printed : code;
  }
  for (size_t i = 0; i < n; i++) {
    show(&p, &c[i]);
    lacks += c[i].health == CLI_LACKS;
  }
  const bool zh = p.language == HONE_LANGUAGE_ZH;
  if (p.works != HONE_OK)
    cli_print(zh ? "\nhone 在此无法工作\n" : "\nhone does not work here\n");
  else if (lacks)
    cli_print(zh           ? "\nhone 可以工作；有 %zu 处可改进（!）\n"
              : lacks == 1 ? "\nhone works here; %zu thing could be better (!)\n"
                           : "\nhone works here; %zu things could be better (!)\n",
              lacks);
  else
    cli_print(zh ? "\nhone 可以工作，什么都不缺\n" : "\nhone works here, and lacks nothing\n");
  const int printed = cli_flush();
  return printed ? printed : code;
}

static const cli_option options[] = {CLI_OPT_LANG, CLI_OPT_JSON, CLI_OPT_HELP, CLI_END};
const cli_command cli_cmd_doctor = {
    "doctor",
    "",
    "what this machine has for hone, what it lacks, what to do",
    "Looks at processor, limits, memory, other processes, settings of the system, folders, GPU and programs "
    "beside hone, runs a small network and checks its answers. What is missing is shown with what it costs "
    "and what to do. Nothing is changed. Exit code 0 unless hone cannot work at all.",
    options,
    0,
    0,
    run};
