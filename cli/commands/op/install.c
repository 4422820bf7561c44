/* hone op install: a plugin goes where every run finds it. */
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 << 20, PATH = 4300 };

/* mkdir -p, for nobody else to write. */
static int make_folders(char *path) {
  for (char *p = path + 1;; p++) {
    if (*p && *p != '/') continue;
    const char was = *p;
    *p = 0;
    const bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
    if (!made) return cli_error(HONE_ERROR_IO, "cannot make folder %s: %s", path, strerror(errno));
    *p = was;
    if (!was) return 0;
  }
}

static int copy(const char *from, const char *to) {
  hone_error e = {0};
  hone_writer *w = NULL;
  char *data;
  size_t size;
  if (hone_file_read(from, MOST, &data, &size, &e) != HONE_OK) return cli_report(&e);
  hone_status status = hone_writer_open(to, &w, &e);
  if (status == HONE_OK) status = hone_writer_sink(w, data, size, &e);
  if (status == HONE_OK)
    status = hone_writer_commit(w, &e);
  else
    hone_writer_abandon(w);
  hone_file_free(data);
  if (status != HONE_OK) return cli_report(&e);
  return chmod(to, 0755) == 0 ? 0 : cli_error(HONE_ERROR_IO, "cannot set the rights of %s", to);
}

/* The one plugin of a folder: DIR/build/NAME.so, or DIR/NAME.so. */
static int find(const char *folder, char *path, size_t size) {
  char in[PATH];
  for (int k = 0; k < 2; k++) {
    snprintf(in, sizeof in, "%.4000s%s", folder, k ? "" : "/build");
    DIR *dir = opendir(in);
    int found = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
      const size_t n = strlen(e->d_name);
      if (e->d_name[0] == '.' || n < 4 || strcmp(e->d_name + n - 3, ".so") != 0) continue;
      snprintf(path, size, "%s/%s", in, e->d_name);
      found++;
    }
    if (dir) closedir(dir);
    if (found == 1) return 0;
    if (found > 1)
      return cli_error(HONE_ERROR_USAGE, "%s has several plugins: name the file that is meant", in);
  }
  return cli_error(HONE_ERROR_MISSING, "%s has no plugin (hone op build %s makes it)", folder, folder);
}

static int install(const char *from) {
  char folder[PATH], to[2 * PATH], whole[4200];
  hone_error e = {0};
  hone_plugin_info p, mine = {0};
  if (!hone_plugins_folder(folder, sizeof folder))
    return cli_error(HONE_ERROR_MISSING,
                     "there is no place for plugins: neither XDG_DATA_HOME nor HOME is set");
  if (!realpath(from, whole)) return cli_error(HONE_ERROR_MISSING, "there is no plugin %s", from);
  if (hone_plugins_load(&(hone_plugins_options){.path = whole}, &e) != HONE_OK) return cli_report(&e);
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++)
    if (strcmp(p.path, whole) == 0) mine = p;
  const char *base = strrchr(whole, '/') + 1;
  const char *name = base;
  /* One of the same name that is installed already is replaced. */
  const bool again = mine.error && mine.error->status == HONE_ERROR_USAGE && *mine.version;
  if (mine.error && !again) return cli_report(mine.error);
  if (mine.plugin || again) name = mine.name;
  const size_t n = strcspn(name, ".");
  snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/%.*s", (int)n, name);
  const int code = make_folders(folder);
  if (code) return code;
  snprintf(to, sizeof to, "%s/%.*s.so", folder, (int)n, name);
  const int copied = copy(whole, to);
  if (copied) return copied;
  cli_print("%s: every run uses it from now on (hone op remove %.*s takes it away)\n", to, (int)n, name);
  return cli_flush();
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  struct stat st;
  char path[2 * PATH];
  if (stat(rest[0], &st) != 0)
    return cli_error(HONE_ERROR_MISSING, "there is no folder or plugin %s", rest[0]);
  snprintf(path, sizeof path, "%.4200s", rest[0]);
  const int code = S_ISDIR(st.st_mode) ? find(rest[0], path, sizeof path) : 0;
  return code ? code : install(path);
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_END};
const cli_command cli_op_install = {"op install",
                                    "DIR|FILE.so",
                                    "a plugin goes to the user's folder, where every run finds it",
                                    NULL,
                                    options,
                                    1,
                                    1,
                                    run};
