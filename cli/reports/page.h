/* Pages that need nothing else: what those of the command share. */
#ifndef HONE_CLI_PAGE_H
#define HONE_CLI_PAGE_H

#include <stdio.h>

/* Head and style; `title` also as the first heading. */
void cli_page_begin(FILE *f, const char *title);
void cli_page_end(FILE *f);
/* Anybody's text. */
void cli_page_text(FILE *f, const char *text);
/* <td>text</td>, and a number; "exact" for an infinite one, "-" for none. */
void cli_page_cell(FILE *f, const char *text);
void cli_page_number(FILE *f, const char *format, double v);
void cli_page_figure(FILE *f, const char *format, double v);
/* <table> up to its body, with these headings, separated by '|'; and its end. */
void cli_page_table(FILE *f, const char *headings);
void cli_page_table_end(FILE *f);

/* A round number for ticks up to v: 1, 2 or 5 times a power of ten, about `ticks` of them. */
double cli_page_tick(double v, int ticks);
/* A level line of a drawing, with its value on the left. */
void cli_page_level(FILE *to, double left, double right, double y, double value);

#endif
