/* The command line: what every command shares. Public headers of the library only. */
#ifndef HONE_CLI_H
#define HONE_CLI_H

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>

/* ---- options: one table a command drives parsing and help */

typedef enum cli_kind {
  CLI_FLAG,   /* bool */
  CLI_COUNT,  /* int64_t, 0 or more */
  CLI_SOME,   /* int64_t, 1 or more */
  CLI_LEVEL,  /* int64_t, 0..3 */
  CLI_NUMBER, /* double, 0 or more */
  CLI_TEXT,   /* const char * */
  CLI_LIST    /* cli_list: may be given again */
} cli_kind;

typedef struct cli_list {
  const char **item;
  size_t n;
} cli_list;

typedef struct cli_option {
  char letter;      /* 0: none */
  const char *name; /* NULL ends the table */
  cli_kind kind;
  size_t field;      /* offset in cli_args */
  const char *value; /* what help calls it */
  const char *help;
} cli_option;

/* All options of all commands; a command sees those in its table. */
typedef struct cli_args {
  bool help, json, verbose, explain, verify_passes, open_batch, again, no_cache, check, counters;
  int64_t threads, batch, level, runs, warmup, seed, count, size, rows, round;
  double max_seconds, width, tolerance, budget, tune_seconds, effect;
  const char *format, *device, *precision, *prefer, *output, *output_dir, *labels, *filter, *csv, *trace,
      *html, *passes, *cache, *model, *profile;
  const char *lang;
  bool list_thresholds;
  bool reload;           /* the input files, before every run */
  double quiet_wait;     /* seconds */
  double share, speedup; /* of hone amdahl */
  /* history, gate, long runs */
  bool save, plot;
  const char *tag, *commit, *remove, *baseline, *baseline_cmd, *candidate_cmd, *markdown, *junit, *duration,
      *metric;
  double worse_pct;
  int64_t pairs;
  cli_list shapes, inputs, thresholds, float_files;
  cli_list rest; /* arguments that are no options */
} cli_args;

/* What the options are before any is given. */
#define CLI_UNSET                                                                                            \
  { .share = -1, .level = -1, .runs = -1, .warmup = -1, .budget = -1, .worse_pct = -1, .pairs = -1 }
#define CLI_FIELD(name) offsetof(cli_args, name)
#define CLI_END                                                                                              \
  { 0, NULL, CLI_FLAG, 0, NULL, NULL }
#define CLI_OPT_HELP                                                                                         \
  { 'h', "help", CLI_FLAG, CLI_FIELD(help), NULL, "show this help" }
#define CLI_OPT_JSON                                                                                         \
  { 0, "json", CLI_FLAG, CLI_FIELD(json), NULL, "print one JSON document instead of text" }
#define CLI_OPT_VERBOSE                                                                                      \
  { 'v', "verbose", CLI_FLAG, CLI_FIELD(verbose), NULL, "say more on standard error" }
/* Options of everything that loads a model and fixes its shapes. */
#define CLI_OPT_SHAPES                                                                                       \
  {'b', "batch", CLI_SOME, CLI_FIELD(batch), "N", "batch size where the model leaves it open (1)"}, {        \
    0, "shape", CLI_LIST, CLI_FIELD(shapes), "NAME=DIMS",                                                    \
        "shape of an input (x=1x3x224x224) or value of a symbol (N=4)"                                       \
  }
#define CLI_OPT_PRECISION                                                                                    \
  {0,                                                                                                        \
   "precision",                                                                                              \
   CLI_TEXT,                                                                                                 \
   CLI_FIELD(precision),                                                                                     \
   "f32|bf16|fp16|tf32|auto",                                                                                \
   "arithmetic of matrix products (f32); fp16, tf32: --device cuda; auto: bf16, there fp16, where the "      \
   "budget allows"},                                                                                         \
  {                                                                                                          \
    0, "budget", CLI_NUMBER, CLI_FIELD(budget), "X",                                                         \
        "largest error of --precision auto, relative to an output's range (0.01; fp16: 0.002)"               \
  }
#define CLI_OPT_PREFER                                                                                       \
  {                                                                                                          \
    0, "prefer", CLI_TEXT, CLI_FIELD(prefer), "speed|memory",                                                \
        "which tactics: fastest, or least weights (speed)"                                                   \
  }
