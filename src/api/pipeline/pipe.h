/* A pipeline: a flow whose items are files and whose stages are a plan and what is around it. Inside of
 * api/pipeline only.
 *
 *   pipeline.c  hone_pipeline_create, submit and the like
 *   stages.c    what the stages do with an item, and how it is told
 *   state.c     what is known of it while it runs, and the controller's thread
 *   control.c   how many workers a stage should have
 *   flow.c      the flow itself
 *   spec.c      M.pipeline.json */
#ifndef HN_API_PIPELINE_PIPE_H
#define HN_API_PIPELINE_PIPE_H

#include "api/pipeline/control.h"
#include "api/pipeline/flow.h"
#include "base/arena.h"
#include "base/str.h"

#include <hone/pipeline.h>
#include <pthread.h>

/* An item. */
typedef struct hn_pipe_slot {
  hn_str name, path;
  const hone_tensor *tensor;
  const void *bytes;
  size_t size;
  void *user;
  hn_arena arena; /* holds what a file became */
  hone_tensor input;
  hone_picture_map picture;
  struct hn_pipe_set *set; /* NULL: it has not been in a run */
  int64_t row;             /* of that run */
  hone_answer answer;
  double seconds[HONE_STAGES];
} hn_pipe_slot;

/* The outputs of a run, as long as one of its items needs them. */
typedef struct hn_pipe_set {
  void **data;              /* [n_out] */
  size_t *room;             /* [n_out] */
  hone_tensor *out;         /* [n_out] */
  const hone_tensor **view; /* [n_out] of them */
  uint32_t users;
} hn_pipe_set;

/* A context with what is around its runs. */
typedef struct hn_pipe_runner {
  struct hone_pipeline *of;
  hone_context *context;
  hone_tensor staged;     /* a batch; no data where a run has one item */
  const hone_tensor **in; /* [plan inputs] */
  hn_pipe_set *set;       /* of the run that goes on */
} hn_pipe_runner;

typedef struct hn_pipe_port {
  uint32_t output; /* of the plan */
  struct hone_pipeline *of;
} hn_pipe_port;

enum { HN_PIPE_MOMENTS = 8192 };

struct hone_pipeline {
  hone_plan *plan;
  hone_preprocess preprocess;
  hone_post post;
  hn_str output; /* post.output */
  hone_pipeline_told told;
  void *arg;
  uint32_t input, batch, n_in;
  const char *member;   /* the input's name */
  hone_tensor_desc one; /* what an item becomes */
  const hone_tensor *const *others;
  uint32_t n_out;     /* outputs of numbers */
  uint32_t *port;     /* [n_out] of the plan */
  const char **names; /* [n_out] */
  uint32_t in_flight, n_runners;
  hn_pipe_slot *slot; /* [in_flight] */
  hn_pipe_set *set;   /* [in_flight] */
  hn_pipe_runner *runner;
  hn_flow_options shape;
  hn_flow *flow;
  pthread_mutex_t lock; /* of all below, and the sets' users */
  pthread_cond_t wake;  /* the controller ends */
  uint64_t made_ns, first_ns, last_ns, h2d_ns, d2h_ns;
  hn_control control;
  hn_flow_stats seen; /* when the controller looked last */
  bool controlled, ending;
  pthread_t controller;
  hone_pipeline_moment *moment;        /* [HN_PIPE_MOMENTS] */
  uint32_t n_moments, stride, skipped; /* one of `stride` is kept */
};

/* stages.c: as hn_flow_work wants them */
void hn_pipe_run(void *pipeline, uint32_t stage, uint32_t worker, hn_flow_item *item, uint32_t n);
void hn_pipe_tell(void *pipeline, uint64_t number, uint32_t slot, hone_status status,
                  const hone_error *error);
/* Memory for an output of the run of `runner` (hone_allocate). */
void *hn_pipe_allocate(void *runner, uint32_t output, const hone_tensor_desc *desc);
/* state.c */
hone_status hn_pipe_control_start(hone_pipeline *p, hone_error *error);
void hn_pipe_control_end(hone_pipeline *p);

#endif
