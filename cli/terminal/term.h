/* Talking. Everything that is shown goes through cli_print and its like: the arguments of %s come out of
 * models, profiles and command lines, and are escaped (hone_text_format). tools/check_output.sh holds to
 * that. */
#ifndef HONE_CLI_TERM_H
#define HONE_CLI_TERM_H

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>

int cli_print(const char *format, ...) __attribute__((format(printf, 1, 2))); /* the bytes that it wrote */
int cli_print_to(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* hone's own text as it is: newlines, marks of a format. Never a name. */
void cli_put(FILE *stream, const char *own);

/* Switches a colour on or off where the stream wants colours. */
typedef enum cli_paint { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BOLD_RED } cli_paint;
void cli_color(FILE *stream, cli_paint paint);
/* Prints "hone: error: ..." on standard error and returns the exit code that belongs to the error's status.
 * Says nothing of an error without words (cli_print_failed). */
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
/* The same with words of one's own. */
void cli_progress_line(const char *text);
void cli_progress_end(void);
void cli_progress_wipe(void); /* the same from a signal handler that ends the process */
/* Prints a document, with a newline, and releases it; exit code 0, or 6 when standard output cannot take it.
 */
int cli_print_json(json_t *document);
/* The document as text with a newline at its end, harmless to show; releases the document. free() it; NULL:
 * no memory. */
char *cli_json_text(json_t *document);
/* Writes the document as one line, at once where that is standard output; releases it. False: errno says why
 * not. */
bool cli_json_line(FILE *stream, json_t *document);
/* Real number that JSON can carry (NaN and infinities become null). */
json_t *cli_real(double v);
/* Flushes standard output; exit code 0 or 6. */
int cli_flush(void);
/* "8.18 G" with three digits. */
const char *cli_si(double v, char buf[16]);
/* "s", and "" where n is 1: "%u node%s". */
const char *cli_s(uint64_t n);
/* "48.2 MiB", "7.81 KiB", "120 B". */
const char *cli_bytes(double bytes, char buf[24]);
/* Says so, with what was kept of the work (NULL: nothing), and returns the exit code. */
int cli_end_interrupted(const char *kept);

#endif
