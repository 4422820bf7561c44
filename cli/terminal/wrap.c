#include "cli/terminal/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One character: its bytes, its columns, and whether it is part of a word. */
typedef struct glyph {
  size_t bytes;
  int columns;
  bool space, wide;
} glyph;

static bool is_wide(uint32_t c) {
  static const uint32_t range[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                      {0xf900, 0xfaff}, {0xfe30, 0xfe4f},   {0xff00, 0xff60},
                                      {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  for (size_t i = 0; i < sizeof range / sizeof *range; i++)
    if (c >= range[i][0] && c <= range[i][1]) return true;
  return false;
}

static glyph glyph_at(const char *p) {
  if (*p == '\033') { /* a colour has no width */
    const size_t n = 2 + strspn(p + 2, "0123456789;");
    return p[1] == '[' && p[n] == 'm' ? (glyph){n + 1, 0, false, false} : (glyph){1, 0, false, false};
  }
  const unsigned char first = (unsigned char)*p;
  size_t n = 1;
  while (first >= 0xc0 && n < 4 && ((unsigned char)p[n] & 0xc0) == 0x80) n++;
  uint32_t c = n > 1 ? first & (0x7fu >> n) : first;
  for (size_t k = 1; k < n; k++) c = c << 6 | ((unsigned char)p[k] & 0x3f);
  const bool wide = n > 1 && is_wide(c);
  return (glyph){n, wide ? 2 : 1, *p == ' ', wide};
}

static int columns_of(const char *line) {
  int n = 0;
  for (glyph g; *line; line += g.bytes) {
    g = glyph_at(line);
    n += g.columns;
  }
  return n;
}

/* How the parts of a line are put. */
typedef struct style {
  int indent; /* of the second part and what follows */
  bool command;
} style;

static style style_of(const char *line, int width) {
  int at = 0, lead = -1, gap = 0;
  style s = {0};
  for (glyph g; *line; line += g.bytes, at += g.columns) {
    g = glyph_at(line);
    if (!g.columns) continue;
    if (g.space) {
      gap++;
      continue;
    }
    if (lead < 0) {
      lead = at;
      s.command = line[0] == '$' && line[1] == ' ';
      if (s.command) break;
    } else if (gap >= 2) {
      s.indent = at;
      break;
    }
    gap = 0;
  }
  if (lead < 0) lead = 0;
  if (!s.indent || s.indent > width / 2) s.indent = lead + (s.command ? 4 : 2);
  if (s.indent > width / 2) s.indent = 0;
  return s;
}

/* Where the part that begins at `from` (in column `column`) has to end so that it fits: the last place
 * between two words; the line's end where none is needed, NULL where there is none that helps. */
static const char *end_of_part(const char *from, int column, int width, const style *s) {
  const char *best = NULL, *p = from;
  char quote = 0;
  bool word = false, before_wide = false, before_space = false;
  for (glyph g; *p; p += g.bytes) {
    g = glyph_at(p);
    if (s->command && quote == *p)
      quote = 0;
    else if (s->command && !quote && (*p == '"' || *p == '\''))
      quote = *p;
    /* Before the first of several spaces: no part ends with one. */
    if (word && !quote && ((g.space && !before_space) || (!s->command && g.wide && before_wide))) best = p;
    if (column + g.columns > width - (s->command ? 2 : 0) && !g.space) {
      /* A command's last part needs no room for the backslash. */
      if (!s->command || column + columns_of(p) > width) return best;
    }
    if (g.columns) before_wide = g.wide, before_space = g.space;
    word = word || (g.columns && !g.space);
    column += g.columns;
  }
  return p;
}

char *cli_wrap(const char *line, int width) {
  if (width < 20 || strpbrk(line, "\r\t\b") || columns_of(line) <= width) return NULL;
  const style s = style_of(line, width);
  const size_t n = strlen(line), each = (size_t)s.indent + 4;
  char *out = malloc(n + 1 + n * each / 2),
       *to = out; /* a part has at least two bytes of the line: a word and its space */
  if (!out) return NULL;
  int column = 0;
  for (const char *from = line; *from;) {
    const char *end = end_of_part(from, column, width, &s);
    if (!end) { /* a word that is too wide: to its end */
      end = from + strspn(from, " ");
      end += strcspn(end, " ");
    }
    memcpy(to, from, (size_t)(end - from));
    to += end - from;
    from = end + strspn(end, " ");
    if (!*from) break;
    if (s.command) memcpy(to, " \\", 2), to += 2;
    *to++ = '\n';
    memset(to, ' ', (size_t)s.indent), to += s.indent;
    column = s.indent;
  }
  *to = 0;
  return out;
}
