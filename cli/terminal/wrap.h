/* Lines that are wider than a terminal. */
#ifndef HONE_CLI_WRAP_H
#define HONE_CLI_WRAP_H

/* A line (UTF-8, colours allowed, no newline) broken between words so that no part is wider than `width`
 * columns, parts separated by newlines. What follows the first part stands below what follows the line's
 * first gap of two spaces
 * ("-o FILE  what it is"), else two columns further in. A command ("$ hone ...") is broken so that a shell
 * takes all of it, with a backslash at the end of each part, and never within quotes. A word that is wider
 * than the terminal stays whole. NULL: the line fits, cannot be broken, or there is no memory. free() the
 * result. */
char *cli_wrap(const char *line, int width);

#endif
