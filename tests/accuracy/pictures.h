/* Files and pictures for tests, below one folder. Everything asserts. */
#ifndef HN_TESTS_ACCURACY_PICTURES_H
#define HN_TESTS_ACCURACY_PICTURES_H

#include <stddef.h>
#include <stdint.h>

/* The folder that begins all paths; made anew, and removed with all that is in it. */
const char *pictures_folder(void);
void pictures_remove(void);
/* The same as fixtures of a group of tests. */
int pictures_setup(void **state);
int pictures_teardown(void **state);
/* folder/NAME, with its folders made; static, good for the next few calls. */
const char *pictures_path(const char *name);
void pictures_file(const char *name, const void *data, size_t size);
void pictures_text(const char *name, const char *text);
void pictures_gz(const char *name, const void *data, size_t size); /* packed by gzip */
/* A picture of one colour, or of these bytes (RGB, row by row). */
void pictures_plain(const char *name, int width, int height, uint8_t r, uint8_t g, uint8_t b);
void pictures_png(const char *name, int width, int height, const uint8_t *rgb);

#endif
