/* The windows by which kernels of family "pick" find the elements of a pixel. */
#ifndef HN_CPU_MOVEMENT_WINDOWS_H
#define HN_CPU_MOVEMENT_WINDOWS_H

#include "backends/cpu/kernels/pick/pick.h"

/* Element i of a destination pixel of n elements is element from[i] of a source pixel of `width` elements.
 * Returns how many windows that takes with vectors of vw elements, at most n; writes them, and the vectors'
 * first ones, where `first` is given. */
uint32_t hn_windows_find(const int32_t *from, size_t n, size_t width, uint32_t vw, uint32_t *first,
                         hn_pick_window *window);

#endif
