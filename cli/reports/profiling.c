/* Records of a session's runs: what the command adds to what the library measures. */
#include "cli/reports/profiling.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/options/quiet.h"
#include "cli/options/revision.h"
#include "cli/options/roofs.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"
#include "cli/options/version.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_describe(const cli_session *s, const cli_args *args, const char *path, hone_facts *facts) {
  hone_facts_meta m = *hone_facts_get_meta(facts);
  char revision[128];
  m.hone_version = cli_hone_version();
  m.commit = cli_revision(args, path, revision, sizeof revision) ? revision : NULL;
  m.model = path;
  if (!m.precision) m.precision = cli_precision_name(args);
  m.seed = args->seed ? (double)args->seed : 1;
  m.load_ms = s->load_ms;
  hone_facts_set_meta(facts, &m);
  cli_record_options(args, s, facts);
  if (strncmp(path, "zoo:", 4) != 0 && !cli_open_batch(s->model))
    hone_facts_add_counter(facts,
                           &(hone_counter){"batch_fixed", "", -1, 1}); /* by the model: -b changes nothing */
}

hone_subject cli_subject(const cli_session *s, const cli_args *args) {
  return (hone_subject){.engine = s->engine,
                        .plan = s->plan,
                        .context = s->context,
                        .in = s->feeds,
                        .device = cli_device_name(args),
                        .level = args->level < 0 ? 2 : (int)args->level};
}

/* Whose runs they are, for the two that follow. */
typedef struct owner {
  cli_session *session;
  const cli_args *args;
  const char *path;
} owner;

static hone_status reload(void *arg, hone_error *error) {
  const owner *o = arg;
  return cli_session_reload(o->session, o->args, error);
}

static void describe(void *arg, hone_facts *facts) {
  const owner *o = arg;
  cli_describe(o->session, o->args, o->path, facts);
}

static hone_recording_options recording_options(const cli_args *args) {
  return (hone_recording_options){.warmups = args->warmup >= 0 ? (uint32_t)args->warmup : 3,
                                  .runs = args->runs > 0 ? (uint32_t)args->runs : 30,
                                  .seconds = args->max_seconds,
                                  .max_seconds = args->max_seconds,
                                  .filter = args->filter,
                                  .counters = args->counters,
                                  .peaks = cli_peaks(),
                                  .watch = cli_watch()};
}

static hone_subject subject_of(owner *o) {
  hone_subject subject = cli_subject(o->session, o->args);
  subject.before = o->args->reload ? reload : NULL;
  subject.describe = describe;
  subject.arg = o;
  return subject;
}

static hone_status record(const cli_args *args, const hone_subject *subjects, uint32_t n,
                          const hone_recording_options *options, hone_recording *out, hone_error *error) {
  hone_status status = cli_quiet_wait(args, error);
  if (status == HONE_OK) status = hone_subjects_record(subjects, n, options, out, error);
  cli_progress_end();
  return status;
}

hone_status cli_profile_make(cli_session *s, const cli_args *args, const char *path,
                             const hone_counting *counting, const char *uncounted, hone_recording *out,
                             hone_error *error) {
  owner o = {s, args, path};
  const hone_subject subject = subject_of(&o);
  hone_recording_options options = recording_options(args);
  options.counting = counting;
  options.uncounted = uncounted;
  options.keep = true;
  return record(args, &subject, 1, &options, out, error);
}

hone_status cli_profile_pair(cli_session *const s[2], const cli_args *args, const char *const path[2],
                             hone_recording *out, hone_error *error) {
  owner o[2] = {{s[0], args, path[0]}, {s[1], args, path[1]}};
  const hone_subject subjects[2] = {subject_of(&o[0]), subject_of(&o[1])};
  const hone_recording_options options = recording_options(args);
  return record(args, subjects, 2, &options, out, error);
}

hone_status cli_check_filter(const cli_args *args, const hone_profile *profile, hone_error *error) {
  if (!args->filter || profile->layer_count || !profile->type_count) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "no layer matches --filter");
  snprintf(error->expected, sizeof error->expected, "a type, or a name or ONNX node ('Conv_*')");
  snprintf(error->got, sizeof error->got, "%.60s", args->filter);
  snprintf(error->hint, sizeof error->hint, "without --filter all layers are listed");
  return HONE_ERROR_USAGE;
}
