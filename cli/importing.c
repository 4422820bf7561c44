/* Other tools' profiles: files -> facts -> profile. */
#include "cli/cli.h"

hone_status cli_import(const cli_args *args, const char *const *paths, size_t n, cli_profile *out,
                       hone_error *error) {
  *out = (cli_profile){0};
  hone_import_options options = {.format = args->format, .model = args->model};
  hone_status status = hone_import_files(paths, n, &options, &out->facts, error);
  if (status == HONE_OK)
    status = hone_profile_create(out->facts, &(hone_profile_options){.filter = args->filter}, &out->profile,
                                 error);
  if (status != HONE_OK && !error->where[0]) snprintf(error->where, sizeof error->where, "%s", paths[0]);
  if (status != HONE_OK) cli_profile_free(out);
  return status;
}
