#include "backends/cpu/movement/windows.h"

#include <string.h>

/* The lanes that are still to come and lie in the vector at the first of them. */
static hn_pick_window next_window(const int32_t *from, uint32_t wanted, size_t width, uint32_t vw) {
  hn_pick_window w = {.at = INT32_MAX};
  for (uint32_t l = 0; l < vw; l++)
    if (wanted >> l & 1 && from[l] < w.at) w.at = from[l];
  if (w.at + (int64_t)vw > (int64_t)width) w.at = width > vw ? (int32_t)(width - vw) : 0;
  w.live = width - (size_t)w.at < vw ? (uint32_t)(width - (size_t)w.at) : vw;
  for (uint32_t l = 0; l < vw; l++)
    if (wanted >> l & 1 && from[l] < w.at + (int32_t)vw) w.lanes |= 1u << l, w.from[l] = from[l] - w.at;
  return w;
}

uint32_t hn_windows_find(const int32_t *from, size_t n, size_t width, uint32_t vw, uint32_t *first,
                         hn_pick_window *window) {
  uint32_t count = 0;
  for (size_t c = 0, v = 0; c < n; c += vw, v++) {
    uint32_t wanted = n - c < vw ? (1u << (n - c)) - 1 : (uint32_t)((1ull << vw) - 1);
    if (first) first[v] = count;
    for (; wanted; count++) {
      const hn_pick_window w = next_window(from + c, wanted, width, vw);
      if (first) window[count] = w;
      wanted &= ~w.lanes;
    }
    if (first) first[v + 1] = count;
  }
  return count;
}
