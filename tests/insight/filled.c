#include "insight/filled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int64_t integer(filler *s, const hn_fact_member *m, int place) {
  s->next++;
  if (m->word == HN_FACT_FLAG) return 1;
  if (m->word == HN_FACT_ENUM) return 1 + place % m->high;
  if (m->word == HN_FACT_OWN_ID || (m->of && m->store == HN_STORE_U32)) return place + 1;
  return m->of ? place : s->next;
}

static void list(filler *s, const hn_fact_member *m, void *row, int place) {
  const size_t size = m->word == HN_FACT_INDICES ? sizeof(int32_t) : hn_fact_tables[m->of].size;
  char *all = hn_arena_array(&s->arena, FILLED_ROWS, size);
  assert_non_null(all);
  for (int i = 0; i < FILLED_ROWS; i++) {
    const int32_t index = (i + place) % FILLED_ROWS;
    if (m->word == HN_FACT_INDICES)
      memcpy(all + (size_t)i * size, &index, sizeof index);
    else
      fill_row(s, m->of, all + (size_t)i * size, i, true);
  }
  hn_fact_set_list(m, row, all, FILLED_ROWS);
}

static void fill_member(filler *s, const hn_fact_member *m, void *row, int place) {
  switch (m->word) {
  case HN_FACT_TEXT: hn_fact_set_text(m, row, hn_arena_printf(&s->arena, "text %d", (int)++s->next)); break;
  case HN_FACT_NUMBER: hn_fact_set_number(m, row, (double)++s->next + 0.5); break;
  case HN_FACT_INDICES:
  case HN_FACT_RECORDS: list(s, m, row, place); break;
  default: hn_fact_set_integer(m, row, integer(s, m, place)); break;
  }
}

void fill_row(filler *s, hn_fact_id id, void *row, int place, bool all) {
  memset(row, 0, hn_fact_tables[id].size);
  for (const hn_fact_member *m = hn_fact_tables[id].members(); m->key; m++)
    if (all || m->when == HN_FACT_REQUIRED)
      fill_member(s, m, row, place);
    else if (m->word == HN_FACT_NUMBER)
      hn_fact_set_number(m, row, m->absent);
    else if (m->word == HN_FACT_INTEGER)
      hn_fact_set_integer(m, row, (int64_t)m->absent);
}

hone_facts *filled_facts(filler *s, hn_fact_row rows[HN_FACTS_COUNT][FILLED_ROWS]) {
  hone_facts *f = hone_facts_create();
  assert_non_null(f);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) {
    if (hn_fact_tables[id].layout == HN_FACT_RECORD) continue;
    const int count = hn_fact_tables[id].layout == HN_FACT_OBJECT ? 1 : FILLED_ROWS;
    for (int i = 0; i < count; i++) {
      fill_row(s, id, &rows[id][i], i, true);
      assert_true(hn_facts_put(f, id, &rows[id][i]));
    }
  }
  return f;
}
