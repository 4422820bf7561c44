/* Starting inputs for fuzz_data: the byte that chooses the wanted input, then a file. */
#include "fuzz/seeds_data.h"

#include "base/os.h"
#include "cli/make_files.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

static void put(const char *folder, const char *name, uint8_t want, const uint8_t *data, size_t size) {
  uint8_t file[4096];
  char path[512];
  if (size >= sizeof file) return;
  file[0] = want;
  memcpy(file + 1, data, size);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  hn_file_write(path, file, size + 1, NULL);
}

void seeds_data(const char *folder) {
  static const char *const dicts[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 8, 8), }",
                                      "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 4), }",
                                      "{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }"};
  uint8_t npy[128 + 768] = {0}, file[2048];
  for (int i = 0; i < 3; i++) {
    char name[32];
    npy_header((char *)npy, 128, dicts[i]);
    snprintf(name, sizeof name, "npy%d", i);
    put(folder, name, i ? 0 : 129, npy, sizeof npy);
    for (int deflated = 0; deflated < 2; deflated++) {
      snprintf(name, sizeof name, "npz%d%d", i, deflated);
      put(folder, name, 0, file, make_zip(file, npy, sizeof npy, deflated, sizeof npy));
    }
  }
  uint8_t rgb[6 * 5 * 3];
  for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37);
  png_image image = {.version = PNG_IMAGE_VERSION, .width = 6, .height = 5, .format = PNG_FORMAT_RGB};
  png_alloc_size_t n = sizeof file;
  if (png_image_write_to_memory(&image, file, &n, 0, rgb, 0, NULL)) put(folder, "png", 129, file, n);
}
