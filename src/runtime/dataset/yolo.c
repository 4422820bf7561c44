/* YOLO's boxes: beside each picture a text with lines "CLASS X Y WIDTH HEIGHT", parts of the picture. */
#include "runtime/dataset/set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* pictures/1.txt of pictures/1.jpg, and where such a folder is in it, labels/1.txt of images/1.jpg. */
static char *text_of(hone_dataset *set, const char *picture) {
  const char *dot = strrchr(picture, '.');
  const size_t stem = dot ? (size_t)(dot - picture) : strlen(picture);
  char *beside = hn_arena_printf(&set->arena, "%.*s.txt", (int)stem, picture), *at = NULL;
  if (!beside || hn_path_exists(beside)) return beside;
  for (char *next = beside; (next = strstr(next, "images/")); next++)
    if (next == beside || next[-1] == '/') at = next;
  if (!at) return beside;
  for (int i = 0; i < 7; i++) at[i] = "labels/"[i];
  return beside;
}

bool hn_set_has_boxes(hone_dataset *set, const char *picture) {
  const char *text = text_of(set, picture);
  return text && hn_path_exists(text);
}

/* Numbers of a line; -1: there is something else in it. */
static int numbers(const char *line, double *out, int room) {
  int n = 0;
  while (*line) {
    char *end;
    const double v = strtod(line, &end);
    if (end == line || n == room || !isfinite(v)) return -1;
    out[n++] = v;
    line = end + strspn(end, " \t\r");
  }
  return n;
}

static bool add_line(hone_dataset *set, const char *text, uint64_t at, const char *line) {
  double v[5];
  const bool good =
      numbers(line, v, 5) == 5 && v[0] >= 0 && v[0] == floor(v[0]) && v[0] < 1e6 && v[3] >= 0 && v[4] >= 0;
  if (!good) return hn_set_leave(set, "%s:%llu: wants CLASS X Y WIDTH HEIGHT", text, (unsigned long long)at);
  if (set->named && v[0] >= (double)set->classes.len)
    return hn_set_leave(set, "%s:%llu: no class %.0f", text, (unsigned long long)at, v[0]);
  const uint32_t cls = (uint32_t)v[0];
  if (!hn_set_classes_upto(set, (uint64_t)cls + 1)) return false;
  return hn_vec_push(&set->boxes, (hone_box){v[1] - v[3] / 2, v[2] - v[4] / 2, v[1] + v[3] / 2,
                                             v[2] + v[4] / 2, cls, false});
}

/* A picture without a text has no boxes: that is an answer, too. */
static hone_status read_text(hone_dataset *set, hn_set_sample *sample, hone_error *error) {
  const char *text = text_of(set, sample->path);
  hn_file file = {0};
  sample->first_box = (uint32_t)set->boxes.len;
  if (!text) return hn_set_memory(error);
  if (!hn_path_exists(text)) return HONE_OK;
  hone_status status = hn_file_map(text, NULL, HN_FILE_TEXT, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", text);
    return status;
  }
  hn_arena lines_arena = {0};
  hn_lines lines = {(const char *)file.data, (const char *)file.data + file.size, 0};
  for (char *line; status == HONE_OK && (line = hn_lines_next(&lines, &lines_arena, &status));)
    if (!add_line(set, text, lines.number, line)) status = HONE_ERROR_MEMORY;
  hn_arena_free(&lines_arena);
  hn_file_unmap(&file);
  sample->n_boxes = (uint32_t)set->boxes.len - sample->first_box;
  return status == HONE_OK ? status : hn_set_memory(error);
}

hone_status hn_set_read_yolo(hone_dataset *set, const char *folder, hone_error *error) {
  hone_status status = hn_set_read_plain(set, folder, error);
  set->kind = "YOLO boxes";
  set->truth = HONE_TRUTH_BOXES;
  set->relative = true;
  for (size_t i = 0; status == HONE_OK && i < set->samples.len; i++)
    status = read_text(set, &set->samples.ptr[i], error);
  return status;
}
