/* hone pipeline: files through decoding, a model and post-processing, all at the same time. */
#include "cli/options/arriving.h"
#include "cli/options/ends.h"
#include "cli/options/files.h"
#include "cli/options/items.h"
#include "cli/options/labelled.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/options/session.h"
#include "cli/reports/pipeline.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVE_MS = 200, MOMENTS = 2000 };

/* Where results go, and what happened there. Only the callback has it while the pipeline runs. */
typedef struct sink {
  const cli_args *args;
  hone_pipeline *pipeline;
  const hone_post *post;
  bool folder, standard, live;
  cli_file file;
  json_t *taken; /* names of files in the folder */
  size_t made;   /* of the folder */
  hone_status status;
  hone_error error;
  double shown_ms;
} sink;

/* ---------------------------------------------------------------- results */

static const char *output_of(const cli_args *args) { return args->output ? args->output : "-"; }

static hone_status no_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for results"};
  return HONE_ERROR_MEMORY;
}

static hone_status open_sink(sink *s, hone_error *error) {
  const char *path = output_of(s->args);
  struct stat st;
  const size_t n = strlen(path);
  s->standard = strcmp(path, "-") == 0;
  s->folder = !s->standard && ((n && path[n - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
  s->live = isatty(STDERR_FILENO) && !(s->standard && isatty(STDOUT_FILENO));
  if (s->standard) return HONE_OK;
  if (!s->folder) {
    const hone_status status = cli_output_ready(path, error);
    return status == HONE_OK ? cli_file_open(&s->file, path, error) : status;
  }
  s->taken = json_object();
  return s->taken ? cli_make_folder(path, &s->made, error) : no_memory(error);
}

static hone_status write_line(sink *s, json_t *doc, hone_error *error) {
  FILE *to = s->standard ? stdout : s->file.stream;
  if (cli_json_line(to, doc)) return HONE_OK;
  if (s->file.failed.status) {
    *error = s->file.failed;
    return error->status;
  }
  return cli_print_failed(error);
}

/* NAME.json, and the outputs beside it where nothing was made of them. */
static hone_status write_files(sink *s, const hone_pipeline_result *r, json_t *doc, hone_error *error) {
  const char *slash = strrchr(r->name, '/');
  char stem[320], path[4096 + 340];
  cli_array_name(slash ? slash + 1 : r->name, s->taken, stem, sizeof stem);
  stem[strlen(stem) - 4] = 0; /* .npy */
  snprintf(path, sizeof path, "%.4000s/%s.json", output_of(s->args), stem);
  hone_status status = HONE_OK;
  if (r->status == HONE_OK && r->answer->kind == HONE_POST_NONE)
    status = cli_pipeline_arrays(r, output_of(s->args), stem, doc, error);
  if (status == HONE_OK && r->status == HONE_OK && r->answer->kind == HONE_POST_ARGMAX) {
    char map[4096 + 340];
    snprintf(map, sizeof map, "%.4000s/%s.map.npy", output_of(s->args), stem);
    status = hone_data_save_npy(&r->answer->map, map, error);
  }
  if (status == HONE_OK) return cli_file_json(path, doc, error);
  json_decref(doc);
  return status;
}

static void show(sink *s) {
  hone_pipeline_state state;
  char line[400];
  const double now = cli_now_ms();
  const size_t columns = (size_t)cli_columns();
  if (!s->live || now - s->shown_ms < LIVE_MS) return;
  s->shown_ms = now;
  if (hone_pipeline_state_get(s->pipeline, &state, NULL) != HONE_OK) return;
  cli_pipeline_live(&state, line, sizeof line);
  if (columns < sizeof line) line[columns - 1] = 0;
  cli_progress_line(line);
}

static void told(void *arg, const hone_pipeline_result *r) {
  sink *s = arg;
  if (cli_interrupted()) hone_pipeline_close(s->pipeline); /* what is in flight comes to its end */
  if (s->status != HONE_OK) return;
  json_t *doc = cli_pipeline_item(r, s->post);
  if (r->status == HONE_OK && r->answer->kind == HONE_POST_NONE && !s->folder)
    cli_pipeline_arrays(r, NULL, NULL, doc, NULL);
  s->status = s->folder ? write_files(s, r, doc, &s->error) : write_line(s, doc, &s->error);
  if (s->status != HONE_OK) hone_pipeline_cancel(s->pipeline); /* nobody would hear of the rest */
  show(s);
}

static hone_status close_sink(sink *s, hone_status status, hone_error *error) {
  json_decref(s->taken);
  if (s->file.stream && status == HONE_OK) status = cli_file_commit(&s->file, error);
  cli_file_abort(&s->file);
  if (s->folder && status != HONE_OK) cli_drop_folder(output_of(s->args), s->made);
  return status;
}

/* ---------------------------------------------------------------- running */

typedef struct work {
  cli_args own; /* with the description for those who load the model */
  const cli_args *args;
  cli_session session;
  hone_pipeline_spec spec;
  hone_preprocess pictures; /* what is left of the description's where the model does a part */
  char used[4096];          /* the file of the description, or "" */
  cli_items items;
  sink sink;
  hone_pipeline *pipeline;
  hone_pipeline_state state;
  hone_pipeline_moment moment[MOMENTS];
  uint32_t n_moments;
} work;

static bool on_processor(const work *w) {
  return strcmp(hone_engine_machine(w->session.engine)->device, "cpu") == 0;
}

static hone_status open_pipeline(work *w, hone_error *error) {
  const cli_args *args = w->args;
  hone_pipeline_options o = {.preprocess = &w->pictures,
                             .post = &w->spec.post,
                             .others = w->session.feeds,
                             .in_flight =
                                 (uint32_t)(args->in_flight < INT32_MAX ? args->in_flight : INT32_MAX)};
  hone_status status = cli_ends_workers(args, o.workers, error);
  if (status == HONE_OK) status = cli_session_open_input(&w->session, args, "items", &o.input, error);
  if (status != HONE_OK) return status;
  /* On a device two runs overlap their copies; on the processor each has its part of the threads. */
  o.workers[HONE_STAGE_INFER] = args->streams     ? (uint32_t)(args->streams < 65 ? args->streams : 65)
                                : on_processor(w) ? 1
                                                  : 2;
  if (on_processor(w) && o.workers[HONE_STAGE_INFER] > 1) {
    const uint32_t threads = cli_threads(&w->session, args) / o.workers[HONE_STAGE_INFER];
    o.threads = threads ? threads : 1;
  }
  status = hone_pipeline_create(w->session.plan, &o, told, &w->sink, &w->pipeline, error);
  w->sink.pipeline = w->pipeline;
  return status;
}

static hone_status feed(work *w, hone_error *error) {
  hone_status status = HONE_OK;
  const char *path;
  while (status == HONE_OK && !cli_interrupted() && (path = cli_items_next(&w->items)))
    status = hone_pipeline_submit(w->pipeline, &(hone_pipeline_item){.path = path}, error);
  hone_pipeline_drain(w->pipeline);
  cli_progress_end();
  if (w->sink.status != HONE_OK) {
    *error = w->sink.error;
    return w->sink.status;
  }
  if (status == HONE_ERROR_CANCELLED) status = HONE_OK; /* Ctrl-C: what was told counts */
  if (status == HONE_OK) status = hone_pipeline_state_get(w->pipeline, &w->state, error);
  if (status == HONE_OK)
    status = hone_pipeline_moments(w->pipeline, w->moment, MOMENTS, &w->n_moments, error);
  return status;
}

static hone_status run_all(work *w, const char *model, hone_error *error) {
  const cli_args *args = w->args;
  hone_status status = cli_keep_inputs(args, args->output, error);
  if (status == HONE_OK) status = cli_output_ready(args->html, error);
  if (status == HONE_OK) status = cli_ends(args, model, &w->spec, w->used, sizeof w->used, error);
  w->pictures = w->spec.preprocess;
  w->own.arriving = &w->spec.preprocess;
  cli_preprocess_arriving(args, &w->pictures);
  if (status == HONE_OK) status = cli_items_open(&w->items, args->source, error);
  if (status == HONE_OK) status = cli_session_open(&w->session, args, model, error);
  cli_cancellable(NULL);
  cli_hold(true);
  w->sink.args = args;
  w->sink.post = &w->spec.post;
  if (status == HONE_OK) status = open_sink(&w->sink, error);
  if (status == HONE_OK) status = open_pipeline(w, error);
  if (status == HONE_OK) status = feed(w, error);
  status = close_sink(&w->sink, status, error);
  cli_hold(false);
  return status;
}

/* ---------------------------------------------------------------- the answer */

static int summary(work *w, const char *model) {
  const cli_args *args = w->args;
  char title[600];
  hone_error error = {0};
  snprintf(title, sizeof title, "%.300s on %.40s, %u thread%s, batch %u", model, cli_device_name(args),
           cli_threads(&w->session, args), cli_s(cli_threads(&w->session, args)), w->state.batch);
  if (args->html &&
      cli_pipeline_page(args->html, title, &w->state, w->moment, w->n_moments, &error) != HONE_OK)
    return cli_report(&error);
  if (!args->json) {
    FILE *to = w->sink.standard ? stderr : stdout;
    cli_print_to(to, "%s\n", title);
    cli_pipeline_text(to, &w->state);
    return cli_flush();
  }
  json_t *doc = json_pack("{s:o}", "pipeline", cli_pipeline_json(&w->state, w->moment, w->n_moments));
  if (!doc) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  json_object_set_new(doc, "description", *w->used ? cli_text(w->used) : json_null());
  json_object_set_new(doc, "preprocess", cli_preprocess_json(&w->spec.preprocess));
  json_object_set_new(doc, "post", json_string(hone_post_kind_name(w->spec.post.kind)));
  json_object_set_new(doc, "threads", json_integer(cli_threads(&w->session, args)));
  json_object_set_new(doc, "interrupted", json_boolean(cli_interrupted()));
  cli_stamp(doc, args, model);
  return cli_print_json(doc);
}

static int answer(work *w, const char *model, hone_status status, const hone_error *error) {
  if (status != HONE_OK) return cli_report(error);
  const int code = summary(w, model);
  char kept[80];
  if (code != 0) return code;
  if (cli_interrupted()) {
    snprintf(kept, sizeof kept, "%llu item%s finished", (unsigned long long)w->state.told,
             w->state.told == 1 ? " was" : "s were");
    return cli_end_interrupted(kept);
  }
  return w->state.failed && !w->state.good ? hone_status_exit_code(HONE_ERROR_INPUT) : 0;
}

static int run(const cli_args *args) {
  hone_error error = {0};
  if (!args->source)
    return cli_error(HONE_ERROR_USAGE,
                     "hone pipeline: --input wants a folder, a list of files, or - for one on "
                     "standard input");
  if (args->json && strcmp(output_of(args), "-") == 0)
    return cli_error(HONE_ERROR_USAGE, "--json prints the summary, so --output must be a file or a folder");
  work *w = calloc(1, sizeof *w);
  if (!w) return cli_error(HONE_ERROR_MEMORY, "out of memory");
  w->own = *args;
  w->args = &w->own;
  const hone_status status = run_all(w, args->rest.item[0], &error);
  const int code = answer(w, args->rest.item[0], status, &error);
  hone_pipeline_destroy(w->pipeline);
  cli_items_close(&w->items);
  cli_session_close(&w->session);
  hone_pipeline_spec_free(&w->spec);
  free(w);
  return code;
}

static const cli_option options[] = {
    {'i', "input", CLI_TEXT, CLI_FIELD(source), "DIR|LIST|FILE|-",
     "pictures and arrays of a folder, of a list (one path a line; -: on standard input), or one"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE|DIR|-",
     "results: a JSON line each into FILE, or a file each into DIR/ (-: standard output)"},
    {0, "post", CLI_TEXT, CLI_FIELD(post), "CHAIN",
     "[softmax,|sigmoid,]top-k or threshold; argmax, ctc, boxes, none (top-k where there are classes)"},
    {0, "top", CLI_SOME, CLI_FIELD(top), "K", "so many classes (5)"},
    {0, "labels", CLI_TEXT, CLI_FIELD(labels), "FILE", "names of classes, or ctc's characters, one a line"},
    {0, "boxes", CLI_TEXT, CLI_FIELD(boxes), "FORM",
     "of a detector's outputs: xyxy-score-class, lists, nms, boxes-scores, yolov3, yolov8, nanodet (by their "
     "shapes)"},
    {0, "box-order", CLI_TEXT, CLI_FIELD(box_order), "xyxy|yxyx|cxcywh", "a box's numbers (of the form)"},
    {0, "relative", CLI_FLAG, CLI_FIELD(relative), NULL,
     "boxes are parts of the input's width and height (pixels)"},
    {0, "background", CLI_FLAG, CLI_FIELD(background), NULL,
     "boxes-scores: the first class is the background"},
    {0, "min-score", CLI_NUMBER, CLI_FIELD(min_score), "X", "of boxes (0.25), of classes by threshold (0.5)"},
    {0, "nms-iou", CLI_NUMBER, CLI_FIELD(nms_iou), "X",
     "overlap from which on the poorer box of a class is dropped, where the model does not do it (0.45)"},
    {0, "pipeline", CLI_TEXT, CLI_FIELD(pipeline), "FILE",
     "what happens before and behind the model (M.pipeline.json beside M.onnx); options count more"},
    {0, "workers", CLI_TEXT, CLI_FIELD(workers), "auto|pre=N,post=N",
     "threads that decode and that make results; auto: a controller sets them (auto)"},
    {0, "streams", CLI_SOME, CLI_FIELD(streams), "N", "runs at the same time (1; on a device 2)"},
    {0, "in-flight", CLI_SOME, CLI_FIELD(in_flight), "N", "items under way at most (by workers and queues)"},
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "a page: workers, queues and rate over the time"},
    {0, "other", CLI_LIST, CLI_FIELD(inputs), "NAME=FILE", "an input that the items do not fill"},
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    CLI_OPT_RUN,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_pipeline = {
    "pipeline",
    "MODEL --input DIR|LIST|-",
    "run a model on many files, its stages at the same time",
    "Files are decoded, run and made classes, boxes or texts of at the same time, by workers with bounded "
    "queues between them. Each item is a JSON line, in the order of the files; one that cannot be read is a "
    "line with its error, and the rest goes on. A batch (-b) is filled with items. Ctrl-C takes no more "
    "files, finishes what is under way and ends with 130. Exit code 3: no item could be read.",
    options,
    1,
    1,
    run};
