/* Which plugins there are: found in folders, tried, loaded, and remembered with what became of them. */
#include <hone/plugins.h>

#include "base/error.h"
#include "base/os.h"
#include "base/vec.h"
#include "runtime/plugins/trial.h"
#include "runtime/plugins/trust.h"
#include "runtime/plugins/units.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  char *path, *name;
  hone_plugin_state state;
  const hone_plugin *plugin; /* also of one that is disabled: what it would have */
  hn_units units;
  uint32_t n_off;
  hone_error error;
} entry;

static HN_VEC(entry *) known; /* for as long as the process lives: plans keep what they were made with */

typedef struct search {
  const hone_plugins_options *options;
  bool *used; /* [n_disabled] */
  /* Of the folder that is being looked in: */
  size_t found;           /* libraries that it holds */
  char project[PATH_MAX]; /* a folder with a definition, "" without one */
  HN_VEC(char *) unbuilt; /* folders with a definition and sources, and no library */
} search;

/* "swish" of "/a/b/swish.so" */
static char *stem_of(const char *path) {
  const char *slash = strrchr(path, '/');
  char *name = hn_strdup(slash ? slash + 1 : path);
  if (!name) return NULL;
  const size_t n = strlen(name);
  if (n > 3 && strcmp(name + n - 3, ".so") == 0) name[n - 3] = 0;
  return name;
}

static bool is_known(const char *path) {
  for (size_t i = 0; i < known.len; i++)
    if (strcmp(known.ptr[i]->path, path) == 0) return true;
  return false;
}

static const entry *another(const entry *e) {
  for (size_t i = 0; i < known.len; i++) {
    const entry *k = known.ptr[i];
    if (k != e && k->state == HONE_PLUGIN_LOADED && strcmp(k->plugin->name, e->plugin->name) == 0) return k;
  }
  return NULL;
}

static bool switched_off(const search *s, const char *name) {
  bool off = false;
  for (uint32_t i = 0; i < s->options->n_disabled; i++)
    if (strcmp(s->options->disabled[i], name) == 0) off = s->used[i] = true;
  return off;
}

/* Opens and registers what the trial has shown to be sound. */
static hone_status take(const search *s, entry *e) {
  void *library;
  const hone_plugins_options *o = s->options;
  hone_status status = hn_plugin_open(e->path, &library, &e->plugin, &e->error);
  if (status != HONE_OK) return status;
  const entry *same = another(e);
  if (same) {
    hn_fail(&e->error, HONE_ERROR_USAGE, "there is already a plugin %s", e->plugin->name);
    hn_error_hint(&e->error, "it is %.280s", same->path);
    return HONE_ERROR_USAGE;
  }
  if (switched_off(s, e->plugin->name)) {
    e->state = HONE_PLUGIN_DISABLED;
    return HONE_OK;
  }
  for (uint32_t i = 0; i < o->n_disabled; i++)
    if (hn_units_have(e->plugin, o->disabled[i])) e->n_off++, s->used[i] = true;
  return hn_units_add(e->plugin, o->disabled, o->n_disabled, &e->units, &e->error);
}

static hone_status add_entry(const char *path, entry **out, hone_error *error) {
  entry *e = *out = hn_calloc(1, sizeof *e);
  if (e && (e->path = hn_strdup(path)) && (e->name = stem_of(path)) && hn_vec_push(&known, e)) return HONE_OK;
  if (e) hn_free(e->path), hn_free(e->name);
  hn_free(e);
  return hn_fail_memory(error, sizeof *e, "a plugin");
}

static hone_status consider(const search *s, const char *found, hone_error *error) {
  char path[PATH_MAX];
  entry *e;
  if (!realpath(found, path))
    return hn_fail(error, HONE_ERROR_MISSING, "%.280s is not there, or cannot be read", found);
  if (is_known(path)) return HONE_OK;
  if (add_entry(path, &e, error) != HONE_OK) return HONE_ERROR_MEMORY;
  hone_status status = hn_plugin_trust(path, &e->error);
  if (status == HONE_OK) status = hn_plugin_is_library(path, &e->error);
  if (status == HONE_OK && switched_off(s, e->name)) { /* by its file's name it need not even be tried */
    e->state = HONE_PLUGIN_DISABLED;
    return HONE_OK;
  }
  if (status == HONE_OK) status = hn_plugin_try(path, s->options->max_seconds, &e->error);
  if (status == HONE_OK) status = take(s, e);
  if (status == HONE_OK) return HONE_OK;
  if (status == HONE_ERROR_MEMORY) {
    if (error) *error = e->error;
    return status;
  }
  e->state = HONE_PLUGIN_REFUSED;
  hn_error_where(&e->error, "%.250s", e->path);
  return HONE_OK;
}

