/* Prints what is written of the tables of facts, from their list src/insight/facts.def:
 *   facts_docs page             docs/reference/facts-members.md
 *   facts_docs schema DERIVED   the JSON schema; the file DERIVED holds the members that reports add */
#include "insight/facts_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_object(const hn_fact_table *t) { return t->layout == HN_FACT_OBJECT; }

/* ---- the schema ---- */

static void put_quoted(const char *text) {
  putchar('"');
  for (; *text; text++) printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  putchar('"');
}

static void put_description(const char *about, const char *unit) {
  char text[512];
  if (!*about && !*unit) return;
  snprintf(text, sizeof text, "%s%s%s", unit, *about && *unit ? ": " : "", about);
  printf(", \"description\": ");
  put_quoted(text);
}

static void schema_rows(hn_fact_id id, int indent);

static void schema_integer(const hn_fact_member *m) {
  const int64_t low = hn_fact_low(m);
  printf("\"type\": \"integer\"");
  if (low == -1 || low == 0 || low == 1) printf(", \"minimum\": %d", (int)low);
}

static void schema_member(const hn_fact_member *m, int indent) {
  printf("%*s\"%s\": {", indent, "", m->key);
  switch (m->word) {
  case HN_FACT_TEXT: printf("\"type\": \"string\""); break;
  case HN_FACT_FLAG: printf("\"type\": \"boolean\""); break;
  case HN_FACT_INTEGER:
  case HN_FACT_OWN_ID: schema_integer(m); break;
  case HN_FACT_NUMBER:
    printf(isnan(m->absent) ? "\"type\": [\"number\", \"null\"]" : "\"type\": \"number\"");
    if (m->low == 0) printf(", \"minimum\": 0");
    break;
  case HN_FACT_ENUM:
    for (int i = 0; i <= m->high; i++) printf("%s\"%s\"", i ? ", " : "\"enum\": [", m->name(i));
    putchar(']');
    break;
  case HN_FACT_INDICES:
    printf("\"type\": \"array\", \"items\": {\"type\": \"integer\", \"minimum\": 0}");
    break;
  case HN_FACT_RECORDS:
    printf("\"type\": \"array\", \"items\": {");
    schema_rows(m->of, indent + 1);
    putchar('}');
    break;
  }
  put_description(m->about, m->unit);
  putchar('}');
}

/* What a row is, within braces of its own. */
static void schema_rows(hn_fact_id id, int indent) {
  const hn_fact_member *members = hn_fact_tables[id].members();
  printf("\"type\": \"object\", \"properties\": {\n");
  for (const hn_fact_member *m = members; m->key; m++) {
    schema_member(m, indent);
    printf(m[1].key ? ",\n" : "}");
  }
  bool first = true;
  for (const hn_fact_member *m = members; m->key; m++)
    if (m->when == HN_FACT_REQUIRED) {
      printf("%s\"%s\"", first ? ", \"required\": [" : ", ", m->key);
      first = false;
    }
  if (!first) putchar(']');
}

static void schema_table(hn_fact_id id) {
  const hn_fact_table *t = &hn_fact_tables[id];
  printf("  \"%s\": {", t->key);
  if (!is_object(t)) printf("\"type\": \"array\", \"items\": {");
  schema_rows(id, 3);
  if (!is_object(t)) putchar('}');
  put_description(t->about, "");
  printf("},\n");
}

/* The lines between the first and the last one, which hold the brackets. */
static int schema_derived(const char *path) {
  char line[2][8192];
  FILE *file = fopen(path, "r");
  if (!file) {
    perror(path);
    return 6;
  }
  int lines = 0;
  for (; fgets(line[lines % 2], sizeof line[0], file); lines++)
    if (lines >= 2) printf(" %s", line[(lines - 1) % 2]);
  fclose(file);
  return 0;
}

