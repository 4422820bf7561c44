/* Other tools' profiles: files -> facts -> profile. */
#include "cli/options/importing.h"
#include "cli/options/options.h"

#include <hone/hone.h>
#include <stdio.h>
#include <string.h>

const char *cli_import_title(const cli_args *args, const hone_recording *p) {
  if (!p->facts || hone_facts_get_meta(p->facts)->model) return NULL;
  const char *path = args->rest.item[0], *slash = strrchr(path, '/');
  return strcmp(path, "-") == 0 ? "standard input" : slash && slash[1] ? slash + 1 : path;
}

hone_status cli_import(const cli_args *args, const char *const *paths, size_t n, hone_recording *out,
                       hone_error *error) {
  *out = (hone_recording){0};
  hone_import_options options = {.format = args->format, .model = args->model};
  hone_status status = hone_import_files(paths, n, &options, &out->facts, error);
  for (size_t i = 0; i < n && status == HONE_ERROR_INPUT; i++) {
    size_t end = strlen(paths[i]);
    if (end > 5 && strcmp(paths[i] + end - 5, ".onnx") == 0)
      snprintf(error->hint, sizeof error->hint, "a model, not a profile of it: hone profile measures one");
  }
  if (status == HONE_OK)
    status = hone_profile_create(out->facts, &(hone_profile_options){.filter = args->filter}, &out->profile,
                                 error);
  if (status != HONE_OK && !error->where[0]) snprintf(error->where, sizeof error->where, "%s", paths[0]);
  if (status != HONE_OK) hone_recording_free(out);
  return status;
}
