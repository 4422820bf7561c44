/* Labelled data, and how a detector tells boxes, by options. */
#include "cli/options/labelled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_status cli_labelled_open(const cli_args *args, const char *path, hone_dataset **out, hone_error *error) {
  const size_t n = path ? 1 : args->data.n + args->rest.n - 1;
  const char **paths = calloc(n + 1, sizeof *paths);
  if (!paths) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    return HONE_ERROR_MEMORY;
  }
  for (size_t i = 0; !path && i < args->data.n; i++) paths[i] = args->data.item[i];
  for (size_t i = 1; !path && i < args->rest.n; i++) paths[args->data.n + i - 1] = args->rest.item[i];
  if (path) paths[0] = path;
  const hone_status status =
      hone_dataset_open(&(hone_dataset_options){.paths = paths,
                                                .n_paths = (uint32_t)n,
                                                .labels = path == args->labels ? NULL : args->labels,
                                                .names = args->names},
                        out, error);
  free(paths);
  return status;
}

hone_status cli_labelled_boxes(const cli_args *args, hone_boxes_options *o, hone_error *error) {
  static const char *const orders[] = {"xyxy", "yxyx", "cxcywh"};
  *o = (hone_boxes_options){
      .relative = args->relative, .min_score = args->min_score, .nms_iou = args->nms_iou};
  bool known = !args->boxes, ordered = !args->box_order;
  for (int i = 0; args->boxes && i < HONE_BOX_FORMS; i++)
    if (strcmp(args->boxes, hone_box_form_name((hone_box_form)i)) == 0)
      o->form = (hone_box_form)i, known = true;
  for (int i = 0; args->box_order && i < 3; i++)
    if (strcmp(args->box_order, orders[i]) == 0) o->order = (hone_box_order)(i + 1), ordered = true;
  if (known && ordered) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "%s knows no '%.60s'", known ? "--box-order" : "--boxes",
           known ? args->box_order : args->boxes);
  snprintf(error->expected, sizeof error->expected, "%s",
           known ? "xyxy, yxyx or cxcywh"
                 : "auto, xyxy-score-class, lists, nms, boxes-scores, yolov3, yolov8 or nanodet");
  return HONE_ERROR_USAGE;
}
