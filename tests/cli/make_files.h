/* Arrays as files, made by hand: also such that lie. */
#ifndef HONE_TESTS_CLI_MAKE_FILES_H
#define HONE_TESTS_CLI_MAKE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A .npy header of `size` bytes with this dictionary. */
void npy_header(char *out, size_t size, const char *dict);
/* A zip with one entry x.npy; claimed: the uncompressed size that its directory tells. Returns its length. */
size_t make_zip(uint8_t *out, const uint8_t *npy, size_t size, bool deflated, size_t claimed);

#endif
