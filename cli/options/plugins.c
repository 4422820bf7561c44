#include "cli/options/plugins.h"

#include "cli/terminal/term.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The items with ':' between them; free() it. */
static char *joined(const cli_list *list) {
  size_t size = 1;
  for (size_t i = 0; i < list->n; i++) size += strlen(list->item[i]) + 1;
  char *text = calloc(size, 1), *p = text;
  for (size_t i = 0; text && i < list->n; i++) {
    if (i) *p++ = ':';
    p = stpcpy(p, list->item[i]);
  }
  return text;
}

/* Does --op-path name what this is about? */
static bool asked_for(const cli_args *args, const char *path) {
  char whole[PATH_MAX];
  for (size_t i = 0; i < args->op_path.n; i++)
    if (realpath(args->op_path.item[i], whole) && strcmp(whole, path) == 0) return true;
  return false;
}

int cli_load_plugins(const cli_args *args, bool may_be_empty) {
  hone_error e = {0};
  char *path = joined(&args->op_path), why[1200];
  if (!path) return cli_error(HONE_ERROR_MEMORY, "out of memory");
  const hone_plugins_options o = {
      .path = path, .disabled = args->op_disable.item, .n_disabled = (uint32_t)args->op_disable.n};
  const hone_status status = hone_plugins_load(&o, &e);
  free(path);
  hone_plugin_info p;
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++) {
    if (p.state != HONE_PLUGIN_REFUSED) continue;
    if (p.error->status == HONE_ERROR_MISSING && asked_for(args, p.path)) {
      if (may_be_empty) continue;
      return status == HONE_OK ? cli_report(p.error) : cli_report(&e);
    }
    (void)hone_error_format(p.error, why, sizeof why);
    cli_note("custom operator %s is not used: %s", p.name, why);
  }
  return status == HONE_OK ? 0 : cli_report(&e);
}

int cli_plugin_folders(cli_args *args) {
  for (size_t i = 0; i < args->rest.n; i++) {
    char path[PATH_MAX], definition[PATH_MAX + 300];
    struct stat st;
    size_t n = strlen(args->rest.item[i]);
    if (n >= sizeof path) continue;
    memcpy(path, args->rest.item[i], n + 1);
    while (n > 1 && path[n - 1] == '/') path[--n] = 0; /* as shells complete them */
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(definition, sizeof definition, "%s/%.250s.json", path, name);
    if (stat(definition, &st) != 0) continue;
    char *argument = (char *)(uintptr_t)args->rest.item[i]; /* main's argv, which may be written to */
    argument[n] = 0;
    if (!cli_list_add(&args->op_path, argument)) return cli_error(HONE_ERROR_MEMORY, "out of memory");
    args->rest.item[i] = argument + (name - path);
  }
  return 0;
}
