#include "insight/facts_table.h"

#include <math.h>
#include <string.h>

static const char *kind_name(int i) { return hone_span_kind_name((hone_span_kind)i); }
static const char *memory_name(int i) { return hone_memory_kind_name((hone_memory_kind)i); }
static const char *fate_name(int i) { return hone_node_fate_name((hone_node_fate)i); }

/* clang-format off */

/* The words of facts.def. A struct's member of another type than its word allows does not compile. */
#define IS(member, ...) _Generic(((row *)0)->member, __VA_ARGS__)
#define STORED_I32(member) .store = IS(member, int32_t: HN_STORE_I32)
#define STORED_U32(member) .store = IS(member, uint32_t: HN_STORE_U32)
#define STORED_I64(member) .store = IS(member, int64_t: HN_STORE_I64)
#define STORED_DOUBLE(member) .store = IS(member, double: HN_STORE_DOUBLE)
#define AN_INTEGER(least, most) .word = HN_FACT_INTEGER, .low = least, .high = most
#define A_PLACE AN_INTEGER(-1, INT32_MAX), .absent = -1
#define AN_ID AN_INTEGER(0, UINT32_MAX)
#define A_NUMBER .word = HN_FACT_NUMBER, .low = INT64_MIN
/* An enum, or the byte that holds one. */
#define AN_ENUM(member, function, count)                                                                     \
  .word = HN_FACT_ENUM, .name = function, .high = (count) - 1,                                               \
  .store = IS(member, uint32_t: HN_STORE_U32, int32_t: HN_STORE_I32, uint8_t: HN_STORE_U8)

#define WORD_TEXT(member) .word = HN_FACT_TEXT, .store = IS(member, const char *: HN_STORE_TEXT)
#define WORD_FLAG(member) .word = HN_FACT_FLAG, .store = IS(member, bool: HN_STORE_BOOL)
#define WORD_COUNT(member)                                                                                   \
  AN_INTEGER(0, IS(member, int32_t: INT32_MAX, uint32_t: UINT32_MAX, uint64_t: INT64_MAX)),                  \
  .store = IS(member, int32_t: HN_STORE_I32, uint32_t: HN_STORE_U32, uint64_t: HN_STORE_U64)
#define WORD_INTEGER(member) AN_INTEGER(INT32_MIN, INT32_MAX), STORED_I32(member)
/* So that the difference of two times is still a number. */
#define WORD_TIME_NS(member) AN_INTEGER(INT64_MIN / 2, INT64_MAX / 2), STORED_I64(member)
#define WORD_DURATION_NS(member) AN_INTEGER(0, INT64_MAX / 4), STORED_I64(member)
#define WORD_INDEX(member) A_PLACE, STORED_I32(member)
#define WORD_STEP(member) A_PLACE, .of = HN_FACTS_steps, STORED_I32(member)
#define WORD_NODE(member) A_PLACE, .of = HN_FACTS_nodes, STORED_I32(member)
#define WORD_SPAN_ID(member) AN_ID, .of = HN_FACTS_spans, STORED_U32(member)
#define WORD_LAUNCH_ID(member) AN_ID, .of = HN_FACTS_launches, STORED_U32(member)
#define WORD_OWN_ID(member) .word = HN_FACT_OWN_ID, .low = 1, .high = UINT32_MAX, STORED_U32(member)
#define WORD_NUMBER(member) A_NUMBER, STORED_DOUBLE(member)
#define WORD_NUMBER_OR_NAN(member) A_NUMBER, .absent = (double)NAN, STORED_DOUBLE(member)
#define WORD_NUMBER_OR_MINUS_1(member) A_NUMBER, .absent = -1, STORED_DOUBLE(member)
#define WORD_DURATION(member) .word = HN_FACT_NUMBER, .low = 0, STORED_DOUBLE(member)
#define WORD_SPAN_KIND(member) AN_ENUM(member, kind_name, HONE_SPAN_KIND_COUNT)
#define WORD_NODE_FATE(member) AN_ENUM(member, fate_name, HONE_NODE_FATE_COUNT)
#define WORD_MEMORY_KIND(member) AN_ENUM(member, memory_name, HONE_MEMORY_KIND_COUNT)

