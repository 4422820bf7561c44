/* Values of options as words and files. */
#include "cli/manual/words.h"
#include "cli/terminal/term.h"

#include <string.h>

static bool is_word(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9'))) return false;
  return length > 0;
}

size_t cli_value_words(const cli_option *o, char *buf, size_t size) {
  size_t n = 0;
  *buf = 0;
  if (!o->value) return 0;
  if (o->kind == CLI_LEVEL) {
    snprintf(buf, size, "0 1 2 3");
    return 4;
  }
  for (const char *word = o->value; *word;) {
    const size_t length = strcspn(word, "|"), at = strlen(buf);
    if (is_word(word, length)) {
      snprintf(buf + at, size - at, "%s%.*s", n ? " " : "", (int)length, word);
      n++;
    }
    word += length + (word[length] == '|');
  }
  return n;
}

static bool names_file(const char *text) {
  return strstr(text, "FILE") || strstr(text, "DIR") || strstr(text, "PATH");
}

bool cli_value_is_file(const cli_option *o) {
  return o->value && (names_file(o->value) || strstr(o->value, "MODEL"));
}

bool cli_takes_model(const cli_command *c) {
  const char *a = c->arguments;
  return strstr(a, "MODEL") || strcmp(a, "A [B]") == 0;
}

bool cli_takes_files(const cli_command *c) {
  return cli_takes_model(c) || strcmp(c->arguments, "BEFORE AFTER") == 0 ||
         (names_file(c->arguments) && c->arguments[0] != '[') || strncmp(c->arguments, "[FILE", 5) == 0 ||
         strncmp(c->arguments, "[DIR", 4) == 0;
}

void cli_each_option(const cli_command *c, void (*each)(void *, const cli_option *), void *user) {
  for (const cli_option *o = c->options; o->name; o++) each(user, o);
  for (const cli_option *o = cli_everywhere; o->name; o++) each(user, o);
}

void cli_put_quoted(FILE *out, const char *text, const char *special) {
  for (; *text; text++) {
    if (*text == '\'') {
      cli_put(out, "'\\''");
      continue;
    }
    if (strchr(special, *text)) cli_put(out, "\\");
    cli_put(out, (char[]){*text, 0});
  }
}

const char *cli_verb_name(const cli_command *c) { return c->name + strlen("op "); }
