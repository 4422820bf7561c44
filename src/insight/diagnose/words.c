/* Names of what findings are made of. */
#include <hone/insight.h>

#include <string.h>
#include <strings.h>

#define WORD(id, word) word,
static const char *const quantity_names[] = {HONE_QUANTITIES(WORD)};
static const char *const remedy_names[] = {HONE_REMEDIES(WORD)};
static const char *const category_names[] = {HONE_CATEGORIES(WORD)};
static const char *const purpose_names[] = {HONE_PURPOSES(WORD)};
static const char *const basis_names[] = {HONE_BASES(WORD)};
static const char *const severity_names[] = {"high", "medium", "low"};
static const char *const language_names[] = {"en", "zh"};

#define NAME_FUNCTION(function, type, names)                                                                 \
  const char *function(type value) {                                                                         \
    return (unsigned)value < sizeof names / sizeof *names ? names[value] : "?";                              \
  }
NAME_FUNCTION(hone_quantity_name, hone_quantity, quantity_names)
NAME_FUNCTION(hone_remedy_name, hone_remedy, remedy_names)
NAME_FUNCTION(hone_category_name, hone_category, category_names)
NAME_FUNCTION(hone_purpose_name, hone_purpose, purpose_names)
NAME_FUNCTION(hone_basis_name, hone_basis, basis_names)
NAME_FUNCTION(hone_severity_name, hone_severity, severity_names)
NAME_FUNCTION(hone_language_name, hone_language, language_names)

bool hone_language_parse(const char *text, hone_language *language) {
  if (!language) return false;
  *language = HONE_LANGUAGE_EN;
  for (int i = 0; text && i < 2; i++) {
    const char *after = text + 2;
    if (strncasecmp(text, language_names[i], 2) != 0 || !strchr("_.-@:", *after)) continue;
    *language = (hone_language)i;
    return true;
  }
  return false;
}
