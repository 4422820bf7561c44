/* The examination: all checks, and what they say with. */
#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct check_row {
  const char *name, *en, *zh;
  void (*look)(const cli_patient *patient, cli_check *out);
} check_row;

static const check_row rows[] = {
#define CHECK(name, en, zh) {#name, en, zh, cli_check_##name},
#include "cli/doctor/checks.def"
#undef CHECK
};
enum { CHECKS = sizeof rows / sizeof *rows };

static bool chinese(const cli_patient *p) { return p->language == HONE_LANGUAGE_ZH; }

void cli_found(const cli_patient *p, cli_check *out, const char *en, const char *zh, ...) {
  va_list list;
  va_start(list, zh);
  vsnprintf(out->found, sizeof out->found, chinese(p) ? zh : en, list);
  va_end(list);
}

void cli_lacks(const cli_patient *p, cli_check *out, const char *en, const char *zh) {
  out->health = CLI_LACKS;
  snprintf(out->cost, sizeof out->cost, "%s", chinese(p) ? zh : en);
}

void cli_todo(const cli_patient *p, cli_check *out, const char *en, const char *zh, ...) {
  va_list list;
  va_start(list, zh);
  vsnprintf(out->todo, sizeof out->todo, chinese(p) ? zh : en, list);
  va_end(list);
}

static FILE *open_below(const cli_patient *p, const char *path) {
  char full[600];
  const int n = snprintf(full, sizeof full, "%s%s", p->root, path);
  return n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
}

bool cli_read_line(const cli_patient *p, const char *path, char *buf, size_t size) {
  FILE *f = open_below(p, path);
  const bool read = f && fgets(buf, (int)size, f);
  if (f) fclose(f);
  if (read) buf[strcspn(buf, "\n")] = 0;
  return read;
}

bool cli_read_key(const cli_patient *p, const char *path, const char *key, char *buf, size_t size) {
  FILE *f = open_below(p, path);
  const size_t length = strlen(key);
  char line[512];
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    const char *colon = strchr(line, ':');
    found = colon && strncmp(line, key, length) == 0 &&
            strspn(line + length, " \t") == (size_t)(colon - line) - length;
    if (found)
      snprintf(buf, size, "%.*s", (int)strcspn(colon + 1 + strspn(colon + 1, " \t"), "\n"),
               colon + 1 + strspn(colon + 1, " \t"));
  }
  if (f) fclose(f);
  return found;
}

/* A part of a network through the whole library. */
static hone_status try_network(cli_patient *p) {
  hone_model *model = NULL;
  hone_engine *engine = NULL;
  hone_verify_result result = {0};
  hone_status status = hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &p->failed);
  if (status == HONE_OK) p->machine = *hone_engine_machine(engine);
  if (status == HONE_OK)
    status = hone_zoo_build("mobilenetv2", &(hone_zoo_options){.batch = 1, .width = 0.1, .size = 32}, &model,
                            &p->failed);
  if (status == HONE_OK)
    status = hone_verify(model, NULL, &(hone_verify_options){.threads = 1, .inputs = 1}, &result, &p->failed);
  if (status == HONE_OK && result.verdict == HONE_VERDICT_DIFFERENT) {
    status = p->failed.status = HONE_ERROR_DEVICE;
    snprintf(p->failed.what, sizeof p->failed.what, "a small network gave wrong answers");
  }
  hone_model_release(model);
  hone_engine_destroy(engine);
  return status;
}

const cli_check *cli_examine(cli_patient *p, size_t *n) {
  static cli_check checks[CHECKS];
  hone_system_read(&p->seen);
  p->works = try_network(p);
  for (size_t i = 0; i < CHECKS; i++) {
    checks[i] = (cli_check){.name = rows[i].name, .title = chinese(p) ? rows[i].zh : rows[i].en};
    rows[i].look(p, &checks[i]);
  }
  *n = CHECKS;
  return checks;
}

void cli_check_hone(const cli_patient *p, cli_check *out) {
  if (p->works == HONE_OK) {
    cli_found(p, out, "%s: a small network runs, and its answers are right", "%s：小网络能运行，结果正确",
              hone_version());
    return;
  }
  char why[250];
  hone_error_format(&p->failed, why, sizeof why);
  cli_found(p, out, "%s: a small network does not run: %s", "%s：小网络无法运行：%s", hone_version(), why);
  cli_lacks(p, out, "nothing can be run", "什么都无法运行");
  cli_todo(p, out, "what the line says; else report it with the output of hone doctor --json",
           "按上一行处理；否则请附上 hone doctor --json 的输出报告问题");
  out->health = CLI_BROKEN;
}
