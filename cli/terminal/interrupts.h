/* Interrupts: Ctrl-C ends what runs; the exit code is then 130 and nothing half-written stays. A second one
 * does not wait for it. */
#ifndef HONE_CLI_INTERRUPTS_H
#define HONE_CLI_INTERRUPTS_H

#include <hone/hone.h>

/* wipe: clears a line that is half shown; called from the handler. NULL: there is none. */
void cli_signals(void (*wipe)(void));
bool cli_interrupted(void);

enum { CLI_EXIT_INTERRUPTED = 130 };

#define CLI_INTERRUPTED "interrupted" /* what every command says then */
/* The context that Ctrl-C cancels; NULL: none, then Ctrl-C ends the process at once unless cli_hold is on. */
void cli_cancellable(hone_context *context);
/* While held (files are being written), Ctrl-C is only noted. Nests. */
void cli_hold(bool on);

#endif
