/* Where, when and of what a measurement is: what makes a report worth keeping. */
#include "cli/reports/stamp.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/options/revision.h"
#include "cli/options/session.h"
#include "cli/options/version.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Bytes of the UTF-8 character at p; 0: none (overlong forms and surrogates included). */
static size_t character(const unsigned char *p) {
  if (p[0] < 0x80) return 1;
  size_t n = p[0] >= 0xf0 && p[0] <= 0xf4  ? 4
             : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
             : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                                           : 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
      (p[0] == 0xf4 && p[1] > 0x8f))
    return 0;
  return n;
}

json_t *cli_text(const char *text) {
  if (!text) return json_null();
  json_t *plain = json_string(text);
  if (plain) return plain;
  size_t n = 0;
  char *clean = malloc(3 * strlen(text) + 1);
  if (!clean) return NULL;
  for (const char *p = text; *p;) {
    size_t len = character((const unsigned char *)p);
    memcpy(clean + n, len ? p : "\xef\xbf\xbd", len ? len : 3);
    n += len ? len : 3;
    p += len ? len : 1;
  }
  clean[n] = 0;
  plain = json_string(clean);
  free(clean);
  return plain;
}

void cli_date(char *buf, size_t size) {
  time_t now = time(NULL);
  struct tm t;
  gmtime_r(&now, &t);
  strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &t);
}

void cli_machine(char *buf, size_t size) {
  char line[512], cpu[128] = "unknown processor", host[65] = "";
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    snprintf(cpu, sizeof cpu, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    break;
  }
  if (f) fclose(f);
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  snprintf(buf, size, "%s, %ld processors, host %s", cpu, sysconf(_SC_NPROCESSORS_ONLN), host);
}

