/* A record that can be edited: the spans, steps and walls of a real profile, with time taken or inserted at
 * any place as if the run had gone that way. */
#ifndef TESTS_ADVICE_LAB_H
#define TESTS_ADVICE_LAB_H

#include <hone/insight.h>

#include <stdint.h>

typedef struct lab {
  hone_facts *source; /* texts belong to it */
  hone_facts_meta meta;
  hone_step_fact *steps;
  hone_span *spans;
  hone_wall *walls;
  size_t step_count, span_count, wall_count;
  hone_counter counters[8];
  int counter_count;
  bool no_roofs;
  uint64_t random;
} lab;

/* Where time is inserted. */
typedef enum lab_place { LAB_BEFORE_RUN, LAB_INSIDE, LAB_AFTER_RUN } lab_place;

void lab_open(lab *l, hone_facts *source, uint64_t seed); /* takes source */
void lab_free(lab *l);
/* An even number in [low, high), a random real in [low, high). */
size_t lab_pick(lab *l, size_t low, size_t high);
double lab_real(lab *l, double low, double high);
/* Mean wall, and mean time of a step, in milliseconds. */
double lab_wall_ms(const lab *l);
double lab_step_ms(const lab *l, size_t step);
/* The steps that do work (no reformats), and a random one of at least `share` of the wall (else the longest).
 */
size_t lab_any_step(lab *l, double share);
/* A new step; it has no span until lab_insert gives it one. */
int32_t lab_new_step(lab *l, hone_step_fact step);
/* In every iteration `ms` more: after step `after` (LAB_INSIDE), or around the run. kind HONE_SPAN_COUNT: a
 * gap. The span's other members come from `like`. */
void lab_insert(lab *l, lab_place place, int32_t after, double ms, hone_span_kind kind, hone_span like);
/* A step takes `factor` times as long, in every `every`-th iteration. */
void lab_stretch(lab *l, int32_t step, double factor, int every);
void lab_counter(lab *l, const char *name, double value);
/* The facts as edited; NULL when they are wrong. */
hone_facts *lab_facts(const lab *l, hone_error *error);

#endif
