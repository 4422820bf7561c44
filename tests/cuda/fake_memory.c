#include "fake.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ZONE = 256 };
static const unsigned char poison = 0xff; /* NaN in every float type; the zones are another one */
static const unsigned char zone[4] = {0xfa, 0x7f, 0xfa, 0x7f};

typedef struct block {
  struct block *next;
  unsigned char *map, *data;
  size_t mapped, bytes;
  bool device, registered; /* registered: the caller's own, without guards */
  bool open;               /* device memory that can be touched just now */
} block;

static block *blocks;
static size_t used;

static size_t total(void) {
  const char *text = getenv("HONE_FAKE_MEMORY");
  const size_t n = text ? strtoull(text, NULL, 10) : 0;
  return n ? n : (size_t)8 << 30;
}

static void fill_zone(unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = zone[i % 4];
}

static bool zone_intact(const unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != zone[i % 4]) return false;
  return true;
}

bool fake_register(void *p, size_t bytes) {
  for (const block *b = blocks; b; b = b->next)
    if ((unsigned char *)p < b->data + b->bytes && b->data < (unsigned char *)p + bytes) return false;
  block *b = calloc(1, sizeof *b);
  if (!b) return false;
  *b = (block){.next = blocks, .map = p, .data = p, .mapped = bytes, .bytes = bytes, .registered = true};
  blocks = b;
  return true;
}

bool fake_unregister(void *p) {
  for (block **at = &blocks; *at; at = &(*at)->next) {
    block *b = *at;
    if (b->data != p || !b->registered) continue;
    *at = b->next;
    free(b);
    return true;
  }
  return false;
}

static size_t behind(const block *b) { return b->mapped - 2 * PAGE - ZONE - b->bytes; }

/* Where texts are only recorded no kernel runs that could touch what it must not. */
static bool recording(void) {
  static int on = -1;
  if (on < 0) on = getenv("HONE_FAKE_RECORD") != NULL;
  return on;
}

static void protect(block *b, bool on) {
  if (recording()) return;
  b->open = !on;
  mprotect(b->map + PAGE, b->mapped - 2 * PAGE, on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

/* Guard page, zone, data, zone to the end of the page, guard page. */
static void *new_block(size_t bytes, bool device) {
  const size_t inner = (bytes + 2 * ZONE + PAGE - 1) / PAGE * PAGE;
  block *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->map = mmap(NULL, inner + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
  if (b->map == MAP_FAILED) {
    free(b);
    return NULL;
  }
  *b = (block){blocks, b->map, b->map + PAGE + ZONE, inner + 2 * PAGE, bytes, device, false, device};
  blocks = b;
  mprotect(b->map, PAGE, PROT_NONE);
  mprotect(b->map + PAGE + inner, PAGE, PROT_NONE);
  fill_zone(b->data - ZONE, ZONE);
  fill_zone(b->data + bytes, behind(b));
  /* Of large host buffers the beginning: the rest would cost more than it finds. */
  memset(b->data, poison, device || bytes < 1 << 20 ? bytes : 1 << 16);
  if (device) protect(b, true);
  return b->data;
}

static bool delete_block(void *p, bool device) {
  for (block **at = &blocks; *at; at = &(*at)->next) {
    block *b = *at;
    if (b->data != p || b->device != device || b->registered) continue;
    *at = b->next;
    munmap(b->map, b->mapped);
    if (device) used -= b->bytes;
    free(b);
    return true;
  }
  return false;
}

void *fake_alloc(size_t bytes) {
  if (bytes > total() - used) return NULL;
  void *p = new_block(bytes, true);
  if (p) used += bytes;
  return p;
}

bool fake_free(void *p) { return delete_block(p, true); }
void *fake_alloc_host(size_t bytes) { return new_block(bytes, false); }
bool fake_free_host(void *p) { return delete_block(p, false); }

void fake_memory_info(size_t *free_bytes, size_t *all) {
  *all = total();
  *free_bytes = *all - used;
}

static block *block_of(const void *p) {
  const unsigned char *at = p;
  for (block *b = blocks; b; b = b->next)
    if (at >= b->map && at < b->map + b->mapped) return b;
  return NULL;
}

bool fake_touches_device(const void *p) {
  const block *b = block_of(p);
  return b && b->device;
}

bool fake_is_device(const void *p, size_t bytes) {
  const block *b = block_of(p);
  const unsigned char *at = p;
  return b && b->device && at >= b->data && at + bytes <= b->data + b->bytes;
}

bool fake_is_pinned(const void *p) {
  const block *b = block_of(p);
  return b && !b->device;
}

/* Hundreds of allocations are kept, of which a kernel touches a few: each is opened when that happens. */
static _Thread_local bool unlocked; /* by this thread */
static struct sigaction before;

bool fake_open_touched(const void *address) {
  const unsigned char *at = address;
  block *b = unlocked ? block_of(address) : NULL;
  if (!b || !b->device || b->open || at < b->map + PAGE || at >= b->map + b->mapped - PAGE) return false;
  protect(b, false);
  return b->open;
}

static void on_touch(int number, siginfo_t *info, void *context) {
  (void)context;
  if (!fake_open_touched(info->si_addr))
    sigaction(number, &before, NULL); /* comes again, to who was before */
}

void fake_unlock_memory(void) {
  struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  unlocked = true;
  sigaction(SIGSEGV, &action, &before);
}

bool fake_lock_memory(char *why, size_t size) {
  bool intact = true;
  sigaction(SIGSEGV, &before, NULL);
  unlocked = false;
  for (block *b = recording() ? NULL : blocks; b; b = b->next) {
    if (b->registered || (b->device && !b->open)) continue; /* nobody has written there */
    const bool front = zone_intact(b->data - ZONE, ZONE), back = zone_intact(b->data + b->bytes, behind(b));
    if (!front || !back) {
      intact = false;
      snprintf(why, size, "something was written %s the allocation of %zu bytes at %p",
               front ? "behind" : "before", b->bytes, (void *)b->data);
      fill_zone(b->data - ZONE, ZONE);
      fill_zone(b->data + b->bytes, behind(b));
    }
    if (b->device) protect(b, true);
  }
  return intact;
}
