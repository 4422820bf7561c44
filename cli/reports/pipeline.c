#include "cli/reports/pipeline.h"

#include "cli/options/files.h"
#include "cli/options/shapes.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- an item */

static void put(json_t *doc, const char *key, double v) { json_object_set_new(doc, key, cli_real(v)); }
static void put_count(json_t *doc, const char *key, uint64_t v) {
  json_object_set_new(doc, key, json_integer((json_int_t)v));
}

/* Microseconds are as fine as anything here is. */
static double ms(double seconds) { return round(seconds * 1e6) / 1e3; }

static void put_class(json_t *o, const hone_post *post, uint32_t cls, uint32_t classes) {
  const char *label = hone_post_label(post, cls, classes);
  put_count(o, "class", cls);
  if (label) json_object_set_new(o, "label", cli_text(label));
}

static json_t *ranked(const hone_answer *a, const hone_post *post) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->n_ranked; i++) {
    json_t *o = json_object();
    put_class(o, post, a->ranked[i].index, a->classes);
    put(o, "score", (double)a->ranked[i].score);
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *boxes(const hone_answer *a, const hone_post *post) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->boxes.n; i++) {
    const hone_detection *b = &a->boxes.box[i];
    const double v[] = {b->x0, b->y0, b->x1, b->y1};
    json_t *o = json_object(), *at = json_array();
    put_class(o, post, b->cls, 0);
    put(o, "score", b->score);
    for (int k = 0; k < 4; k++) json_array_append_new(at, cli_real(round(v[k] * 100) / 100));
    json_object_set_new(o, "box", at);
    json_array_append_new(list, o);
  }
  return list;
}

/* The map's shape, and how many of its places each class has. */
static json_t *map_of(const hone_answer *a, const hone_post *post) {
  json_t *o = cli_desc_json(&a->map.desc), *found = json_array();
  const int64_t n = hone_desc_count(&a->map.desc), *v = a->map.data;
  int64_t most = -1;
  for (int64_t i = 0; i < n; i++) most = v[i] > most ? v[i] : most;
  uint64_t *count = calloc((size_t)most + 2, sizeof *count);
  for (int64_t i = 0; count && i < n; i++) count[v[i]]++;
  for (int64_t c = 0; count && c <= most; c++) {
    if (!count[c]) continue;
    json_t *one = json_object();
    put_class(one, post, (uint32_t)c, 0);
    put_count(one, "places", count[c]);
    json_array_append_new(found, one);
  }
  free(count);
  json_object_set_new(o, "classes", found);
  return o;
}

static void put_answer(json_t *o, const hone_answer *a, const hone_post *post) {
  switch (a->kind) {
  case HONE_POST_TOP_K:
  case HONE_POST_THRESHOLD: json_object_set_new(o, "classes", ranked(a, post)); break;
  case HONE_POST_BOXES: json_object_set_new(o, "boxes", boxes(a, post)); break;
  case HONE_POST_ARGMAX: json_object_set_new(o, "map", map_of(a, post)); break;
  case HONE_POST_CTC:
    json_object_set_new(o, "text", cli_text(a->text.text));
    put(o, "score", a->text.score);
    break;
  default: break;
  }
}

json_t *cli_pipeline_item(const hone_pipeline_result *r, const hone_post *post) {
  json_t *o = json_object();
  char text[1400];
  put_count(o, "item", r->number);
  json_object_set_new(o, "name", cli_text(r->name));
  if (r->status != HONE_OK) {
    hone_error_format(r->error, text, sizeof text);
    json_object_set_new(
        o, "error",
        json_pack("{s:s, s:o}", "status", hone_status_name(r->status), "message", cli_text(text)));
    return o;
  }
  if (r->picture.width)
    json_object_set_new(o, "size",
                        json_pack("[I, I]", (json_int_t)r->picture.width, (json_int_t)r->picture.height));
  put_answer(o, r->answer, post);
  json_t *times = json_object();
  for (int i = 0; i < HONE_STAGES; i++) put(times, hone_stage_name((hone_stage)i), ms(r->seconds[i]));
  json_object_set_new(o, "ms", times);
  return o;
}

hone_status cli_pipeline_arrays(const hone_pipeline_result *r, const char *folder, const char *stem,
                                json_t *document, hone_error *error) {
  json_t *list = json_array(), *taken = json_object();
  hone_status status = HONE_OK;
  for (uint32_t i = 0; status == HONE_OK && i < r->n_out; i++) {
    hone_tensor one = *r->out[i];
    if (r->rows > 1 && one.desc.rank > 0 && one.desc.dim[0] == r->rows) {
      one.desc.dim[0] = 1;
      one.data = (char *)one.data + r->row * hone_desc_bytes(&one.desc);
    }
    json_t *o = cli_desc_json(&one.desc);
    json_object_set_new(o, "name", cli_text(r->names[i]));
    if (folder) {
      char name[700], file[320], path[4096 + 720];
      cli_array_name(r->names[i], taken, file, sizeof file);
      snprintf(name, sizeof name, "%.300s.%.300s", stem, file);
      snprintf(path, sizeof path, "%.4000s/%s", folder, name);
      status = hone_data_save_npy(&one, path, error);
      json_object_set_new(o, "file", cli_text(name));
    }
    json_array_append_new(list, o);
  }
  json_object_set_new(document, "outputs", list);
  json_decref(taken);
  return status;
}