/* What decides about the speed of a run. */
static const cli_option measured[] = {{'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", ""},
                                      {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", ""},
                                      {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", ""},
                                      CLI_OPT_RUN,
                                      CLI_OPT_PREPROCESS,
                                      CLI_OPT_ARRIVING,
                                      CLI_END};

static bool is_set(const cli_option *o, const cli_args *args) {
  static const cli_args unset = CLI_UNSET;
  const char *a = (const char *)args + o->field, *b = (const char *)&unset + o->field;
  switch (o->kind) {
  case CLI_FLAG: return *(const bool *)a;
  case CLI_TEXT: return *(const char *const *)a != NULL;
  case CLI_LIST: return ((const cli_list *)a)->n > 0;
  case CLI_NUMBER: return memcmp(a, b, sizeof(double)) != 0;
  case CLI_COUNT:
  case CLI_SOME:
  case CLI_THREADS:
  case CLI_LEVEL: return *(const int64_t *)a != *(const int64_t *)b;
  }
  return false;
}

static size_t put(char *buf, size_t size, size_t n, const char *text) {
  int k = snprintf(n < size ? buf + n : NULL, n < size ? size - n : 0, "%s", text);
  return n + (k > 0 ? (size_t)k : 0);
}

size_t cli_quote(const char *word, char *buf, size_t size, size_t n) {
  return n + (n < size ? hone_text_shell(word, buf + n, size - n) : hone_text_shell(word, NULL, 0));
}

static size_t put_option(const cli_option *o, const char *value, char *buf, size_t size, size_t n) {
  n = put(buf, size, n, n ? " --" : "--");
  n = put(buf, size, n, o->name);
  if (!value) return n;
  return cli_quote(value, buf, size, put(buf, size, n, " "));
}

/* NULL: a flag. */
static const char *option_value(const cli_option *o, const cli_args *args, char *buf, size_t size) {
  const char *at = (const char *)args + o->field;
  if (o->kind == CLI_FLAG) return NULL;
  if (o->kind == CLI_TEXT) return *(const char *const *)at;
  if (o->kind == CLI_NUMBER)
    snprintf(buf, size, "%.17g", *(const double *)at);
  else
    snprintf(buf, size, "%lld", (long long)*(const int64_t *)at);
  return buf;
}

bool cli_flags(const cli_args *args, char *buf, size_t size) {
  size_t n = 0;
  char number[40];
  buf[0] = 0;
  for (const cli_option *o = measured; o->name; o++) {
    const char *at = (const char *)args + o->field;
    if (!is_set(o, args)) continue;
    if (o->kind == CLI_LIST) {
      for (size_t i = 0; i < ((const cli_list *)at)->n; i++)
        n = put_option(o, ((const cli_list *)at)->item[i], buf, size, n);
      continue;
    }
    n = put_option(o, option_value(o, args, number, sizeof number), buf, size, n);
  }
  return n < size;
}

/* The symbol is every open leading dimension and nothing else: setting it is what --batch does. */
static bool is_batch(const hone_model *model, const char *symbol) {
  hone_port port;
  bool leads = false;
  for (uint32_t i = 0; hone_model_input(model, i, &port); i++)
    for (int32_t k = 0; k < port.desc.rank; k++) {
      const bool same = port.symbol[k] && strcmp(port.symbol[k], symbol) == 0;
      if (k ? same : port.desc.dim[0] < 0 && !same) return false;
      leads = leads || same;
    }
  return leads;
}

/* One input's shape as --shape takes it. */
static void add_shape(hone_facts *facts, const char *what, const char *name, const hone_tensor_desc *desc) {
  char text[600];
  size_t n = put(text, sizeof text, 0, name);
  for (int32_t k = 0; k < desc->rank; k++) {
    char dim[32];
    snprintf(dim, sizeof dim, "%c%lld", k ? 'x' : '=', (long long)desc->dim[k]);
    n = put(text, sizeof text, n, dim);
  }
  if (n < sizeof text) hone_facts_add_option(facts, what, text);
}

static void add_shape_option(hone_facts *facts, const hone_model *model, const char *value) {
  char symbol[256];
  const char *eq = strrchr(value, '=');
  snprintf(symbol, sizeof symbol, "%.*s", eq ? (int)(eq - value) : 0, value);
  const bool batch = eq && !strpbrk(eq, "xX,") && is_batch(model, symbol);
  hone_facts_add_option(facts, batch ? "batch" : "shape", batch ? eq + 1 : value);
}

void cli_record_options(const cli_args *args, const cli_session *s, hone_facts *facts) {
  static const size_t elsewhere[] = {CLI_FIELD(runs), CLI_FIELD(warmup), CLI_FIELD(device),
                                     CLI_FIELD(max_seconds)};
  char number[40];
  for (const cli_option *o = measured; o->name; o++) {
    bool skip = !is_set(o, args);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) skip = skip || o->field == elsewhere[i];
    if (skip) continue;
    const cli_list *list = (const cli_list *)((const char *)args + o->field);
    for (size_t i = 0; o->kind == CLI_LIST && i < list->n; i++)
      if (o->field == CLI_FIELD(shapes))
        add_shape_option(facts, s->model, list->item[i]);
      else
        hone_facts_add_option(facts, o->name, list->item[i]);
    if (o->kind != CLI_LIST)
      hone_facts_add_option(facts, o->name, option_value(o, args, number, sizeof number));
  }
  if (args->passes) hone_facts_add_option(facts, "passes", args->passes);
  /* Shapes that an input file settled: commands that read no such file are told them. */
  hone_port port;
  for (uint32_t i = 0; args->inputs.n && !args->shapes.n && hone_model_input(s->model, i, &port); i++) {
    bool open = false;
    for (int32_t k = 0; k < port.desc.rank; k++) open = open || port.desc.dim[k] < 0;
    if (open && i < s->n_inputs) add_shape(facts, "input_shape", port.name, &s->data[i].tensor.desc);
  }
}

void cli_stamp(json_t *doc, const cli_args *args, const char *path) {
  char revision[128], machine[300], date[32], os[200], flags[1000];
  struct utsname u;
  uname(&u);
  snprintf(os, sizeof os, "%.64s %.64s", u.sysname, u.release);
  cli_machine(machine, sizeof machine);
  cli_date(date, sizeof date);
  cli_flags(args, flags, sizeof flags);
  json_object_set_new(doc, "commit",
                      cli_revision(args, path, revision, sizeof revision) ? cli_text(revision) : json_null());
  json_object_set_new(doc, "hone_version", cli_text(cli_hone_version()));
  json_object_set_new(doc, "tag", cli_text(args->tag));
  json_object_set_new(doc, "model", cli_text(path));
  json_object_set_new(doc, "machine", cli_text(machine));
  json_object_set_new(doc, "os", cli_text(os));
  json_object_set_new(doc, "device", cli_text(cli_device_name(args)));
  json_object_set_new(doc, "precision", cli_text(cli_precision_name(args)));
  json_object_set_new(doc, "flags", cli_text(flags));
  json_object_set_new(doc, "version", cli_text(hone_version()));
  json_object_set_new(doc, "temperature_c_range", json_null());
  json_object_set_new(doc, "profiling_date", cli_text(date));
}

hone_status cli_history_save(json_t *doc, int64_t *id, hone_error *error) {
  hone_history *history = NULL;
  char *text = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(9));
  if (!text) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for JSON"};
    return HONE_ERROR_MEMORY;
  }
  cli_hold(true); /* an interrupt waits until the run is in */
  hone_status status = hone_history_open(NULL, true, &history, error);
  if (status == HONE_OK) status = hone_history_add(history, text, strlen(text), NULL, id, error);
  hone_history_close(history);
  cli_hold(false);
  free(text);
  return status;
}
