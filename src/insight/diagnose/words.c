/* Names of what findings are made of. */
#include <hone/insight.h>

#include "base/names.h"

#include <string.h>
#include <strings.h>

HN_NAME_FUNCTION(hone_quantity_name, hone_quantity, HONE_QUANTITIES)
HN_NAME_FUNCTION(hone_remedy_name, hone_remedy, HONE_REMEDIES)
HN_NAME_FUNCTION(hone_category_name, hone_category, HONE_CATEGORIES)
HN_NAME_FUNCTION(hone_purpose_name, hone_purpose, HONE_PURPOSES)
HN_NAME_FUNCTION(hone_basis_name, hone_basis, HONE_BASES)
#define SEVERITIES(X) X(HIGH, "high") X(MEDIUM, "medium") X(LOW, "low")
HN_NAME_FUNCTION(hone_severity_name, hone_severity, SEVERITIES)
#define LANGUAGES(X) X(EN, "en") X(ZH, "zh")
HN_NAME_FUNCTION(hone_language_name, hone_language, LANGUAGES)

bool hone_language_parse(const char *text, hone_language *language) {
  if (!language) return false;
  *language = HONE_LANGUAGE_EN;
  for (int i = 0; text && i < 2; i++) {
    const char *after = text + 2;
    if (strncasecmp(text, hone_language_name((hone_language)i), 2) != 0 || !strchr("_.-@:", *after)) continue;
    *language = (hone_language)i;
    return true;
  }
  return false;
}
