/* Labelled data, and how a detector tells boxes, by options. */
#ifndef HONE_CLI_LABELLED_H
#define HONE_CLI_LABELLED_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* --data with --labels and --names, and what the shell made of the paths; or `path` in place of --data: what
 * --labels says where that is a folder itself. */
hone_status cli_labelled_open(const cli_args *args, const char *path, hone_dataset **out, hone_error *error);
/* --boxes, --box-order and the like. */
hone_status cli_labelled_boxes(const cli_args *args, hone_boxes_options *out, hone_error *error);

#define CLI_OPT_BOXES                                                                                        \
  {0,                                                                                                        \
   "boxes",                                                                                                  \
   CLI_TEXT,                                                                                                 \
   CLI_FIELD(boxes),                                                                                         \
   "FORM",                                                                                                   \
   "of a detector's outputs: xyxy-score-class, lists, nms, boxes-scores, yolov3, yolov8, nanodet (by their " \
   "shapes)"},                                                                                               \
      {0, "box-order", CLI_TEXT, CLI_FIELD(box_order), "xyxy|yxyx|cxcywh", "a box's numbers (of the form)"}, \
      {0,        "relative",                                                                                 \
       CLI_FLAG, CLI_FIELD(relative),                                                                        \
       NULL,     "boxes are parts of the input's width and height (pixels)"},                                \
      {0, "min-score", CLI_NUMBER, CLI_FIELD(min_score), "X", "boxes below do not count (0.001)"}, {         \
    0, "nms-iou", CLI_NUMBER, CLI_FIELD(nms_iou), "X",                                                       \
        "overlap from which on the poorer box of a class is dropped, where the model does not do it (0.65)"  \
  }

#endif