static bool ends_in(const char *name, const char *ending) {
  const size_t n = strlen(name), m = strlen(ending);
  return n > m && strcmp(name + n - m, ending) == 0;
}

/* "swish.json" among the names: are its sources there, too? */
static bool is_project(const char *folder, const char *name) {
  char path[PATH_MAX];
  const int stem = (int)strlen(name) - (int)strlen(".json");
  return (size_t)snprintf(path, sizeof path, "%s/%.*s_ref.c", folder, stem, name) < sizeof path &&
         hn_path_exists(path);
}

static hone_status add_unbuilt(search *s, const char *folder, hone_error *error) {
  char *copy = hn_strdup(folder);
  if (copy && hn_vec_push(&s->unbuilt, copy)) return HONE_OK;
  hn_free(copy);
  return hn_fail_memory(error, strlen(folder), "plugins");
}

static void forget_unbuilt(search *s) {
  for (size_t i = 0; i < s->unbuilt.len; i++) hn_free(s->unbuilt.ptr[i]);
  hn_vec_free(&s->unbuilt);
}

/* The libraries right in a folder, then those of the folders in it: `deeper` more levels, of which the last
 * is called "build". */
static hone_status look_in(search *s, const char *folder, int deeper, hone_error *error) {
  char **names;
  size_t n;
  char path[PATH_MAX];
  bool project = false, built = false;
  hone_status status = hn_folder_list(folder, &names, &n, error);
  for (size_t i = 0; i < n && status == HONE_OK; i++) {
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= sizeof path) continue;
    if (hn_is_folder(path)) continue;
    if (ends_in(names[i], ".json")) {
      if (!*s->project) snprintf(s->project, sizeof s->project, "%s", folder);
      project |= is_project(folder, names[i]);
    }
    if (!ends_in(names[i], ".so")) continue;
    built = true;
    s->found++;
    status = consider(s, path, error);
  }
  for (size_t i = 0; i < n && status == HONE_OK && deeper; i++) {
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= sizeof path) continue;
    const bool build = strcmp(names[i], "build") == 0;
    if (!hn_is_folder(path) || (deeper == 1 && !build)) continue;
    const size_t before = s->found;
    status = look_in(s, path, deeper - 1, error);
    built |= build && s->found > before;
  }
  if (status == HONE_OK && project && !built && deeper) status = add_unbuilt(s, folder, error);
  for (size_t i = 0; i < n; i++) hn_free(names[i]);
  hn_free(names);
  return status;
}

/* A folder that somebody names is to hold something, and so is a project in it: what was never built would
 * else go unnoticed. It is kept in the list, refused; nothing else suffers. project: what is to be built;
 * NULL: nothing is there that could be. */
static hone_status note_nothing(const char *folder, const char *project, hone_error *error) {
  char path[PATH_MAX];
  entry *e;
  if (!realpath(folder, path) || is_known(path)) return HONE_OK;
  if (add_entry(path, &e, error) != HONE_OK) return HONE_ERROR_MEMORY;
  e->state = HONE_PLUGIN_REFUSED;
  hn_fail(&e->error, HONE_ERROR_MISSING, "this folder holds no built operator (a .so file)");
  if (project)
    hn_error_hint(&e->error, "hone op build %.280s", project);
  else
    hn_error_hint(&e->error, "hone op new NAME begins one, hone op build DIR builds it");
  hn_error_where(&e->error, "%.250s", path);
  return HONE_OK;
}

