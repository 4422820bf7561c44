/* See subject.h. */
#include "cli/op/subject.h"

#include "cli/reports/stamp.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool named(const op_subject *s, const char *name) {
  return strcmp(name, s->plugin) == 0 || strcmp(name, s->op->op_type) == 0 || strcmp(name, s->name) == 0;
}

static op_subject subject_of(const hone_plugin_info *p, uint32_t i) {
  op_subject s = {.plugin = p->name, .of = p->plugin, .op = p->plugin->op[i]};
  op_name(s.op, s.name, sizeof s.name);
  for (uint32_t k = 0; k < p->plugin->n_patterns && !s.pattern; k++)
    if (strcmp(p->plugin->pattern[k]->name, s.name) == 0) s.pattern = p->plugin->pattern[k];
  return s;
}

static hone_status usage(hone_error *error, hone_status status, const char *what, const char *of,
                         const char *hint) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, what, of);
  snprintf(error->hint, sizeof error->hint, "%s", hint);
  return status;
}

hone_status op_subjects_find(const char *const *names, size_t n, op_subjects *out, hone_error *error) {
  hone_plugin_info p;
  uint32_t all = 0;
  *out = (op_subjects){0};
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++) all += p.plugin ? p.plugin->n_ops : 0;
  if (!all)
    return usage(error, HONE_ERROR_MISSING, "no custom operator is loaded%s", "",
                 "name the folder of its plugin: --op-path DIR (hone op list)");
  out->list = calloc(all, sizeof *out->list);
  if (!out->list) return usage(error, HONE_ERROR_MEMORY, "out of memory%s", "", "");
  bool *used = calloc(n + 1, sizeof *used);
  for (uint32_t i = 0; used && hone_plugin_at(i, &p); i++)
    for (uint32_t k = 0; p.plugin && k < p.plugin->n_ops; k++) {
      const op_subject s = subject_of(&p, k);
      bool wanted = n == 0;
      for (size_t j = 0; j < n; j++)
        if (named(&s, names[j])) wanted = used[j] = true;
      if (wanted) out->list[out->n++] = s;
    }
  hone_status status = used ? HONE_OK : usage(error, HONE_ERROR_MEMORY, "out of memory%s", "", "");
  for (size_t j = 0; j < n && status == HONE_OK; j++)
    if (!used[j])
      status = usage(error, HONE_ERROR_USAGE, "there is no plugin or custom operator '%.100s'", names[j],
                     "hone op list names them");
  free(used);
  if (status != HONE_OK) {
    free(out->list);
    *out = (op_subjects){0};
  }
  return status;
}

bool op_has_tactic(const op_subject *s, const hone_tactic_desc *t) { return strcmp(t->anchor, s->name) == 0; }

const char *op_input_name(const op_subject *s, uint32_t i, char *buf, size_t size) {
  const char *p = s->pattern ? s->pattern->inputs : "";
  for (uint32_t k = 0; *p; k++) {
    const size_t n = strcspn(p, " ");
    if (k == i && *p == '%') return snprintf(buf, size, "%.*s", (int)n - 1, p + 1), buf;
    p += n + strspn(p + n, " ");
  }
  snprintf(buf, size, "x%u", i);
  return buf;
}

/* "1x3x8" */
static bool parse_dims(const char *text, op_shape *out) {
  char *end;
  out->rank = 0;
  for (; *text; text = *end ? end + 1 : end) {
    if (!isdigit((unsigned char)*text) || out->rank == HONE_MAX_RANK) return false;
    out->dim[out->rank++] = strtoll(text, &end, 10);
    if ((*end && *end != 'x') || (*end == 'x' && !end[1])) return false;
  }
  return true;
}

/* Those that the operator has itself. */
static uint32_t example_of(const hone_op_desc *op, op_shape *out) {
  char one[HONE_MAX_RANK * 21 + 1];
  uint32_t n = 0;
  for (const char *p = op->example; p && n < OP_MOST && n < op->max_inputs; n++) {
    const size_t length = strcspn(p, ";");
    snprintf(one, sizeof one, "%.*s", (int)length, p);
    if (length >= sizeof one || !parse_dims(one, &out[n])) return 0;
    p = p[length] ? p + length + 1 : NULL;
  }
  return n;
}

hone_status op_shapes_given(const cli_args *args, const op_subject *s, op_shape *out, uint32_t *n,
                            hone_error *error) {
  bool set[OP_MOST] = {false};
  char name[80];
  *n = args->shapes.n ? 0 : example_of(s->op, out);
  if (*n) return HONE_OK;
  for (size_t k = 0; k < args->shapes.n; k++) {
    const char *text = args->shapes.item[k], *eq = strchr(text, '=');
    uint32_t i = 0;
    const uint32_t most = s->op->max_inputs < OP_MOST ? s->op->max_inputs : OP_MOST;
    if (!eq) return usage(error, HONE_ERROR_USAGE, "--shape wants NAME=DIMS, got '%.100s'", text, "");
    for (; i < most; i++) {
      op_input_name(s, i, name, sizeof name);
      if (strlen(name) == (size_t)(eq - text) && strncmp(name, text, strlen(name)) == 0) break;
    }
    if (i == most || !parse_dims(eq + 1, &out[i])) {
      char hint[300] = "its inputs are";
      for (uint32_t j = 0; j < most && j < 6; j++)
        snprintf(hint + strlen(hint), sizeof hint - strlen(hint), " %s",
                 op_input_name(s, j, name, sizeof name));
      return i == most ? usage(error, HONE_ERROR_USAGE, "the operator has no input for --shape '%.100s'",
                               text, hint)
                       : usage(error, HONE_ERROR_USAGE,
                               "--shape '%.100s' has no dimensions such as 1x64x56x56", text, "");
    }
    set[i] = true;
    if (i + 1 > *n) *n = i + 1;
  }
  for (uint32_t i = 0; i < *n; i++)
    if (!set[i])
      return usage(error, HONE_ERROR_USAGE, "--shape is missing for input %s",
                   op_input_name(s, i, name, sizeof name), "give every input up to the last that is given");
  return HONE_OK;
}

size_t op_word(const char *word, char *buf, size_t size, size_t n) {
  if (n && n + 1 < size) snprintf(buf + n, size - n, " ");
  return cli_quote(word, buf, size, n + (n != 0));
}

size_t op_path_flags(const cli_args *args, char *buf, size_t size, size_t n) {
  for (size_t i = 0; i < args->op_path.n; i++) {
    n = op_word("--op-path", buf, size, n);
    n = op_word(args->op_path.item[i], buf, size, n);
  }
  return n;
}

hone_status op_machine(hone_machine *out, hone_error *error) {
  hone_engine *engine = NULL;
  const hone_status status =
      hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, error);
  if (status == HONE_OK) *out = *hone_engine_machine(engine);
  hone_engine_destroy(engine);
  return status;
}