/* The members of each table: a function, so that `row` can name the table's struct in between. */
#define OBJECT(id, type, key, about) RECORD(id, type, about)
#define TABLE(id, one, type, key, layout, adder, about) RECORD(id, type, about)
#define RECORD(id, type, about)                                                                              \
  static const hn_fact_member *id##_members(void) {                                                          \
    typedef type row;                                                                                        \
    static const hn_fact_member list[] = {
#define MEMBER_AS(member, name, word, when_, unit_, about_)                                                  \
  {.key = name, .unit = unit_, .about = about_, .offset = offsetof(row, member),                             \
   .when = HN_FACT_##when_, WORD_##word(member)},
#define PLACES(member, counted, table, unit_, about_)                                                        \
  {.key = #member, .unit = unit_, .about = about_, .offset = offsetof(row, member),                          \
   .count_offset = offsetof(row, counted), .store = HN_STORE_LIST, .when = HN_FACT_OPTIONAL,                 \
   .word = IS(member, const int32_t *: HN_FACT_INDICES), .of = HN_FACTS_##table},
#define LIST(member, counted, record, unit_, about_)                                                         \
  {.key = #member, .unit = unit_, .about = about_, .offset = offsetof(row, member),                          \
   .count_offset = offsetof(row, counted), .store = HN_STORE_LIST, .when = HN_FACT_OPTIONAL,                 \
   .word = IS(member, const __typeof__(((hn_fact_row *)0)->record) *: HN_FACT_RECORDS),                      \
   .of = HN_FACTS_##record},
#define END(id)                                                                                              \
      {0}};                                                                                                  \
    return list;                                                                                             \
  }
/* clang-format on */
#include "insight/facts.def"

const hn_fact_table hn_fact_tables[HN_FACTS_COUNT] = {
#define OBJECT(id, type, key, about)                                                                         \
  [HN_FACTS_##id] = {key, about, sizeof(type), HN_FACT_OBJECT, id##_members},
#define TABLE(id, one, type, key, layout, adder, about)                                                      \
  [HN_FACTS_##id] = {key, about, sizeof(type), HN_FACT_##layout, id##_members},
#define RECORD(id, type, about) [HN_FACTS_##id] = {#id, about, sizeof(type), HN_FACT_RECORD, id##_members},
#include "insight/facts.def"
};

int64_t hn_fact_low(const hn_fact_member *m) {
  return m->when == HN_FACT_REQUIRED && m->low == -1 ? 0 : m->low;
}

int64_t hn_fact_integer(const hn_fact_member *m, const void *row) {
  const void *at = (const char *)row + m->offset;
  switch (m->store) {
  case HN_STORE_BOOL: return *(const bool *)at;
  case HN_STORE_U8: return *(const uint8_t *)at;
  case HN_STORE_I32: return *(const int32_t *)at;
  case HN_STORE_U32: return *(const uint32_t *)at;
  case HN_STORE_I64: return *(const int64_t *)at;
  case HN_STORE_U64: return (int64_t) * (const uint64_t *)at;
  default: return 0;
  }
}

void hn_fact_set_integer(const hn_fact_member *m, void *row, int64_t value) {
  void *at = (char *)row + m->offset;
  switch (m->store) {
  case HN_STORE_BOOL: *(bool *)at = value != 0; break;
  case HN_STORE_U8: *(uint8_t *)at = (uint8_t)value; break;
  case HN_STORE_I32: *(int32_t *)at = (int32_t)value; break;
  case HN_STORE_U32: *(uint32_t *)at = (uint32_t)value; break;
  case HN_STORE_I64: *(int64_t *)at = value; break;
  case HN_STORE_U64: *(uint64_t *)at = (uint64_t)value; break;
  default: break;
  }
}

double hn_fact_number(const hn_fact_member *m, const void *row) {
  return *(const double *)(const void *)((const char *)row + m->offset);
}

void hn_fact_set_number(const hn_fact_member *m, void *row, double value) {
  *(double *)(void *)((char *)row + m->offset) = value;
}

const char *hn_fact_text(const hn_fact_member *m, const void *row) {
  return *(const char *const *)(const void *)((const char *)row + m->offset);
}

void hn_fact_set_text(const hn_fact_member *m, void *row, const char *value) {
  *(const char **)(void *)((char *)row + m->offset) = value;
}

/* The pointers are of several types, so they are moved as bytes. */
const void *hn_fact_list(const hn_fact_member *m, const void *row, size_t *count) {
  const void *list;
  memcpy(&list, (const char *)row + m->offset, sizeof list);
  memcpy(count, (const char *)row + m->count_offset, sizeof *count);
  return list;
}

void hn_fact_set_list(const hn_fact_member *m, void *row, const void *list, size_t count) {
  memcpy((char *)row + m->offset, &list, sizeof list);
  memcpy((char *)row + m->count_offset, &count, sizeof count);
}

bool hn_fact_is_absent(const hn_fact_member *m, const void *row) {
  size_t count;
  switch (m->word) {
  case HN_FACT_TEXT: return !hn_fact_text(m, row);
  case HN_FACT_NUMBER: {
    const double value = hn_fact_number(m, row);
    if (m->absent < 0) return !(value >= 0);
    return isnan(m->absent) ? isnan(value) : value == m->absent;
  }
  case HN_FACT_INDICES:
  case HN_FACT_RECORDS: hn_fact_list(m, row, &count); return count == 0;
  default: return hn_fact_integer(m, row) == (int64_t)m->absent;
  }
}
