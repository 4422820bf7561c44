/* What a run says of boxes. */
#include "api/eval.h"

#include "base/error.h"

/* The outputs of the run that has just been, whose shapes may be others than before. */
static hone_status look(hn_evaluation *e, hone_error *error) {
  const uint32_t n = hone_plan_outputs(e->plan);
  if (!e->out) e->out = hn_calloc(n + 1, sizeof *e->out);
  if (!e->names) e->names = hn_calloc(n + 1, sizeof *e->names);
  if (!e->out || !e->names) return hn_fail_memory(error, n * sizeof *e->out, "outputs");
  for (uint32_t i = 0; i < n; i++) {
    e->out[i] = hone_context_output(e->context, i);
    e->names[i] = hone_plan_output_name(e->plan, i);
  }
  const bool first = !e->scorer;
  const hone_boxes_options o = first ? e->o->boxes : e->decoder.o;
  hone_status status =
      hn_decode_find(&o, e->out, e->names, n, e->rows, hone_dataset_classes(e->set), &e->decoder, error);
  if (status == HONE_OK && first)
    status = hone_scorer_open(HONE_TRUTH_BOXES, hone_dataset_classes(e->set), hone_dataset_samples(e->set),
                              &e->scorer, error);
  return status;
}

/* The boxes to be found, in pixels. */
static hone_status truth_of(hn_evaluation *e, const hone_sample *s, const hone_picture_map *map,
                            hone_error *error) {
  const double w = s->relative ? (double)map->width : 1, h = s->relative ? (double)map->height : 1;
  if (s->n_boxes > e->truth_room) {
    hone_box *more = hn_realloc(e->truth, s->n_boxes * sizeof *more);
    if (!more) return hn_fail_memory(error, s->n_boxes * sizeof *more, "boxes");
    e->truth = more;
    e->truth_room = s->n_boxes;
  }
  for (uint32_t i = 0; i < s->n_boxes; i++) {
    const hone_box *b = &s->boxes[i];
    e->truth[i] = (hone_box){b->x0 * w, b->y0 * h, b->x1 * w, b->y1 * h, b->cls, b->crowd};
  }
  return HONE_OK;
}

static hone_status score(hn_evaluation *e, int64_t row, hone_error *error) {
  hone_sample sample;
  const hone_picture_map *map = &e->map[row];
  if (!hone_dataset_sample(e->set, e->rank[row], &sample))
    return hn_fail(error, HONE_ERROR_INTERNAL, "a sample is gone");
  if (!map->width) {
    hn_fail(error, HONE_ERROR_INPUT, "boxes are held against pictures, and this is an array");
    hn_error_where(error, "%s", sample.name);
    return HONE_ERROR_INPUT;
  }
  hone_status status = truth_of(e, &sample, map, error);
  if (status == HONE_OK) status = hn_decode_row(&e->decoder, e->out, row, map, &e->found, error);
  if (status != HONE_OK) return status;
  return hone_scorer_add_boxes(e->scorer, e->rank[row], e->truth, sample.n_boxes, e->found.ptr,
                               (uint32_t)e->found.len, error);
}

hone_status hn_eval_boxes(hn_evaluation *e, int64_t rows, hone_error *error) {
  hone_status status = look(e, error);
  for (int64_t i = 0; status == HONE_OK && i < rows; i++) status = score(e, i, error);
  return status;
}
