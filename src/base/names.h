/* Names of enumerators. */
#ifndef HN_BASE_NAMES_H
#define HN_BASE_NAMES_H

/* Defines function(type): the word of a value by a list LIST(X) of X(id, word, ...); "?" for a value beyond
 * it. */
#define HN_NAME_FUNCTION(function, type, LIST)                                                               \
  const char *function(type value) {                                                                         \
    static const char *const names[] = {LIST(HN_NAME_WORD)};                                                 \
    return (unsigned)value < sizeof names / sizeof *names ? names[value] : "?";                              \
  }
#define HN_NAME_WORD(id, ...) HN_NAME_FIRST(__VA_ARGS__, )
#define HN_NAME_FIRST(word, ...) word,

#endif
