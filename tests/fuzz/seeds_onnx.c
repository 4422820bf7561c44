#include "fuzz/seeds_onnx.h"

#include "base/os.h"
#include "onnx/bad_models.h"
#include "onnx/good_models.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 8192 }; /* larger ones are floods, and slow to mutate */

static void keep(const char *folder, const char *name, const pb *m) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (m->len <= LARGEST) hn_file_write(path, m->ptr, m->len, NULL);
  pb_done();
}

void seeds_onnx(const char *folder) {
  for (size_t i = 0; i < n_good_models; i++) keep(folder, good_models[i].name, good_models[i].make());
  for (size_t i = 0; i < n_bad_models; i++)
    if (strncmp(bad_models[i].name, "external_", 9) != 0) /* those make files where they run */
      keep(folder, bad_models[i].name, bad_models[i].make());
}
