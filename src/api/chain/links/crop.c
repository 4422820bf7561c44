/* crop: what boxes show of a picture, each a picture of its own, set upright. */
#include "api/chain/chain.h"
#include "api/chain/quad.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

typedef struct settings {
  double tall;
  int filter;
} settings;

enum { FILTER_CUBIC, FILTER_LINEAR };
static const char *const filters[] = {"cubic", "linear", NULL};
static const settings defaults = {0};
static const hn_member members[] = {{"tall", HN_MEMBER_REAL, offsetof(settings, tall), 0, 1000, NULL},
                                    {"filter", HN_MEMBER_WORD, offsetof(settings, filter), 0, 0, filters},
                                    {0}};

static double length(const hone_chain_box *b, int from, int to) {
  return hypot((double)b->x[to] - (double)b->x[from], (double)b->y[to] - (double)b->y[from]);
}

static int64_t side(double a, double b) {
  const double longer = rint(fmax(a, b));
  return longer < 1 ? 1 : (int64_t)longer;
}

static hone_status cut(hone_chain *c, const settings *o, const hone_tensor *picture, const hone_chain_box *b,
                       hn_passed *out, uint32_t i, hone_error *error) {
  int64_t w = side(length(b, 0, 1), length(b, 3, 2)), h = side(length(b, 0, 3), length(b, 1, 2));
  const bool turn =
      o->tall > 0 && (double)h >= o->tall * (double)w; /* to the left: the right side is on top */
  double x[4], y[4];
  for (int k = 0; k < 4; k++) {
    x[k] = (double)b->x[(k + turn) % 4];
    y[k] = (double)b->y[(k + turn) % 4];
  }
  if (turn) {
    const int64_t was = w;
    w = h;
    h = was;
  }
  const hone_status status = hn_chain_picture(c, out, &out->picture[i], h, w, error);
  if (status == HONE_OK)
    hn_quad_sample(picture->data, picture->desc.dim[0], picture->desc.dim[1], x, y, o->filter == FILTER_CUBIC,
                   h, w, out->picture[i].data);
  return status;
}

static hone_status run(hone_chain *c, const hn_stage *s, const hn_passed *const *in, hn_passed *out,
                       hone_error *error) {
  const hn_passed *pictures = in[0], *boxes = in[1];
  out->picture = HN_NEW_ARRAY(&c->arena, hone_tensor, boxes->n + 1);
  if (!out->picture) return hn_fail_memory(error, boxes->n * sizeof *out->picture, s->name);
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < boxes->n && status == HONE_OK; i++) {
    if (boxes->box[i].item >= pictures->n)
      return hn_stage_fail(c, s, HONE_ERROR_INPUT, error, "a box of '%s' is in picture %u, of %u",
                           boxes->name, boxes->box[i].item, pictures->n);
    status = cut(c, s->settings, &pictures->picture[boxes->box[i].item], &boxes->box[i], out, i, error);
  }
  out->n = out->items = boxes->n;
  return status;
}

const hn_link hn_link_crop = {.name = "crop",
                              .makes = HONE_CHAIN_PICTURES,
                              .n_reads = 2,
                              .reads = {{"from", HONE_CHAIN_PICTURES}, {"boxes", HONE_CHAIN_BOXES}},
                              .members = members,
                              .size = sizeof(settings),
                              .defaults = &defaults,
                              .run = run};
