/* How many workers a stage should have, from samples of its queues: a PID controller. No clock, no thread. */
#ifndef HN_API_PIPELINE_CONTROL_H
#define HN_API_PIPELINE_CONTROL_H

#include <hone/pipeline.h>

typedef struct hn_pid {
  double integral, last; /* last: error of the step before */
  bool begun;
} hn_pid;

/* One step of the given length: the control value between least and most. */
double hn_pid_step(hn_pid *pid, const hone_pid_gains *gains, double error, double seconds, double least,
                   double most);

/* What was seen since the step before: means over that time. */
typedef struct hn_control_sample {
  double seconds;
  double waiting[HONE_STAGES]; /* items before the stage */
  double running[HONE_STAGES]; /* workers at work */
} hn_control_sample;

typedef struct hn_control {
  hone_pid_gains gains; /* all set */
  uint32_t most[HONE_STAGES];
  double room[HONE_STAGES];      /* of the queue before the stage, 1 or more */
  uint32_t workers[HONE_STAGES]; /* the answer; infer's is never changed */
  double each[HONE_STAGES];      /* items that a worker has at once */
  bool fixed[HONE_STAGES];
  hn_pid pid[HONE_STAGES];
} hn_control;

/* Gains that are 0 get their defaults. workers: at the beginning; 0: one, set by the controller. */
void hn_control_open(hn_control *control, const hone_pid_gains *gains, const uint32_t workers[HONE_STAGES],
                     const uint32_t most[HONE_STAGES], const uint32_t queue[HONE_STAGES]);
/* How full the queue before a stage was, 0 to 1: what the stage before has in hand has its room there. */
double hn_control_fill(const hn_control *control, const hn_control_sample *sample, hone_stage stage);
void hn_control_step(hn_control *control, const hn_control_sample *sample);

#endif
