/* The layout of AMX tile registers that all loops here use, written once. */
#ifndef HN_KERNELS_AMX_TILES_H
#define HN_KERNELS_AMX_TILES_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Rows of 64 bytes: `rows` of them in tiles 0 to 5 (sums, and A), 16 in tiles 6 and 7 (B). _tile_release ends
 * it. */
__attribute__((target("amx-tile"))) static inline void hn_tiles_open(uint32_t rows) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config;
  memset(&config, 0, sizeof config);
  config.palette = 1;
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = 64;
    config.rows[i] = (uint8_t)(i < 6 ? rows : 16);
  }
  __asm__ volatile("" : : "r"(&config) : "memory"); /* gcc's intrinsic names the first 8 bytes only */
  _tile_loadconfig(&config);
}

#endif