static hone_status look_at(search *s, const char *path, const char *whose, hone_error *error) {
  if (hn_is_folder(path)) {
    s->found = 0;
    *s->project = 0;
    hone_status status = look_in(s, path, 2, error);
    if (status == HONE_OK && !s->found) status = note_nothing(path, *s->project ? s->project : NULL, error);
    for (size_t i = 0; s->found && i < s->unbuilt.len && status == HONE_OK; i++)
      status = note_nothing(s->unbuilt.ptr[i], s->unbuilt.ptr[i], error);
    forget_unbuilt(s);
    return status;
  }
  if (hn_path_exists(path)) return consider(s, path, error);
  hn_fail(error, HONE_ERROR_MISSING, "there is no folder or plugin '%.200s'", path);
  hn_error_hint(error, "%s names it; folders are separated by ':'", whose);
  return HONE_ERROR_MISSING;
}

static hone_status look_along(search *s, const char *list, const char *whose, hone_error *error) {
  char one[PATH_MAX];
  hone_status status = HONE_OK;
  for (const char *p = list; p && *p && status == HONE_OK;) {
    const size_t n = strcspn(p, ":");
    if (n >= sizeof one) return hn_fail(error, HONE_ERROR_USAGE, "a folder of %s has a name too long", whose);
    snprintf(one, sizeof one, "%.*s", (int)n, p);
    if (n) status = look_at(s, one, whose, error);
    p += n + (p[n] == ':');
  }
  return status;
}

static hone_status all_used(const search *s, hone_error *error) {
  for (uint32_t i = 0; i < s->options->n_disabled; i++) {
    if (s->used[i]) continue;
    hn_fail(error, HONE_ERROR_USAGE, "there is no plugin, and no operator of one, '%.80s' to be left out",
            s->options->disabled[i]);
    hn_error_hint(error, "hone op list names them");
    return HONE_ERROR_USAGE;
  }
  return HONE_OK;
}

hone_status hone_plugins_load(const hone_plugins_options *options, hone_error *error) {
  static const hone_plugins_options none = {0};
  char own[PATH_MAX];
  search s = {.options = options ? options : &none};
  if (s.options->n_disabled && !s.options->disabled)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_plugins_load counts names that it is not given");
  s.used = hn_calloc((size_t)s.options->n_disabled + 1, sizeof *s.used);
  if (!s.used) return hn_fail_memory(error, s.options->n_disabled, "plugins");
  const uint64_t lost = hn_mem_lost();
  hone_status status = look_along(&s, s.options->path, "the path of operators", error);
  if (status == HONE_OK) status = look_along(&s, getenv("HONE_OP_PATH"), "HONE_OP_PATH", error);
  if (status == HONE_OK && hone_plugins_folder(own, sizeof own) && hn_is_folder(own))
    status = look_in(&s, own, 2, error);
  forget_unbuilt(&s);
  if (status == HONE_OK) status = all_used(&s, error);
  hn_free(s.used);
  return hn_settle(status, lost, error);
}

uint32_t hone_plugins(void) { return (uint32_t)known.len; }

bool hone_plugin_at(uint32_t i, hone_plugin_info *out) {
  if (i >= known.len || !out) return false;
  const entry *e = known.ptr[i];
  const hone_plugin *p = e->plugin;
  *out = (hone_plugin_info){.state = e->state,
                            .path = e->path,
                            .name = p ? p->name : e->name,
                            .version = p ? p->version : "",
                            .about = p ? p->about : "",
                            .plugin = e->state == HONE_PLUGIN_LOADED ? p : NULL,
                            .n_off = e->n_off,
                            .error = e->state == HONE_PLUGIN_REFUSED ? &e->error : NULL};
  return true;
}

void hone_plugins_unload(void) {
  for (size_t i = known.len; i-- > 0;) {
    entry *e = known.ptr[i];
    hn_units_remove(&e->units);
    e->units.n = 0; /* the copies stay: plans and models may have them */
    e->state = HONE_PLUGIN_DISABLED;
  }
}

bool hone_plugins_folder(char *buf, size_t size) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  if (!buf || !size) return false;
  if (data && data[0] == '/') return (size_t)snprintf(buf, size, "%s/hone/ops", data) < size;
  return home && home[0] == '/' && (size_t)snprintf(buf, size, "%s/.local/share/hone/ops", home) < size;
}