/* Options of everything that also runs it. */
#define CLI_OPT_RUN                                                                                          \
  {'t', "threads", CLI_SOME, CLI_FIELD(threads), "N", "threads (all processors)"}, CLI_OPT_SHAPES,           \
      {0, "level", CLI_LEVEL, CLI_FIELD(level), "0..3", "optimisation level (2)"}, CLI_OPT_PRECISION,        \
      CLI_OPT_PREFER,                                                                                        \
      {0, "device", CLI_TEXT, CLI_FIELD(device), "D", "where to run: cpu, cuda or cuda:N (cpu)"},            \
      {0, "no-cache", CLI_FLAG, CLI_FIELD(no_cache), NULL, "ignore what hone tune has measured"},            \
      {0, "seed", CLI_COUNT, CLI_FIELD(seed), "N", "seed of random inputs (1)"}, {                           \
    0, "max-seconds", CLI_NUMBER, CLI_FIELD(max_seconds), "S", "give up (exit 6) after this long"            \
  }

/* Of everything that measures. */
#define CLI_OPT_QUIET                                                                                        \
  {                                                                                                          \
    0, "quiet-wait", CLI_NUMBER, CLI_FIELD(quiet_wait), "S",                                                 \
        "first wait up to S seconds until other processes leave the processors alone"                        \
  }
#define CLI_OPT_LANG                                                                                         \
  { 0, "lang", CLI_TEXT, CLI_FIELD(lang), "en|zh", "language of findings and reports (LANG)" }
/* Options of everything that explains. */
#define CLI_OPT_FINDINGS                                                                                     \
  {0, "threshold", CLI_LIST, CLI_FIELD(thresholds), "NAME=X", "override one (diagnose --thresholds lists)"}, \
      CLI_OPT_LANG

typedef struct cli_command {
  const char *name, *arguments, *summary;
  const char *details; /* paragraphs for the help; NULL */
  const cli_option *options;
  size_t min_rest, max_rest;
  int (*run)(const cli_args *args); /* the exit code */
} cli_command;

extern const cli_command *const cli_commands[]; /* ends with NULL */

/* Parses argv by the table. Prints one line and returns 2 when it is wrong, else 0. Free with cli_args_free.
 */
int cli_parse(const cli_command *command, int argc, char **argv, cli_args *args);
void cli_args_free(cli_args *args);
void cli_print_help(const cli_command *command);
void cli_print_overview(FILE *out);
const cli_command *cli_find(const char *name);
/* The candidate that is likely to be meant, or NULL. */
const char *cli_nearest(const char *word, const char *const *candidates, size_t n);
const char *cli_nearest_command(const char *word);

/* ---- talking. Everything that is shown goes through cli_print and its like: the arguments of %s come out of
 * models, profiles and command lines, and are escaped (hone_text_format). tools/check_output.sh holds to
 * that. */