static int print_schema(const char *derived) {
  puts("{\n \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n \"title\": \"hone facts v1\",\n"
       " \"$comment\": \"written by make docs from src/insight/facts.def and "
       "src/insight/report/derived.schema.json\",\n"
       " \"description\": \"The neutral record of a run (docs/reference/facts-v1.md). Readers ignore members "
       "that they "
       "do not know; every member that is not required may be missing.\",\n"
       " \"type\": \"object\",\n \"required\": [\"schema\", \"version\"],\n \"properties\": {\n"
       "  \"schema\": {\"const\": \"hone facts\"},");
  printf("  \"version\": {\"const\": %d},\n", HONE_FACTS_VERSION);
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++)
    if (hn_fact_tables[id].layout != HN_FACT_RECORD) schema_table(id);
  const int failed = schema_derived(derived);
  puts(" }\n}");
  return failed;
}

/* ---- the page ---- */

static void page_type(const hn_fact_member *m) {
  const char *of = hn_fact_tables[m->of].key;
  switch (m->word) {
  case HN_FACT_TEXT: printf("text"); break;
  case HN_FACT_NUMBER: printf(m->low == 0 ? "number >= 0" : "number"); break;
  case HN_FACT_FLAG: printf("true or false"); break;
  case HN_FACT_OWN_ID: printf("its place, from 1"); break;
  case HN_FACT_ENUM:
    for (int i = 0; i <= m->high; i++) printf("%s`%s`", i ? " " : "", m->name(i));
    break;
  case HN_FACT_INDICES: printf("places in `%s[]`", of); break;
  case HN_FACT_RECORDS: printf("list of `%s[]`", of); break;
  case HN_FACT_INTEGER:
    if (m->of)
      printf("place in `%s[]`%s", of, m->store == HN_STORE_U32 ? ", from 1" : "");
    else
      printf(m->low == 0 ? "integer >= 0" : "integer");
    break;
  }
}

static void page_missing(const hn_fact_member *m) {
  if (m->when == HN_FACT_REQUIRED)
    printf("refused");
  else if (m->word == HN_FACT_NUMBER || m->word == HN_FACT_INTEGER)
    printf(isnan(m->absent) ? "not known" : m->of ? "none" : "%g", m->absent);
  else if (m->word == HN_FACT_ENUM)
    printf(m->when == HN_FACT_OPTIONAL ? "`%s`" : "", m->name(0));
  else
    printf(m->word == HN_FACT_TEXT ? "not known" : m->word == HN_FACT_FLAG ? "false" : "none");
}

/* A sentence, as tools/wrap_pages.py would wrap it. */
static void page_sentence(const char *text) {
  enum { WIDTH = 120 };
  int column = 0;
  for (const char *word = text; *word;) {
    const int n = (int)strcspn(word, " "), end = word[n] ? n : n + 1; /* the full stop, too */
    if (column && column + 1 + end > WIDTH) column = 0;
    if (word != text) putchar(column ? ' ' : '\n');
    column += (column > 0) + n;
    putchar(word == text ? *word - 'a' + 'A' : *word);
    printf("%.*s", n - 1, word + 1);
    word += n + (word[n] == ' ');
  }
  puts(".");
}

static void page_table(hn_fact_id id) {
  const hn_fact_table *t = &hn_fact_tables[id];
  printf("\n## %s%s\n", t->key, is_object(t) ? "" : "[]");
  page_sentence(t->about);
  puts("\n| member | type | unit | missing | meaning |\n|---|---|---|---|---|");
  for (const hn_fact_member *m = t->members(); m->key; m++) {
    printf("| `%s` | ", m->key);
    page_type(m);
    printf(" | %s | ", m->unit);
    page_missing(m);
    printf(" | %s |\n", m->about);
  }
}

static int print_page(void) {
  puts("# Members of facts v1\n\n"
       "Generated by `make docs` from `src/insight/facts.def`; do not edit. What they are for, whose time is "
       "whose and what\n"
       "`hone profile --json` adds: [facts-v1.md](facts-v1.md). The column \"missing\" is what a member "
       "means that is not\n"
       "there; `refused`: a file without it is an error.");
  for (hn_fact_id id = HN_FACTS_NONE + 1; id < HN_FACTS_COUNT; id++) page_table(id);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "page") == 0) return print_page();
  if (argc == 3 && strcmp(argv[1], "schema") == 0) return print_schema(argv[2]);
  fprintf(stderr, "usage: facts_docs page | schema DERIVED\n");
  return 2;
}