/* ---------------------------------------------------------------- all of it */

void cli_pipeline_live(const hone_pipeline_state *s, char *buf, size_t size) {
  size_t n = (size_t)snprintf(buf, size, "%llu told, %.1f/s", (unsigned long long)s->told, s->rate);
  for (int i = 0; i < HONE_STAGES && n < size; i++) {
    const hone_stage_state *t = &s->stage[i];
    n += (size_t)snprintf(buf + n, size - n, " | %s %u/%u x %.2f ms, queue %u/%u",
                          hone_stage_name((hone_stage)i), t->running, t->workers, t->item_seconds * 1e3,
                          t->waiting, t->queue);
  }
  if (s->failed && n < size) snprintf(buf + n, size - n, " | %llu failed", (unsigned long long)s->failed);
}

void cli_pipeline_text(FILE *to, const hone_pipeline_state *s) {
  const hone_pipeline_split *t = &s->split;
  cli_print_to(to, "%llu item%s in %.3f s: %.1f a second", (unsigned long long)s->told, cli_s(s->told),
               s->seconds, s->rate);
  if (s->failed) cli_print_to(to, ", %llu failed", (unsigned long long)s->failed);
  if (s->cancelled) cli_print_to(to, ", %llu cancelled", (unsigned long long)s->cancelled);
  cli_put(to, "\n");
  if (!s->told) return;
  cli_put(to, "stage   workers  ms/item  busy %  most waiting\n");
  for (int i = 0; i < HONE_STAGES; i++) {
    const hone_stage_state *g = &s->stage[i];
    const double all = g->workers_mean * s->seconds;
    cli_print_to(to, "%-6s  %7.2f  %7.3f  %6.1f  %7u of %u\n", hone_stage_name((hone_stage)i),
                 g->workers_mean, g->item_seconds * 1e3, all > 0 ? fmin(100 * g->busy_seconds / all, 100) : 0,
                 g->most_waiting, g->queue);
  }
  cli_print_to(to,
               "an item: pre %.3f + h2d %.3f + infer %.3f + d2h %.3f + post %.3f + idle %.3f = %.3f ms "
               "(residual %.2f %%)\n",
               t->pre * 1e3, t->h2d * 1e3, t->infer * 1e3, t->d2h * 1e3, t->post * 1e3, t->idle * 1e3,
               t->total * 1e3, t->total > 0 ? 100 * t->residual / t->total : 0);
  if (s->ceiling > 0)
    cli_print_to(to, "ceiling: %.1f a second, by %s; reached %.1f %%\n", s->ceiling,
                 hone_stage_name(s->limit), 100 * s->rate / s->ceiling);
}

static json_t *stage(const hone_stage_state *s) {
  json_t *o = json_object();
  put_count(o, "items", s->items);
  put_count(o, "runs", s->runs);
  put(o, "busy_seconds", s->busy_seconds);
  put(o, "ms_per_item", s->item_seconds * 1e3);
  put(o, "workers_mean", s->workers_mean);
  put_count(o, "workers", s->workers);
  put_count(o, "most_workers", s->most_workers);
  put_count(o, "queue", s->queue);
  put_count(o, "most_waiting", s->most_waiting);
  return o;
}

static json_t *split(const hone_pipeline_split *t) {
  json_t *o = json_object();
  put(o, "pre", t->pre * 1e3);
  put(o, "h2d", t->h2d * 1e3);
  put(o, "infer", t->infer * 1e3);
  put(o, "d2h", t->d2h * 1e3);
  put(o, "post", t->post * 1e3);
  put(o, "idle", t->idle * 1e3);
  put(o, "total", t->total * 1e3);
  put(o, "residual", t->residual * 1e3);
  return o;
}

json_t *cli_pipeline_json(const hone_pipeline_state *s, const hone_pipeline_moment *m, uint32_t n) {
  json_t *o = json_object(), *stages = json_object(), *course = json_array();
  put_count(o, "items", s->told);
  put_count(o, "good", s->good);
  put_count(o, "failed", s->failed);
  put_count(o, "cancelled", s->cancelled);
  put(o, "seconds", s->seconds);
  put(o, "rate", s->rate);
  put(o, "ceiling", s->ceiling > 0 ? s->ceiling : (double)NAN);
  json_object_set_new(o, "limit", s->ceiling > 0 ? json_string(hone_stage_name(s->limit)) : json_null());
  put(o, "reached", s->ceiling > 0 ? s->rate / s->ceiling : (double)NAN);
  put_count(o, "batch", s->batch);
  put_count(o, "most_in_flight", s->most_in_flight);
  for (int i = 0; i < HONE_STAGES; i++)
    json_object_set_new(stages, hone_stage_name((hone_stage)i), stage(&s->stage[i]));
  json_object_set_new(o, "stages", stages);
  json_object_set_new(o, "item_ms", split(&s->split));
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(course,
                          json_pack("{s:o, s:o, s:[I,I,I], s:[o,o,o]}", "seconds", cli_real(m[i].seconds),
                                    "rate", cli_real(m[i].rate), "workers", (json_int_t)m[i].workers[0],
                                    (json_int_t)m[i].workers[1], (json_int_t)m[i].workers[2], "fill",
                                    cli_real(m[i].fill[0]), cli_real(m[i].fill[1]), cli_real(m[i].fill[2])));
  json_object_set_new(o, "course", course);
  return o;
}
