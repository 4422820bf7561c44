/* hone eval's answer: a table for people, a document for programs. */
#include "cli/reports/eval.h"
#include "cli/options/preprocess.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *class_name(const hone_eval_class *c, uint32_t i, char buf[16]) {
  if (*c->name) return c->name;
  snprintf(buf, 16, "%u", i);
  return buf;
}

/* ---- JSON */

static json_t *class_json(const hone_eval_result *r, uint32_t i) {
  const hone_eval_class *c = &r->classes[i];
  char buf[16], other[16];
  json_t *o = json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "class", (json_int_t)i, "name",
                        cli_text(class_name(c, i, buf)), "samples", (json_int_t)c->samples, "predicted",
                        (json_int_t)c->predicted, "right", (json_int_t)c->right, "precision",
                        cli_real(c->precision), "recall", cli_real(c->recall), "f1", cli_real(c->f1));
  if (r->truth == HONE_TRUTH_BOXES) {
    json_object_set_new(o, "ap", cli_real(c->ap));
    json_object_set_new(o, "ap50", cli_real(c->ap50));
    json_object_set_new(o, "ap50_voc", cli_real(c->ap50_voc));
    return o;
  }
  const bool known = c->taken_for < r->n_classes;
  json_object_set_new(
      o, "taken_for",
      c->mistakes
          ? json_pack("{s:I, s:o, s:I}", "class", (json_int_t)c->taken_for, "name",
                      cli_text(known ? class_name(&r->classes[c->taken_for], c->taken_for, other) : ""),
                      "samples", (json_int_t)c->mistakes)
          : json_null());
  return o;
}

static json_t *result_json(const cli_evaluation *e) {
  const hone_eval_result *r = &e->result;
  json_t *classes = json_array();
  for (uint32_t i = 0; i < r->n_classes; i++)
    if (r->classes[i].samples || r->classes[i].predicted) json_array_append_new(classes, class_json(r, i));
  json_t *o =
      json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:o}", "model", cli_text(e->path), "precision",
                e->precision, "input", e->input, "batch", (json_int_t)e->batch, "samples",
                (json_int_t)r->samples, "samples_wanted", (json_int_t)r->wanted, "left_out",
                (json_int_t)r->left_out, "stopped", r->stopped, "seconds", cli_real(r->seconds));
  const bool boxes = r->truth == HONE_TRUTH_BOXES;
  json_object_set_new(o, "task", json_string(boxes ? "boxes" : "classes"));
  if (boxes) {
    json_object_set_new(o, "map", cli_real(r->map));
    json_object_set_new(o, "map50", cli_real(r->map50));
    json_object_set_new(o, "map75", cli_real(r->map75));
    json_object_set_new(o, "map50_voc", cli_real(r->map50_voc));
    json_object_set_new(o, "confidence", cli_real(r->confidence));
    json_object_set_new(o, "truths", json_integer((json_int_t)r->truths));
    json_object_set_new(o, "detections", json_integer((json_int_t)r->detections));
  }
  json_object_set_new(o, "right", boxes ? json_null() : json_integer((json_int_t)r->right));
  json_object_set_new(o, "top1", cli_real(r->top1));
  json_object_set_new(o, "top1_interval",
                      boxes ? json_null()
                            : json_pack("[o,o]", cli_real(r->top1_low), cli_real(r->top1_high)));
  json_object_set_new(o, "top5", cli_real(r->top5));
  json_object_set_new(o, "f1_macro", cli_real(r->f1_macro));
  json_object_set_new(o, "f1_micro", cli_real(r->f1_micro));
  json_object_set_new(o, "classes", classes);
  return o;
}

static json_t *change_json(const hone_eval_change *c) {
  if (!c) return json_null();
  return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:b}", "samples", (json_int_t)c->samples,
                   "only_first", (json_int_t)c->only_a, "only_second", (json_int_t)c->only_b, "top1_first",
                   cli_real(c->top1_a), "top1_second", cli_real(c->top1_b), "change",
                   cli_real(c->top1_b - c->top1_a), "p", cli_real(c->p), "real", c->real);
}

