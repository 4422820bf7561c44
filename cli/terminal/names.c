/* Names in a column of a table. */
#include "cli/terminal/names.h"
#include "cli/terminal/term.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { LEAST = 28, MOST = 240, DOTS = 3 };

static bool begins(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

static int length_of(const char *name) {
  int n = 0;
  for (; *name; name++) n += begins(*name);
  return n;
}

/* Where the i-th character begins. */
static const char *at(const char *name, int i) {
  for (; *name; name++)
    if (begins(*name) && i-- == 0) return name;
  return name;
}

void cli_name_widen(int *width, const char *name) {
  const int n = length_of(name);
  if (n > *width) *width = n;
}

int cli_name_width(int longest, int others) {
  const int room = isatty(STDOUT_FILENO) ? cli_columns() - others : MOST, most = room < LEAST ? LEAST : room;
  const int width = longest > most ? most : longest;
  return width > MOST ? MOST : width;
}

static char *copy(char *to, const char *end, const char *from, size_t n) {
  if (n > (size_t)(end - to)) n = (size_t)(end - to);
  memcpy(to, from, n);
  return to + n;
}

const char *cli_name_cut(const char *name, int width, char buf[CLI_NAME_ROOM]) {
  const int n = length_of(name);
  char *to = buf, *const end = buf + CLI_NAME_ROOM - 1;
  if (n <= width || width <= DOTS + 1) {
    to = copy(to, end, name, (size_t)(at(name, n <= width ? n : width) - name));
  } else { /* the tail says more */
    const int head = (width - DOTS) / 3, tail = width - DOTS - head;
    const char *rest = at(name, n - tail);
    to = copy(to, end, name, (size_t)(at(name, head) - name));
    to = copy(to, end, "...", DOTS);
    to = copy(to, end, rest, strlen(rest));
  }
  *to = '\0';
  return buf;
}

const char *cli_name_cell(const char *name, int width, char buf[CLI_NAME_ROOM]) {
  char *const end = buf + CLI_NAME_ROOM - 1;
  cli_name_cut(name, width, buf);
  char *to = buf + strlen(buf);
  for (int n = length_of(buf); n < width && to < end; n++) *to++ = ' ';
  *to = '\0';
  return buf;
}
