/* Tokens of the text form (text.h), shared by the graph parser and by pattern text. */
#ifndef HN_MODEL_IR_LEX_H
#define HN_MODEL_IR_LEX_H

#include "base/arena.h"

#include <hone/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum hn_token_kind {
  HN_TOKEN_END = 0,
  HN_TOKEN_WORD,   /* Conv, graph, _ */
  HN_TOKEN_VALUE,  /* %x, %"any name": text is the name */
  HN_TOKEN_NUMBER, /* 3, -0.5, 1e-5, inf, nan */
  HN_TOKEN_STRING, /* "text" with \" \\ \n \t \r \xHH */
  HN_TOKEN_ARROW,  /* -> */
  HN_TOKEN_PUNCT   /* one of ( ) { } [ ] , = : / * ? ! # | < > */
} hn_token_kind;

typedef struct hn_token {
  hn_token_kind kind;
  int line, column; /* of its first character, from 1 */
  char punct;
  const char *text; /* WORD, VALUE, NUMBER, STRING: NUL-terminated, in the arena */
  size_t len;
  bool is_int;      /* NUMBER: written without point and exponent, and fits */
  bool is_unsigned; /* NUMBER: beyond INT64_MAX; integer holds the bits */
  int64_t integer;
  double number;
} hn_token;

typedef struct hn_lex {
  const char *at, *end, *line_start;
  int line;
  const char *source; /* for messages: file name or "pattern Gelu" */
  hn_arena *arena;
  hn_token token;                 /* the current one */
  hone_status status;             /* the first failure: everything after it is HN_TOKEN_END */
  int failed_line, failed_column; /* where it is */
  hone_error *error;
} hn_lex;

/* Starts and reads the first token. error may be NULL. */
void hn_lex_start(hn_lex *lex, const char *source, const char *text, size_t len, hn_arena *arena,
                  hone_error *error);
void hn_lex_next(hn_lex *lex);
/* Records the failure "what" at the current token; returns lex->status. The first failure wins. */
hone_status hn_lex_fail(hn_lex *lex, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* True and steps over it when the current token is this. */
bool hn_lex_accept(hn_lex *lex, char punct);
bool hn_lex_accept_word(hn_lex *lex, const char *word);
/* The same, or a failure that names what stands there instead. */
bool hn_lex_expect(hn_lex *lex, char punct);
/* What the current token is, for messages. */
const char *hn_lex_describe(const hn_lex *lex, char buf[64]);

/* Characters of a bare %name; other names are quoted. */
bool hn_lex_name_char(char c);

#endif