json_t *cli_eval_json(const cli_eval_report *r) {
  json_t *doc = result_json(&r->pair[0]), *paths = json_array();
  for (size_t i = 0; i < r->args->data.n; i++) json_array_append_new(paths, cli_text(r->args->data.item[i]));
  json_object_set_new(
      doc, "data",
      json_pack("{s:o, s:s, s:I, s:I, s:I}", "paths", paths, "kind", hone_dataset_kind(r->set), "samples",
                (json_int_t)hone_dataset_samples(r->set), "classes", (json_int_t)hone_dataset_classes(r->set),
                "problems", (json_int_t)r->problems));
  json_object_set_new(doc, "preprocess", cli_preprocess_json(r->preprocess));
  json_object_set_new(doc, "device", cli_text(cli_device_name(r->args)));
  json_object_set_new(doc, "level", json_integer(r->args->level < 0 ? 2 : r->args->level));
  json_object_set_new(doc, "version", cli_text(hone_version()));
  json_object_set_new(doc, "compared_with", r->pair[1].path ? result_json(&r->pair[1]) : json_null());
  json_object_set_new(doc, "change", change_json(r->change));
  return doc;
}

/* ---- text */

static void percent(const char *what, double share) {
  if (isfinite(share)) cli_print("%-10s %6.2f %%", what, 100 * share);
}

static void of_classes(const hone_eval_result *r) {
  percent("Top-1", r->top1);
  cli_print("   (%llu of %llu; 95 %% interval %.2f to %.2f %%)\n", (unsigned long long)r->right,
            (unsigned long long)r->samples, 100 * r->top1_low, 100 * r->top1_high);
  percent("Top-5", r->top5);
  if (isfinite(r->top5)) cli_print("\n");
  cli_print("%-10s %.4f macro, %.4f micro\n", "F1", r->f1_macro, r->f1_micro);
}

static void of_boxes(const hone_eval_result *r) {
  cli_print("mAP        %.4f at IoU 0.50 to 0.95, %.4f at 0.50, %.4f at 0.75  (VOC's area at 0.50: %.4f)\n",
            r->map, r->map50, r->map75, r->map50_voc);
  cli_print("%-10s %.4f macro, %.4f micro, at IoU 0.50 with scores from %.4g on\n", "F1", r->f1_macro,
            r->f1_micro, r->confidence);
  cli_print("boxes      %llu to be found, %llu found\n", (unsigned long long)r->truths,
            (unsigned long long)r->detections);
}

static void summary(const cli_evaluation *e) {
  const hone_eval_result *r = &e->result;
  cli_print("\nmodel      %s, %s, %s\n", e->path, e->input, e->precision);
  if (r->truth == HONE_TRUTH_BOXES)
    of_boxes(r);
  else
    of_classes(r);
  if (r->left_out)
    cli_print("%-10s %llu of %llu samples could not be read\n", "left out", (unsigned long long)r->left_out,
              (unsigned long long)r->wanted);
  cli_print("%-10s %.1f s, %.1f samples a second with reading them\n", "time", r->seconds,
            r->seconds > 0 ? (double)r->samples / r->seconds : 0);
}

typedef struct rank {
  double key;
  uint32_t i;
} rank;

static int by_key(const void *a, const void *b) {
  const rank *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->i < y->i ? -1 : x->i > y->i;
}

static void box_row(const hone_eval_result *r, uint32_t i) {
  const hone_eval_class *c = &r->classes[i];
  char buf[16];
  cli_print("%-24.24s %8llu %10.4f %10.4f %8.2f %% %8.2f %% %8.4f\n", class_name(c, i, buf),
            (unsigned long long)c->samples, c->ap, c->ap50, 100 * c->recall,
            isfinite(c->precision) ? 100 * c->precision : 0, c->f1);
}

