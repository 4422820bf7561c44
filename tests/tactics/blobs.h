/* What tactics pack, as sums in a golden file: a layout that changes must come with another version of its
 * tactic, or saved plans of before would be read as what they are not. */
#ifndef HN_TESTS_TACTICS_BLOBS_H
#define HN_TESTS_TACTICS_BLOBS_H

#include <hone/plugin.h>
#include <stdbool.h>

/* Packs for the step and adds what comes out to the tactic's sum on this tier (hn_isa). */
void blobs_note(const hone_tactic_desc *tactic, const hone_step *step, const hone_machine *machine, int tier);

/* Against the file, whose lines are "tactic version tier sum"; with `update` the lines of this processor's
 * tiers are written anew. Returns how many are wrong. */
int blobs_judge(const char *file, bool update);

#endif
