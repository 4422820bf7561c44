/* See buffer.h. */
#include "cli/op/buffer.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64 };
static const op_buffer *live[MOST]; /* for faults */

static uint8_t garbage_at(const op_buffer *b, size_t i) {
  return (uint8_t)(b->garbage + i * 167 + (i >> 8) * 13);
}

bool op_buffer_make(op_buffer *b, const char *name, size_t bytes, size_t align, op_place place,
                    uint8_t garbage) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + 2 * align + page - 1) / page * page;
  *b = (op_buffer){.bytes = bytes, .mapped = room + 2 * page, .garbage = garbage};
  snprintf(b->name, sizeof b->name, "%s", name);
  b->map = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b->map == MAP_FAILED) {
    b->map = NULL;
    return false;
  }
  char *inner = b->map + page;
  if (mprotect(inner, room, PROT_READ | PROT_WRITE) != 0) {
    op_buffer_free(b);
    return false;
  }
  for (size_t i = 0; i < room; i++) inner[i] = (char)garbage_at(b, i);
  b->data =
      place == OP_AT_END ? inner + (room - bytes) / align * align : inner + (place == OP_ODD ? align : 0);
  for (int i = 0; i < MOST; i++)
    if (!live[i]) {
      live[i] = b;
      break;
    }
  return true;
}

void op_buffer_free(op_buffer *b) {
  for (int i = 0; i < MOST; i++)
    if (live[i] == b) live[i] = NULL;
  if (b->map) munmap(b->map, b->mapped);
  *b = (op_buffer){0};
}

static void protect(op_buffer *b, int what) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  (void)mprotect(b->map + page, b->mapped - 2 * page, what);
}
void op_buffer_lock(op_buffer *b) { protect(b, PROT_READ); }
void op_buffer_forbid(op_buffer *b) { protect(b, PROT_NONE); }

bool op_buffer_sound(const op_buffer *b, char *why, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = b->mapped - 2 * page;
  const char *inner = b->map + page;
  const size_t first = (size_t)(b->data - inner), end = first + b->bytes;
  for (size_t i = 0; i < room; i++) {
    if ((i >= first && i < end) || (uint8_t)inner[i] == garbage_at(b, i)) continue;
    if (i < first)
      snprintf(why, size, "it writes %zu bytes before %s", first - i, b->name);
    else
      snprintf(why, size, "it writes %zu bytes behind %s", i - end + 1, b->name);
    return false;
  }
  return true;
}

bool op_buffer_fault(const void *address, const char *does, char *text, size_t size) {
  const char *p = address;
  for (int i = 0; i < MOST; i++) {
    const op_buffer *b = live[i];
    if (!b || !b->map || p < b->map || p >= b->map + b->mapped) continue;
    const char *end = b->data + b->bytes;
    if (p >= end)
      snprintf(text, size, "it %s %zu bytes behind %s", does, (size_t)(p - end) + 1, b->name);
    else if (p < b->data)
      snprintf(text, size, "it %s %zu bytes before %s", does, (size_t)(b->data - p), b->name);
    else
      snprintf(text, size, "it %s %s, which is not its own", does, b->name);
    return true;
  }
  return false;
}
