#include "fake_fail.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct rule {
  char function[64], text[256];
  unsigned long at, calls;
  bool later, has_code;
  int code;
} rule;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rule rules[32];
static size_t count;
static char as_read[2048]; /* the list that the rules are from */

static void read_rules(const char *p) {
  snprintf(as_read, sizeof as_read, "%s", p);
  count = 0;
  while (*p && count < sizeof rules / sizeof *rules) {
    rule *r = &rules[count];
    memset(r, 0, sizeof *r);
    const size_t all = strcspn(p, ","), name = strcspn(p, ":,");
    snprintf(r->function, sizeof r->function, "%.*s", (int)name, p);
    char rest[400], *end;
    snprintf(rest, sizeof rest, "%.*s", name < all ? (int)(all - name - 1) : 0, p + name + 1);
    r->at = strtoul(rest, &end, 10);
    if (*end == '+') r->later = true, end++;
    if (*end == ':') {
      char *code = end + 1;
      r->code = (int)strtol(code, &end, 10);
      r->has_code = end > code;
      if (*end == ':') snprintf(r->text, sizeof r->text, "%s", end + 1);
    }
    if (r->at) count++;
    p += all + (p[all] == ',');
  }
}

bool fake_fails(const char *function, int *code, char *text, size_t size) {
  bool fails = false;
  pthread_mutex_lock(&lock);
  const char *list = getenv("HONE_FAKE_FAIL");
  if (strcmp(list ? list : "", as_read)) read_rules(list ? list : "");
  for (size_t i = 0; i < count; i++) {
    rule *r = &rules[i];
    if (strcmp(r->function, function)) continue;
    r->calls++;
    if (r->calls != r->at && !(r->later && r->calls > r->at)) continue;
    fails = true;
    if (r->has_code) *code = r->code;
    if (text && r->text[0]) snprintf(text, size, "%s", r->text);
  }
  pthread_mutex_unlock(&lock);
  return fails;
}

void fake_fail_reset(void) {
  pthread_mutex_lock(&lock);
  as_read[0] = 0, count = 0;
  pthread_mutex_unlock(&lock);
}

/* The linker finds a symbol by comparing its name, so a name that is changed in place is gone. */
static int hide(struct dl_phdr_info *info, size_t size, void *list) {
  (void)size;
  const uintptr_t self = (uintptr_t)&count;
  const ElfW(Dyn) *dynamic = NULL;
  bool mine = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + h->p_vaddr;
    if (h->p_type == PT_LOAD && self >= at && self < at + h->p_memsz) mine = true;
    if (h->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)at;
  }
  if (!mine || !dynamic) return 0;
  char *names = NULL;
  size_t bytes = 0;
  for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) names = (char *)d->d_un.d_ptr; /* glibc has relocated it */
    if (d->d_tag == DT_STRSZ) bytes = d->d_un.d_val;
  }
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)names & ~(page - 1);
  if (!names || mprotect((void *)from, (uintptr_t)names + bytes - from, PROT_READ | PROT_WRITE)) return 1;
  for (char *p = names; p < names + bytes; p += strlen(p) + 1)
    for (const char *word = list; *word;) {
      const size_t n = strcspn(word, ",");
      if (n && strlen(p) == n && !memcmp(p, word, n)) *p = '?';
      word += n + (word[n] == ',');
    }
  return 1;
}

void fake_hide_missing(void) {
  char *list = getenv("HONE_FAKE_MISSING");
  if (list && *list) dl_iterate_phdr(hide, list);
}