static void row(const hone_eval_result *r, uint32_t i) {
  const hone_eval_class *c = &r->classes[i];
  char buf[16], other[16];
  cli_print("%-24.24s %8llu %8.2f %% ", class_name(c, i, buf), (unsigned long long)c->samples,
            100 * c->recall);
  if (isfinite(c->precision))
    cli_print("%8.2f %%", 100 * c->precision);
  else
    cli_print("%10s", "-");
  cli_print(" %8.4f", c->f1);
  if (c->mistakes && c->taken_for < r->n_classes)
    cli_print("  %s (%llu)", class_name(&r->classes[c->taken_for], c->taken_for, other),
              (unsigned long long)c->mistakes);
  cli_print("\n");
}

/* The classes of which least is found. */
static void worst(const hone_eval_result *r, int64_t most) {
  rank *order = calloc(r->n_classes + 1, sizeof *order);
  uint32_t n = 0;
  const bool boxes = r->truth == HONE_TRUTH_BOXES;
  for (uint32_t i = 0; order && i < r->n_classes; i++)
    if (r->classes[i].samples) order[n++] = (rank){boxes ? r->classes[i].ap : r->classes[i].recall, i};
  if (n) qsort(order, n, sizeof *order, by_key);
  if (n > 1) {
    cli_print("\n%-24s %8s ", n > most ? "worst classes" : "classes", boxes ? "boxes" : "samples");
    if (boxes)
      cli_print("%10s %10s %10s %10s %8s\n", "AP", "AP50", "recall", "precision", "F1");
    else
      cli_print("%10s %10s %8s  %s\n", "recall", "precision", "F1", "most often taken for");
    for (uint32_t i = 0; i < n && i < most; i++) (boxes ? box_row : row)(r, order[i].i);
    if (n > most) cli_print("... and %lld classes more (-n N)\n", (long long)n - (long long)most);
  }
  free(order);
}

static void changed(const hone_eval_change *c) {
  const double by = 100 * (c->top1_b - c->top1_a);
  cli_print("\n%-10s %+.2f points of Top-1: ", "change", by);
  if (c->real) cli_color(stdout, by < 0 ? CLI_RED : CLI_GREEN);
  cli_print("%s", !c->only_a && !c->only_b ? "none"
                  : !c->real               ? "noise"
                  : by < 0                 ? "a real loss"
                                           : "a real gain");
  cli_color(stdout, CLI_PLAIN);
  cli_print("  (right in the first alone %llu, in the second alone %llu, of %llu; McNemar p = %.3g)\n",
            (unsigned long long)c->only_a, (unsigned long long)c->only_b, (unsigned long long)c->samples,
            c->p);
}

int cli_eval_text(const cli_eval_report *r) {
  char words[300];
  cli_preprocess_say(r->preprocess, words, sizeof words);
  cli_print("data       %s, %llu sample%s, %u class%s\n", hone_dataset_kind(r->set),
            (unsigned long long)hone_dataset_samples(r->set), cli_s(hone_dataset_samples(r->set)),
            hone_dataset_classes(r->set), hone_dataset_classes(r->set) == 1 ? "" : "es");
  cli_print("pictures   %s\n", words);
  for (int i = 0; i < 2 && r->pair[i].path; i++) summary(&r->pair[i]);
  if (r->change) changed(r->change);
  if (!r->change && r->pair[1].path)
    cli_print("\nchange     %+.4f of mAP, %+.4f at IoU 0.50  (not tested)\n",
              r->pair[1].result.map - r->pair[0].result.map,
              r->pair[1].result.map50 - r->pair[0].result.map50);
  const int last = r->pair[1].path != NULL;
  worst(&r->pair[last].result, r->args->rows ? r->args->rows : 10);
  return cli_flush();
}
