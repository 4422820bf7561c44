/* PCRE2, after hn_late_need(HN_LATE_LIBRARY_PCRE2). Its header gives each name a suffix, which these names
 * have. */
#ifndef HN_BASE_LATE_PCRE2_H
#define HN_BASE_LATE_PCRE2_H

#include "base/symbols.h"
#include "late_names.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#ifdef HN_LATE_PCRE2
#define HN_PCRE2_SYMBOLS(X)                                                                                  \
  X(pcre2_code_free_8)                                                                                       \
  X(pcre2_compile_8)                                                                                         \
  X(pcre2_compile_context_create_8)                                                                          \
  X(pcre2_compile_context_free_8)                                                                            \
  X(pcre2_dfa_match_8)                                                                                       \
  X(pcre2_general_context_create_8)                                                                          \
  X(pcre2_general_context_free_8)                                                                            \
  X(pcre2_get_error_message_8)                                                                               \
  X(pcre2_get_ovector_pointer_8)                                                                             \
  X(pcre2_match_8)                                                                                           \
  X(pcre2_match_context_create_8)                                                                            \
  X(pcre2_match_context_free_8)                                                                              \
  X(pcre2_match_data_create_8)                                                                               \
  X(pcre2_match_data_free_8)                                                                                 \
  X(pcre2_set_heap_limit_8)                                                                                  \
  X(pcre2_set_match_limit_8)                                                                                 \
  X(pcre2_set_parens_nest_limit_8)

typedef struct hn_late_pcre2 {
  HN_PCRE2_SYMBOLS(HN_DL_FIELD)
} hn_late_pcre2;
extern hn_late_pcre2 hn_pcre2;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define pcre2_code_free_8 hn_pcre2.pcre2_code_free_8
#define pcre2_compile_8 hn_pcre2.pcre2_compile_8
#define pcre2_compile_context_create_8 hn_pcre2.pcre2_compile_context_create_8
#define pcre2_compile_context_free_8 hn_pcre2.pcre2_compile_context_free_8
#define pcre2_dfa_match_8 hn_pcre2.pcre2_dfa_match_8
#define pcre2_general_context_create_8 hn_pcre2.pcre2_general_context_create_8
#define pcre2_general_context_free_8 hn_pcre2.pcre2_general_context_free_8
#define pcre2_get_error_message_8 hn_pcre2.pcre2_get_error_message_8
#define pcre2_get_ovector_pointer_8 hn_pcre2.pcre2_get_ovector_pointer_8
#define pcre2_match_8 hn_pcre2.pcre2_match_8
#define pcre2_match_context_create_8 hn_pcre2.pcre2_match_context_create_8
#define pcre2_match_context_free_8 hn_pcre2.pcre2_match_context_free_8
#define pcre2_match_data_create_8 hn_pcre2.pcre2_match_data_create_8
#define pcre2_match_data_free_8 hn_pcre2.pcre2_match_data_free_8
#define pcre2_set_heap_limit_8 hn_pcre2.pcre2_set_heap_limit_8
#define pcre2_set_match_limit_8 hn_pcre2.pcre2_set_match_limit_8
#define pcre2_set_parens_nest_limit_8 hn_pcre2.pcre2_set_parens_nest_limit_8
#endif
#endif

#endif
