/* hone op remove: an installed plugin goes away. */
#include "cli/commands/op/definition.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  char folder[4000], path[4200];
  hone_plugin_info p;
  if (!hone_plugins_folder(folder, sizeof folder))
    return cli_error(HONE_ERROR_MISSING,
                     "there is no place for plugins: neither XDG_DATA_HOME nor HOME is set");
  if (strchr(rest[0], '/') || rest[0][0] == '.')
    return cli_error(HONE_ERROR_USAGE, "'%s' is no name of a plugin (hone op list names them)", rest[0]);
  snprintf(path, sizeof path, "%s/%.60s/%.60s.so", folder, rest[0], rest[0]);
  if (unlink(path) == 0) {
    snprintf(path, sizeof path, "%s/%.60s", folder, rest[0]);
    (void)rmdir(path);
    cli_print("%s is no longer installed\n", rest[0]);
    return cli_flush();
  }
  if (errno != ENOENT) return cli_error(HONE_ERROR_IO, "cannot remove %s: %s", path, strerror(errno));
  for (uint32_t i = 0; hone_plugin_at(i, &p); i++)
    if (strcmp(p.name, rest[0]) == 0)
      return cli_error(HONE_ERROR_USAGE, "%s is not installed: it comes from %s by --op-path or HONE_OP_PATH",
                       rest[0], p.path);
  return cli_error(HONE_ERROR_MISSING, "there is no plugin %s in %s", rest[0], folder);
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_END};
const cli_command cli_op_remove = {"op remove", "NAME", "takes an installed plugin away", NULL, options, 1,
                                   1,           run};