int cli_print(const char *format, ...) __attribute__((format(printf, 1, 2))); /* the bytes that it wrote */
int cli_print_to(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* hone's own text as it is: newlines, marks of a format. Never a name. */
void cli_put(FILE *stream, const char *own);
/* Switches a colour on or off where the stream wants colours. */
typedef enum cli_paint { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BOLD_RED } cli_paint;
void cli_color(FILE *stream, cli_paint paint);

/* Prints "hone: error: ..." on standard error and returns the exit code that belongs to the error's status.
 */
int cli_report(const hone_error *error);
/* The same for the command's own errors. */
int cli_error(hone_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "hone: ..." on standard error. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool cli_colors(FILE *stream); /* a terminal that wants colours */
bool cli_unicode(void);        /* the locale is UTF-8 */
int cli_columns(void);         /* of standard output; 100 when it is no terminal */

/* A line on standard error that shows how far long work is; nothing when that is no terminal. */
void cli_progress(const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);
/* The same for the library's long work, which Ctrl-C stops (watch.c). */
const hone_watch *cli_watch(void);
void cli_progress_wipe(void); /* the same from a signal handler that ends the process */

/* Prints a document, with a newline, and releases it; exit code 0, or 6 when standard output cannot take it.
 */
int cli_print_json(json_t *document);
/* The document as text with a newline at its end, harmless to show; releases the document. free() it; NULL:
 * no memory. */
char *cli_json_text(json_t *document);
/* Real number that JSON can carry (NaN and infinities become null). */
json_t *cli_real(double v);
/* Flushes standard output; exit code 0 or 6. */
int cli_flush(void);
/* "8.18 G" with three digits. */
const char *cli_si(double v, char buf[16]);
/* "48.2 MiB". */
const char *cli_mib(double bytes, char buf[24]);

/* ---- files that appear whole or not at all */

typedef struct cli_file {
  FILE *stream; /* NULL: closed */
  hone_writer *writer;
  hone_error failed; /* of the first write that failed */
} cli_file;

hone_status cli_file_open(cli_file *file, const char *path, hone_error *error);
/* The same for one that is added to. */
hone_status cli_file_append(cli_file *file, const char *path, hone_error *error);
/* A hone_sink whose user is a cli_file. */
hone_status cli_file_sink(void *file, const char *data, size_t length, hone_error *error);
/* Closes and puts the file in its place. */
hone_status cli_file_commit(cli_file *file, hone_error *error);
void cli_file_abort(cli_file *file); /* after any error; no-op when closed */
hone_status cli_file_json(const char *path, json_t *document, hone_error *error); /* releases document */
hone_status cli_make_folder(const char *path, size_t *made, hone_error *error);
/* After a failure: removes the folder and its parents as far as cli_make_folder made them and they are empty.
 */
void cli_drop_folder(const char *path, size_t made);
/* HONE_ERROR_USAGE when an output is a file that the command reads. output may be NULL. */
hone_status cli_keep_inputs(const cli_args *args, const char *output, hone_error *error);
/* A report of insight into a file. */
hone_status cli_file_report(const char *path, const hone_report_input *input, hone_report_format format,
                            hone_error *error);
/* The same for each of n that has a path; none is an input of the command. */
typedef struct cli_report_file {
  const char *path; /* NULL: not wanted */
  hone_report_format format;
} cli_report_file;
hone_status cli_file_reports(const cli_args *args, const hone_report_input *in, const cli_report_file *files,
                             size_t n, hone_error *error);
/* A report of insight to standard output. */
int cli_print_report(const hone_report_input *input, hone_report_format format);

/* ---- interrupts: Ctrl-C ends what runs; the exit code is then 130 and nothing half-written stays. A second
 * one does not wait for it. */

void cli_signals(void);
/* From here on the command ends (exit code 6) when there is no memory for JSON. */
void cli_memory(void);
bool cli_interrupted(void);
/* Says so, with what was kept of the work (NULL: nothing), and returns the exit code. */
int cli_end_interrupted(const char *kept);
enum { CLI_EXIT_INTERRUPTED = 130 };
/* The context that Ctrl-C cancels; NULL: none, then Ctrl-C ends the process at once unless cli_hold is on. */
void cli_cancellable(hone_context *context);
/* While held (files are being written), Ctrl-C is only noted. Nests. */
void cli_hold(bool on);

/* ---- models and sessions */

/* "resnet50" of "models/resnet50.onnx". */
const char *cli_base_name(const char *path, char *buf, size_t size);
/* Loads a file, or builds "zoo:NAME". */
hone_status cli_load(const cli_args *args, const char *path, hone_model **out, hone_error *error);
/* --shape values as bindings of this model; free(*out). */
hone_status cli_bindings(const cli_args *args, const hone_model *model, hone_binding **out, uint32_t *n,
                         hone_error *error);
json_t *cli_desc_json(const hone_tensor_desc *desc); /* {"dtype","shape"} members */
/* Whether --batch can do anything. */
bool cli_open_batch(const hone_model *model);
/* Notes on standard error the shapes that hone chose. */
void cli_note_bound(const hone_bound_shape *bound, uint32_t n);

/* What --precision asks for; auto measures the model. Free with hone_precision_choice_free. */
typedef struct cli_precision {
  bool made;
  const char *name;             /* for plans; NULL until made */
  hone_precision_choice choice; /* of auto */
} cli_precision;

/* How auto is to measure the model; *automatic: it is asked for. */
hone_status cli_precision_options(const cli_args *args, hone_precision_options *out, bool *automatic,
                                  hone_error *error);
hone_status cli_precision_make(const cli_args *args, hone_model *model, const hone_binding *bindings,
                               uint32_t n_bindings, cli_precision *out, hone_error *error);
/* "f32", "bf16" or "auto". */
const char *cli_precision_name(const cli_args *args);
/* What auto chose; null otherwise. */
json_t *cli_precision_json(const cli_args *args, const cli_precision *precision);
/* The same in one line; nothing otherwise. */
void cli_precision_text(const cli_args *args, const cli_precision *precision);

/* A model ready to run with inputs. */
typedef struct cli_session {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_binding *bindings;
  uint32_t n_bindings;
  cli_precision precision;
  uint32_t n_inputs;
  hone_data *data;           /* [n_inputs] */
  const hone_tensor **feeds; /* [n_inputs] for hone_context_run */
  hone_chains chains;        /* of the next plan */
  double load_ms;            /* start to ready context */
  bool saved;                /* the plan came from a file; the model is the plan's */
  bool borrows;              /* all but plan, context and feeds belong to another session */
} cli_session;

/* From the file to engine, bindings and the inputs that were given, without a plan. */
hone_status cli_session_load(cli_session *session, const cli_args *args, const char *path, hone_error *error);
/* What the library is to plan it with (level: --level). */
hone_plan_options cli_session_options(const cli_session *session, const cli_args *args, int level);
/* Notes on standard error what its first plan decided: --batch that changes nothing, shapes that hone chose.
 */
void cli_session_note(const cli_session *session, const cli_args *args, const char *path,
                      const hone_plan *plan);
/* What the device had to put right while it got ready. */
void cli_session_warn(const cli_session *session);
/* No plan can be made: the shape of an input file may be why. */
void cli_session_hint(const cli_session *session, const cli_args *args, hone_error *error);
/* Everything from the file to a ready context with its inputs. */
hone_status cli_session_open(cli_session *session, const cli_args *args, const char *path, hone_error *error);
/* Plans the open session's model again at another level (the inputs stay). */
hone_status cli_session_replan(cli_session *session, const cli_args *args, int level, hone_error *error);
/* A second plan beside an open session's, with the same engine and inputs; close it first. */
hone_status cli_session_fork(const cli_session *from, const cli_args *args, int level, cli_session *out,
                             hone_error *error);
void cli_session_close(cli_session *session);
/* Rows of input 0: what a throughput counts. */
int64_t cli_batch(const cli_session *session);
/* Reads the --input files again, as the stage before the next run. */
hone_status cli_session_reload(cli_session *session, const cli_args *args, hone_error *error);
hone_status cli_session_run(cli_session *session, const cli_args *args, hone_error *error);
const char *cli_device_name(const cli_args *args);
hone_status cli_check_device(const cli_args *args, hone_error *error);
uint32_t cli_threads(const cli_session *session, const cli_args *args);
double cli_now_ms(void);
double cli_median(const double *values, size_t n); /* of the finite ones; NaN where there are none */
const char *cli_commit(void);                      /* git revision of hone's source; NULL: unknown */
const char *cli_hone_version(void); /* "0.1.0 (1b3d42d2c7ab)": with that revision, where it is known */
double cli_rss_peak_bytes(void);
double cli_remaining(double start_ms, double max_seconds); /* seconds; a huge number when there is no limit */

/* --quiet-wait: waits until others take less than a tenth of the processors, at most so many seconds in the
 * whole command, and says what it saw. HONE_ERROR_CANCELLED: Ctrl-C. */
hone_status cli_quiet_wait(const cli_args *args, hone_error *error);

/* ---- the machine's peaks (roofs.c) */

/* Those of this process, for records. */
hone_peaks *cli_peaks(void);
/* Measured once a process, or read from the cache; `again` measures in any case. max_seconds 0: as long as it
 * usually takes. Ctrl-C ends it: HONE_ERROR_CANCELLED. */
hone_status cli_roofs(uint32_t threads, bool again, double max_seconds, hone_roofs *out, hone_error *error);
hone_status cli_device_roofs(const char *device, bool again, double max_seconds, hone_device_roofs *out,
                             hone_error *error);
/* Says so when the machine was busy while its peaks were measured, and returns whether it was. */
bool cli_note_busy(const hone_roofs *roofs);

/* ---- records of a session's runs (profiling.c) */

/* Adds what the command knows of them. */
void cli_describe(const cli_session *session, const cli_args *args, const char *path, hone_facts *facts);
/* The session as the library measures it. */
hone_subject cli_subject(const cli_session *session, const cli_args *args);
/* Warms up and records: what hone profile does. After Ctrl-C the runs that are complete are the profile.
 * counting: of the processor, begun before the session's threads; NULL: none, uncounted says why. */
hone_status cli_profile_make(cli_session *session, const cli_args *args, const char *path,
                             const hone_counting *counting, const char *uncounted, hone_recording *out,
                             hone_error *error);
/* HONE_ERROR_USAGE when --filter leaves no layer: an empty table would look like a result. */
hone_status cli_check_filter(const cli_args *args, const hone_profile *profile, hone_error *error);

/* ---- other tools' profiles */

/* Options of everything that reads them. */
#define CLI_OPT_IMPORT                                                                                       \
  {0, "format", CLI_TEXT, CLI_FIELD(format), "NAME", "what wrote the files (found out from them)"}, {        \
    0, "model", CLI_TEXT, CLI_FIELD(model), "NAME", "what to call the model, also in commands"               \
  }
/* Findings may compare with the network in float. */
#define CLI_OPT_FLOAT                                                                                        \
  {                                                                                                          \
    0, "float", CLI_LIST, CLI_FIELD(float_files), "FILE",                                                    \
        "profile of the same network in float: does INT8 pay?"                                               \
  }
/* Reads files of one run into facts and a profile; free with hone_recording_free. */
hone_status cli_import(const cli_args *args, const char *const *paths, size_t n, hone_recording *out,
                       hone_error *error);
/* What a report of it is called: NULL (the model's name), or the first file's where no tool named the model.
 */
const char *cli_import_title(const cli_args *args, const hone_recording *profile);

/* --lang, else the locale for messages. */
hone_status cli_language(const cli_args *args, hone_language *language, hone_error *error);
/* How the command line wants findings: thresholds, language, the network in float. */
typedef struct cli_diagnosis {
  hone_diagnose_options options; /* of what follows */
  hone_thresholds *thresholds;
  hone_recording in_float;
} cli_diagnosis;

hone_status cli_diagnosis_open(const cli_args *args, cli_diagnosis *out, hone_error *error);
void cli_diagnosis_close(cli_diagnosis *diagnosis);
/* Findings as the command line wants them. */
hone_status cli_diagnose(const cli_args *args, const hone_profile *profile, hone_findings **findings,
                         hone_error *error);
/* The table of thresholds; the exit code. */
int cli_print_thresholds(const cli_args *args);

/* ---- reports that are kept (stamp.c) */

/* Adds where, when and of what a measurement is: commit, hone_version, tag, model, machine, os, device,
 * precision, flags, version, temperature_c_range, profiling_date. */
void cli_stamp(json_t *document, const cli_args *args, const char *path);
/* The revision of the user's repository: --commit, GITHUB_SHA, or git's HEAD of the working directory, else
 * of the folder of the model (NULL: none). False: none of these. revision.c; no program is started. */
bool cli_revision(const cli_args *args, const char *model, char *buf, size_t size);
/* What git in the working directory calls so ("HEAD~1", "main"), as a whole revision. False: nothing. */
bool cli_resolve_revision(const char *name, char *buf, size_t size);
/* Processor, its number and the host: "AMD EPYC 9B14, 8 processors, host runner-3". */
void cli_machine(char *buf, size_t size);
/* Now, ISO 8601, UTC. */
void cli_date(char *buf, size_t size);
/* The options that decide about speed (runs, warm-ups, inputs, CLI_OPT_RUN), as they were given, quoted for a
 * shell. False: they do not fit. */
bool cli_flags(const cli_args *args, char *buf, size_t size);
/* The same, one by one, into the record of a session's runs: what commands of findings repeat. Not those of
 * how often it was run, and not the device, which is the record's backend. */
void cli_record_options(const cli_args *args, const cli_session *session, hone_facts *facts);
/* Puts one word, quoted for a shell, at buf + n; returns the new length (which may be past size: cut). */
size_t cli_quote(const char *word, char *buf, size_t size, size_t n);
/* The name of an input for a hint's --shape, quoted for a shell; NAME where it is too long. */
const char *cli_shape_word(const char *name, char *buf, size_t size);
/* Text of any bytes for JSON: what is no UTF-8 becomes U+FFFD. */
json_t *cli_text(const char *text);
/* Adds a report to the history; the document stays the caller's. */
hone_status cli_history_save(json_t *document, int64_t *id, hone_error *error);

json_t *cli_verification_json(const hone_verify_result *result);
const char *cli_verdict_name(hone_verdict verdict);
int cli_verdict_exit(hone_verdict verdict);

#endif
