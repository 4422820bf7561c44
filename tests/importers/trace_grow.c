#include "importers/trace_grow.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static char *read_text(const char *path, size_t *size) {
  gzFile z = gzopen(path, "rb"); /* plain files, too */
  size_t room = 1 << 20;
  char *text = malloc(room);
  int n = 1;
  *size = 0;
  while (z && text && (n = gzread(z, text + *size, (unsigned)(room - *size))) > 0) {
    *size += (size_t)n;
    char *more = *size == room ? realloc(text, room *= 2) : text;
    if (!more) break;
    text = more;
  }
  if (z) gzclose(z);
  if (z && n == 0) return text;
  free(text);
  return NULL;
}

/* Integers stay integers. Times written as text ("1704161511420306.491") have more digits than a double. */
static void add_to(json_t *object, const char *key, double by) {
  json_t *v = json_object_get(object, key);
  const char *text = json_string_value(v);
  if (text && strcmp(key, "ts") == 0) {
    char moved[64], *rest;
    long long whole = strtoll(text, &rest, 10);
    snprintf(moved, sizeof moved, "%lld%.20s", whole + (long long)by, rest);
    json_string_set(v, moved);
  }
  if (json_is_integer(v)) json_integer_set(v, json_integer_value(v) + (json_int_t)by);
  if (json_is_real(v)) json_real_set(v, json_real_value(v) + by);
}

static double time_of(const json_t *event) {
  const json_t *ts = json_object_get(event, "ts");
  return json_is_string(ts) ? strtod(json_string_value(ts), NULL) : json_number_value(ts);
}

static double extent(json_t *events) {
  double low = 1e300, high = 0;
  size_t i;
  json_t *e;
  json_array_foreach(events, i, e) {
    double ts = time_of(e), end = ts + json_number_value(json_object_get(e, "dur"));
    if (ts <= 0) continue;
    if (ts < low) low = ts;
    if (end > high) high = end;
  }
  return high > low ? (double)(long long)(high - low) + 1000 : 1000;
}

/* Moves the events of a copy to where those of the next one are. */
static void move(json_t *events, double us, double numbers) {
  size_t i;
  json_t *e;
  json_array_foreach(events, i, e) {
    json_t *args = json_object_get(e, "args");
    if (time_of(e) > 0) add_to(e, "ts", us);
    add_to(e, "id", numbers);
    add_to(args, "correlation", numbers);
    add_to(args, "External id", numbers);
  }
}

size_t trace_grow(const char *sample, size_t bytes, const char *to) {
  size_t size, copies = 0, written = 0;
  char *text = read_text(sample, &size);
  json_t *root = text ? json_loadb(text, size, 0, NULL) : NULL,
         *events = json_is_array(root) ? root : json_object_get(root, "traceEvents"), *e;
  FILE *file = events ? fopen(to, "wb") : NULL;
  bool ok = file != NULL;
  double us = ok ? extent(events) : 0;
  if (ok && events == root)
    ok = fputs("[\n", file) >= 0;
  else if (ok) {
    json_t *device = json_object_get(root, "deviceProperties");
    char *properties = json_dumps(device ? device : events, JSON_COMPACT | JSON_ENCODE_ANY);
    ok = properties && fprintf(file, "{\"schemaVersion\":1,\"deviceProperties\":%s,\"traceEvents\":[\n",
                               device ? properties : "[]") > 0;
    free(properties);
  }
  for (; ok && written < bytes; copies++) {
    size_t i;
    json_array_foreach(events, i, e) {
      char *line = json_dumps(e, JSON_REAL_PRECISION(17));
      ok = ok && line && fprintf(file, "%s%s", written ? ",\n" : "", line) > 0;
      written += line ? strlen(line) + 2 : 0;
      free(line);
    }
    move(events, us, 100000);
  }
  ok = ok && fputs(events == root ? "\n]\n" : "\n]}\n", file) >= 0;
  if (file && fclose(file)) ok = false;
  json_decref(root);
  free(text);
  return ok ? copies : 0;
}
