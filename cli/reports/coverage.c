/* How well calibration samples stand for others. */
#include "cli/reports/coverage.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"

#include <math.h>
#include <stdio.h>

const char *cli_coverage_line(const hone_quantize_coverage *c, uint32_t samples, char *buf, size_t size) {
  char growth[80] = "", light[80] = "", classes[80] = "";
  if (!isnan(c->growth))
    snprintf(growth, sizeof growth, ", ranges grow by %.2g %% with each at the end", 100 * c->growth);
  if (c->pictures)
    snprintf(light, sizeof light, "; %.0f to %.0f %% of white", 100 * c->darkest, 100 * c->brightest);
  if (c->classes)
    snprintf(classes, sizeof classes, "; %u classes, %u to %u of each", c->classes - c->missing, c->fewest,
             c->most);
  snprintf(buf, size, "%u%s%s%s", samples, growth, light, classes);
  return buf;
}

static json_t *pictures_json(const hone_quantize_coverage *c) {
  if (!c->pictures) return json_null();
  return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "pictures", (int)c->pictures, "darkest",
                   cli_real(c->darkest), "brightest", cli_real(c->brightest), "mean", cli_real(c->brightness),
                   "spread", cli_real(c->spread), "contrast", cli_real(c->contrast), "contrast_spread",
                   cli_real(c->contrast_spread), "one_colour", (int)c->one_colour);
}

static json_t *classes_json(const hone_quantize_coverage *c) {
  if (!c->classes) return json_null();
  return json_pack("{s:i, s:i, s:o, s:o, s:i, s:o, s:i}", "classes", (int)c->classes, "missing",
                   (int)c->missing, "absent", *c->absent ? cli_text(c->absent) : json_null(), "rarest",
                   cli_text(c->rarest), "fewest", (int)c->fewest, "commonest", cli_text(c->commonest), "most",
                   (int)c->most);
}

json_t *cli_coverage_json(const hone_quantize_coverage *c) {
  json_t *o = json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "problems", (int)c->problems, "ranges",
                        (int)c->ranges, "grown", (int)c->grown, "growth_each", cli_real(c->growth),
                        "most_growth", cli_real(c->most_growth), "most_grown",
                        c->most_grown && *c->most_grown ? cli_text(c->most_grown) : json_null());
  if (!c->known) return o;
  json_object_set_new(o, "repeated", json_integer(c->repeated));
  json_object_set_new(o, "brightness", pictures_json(c));
  json_object_set_new(o, "classes", classes_json(c));
  return o;
}
