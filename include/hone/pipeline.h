/* Items through a model: files or tensors are made inputs, the model runs, results are made of its outputs,
 * all at the same time. What is in flight and what waits between the stages is bounded, results are told in
 * the order of submission, and a broken item is its own error and no other's.
 *
 *   pre    reads and decodes a file and fits it to the input       several workers
 *   infer  runs the plan, as many items at once as its batch has   a context each
 *   post   makes classes, texts or boxes of the outputs            several workers */
#ifndef HONE_PIPELINE_H
#define HONE_PIPELINE_H

#include <hone/post.h>
#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_pipeline hone_pipeline;

typedef enum hone_stage { HONE_STAGE_PRE = 0, HONE_STAGE_INFER, HONE_STAGE_POST, HONE_STAGES } hone_stage;
HONE_API const char *hone_stage_name(hone_stage stage); /* "pre", "infer", "post"; "": unknown */

/* ---- a description of both ends in a file: M.pipeline.json beside M.onnx
 *
 *   {"pre":  {"resize": 256, "crop": 224, "scale": "1/255", "mean": [0.485, 0.456, 0.406],
 *             "std": [0.229, 0.224, 0.225], "bgr": false, "letterbox": false, "pad": 114, "layout": "nchw"},
 *    "post": [{"op": "softmax"}, {"op": "top-k", "k": 5, "labels": "labels.txt"}]}
 *
 * Both parts, and all members of "pre", may be left out. Sizes are N or [HEIGHT, WIDTH]. "post" is a chain:
 * softmax or sigmoid may come first, then one of top-k (k), threshold (least, k), argmax (axis), ctc (blank,
 * time_major), boxes (form, order, relative, background, min_score, iou) or none; each takes "output" and
 * "labels", a file whose path is relative to that of the description, or a list of names. Unknown members are
 * errors: a misspelt one would be ignored otherwise. */
typedef struct hone_pipeline_spec {
  hone_preprocess preprocess;
  hone_post post;
  void *impl; /* owns what they point to */
} hone_pipeline_spec;

/* HONE_ERROR_INPUT names the file, and line and column where the JSON is wrong. Free with
 * hone_pipeline_spec_free. */
HONE_API hone_status hone_pipeline_spec_read(const char *path, hone_pipeline_spec *out, hone_error *error);
/* The same from a text; `path` is what errors call it, and labels are looked for beside it. */
HONE_API hone_status hone_pipeline_spec_parse(const char *text, size_t length, const char *path,
                                              hone_pipeline_spec *out, hone_error *error);
/* Replaces the labels of spec->post by the lines of a file. */
HONE_API hone_status hone_pipeline_spec_labels(hone_pipeline_spec *spec, const char *path, hone_error *error);
HONE_API void hone_pipeline_spec_free(hone_pipeline_spec *spec);

/* ---- the sizes of the stages
 *
 * A PID controller sets how many workers pre and post have, `period` seconds after `period` seconds: u = kp *
 * e + ki * integral of e + kd * de/dt, rounded up to whole workers. For pre, e is the set-point less the mean
 * fill (0 to 1) of the queue before infer: an empty one means that infer starves. For post, e is the mean
 * fill of the queue before it less what the set-point leaves free: a full one means that infer is held up.
 * What u may be ends where the stage's utilisation says that more would be idle or fewer would not do, and
 * the integral is taken back by what the limit cut off, so that it never winds up. Each gain 0: the default.
 */
typedef struct hone_pid_gains {
  double kp;       /* workers a full queue; 2 */
  double ki;       /* workers a full queue and second; 8 */
  double kd;       /* workers a full queue a second; 0.02 */
  double setpoint; /* fill of the queue before infer; 0.8 */
  double period;   /* seconds; 0.1 */
} hone_pid_gains;

typedef struct hone_pipeline_options {
  const hone_preprocess *preprocess;  /* NULL: as zeroed */
  const hone_post *post;              /* NULL: as zeroed. Copied; its labels are borrowed */
  uint32_t input;                     /* of the plan, that takes the items */
  const hone_tensor *const *others;   /* [plan inputs] what all others are given; NULL where there is one */
  uint32_t workers[HONE_STAGES];      /* pre, post: 0: set by the controller; infer (contexts): 0: 1 */
  uint32_t most_workers[HONE_STAGES]; /* that the controller may use; 0: one a processor */
  uint32_t in_flight; /* items submitted and not yet told; 0: enough for all workers and their queues */
  uint32_t threads;   /* of a context; 0: the engine's, shared; see hone_context_set_threads */
  hone_pid_gains gains;
} hone_pipeline_options;

/* One item: the first of these that is not NULL. */
typedef struct hone_pipeline_item {
  const char *name;          /* for results and errors; NULL: the path. Copied */
  const hone_tensor *tensor; /* as the input takes one sample; borrowed until the item was told */
  const void *bytes;         /* a file's; borrowed until the item was told */
  size_t size;
  const char *path; /* a file; copied */
  void *user;
} hone_pipeline_item;

