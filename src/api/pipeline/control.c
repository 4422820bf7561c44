#include "api/pipeline/control.h"

#include <math.h>

static const hone_pid_gains usual = {.kp = 2, .ki = 8, .kd = 0.02, .setpoint = 0.8, .period = 0.1};

/* Part of its workers that a stage may keep busy all the time: beyond it, chance makes the next one wait. */
#define BUSY 0.95

static double clamp(double v, double least, double most) { return v < least ? least : v > most ? most : v; }

double hn_pid_step(hn_pid *p, const hone_pid_gains *g, double error, double seconds, double least,
                   double most) {
  const double slope = p->begun && seconds > 0 ? (error - p->last) / seconds : 0;
  p->last = error;
  p->begun = true;
  p->integral += g->ki * error * seconds;
  const double wanted = g->kp * error + p->integral + g->kd * slope, got = clamp(wanted, least, most);
  p->integral += got - wanted; /* what the limits cut off is not kept: no windup */
  return got;
}

void hn_control_open(hn_control *c, const hone_pid_gains *gains, const uint32_t workers[HONE_STAGES],
                     const uint32_t most[HONE_STAGES], const uint32_t queue[HONE_STAGES]) {
  *c = (hn_control){.gains = *gains};
  if (!(c->gains.kp > 0)) c->gains.kp = usual.kp;
  if (!(c->gains.ki > 0)) c->gains.ki = usual.ki;
  if (!(c->gains.kd > 0)) c->gains.kd = usual.kd;
  if (!(c->gains.setpoint > 0)) c->gains.setpoint = usual.setpoint;
  if (!(c->gains.period > 0)) c->gains.period = usual.period;
  for (int i = 0; i < HONE_STAGES; i++) {
    c->most[i] = most[i] ? most[i] : 1;
    c->room[i] = queue[i] ? queue[i] : 1;
    c->each[i] = 1;
    c->workers[i] = workers[i] ? workers[i] : 1;
    c->fixed[i] = i == HONE_STAGE_INFER || workers[i];
    c->pid[i].integral = c->workers[i];
  }
}

double hn_control_fill(const hn_control *c, const hn_control_sample *s, hone_stage stage) {
  const double kept = stage == HONE_STAGE_PRE ? 0 : s->running[stage - 1] * c->each[stage - 1];
  return clamp(s->waiting[stage] / fmax(c->room[stage] - kept, 1), 0, 1);
}

/* least, most: by the stage's utilisation. */
static void step(hn_control *c, hone_stage stage, const hn_control_sample *s, double error, double least,
                 double most) {
  if (c->fixed[stage]) return;
  most = clamp(most, 1, c->most[stage]);
  least = clamp(least, 1, most);
  const double u = hn_pid_step(&c->pid[stage], &c->gains, error, s->seconds, least, most);
  c->workers[stage] = (uint32_t)clamp(ceil(u - 1e-9), 1, c->most[stage]);
}

void hn_control_step(hn_control *c, const hn_control_sample *s) {
  const double pre = s->running[HONE_STAGE_PRE], post = s->running[HONE_STAGE_POST];
  const double ahead = hn_control_fill(c, s, HONE_STAGE_INFER),
               behind = hn_control_fill(c, s, HONE_STAGE_POST);
  /* With the queue well filled, pre does what infer takes: so many workers are needed for it. With nothing to
   * read, more workers would only look for work together. */
  step(c, HONE_STAGE_PRE, s, c->gains.setpoint - ahead,
       ahead > c->gains.setpoint / 2 ? ceil(pre / BUSY - 1e-9) : 1,
       s->waiting[HONE_STAGE_PRE] < 0.5 ? ceil(pre) + 1 : c->most[HONE_STAGE_PRE]);
  step(c, HONE_STAGE_POST, s, behind - (1 - c->gains.setpoint), ceil(post / BUSY - 1e-9),
       c->most[HONE_STAGE_POST]);
}
