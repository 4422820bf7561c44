#include "insight/diagnose/actions.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const beginnings[] = {
#define X(id, word) word,
    HN_TOOLS(X)
#undef X
};

static const struct {
  hn_tool tool;
  hn_action action;
  hn_condition when;
  hone_purpose purpose;
  const char *text, *zh; /* zh: NULL where it is a command */
} rows[] = {
#define ROW(action, tool, when, purpose, text, zh)                                                           \
  {HN_TOOL_##tool, HN_DO_##action, HN_WHEN_##when, HONE_PURPOSE_##purpose, text, zh},
#define COMMAND(name, options)
#include "insight/diagnose/actions.def"
#undef COMMAND
#undef ROW
};

/* words: several, with spaces between. In the name itself spaces and underscores are the same. */
static bool begins_with_one(const char *name, const char *words) {
  while (*words) {
    size_t n = strcspn(words, " "), i = 0;
    while (i < n && name[i] &&
           (tolower((unsigned char)name[i]) == words[i] || (name[i] == ' ' && words[i] == '_')))
      i++;
    if (i == n) return true;
    words += n + (words[n] == ' ');
  }
  return false;
}

hn_tool hn_tool_of(const char *tool) {
  if (!tool) return HN_TOOL_HONE;
  for (int i = 0; i < HN_TOOL_ANY; i++)
    if (begins_with_one(tool, beginnings[i])) return (hn_tool)i;
  return HN_TOOL_ANY;
}

static int row_of(hn_tool tool, hn_action action, unsigned hold, int index) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].tool == tool && rows[i].action == action && hold >> rows[i].when & 1 && index-- == 0)
      return (int)i;
  return -1;
}

const char *hn_action_text(hn_tool tool, hn_action action, unsigned hold, int index, hone_language language,
                           hone_purpose *purpose) {
  const int row = row_of(row_of(tool, action, hold, 0) >= 0 ? tool : HN_TOOL_ANY, action, hold, index);
  if (row < 0) return NULL;
  *purpose = rows[row].purpose;
  return language == HONE_LANGUAGE_ZH && rows[row].zh ? rows[row].zh : rows[row].text;
}