typedef struct hone_pipeline_result {
  uint64_t number; /* of the item, from 0 in the order of submission */
  const char *name;
  void *user;
  hone_status status;      /* HONE_ERROR_CANCELLED: it was not done */
  const hone_error *error; /* not HONE_OK: why; where names the file */
  /* HONE_OK: */
  const hone_answer *answer;
  hone_picture_map picture;      /* width 0: it was an array */
  const hone_tensor *const *out; /* [n_out] the outputs of the run that it was in; NULL: no numbers */
  const char *const *names;      /* [n_out] */
  uint32_t n_out;
  int64_t rows, row; /* samples of that run, and which of them this one is */
  double seconds[HONE_STAGES];
} hone_pipeline_result;

/* Every item that was submitted, once and in order, one call at a time, on a thread of the pipeline. The
 * result is borrowed during the call. It may cancel or close the pipeline and ask for its state, and do
 * nothing else with it. While it runs nothing else is told, but the stages go on. */
typedef void (*hone_pipeline_told)(void *arg, const hone_pipeline_result *result);

/* Threads and contexts are made here. The plan is borrowed until the pipeline is destroyed. A plan whose
 * input has N > 1 rows takes N items a run; the last ones run with rows that are not asked for. */
HONE_API hone_status hone_pipeline_create(hone_plan *plan, const hone_pipeline_options *options,
                                          hone_pipeline_told told, void *arg, hone_pipeline **out,
                                          hone_error *error);
/* Waits until fewer than in_flight items are under way, and takes one more. One thread submits. What is wrong
 * with the item itself is told like any result. HONE_ERROR_CANCELLED after hone_pipeline_close or _cancel:
 * the item was not taken. */
HONE_API hone_status hone_pipeline_submit(hone_pipeline *pipeline, const hone_pipeline_item *item,
                                          hone_error *error);
/* From any thread: takes no more items (a submit that waits comes back); those that it has are finished. */
HONE_API void hone_pipeline_close(hone_pipeline *pipeline);
/* From any thread: the same, and the items that it has are told as HONE_ERROR_CANCELLED as soon as what is
 * done with them just now has ended; runs end at their next step. */
HONE_API void hone_pipeline_cancel(hone_pipeline *pipeline);
/* Until everything that was submitted is told. Not in the callback. */
HONE_API void hone_pipeline_drain(hone_pipeline *pipeline);
HONE_API void hone_pipeline_destroy(hone_pipeline *pipeline); /* drains */

typedef struct hone_stage_state {
  uint64_t items, runs;                    /* that left it, in how many runs */
  double busy_seconds;                     /* of its workers, all together */
  double item_seconds;                     /* mean of an item in it, waiting not included */
  double workers_mean;                     /* that it had, over the time */
  uint32_t workers, most_workers, running; /* now: it has, may have, and are at work */
  uint32_t waiting, queue, most_waiting;   /* now, room for (pre: all that is in flight), and most ever */
} hone_stage_state;

/* A moment of the controller. */
typedef struct hone_pipeline_moment {
  double seconds; /* since the pipeline was made */
  double rate;    /* items a second since the moment before */
  uint32_t workers[HONE_STAGES];
  double fill[HONE_STAGES]; /* of the queue before, 0 to 1; pre: of in_flight */
} hone_pipeline_moment;

/* Where the time of an item goes: mean seconds, all from the same stamps. Submission to told = pre + h2d +
 * infer + d2h + post + idle; residual is what a clock around it saw beyond. */
typedef struct hone_pipeline_split {
  double pre, h2d, infer, d2h, post;
  double idle; /* in queues, and done but not yet told because of the order */
  double total, residual;
} hone_pipeline_split;

typedef struct hone_pipeline_state {
  uint64_t submitted, told, good, failed, cancelled;
  double seconds;   /* from the first submission to the last that was told */
  double rate;      /* told a second in these */
  double ceiling;   /* a second: 1 / max(T_stage), each with the workers that it had; 0: not known yet */
  hone_stage limit; /* that stage */
  uint32_t in_flight, most_in_flight, batch;
  hone_stage_state stage[HONE_STAGES];
  hone_pipeline_split split;
} hone_pipeline_state;

/* From any thread, at any time. */
HONE_API hone_status hone_pipeline_state_get(hone_pipeline *pipeline, hone_pipeline_state *out,
                                             hone_error *error);
/* Up to `room` of the controller's moments, evenly spread over the whole time; *n are written. */
HONE_API hone_status hone_pipeline_moments(hone_pipeline *pipeline, hone_pipeline_moment *out, uint32_t room,
                                           uint32_t *n, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
