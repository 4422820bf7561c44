/* See pictures.h. */
#include "accuracy/pictures.h"
#include "temporary.h"

#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char folder[200];

const char *pictures_folder(void) {
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-pictures")));
  return folder;
}

void pictures_remove(void) { temporary_remove(folder); }

int pictures_setup(void **state) {
  (void)state;
  pictures_folder();
  return 0;
}

int pictures_teardown(void **state) {
  (void)state;
  pictures_remove();
  return 0;
}

const char *pictures_path(const char *name) {
  static char kept[4][600];
  static unsigned turn;
  char *path = kept[turn++ % 4];
  snprintf(path, 600, "%s/%s", folder, name);
  for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); p++) {
    *p = 0;
    mkdir(path, 0777);
    *p = '/';
  }
  return path;
}

void pictures_file(const char *name, const void *data, size_t size) {
  FILE *f = fopen(pictures_path(name), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

void pictures_text(const char *name, const char *text) { pictures_file(name, text, strlen(text)); }

void pictures_gz(const char *name, const void *data, size_t size) {
  gzFile f = gzopen(pictures_path(name), "wb");
  assert_non_null(f);
  assert_int_equal(gzwrite(f, data, (unsigned)size), size);
  gzclose(f);
}

void pictures_png(const char *name, int width, int height, const uint8_t *rgb) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = PNG_FORMAT_RGB};
  assert_true(png_image_write_to_file(&image, pictures_path(name), 0, rgb, 0, NULL));
}

void pictures_plain(const char *name, int width, int height, uint8_t r, uint8_t g, uint8_t b) {
  const size_t n = (size_t)(width * height);
  uint8_t *rgb = malloc(3 * n);
  assert_non_null(rgb);
  for (size_t i = 0; i < n; i++) rgb[3 * i] = r, rgb[3 * i + 1] = g, rgb[3 * i + 2] = b;
  pictures_png(name, width, height, rgb);
  free(rgb);
}
